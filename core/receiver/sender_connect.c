/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting and ending a sender. */
#include <stdlib.h>

#include <ndx/helpers.h>

#include <ndx/spi/log.h>
#include "receiver.h"
#include "sender.h"

static enum ndx_status unconnected(const struct ndx_sender *s, const char *call)
{
	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: sender is NULL", call);
	if (s->receiver != NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: the sender uses a receiver's connection: connect that", call);
	if (s->connected)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: connected already: call ndx_sender_reset() first", call);
	return NDX_OK;
}

static enum ndx_status connected(struct ndx_sender *s, enum ndx_status st)
{
	s->connected = st == NDX_OK;
	return st;
}

enum ndx_status ndx_sender_connect(struct ndx_sender *s, const struct sockaddr *destination,
                                   socklen_t destination_len, const void *private_data,
                                   size_t private_data_len, uint32_t timeout_ms)
{
	enum ndx_status st = unconnected(s, "ndx_sender_connect");

	if (st == NDX_OK)
		st = endpoint_may_block("ndx_sender_connect");
	if (st != NDX_OK)
		return st;
	return connected(s, endpoint_connect(&s->end, destination, destination_len, private_data,
	                                     private_data_len, timeout_ms));
}

enum ndx_status ndx_sender_accept(struct ndx_sender *s, struct ndx_listener *listener,
                                  const void *private_data, size_t private_data_len,
                                  uint32_t timeout_ms)
{
	enum ndx_status st = unconnected(s, "ndx_sender_accept");

	if (st == NDX_OK)
		st = endpoint_may_block("ndx_sender_accept");
	if (st != NDX_OK)
		return st;
	return connected(
		s, endpoint_accept(&s->end, listener, private_data, private_data_len, timeout_ms));
}

enum ndx_status ndx_sender_describe(struct ndx_sender *s, enum ndx_role role,
                                    struct ndx_peer_description *out)
{
	enum ndx_status st = unconnected(s, "ndx_sender_describe");

	if (st != NDX_OK)
		return st;
	if (out == NULL || s->end.described)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_sender_describe: out is NULL, or it was described already");
	st = endpoint_describe(&s->end, role);
	if (st == NDX_OK)
		*out = s->end.own;
	return st;
}

enum ndx_status ndx_sender_set_oob_stream(struct ndx_sender *s, int fd)
{
	enum ndx_status st = unconnected(s, "ndx_sender_set_oob_stream");

	if (st != NDX_OK)
		return st;
	if (!s->end.described)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_sender_set_oob_stream: call ndx_sender_describe() first");
	return ndx_connector_set_oob_stream(s->end.connector, fd);
}

enum ndx_status ndx_sender_connect_peer(struct ndx_sender *s,
                                        const struct ndx_peer_description *peer,
                                        uint32_t timeout_ms)
{
	enum ndx_status st = unconnected(s, "ndx_sender_connect_peer");

	if (st == NDX_OK)
		st = endpoint_may_block("ndx_sender_connect_peer");
	if (st != NDX_OK)
		return st;
	if (peer == NULL || !s->end.described)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_sender_connect_peer: peer is NULL, or ndx_sender_describe() is "
		            "missing");
	return connected(s, endpoint_connect_peer(&s->end, peer, timeout_ms));
}

enum ndx_status ndx_sender_start(struct ndx_sender *s, struct ndx_connector *connector)
{
	enum ndx_status st = unconnected(s, "ndx_sender_start");

	if (st != NDX_OK)
		return st;
	if (connector == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_sender_start: connector is NULL");
	s->end.connector = connector;
	s->connected = true;
	return NDX_OK;
}

struct ndx_qp *ndx_sender_get_qp(struct ndx_sender *s)
{
	if (s == NULL)
		return NULL;
	return s->receiver != NULL ? s->receiver->end.qp : s->end.qp;
}

struct ndx_adapter *ndx_sender_get_adapter(struct ndx_sender *s)
{
	return s != NULL ? s->end.adapter : NULL;
}

struct ndx_connector *ndx_sender_get_connector(struct ndx_sender *s)
{
	return s != NULL ? s->end.connector : NULL;
}

enum ndx_status ndx_sender_set_memory(struct ndx_sender *s,
                                      const struct ndx_memory_description *memory,
                                      uint32_t slot_size, uint32_t slot_count)
{
	const uint64_t slab = (uint64_t)slot_size * slot_count;

	if (s == NULL || memory == NULL || slab == 0 || slot_count > SEQUENCE_WRAP_MAX)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_sender_set_memory: NULL argument, or %u slots of %u bytes are no "
		            "slab",
		            slot_count, slot_size);
	if (memory->length < slab)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_sender_set_memory: the peer's slab of %llu bytes is smaller than "
		            "%u slots of %u bytes",
		            (unsigned long long)memory->length, slot_count, slot_size);
	if (s->posted > 0)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_sender_set_memory: frames were sent already");
	if (!s->can_write)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_sender_set_memory: the adapter has no writes with immediate data");
	s->attr.mode = NDX_RECEIVER_WRITE;
	s->attr.peer_slot_size = slot_size;
	s->attr.peer_slot_count = slot_count;
	s->attr.peer_address = memory->address;
	s->attr.peer_token = memory->token;
	s->attr.sequence_wrap = SEQUENCE_WRAP_MAX / slot_count * slot_count;
	return NDX_OK;
}

static void discard_results(struct ndx_sender *s)
{
	struct ndx_result result;

	while (ndx_cq_get_results(s->cq, &result, 1) > 0)
		;
}

/* Drop the frames that were not sent; disconnect if possible. */
static void part_from_peer(struct ndx_sender *s)
{
	if (s->connected && s->end.connector != NULL)
		(void)ndx_disconnect(s->end.connector, s->attr.close_timeout_ms);
	endpoint_dismantle(&s->end);
	if (s->cq != NULL)
		discard_results(s);
	s->connected = false;
	s->acquired = false;
	s->next = 0;
	s->under_way = 0;
	s->sequence = 0;
	s->posted = 0;
	s->stats.failed = NDX_OK;
}

enum ndx_status ndx_sender_reset(struct ndx_sender *s)
{
	enum ndx_status st;

	if (s == NULL || s->receiver != NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_sender_reset: sender is NULL, or uses a receiver's connection");
	st = endpoint_may_block("ndx_sender_reset");
	if (st != NDX_OK)
		return st;
	part_from_peer(s);
	return sender_make_qp(s);
}

/* On a receiver's connection, no frame may be in flight when the ring is freed. */
static void leave_receiver(struct ndx_sender *s)
{
	struct ndx_receiver *r = s->receiver;

	if (s->under_way > 0)
		(void)ndx_sender_flush(s, s->attr.close_timeout_ms);
	ndxp_lock_acquire(&r->tx_lock);
	r->has_sender = false;
	ndxp_lock_release(&r->tx_lock);
	ndx_mr_close(s->mr);
	s->mr = NULL;
	receiver_drop(r);
}

void ndx_sender_close(struct ndx_sender *s)
{
	if (s == NULL)
		return;
	if (s->receiver != NULL) {
		leave_receiver(s);
	} else {
		part_from_peer(s);
		ndx_mr_close(s->mr);
		ndx_cq_close(s->cq);
		endpoint_close(&s->end);
	}
	free(s->lengths);
	free(s->memory);
	free(s);
}
