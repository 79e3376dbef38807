/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <string.h>

#include "round.h"

enum { LARGEST_AREA = 262144, SMALL_AREA = 8192, PARTS = AREAS + 1 };

static const char *const area_names[AREAS] = {"local", "receive", "read", "write"};

size_t memory_need(uint32_t area)
{
	return (size_t)PARTS * area;
}

static uint64_t read_key(const struct end *e)
{
	return e->round->plan.seed ^ (UINT64_C(0x1000000) * (e->id + 1));
}

uint64_t message_key(const struct end *e, uint32_t number)
{
	return e->round->plan.seed + UINT64_C(0x100000000) * (e->id + 1) + number * UINT64_C(0x9f);
}

uint64_t write_key(const struct end *e, uint32_t request)
{
	return ~e->round->plan.seed + UINT64_C(0x100000000) * (e->id + 1) +
	       request * UINT64_C(0x9f);
}

static uint8_t pattern_byte(uint64_t key, size_t at)
{
	uint64_t x = (key + at / 8) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint8_t)((x ^ x >> 29) >> 8 * (at % 8));
}

void pattern_fill(uint8_t *at, size_t length, uint64_t key)
{
	for (size_t i = 0; i < length; i++)
		at[i] = pattern_byte(key, i);
}

size_t pattern_match(const uint8_t *at, size_t length, uint64_t key)
{
	size_t i = 0;

	while (i < length && at[i] == pattern_byte(key, i))
		i++;
	return i;
}

bool bytes_are(const uint8_t *at, size_t length, uint8_t value)
{
	if (length == 0)
		return true;
	return at[0] == value && memcmp(at, at + 1, length - 1) == 0;
}

static size_t first_other(const uint8_t *at, size_t length, uint8_t value)
{
	size_t i = 0;

	while (i < length && at[i] == value)
		i++;
	return i;
}

void memory_init(struct end *e, uint8_t *base, uint32_t area)
{
	struct memory *m = &e->memory;

	m->size = area;
	for (uint32_t i = 0; i < AREAS; i++) {
		m->area[i] = base + (size_t)i * area;
		m->painted[i] = false;
	}
	m->shadow = base + (size_t)AREAS * area;
	memset(base, MEMORY_FILL, memory_need(area));
	pattern_fill(m->area[AREA_READ], area, read_key(e));
}

void memory_retire(struct end *e, enum area area)
{
	struct memory *m = &e->memory;
	uint8_t *at = m->area[area];
	uint32_t used;

	if (e->round->plan.process && e->side == e->round->plan.child && area == AREA_WRITE)
		return;
	(void)pthread_mutex_lock(&m->lock);
	if (m->painted[area]) {
		(void)pthread_mutex_unlock(&m->lock);
		return;
	}
	if (area == AREA_READ && pattern_match(at, m->size, read_key(e)) != m->size)
		fail(e->round, e, "memory that the peer may only read was changed");
	if (area == AREA_WRITE) {
		used = __atomic_load_n(&e->peer->write_room, __ATOMIC_ACQUIRE);
		if (!bytes_are(at + used, m->size - used, MEMORY_FILL))
			fail(e->round, e, "bytes were written behind those that the peer wrote");
		memcpy(m->shadow, at, m->size);
	}
	used = area == AREA_RECEIVE ? e->receive.room : m->size;
	if (area == AREA_RECEIVE && !bytes_are(at + used, m->size - used, MEMORY_FILL))
		fail(e->round, e, "bytes behind the last receive were written");
	m->painted[area] = true; /* before: the process that does it may be killed */
	memset(at, MEMORY_PAINT, m->size);
	(void)pthread_mutex_unlock(&m->lock);
}

void memory_watch(struct end *e)
{
	struct memory *m = &e->memory;

	(void)pthread_mutex_lock(&m->lock);
	for (uint32_t i = 0; i < AREAS; i++) {
		if (m->painted[i] && !bytes_are(m->area[i], m->size, MEMORY_PAINT))
			fail(e->round, e, "the %s memory changed at %zu when nobody may touch it",
			     area_names[i], first_other(m->area[i], m->size, MEMORY_PAINT));
	}
	(void)pthread_mutex_unlock(&m->lock);
}

bool memory_has_written(struct end *e, uint32_t at, uint32_t length, uint64_t key)
{
	struct memory *m = &e->memory;
	const uint8_t *from;
	bool there;

	/* A peer process paints nothing that we look at: it may be killed at any time. */
	if (!side_is_mine(side_of(e))) {
		if (e->side != e->round->plan.child)
			return true;
		return pattern_match(m->area[AREA_WRITE] + at, length, key) == length;
	}
	(void)pthread_mutex_lock(&m->lock);
	from = m->painted[AREA_WRITE] ? m->shadow : m->area[AREA_WRITE];
	there = pattern_match(from + at, length, key) == length;
	(void)pthread_mutex_unlock(&m->lock);
	return there;
}

bool memory_was_read(const struct end *owner, uint32_t owner_at, const uint8_t *at, uint32_t length)
{
	uint64_t key = read_key(owner);

	for (uint32_t i = 0; i < length; i++) {
		if (at[i] != pattern_byte(key, owner_at + i))
			return false;
	}
	return true;
}

/* ---- the stock ---- */

static size_t piece_size(void)
{
	size_t few = 2 * memory_need(LARGEST_AREA);
	size_t many = (size_t)2 * CONNS_MAX * memory_need(SMALL_AREA);

	/* and room for a shared receive queue at each side */
	return (few > many ? few : many) + (size_t)2 * LARGEST_AREA;
}

size_t stock_size(void)
{
	return STOCK_PIECES * piece_size();
}

void stock_init(struct stock *stock, uint8_t *base)
{
	memset(stock, 0, sizeof(*stock));
	stock->base = base;
	stock->piece = piece_size();
}

static void watch(struct stock *stock, struct round *round, uint32_t which)
{
	const uint8_t *at = stock->base + which * stock->piece;

	if (!bytes_are(at, stock->used[which], MEMORY_PAINT))
		fail(round, NULL,
		     "memory of round %llu changed at %zu, after everything of it was closed",
		     (unsigned long long)stock->round[which],
		     first_other(at, stock->used[which], MEMORY_PAINT));
}

uint8_t *stock_take(struct stock *stock, struct round *round, size_t bytes)
{
	uint32_t which = (uint32_t)(round->number % STOCK_PIECES);

	if (bytes > stock->piece)
		fail(round, NULL, "torture: a round wants %zu bytes", bytes);
	watch(stock, round, which);
	stock->used[which] = bytes;
	stock->round[which] = round->number;
	return stock->base + which * stock->piece;
}

void stock_give_back(struct stock *stock, struct round *round)
{
	uint32_t which = (uint32_t)(round->number % STOCK_PIECES);

	memset(stock->base + which * stock->piece, MEMORY_PAINT, stock->used[which]);
}

void stock_watch(struct stock *stock, struct round *round)
{
	for (uint32_t i = 0; i < STOCK_PIECES; i++)
		watch(stock, round, i);
}
