/* SPDX-License-Identifier: BSD-2-Clause */
/* Goodbyes that the transport of a session carries, while the session lives and afterwards. */
#include "oob_rig.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

/* ---- a transport that takes a part of a frame ---- */

enum { PART = 7 };
static int narrow = -1;  /* atomic: what it is called as a descriptor */
static int part_is_out;  /* atomic */
static int rest_is_next; /* atomic: the loop has tried to send more */

/* In place of the C library's, for the whole program. */
ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	if (fd != __atomic_load_n(&narrow, __ATOMIC_SEQ_CST))
		return sendto(fd, buf, n, flags, NULL, 0);
	if (!__atomic_exchange_n(&part_is_out, 1, __ATOMIC_SEQ_CST))
		return sendto(fd, buf, PART, flags, NULL, 0);
	__atomic_store_n(&rest_is_next, 1, __ATOMIC_SEQ_CST);
	errno = EAGAIN;
	return -1;
}

/* ---- goodbyes ---- */

static void goodbyes_pass_both_ways(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	disconnect_both(&r.a, &r.b);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	rig_down(&r);
	rig_run(&r);
	disconnect_both(&r.b, &r.a);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	rig_down(&r);
}

static void they_pass_when_the_session_is_over(void **state)
{
	struct rig r;

	(void)state;
	for (int done = 0; done < 2; done++) {
		rig_run(&r);
		if (done)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		ndx_session_close(r.session);
		r.session = NULL;
		disconnect_both(&r.a, &r.b);
		/* The connection has the transport, and says bye with its end. */
		wait_closed(&r);
		rig_down(&r);
	}
}

/* Done, or not: while the connection lives its goodbyes need the transport. Then the server does
 * not wait for the client's end without limit. */
static void they_pass_long_after_the_stages(void **state)
{
	struct rig r;

	(void)state;
	for (int done = 0; done < 2; done++) {
		stage_ms = 500;
		rig_run(&r);
		stage_ms = 0;
		if (done)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		(void)poll(NULL, 0, 1200);
		assert_int_equal(__atomic_load_n(&r.closed, __ATOMIC_SEQ_CST), 0);
		disconnect_both(&r.a, &r.b);
		wait_closed(&r);
		rig_down(&r);
	}
}

static void they_cross(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 50; i++) {
		rig_run(&r);
		start_disconnect(&r.a);
		start_disconnect(&r.b);
		if (i % 2 == 0)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		disconnected(&r.a, NDX_OK);
		disconnected(&r.b, NDX_OK);
		rig_down(&r);
	}
}

