/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that are added to a session while it lives, and removed from it. */
#include "many_rig.h"

#include <poll.h>
#include <sys/socket.h>

#include <ndx/spi/provider.h>

#include "many_add.h"

static const char *const uris[] = {"direct", "loop", "ofi:tcp"};
enum { URIS = sizeof(uris) / sizeof(uris[0]), FEW = 5 };

/* A batch has failed, and nothing else has changed. */
static void lives_on(struct rig *r)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_session_get_state(r->session), NDX_SESSION_CONNECTED);
	assert_int_equal(ndx_session_get_error(r->session, &e), NDX_OK);
	assert_int_equal(e.status, NDX_OK);
	assert_int_equal(ndx_session_get_queue_pair_count(r->session), r->count);
	all_last(r->a, r->count);
	all_last(r->b, r->count);
}

static void fails(struct rig *r, enum ndx_status st, enum ndx_error_layer layer, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(more_add(r, NULL), st);
	assert_int_equal(ndx_session_get_add_error(r->session, &e), NDX_OK);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\"", e.text);
	assert_int_equal(e.status, st);
	assert_int_equal(e.layer, layer);
	lives_on(r);
}

/* ---- add ---- */

static void one_and_then_a_batch_are_added(void **state)
{
	struct ndx_peer_description own;
	struct rig r;

	(void)state;
	for (int k = 0; k < URIS; k++) {
		uint32_t first = 0;

		rig_uri = uris[k];
		rig_run(&r, 3);
		more_up(&r, 1);
		assert_int_equal(more_add(&r, &first), NDX_OK);
		assert_int_equal(first, 3);
		is_told(&r.added, 1);
		assert_int_equal(ndx_session_get_queue_pair_count(r.session), 4);
		assert_int_equal(
			ndx_session_get_queue_pair_agreement(r.session, 3, &own, NULL, NULL),
			NDX_OK);
		more_end(&r);
		more_up(&r, MOST);
		assert_int_equal(more_add(&r, &first), NDX_OK);
		assert_int_equal(first, 4);
		is_told(&r.added, 2);
		assert_int_equal(ndx_session_get_queue_pair_count(r.session), 4 + MOST);
		all_last(r.a, 3);
		more_end(&r);
		all_last(r.b, 3);
		for (uint32_t i = 0; i < r.count; i++)
			disconnect_both(&r.a[i], &r.b[i]);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		rig_down(&r);
	}
	rig_uri = "direct";
}

static void what_was_removed_can_be_added_again(void **state)
{
	struct rig r;

	(void)state;
	rig_most = 2 + 4;
	for (int k = 0; k < URIS; k++) {
		uint32_t first = 0;

		rig_uri = uris[k];
		rig_run(&r, 2);
		for (uint32_t round = 0; round < 3; round++) {
			more_up(&r, 4);
			assert_int_equal(more_add(&r, &first), NDX_OK);
			assert_int_equal(first, 2 + 4 * round); /* an index is used once */
			more_end(&r);
			assert_int_equal(ndx_session_remove_queue_pairs(r.session, first, 4),
			                 NDX_OK);
			is_told(&r.removed, 4 * ((int)round + 1));
			assert_int_equal(ndx_session_get_queue_pair_count(r.session), 2);
			assert_int_equal(ndx_session_remove_queue_pairs(r.session, first, 1),
			                 NDX_E_INVALID_PARAMETER);
		}
		all_last(r.a, 2);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		rig_down(&r);
	}
	rig_most = 0;
	rig_uri = "direct";
}

static void a_connected_queue_pair_is_not_removed(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r, 4);
	assert_int_equal(ndx_session_remove_queue_pairs(r.session, 1, 2),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_non_null(strstr(ndx_last_error(), "queue pair 1 is connected"));
	disconnect_both(&r.a[1], &r.b[1]);
	assert_int_equal(ndx_session_remove_queue_pairs(r.session, 1, 1), NDX_OK);
	is_told(&r.removed, 1);
	all_last(&r.a[2], 2);
	/* The others have the indices that they had. */
	assert_int_equal(ndx_session_get_queue_pair_agreement(r.session, 3, NULL, NULL, NULL),
	                 NDX_OK);
	assert_int_equal(ndx_session_get_queue_pair_agreement(r.session, 1, NULL, NULL, NULL),
	                 NDX_E_INVALID_PARAMETER);
	disconnect_both(&r.b[3], &r.a[3]);
	all_last(&r.a[2], 1);
	rig_down(&r);
}

/* ---- refusals ---- */

