/* SPDX-License-Identifier: BSD-2-Clause */
/* Verdicts, and the steps that end at once. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sweep.h"

/* Somewhere to point to: what a call must not replace when it fails. */
static char poison_place[8];

static void *poison(void)
{
	return poison_place;
}

void sweep_wrong(struct run *r, const char *fmt, ...)
{
	va_list args;

	if (r->wrong)
		return;
	r->wrong = true;
	va_start(args, fmt);
	(void)vsnprintf(r->wrong_why, sizeof(r->wrong_why), fmt, args);
	va_end(args);
}

bool sweep_check(struct run *r, bool good, const char *fmt, ...)
{
	va_list args;

	if (good || r->wrong)
		return good;
	r->wrong = true;
	va_start(args, fmt);
	(void)vsnprintf(r->wrong_why, sizeof(r->wrong_why), fmt, args);
	va_end(args);
	return false;
}

bool sweep_again(struct run *r, const char *what, enum ndx_status st, enum ndx_status wanted)
{
	if (st == wanted)
		return false;
	(void)sweep_check(r, st < 0, "%s: %s, which is no failure", what, ndx_status_name(st));
	(void)sweep_check(r, faults_struck(r), "%s: %s although nothing was made to fail: %s", what,
	                  ndx_status_name(st), ndx_last_error());
	if (r->stubborn && !r->repeated && !r->wrong) {
		r->repeated = true;
		return true;
	}
	if (!r->failed)
		(void)snprintf(r->why, sizeof(r->why), "%s: %s", what, ndx_status_name(st));
	r->failed = true;
	if (r->stubborn)
		sweep_wrong(r, "%s: %s, and nothing but %s was made to fail, once: %s", what,
		            ndx_status_name(st), faults_latest(r), ndx_last_error());
	return false;
}

/*
 * As sweep_again(), for a call whose failure is what the provider said, word by word: if it is this
 * side that fails at all.
 */
static bool again_told(struct side *s, const char *what, enum ndx_status st, enum ndx_status wanted)
{
	struct run *r = s->run;

	if (st != wanted && (r->faulty == s || r->faulty == NULL) && faults_struck(r)) {
		(void)sweep_check(r, st == faults_status(r), "%s: %s instead of %s", what,
		                  ndx_status_name(st), ndx_status_name(faults_status(r)));
		(void)sweep_check(r, ndx_last_error()[0] != '\0',
		                  "%s: %s, and ndx_last_error() is empty", what,
		                  ndx_status_name(st));
	}
	return sweep_again(r, what, st, wanted);
}

static void untouched(struct run *r, const char *what, bool is)
{
	(void)sweep_check(r, is, "%s failed and wrote to its out parameter", what);
}

bool step_cq(struct side *s, uint32_t depth)
{
	struct ndx_cq *made;
	enum ndx_status st;

	do {
		made = poison();
		st = ndx_cq_create_depth(s->adapter, depth, &made);
		untouched(s->run, "cq_create", st == NDX_OK || made == poison());
	} while (again_told(s, "cq_create", st, NDX_OK));
	if (st == NDX_OK)
		s->cq = made;
	return st == NDX_OK;
}

bool step_srq(struct side *s, uint32_t depth, uint32_t threshold)
{
	struct ndx_srq *made;
	enum ndx_status st;

	do {
		made = poison();
		st = ndx_srq_create(s->adapter,
		                    &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
		                                           .depth = depth,
		                                           .max_sge = 1,
		                                           .threshold = threshold},
		                    &made);
		untouched(s->run, "srq_create", st == NDX_OK || made == poison());
	} while (again_told(s, "srq_create", st, NDX_OK));
	if (st == NDX_OK)
		s->srq = made;
	return st == NDX_OK;
}

