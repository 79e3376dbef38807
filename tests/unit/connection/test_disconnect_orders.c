/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every order of events that one side can see, until nothing new happens. The world around the
 * machine promises little: calls, reports, timers and the loss of the link come whenever they can,
 * also late. In each step the contract, written here a second time as flags without states, says
 * what must be done; the properties are checked besides.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>

#include <cmocka.h>

#include "disconnect.h"

#define EV(name) DISCONNECT_EV_##name
#define DO(name) DISCONNECT_DO(name)
#define COMPLETES_NOTIFY (DO(NOTIFY_GRACEFUL) | DO(NOTIFY_ABORTED) | DO(NOTIFY_CANCELED))
#define COMPLETES_CALL (DO(DISC_OK) | DO(DISC_ABORTED) | DO(DISC_CANCELED))

enum { NOTHING, GRACEFUL, ABORTED };

/* What may happen: the events, and two that the machine need not know. */
enum { POST = DISCONNECT_EVENTS, WORK_ENDS, MOVES };

/* Bytes only, so that worlds can be compared as such. */
struct world {
	struct disconnect d;
	/* the consumer */
	uint8_t ov_notify;
	uint8_t ov_call;
	uint8_t closed;
	uint8_t indication; /* that has come: NOTHING, GRACEFUL, ABORTED */
	uint8_t told;
	/* the provider */
	uint8_t work;
	uint8_t draining;
	uint8_t drained_owed;
	uint8_t sent;
	uint8_t acked;
	uint8_t peer;
	uint8_t closing; /* NOTHING, GRACEFUL, ABORTED */
	uint8_t quiet;
	uint8_t drain_timer;
	uint8_t disc_timer;
};

/* ---- which entries of disconnect.def have been used ---- */

#define NDX_NOTIFY_STATE(name) N_##name,
enum {
#include "disconnect.def"
};
#define NDX_CALL_STATE(name) C_##name,
enum {
#include "disconnect.def"
};
#define NDX_ACTION(name) A_##name,
enum {
#include "disconnect.def"
#define NDX_INNER(name) A_##name,
#include "disconnect.def"
};
#define NDX_DO(name) (1U << A_##name)
#define NDX_NOTHING 0U

enum machine { LINK, NOTIFY, CALL };
enum verdict { TAKE, IGNORE, NEVER };

#define ROW(m, v, s, e, n, a) {m, v, s, DISCONNECT_EV_##e, n, a, #m " " #s " " #e},
static const struct row {
	enum machine machine;
	enum verdict verdict;
	uint8_t state;
	uint8_t event;
	uint8_t next;
	uint32_t actions;
	const char *text;
} rows[] = {
#define NDX_LINK(s, e, n, a) ROW(LINK, TAKE, DISCONNECT_STATE_##s, e, DISCONNECT_STATE_##n, a)
#define NDX_LINK_IGNORE(s, e) ROW(LINK, IGNORE, DISCONNECT_STATE_##s, e, 0, 0)
#define NDX_LINK_NEVER(s, e) ROW(LINK, NEVER, DISCONNECT_STATE_##s, e, 0, 0)
#define NDX_NOTIFY(s, e, n, a) ROW(NOTIFY, TAKE, N_##s, e, N_##n, a)
#define NDX_NOTIFY_IGNORE(s, e) ROW(NOTIFY, IGNORE, N_##s, e, 0, 0)
#define NDX_NOTIFY_NEVER(s, e) ROW(NOTIFY, NEVER, N_##s, e, 0, 0)
#define NDX_CALL(s, e, n, a) ROW(CALL, TAKE, C_##s, e, C_##n, a)
#define NDX_CALL_IGNORE(s, e) ROW(CALL, IGNORE, C_##s, e, 0, 0)
#define NDX_CALL_NEVER(s, e) ROW(CALL, NEVER, C_##s, e, 0, 0)
#include "disconnect.def"
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static unsigned long used[ROWS];

/* One event, read from the list above instead of the tables of disconnect.c. */
static uint32_t shadow_tell(struct disconnect *d, unsigned ev)
{
	uint8_t *const state[] = {[LINK] = &d->link, [NOTIFY] = &d->notify, [CALL] = &d->call};
	const uint8_t before[] = {[LINK] = d->link, [NOTIFY] = d->notify, [CALL] = d->call};
	uint32_t actions = 0;

	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];

		if (row->event != ev || row->state != before[row->machine])
			continue;
		used[i]++;
		if (row->verdict == TAKE)
			*state[row->machine] = row->next;
		actions |= row->actions;
	}
	return actions;
}

