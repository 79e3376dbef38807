/* SPDX-License-Identifier: BSD-2-Clause */
/* srq.*: shared receive queues, their limits, threshold and changes. */
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "shared.h"
#include "traffic.h"

enum { MESSAGE = 64, FULL_MAX = 1 << 20 };

/* ---- creating ---- */

void case_srq_depth_is_refused_beyond_its_limit(struct check *c)
{
	const struct place *place = &c->world->places[0];
	uint32_t most = place->info.max_shared_receive_queue_depth;
	struct ndx_srq *none = (struct ndx_srq *)c;
	struct ndx_srq *srq = none;

	check_that(c, most > 0, "an adapter with SRQs says that they have no depth");
	check_status(c, make_srq(place->adapter, 0, 1, 0, &srq), NDX_E_INVALID_PARAMETER,
	             "srq_create with depth 0");
	if (most < UINT32_MAX)
		check_status(c, make_srq(place->adapter, most + 1, 1, 0, &srq),
		             NDX_E_INVALID_PARAMETER, "srq_create beyond the limit");
	check_that(c, srq == none, "the output of a failed call was touched");
	if (check_status(c, make_srq(place->adapter, most, 1, 0, &srq), NDX_OK,
	                 "srq_create at the limit"))
		ndx_srq_close(srq);
}

void case_srq_bad_arguments_are_refused(struct check *c)
{
	const enum ndx_status want = NDX_E_INVALID_PARAMETER;
	const struct place *place = &c->world->places[0];
	struct ndx_srq *none = (struct ndx_srq *)c;
	struct ndx_srq *srq = none;

	check_status(c, make_srq(place->adapter, 8, 0, 0, &srq), want, "srq_create with 0 SGEs");
	check_status(c, make_srq(place->adapter, 8, place->info.max_receive_sge + 1, 0, &srq), want,
	             "srq_create with an SGE too many");
	check_status(c,
	             ndx_srq_create(place->adapter,
	                            &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
	                                                   .depth = 8,
	                                                   .max_sge = 1,
	                                                   .group = 1},
	                            &srq),
	             want, "srq_create with processor group 1");
	check_status(c, make_srq(NULL, 8, 1, 0, &srq), want, "srq_create without an adapter");
	check_status(c, make_srq(place->adapter, 8, 1, 0, NULL), want,
	             "srq_create without a place for it");
	check_that(c, srq == none, "the output of a failed call was touched");
}

void case_srq_affinity_is_reported_if_known(struct check *c)
{
	const struct place *place = &c->world->places[0];
	bool known = (place->info.capabilities & NDX_CAP_NOTIFY_AFFINITY) != 0;
	struct ndx_srq *srq = NULL;
	uint16_t group = 7;
	uint64_t mask = 0;

	if (!check_status(c,
	                  ndx_srq_create(place->adapter,
	                                 &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
	                                                        .depth = 8,
	                                                        .max_sge = 1,
	                                                        .affinity = 1},
	                                 &srq),
	                  NDX_OK, "srq_create"))
		return;
	check_status(c, ndx_srq_get_notify_affinity(srq, &group, &mask),
	             known ? NDX_OK : NDX_E_NOT_SUPPORTED, "srq_get_notify_affinity");
	check_that(c, known ? group == 0 && mask != 0 : group == 7 && mask == 0,
	           "group %u, mask %llu", group, (unsigned long long)mask);
	ndx_srq_close(srq);
}

/* ---- posting ---- */

