/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of remote tokens, for the questions of peers. */
#include "ofi.h"

void ofi_key_add(struct ofi_key_table *table, struct ofi_key *key)
{
	ndxp_lock_acquire(&table->lock);
	key->users.count = 0;
	ndxp_table_add(&table->by_token, &key->node, key->grant.token);
	ndxp_lock_release(&table->lock);
}

void ofi_key_remove(struct ofi_key_table *table, struct ofi_key *key, struct ofi_key_users *users)
{
	*users = (struct ofi_key_users){0};
	if (key->grant.token == 0)
		return;
	ndxp_lock_acquire(&table->lock);
	ndxp_table_remove(&key->node);
	key->grant.token = 0;
	*users = key->users;
	ndxp_lock_release(&table->lock);
}

bool ofi_key_users_has(const struct ofi_key_users *users, uint32_t link_id)
{
	if (users->count > OFI_KEY_USERS_MAX)
		return true;
	for (uint32_t i = 0; i < users->count; i++) {
		if (users->ids[i] == link_id)
			return true;
	}
	return false;
}

static void add_user(struct ofi_key_users *users, uint32_t link_id)
{
	if (ofi_key_users_has(users, link_id))
		return;
	if (users->count < OFI_KEY_USERS_MAX)
		users->ids[users->count] = link_id;
	users->count++;
}

void ofi_key_answer(struct ofi_key_table *table, uint32_t token, uint32_t link_id,
                    struct ofi_grant *out)
{
	struct ndxp_table_node *node;
	struct ofi_key *key;

	*out = (struct ofi_grant){.token = token};
	ndxp_lock_acquire(&table->lock);
	node = ndxp_table_first(&table->by_token, token);
	key = node != NULL ? container_of(node, struct ofi_key, node) : NULL;
	if (key != NULL && (key->only == 0 || key->only == link_id)) {
		add_user(&key->users, link_id);
		*out = key->grant;
	}
	ndxp_lock_release(&table->lock);
}