static void beyond_the_limits_nothing_is_added(void **state)
{
	struct rig r;

	(void)state;
	rig_most = 6;
	rig_run(&r, 2);
	more_up(&r, FEW);
	fails(&r, NDX_E_REMOTE_ERROR, NDX_LAYER_FRAMEWORK,
	      "adds 5 queue pairs to 2, this server takes 6 at most");
	assert_int_equal(r.asked, 0);
	more_down(&r);
	more_up(&r, 4);
	assert_int_equal(more_add(&r, NULL), NDX_OK);
	more_end(&r);
	rig_down(&r);
	rig_most = 0;
}

static void a_program_may_refuse(void **state)
{
	struct rig r;
	uint32_t first = 0;

	(void)state;
	rig_run(&r, 2);
	more_up(&r, FEW);
	r.refuses = NDX_E_INSUFFICIENT_RESOURCES;
	fails(&r, NDX_E_REMOTE_ERROR, NDX_LAYER_FRAMEWORK,
	      "the server's program refuses 5 more queue pairs: NDX_E_INSUFFICIENT_RESOURCES");
	r.refuses = NDX_OK;
	more_down(&r);
	more_up(&r, FEW);
	assert_int_equal(more_add(&r, &first), NDX_OK);
	assert_int_equal(first, 2 + FEW); /* those that were refused have had theirs */
	more_end(&r);
	assert_int_equal(r.not_added, 0); /* it knows */
	rig_down(&r);
	old_server = true;
	rig_run(&r, 2);
	more_up(&r, FEW);
	fails(&r, NDX_E_NOT_SUPPORTED, NDX_LAYER_FRAMEWORK,
	      "the server's program takes no queue pair later");
	more_down(&r);
	rig_down(&r);
	old_server = false;
}

void __real_lane_hang_up(struct lane *lane);
void __wrap_lane_hang_up(struct lane *lane);

/* Atomic: queue pairs of batches that have failed: all that were disconnected, and those among them
 * for which the peer had not been told the cause. */
static int ended;
static int ended_untold;

void __wrap_lane_hang_up(struct lane *lane)
{
	const struct many *m = lane->many;

	(void)__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	if (m->out_length > m->out_sent)
		(void)__atomic_add_fetch(&ended_untold, 1, __ATOMIC_SEQ_CST);
	__real_lane_hang_up(lane);
}

/* The third of five has no queue pair any more. */
static void one_that_fails_fails_the_batch(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct rig r;

	(void)state;
	for (int k = 0; k < URIS; k++) {
		rig_uri = uris[k];
		rig_run(&r, 2);
		for (int again = 0; again < 2; again++) {
			more_up(&r, FEW);
			r.lame = 2;
			/* Both ends find it; which one is the first is open. */
			assert_true(more_add(&r, NULL) < 0);
			lives_on(&r);
			assert_int_equal(ndx_session_get_add_error(r.session, &e), NDX_OK);
			if (e.layer != NDX_LAYER_PROVIDER || e.of_queue_pair != 1 ||
			    e.queue_pair != r.first + 2)
				fail_msg("%s: layer %d, queue pair %u: %s", rig_uri, e.layer,
				         e.queue_pair, e.text);
			is_told(&r.not_added, again + 1);
			more_down(&r);
		}
		more_up(&r, FEW);
		assert_int_equal(more_add(&r, NULL), NDX_OK);
		more_end(&r);
		all_last(r.a, 2);
		rig_down(&r);
	}
	rig_uri = "direct";
	/* Else the peer finds a neighbour first that has ended for no cause of its own. */
	assert_true(ended > 0);
	assert_int_equal(ended_untold, 0);
}

/* ---- while a batch runs ---- */

/* 1: the server's plugin is to stay in this stage; 2: it does, until 0. */
static int stays;
static enum ndx_stage stays_in;

static enum ndx_status stay(const struct ndx_exchange *x)
{
	int wanted = 1;

	if (x->role != NDX_ROLE_SERVER || x->stage != stays_in || x->queue_pair_count < FEW ||
	    !__atomic_compare_exchange_n(&stays, &wanted, 2, false, __ATOMIC_SEQ_CST,
	                                 __ATOMIC_SEQ_CST))
		return NDX_OK;
	while (__atomic_load_n(&stays, __ATOMIC_SEQ_CST) == 2)
		(void)poll(NULL, 0, 1);
	return NDX_OK;
}

