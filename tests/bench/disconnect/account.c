/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections with messages both ways, ended at any moment, and what became of every one. */
#include <string.h>

#include "stage.h"

enum {
	GUARD = 0xa5,
	SLOTS = 8, /* memory of a connection is watched until it is used again, so much later */
	AT_RECEIVES = 0,
	AT_WRITTEN = AT_RECEIVES + MESSAGES * LONGEST, /* by the peer */
	AT_SENDS = AT_WRITTEN + WRITES * WRITTEN,
	AT_WRITES = AT_SENDS + MESSAGES * LONGEST,
	SLOT_BYTES = AT_WRITES + WRITES * WRITTEN,
};

struct round {
	struct stage *stage;
	struct books books;
	struct plan plan;
	struct line lines[2];
	size_t slot; /* where its memory begins */
};

static void *mark_of(uint64_t round, unsigned side)
{
	return (void *)(uintptr_t)(2 * round + side + 1);
}

/* Results of a side, up to `limit`; one of an earlier connection is late. */
static void take_results(struct round *r, unsigned side, size_t limit)
{
	struct ndx_result results[32];
	struct end *end = &r->stage->ends[side];
	size_t got = 1;

	for (size_t taken = 0; got > 0 && taken < limit; taken += got) {
		got = ndx_cq_get_results(end->cq, results, 32);
		for (size_t i = 0; i < got; i++) {
			size_t number = (size_t)(uintptr_t)results[i].request_context;

			if (results[i].queue_pair_context != mark_of(r->books.round, side))
				r->books.tally->late++;
			else
				books_result(&r->books, side, number, results[i].status == NDX_OK,
				             end->memory + r->slot + AT_RECEIVES + number * LONGEST,
				             results[i].bytes_transferred);
		}
	}
}

static bool post_receives(struct round *r, unsigned side)
{
	for (size_t i = 0; i < MESSAGES; i++) {
		r->books.posted[side][i] = true;
		if (!line_receive(&r->lines[side], i, r->slot + AT_RECEIVES + i * LONGEST, LONGEST))
			return false;
	}
	return true;
}

static bool post_message(struct round *r, unsigned side, uint32_t index)
{
	size_t at = r->slot + AT_SENDS + (size_t)index * LONGEST;

	message_fill(&r->books, side, index, r->stage->ends[side].memory + at);
	r->books.posted[side][FIRST_SEND + index] = true;
	return line_send(&r->lines[side], FIRST_SEND + index, at, r->plan.length[side][index]);
}

static bool post_write(struct round *r, unsigned side, size_t index)
{
	r->books.posted[side][FIRST_WRITE + index] = true;
	return line_write(&r->lines[side], FIRST_WRITE + index,
	                  r->slot + AT_WRITES + index * WRITTEN, WRITTEN, &r->stage->ends[1 - side],
	                  r->slot + AT_WRITTEN + index * WRITTEN);
}

static bool post_all(struct round *r)
{
	for (uint32_t i = 0; i < MESSAGES; i++) {
		for (unsigned side = 0; side < 2; side++) {
			if (i < r->plan.count[side] && !post_message(r, side, i))
				return false;
			if (i < WRITES && !post_write(r, side, i))
				return false;
		}
	}
	for (uint32_t i = 0; i < r->plan.head_start; i++)
		take_results(r, i % 2, 1);
	return true;
}

/* The disconnect of a side is complete: from now on nothing of it may change. */
static bool side_ended(struct round *r, unsigned side)
{
	struct line *line = &r->lines[side];

	if (!wait_for(&line->disc, "disconnect"))
		return false;
	r->books.tally->failed += line->disc.status != NDX_OK;
	take_results(r, side, SIZE_MAX);
	books_side_done(&r->books, side);
	memset(r->stage->ends[side].memory + r->slot, GUARD, SLOT_BYTES);
	return true;
}

static bool disconnect(struct round *r)
{
	unsigned first = r->plan.who == WHO_B;
	unsigned second = 1 - first;

	if (!line_disconnect(&r->lines[first]))
		return false;
	if (r->plan.who != WHO_BOTH && !wait_for(&r->lines[second].notify, "notify_disconnect"))
		return false;
	return line_disconnect(&r->lines[second]) && side_ended(r, first) && side_ended(r, second);
}

/* Has the memory of a connection changed since it ended? */
static void watch(struct round *r, size_t slot)
{
	for (unsigned side = 0; side < 2; side++) {
		const uint8_t *at = r->stage->ends[side].memory + slot;

		/* all bytes are the same, and the first is right */
		if (at[0] != GUARD || memcmp(at, at + 1, SLOT_BYTES - 1) != 0)
			r->books.tally->late++;
	}
}

static bool round_run(struct round *r, struct tally *tally, const struct options *o,
                      uint64_t number)
{
	bool good = true;

	plan_make(&r->plan, o->seed, number);
	books_open(&r->books, tally, &r->plan, number);
	r->slot = number % SLOTS * SLOT_BYTES;
	if (number >= SLOTS)
		watch(r, r->slot);
	memset(r->lines, 0, sizeof(r->lines));
	for (unsigned side = 0; side < 2 && good; side++)
		good = line_open(&r->lines[side], &r->stage->ends[side], mark_of(number, side)) &&
		       post_receives(r, side);
	good = good && lines_connect(r->stage, r->lines) && post_all(r) && disconnect(r);
	if (good)
		books_close(&r->books);
	line_close(&r->lines[0]);
	line_close(&r->lines[1]);
	return good;
}

bool account_run(const char *uri, const struct options *o, struct tally *tally)
{
	struct stage stage;
	struct round r = {.stage = &stage, .books = {.tally = tally}};
	uint64_t start = now_us();
	uint64_t number = 0;

	if (!stage_open(&stage, uri, (size_t)SLOTS * SLOT_BYTES))
		return false;
	while (number < o->disconnects && round_run(&r, tally, o, number))
		number++;
	r.books.round = number; /* what comes now is of a connection that is over */
	take_results(&r, 0, SIZE_MAX);
	take_results(&r, 1, SIZE_MAX);
	for (size_t slot = 0; slot < SLOTS && slot < number; slot++)
		watch(&r, slot * SLOT_BYTES);
	tally->microseconds = now_us() - start;
	stage_close(&stage);
	return number == o->disconnects;
}
