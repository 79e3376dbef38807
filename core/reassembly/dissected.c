/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program has dissected: packets without link and network headers, and whole operations. */
#include <string.h>

#include <ndx/reassembly_parts.h>

#include <ndx/spi/log.h>
#include "base_struct.h"
#include "rdma.h"

#define BTH_SIZE 12u
/* The largest window of TCP (RFC 7323, 2.3), so the order of sequence numbers stays clear. */
#define PACKET_MAX (UINT32_C(1) << 30)

static bool known_path(enum ndx_rdma_transport transport, enum ndx_rdma_address family)
{
	return transport >= NDX_RDMA_ROCE_V2 && transport <= NDX_RDMA_IWARP &&
	       (family == NDX_RDMA_ADDRESS_IPV4 ||
	        (family >= NDX_RDMA_ADDRESS_IPV6 && family <= NDX_RDMA_ADDRESS_LID));
}

/* The addresses in the form in which link_parse() has them, so that equal ones are equal. */
static void copy_address(uint8_t *to, const uint8_t *from, enum ndx_rdma_address family)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(to, from, 16);
	if (family == NDX_RDMA_ADDRESS_IPV4)
		memcpy(to, mapped, sizeof(mapped));
	else if (family == NDX_RDMA_ADDRESS_LID)
		memset(to, 0, 14);
}

static enum ndx_status check_packet(const struct ndx_transport_packet *p)
{
	if (!known_path(p->transport, p->family))
		return fail(NDX_E_INVALID_PARAMETER, 0, "no such transport or family");
	if (p->length < p->captured || (p->bytes == NULL && p->captured > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "length or bytes do not fit to captured");
	if (p->length > PACKET_MAX)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "a packet of %u bytes: no packet has 1 GiB; length counts the bytes of "
		            "this packet from its base transport header on, or of TCP payload",
		            p->length);
	if (p->transport != NDX_RDMA_IWARP && p->captured < BTH_SIZE)
		return fail(NDX_E_INVALID_PARAMETER, 0, "less than a base transport header");
	if (p->transport == NDX_RDMA_IWARP &&
	    (p->source.number > UINT16_MAX || p->destination.number > UINT16_MAX ||
	     p->tcp_flags > UINT8_MAX))
		return fail(NDX_E_INVALID_PARAMETER, 0, "no port, or no flags, of TCP");
	return NDX_OK;
}

enum ndx_status ndx_reassembly_feed_transport(struct ndx_reassembly *reassembly,
                                              const struct ndx_transport_packet *packet)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_transport_packet, NDX_TRANSPORT_PACKET_SIZE_0_1,
	                    "set `size` to sizeof(*packet)");
	struct ndx_transport_packet p = {.size = 0};
	struct frame frame = {.network = NULL};
	enum ndx_status status;

	if (reassembly == NULL || packet == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	status = base_struct_in(&layout, "ndx_reassembly_feed_transport", &p, packet, packet->size);
	if (status == NDX_OK)
		status = check_packet(&p);
	if (status != NDX_OK)
		return status;
	copy_address(frame.address.source, p.source.address, p.family);
	copy_address(frame.address.destination, p.destination.address, p.family);
	frame.family = (uint8_t)p.family;
	frame.transport = (uint8_t)p.transport;
	frame.source_port = (uint16_t)p.source.number;
	frame.destination_port = (uint16_t)p.destination.number;
	frame.sequence = p.sequence;
	frame.acknowledged = p.acknowledged;
	frame.tcp_flags = (uint8_t)p.tcp_flags;
	frame.payload = p.bytes;
	frame.length = p.length;
	frame.captured = p.captured;
	rdma_take(rdma_begin(reassembly, p.time_ns, p.captured, p.length), &frame);
	return NDX_OK;
}

/* ---- operations ---- */

static bool known_number(const struct ndx_rdma_operation *op, uint32_t number)
{
	if (op->transport == NDX_RDMA_IWARP)
		return number <= UINT16_MAX;
	return number <= PSN_MASK || number == NDX_RDMA_QPN_UNKNOWN;
}

