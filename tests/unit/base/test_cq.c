/* SPDX-License-Identifier: BSD-2-Clause */
/* Notification by a completion queue. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>

#include <ndx/spi/system.h>
#include "base_loop.h"
#include "base_ov.h"
#include "cq_bench.h"

static struct ndx_loop *loop;

static int make_loop(void **state)
{
	(void)state;
	return base_loop_create("ndx-test", &loop) == NDX_OK ? 0 : -1;
}

static int drop_loop(void **state)
{
	(void)state;
	base_loop_destroy(loop, NULL, NULL);
	return 0;
}

static void push(struct bench *b, enum ndx_status status, uint32_t flags)
{
	const struct ndx_result r = {.status = status, .flags = flags};

	ndxp_cq_push(&b->cq, NULL, &r);
}

static enum ndx_status arm(struct bench *b, enum ndx_cq_notify_type type, struct ndx_overlapped *ov)
{
	assert_int_equal(base_ov_begin(ov, loop), NDX_OK);
	assert_int_equal(ndxp_cq_notify(&b->cq.spi, type, ov), NDX_PENDING);
	return ndx_overlapped_status(ov);
}

static void notification_fires_once_for_a_new_result(void **state)
{
	struct bench b;
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped second = {0};
	struct ndx_result r[4];

	(void)state;
	set_up(&b, 8);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &ov), NDX_PENDING);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &second), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&second), NDX_OK);
	/* A notification that has fired does not fire again, even if it was not taken; a newer one
	 * does. */
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &ov), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	assert_int_equal(take_results(&b, r, 4), 2);
	/* Added between the last take and the arming: fires at once. */
	push(&b, NDX_OK, 0);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &ov), NDX_OK);
	tear_down(&b);
}

static void solicited_waits_for_solicited_or_failed_results(void **state)
{
	struct bench b;
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped any = {0};

	(void)state;
	set_up(&b, 8);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_SOLICITED, &ov), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	push(&b, NDX_OK, NDX_RESULT_SOLICITED);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_SOLICITED, &ov), NDX_PENDING);
	push(&b, NDX_E_CANCELED, 0);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	/* ANY overrides what is armed already. */
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_SOLICITED, &ov), NDX_PENDING);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &any), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&any), NDX_OK);
	tear_down(&b);
}

static void errors_waits_for_the_queue_to_fail(void **state)
{
	struct bench b;
	struct ndx_overlapped ov = {0};

	(void)state;
	set_up(&b, 8);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ERRORS, &ov), NDX_PENDING);
	push(&b, NDX_E_CANCELED, 0);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	ndxp_cq_fail(&b.cq, NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ERRORS, &ov), NDX_E_BUFFER_OVERFLOW);
	tear_down(&b);
}

static void cancel_completes_in_order_and_disarms(void **state)
{
	struct bench b;
	struct ndx_overlapped ovs[3] = {{0}};
	struct ndx_overlapped *got[3];
	struct ndx_port *port;

	(void)state;
	set_up(&b, 8);
	assert_int_equal(ndx_port_create(&port), NDX_OK);
	for (int i = 0; i < 3; i++) {
		ovs[i].port = port;
		assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &ovs[i]), NDX_PENDING);
	}
	ndxp_cq_cancel(&b.cq.spi, NDX_E_CANCELED);
	assert_int_equal(ndx_port_get(port, got, 3, 0), 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(got[i], &ovs[i]);
		assert_int_equal(ovs[i].status, NDX_E_CANCELED);
	}
	push(&b, NDX_OK, 0);
	ndx_port_close(port);
	tear_down(&b);
}

