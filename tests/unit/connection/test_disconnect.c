/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the disconnect contract one by one; every order of events is in
 * test_disconnect_orders.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "disconnect.h"

#define EV(name) DISCONNECT_EV_##name
#define DO(name) DISCONNECT_DO(name)
#define STATE(name) DISCONNECT_STATE_##name
#define STEP(d, name) disconnect_step(d, EV(name))
#define assert_state(d, name) assert_int_equal(disconnect_get_state(d), STATE(name))

/* Both sides have said goodbye; all that is missing is that the provider goes quiet. */
static void bring_to_finish(struct disconnect *d)
{
	disconnect_init(d);
	(void)STEP(d, DISCONNECT);
	(void)STEP(d, DRAINED);
	(void)STEP(d, ACKED);
	(void)STEP(d, PEER);
	assert_state(d, FINISH);
}

static void a_fresh_connection_is_up_and_owes_nothing(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_state(&d, UP);
	assert_true(disconnect_admits_work(&d));
	assert_false(disconnect_is_drained(&d));
	assert_false(disconnect_is_over(&d));
	assert_false(disconnect_notify_is_pending(&d));
	assert_false(disconnect_call_is_pending(&d));
}

static void disc_is_sent_only_when_own_work_has_drained(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_int_equal(STEP(&d, DISCONNECT), DO(START_DRAIN));
	assert_false(disconnect_admits_work(&d));
	assert_int_equal(STEP(&d, DRAIN_TIMEOUT), DO(CANCEL_INITIATOR));
	assert_int_equal(STEP(&d, DRAINED), DO(SEND_DISC));
	assert_true(disconnect_is_drained(&d));
}

static void disconnect_succeeds_once_both_discs_are_through_and_all_is_quiet(void **state)
{
	struct disconnect d;

	(void)state;
	bring_to_finish(&d);
	assert_true(disconnect_call_is_pending(&d));
	assert_int_equal(STEP(&d, QUIET), DO(DISC_OK));
	assert_state(&d, CLOSED_OK);
	assert_true(disconnect_is_over(&d));
	assert_false(disconnect_call_is_pending(&d));
}

static void peers_disc_is_answered_without_the_consumer(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_int_equal(STEP(&d, PEER), DO(START_DRAIN));
	assert_int_equal(STEP(&d, DRAINED), DO(SEND_DISC));
	assert_int_equal(STEP(&d, ACKED), DO(FINISH));
	assert_int_equal(STEP(&d, QUIET), 0);
	assert_state(&d, CLOSED_OK);
}

static void disconnect_after_the_peers_end_succeeds_again_and_again(void **state)
{
	struct disconnect d;

	(void)state;
	bring_to_finish(&d);
	(void)STEP(&d, QUIET);
	assert_int_equal(STEP(&d, DISCONNECT), DO(DISC_OK));
	assert_int_equal(STEP(&d, DISCONNECT), DO(DISC_OK));
}

static void disconnect_after_an_abort_fails_behind_the_cancelled_work(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_int_equal(STEP(&d, ABORT), DO(ABORT_LINK));
	assert_int_equal(STEP(&d, DISCONNECT), 0);
	assert_int_equal(STEP(&d, QUIET), DO(DISC_ABORTED));
	assert_state(&d, CLOSED_BAD);
	assert_int_equal(STEP(&d, DISCONNECT), DO(DISC_ABORTED));
}

static void crossed_discs_need_no_answer(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, DISCONNECT);
	(void)STEP(&d, DRAINED);
	assert_int_equal(STEP(&d, PEER), 0);
	assert_state(&d, WAIT_P);
	assert_int_equal(STEP(&d, ACKED), DO(FINISH));
}

static void lost_ack_is_no_failure_when_the_peer_closed_first(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, PEER);
	(void)STEP(&d, DRAINED);
	assert_int_equal(STEP(&d, ABORT), DO(FINISH));
	(void)STEP(&d, QUIET);
	assert_state(&d, CLOSED_OK);
}

static void abort_while_own_work_drains_fails_although_the_peer_said_goodbye(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, NOTIFY);
	assert_int_equal(STEP(&d, PEER), DO(NOTIFY_GRACEFUL) | DO(START_DRAIN));
	(void)STEP(&d, DISCONNECT);
	assert_int_equal(STEP(&d, ABORT), DO(ABORT_LINK));
	assert_int_equal(STEP(&d, QUIET), DO(DISC_ABORTED));
}