static uint32_t shadow_step(struct disconnect *d, unsigned ev)
{
	static const struct {
		uint32_t action;
		unsigned event;
	} inner[] = {
#define NDX_INNER(name) {1U << A_##name, DISCONNECT_EV_##name},
#include "disconnect.def"
	};
	uint32_t actions = shadow_tell(d, ev);

	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
		if (actions & inner[i].action)
			actions = (actions & ~inner[i].action) | shadow_tell(d, inner[i].event);
	}
	return actions;
}

/* ---- the world ---- */

static bool may_happen(const struct world *w, unsigned move)
{
	switch (move) {
	case EV(NOTIFY):
		return !w->closed && !w->ov_notify;
	case EV(DISCONNECT):
		return !w->closed && !w->ov_call;
	case EV(CANCEL):
	case EV(CLOSE):
		return !w->closed;
	case EV(PEER):
		return !w->peer;
	case EV(DRAINED):
		return w->drained_owed > 0 && !w->work;
	case EV(DRAIN_TIMEOUT):
		return w->drain_timer;
	case EV(TIMEOUT):
		return w->disc_timer;
	case EV(ACKED):
		return w->sent && !w->acked;
	case EV(QUIET):
		return w->closing && !w->quiet;
	case POST:
		return disconnect_admits_work(&w->d) && !w->work;
	case WORK_ENDS:
		return w->work;
	default: /* RELEASE, FLUSH, ABORT */
		return true;
	}
}

static void note_event(struct world *w, unsigned ev)
{
	switch (ev) {
	case EV(NOTIFY):
		w->ov_notify = 1;
		break;
	case EV(DISCONNECT):
		w->ov_call = 1;
		break;
	case EV(PEER):
		w->peer = 1;
		break;
	case EV(DRAINED):
		w->drained_owed--;
		break;
	case EV(DRAIN_TIMEOUT):
		w->drain_timer = 0;
		break;
	case EV(TIMEOUT):
		w->disc_timer = 0;
		break;
	case EV(ACKED):
		w->acked = 1;
		break;
	case EV(QUIET):
		w->quiet = 1;
		w->work = 0;
		break;
	default:
		break;
	}
}

/* What the contract asks of the provider, told without states. */
static uint32_t link_actions_due(struct world *w, unsigned ev)
{
	bool wants_end = ev == EV(DISCONNECT) || ev == EV(RELEASE) || ev == EV(PEER);
	bool cut = ev == EV(ABORT) || ev == EV(FLUSH) || (ev == EV(TIMEOUT) && w->sent);

	if (w->closing)
		return 0;
	if (ev == EV(PEER) && w->indication == NOTHING)
		w->indication = GRACEFUL;
	if (w->sent && w->peer && (w->acked || ev == EV(ABORT)))
		return DO(FINISH);
	if (cut) {
		if (w->indication == NOTHING)
			w->indication = ABORTED;
		return DO(ABORT_LINK);
	}
	if (!w->draining)
		return wants_end ? DO(START_DRAIN) : 0;
	if (w->sent)
		return 0;
	if (ev == EV(DRAINED))
		return DO(SEND_DISC);
	return ev == EV(DRAIN_TIMEOUT) ? DO(CANCEL_INITIATOR) : 0;
}

/* What the consumer gets; the link has been told. */
static uint32_t completions_due(const struct world *w, unsigned ev)
{
	uint32_t due = 0;

	if (ev == EV(CANCEL) || ev == EV(CLOSE)) {
		due |= w->ov_notify ? DO(NOTIFY_CANCELED) : 0;
		due |= w->ov_call ? DO(DISC_CANCELED) : 0;
		return due;
	}
	if (w->ov_notify && w->told)
		due |= DO(NOTIFY_CANCELED);
	else if (w->ov_notify && w->indication == GRACEFUL)
		due |= DO(NOTIFY_GRACEFUL);
	else if (w->ov_notify && w->indication == ABORTED)
		due |= DO(NOTIFY_ABORTED);
	if (w->ov_call && w->quiet)
		due |= w->closing == GRACEFUL ? DO(DISC_OK) : DO(DISC_ABORTED);
	return due;
}

