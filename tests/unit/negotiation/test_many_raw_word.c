/* SPDX-License-Identifier: BSD-2-Clause */
/* The word with which a server gives up queue pairs that are added: what the client makes of it,
 * and that the client waits for it. */
#include "many_raw.h"

#include <poll.h>
#include <unistd.h>

#include <ndx/spi/system.h>

enum { BASE = 2, FEW = 2, LATER_MS = 150 };

/* A session with a raw server. The queue pairs of the session are the plugin's own. */
struct pair {
	struct rig rig;
	struct raw p;
	int listener;
};

static bool connected; /* the session of the next pair has queue pairs of its own */

static void meet(struct pair *b)
{
	struct ndx_overlapped ov = {0};

	rig_up(&b->rig, BASE);
	ndx_session_close(b->rig.session);
	b->listener = raw_listen(&b->rig);
	bare = !connected;
	make_session(&b->rig);
	bare = false;
	assert_int_equal(ndx_session_run_overlapped(b->rig.session, &ov), NDX_PENDING);
	raw_accept(&b->p, b->listener, FRAME_ADDS);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
}

static void leave_raw(struct pair *b)
{
	raw_end(&b->p, false);
	(void)close(b->listener);
	rig_down(&b->rig);
}

static void add_begins(struct pair *b, const struct ndx_session_queue_pair *list,
                       struct ndx_overlapped *ov)
{
	struct frame f;

	memset(ov, 0, sizeof(*ov));
	assert_int_equal(ndx_session_add_queue_pairs_overlapped(b->rig.session, list, FEW, ov),
	                 NDX_PENDING);
	raw_await(&b->p, FRAME_ADD, &f);
}

static void gives_up(struct pair *b, uint32_t batch, uint8_t layer, int32_t status)
{
	const struct frame_abandon w = {
		.batch = batch,
		.queue_pair = FRAME_NO_QUEUE_PAIR,
		.error = {.layer = layer, .status = status, .text = "what the server says"}};
	uint8_t payload[FRAME_ABANDON_SIZE_MAX];
	const struct frame f = {.type = FRAME_ABANDON,
	                        .payload = payload,
	                        .length = frame_write_abandon(payload, &w)};

	raw_say(&b->p, &f);
}

static void has_failed(const struct pair *b, enum ndx_status st, enum ndx_error_layer layer,
                       bool remote, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_session_get_add_error(b->rig.session, &e), NDX_OK);
	assert_int_equal(e.status, st);
	assert_int_equal(e.layer, layer);
	assert_int_equal(e.remote, remote);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
}

/* ---- what the words mean ---- */

static void a_word_has_its_status(void **state)
{
	static const struct {
		uint8_t layer;
		int32_t status;
		enum ndx_error_layer client_layer;
		enum ndx_status client_status;
	} rows[] = {
		/* what the peer cannot do will not change */
		{NDX_LAYER_FRAMEWORK, NDX_E_NOT_SUPPORTED, NDX_LAYER_FRAMEWORK,
	         NDX_E_NOT_SUPPORTED},
		{NDX_LAYER_PLUGIN, NDX_E_NOT_SUPPORTED, NDX_LAYER_PLUGIN, NDX_E_NOT_SUPPORTED},
		{NDX_LAYER_PROVIDER, NDX_E_NOT_SUPPORTED, NDX_LAYER_PROVIDER, NDX_E_NOT_SUPPORTED},
		/* the verdict on the path is of both ends */
		{NDX_LAYER_PROVIDER, NDX_E_ACCESS_VIOLATION, NDX_LAYER_PROVIDER,
	         NDX_E_ACCESS_VIOLATION},
		/* not of the path */
		{NDX_LAYER_PLUGIN, NDX_E_ACCESS_VIOLATION, NDX_LAYER_PLUGIN, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_FRAMEWORK, NDX_E_ACCESS_VIOLATION, NDX_LAYER_FRAMEWORK,
	         NDX_E_REMOTE_ERROR},
		/* what the server has met is no failure of the client's */
		{NDX_LAYER_PROVIDER, NDX_E_CONNECTION_REFUSED, NDX_LAYER_PROVIDER,
	         NDX_E_REMOTE_ERROR},
		{NDX_LAYER_FRAMEWORK, NDX_E_IO_TIMEOUT, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_TRANSPORT, NDX_E_CANCELED, NDX_LAYER_TRANSPORT, NDX_E_REMOTE_ERROR},
		/* a word that says nothing, or what a later version means */
		{NDX_LAYER_PROVIDER, NDX_OK, NDX_LAYER_PROVIDER, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_PROVIDER, -9999, NDX_LAYER_PROVIDER, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_PROVIDER, INT32_MAX, NDX_LAYER_PROVIDER, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_PROVIDER, INT32_MIN, NDX_LAYER_PROVIDER, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_NONE, NDX_E_ACCESS_VIOLATION, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR},
		{NDX_LAYER_PROVIDER + 1, NDX_E_ACCESS_VIOLATION, NDX_LAYER_FRAMEWORK,
	         NDX_E_REMOTE_ERROR},
		{UINT8_MAX, -9999, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR},
	};
	static const struct ndx_session_queue_pair list[FEW];
	const uint32_t count = sizeof(rows) / sizeof(rows[0]);
	struct ndx_overlapped ov;
	struct pair b;

	(void)state;
	meet(&b);
	for (uint32_t i = 0; i < count; i++) {
		add_begins(&b, list, &ov);
		gives_up(&b, i + 1, rows[i].layer, rows[i].status);
		assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), rows[i].client_status);
		has_failed(&b, rows[i].client_status, rows[i].client_layer, true,
		           "the peer gave up: what the server says");
		assert_int_equal(ndx_session_get_state(b.rig.session), NDX_SESSION_CONNECTED);
	}
	leave_raw(&b);
}

