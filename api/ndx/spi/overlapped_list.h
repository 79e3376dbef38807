/* SPDX-License-Identifier: BSD-2-Clause */
/* First-in first-out lists of overlapped objects, for the owner of operations in flight. */
#ifndef NDX_SPI_OVERLAPPED_LIST_H
#define NDX_SPI_OVERLAPPED_LIST_H

#include <stdbool.h>

#include <ndx/overlapped.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* A list that is a member of an object. Starts zeroed. */
struct ndxp_ov_list {
	struct ndx_overlapped *head;
	struct ndx_overlapped *tail;
};

/* ndx_overlapped.reserved[NDXP_OV_NEXT] is the link of the list that holds an operation in flight.
 */
#define NDXP_OV_NEXT 1

static inline void ndxp_ov_push(struct ndxp_ov_list *list, struct ndx_overlapped *ov)
{
	ov->reserved[NDXP_OV_NEXT] = NULL;
	if (list->tail != NULL)
		list->tail->reserved[NDXP_OV_NEXT] = ov;
	else
		list->head = ov;
	list->tail = ov;
}

static inline struct ndx_overlapped *ndxp_ov_pop(struct ndxp_ov_list *list)
{
	struct ndx_overlapped *ov = list->head;

	if (ov != NULL) {
		list->head = (struct ndx_overlapped *)ov->reserved[NDXP_OV_NEXT];
		if (list->head == NULL)
			list->tail = NULL;
	}
	return ov;
}

/* Remove `ov` from the list; false if it is not in the list. */
static inline bool ndxp_ov_remove(struct ndxp_ov_list *list, struct ndx_overlapped *ov)
{
	struct ndx_overlapped *before = NULL;
	struct ndx_overlapped *at = list->head;

	while (at != NULL && at != ov) {
		before = at;
		at = (struct ndx_overlapped *)at->reserved[NDXP_OV_NEXT];
	}
	if (at == NULL)
		return false;
	if (before != NULL)
		before->reserved[NDXP_OV_NEXT] = ov->reserved[NDXP_OV_NEXT];
	else
		list->head = (struct ndx_overlapped *)ov->reserved[NDXP_OV_NEXT];
	if (list->tail == ov)
		list->tail = before;
	return true;
}

NDXP_DECLS_END

#endif