/* Begin to add, until the server's plugin stays. */
static void add_until_it_stays(struct rig *r, enum ndx_stage stage, struct ndx_overlapped *ov)
{
	struct ndx_session_queue_pair list[MOST];

	rig_deed = stay;
	stays_in = stage;
	__atomic_store_n(&stays, 1, __ATOMIC_SEQ_CST);
	more_up(r, FEW);
	more_list(r, list);
	memset(ov, 0, sizeof(*ov));
	assert_int_equal(ndx_session_add_queue_pairs_overlapped(r->session, list, FEW, ov),
	                 NDX_PENDING);
	for (int i = 0; i < WAIT_MS && __atomic_load_n(&stays, __ATOMIC_SEQ_CST) != 2; i++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(__atomic_load_n(&stays, __ATOMIC_SEQ_CST), 2);
}

static void go_on(void)
{
	__atomic_store_n(&stays, 0, __ATOMIC_SEQ_CST);
}

static void goodbyes_pass_in_the_middle_and_a_second_batch_waits(void **state)
{
	static const enum ndx_stage stages[] = {NDX_STAGE_INFO, NDX_STAGE_READY};
	struct ndx_session_queue_pair one = {.connector = NULL};
	struct ndx_overlapped ov;
	struct rig r;

	(void)state;
	for (int k = 0; k < 2; k++) {
		rig_run(&r, 3);
		add_until_it_stays(&r, stages[k], &ov);
		assert_int_equal(ndx_session_add_queue_pairs(r.session, &one, 1, NULL),
		                 NDX_E_DEVICE_BUSY);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE),
		                 NDX_E_INVALID_DEVICE_STATE);
		assert_int_equal(ndx_session_get_queue_pair_count(r.session), 3);
		assert_int_equal(
			ndx_session_get_queue_pair_agreement(r.session, 3, NULL, NULL, NULL),
			NDX_E_INVALID_PARAMETER);
		disconnect_both(&r.a[0], &r.b[0]);
		disconnect_both(&r.b[1], &r.a[1]);
		assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
		go_on();
		assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
		assert_int_equal(ov.information, 3);
		all_last(&r.a[2], 1);
		more_end(&r);
		rig_down(&r);
	}
	rig_deed = NULL;
}

/* The server may have ended the stages when it hears that the client has given up. */
static void is_given_up(struct rig *r)
{
	for (int i = 0; i < WAIT_MS; i++) {
		if (__atomic_load_n(&r->not_added, __ATOMIC_SEQ_CST) == 1 ||
		    __atomic_load_n(&r->removed, __ATOMIC_SEQ_CST) == FEW)
			return;
		(void)poll(NULL, 0, 1);
	}
	fail_msg("the server has %d batches", r->added);
}

static void a_cancel_is_of_the_batch_alone(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_overlapped ov;
	struct rig r;

	(void)state;
	rig_run(&r, 2);
	add_until_it_stays(&r, NDX_STAGE_READY, &ov);
	ndx_session_cancel(r.session);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_E_CANCELED);
	assert_int_equal(ndx_session_get_add_error(r.session, &e), NDX_OK);
	assert_int_equal(e.status, NDX_E_CANCELED);
	assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_CONNECTED);
	go_on();
	is_given_up(&r);
	all_last(r.a, 2);
	another_batch_is_added(&r, FEW);
	rig_down(&r);
	rig_deed = NULL;
}

