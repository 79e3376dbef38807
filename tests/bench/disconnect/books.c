/* SPDX-License-Identifier: BSD-2-Clause */
/* The schedule of a connection, and its books; used for NDX and for libfabric alike. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "figures.h"

enum { HEADER = 16 };

uint64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void plan_make(struct plan *plan, uint64_t seed, uint64_t round)
{
	uint64_t state = seed + round * 0x2545f4914f6cdd1du;

	for (unsigned side = 0; side < 2; side++) {
		plan->count[side] = (uint32_t)(next(&state) % (MESSAGES + 1));
		for (size_t i = 0; i < MESSAGES; i++)
			plan->length[side][i] =
				(uint32_t)(HEADER + next(&state) % (LONGEST - HEADER + 1));
	}
	plan->head_start = (uint32_t)(next(&state) % 8);
	plan->who = (enum who)(next(&state) % 3);
}

void books_open(struct books *b, struct tally *tally, const struct plan *plan, uint64_t round)
{
	memset(b, 0, sizeof(*b));
	b->tally = tally;
	b->plan = plan;
	b->round = round;
	tally->connections++;
}

void message_fill(const struct books *b, unsigned from, uint32_t index, uint8_t *at)
{
	uint32_t length = b->plan->length[from][index];

	memcpy(at, &b->round, 8);
	memcpy(at + 8, &from, 4);
	memcpy(at + 12, &index, 4);
	memset(at + HEADER, (int)(b->round * 7 + index + from + 1) & 0xff, length - HEADER);
}

/* Which message of `from` is it? MESSAGES: none. */
static uint32_t message_index(const struct books *b, unsigned from, const uint8_t *at,
                              size_t length)
{
	uint8_t right[LONGEST];
	uint32_t index;

	if (length < HEADER)
		return MESSAGES;
	memcpy(&index, at + 12, 4);
	if (index >= b->plan->count[from] || b->plan->length[from][index] != length)
		return MESSAGES;
	message_fill(b, from, index, right);
	return memcmp(at, right, length) == 0 ? index : MESSAGES;
}

static void message_came(struct books *b, unsigned from, const uint8_t *at, size_t length)
{
	uint32_t index = message_index(b, from, at, length);

	if (index == MESSAGES)
		b->tally->corrupt++;
	else if (b->arrived[from][index])
		b->tally->doubled++;
	else
		b->arrived[from][index] = true;
}

void books_result(struct books *b, unsigned side, size_t number, bool good, const uint8_t *at,
                  size_t length)
{
	if (number >= REQUESTS || !b->posted[side][number] || b->answered[side][number]) {
		b->tally->doubled++; /* or of a request that was not made */
		return;
	}
	b->answered[side][number] = true;
	if (!good)
		return;
	if (number < FIRST_SEND)
		message_came(b, 1 - side, at, length);
	else if (number < FIRST_WRITE)
		b->completed[side][number - FIRST_SEND] = true;
}

void books_side_done(struct books *b, unsigned side)
{
	for (size_t i = 0; i < REQUESTS; i++)
		b->tally->unanswered += b->posted[side][i] && !b->answered[side][i];
}

void books_close(struct books *b)
{
	struct tally *t = b->tally;

	for (unsigned from = 0; from < 2; from++) {
		for (size_t i = 0; i < MESSAGES; i++) {
			bool posted = b->posted[from][FIRST_SEND + i];
			bool arrived = b->arrived[from][i];

			t->posted += posted;
			t->completed += b->completed[from][i];
			t->delivered += arrived;
			t->lost += b->completed[from][i] && !arrived;
			t->cut_off += posted && !arrived;
		}
	}
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one;
	uint64_t b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

void timing_of(struct timing *timing, uint64_t *us, size_t count, size_t succeeded)
{
	timing->count = count;
	timing->succeeded = succeeded;
	if (count == 0)
		return;
	qsort(us, count, sizeof(*us), compare);
	timing->p50 = us[count / 2];
	timing->p99 = us[count - 1 - count / 100];
	timing->max = us[count - 1];
}
