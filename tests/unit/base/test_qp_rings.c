/* SPDX-License-Identifier: BSD-2-Clause */
/* The rings of a queue pair, and what they leave in a completion queue. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>

#include <ndx/spi/system.h>
#include "cq_bench.h"

static void results_come_in_posting_order_whatever_ends_first(void **state)
{
	struct bench b;
	struct ndxp_req *reqs[4];
	struct ndx_result r[8];

	(void)state;
	set_up(&b, 4);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 4; i++)
		reqs[i] = post_send(&b, i, 0);
	ndxp_req_done(&b.qp.initiator, reqs[2], NDX_OK, 0);
	ndxp_req_done(&b.qp.initiator, reqs[1], NDX_OK, 0);
	assert_int_equal(take_results(&b, r, 8), 0);
	ndxp_req_done(&b.qp.initiator, reqs[0], NDX_OK, 0);
	assert_int_equal(take_results(&b, r, 8), 3);
	for (uintptr_t i = 0; i < 3; i++) {
		assert_ptr_equal(r[i].request_context, (void *)i);
		assert_ptr_equal(r[i].queue_pair_context, &b);
		assert_int_equal(r[i].request_type, NDX_REQUEST_SEND);
	}
	ndxp_queue_cancel(&b.qp.initiator, NDX_E_CANCELED);
	assert_int_equal(take_results(&b, r, 8), 1);
	assert_int_equal(r[0].status, NDX_E_CANCELED);
	tear_down(&b);
}

static void slot_is_free_only_when_its_result_was_taken(void **state)
{
	struct bench b;
	struct ndxp_req *req = NULL;
	struct ndx_result r;
	uint32_t length;

	(void)state;
	set_up(&b, 3);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 3; i++)
		ndxp_req_done(&b.qp.initiator, post_send(&b, i, 0), NDX_OK, 0);
	assert_int_equal(ndxp_admit_initiator(&b.qp, NDX_REQUEST_SEND, NULL, NULL, 0, 0, 0, 1,
	                                      &length, &req),
	                 NDX_E_NO_MORE_ENTRIES);
	assert_null(req);
	assert_int_equal(take_results(&b, &r, 1), 1);
	assert_non_null(post_send(&b, 3, 0));
	ndxp_queue_cancel(&b.qp.initiator, NDX_E_CANCELED);
	tear_down(&b);
}

static void silent_success_has_no_result_and_gives_its_slot_back(void **state)
{
	struct bench b;
	struct ndx_result r[4];

	(void)state;
	set_up(&b, 3);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 10000; i++)
		ndxp_req_done(&b.qp.initiator, post_send(&b, i, NDX_OP_SILENT_SUCCESS), NDX_OK, 0);
	assert_int_equal(take_results(&b, r, 4), 0);
	ndxp_req_done(&b.qp.initiator, post_send(&b, 5, NDX_OP_SILENT_SUCCESS), NDX_E_IO_TIMEOUT,
	              110);
	assert_int_equal(take_results(&b, r, 4), 1);
	assert_int_equal(r[0].status, NDX_E_IO_TIMEOUT);
	assert_int_equal(r[0].native, 110);
	tear_down(&b);
}

static void counters_follow_from_the_positions_of_the_queues(void **state)
{
	struct bench b;
	struct ndx_result r[4];
	struct ndx_qp_stats s;
	struct ndx_cq_stats c = {0};

	(void)state;
	set_up(&b, 4);
	b.qp.state = NDXP_QP_UP;
	/* positions have 32 bits, counters 64 */
	b.qp.initiator.head = b.qp.initiator.tail = b.qp.initiator.freed = UINT32_MAX - 1;
	ndxp_req_done(&b.qp.initiator, post_send(&b, 0, 0), NDX_OK, 0);
	ndxp_req_done(&b.qp.initiator, post_send(&b, 1, NDX_OP_SILENT_SUCCESS), NDX_OK, 0);
	ndxp_req_done(&b.qp.initiator, post_send(&b, 2, 0), NDX_E_IO_TIMEOUT, 0);
	(void)post_send(&b, 3, 0);
	ndxp_qp_get_stats(&b.qp, &s);
	assert_true(s.initiator.posted == UINT64_C(0x100000002));
	assert_true(s.initiator.completed == UINT64_C(0x100000001));
	assert_true(s.initiator.by_status[0] == UINT64_C(0x100000000));
	assert_int_equal(s.initiator.silent, 1);
	assert_int_equal(s.initiator.by_status[-NDX_E_IO_TIMEOUT], 1);
	assert_int_equal(s.receive.posted, 0);
	ndxp_cq_get_stats(&b.cq.spi, &c);
	assert_int_equal(c.high_water, 2);
	assert_int_equal(c.waiting, 2);
	assert_int_equal(take_results(&b, r, 4), 2);
	ndxp_queue_cancel(&b.qp.initiator, NDX_E_CANCELED);
	assert_int_equal(take_results(&b, r, 4), 1);
	ndxp_cq_get_stats(&b.cq.spi, &c);
	assert_int_equal(c.high_water, 2);
	assert_int_equal(c.waiting, 0);
	assert_int_equal(c.results, 3);
	assert_int_equal(c.taken, 3);
	assert_int_equal(c.polls, 2);
	assert_int_equal(c.by_status[0], 1);
	assert_int_equal(c.by_status[-NDX_E_CANCELED], 1);
	assert_int_equal(c.by_status[-NDX_E_IO_TIMEOUT], 1);
	assert_int_equal(c.reserved, 8);
	tear_down(&b);
}

