/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating a sender. */
#include "sender.h"

#include <stdlib.h>
#include <string.h>

#include <ndx/helpers.h>

#include <ndx/spi/log.h>
#include "base_struct.h"
#include "receiver.h"

#define PAGE 4096u

static const struct base_struct attr_layout = BASE_STRUCT(
	struct ndx_sender_attr, NDX_SENDER_ATTR_SIZE_0_1, "call ndx_sender_attr_init() first");

static const struct ndx_sender_attr attr_defaults = {
	.slot_size = 4096,
	.slot_count = 16,
	.spin_us = 50,
	.sequence_wrap = SEQUENCE_WRAP_MAX,
	.peer_slot_count = 256,
	.no_receive_timeout_ms = 4000,
	.keepalive_ms = 5000,
	/* Longer than all time-outs of a disconnect together. */
	.close_timeout_ms = 8000,
};

void ndx_sender_attr_init_sized(struct ndx_sender_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status bad(const char *what, uint64_t value, const char *rule)
{
	return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_sender_create: %s %llu %s", what,
	            (unsigned long long)value, rule);
}

static enum ndx_status check_attr(const struct ndx_sender_attr *a)
{
	if (a->reserved != 0)
		return bad("reserved", a->reserved, "is not 0");
	if (a->slot_size == 0)
		return bad("slot_size", 0, "is not in 1..");
	if (a->slot_count == 0 || a->slot_count >= UINT16_MAX)
		return bad("slot_count", a->slot_count, "is not in 1..65534");
	if (a->window > a->slot_count)
		return bad("window", a->window, "is more than slot_count");
	if (a->sequence_wrap == 0 || a->sequence_wrap > SEQUENCE_WRAP_MAX)
		return bad("sequence_wrap", a->sequence_wrap, "is not in 1..2^24");
	if (a->peer_slot_count == 0)
		return bad("peer_slot_count", 0, "is not in 1..");
	if ((unsigned)a->mode > NDX_RECEIVER_WRITE)
		return bad("mode", (unsigned)a->mode, "is none");
	if (a->receiver != NULL && a->slot_count > a->receiver->attr.send_depth)
		return bad("slot_count", a->slot_count, "is more than send_depth of the receiver");
	return NDX_OK;
}

static enum ndx_status make_ring(struct ndx_sender *s)
{
	const uint64_t ring = (uint64_t)s->attr.slot_size * s->attr.slot_count;
	const uint64_t length = (ring + PAGE - 1) / PAGE * PAGE;

	s->memory = aligned_alloc(PAGE, (size_t)length);
	s->lengths = calloc(s->attr.slot_count, sizeof(*s->lengths));
	if (s->memory == NULL || s->lengths == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_sender_create: no memory for %u slots of %u",
		            s->attr.slot_count, s->attr.slot_size);
	memset(s->memory, 0, (size_t)length);
	return ndx_mr_register_new(s->end.adapter, s->memory, (size_t)length, 0, &s->mr);
}

/* Take the receiver's adapter and queue, and register as its sender. */
static enum ndx_status join_receiver(struct ndx_sender *s)
{
	struct ndx_receiver *r = s->attr.receiver;
	bool taken;

	ndxp_lock_acquire(&r->tx_lock);
	taken = r->has_sender;
	r->has_sender = true;
	s->number = taken ? 0 : ++r->senders;
	ndxp_lock_release(&r->tx_lock);
	if (taken)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_sender_create: the receiver has a sender already");
	pthread_mutex_lock(&r->lock);
	r->refs++;
	pthread_mutex_unlock(&r->lock);
	s->receiver = r;
	s->cq = r->tx_cq;
	s->end.adapter = r->end.adapter;
	s->connected = true;
	return NDX_OK;
}

static enum ndx_status build(struct ndx_sender *s)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	enum ndx_status st;

	if (s->attr.receiver != NULL) {
		st = join_receiver(s);
		if (st == NDX_OK)
			st = ndx_adapter_query(s->end.adapter, &info);
	} else {
		st = endpoint_open(&s->end, s->attr.adapter, s->attr.uri, &info);
	}
	if (st != NDX_OK)
		return st;
	s->can_write = (info.capabilities & NDX_CAP_WRITE_IMMEDIATE) != 0;
	s->can_send_immediate = (info.capabilities & NDX_CAP_SEND_IMMEDIATE) != 0;
	if (s->attr.mode == NDX_RECEIVER_WRITE && !s->can_write)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_sender_create: %s has no writes with immediate data", info.uri);
	st = make_ring(s);
	if (st != NDX_OK || s->receiver != NULL)
		return st;
	st = ndx_cq_create_depth(s->end.adapter, s->attr.slot_count + 1, &s->cq);
	if (st == NDX_OK)
		st = sender_make_qp(s);
	return st;
}

enum ndx_status ndx_sender_create(const struct ndx_sender_attr *attr, struct ndx_sender **out)
{
	struct ndx_sender_attr own = attr_defaults;
	struct ndx_sender *s;
	enum ndx_status st;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_sender_create: NULL argument");
	st = endpoint_may_block("ndx_sender_create");
	if (st == NDX_OK)
		st = base_struct_in(&attr_layout, "ndx_sender_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
	if (st != NDX_OK)
		return st;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_sender_create: out of memory");
	s->attr = own;
	if (s->attr.window == 0)
		s->attr.window = own.slot_count;
	if (s->attr.peer_slot_size == 0)
		s->attr.peer_slot_size = own.slot_size;
	st = build(s);
	s->attr.uri = NULL; /* the string is the caller's */
	if (st != NDX_OK) {
		ndx_sender_close(s);
		return st;
	}
	*out = s;
	return NDX_OK;
}
