/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that break the protocol of queue pairs added to a session and removed from it: the session
 * ends with a text that says so, or the batch does, and nothing else. */
#include "many_raw.h"

#include <poll.h>
#include <unistd.h>

#include <ndx/log.h>

enum { BASE = 3, LONGEST = FRAME_ABANDON_SIZE_MAX + 1 };

/* ---- what is logged ---- */

static struct {
	unsigned refused; /* atomic: batches that are not added */
	unsigned rest;    /* atomic: the number of those that were left out */
} logged;

static void note_record(void *arg, const struct ndx_log_record *record)
{
	const char *more;

	(void)arg;
	if (strstr(record->text, "queue pairs are not added") != NULL)
		(void)__atomic_add_fetch(&logged.refused, 1, __ATOMIC_SEQ_CST);
	more = strstr(record->text, "negotiation server: ");
	if (more != NULL && strstr(more, "batches of queue pairs were not added") != NULL)
		(void)__atomic_add_fetch(&logged.rest, (unsigned)strtoul(more + 20, NULL, 10),
		                         __ATOMIC_SEQ_CST);
}

/* ---- a raw client ---- */

/* A server with a session of NDX beside the raw ones, which has connections. */
static void serve_both(struct rig *r)
{
	rig_run(r, 2);
	bare = true; /* the others have queue pairs of the plugin's own */
}

/* The session of NDX was there all the time, and can still do all. */
static void lives_on(struct rig *r)
{
	struct ndx_session_queue_pair list[MOST] = {{.connector = NULL}};
	uint32_t first = 0;

	all_last(r->a, r->count);
	all_last(r->b, r->count);
	assert_int_equal(ndx_session_add_queue_pairs(r->session, list, 3, &first), NDX_OK);
	assert_int_equal(ndx_session_remove_queue_pairs(r->session, first, 3), NDX_OK);
	for (uint32_t i = 0; i < r->count; i++)
		disconnect_both(&r->a[i], &r->b[i]);
	assert_int_equal(ndx_session_execute(r->session, NDX_STAGE_DONE), NDX_OK);
	rig_down(r);
	bare = false;
}

static void connects(struct raw *p, const struct rig *r)
{
	raw_connect(p, r, false);
	assert_int_equal(raw_begin(p, BASE, FRAME_ADDS), FRAME_ADDS);
}

/* The server has forgotten the `nth` raw session. */
static void is_over(struct rig *r, struct raw *p, int nth)
{
	raw_end(p, false);
	is_told(&r->closed, nth);
}

struct words {
	enum frame_type type;
	uint32_t numbers[4];
	uint32_t length; /* 0: that of the type */
	const char *text;
};

static uint32_t length_of(const struct words *w)
{
	if (w->length > 0)
		return w->length;
	return w->type == FRAME_ADD      ? FRAME_ADD_SIZE
	       : w->type == FRAME_REMOVE ? FRAME_REMOVE_SIZE
	                                 : 16;
}

static const char wrong_ones[] = "adds queue pairs at the wrong time, or wrong ones";
static const char cannot_add[] = "queue pairs that no session can add";
static const char cannot_remove[] = "queue pairs that no session has";
static const char not_there[] = "queue pairs that the session does not have are removed";
static const char not_asked[] = "gives up queue pairs that were not asked for";
static const char wrong_length[] = "payload of the wrong length";
static const char no_place[] = "a message that has no place here";

