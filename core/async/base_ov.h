/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a struct ndx_overlapped, for the code that begins and completes operations. */
#ifndef BASE_OV_H
#define BASE_OV_H

#include <ndx/overlapped.h>
#include <ndx/spi/overlapped.h>

#include "base_private.h"

struct ndx_loop;

/* Begin an operation. NDX_E_INVALID_PARAMETER, with `ov` unchanged, if `ov` is NULL, in flight, or
 * has both a callback and a port. */
enum ndx_status base_ov_begin(struct ndx_overlapped *ov, struct ndx_loop *loop);

/* The same; `call`, a literal, names the operation in the text of a failure that comes later. */
enum ndx_status base_ov_begin_call(struct ndx_overlapped *ov, struct ndx_loop *loop,
                                   const char *call) NDX_PRIVATE(base_ov_begin_call);

/* For the owner of an operation that is in flight: what the operation fills. */
void base_ov_set_target(struct ndx_overlapped *ov, void *target);

void *base_ov_get_target(const struct ndx_overlapped *ov);

/* Undo base_ov_begin() after the operation failed immediately: restores the object. */
void base_ov_abandon(struct ndx_overlapped *ov) NDX_PRIVATE(base_ov_abandon);

/* Complete; the caller must not touch the object afterwards. Any thread, with any lock held. */
void base_ov_complete(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
                      int32_t native) NDX_PRIVATE(base_ov_complete);

/* Complete after the callbacks that are queued now: a thread that sees the completion knows that
 * they have run. The completion needs the loop's thread, so use this for work on that thread. `of`:
 * see base_loop_behind(). */
void base_ov_complete_behind(struct ndx_overlapped *ov, uintptr_t of, enum ndx_status status,
                             uint32_t information, int32_t native);

#endif
