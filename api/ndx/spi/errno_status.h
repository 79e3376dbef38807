/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_SPI_ERRNO_STATUS_H
#define NDX_SPI_ERRNO_STATUS_H

#include <ndx/status.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* The status for an errno of a socket, of a connection or of a system limit; NDX_E_UNSUCCESSFUL for
 * every other one. An RDMA stack that uses an errno in a sense of its own checks that one first. */
enum ndx_status ndxp_errno_status(int err);

NDXP_DECLS_END

#endif