static void carry_out(struct world *w, unsigned ev, uint32_t actions)
{
	if (actions & COMPLETES_NOTIFY) {
		assert_true(w->ov_notify);
		assert_false(w->closed);
		w->ov_notify = 0;
	}
	if (actions & (DO(NOTIFY_GRACEFUL) | DO(NOTIFY_ABORTED))) {
		assert_false(w->told);
		w->told = 1;
	}
	if (actions & COMPLETES_CALL) {
		assert_true(w->ov_call);
		assert_false(w->closed);
		assert_false(w->ov_notify && !(actions & DO(DISC_CANCELED)));
		w->ov_call = 0;
	}
	if (actions & DO(DISC_OK))
		assert_true(w->sent && w->peer && w->quiet && !w->work);
	if (actions & DO(START_DRAIN)) {
		w->draining = 1;
		w->drained_owed = 1;
		w->drain_timer = 1;
	}
	/* DRAINED may be on its way already. */
	if (actions & DO(CANCEL_INITIATOR)) {
		w->work = 0;
		w->drained_owed = 2;
	}
	if (actions & DO(SEND_DISC)) {
		assert_false(w->sent || w->work);
		w->sent = 1;
		w->disc_timer = 1;
	}
	if (actions & (DO(FINISH) | DO(ABORT_LINK))) {
		assert_false(w->closing);
		w->closing = actions & DO(FINISH) ? GRACEFUL : ABORTED;
	}
	if (ev == EV(CLOSE))
		w->closed = 1;
}

/* The questions that may be asked at any time have the right answers, and some never change. */
static void check_getters(const struct world *before, const struct world *w)
{
	const struct disconnect *d = &w->d;
	enum disconnect_state end = disconnect_get_state(d);

	assert_int_equal(disconnect_notify_is_pending(d), w->ov_notify);
	assert_int_equal(disconnect_call_is_pending(d), w->ov_call);
	assert_int_equal(disconnect_is_over(d), w->quiet);
	assert_int_equal(disconnect_admits_work(d), !w->draining && !w->closing);
	assert_int_equal(end == DISCONNECT_STATE_CLOSED_OK, w->quiet && w->closing == GRACEFUL);
	if (disconnect_is_drained(d))
		assert_false(w->work);
	assert_true(disconnect_is_drained(d) || !disconnect_is_over(d));
	assert_true(disconnect_is_over(d) || !disconnect_is_over(&before->d));
	if (disconnect_is_drained(&before->d) && !w->closing)
		assert_true(disconnect_is_drained(d));
	assert_false(w->closed && (w->ov_notify || w->ov_call));
	assert_int_equal(disconnect_expects(d, EV(CANCEL)), !w->closed);
	assert_int_equal(disconnect_expects(d, EV(NOTIFY)), !w->closed && !w->ov_notify);
	assert_int_equal(disconnect_expects(d, EV(DISCONNECT)), !w->closed && !w->ov_call);
}

static void happen(struct world *w, unsigned move)
{
	const struct world before = *w;
	struct disconnect shadow = w->d;
	uint32_t actions;
	uint32_t due;

	if (move >= DISCONNECT_EVENTS) {
		w->work = move == POST;
		return;
	}
	assert_true(disconnect_expects(&w->d, (enum disconnect_event)move));
	actions = disconnect_step(&w->d, (enum disconnect_event)move);
	assert_int_equal(actions, shadow_step(&shadow, move));
	assert_memory_equal(&shadow, &w->d, sizeof(shadow));
	note_event(w, move);
	due = link_actions_due(w, move);
	due |= completions_due(w, move);
	assert_int_equal(actions, due);
	carry_out(w, move, actions);
	check_getters(&before, w);
}

/* ---- the search ---- */

#define CAPACITY (1U << 14)

static struct node {
	struct world world;
	uint32_t parent;
	uint8_t move;
} * nodes;
static uint32_t *slots; /* index into nodes + 1, by hash */
static uint32_t count;

static uint32_t hash(const struct world *w)
{
	const unsigned char *byte = (const unsigned char *)w;
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < sizeof(*w); i++)
		h = (h ^ byte[i]) * 16777619U;
	return h;
}

static void add(const struct world *w, uint32_t parent, unsigned move)
{
	uint32_t at = hash(w) % CAPACITY;

	while (slots[at] != 0) {
		if (memcmp(&nodes[slots[at] - 1].world, w, sizeof(*w)) == 0)
			return;
		at = (at + 1) % CAPACITY;
	}
	assert_true(count < CAPACITY / 2);
	nodes[count] = (struct node){.world = *w, .parent = parent, .move = (uint8_t)move};
	slots[at] = ++count;
}

