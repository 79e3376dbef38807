/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server tells of its sessions: in each state, when there are many, while they come and go.
 */
#include "says.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/system.h>
#include "frame.h"
#include "server_view.h"

enum { WAIT_MS = 10000, MANY = 2 * SERVER_VIEW_STEP + 40 };

/* ---- the plugin ---- */

static uint32_t calls; /* atomic: calls of variant "slow" that wait, ... */
static uint32_t go;    /* ... until this is set; atomic */

static uint32_t get(const uint32_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static enum ndx_status talk(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)peer;
	(void)peer_length;
	memcpy(reply->data, "hallo", 5);
	reply->length = 5;
	reply->completed = x->round == 2;
	return NDX_OK;
}

static enum ndx_status talk_slowly(void *session, const struct ndx_exchange *x, const void *peer,
                                   size_t peer_length, struct ndx_exchange_reply *reply)
{
	if (x->role == NDX_ROLE_SERVER && x->round == 1) {
		(void)__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
		while (get(&go) == 0)
			(void)poll(NULL, 0, 1);
	}
	return talk(session, x, peer, peer_length, reply);
}

static const struct ndx_variant_ops good = {.info = talk, .ready = talk};
static const struct ndx_variant_ops slow = {.info = talk_slowly, .ready = talk};
static const struct ndx_plugin_variant list[] = {
	{.name = "good", .help = "", .ops = &good},
	{.name = "slow", .help = "", .ops = &slow},
};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(plugin),
                                         .name = "test",
                                         .version = "1",
                                         .vendor = "us",
                                         .list = list,
                                         .count = 2};

/* ---- the rig ---- */

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variants[2];
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	char address[32];
};

static int rig_begin(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct ndx_negotiation_server_attr attr;
	socklen_t length = sizeof(r->at);

	assert_non_null(r);
	__atomic_store_n(&go, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", list[i].name,
		                                             NULL, 0, &r->variants[i]),
		                 NDX_OK);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = r->variants;
	attr.variant_count = 2;
	attr.hello_timeout_ms = 6 * WAIT_MS;
	attr.workers = 1;
	attr.workers_most = 1;
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&r->at, &length),
		NDX_OK);
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(r->at.sin_port));
	*state = r;
	return 0;
}

static int rig_end(void **state)
{
	struct rig *r = *state;

	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	ndx_negotiation_server_close(r->server);
	for (int i = 0; i < 2; i++)
		ndx_variant_close(r->variants[i]);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	free(r);
	return 0;
}

static int connect_socket(const struct rig *r)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&r->at, sizeof(r->at)), 0);
	return fd;
}

/* A client that says hello, and what follows in `rest`, and then nothing. */
static int greet(const struct rig *r, const char *variant, unsigned messages)
{
	struct frame_hello hello = {
		.session = {0xab, 0xcd, 0xef}, .max_message = 1024, .plugin = "test"};
	struct frame f = {.type = FRAME_HELLO, .length = FRAME_HELLO_SIZE};
	uint8_t bytes[FRAME_HEADER + FRAME_HELLO_SIZE];
	static const uint8_t secret[] = {'s', 'e', 'c', 'r', 'e', 't', '!'};
	const int fd = connect_socket(r);

	(void)snprintf(hello.variant, sizeof(hello.variant), "%s", variant);
	(void)frame_write_hello(bytes + FRAME_HEADER, &hello);
	frame_write_header(bytes, &f);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	for (unsigned i = 0; i < messages; i++) {
		f = (struct frame){.type = FRAME_DATA, .round = i, .length = 7};
		frame_write_header(bytes, &f);
		memcpy(bytes + FRAME_HEADER, secret, sizeof(secret));
		assert_int_equal(send(fd, bytes, FRAME_HEADER + 7, 0), FRAME_HEADER + 7);
	}
	return fd;
}

/* Parsed; to be released. The text has no word of a session's messages, and not its cookie. */
static json_t *snapshot(const struct rig *r)
{
	char *text = NULL;
	json_error_t why;
	json_t *root;

	assert_int_equal(ndx_negotiation_server_snapshot(r->server, &text), NDX_OK);
	assert_null(strstr(text, "secret"));
	assert_null(strstr(text, "hallo"));
	assert_null(strstr(text, "cookie"));
	assert_null(strcasestr(text, "abcdef"));
	root = json_loads(text, 0, &why);
	assert_non_null(root);
	assert_int_equal(text[strlen(text) - 1], '\n');
	free(text);
	return root;
}

