/* SPDX-License-Identifier: BSD-2-Clause */
/* When queue pairs can be added to a session, what binds them to it, and what they cost. */
#include "many_rig.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <ndx/spi/system.h>

enum { FEW = 5 };

static void there_is_a_time_for_it(void **state)
{
	struct ndx_session_queue_pair list[2] = {{.connector = NULL}};
	struct rig r;

	(void)state;
	rig_up(&r, 2);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_session_connect(r.session), NDX_OK);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_INFO), NDX_OK);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_session_remove_queue_pairs(r.session, 0, 1),
	                 NDX_E_INVALID_DEVICE_STATE);
	says("queue pairs are removed after stage ready");
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_VALIDATE), NDX_OK);
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_READY), NDX_OK);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 0, NULL),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, NULL, 2, NULL),
	                 NDX_E_INVALID_PARAMETER);
	list[1].connector = r.a[0].connector;
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
	                 NDX_E_INVALID_PARAMETER);
	list[1].connector = NULL;
	r.session->many->adds = false; /* as a server of an earlier version says */
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
	                 NDX_E_NOT_SUPPORTED);
	assert_int_equal(ndx_session_remove_queue_pairs(r.session, 0, 1), NDX_E_NOT_SUPPORTED);
	r.session->many->adds = true;
	assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
	                 NDX_E_INVALID_DEVICE_STATE);
	rig_down(&r);
	rig_up(&r, 1);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
	                 NDX_E_NOT_SUPPORTED);
	rig_down(&r);
}

/* A plugin at one of the ends does not know of queue pairs that come and go. */
static void without_the_flag_of_both_plugins_nothing_changes(void **state)
{
	struct ndx_session_queue_pair list[2] = {{.connector = NULL}};
	struct rig r;

	(void)state;
	for (still = 0; still < 2; still++) {
		const char *const text = still == 0 ? "plugin \"same\", variant \"as-it-is\", takes"
		                                    : "the server's version of NDX, or its plugin";

		rig_run(&r, 2);
		disconnect_both(&r.a[1], &r.b[1]);
		assert_int_equal(ndx_session_add_queue_pairs(r.session, list, 2, NULL),
		                 NDX_E_NOT_SUPPORTED);
		says(text);
		assert_int_equal(ndx_session_remove_queue_pairs(r.session, 1, 1),
		                 NDX_E_NOT_SUPPORTED);
		says(text);
		assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_CONNECTED);
		assert_int_equal(ndx_session_get_queue_pair_count(r.session), 2);
		all_last(r.a, 1);
		all_last(r.b, 1);
		rig_down(&r);
		assert_int_equal(r.asked, 0);
		assert_int_equal(r.removed, 0);
	}
	still = -1;
}

/* In `open`, or in `open_many`. */
static void a_refusal_of_the_program_counts(void **state)
{
	static const char *const what[] = {"the session", "2 queue pairs"};
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		char text[128];
		struct rig r;

		rig_up(&r, i + 1);
		r.refuses = NDX_E_INSUFFICIENT_RESOURCES;
		assert_int_equal(ndx_session_run(r.session), NDX_E_REMOTE_ERROR);
		(void)snprintf(text, sizeof(text), "the server's program refuses %s: %s", what[i],
		               ndx_status_name(r.refuses));
		says(text);
		assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
		assert_int_equal(stats.refused, 1);
		rig_down(&r);
	}
}

static void together_they_are_1024_at_most(void **state)
{
	static struct ndx_session_queue_pair list[NDX_SESSION_QUEUE_PAIRS_MOST + 1];
	struct rig r;

	(void)state;
	bare = true;
	rig_run(&r, 2);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list,
	                                             NDX_SESSION_QUEUE_PAIRS_MOST + 1, NULL),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_add_queue_pairs(r.session, list,
	                                             NDX_SESSION_QUEUE_PAIRS_MOST - 1, NULL),
	                 NDX_E_INSUFFICIENT_RESOURCES);
	says("the session has 2 queue pairs, and 1024 is the most");
	assert_int_equal(r.asked, 0);
	rig_down(&r);
	bare = false;
}

