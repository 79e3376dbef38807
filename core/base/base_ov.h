/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of a struct ndx_overlapped, for those who complete them. */
#ifndef BASE_OV_H
#define BASE_OV_H

#include <stdbool.h>

#include <ndx/overlapped.h>

struct ndx_loop;

/* First-in first-out list of overlapped objects that an object keeps. Zero it. */
struct base_ov_list {
	struct ndx_overlapped *head;
	struct ndx_overlapped *tail;
};

/* Begin: NDX_OK, or NDX_E_INVALID_PARAMETER when `ov` is NULL, in flight, or names a callback and a
 * port; then it was not touched. */
enum ndx_status base_ov_begin(struct ndx_overlapped *ov, struct ndx_loop *loop);

/* Undo base_ov_begin() when the operation failed at once after all: the object is as it was. */
void base_ov_abandon(struct ndx_overlapped *ov);

/* Complete; the object must not be touched afterwards. Any thread, any lock of the caller's. */
void base_ov_complete(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
                      int32_t native);

/* Complete behind the callbacks that are queued: whoever sees it sees that they have run. It needs
 * the loop's thread for that, so it is for what happens on it anyway. `of`: see
 * base_loop_behind(). */
void base_ov_complete_behind(struct ndx_overlapped *ov, uintptr_t of, enum ndx_status status,
                             uint32_t information, int32_t native);
/* The loop's turn: call back, or tell who waits. */
void base_ov_deliver(struct ndx_overlapped *ov);

void base_ov_push(struct base_ov_list *list, struct ndx_overlapped *ov);
struct ndx_overlapped *base_ov_pop(struct base_ov_list *list);
/* Take `ov` out of the list; false if it is not there. */
bool base_ov_remove(struct base_ov_list *list, struct ndx_overlapped *ov);
/* Complete all, in order. */
void base_ov_complete_all(struct base_ov_list *list, enum ndx_status status);

#endif
