/* SPDX-License-Identifier: BSD-2-Clause */
/* NDX_PLUGIN_PROMPT: on which threads the functions of plugins run. */
#include <ndx/negotiation_server.h>
#include <ndx/session.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/system.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server.h"

static unsigned on_loops; /* atomic: calls on the thread of a loop, ... */
static unsigned on_pools; /* atomic: ... and on other threads */
static int dawdles;       /* atomic: one call takes long */

static void note_call(void)
{
	(void)__atomic_fetch_add(ndxp_loop_on_any() ? &on_loops : &on_pools, 1, __ATOMIC_SEQ_CST);
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)peer;
	(void)length;
	note_call();
	if (__atomic_exchange_n(&dawdles, 0, __ATOMIC_SEQ_CST) != 0)
		(void)poll(NULL, 0, 150);
	reply->completed = x->round == 1;
	return NDX_OK;
}

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)x;
	(void)peer;
	(void)length;
	note_call();
	reply->completed = true;
	return NDX_OK;
}

static enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **session,
                                     struct ndx_exchange_reply *reply)
{
	(void)x;
	(void)reply;
	note_call();
	*session = instance;
	return NDX_OK;
}

static void end_session(void *session)
{
	(void)session;
}

static const struct ndx_variant_ops ops = {
	.begin = begin_session, .end = end_session, .info = info, .ready = ready};
static const struct ndx_plugin_variant variant = {.name = "one", .help = "", .ops = &ops};

static const struct ndx_plugin_variant *used = &variant;

struct pair {
	struct ndx_plugin plugin;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	char address[32];
};

