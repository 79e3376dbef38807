/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the slab's lists and counts with its slots, after every change in debug builds, and in
 * tests. */
#include "slab.h"

static uint32_t count_state(const struct slab *slab, uint32_t first, uint32_t end,
                            enum slot_state state)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < end; i++)
		n += slab->slots[i].state == state;
	return n;
}

/* Whether this is a list of exactly `length` free slots with an index in first..end. A slot that is
 * in the list twice makes a ring, which is longer. */
static bool is_list_of(const struct slot *at, uint32_t length, uint32_t first, uint32_t end)
{
	for (; length > 0; length--, at = at->next)
		if (at == NULL || at->state != SLOT_FREE || at->index < first || at->index >= end)
			return false;
	return at == NULL;
}

const char *slab_find_fault(const struct slab *slab)
{
	const uint32_t end = slab->count + slab->copy_count;
	const uint32_t free_slots = count_state(slab, 0, slab->count, SLOT_FREE);
	const uint32_t free_copies = count_state(slab, slab->count, end, SLOT_FREE);
	const uint32_t posted = count_state(slab, 0, end, SLOT_POSTED);
	const uint32_t held = count_state(slab, 0, end, SLOT_HELD);

	if (free_slots + free_copies + posted + held != end)
		return "a slot is in no state";
	if (slab->unposted != free_slots)
		return "the count of free slots is not that of slots in state FREE";
	if (!is_list_of(slab->free, free_slots, 0, slab->count))
		return "the list of free slots is not that of slots in state FREE";
	if (!is_list_of(slab->spare, free_copies, slab->count, end))
		return "the list of spare copies is not that of copies in state FREE";
	if (slab->posted != posted)
		return "the count of posted slots is not that of slots in state POSTED";
	if (count_state(slab, slab->count, end, SLOT_POSTED) > 0)
		return "a copy is posted";
	if (slab->held != held)
		return "the count of held slots is not that of slots in state HELD";
	if (slab->out_of_slots_since_ns != 0 && slab->posted > 0)
		return "out of slots with a slot posted";
	return NULL;
}
