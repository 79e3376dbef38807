/* SPDX-License-Identifier: BSD-2-Clause */
/* The last step of overlapped work; for core/async only. */
#ifndef BASE_OV_DELIVER_H
#define BASE_OV_DELIVER_H

#include <ndx/overlapped.h>

/* The loop thread runs the callback, or passes the completion on with base_ov_tell(). */
void base_ov_deliver(struct ndx_overlapped *ov);

/* Without a callback: put the completion into its port, or wake the waiting thread. */
void base_ov_tell(struct ndx_overlapped *ov);

#endif
