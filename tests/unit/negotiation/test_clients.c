/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that the server has to get rid of: clients of another protocol by the hundred, sessions
 * that lost their transport, and those that are finished; and how one that comes back is logged
 * from others.
 */
#include "scripted.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/container_of.h>
#include "server.h"

enum { CLIENTS = 60, LOGGED = 10 };

static uint32_t get(const uint32_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

struct host {
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	char address[32];
	uint32_t closed; /* atomic: sessions that ended well */
};

static void on_closed(void *arg, struct ndx_session *s)
{
	struct host *h = arg;

	if (ndx_session_get_state(s) == NDX_SESSION_CLOSED)
		(void)__atomic_add_fetch(&h->closed, 1, __ATOMIC_SEQ_CST);
}

static void host_open(struct host *h, const struct rig *r, uint32_t stage_ms, uint32_t most)
{
	struct ndx_negotiation_server_attr attr;
	socklen_t room = 0;
	socklen_t length = sizeof(h->at);

	memset(h, 0, sizeof(*h));
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	attr.max_message = MESSAGE;
	attr.max_sessions = most;
	attr.stage_timeout_ms = stage_ms;
	attr.events = (struct ndx_negotiation_server_events){.closed = on_closed, .arg = h};
	assert_int_equal(ndx_negotiation_server_create(&attr, &h->server), NDX_OK);
	assert_int_equal(ndx_negotiation_server_get_address(h->server, NULL, &room),
	                 NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(room, sizeof(h->at));
	assert_non_null(strstr(ndx_last_error(), "get_address: there are 16 bytes"));
	assert_int_equal(
		ndx_negotiation_server_get_address(h->server, (struct sockaddr *)&h->at, &length),
		NDX_OK);
	(void)snprintf(h->address, sizeof(h->address), "127.0.0.1:%u", ntohs(h->at.sin_port));
}

static void host_stats(struct host *h, struct ndx_negotiation_server_stats *stats)
{
	stats->size = sizeof(*stats);
	assert_int_equal(ndx_negotiation_server_get_stats(h->server, stats), NDX_OK);
}

/* Until no client is left. */
static void await_empty(struct host *h, struct ndx_negotiation_server_stats *stats)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		host_stats(h, stats);
		if (stats->alive == 0)
			return;
		(void)poll(NULL, 0, 1);
	}
	fail_msg("%u sessions are still there", stats->alive);
}

static int join(const struct host *h)
{
	const struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&h->at, sizeof(h->at)), 0);
	return fd;
}

static struct ndx_session *call(const struct host *h, struct rig *r)
{
	const char *servers[1] = {h->address};

	return rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
}

/* ---- clients without a session ---- */

struct heard {
	uint32_t logged;   /* atomic: records of one of them */
	uint32_t left_out; /* atomic: how many a record speaks of */
};

static void on_record(void *arg, const struct ndx_log_record *record)
{
	struct heard *heard = arg;
	const char *more = strstr(record->text, " more clients without a session");

	if (strstr(record->text, "speaks another protocol") != NULL ||
	    strstr(record->text, "sessions are the limit") != NULL)
		(void)__atomic_add_fetch(&heard->logged, 1, __ATOMIC_SEQ_CST);
	if (more != NULL)
		(void)__atomic_add_fetch(
			&heard->left_out,
			(uint32_t)strtoul(record->text + strlen("negotiation server: "), NULL, 10),
			__ATOMIC_SEQ_CST);
}

static void knock(const struct host *h, const char *text)
{
	const int fd = join(h);
	char byte;

	(void)send(fd, text, strlen(text), MSG_NOSIGNAL);
	while (recv(fd, &byte, 1, 0) > 0)
		;
	(void)close(fd);
}