/* Each of these ends a session of three queue pairs. */
static const struct words wrong[] = {
	{FRAME_ADD, {2, BASE, 1}, 0, wrong_ones},
	{FRAME_ADD, {UINT32_MAX, BASE, 1}, 0, wrong_ones},
	{FRAME_ADD, {1, BASE + 1, 1}, 0, wrong_ones},
	{FRAME_ADD, {1, BASE - 1, 1}, 0, wrong_ones},
	{FRAME_ADD, {0, BASE, 1}, 0, cannot_add},
	{FRAME_ADD, {1, BASE, 0}, 0, cannot_add},
	{FRAME_ADD, {1, BASE, 1025}, 0, cannot_add},
	{FRAME_ADD, {1, BASE, UINT32_MAX}, 0, cannot_add},
	{FRAME_ADD, {1, 65535, 2}, 0, cannot_add},
	{FRAME_ADD, {1, UINT32_MAX, 2}, 0, cannot_add},
	{FRAME_ADD, {1, BASE}, 8, wrong_length},
	{FRAME_ADD, {1, BASE, 1}, FRAME_ADD_SIZE - 1, wrong_length},
	{FRAME_ADD, {1, BASE, 1}, FRAME_ADD_SIZE + 1, wrong_length},
	{FRAME_ADD, {1, BASE, 1}, MESSAGE + 1, "payload longer than the limit"},
	{FRAME_REMOVE, {BASE, 1}, 0, not_there},
	{FRAME_REMOVE, {BASE - 1, 2}, 0, not_there},
	{FRAME_REMOVE, {0, 1024}, 0, not_there},
	{FRAME_REMOVE, {0, 0}, 0, cannot_remove},
	{FRAME_REMOVE, {0, 1025}, 0, cannot_remove},
	{FRAME_REMOVE, {65535, 2}, 0, cannot_remove},
	{FRAME_REMOVE, {UINT32_MAX, 1}, 0, cannot_remove},
	{FRAME_REMOVE, {0}, 4, wrong_length},
	{FRAME_REMOVE, {0, 1}, FRAME_REMOVE_SIZE + 1, wrong_length},
	{FRAME_ABANDON, {1, FRAME_NO_QUEUE_PAIR, 3, 0}, 0, not_asked},
	{FRAME_ABANDON, {UINT32_MAX, 0, 3, 0}, 0, not_asked},
	{FRAME_ABANDON, {0, FRAME_NO_QUEUE_PAIR, 3, 0}, 0, cannot_add},
	{FRAME_ABANDON, {1, FRAME_INDICES, 3, 0}, 0, cannot_add},
	{FRAME_ABANDON, {1}, 4, wrong_length},
	{FRAME_ABANDON, {1, 0, 3}, 12, wrong_length},
	{FRAME_ABANDON, {1, 0, 3, 0}, LONGEST, wrong_length},
};

static void wrong_words_end_the_session(void **state)
{
	enum { COUNT = sizeof(wrong) / sizeof(wrong[0]) };
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	for (int i = 0; i < COUNT; i++) {
		connects(&p, &r);
		raw_say_numbers(&p, wrong[i].type, wrong[i].numbers, 4, length_of(&wrong[i]));
		raw_is_refused(&p, wrong[i].text);
		is_over(&r, &p, i + 1);
	}
	assert_int_equal(r.asked, 0); /* the program has heard of none of them */
	/* a session that is over is alive until a thread of the pool has freed it */
	for (int ms = 0; ms < WAIT_MS && stats.alive != 1; ms++) {
		assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(stats.failed, COUNT);
	assert_int_equal(stats.alive, 1);
	lives_on(&r);
}

/* Bytes of which the parser must not make a frame of the session. */
static void frames_of_another_form_end_the_session(void **state)
{
	static const struct {
		uint8_t at; /* byte of the header ... */
		uint8_t value;
		const char *text;
	} forms[] = {
		{4, FRAME_VERSION_NUMBERED, "a type of frame that is of no queue pair"},
		{7, 1, "unknown flag"},
		{13, 1, "reserved bytes are not zero"},
		{5, 13, "unknown type of frame"},
	};
	enum { COUNT = sizeof(forms) / sizeof(forms[0]) };
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	for (int i = 0; i < COUNT; i++) {
		const struct frame f = {.type = FRAME_ADD, .length = FRAME_ADD_SIZE};
		uint8_t bytes[FRAME_HEADER + FRAME_ADD_SIZE] = {[23] = 1, [27] = BASE, [31] = 1};

		connects(&p, &r);
		frame_write_header(bytes, &f);
		bytes[forms[i].at] = forms[i].value;
		raw_send(&p, bytes, sizeof(bytes));
		raw_is_refused(&p, forms[i].text);
		is_over(&r, &p, i + 1);
	}
	lives_on(&r);
}

/* Right words of which only the beginning comes, byte by byte. */
static void half_a_frame_ends_the_session_with_its_transport(void **state)
{
	const struct frame f = {.type = FRAME_ADD, .length = FRAME_ADD_SIZE};
	uint8_t bytes[FRAME_HEADER + FRAME_ADD_SIZE] = {[23] = 1, [27] = BASE, [31] = 1};
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	frame_write_header(bytes, &f);
	for (size_t k = 1; k < sizeof(bytes); k++) {
		connects(&p, &r);
		raw_send(&p, bytes, k);
		raw_end(&p, k % 2 == 0);
		is_told(&r.closed, (int)k);
	}
	assert_int_equal(r.asked, 0);
	lives_on(&r);
}

/* `what` while a batch is under way, after which the session has to end with `text`. */
static void meddles(struct rig *r, int nth, const struct words *what)
{
	struct raw p;

	connects(&p, r);
	raw_add(&p, 1, BASE, 2);
	p.batch = 1;
	raw_lanes(&p, BASE, 2, RAW_VALIDATE);
	raw_say_numbers(&p, what->type, what->numbers, 4, length_of(what));
	raw_is_refused(&p, what->text);
	is_over(r, &p, nth);
	assert_int_equal(r->asked, nth);
	assert_int_equal(r->not_added, nth); /* the program has its objects again */
}

static void one_batch_at_a_time(void **state)
{
	static const struct words list[] = {
		{FRAME_ADD, {2, BASE + 2, 1}, 0, no_place},
		{FRAME_ADD, {1, BASE, 2}, 0, no_place},
		{FRAME_REMOVE, {0, 1}, 0, no_place},
		{FRAME_REMOVE, {BASE, 2}, 0, no_place},
		{FRAME_ABANDON, {2, FRAME_NO_QUEUE_PAIR, 3, 0}, 0, not_asked},
		{FRAME_ABANDON, {1}, 4, wrong_length},
	};
	struct rig r;

	(void)state;
	serve_both(&r);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		meddles(&r, (int)i + 1, &list[i]);
	assert_int_equal(r.outcome, NDX_E_CONNECTION_ABORTED);
	lives_on(&r);
}

/* A batch ends at the client when the answer comes: the next one may be on its way before the
 * server's program knows of the first. */
static void a_batch_may_follow_at_once(void **state)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	connects(&p, &r);
	for (uint32_t i = 0; i < 20; i++) {
		raw_adds(&p, 2 * i + 1, BASE + 3 * i, 2);
		raw_add(&p, 2 * i + 2, BASE + 3 * i + 2, 1);
		raw_abandon(&p, 2 * i + 2);
		raw_remove(&p, BASE + 3 * i, 2);
	}
	raw_say(&p, &bye);
	is_over(&r, &p, 1);
	assert_int_equal(r.added, 20);
	assert_int_equal(r.removed, 40);
	lives_on(&r);
}

