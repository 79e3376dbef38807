/* SPDX-License-Identifier: BSD-2-Clause */
/* Transports of plugins that carry the goodbyes of a connection: with a descriptor and without one,
 * and those whose calls do not return. */
#include "oob_rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>
#include "same_plugin.h"

/* ---- the transport ---- */

enum manner {
	BLIND,         /* has no descriptor */
	POLLED,        /* has one, and keeps what it has read ahead */
	STUCK_RECEIVE, /* receive waits until the cancel, whatever its time */
	DEAF_RECEIVE,  /* ... and does not notice the cancel, but `release` */
	STUCK_CONNECT, /* connect waits for `release` */
	STUCK_CLOSE,   /* close does */
	MANNERS,
};

struct ndx_plugin_stream {
	int fd;
	int cancelled; /* a flag */
	uint8_t ahead[256];
	size_t held;
	size_t given;
};

static enum manner manner;
static int release;    /* atomic */
static int opened;     /* atomic: streams now */
static int receives;   /* atomic: calls so far */
static int inside;     /* atomic: a receive is waiting */
static int live = -1;  /* atomic: the socket of the latest stream */
static char login[16]; /* what `dial` was given */

static void await_release(void)
{
	while (__atomic_load_n(&release, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
}

static enum ndx_status dial(const struct ndx_plugin_dial *d, struct ndx_plugin_stream **stream,
                            char *why, size_t room)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	struct ndx_plugin_stream *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	assert_int_equal(d->size, sizeof(*d));
	assert_string_equal(d->transport->name, "wire");
	assert_string_equal(d->variant->name, "wired");
	(void)snprintf(login, sizeof(login), "%s", d->values[0].text);
	if (manner == STUCK_CONNECT)
		await_release();
	at.sin_port = htons((uint16_t)strtoul(strchr(d->address, ':') + 1, NULL, 10));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c->cancelled = ndxp_eventfd_create();
	assert_true(c->fd >= 0 && c->cancelled >= 0);
	if (connect(c->fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		(void)snprintf(why, room, "there is no such wire");
		(void)close(c->fd);
		(void)close(c->cancelled);
		free(c);
		return NDX_E_CONNECTION_REFUSED;
	}
	(void)__atomic_add_fetch(&opened, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&live, c->fd, __ATOMIC_SEQ_CST);
	*stream = c;
	return NDX_OK;
}

static enum ndx_status plain_connect(void *plugin, const char *address, uint32_t timeout_ms,
                                     struct ndx_plugin_stream **stream, char *why, size_t room)
{
	(void)plugin;
	(void)address;
	(void)timeout_ms;
	(void)stream;
	(void)snprintf(why, room, "dial is called in place of this");
	return NDX_E_INTERNAL_ERROR;
}

static enum ndx_status wire_send(struct ndx_plugin_stream *c, const void *data, size_t length,
                                 uint32_t timeout_ms)
{
	(void)timeout_ms;
	return send(c->fd, data, length, MSG_NOSIGNAL) == (ssize_t)length
	               ? NDX_OK
	               : NDX_E_CONNECTION_ABORTED;
}

static int wait_ms(uint32_t timeout_ms)
{
	return manner == STUCK_RECEIVE ? -1 : (int)timeout_ms;
}

static enum ndx_status fetch(struct ndx_plugin_stream *c, uint32_t timeout_ms)
{
	struct pollfd set[2] = {{.fd = c->cancelled, .events = POLLIN},
	                        {.fd = c->fd, .events = POLLIN}};
	ssize_t n;

	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	if (manner == DEAF_RECEIVE)
		await_release();
	if (poll(set, 2, wait_ms(timeout_ms)) == 0)
		return NDX_E_IO_TIMEOUT;
	if (set[0].revents != 0)
		return NDX_E_CANCELED;
	n = recv(c->fd, c->ahead, sizeof(c->ahead), 0);
	if (n <= 0)
		return NDX_E_CONNECTION_ABORTED;
	c->held = (size_t)n;
	c->given = 0;
	return NDX_OK;
}

/* A few bytes at a time, so that frames come in parts and are kept in part. */
static enum ndx_status wire_receive(struct ndx_plugin_stream *c, void *data, size_t room,
                                    size_t *length, uint32_t timeout_ms)
{
	size_t n;

	(void)__atomic_add_fetch(&receives, 1, __ATOMIC_SEQ_CST);
	if (c->given == c->held) {
		const enum ndx_status st = fetch(c, timeout_ms);

		if (st != NDX_OK)
			return st;
	}
	n = c->held - c->given;
	n = n < room ? n : room;
	n = n < 13 ? n : 13;
	memcpy(data, c->ahead + c->given, n);
	c->given += n;
	*length = n;
	return NDX_OK;
}

static void wire_cancel(struct ndx_plugin_stream *c)
{
	ndxp_eventfd_set(c->cancelled);
}

static void wire_close(struct ndx_plugin_stream *c)
{
	if (manner == STUCK_CLOSE)
		await_release();
	(void)close(c->fd);
	(void)close(c->cancelled);
	free(c);
	(void)__atomic_sub_fetch(&opened, 1, __ATOMIC_SEQ_CST);
}

static int descriptor(struct ndx_plugin_stream *c)
{
	return manner == POLLED ? c->fd : -1;
}

static const struct ndx_plugin_transport transports[] = {
	{"wire", plain_connect, wire_send, wire_receive, wire_cancel, wire_close},
	{.name = NULL},
};
static const struct ndx_plugin_transport_more more = {
	.size = sizeof(more), .name = "wire", .dial = dial, .descriptor = descriptor};
static const struct ndx_plugin_transport_more *const all_more[] = {&more, NULL};
static const struct ndx_plugin_param params[] = {
	{.name = "login", .type = NDX_PARAM_STRING, .most = 15, .initial = "", .help = "name"},
	{.name = NULL},
};
static const struct ndx_variant_ops ops = {
	.info = same_info, .ready = same_ready, .done = same_ready, .reset = same_reset};
static const struct ndx_plugin_variant only = {
	.name = "wired", .help = "test", .params = params, .transport = "wire", .ops = &ops};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "relayed",
                                         .version = "1",
                                         .vendor = "test",
                                         .list = &only,
                                         .count = 1,
                                         .transports = transports,
                                         .more = all_more};

static void behave(enum manner how)
{
	static const struct ndx_setting setting = {"login", "somebody"};

	manner = how;
	rig_plugin = &plugin;
	rig_setting = &setting;
	login[0] = '\0';
	__atomic_store_n(&release, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
}

/* ---- sessions ---- */

static void goodbyes_pass_both_ways(void **state)
{
	struct rig r;

	(void)state;
	for (int how = BLIND; how <= POLLED; how++) {
		behave((enum manner)how);
		rig_run(&r);
		assert_string_equal(login, "somebody");
		disconnect_both(&r.a, &r.b);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		rig_down(&r);
		rig_run(&r);
		disconnect_both(&r.b, &r.a);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		rig_down(&r);
		assert_int_equal(opened, 0);
	}
}

/* The connection keeps the transport, which says with its end that the session is over. */
static void they_pass_when_the_session_is_over(void **state)
{
	struct rig r;

	(void)state;
	for (int how = BLIND; how <= POLLED; how++) {
		behave((enum manner)how);
		rig_run(&r);
		ndx_session_close(r.session);
		r.session = NULL;
		assert_int_equal(opened, 1);
		disconnect_both(how == BLIND ? &r.a : &r.b, how == BLIND ? &r.b : &r.a);
		wait_closed(&r);
		while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) > 0)
			(void)poll(NULL, 0, 1);
		rig_down(&r);
	}
}

