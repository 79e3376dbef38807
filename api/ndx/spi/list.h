/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive doubly linked list; an element that is in no list points to itself. */
#ifndef NDX_SPI_LIST_H
#define NDX_SPI_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/spi/container_of.h>

struct ndxp_list {
	struct ndxp_list *next;
	struct ndxp_list *prev;
};

static inline void ndxp_list_init(struct ndxp_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool ndxp_list_empty(const struct ndxp_list *list)
{
	return list->next == list;
}

/* Insert `node` before `at`; with the list's head as `at`, this appends. */
static inline void ndxp_list_add(struct ndxp_list *at, struct ndxp_list *node)
{
	node->next = at;
	node->prev = at->prev;
	at->prev->next = node;
	at->prev = node;
}

/* Removing an initialised node that is in no list does nothing. */
static inline void ndxp_list_remove(struct ndxp_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	ndxp_list_init(node);
}

/* Remove and return the first node; NULL if the list is empty. */
static inline struct ndxp_list *ndxp_list_take(struct ndxp_list *list)
{
	struct ndxp_list *node = list->next;

	if (node == list)
		return NULL;
	ndxp_list_remove(node);
	return node;
}

#endif