/* ---- the client waits for them ---- */

/* The client waits a second. A step that comes later than this after the failure, because the
 * machine has stopped the test, says nothing: it is repeated. */
enum { IN_TIME_MS = 700, TRIES = 10 };

static uint64_t refused_ns; /* not later than the failure */

static bool is_in_time(void)
{
	return ndxp_now_ns() - refused_ns < IN_TIME_MS * UINT64_C(1000000);
}

static void still_waits(const struct ndx_overlapped *ov)
{
	(void)poll(NULL, 0, LATER_MS);
	if (ndx_overlapped_status(ov) != NDX_PENDING)
		assert_false(is_in_time());
}

/* The attempts of the client's queue pairs are refused: no such end listens. */
static void is_refused(struct pair *b, uint32_t batch, struct ndx_overlapped *ov)
{
	struct ndx_session_queue_pair list[MOST];

	more_down(&b->rig);
	more_up(&b->rig, FEW);
	more_list(&b->rig, list);
	add_begins(b, list, ov);
	b->p.batch = batch;
	refused_ns = ndxp_now_ns();
	raw_lanes(&b->p, BASE + FEW * (batch - 1), FEW, RAW_INFO_ALL);
	still_waits(ov);
}

static void a_word_that_comes_late_is_the_cause(void **state)
{
	struct ndx_overlapped ov;
	bool in_time = false;
	enum ndx_status st = NDX_PENDING;
	struct pair b;

	(void)state;
	rig_uri = "loop";
	meet(&b);
	for (uint32_t n = 1; n <= TRIES && !in_time; n++) {
		is_refused(&b, n, &ov);
		gives_up(&b, n, NDX_LAYER_PROVIDER, NDX_E_ACCESS_VIOLATION);
		in_time = is_in_time();
		st = ndx_overlapped_wait(&ov, WAIT_MS);
		if (st == NDX_E_ACCESS_VIOLATION)
			break;
		raw_is_abandoned(&b.p, n, "the queue pair cannot be connected");
	}
	assert_int_equal(st, NDX_E_ACCESS_VIOLATION);
	has_failed(&b, NDX_E_ACCESS_VIOLATION, NDX_LAYER_PROVIDER, true,
	           "the peer gave up: what the server says");
	assert_int_equal(ndx_session_get_state(b.rig.session), NDX_SESSION_CONNECTED);
	more_down(&b.rig);
	leave_raw(&b);
	rig_uri = "direct";
}

static void without_a_word_the_own_cause_counts(void **state)
{
	enum ndx_status st = NDX_PENDING;
	struct ndx_overlapped ov;
	bool in_time = false;
	uint32_t n;
	struct pair b;

	(void)state;
	rig_uri = "loop";
	meet(&b);
	is_refused(&b, 1, &ov);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_E_CONNECTION_REFUSED);
	has_failed(&b, NDX_E_CONNECTION_REFUSED, NDX_LAYER_PROVIDER, false,
	           "the queue pair cannot be connected");
	raw_is_abandoned(&b.p, 1, "the queue pair cannot be connected");
	assert_int_equal(ndx_session_get_state(b.rig.session), NDX_SESSION_CONNECTED);
	/* a cancel does not wait */
	for (n = 2; n <= 1 + TRIES && !in_time; n++) {
		is_refused(&b, n, &ov);
		ndx_session_cancel(b.rig.session);
		in_time = is_in_time();
		st = ndx_overlapped_wait(&ov, WAIT_MS);
		raw_is_abandoned(&b.p, n, st == NDX_E_CANCELED ? "cancelled" : "connected");
		if (st == NDX_E_CANCELED)
			break;
	}
	assert_int_equal(st, NDX_E_CANCELED);
	more_down(&b.rig);
	leave_raw(&b);
	rig_uri = "direct";
}

