/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: many clients, odd ones, and plugins that misbehave. */
#include "says.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/log.h>
#include <ndx/negotiation_server.h>

#include "frame.h"

enum { CLIENTS = 64, MESSAGE = 1024, WAIT_MS = 10000 };

/* ---- the plugin ---- */

static uint32_t stuck_calls; /* atomic: calls of variant "stuck", ... */
static uint32_t stuck_go;    /* atomic: ... which return when this is set */

static void add(uint32_t *counter)
{
	(void)__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static uint32_t get(const uint32_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static enum ndx_status talk(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	if (x->round > 0 && (peer_length != 5 || memcmp(peer, "hallo", 5) != 0)) {
		reply->error = NDX_PLUGIN_PEER_DATA;
		(void)snprintf(reply->text, sizeof(reply->text), "no hallo");
		return NDX_E_REMOTE_ERROR;
	}
	memcpy(reply->data, "hallo", 5);
	reply->length = 5;
	reply->completed = x->round == 2;
	return NDX_OK;
}

static enum ndx_status talk_stuck(void *session, const struct ndx_exchange *x, const void *peer,
                                  size_t peer_length, struct ndx_exchange_reply *reply)
{
	if (x->role == NDX_ROLE_SERVER && x->stage == NDX_STAGE_INFO && x->round == 1) {
		add(&stuck_calls);
		while (get(&stuck_go) == 0)
			(void)poll(NULL, 0, 1);
	}
	return talk(session, x, peer, peer_length, reply);
}

static enum ndx_status talk_for_ever(void *session, const struct ndx_exchange *x, const void *peer,
                                     size_t peer_length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = talk(session, x, peer, peer_length, reply);

	reply->completed = false;
	return st;
}

static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	(void)session;
	(void)stage;
	return NDX_OK;
}

static const struct ndx_variant_ops good = {.info = talk, .ready = talk, .reset = reset};
static const struct ndx_variant_ops stuck = {.info = talk_stuck, .ready = talk};
static const struct ndx_variant_ops endless = {.info = talk_for_ever, .ready = talk};
static const struct ndx_plugin_variant list[] = {
	{.name = "good", .help = "", .ops = &good},
	{.name = "stuck", .help = "", .ops = &stuck},
	{.name = "endless", .help = "", .ops = &endless},
	{.name = "spare", .help = "", .ops = &good},
};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(plugin),
                                         .name = "test",
                                         .version = "1",
                                         .vendor = "us",
                                         .list = list,
                                         .count = 4};

/* ---- the rig ---- */

struct told {
	uint32_t opened; /* all atomic */
	uint32_t staged;
	uint32_t closed;
	uint32_t failed;
	uint32_t refuse;
};

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variants[4];
	struct ndx_negotiation_server *server;
	struct told told;
	char address[32];
};

static enum ndx_status on_open(void *arg, struct ndx_session *s, struct ndx_session_resources *r)
{
	struct told *t = arg;

	assert_true(ndx_session_get_id(s) > 0);
	assert_null(r->connector);
	if (get(&t->refuse))
		return NDX_E_INSUFFICIENT_RESOURCES;
	add(&t->opened);
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *s, enum ndx_stage stage)
{
	(void)s;
	(void)stage;
	add(&((struct told *)arg)->staged);
}

static void on_closed(void *arg, struct ndx_session *s)
{
	struct told *t = arg;

	if (ndx_session_get_state(s) == NDX_SESSION_FAILED)
		add(&t->failed);
	add(&t->closed);
}

static void start_server(struct rig *r, uint32_t hello_ms, uint32_t stage_ms, uint32_t most)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = r->variants;
	attr.variant_count = 3;
	attr.events =
		(struct ndx_negotiation_server_events){on_open, on_staged, on_closed, &r->told};
	attr.hello_timeout_ms = hello_ms;
	attr.stage_timeout_ms = stage_ms;
	attr.max_message = MESSAGE;
	attr.max_rounds = 8;
	attr.max_sessions = most;
	attr.plugin_warn_ms = 100;
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

static void stop_server(struct rig *r)
{
	ndx_negotiation_server_close(r->server);
	r->server = NULL;
	assert_int_equal(get(&r->told.opened), get(&r->told.closed));
}

