/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local tokens. The lower bits of a token are the index of a slot, the upper bits count the uses of
 * the slot. A request may still name the token of a region that is gone, and that token must not
 * grant anything. So a slot whose count is at its end goes behind all others, and its count begins
 * anew only when no slot has an unused token left. As at most half of the slots are in use, that
 * takes at least 2^31 registrations.
 *
 * The table's lock is held, but for ofi_mr_denied().
 */
#include <stdlib.h>

#include "ofi.h"

void ofi_mr_table_fini(struct ofi_mr_table *table)
{
	for (uint32_t i = 0; i < OFI_MR_CHUNKS; i++)
		free(table->chunks[i]);
}

static struct ofi_mr_slot *slot_at(struct ofi_mr_table *table, uint32_t index)
{
	return &table->chunks[index / OFI_MR_CHUNK][index % OFI_MR_CHUNK];
}

struct ofi_mr_slot *ofi_mr_table_slot(struct ofi_mr_table *table, uint32_t token)
{
	return slot_at(table, token % OFI_MR_SLOTS);
}

static uint32_t pop(struct ofi_mr_table *table, struct ofi_mr_slots *list)
{
	const uint32_t index = list->first;

	list->first = slot_at(table, index)->next;
	list->count--;
	return index;
}

/* The first slot that was never used. */
static enum ndx_status take_fresh(struct ofi_mr_table *table, uint32_t *index)
{
	struct ofi_mr_slot **chunk = &table->chunks[table->used / OFI_MR_CHUNK];
	struct ofi_mr_slot *made;

	if (*chunk == NULL) {
		made = calloc(OFI_MR_CHUNK, sizeof(*made));
		if (made == NULL)
			return NDX_E_NO_MEMORY;
		__atomic_store_n(chunk, made, __ATOMIC_RELEASE);
	}
	*index = table->used++;
	/* 0 is no token */
	slot_at(table, *index)->uses = *index == 0;
	return NDX_OK;
}

enum ndx_status ofi_mr_table_take(struct ofi_mr_table *table, uint32_t *token)
{
	enum ndx_status st = NDX_OK;
	struct ofi_mr_slot *slot;
	uint32_t index;

	if (table->live == OFI_MR_REGIONS)
		return NDX_E_INSUFFICIENT_RESOURCES;
	if (table->begun.count > 0) {
		index = pop(table, &table->begun);
	} else if (table->used < OFI_MR_SLOTS) {
		st = take_fresh(table, &index);
		if (st != NDX_OK)
			return st;
	} else {
		index = pop(table, &table->spent);
		slot_at(table, index)->uses = index == 0;
	}
	slot = slot_at(table, index);
	*token = index + slot->uses++ * OFI_MR_SLOTS;
	table->live++;
	return NDX_OK;
}

/* The slot goes to the front of the begun slots, or behind all spent ones. */
void ofi_mr_table_put(struct ofi_mr_table *table, uint32_t token)
{
	const uint32_t index = token % OFI_MR_SLOTS;
	struct ofi_mr_slot *slot = slot_at(table, index);
	struct ofi_mr_slots *list = slot->uses < OFI_MR_USES ? &table->begun : &table->spent;

	table->live--;
	if (list == &table->begun || list->count == 0) {
		slot->next = list->first;
		list->first = index;
	} else {
		slot_at(table, list->last)->next = index;
	}
	list->last = index; /* `last` matters for the spent slots only */
	list->count++;
}

struct ofi_mr *ofi_mr_find(const struct ofi_mr_table *table, uint32_t token)
{
	const uint32_t index = token % OFI_MR_SLOTS;
	const struct ofi_mr_slot *slot = table->chunks[index / OFI_MR_CHUNK];

	if (slot == NULL || token == 0 || slot[index % OFI_MR_CHUNK].token != token)
		return NULL;
	return slot[index % OFI_MR_CHUNK].region;
}

enum ofi_denied ofi_mr_denied(const struct ofi_mr_table *table, uint32_t token, uint32_t right)
{
	const uint32_t index = token % OFI_MR_SLOTS;
	const struct ofi_mr_slot *slot =
		__atomic_load_n(&table->chunks[index / OFI_MR_CHUNK], __ATOMIC_ACQUIRE);

	if (slot == NULL || token == 0)
		return OFI_DENIED_TOKEN;
	slot += index % OFI_MR_CHUNK;
	if (__atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) != token)
		return OFI_DENIED_TOKEN;
	return (__atomic_load_n(&slot->rights, __ATOMIC_RELAXED) & right) == right
	               ? OFI_DENIED_BOUNDS
	               : OFI_DENIED_RIGHT;
}