static void descriptor_rises_when_it_fires_and_falls_when_armed_again(void **state)
{
	struct bench b;
	struct pollfd p = {.events = POLLIN};
	struct ndx_result r;

	(void)state;
	set_up(&b, 8);
	assert_int_equal(ndxp_cq_get_fd(&b.cq.spi, &p.fd), NDX_OK);
	push(&b, NDX_OK, 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(ndxp_cq_notify(&b.cq.spi, NDX_CQ_NOTIFY_ANY, NULL), NDX_PENDING);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(take_results(&b, &r, 1), 1);
	assert_int_equal(ndxp_cq_notify(&b.cq.spi, NDX_CQ_NOTIFY_ANY, NULL), NDX_PENDING);
	assert_int_equal(poll(&p, 1, 0), 0);
	push(&b, NDX_OK, 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	tear_down(&b);
}

/* Arm the descriptor: whether it is readable then. */
static bool readable_when_armed(struct bench *b, enum ndx_cq_notify_type type)
{
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(ndxp_cq_get_fd(&b->cq.spi, &p.fd), NDX_OK);
	assert_int_equal(ndxp_cq_notify(&b->cq.spi, type, NULL), NDX_PENDING);
	return poll(&p, 1, 0) == 1;
}

static void what_fired_the_descriptor_unseen_fires_it_again(void **state)
{
	struct bench b;
	struct ndx_result r;

	(void)state;
	set_up(&b, 8);
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	assert_int_equal(take_results(&b, &r, 1), 0); /* polled while armed */
	push(&b, NDX_OK, 0);                          /* fires */
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ERRORS));
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_SOLICITED));
	assert_true(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	assert_true(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	push(&b, NDX_OK, NDX_RESULT_SOLICITED);
	assert_true(readable_when_armed(&b, NDX_CQ_NOTIFY_SOLICITED));
	/* the consumer has seen it, even if it left some */
	assert_int_equal(take_results(&b, &r, 1), 1);
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	assert_int_equal(take_results(&b, &r, 1), 1);
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	tear_down(&b);
}

/* What fired a notification, and not the descriptor, is old news for the descriptor, too; and what
 * fires the descriptor once counts once. */
static void only_the_descriptors_own_news_fires_it_again(void **state)
{
	struct bench b;
	struct ndx_overlapped any = {0};
	struct ndx_overlapped errors = {0};
	struct ndx_cq_stats stats = {0};

	(void)state;
	set_up(&b, 8);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &any), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(ndx_overlapped_status(&any), NDX_OK);
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY)); /* no poll yet */
	push(&b, NDX_OK, 0);                                      /* fires the descriptor */
	push(&b, NDX_OK, 0);                                      /* fires nothing */
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ERRORS, &errors), NDX_PENDING);
	assert_true(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	ndxp_cq_get_stats(&b.cq.spi, &stats);
	assert_int_equal(stats.notifications, 3);
	ndxp_cq_cancel(&b.cq.spi, NDX_E_CANCELED);
	tear_down(&b);
}

static bool is_readable(struct bench *b)
{
	struct pollfd p = {.events = POLLIN};

	assert_int_equal(ndxp_cq_get_fd(&b->cq.spi, &p.fd), NDX_OK);
	return poll(&p, 1, 0) == 1;
}

/* A poll by this thread that finds `found` results and takes up to `taken`. */
static void poll_and_take(struct bench *b, unsigned found, size_t taken)
{
	struct ndx_result r[4];

	ndxp_cq_poll_begin(&b->cq);
	for (unsigned i = 0; i < found; i++)
		push(b, NDX_OK, 0);
	(void)take_results(b, r, taken);
	ndxp_cq_poll_end(&b->cq);
}

static void what_a_poll_takes_does_not_fire_the_descriptor(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 8);
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	assert_true(ndxp_cq_is_armed(&b.cq));
	poll_and_take(&b, 2, 2);
	assert_false(is_readable(&b));
	assert_false(ndxp_cq_is_armed(&b.cq)); /* the consumer does not sleep */
	/* still armed, for a thread that sleeps on it */
	push(&b, NDX_OK, 0);
	assert_true(is_readable(&b));
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ERRORS));
	poll_and_take(&b, 0, 1);
	/* what is left behind fires */
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	poll_and_take(&b, 2, 1);
	assert_true(is_readable(&b));
	poll_and_take(&b, 0, 1);
	/* armed anew, the descriptor waits for the new type only */
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	poll_and_take(&b, 1, 1);
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_SOLICITED));
	push(&b, NDX_OK, 0);
	assert_false(is_readable(&b));
	push(&b, NDX_OK, NDX_RESULT_SOLICITED);
	assert_true(is_readable(&b));
	tear_down(&b);
}

static void *push_one(void *arg)
{
	push(arg, NDX_OK, 0);
	return NULL;
}

/* The other thread does not know what the poll takes. */
static void another_thread_fires_the_descriptor_during_a_poll(void **state)
{
	struct bench b;
	struct ndx_result r;
	pthread_t thread;

	(void)state;
	set_up(&b, 8);
	b.cq.fd_tracked = true;
	ndxp_cq_wake(&b.cq, true); /* the consumer has not asked for it */
	assert_false(is_readable(&b));
	ndxp_cq_wake(&b.cq, true);
	assert_true(is_readable(&b));
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	ndxp_cq_poll_begin(&b.cq);
	assert_int_equal(pthread_create(&thread, NULL, push_one, &b), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(take_results(&b, &r, 1), 1);
	ndxp_cq_poll_end(&b.cq);
	assert_true(is_readable(&b));
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	ndxp_cq_wake(&b.cq, true);
	assert_true(is_readable(&b));
	assert_false(readable_when_armed(&b, NDX_CQ_NOTIFY_ANY));
	tear_down(&b);
}

static void descriptor_and_notifications_are_armed_apart(void **state)
{
	struct bench b;
	struct ndx_overlapped errors = {0};
	struct ndx_overlapped solicited = {0};
	struct pollfd p = {.events = POLLIN};

	(void)state;
	set_up(&b, 8);
	assert_int_equal(ndxp_cq_get_fd(&b.cq.spi, &p.fd), NDX_OK);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ERRORS, &errors), NDX_PENDING);
	assert_int_equal(ndxp_cq_notify(&b.cq.spi, NDX_CQ_NOTIFY_ANY, NULL), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ndx_overlapped_status(&errors), NDX_PENDING);
	ndxp_cq_cancel(&b.cq.spi, NDX_E_CANCELED);
	assert_int_equal(ndxp_cq_notify(&b.cq.spi, NDX_CQ_NOTIFY_SOLICITED, NULL), NDX_PENDING);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &solicited), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(ndx_overlapped_status(&solicited), NDX_OK);
	assert_int_equal(poll(&p, 1, 0), 0);
	push(&b, NDX_OK, NDX_RESULT_SOLICITED);
	assert_int_equal(poll(&p, 1, 0), 1);
	tear_down(&b);
}

