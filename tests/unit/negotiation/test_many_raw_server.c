/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that break the protocol of queue pairs added to a session and removed from it, and peers
 * of an earlier version that do not know it. */
#include "many_raw.h"

#include <poll.h>
#include <unistd.h>

enum { BASE = 2, FEW = 2 };

/* A session of NDX with a server of NDX, which has connections; and one with a raw server. */
struct both {
	struct rig rig;
	struct ndx_session *good;
	struct raw p;
	int listener;
};

/* The raw server's session runs. */
static void meet(struct both *b, uint8_t flags)
{
	struct ndx_overlapped ov = {0};

	make_session(&b->rig);
	assert_int_equal(ndx_session_run_overlapped(b->rig.session, &ov), NDX_PENDING);
	raw_accept(&b->p, b->listener, flags);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
}

static void begin_both(struct both *b)
{
	rig_run(&b->rig, BASE);
	bare = true;
	b->good = b->rig.session;
	b->listener = raw_listen(&b->rig);
}

static void leave_raw(struct both *b)
{
	raw_end(&b->p, false);
	ndx_session_close(b->rig.session);
	b->rig.session = NULL;
}

/* The good session was there all the time, and can still do all. */
static void end(struct both *b)
{
	struct ndx_session_queue_pair list[3] = {{.connector = NULL}};
	struct rig *r = &b->rig;

	(void)close(b->listener);
	r->session = b->good;
	all_last(r->a, r->count);
	all_last(r->b, r->count);
	assert_int_equal(ndx_session_add_queue_pairs(r->session, list, 3, NULL), NDX_OK);
	for (uint32_t i = 0; i < r->count; i++)
		disconnect_both(&r->a[i], &r->b[i]);
	assert_int_equal(ndx_session_execute(r->session, NDX_STAGE_DONE), NDX_OK);
	rig_down(r);
	bare = false;
}

static void adds(struct both *b, struct ndx_overlapped *ov)
{
	static const struct ndx_session_queue_pair list[FEW];
	struct frame f;

	memset(ov, 0, sizeof(*ov));
	assert_int_equal(ndx_session_add_queue_pairs_overlapped(b->rig.session, list, FEW, ov),
	                 NDX_PENDING);
	raw_await(&b->p, FRAME_ADD, &f);
	assert_int_equal(f.length, FRAME_ADD_SIZE);
}

static void fails(struct both *b, struct ndx_overlapped *ov, enum ndx_status st, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_overlapped_wait(ov, WAIT_MS), st);
	assert_int_equal(ndx_session_get_add_error(b->rig.session, &e), NDX_OK);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
	assert_int_equal(e.status, st);
}

static void is_in(const struct both *b, enum ndx_session_state state)
{
	assert_int_equal(ndx_session_get_state(b->rig.session), state);
}

/* A batch that is added as it has to be. */
static void another_is_added(struct both *b, uint32_t batch, uint32_t first)
{
	struct ndx_overlapped ov;

	adds(b, &ov);
	b->p.batch = batch;
	raw_lanes(&b->p, first, FEW, RAW_ALL);
	raw_add(&b->p, batch, first, FEW);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
	assert_int_equal(ov.information, first);
}

/* ---- wrong words ---- */

struct words {
	enum frame_type type;
	uint32_t numbers[4];
	uint32_t length;
	const char *text;
};

static const char wrong_length[] = "payload of the wrong length";
static const char cannot_add[] = "queue pairs that no session can add";
static const char other_ones[] = "the server has added other queue pairs than it was asked for";
static const char not_asked[] = "the server has added queue pairs that were not asked for";
static const char no_place[] = "a message that has no place here";

/* Each of these ends the session while its first batch is under way. */
static const struct words wrong[] = {
	{FRAME_ADD, {2, BASE, FEW}, 12, not_asked},
	{FRAME_ADD, {UINT32_MAX, BASE, FEW}, 12, not_asked},
	{FRAME_ADD, {1, BASE + 1, FEW}, 12, other_ones},
	{FRAME_ADD, {1, BASE, FEW + 1}, 12, other_ones},
	{FRAME_ADD, {0, BASE, FEW}, 12, cannot_add},
	{FRAME_ADD, {1, BASE, 0}, 12, cannot_add},
	{FRAME_ADD, {1, BASE, 1025}, 12, cannot_add},
	{FRAME_ADD, {1, BASE, FEW}, 11, wrong_length},
	{FRAME_ADD, {1, BASE, FEW}, 13, wrong_length},
	{FRAME_REMOVE, {0, 1}, 8, no_place},
	{FRAME_ABANDON, {2, FRAME_NO_QUEUE_PAIR, 3, 0}, 16, "gives up queue pairs that were not"},
	{FRAME_ABANDON, {0, FRAME_NO_QUEUE_PAIR, 3, 0}, 16, cannot_add},
	{FRAME_ABANDON, {1, FRAME_INDICES, 3, 0}, 16, cannot_add},
	{FRAME_ABANDON, {1, 0}, 8, wrong_length},
	{FRAME_ABANDON, {1, 0, 3, 0}, 8 + FRAME_ERROR_SIZE_MAX + 1, wrong_length},
	{FRAME_ADD, {1, BASE, FEW}, MESSAGE + 1, "payload longer than the limit"},
};

