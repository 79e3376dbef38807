/* SPDX-License-Identifier: BSD-2-Clause */
/* The data-path functions of a new object: inline calls use them without a check. */
#ifndef FRONT_OPS_H
#define FRONT_OPS_H

#include <stdbool.h>

#include <ndx/spi/provider.h>

/* Replace the functions that the queue pair lacks and need not have. False: a function is missing
 * that each queue pair must have. */
bool ops_complete_qp(struct ndx_spi_qp *qp);
/* False: a function is missing. */
bool ops_check_cq(const struct ndx_cq_ops *ops);
bool ops_check_srq(const struct ndx_srq_ops *ops);

#endif