bool step_mr(struct side *s, uint32_t flags)
{
	struct ndx_mr *made;
	enum ndx_status st;

	do {
		made = poison();
		st = ndx_mr_register_new(s->adapter, s->memory, sizeof(s->memory), flags, &made);
		untouched(s->run, "mr_register_new", st == NDX_OK || made == poison());
	} while (again_told(s, "mr_register_new", st, NDX_OK));
	if (st == NDX_OK)
		s->mr = made;
	return st == NDX_OK;
}

bool step_mr_object(struct side *s)
{
	struct ndx_mr *made;
	enum ndx_status st;

	do {
		made = poison();
		st = ndx_mr_create(s->adapter, &made);
		untouched(s->run, "mr_create", st == NDX_OK || made == poison());
	} while (again_told(s, "mr_create", st, NDX_OK));
	if (st == NDX_OK)
		s->mr = made;
	return st == NDX_OK;
}

bool step_mw(struct side *s)
{
	struct ndx_mw *made;
	enum ndx_status st;

	do {
		made = poison();
		st = ndx_mw_create(s->adapter, &made);
		untouched(s->run, "mw_create", st == NDX_OK || made == poison());
	} while (again_told(s, "mw_create", st, NDX_OK));
	if (st == NDX_OK)
		s->mw = made;
	return st == NDX_OK;
}

bool step_qp(struct side *s)
{
	struct ndx_qp_attr attr;
	struct ndx_qp *made;
	enum ndx_status st;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->cq;
	attr.initiator_cq = s->cq;
	attr.srq = s->srq;
	attr.context = s;
	attr.receive_depth = SWEEP_DEPTH;
	attr.initiator_depth = SWEEP_DEPTH;
	attr.inline_size = s->info.max_inline_data_size < 64 ? s->info.max_inline_data_size : 64;
	do {
		made = poison();
		st = ndx_qp_create(s->adapter, &attr, &made);
		untouched(s->run, "qp_create", st == NDX_OK || made == poison());
	} while (again_told(s, "qp_create", st, NDX_OK));
	if (st == NDX_OK)
		s->qp = made;
	return st == NDX_OK;
}

bool step_connector(struct side *s)
{
	struct ndx_connector_attr attr;
	struct ndx_connector *made;
	enum ndx_status st;

	/* a peer that cannot answer is given up soon */
	ndx_connector_attr_init(&attr);
	attr.drain_timeout_ms = 200;
	attr.disconnect_timeout_ms = 1000;
	do {
		made = poison();
		st = ndx_connector_create(s->adapter, &attr, &made);
		untouched(s->run, "connector_create", st == NDX_OK || made == poison());
	} while (again_told(s, "connector_create", st, NDX_OK));
	if (st == NDX_OK)
		s->connector = made;
	return st == NDX_OK;
}