static void a_transport_that_ends_late_is_the_cause(void **state)
{
	enum ndx_status st = NDX_PENDING;
	struct ndx_overlapped ov;
	bool in_time = false;
	struct pair b;

	(void)state;
	rig_uri = "loop";
	for (int n = 0; n < TRIES && !in_time; n++) {
		if (n > 0) {
			(void)close(b.listener);
			more_down(&b.rig);
			rig_down(&b.rig);
		}
		meet(&b);
		is_refused(&b, 1, &ov);
		raw_end(&b.p, true);
		in_time = is_in_time();
		st = ndx_overlapped_wait(&ov, WAIT_MS);
		if (st == NDX_E_CONNECTION_ABORTED)
			break;
	}
	assert_int_equal(st, NDX_E_CONNECTION_ABORTED);
	has_failed(&b, NDX_E_CONNECTION_ABORTED, NDX_LAYER_TRANSPORT, false, "transport");
	assert_int_equal(ndx_session_get_state(b.rig.session), NDX_SESSION_FAILED);
	(void)close(b.listener);
	more_down(&b.rig);
	rig_down(&b.rig);
	rig_uri = "direct";
}

/* ---- and in the stages of the session itself ---- */

/* Its attempts are refused, and it waits for why. */
static void first_ones_are_refused(struct pair *b, struct ndx_overlapped *ov)
{
	rig_uri = "loop";
	rig_up(&b->rig, BASE);
	rig_uri = "direct";
	ndx_session_close(b->rig.session);
	b->listener = raw_listen(&b->rig);
	make_session(&b->rig);
	memset(ov, 0, sizeof(*ov));
	assert_int_equal(ndx_session_run_overlapped(b->rig.session, ov), NDX_PENDING);
	refused_ns = ndxp_now_ns();
	raw_accept_until(&b->p, b->listener, FRAME_ADDS, RAW_INFO_ALL);
	still_waits(ov);
}

/* They are refused, `what` happens, and the session ends so. */
static void ends_with(struct pair *b, void (*what)(struct pair *b), enum ndx_status expected)
{
	enum ndx_status st = NDX_PENDING;
	struct ndx_overlapped ov;
	bool in_time = false;

	for (int n = 0; n < TRIES && !in_time; n++) {
		if (n > 0) {
			if (b->p.fd >= 0)
				raw_end(&b->p, false);
			(void)close(b->listener);
			rig_down(&b->rig);
		}
		first_ones_are_refused(b, &ov);
		if (ndx_overlapped_status(&ov) == NDX_PENDING)
			what(b);
		in_time = is_in_time();
		st = ndx_overlapped_wait(&ov, WAIT_MS);
		if (st == expected)
			break;
	}
	assert_int_equal(st, expected);
}

static void has_failed_whole(const struct pair *b, enum ndx_error_layer layer, bool remote,
                             const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_session_get_state(b->rig.session), NDX_SESSION_FAILED);
	assert_int_equal(ndx_session_get_error(b->rig.session, &e), NDX_OK);
	assert_int_equal(e.layer, layer);
	assert_int_equal(e.remote, remote);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
}

static void says_an_error(struct pair *b)
{
	const struct frame_error w = {.layer = NDX_LAYER_PROVIDER,
	                              .status = NDX_E_INSUFFICIENT_RESOURCES,
	                              .text = "what the server says"};
	uint8_t payload[FRAME_ERROR_SIZE_MAX];
	const struct frame f = {.type = FRAME_ERROR,
	                        .stage = NDX_STAGE_VALIDATE,
	                        .payload = payload,
	                        .length = frame_write_error(payload, &w)};

	raw_say(&b->p, &f);
}

static void cuts(struct pair *b)
{
	raw_end(&b->p, true);
}

static void cancels(struct pair *b)
{
	ndx_session_cancel(b->rig.session);
}

