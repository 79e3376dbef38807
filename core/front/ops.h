/* SPDX-License-Identifier: BSD-2-Clause */
/* The data-path functions of a new object: inline calls use them without a check. */
#ifndef FRONT_OPS_H
#define FRONT_OPS_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

/* Replace the functions that the queue lacks and need not have; `whole` is released with the queue.
 * NDX_E_ABI_MISMATCH, without a text: a function is missing that each such queue must have. */
enum ndx_status ops_complete_qp(struct ndx_spi_qp *qp);
enum ndx_status ops_complete_srq(struct ndx_spi_srq *srq);
/* False: a function is missing. */
bool ops_check_cq(const struct ndx_cq_ops *ops);

#endif