/* How often the connector was told of the end of its connection. */
static unsigned ends_of(const struct end *e)
{
	struct ndx_transition list[64];
	size_t count = sizeof(list) / sizeof(list[0]);
	unsigned n = 0;

	assert_int_equal(ndx_connector_get_history(e->connector, list, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		n += strstr(list[i].event, "ABORT") != NULL;
	return n;
}

static void a_transport_that_dies_is_an_abort_once(void **state)
{
	struct rig r;

	(void)state;
	for (int closed = 0; closed < 4; closed++) {
		behave(closed % 2 == 0 ? BLIND : POLLED);
		rig_run(&r);
		if (closed >= 2) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		assert_int_equal(shutdown(live, SHUT_RDWR), 0);
		indicated(&r.a, NDX_DISCONNECT_ABORTED);
		indicated(&r.b, NDX_DISCONNECT_ABORTED);
		start_disconnect(&r.a);
		disconnected(&r.a, NDX_E_CONNECTION_ABORTED);
		assert_int_equal(ends_of(&r.a), 1);
		assert_int_equal(ends_of(&r.b), 1);
		rig_down(&r);
	}
}

/* An idle session with a descriptor makes no call. */
static void a_descriptor_is_waited_for(void **state)
{
	struct rig r;
	int before;

	(void)state;
	behave(POLLED);
	rig_run(&r);
	(void)poll(NULL, 0, 100);
	before = __atomic_load_n(&receives, __ATOMIC_SEQ_CST);
	(void)poll(NULL, 0, 300);
	assert_int_equal(__atomic_load_n(&receives, __ATOMIC_SEQ_CST), before);
	disconnect_both(&r.b, &r.a);
	rig_down(&r);
}

/* ---- calls that do not return ---- */

static void *run_session(void *session)
{
	return (void *)(intptr_t)ndx_session_run(session);
}

static uint64_t ms_since(uint64_t since_ns)
{
	return (ndxp_now_ns() - since_ns) / 1000000;
}

static void a_receive_without_end_is_cancelled(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	for (int how = STUCK_RECEIVE; how <= DEAF_RECEIVE; how++) {
		uint64_t since;

		behave((enum manner)how);
		held_stage = NDX_STAGE_INFO; /* the server goes no further */
		rig_up(&r);
		__atomic_store_n(&r.held, 1, __ATOMIC_SEQ_CST);
		assert_int_equal(pthread_create(&thread, NULL, run_session, r.session), 0);
		await(&inside);
		since = ndxp_now_ns();
		ndx_session_cancel(r.session);
		assert_int_equal(pthread_join(thread, &st), 0);
		assert_int_equal((intptr_t)st, NDX_E_CANCELED);
		assert_true(ms_since(since) < 1500);
		ndx_session_close(r.session);
		r.session = NULL;
		assert_true(ms_since(since) < 8000);
		assert_int_equal(opened, how == DEAF_RECEIVE);
		__atomic_store_n(&r.held, 0, __ATOMIC_SEQ_CST);
		if (how == DEAF_RECEIVE) {
			assert_int_equal(ndx_negotiation_unregister(r.negotiation, "relayed"),
			                 NDX_E_DEVICE_BUSY);
			__atomic_store_n(&release, 1, __ATOMIC_SEQ_CST);
			while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) > 0)
				(void)poll(NULL, 0, 1);
		}
		rig_down(&r);
		held_stage = NDX_STAGE_READY;
	}
}