static void wrong_words_end_the_session(void **state)
{
	static const enum raw_until steps[] = {RAW_INFO, RAW_VALIDATE, RAW_READY};
	struct ndx_overlapped ov;
	struct both b;

	(void)state;
	begin_both(&b);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		meet(&b, FRAME_ADDS);
		adds(&b, &ov);
		b.p.batch = 1;
		raw_lanes(&b.p, BASE, FEW, steps[i % 3]);
		raw_say_numbers(&b.p, wrong[i].type, wrong[i].numbers, 4, wrong[i].length);
		fails(&b, &ov, NDX_E_REMOTE_ERROR, wrong[i].text);
		is_in(&b, NDX_SESSION_FAILED);
		leave_raw(&b);
	}
	end(&b);
}

/* Between two calls of the client: the next one fails. */
static void wrong_words_between_two_calls_fail_the_next_one(void **state)
{
	static const struct words list[] = {
		{FRAME_ADD, {2, BASE + FEW, FEW}, 12, not_asked},
		{FRAME_ADD, {1, BASE, FEW}, 13, wrong_length},
		{FRAME_ABANDON, {2, FRAME_NO_QUEUE_PAIR, 3, 0}, 16, "were not asked for"},
		{FRAME_REMOVE, {0, 1}, 8, no_place},
	};
	struct ndx_session_error e = {.size = sizeof(e)};
	struct both b;

	(void)state;
	begin_both(&b);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		meet(&b, FRAME_ADDS);
		another_is_added(&b, 1, BASE);
		raw_say_numbers(&b.p, list[i].type, list[i].numbers, 4, list[i].length);
		assert_int_equal(ndx_session_execute(b.rig.session, NDX_STAGE_DONE),
		                 NDX_E_REMOTE_ERROR);
		assert_int_equal(ndx_session_get_error(b.rig.session, &e), NDX_OK);
		if (strstr(e.text, list[i].text) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.text, list[i].text);
		leave_raw(&b);
	}
	end(&b);
}

/* ---- words that are allowed ---- */

static void words_of_a_batch_that_is_over_are_ignored(void **state)
{
	struct ndx_overlapped ov;
	struct frame f;
	struct both b;

	(void)state;
	begin_both(&b);
	meet(&b, FRAME_ADDS);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t first = BASE + 2 * FEW * i;

		adds(&b, &ov);
		b.p.batch = 2 * i + 1;
		raw_lanes(&b.p, first, FEW, (enum raw_until)i);
		ndx_session_cancel(b.rig.session);
		fails(&b, &ov, NDX_E_CANCELED, "cancelled");
		is_in(&b, NDX_SESSION_CONNECTED);
		raw_is_abandoned(&b.p, 2 * i + 1, "cancelled");
		f = (struct frame){
			.type = FRAME_DATA, .numbered = true, .queue_pair = (uint16_t)first};
		raw_say(&b.p, &f);
		raw_add(&b.p, 2 * i + 1, first, FEW); /* both may cross */
		raw_abandon(&b.p, 2 * i + 1);
		another_is_added(&b, 2 * i + 2, first + FEW);
		raw_add(&b.p, 2 * i + 2, first + FEW, FEW); /* twice */
		raw_abandon(&b.p, 2 * i + 2);
	}
	assert_int_equal(ndx_session_remove_queue_pairs(b.rig.session, BASE + FEW, 1), NDX_OK);
	raw_await(&b.p, FRAME_REMOVE, &f);
	another_is_added(&b, 7, BASE + 6 * FEW);
	leave_raw(&b);
	end(&b);
}

static void a_server_may_give_up_in_any_stage(void **state)
{
	struct ndx_overlapped ov;
	struct both b;

	(void)state;
	begin_both(&b);
	meet(&b, FRAME_ADDS);
	for (uint32_t i = 0; i < 4; i++) {
		adds(&b, &ov);
		b.p.batch = i + 1;
		raw_lanes(&b.p, BASE + FEW * i, FEW, (enum raw_until)i);
		raw_abandon(&b.p, i + 1);
		fails(&b, &ov, NDX_E_REMOTE_ERROR, "the peer gave up: raw");
		is_in(&b, NDX_SESSION_CONNECTED);
	}
	another_is_added(&b, 5, BASE + 4 * FEW);
	leave_raw(&b);
	end(&b);
}

