/* SPDX-License-Identifier: BSD-2-Clause */
/* The last step of a completion; for core/async only. */
#ifndef BASE_OV_DELIVER_H
#define BASE_OV_DELIVER_H

#include <ndx/overlapped.h>

/* On the loop's thread: run the callback, or call base_ov_tell() if there is none. */
void base_ov_deliver(struct ndx_overlapped *ov);

/* For an object without a callback: put it into its port, give it to its sink, or wake the waiting
 * thread. */
void base_ov_tell(struct ndx_overlapped *ov);

#endif
