/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table of intrusive nodes. The owner of the table has the buckets, so no operation
 * allocates memory or fails, and the owner's lock guards the table. The size is fixed, because the
 * number of entries is limited. Where peers or packets choose the keys, the hash is keyed, so that
 * no peer can make chains long.
 */
#ifndef NDX_SPI_TABLE_H
#define NDX_SPI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ndxp_table_node {
	struct ndxp_table_node *next;
	struct ndxp_table_node **link; /* the pointer to this node; NULL: in no table */
	uint64_t hash;
};

struct ndxp_table {
	struct ndxp_table_node **buckets;
	uint64_t mask;
};

/* `buckets` are `count` pointers, all NULL; `count` is a power of two. */
static inline void ndxp_table_init(struct ndxp_table *table, struct ndxp_table_node **buckets,
                                   uint64_t count)
{
	table->buckets = buckets;
	table->mask = count - 1;
}

/* The newest node of a chain comes first. */
static inline void ndxp_table_add(struct ndxp_table *table, struct ndxp_table_node *node,
                                  uint64_t hash)
{
	struct ndxp_table_node **bucket = &table->buckets[hash & table->mask];

	node->hash = hash;
	node->next = *bucket;
	node->link = bucket;
	if (node->next != NULL)
		node->next->link = &node->next;
	*bucket = node;
}

/* Removing a node that is in no table does nothing. */
static inline void ndxp_table_remove(struct ndxp_table_node *node)
{
	if (node->link == NULL)
		return;
	*node->link = node->next;
	if (node->next != NULL)
		node->next->link = node->link;
	node->link = NULL;
}

/* The newest node with this hash; NULL if there is none. */
static inline struct ndxp_table_node *ndxp_table_first(const struct ndxp_table *table,
                                                       uint64_t hash)
{
	struct ndxp_table_node *node = table->buckets[hash & table->mask];

	while (node != NULL && node->hash != hash)
		node = node->next;
	return node;
}

/* The next node with the hash of `from`. */
static inline struct ndxp_table_node *ndxp_table_next(const struct ndxp_table_node *from)
{
	struct ndxp_table_node *node = from->next;

	while (node != NULL && node->hash != from->hash)
		node = node->next;
	return node;
}

/* The node that follows `from` in the whole table, in no particular order; the first for NULL. */
static inline struct ndxp_table_node *ndxp_table_walk(const struct ndxp_table *table,
                                                      const struct ndxp_table_node *from)
{
	uint64_t bucket = from == NULL ? 0 : (from->hash & table->mask) + 1;
	struct ndxp_table_node *node = from == NULL ? NULL : from->next;

	for (; node == NULL && bucket <= table->mask; bucket++)
		node = table->buckets[bucket];
	return node;
}

#endif
