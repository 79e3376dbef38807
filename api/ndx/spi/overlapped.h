/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of a struct ndx_overlapped, for the code that completes it. */
#ifndef NDX_SPI_OVERLAPPED_H
#define NDX_SPI_OVERLAPPED_H

#include <ndx/overlapped.h>

#include <ndx/spi/overlapped_list.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndx_loop;

/* Complete all objects of the list, in order. */
void ndxp_ov_complete_all(struct ndxp_ov_list *list, enum ndx_status status);

NDXP_DECLS_END

#endif