static json_t *sessions(const json_t *root)
{
	return json_object_get(root, "sessions");
}

static json_int_t waiting(const json_t *root, const char *what)
{
	return json_integer_value(json_object_get(json_object_get(sessions(root), "waits"), what));
}

/* The snapshot in which `count` sessions wait for `what`. */
static json_t *await(const struct rig *r, const char *what, json_int_t count)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		json_t *root = snapshot(r);

		if (waiting(root, what) == count)
			return root;
		json_decref(root);
		(void)poll(NULL, 0, 1);
	}
	fail_msg("there were never %d sessions that wait for \"%s\"", (int)count, what);
	return NULL;
}

static json_t *session_at(const json_t *root, size_t i)
{
	return json_array_get(json_object_get(sessions(root), "list"), i);
}

static void text_is(const json_t *of, const char *key, const char *text)
{
	const char *is = json_string_value(json_object_get(of, key));

	if (is == NULL || strcmp(is, text) != 0)
		fail_msg("%s is %s, not %s", key, is != NULL ? is : "null", text);
}

static json_int_t number(const json_t *of, const char *key)
{
	assert_true(json_is_integer(json_object_get(of, key)));
	return json_integer_value(json_object_get(of, key));
}

/* ---- the tests ---- */

static void arguments_are_checked(void **state)
{
	struct rig *r = *state;
	char *text = NULL;

	assert_int_equal(ndx_negotiation_server_snapshot(NULL, &text), NDX_E_INVALID_PARAMETER);
	says("ndx_negotiation_server_snapshot: NULL argument");
	assert_int_equal(ndx_negotiation_server_snapshot(r->server, NULL), NDX_E_INVALID_PARAMETER);
	assert_null(text);
}

static void an_empty_server_tells_its_limits(void **state)
{
	struct rig *r = *state;
	json_t *root = snapshot(r);

	assert_int_equal(number(root, "snapshot"), 1);
	text_is(root, "address", r->address);
	assert_int_equal(number(json_object_get(root, "limits"), "max_sessions"), 4096);
	assert_int_equal(number(json_object_get(root, "limits"), "max_waiting_per_address"), 2048);
	/* in plaintext there is nothing that they would save */
	assert_int_equal(number(json_object_get(root, "limits"), "max_handshakes_per_address"),
	                 NDX_NEGOTIATION_SERVER_NO_LIMIT);
	assert_int_equal(number(json_object_get(root, "limits"), "max_handshakes"),
	                 NDX_NEGOTIATION_SERVER_NO_LIMIT);
	assert_int_equal(number(json_object_get(root, "limits"), "max_memory_per_principal"), 0);
	assert_int_equal(number(json_object_get(root, "limits"), "hello_timeout_ms"), 6 * WAIT_MS);
	assert_int_equal(number(json_object_get(root, "pool"), "threads"), 1);
	assert_int_equal(number(sessions(root), "total"), 0);
	assert_int_equal(json_array_size(json_object_get(sessions(root), "list")), 0);
	json_decref(root);
}