void case_srq_takes_as_many_as_its_depth(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 4, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	size_t count;

	if (p) {
		count = shared_fill(srq, &p->b, FULL_MAX);
		check_that(c, count >= 4, "a queue of 4 was full after %zu", count);
		shared_taken(p, 2);
		check_that(c, check_over(c) || shared_fill(srq, &p->b, FULL_MAX) == 2,
		           "two taken receives did not make room for two");
		shared_taken(p, count);
		expect_silence(&p->b);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_limits_are_usable_at_once(struct check *c)
{
	const struct place *place = &c->world->places[1];
	uint32_t depth = place->info.max_shared_receive_queue_depth;
	uint32_t pieces = place->info.max_receive_sge;
	struct ndx_sge list[64];
	struct ndx_srq *srq = NULL;
	struct pair *p;

	check_status(c, make_srq(place->adapter, depth, pieces, 0, &srq), NDX_OK,
	             "srq_create at all limits");
	p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	if (p && check_that(c, pieces <= 64, "more SGEs than the case has")) {
		for (uint32_t i = 0; i < pieces; i++)
			list[i] = sge(&p->b, 32768 - (size_t)16 * i, 8);
		for (uint32_t i = 0; i < depth && !check_over(c); i++)
			check_status(c, ndx_srq_receive(srq, tag(&p->b, i), list, pieces), NDX_OK,
			             "srq_receive");
		pattern_fill(p->a.buf, (size_t)8 * pieces, 3);
		send_ok(&p->a, 1, 0, (size_t)8 * pieces, 0);
		expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
		expect_received(&p->b, 0, (size_t)8 * pieces);
		for (uint32_t i = 0; i < pieces && !check_over(c); i++)
			check_that(c, memcmp(list[i].buffer, p->a.buf + (size_t)8 * i, 8) == 0,
			           "piece %u came wrong", i);
		shared_taken(p, depth - 1 < 500 ? depth - 1 : 500);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_too_long_receives_are_refused(struct check *c)
{
	const uint32_t most = c->world->places[1].info.max_transfer_length;
	struct ndx_srq *srq = shared_open(c, 4, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct ndx_sge one;

	if (p) {
		one = sge(&p->b, 0, most);
		one.length++;
		if (most < UINT32_MAX)
			check_status(c, ndx_srq_receive(srq, p, &one, 1), NDX_E_BUFFER_OVERFLOW,
			             "srq_receive beyond max_transfer_length");
		shared_run(srq, &p->b, 0, 4, 0, MESSAGE); /* nothing was taken up */
		shared_taken(p, 4);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_too_many_sges_are_refused(struct check *c)
{
	const uint32_t most = c->world->places[1].info.max_receive_sge;
	struct ndx_srq *srq = shared_open(c, 4, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct ndx_sge list[65];

	if (p && check_that(c, most < 65, "more SGEs than the case has")) {
		for (size_t i = 0; i < 65; i++)
			list[i] = sge(&p->b, 0, 1);
		check_status(c, ndx_srq_receive(srq, p, list, most + 1), NDX_E_DATA_OVERRUN,
		             "srq_receive with more SGEs than there can be");
		check_that(c, shared_fill(srq, &p->b, FULL_MAX) >= 4,
		           "a refused receive took a slot");
		shared_taken(p, 4);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_own_receive_queue_is_refused(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 4, 0);
	struct pair *p = srq ? shared_pair(c, srq, NULL) : NULL;

	if (p) {
		check_status(c, receive_raw(&p->b, 1, 0, MESSAGE), NDX_E_INVALID_DEVICE_STATE,
		             "receive of a queue pair with a shared queue");
		pair_connect(p);
		check_status(c, receive_raw(&p->b, 1, 0, MESSAGE), NDX_E_INVALID_DEVICE_STATE,
		             "receive of a queue pair with a shared queue");
		shared_ok(srq, &p->b, 2, 0, MESSAGE);
		send_ok(&p->a, 3, 0, MESSAGE, 0);
		expect_received(&p->b, 2, MESSAGE);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

/* ---- notification ---- */

void case_srq_notify_fires_once_below_the_threshold(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 4);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct probe one;

	if (p && probe_begin(&one, c, WAY_CALLBACK)) {
		shared_run(srq, &p->b, 0, 8, 0, 0);
		check_status(c, ndx_srq_notify(srq, &one.ov), NDX_PENDING, "srq_notify");
		shared_taken(p, 4);
		probe_pending(&one, "srq_notify with as many left as the threshold");
		shared_taken(p, 1);
		probe_ends(&one, NDX_OK, "srq_notify with one fewer");
		shared_taken(p, 1);
		shared_run(srq, &p->b, 0, 6, 0, 0);
		shared_taken(p, 7);
		probe_silent(&one, "srq_notify that was asked for once");
		pair_close_all(c);
		probe_end(&one);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_notify_fires_at_once_when_below(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 4);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct probe one;

	if (p && probe_begin(&one, c, WAY_PORT)) {
		shared_run(srq, &p->b, 0, 3, 0, 0);
		probe_async(&one, ndx_srq_notify(srq, &one.ov), NDX_OK, "srq_notify when below");
		probe_async(&one, ndx_srq_notify(srq, &one.ov), NDX_OK, "srq_notify, still below");
		shared_run(srq, &p->b, 3, 1, 0, 0);
		check_status(c, ndx_srq_notify(srq, &one.ov), NDX_PENDING, "srq_notify");
		probe_pending(&one, "srq_notify when not below");
		shared_taken(p, 1);
		probe_ends(&one, NDX_OK, "srq_notify");
		pair_close_all(c);
		probe_end(&one);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_notifications_fire_together(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 2);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct probe one[3];

	memset(one, 0, sizeof(one));
	if (p) {
		shared_run(srq, &p->b, 0, 2, 0, 0);
		for (size_t i = 0; i < 3; i++) {
			if (probe_begin(&one[i], c, (enum way)i))
				check_status(c, ndx_srq_notify(srq, &one[i].ov), NDX_PENDING,
				             "srq_notify");
		}
		shared_taken(p, 1);
		for (size_t i = 0; i < 3 && !check_over(c); i++)
			probe_ends(&one[i], NDX_OK, "srq_notify");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
	for (size_t i = 0; i < 3; i++)
		probe_end(&one[i]);
}

void case_srq_notify_needs_a_threshold(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct ndx_overlapped ov;

	if (!srq)
		return;
	ndx_overlapped_init(&ov);
	check_status(c, ndx_srq_notify(srq, &ov), NDX_E_INVALID_PARAMETER,
	             "srq_notify without a threshold");
	check_status(c, ndx_srq_modify(srq, 0, 1), NDX_OK, "srq_modify to a threshold");
	check_async(c, ndx_srq_notify(srq, &ov), &ov, NDX_OK, "srq_notify of an empty queue");
	check_status(c, ndx_srq_notify(NULL, &ov), NDX_E_INVALID_PARAMETER, "srq_notify of NULL");
	ndx_srq_close(srq);
}

void case_srq_cancel_ends_notifications(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 2);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct probe one[3];

	memset(one, 0, sizeof(one));
	if (p) {
		check_status(c, ndx_srq_cancel(srq), NDX_OK, "srq_cancel of nothing");
		shared_run(srq, &p->b, 0, 3, 0, 0);
		for (size_t i = 0; i < 3; i++) {
			if (probe_begin(&one[i], c, (enum way)i))
				check_status(c, ndx_srq_notify(srq, &one[i].ov), NDX_PENDING,
				             "srq_notify");
		}
		check_status(c, ndx_srq_cancel(srq), NDX_OK, "srq_cancel");
		for (size_t i = 0; i < 3 && !check_over(c); i++)
			probe_has_ended(&one[i], NDX_E_CANCELED, "srq_notify");
		shared_taken(p, 3); /* the receives are none the worse */
		for (size_t i = 0; i < 3 && !check_over(c); i++)
			probe_silent(&one[i], "srq_notify that was cancelled");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
	for (size_t i = 0; i < 3; i++)
		probe_end(&one[i]);
}

/* ---- changing ---- */

void case_srq_modify_of_nothing_leaves_it(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 3);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct ndx_overlapped ov;
	size_t before;

	ndx_overlapped_init(&ov);
	if (p) {
		before = shared_fill(srq, &p->b, FULL_MAX);
		check_status(c, ndx_srq_modify(srq, 0, 0), NDX_OK, "srq_modify of nothing");
		check_status(c, ndx_srq_receive(srq, p, NULL, 0), NDX_E_NO_MORE_ENTRIES,
		             "srq_receive of a full queue");
		check_status(c, ndx_srq_notify(srq, &ov), NDX_PENDING, "srq_notify");
		shared_taken(p, before - 3);
		check_pending(c, &ov, "srq_notify at the threshold");
		shared_taken(p, 1);
		check_ends(c, &ov, NDX_OK, "srq_notify");
		shared_taken(p, 2);
		check_that(c, check_over(c) || shared_fill(srq, &p->b, FULL_MAX) == before,
		           "it holds another number than before");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_modify_changes_the_depth(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 4, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	size_t held;

	if (p) {
		held = shared_fill(srq, &p->b, FULL_MAX);
		check_status(c, ndx_srq_modify(srq, (uint32_t)held + 12, 0), NDX_OK,
		             "srq_modify to a larger depth");
		check_that(c, check_over(c) || shared_fill(srq, &p->b, FULL_MAX) >= 12,
		           "the larger queue has no room for 12 more");
		check_status(c, ndx_srq_modify(srq, 4, 0), NDX_E_BUFFER_OVERFLOW,
		             "srq_modify below what is posted");
		check_status(
			c,
			ndx_srq_modify(srq,
		                       c->world->places[1].info.max_shared_receive_queue_depth + 1,
		                       0),
			NDX_E_INVALID_PARAMETER, "srq_modify beyond the limit");
		check_status(c, ndx_srq_receive(srq, p, NULL, 0), NDX_E_NO_MORE_ENTRIES,
		             "srq_receive of a full queue after a modify that failed");
		shared_taken(p, held + 10);
		check_status(c, ndx_srq_modify(srq, 4, 0), NDX_OK, "srq_modify to a smaller depth");
		check_that(c, check_over(c) || shared_fill(srq, &p->b, FULL_MAX) < held + 10,
		           "the smaller queue is as large as before");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_modify_down_to_what_is_posted(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 16, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;

	if (p) {
		shared_run(srq, &p->b, 0, 6, 0, MESSAGE);
		check_status(c, ndx_srq_modify(srq, 5, 0), NDX_E_BUFFER_OVERFLOW,
		             "srq_modify to one fewer than is posted");
		check_status(c, ndx_srq_modify(srq, 6, 0), NDX_OK,
		             "srq_modify to as many as are posted");
		shared_taken(p, 6);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_modify_keeps_what_is_posted(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;

	for (unsigned round = 0; p && round < 20 && !check_over(c); round++) {
		uint32_t depth = 5 + check_below(c, 60);

		shared_run(srq, &p->b, 0, 5, 0, MESSAGE);
		check_status(c, ndx_srq_modify(srq, depth, 0), NDX_OK, "srq_modify");
		pattern_fill(p->a.buf, (size_t)5 * MESSAGE, round);
		sends_ok(&p->a, 10, 5, 0, MESSAGE);
		expect_run(&p->a, NDX_REQUEST_SEND, 10, 5, NDX_OK);
		for (size_t i = 0; i < 5; i++) { /* whichever receive it takes */
			struct ndx_result result;
			size_t number;

			if (!take(&p->b, p->b.rcq, &result))
				break;
			number = (size_t)((char *)result.request_context - p->b.tags);
			check_that(c,
			           result.status == NDX_OK && number < 5 &&
			                   memcmp(p->b.buf + number * MESSAGE,
			                          p->a.buf + i * MESSAGE, MESSAGE) == 0,
			           "message %zu: receive %zu, %s, or wrong bytes", i, number,
			           ndx_status_name(result.status));
		}
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_modify_of_the_threshold_fires(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 2);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	if (p) {
		shared_run(srq, &p->b, 0, 4, 0, 0);
		check_status(c, ndx_srq_notify(srq, &ov), NDX_PENDING, "srq_notify");
		check_pending(c, &ov, "srq_notify above the threshold");
		check_status(c, ndx_srq_modify(srq, 0, 6), NDX_OK, "srq_modify of the threshold");
		check_ends(c, &ov, NDX_OK, "srq_notify below the new threshold");
		check_status(c, ndx_srq_modify(srq, 0, 1), NDX_OK, "srq_modify of the threshold");
		check_status(c, ndx_srq_notify(srq, &ov), NDX_PENDING, "srq_notify");
		shared_taken(p, 3);
		check_pending(c, &ov, "srq_notify at the lower threshold");
		shared_taken(p, 1);
		check_ends(c, &ov, NDX_OK, "srq_notify below the lower threshold");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

/* ---- what else goes through it ---- */

void case_srq_both_sides_may_have_one(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct ndx_srq *other = NULL;
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	check_status(c, make_srq(c->world->places[0].adapter, 8, 1, 0, &other), NDX_OK,
	             "srq_create");
	attr[0].srq = other;
	attr[1].srq = srq;
	p = check_over(c) ? NULL : pair_up_with(c, &attr[0], &attr[1]);
	for (size_t i = 0; p && i < 50 && !check_over(c); i++) {
		shared_ok(srq, &p->b, i, 0, MESSAGE);
		shared_ok(other, &p->a, i, 0, MESSAGE);
		send_ok(&p->a, i, 1024, MESSAGE, 0);
		expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		expect_received(&p->b, i, MESSAGE);
		send_ok(&p->b, i, 1024, MESSAGE, 0);
		expect(&p->b, NDX_REQUEST_SEND, i, NDX_OK);
		expect_received(&p->a, i, MESSAGE);
	}
	if (p)
		pair_disconnect(p);
	pair_close_all(c);
	ndx_srq_close(srq);
	ndx_srq_close(other);
}

void case_srq_write_with_immediate_takes_a_receive(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct ndx_result result = {.status = NDX_PENDING};
	struct ndx_sge one;

	if (p) {
		one = sge(&p->a, 0, MESSAGE);
		pattern_fill(p->a.buf, MESSAGE, 2);
		memset(p->b.buf, 0xee, MESSAGE);
		shared_ok(srq, &p->b, 1, 0, MESSAGE);
		check_status(c,
		             ndx_qp_write_immediate(p->a.qp, tag(&p->a, 2), &one, 1,
		                                    (uintptr_t)(p->b.buf + 1024),
		                                    ndx_mr_get_remote_token(p->b.mr), 0xcafe, 0),
		             NDX_OK, "write_immediate");
		expect(&p->a, NDX_REQUEST_WRITE, 2, NDX_OK);
		if (take(&p->b, p->b.rcq, &result) &&
		    result_is(&p->b, &result, NDX_REQUEST_RECEIVE, 1, NDX_OK))
			check_that(c,
			           result.flags == (NDX_RESULT_IMMEDIATE | NDX_RESULT_WRITTEN) &&
			                   result.immediate == 0xcafe &&
			                   result.bytes_transferred == MESSAGE,
			           "flags %u, immediate 0x%x, %u bytes", result.flags,
			           result.immediate, result.bytes_transferred);
		if (!check_over(c))
			pattern_there(c, p->b.buf + 1024, MESSAGE, 2, "what was written");
		bytes_are(c, p->b.buf, MESSAGE, 0xee, "memory of the receive");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_nothing_is_lost_without_polling(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 64, 0);
	struct ndx_cq *cq = NULL;
	struct pair *p = NULL;

	if (srq && check_status(c, ndx_cq_create_depth(c->world->places[1].adapter, 2, &cq), NDX_OK,
	                        "cq_create"))
		p = shared_pair_up(c, srq, cq);
	if (p) {
		shared_run(srq, &p->b, 0, 64, 0, 16);
		sends_ok(&p->a, 100, 64, 0, 16);
		expect_run(&p->a, NDX_REQUEST_SEND, 100, 64, NDX_OK);
		for (size_t i = 0; i < 64; i++)
			expect_received(&p->b, i, 16);
		pair_disconnect(p);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
	ndx_cq_close(cq);
}
