/* SPDX-License-Identifier: BSD-2-Clause */
/* The sequence of requests that creates a connected queue pair in the FPGA, and the reverse. */
#include "setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define STEP_MS 5000u
#define UNDO_MS 3000u
#define DESTROY_MS 5000u
/* For the register accesses of a clean-up, about a hundred, in addition to the responses. */
#define ACCESSES_MS 5000u
#define TEXT 200u

/* Fixed values for this FPGA build, which no parameter sets. */
#define MR_ACCESS 0x0fu
#define QP_ACCESS 0x0eu
#define QP_CAP UINT64_C(0x2020010100)
#define QP_PKEY 0xffffu
#define QP_RD_ATOMIC 16u
#define QP_TYPE_RC 2u

#define BITS_24 0xffffffu
#define BITS_31 0x7fffffffu

struct range {
	const char *name;
	size_t at;
	uint64_t least;
	uint64_t most;
};

static const struct range ranges[] = {
	{"host_qpn", offsetof(struct surf_setup, host_qpn), 1, BITS_24},
	{"rq_psn", offsetof(struct surf_setup, rq_psn), 0, BITS_24},
	{"sq_psn", offsetof(struct surf_setup, sq_psn), 0, BITS_24},
	{"mr_length", offsetof(struct surf_setup, mr_length), 1, UINT32_MAX},
	{"pmtu", offsetof(struct surf_setup, pmtu), 1, 5},
	{"min_rnr_timer", offsetof(struct surf_setup, min_rnr_timer), 0, 31},
	{"timeout", offsetof(struct surf_setup, timeout), 0, 31},
	{"retry_count", offsetof(struct surf_setup, retry_count), 0, 7},
	{"rnr_retry", offsetof(struct surf_setup, rnr_retry), 0, 7},
	{"pd_key", offsetof(struct surf_setup, pd_key), 0, UINT32_MAX},
	{"lkey_part", offsetof(struct surf_setup, lkey_part), 0, BITS_31},
	{"rkey_part", offsetof(struct surf_setup, rkey_part), 0, BITS_31},
};

/* One bring-up or clean-up. */
struct run {
	const struct surf_bus *bus;
	const struct surf_log *log;
	struct surf_connection made;
	char *why;
	size_t room;
};

static void log_text(const struct surf_log *log, enum ndx_log_level level, const char *text)
{
	if (log != NULL && log->line != NULL)
		log->line(log->to, level, text);
}

enum ndx_status surf_setup_init(struct surf_setup *setup)
{
	uint32_t keys[3];

	if (getrandom(keys, sizeof(keys), 0) != (ssize_t)sizeof(keys))
		return NDX_E_INTERNAL_ERROR;
	*setup = (struct surf_setup){.min_rnr_timer = 1,
	                             .timeout = 14,
	                             .retry_count = 3,
	                             .rnr_retry = 3,
	                             .pd_key = keys[0],
	                             .lkey_part = keys[1] & BITS_31,
	                             .rkey_part = keys[2] & BITS_31,
	                             .step_ms = STEP_MS};
	return NDX_OK;
}

enum ndx_status surf_setup_check(const struct surf_setup *setup, char *why, size_t room)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct range *r = &ranges[i];
		uint64_t value;

		memcpy(&value, (const uint8_t *)setup + r->at, sizeof(value));
		if (value >= r->least && value <= r->most)
			continue;
		(void)snprintf(why, room,
		               "%s is 0x%" PRIx64 ", not from 0x%" PRIx64 " to 0x%" PRIx64, r->name,
		               value, r->least, r->most);
		return NDX_E_INVALID_PARAMETER;
	}
	if (setup->mr_address + (setup->mr_length - 1) < setup->mr_address) {
		(void)snprintf(why, room, "mr_address and mr_length pass the end of the memory");
		return NDX_E_INVALID_PARAMETER;
	}
	return NDX_OK;
}

static uint64_t ok_of(const struct surf_response *response)
{
	switch (response->type) {
	case SURF_PD:
		return response->pd.ok;
	case SURF_MR:
		return response->mr.ok;
	case SURF_QP:
		return response->qp.ok;
	}
	return 0;
}

/* Run the step of this name; a refusal by the FPGA becomes the status `refused`. */
static enum ndx_status step(const struct run *run, const char *name,
                            const struct surf_request *request, uint32_t timeout_ms,
                            enum ndx_status refused, struct surf_response *response)
{
	char text[TEXT];
	enum ndx_status st =
		surf_bus_ask(run->bus, request, timeout_ms, response, text, sizeof(text));

	if (st != NDX_OK) {
		(void)snprintf(run->why, run->room, "%s: %s", name, text);
		return st;
	}
	if (ok_of(response) != 0)
		return NDX_OK;
	if (request->type == SURF_QP && request->qp.request != SURF_QP_CREATE)
		(void)snprintf(run->why, run->room,
		               "%s: the FPGA refuses; the queue pair is in state %s", name,
		               surf_state_name(response->qp.attributes.state));
	else
		(void)snprintf(run->why, run->room,
		               "%s: the FPGA refuses; somebody else's objects may be in it", name);
	return refused;
}

