/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of the data path. The memory of a side is one region. */
#include <string.h>

#include "sweep.h"

struct ndx_sge sweep_sge(const struct side *s, uint32_t at, uint32_t len)
{
	return (struct ndx_sge){
		.buffer = (void *)(uintptr_t)&s->memory[at],
		.length = len,
		.token = ndx_mr_get_local_token(s->mr),
	};
}

void sweep_fill(struct side *s, uint32_t at, uint32_t len, unsigned char seed)
{
	for (uint32_t i = 0; i < len; i++)
		s->memory[at + i] = (unsigned char)(seed + i * 7);
}

bool sweep_is_filled(struct side *s, uint32_t at, uint32_t len, unsigned char seed)
{
	bool good = true;

	for (uint32_t i = 0; i < len; i++)
		good = good && s->memory[at + i] == (unsigned char)(seed + i * 7);
	return sweep_check(s->run, good, "%s: wrong bytes at %u", s->name, at);
}

static void *context_of(uint32_t at)
{
	return (void *)(uintptr_t)at;
}

bool step_receive(struct side *s, uint32_t at, uint32_t len)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_qp_receive(s->qp, context_of(at), &sge, 1);
	} while (sweep_again(s->run, "receive", st, NDX_OK));
	return st == NDX_OK;
}

bool step_srq_receive(struct side *s, uint32_t at, uint32_t len)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_srq_receive(s->srq, context_of(at), &sge, 1);
	} while (sweep_again(s->run, "srq_receive", st, NDX_OK));
	return st == NDX_OK;
}

static void all_or_refused(struct side *s, enum ndx_status st, size_t posted, size_t count)
{
	(void)sweep_check(s->run, st == NDX_OK ? posted == count : posted < count,
	                  "%s: a list of %zu: %s with %zu posted", s->name, count,
	                  ndx_status_name(st), posted);
}

bool step_send_list(struct side *s, uint32_t at, uint32_t len, size_t count)
{
	struct ndx_request list[SWEEP_LIST];
	struct ndx_sge sges[SWEEP_LIST];
	enum ndx_status st;
	size_t posted;
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		sges[i] = sweep_sge(s, at + (uint32_t)i * len, len);
		list[i] = (struct ndx_request){
			.type = NDX_POST_SEND, .sge = &sges[i], .sge_count = 1};
	}
	do {
		st = ndx_qp_post_list(s->qp, &list[done], count - done, &posted);
		all_or_refused(s, st, posted, count - done);
		done += posted;
	} while (sweep_again(s->run, "post_list", st, NDX_OK));
	return st == NDX_OK && sweep_check(s->run, done == count, "%s: %zu of %zu sends posted",
	                                   s->name, done, count);
}

static void make_receives(const struct side *s, uint32_t at, uint32_t len, struct ndx_sge *sges,
                          struct ndx_receive *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		sges[i] = sweep_sge(s, at + (uint32_t)i * len, len);
		list[i] = (struct ndx_receive){.sge = &sges[i], .sge_count = 1};
	}
}

bool step_receive_list(struct side *s, uint32_t at, uint32_t len, size_t count)
{
	struct ndx_receive list[SWEEP_LIST];
	struct ndx_sge sges[SWEEP_LIST];
	enum ndx_status st;
	size_t posted;
	size_t done = 0;

	make_receives(s, at, len, sges, list, count);
	do {
		st = ndx_qp_receive_list(s->qp, &list[done], count - done, &posted);
		all_or_refused(s, st, posted, count - done);
		done += posted;
	} while (sweep_again(s->run, "receive_list", st, NDX_OK));
	return st == NDX_OK && sweep_check(s->run, done == count, "%s: %zu of %zu receives posted",
	                                   s->name, done, count);
}