/* A client that connects in a loop, to a server with room or without, does not fill the log. */
static void clients_without_a_session_are_logged_up_to_a_limit_and_counted(void **state)
{
	struct rig *r = *state;

	for (uint32_t most = 1; most <= 100; most += 99) {
		struct ndx_negotiation_server_stats stats;
		struct ndx_session *s = NULL;
		struct heard heard = {0};
		struct host h;

		ndx_log_set_sink(on_record, &heard, NDX_LOG_WARN);
		host_open(&h, r, WAIT_MS, most);
		if (most == 1) {
			s = call(&h, r);
			assert_int_equal(ndx_session_run(s), NDX_OK);
		}
		for (int i = 0; i < CLIENTS; i++)
			knock(&h, "GET / HTTP/1.0\r\n\r\n  ");
		host_stats(&h, &stats);
		assert_int_equal(most == 1 ? stats.refused : stats.without_hello, CLIENTS);
		ndx_session_close(s);
		ndx_negotiation_server_close(h.server);
		ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
		/* On a machine that stood still there may have been two periods. */
		assert_in_range(get(&heard.logged), LOGGED, CLIENTS / 2);
		assert_int_equal(get(&heard.logged) + get(&heard.left_out), CLIENTS);
	}
}

/* ---- sessions that come back ---- */

static void write_hello(uint8_t bytes[FRAME_HEADER + FRAME_HELLO_SIZE], const uint8_t cookie[16],
                        uint8_t flags, enum ndx_stage stage)
{
	struct frame_hello h = {.max_message = MESSAGE, .plugin = "test", .variant = "two"};
	const struct frame f = {
		.type = FRAME_HELLO, .flags = flags, .stage = stage, .length = FRAME_HELLO_SIZE};

	memcpy(h.session, cookie, sizeof(h.session));
	(void)frame_write_hello(bytes + FRAME_HEADER, &h);
	frame_write_header(bytes, &f);
}

static void hello(int fd, const uint8_t cookie[16], uint8_t flags, enum ndx_stage stage)
{
	uint8_t bytes[FRAME_HEADER + FRAME_HELLO_SIZE];

	write_hello(bytes, cookie, flags, stage);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
}

/* The next frame, whose payload stays in `bytes`. */
static void next(int fd, uint8_t bytes[FRAME_HEADER + MESSAGE], struct frame *f)
{
	const char *why = NULL;
	size_t used = FRAME_HEADER;
	size_t have = 0;
	ssize_t n = 1;

	while (n > 0) {
		switch (frame_parse(bytes, have, MESSAGE, f, &used, &why)) {
		case FRAME_WHOLE:
			return;
		case FRAME_BAD:
			fail_msg("%s", why);
			break;
		case FRAME_MORE:
		default:
			break;
		}
		n = recv(fd, bytes + have, used - have, 0);
		have += n > 0 ? (size_t)n : 0;
	}
	fail_msg("no frame");
}

static void expect(int fd, uint8_t type, uint8_t flags)
{
	uint8_t bytes[FRAME_HEADER + MESSAGE];
	struct frame f;

	next(fd, bytes, &f);
	assert_int_equal(f.type, type);
	assert_int_equal(f.flags, flags);
}

