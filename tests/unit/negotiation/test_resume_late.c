/* SPDX-License-Identifier: BSD-2-Clause */
/* A session gets another transport while a queue pair connects, or a callback has it: the half-time
 * still holds, and a client that cannot go on ends the session at once. */
#include "oob_rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <ndx/stats.h>

#include "connection.h"
#include "server.h"

/* ---- a path that is cut, between adapters with a connection manager ---- */

static enum ndx_status connect_to_nothing(struct ndx_spi_conn *conn, const struct sockaddr *to,
                                          socklen_t length, const struct ndx_spi_params *params)
{
	(void)conn;
	(void)to;
	(void)length;
	(void)params;
	return NDX_OK;
}

static void nothing(struct ndx_spi_conn *conn)
{
	(void)conn;
}

static enum ndx_status find_nothing(struct ndx_spi_conn *conn, uint64_t write, uint64_t expect,
                                    struct ndx_spi_proof *proof)
{
	(void)conn;
	(void)write;
	(void)expect;
	if (proof != NULL)
		*proof = (struct ndx_spi_proof){.status = NDX_E_IO_TIMEOUT};
	return NDX_OK;
}

/* The client's connect reaches nothing. `proves`: connecting is the proof of the path. */
static void cut_path(struct rig *r, bool proves)
{
	static struct ndx_provider_ops a, b;

	a = *r->a.adapter->ops;
	b = *r->b.adapter->ops;
	a.conn_connect = connect_to_nothing;
	a.conn_abandon = nothing;
	a.conn_prove = b.conn_prove = proves ? find_nothing : NULL;
	r->a.adapter->ops = &a;
	r->b.adapter->ops = &b;
}

static void *run_session(void *session)
{
	return (void *)(intptr_t)ndx_session_run(session);
}

static void await_event(const struct end *e, const char *event)
{
	for (int ms = 0; ms < AWAIT_MS; ms++) {
		struct ndx_transition last;
		size_t count = 1;

		assert_int_equal(ndx_connector_get_history(e->connector, &last, &count, NULL),
		                 NDX_OK);
		if (count == 1 && strcmp(last.event, event) == 0)
			return;
		(void)poll(NULL, 0, 1);
	}
	fail_msg("no %s", event);
}

/* So many entries of the client's history. */
static void await_steps(const struct ndx_session *s, enum ndx_history_kind kind,
                        enum ndx_stage stage, const char *text, unsigned wanted)
{
	unsigned n = 0;

	for (int ms = 0; ms < AWAIT_MS && n < wanted; ms++) {
		struct ndx_history_entry e[64];
		size_t count = sizeof(e) / sizeof(e[0]);

		assert_int_equal(ndx_session_get_history(s, e, &count, NULL), NDX_OK);
		n = 0;
		for (size_t i = 0; i < count; i++)
			n += e[i].kind == kind && e[i].stage == stage &&
			     (text == NULL || strcmp(e[i].text, text) == 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(n, wanted);
}

/* The client's time is shorter than the server's, so that the client's half-time is what leaves
 * both the time to tell each other what has arrived. */
static void half_of_the_time_is_kept(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	managed = true;
	client_stage_ms = 4000;
	stage_ms = 60000;
	rig_up(&r);
	managed = false;
	client_stage_ms = stage_ms = 0;
	cut_path(&r, true);
	assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
	await_steps(r.session, NDX_HISTORY_RECEIVED, NDX_STAGE_VALIDATE, "alive", 1);
	cut_transport(r.session, SHUT_RD);
	await_steps(r.session, NDX_HISTORY_CONNECT, NDX_STAGE_VALIDATE, NULL, 1);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	if (e.layer != NDX_LAYER_PROVIDER || (intptr_t)st != NDX_E_HOST_UNREACHABLE)
		fail_msg("%s", e.text);
	rig_down(&r);
}

/* ---- a client that lacks more than is kept ---- */

/* Says that it goes on with the session, and has received more than was sent; the server then
 * closes. */
static void go_on_without_sense(const struct rig *r)
{
	const struct timeval limit = {.tv_sec = AWAIT_MS / 1000};
	struct frame f = {.type = FRAME_HELLO,
	                  .flags = FRAME_RESUMED | FRAME_REPLAYS,
	                  .stage = NDX_STAGE_INFO,
	                  .round = 99};
	struct frame_hello h = {.max_message = 4096, .queue_pairs = 1};
	uint8_t bytes[FRAME_HEADER + FRAME_HELLO_SIZE_MAX];
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(h.session, r->session->cookie, sizeof(h.session));
	(void)snprintf(h.plugin, sizeof(h.plugin), "%s", ndx_variant_plugin_name(r->variant));
	(void)snprintf(h.variant, sizeof(h.variant), "%s", ndx_variant_name(r->variant));
	f.length = frame_write_hello(bytes + FRAME_HEADER, &h);
	frame_write_header(bytes, &f);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, length), 0);
	assert_int_equal(send(fd, bytes, FRAME_HEADER + f.length, MSG_NOSIGNAL),
	                 FRAME_HEADER + f.length);
	while (recv(fd, bytes, sizeof(bytes), 0) > 0)
		continue;
	(void)close(fd);
}

/* Not when the time of the stage is over. */
static void ends_for_that(struct rig *r, pthread_t thread)
{
	void *st;

	assert_int_equal(pthread_join(thread, &st), 0);
	assert_true((intptr_t)st < 0);
	wait_closed(r);
	assert_int_equal(r->theirs_error.status, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(r->theirs_error.stage, NDX_STAGE_VALIDATE);
	assert_string_equal(r->theirs_error.text, client_cut);
}

static void a_connecting_queue_pair_is_given_up(void **state)
{
	pthread_t thread;
	struct rig r;

	(void)state;
	managed = true;
	rig_up(&r);
	managed = false;
	cut_path(&r, false);
	assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
	await_event(&r.b, "CONNECT_PEER");
	go_on_without_sense(&r);
	ends_for_that(&r, thread);
	rig_down(&r);
}

/* The stage behind the callback does not begin. */
static void a_callback_is_waited_for_and_nothing_else(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	managed = true;
	held_stage = NDX_STAGE_INFO;
	rig_up(&r);
	managed = false;
	__atomic_store_n(&r.held, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
	await(&r.informed);
	go_on_without_sense(&r);
	assert_int_equal(pthread_join(thread, &st), 0); /* the client is told that it is over */
	assert_int_equal((intptr_t)st, NDX_E_NOT_FOUND);
	__atomic_store_n(&r.held, 0, __ATOMIC_SEQ_CST);
	wait_closed(&r);
	assert_int_equal(r.theirs_error.status, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(r.theirs_error.stage, NDX_STAGE_INFO);
	assert_string_equal(r.theirs_error.text, client_cut);
	rig_down(&r);
	held_stage = NDX_STAGE_READY;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_of_the_time_is_kept),
		cmocka_unit_test(a_connecting_queue_pair_is_given_up),
		cmocka_unit_test(a_callback_is_waited_for_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