static void peer_that_does_not_answer_ends_in_an_abort(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, DISCONNECT);
	(void)STEP(&d, NOTIFY);
	(void)STEP(&d, DRAINED);
	assert_int_equal(STEP(&d, TIMEOUT), DO(NOTIFY_ABORTED) | DO(ABORT_LINK));
	assert_int_equal(STEP(&d, QUIET), DO(DISC_ABORTED));
}

static void late_timers_change_nothing(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, DISCONNECT);
	(void)STEP(&d, DRAINED);
	assert_int_equal(STEP(&d, DRAIN_TIMEOUT), 0);
	assert_state(&d, WAIT);
	bring_to_finish(&d);
	assert_int_equal(STEP(&d, TIMEOUT), 0);
	assert_int_equal(STEP(&d, DRAIN_TIMEOUT), 0);
	assert_state(&d, FINISH);
}

static void flush_ends_the_connection_abortively(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_int_equal(STEP(&d, FLUSH), DO(ABORT_LINK));
	assert_int_equal(STEP(&d, QUIET), 0);
	assert_int_equal(STEP(&d, NOTIFY), DO(NOTIFY_ABORTED));
	assert_int_equal(STEP(&d, DISCONNECT), DO(DISC_ABORTED));
}

static void flush_cannot_spoil_an_end_that_is_agreed(void **state)
{
	struct disconnect d;

	(void)state;
	bring_to_finish(&d);
	assert_int_equal(STEP(&d, FLUSH), 0);
	assert_int_equal(STEP(&d, QUIET), DO(DISC_OK));
}

static void an_indication_waits_for_notify_disconnect(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, PEER);
	assert_int_equal(STEP(&d, NOTIFY), DO(NOTIFY_GRACEFUL));
	assert_false(disconnect_notify_is_pending(&d));
}

static void notify_disconnect_after_the_indication_is_canceled_not_left_hanging(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, NOTIFY);
	assert_true(disconnect_notify_is_pending(&d));
	(void)STEP(&d, PEER);
	assert_int_equal(STEP(&d, NOTIFY), DO(NOTIFY_CANCELED));
	assert_false(disconnect_notify_is_pending(&d));
}

static void peers_disc_is_indicated_also_after_the_own_disconnect(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, DISCONNECT);
	(void)STEP(&d, NOTIFY);
	(void)STEP(&d, DRAINED);
	(void)STEP(&d, ACKED);
	assert_int_equal(STEP(&d, PEER), DO(NOTIFY_GRACEFUL) | DO(FINISH));
}

static void cancel_completes_both_calls_and_the_teardown_goes_on(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, NOTIFY);
	(void)STEP(&d, DISCONNECT);
	assert_int_equal(STEP(&d, CANCEL), DO(NOTIFY_CANCELED) | DO(DISC_CANCELED));
	assert_int_equal(STEP(&d, DRAINED), DO(SEND_DISC));
	(void)STEP(&d, ACKED);
	assert_int_equal(STEP(&d, PEER), DO(FINISH));
	assert_int_equal(STEP(&d, QUIET), 0);
	assert_int_equal(STEP(&d, NOTIFY), DO(NOTIFY_GRACEFUL));
}

static void disconnect_called_again_after_a_cancel_gets_the_outcome(void **state)
{
	struct disconnect d;

	(void)state;
	bring_to_finish(&d);
	(void)STEP(&d, CANCEL);
	assert_int_equal(STEP(&d, DISCONNECT), 0);
	assert_int_equal(STEP(&d, QUIET), DO(DISC_OK));
}

static void close_completes_what_is_pending_and_nothing_after_it(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	(void)STEP(&d, NOTIFY);
	(void)STEP(&d, DISCONNECT);
	assert_int_equal(STEP(&d, CLOSE), DO(NOTIFY_CANCELED) | DO(DISC_CANCELED));
	(void)STEP(&d, DRAINED);
	(void)STEP(&d, ACKED);
	assert_int_equal(STEP(&d, PEER), DO(FINISH));
	assert_int_equal(STEP(&d, QUIET), 0);
	assert_state(&d, CLOSED_OK);
}