static const char *move_name(unsigned move)
{
	if (move == POST)
		return "post";
	return move == WORK_ENDS ? "work ends" : disconnect_event_name((enum disconnect_event)move);
}

/* What led to node i, then `move`: read it before a step, in case the step fails. */
static char trail[512];

static void note_trail(uint32_t i, unsigned move)
{
	unsigned moves[64];
	unsigned n = 0;
	size_t len = 0;

	moves[n++] = move;
	for (; i != 0 && n < 64; i = nodes[i].parent)
		moves[n++] = nodes[i].move;
	trail[0] = '\0';
	while (n-- > 0 && len < sizeof(trail)) {
		int more = snprintf(trail + len, sizeof(trail) - len, " %s", move_name(moves[n]));

		len += more > 0 ? (size_t)more : 0;
	}
}

static int search_setup(void **state)
{
	struct world w = {0};

	(void)state;
	nodes = calloc(CAPACITY / 2, sizeof(*nodes));
	slots = calloc(CAPACITY, sizeof(*slots));
	if (nodes == NULL || slots == NULL)
		return -1;
	disconnect_init(&w.d);
	add(&w, 0, 0);
	return 0;
}

static int search_teardown(void **state)
{
	(void)state;
	free(nodes);
	free(slots);
	return 0;
}

static int trail_show(void **state)
{
	(void)state;
	if (trail[0] != '\0')
		print_message("last trail:%s\n", trail);
	return 0;
}

static void every_order_of_events_keeps_the_contract(void **state)
{
	unsigned long steps = 0;

	(void)state;
	for (uint32_t i = 0; i < count; i++) {
		for (unsigned move = 0; move < MOVES; move++) {
			struct world w = nodes[i].world;

			if (!may_happen(&w, move))
				continue;
			note_trail(i, move);
			happen(&w, move);
			add(&w, i, move);
			steps++;
		}
	}
	trail[0] = '\0';
	print_message("%u worlds, %lu steps\n", (unsigned)count, steps);
}

/* Runs after the search: no row is dead, nothing that "may happen" is impossible after all. */
static void every_entry_of_the_tables_is_met_and_no_impossible_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].verdict == NEVER ? used[i] != 0 : used[i] == 0)
			fail_msg("%s: %lu times", rows[i].text, used[i]);
	}
}

/* The first of `order` that can happen, again and again; each can happen a few times only. */
static void run_to_rest(struct world *w, const unsigned *order, size_t len)
{
	size_t i = 0;

	while (i < len) {
		if (may_happen(w, order[i])) {
			happen(w, order[i]);
			i = 0;
		} else {
			i++;
		}
	}
}

static void every_teardown_ends_though_the_peer_is_silent(void **state)
{
	static const unsigned order[] = {EV(QUIET), EV(DRAIN_TIMEOUT), EV(DRAINED), EV(TIMEOUT)};

	(void)state;
	for (uint32_t i = 0; i < count; i++) {
		struct world w = nodes[i].world;

		if (disconnect_admits_work(&w.d))
			continue;
		note_trail(i, nodes[i].move);
		run_to_rest(&w, order, sizeof(order) / sizeof(order[0]));
		assert_true(disconnect_is_over(&w.d));
		assert_false(w.ov_notify || w.ov_call);
	}
	trail[0] = '\0';
}

static void every_teardown_ends_well_when_the_peer_answers_in_time(void **state)
{
	static const unsigned order[] = {EV(QUIET), WORK_ENDS, EV(DRAINED), EV(PEER), EV(ACKED)};

	(void)state;
	for (uint32_t i = 0; i < count; i++) {
		struct world w = nodes[i].world;

		if (disconnect_admits_work(&w.d))
			continue;
		note_trail(i, nodes[i].move);
		run_to_rest(&w, order, sizeof(order) / sizeof(order[0]));
		assert_true(disconnect_is_over(&w.d));
		assert_false(w.ov_notify || w.ov_call);
		if (nodes[i].world.closing != ABORTED)
			assert_int_equal(w.closing, GRACEFUL);
	}
	trail[0] = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_order_of_events_keeps_the_contract, trail_show),
		cmocka_unit_test(every_entry_of_the_tables_is_met_and_no_impossible_one),
		cmocka_unit_test_teardown(every_teardown_ends_though_the_peer_is_silent,
	                                  trail_show),
		cmocka_unit_test_teardown(every_teardown_ends_well_when_the_peer_answers_in_time,
	                                  trail_show),
	};

	return cmocka_run_group_tests(tests, search_setup, search_teardown);
}
