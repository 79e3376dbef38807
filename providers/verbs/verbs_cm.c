/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private data. rdma_cm carries a fixed number of bytes and does not report how many of them the
 * sender has set. So the last eight bytes are a trailer of NDX; a peer that does not know NDX finds
 * its data at the start.
 *
 *   0 'N', 'X'   2 version   3 length of the data   4 key of the sender's mailboxes, big-endian
 */
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "verbs_conn.h"

#define VERSION 3

_Static_assert(VERBS_CALLEE_DATA <= NDXP_RC_CALLEE_DATA, "private data fit either layout");
_Static_assert(VERBS_CALLER_DATA <= NDXP_RC_CALLER_DATA, "private data fit either layout");

void verbs_cm_encode(uint8_t *to, size_t room, const void *data, size_t len, uint32_t mailbox_key)
{
	uint8_t *trailer = to + room - VERBS_TRAILER;

	memset(to, 0, room);
	if (len > 0)
		memcpy(to, data, len);
	trailer[0] = 'N';
	trailer[1] = 'X';
	trailer[2] = VERSION;
	trailer[3] = (uint8_t)len;
	ndxp_put_be32(trailer + 4, mailbox_key);
}

/* libfabric puts the length in front of its data. */
size_t verbs_cm_encode_ofi(uint8_t *to, enum ndxp_rc_kind kind, const void *data, size_t len,
                           uint32_t inbound_read_limit, uint32_t outbound_read_limit)
{
	struct ndxp_rc_cm cm = {
		.kind = kind,
		.inbound_read_limit = inbound_read_limit,
		.outbound_read_limit = outbound_read_limit,
		.flags = NDXP_RC_IS_VERBS,
		.private_len = len,
	};

	if (len > 0)
		memcpy(cm.private_data, data, len);
	to[0] = (uint8_t)ndxp_rc_cm_encode(&cm, to + 1);
	return to[0] + 1u;
}

/* False: this is not the data of ofi:verbs. */
static bool decode_ofi(const uint8_t *bytes, size_t len, enum ndxp_rc_kind kind,
                       struct ndx_spi_params *params, struct verbs_cm_peer *peer)
{
	struct ndxp_rc_cm cm;

	if (len <= NDXP_RC_CM_HEADER || bytes[0] < NDXP_RC_CM_HEADER || bytes[0] >= len ||
	    bytes[1] != 'N' || bytes[2] != 'v')
		return false;
	peer->is_ofi = true;
	peer->wrong = ndxp_rc_cm_decode(bytes + 1, bytes[0], kind, &cm);
	params->private_data_len = 0;
	if (peer->wrong != NULL)
		return true;
	if (kind != NDXP_RC_REJECT) {
		params->inbound_read_limit = cm.inbound_read_limit;
		params->outbound_read_limit = cm.outbound_read_limit;
	}
	params->private_data_len = cm.private_len;
	memcpy(params->private_data, cm.private_data, cm.private_len);
	return true;
}

void verbs_cm_decode(const void *from, size_t len, enum ndxp_rc_kind kind,
                     struct ndx_spi_params *params, struct verbs_cm_peer *peer)
{
	const uint8_t *bytes = from;
	const uint8_t *trailer;

	memset(peer, 0, sizeof(*peer));
	if (len > NDX_SPI_PRIVATE_DATA_MAX)
		len = NDX_SPI_PRIVATE_DATA_MAX;
	trailer = bytes != NULL && len >= VERBS_TRAILER ? bytes + len - VERBS_TRAILER : NULL;
	if (trailer != NULL && trailer[0] == 'N' && trailer[1] == 'X' && trailer[2] == VERSION &&
	    trailer[3] <= len - VERBS_TRAILER) {
		peer->is_ndx = true;
		peer->mailbox_key = ndxp_get_be32(trailer + 4);
		len = trailer[3];
	}
	if (!peer->is_ndx && bytes != NULL && decode_ofi(bytes, len, kind, params, peer))
		return;
	params->private_data_len = len;
	if (bytes != NULL && len > 0)
		memcpy(params->private_data, bytes, len);
}

int verbs_cm_reject(struct rdma_cm_id *id, const struct verbs_cm_peer *peer, const void *data,
                    size_t len)
{
	uint8_t bytes[VERBS_REJECT_ROOM];
	size_t size = sizeof(bytes);

	if (peer->is_ofi)
		size = verbs_cm_encode_ofi(bytes, NDXP_RC_REJECT, data, len, 0, 0);
	else
		verbs_cm_encode(bytes, sizeof(bytes), data, len, 0);
	return rdma_reject(id, bytes, (uint8_t)size);
}

static enum ndxp_rc_kind kind_of(const struct verbs_event *event)
{
	switch ((int)event->what) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return NDXP_RC_CONNECT;
	case RDMA_CM_EVENT_REJECTED:
		return NDXP_RC_REJECT;
	default:
		return NDXP_RC_ACCEPT;
	}
}

void verbs_cm_params(const struct verbs_event *event, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer)
{
	memset(params, 0, sizeof(*params));
	/* the two limits are crossed: what this end may serve is what the peer asks for */
	params->inbound_read_limit = event->initiator_depth;
	params->outbound_read_limit = event->responder_resources;
	verbs_cm_decode(event->data, event->data_len, kind_of(event), params, peer);
	peer->has_srq = event->srq;
}
