/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table of intrusive nodes. Its size is fixed, because the number of entries is limited, and
 * the hash is keyed, so packets cannot make chains long. */
#ifndef REASSEMBLY_TABLE_H
#define REASSEMBLY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

struct node {
	struct node *next;
	struct node **link; /* the pointer to this node */
	uint64_t hash;
};

struct table {
	struct node **buckets;
	uint64_t mask;
};

/* `size` is rounded up to a power of two. */
static inline bool table_init(struct table *table, struct mem *mem, uint32_t size)
{
	uint64_t buckets = 64;

	while (buckets < size)
		buckets *= 2;
	table->buckets = mem_zero(mem, buckets * sizeof(struct node *));
	table->mask = buckets - 1;
	return table->buckets != NULL;
}

static inline void table_fini(struct table *table, struct mem *mem)
{
	mem_put(mem, table->buckets, (table->mask + 1) * sizeof(struct node *));
	table->buckets = NULL;
}

/* The newest node of a chain comes first. */
static inline void table_add(struct table *table, struct node *node, uint64_t hash)
{
	struct node **bucket = &table->buckets[hash & table->mask];

	node->hash = hash;
	node->next = *bucket;
	node->link = bucket;
	if (node->next != NULL)
		node->next->link = &node->next;
	*bucket = node;
}

static inline void table_remove(struct node *node)
{
	*node->link = node->next;
	if (node->next != NULL)
		node->next->link = node->link;
}

static inline struct node *table_first(const struct table *table, uint64_t hash)
{
	struct node *node = table->buckets[hash & table->mask];

	while (node != NULL && node->hash != hash)
		node = node->next;
	return node;
}

static inline struct node *table_next(const struct node *from)
{
	struct node *node = from->next;

	while (node != NULL && node->hash != from->hash)
		node = node->next;
	return node;
}

/* Mix a value into a hash. */
static inline uint64_t table_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

#endif
