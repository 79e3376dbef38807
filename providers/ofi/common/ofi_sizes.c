/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "ofi.h"

/* A control message with a length; 0 or an errno of libfabric's. */
static int send_length(struct ofi_qp *qp, uint8_t type, uint32_t length, struct ofi_op *op,
                       uint64_t proof)
{
	const struct fi_rma_iov remote = {.addr = qp->peer_address, .key = qp->peer_key};
	const struct fi_msg_rma msg = {
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = op,
		.data = ofi_ctrl_encode_length(type, length, qp->peer_id),
	};

	return -(int)fi_writemsg(qp->ep, &msg, FI_REMOTE_CQ_DATA | proof);
}

/* ---- own receives ---- */

static uint32_t length_of(const struct ofi_rx *rx)
{
	uint32_t length = 0;

	for (uint8_t i = 0; i < rx->iov_count; i++)
		length += (uint32_t)rx->iov[i].iov_len;
	return length;
}

void ofi_sizes_begin(struct ofi_qp *qp, struct ofi_link *link)
{
	const struct ndxp_queue *q = &qp->base.receive;

	qp->sizes = (struct ofi_sizes){
		.entries = link->sizes,
		.depth = q->depth,
		.common = OFI_SIZE_UNKNOWN,
		.peer_common = OFI_SIZE_UNKNOWN,
	};
	if (link->sizes == NULL)
		return;
	/* an attempt to connect may have failed before */
	for (uint32_t i = q->head; i != q->tail; i++) {
		ofi_rx_at(qp, i)->placed = false;
		ofi_rx_at(qp, i)->verdict = NDX_OK;
	}
}

static void set_entry(struct ofi_sizes *s, uint32_t place, uint32_t entry)
{
	uint8_t *at = s->entries + (size_t)place * OFI_SIZE_ENTRY;

	if (ndxp_get_be32(at) == entry)
		return;
	ndxp_put_be32(at, entry);
	if (s->changed == s->changed_end) {
		s->changed = place;
		s->changed_end = place + 1;
	} else if (place < s->changed) {
		s->changed = place;
	} else if (place >= s->changed_end) {
		s->changed_end = place + 1;
	}
}

void ofi_sizes_place(struct ofi_qp *qp, struct ofi_rx *rx)
{
	struct ofi_sizes *s = &qp->sizes;
	const uint32_t length = length_of(rx);

	if (s->entries == NULL)
		return;
	if (!rx->placed) {
		rx->placed = true;
		rx->place = s->place;
		s->place = s->place + 1 < s->depth ? s->place + 1 : 0;
	}
	if (rx->poisoned) {
		set_entry(s, rx->place, OFI_SIZE_BAD);
		return;
	}
	if (s->common == OFI_SIZE_UNKNOWN)
		s->common = length;
	set_entry(s, rx->place, length == s->common ? 0 : length + 1);
}

uint32_t ofi_sizes_leading(const struct ofi_qp *qp)
{
	const struct ofi_sizes *s = &qp->sizes;

	return s->entries == NULL || s->changed == s->changed_end ? UINT32_MAX : s->changed;
}

static int write_entries(struct ofi_qp *qp, uint32_t first, uint32_t count)
{
	const size_t offset = (size_t)first * OFI_SIZE_ENTRY;
	const struct iovec local = {.iov_base = qp->sizes.entries + offset,
	                            .iov_len = (size_t)count * OFI_SIZE_ENTRY};
	const struct fi_rma_iov remote = {
		.addr = qp->peer_address + OFI_AREA_SIZES + offset,
		.len = local.iov_len,
		.key = qp->peer_key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &local,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &qp->adapter->silent,
	};

	/* libfabric may read the entries later: until the link ends they only become newer */
	return -(int)fi_writemsg(qp->ep, &msg, 0);
}

int ofi_sizes_tell(struct ofi_qp *qp)
{
	struct ofi_sizes *s = &qp->sizes;
	int err = 0;

	if (s->entries == NULL || !qp->open)
		return 0;
	/* The peer may not have read yet that its endpoint is connected, and with what: until READY
	 * it knows no credits but those of the connection data. */
	if (qp->base.state == NDXP_QP_IDLE)
		return FI_EAGAIN;
	if (!s->common_told && s->common != OFI_SIZE_UNKNOWN) {
		err = send_length(qp, OFI_CTRL_SIZE, s->common, &qp->adapter->silent, 0);
		s->common_told = err == 0;
	}
	if (err == 0 && s->changed != s->changed_end) {
		err = write_entries(qp, s->changed, s->changed_end - s->changed);
		if (err == 0)
			s->changed = s->changed_end;
	}
	return err;
}

