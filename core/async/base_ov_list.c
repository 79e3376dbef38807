/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/overlapped_list.h>

#include "base_ov_state.h"

void ndxp_ov_push(struct ndxp_ov_list *list, struct ndx_overlapped *ov)
{
	ov->reserved[BASE_OV_NEXT] = NULL;
	if (list->tail != NULL)
		list->tail->reserved[BASE_OV_NEXT] = ov;
	else
		list->head = ov;
	list->tail = ov;
}

struct ndx_overlapped *ndxp_ov_pop(struct ndxp_ov_list *list)
{
	struct ndx_overlapped *ov = list->head;

	if (ov != NULL) {
		list->head = ov->reserved[BASE_OV_NEXT];
		if (list->head == NULL)
			list->tail = NULL;
	}
	return ov;
}

bool ndxp_ov_remove(struct ndxp_ov_list *list, struct ndx_overlapped *ov)
{
	struct ndx_overlapped *before = NULL;

	for (struct ndx_overlapped *at = list->head; at != NULL;
	     before = at, at = at->reserved[BASE_OV_NEXT]) {
		if (at != ov)
			continue;
		if (before != NULL)
			before->reserved[BASE_OV_NEXT] = ov->reserved[BASE_OV_NEXT];
		else
			list->head = ov->reserved[BASE_OV_NEXT];
		if (list->tail == ov)
			list->tail = before;
		return true;
	}
	return false;
}
