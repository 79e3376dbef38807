/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is told of what comes: completions do not say that they were solicited, only events do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>

#include "watched.h"

static void plain_messages_do_not_wake(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_false(watched_told(&w));
	verbs_qp_poll(rig_qp(&w.rig)); /* whoever reads it */
	assert_false(watched_told(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	rig_expect(&w.rig, 1, NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 2, NDX_OK);
	assert_false(watched_told(&w));
	watched_give_up(&w);
	watched_close(&w);
}

/* What others read and the consumer took before the event was heard of has woken nobody yet. */
static void an_event_is_not_lost_to_the_first_reader(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 0, NDX_OK);
	assert_int_equal(ndx_overlapped_status(&w.ov), NDX_PENDING);
	assert_true(watched_told(&w));
	watched_close(&w);
}

/* ... but what was taken before one asked is no news. */
static void an_old_event_does_not_wake(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 0, NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_false(watched_told(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	watched_close(&w);
}

/* Between an event and the next arming nobody knows. */
static void what_came_unseen_may_have_been_solicited(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8)); /* no event of its own */
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(watched_told(&w));
	watched_close(&w);
}

/* Somebody else has read it, and the consumer takes it when it has asked, all before the event. */
static void what_came_since_the_last_look_wakes_though_it_was_taken(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	verbs_qp_poll(rig_qp(&w.rig));
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	rig_expect(&w.rig, 0, NDX_OK);
	assert_true(watched_told(&w));
	watched_close(&w);
}

/* Who waits for the end of the queue, too, is no reason to take old ones for new. */
static void beside_errors_an_old_event_does_not_wake(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	assert_int_equal(verbs_cq_notify(w.rig.cq, NDX_CQ_NOTIFY_ERRORS, NULL), NDX_PENDING);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 0, NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_false(watched_told(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	watched_close(&w);
}

static void arrive_now(void *arg)
{
	assert_true(fake_arrive_solicited(rig_native(arg), 8));
}

static void meanwhile(struct rig *rig, unsigned nth)
{
	rig->device.meanwhile = arrive_now;
	rig->device.meanwhile_arg = rig;
	rig->device.meanwhile_nth = nth;
}

/* A message comes before the device was armed, behind that, behind the look that follows. */
static void whenever_it_comes_while_one_asks_it_wakes(void **state)
{
	static const enum ndx_cq_notify_type types[] = {NDX_CQ_NOTIFY_SOLICITED, NDX_CQ_NOTIFY_ANY};

	(void)state;
	for (unsigned i = 0; i < 2 * 2; i++) {
		unsigned n = 0;
		bool came;

		do {
			struct watched w;

			watched_open(&w);
			if (i / 2 > 0) { /* so that it has to be armed anew */
				assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
				rig_expect(&w.rig, 0, NDX_OK);
				watched_call(&w, watched_events, &w.rig.adapter);
			}
			meanwhile(&w.rig, ++n);
			watched_ask(&w, types[i % 2]);
			came = w.rig.device.meanwhile_nth == 0;
			w.rig.device.meanwhile_nth = 0;
			assert_true(watched_told(&w) == came);
			if (!came)
				watched_give_up(&w);
			watched_close(&w);
		} while (came);
		assert_true(n > 1);
	}
}

/* ... and a second one while the control thread is at the first one's event. */
static void whenever_it_comes_behind_another_it_wakes(void **state)
{
	unsigned n = 0;
	bool came;

	(void)state;
	do {
		struct watched w;

		watched_open(&w);
		watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
		assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
		meanwhile(&w.rig, ++n);
		assert_true(watched_told(&w));
		came = w.rig.device.meanwhile_nth == 0;
		w.rig.device.meanwhile_nth = 0;
		if (!came) /* but when all is done */
			arrive_now(&w.rig);
		rig_expect(&w.rig, 0, NDX_OK);
		watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
		rig_expect(&w.rig, 1, NDX_OK);
		assert_true(watched_told(&w) ||
		            came); /* it may have been part of the first wake-up */
		assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
		assert_true(watched_told(&w));
		watched_close(&w);
	} while (came);
	assert_true(n > 1);
}

/* ... and while the consumer looks at a queue that it has armed. */
static void whenever_it_comes_while_one_polls_it_wakes(void **state)
{
	unsigned n = 0;
	bool came;

	(void)state;
	do {
		struct watched w;
		uintptr_t who;
		enum ndx_status st;

		watched_open(&w);
		watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
		assert_true(fake_arrive(rig_native(&w.rig), 8));
		meanwhile(&w.rig, ++n);
		while (rig_next(&w.rig, &who, &st))
			continue;
		came = w.rig.device.meanwhile_nth == 0;
		w.rig.device.meanwhile_nth = 0;
		assert_true(watched_told(&w) == came);
		if (!came)
			watched_give_up(&w);
		watched_close(&w);
	} while (came);
	assert_true(n > 1);
}

static void any_sees_all_and_then_solicited_is_exact_again(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	watched_ask(&w, NDX_CQ_NOTIFY_ANY);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_false(watched_told(&w));
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	watched_close(&w);
}

/* A device is not asked back what it was armed for: one wake-up too many, never one too few. */
static void after_an_any_that_was_cancelled_all_messages_wake_once(void **state)
{
	struct watched w;

	(void)state;
	watched_open(&w);
	watched_ask(&w, NDX_CQ_NOTIFY_ANY);
	watched_give_up(&w);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_false(fake_cq_of(verbs_cq_of(&w.rig.cq->pub)->native)->narrowed); /* it may obey */
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	watched_ask(&w, NDX_CQ_NOTIFY_SOLICITED);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_false(watched_told(&w));
	watched_give_up(&w);
	watched_close(&w);
}

/* Whichever is asked for first: the device remembers one request, and ANY is the wider one. */
static void any_beside_solicited_is_any(void **state)
{
	(void)state;
	for (unsigned any_first = 0; any_first < 2; any_first++) {
		struct ndx_overlapped other;
		struct watched w;

		watched_open(&w);
		ndx_overlapped_init(&other);
		watched_begin(&w, &other, any_first ? NDX_CQ_NOTIFY_ANY : NDX_CQ_NOTIFY_SOLICITED);
		watched_ask(&w, any_first ? NDX_CQ_NOTIFY_SOLICITED : NDX_CQ_NOTIFY_ANY);
		assert_false(fake_cq_of(verbs_cq_of(&w.rig.cq->pub)->native)->narrowed);
		assert_true(fake_arrive(rig_native(&w.rig), 8));
		assert_true(watched_told(&w));
		assert_int_equal(ndx_overlapped_status(&other), NDX_OK);
		watched_close(&w);
	}
}

/* A descriptor for one kind, an overlapped object for the other. */
static void descriptor_and_object_are_told_each_of_its_own(void **state)
{
	struct watched w;
	struct pollfd p = {.events = POLLIN};

	(void)state;
	watched_open(&w);
	assert_int_equal(base_cq_get_fd(w.rig.cq, &p.fd), NDX_OK);
	assert_int_equal(verbs_cq_notify(w.rig.cq, NDX_CQ_NOTIFY_SOLICITED, NULL), NDX_PENDING);
	watched_ask(&w, NDX_CQ_NOTIFY_ANY);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	assert_true(watched_told(&w));
	rig_expect(&w.rig, 0, NDX_OK);
	/* the device was armed for all: it might have been one */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(verbs_cq_notify(w.rig.cq, NDX_CQ_NOTIFY_SOLICITED, NULL), NDX_PENDING);
	assert_true(fake_arrive(rig_native(&w.rig), 8));
	rig_expect(&w.rig, 1, NDX_OK);
	assert_false(watched_told(&w) && poll(&p, 1, 0) == 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_true(fake_arrive_solicited(rig_native(&w.rig), 8));
	(void)watched_told(&w);
	assert_int_equal(poll(&p, 1, 0), 1);
	watched_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_messages_do_not_wake),
		cmocka_unit_test(an_event_is_not_lost_to_the_first_reader),
		cmocka_unit_test(an_old_event_does_not_wake),
		cmocka_unit_test(what_came_unseen_may_have_been_solicited),
		cmocka_unit_test(what_came_since_the_last_look_wakes_though_it_was_taken),
		cmocka_unit_test(beside_errors_an_old_event_does_not_wake),
		cmocka_unit_test(whenever_it_comes_while_one_asks_it_wakes),
		cmocka_unit_test(whenever_it_comes_behind_another_it_wakes),
		cmocka_unit_test(whenever_it_comes_while_one_polls_it_wakes),
		cmocka_unit_test(any_sees_all_and_then_solicited_is_exact_again),
		cmocka_unit_test(after_an_any_that_was_cancelled_all_messages_wake_once),
		cmocka_unit_test(any_beside_solicited_is_any),
		cmocka_unit_test(descriptor_and_object_are_told_each_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