static struct sockaddr_in here(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

bool step_bind(struct side *s)
{
	const struct sockaddr_in at = here();
	enum ndx_status st;

	do {
		st = ndx_connector_bind(s->connector, (const struct sockaddr *)&at, sizeof(at));
	} while (again_told(s, "connector_bind", st, NDX_OK));
	return st == NDX_OK;
}

/* A listener that did not get so far is closed and made anew. */
bool step_listen(struct side *s)
{
	const struct sockaddr_in at = here();
	struct run *r = s->run;
	struct ndx_listener *made;
	enum ndx_status st;

	do {
		made = poison();
		st = ndx_listen_on(s->adapter, (const struct sockaddr *)&at, sizeof(at), 4, &made);
		untouched(r, "listen_on", st == NDX_OK || made == poison());
	} while (again_told(s, "listen_on", st, NDX_OK));
	if (st != NDX_OK)
		return false;
	s->listener = made;
	r->where_len = sizeof(r->where);
	st = ndx_listener_get_local_address(made, (struct sockaddr *)&r->where, &r->where_len);
	return sweep_check(r, st == NDX_OK, "listener_get_local_address: %s", ndx_last_error());
}

bool step_get_fd(struct side *s, int *fd)
{
	enum ndx_status st;
	int found;

	do {
		found = -12345;
		st = ndx_cq_get_fd(s->cq, &found);
		untouched(s->run, "cq_get_fd", st == NDX_OK || found == -12345);
	} while (again_told(s, "cq_get_fd", st, NDX_OK));
	if (st == NDX_OK)
		*fd = found;
	return st == NDX_OK;
}

bool step_affinity(struct side *s)
{
	enum ndx_status st;
	uint64_t mask;
	uint16_t group;

	if (!(s->info.capabilities & NDX_CAP_NOTIFY_AFFINITY))
		return true;
	do {
		mask = 77;
		group = 7;
		st = ndx_cq_get_notify_affinity(s->cq, &group, &mask);
		untouched(s->run, "cq_get_notify_affinity",
		          st == NDX_OK || (mask == 77 && group == 7));
	} while (again_told(s, "cq_get_notify_affinity", st, NDX_OK));
	while (st == NDX_OK && s->srq != NULL) {
		mask = 77;
		group = 7;
		st = ndx_srq_get_notify_affinity(s->srq, &group, &mask);
		untouched(s->run, "srq_get_notify_affinity",
		          st == NDX_OK || (mask == 77 && group == 7));
		if (!again_told(s, "srq_get_notify_affinity", st, NDX_OK))
			break;
		st = NDX_OK;
	}
	return st == NDX_OK;
}

bool step_resize(struct side *s, uint32_t depth)
{
	enum ndx_status st;

	if (!(s->info.capabilities & NDX_CAP_CQ_RESIZE))
		return true;
	do {
		st = ndx_cq_resize(s->cq, depth);
	} while (again_told(s, "cq_resize", st, NDX_OK));
	return st == NDX_OK;
}

bool step_modify(struct side *s, uint32_t depth, uint32_t threshold)
{
	enum ndx_status st;

	do {
		st = ndx_srq_modify(s->srq, depth, threshold);
	} while (again_told(s, "srq_modify", st, NDX_OK));
	return st == NDX_OK;
}

/* Cannot fail. */
bool step_flush(struct side *s)
{
	const enum ndx_status st = ndx_qp_flush(s->qp);

	return sweep_check(s->run, st == NDX_OK, "qp_flush: %s", ndx_last_error());
}

bool step_reject(struct side *s, const void *data, size_t len)
{
	/* what cannot be said cannot be said again: the attempt is given up either way */
	const enum ndx_status st = ndx_connector_reject(s->connector, data, len);
	const bool stubborn = s->run->stubborn;

	s->run->stubborn = false;
	(void)again_told(s, "connector_reject", st, NDX_OK);
	s->run->stubborn = stubborn;
	return st == NDX_OK;
}

/* ---- what cannot fail once it is known ---- */

bool step_limits(struct side *s, uint32_t inbound, uint32_t outbound)
{
	uint32_t in = 0;
	uint32_t out = 0;
	const enum ndx_status st = ndx_connector_get_read_limits(s->connector, &in, &out);

	return sweep_check(s->run, st == NDX_OK && in == inbound && out == outbound,
	                   "get_read_limits: %s, %u and %u instead of %u and %u",
	                   ndx_status_name(st), in, out, inbound, outbound);
}

bool step_private_data(struct side *s, const char *expected)
{
	char data[64] = {0};
	size_t len = sizeof(data);
	const enum ndx_status st = ndx_connector_get_private_data(s->connector, data, &len);

	return sweep_check(
		s->run, st == NDX_OK && len == strlen(expected) && memcmp(data, expected, len) == 0,
		"get_private_data: %s, \"%.20s\" instead of \"%s\"", ndx_status_name(st), data,
		expected);
}

bool step_addresses(struct side *s)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	enum ndx_status st =
		ndx_connector_get_local_address(s->connector, (struct sockaddr *)&address, &len);

	if (st == NDX_OK) {
		len = sizeof(address);
		st = ndx_connector_get_peer_address(s->connector, (struct sockaddr *)&address,
		                                    &len);
	}
	return sweep_check(s->run, st == NDX_OK, "get_..._address: %s", ndx_last_error());
}