static void the_first_stages_wait_for_a_word_too(void **state)
{
	struct ndx_overlapped ov;
	struct pair b;

	(void)state;
	ends_with(&b, says_an_error, NDX_E_REMOTE_ERROR);
	has_failed_whole(&b, NDX_LAYER_PROVIDER, true, "what the server says");
	leave_raw(&b);
	/* without a word the own cause counts, and the server hears of it */
	first_ones_are_refused(&b, &ov);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_E_CONNECTION_REFUSED);
	has_failed_whole(&b, NDX_LAYER_PROVIDER, false, "the queue pair cannot be connected");
	raw_await(&b.p, FRAME_ERROR, &(struct frame){0});
	leave_raw(&b);
	/* the end of the transport is a word */
	ends_with(&b, cuts, NDX_E_CONNECTION_ABORTED);
	has_failed_whole(&b, NDX_LAYER_TRANSPORT, false, "");
	(void)close(b.listener);
	rig_down(&b.rig);
	/* a cancel does not wait */
	ends_with(&b, cancels, NDX_E_CANCELED);
	leave_raw(&b);
}

/* ---- between two calls ---- */

static void an_error_between_two_calls_ends_the_session(void **state)
{
	static const struct ndx_session_queue_pair list[FEW];
	const struct frame_error w = {.layer = NDX_LAYER_FRAMEWORK,
	                              .status = NDX_E_CANCELED,
	                              .text = "what the server says"};
	uint8_t payload[FRAME_ERROR_SIZE_MAX];
	const struct frame f = {
		.type = FRAME_ERROR, .payload = payload, .length = frame_write_error(payload, &w)};
	struct ndx_session_error e = {.size = sizeof(e)};
	struct pair b;

	(void)state;
	meet(&b);
	raw_say(&b.p, &f);
	for (int ms = 0; ms < WAIT_MS && e.status == NDX_OK; ms++) {
		(void)poll(NULL, 0, 1);
		assert_int_equal(ndx_session_get_error(b.rig.session, &e), NDX_OK);
	}
	assert_true(e.remote);
	assert_non_null(strstr(e.text, "what the server says"));
	assert_int_equal(ndx_session_get_state(b.rig.session), NDX_SESSION_FAILED);
	assert_int_equal(ndx_session_add_queue_pairs(b.rig.session, list, FEW, NULL), e.status);
	has_failed(&b, e.status, e.layer, true, "what the server says");
	leave_raw(&b);
}

/* The next call says why; the one behind it, that the session is over. */
static void tells_once(const struct pair *b, const char *text)
{
	static const struct ndx_session_queue_pair list[FEW];
	struct ndx_session *s = b->rig.session;
	struct ndx_session_error e = {.size = sizeof(e)};

	for (int ms = 0; ms < WAIT_MS && ndx_session_get_state(s) == NDX_SESSION_CONNECTED; ms++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_FAILED);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_int_equal(e.status, NDX_E_REMOTE_ERROR);
	assert_int_equal(e.layer, NDX_LAYER_FRAMEWORK);
	assert_false(e.remote);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
	assert_int_equal(ndx_session_add_queue_pairs(s, list, FEW, NULL), NDX_E_REMOTE_ERROR);
	has_failed(b, NDX_E_REMOTE_ERROR, NDX_LAYER_FRAMEWORK, false, text);
	assert_int_equal(ndx_session_add_queue_pairs(s, list, FEW, NULL),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_E_INVALID_DEVICE_STATE);
}

/* Whether the transport has to be read for goodbyes, too, or not: with queue pairs, or without. */
static void a_broken_word_between_two_calls_ends_the_session(void **state)
{
	static const struct {
		enum frame_type type;
		uint32_t numbers[4];
		uint32_t length;
		const char *text;
	} words[] = {
		{FRAME_ADD, {1, BASE, FEW}, FRAME_ADD_SIZE, "that were not asked for"},
		{FRAME_ADD, {1, BASE, FEW}, FRAME_ADD_SIZE - 1, "payload of the wrong length"},
		{FRAME_ABANDON, {1, FRAME_NO_QUEUE_PAIR, 3, 0}, 16, "that were not asked for"},
		{FRAME_ADD, {1}, MESSAGE + 1, "payload longer than the limit"},
	};
	struct pair b;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(words) / sizeof(words[0]); i++) {
		const size_t k = i / 2;

		connected = i % 2 == 1;
		meet(&b);
		raw_say_numbers(&b.p, words[k].type, words[k].numbers, 4, words[k].length);
		tells_once(&b, words[k].text);
		raw_is_refused(&b.p, words[k].text);
		leave_raw(&b);
	}
	connected = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_has_its_status),
		cmocka_unit_test(a_word_that_comes_late_is_the_cause),
		cmocka_unit_test(without_a_word_the_own_cause_counts),
		cmocka_unit_test(a_transport_that_ends_late_is_the_cause),
		cmocka_unit_test(the_first_stages_wait_for_a_word_too),
		cmocka_unit_test(an_error_between_two_calls_ends_the_session),
		cmocka_unit_test(a_broken_word_between_two_calls_ends_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
