/* SPDX-License-Identifier: BSD-2-Clause */
/* `prev` of a timer is its left neighbour; of the leftmost one the parent; of the first timer
 * NULL. */
#include "base_timers.h"

#include <stddef.h>

/* Join two heaps without neighbours. */
static struct ndxp_timer *join_heaps(struct ndxp_timer *a, struct ndxp_timer *b)
{
	struct ndxp_timer *first = a;
	struct ndxp_timer *later = b;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (b->deadline_ns < a->deadline_ns) {
		first = b;
		later = a;
	}
	later->prev = first;
	later->next = first->child;
	if (first->child != NULL)
		first->child->prev = later;
	first->child = later;
	return first;
}

static struct ndxp_timer *take_left(struct ndxp_timer **row)
{
	struct ndxp_timer *left = *row;

	if (left == NULL)
		return NULL;
	*row = left->next;
	left->next = NULL;
	left->prev = NULL;
	return left;
}

/* Join a row of heaps: neighbours in pairs, then the pairs from the right. That order keeps the
 * steps few, whatever is added and removed. */
static struct ndxp_timer *join_row(struct ndxp_timer *row)
{
	struct ndxp_timer *pairs = NULL;
	struct ndxp_timer *joined = NULL;

	while (row != NULL) {
		struct ndxp_timer *left = take_left(&row);
		struct ndxp_timer *pair = join_heaps(left, take_left(&row));

		pair->next = pairs;
		pairs = pair;
	}
	while (pairs != NULL) {
		struct ndxp_timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		joined = join_heaps(joined, pair);
	}
	return joined;
}

void base_timers_add(struct base_timers *timers, struct ndxp_timer *timer)
{
	timer->child = NULL;
	timer->next = NULL;
	timer->prev = NULL;
	timers->first = join_heaps(timers->first, timer);
}

void base_timers_remove(struct base_timers *timers, struct ndxp_timer *timer)
{
	struct ndxp_timer *below = join_row(timer->child);

	if (timer == timers->first) {
		timers->first = below;
		return;
	}
	if (timer->prev->child == timer)
		timer->prev->child = timer->next;
	else
		timer->prev->next = timer->next;
	if (timer->next != NULL)
		timer->next->prev = timer->prev;
	timers->first = join_heaps(timers->first, below);
}
