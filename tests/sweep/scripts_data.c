/* SPDX-License-Identifier: BSD-2-Clause */
/* Scripts of traffic. */
#include <poll.h>
#include <string.h>

#include "sweep.h"

#define LEN 200u

SWEEP_SCRIPT(messages)
{
	struct side *a = r->active;
	struct side *p = r->passive;
	const uint32_t inlined = a->info.max_inline_data_size > 0 ? NDX_OP_INLINE : 0;

	if (!sweep_pair(r))
		return;
	sweep_fill(a, 0, LEN, 1);
	sweep_fill(p, 1000, LEN, 2);
	if (!step_receive(p, 0, LEN) || !step_receive(p, 300, LEN) || !step_receive(a, 2000, LEN))
		return;
	if (!step_send(a, 0, LEN, 0) || !step_send(a, 0, 16, NDX_OP_SILENT_SUCCESS | inlined) ||
	    !step_send(p, 1000, LEN, NDX_OP_SOLICIT_EVENT))
		return;
	/* two receives and a send; a send and a receive */
	if (!step_results(p, 3, NDX_OK) || !step_results(a, 2, NDX_OK))
		return;
	if (!sweep_is_filled(p, 0, LEN, 1) || !sweep_is_filled(p, 300, 16, 1) ||
	    !sweep_is_filled(a, 2000, LEN, 2))
		return;
	if (a->info.capabilities & NDX_CAP_SEND_IMMEDIATE) {
		if (!step_receive(p, 600, LEN) || !step_send_immediate(a, 0, LEN, 99) ||
		    !step_results(p, 1, NDX_OK) || !step_results(a, 1, NDX_OK) ||
		    !sweep_is_filled(p, 600, LEN, 1))
			return;
	}
	(void)sweep_disconnect(r);
}

/* Each entry of each list is refused once. */
SWEEP_SCRIPT(lists)
{
	struct side *a = r->active;
	struct side *p = r->passive;

	if (!sweep_pair(r))
		return;
	sweep_fill(a, 0, SWEEP_LIST * LEN, 1);
	if (!step_receive_list(p, 2000, LEN, SWEEP_LIST) ||
	    !step_send_list(a, 0, LEN, SWEEP_LIST) || !step_results(p, SWEEP_LIST, NDX_OK) ||
	    !step_results(a, SWEEP_LIST, NDX_OK) || !sweep_is_filled(p, 2000, SWEEP_LIST * LEN, 1))
		return;
	(void)sweep_disconnect(r);
}

SWEEP_SCRIPT(rdma)
{
	struct side *a = r->active;
	struct side *p = r->passive;
	const uint64_t there = (uintptr_t)p->memory;
	uint32_t token;

	if (!sweep_pair(r))
		return;
	token = ndx_mr_get_remote_token(p->mr);
	sweep_fill(a, 0, LEN, 3);
	sweep_fill(p, 1000, LEN, 4);
	if (!step_write(a, 0, LEN, there + 300, token) ||
	    !step_read(a, 2000, LEN, there + 1000, token) || !step_results(a, 2, NDX_OK))
		return;
	if (!sweep_is_filled(p, 300, LEN, 3) || !sweep_is_filled(a, 2000, LEN, 4))
		return;
	(void)sweep_disconnect(r);
}

SWEEP_SCRIPT(write_immediate)
{
	struct side *a = r->active;
	struct side *p = r->passive;

	if (!sweep_pair(r))
		return;
	sweep_fill(a, 0, LEN, 5);
	if (!step_receive(p, 0, 0) ||
	    !step_write_immediate(a, 0, LEN, (uintptr_t)p->memory + 300,
	                          ndx_mr_get_remote_token(p->mr), 7) ||
	    !step_results(a, 1, NDX_OK) || !step_results(p, 1, NDX_OK) ||
	    !sweep_is_filled(p, 300, LEN, 5))
		return;
	(void)sweep_disconnect(r);
}

