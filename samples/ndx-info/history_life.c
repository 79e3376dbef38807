/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sides become one connection: which belong together, and where the second one's clock is. */
#include <stdlib.h>
#include <string.h>

#include "history.h"

#define CLOCK_SLACK 10000000 /* ns; a transition may be noted after the message has left */

/* A message: the sender notes one event, later the receiver another one. */
static const struct {
	const char *sent, *arrived;
	bool by_active, by_passive;
} messages[] = {
	{"CONNECT", "REQUEST", true, false},
	{"ACCEPT", "ANSWER", false, true},
	{"COMPLETE", "ESTABLISHED", true, false},
	{"DRAINED", "PEER", true, true},
};

#define MESSAGES (sizeof(messages) / sizeof(messages[0]))

static const struct {
	const char *event, *meaning;
} meanings[] = {
	{"ABORT",
         "the stack below reports that the link is lost: the peer's process died, or ended "
         "the connection without a goodbye, or the network failed"},
	{"TIMEOUT",
         "the link lives, but the peer's goodbye did not come within disconnect_timeout"},
	{"FLUSH", "this side's program flushed its queue pair, which ends a connection at once"},
	{"RELEASE", "this side's program closed the queue pair or the connector"},
	{"CONNECT_TIMEOUT", "the peer did not answer within connect_timeout_ms"},
	{"FAILURE", "the peer or the stack below refused; the cause says why"},
};

bool history_is_bad(const struct history_entry *entry)
{
	return entry->status != NULL || strcmp(entry->to, "ABORTING") == 0 ||
	       strcmp(entry->to, "FAILED") == 0 || strcmp(entry->to, "CLOSED_BAD") == 0;
}

const char *history_meaning(const struct history_entry *entry)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (strcmp(entry->event, meanings[i].event) == 0)
			return meanings[i].meaning;
	}
	return "";
}

static const struct history_entry *last_of(const struct history_side *side)
{
	return &side->entries[side->count - 1];
}

