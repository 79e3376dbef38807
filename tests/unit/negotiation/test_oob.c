/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions whose transport carries the goodbyes of what they connected: client and server, each
 * with an adapter that has no connection manager.
 */
#include "says.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include "connection.h"
#include "fake_direct.h"
#include "same_plugin.h"
#include "session.h"

enum { WAIT_MS = 10000 };

/* ---- the plugin ---- */

/* The client's stage ready lasts, once it has begun, until that is 0 again. */
static int stuck; /* atomic: 1: is to be stuck, 2: is */

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t length, struct ndx_exchange_reply *reply)
{
	while (x->role == NDX_ROLE_CLIENT && __atomic_load_n(&stuck, __ATOMIC_SEQ_CST) != 0) {
		__atomic_store_n(&stuck, 2, __ATOMIC_SEQ_CST);
		(void)poll(NULL, 0, 1);
	}
	return same_ready(session, x, peer, length, reply);
}

/* The client's stage done has begun. */
static int parting; /* atomic */

static enum ndx_status done(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	if (x->role == NDX_ROLE_CLIENT)
		__atomic_store_n(&parting, 1, __ATOMIC_SEQ_CST);
	return same_ready(session, x, peer, length, reply);
}

static const struct ndx_variant_ops ops = {
	.info = same_info, .ready = ready, .done = done, .reset = same_reset};
static const struct ndx_plugin_variant only = {.name = "as-it-is", .help = "test", .ops = &ops};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "same",
                                         .version = "1",
                                         .vendor = "test",
                                         .list = &only,
                                         .count = 1};

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

/* ---- two ends, and the session between them ---- */

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped notify;
	struct ndx_overlapped disc;
};

/* Of the next server's stages; 0: the default. */
static uint32_t stage_ms;
/* The next ends have a connection manager. */
static bool managed;

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
	struct end a;               /* the client's */
	struct end b;               /* the server's */
	struct ndx_session *theirs; /* the server's session */
	int held;   /* atomic: the server's callback does not come back from stage ready */
	int closed; /* atomic: sessions of the server's */
};

static void open_end(struct end *e)
{
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_adapter_open("loop", &e->adapter), NDX_OK);
	if (!managed)
		fake_direct(e->adapter);
	assert_int_equal(ndx_cq_create_depth(e->adapter, 4, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(e->adapter, &attr, &e->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(e->adapter, NULL, &e->connector), NDX_OK);
}

static void close_end(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
}

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct rig *r = arg;

	r->theirs = session;
	resources->connector = r->b.connector;
	resources->qp = r->b.qp;
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	const struct rig *r = arg;

	(void)session;
	while (stage == NDX_STAGE_READY && __atomic_load_n(&r->held, __ATOMIC_SEQ_CST) != 0)
		(void)poll(NULL, 0, 1);
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct rig *r = arg;

	(void)session;
	(void)__atomic_add_fetch(&r->closed, 1, __ATOMIC_SEQ_CST);
}

static void rig_up(struct rig *r)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_session_attr session;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	char address[32];
	const char *const servers[] = {address};

	memset(r, 0, sizeof(*r));
	open_end(&r->a);
	open_end(&r->b);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "same", "as-it-is", NULL, 0,
	                                             &r->variant),
	                 NDX_OK);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	if (stage_ms > 0)
		attr.stage_timeout_ms = stage_ms;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = r};
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	ndx_session_attr_init(&session);
	session.variant = r->variant;
	session.servers = servers;
	session.server_count = 1;
	session.connector = r->a.connector;
	session.qp = r->a.qp;
	assert_int_equal(ndx_session_create(&session, &r->session), NDX_OK);
}

