/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages: what the peer sends, and what became of those that this end sent. The ncq's
 * lock is held. A peer that violates the protocol loses its own connection only.
 */
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "ofi.h"

/* Credits, acknowledgements, or both. */
static const char *take_credit(struct ofi_link *link, const struct ofi_ctrl *ctrl)
{
	struct ofi_qp *qp = link->qp;
	const char *wrong = NULL;

	if (qp == NULL)
		return NULL;
	ndxp_lock_acquire(&qp->base.lock);
	if (ctrl->count > qp->peer_depth - qp->credits)
		wrong = "more credits than the peer's receive queue holds";
	else if (ctrl->flags == 0 && ctrl->count == 0 && ctrl->arrived == qp->acks.confirmed)
		wrong = "a control message with 0 credits and no new acknowledgement";
	if (wrong == NULL) {
		qp->credits += ctrl->count;
		qp->credit_ctrl_received++;
		wrong = ofi_ack_take(qp, ctrl->arrived);
	}
	/* the peer's consumer waits */
	if (wrong == NULL && (ctrl->flags & OFI_CTRL_ACK_REQ) && ofi_acks_owed(qp) > 0)
		(void)ofi_ack_now(qp);
	ndxp_lock_release(&qp->base.lock);
	return wrong;
}

/* The connection has ended for this end; what has arrived at the peer before counts. */
static void take_late_acknowledgement(struct ofi_link *link, uint16_t arrived)
{
	struct ofi_qp *qp = link->qp;

	if (qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	(void)ofi_ack_take(qp, arrived);
	ndxp_lock_release(&qp->base.lock);
}

/* Messages of the peer wait for receives of a shared receive queue. */
static const char *take_want(struct ofi_link *link, uint16_t count)
{
	struct ofi_qp *qp = link->qp;
	const char *wrong;

	if (qp == NULL)
		return NULL;
	if (count > link->peer.initiator_depth)
		return "WANT for more messages than the peer's initiator queue holds";
	ndxp_lock_acquire(&qp->base.lock);
	wrong = ofi_srq_want(qp, count);
	ndxp_lock_release(&qp->base.lock);
	return wrong;
}

static const char *take_ready(struct ofi_link *link)
{
	if (link->stage != OFI_LINK_ACCEPTING)
		return "READY when this end does not wait for it";
	ofi_link_go_up(link);
	return NULL;
}

static const char *take_reject(struct ofi_link *link, uint16_t len)
{
	struct ndx_spi_params params = {.private_data_len = len};

	if (link->stage != OFI_LINK_ACCEPTING)
		return "REJECT when this end does not wait for an answer";
	memcpy(params.private_data, link->area, len);
	link->stage = OFI_LINK_OVER;
	link->lost = true;
	ofi_host(link->adapter)->report(&link->conn->spi, 0, 0, "the peer refused");
	ofi_host(link->adapter)
		->established(&link->conn->spi, NDX_E_CONNECTION_REFUSED, 0, &params);
	return NULL;
}

static const char *take_disc(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	if (link->stage != OFI_LINK_UP)
		return "DISC before the connection was complete";
	if (link->peer_disc)
		return "DISC twice";
	link->peer_disc = true;
	if (qp != NULL) {
		ndxp_lock_acquire(&qp->base.lock);
		qp->peer_disc = true;
		ndxp_lock_release(&qp->base.lock);
	}
	ofi_host(link->adapter)->report(&link->conn->spi, NDX_REPORT_PEER_DISC, 0, NULL);
	return NULL;
}

static void forget_tokens(struct ofi_link *link, uint16_t count)
{
	ndxp_lock_acquire(&link->qp->base.lock);
	if (count == OFI_TOKENS_ALL)
		ofi_grants_forget(link->qp, 0);
	for (size_t i = 0; count != OFI_TOKENS_ALL && i < count; i++) {
		const uint32_t token = ndxp_get_be32(link->area + OFI_AREA_TOKENS + 4 * i);

		if (token != 0)
			ofi_grants_forget(link->qp, token);
	}
	ndxp_lock_release(&link->qp->base.lock);
}

/* Is an answer of this type still in flight? */
static bool owes_answer(const struct ofi_link *link, uint8_t type)
{
	return (link->answering & UINT32_C(1) << type) != 0;
}

/* An answer was sent, or could not be: err is 0, or libfabric's errno. */
static const char *note_answer(struct ofi_link *link, uint8_t type, int err)
{
	if (err != 0)
		return ofi_link_lost;
	link->answering |= UINT32_C(1) << type;
	return NULL;
}

static const char *send_answer(struct ofi_link *link, struct ofi_op *op)
{
	return note_answer(link, op->type, ofi_link_send_ctrl(link, op->type, 0, op));
}

/* The answer is sent behind all that this end has sent: when it arrives, all of that has
 * arrived. */
static const char *take_sync(struct ofi_link *link, uint16_t count)
{
	if (link->stage != OFI_LINK_UP)
		return "SYNC before the connection was complete";
	if (owes_answer(link, OFI_CTRL_SYNCED))
		return "SYNC before the last one was answered";
	if (link->qp != NULL)
		forget_tokens(link, count);
	return send_answer(link, &link->answers[1]);
}

static const char *take_ping(struct ofi_link *link)
{
	/* a peer that has accepted may send PING while this side's consumer has not completed
	 * yet */
	if (link->stage != OFI_LINK_UP && link->stage != OFI_LINK_ANSWERED &&
	    link->stage != OFI_LINK_COMPLETING)
		return "PING before the connection was complete";
	if (owes_answer(link, OFI_CTRL_PONG))
		return "PING before the last one was answered";
	return send_answer(link, &link->answers[2]);
}

static const char *take_pong(struct ofi_link *link)
{
	if (!link->pinged)
		return "PONG without a PING";
	link->pinged = false;
	return NULL;
}

static void end_sync(struct ofi_link *link)
{
	if (!link->sync_acked || !link->sync_answered)
		return;
	link->sync_done = link->sync_sent;
	ofi_link_sync(link);
	ndxp_loop_post(link->adapter->spi.loop, &link->adapter->revoke_job);
}

static const char *take_synced(struct ofi_link *link)
{
	if (link->sync_sent == link->sync_done || link->sync_answered)
		return "SYNCED without a SYNC";
	link->sync_answered = true;
	end_sync(link);
	return NULL;
}

static const char *take_ask(struct ofi_link *link)
{
	const struct iovec record = {link->answer, sizeof(link->answer)};
	struct ofi_grant grant;

	if (link->stage != OFI_LINK_UP)
		return "ASK before the connection was complete";
	if (owes_answer(link, OFI_CTRL_ANSWER))
		return "ASK before the last one was answered";
	ofi_key_answer(&link->adapter->keys, ndxp_get_be32(link->area + OFI_AREA_QUESTION),
	               link->id, &grant);
	ofi_grant_encode(&grant, link->answer);
	return note_answer(link, OFI_CTRL_ANSWER,
	                   ofi_link_send_record(link, OFI_CTRL_ANSWER, 0, &link->answers[0],
	                                        OFI_AREA_ANSWER, &record));
}

static const char *take_answer(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;
	struct ofi_grant grant;
	const char *wrong = ofi_grant_decode(link->area + OFI_AREA_ANSWER, &grant);

	if (wrong != NULL || qp == NULL)
		return wrong;
	ndxp_lock_acquire(&qp->base.lock);
	wrong = ofi_grants_store(qp, &grant);
	if (wrong == NULL)
		ofi_submit(qp);
	ndxp_lock_release(&qp->base.lock);
	return wrong;
}

/* The length belongs to the message that follows. */
static const char *take_written(struct ofi_link *link, const struct ofi_ctrl *ctrl)
{
	const bool high = ctrl->type == OFI_CTRL_WRITTEN_HIGH;
	struct ofi_qp *qp = link->qp;
	bool ok;

	if (qp == NULL)
		return NULL;
	ndxp_lock_acquire(&qp->base.lock);
	ok = qp->written_parts == (high ? 1 : 0);
	if (ok) {
		qp->written |= high ? (uint32_t)ctrl->count << 16 : ctrl->count;
		qp->written_parts++;
	}
	ndxp_lock_release(&qp->base.lock);
	return ok ? NULL : "the length of a write in the wrong order, or twice";
}

/* What the peer says about receives: the length of its own, or that one of this end is too short.
 */
static const char *take_length(struct ofi_link *link, const struct ofi_ctrl *ctrl)
{
	struct ofi_qp *qp = link->qp;
	const char *wrong;

	if (!link->adapter->backend->tells_sizes)
		return "a control message of unknown type";
	if (qp == NULL)
		return NULL;
	ndxp_lock_acquire(&qp->base.lock);
	wrong = ctrl->type == OFI_CTRL_SIZE ? ofi_sizes_take(qp, ofi_ctrl_length(ctrl))
	                                    : ofi_sizes_too_long(qp, ofi_ctrl_length(ctrl));
	ndxp_lock_release(&qp->base.lock);
	return wrong;
}

const char *ofi_ctrl_handle(struct ofi_link *link, const struct ofi_ctrl *ctrl)
{
	const char *wrong = ofi_ctrl_check_alone(ctrl);

	if (wrong != NULL)
		return wrong;
	switch (ctrl->type) {
	case OFI_CTRL_CREDIT:
		return take_credit(link, ctrl);
	case OFI_CTRL_READY:
		return take_ready(link);
	case OFI_CTRL_REJECT:
		return take_reject(link, ctrl->count);
	case OFI_CTRL_DISC:
		return take_disc(link);
	case OFI_CTRL_SYNC:
		return take_sync(link, ctrl->count);
	case OFI_CTRL_SYNCED:
		return take_synced(link);
	case OFI_CTRL_ASK:
		return take_ask(link);
	case OFI_CTRL_ANSWER:
		return take_answer(link);
	case OFI_CTRL_PING:
		return take_ping(link);
	case OFI_CTRL_PONG:
		return take_pong(link);
	case OFI_CTRL_WANT:
		return take_want(link, ctrl->count);
	case OFI_CTRL_SIZE:
	case OFI_CTRL_TOO_LONG:
		return take_length(link, ctrl);
	default:
		return take_written(link, ctrl);
	}
}

/* The only link of a native queue that is not shared; NULL if the queue is shared, or the link
 * closed. */
static struct ofi_link *only_link(const struct ofi_ncq *ncq)
{
	struct ndxp_table_node *node = ncq->shared ? NULL : ndxp_table_walk(&ncq->links, NULL);

	return node != NULL ? container_of(node, struct ofi_link, by_id) : NULL;
}

void ofi_ctrl_received(struct ofi_ncq *ncq, uint64_t data)
{
	const struct ofi_ctrl ctrl = ofi_ctrl_split(data);
	struct ofi_link *link = ofi_ncq_find(ncq, ctrl.value);
	const char *wrong;

	if (link == NULL) {
		/* The control message is for a connection that was closed in between, or garbage.
		 * With a queue that is not shared it is clear which peer sent it. */
		link = only_link(ncq);
		if (link != NULL)
			ofi_link_break(link, 0, "a control message for another connection");
		return;
	}
	link->signs_of_life++;
	link->ctrl_in++;
	if (ctrl.type != OFI_CTRL_CREDIT)
		ofi_count(&link->adapter->counts.ctrl_received);
	if (link->lost || link->closing || link->conn == NULL) {
		/* a message that has arrived counts as long as a receive takes it */
		if (ctrl.type == OFI_CTRL_WRITTEN || ctrl.type == OFI_CTRL_WRITTEN_HIGH)
			(void)take_written(link, &ctrl);
		else if (ctrl.type == OFI_CTRL_CREDIT)
			take_late_acknowledgement(link, ctrl.arrived);
		return;
	}
	/* The peer writes only when it is connected, and then this end is connected, too, even if
	 * its event is still in the event queue. */
	ofi_link_opened(link);
	wrong = ofi_ctrl_handle(link, &ctrl);
	if (wrong != NULL)
		ofi_link_break(link, 0, wrong);
}

void ofi_ctrl_done(struct ofi_link *link, uint8_t type, int err)
{
	if (link->ctrl_out > 0)
		link->ctrl_out--;
	if (err != 0) {
		ofi_link_break(link, err, ofi_link_lost);
		return;
	}
	link->signs_of_life++;
	switch (type) {
	case OFI_CTRL_READY:
		ofi_prove_written(link->conn);
		if (link->stage == OFI_LINK_COMPLETING && !link->lost && !link->closing)
			ofi_link_go_up(link);
		break;
	case OFI_CTRL_HELLO:
		ofi_prove_written(link->conn);
		break;
	case OFI_CTRL_DISC:
		if (link->conn != NULL && !link->lost)
			ofi_host(link->adapter)
				->report(&link->conn->spi, NDX_REPORT_DISC_ACKED, 0, NULL);
		break;
	case OFI_CTRL_REJECT: /* REJECT was the link's last control message */
		if (link->conn == NULL)
			ndxp_timer_set(link->adapter->spi.loop, &link->timer, 0);
		break;
	case OFI_CTRL_SYNC:
		link->sync_acked = true;
		end_sync(link);
		break;
	case OFI_CTRL_PING: /* ofi:verbs: the completion of the PING is the answer */
		link->pinged = false;
		break;
	default: /* one of the answers */
		link->answering &= ~(UINT32_C(1) << type);
		break;
	}
}