/* While a callback has the server's session, its thread listens for words and says them. */
static void goodbyes_pass_while_a_callback_is_busy(void **state)
{
	struct rig r;

	(void)state;
	rig_up(&r);
	__atomic_store_n(&r.held, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_run(r.session), NDX_OK);
	watch(&r.a);
	watch(&r.b);
	disconnect_both(&r.a, &r.b);
	__atomic_store_n(&r.held, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	rig_down(&r);
}

static void *run_done(void *session)
{
	return (void *)(intptr_t)ndx_session_execute(session, NDX_STAGE_DONE);
}

/* Stage done is asked for, and waits for the callback; the goodbye behind it does not. */
static void goodbyes_pass_behind_a_stage_that_waits_for_a_callback(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	for (int i = 0; i < 20; i++) {
		rig_up(&r);
		__atomic_store_n(&r.held, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&parting, 0, __ATOMIC_SEQ_CST);
		assert_int_equal(ndx_session_run(r.session), NDX_OK);
		watch(&r.a);
		watch(&r.b);
		assert_int_equal(pthread_create(&thread, NULL, run_done, r.session), 0);
		await(&parting);
		disconnect_both(&r.a, &r.b);
		__atomic_store_n(&r.held, 0, __ATOMIC_SEQ_CST);
		assert_int_equal(pthread_join(thread, &st), 0);
		assert_int_equal((intptr_t)st, NDX_OK);
		rig_down(&r);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

/* A frame of the session waits for the rest of a goodbye of which a part is out. */
static void a_goodbye_is_sent_when_all_of_it_is_out(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	rig_run(&r);
	__atomic_store_n(&part_is_out, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&rest_is_next, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&narrow, r.session->driver.fd, __ATOMIC_SEQ_CST);
	start_disconnect(&r.a);
	await(&part_is_out);
	start_disconnect(&r.b);
	indicated(&r.a, NDX_DISCONNECT_GRACEFUL);
	__atomic_store_n(&rest_is_next, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, run_done, r.session), 0);
	await(&rest_is_next);
	/* Time for the session's thread to be wrong. */
	for (int i = 0; i < 10; i++)
		ndxp_loop_call(r.session->driver.engine->loop, nothing, NULL);
	assert_int_equal(ndx_overlapped_wait(&r.a.disc, 0), NDX_PENDING);
	__atomic_store_n(&narrow, -1, __ATOMIC_SEQ_CST);
	driver_go_soon(r.session); /* the kernel, which was not asked, has no event for that */
	disconnected(&r.a, NDX_OK);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_OK);
	rig_down(&r);
}

/* Heartbeats, as a peer may send them at any time. */
static void send_heartbeats(const struct ndx_session *from)
{
	const struct frame alive = {.type = FRAME_ALIVE};
	uint8_t bytes[FRAME_HEADER];

	frame_write_header(bytes, &alive);
	for (int i = 0; i < 3; i++)
		assert_int_equal(send(from->driver.fd, bytes, sizeof(bytes), MSG_NOSIGNAL),
		                 sizeof(bytes));
}

/* Nor does the end of the session end the connection, whose goodbyes it does not carry. */
static void a_peer_that_knows_no_goodbyes_is_sent_none(void **state)
{
	struct rig r;

	(void)state;
	peer_policy = NDX_PEER_DEVICE;
	rig_run(&r);
	assert_null(r.session->driver.oob);
	start_disconnect(&r.a);
	disconnected(&r.a, NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&r.b.notify, 50), NDX_PENDING);
	ndx_session_close(r.session);
	r.session = NULL;
	wait_closed(&r);
	assert_int_equal(ndx_overlapped_wait(&r.b.notify, 50), NDX_PENDING);
	start_disconnect(&r.b);
	disconnected(&r.b, NDX_OK);
	rig_down(&r);
	peer_policy = 0;
}

static void heartbeats_do_not_hide_a_goodbye(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		rig_run(&r);
		if (closed) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		send_heartbeats(r.theirs);
		disconnect_both(&r.b, &r.a);
		rig_down(&r);
	}
}

static void heartbeats_do_not_hide_the_end_of_the_transport(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		rig_run(&r);
		if (closed) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		send_heartbeats(r.theirs);
		ndx_negotiation_server_close(r.server);
		r.server = NULL;
		indicated(&r.a, NDX_DISCONNECT_ABORTED);
		rig_down(&r);
	}
}

static void heartbeats_do_not_hide_a_goodbye_from_a_busy_server(void **state)
{
	struct rig r;

	(void)state;
	rig_up(&r);
	__atomic_store_n(&r.held, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_run(r.session), NDX_OK);
	watch(&r.a);
	watch(&r.b);
	send_heartbeats(r.session);
	disconnect_both(&r.a, &r.b);
	__atomic_store_n(&r.held, 0, __ATOMIC_SEQ_CST);
	rig_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goodbyes_pass_both_ways),
		cmocka_unit_test(they_pass_when_the_session_is_over),
		cmocka_unit_test(they_pass_long_after_the_stages),
		cmocka_unit_test(they_cross),
		cmocka_unit_test(goodbyes_pass_while_a_callback_is_busy),
		cmocka_unit_test(goodbyes_pass_behind_a_stage_that_waits_for_a_callback),
		cmocka_unit_test(a_goodbye_is_sent_when_all_of_it_is_out),
		cmocka_unit_test(a_peer_that_knows_no_goodbyes_is_sent_none),
		cmocka_unit_test(heartbeats_do_not_hide_a_goodbye),
		cmocka_unit_test(heartbeats_do_not_hide_the_end_of_the_transport),
		cmocka_unit_test(heartbeats_do_not_hide_a_goodbye_from_a_busy_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