static void await(const int *flag)
{
	while (__atomic_load_n(flag, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
}

/* The server's session is over. */
static void wait_closed(struct rig *r)
{
	await(&r->closed);
}

static void watch(struct end *e)
{
	assert_int_equal(ndx_connector_notify_disconnect(e->connector, &e->notify), NDX_PENDING);
}

static void up(struct rig *r)
{
	rig_up(r);
	assert_int_equal(ndx_session_run(r->session), NDX_OK);
	watch(&r->a);
	watch(&r->b);
}

static void end(struct rig *r)
{
	ndx_session_close(r->session);
	ndx_negotiation_server_close(r->server);
	ndx_variant_close(r->variant);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	close_end(&r->a);
	close_end(&r->b);
}

static void indicated(struct end *e, enum ndx_disconnect_reason reason)
{
	assert_int_equal(ndx_overlapped_wait(&e->notify, WAIT_MS), NDX_OK);
	assert_int_equal(e->notify.information, reason);
}

static void start_disconnect(struct end *e)
{
	assert_int_equal(ndx_connector_disconnect(e->connector, &e->disc), NDX_PENDING);
}

static void disconnected(struct end *e, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(&e->disc, WAIT_MS), status);
}

/* From one side to the other and back; what the other side's consumer does comes later. */
static void disconnect_both(struct end *from, struct end *to)
{
	start_disconnect(from);
	indicated(to, NDX_DISCONNECT_GRACEFUL);
	disconnected(from, NDX_OK);
	start_disconnect(to);
	disconnected(to, NDX_OK);
}

static void goodbyes_pass_both_ways(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	disconnect_both(&r.a, &r.b);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	end(&r);
	up(&r);
	disconnect_both(&r.b, &r.a);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	end(&r);
}

static void they_pass_when_the_session_is_over(void **state)
{
	struct rig r;

	(void)state;
	for (int done = 0; done < 2; done++) {
		up(&r);
		if (done)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		ndx_session_close(r.session);
		r.session = NULL;
		disconnect_both(&r.a, &r.b);
		/* The connection has the transport, and says bye with its end. */
		wait_closed(&r);
		end(&r);
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
		up(&r);
		stage_ms = 0;
		if (done)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		(void)poll(NULL, 0, 1200);
		assert_int_equal(__atomic_load_n(&r.closed, __ATOMIC_SEQ_CST), 0);
		disconnect_both(&r.a, &r.b);
		wait_closed(&r);
		end(&r);
	}
}

static void they_cross(void **state)
{
	struct rig r;

	(void)state;
	for (int i = 0; i < 50; i++) {
		up(&r);
		start_disconnect(&r.a);
		start_disconnect(&r.b);
		if (i % 2 == 0)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		disconnected(&r.a, NDX_OK);
		disconnected(&r.b, NDX_OK);
		end(&r);
	}
}

/* Without the transport no side can say goodbye: that is an abort at once, on both sides. */
static void the_servers_end_is_an_abort(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		up(&r);
		if (closed) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		ndx_negotiation_server_close(r.server);
		r.server = NULL;
		indicated(&r.a, NDX_DISCONNECT_ABORTED);
		indicated(&r.b, NDX_DISCONNECT_ABORTED);
		start_disconnect(&r.a);
		disconnected(&r.a, NDX_E_CONNECTION_ABORTED);
		end(&r);
	}
}

static void an_abort_is_reported(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	assert_int_equal(ndx_qp_flush(r.a.qp), NDX_OK);
	indicated(&r.b, NDX_DISCONNECT_ABORTED);
	end(&r);
	up(&r);
	assert_int_equal(ndx_qp_flush(r.b.qp), NDX_OK);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	end(&r);
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
	end(&r);
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
		end(&r);
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
	up(&r);
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
	disconnected(&r.a, NDX_OK);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_OK);
	end(&r);
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

static void heartbeats_do_not_hide_a_goodbye(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		up(&r);
		if (closed) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		send_heartbeats(r.theirs);
		disconnect_both(&r.b, &r.a);
		end(&r);
	}
}

