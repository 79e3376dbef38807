/* SPDX-License-Identifier: BSD-2-Clause */
/* The FPGA's side of the metadata bus, as registers. */
#include "surf_fpga.h"

#include <string.h>

#include "stream.h"

#define FIRST_QPN 0x000042u
#define MR_PART_BITS 31u

static struct surf_response answer_pd(struct surf_fpga *f, const struct surf_pd_request *asked)
{
	struct surf_response r = {.type = SURF_PD, .pd = {.key = asked->key}};
	bool in_use = f->qp.used;

	for (unsigned i = 0; i < SURF_FPGA_MRS; i++)
		in_use = in_use || f->mr[i].used;
	if (asked->alloc != 0 && !f->pd.used) {
		/* One PD: no bit of the handler is an index. */
		f->pd.used = true;
		f->pd.handler = (uint32_t)asked->key;
		r.pd.ok = 1;
	} else if (asked->alloc == 0 && f->pd.used && f->pd.handler == asked->handler && !in_use) {
		f->pd.used = false;
		r.pd.ok = 1;
	}
	r.pd.handler = f->pd.handler;
	return r;
}

static struct surf_fpga_mr *find_mr(struct surf_fpga *f, const struct surf_mr_request *asked)
{
	for (unsigned i = 0; i < SURF_FPGA_MRS; i++) {
		struct surf_fpga_mr *mr = &f->mr[i];

		if (asked->alloc != 0 && !mr->used)
			return mr;
		if (asked->alloc == 0 && mr->used && mr->lkey == asked->lkey &&
		    mr->rkey == asked->rkey)
			return mr;
	}
	return NULL;
}

static struct surf_response answer_mr(struct surf_fpga *f, const struct surf_mr_request *asked)
{
	struct surf_response r = {.type = SURF_MR, .mr = {.region = asked->region}};
	struct surf_fpga_mr *mr = find_mr(f, asked);

	if (mr == NULL || !f->pd.used || asked->region.pd_handler != f->pd.handler)
		return r;
	r.mr.ok = 1;
	if (asked->alloc != 0) {
		/* The index is above the part that the host chose. */
		const uint32_t index = (uint32_t)(mr - f->mr) << MR_PART_BITS;

		mr->lkey = index | (uint32_t)asked->region.lkey_part;
		mr->rkey = index | (uint32_t)asked->region.rkey_part;
		mr->region = asked->region;
	}
	mr->used = asked->alloc != 0;
	r.mr.lkey = mr->lkey;
	r.mr.rkey = mr->rkey;
	return r;
}

static bool may_become(uint64_t from, uint64_t to, uint64_t mask)
{
	static const struct {
		uint64_t from;
		uint64_t to;
		uint64_t mask;
	} steps[] = {
		{SURF_RESET, SURF_INIT, SURF_ATTR_PKEY_INDEX | SURF_ATTR_ACCESS},
		{SURF_INIT, SURF_RTR,
	         SURF_ATTR_PATH_MTU | SURF_ATTR_DEST_QPN | SURF_ATTR_RQ_PSN |
	                 SURF_ATTR_MAX_DEST_RD_ATOMIC | SURF_ATTR_MIN_RNR_TIMER},
		{SURF_RTR, SURF_RTS,
	         SURF_ATTR_SQ_PSN | SURF_ATTR_TIMEOUT | SURF_ATTR_RETRY_COUNT |
	                 SURF_ATTR_RNR_RETRY | SURF_ATTR_MAX_RD_ATOMIC},
	};

	if ((mask & SURF_ATTR_STATE) == 0)
		return false;
	if (to == SURF_ERR || (to == SURF_RESET && from == SURF_ERR))
		return true;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].from == from && steps[i].to == to)
			return (mask & steps[i].mask) == steps[i].mask;
	return false;
}

static void keep_masked(uint64_t mask, uint64_t bit, uint64_t *to, uint64_t from)
{
	if ((mask & bit) != 0)
		*to = from;
}

static void modify(struct surf_fpga *f, const struct surf_qp_message *asked)
{
	const struct surf_attributes *from = &asked->attributes;
	struct surf_attributes *to = &f->qp.attributes;
	const uint64_t mask = asked->attr_mask;

	to->state = from->state;
	keep_masked(mask, SURF_ATTR_ACCESS, &to->access, from->access);
	keep_masked(mask, SURF_ATTR_PKEY_INDEX, &to->pkey, from->pkey);
	keep_masked(mask, SURF_ATTR_PATH_MTU, &to->pmtu, from->pmtu);
	keep_masked(mask, SURF_ATTR_TIMEOUT, &to->timeout, from->timeout);
	keep_masked(mask, SURF_ATTR_RETRY_COUNT, &to->retry_count, from->retry_count);
	keep_masked(mask, SURF_ATTR_RNR_RETRY, &to->rnr_retry, from->rnr_retry);
	keep_masked(mask, SURF_ATTR_RQ_PSN, &to->rq_psn, from->rq_psn);
	keep_masked(mask, SURF_ATTR_MAX_RD_ATOMIC, &to->max_rd_atomic, from->max_rd_atomic);
	keep_masked(mask, SURF_ATTR_MIN_RNR_TIMER, &to->min_rnr_timer, from->min_rnr_timer);
	keep_masked(mask, SURF_ATTR_SQ_PSN, &to->sq_psn, from->sq_psn);
	keep_masked(mask, SURF_ATTR_MAX_DEST_RD_ATOMIC, &to->max_dest_rd, from->max_dest_rd);
	keep_masked(mask, SURF_ATTR_DEST_QPN, &to->dest_qpn, from->dest_qpn);
}