/* It comes too late for the batch, and must not be kept for the next one. */
static void a_cancel_behind_the_batch_is_of_nothing(void **state)
{
	struct ndx_overlapped ov = {.context = NULL};
	struct ndx_session_queue_pair list[MOST];
	struct rig r;

	(void)state;
	rig_run(&r, 2);
	more_up(&r, FEW);
	assert_int_equal(more_add(&r, NULL), NDX_OK);
	ndx_session_cancel(r.session);
	more_end(&r);
	more_up(&r, FEW);
	more_list(&r, list);
	assert_int_equal(ndx_session_add_queue_pairs_overlapped(r.session, list, FEW, &ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
	ndx_session_cancel(r.session);
	more_end(&r);
	another_batch_is_added(&r, FEW);
	ndx_session_cancel(r.session);
	for (uint32_t i = 0; i < r.count; i++)
		disconnect_both(&r.a[i], &r.b[i]);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	rig_down(&r);
}

static void a_close_ends_the_batch_and_no_connection(void **state)
{
	struct ndx_overlapped ov;
	struct rig r;

	(void)state;
	rig_run(&r, 2);
	add_until_it_stays(&r, NDX_STAGE_INFO, &ov);
	ndx_session_close(r.session);
	r.session = NULL;
	assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
	go_on();
	is_told(&r.not_added, 1);
	all_last(r.b, 2);
	disconnect_both(&r.a[1], &r.b[1]);
	disconnect_both(&r.b[0], &r.a[0]);
	more_down(&r);
	rig_down(&r);
	rig_deed = NULL;
}

static void a_stage_has_its_time(void **state)
{
	static const enum ndx_stage stages[] = {NDX_STAGE_INFO, NDX_STAGE_READY};
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_overlapped ov;
	struct rig r;

	(void)state;
	rig_stage_ms = 2000; /* also for what must succeed */
	for (int k = 0; k < 2; k++) {
		rig_run(&r, 2);
		add_until_it_stays(&r, stages[k], &ov);
		assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_E_IO_TIMEOUT);
		assert_int_equal(ndx_session_get_add_error(r.session, &e), NDX_OK);
		assert_int_equal(e.stage, stages[k]);
		assert_non_null(strstr(e.text, "time is over: 5 of 5 queue pairs"));
		go_on();
		is_given_up(&r);
		all_last(r.a, 2);
		all_last(r.b, 2);
		another_batch_is_added(&r, FEW);
		rig_down(&r);
	}
	rig_stage_ms = 0;
	rig_deed = NULL;
}

/* On the thread that owns the descriptor. */
static void shut_on_loop(void *arg)
{
	const struct ndx_session *s = arg;

	(void)shutdown(s->driver.fd, SHUT_RDWR);
}

static void a_cut_transport_ends_the_session(void **state)
{
	static const enum ndx_stage stages[] = {NDX_STAGE_INFO, NDX_STAGE_READY};
	struct ndx_overlapped ov;
	struct rig r;

	(void)state;
	for (int k = 0; k < 2; k++) {
		rig_run(&r, 2);
		add_until_it_stays(&r, stages[k], &ov);
		ndxp_loop_call(r.session->driver.engine->loop, shut_on_loop, r.session);
		assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_E_CONNECTION_ABORTED);
		assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_FAILED);
		go_on();
		is_told(&r.closed, 1);
		/* In stage ready the server may have all that it needs. */
		assert_int_equal(r.added + r.not_added, 1);
		assert_true(stages[k] == NDX_STAGE_READY || r.not_added == 1);
		for (int i = 0; i < 2; i++) {
			indicated(&r.a[i], NDX_DISCONNECT_ABORTED);
			indicated(&r.b[i], NDX_DISCONNECT_ABORTED);
		}
		assert_int_equal(more_add(&r, NULL), NDX_E_INVALID_DEVICE_STATE);
		assert_int_equal(ndx_session_remove_queue_pairs(r.session, 0, 1),
		                 NDX_E_INVALID_DEVICE_STATE);
		says("has failed; ndx_session_get_error() says why");
		more_down(&r);
		rig_down(&r);
	}
	rig_deed = NULL;
}

static enum ndx_status fail_ready(const struct ndx_exchange *x)
{
	return x->stage == NDX_STAGE_READY && x->role == NDX_ROLE_CLIENT &&
	                       x->queue_pair == x->first_queue_pair + 2 && x->queue_pair_count == 5
	               ? NDX_E_UNSUCCESSFUL
	               : NDX_OK;
}

/* The client's plugin fails when the server may have ended the stages. */
static void the_clients_failure_is_told_to_the_server(void **state)
{
	struct rig r;

	(void)state;
	for (int k = 0; k < URIS; k++) {
		rig_uri = uris[k];
		rig_run(&r, 2);
		rig_deed = fail_ready;
		more_up(&r, FEW);
		fails(&r, NDX_E_UNSUCCESSFUL, NDX_LAYER_PLUGIN, "queue pair 4: plugin \"same\"");
		rig_deed = NULL;
		is_given_up(&r);
		another_batch_is_added(&r, FEW);
		rig_down(&r);
	}
	rig_uri = "direct";
}

/* A test that has failed leaves its choices behind. */
static int forget_the_last(void **state)
{
	(void)state;
	rig_uri = "direct";
	rig_deed = NULL;
	old_server = false;
	rig_stage_ms = 0;
	rig_most = 0;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_and_then_a_batch_are_added, forget_the_last),
		cmocka_unit_test_setup(what_was_removed_can_be_added_again, forget_the_last),
		cmocka_unit_test_setup(a_connected_queue_pair_is_not_removed, forget_the_last),
		cmocka_unit_test_setup(beyond_the_limits_nothing_is_added, forget_the_last),
		cmocka_unit_test_setup(a_program_may_refuse, forget_the_last),
		cmocka_unit_test_setup(one_that_fails_fails_the_batch, forget_the_last),
		cmocka_unit_test_setup(goodbyes_pass_in_the_middle_and_a_second_batch_waits,
	                               forget_the_last),
		cmocka_unit_test_setup(a_cancel_is_of_the_batch_alone, forget_the_last),
		cmocka_unit_test_setup(a_cancel_behind_the_batch_is_of_nothing, forget_the_last),
		cmocka_unit_test_setup(a_close_ends_the_batch_and_no_connection, forget_the_last),
		cmocka_unit_test_setup(a_stage_has_its_time, forget_the_last),
		cmocka_unit_test_setup(a_cut_transport_ends_the_session, forget_the_last),
		cmocka_unit_test_setup(the_clients_failure_is_told_to_the_server, forget_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