/* ---- removed, and given up ---- */

static void what_is_gone_is_not_removed_again(void **state)
{
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	connects(&p, &r);
	raw_adds(&p, 1, BASE, 2);
	raw_remove(&p, 1, 1);
	raw_remove(&p, 0, BASE); /* all of its queue pairs, but one is gone */
	raw_is_refused(&p, not_there);
	is_over(&r, &p, 1);
	assert_int_equal(r.removed, 1);
	connects(&p, &r);
	raw_adds(&p, 1, BASE, 2);
	raw_remove(&p, 0, BASE);
	raw_remove(&p, BASE, 2);
	raw_adds(&p, 2, BASE + 2, 1); /* a session that had none left */
	raw_remove(&p, BASE, 1);
	raw_is_refused(&p, not_there);
	is_over(&r, &p, 2);
	assert_int_equal(r.removed, 1 + 5);
	lives_on(&r);
}

/* Of three that were added `gone` is removed, and then the batch is given up. */
static void gives_up_the_rest(struct rig *r, struct raw *p, uint32_t gone)
{
	const uint32_t batch = gone + 1;
	const uint32_t first = BASE + 3 * gone;

	raw_adds(p, batch, first, 3);
	raw_remove(p, first + gone, 1);
	raw_abandon(p, batch);
	is_told(&r->removed, 3 * ((int)gone + 1));
}

static void a_batch_is_given_up_whole(void **state)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	connects(&p, &r);
	for (uint32_t gone = 0; gone < 3; gone++)
		gives_up_the_rest(&r, &p, gone);
	raw_adds(&p, 4, BASE + 9, 3);
	raw_abandon(&p, 4);
	raw_abandon(&p, 4); /* twice: of a batch that is over */
	raw_adds(&p, 5, BASE + 12, 3);
	raw_abandon(&p, 4); /* not the latest */
	raw_remove(&p, BASE + 12, 3);
	raw_abandon(&p, 5); /* none of it is left */
	raw_say(&p, &bye);
	is_over(&r, &p, 1);
	assert_int_equal(r.removed, 5 * 3);
	lives_on(&r);
}

