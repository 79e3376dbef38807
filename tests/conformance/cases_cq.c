/* SPDX-License-Identifier: BSD-2-Clause */
/* cq.*: completion queues: order, depth, notification, the descriptor. */
#include <poll.h>
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64 };

void case_cq_limits_of_creation(struct check *c)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	uint32_t most = c->world->places[0].info.max_completion_queue_depth;
	struct ndx_cq *cq = NULL;

	check_status(c, ndx_cq_create_depth(adapter, 0, &cq), NDX_E_INVALID_PARAMETER, "depth 0");
	check_status(c, ndx_cq_create_depth(adapter, most + 1, &cq), NDX_E_INVALID_PARAMETER,
	             "a depth beyond the limit");
	check_status(c,
	             ndx_cq_create(adapter,
	                           &(struct ndx_cq_attr){.size = sizeof(struct ndx_cq_attr),
	                                                 .depth = 16,
	                                                 .group = 1},
	                           &cq),
	             NDX_E_INVALID_PARAMETER, "group 1");
	check_status(c, ndx_cq_create_depth(adapter, 16, NULL), NDX_E_INVALID_PARAMETER,
	             "no output");
	check_that(c, cq == NULL, "an output of a failed call was touched");
	check_status(c, ndx_cq_create_depth(adapter, 1, &cq), NDX_OK, "depth 1");
	ndx_cq_close(cq);
	cq = NULL;
	check_status(c,
	             ndx_cq_create(adapter,
	                           &(struct ndx_cq_attr){.size = sizeof(struct ndx_cq_attr),
	                                                 .depth = most,
	                                                 .affinity = 1},
	                           &cq),
	             NDX_OK, "the largest depth");
	ndx_cq_close(cq);
	ndx_cq_close(NULL);
}

void case_cq_depth_2_loses_nothing(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.cq_depth = 2;
	p = pair_up(c, &attr);
	if (!p)
		return;
	for (unsigned round = 0; round < 3; round++) {
		receives_ok(&p->a, 0, 60, 0, MESSAGE);
		receives_ok(&p->b, 0, 60, 0, MESSAGE);
		sends_ok(&p->a, 100, 60, 0, MESSAGE);
		sends_ok(&p->b, 100, 60, 0, MESSAGE);
		for (size_t i = 0, a = 0, b = 0; i < 120; i++) {
			struct ndx_result r = {.status = NDX_PENDING};

			(void)take(&p->a, p->a.cq, &r);
			if (r.request_type == NDX_REQUEST_RECEIVE)
				result_is(&p->a, &r, NDX_REQUEST_RECEIVE, a++, NDX_OK);
			else
				result_is(&p->a, &r, NDX_REQUEST_SEND, 100 + b++, NDX_OK);
		}
		for (size_t i = 0; i < 120; i++) {
			struct ndx_result r = {.status = NDX_PENDING};

			(void)take(&p->b, p->b.cq, &r);
			check_status(c, r.status, NDX_OK, "result at B");
		}
	}
}

/* A send, a read or a write, by chance; which. */
static enum ndx_request_type post_any(struct pair *p, size_t number)
{
	size_t length = check_below(p->c, 20000);

	switch (check_below(p->c, 3)) {
	case 0:
		send_ok(&p->a, number, 0, 16, 0);
		return NDX_REQUEST_SEND;
	case 1:
		read_ok(&p->a, number, 2048, length, &p->b, 2048, 0);
		return NDX_REQUEST_READ;
	default:
		write_ok(&p->a, number, 2048, length, &p->b, 32768, 0);
		return NDX_REQUEST_WRITE;
	}
}

void case_cq_results_of_mixed_requests_keep_posting_order(struct check *c)
{
	enum ndx_request_type type[60];

	for (unsigned round = 0; round < 10 && !check_over(c); round++) {
		struct pair *p = pair_up(c, NULL);

		if (!p)
			return;
		receives_ok(&p->b, 0, 60, 0, 16);
		for (size_t i = 0; i < 60; i++)
			type[i] = post_any(p, i);
		for (size_t i = 0; i < 60; i++)
			expect(&p->a, type[i], i, NDX_OK);
		pair_close_all(c);
	}
}

void case_cq_send_comes_before_the_answer_to_it(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	for (size_t i = 0; p && i < 200 && !check_over(c); i++) {
		receive_ok(&p->a, 1, 0, MESSAGE);
		receive_ok(&p->b, 2, 0, MESSAGE);
		send_ok(&p->a, 3, 0, MESSAGE, 0);
		expect_received(&p->b, 2, MESSAGE);
		send_ok(&p->b, 4, 0, MESSAGE, 0);
		expect(&p->a, NDX_REQUEST_SEND, 3, NDX_OK);
		expect_received(&p->a, 1, MESSAGE);
		expect(&p->b, NDX_REQUEST_SEND, 4, NDX_OK);
	}
}

enum { PAIRS = 4, MESSAGES = 16 };

/* Side A of each pair shares one queue: its sends, and their results by queue pair. */
static void sends_over_shared_queue(struct check *c, struct ndx_cq *cq, struct pair **p)
{
	struct ndx_result results[64];
	size_t next[PAIRS] = {0};
	size_t count = 0;

	for (size_t k = 0; k < (size_t)PAIRS * MESSAGES; k++)
		send_ok(&p[k % PAIRS]->a, k / PAIRS, 0, MESSAGE, 0);
	while (!check_over(c) && count < (size_t)PAIRS * MESSAGES) {
		size_t got = 0;

		check_status(c, ndx_cq_wait_results(cq, results, 64, WAIT_MS, &got), NDX_OK,
		             "results of a shared queue");
		for (size_t i = 0; i < got; i++) {
			struct side *s = results[i].queue_pair_context;
			size_t which = 0;

			while (which < PAIRS && s != &p[which]->a)
				which++;
			if (check_that(c, which < PAIRS, "a result of no queue pair"))
				result_is(s, &results[i], NDX_REQUEST_SEND, next[which]++, NDX_OK);
		}
		count += got;
	}
}