static void pair_up(struct pair *p, uint32_t flags,
                    const struct ndx_negotiation_server_events *events)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	p->plugin = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                                .size = sizeof(p->plugin),
	                                .name = "prompt",
	                                .version = "1",
	                                .vendor = "test",
	                                .flags = flags,
	                                .list = used,
	                                .count = 1};
	assert_int_equal(ndx_negotiation_create(&p->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(p->negotiation, &p->plugin), NDX_OK);
	assert_int_equal(ndx_negotiation_get_variant(p->negotiation, "prompt", used->name, NULL, 0,
	                                             &p->variant),
	                 NDX_OK);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &p->variant;
	attr.variant_count = 1;
	if (events != NULL)
		attr.events = *events;
	assert_int_equal(ndx_negotiation_server_create(&attr, &p->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(p->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(p->address, sizeof(p->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

static void pair_down(struct pair *p)
{
	ndx_negotiation_server_close(p->server);
	ndx_variant_close(p->variant);
	assert_int_equal(ndx_negotiation_close(p->negotiation), NDX_OK);
}

static void run_one(const struct pair *p)
{
	const char *const servers[] = {p->address};
	struct ndx_session_attr attr;
	struct ndx_session *session;

	__atomic_store_n(&on_loops, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&on_pools, 0, __ATOMIC_SEQ_CST);
	ndx_session_attr_init(&attr);
	attr.variant = p->variant;
	attr.servers = servers;
	attr.server_count = 1;
	assert_int_equal(ndx_session_create(&attr, &session), NDX_OK);
	assert_int_equal(ndx_session_run(session), NDX_OK);
	ndx_session_close(session);
	/* begin, two of info, ready; at each end */
	assert_int_equal(on_loops + on_pools, 8);
}

/* A call that takes 100 ms costs the privilege, also where the machine has stopped the thread.
 * Whether no call took so long is known of a run that took less as a whole; it is tried so often.
 */
enum { TRIES = 10, TOO_LONG_MS = 100 };

static bool run_took_long(const struct pair *p)
{
	const uint64_t began = ndxp_now_ns();

	run_one(p);
	return ndxp_now_ns() - began >= TOO_LONG_MS * UINT64_C(1000000);
}

static void only_prompt_plugins_run_on_the_sessions_thread(void **state)
{
	static const struct {
		uint32_t flags;
		unsigned on_loops;
	} cases[] = {
		{0, 0}, {NDX_PLUGIN_PROMPT, 8}, {NDX_PLUGIN_PROMPT | NDX_PLUGIN_ONE_AT_A_TIME, 0}};
	struct pair p;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool too_long = true;

		for (int n = 0; n < TRIES && too_long; n++) {
			pair_up(&p, cases[i].flags, NULL);
			too_long = run_took_long(&p) && on_loops != cases[i].on_loops;
			pair_down(&p);
		}
		assert_int_equal(on_loops, cases[i].on_loops);
	}
}

static void a_plugin_that_is_not_prompt_loses_the_privilege(void **state)
{
	struct pair p;

	(void)state;
	pair_up(&p, NDX_PLUGIN_PROMPT, NULL);
	__atomic_store_n(&dawdles, 1, __ATOMIC_SEQ_CST);
	run_one(&p);
	run_one(&p);
	assert_int_equal(on_loops, 0);
	pair_down(&p);
}

static int callbacks_on_loops; /* atomic */
static int callbacks;          /* atomic */

static void note_callback(void)
{
	(void)__atomic_fetch_add(&callbacks, 1, __ATOMIC_SEQ_CST);
	if (ndxp_loop_on_any())
		(void)__atomic_fetch_add(&callbacks_on_loops, 1, __ATOMIC_SEQ_CST);
}

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	(void)arg;
	(void)session;
	(void)resources;
	note_callback();
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	(void)arg;
	(void)session;
	(void)stage;
	note_callback();
}

static void on_closed(void *arg, struct ndx_session *session)
{
	(void)arg;
	(void)session;
	note_callback();
}

static void the_programs_callbacks_do_not(void **state)
{
	const struct ndx_negotiation_server_events events = {
		.open = on_open, .staged = on_staged, .closed = on_closed};
	bool too_long = true;
	struct pair p;

	(void)state;
	for (int n = 0; n < TRIES && too_long; n++) {
		const uint64_t end = ndxp_deadline(10000);

		__atomic_store_n(&callbacks, 0, __ATOMIC_SEQ_CST);
		pair_up(&p, NDX_PLUGIN_PROMPT, &events);
		too_long = run_took_long(&p) && on_pools != 2;
		/* a server that is closed calls back for no stage any more */
		while (__atomic_load_n(&callbacks, __ATOMIC_SEQ_CST) < 5 && ndxp_now_ns() < end)
			(void)sched_yield();
		pair_down(&p);
	}
	assert_int_equal(callbacks, 5);
	assert_int_equal(callbacks_on_loops, 0);
	/* the server's first call comes with `open` */
	assert_int_equal(on_pools, 2);
}

/* ---- turns ---- */

enum { ROUNDS = 12, TALKERS = 2 };

static char turns[TALKERS * ROUNDS + 1]; /* whose calls, in order; the loop's thread */
static size_t turn_count;

static enum ndx_status info_in_turn(void *session, const struct ndx_exchange *x, const void *peer,
                                    size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	if (length == 1 && turn_count < TALKERS * ROUNDS)
		turns[turn_count++] = *(const char *)peer;
	reply->completed = x->round == ROUNDS;
	return NDX_OK;
}

static const struct ndx_variant_ops turn_ops = {.info = info_in_turn, .ready = ready};
static const struct ndx_plugin_variant turn_variant = {
	.name = "turns", .help = "", .ops = &turn_ops};

/* All that a client has to say up to the end of stage info, without a wait for the server. */
static int talk(const struct sockaddr_in *to, char name)
{
	uint8_t bytes[FRAME_HEADER + FRAME_HELLO_SIZE_MAX] = {0};
	struct frame_hello hello = {.max_message = 1024, .queue_pairs = 1};
	struct frame f = {.type = FRAME_HELLO};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(hello.session, name, sizeof(hello.session));
	(void)snprintf(hello.plugin, sizeof(hello.plugin), "prompt");
	(void)snprintf(hello.variant, sizeof(hello.variant), "turns");
	f.length = frame_write_hello(bytes + FRAME_HEADER, &hello);
	frame_write_header(bytes, &f);
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) != 0 ||
	    send(fd, bytes, FRAME_HEADER + f.length, 0) < 0)
		return -1;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		f = (struct frame){.type = FRAME_DATA, .round = round, .length = 1};
		f.flags = round + 1 == ROUNDS ? FRAME_COMPLETED : 0;
		frame_write_header(bytes, &f);
		bytes[FRAME_HEADER] = (uint8_t)name;
		if (send(fd, bytes, FRAME_HEADER + 1, 0) < 0)
			return -1;
	}
	return fd;
}

struct talkers {
	struct sockaddr_in to;
	int fds[TALKERS];
};

/* On the loop's thread, which has seen nothing of them before all have spoken. */
static void talk_both(void *arg)
{
	struct talkers *t = arg;

	for (int i = 0; i < TALKERS; i++)
		t->fds[i] = talk(&t->to, (char)('a' + i));
}

static void count_turns(void *arg)
{
	*(size_t *)arg = turn_count;
}

static void one_session_does_not_keep_the_others_waiting(void **state)
{
	struct talkers t = {.fds = {-1, -1}};
	socklen_t length = sizeof(t.to);
	size_t count = 0;
	struct pair p;

	(void)state;
	used = &turn_variant;
	pair_up(&p, NDX_PLUGIN_PROMPT, NULL);
	used = &variant;
	assert_int_equal(
		ndx_negotiation_server_get_address(p.server, (struct sockaddr *)&t.to, &length),
		NDX_OK);
	ndxp_loop_call(p.server->engine.loop, talk_both, &t);
	for (int ms = 0; ms < 10000 && count < TALKERS * ROUNDS; ms++) {
		(void)poll(NULL, 0, 1);
		ndxp_loop_call(p.server->engine.loop, count_turns, &count);
	}
	pair_down(&p);
	for (int i = 0; i < TALKERS; i++)
		(void)close(t.fds[i]);
	assert_int_equal(count, TALKERS * ROUNDS);
	/* The second has had calls before the first has had all of them. */
	if (strchr(turns, 'b') > strrchr(turns, 'a'))
		fail_msg("%s", turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_prompt_plugins_run_on_the_sessions_thread),
		cmocka_unit_test(a_plugin_that_is_not_prompt_loses_the_privilege),
		cmocka_unit_test(the_programs_callbacks_do_not),
		cmocka_unit_test(one_session_does_not_keep_the_others_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
