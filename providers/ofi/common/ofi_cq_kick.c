/* SPDX-License-Identifier: BSD-2-Clause */
/* Any thread wakes the control thread for a native queue. */
#include "ofi.h"

void ofi_ncq_kick(struct ofi_ncq *ncq)
{
	__atomic_store_n(&ncq->kicked, 1, __ATOMIC_RELEASE);
	ndxp_loop_post(ncq->adapter->spi.loop, &ncq->adapter->kick);
}

void ofi_ncq_await(struct ofi_ncq *ncq)
{
	__atomic_store_n(&ncq->awaited, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) == OFI_NCQ_POLLED)
		ofi_ncq_kick(ncq);
}
