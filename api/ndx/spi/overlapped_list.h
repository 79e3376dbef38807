/* SPDX-License-Identifier: BSD-2-Clause */
/* First-in first-out lists of overlapped objects. */
#ifndef NDX_SPI_OVERLAPPED_LIST_H
#define NDX_SPI_OVERLAPPED_LIST_H

#include <stdbool.h>

#include <ndx/overlapped.h>

/* A list that is a member of an object. Starts zeroed. */
struct ndxp_ov_list {
	struct ndx_overlapped *head;
	struct ndx_overlapped *tail;
};

void ndxp_ov_push(struct ndxp_ov_list *list, struct ndx_overlapped *ov);
struct ndx_overlapped *ndxp_ov_pop(struct ndxp_ov_list *list);
/* Remove `ov` from the list; false if it is not in the list. */
bool ndxp_ov_remove(struct ndxp_ov_list *list, struct ndx_overlapped *ov);

#endif
