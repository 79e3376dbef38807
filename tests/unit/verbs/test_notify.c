/* SPDX-License-Identifier: BSD-2-Clause */
/* Which completions notify a consumer. A completion does not show that its message was solicited;
 * only the event does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

#include "waiter.h"

static void plain_messages_do_not_wake(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_false(waiter_is_notified(&w));
	verbs_qp_poll(rig_qp(&w.rig)); /* the control thread reads the completion */
	assert_false(waiter_is_notified(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	rig_expect(&w.rig, 1, NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 2, NDX_OK);
	assert_false(waiter_is_notified(&w));
	waiter_cancel(&w);
	waiter_close(&w);
}

/* The control thread may read a completion, and the consumer may take its result, before the event
 * is read. The event still notifies the consumer. */
static void an_event_is_not_lost_to_the_first_reader(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 0, NDX_OK);
	assert_int_equal(ndx_overlapped_status(&w.ov), NDX_PENDING);
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

/* A message whose result was taken before the call of notify does not end the wait. */
static void an_old_event_does_not_wake(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 0, NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_false(waiter_is_notified(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

/* Between an event and the next arming, the provider cannot know whether a message was
 * solicited. */
static void a_message_without_an_event_may_be_solicited(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	/* raises no event, because the queue is not armed */
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

/* The control thread has read the completion, and the consumer takes the result after its call of
 * notify and before the event. */
static void a_result_that_is_taken_before_its_event_wakes(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	verbs_qp_poll(rig_qp(&w.rig));
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	rig_expect(&w.rig, 0, NDX_OK);
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

/* A wait for errors on the same queue does not turn old events into new ones. */
static void beside_errors_an_old_event_does_not_wake(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	assert_int_equal(verbs_cq_notify(w.rig.cq, NDX_CQ_NOTIFY_ERRORS, NULL), NDX_PENDING);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 0, NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_false(waiter_is_notified(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

static void deliver_solicited(void *arg)
{
	assert_true(fake_arrive_solicited(rig_native(arg), 8));
}

static void hook(struct rig *rig, unsigned nth)
{
	rig->device.hook = deliver_solicited;
	rig->device.hook_arg = rig;
	rig->device.hook_nth = nth;
}

/* A message arrives before the provider arms the device, after that, or after the poll that
 * follows. */
static void a_message_during_notify_wakes(void **state)
{
	static const enum ndx_cq_notify_type types[] = {NDX_CQ_NOTIFY_SOLICITED, NDX_CQ_NOTIFY_ANY};

	(void)state;
	for (unsigned i = 0; i < 2 * 2; i++) {
		unsigned nth_call = 0;
		bool delivered;

		do {
			struct waiter w;

			waiter_open(&w);
			if (i / 2 > 0) { /* use up the arming, so that the provider arms again */
				assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
				rig_expect(&w.rig, 0, NDX_OK);
				waiter_call(&w, waiter_read_events, &w.rig.adapter);
			}
			hook(&w.rig, ++nth_call);
			waiter_notify(&w, types[i % 2]);
			delivered = w.rig.device.hook_nth == 0;
			w.rig.device.hook_nth = 0;
			assert_true(waiter_is_notified(&w) == delivered);
			if (!delivered)
				waiter_cancel(&w);
			waiter_close(&w);
		} while (delivered);
		assert_true(nth_call > 1);
	}
}

/* The same for a second message, while the control thread handles the first one's event. */
static void a_message_during_the_event_of_another_wakes(void **state)
{
	unsigned nth_call = 0;
	bool delivered;

	(void)state;
	do {
		struct waiter w;

		waiter_open(&w);
		waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
		assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
		hook(&w.rig, ++nth_call);
		assert_true(waiter_is_notified(&w));
		delivered = w.rig.device.hook_nth == 0;
		w.rig.device.hook_nth = 0;
		if (!delivered) /* the message arrives after all calls */
			deliver_solicited(&w.rig);
		rig_expect(&w.rig, 0, NDX_OK);
		waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
		rig_expect(&w.rig, 1, NDX_OK);
		assert_true(waiter_is_notified(&w) ||
		            delivered); /* the first notification may have covered it */
		assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
		assert_true(waiter_is_notified(&w));
		waiter_close(&w);
	} while (delivered);
	assert_true(nth_call > 1);
}

/* The same while the consumer polls a queue that the provider has armed. */
static void a_solicited_message_during_a_poll_wakes(void **state)
{
	unsigned nth_call = 0;
	bool delivered;

	(void)state;
	do {
		struct waiter w;
		uintptr_t context;
		enum ndx_status status;

		waiter_open(&w);
		waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
		assert_true(fake_arrive(rig_native(&w.rig), 8));
		hook(&w.rig, ++nth_call);
		while (rig_next(&w.rig, &context, &status))
			continue;
		delivered = w.rig.device.hook_nth == 0;
		w.rig.device.hook_nth = 0;
		assert_true(waiter_is_notified(&w) == delivered);
		if (!delivered)
			waiter_cancel(&w);
		waiter_close(&w);
	} while (delivered);
	assert_true(nth_call > 1);
}

static void solicited_is_exact_again_after_any(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	waiter_notify(&w, NDX_CQ_NOTIFY_ANY);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_false(waiter_is_notified(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	waiter_close(&w);
}

/* A device cannot be disarmed: an unneeded notification is allowed, a missing one is not. */
static void after_a_cancelled_any_all_messages_wake_once(void **state)
{
	struct waiter w;

	(void)state;
	waiter_open(&w);
	waiter_notify(&w, NDX_CQ_NOTIFY_ANY);
	waiter_cancel(&w);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	/* a device may obey a narrower arming */
	assert_false(fake_cq_of(verbs_cq_of(&w.rig.cq->pub)->native)->narrowed);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	waiter_notify(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_false(waiter_is_notified(&w));
	waiter_cancel(&w);
	waiter_close(&w);
}

/* In both orders: the device keeps one arming, and ANY includes SOLICITED. */
static void any_beside_solicited_is_any(void **state)
{
	(void)state;
	for (unsigned any_first = 0; any_first < 2; any_first++) {
		struct ndx_overlapped other;
		struct waiter w;

		waiter_open(&w);
		ndx_overlapped_init(&other);
		waiter_notify_with(&w, &other,
		                   any_first ? NDX_CQ_NOTIFY_ANY : NDX_CQ_NOTIFY_SOLICITED);
		waiter_notify(&w, any_first ? NDX_CQ_NOTIFY_SOLICITED : NDX_CQ_NOTIFY_ANY);
		assert_false(fake_cq_of(verbs_cq_of(&w.rig.cq->pub)->native)->narrowed);
		assert_true(fake_arrive(rig_native(&w.rig), 8));
		assert_true(waiter_is_notified(&w));
		assert_int_equal(ndx_overlapped_status(&other), NDX_OK);
		waiter_close(&w);
	}
}

/* One consumer waits by descriptor for one type, another one by overlapped object for the other
 * type. */
static void descriptor_and_overlapped_wait_for_their_own_types(void **state)
{
	struct waiter w;
	struct pollfd p = {.events = POLLIN};

	(void)state;
	waiter_open(&w);
	assert_int_equal(ndxp_cq_get_fd(w.rig.cq, &p.fd), NDX_OK);
	assert_int_equal(verbs_cq_notify(w.rig.cq, NDX_CQ_NOTIFY_SOLICITED, NULL), NDX_PENDING);
	waiter_notify(&w, NDX_CQ_NOTIFY_ANY);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(waiter_is_notified(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	/* the device was armed for all messages, so this one may have been solicited */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(verbs_cq_notify(w.rig.cq, NDX_CQ_NOTIFY_SOLICITED, NULL), NDX_PENDING);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 1, NDX_OK);
	assert_false(waiter_is_notified(&w) && poll(&p, 1, 0) == 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	(void)waiter_is_notified(&w);
	assert_int_equal(poll(&p, 1, 0), 1);
	waiter_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_messages_do_not_wake),
		cmocka_unit_test(an_event_is_not_lost_to_the_first_reader),
		cmocka_unit_test(an_old_event_does_not_wake),
		cmocka_unit_test(a_message_without_an_event_may_be_solicited),
		cmocka_unit_test(a_result_that_is_taken_before_its_event_wakes),
		cmocka_unit_test(beside_errors_an_old_event_does_not_wake),
		cmocka_unit_test(a_message_during_notify_wakes),
		cmocka_unit_test(a_message_during_the_event_of_another_wakes),
		cmocka_unit_test(a_solicited_message_during_a_poll_wakes),
		cmocka_unit_test(solicited_is_exact_again_after_any),
		cmocka_unit_test(after_a_cancelled_any_all_messages_wake_once),
		cmocka_unit_test(any_beside_solicited_is_any),
		cmocka_unit_test(descriptor_and_overlapped_wait_for_their_own_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