/* What is on its way when the batch is given up, is discarded. */
static void answers_for_a_batch_that_was_given_up_are_discarded(void **state)
{
	static const enum raw_until steps[] = {RAW_INFO, RAW_VALIDATE, RAW_READY};
	const struct frame late[] = {
		{.type = FRAME_DATA, .numbered = true, .queue_pair = BASE + 1},
		{.type = FRAME_VALIDATE,
	         .stage = NDX_STAGE_VALIDATE,
	         .numbered = true,
	         .queue_pair = BASE},
		{.type = FRAME_PROOF,
	         .stage = NDX_STAGE_VALIDATE,
	         .numbered = true,
	         .queue_pair = BASE},
		{.type = FRAME_GOODBYE, .numbered = true, .queue_pair = BASE},
		{.type = FRAME_ALIVE,
	         .stage = NDX_STAGE_VALIDATE,
	         .numbered = true,
	         .queue_pair = BASE + 1},
	};
	const struct frame foreign = {
		.type = FRAME_DATA, .numbered = true, .queue_pair = BASE + 2 * 3 + 2};
	uint32_t first = BASE;
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	connects(&p, &r);
	for (uint32_t i = 0; i < 3; i++, first += 2) {
		raw_add(&p, 2 * i + 1, first, 2);
		p.batch = 2 * i + 1;
		raw_lanes(&p, first, 2, steps[i]);
		raw_abandon(&p, 2 * i + 1);
		for (size_t k = 0; k < sizeof(late) / sizeof(late[0]); k++)
			raw_say(&p, &late[k]);
		is_told(&r.not_added, (int)i + 1);
		raw_adds(&p, 2 * i + 2, first + 2, 1);
		first++;
	}
	assert_int_equal(first, BASE + 9);
	raw_say(&p, &foreign); /* the last one that there was */
	raw_adds(&p, 7, first, 1);
	raw_say(&p, &(struct frame){.type = FRAME_DATA, .numbered = true, .queue_pair = BASE + 10});
	raw_is_refused(&p, "a frame of a queue pair that the session does not have");
	is_over(&r, &p, 1);
	lives_on(&r);
}

/* Queue pairs are removed that are connected: they lose the transport that carries their goodbyes,
 * and can be disconnected and closed. */
static void what_is_connected_is_removed_all_the_same(void **state)
{
	const struct frame goodbye = {.type = FRAME_GOODBYE, .numbered = true, .queue_pair = 0};
	struct raw p;
	struct rig r;

	(void)state;
	rig_up(&r, BASE);
	connects(&p, &r);
	for (int i = 0; i < BASE; i++)
		watch(&r.b[i]);
	more_up(&r, 2);
	raw_adds(&p, 1, BASE, 2);
	is_told(&r.added, 1);
	watch(&r.more_b[0]);
	watch(&r.more_b[1]);
	raw_remove(&p, 0, 1);
	raw_remove(&p, BASE, 2);
	raw_say(&p, &goodbye); /* of none any more */
	is_told(&r.removed, 3);
	indicated(&r.b[0], NDX_DISCONNECT_ABORTED);
	indicated(&r.more_b[0], NDX_DISCONNECT_ABORTED);
	indicated(&r.more_b[1], NDX_DISCONNECT_ABORTED);
	all_last(&r.b[1], BASE - 1);
	more_down(&r);
	is_over(&r, &p, 1);
	rig_down(&r);
}

/* The same by giving up a batch that has ended. */
static void what_is_given_up_is_disconnected(void **state)
{
	struct raw p;
	struct rig r;

	(void)state;
	rig_up(&r, BASE);
	connects(&p, &r);
	for (int i = 0; i < BASE; i++)
		watch(&r.b[i]);
	more_up(&r, 3);
	raw_adds(&p, 1, BASE, 3);
	is_told(&r.added, 1);
	raw_remove(&p, BASE + 1, 1);
	raw_abandon(&p, 1);
	is_told(&r.removed, 3);
	all_last(r.b, BASE);
	more_down(&r); /* does not block */
	raw_remove(&p, 0, 1);
	is_told(&r.removed, 4);
	is_over(&r, &p, 1);
	rig_down(&r);
}

/* ---- the client leaves ---- */

