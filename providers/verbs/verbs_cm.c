/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private data. rdma_cm carries a fixed number of bytes and does not report how many of them the
 * sender has set. So the last eight bytes are a trailer of NDX; a peer that does not know NDX finds
 * its data at the start.
 *
 *   0 'N', 'X'   2 version   3 length of the data   4 key of the sender's mailboxes, big-endian
 */
#include <string.h>

#include "base_byteorder.h"
#include "verbs_conn.h"

#define VERSION 3

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
	base_put_be32(trailer + 4, mailbox_key);
}

void verbs_cm_decode(const void *from, size_t len, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer)
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
		peer->mailbox_key = base_get_be32(trailer + 4);
		len = trailer[3];
	}
	/* libfabric puts the length in front, and ofi:verbs "Nv" behind the length */
	if (!peer->is_ndx && bytes != NULL && len > 8 && bytes[0] >= 7 && bytes[1] == 'N' &&
	    bytes[2] == 'v') {
		peer->is_ofi = true;
		len = 0;
	}
	params->private_data_len = len;
	if (bytes != NULL && len > 0)
		memcpy(params->private_data, bytes, len);
}

void verbs_cm_params(const struct verbs_event *event, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer)
{
	memset(params, 0, sizeof(*params));
	/* the two limits are crossed: what this end may serve is what the peer asks for */
	params->inbound_read_limit = event->initiator_depth;
	params->outbound_read_limit = event->responder_resources;
	verbs_cm_decode(event->data, event->data_len, params, peer);
	peer->has_srq = event->srq;
}