/* The peer writes through a window, which is then shut. */
SWEEP_SCRIPT(windows)
{
	struct side *a = r->active;
	struct side *p = r->passive;

	if (!sweep_pair(r) || !step_mw(p))
		return;
	sweep_fill(a, 0, LEN, 6);
	if (!step_window(p, 500, LEN, NDX_OP_ALLOW_READ | NDX_OP_ALLOW_WRITE) ||
	    !step_results(p, 1, NDX_OK))
		return;
	if (!step_write(a, 0, LEN, (uintptr_t)p->memory + 500, ndx_mw_get_remote_token(p->mw)) ||
	    !step_results(a, 1, NDX_OK) || !sweep_is_filled(p, 500, LEN, 6))
		return;
	if (!step_invalidate(p) || !step_results(p, 1, NDX_OK))
		return;
	(void)sweep_disconnect(r);
}

SWEEP_SCRIPT(shared)
{
	struct side *a = r->active;
	struct side *p = r->passive;
	struct op *low;

	if (!step_srq(p, 4, 1) || !sweep_pair(r))
		return;
	if (!step_srq_receive(p, 0, LEN) || !step_srq_receive(p, 300, LEN))
		return;
	low = step_srq_notify(p);
	if (low == NULL)
		return;
	sweep_fill(a, 0, LEN, 8);
	if (!step_send(a, 0, LEN, 0) || !step_send(a, 0, 60, 0) || !step_results(a, 2, NDX_OK) ||
	    !step_results(p, 2, NDX_OK))
		return;
	/* both are used up */
	if (!step_wait(r, low, NDX_OK) || !sweep_is_filled(p, 0, LEN, 8) ||
	    !sweep_is_filled(p, 300, 60, 8))
		return;
	(void)sweep_disconnect(r);
}

SWEEP_SCRIPT(shared_list)
{
	struct side *a = r->active;
	struct side *p = r->passive;

	if (!step_srq(p, SWEEP_LIST, 1) || !sweep_pair(r))
		return;
	sweep_fill(a, 0, SWEEP_LIST * LEN, 9);
	if (!step_srq_receive_list(p, 2000, LEN, SWEEP_LIST) ||
	    !step_send_list(a, 0, LEN, SWEEP_LIST) || !step_results(a, SWEEP_LIST, NDX_OK) ||
	    !step_results(p, SWEEP_LIST, NDX_OK) || !sweep_is_filled(p, 2000, SWEEP_LIST * LEN, 9))
		return;
	(void)sweep_disconnect(r);
}

static bool wait_fd(struct run *r, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return sweep_check(r, poll(&p, 1, (int)SWEEP_PATIENCE_MS) == 1,
	                   "the descriptor did not become readable in %u ms", SWEEP_PATIENCE_MS);
}

static bool arm_fd(struct side *s)
{
	enum ndx_status st;

	do {
		st = ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ANY, NULL);
	} while (sweep_again(s->run, "cq_notify", st, NDX_OK));
	return st == NDX_OK;
}

/* By overlapped object, then by descriptor. */
SWEEP_SCRIPT(notify)
{
	struct side *a = r->active;
	struct side *p = r->passive;
	struct op *fires;
	int fd;

	if (!sweep_pair(r) || !step_receive(p, 0, LEN) || !step_receive(p, 300, LEN))
		return;
	fires = step_cq_notify(p, NDX_CQ_NOTIFY_SOLICITED);
	if (fires == NULL || !step_send(a, 0, LEN, NDX_OP_SOLICIT_EVENT) ||
	    !step_wait(r, fires, NDX_OK) || !step_results(p, 1, NDX_OK))
		return;
	if (!step_get_fd(p, &fd) || !arm_fd(p) || !step_send(a, 0, LEN, 0) || !wait_fd(r, fd) ||
	    !step_results(p, 1, NDX_OK) || !step_results(a, 2, NDX_OK))
		return;
	(void)sweep_disconnect(r);
}
