/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_callbacks.h"

#include "base_ov_state.h"

static void add(struct base_callbacks *q, struct ndxp_ov_list *list, struct ndx_overlapped *ov)
{
	ov->reserved[BASE_OV_PLACE] = (void *)q->places++;
	ndxp_ov_push(list, ov);
}

void base_callbacks_add(struct base_callbacks *q, struct ndx_overlapped *ov)
{
	add(q, &q->callbacks, ov);
}

void base_callbacks_add_behind(struct base_callbacks *q, struct ndx_overlapped *ov, uintptr_t of)
{
	ov->reserved[BASE_OV_OF] = (void *)of;
	add(q, &q->behind, ov);
}

bool base_callbacks_empty(const struct base_callbacks *q)
{
	return q->callbacks.head == NULL && q->behind.head == NULL;
}

static uintptr_t place_of(const struct ndx_overlapped *ov)
{
	return (uintptr_t)ov->reserved[BASE_OV_PLACE];
}

static bool is_before(const struct ndx_overlapped *ov, uintptr_t place)
{
	return (intptr_t)(place_of(ov) - place) < 0;
}

struct ndx_overlapped *base_callbacks_take(struct base_callbacks *q, uintptr_t end)
{
	struct ndxp_ov_list *list = &q->callbacks;
	const struct ndx_overlapped *behind = q->behind.head;

	if (behind != NULL && (list->head == NULL || is_before(behind, place_of(list->head))))
		list = &q->behind;
	if (list->head == NULL || !is_before(list->head, end))
		return NULL;
	return ndxp_ov_pop(list);
}

static bool is_one(const struct base_callbacks_which *which, const struct ndx_overlapped *ov)
{
	const uintptr_t of = (uintptr_t)ov->reserved[BASE_OV_OF];

	return (of & which->mask) == which->of && !(which->late && is_before(ov, which->since));
}

void base_callbacks_pick(struct base_callbacks *q, const struct base_callbacks_which *which,
                         struct ndxp_ov_list *out)
{
	struct ndxp_ov_list all = q->behind;
	struct ndx_overlapped *ov;

	q->behind = (struct ndxp_ov_list){0};
	while ((ov = ndxp_ov_pop(&all)) != NULL)
		ndxp_ov_push(is_one(which, ov) ? out : &q->behind, ov);
}
