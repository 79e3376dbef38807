/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting to a device that does not know NDX, by queue pair number, PSN and address. */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "receiver.h"

#define BITS_24 0xffffffu

/* A path MTU, in bytes. (InfiniBand Architecture Specification, volume 1, 14.2.5.6) */
static bool is_mtu(uint32_t bytes)
{
	return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

static void gid_text(const uint8_t gid[16], char text[40])
{
	char *at = text;

	for (int i = 0; i < 16; i += 2)
		at += snprintf(at, 6, "%s%02x%02x", i > 0 ? ":" : "", gid[i], gid[i + 1]);
}

static enum ndx_status describe_as_server(struct ndx_receiver *r)
{
	struct ndx_peer_description own;
	enum ndx_status st;

	if (r->numbered && receiver_state(r) == NDX_RECEIVER_CONNECTING)
		return NDX_OK;
	st = ndx_receiver_describe(r, NDX_ROLE_SERVER, &own);
	if (st != NDX_OK)
		return st;
	st = ndxp_random(&r->receive_psn, sizeof(r->receive_psn));
	r->receive_psn &= BITS_24;
	r->numbered = st == NDX_OK;
	return st;
}

enum ndx_status ndx_receiver_get_numbers(struct ndx_receiver *r, struct ndx_receiver_numbers *out)
{
	const struct ndx_peer_description *own;
	enum ndx_status st;

	if (r == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_get_numbers: NULL argument");
	st = describe_as_server(r);
	if (st != NDX_OK)
		return st;
	own = &r->end.own;
	if (own->kind != NDX_DESCRIPTION_VERBS_RC) {
		receiver_undescribe(r);
		return fail(
			NDX_E_NOT_SUPPORTED, 0,
			"ndx_receiver_get_numbers: this provider has no queue pair numbers; use "
			"ndx_receiver_connect_peer() with the peer's description");
	}
	*out = (struct ndx_receiver_numbers){
		.qpn = own->qpn,
		.send_psn = own->psn,
		.receive_psn = r->receive_psn,
		.mtu = own->mtu,
		.lid = own->lid,
		.address = (uint64_t)(uintptr_t)r->slab->memory,
		.length = r->slab->size * r->slab->count,
		.remote_token = r->slab->by_write ? own->memory.token : 0,
		.rkey = r->slab->by_write ? ndx_rkey_of_token(own->memory.token) : 0,
	};
	memcpy(out->gid, own->gid, sizeof(out->gid));
	gid_text(own->gid, out->gid_text);
	return NDX_OK;
}

static enum ndx_status refuse(const char *what, uint32_t value, const char *why)
{
	return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_complete_connection: %s %u %s", what,
	            value, why);
}

static enum ndx_status check_peer(const struct ndx_receiver *r,
                                  const struct ndx_receiver_peer *peer)
{
	static const uint8_t none[16];

	if (peer->qpn > BITS_24)
		return refuse("qpn", peer->qpn, "has more than 24 bits");
	if (peer->rq_psn > BITS_24)
		return refuse("rq_psn", peer->rq_psn, "has more than 24 bits");
	if (peer->sq_psn > BITS_24)
		return refuse("sq_psn", peer->sq_psn, "has more than 24 bits");
	if (peer->rq_psn != r->end.own.psn)
		return refuse("rq_psn", peer->rq_psn,
		              "is not the send_psn of this end: what we send would be dropped");
	if (peer->mtu != 0 && !is_mtu(peer->mtu))
		return refuse("mtu", peer->mtu, "is not 0, 256, 512, 1024, 2048 or 4096 bytes");
	if (peer->mtu > r->end.own.mtu)
		return refuse("mtu", peer->mtu,
		              "is beyond the port's active MTU: frames would never arrive");
	if (peer->lid == 0 && memcmp(peer->gid, none, sizeof(none)) == 0)
		return refuse("lid", 0, "and an empty gid name no peer");
	return NDX_OK;
}

enum ndx_status ndx_receiver_complete_connection(struct ndx_receiver *r,
                                                 const struct ndx_receiver_peer *peer,
                                                 uint32_t timeout_ms)
{
	struct ndx_peer_description description = {.kind = NDX_DESCRIPTION_VERBS_RC};
	enum ndx_status st;

	if (r == NULL || peer == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_receiver_complete_connection: NULL argument");
	st = endpoint_may_block("ndx_receiver_complete_connection");
	if (st != NDX_OK)
		return st;
	if (receiver_state(r) != NDX_RECEIVER_CONNECTING || !r->numbered)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_receiver_complete_connection: the receiver is %s: call "
		            "ndx_receiver_get_numbers() first",
		            ndx_receiver_state_name(receiver_state(r)));
	st = check_peer(r, peer);
	if (st != NDX_OK)
		return st;
	/* A device communicates by its queue pair only. */
	if (!r->no_oob) {
		st = ndx_connector_set_oob_stream(r->end.connector, NDX_NO_OOB_STREAM);
		if (st != NDX_OK)
			return st;
		r->no_oob = true;
	}
	r->probe_address = peer->probe_address;
	r->probe_token = ndx_token_of_rkey(peer->probe_rkey);
	description.policy = NDX_PEER_DEVICE;
	description.qpn = peer->qpn;
	description.psn = peer->sq_psn;
	description.lid = peer->lid;
	description.mtu = peer->mtu > 0 ? peer->mtu : r->end.own.mtu;
	memcpy(description.gid, peer->gid, sizeof(description.gid));
	return ndx_receiver_connect_peer(r, &description, timeout_ms);
}
