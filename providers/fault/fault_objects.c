/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues, regions and windows: each call is counted, and fails or is passed on. */
#include <ndx/spi/system.h>
#include "fault.h"

enum ndx_status fault_cq_get_fd(struct ndx_spi_cq *cq, int *fd)
{
	struct fault_adapter *fa = fault_of(cq->object.native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_cq_get_fd);

	if (st == NDX_OK)
		return fa->ops->cq_get_fd(cq, fd);
	*fd = -77;
	return st;
}

void fault_cq_wake(struct ndx_spi_cq *cq, bool up)
{
	const struct ndx_provider_ops *ops = fault_of(cq->object.native)->ops;
	int fd;

	if (ops->cq_wake != NULL) {
		ops->cq_wake(cq, up);
		return;
	}
	if (ops->cq_get_fd(cq, &fd) != NDX_OK)
		return;
	if (up)
		ndxp_eventfd_set(fd);
	else
		ndxp_eventfd_clear(fd);
}

enum ndx_status fault_cq_resize(struct ndx_spi_cq *cq, uint32_t depth)
{
	struct fault_adapter *fa = fault_of(cq->object.native);
	enum ndx_status st;

	if (fa->ops->cq_resize == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(fa, FAULT_CALL_cq_resize);
	return st == NDX_OK ? fa->ops->cq_resize(cq, depth) : st;
}

enum ndx_status fault_cq_affinity(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity)
{
	struct fault_adapter *fa = fault_of(cq->object.native);
	enum ndx_status st;

	if (fa->ops->cq_affinity == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(fa, FAULT_CALL_cq_affinity);
	if (st == NDX_OK)
		return fa->ops->cq_affinity(cq, group, affinity);
	*group = UINT16_MAX;
	*affinity = UINT64_MAX;
	return st;
}

enum ndx_status fault_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_mr_create);

	if (st == NDX_OK)
		return fa->ops->mr_create(adapter, out);
	*out = fault_bad_pointer();
	return st;
}

void fault_mr_destroy(struct ndx_spi_mr *mr)
{
	fault_of(mr->object.native)->ops->mr_destroy(mr);
}

enum ndx_status fault_mr_register(struct ndx_spi_mr *mr, void *buffer, size_t length,
                                  uint32_t flags)
{
	struct fault_adapter *fa = fault_of(mr->object.native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_mr_register);

	if (st == NDX_OK)
		return fa->ops->mr_register(mr, buffer, length, flags);
	/* a region that is not registered has tokens that no request may use */
	mr->local_token = UINT32_MAX;
	mr->remote_token = UINT32_MAX;
	return st;
}

/* With `closing` the core is about to free the region, so the call must not fail. */
enum ndx_status fault_mr_deregister(struct ndx_spi_mr *mr, bool closing)
{
	struct fault_adapter *fa = fault_of(mr->object.native);
	const enum ndx_status st = closing ? NDX_OK : fault_inject(fa, FAULT_CALL_mr_deregister);

	return st == NDX_OK ? fa->ops->mr_deregister(mr, closing) : st;
}

void fault_mr_wait_idle(struct ndx_spi_mr *mr)
{
	const struct ndx_provider_ops *ops = fault_of(mr->object.native)->ops;

	if (ops->mr_wait_idle != NULL)
		ops->mr_wait_idle(mr);
}

enum ndx_status fault_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	enum ndx_status st;

	if (fa->ops->mw_create == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(fa, FAULT_CALL_mw_create);
	if (st == NDX_OK)
		return fa->ops->mw_create(adapter, out);
	*out = fault_bad_pointer();
	return st;
}

void fault_mw_destroy(struct ndx_spi_mw *mw)
{
	fault_of(mw->object.native)->ops->mw_destroy(mw);
}

enum ndx_status fault_srq_modify(struct ndx_spi_srq *srq, uint32_t depth, uint32_t threshold)
{
	struct fault_adapter *fa = fault_of(srq->object.native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_srq_modify);

	return st == NDX_OK ? fa->ops->srq_modify(srq, depth, threshold) : st;
}

enum ndx_status fault_srq_notify(struct ndx_spi_srq *srq, struct ndx_overlapped *ov)
{
	struct fault_adapter *fa = fault_of(srq->object.native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_srq_notify);

	return st == NDX_OK ? fa->ops->srq_notify(srq, ov) : st;
}

void fault_srq_cancel(struct ndx_spi_srq *srq, enum ndx_status status)
{
	fault_of(srq->object.native)->ops->srq_cancel(srq, status);
}

enum ndx_status fault_srq_affinity(struct ndx_spi_srq *srq, uint16_t *group, uint64_t *affinity)
{
	struct fault_adapter *fa = fault_of(srq->object.native);
	enum ndx_status st;

	if (fa->ops->srq_affinity == NULL)
		return NDX_E_NOT_SUPPORTED;
	st = fault_inject(fa, FAULT_CALL_srq_affinity);
	if (st == NDX_OK)
		return fa->ops->srq_affinity(srq, group, affinity);
	*group = UINT16_MAX;
	*affinity = UINT64_MAX;
	return st;
}