void case_cq_one_queue_serves_many_queue_pairs(struct check *c)
{
	struct ndx_result results[64];
	struct side_attr attr[2];
	struct pair *p[PAIRS];
	struct ndx_cq *cq = NULL;
	bool fine;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	if (!check_status(c, ndx_cq_create_depth(c->world->places[0].adapter, 16, &cq), NDX_OK,
	                  "cq_create"))
		return;
	attr[0].cq = cq;
	fine = pairs_open(c, p, PAIRS, &attr[0], &attr[1]);
	for (size_t i = 0; fine && i < PAIRS; i++)
		fine = pair_connect(p[i]) && receives_ok(&p[i]->b, 0, MESSAGES, 0, MESSAGE) &&
		       receives_ok(&p[i]->a, 100, 4, 0, MESSAGE);
	if (fine) {
		sends_over_shared_queue(c, cq, p);
		/* flushing one leaves the others alone */
		check_status(c, ndx_qp_flush(p[0]->a.qp), NDX_OK, "flush");
		check_that(c, ndx_cq_get_results(cq, results, 64) == 4,
		           "the flush gave another number of results than 4");
		send_ok(&p[1]->b, 1, 0, MESSAGE, 0);
		expect_received(&p[1]->a, 100, MESSAGE);
	}
	pair_close_all(c);
	ndx_cq_close(cq);
}

void case_cq_closed_before_its_queue_pairs(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 4, 0, MESSAGE);
	side_close_cqs(&p->a);
	sends_ok(&p->b, 0, 4, 0, MESSAGE);
	expect_run(&p->b, NDX_REQUEST_SEND, 0, 4, NDX_OK); /* the queue pair goes on */
	side_disconnect(&p->a, NDX_OK);
}

void case_cq_waiting_ends_in_time(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_result result;
	size_t got = 7;
	uint64_t start = now_ms();

	if (!p)
		return;
	check_status(c, ndx_cq_wait_results(p->a.cq, &result, 1, 40, &got), NDX_PENDING,
	             "wait for nothing");
	check_that(c, got == 0 && now_ms() - start >= 30, "%zu results after %u ms", got,
	           (unsigned)(now_ms() - start));
	check_status(c, ndx_cq_wait_results(p->a.cq, &result, 1, 0, &got), NDX_PENDING,
	             "look for nothing");
}

void case_cq_resize(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint32_t most = c->world->places[0].info.max_completion_queue_depth;

	if (!p)
		return;
	receives_ok(&p->b, 0, 20, 0, MESSAGE);
	sends_ok(&p->a, 0, 20, 0, MESSAGE);
	for (size_t i = 0; i < 20; i++)
		expect_received(&p->b, i, MESSAGE);
	check_status(c, ndx_cq_resize(p->a.cq, 0), NDX_E_INVALID_PARAMETER, "resize to 0");
	check_status(c, ndx_cq_resize(p->a.cq, most + 1), NDX_E_INVALID_PARAMETER,
	             "resize beyond the limit");
	for (uint64_t until = now_ms() + WAIT_MS; now_ms() < until;) {
		/* all 20 results are there soon; then they are too many for 4 */
		if (ndx_cq_resize(p->a.cq, 19) == NDX_E_BUFFER_OVERFLOW)
			break;
	}
	check_status(c, ndx_cq_resize(p->a.cq, 4), NDX_E_BUFFER_OVERFLOW,
	             "resize below what waits");
	check_status(c, ndx_cq_resize(p->a.cq, most), NDX_OK, "resize to the limit");
	check_status(c, ndx_cq_resize(p->a.cq, 20), NDX_OK, "resize to what waits");
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 20, NDX_OK);
	check_status(c, ndx_cq_resize(p->a.cq, 1), NDX_OK, "resize to 1");
	message_passes(&p->a, &p->b, MESSAGE);
}

void case_cq_no_resize_or_affinity_without_the_capability(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	bool all = true;
	uint16_t group = 0;
	uint64_t mask = 0;

	if (!p)
		return;
	if (!has_capability(&p->a, NDX_CAP_CQ_RESIZE)) {
		all = false;
		check_status(c, ndx_cq_resize(p->a.cq, 10), NDX_E_NOT_SUPPORTED, "resize");
	}
	if (!has_capability(&p->a, NDX_CAP_NOTIFY_AFFINITY)) {
		all = false;
		check_status(c, ndx_cq_get_notify_affinity(p->a.cq, &group, &mask),
		             NDX_E_NOT_SUPPORTED, "get_notify_affinity");
	}
	if (all)
		check_skip(c, "the adapter has both capabilities");
}

void case_cq_affinity_names_processors(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	uint16_t group = 9;
	uint64_t mask = 0;

	if (!p)
		return;
	check_status(c, ndx_cq_get_notify_affinity(p->a.cq, &group, &mask), NDX_OK,
	             "get_notify_affinity");
	check_that(c, mask != 0 && group == 0, "group %u, mask %#llx", group,
	           (unsigned long long)mask);
}