static void a_wait_for_the_peers_receive_counts_once(void **state)
{
	struct bench b;
	struct ndx_qp_stats s;
	uint64_t before;

	(void)state;
	set_up(&b, 4);
	ndxp_qp_rnr_end(&b.qp);
	ndxp_qp_rnr_begin(&b.qp);
	ndxp_qp_rnr_begin(&b.qp);
	ndxp_qp_get_stats(&b.qp, &s);
	assert_int_equal(s.rnr_waits, 1);
	ndxp_qp_rnr_end(&b.qp);
	ndxp_qp_rnr_end(&b.qp);
	ndxp_qp_get_stats(&b.qp, &s);
	before = s.rnr_wait_ns;
	ndxp_qp_get_stats(&b.qp, &s);
	assert_true(s.rnr_wait_ns == before);
	ndxp_qp_rnr_begin(&b.qp);
	ndxp_qp_get_stats(&b.qp, &s);
	assert_int_equal(s.rnr_waits, 2);
	tear_down(&b);
}

static void the_rest_of_an_rnr_wait_is_never_too_short(void **state)
{
	const uint32_t hour = 3600000;
	struct bench b;
	uint32_t left;
	uint64_t now;

	(void)state;
	set_up(&b, 4);
	now = ndxp_now_ns();
	b.qp.spi.attr.no_receive_timeout_ms = NDX_INFINITE;
	assert_int_equal(ndxp_qp_rnr_left_ms(&b.qp, 0), NDX_INFINITE);
	b.qp.spi.attr.no_receive_timeout_ms = 0;
	assert_int_equal(ndxp_qp_rnr_left_ms(&b.qp, now), 0);
	b.qp.spi.attr.no_receive_timeout_ms = hour;
	assert_int_equal(ndxp_qp_rnr_left_ms(&b.qp, now - hour * NDXP_NS_PER_MS), 0);
	/* the wait is over at `now + hour`, and a timer after `left` does not end it before that */
	left = ndxp_qp_rnr_left_ms(&b.qp, now);
	assert_true(left > 0 && left <= hour);
	assert_true(ndxp_now_ns() + left * NDXP_NS_PER_MS >= now + hour * NDXP_NS_PER_MS);
	tear_down(&b);
}

static void admission_refuses_what_a_send_may_not_have(void **state)
{
	struct bench b;
	struct ndxp_req *req = NULL;
	struct ndx_sge sge[3] = {{NULL, 500, 0}, {NULL, 500, 0}, {NULL, 1, 0}};
	uint32_t length;

	(void)state;
	set_up(&b, 2);
#define ADMIT(n, flags)                                                                          \
	ndxp_admit_initiator(&b.qp, NDX_REQUEST_SEND, NULL, sge, (n), (flags), NDX_OP_INLINE, 2, \
	                     &length, &req)
	assert_int_equal(ADMIT(1, 0), NDX_E_CONNECTION_INVALID);
	b.qp.state = NDXP_QP_UP;
	assert_int_equal(ADMIT(1, NDX_OP_ALLOW_READ), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ADMIT(3, 0), NDX_E_DATA_OVERRUN);
	sge[1].length = 501;
	assert_int_equal(ADMIT(2, 0), NDX_E_BUFFER_OVERFLOW);
	/* Lengths that wrap around 32 bits are no way round the limit. */
	sge[0].length = UINT32_MAX;
	sge[1].length = 2;
	assert_int_equal(ADMIT(2, 0), NDX_E_BUFFER_OVERFLOW);
	sge[0].length = 8;
	sge[1].length = 1;
	assert_int_equal(ADMIT(2, NDX_OP_INLINE), NDX_E_BUFFER_OVERFLOW);
	sge[0].length = 6;
	assert_int_equal(ADMIT(3, NDX_OP_INLINE), NDX_OK);
	assert_int_equal(length, 8);
#undef ADMIT
	ndxp_queue_cancel(&b.qp.initiator, NDX_E_CANCELED);
	tear_down(&b);
}

