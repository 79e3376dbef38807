/* SPDX-License-Identifier: BSD-2-Clause */
/* What peers may ask for: the table of remote tokens. */
#include "ofi.h"

static struct ofi_key **bucket_of(struct ofi_key_table *table, uint32_t token)
{
	return &table->buckets[token % OFI_KEY_BUCKETS];
}

void ofi_key_add(struct ofi_key_table *table, struct ofi_key *key)
{
	struct ofi_key **bucket = bucket_of(table, key->grant.token);

	base_lock_acquire(&table->lock);
	key->told = false;
	key->next = *bucket;
	*bucket = key;
	base_lock_release(&table->lock);
}

bool ofi_key_remove(struct ofi_key_table *table, struct ofi_key *key)
{
	struct ofi_key **at = bucket_of(table, key->grant.token);
	bool told;

	if (key->grant.token == 0)
		return false;
	base_lock_acquire(&table->lock);
	while (*at != key)
		at = &(*at)->next;
	*at = key->next;
	key->grant.token = 0;
	told = key->told;
	base_lock_release(&table->lock);
	return told;
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
		key->told = true;
		*out = key->grant;
	}
	base_lock_release(&table->lock);
}