static const uint8_t cookie[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* A client that is in stage info, has heard the server's first words, and breaks off. */
static void begin_and_vanish(const struct host *h)
{
	const int fd = join(h);

	hello(fd, cookie, 0, NDX_STAGE_INFO);
	expect(fd, FRAME_WELCOME, 0);
	expect(fd, FRAME_DATA, 0);
	(void)close(fd);
}

static void a_session_without_transport_gives_its_place_back(void **state)
{
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct ndx_session *s;
	struct host h;

	host_open(&h, r, 500, 1);
	begin_and_vanish(&h);
	await_empty(&h, &stats);
	assert_int_equal(stats.failed, 1);
	assert_int_equal(stats.resumed, 0);
	/* The only place is free again. */
	s = call(&h, r);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	ndx_session_close(s);
	ndx_negotiation_server_close(h.server);
}

/* What a client sends behind its hello, in the same segment, belongs to the session that it comes
 * back to. */
static void bytes_behind_hello_move_with_the_transport(void **state)
{
	enum { HELLO = FRAME_HEADER + FRAME_HELLO_SIZE, WORD = 5 };
	const struct frame data = {.type = FRAME_DATA, .length = WORD};
	uint8_t bytes[HELLO + FRAME_HEADER + WORD];
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct host h;
	int fd;

	host_open(&h, r, WAIT_MS, 2);
	begin_and_vanish(&h);
	write_hello(bytes, cookie, FRAME_RESUMED, NDX_STAGE_INFO);
	frame_write_header(bytes + HELLO, &data);
	memcpy(bytes + HELLO + FRAME_HEADER, "hallo", WORD);
	fd = join(&h);
	assert_int_equal(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
	expect(fd, FRAME_WELCOME, FRAME_RESUMED);
	expect(fd, FRAME_DATA, 0);
	expect(fd, FRAME_DATA, FRAME_COMPLETED);
	host_stats(&h, &stats);
	assert_int_equal(stats.resumed, 1);
	(void)close(fd);
	ndx_negotiation_server_close(h.server);
}

static void refused(int fd)
{
	uint8_t bytes[FRAME_HEADER + MESSAGE];
	struct frame_error e;
	const char *why;
	struct frame f;

	next(fd, bytes, &f);
	assert_int_equal(f.type, FRAME_ERROR);
	assert_true(frame_parse_error(&f, &e, &why));
	assert_int_equal(e.status, NDX_E_NOT_FOUND);
	assert_non_null(strstr(e.text, "no session is known here that could go on in stage ready"));
	(void)close(fd);
}

/* A client that guesses a part of the cookie gets no session. */
static void a_session_is_found_by_every_byte_of_its_cookie(void **state)
{
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct host h;
	int fd;

	host_open(&h, r, WAIT_MS, 100);
	begin_and_vanish(&h);
	for (size_t i = 0; i < sizeof(cookie); i++) {
		uint8_t wrong[16];

		memcpy(wrong, cookie, sizeof(wrong));
		wrong[i] ^= 0x80;
		fd = join(&h);
		hello(fd, wrong, FRAME_RESUMED, NDX_STAGE_READY);
		refused(fd);
	}
	host_stats(&h, &stats);
	assert_int_equal(stats.resumed, 0);
	fd = join(&h);
	hello(fd, cookie, FRAME_RESUMED, NDX_STAGE_INFO);
	expect(fd, FRAME_WELCOME, FRAME_RESUMED);
	expect(fd, FRAME_DATA, 0);
	host_stats(&h, &stats);
	assert_int_equal(stats.resumed, 1);
	(void)close(fd);
	ndx_negotiation_server_close(h.server);
}

/* The client knows that its transport broke before the server does: a cut that no packet tells of.
 */
static void a_client_may_come_back_before_its_transport_is_missed(void **state)
{
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct host h;
	int fd[2];

	host_open(&h, r, WAIT_MS, 100);
	fd[0] = join(&h);
	hello(fd[0], cookie, 0, NDX_STAGE_INFO);
	expect(fd[0], FRAME_WELCOME, 0);
	expect(fd[0], FRAME_DATA, 0);
	fd[1] = join(&h);
	hello(fd[1], cookie, FRAME_RESUMED, NDX_STAGE_INFO);
	expect(fd[1], FRAME_WELCOME, FRAME_RESUMED);
	expect(fd[1], FRAME_DATA, 0);
	host_stats(&h, &stats);
	assert_int_equal(stats.resumed, 1);
	for (int i = 0; i < 2; i++)
		(void)close(fd[i]);
	ndx_negotiation_server_close(h.server);
}

/* ---- sessions that are finished ---- */

static void a_finished_session_gives_its_place_back(void **state)
{
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct ndx_session *s[2];
	struct host h;

	host_open(&h, r, 500, 1);
	s[0] = call(&h, r);
	assert_int_equal(ndx_session_run(s[0]), NDX_OK);
	assert_int_equal(ndx_session_execute(s[0], NDX_STAGE_DONE), NDX_OK);
	/* Its client does not close it. */
	await_empty(&h, &stats);
	assert_int_equal(stats.failed, 0);
	assert_int_equal(get(&h.closed), 1);
	s[1] = call(&h, r);
	assert_int_equal(ndx_session_run(s[1]), NDX_OK);
	for (int i = 0; i < 2; i++)
		ndx_session_close(s[i]);
	ndx_negotiation_server_close(h.server);
}

/* Transfers last as long as they last. */
static void a_session_in_use_stays(void **state)
{
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct ndx_session *s;
	struct host h;

	host_open(&h, r, 500, 1);
	s = call(&h, r);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	(void)poll(NULL, 0, 1200);
	host_stats(&h, &stats);
	assert_int_equal(stats.alive, 1);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	await_empty(&h, &stats);
	assert_int_equal(get(&h.closed), 1);
	ndx_negotiation_server_close(h.server);
}

/* ---- a client that is gone at once ---- */

static struct host *watched; /* atomic */

bool __real_pool_push(struct pool *p, struct pool_task *task);
bool __wrap_pool_push(struct pool *p, struct pool_task *task);

/* The task that frees a client runs to its end before the push returns. */
bool __wrap_pool_push(struct pool *p, struct pool_task *task)
{
	struct host *h = __atomic_load_n(&watched, __ATOMIC_SEQ_CST);
	const bool ends =
		container_of(task, struct ndx_session, driver.task)->driver.phase == DRIVER_CLOSING;
	struct ndx_negotiation_server_stats stats;
	const bool waits = __real_pool_push(p, task);

	if (h == NULL || !ends)
		return waits;
	pool_wake(p);
	await_empty(h, &stats);
	return true;
}

/* Seen by the address sanitizer. */
static void a_client_may_be_gone_before_the_push_of_its_end_returns(void **state)
{
	struct ndx_negotiation_server_stats stats;
	struct rig *r = *state;
	struct ndx_session *s;
	struct host h;

	host_open(&h, r, WAIT_MS, 1);
	s = call(&h, r);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	__atomic_store_n(&watched, &h, __ATOMIC_SEQ_CST);
	ndx_session_close(s);
	await_empty(&h, &stats);
	ndx_negotiation_server_close(h.server);
	__atomic_store_n(&watched, NULL, __ATOMIC_SEQ_CST);
	assert_int_equal(get(&h.closed), 1);
}

struct stopped {
	struct host *h;
	uint32_t alive; /* sessions, when the queued drive was still to come */
};

static void stop_with_a_drive_queued(void *arg)
{
	struct stopped *t = arg;
	struct client *c = container_of(t->h->server->clients.next, struct client, node);
	struct ndx_negotiation_server_stats stats;

	driver_go_soon(&c->session);
	client_stop(c);
	(void)poll(NULL, 0, 50); /* time for the pool to be wrong */
	host_stats(t->h, &stats);
	t->alive = stats.alive;
}

static void a_client_outlives_its_queued_jobs(void **state)
{
	struct ndx_negotiation_server_stats stats = {0};
	struct rig *r = *state;
	struct host h;
	struct stopped t = {.h = &h};
	int fd;

	host_open(&h, r, WAIT_MS, 1);
	fd = join(&h);
	for (int ms = 0; ms < WAIT_MS && stats.alive == 0; ms++) {
		(void)poll(NULL, 0, 1);
		host_stats(&h, &stats);
	}
	ndxp_loop_call(h.server->engine.loop, stop_with_a_drive_queued, &t);
	assert_int_equal(t.alive, 1);
	await_empty(&h, &stats);
	(void)close(fd);
	ndx_negotiation_server_close(h.server);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin_with_reset, rig_end)
	const struct CMUnitTest tests[] = {
		T(clients_without_a_session_are_logged_up_to_a_limit_and_counted),
		T(a_session_without_transport_gives_its_place_back),
		T(a_session_is_found_by_every_byte_of_its_cookie),
		T(a_client_may_come_back_before_its_transport_is_missed),
		T(bytes_behind_hello_move_with_the_transport),
		T(a_finished_session_gives_its_place_back),
		T(a_session_in_use_stays),
		T(a_client_may_be_gone_before_the_push_of_its_end_returns),
		T(a_client_outlives_its_queued_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