static void letting_go_disconnects_without_a_call(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_int_equal(STEP(&d, CLOSE), 0);
	assert_state(&d, UP);
	assert_int_equal(STEP(&d, RELEASE), DO(START_DRAIN));
	assert_int_equal(STEP(&d, RELEASE), 0);
	assert_state(&d, DRAIN);
}

static void completions_come_first_notify_before_disconnect(void **state)
{
	(void)state;
	assert_true(DISCONNECT_DO_NOTIFY_GRACEFUL < DISCONNECT_DO_DISC_OK);
	assert_true(DISCONNECT_DO_NOTIFY_ABORTED < DISCONNECT_DO_DISC_OK);
	assert_true(DISCONNECT_DO_NOTIFY_CANCELED < DISCONNECT_DO_DISC_OK);
	assert_true(DISCONNECT_DO_DISC_OK < DISCONNECT_DO_START_DRAIN);
	assert_true(DISCONNECT_DO_DISC_ABORTED < DISCONNECT_DO_START_DRAIN);
	assert_true(DISCONNECT_DO_DISC_CANCELED < DISCONNECT_DO_START_DRAIN);
}

static void a_broken_promise_is_noticed_and_harmless(void **state)
{
	struct disconnect d;

	(void)state;
	disconnect_init(&d);
	assert_false(disconnect_expects(&d, EV(QUIET)));
	assert_int_equal(STEP(&d, QUIET), 0);
	assert_state(&d, UP);
	assert_true(disconnect_expects(&d, EV(PEER)));
	(void)STEP(&d, NOTIFY);
	assert_false(disconnect_expects(&d, EV(NOTIFY)));
}

static void everything_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(disconnect_state_name(STATE(WAIT_P)), "WAIT_P");
	assert_string_equal(disconnect_event_name(EV(NOTIFY)), "NOTIFY");
	assert_string_equal(disconnect_event_name(EV(DONE_ABORTED)), "DONE_ABORTED");
	assert_string_equal(disconnect_action_name(DISCONNECT_DO_ABORT_LINK), "ABORT_LINK");
	assert_string_equal(disconnect_state_name(DISCONNECT_STATES), "?");
	assert_string_equal(disconnect_event_name(DISCONNECT_ALL_EVENTS), "?");
	assert_string_equal(disconnect_action_name(DISCONNECT_ACTIONS), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_connection_is_up_and_owes_nothing),
		cmocka_unit_test(disc_is_sent_only_when_own_work_has_drained),
		cmocka_unit_test(disconnect_succeeds_once_both_discs_are_through_and_all_is_quiet),
		cmocka_unit_test(peers_disc_is_answered_without_the_consumer),
		cmocka_unit_test(disconnect_after_the_peers_end_succeeds_again_and_again),
		cmocka_unit_test(disconnect_after_an_abort_fails_behind_the_cancelled_work),
		cmocka_unit_test(crossed_discs_need_no_answer),
		cmocka_unit_test(lost_ack_is_no_failure_when_the_peer_closed_first),
		cmocka_unit_test(abort_while_own_work_drains_fails_although_the_peer_said_goodbye),
		cmocka_unit_test(peer_that_does_not_answer_ends_in_an_abort),
		cmocka_unit_test(late_timers_change_nothing),
		cmocka_unit_test(flush_ends_the_connection_abortively),
		cmocka_unit_test(flush_cannot_spoil_an_end_that_is_agreed),
		cmocka_unit_test(an_indication_waits_for_notify_disconnect),
		cmocka_unit_test(
			notify_disconnect_after_the_indication_is_canceled_not_left_hanging),
		cmocka_unit_test(peers_disc_is_indicated_also_after_the_own_disconnect),
		cmocka_unit_test(cancel_completes_both_calls_and_the_teardown_goes_on),
		cmocka_unit_test(disconnect_called_again_after_a_cancel_gets_the_outcome),
		cmocka_unit_test(close_completes_what_is_pending_and_nothing_after_it),
		cmocka_unit_test(letting_go_disconnects_without_a_call),
		cmocka_unit_test(completions_come_first_notify_before_disconnect),
		cmocka_unit_test(a_broken_promise_is_noticed_and_harmless),
		cmocka_unit_test(everything_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