static void posts_on_an_ending_connection_are_cancelled_behind_what_is_there(void **state)
{
	struct bench b;
	struct ndxp_req *first;
	struct ndxp_req *req = NULL;
	struct ndx_result r[4];
	uint32_t length;

	(void)state;
	set_up(&b, 4);
	b.qp.state = NDXP_QP_UP;
	first = post_send(&b, 1, 0);
	b.qp.state = NDXP_QP_CLOSING;
	assert_int_equal(ndxp_admit_initiator(&b.qp, NDX_REQUEST_SEND, (void *)2, NULL, 0, 0, 0, 1,
	                                      &length, &req),
	                 NDX_PENDING);
	assert_int_equal(ndxp_admit_receive(&b.qp, (void *)3, NULL, 0, &length, &req), NDX_OK);
	assert_int_equal(take_results(&b, r, 4), 0);
	ndxp_req_done(&b.qp.initiator, first, NDX_OK, 0);
	assert_int_equal(take_results(&b, r, 4), 2);
	assert_int_equal(r[0].status, NDX_OK);
	assert_int_equal(r[1].status, NDX_E_CANCELED);
	b.qp.state = NDXP_QP_DEAD;
	ndxp_queue_cancel(&b.qp.receive, NDX_E_CANCELED);
	assert_int_equal(ndxp_admit_receive(&b.qp, (void *)4, NULL, 0, &length, &req), NDX_PENDING);
	assert_int_equal(take_results(&b, r, 4), 2);
	assert_ptr_equal(r[1].request_context, (void *)4);
	tear_down(&b);
}

static void results_outlive_their_queue_pair(void **state)
{
	struct bench b;
	struct bench c;
	struct ndx_result r[8];
	struct ndx_qp_attr attr;

	(void)state;
	set_up(&b, 4);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 4; i++)
		ndxp_req_done(&b.qp.initiator, post_send(&b, i, 0), NDX_OK, 0);
	attr = b.qp.spi.attr;
	ndxp_qp_fini(&b.qp);
	/* A new queue pair on the same queue finds room beside what is left over. */
	c = (struct bench){0};
	assert_int_equal(ndxp_qp_init(&c.qp, NULL, &attr, 1000, sizeof(struct ndxp_req),
	                              sizeof(struct ndxp_req)),
	                 NDX_OK);
	c.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 4; i < 8; i++)
		ndxp_req_done(&c.qp.initiator, post_send(&c, i, 0), NDX_OK, 0);
	assert_int_equal(take_results(&b, r, 8), 8);
	for (uintptr_t i = 0; i < 8; i++)
		assert_ptr_equal(r[i].request_context, (void *)i);
	ndxp_qp_fini(&c.qp);
	ndxp_cq_fini(&b.cq);
}

/* What the thread ends during its poll: with room for two results. */
static void end_in_poll(struct bench *b, struct ndxp_req *const *reqs, size_t count,
                        enum ndx_status last)
{
	for (size_t i = 0; i < count; i++)
		ndxp_req_done(&b->qp.initiator, reqs[i], i + 1 < count ? NDX_OK : last, 0);
}

static void expect_contexts(const struct ndx_result *r, size_t count, uintptr_t first)
{
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(r[i].request_context, (void *)(first + i));
}

static void a_poll_gets_its_own_results_without_the_stash(void **state)
{
	struct ndx_cq_stats stats = {0};
	struct bench b;
	struct ndxp_req *reqs[4];
	struct ndx_result r[4];

	(void)state;
	set_up(&b, 4);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 4; i++)
		reqs[i] = post_send(&b, i, i == 1 ? NDX_OP_SILENT_SUCCESS : 0);
	ndxp_cq_poll_into(&b.cq, r, 2);
	assert_false(ndxp_cq_has(&b.cq, 1));
	end_in_poll(&b, reqs, 3, NDX_OK);
	assert_int_equal(b.cq.pushed, 0);
	assert_true(ndxp_cq_has(&b.cq, 2));
	/* the array is full */
	ndxp_req_done(&b.qp.initiator, reqs[3], NDX_OK, 0);
	assert_int_equal(b.cq.pushed, 1);
	assert_int_equal(ndxp_cq_poll_take(&b.cq), 2);
	ndxp_cq_poll_end(&b.cq);
	assert_ptr_equal(r[0].request_context, (void *)0);
	assert_ptr_equal(r[1].request_context, (void *)2);
	assert_ptr_equal(r[1].queue_pair_context, &b);
	assert_int_equal(b.qp.initiator.freed, 3);
	ndxp_cq_get_stats(&b.cq.spi, &stats);
	assert_int_equal(stats.results, 3);
	assert_int_equal(stats.taken, 2);
	assert_int_equal(stats.high_water, 3);
	assert_int_equal(stats.polls, 1);
	assert_int_equal(take_results(&b, r, 4), 1);
	expect_contexts(r, 1, 3);
	assert_int_equal(b.qp.initiator.freed, 4);
	tear_down(&b);
}

