/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive doubly linked list; an element that is in no list points to itself. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base_container_of.h"

struct base_list {
	struct base_list *next;
	struct base_list *prev;
};

static inline void base_list_init(struct base_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool base_list_empty(const struct base_list *list)
{
	return list->next == list;
}

/* Insert `node` before `at`; with the list's head as `at`, this appends. */
static inline void base_list_add(struct base_list *at, struct base_list *node)
{
	node->next = at;
	node->prev = at->prev;
	at->prev->next = node;
	at->prev = node;
}

/* Removing an initialised node that is in no list does nothing. */
static inline void base_list_remove(struct base_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	base_list_init(node);
}

/* Remove and return the first node; NULL if the list is empty. */
static inline struct base_list *base_list_take(struct base_list *list)
{
	struct base_list *node = list->next;

	if (node == list)
		return NULL;
	base_list_remove(node);
	return node;
}

#endif
