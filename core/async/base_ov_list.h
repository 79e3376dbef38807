/* SPDX-License-Identifier: BSD-2-Clause */
/* First-in first-out lists of overlapped objects. */
#ifndef BASE_OV_LIST_H
#define BASE_OV_LIST_H

#include <stdbool.h>

#include <ndx/overlapped.h>

/* A list that is a member of an object. Starts zeroed. */
struct base_ov_list {
	struct ndx_overlapped *head;
	struct ndx_overlapped *tail;
};

void base_ov_push(struct base_ov_list *list, struct ndx_overlapped *ov);
struct ndx_overlapped *base_ov_pop(struct base_ov_list *list);
/* Remove `ov` from the list; false if it is not in the list. */
bool base_ov_remove(struct base_ov_list *list, struct ndx_overlapped *ov);

#endif