static void heartbeats_do_not_hide_the_end_of_the_transport(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		up(&r);
		if (closed) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		send_heartbeats(r.theirs);
		ndx_negotiation_server_close(r.server);
		r.server = NULL;
		indicated(&r.a, NDX_DISCONNECT_ABORTED);
		end(&r);
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
	end(&r);
}

static void *run_session(void *session)
{
	return (void *)(intptr_t)ndx_session_run(session);
}

static unsigned connects(const struct ndx_session *s)
{
	struct ndx_history_entry entries[64];
	size_t count = sizeof(entries) / sizeof(entries[0]);
	unsigned n = 0;

	assert_int_equal(ndx_session_get_history(s, entries, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		n += entries[i].kind == NDX_HISTORY_CONNECT;
	return n;
}

/* A stage may begin anew on another transport, a connection cannot: neither side tries. */
static void a_lost_transport_is_not_replaced(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	__atomic_store_n(&stuck, 1, __ATOMIC_SEQ_CST);
	rig_up(&r);
	assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
	while (__atomic_load_n(&stuck, __ATOMIC_SEQ_CST) != 2)
		(void)poll(NULL, 0, 1);
	watch(&r.a);
	watch(&r.b);
	assert_int_equal(shutdown(r.session->driver.fd, SHUT_RDWR), 0);
	indicated(&r.b, NDX_DISCONNECT_ABORTED);
	wait_closed(&r);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(connects(r.session), 1);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	end(&r);
}

/* What was connected may be gone before the session that did it. */
static void the_connection_may_go_first(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	disconnect_both(&r.a, &r.b);
	ndx_connector_close(r.a.connector);
	r.a.connector = NULL;
	ndx_qp_close(r.a.qp);
	r.a.qp = NULL;
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	end(&r);
}

static void a_cancelled_session_takes_its_connection_along(void **state)
{
	struct rig r;

	(void)state;
	up(&r);
	ndx_session_cancel(r.session);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_E_CANCELED);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	ndx_session_close(r.session);
	r.session = NULL;
	indicated(&r.b, NDX_DISCONNECT_ABORTED);
	end(&r);
}

/* A client that goes no further than stage info: the server's end is given up in its time. */
static void a_peer_that_never_connects_is_given_up(void **state)
{
	struct ndx_negotiation_server_stats stats = {0};
	struct rig r;

	(void)state;
	stage_ms = 200;
	managed = true;
	rig_up(&r);
	stage_ms = 0;
	managed = false;
	assert_int_equal(ndx_session_connect(r.session), NDX_OK);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_INFO), NDX_OK);
	for (int ms = 0; ms < WAIT_MS && stats.failed == 0; ms++) {
		(void)poll(NULL, 0, 1);
		stats.size = sizeof(stats);
		assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
	}
	assert_int_equal(stats.failed, 1);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goodbyes_pass_both_ways),
		cmocka_unit_test(they_pass_when_the_session_is_over),
		cmocka_unit_test(they_pass_long_after_the_stages),
		cmocka_unit_test(they_cross),
		cmocka_unit_test(the_servers_end_is_an_abort),
		cmocka_unit_test(an_abort_is_reported),
		cmocka_unit_test(goodbyes_pass_while_a_callback_is_busy),
		cmocka_unit_test(goodbyes_pass_behind_a_stage_that_waits_for_a_callback),
		cmocka_unit_test(a_goodbye_is_sent_when_all_of_it_is_out),
		cmocka_unit_test(heartbeats_do_not_hide_a_goodbye),
		cmocka_unit_test(heartbeats_do_not_hide_the_end_of_the_transport),
		cmocka_unit_test(heartbeats_do_not_hide_a_goodbye_from_a_busy_server),
		cmocka_unit_test(a_lost_transport_is_not_replaced),
		cmocka_unit_test(the_connection_may_go_first),
		cmocka_unit_test(a_peer_that_never_connects_is_given_up),
		cmocka_unit_test(a_cancelled_session_takes_its_connection_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