bool step_srq_receive_list(struct side *s, uint32_t at, uint32_t len, size_t count)
{
	struct ndx_receive list[SWEEP_LIST];
	struct ndx_sge sges[SWEEP_LIST];
	enum ndx_status st;
	size_t posted;
	size_t done = 0;

	make_receives(s, at, len, sges, list, count);
	do {
		st = ndx_srq_receive_list(s->srq, &list[done], count - done, &posted);
		all_or_refused(s, st, posted, count - done);
		done += posted;
	} while (sweep_again(s->run, "srq_receive_list", st, NDX_OK));
	return st == NDX_OK && sweep_check(s->run, done == count, "%s: %zu of %zu receives posted",
	                                   s->name, done, count);
}

bool step_send(struct side *s, uint32_t at, uint32_t len, uint32_t flags)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_qp_send(s->qp, context_of(at), &sge, 1, flags);
	} while (sweep_again(s->run, "send", st, NDX_OK));
	return st == NDX_OK;
}

bool step_send_immediate(struct side *s, uint32_t at, uint32_t len, uint32_t immediate)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_qp_send_immediate(s->qp, context_of(at), &sge, 1, immediate, 0);
	} while (sweep_again(s->run, "send_immediate", st, NDX_OK));
	return st == NDX_OK;
}

bool step_read(struct side *s, uint32_t at, uint32_t len, uint64_t remote, uint32_t token)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_qp_read(s->qp, context_of(at), &sge, 1, remote, token, 0);
	} while (sweep_again(s->run, "read", st, NDX_OK));
	return st == NDX_OK;
}

bool step_write(struct side *s, uint32_t at, uint32_t len, uint64_t remote, uint32_t token)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_qp_write(s->qp, context_of(at), &sge, 1, remote, token, 0);
	} while (sweep_again(s->run, "write", st, NDX_OK));
	return st == NDX_OK;
}

bool step_write_immediate(struct side *s, uint32_t at, uint32_t len, uint64_t remote,
                          uint32_t token, uint32_t immediate)
{
	const struct ndx_sge sge = sweep_sge(s, at, len);
	enum ndx_status st;

	do {
		st = ndx_qp_write_immediate(s->qp, context_of(at), &sge, 1, remote, token,
		                            immediate, 0);
	} while (sweep_again(s->run, "write_immediate", st, NDX_OK));
	return st == NDX_OK;
}

bool step_window(struct side *s, uint32_t at, uint32_t len, uint32_t flags)
{
	enum ndx_status st;

	do {
		st = ndx_qp_bind(s->qp, context_of(at), s->mr, s->mw, &s->memory[at], len, flags);
	} while (sweep_again(s->run, "bind", st, NDX_OK));
	return st == NDX_OK;
}

bool step_invalidate(struct side *s)
{
	enum ndx_status st;

	do {
		st = ndx_qp_invalidate(s->qp, NULL, s->mw, 0);
	} while (sweep_again(s->run, "invalidate", st, NDX_OK));
	return st == NDX_OK;
}

bool step_results(struct side *s, unsigned count, enum ndx_status status)
{
	struct run *r = s->run;
	struct ndx_result result;
	enum ndx_status st = NDX_OK;
	size_t got;

	for (unsigned i = 0; i < count && st == NDX_OK && !r->wrong; i++) {
		do {
			st = ndx_cq_wait_results(s->cq, &result, 1, SWEEP_PATIENCE_MS, &got);
			if (st == NDX_PENDING)
				sweep_wrong(r, "%s: result %u of %u did not come in %u ms", s->name,
				            i + 1, count, SWEEP_PATIENCE_MS);
		} while (st != NDX_PENDING && sweep_again(r, "cq_wait_results", st, NDX_OK));
		if (st != NDX_OK)
			break;
		/* what was posted went to a living connection */
		(void)sweep_check(r, result.status == status, "%s: request type %d completed %s",
		                  s->name, (int)result.request_type,
		                  ndx_status_name(result.status));
		(void)sweep_check(r, result.queue_pair_context == s,
		                  "%s: a result of another queue pair", s->name);
	}
	return st == NDX_OK && !r->wrong;
}

void sweep_take_rest(struct side *s)
{
	struct ndx_result results[SWEEP_DEPTH];

	while (s->cq != NULL && ndx_cq_get_results(s->cq, results, SWEEP_DEPTH) > 0)
		;
}