static int rig_begin(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	__atomic_store_n(&stuck_go, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", list[i].name,
		                                             NULL, 0, &r->variants[i]),
		                 NDX_OK);
	*state = r;
	return 0;
}

static int rig_end(void **state)
{
	struct rig *r = *state;

	add(&stuck_go);
	ndx_negotiation_server_close(r->server);
	for (int i = 0; i < 4; i++)
		ndx_variant_close(r->variants[i]);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	free(r);
	return 0;
}

static struct ndx_session *client(struct rig *r, int variant)
{
	const char *address = r->address;
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	attr.variant = r->variants[variant];
	attr.servers = &address;
	attr.server_count = 1;
	attr.attempts = 1;
	attr.max_message = MESSAGE;
	attr.max_rounds = 8;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

static void join(const struct rig *r, int fd)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
		.sin_port = htons((uint16_t)strtoul(strchr(r->address, ':') + 1, NULL, 10))};
	const struct timeval limit = {.tv_sec = WAIT_MS / 1000};

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
}

/* A bare connection to the server. */
static int connect_socket(const struct rig *r)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	join(r, fd);
	return fd;
}

/* The server's last words, and its end. */
static void expect_error(int fd, const char *text)
{
	uint8_t bytes[1024];
	struct frame_error e;
	const char *why = NULL;
	size_t have = 0;
	size_t used;
	struct frame f;
	ssize_t n;

	while ((n = recv(fd, bytes + have, sizeof(bytes) - have, 0)) > 0)
		have += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(frame_parse(bytes, have, MESSAGE, &f, &used, &why), FRAME_WHOLE);
	assert_int_equal(f.type, FRAME_ERROR);
	assert_true(frame_parse_error(&f, &e, &why));
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
	(void)close(fd);
}

static void a_client_and_the_server_go_through_all_stages(void **state)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct rig *r = *state;
	struct ndx_session *s;

	start_server(r, WAIT_MS, WAIT_MS, 10);
	s = client(r, 0);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	/* A session may leave out the last stage. */
	s = client(r, 0);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	ndx_session_close(s);
	while (get(&r->told.closed) < 2)
		;
	assert_int_equal(get(&r->told.staged), 4 + 3);
	assert_int_equal(get(&r->told.failed), 0);
	assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	assert_int_equal(stats.completed, 2);
	assert_int_equal(stats.failed, 0);
	stop_server(r);
}

static void *run_many(void *arg)
{
	struct rig *r = arg;
	uintptr_t failures = 0;

	for (int i = 0; i < CLIENTS / 4; i++) {
		struct ndx_session *s = client(r, 0);

		failures += ndx_session_run(s) != NDX_OK;
		ndx_session_close(s);
	}
	return (void *)failures;
}