static bool engine_create(struct surf_fpga *f, uint32_t *qpn)
{
	if (f->engine != NULL)
		return f->engine->create(f->engine->state, qpn);
	*qpn = FIRST_QPN + f->next_qpn++;
	return true;
}

static void dispatch(struct surf_fpga *f, bool on)
{
	const bool changes = on != f->stream.on;

	f->stream.on = on;
	if (changes && f->engine != NULL)
		f->engine->dispatch(f->engine->state, on, f->stream.wrap);
}

static void engine_error(struct surf_fpga *f)
{
	f->stream.cut += f->stream.on;
	dispatch(f, false);
	if (f->engine != NULL)
		f->engine->error(f->engine->state);
}

static void engine_destroy(struct surf_fpga *f)
{
	if (f->engine != NULL)
		f->engine->destroy(f->engine->state);
}

static bool do_qp(struct surf_fpga *f, const struct surf_qp_message *asked)
{
	const bool known = f->qp.used && f->qp.qpn == asked->qpn;
	const uint64_t state = f->qp.attributes.state;
	struct surf_attributes before;

	if (asked->request == SURF_QP_CREATE) {
		if (f->qp.used || !f->pd.used || asked->pd_handler != f->pd.handler)
			return false;
		if (!engine_create(f, &f->qp.qpn))
			return false;
		f->qp.used = true;
		f->qp.pd_handler = f->pd.handler;
		f->qp.attributes = (struct surf_attributes){.state = SURF_RESET,
		                                            .type = asked->attributes.type};
		return true;
	}
	if (asked->request == SURF_QP_DESTROY) {
		if (!known || state != SURF_ERR)
			return false;
		f->qp.used = false;
		engine_destroy(f);
		return true;
	}
	if (asked->request != SURF_QP_MODIFY || !known ||
	    !may_become(state, asked->attributes.state, asked->attr_mask))
		return false;
	if (asked->attributes.state == SURF_ERR)
		engine_error(f);
	before = f->qp.attributes;
	modify(f, asked);
	if (asked->attributes.state != SURF_RTS || f->engine == NULL ||
	    f->engine->connect(f->engine->state, &f->qp.attributes, __builtin_bswap32(f->udp.ip)))
		return true;
	f->qp.attributes = before;
	return false;
}

static struct surf_response answer_qp(struct surf_fpga *f, const struct surf_qp_message *asked,
                                      bool refuse)
{
	struct surf_response r = {.type = SURF_QP};

	r.qp.ok = !refuse && do_qp(f, asked) ? 1 : 0;
	r.qp.qpn = f->qp.qpn;
	r.qp.pd_handler = f->qp.pd_handler;
	r.qp.attributes = f->qp.attributes;
	return r;
}

static struct surf_response answer(struct surf_fpga *f, const struct surf_request *asked,
                                   bool refuse)
{
	if (asked->type == SURF_QP)
		return answer_qp(f, &asked->qp, refuse);
	if (refuse)
		return (struct surf_response){.type = asked->type};
	return asked->type == SURF_PD ? answer_pd(f, &asked->pd) : answer_mr(f, &asked->mr);
}

static void take_request(struct surf_fpga *f)
{
	const unsigned number = __atomic_fetch_add(&f->requests, 1, __ATOMIC_RELAXED);
	const enum surf_fault fault =
		number < SURF_FPGA_REQUESTS ? f->faults[number] : SURF_FAULT_NONE;
	struct surf_request asked;
	struct surf_response r;
	char why[160];

	f->ready = false;
	if (fault != SURF_FAULT_NONE && f->engine != NULL && f->engine->struck != NULL)
		f->engine->struck(f->engine->state, number);
	if (fault == SURF_FAULT_MUTE)
		return;
	f->busy = true;
	f->due = f->now + f->delay_ms;
	if (fault == SURF_FAULT_WEDGE ||
	    surf_request_decode(f->request, &asked, why, sizeof(why)) != NDX_OK) {
		f->wedged = true;
		return;
	}
	if (number < SURF_FPGA_REQUESTS)
		f->asked[number] = asked;
	r = answer(f, &asked, fault == SURF_FAULT_REFUSE);
	if (fault == SURF_FAULT_LIE)
		r.qp.attributes.state = r.qp.attributes.state == SURF_SQD ? SURF_RTS : SURF_SQD;
	if (fault == SURF_FAULT_OTHER_TYPE)
		r.type = r.type == SURF_PD ? SURF_MR : SURF_PD;
	/* What it has fits the bus: it came from there. */
	(void)surf_response_encode(&r, f->response, why, sizeof(why));
}

