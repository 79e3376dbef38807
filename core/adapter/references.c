/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues exist as long as a handle or a queue pair needs them. */
#include <stdlib.h>

#include "adapter.h"

void cq_put(struct ndx_spi_cq *cq)
{
	struct ndx_adapter *adapter = cq->object.adapter;
	bool last;

	adapter_lock(adapter);
	last = --cq->object.refs == 0;
	adapter_unlock(adapter);
	if (last) {
		adapter_remove_object(adapter, &cq->object, CORE_CQ);
		adapter->ops->cq_destroy(cq);
		adapter_put(adapter, false);
	}
}

void srq_put(struct ndx_spi_srq *srq)
{
	struct ndx_adapter *adapter = srq->object.adapter;
	struct ndx_srq_ops *whole = srq->whole;
	bool last;

	adapter_lock(adapter);
	last = --srq->object.refs == 0;
	adapter_unlock(adapter);
	if (last) {
		adapter_remove_object(adapter, &srq->object, CORE_SRQ);
		adapter->ops->srq_destroy(srq);
		free(whole);
		adapter_put(adapter, false);
	}
}