static void a_connect_without_end_is_given_up(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct rig r;
	uint64_t since;

	(void)state;
	behave(STUCK_CONNECT);
	rig_up(&r);
	r.session->attr.connect_timeout_ms = 200;
	r.session->attr.attempts = 1;
	since = ndxp_now_ns();
	assert_int_equal(ndx_session_run(r.session), NDX_E_IO_TIMEOUT);
	assert_true(ms_since(since) < 3000);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	assert_non_null(strstr(e.text, "its connect has not returned within 200 ms"));
	ndx_session_close(r.session);
	r.session = NULL;
	assert_true(ms_since(since) < 8000);
	__atomic_store_n(&release, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) > 0)
		(void)poll(NULL, 0, 1);
	rig_down(&r);
}

static void a_close_without_end_is_left_behind(void **state)
{
	struct rig r;
	uint64_t since;

	(void)state;
	behave(STUCK_CLOSE);
	rig_run(&r);
	disconnect_both(&r.a, &r.b);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	since = ndxp_now_ns();
	ndx_session_close(r.session);
	r.session = NULL;
	assert_true(ms_since(since) < 8000);
	assert_int_equal(opened, 1);
	__atomic_store_n(&release, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) > 0)
		(void)poll(NULL, 0, 1);
	rig_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goodbyes_pass_both_ways),
		cmocka_unit_test(they_pass_when_the_session_is_over),
		cmocka_unit_test(a_transport_that_dies_is_an_abort_once),
		cmocka_unit_test(a_descriptor_is_waited_for),
		cmocka_unit_test(a_receive_without_end_is_cancelled),
		cmocka_unit_test(a_connect_without_end_is_given_up),
		cmocka_unit_test(a_close_without_end_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
