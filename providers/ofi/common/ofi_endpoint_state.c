/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a link, and the control messages that it sends. The lock of its native queue is
 * held.
 */
#include <errno.h>

#include <ndx/spi/byteorder.h>
#include "ofi.h"

int ofi_link_send_ctrl(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op)
{
	return link->adapter->backend->send_ctrl(link, type, count, op);
}

int ofi_link_send_record(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op,
                         enum ofi_area_offset offset, const struct iovec *record)
{
	/* what has arrived changes only under the lock of the native queue */
	const uint16_t arrived =
		type == OFI_CTRL_CREDIT && link->qp != NULL ? link->qp->acks.arrived : 0;
	const struct fi_rma_iov remote = {
		.addr = link->peer.address + offset,
		.len = record->iov_len,
		.key = link->peer.key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = record,
		.iov_count = record->iov_len > 0,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = op,
		.data = ofi_ctrl_encode(type, count, arrived, link->peer.id),
	};
	const bool silent = op->kind == OFI_OP_SILENT;
	const uint64_t proof = silent ? 0 : FI_COMPLETION | FI_DELIVERY_COMPLETE;
	int err = ENOTCONN;

	/* an endpoint that is not connected would make libfabric follow a NULL pointer */
	if (link->open && !link->closing)
		err = -(int)fi_writemsg(link->ep, &msg, FI_REMOTE_CQ_DATA | proof);
	link->ctrl_out += err == 0 && !silent;
	if (err == 0)
		ofi_count(&link->adapter->counts.ctrl_sent);
	if (err == 0 && !silent)
		ofi_ncq_await(link->ncq);
	return err;
}

void ofi_link_break(struct ofi_link *link, int native, const char *cause)
{
	const struct ndx_host *host = ofi_host(link->adapter);

	if (link->lost || link->closing)
		return;
	link->lost = true;
	if (link->conn == NULL) {
		ndxp_timer_set(link->adapter->spi.loop, &link->timer, 0);
		return;
	}
	/* of an attempt, this is the only report with the cause */
	if (link->stage != OFI_LINK_UP)
		host->report(&link->conn->spi, 0, native, cause);
	switch (link->stage) {
	case OFI_LINK_UP:
		if (link->qp == NULL) {
			host->report(&link->conn->spi, NDX_REPORT_ABORT, native, cause);
			return;
		}
		ndxp_lock_acquire(&link->qp->base.lock);
		ofi_qp_break(link->qp, native, cause);
		ndxp_lock_release(&link->qp->base.lock);
		return;
	case OFI_LINK_CONNECTING:
		host->connected(&link->conn->spi, NDX_E_CONNECTION_ABORTED, native, NULL);
		break;
	case OFI_LINK_ANSWERED:
	case OFI_LINK_COMPLETING:
	case OFI_LINK_ACCEPTING:
		host->established(&link->conn->spi, NDX_E_CONNECTION_ABORTED, native, NULL);
		break;
	case OFI_LINK_OVER:
		return;
	}
	link->stage = OFI_LINK_OVER;
}

void ofi_link_sync(struct ofi_link *link)
{
	const uint16_t count = link->token_count;
	struct iovec record = {link->forget, 0};
	int err;

	if (link->sync_sent != link->sync_done || link->sync_wanted == link->sync_done)
		return;
	link->sync_sent = link->sync_wanted;
	link->sync_acked = false;
	link->sync_answered = false;
	link->token_count = 0;
	if (count != OFI_TOKENS_ALL)
		record.iov_len = (size_t)count * 4;
	for (size_t i = 0; i < record.iov_len / 4; i++)
		ndxp_put_be32(link->forget + 4 * i, link->tokens[i]);
	err = ofi_link_send_record(link, OFI_CTRL_SYNC, count, &link->sync_op, OFI_AREA_TOKENS,
	                           &record);
	if (err != 0)
		ofi_link_break(link, err, ofi_link_lost);
}

void ofi_link_opened(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	if (link->open || !link->known)
		return;
	link->open = true;
	if (qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	qp->peer_id = link->peer.id;
	qp->peer_key = link->peer.key;
	qp->peer_address = link->peer.address;
	qp->peer_depth = link->peer.depth;
	qp->peer_shared = link->peer.shared;
	qp->credits = link->peer.credits;
	ofi_acks_open(qp, link->peer.initiator_depth);
	ofi_sizes_open(qp, link);
	qp->open = qp->ep != NULL;
	ofi_send_credits(qp);
	ndxp_lock_release(&qp->base.lock);
}

void ofi_link_go_up(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	link->stage = OFI_LINK_UP;
	if (qp != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		if (qp->base.state == NDXP_QP_IDLE)
			qp->base.state = NDXP_QP_UP;
		/* receives of which the connection data could not tell; a receive that was told of
		 * may have lost its memory since */
		(void)ofi_sizes_tell(qp);
		ofi_send_credits(qp);
		ndxp_lock_release(&qp->base.lock);
	}
	ofi_liveness_keepalive(link);
	if (link->adapter->backend->up != NULL)
		link->adapter->backend->up(link);
	ofi_host(link->adapter)->established(&link->conn->spi, NDX_OK, 0, NULL);
}

void ofi_link_cut(struct ofi_link *link)
{
	ofi_link_break(link, 0, ofi_link_lost);
}