static void many_clients_at_once_among_unknown_peers(void **state)
{
	struct rig *r = *state;
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	pthread_t threads[4];
	int sockets[20];

	start_server(r, WAIT_MS, WAIT_MS, 200);
	for (int i = 0; i < 20; i++) {
		sockets[i] = connect_socket(r);
		if (i % 2 == 0)
			assert_int_equal(send(sockets[i], "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_many, r), 0);
	for (int i = 0; i < 4; i++) {
		void *failures;

		assert_int_equal(pthread_join(threads[i], &failures), 0);
		assert_int_equal((uintptr_t)failures, 0);
	}
	for (int i = 0; i < 20; i++) {
		if (i % 2 == 0)
			expect_error(sockets[i], "speaks another protocol");
		else
			(void)close(sockets[i]);
	}
	/* A client may know before the server counts. */
	do {
		assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	} while (stats.completed < CLIENTS);
	stop_server(r);
}

struct flood {
	pthread_t thread;
	const struct rig *rig;
	bool welcome;     /* floods a session with frames, else what is said after the last words */
	uint32_t hurried; /* atomic: it has begun */
	uint32_t stop;    /* atomic */
};

/* The greeting of a client of variant "good". */
static size_t write_hello(uint8_t out[FRAME_HEADER + FRAME_HELLO_SIZE])
{
	const struct frame_hello hello = {
		.session = {1}, .max_message = MESSAGE, .plugin = "test", .variant = "good"};
	const struct frame f = {.type = FRAME_HELLO, .length = FRAME_HELLO_SIZE};

	(void)frame_write_hello(out + FRAME_HEADER, &hello);
	frame_write_header(out, &f);
	return FRAME_HEADER + FRAME_HELLO_SIZE;
}

/* Faster than the server reads, until it has had enough. */
static void *flood(void *arg)
{
	enum { FRAMES = 8192 };
	const struct frame alive = {.type = FRAME_ALIVE};
	struct flood *flood = arg;
	uint8_t *many = malloc((size_t)FRAMES * FRAME_HEADER);
	uint8_t hello[FRAME_HEADER + FRAME_HELLO_SIZE] = {0};
	const size_t length = flood->welcome ? write_hello(hello) : sizeof(hello);
	const int fd = connect_socket(flood->rig);

	assert_non_null(many);
	for (size_t i = 0; i < FRAMES; i++)
		frame_write_header(many + i * FRAME_HEADER, &alive);
	assert_int_equal(send(fd, hello, length, MSG_NOSIGNAL), (ssize_t)length);
	while (get(&flood->stop) == 0 && send(fd, many, (size_t)FRAMES * FRAME_HEADER,
	                                      MSG_NOSIGNAL) == (ssize_t)FRAMES * FRAME_HEADER)
		__atomic_store_n(&flood->hurried, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&flood->hurried, 1, __ATOMIC_SEQ_CST);
	(void)close(fd);
	free(many);
	return NULL;
}

/* A peer that never stops talking has its turn, and others have theirs. */
static void floods_delay_no_other_client(void **state)
{
	enum { FLOODS = 4 };
	struct rig *r = *state;
	struct flood floods[FLOODS];
	struct ndx_session *s;

	for (int round = 0; round < 4; round++) {
		start_server(r, WAIT_MS, WAIT_MS, 100);
		for (int i = 0; i < FLOODS; i++) {
			floods[i] = (struct flood){.rig = r, .welcome = round % 2 == 0};
			assert_int_equal(pthread_create(&floods[i].thread, NULL, flood, &floods[i]),
			                 0);
			while (get(&floods[i].hurried) == 0)
				;
		}
		s = client(r, 0);
		assert_int_equal(ndx_session_run(s), NDX_OK);
		ndx_session_close(s);
		for (int i = 0; i < FLOODS; i++) {
			__atomic_store_n(&floods[i].stop, 1, __ATOMIC_SEQ_CST);
			assert_int_equal(pthread_join(floods[i].thread, NULL), 0);
		}
		stop_server(r);
		r->told = (struct told){0};
	}
}

static void a_silent_client_is_refused_in_time(void **state)
{
	struct rig *r = *state;

	start_server(r, 60, WAIT_MS, 10);
	expect_error(connect_socket(r), "no hello in time");
	stop_server(r);
}

static void refusals_say_why(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s;

	start_server(r, WAIT_MS, WAIT_MS, 10);
	s = client(r, 3);
	assert_int_equal(ndx_session_run(s), NDX_E_NOT_FOUND);
	says("no variant test/spare here; ");
	says("test/good");
	ndx_session_close(s);
	add(&r->told.refuse);
	s = client(r, 0);
	assert_int_equal(ndx_session_run(s), NDX_E_REMOTE_ERROR);
	says("the server's program refuses the session: NDX_E_INSUFFICIENT_RESOURCES");
	ndx_session_close(s);
	stop_server(r);
}

static void endless_plugins_are_stopped(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s;

	start_server(r, WAIT_MS, WAIT_MS, 10);
	s = client(r, 2);
	assert_true(ndx_session_run(s) != NDX_OK);
	says("more rounds than allowed");
	ndx_session_close(s);
	stop_server(r);
	assert_int_equal(get(&r->told.failed), 1);
}

static void *run_info(void *session)
{
	return (void *)(intptr_t)ndx_session_execute(session, NDX_STAGE_INFO);
}

static void stuck_plugins_delay_no_other_client(void **state)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct rig *r = *state;
	struct ndx_session *held[6];
	pthread_t threads[6];
	void *ended;

	start_server(r, WAIT_MS, WAIT_MS, 100);
	/* More of them than threads. */
	for (int i = 0; i < 6; i++) {
		held[i] = client(r, 1);
		assert_int_equal(ndx_session_connect(held[i]), NDX_OK);
		assert_int_equal(pthread_create(&threads[i], NULL, run_info, held[i]), 0);
	}
	while (get(&stuck_calls) < 6)
		;
	assert_null(run_many(r));
	assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	assert_true(stats.threads > 6); /* and those stay at hand */
	add(&stuck_go);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(threads[i], &ended), 0);
		assert_int_equal((intptr_t)ended, NDX_OK);
		ndx_session_close(held[i]);
	}
	stop_server(r);
}

