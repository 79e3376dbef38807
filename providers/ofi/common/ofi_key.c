/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of remote tokens, for the questions of peers. */
#include "ofi.h"

static struct ofi_key **bucket_of(struct ofi_key_table *table, uint32_t token)
{
	return &table->buckets[token % OFI_KEY_BUCKETS];
}

void ofi_key_add(struct ofi_key_table *table, struct ofi_key *key)
{
	struct ofi_key **bucket = bucket_of(table, key->grant.token);

	base_lock_acquire(&table->lock);
	key->told.count = 0;
	key->next = *bucket;
	*bucket = key;
	base_lock_release(&table->lock);
}

void ofi_key_remove(struct ofi_key_table *table, struct ofi_key *key, struct ofi_told *told)
{
	struct ofi_key **at = bucket_of(table, key->grant.token);

	*told = (struct ofi_told){0};
	if (key->grant.token == 0)
		return;
	base_lock_acquire(&table->lock);
	while (*at != key)
		at = &(*at)->next;
	*at = key->next;
	key->grant.token = 0;
	*told = key->told;
	base_lock_release(&table->lock);
}

bool ofi_told_has(const struct ofi_told *told, uint32_t link_id)
{
	if (told->count > OFI_TOLD_MAX)
		return true;
	for (uint32_t i = 0; i < told->count; i++) {
		if (told->ids[i] == link_id)
			return true;
	}
	return false;
}

static void add_told(struct ofi_told *told, uint32_t link_id)
{
	if (ofi_told_has(told, link_id))
		return;
	if (told->count < OFI_TOLD_MAX)
		told->ids[told->count] = link_id;
	told->count++;
}

void ofi_key_tell(struct ofi_key_table *table, uint32_t token, uint32_t link_id,
                  struct ofi_grant *out)
{
	struct ofi_key *key;

	*out = (struct ofi_grant){.token = token};
	base_lock_acquire(&table->lock);
	key = *bucket_of(table, token);
	while (key != NULL && key->grant.token != token)
		key = key->next;
	if (key != NULL && (key->only == 0 || key->only == link_id)) {
		add_told(&key->told, link_id);
		*out = key->grant;
	}
	base_lock_release(&table->lock);
}