/* Of a provider whose results do not say it: its device does, sooner or later. */
static void a_provider_that_does_not_know_solicits_by_call(void **state)
{
	struct bench b;
	struct ndx_overlapped ov = {0};
	struct ndx_result r[4];

	(void)state;
	set_up(&b, 8);
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_SOLICITED, &ov), NDX_PENDING);
	ndxp_cq_solicit(&b.cq); /* nothing came */
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	push(&b, NDX_OK, 0);
	assert_int_equal(take_results(&b, r, 4), 1);
	ndxp_cq_solicit(&b.cq);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	/* while that is unknown, each receive may have been, but no send */
	assert_false(ndxp_cq_assume_solicited(&b.cq, true));
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_SOLICITED, &ov), NDX_PENDING);
	assert_false(ndxp_cq_any_is_armed(&b.cq));
	ndxp_cq_push(&b.cq, NULL, &(struct ndx_result){.request_type = NDX_REQUEST_SEND});
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	ndxp_cq_push(&b.cq, NULL, &(struct ndx_result){.request_type = NDX_REQUEST_RECEIVE});
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	assert_true(ndxp_cq_assume_solicited(&b.cq, false));
	assert_int_equal(arm(&b, NDX_CQ_NOTIFY_ANY, &ov), NDX_PENDING);
	assert_true(ndxp_cq_any_is_armed(&b.cq));
	ndxp_cq_cancel(&b.cq.spi, NDX_E_CANCELED);
	assert_false(ndxp_cq_any_is_armed(&b.cq));
	assert_int_equal(take_results(&b, r, 4), 2);
	tear_down(&b);
}

#define MANY 20000

static void *produce(void *arg)
{
	struct bench *b = arg;

	for (uintptr_t i = 0; i < MANY;) {
		struct ndxp_req *req = NULL;
		uint32_t length;

		ndxp_lock_acquire(&b->qp.lock);
		if (ndxp_admit_initiator(&b->qp, NDX_REQUEST_SEND, (void *)i, NULL, 0, 0, 0, 1,
		                         &length, &req) == NDX_OK) {
			ndxp_req_done(&b->qp.initiator, req, NDX_OK, 0);
			i++;
		}
		ndxp_lock_release(&b->qp.lock);
	}
	return NULL;
}

static void armed_consumer_never_sleeps_on_a_result(void **state)
{
	struct bench b;
	struct ndx_result r[16];
	uintptr_t next = 0;
	pthread_t t;

	(void)state;
	set_up(&b, 16);
	b.qp.state = NDXP_QP_UP;
	assert_int_equal(pthread_create(&t, NULL, produce, &b), 0);
	while (next < MANY) {
		size_t n = take_results(&b, r, 16);

		for (size_t i = 0; i < n; i++)
			assert_ptr_equal(r[i].request_context, (void *)next++);
		if (n == 0) {
			struct ndx_overlapped ov = {0};

			(void)arm(&b, NDX_CQ_NOTIFY_ANY, &ov);
			assert_int_equal(ndx_overlapped_wait(&ov, 20000), NDX_OK);
		}
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notification_fires_once_for_a_new_result),
		cmocka_unit_test(solicited_waits_for_solicited_or_failed_results),
		cmocka_unit_test(a_provider_that_does_not_know_solicits_by_call),
		cmocka_unit_test(errors_waits_for_the_queue_to_fail),
		cmocka_unit_test(cancel_completes_in_order_and_disarms),
		cmocka_unit_test(descriptor_rises_when_it_fires_and_falls_when_armed_again),
		cmocka_unit_test(what_fired_the_descriptor_unseen_fires_it_again),
		cmocka_unit_test(only_the_descriptors_own_news_fires_it_again),
		cmocka_unit_test(what_a_poll_takes_does_not_fire_the_descriptor),
		cmocka_unit_test(another_thread_fires_the_descriptor_during_a_poll),
		cmocka_unit_test(descriptor_and_notifications_are_armed_apart),
		cmocka_unit_test(armed_consumer_never_sleeps_on_a_result),
	};

	return cmocka_run_group_tests(tests, make_loop, drop_loop);
}