static bool same(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* The other side of a connection: nearest in time, as addresses are used again. NULL: not there. */
static struct history_side *find_other(struct history *h, const struct history_side *side)
{
	struct history_side *best = NULL;
	int64_t least = 0;

	for (size_t i = 0; i < h->count; i++) {
		struct history_side *other = &h->sides[i];
		int64_t distance;

		if (other->taken || other->passive == side->passive ||
		    !same(other->local, side->peer) || !same(other->peer, side->local))
			continue;
		distance = llabs(last_of(other)->time_ns - last_of(side)->time_ns);
		if (best == NULL || distance < least) {
			best = other;
			least = distance;
		}
	}
	return best;
}

/* The last entry with an event; NULL: none. An attempt to connect may have been repeated. */
static const struct history_entry *find_event(const struct history_side *side, const char *event)
{
	for (size_t i = side->count; i > 0; i--) {
		if (strcmp(side->entries[i - 1].event, event) == 0)
			return &side->entries[i - 1];
	}
	return NULL;
}

/* Limits of how much later the passive side's clock is. */
struct limits {
	int64_t least, most;
	bool has_least, has_most;
};

static void limit_by(struct limits *limits, const struct history_life *life, size_t message,
                     bool by_active)
{
	const struct history_entry *sent, *arrived;
	int64_t shift;

	sent = find_event(life->sides[by_active ? 0 : 1], messages[message].sent);
	arrived = find_event(life->sides[by_active ? 1 : 0], messages[message].arrived);
	if (sent == NULL || arrived == NULL)
		return;
	if (by_active) {
		shift = arrived->time_ns - sent->time_ns;
		if (!limits->has_most || shift < limits->most)
			limits->most = shift;
		limits->has_most = true;
	} else {
		shift = sent->time_ns - arrived->time_ns;
		if (!limits->has_least || shift > limits->least)
			limits->least = shift;
		limits->has_least = true;
	}
}

/* The times fit as they are: both sides are on one host. */
static bool fits_one_clock(const struct limits *l)
{
	return (l->has_least || l->has_most) && (!l->has_least || l->least <= CLOCK_SLACK) &&
	       (!l->has_most || l->most >= -CLOCK_SLACK);
}

static void align(struct history_life *life)
{
	const struct history_side *active = life->sides[0], *passive = life->sides[1];
	struct limits l = {0};

	if (active == NULL || passive == NULL || active->root == passive->root)
		return;
	for (size_t i = 0; i < MESSAGES; i++) {
		if (messages[i].by_active)
			limit_by(&l, life, i, true);
		if (messages[i].by_passive)
			limit_by(&l, life, i, false);
	}
	if (fits_one_clock(&l))
		return;
	life->clock = HISTORY_ALIGNED;
	if (l.has_least && l.has_most) {
		life->shift_ns = l.least + (l.most - l.least) / 2;
		life->doubt_ns = (l.most - l.least) / 2;
		if (l.least > l.most + CLOCK_SLACK)
			life->clock = HISTORY_CONTRADICTED;
		if (life->doubt_ns < 0)
			life->doubt_ns = -life->doubt_ns;
		return;
	}
	life->clock = HISTORY_TWO_CLOCKS;
	if (l.has_least)
		life->shift_ns = l.least;
	else if (l.has_most)
		life->shift_ns = l.most;
	else
		life->shift_ns = last_of(passive)->time_ns - last_of(active)->time_ns;
}

static int64_t shifted(const struct history_life *life, unsigned side, size_t i)
{
	return life->sides[side]->entries[i].time_ns - (side == 1 ? life->shift_ns : 0);
}

/* Both lists are in order, so they only have to be merged. */
static void merge(struct history_life *life)
{
	size_t next[2] = {0, 0};
	int64_t first = 0, before = 0;

	for (size_t i = 0; i < life->count; i++) {
		struct history_row *row = &life->rows[i];
		bool left[2];
		int64_t at;

		for (unsigned s = 0; s < 2; s++)
			left[s] = life->sides[s] != NULL && next[s] < life->sides[s]->count;
		row->side = !left[0] ||
		            (left[1] && shifted(life, 1, next[1]) < shifted(life, 0, next[0]));
		row->entry = &life->sides[row->side]->entries[next[row->side]];
		at = shifted(life, row->side, next[row->side]);
		next[row->side]++;
		if (i == 0)
			first = before = at;
		row->at_ns = at - first;
		row->gap_ns = at - before;
		row->from = SIZE_MAX;
		before = at;
	}
}

/* The row of the other side with the message that led to row `to`; SIZE_MAX: not known. */
static size_t sender_of(const struct history_life *life, size_t to)
{
	const struct history_row *row = &life->rows[to];

	for (size_t m = 0; m < MESSAGES; m++) {
		if (strcmp(row->entry->event, messages[m].arrived) != 0 ||
		    !(row->side == 1 ? messages[m].by_active : messages[m].by_passive))
			continue;
		for (size_t i = life->count; i > 0; i--) {
			const struct history_row *sent = &life->rows[i - 1];

			/* Noted a little later than the answer to it, perhaps. */
			if (sent->side != row->side && sent->at_ns <= row->at_ns + CLOCK_SLACK &&
			    strcmp(sent->entry->event, messages[m].sent) == 0)
				return i - 1;
		}
	}
	return SIZE_MAX;
}

/* An attempt to connect begins; what failed before does not matter any more. */
static bool begins(const struct history_entry *entry)
{
	return strcmp(entry->event, "CONNECT") == 0 || strcmp(entry->event, "GET_REQUEST") == 0;
}

/* The first bad transition of the last attempt, of the sides that did not end well. */
static void find_fatal(struct history_life *life)
{
	life->fatal = SIZE_MAX;
	for (unsigned s = 0; s < 2; s++) {
		size_t first = SIZE_MAX;

		if (life->sides[s] == NULL || !history_is_bad(last_of(life->sides[s])))
			continue;
		for (size_t i = 0; i < life->count; i++) {
			if (life->rows[i].side != s)
				continue;
			if (begins(life->rows[i].entry))
				first = SIZE_MAX;
			if (first == SIZE_MAX && history_is_bad(life->rows[i].entry))
				first = i;
		}
		if (first < life->fatal)
			life->fatal = first;
	}
}

static int make_life(struct history_side *side, struct history_side *other,
                     struct history_life *life)
{
	memset(life, 0, sizeof(*life));
	life->sides[side->passive ? 1 : 0] = side;
	life->sides[side->passive ? 0 : 1] = other;
	life->count = side->count + (other != NULL ? other->count : 0);
	life->rows = calloc(life->count, sizeof(*life->rows));
	if (life->rows == NULL)
		return -1;
	side->taken = true;
	if (other != NULL)
		other->taken = true;
	align(life);
	merge(life);
	for (size_t i = 0; i < life->count; i++)
		life->rows[i].from = sender_of(life, i);
	find_fatal(life);
	return 1;
}

/* What is looked at first: 0 ended badly, 1 has a peer, 2 waits for one. */
static unsigned rank_of(const struct history_side *side)
{
	if (history_is_bad(last_of(side)))
		return 0;
	return side->peer != NULL ? 1 : 2;
}

int history_next(struct history *h, uint64_t connector, struct history_life *life)
{
	for (unsigned rank = 0; rank < 3; rank++) {
		for (size_t i = 0; i < h->count; i++) {
			struct history_side *side = &h->sides[i];

			if (!side->taken && rank_of(side) == rank &&
			    (connector == 0 || side->id == connector))
				return make_life(side, find_other(h, side), life);
		}
	}
	return 0;
}

void history_life_drop(struct history_life *life)
{
	free(life->rows);
	life->rows = NULL;
}