struct said {
	struct ndx_session *session;
	enum ndx_status st;
	struct ndx_session_error error; /* of the session, then */
};

/* On the loop thread: as if that much waited for the peer. */
static void say_behind_much(void *arg)
{
	const struct frame f = {.type = FRAME_REMOVE};
	struct said *said = arg;
	struct ndx_session *s = said->session;

	s->many->out_length += (size_t)5 << 20;
	said->st = many_queue(s, &f);
	many_say(s, &f, "no memory");
	s->many->out_length -= (size_t)5 << 20;
	said->error = s->dialogue.error;
}

static void a_peer_that_does_not_read_is_no_lack_of_memory(void **state)
{
	struct said said = {.st = NDX_OK};
	struct rig r;

	(void)state;
	bare = true;
	rig_run(&r, 2);
	said.session = r.session;
	ndxp_loop_call(r.session->driver.engine->loop, say_behind_much, &said);
	assert_int_equal(said.st, NDX_E_REMOTE_ERROR);
	assert_int_equal(said.error.status, NDX_E_REMOTE_ERROR);
	assert_string_equal(said.error.text, "the peer does not read: more than 4 MiB wait for it");
	rig_down(&r);
	bare = false;
}

/* ---- the table ---- */

enum { SOME = 8, OTHERS = 1016 };

struct asker {
	pthread_t thread;
	const struct ndx_session *session;
	uint32_t index;
	int ends;            /* atomic */
	unsigned long times; /* how often it has asked */
	enum ndx_status st;  /* of the first that fails */
};

static void *ask(void *arg)
{
	struct asker *a = arg;

	while (__atomic_load_n(&a->ends, __ATOMIC_SEQ_CST) == 0 && a->st == NDX_OK) {
		struct ndx_agreement agreed;

		a->st = ndx_session_get_queue_pair_agreement(a->session, a->index, NULL, NULL,
		                                             &agreed);
		a->times++;
	}
	return NULL;
}

/* Its place is not its index, so that it is searched among all, also the new ones. */
static void one_that_lives_is_found_while_others_are_added(void **state)
{
	static struct ndx_session_queue_pair list[OTHERS];
	struct asker a = {.index = SOME - 1};
	uint32_t first = 0;
	struct rig r;

	(void)state;
	bare = true;
	rig_most = SOME + OTHERS;
	rig_run(&r, SOME);
	assert_int_equal(ndx_session_remove_queue_pairs(r.session, 0, SOME / 2), NDX_OK);
	a.session = r.session;
	assert_int_equal(pthread_create(&a.thread, NULL, ask, &a), 0);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(ndx_session_add_queue_pairs(r.session, list, OTHERS, &first),
		                 NDX_OK);
		assert_int_equal(ndx_session_remove_queue_pairs(r.session, first, OTHERS), NDX_OK);
	}
	__atomic_store_n(&a.ends, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_int_equal(a.st, NDX_OK);
	assert_true(a.times > 0);
	rig_down(&r);
	rig_most = 0;
	bare = false;
}

/* ---- TLS ---- */

static const struct ndx_session *victim;

static enum ndx_status mistake_the_batch(const struct ndx_exchange *x)
{
	struct lane *lane;

	if (x->role != NDX_ROLE_CLIENT || x->round != 1)
		return NDX_OK;
	lane = many_find(victim->many, x->queue_pair);
	assert_int_equal(lane->s.dialogue.binding.batch, 2);
	lane->s.dialogue.binding.batch = 1;
	return NDX_OK;
}

