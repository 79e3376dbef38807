/* SPDX-License-Identifier: BSD-2-Clause */
/* What libndx-ndspi offers to libndx-winrt: handles that its threads have, and that programs wait
 * for like events. */
#ifndef NDX_ND_WAITABLE_H
#define NDX_ND_WAITABLE_H

#include "ndx_win32_types.h"

NDX_ND_BEGIN

/* A handle, and a reference to what the handle names, for the thread itself; NULL, and the last
 * error, if there is no memory. When the last reference is gone, drop(object) is called, unless
 * this call has failed. */
void *ndx_nd_waitable_create(void *object, void (*drop)(void *), HANDLE *handle);
/* The threads that wait for the handle go on. */
void ndx_nd_waitable_signal(void *waitable);
void ndx_nd_waitable_release(void *waitable);
/* The object, and a reference to the waitable, which keeps the object; NULL, and the last error, if
 * the handle is none of these. */
void *ndx_nd_waitable_object(HANDLE handle, void **waitable);

NDX_ND_END

#endif