static enum ndx_status modify(const struct run *run, const char *name, uint64_t mask,
                              const struct surf_attributes *attributes, uint32_t timeout_ms)
{
	struct surf_request request = {.type = SURF_QP,
	                               .qp = {.request = SURF_QP_MODIFY,
	                                      .qpn = run->made.qpn,
	                                      .attr_mask = mask,
	                                      .attributes = *attributes}};
	struct surf_response response;
	enum ndx_status st = step(run, name, &request, timeout_ms, NDX_E_REMOTE_ERROR, &response);

	if (st != NDX_OK || response.qp.attributes.state == attributes->state)
		return st;
	(void)snprintf(run->why, run->room,
	               "%s: the FPGA agrees, but the queue pair is in state %s", name,
	               surf_state_name(response.qp.attributes.state));
	return NDX_E_REMOTE_ERROR;
}

static struct surf_attributes common_attributes(enum surf_qp_state state, uint64_t pmtu)
{
	return (struct surf_attributes){.state = state,
	                                .pmtu = pmtu,
	                                .access = QP_ACCESS,
	                                .cap = QP_CAP,
	                                .pkey = QP_PKEY,
	                                .max_rd_atomic = QP_RD_ATOMIC,
	                                .max_dest_rd = QP_RD_ATOMIC,
	                                .type = QP_TYPE_RC};
}

static enum ndx_status alloc_pd(struct run *run, const struct surf_setup *setup)
{
	const struct surf_request request = {.type = SURF_PD,
	                                     .pd = {.alloc = 1, .key = setup->pd_key}};
	struct surf_response response;
	enum ndx_status st = step(run, "PD alloc", &request, setup->step_ms,
	                          NDX_E_INSUFFICIENT_RESOURCES, &response);

	if (st != NDX_OK)
		return st;
	run->made.has_pd = true;
	run->made.pd_handler = (uint32_t)response.pd.handler;
	return NDX_OK;
}

static enum ndx_status alloc_mr(struct run *run, const struct surf_setup *setup)
{
	const struct surf_request request = {.type = SURF_MR,
	                                     .mr = {.alloc = 1,
	                                            .region = {.laddr = setup->mr_address,
	                                                       .length = setup->mr_length,
	                                                       .access = MR_ACCESS,
	                                                       .pd_handler = run->made.pd_handler,
	                                                       .lkey_part = setup->lkey_part,
	                                                       .rkey_part = setup->rkey_part}}};
	struct surf_response response;
	enum ndx_status st = step(run, "MR alloc", &request, setup->step_ms,
	                          NDX_E_INSUFFICIENT_RESOURCES, &response);

	if (st != NDX_OK)
		return st;
	run->made.has_mr = true;
	run->made.lkey = (uint32_t)response.mr.lkey;
	run->made.rkey = (uint32_t)response.mr.rkey;
	return NDX_OK;
}

static enum ndx_status create_qp(struct run *run, const struct surf_setup *setup)
{
	const struct surf_request request = {.type = SURF_QP,
	                                     .qp = {.request = SURF_QP_CREATE,
	                                            .pd_handler = run->made.pd_handler,
	                                            .attributes = {.type = QP_TYPE_RC}}};
	struct surf_response response;
	enum ndx_status st = step(run, "QP create", &request, setup->step_ms,
	                          NDX_E_INSUFFICIENT_RESOURCES, &response);

	if (st != NDX_OK)
		return st;
	run->made.has_qp = true;
	run->made.qpn = (uint32_t)response.qp.qpn;
	return NDX_OK;
}

static enum ndx_status connect_qp(const struct run *run, const struct surf_setup *setup)
{
	struct surf_attributes a = common_attributes(SURF_INIT, setup->pmtu);
	enum ndx_status st =
		modify(run, "QP to INIT", SURF_ATTR_STATE | SURF_ATTR_PKEY_INDEX | SURF_ATTR_ACCESS,
	               &a, setup->step_ms);

	if (st != NDX_OK)
		return st;
	a.state = SURF_RTR;
	a.dest_qpn = setup->host_qpn;
	a.rq_psn = setup->rq_psn;
	a.min_rnr_timer = setup->min_rnr_timer;
	st = modify(run, "QP to RTR",
	            SURF_ATTR_STATE | SURF_ATTR_PATH_MTU | SURF_ATTR_DEST_QPN | SURF_ATTR_RQ_PSN |
	                    SURF_ATTR_MAX_DEST_RD_ATOMIC | SURF_ATTR_MIN_RNR_TIMER,
	            &a, setup->step_ms);
	if (st != NDX_OK)
		return st;
	a.state = SURF_RTS;
	a.sq_psn = setup->sq_psn;
	a.timeout = setup->timeout;
	a.retry_count = setup->retry_count;
	a.rnr_retry = setup->rnr_retry;
	return modify(run, "QP to RTS",
	              SURF_ATTR_STATE | SURF_ATTR_SQ_PSN | SURF_ATTR_TIMEOUT |
	                      SURF_ATTR_RETRY_COUNT | SURF_ATTR_RNR_RETRY | SURF_ATTR_MAX_RD_ATOMIC,
	              &a, setup->step_ms);
}

