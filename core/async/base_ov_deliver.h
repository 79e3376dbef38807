/* SPDX-License-Identifier: BSD-2-Clause */
/* The last step of overlapped work; for core/async only. */
#ifndef BASE_OV_DELIVER_H
#define BASE_OV_DELIVER_H

#include <ndx/overlapped.h>

/* The loop's turn: call back, or tell who waits. */
void base_ov_deliver(struct ndx_overlapped *ov);

/* No callback: into its port, or tell who waits. */
void base_ov_tell(struct ndx_overlapped *ov);

#endif
