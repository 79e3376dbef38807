/* SPDX-License-Identifier: BSD-2-Clause */
#include "range.h"

#include <string.h>

/* A segment with more intervals is an attack on the memory, not a capture. */
#define RANGE_MAX 65536

static const struct range *all(const struct range_set *set)
{
	return set->more != NULL ? set->more : &set->one;
}

void range_free(struct range_set *set, struct mem *mem)
{
	mem_put(mem, set->more, set->room * sizeof(*set->more));
	*set = (struct range_set){0};
}

/* The index of the first interval that ends at or after `at`. */
static uint32_t find(const struct range_set *set, uint64_t at)
{
	const struct range *r = all(set);
	uint32_t low = 0, high = set->count;

	if (high > 0 && r[high - 1].to < at)
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r[middle].to < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool make_room(struct range_set *set, struct mem *mem)
{
	uint32_t room = set->room == 0 ? 4 : set->room * 2;
	struct range *more;

	if (set->count < 1 || (set->more != NULL && set->count < set->room))
		return true;
	if (set->count >= RANGE_MAX)
		return false;
	more = mem_resize(mem, set->more, set->room * sizeof(*more), room * sizeof(*more));
	if (more == NULL)
		return false;
	if (set->more == NULL)
		more[0] = set->one;
	set->more = more;
	set->room = room;
	return true;
}

static bool insert(struct range_set *set, struct mem *mem, uint32_t at, struct range new)
{
	struct range *r;

	if (!make_room(set, mem))
		return false;
	if (set->more == NULL) {
		set->one = new;
	} else {
		r = set->more;
		memmove(&r[at + 1], &r[at], (set->count - at) * sizeof(*r));
		r[at] = new;
	}
	set->count++;
	set->covered += new.to - new.from;
	return true;
}

bool range_add(struct range_set *set, struct mem *mem, uint64_t from, uint64_t to, uint64_t *fresh)
{
	struct range *r = set->more != NULL ? set->more : &set->one;
	uint64_t before = set->covered;
	uint32_t at, end;

	*fresh = 0;
	if (from >= to)
		return true;
	at = find(set, from);
	if (at == set->count || r[at].from > to) {
		if (!insert(set, mem, at, (struct range){from, to}))
			return false;
		*fresh = to - from;
		return true;
	}
	/* Extend r[at], and merge the intervals that it then touches. */
	set->covered -= r[at].to - r[at].from;
	if (from < r[at].from)
		r[at].from = from;
	if (to > r[at].to)
		r[at].to = to;
	for (end = at + 1; end < set->count && r[end].from <= r[at].to; end++) {
		set->covered -= r[end].to - r[end].from;
		if (r[end].to > r[at].to)
			r[at].to = r[end].to;
	}
	set->covered += r[at].to - r[at].from;
	if (end > at + 1) {
		memmove(&r[at + 1], &r[end], (set->count - end) * sizeof(*r));
		set->count -= end - at - 1;
	}
	*fresh = set->covered - before;
	return true;
}

bool range_covers(const struct range_set *set, uint64_t from, uint64_t to)
{
	struct range gap;

	return !range_gap(set, from, to, &gap);
}

bool range_gap(const struct range_set *set, uint64_t from, uint64_t to, struct range *gap)
{
	const struct range *r = all(set);
	uint32_t at = find(set, from);

	if (at < set->count && r[at].from <= from) {
		from = r[at].to;
		at++;
	}
	if (from >= to)
		return false;
	gap->from = from;
	gap->to = at < set->count && r[at].from < to ? r[at].from : to;
	return true;
}