static void a_mac_is_of_one_batch(void **state)
{
	static const char key[] = "many:00112233445566778899aabbccddeeff\n";
	char file[] = "/tmp/ndx-many-XXXXXX";
	const int fd = mkstemp(file);
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_tls_attr tls;
	enum ndx_status st;
	struct rig r;

	(void)state;
	assert_int_equal(write(fd, key, sizeof(key) - 1), sizeof(key) - 1);
	(void)close(fd);
	ndx_tls_attr_init(&tls);
	tls.psk_file = file;
	tls_server = tls_client = &tls;
	most_queue_pairs = 2 + 4; /* those that are gone do not count */
	rig_run(&r, 2);
	victim = r.session;
	more_up(&r, 4);
	assert_int_equal(more_add(&r, NULL), NDX_OK);
	more_end(&r);
	more_up(&r, 1);
	st = more_add(&r, NULL);
	assert_int_equal(st, NDX_E_REMOTE_ERROR);
	assert_non_null(strstr(ndx_last_error(), "more than 6 queue pairs"));
	is_told(&r.not_added, 1);
	/* these count sessions */
	assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
	assert_int_equal(stats.refused, 0);
	assert_int_equal(stats.refused_principals, 0);
	more_down(&r);
	assert_int_equal(ndx_session_remove_queue_pairs(r.session, 2, 4), NDX_OK);
	is_told(&r.removed, 4);
	more_up(&r, 4);
	assert_int_equal(more_add(&r, NULL), NDX_OK);
	more_end(&r);
	rig_down(&r);
	most_queue_pairs = 0;

	rig_run(&r, 2);
	victim = r.session;
	more_up(&r, 1);
	assert_int_equal(more_add(&r, NULL), NDX_OK);
	more_end(&r);
	rig_deed = mistake_the_batch;
	more_up(&r, FEW);
	assert_int_not_equal(more_add(&r, NULL), NDX_OK);
	rig_deed = NULL;
	assert_int_equal(ndx_session_get_add_error(r.session, &e), NDX_OK);
	assert_non_null(strstr(e.text, "wrong MAC"));
	assert_int_equal(e.of_queue_pair, 1);
	assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_CONNECTED);
	is_told(&r.not_added, 1);
	another_batch_is_added(&r, FEW);
	rig_down(&r);
	tls_server = tls_client = NULL;
	(void)unlink(file);
}

/* ---- memory ---- */

static void memory_does_not_grow(void **state)
{
	enum { ROUNDS = 1000, WARM = 100 };
	struct ndx_session_queue_pair list[MOST] = {{.connector = NULL}};
	size_t before = 0;
	uint32_t first = 0;
	uint64_t end;
	struct rig r;

	(void)state;
	bare = true; /* queue pairs of the plugin's own: the memory is that of the session alone */
	rig_run(&r, 2);
	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(ndx_session_add_queue_pairs(r.session, list, MOST, &first),
		                 NDX_OK);
		assert_int_equal(first, 2 + MOST * i);
		assert_int_equal(ndx_session_remove_queue_pairs(r.session, first, MOST), NDX_OK);
		if (i == WARM) {
			is_told(&r.removed, MOST * (i + 1));
			before = mallinfo2().uordblks;
		}
	}
	is_told(&r.removed, MOST * ROUNDS);
	end = ndxp_deadline(10000);
	/* One queue pair that stays in each round would be 4 MB. The server frees the last ones a
	 * moment after it has told. */
	while (mallinfo2().uordblks >= before + 100000 && ndxp_now_ns() < end)
		(void)sched_yield();
	assert_true(mallinfo2().uordblks < before + 100000);
	assert_int_equal(ndx_session_get_queue_pair_count(r.session), 2);
	rig_down(&r);
	bare = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_a_time_for_it),
		cmocka_unit_test(without_the_flag_of_both_plugins_nothing_changes),
		cmocka_unit_test(a_refusal_of_the_program_counts),
		cmocka_unit_test(together_they_are_1024_at_most),
		cmocka_unit_test(a_peer_that_does_not_read_is_no_lack_of_memory),
		cmocka_unit_test(one_that_lives_is_found_while_others_are_added),
		cmocka_unit_test(a_mac_is_of_one_batch),
		cmocka_unit_test(memory_does_not_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