static void a_poll_does_not_overtake_what_the_stash_has(void **state)
{
	struct bench b;
	struct ndxp_req *reqs[6];
	struct ndx_result r[8];

	(void)state;
	set_up(&b, 8);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 6; i++)
		reqs[i] = post_send(&b, i, 0);
	/* before the poll */
	ndxp_req_done(&b.qp.initiator, reqs[0], NDX_OK, 0);
	ndxp_cq_poll_into(&b.cq, r, 8);
	end_in_poll(&b, reqs + 1, 2, NDX_OK);
	assert_int_equal(b.cq.pushed, 3);
	assert_int_equal(ndxp_cq_poll_take(&b.cq), 3);
	ndxp_cq_poll_end(&b.cq);
	expect_contexts(r, 3, 0);
	/* a failure takes the stash, and what follows, too */
	ndxp_cq_poll_into(&b.cq, r, 8);
	end_in_poll(&b, reqs + 3, 2, NDX_E_IO_TIMEOUT);
	ndxp_req_done(&b.qp.initiator, reqs[5], NDX_OK, 0);
	assert_int_equal(b.cq.pushed, 5);
	assert_int_equal(ndxp_cq_poll_take(&b.cq), 3);
	ndxp_cq_poll_end(&b.cq);
	expect_contexts(r, 3, 3);
	assert_int_equal(r[1].status, NDX_E_IO_TIMEOUT);
	tear_down(&b);
}

static void *end_one(void *arg)
{
	struct bench *b = arg;

	ndxp_lock_acquire(&b->qp.lock);
	ndxp_req_done(&b->qp.initiator, ndxp_queue_at(&b->qp.initiator, b->qp.initiator.head),
	              NDX_OK, 0);
	ndxp_lock_release(&b->qp.lock);
	return NULL;
}

static void what_fires_or_comes_from_another_thread_takes_the_stash(void **state)
{
	struct bench b;
	struct ndxp_req *reqs[3];
	struct ndx_result r[4];
	pthread_t thread;
	int fd;

	(void)state;
	set_up(&b, 4);
	b.qp.state = NDXP_QP_UP;
	for (uintptr_t i = 0; i < 3; i++)
		reqs[i] = post_send(&b, i, 0);
	ndxp_cq_poll_into(&b.cq, r, 4);
	assert_int_equal(pthread_create(&thread, NULL, end_one, &b), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(b.cq.pushed, 1);
	assert_int_equal(ndxp_cq_poll_take(&b.cq), 1);
	ndxp_cq_poll_end(&b.cq);
	/* without a poll */
	ndxp_req_done(&b.qp.initiator, reqs[1], NDX_OK, 0);
	assert_int_equal(b.cq.pushed, 2);
	assert_int_equal(take_results(&b, r + 1, 3), 1);
	/* armed */
	assert_int_equal(ndxp_cq_get_fd(&b.cq.spi, &fd), NDX_OK);
	assert_int_equal(ndxp_cq_notify(&b.cq.spi, NDX_CQ_NOTIFY_ANY, NULL), NDX_PENDING);
	ndxp_cq_poll_into(&b.cq, r + 2, 2);
	ndxp_req_done(&b.qp.initiator, reqs[2], NDX_OK, 0);
	assert_int_equal(b.cq.pushed, 3);
	assert_int_equal(ndxp_cq_poll_take(&b.cq), 1);
	ndxp_cq_poll_end(&b.cq);
	expect_contexts(r, 3, 0);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_poll_gets_its_own_results_without_the_stash),
		cmocka_unit_test(a_poll_does_not_overtake_what_the_stash_has),
		cmocka_unit_test(what_fires_or_comes_from_another_thread_takes_the_stash),
		cmocka_unit_test(results_come_in_posting_order_whatever_ends_first),
		cmocka_unit_test(slot_is_free_only_when_its_result_was_taken),
		cmocka_unit_test(silent_success_has_no_result_and_gives_its_slot_back),
		cmocka_unit_test(counters_follow_from_the_positions_of_the_queues),
		cmocka_unit_test(a_wait_for_the_peers_receive_counts_once),
		cmocka_unit_test(the_rest_of_an_rnr_wait_is_never_too_short),
		cmocka_unit_test(admission_refuses_what_a_send_may_not_have),
		cmocka_unit_test(posts_on_an_ending_connection_are_cancelled_behind_what_is_there),
		cmocka_unit_test(results_outlive_their_queue_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