static void catch_up(struct surf_fpga *f)
{
	if (!f->busy || f->wedged || f->now < f->due)
		return;
	f->busy = false;
	f->ready = true;
}

static void reset(struct surf_fpga *f)
{
	f->resets++;
	f->busy = false;
	f->wedged = false;
	f->ready = false;
	if (f->qp.used) {
		engine_error(f);
		engine_destroy(f);
	}
	memset(&f->pd, 0, sizeof(f->pd));
	memset(f->mr, 0, sizeof(f->mr));
	memset(&f->qp, 0, sizeof(f->qp));
	memset(f->response, 0, sizeof(f->response));
}

static void control(struct surf_fpga *f, uint32_t value)
{
	const bool send = (value & SURF_CONTROL_SEND) != 0;
	const bool edge = send && !f->send;

	f->send = send;
	if (!edge || f->in_reset)
		return;
	if (f->busy)
		f->lost++;
	else
		take_request(f);
}

/* The dispatcher sends with a key that it has, from the one queue pair: the host's number and its
 * own both name that. */
static bool may_dispatch(const struct surf_fpga *f)
{
	bool known = false;

	for (unsigned i = 0; i < SURF_FPGA_MRS; i++)
		known = known || (f->mr[i].used && f->mr[i].lkey == f->stream.lkey);
	return known && !f->stream.clearing && f->qp.used && f->qp.attributes.state == SURF_RTS &&
	       (f->stream.qpn == f->qp.qpn || f->stream.qpn == f->qp.attributes.dest_qpn);
}

static void switch_stream(struct surf_fpga *f, bool on)
{
	if (on && !may_dispatch(f)) {
		f->stream.refused++;
		on = false;
	}
	dispatch(f, on);
}

static enum ndx_status write_stream(struct surf_fpga *f, uint32_t at, uint32_t value)
{
	switch (at) {
	case SURF_REG_DISPATCH:
		switch_stream(f, (value & 1u) != 0);
		return NDX_OK;
	case SURF_REG_LKEY:
		f->stream.lkey = value;
		return NDX_OK;
	case SURF_REG_SQPN:
		f->stream.qpn = value;
		return NDX_OK;
	case SURF_REG_WRAP:
		f->stream.wrap = value;
		return NDX_OK;
	case SURF_REG_CLEAR:
		f->stream.clearing = (value & 1u) != 0;
		f->stream.cleared += f->stream.clearing && !f->stream.on;
		return NDX_OK;
	case SURF_FPGA_UDP + SURF_UDP_PORT:
		f->udp.port = value;
		return NDX_OK;
	case SURF_FPGA_UDP + SURF_UDP_IP:
		f->udp.ip = value;
		return NDX_OK;
	default:
		return NDX_E_INVALID_PARAMETER;
	}
}

static bool fails(struct surf_fpga *f)
{
	f->now += f->access_ms;
	return ++f->accesses == f->fail_access;
}

static enum ndx_status write32(void *state, uint32_t address, uint32_t value)
{
	struct surf_fpga *f = state;
	const uint32_t at = address - f->base;

	if (fails(f))
		return f->error;
	if (f->writes < SURF_FPGA_TRACE) {
		f->trace[f->writes].address = address;
		f->trace[f->writes].value = value;
	}
	if (++f->writes == f->fail_write)
		return f->error;
	catch_up(f);
	if (at == SURF_REG_CONTROL) {
		control(f, value);
	} else if (at >= SURF_REG_REQUEST && at < SURF_REG_RESPONSE && at % 4 == 0) {
		f->request[(at - SURF_REG_REQUEST) / 4] = value;
	} else if (at == SURF_REG_RESET) {
		if ((value & SURF_RESET_ON) != 0 && !f->in_reset)
			reset(f);
		f->in_reset = (value & SURF_RESET_ON) != 0;
	} else {
		return write_stream(f, at, value);
	}
	return NDX_OK;
}

static enum ndx_status read32(void *state, uint32_t address, uint32_t *value)
{
	struct surf_fpga *f = state;
	const uint32_t at = address - f->base;

	if (fails(f))
		return f->error;
	catch_up(f);
	if (at == SURF_REG_CONTROL)
		*value = (f->send ? SURF_CONTROL_SEND : 0) | (f->ready ? SURF_CONTROL_READY : 0);
	else if (at >= SURF_REG_RESPONSE && at < SURF_REG_RESET && at % 4 == 0)
		*value = f->response[(at - SURF_REG_RESPONSE) / 4];
	else
		return NDX_E_INVALID_PARAMETER;
	return NDX_OK;
}

static enum ndx_status wait_ms(void *state, uint32_t milliseconds)
{
	struct surf_fpga *f = state;

	if (++f->waits == f->cancel_wait)
		return NDX_E_CANCELED;
	f->now += milliseconds;
	return NDX_OK;
}

static uint64_t now_ms(void *state)
{
	const struct surf_fpga *f = state;

	return f->now;
}

const struct surf_bus_ops surf_fpga_ops = {
	.write32 = write32, .read32 = read32, .wait = wait_ms, .now = now_ms};
