/* SPDX-License-Identifier: BSD-2-Clause */
#include "lanes.h"

#include <string.h>

void lanes_make(struct lanes *l, unsigned which)
{
	struct pair *lane = &l->lane[which];

	*lane = *l->p;
	lane->attr.srq = NULL;
	pair_make_side(lane, &lane->a);
	lane->attr.srq = l->srq;
	pair_make_side(lane, &lane->b);
}

void lanes_connect(struct lanes *l, unsigned which)
{
	lanes_make(l, which);
	pair_connect(&l->lane[which]);
}

void lanes_open(struct lanes *l, struct pair *p, uint32_t depth, unsigned count)
{
	struct ndx_srq_attr attr;

	memset(l, 0, sizeof(*l));
	l->p = p;
	ndx_srq_attr_init(&attr);
	attr.depth = depth;
	assert_int_equal(ndx_srq_create(p->b.adapter, &attr, &l->srq), NDX_OK);
	for (unsigned i = 0; i < count; i++)
		lanes_connect(l, i);
}

void lanes_close(struct lanes *l)
{
	for (unsigned i = 0; i < LANES; i++)
		pair_drop(&l->lane[i]);
	ndx_srq_close(l->srq);
}

void lanes_post(struct lanes *l, uintptr_t context)
{
	const struct ndx_sge sge = pair_sge(&l->p->b, context * 64, 64);

	assert_int_equal(ndx_srq_receive(l->srq, (void *)context, &sge, 1), NDX_OK);
}

void lanes_pass(struct lanes *l, unsigned which, uintptr_t context)
{
	pair_send(&l->lane[which].a, 7, 0, 64, 0);
	pair_expect(&l->lane[which].a, NDX_REQUEST_SEND, 7, NDX_OK);
	pair_expect(&l->lane[which].b, NDX_REQUEST_RECEIVE, context, NDX_OK);
}

void lanes_await(const struct pair_side *side, const char *counter, uint64_t value)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (pair_counter(side, true, counter) != value && pair_now() < end)
		pair_run_jobs(side);
	assert_int_equal(pair_counter(side, true, counter), value);
}
