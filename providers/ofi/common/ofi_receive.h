/* SPDX-License-Identifier: BSD-2-Clause */
/* What a receive is filled with, for the entry points of the data path. */
#ifndef OFI_OFI_RECEIVE_H
#define OFI_OFI_RECEIVE_H

#include "ofi.h"

/* libfabric's descriptor for the memory, if the back end has native keys. */
static inline void *ofi_desc_of(const struct ofi_qp *qp, uint32_t token)
{
	return ofi_backend_of(qp)->native_keys ? ofi_mr_desc(&qp->adapter->regions, token) : NULL;
}

/* Copy a receive; false: it names memory that it must not write. The queue pair's lock is held. */
static inline bool ofi_rx_fill(struct ofi_qp *qp, struct ofi_rx *rx, const struct ndx_sge *sge,
                               size_t count)
{
	bool ok = true;

	rx->native = false;
	rx->poisoned = false;
	rx->placed = false;
	rx->verdict = NDX_OK;
	rx->iov_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (sge[i].length == 0)
			continue;
		if (ok && !ofi_mr_allows(&qp->adapter->regions, sge[i].buffer, sge[i].length,
		                         sge[i].token, OFI_RIGHT_RECEIVE)) {
			ok = false;
			rx->denied = ofi_mr_denied(&qp->adapter->regions, sge[i].token,
			                           OFI_RIGHT_RECEIVE);
		}
		rx->desc[rx->iov_count] = ofi_desc_of(qp, sge[i].token);
		rx->tokens[rx->iov_count] = sge[i].token;
		rx->iov[rx->iov_count++] = (struct iovec){.iov_base = ndxp_sge_memory(&sge[i]),
		                                          .iov_len = sge[i].length};
	}
	return ok;
}

#endif
