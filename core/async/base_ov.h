/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of a struct ndx_overlapped, for those who complete them. */
#ifndef BASE_OV_H
#define BASE_OV_H

#include <ndx/overlapped.h>

#include "base_ov_list.h"

struct ndx_loop;

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

/* Complete all, in order. */
void base_ov_complete_all(struct base_ov_list *list, enum ndx_status status);

#endif
