/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order that software RoCE breaks. It completes sends and receives in different contexts, so
 * the receive of an answer often completes before the send of its question. Hardware keeps the
 * order of the packets. So a provider holds the completions of receives until the requests that may
 * have caused them have completed.
 */
#ifndef NDX_SPI_REORDER_H
#define NDX_SPI_REORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/queue_pair.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* The queue pair's lock is held. The oldest initiator request whose completion will come; false:
 * there is none. */
typedef bool ndxp_reorder_oldest_fn(const struct ndxp_qp *qp, uint32_t *index);
/* Read the native queue once; pass on all completions but those of receives, and hold these.
 * Returns how many there were; negative: the held receives have to be passed on first. */
typedef int ndxp_reorder_read_fn(void *arg);

/* Before a held receive of `qp` is passed on: read until the requests that may have caused the
 * receive have completed. Only the thread that reads the native queue calls this. */
void ndxp_reorder_await(struct ndxp_qp *qp, ndxp_reorder_oldest_fn *oldest,
                        ndxp_reorder_read_fn *read, void *arg);

NDXP_DECLS_END

#endif
