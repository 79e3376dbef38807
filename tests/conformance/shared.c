/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting to shared receive queues. */
#include "shared.h"
#include "traffic.h"

struct ndx_srq *shared_open(struct check *c, uint32_t depth, uint32_t threshold)
{
	struct ndx_srq *srq = NULL;

	if (!check_over(c))
		check_status(c, make_srq(c->world->places[1].adapter, depth, 1, threshold, &srq),
		             NDX_OK, "srq_create");
	return srq;
}

struct pair *shared_pair(struct check *c, struct ndx_srq *srq, struct ndx_cq *cq)
{
	struct side_attr attr[2];

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[1].srq = srq;
	attr[1].cq = cq;
	return pair_open(c, &attr[0], &attr[1]);
}

struct pair *shared_pair_up(struct check *c, struct ndx_srq *srq, struct ndx_cq *cq)
{
	struct pair *p = shared_pair(c, srq, cq);

	return p && pair_connect(p) ? p : NULL;
}

enum ndx_status shared_raw(struct ndx_srq *srq, struct side *owner, size_t number, size_t at,
                           size_t length)
{
	struct ndx_sge one = sge(owner, at, length);

	return ndx_srq_receive(srq, tag(owner, number), &one, 1);
}

bool shared_ok(struct ndx_srq *srq, struct side *owner, size_t number, size_t at, size_t length)
{
	return !check_over(owner->c) &&
	       check_status(owner->c, shared_raw(srq, owner, number, at, length), NDX_OK,
	                    "srq_receive");
}

bool shared_run(struct ndx_srq *srq, struct side *owner, size_t number, size_t count, size_t at,
                size_t length)
{
	bool fine = true;

	for (size_t i = 0; fine && i < count; i++)
		fine = shared_ok(srq, owner, number + i, at + i * length, length);
	return fine;
}

size_t shared_fill(struct ndx_srq *srq, struct side *owner, size_t limit)
{
	enum ndx_status status = NDX_OK;
	size_t count = 0;

	if (check_over(owner->c))
		return 0;
	while (count < limit &&
	       (status = ndx_srq_receive(srq, tag(owner, count), NULL, 0)) == NDX_OK)
		count++;
	if (!check_that(owner->c, status == NDX_E_NO_MORE_ENTRIES,
	                "after %zu receives the shared queue says %s, not full", count,
	                ndx_status_name(status)))
		return 0;
	return count;
}

bool shared_taken(struct pair *p, size_t count)
{
	struct ndx_result result;

	for (size_t i = 0; i < count && !check_over(p->c); i++) {
		check_status(p->c, ndx_qp_send(p->a.qp, tag(&p->a, i), NULL, 0, 0), NDX_OK, "send");
		expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		if (take(&p->b, p->b.rcq, &result))
			check_that(p->c,
			           result.status == NDX_OK &&
			                   result.request_type == NDX_REQUEST_RECEIVE &&
			                   result.queue_pair_context == &p->b,
			           "a receive of a shared queue: %s with %s",
			           request_name(result.request_type),
			           ndx_status_name(result.status));
	}
	return !check_over(p->c);
}