static void a_full_server_refuses(void **state)
{
	struct rig *r = *state;
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct ndx_session *s;
	int fds[2];

	start_server(r, WAIT_MS, WAIT_MS, 2);
	fds[0] = connect_socket(r);
	fds[1] = connect_socket(r);
	do {
		assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	} while (stats.accepted < 2);
	s = client(r, 0);
	assert_true(ndx_session_run(s) != NDX_OK);
	ndx_session_close(s);
	(void)close(fds[0]);
	(void)close(fds[1]);
	stop_server(r);
}

static void it_ends_with_sessions_in_every_state(void **state)
{
	struct rig *r = *state;

	for (int round = 0; round < 30; round++) {
		struct ndx_session *s[3];
		const int fd_idle = (start_server(r, WAIT_MS, WAIT_MS, 100), connect_socket(r));
		pthread_t thread;
		void *failures;

		for (int i = 0; i < 3; i++) {
			s[i] = client(r, 0);
			assert_int_equal(ndx_session_connect(s[i]), NDX_OK);
		}
		assert_int_equal(ndx_session_execute(s[1], NDX_STAGE_INFO), NDX_OK);
		assert_int_equal(pthread_create(&thread, NULL, run_many, r), 0);
		stop_server(r);
		assert_int_equal(pthread_join(thread, &failures), 0);
		for (int i = 0; i < 3; i++)
			ndx_session_close(s[i]);
		(void)close(fd_idle);
		r->told = (struct told){0};
	}
}

static void count_complaint(void *arg, const struct ndx_log_record *record)
{
	if (strstr(record->text, "no client is accepted") != NULL)
		add(arg);
}

/* Nor is the thread kept busy with it. */
static void a_client_without_a_descriptor_waits(void **state)
{
	struct rig *r = *state;
	uint32_t complaints = 0;
	struct rlimit before;
	int fd;

	ndx_log_set_sink(count_complaint, &complaints, NDX_LOG_ERROR);
	start_server(r, WAIT_MS, WAIT_MS, 10);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, before.rlim_max}), 0);
	join(r, fd);
	while (get(&complaints) == 0)
		;
	(void)poll(NULL, 0, 200);
	assert_int_equal(get(&complaints), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(send(fd, "?", 1, 0), 1);
	expect_error(fd, "speaks another protocol");
	stop_server(r);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
}

static void attributes_are_checked(void **state)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *server = NULL;
	struct rig *r = *state;

	ndx_negotiation_server_attr_init(&attr);
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_E_INVALID_PARAMETER);
	attr.address = "127.0.0.1:0";
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_E_INVALID_PARAMETER);
	says("there is no variant");
	attr.variants = r->variants;
	attr.variant_count = 1;
	attr.address = "127.0.0.1";
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_E_INVALID_ADDRESS);
	start_server(r, WAIT_MS, WAIT_MS, 1);
	attr.address = r->address;
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_E_SHARING_VIOLATION);
	assert_null(server);
	stop_server(r);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_client_and_the_server_go_through_all_stages),
		T(many_clients_at_once_among_unknown_peers),
		T(floods_delay_no_other_client),
		T(a_silent_client_is_refused_in_time),
		T(refusals_say_why),
		T(endless_plugins_are_stopped),
		T(stuck_plugins_delay_no_other_client),
		T(a_full_server_refuses),
		T(it_ends_with_sessions_in_every_state),
		T(a_client_without_a_descriptor_waits),
		T(attributes_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