static void each_wait_is_told(void **state)
{
	struct rig *r = *state;
	const int quiet = connect_socket(r);
	json_t *root = await(r, "hello", 1);
	const json_t *s = session_at(root, 0);
	int talker;
	int stuck;
	int queued;

	text_is(s, "waits_for", "hello");
	text_is(s, "state", "created");
	assert_true(json_is_null(json_object_get(s, "plugin")));
	assert_true(json_is_null(json_object_get(s, "stage")));
	assert_int_equal(strncmp(json_string_value(json_object_get(s, "client")), "127.0.0.1:", 10),
	                 0);
	json_decref(root);

	talker = greet(r, "good", 1);
	root = await(r, "peer", 1);
	s = session_at(root, 1);
	text_is(s, "waits_for", "peer");
	text_is(s, "plugin", "test");
	text_is(s, "variant", "good");
	text_is(s, "state", "exchanging");
	text_is(s, "stage", "info");
	json_decref(root);
	for (int ms = 0; ms < WAIT_MS; ms++) {
		root = snapshot(r);
		s = session_at(root, 1);
		if (number(s, "calls") == 2 && number(json_object_get(s, "sent"), "messages") == 2)
			break;
		json_decref(root);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(number(s, "round"), 1);
	assert_int_equal(number(json_object_get(s, "sent"), "bytes"), 10);
	assert_int_equal(number(json_object_get(s, "received"), "messages"), 1);
	assert_int_equal(number(json_object_get(s, "received"), "bytes"), 7);
	assert_true(json_is_null(json_object_get(s, "agreed")));
	json_decref(root);

	/* One thread: the first call has it, the second session waits for it. */
	stuck = greet(r, "slow", 1);
	while (get(&calls) == 0)
		(void)poll(NULL, 0, 1);
	queued = greet(r, "slow", 1);
	json_decref(await(r, "call", 1));
	(void)poll(NULL, 0, 30);
	root = await(r, "thread", 1);
	text_is(session_at(root, 2), "waits_for", "call");
	text_is(session_at(root, 3), "waits_for", "thread");
	assert_int_equal(number(session_at(root, 2), "round"), 1);
	assert_true(number(session_at(root, 2), "waits_us") >= 30000);
	assert_true(number(session_at(root, 2), "age_us") >=
	            number(session_at(root, 2), "waits_us"));
	assert_true(number(session_at(root, 0), "age_us") >= number(session_at(root, 3), "age_us"));
	assert_int_equal(number(json_object_get(root, "pool"), "queued"), 1);
	assert_int_equal(number(json_object_get(root, "pool"), "idle"), 0);
	json_decref(root);
	__atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
	json_decref(await(r, "peer", 3));
	(void)close(quiet);
	(void)close(talker);
	(void)close(stuck);
	(void)close(queued);
	root = await(r, "peer", 0);
	json_decref(root);
}

static void a_session_that_is_ready_has_its_agreement(void **state)
{
	struct rig *r = *state;
	const char *address = r->address;
	struct ndx_session_attr attr;
	struct ndx_session *s;
	json_t *root;

	ndx_session_attr_init(&attr);
	attr.variant = r->variants[0];
	attr.servers = &address;
	attr.server_count = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	root = await(r, "idle", 1);
	text_is(session_at(root, 0), "state", "connected");
	text_is(session_at(root, 0), "stage", "ready");
	assert_int_equal(number(json_object_get(session_at(root, 0), "agreed"), "mtu"), 0);
	assert_int_equal(number(json_object_get(root, "counters"), "completed"), 1);
	json_decref(root);
	ndx_session_close(s);
}

/* The list is cut; the counts are of all. Sessions are listed once, the oldest first. */
static void many_sessions_are_listed_up_to_a_limit(void **state)
{
	struct rig *r = *state;
	struct server_views views;
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_socket(r);
	json_decref(await(r, "hello", MANY));
	assert_int_equal(server_look(r->server, MANY - 1, &views), NDX_OK);
	assert_int_equal(views.total, MANY);
	assert_int_equal(views.count, MANY - 1);
	assert_int_equal(views.waits[SERVER_WAIT_HELLO], MANY);
	for (size_t i = 0; i < views.count; i++)
		assert_int_equal(views.list[i].id, i + 1);
	assert_null(views.list[0].steps); /* sessions are too many for that */
	server_forget(&views);
	assert_int_equal(server_look(r->server, 0, &views), NDX_OK);
	assert_int_equal(views.total, MANY);
	assert_int_equal(views.count, 0);
	server_forget(&views);
	for (int i = 0; i < MANY; i++)
		(void)close(fds[i]);
}

struct looker {
	pthread_t thread;
	const struct rig *rig;
	uint32_t stop;   /* atomic */
	uint32_t passes; /* atomic */
	uint32_t wrong;  /* atomic */
};

static void *look_on(void *arg)
{
	struct looker *l = arg;

	while (get(&l->stop) == 0) {
		struct server_views views;
		uint64_t before = 0;

		if (server_look(l->rig->server, MANY, &views) != NDX_OK)
			break;
		for (size_t i = 0; i < views.count; i++) {
			if (views.list[i].id <= before)
				(void)__atomic_add_fetch(&l->wrong, 1, __ATOMIC_SEQ_CST);
			before = views.list[i].id;
		}
		server_forget(&views);
		(void)__atomic_add_fetch(&l->passes, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void sessions_may_come_and_go_during_a_look(void **state)
{
	struct rig *r = *state;
	struct looker lookers[2] = {{.rig = r}, {.rig = r}};
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_socket(r);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&lookers[i].thread, NULL, look_on, &lookers[i]), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = round; i < MANY; i += 1 + round) {
			(void)close(fds[i]);
			fds[i] = connect_socket(r);
		}
	}
	for (int i = 0; i < 2; i++) {
		while (get(&lookers[i].passes) < 3)
			(void)poll(NULL, 0, 1);
		__atomic_store_n(&lookers[i].stop, 1, __ATOMIC_SEQ_CST);
		assert_int_equal(pthread_join(lookers[i].thread, NULL), 0);
		assert_int_equal(get(&lookers[i].wrong), 0);
	}
	for (int i = 0; i < MANY; i++)
		(void)close(fds[i]);
	json_decref(await(r, "hello", 0));
}

/* ---- turns ---- */

/* An event and a job that come again and again, as in a server with much to do. */
struct busy {
	struct ndx_loop *loop;
	struct ndxp_watch watch;
	struct ndxp_job job;
	uint32_t events; /* atomic */
	uint32_t stop;   /* atomic */
};

static void on_busy_event(void *arg, uint32_t events)
{
	struct busy *b = arg;

	(void)events;
	(void)__atomic_add_fetch(&b->events, 1, __ATOMIC_SEQ_CST);
}

/* Long enough for the look to ask for its next step. */
static void on_busy_job(void *arg)
{
	struct busy *b = arg;

	(void)poll(NULL, 0, 1);
	if (get(&b->stop) == 0)
		ndxp_loop_post(b->loop, &b->job);
}

static void busy_begin(void *arg)
{
	struct busy *b = arg;

	assert_int_equal(ndxp_watch_add(b->loop, &b->watch, EPOLLIN, false), NDX_OK);
	ndxp_loop_post(b->loop, &b->job);
}

static void busy_end(void *arg)
{
	struct busy *b = arg;

	__atomic_store_n(&b->stop, 1, __ATOMIC_SEQ_CST);
	ndxp_watch_remove(b->loop, &b->watch);
}

/* However many jobs the server's thread has, it looks at its sockets between two steps of a look.
 */
static void sessions_have_their_turn_between_two_steps(void **state)
{
	struct rig *r = *state;
	struct ndx_loop *loop = r->server->engine.loop;
	struct busy b = {.loop = loop, .watch = {.fn = on_busy_event}, .job = {.fn = on_busy_job}};
	struct server_views views;
	uint32_t turns;
	int fds[MANY];

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_socket(r);
	json_decref(await(r, "hello", MANY));
	b.watch.fd = ndxp_eventfd_create();
	assert_true(b.watch.fd >= 0);
	ndxp_eventfd_set(b.watch.fd);
	b.watch.arg = &b;
	b.job.arg = &b;
	ndxp_loop_call(loop, busy_begin, &b);
	turns = get(&b.events);
	assert_int_equal(server_look(r->server, MANY, &views), NDX_OK);
	turns = get(&b.events) - turns;
	ndxp_loop_call(loop, busy_end, &b);
	assert_true(turns >= 2); /* three steps */
	assert_int_equal(views.count, MANY);
	server_forget(&views);
	(void)close(b.watch.fd);
	for (int i = 0; i < MANY; i++)
		(void)close(fds[i]);
	json_decref(await(r, "hello", 0));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(arguments_are_checked),
		T(an_empty_server_tells_its_limits),
		T(each_wait_is_told),
		T(a_session_that_is_ready_has_its_agreement),
		T(many_sessions_are_listed_up_to_a_limit),
		T(sessions_may_come_and_go_during_a_look),
		T(sessions_have_their_turn_between_two_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
