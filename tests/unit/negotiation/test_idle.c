/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's session between two calls: it notices that its transport is lost, and tells so; where
 * another transport may come, the next call goes on over that one. */
#include "oob_rig.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "fake_direct.h"

static bool has_state(const struct ndx_session *s, enum ndx_session_state state)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (ndx_session_get_state(s) == state)
			return true;
		(void)poll(NULL, 0, 1);
	}
	return false;
}

/* How many entries of that kind there are; waits for the first one. */
static unsigned count_lost(const struct ndx_session *s)
{
	struct ndx_history_entry e[128];
	unsigned count = 0;

	for (int ms = 0; ms < WAIT_MS && count == 0; ms++) {
		size_t n = sizeof(e) / sizeof(e[0]);

		assert_int_equal(ndx_session_get_history(s, e, &n, NULL), NDX_OK);
		for (size_t i = 0; i < n; i++)
			count += e[i].kind == NDX_HISTORY_LOST &&
			         e[i].status == NDX_E_CONNECTION_ABORTED;
		(void)poll(NULL, 0, 1);
	}
	return count;
}

/* No call is made, and the session has failed. */
static void fails_idle(const struct ndx_session *s, enum ndx_error_layer layer)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_true(has_state(s, NDX_SESSION_FAILED));
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_int_equal(e.layer, layer);
	assert_true(e.status < 0 && e.text[0] != '\0');
}

/* After stage ready nothing can replace the transport. */
static void after_stage_ready_the_session_fails(void **state)
{
	struct ndx_overlapped ov = {0};
	char *json = NULL;
	struct rig r;

	(void)state;
	for (int k = 0; k < 3; k++) {
		managed = k > 0;
		rig_run(&r);
		cut_transport(r.session, k == 2 ? SHUT_RD : SHUT_RDWR);
		fails_idle(r.session, NDX_LAYER_TRANSPORT);
		assert_int_equal(count_lost(r.session), 1);
		assert_int_equal(ndx_session_snapshot(r.session, &json), NDX_OK);
		assert_non_null(strstr(json, "\"lost\""));
		free(json);
		if (!managed) /* the transport carried the connection's goodbyes */
			indicated(&r.a, NDX_DISCONNECT_ABORTED);
		/* the next call tells why, the one behind that the session has failed */
		if (k == 1) {
			assert_int_equal(
				ndx_session_execute_overlapped(r.session, NDX_STAGE_DONE, &ov),
				NDX_PENDING);
			assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS),
			                 NDX_E_CONNECTION_ABORTED);
		} else {
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE),
			                 NDX_E_CONNECTION_ABORTED);
		}
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE),
		                 NDX_E_INVALID_DEVICE_STATE);
		assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_FAILED);
		if (managed) { /* the connection has its own way, and lives */
			assert_int_equal(ndx_overlapped_status(&r.a.notify), NDX_PENDING);
			disconnect_both(&r.a, &r.b);
		}
		wait_closed(&r);
		rig_down(&r);
	}
	managed = false;
}

/* The transport is cut before the stage. */
static void run_cut_before(struct rig *r, enum ndx_stage cut)
{
	static const enum ndx_stage stages[] = {NDX_STAGE_INFO, NDX_STAGE_VALIDATE,
	                                        NDX_STAGE_READY};

	assert_int_equal(ndx_session_connect(r->session), NDX_OK);
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		if (stages[i] == cut) {
			cut_transport(r->session, SHUT_RDWR);
			assert_int_equal(count_lost(r->session), 1);
			assert_int_equal(ndx_session_get_state(r->session), NDX_SESSION_CONNECTED);
		}
		if (ndx_session_execute(r->session, stages[i]) != NDX_OK)
			fail_msg("stage %u: %s", (unsigned)i, ndx_last_error());
	}
}

/* The server keeps the session, and the client's next call goes on over another transport. */
static void before_that_the_next_call_connects_again(void **state)
{
	struct rig r;

	(void)state;
	for (int k = 0; k < 6; k++) {
		managed = k >= 3;
		rig_up(&r);
		run_cut_before(&r, (enum ndx_stage)(k % 3));
		watch(&r.a);
		watch(&r.b);
		disconnect_both(&r.a, &r.b);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		ndx_session_close(r.session);
		r.session = NULL;
		wait_closed(&r);
		assert_int_equal(__atomic_load_n(&r.closed, __ATOMIC_SEQ_CST), 1);
		rig_down(&r);
	}
	managed = false;
}

/* After stage done there is nothing left to lose. */
static void after_stage_done_nothing_is_lost(void **state)
{
	struct rig r;

	(void)state;
	managed = true;
	rig_run(&r);
	disconnect_both(&r.a, &r.b);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	cut_transport(r.session, SHUT_RDWR);
	wait_closed(&r);
	assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_CONNECTED);
	rig_down(&r);
	managed = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_stage_ready_the_session_fails),
		cmocka_unit_test(before_that_the_next_call_connects_again),
		cmocka_unit_test(after_stage_done_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