/* The receive that the peer's next message finds; NULL: there is none. */
static struct ofi_rx *oldest_receive(const struct ofi_qp *qp)
{
	const struct ndxp_queue *q = &qp->base.receive;

	for (uint32_t i = q->head; ofi_is_before(i, qp->rx_next); i++) {
		struct ofi_rx *rx = ofi_rx_at(qp, i);

		if (!rx->base.done && rx->placed)
			return rx;
	}
	return NULL;
}

const char *ofi_sizes_too_long(struct ofi_qp *qp, uint32_t length)
{
	struct ofi_rx *rx = oldest_receive(qp);

	if (qp->sizes.entries == NULL || qp->base.state == NDXP_QP_IDLE)
		return "a message that is too long before the connection was complete";
	if (rx == NULL)
		return "a message that is too long without a receive";
	if (rx->poisoned ? length == 0 : length <= length_of(rx))
		return "a message that is too long for its receive, but is not";
	/* libfabric brings the receive back when the link ends; until then it may write there */
	rx->verdict = rx->poisoned ? NDX_E_ACCESS_VIOLATION : NDX_E_BUFFER_OVERFLOW;
	if (rx->poisoned)
		ofi_rx_break(qp, rx, rx->verdict, 0);
	else
		ofi_qp_break_with(qp, 0, "a message was longer than its receive: %u bytes, for %u",
		                  length, length_of(rx));
	return NULL;
}

/* ---- the peer's receives ---- */

void ofi_sizes_open(struct ofi_qp *qp, struct ofi_link *link)
{
	struct ofi_sizes *s = &qp->sizes;

	if (s->entries == NULL)
		return;
	s->peers = (const uint8_t *)link + offsetof(struct ofi_link, area) + OFI_AREA_SIZES;
	s->peer_depth = link->peer.depth;
	if (s->peer_common == OFI_SIZE_UNKNOWN)
		s->peer_common = link->peer.receive_size;
}

const char *ofi_sizes_take(struct ofi_qp *qp, uint32_t common)
{
	if (qp->sizes.peer_common != OFI_SIZE_UNKNOWN)
		return "the length of receives twice";
	qp->sizes.peer_common = common;
	return NULL;
}

/* The length of the receive that the next message finds, by its entry. */
static uint32_t room_of(const struct ofi_sizes *s, uint32_t entry)
{
	return entry == 0 ? s->peer_common : entry - 1;
}

static uint32_t next_entry(const struct ofi_sizes *s)
{
	return ndxp_get_be32(s->peers + (size_t)s->peer_place * OFI_SIZE_ENTRY);
}

enum ndx_status ofi_sizes_check(const struct ofi_qp *qp, const struct ofi_tx *tx)
{
	const struct ofi_sizes *s = &qp->sizes;
	uint32_t entry;

	/* the message that reports a write has no bytes */
	if (s->peers == NULL || tx->base.type != NDX_REQUEST_SEND || tx->length == 0)
		return NDX_OK;
	entry = next_entry(s);
	if (entry & OFI_SIZE_BAD)
		return NDX_E_REMOTE_ERROR;
	return tx->length <= room_of(s, entry) ? NDX_OK : NDX_E_DATA_OVERRUN;
}

void ofi_sizes_sent(struct ofi_qp *qp)
{
	struct ofi_sizes *s = &qp->sizes;

	s->peer_place = s->peer_place + 1 < s->peer_depth ? s->peer_place + 1 : 0;
}

int ofi_sizes_refuse(struct ofi_qp *qp, struct ofi_tx *tx)
{
	const int err = send_length(qp, OFI_CTRL_TOO_LONG, tx->length, &tx->op,
	                            FI_COMPLETION | FI_DELIVERY_COMPLETE);

	if (err == 0) {
		qp->sizes.refused = true;
		qp->sizes.refused_room = room_of(&qp->sizes, next_entry(&qp->sizes));
	}
	return err;
}

/* ---- the end ---- */

void ofi_sizes_end(struct ofi_qp *qp)
{
	const struct ndxp_queue *rx = &qp->base.receive;
	const struct ndxp_queue *tx = &qp->base.initiator;

	if (qp->sizes.entries == NULL)
		return;
	for (uint32_t i = rx->head; i != rx->tail; i++) {
		struct ofi_rx *r = ofi_rx_at(qp, i);

		if (!r->base.done && r->verdict != NDX_OK)
			ofi_rx_done(qp, r, r->verdict, 0);
	}
	for (uint32_t i = tx->head; qp->sizes.refused && i != tx->tail; i++) {
		struct ofi_tx *t = ofi_tx_at(qp, i);

		if (!t->base.done && t->native && t->unfit)
			ndxp_req_done(&qp->base.initiator, &t->base, t->verdict, 0);
	}
	qp->sizes = (struct ofi_sizes){0};
}