static void words_of_the_whole_session_end_the_batch_with_it(void **state)
{
	static const struct words ends[] = {
		{.type = FRAME_SESSION_END}, {.type = FRAME_ERROR, .length = 8}, {.type = 0}};
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	for (int i = 0; i < 3; i++) {
		const struct frame f = {.type = ends[i].type,
		                        .payload = (const uint8_t *)"\3\0\0\0\377\377\377\377",
		                        .length = ends[i].length};

		connects(&p, &r);
		raw_add(&p, 1, BASE, 2);
		p.batch = 1;
		raw_lanes(&p, BASE, 2, RAW_READY);
		if (ends[i].type != 0)
			raw_say(&p, &f);
		raw_end(&p, ends[i].type == 0);
		is_told(&r.closed, i + 1);
		assert_int_equal(r.not_added, i + 1);
	}
	assert_int_equal(r.added, 0);
	lives_on(&r);
}

/* Stage done has begun for the client: then nothing is added. */
static void nothing_is_added_behind_stage_done(void **state)
{
	struct frame done = {.type = FRAME_DATA,
	                     .stage = NDX_STAGE_DONE,
	                     .flags = FRAME_COMPLETED,
	                     .numbered = true};
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	connects(&p, &r);
	for (done.queue_pair = 0; done.queue_pair < BASE; done.queue_pair++)
		raw_say(&p, &done);
	raw_add(&p, 1, BASE, 1);
	raw_is_refused(&p, wrong_ones);
	is_over(&r, &p, 1);
	lives_on(&r);
}

/* ---- refusals ---- */

/* Records of them must not fill a disk. */
static void refusals_are_logged_ten_times(void **state)
{
	enum { TIMES = 25 };
	struct raw p;
	struct rig r;

	(void)state;
	memset(&logged, 0, sizeof(logged));
	ndx_log_set_sink(note_record, NULL, NDX_LOG_WARN);
	rig_most = BASE + 4;
	serve_both(&r);
	connects(&p, &r);
	for (uint32_t i = 0; i < TIMES; i++) {
		raw_add(&p, i + 1, BASE + 5 * i, 5);
		raw_is_abandoned(&p, i + 1, "adds 5 queue pairs to 3, this server takes 7 at most");
	}
	assert_int_equal(__atomic_load_n(&logged.refused, __ATOMIC_SEQ_CST), 10);
	assert_int_equal(r.asked, 0);
	raw_adds(&p, TIMES + 1, BASE + 5 * TIMES, 4);
	is_over(&r, &p, 1);
	lives_on(&r);
	rig_most = 0;
	assert_int_equal(__atomic_load_n(&logged.rest, __ATOMIC_SEQ_CST), TIMES - 10);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
}

/* Refusals use up indices, and there is an end to them. */
static void indices_end(void **state)
{
	struct raw p;
	struct rig r;

	(void)state;
	serve_both(&r);
	connects(&p, &r);
	for (uint32_t i = 0; i < 63; i++) {
		raw_add(&p, i + 1, BASE + 1024 * i, 1024);
		raw_is_abandoned(&p, i + 1, "this server takes 64 at most");
	}
	raw_adds(&p, 64, BASE + 1024 * 63, 1);
	raw_add(&p, 65, BASE + 1024 * 63 + 1, 1024 - BASE - 1);
	raw_is_abandoned(&p, 65, "this server takes 64 at most");
	raw_add(&p, 66, FRAME_INDICES, 1);
	raw_is_refused(&p, cannot_add);
	is_over(&r, &p, 1);
	lives_on(&r);
}

/* A test that has failed leaves its choices behind. */
static int forget_the_last(void **state)
{
	(void)state;
	bare = false;
	rig_most = 0;
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, forget_the_last)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_words_end_the_session),
		TEST(frames_of_another_form_end_the_session),
		TEST(half_a_frame_ends_the_session_with_its_transport),
		TEST(one_batch_at_a_time),
		TEST(a_batch_may_follow_at_once),
		TEST(what_is_gone_is_not_removed_again),
		TEST(a_batch_is_given_up_whole),
		TEST(what_is_connected_is_removed_all_the_same),
		TEST(what_is_given_up_is_disconnected),
		TEST(answers_for_a_batch_that_was_given_up_are_discarded),
		TEST(words_of_the_whole_session_end_the_batch_with_it),
		TEST(nothing_is_added_behind_stage_done),
		TEST(refusals_are_logged_ten_times),
		TEST(indices_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