static enum ndx_status check_operation(const struct ndx_rdma_operation *op)
{
	if (!known_path(op->transport, op->family))
		return fail(NDX_E_INVALID_PARAMETER, 0, "no such transport or family");
	if (op->kind < NDX_RDMA_OPERATION_SEND || op->kind > NDX_RDMA_OPERATION_READ)
		return fail(NDX_E_INVALID_PARAMETER, 0, "no such kind of operation");
	if (op->length < op->captured || (op->bytes == NULL && op->captured > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "length or bytes do not fit to captured");
	if (!known_number(op, op->source.number) || !known_number(op, op->destination.number))
		return fail(NDX_E_INVALID_PARAMETER, 0, "no queue pair number, or no port");
	return NDX_OK;
}

/* The flow from `source` to `destination`. */
static struct flow *flow_from(struct rdma *r, const struct ndx_rdma_operation *op,
                              const struct ndx_rdma_endpoint *source,
                              const struct ndx_rdma_endpoint *destination)
{
	struct frame frame = {.family = (uint8_t)op->family, .transport = (uint8_t)op->transport};
	uint32_t number = destination->number;

	copy_address(frame.address.source, source->address, op->family);
	copy_address(frame.address.destination, destination->address, op->family);
	if (op->transport == NDX_RDMA_IWARP)
		number |= source->number << 16;
	return flow_of(r, &frame, number);
}

/* The flow of an operation, made a pair with the reverse direction if both numbers are known. */
static struct flow *flow_of_operation(struct rdma *r, const struct ndx_rdma_operation *op)
{
	struct flow *there = flow_from(r, op, &op->source, &op->destination);
	struct flow *back;

	if (there == NULL || there->pair != NULL || op->source.number == NDX_RDMA_QPN_UNKNOWN ||
	    op->destination.number == NDX_RDMA_QPN_UNKNOWN)
		return there;
	/* Creating the second flow may evict the first. */
	back = flow_from(r, op, &op->destination, &op->source);
	there = flow_from(r, op, &op->source, &op->destination);
	if (there != NULL && back != NULL && back != there && back->pair == NULL &&
	    there->pair == NULL)
		flow_pair(r, there, back);
	return there;
}

/* The number of an operation among those of its flow. */
static uint64_t next_order(struct flow *flow)
{
	if (!flow->begun)
		flow->seen.top = FLOW_EPOCH;
	flow->begun = true;
	return ++flow->seen.top;
}

static void take_send(struct rdma *r, struct flow *flow, const struct ndx_rdma_operation *op,
                      uint64_t order)
{
	struct ndx_rdma_send send = {
		.bytes = op->bytes,
		.length = op->captured,
		.original = op->length,
		.psn = (uint32_t)order & PSN_MASK,
		.packets = 1,
		.has_immediate = op->has_immediate,
		.has_invalidate = op->has_invalidate,
		.immediate = op->immediate,
		.invalidate = op->invalidate,
	};

	rdma_message(r, flow, &send, order);
}

enum ndx_status ndx_reassembly_feed_operation(struct ndx_reassembly *reassembly,
                                              const struct ndx_rdma_operation *operation)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_rdma_operation, NDX_RDMA_OPERATION_SIZE_0_1,
	                    "set `size` to sizeof(*operation)");
	struct ndx_rdma_operation op = {.size = 0};
	enum ndx_status status;
	struct flow *flow;
	struct rdma *r;
	uint64_t order;

	if (reassembly == NULL || operation == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "NULL argument");
	status = base_struct_in(&layout, "ndx_reassembly_feed_operation", &op, operation,
	                        operation->size);
	if (status == NDX_OK)
		status = check_operation(&op);
	if (status != NDX_OK)
		return status;
	r = rdma_begin(reassembly, op.time_ns, op.captured, op.length);
	r->stats.rdma_packets++;
	flow = flow_of_operation(r, &op);
	if (flow == NULL)
		return NDX_OK; /* out of memory, as for a packet: what it belongs to has a hole */
	order = next_order(flow);
	if (op.kind == NDX_RDMA_OPERATION_SEND)
		take_send(r, flow, &op, order);
	else
		rdma_place(r, flow, op.handle, op.address, order, op.bytes, op.captured, op.length);
	return NDX_OK;
}