static enum ndx_status make(struct run *run, const struct surf_setup *setup)
{
	enum ndx_status st = surf_bus_reset(run->bus, run->why, run->room);

	if (st == NDX_OK)
		st = alloc_pd(run, setup);
	if (st == NDX_OK)
		st = alloc_mr(run, setup);
	if (st == NDX_OK)
		st = create_qp(run, setup);
	if (st == NDX_OK)
		st = connect_qp(run, setup);
	return st;
}

/* Returns 1 and logs a line if the step failed. */
static unsigned note(const struct run *run, enum ndx_status st)
{
	if (st == NDX_OK)
		return 0;
	log_text(run->log, NDX_LOG_WARN, run->why);
	return 1;
}

static uint32_t at_most(const struct run *run, uint32_t limit)
{
	const uint32_t most = run->made.step_ms;

	return most > 0 && most < limit ? most : limit;
}

static unsigned drop_qp(const struct run *run)
{
	const struct surf_attributes a = common_attributes(SURF_ERR, 1);
	const struct surf_request request = {
		.type = SURF_QP, .qp = {.request = SURF_QP_DESTROY, .qpn = run->made.qpn}};
	struct surf_response response;
	unsigned failed =
		note(run, modify(run, "QP to ERR", SURF_ATTR_STATE, &a, at_most(run, UNDO_MS)));

	return failed + note(run, step(run, "QP destroy", &request, at_most(run, DESTROY_MS),
	                               NDX_E_REMOTE_ERROR, &response));
}

static unsigned free_mr(const struct run *run)
{
	const struct surf_request request = {.type = SURF_MR,
	                                     .mr = {.region = {.pd_handler = run->made.pd_handler},
	                                            .lkey = run->made.lkey,
	                                            .rkey = run->made.rkey}};
	struct surf_response response;

	return note(run, step(run, "MR free", &request, at_most(run, UNDO_MS), NDX_E_REMOTE_ERROR,
	                      &response));
}

static unsigned free_pd(const struct run *run)
{
	const struct surf_request request = {.type = SURF_PD,
	                                     .pd = {.handler = run->made.pd_handler}};
	struct surf_response response;

	return note(run, step(run, "PD free", &request, at_most(run, UNDO_MS), NDX_E_REMOTE_ERROR,
	                      &response));
}

unsigned surf_tear_down(const struct surf_bus *bus, const struct surf_log *log,
                        struct surf_connection *connection)
{
	char why[TEXT];
	struct surf_bus limited = *bus;
	const struct run run = {
		.bus = &limited, .log = log, .made = *connection, .why = why, .room = sizeof(why)};
	unsigned failed = 0;

	limited.until = bus->ops->now(bus->state) + ACCESSES_MS + at_most(&run, DESTROY_MS) +
	                UINT64_C(3) * at_most(&run, UNDO_MS);
	if (run.made.has_qp)
		failed += drop_qp(&run);
	if (run.made.has_mr)
		failed += free_mr(&run);
	if (run.made.has_pd)
		failed += free_pd(&run);
	if (failed > 0) {
		log_text(log, NDX_LOG_WARN, "the clean-up is not complete: soft reset of the FPGA");
		/*
		 * The reset matters more than any step and needs few accesses, so the limit does
		 * not apply to it.
		 */
		(void)note(&run, surf_bus_reset(bus, why, sizeof(why)));
	}
	memset(connection, 0, sizeof(*connection));
	return failed;
}

enum ndx_status surf_bring_up(const struct surf_bus *bus, const struct surf_log *log,
                              const struct surf_setup *setup, struct surf_connection *out,
                              char *why, size_t room)
{
	struct run run = {.bus = bus, .log = log, .why = why, .room = room};
	char text[TEXT];
	enum ndx_status st = surf_setup_check(setup, why, room);

	if (st != NDX_OK)
		return st;
	run.made.step_ms = setup->step_ms;
	st = make(&run, setup);
	if (st != NDX_OK) {
		log_text(log, NDX_LOG_ERROR, why);
		(void)surf_tear_down(bus, log, &run.made);
		return st;
	}
	(void)snprintf(text, sizeof(text),
	               "queue pair 0x%06" PRIx32 " of the FPGA is in RTS, to host 0x%06" PRIx64,
	               run.made.qpn, setup->host_qpn);
	log_text(log, NDX_LOG_INFO, text);
	*out = run.made;
	return NDX_OK;
}