/* The server says that all is done before it is: the client still waits for the queue pairs. */
static void an_early_answer_is_not_the_end(void **state)
{
	struct ndx_overlapped ov;
	struct both b;

	(void)state;
	rig_stage_ms = 2000; /* also for what must succeed */
	begin_both(&b);
	meet(&b, FRAME_ADDS);
	adds(&b, &ov);
	b.p.batch = 1;
	raw_add(&b.p, 1, BASE, FEW);
	raw_lanes(&b.p, BASE, FEW, RAW_VALIDATE);
	fails(&b, &ov, NDX_E_IO_TIMEOUT, "time is over: 2 of 2 queue pairs have not ended");
	raw_is_abandoned(&b.p, 1, "time is over");
	another_is_added(&b, 2, BASE + FEW);
	/* ... and one that never says so */
	adds(&b, &ov);
	b.p.batch = 3;
	raw_lanes(&b.p, BASE + 2 * FEW, FEW, RAW_ALL);
	fails(&b, &ov, NDX_E_IO_TIMEOUT, "the server has not said that the stages have ended");
	raw_is_abandoned(&b.p, 3, "time is over");
	is_in(&b, NDX_SESSION_CONNECTED);
	leave_raw(&b);
	end(&b);
	rig_stage_ms = 0;
}

static void a_server_may_leave_in_any_stage(void **state)
{
	struct ndx_overlapped ov;
	struct both b;

	(void)state;
	begin_both(&b);
	for (unsigned i = 0; i < 8; i++) {
		meet(&b, FRAME_ADDS);
		adds(&b, &ov);
		b.p.batch = 1;
		raw_lanes(&b.p, BASE, FEW, (enum raw_until)(i / 2));
		raw_end(&b.p, i % 2 == 0);
		fails(&b, &ov, NDX_E_CONNECTION_ABORTED, "transport");
		is_in(&b, NDX_SESSION_FAILED);
		ndx_session_close(b.rig.session);
	}
	end(&b);
}

/* ---- peers of an earlier version ---- */

/* One that knows several queue pairs, and no more. */
static void an_old_server_is_asked_for_nothing(void **state)
{
	static const struct ndx_session_queue_pair list[FEW];
	static const char cannot[] = "the server's version of NDX, or its plugin "
				     "(NDX_PLUGIN_ADDS), neither adds nor removes queue pairs";
	struct ndx_overlapped ov = {0};
	struct frame f;
	struct both b;

	(void)state;
	begin_both(&b);
	meet(&b, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ndx_session_add_queue_pairs(b.rig.session, list, FEW, NULL),
		                 NDX_E_NOT_SUPPORTED);
		says(cannot);
		assert_int_equal(ndx_session_remove_queue_pairs(b.rig.session, 0, 1),
		                 NDX_E_NOT_SUPPORTED);
		says(cannot);
		is_in(&b, NDX_SESSION_CONNECTED);
	}
	assert_int_equal(ndx_session_execute_overlapped(b.rig.session, NDX_STAGE_DONE, &ov),
	                 NDX_PENDING);
	for (uint32_t i = 0; i < BASE; i++) {
		assert_true(raw_hear(&b.p, &f)); /* the first that it hears since then */
		assert_int_equal(f.type, FRAME_DATA);
		assert_int_equal(f.stage, NDX_STAGE_DONE);
		raw_say(&b.p, &f);
	}
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
	leave_raw(&b);
	end(&b);
}

/* To one that has not said that it adds, nothing is granted. */
static void an_old_client_lives_and_is_refused_what_it_does_not_know(void **state)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	static const enum frame_type types[] = {FRAME_ADD, FRAME_ABANDON, FRAME_REMOVE};
	static const uint32_t numbers[][4] = {{1, BASE, 1}, {1, FRAME_NO_QUEUE_PAIR, 3, 0}, {0, 1}};
	static const uint32_t lengths[] = {12, 16, 8};
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct raw p;
	struct rig r;

	(void)state;
	rig_run(&r, BASE);
	bare = true;
	raw_connect(&p, &r, false);
	assert_int_equal(raw_begin(&p, BASE, 0), 0);
	raw_say(&p, &bye);
	raw_end(&p, false);
	is_told(&r.closed, 1);
	assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
	assert_int_equal(stats.failed, 0);
	assert_int_equal(stats.completed, 2);
	for (int i = 0; i < 3; i++) {
		raw_connect(&p, &r, false);
		assert_int_equal(raw_begin(&p, BASE, 0), 0);
		raw_say_numbers(&p, types[i], numbers[i], 4, lengths[i]);
		raw_is_refused(&p, no_place);
		raw_end(&p, false);
		is_told(&r.closed, i + 2);
	}
	assert_int_equal(r.asked, 0);
	all_last(r.a, BASE);
	all_last(r.b, BASE);
	rig_down(&r);
}

/* A test that has failed leaves its choices behind. */
static int forget_the_last(void **state)
{
	(void)state;
	bare = false;
	rig_stage_ms = 0;
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, forget_the_last)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_words_end_the_session),
		TEST(wrong_words_between_two_calls_fail_the_next_one),
		TEST(words_of_a_batch_that_is_over_are_ignored),
		TEST(a_server_may_give_up_in_any_stage),
		TEST(an_early_answer_is_not_the_end),
		TEST(a_server_may_leave_in_any_stage),
		TEST(an_old_server_is_asked_for_nothing),
		TEST(an_old_client_lives_and_is_refused_what_it_does_not_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
