/* SPDX-License-Identifier: BSD-2-Clause */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/post.h>

/* Posts return a status only: they neither log nor set a text. */

static enum ndx_status no_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags)
{
	(void)qp;
	(void)context;
	(void)sge;
	(void)count;
	(void)immediate;
	(void)flags;
	return NDX_E_NOT_SUPPORTED;
}

static enum ndx_status no_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags)
{
	(void)qp;
	(void)context;
	(void)sge;
	(void)count;
	(void)remote_address;
	(void)remote_token;
	(void)immediate;
	(void)flags;
	return NDX_E_NOT_SUPPORTED;
}

static enum ndx_status no_bind(struct ndx_qp *qp, void *context, struct ndx_mr *mr,
                               struct ndx_mw *mw, void *buffer, size_t length, uint32_t flags)
{
	(void)qp;
	(void)context;
	(void)mr;
	(void)mw;
	(void)buffer;
	(void)length;
	(void)flags;
	return NDX_E_NOT_SUPPORTED;
}

static enum ndx_status no_invalidate(struct ndx_qp *qp, void *context, struct ndx_mw *mw,
                                     uint32_t flags)
{
	(void)qp;
	(void)context;
	(void)mw;
	(void)flags;
	return NDX_E_NOT_SUPPORTED;
}

enum ndx_status ops_complete_qp(struct ndx_spi_qp *qp)
{
	const struct ndx_qp_ops *given = qp->pub.ops;
	struct ndx_qp_ops whole = {0};

	qp->whole = NULL;
	memcpy(&whole, given, given->size < sizeof(whole) ? given->size : sizeof(whole));
	if (whole.send == NULL || whole.receive == NULL || whole.read == NULL ||
	    whole.write == NULL)
		return NDX_E_ABI_MISMATCH;
	if (given->size >= sizeof(whole) && whole.send_immediate != NULL &&
	    whole.write_immediate != NULL && whole.bind != NULL && whole.invalidate != NULL &&
	    whole.post_list != NULL && whole.receive_list != NULL)
		return NDX_OK;
	whole.size = sizeof(whole);
	if (whole.send_immediate == NULL)
		whole.send_immediate = no_send_immediate;
	if (whole.write_immediate == NULL)
		whole.write_immediate = no_write_immediate;
	if (whole.bind == NULL)
		whole.bind = no_bind;
	if (whole.invalidate == NULL)
		whole.invalidate = no_invalidate;
	if (whole.post_list == NULL)
		whole.post_list = ndxp_post_singly;
	if (whole.receive_list == NULL)
		whole.receive_list = ndxp_receive_singly;
	qp->whole = malloc(sizeof(*qp->whole));
	if (qp->whole == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "queue pair: out of memory");
	*qp->whole = whole;
	qp->pub.ops = qp->whole;
	return NDX_OK;
}

bool ops_check_cq(const struct ndx_cq_ops *ops)
{
	return ops->size >= NDX_SIZE_UP_TO(struct ndx_cq_ops, get_results) &&
	       ops->get_results != NULL;
}

enum ndx_status ops_complete_srq(struct ndx_spi_srq *srq)
{
	const struct ndx_srq_ops *given = srq->pub.ops;
	struct ndx_srq_ops whole = {0};

	srq->whole = NULL;
	memcpy(&whole, given, given->size < sizeof(whole) ? given->size : sizeof(whole));
	if (whole.receive == NULL)
		return NDX_E_ABI_MISMATCH;
	if (given->size >= sizeof(whole) && whole.receive_list != NULL)
		return NDX_OK;
	whole.size = sizeof(whole);
	if (whole.receive_list == NULL)
		whole.receive_list = ndxp_srq_receive_singly;
	srq->whole = malloc(sizeof(*srq->whole));
	if (srq->whole == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "shared receive queue: out of memory");
	*srq->whole = whole;
	srq->pub.ops = srq->whole;
	return NDX_OK;
}
