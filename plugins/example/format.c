/* SPDX-License-Identifier: BSD-2-Clause */
/* The example's message format. */
#include "format.h"

#include <netinet/in.h>
#include <string.h>

#include "plugin_wire.h"

#define MAGIC 0x45584d50u /* "EXMP" */
#define VERSION 1u
#define HEADER 8u

enum field {
	FIELD_LIMITS = 1,
	FIELD_MEMORY = 2,
	FIELD_RENDEZVOUS = 3,
	FIELD_ADDRESS = 4,
	FIELD_QUEUE_PAIR = 5,
	FIELD_LAST = 5,
	FIELD_LATER = 128,
};

#define HAS(seen, type) (((seen)&1u << (type)) != 0)

static bool printable(const uint8_t *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

/* ---- parsing: each function gets its own bytes only, and their number ---- */

static const char *read_ring(const uint8_t *body, struct example_ring *ring)
{
	ring->slots = wire_get32(body);
	ring->slot_size = wire_get32(body + 4);
	return ring->slots == 0 || ring->slot_size == 0 ? "a ring of nothing" : NULL;
}

static const char *read_hello(const uint8_t *body, size_t length, struct example_message *m)
{
	if (length < 9 || length != 9u + body[8])
		return "a hello of the wrong length";
	if (body[8] > EXAMPLE_LABEL_MAX || !printable(body + 9, body[8]))
		return "a label that is too long or not printable";
	memcpy(m->label, body + 9, body[8]);
	return read_ring(body, &m->ring);
}

static const char *read_confirm(const uint8_t *body, size_t length, struct example_message *m)
{
	return length != 8 ? "a confirm of the wrong length" : read_ring(body, &m->ring);
}

static bool read_memory(const uint8_t *value, size_t length, struct ndx_peer_description *d)
{
	if (length != 20)
		return false;
	d->memory.address = wire_get64(value);
	d->memory.length = wire_get64(value + 8);
	d->memory.token = wire_get32(value + 16);
	return d->memory.length > 0 &&
	       d->memory.address + (d->memory.length - 1) >= d->memory.address;
}

static bool read_rendezvous(const uint8_t *value, size_t length, struct ndx_peer_description *d)
{
	if (length < 17 || length > 31 || wire_is_zero(value, 16) ||
	    !printable(value + 16, length - 16))
		return false;
	d->kind = NDX_DESCRIPTION_RENDEZVOUS;
	memcpy(d->cookie, value, 16);
	memcpy(d->stack, value + 16, length - 16);
	return true;
}

static bool read_address(const uint8_t *value, size_t length, struct ndx_peer_description *d)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&d->address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&d->address;

	if ((length != 6 && length != 18) || wire_get16(value) == 0)
		return false;
	if (length == 6) {
		in->sin_family = AF_INET;
		in->sin_port = htons(wire_get16(value));
		memcpy(&in->sin_addr, value + 2, 4);
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(wire_get16(value));
		memcpy(&in6->sin6_addr, value + 2, 16);
	}
	return true;
}

static bool read_queue_pair(const uint8_t *value, size_t length, struct ndx_peer_description *d)
{
	if (length != 30)
		return false;
	d->kind = NDX_DESCRIPTION_VERBS_RC;
	d->qpn = wire_get32(value);
	d->psn = wire_get32(value + 4);
	d->mtu = wire_get32(value + 8);
	d->lid = wire_get16(value + 12);
	memcpy(d->gid, value + 14, 16);
	return true;
}

static bool read_limits(const uint8_t *value, size_t length, struct ndx_peer_description *d)
{
	if (length != 8)
		return false;
	d->inbound_read_limit = wire_get32(value);
	d->outbound_read_limit = wire_get32(value + 4);
	return true;
}

static bool read_field(unsigned type, const uint8_t *value, size_t length,
                       struct ndx_peer_description *d)
{
	switch (type) {
	case FIELD_LIMITS:
		return read_limits(value, length, d);
	case FIELD_MEMORY:
		return read_memory(value, length, d);
	case FIELD_RENDEZVOUS:
		return read_rendezvous(value, length, d);
	case FIELD_ADDRESS:
		return read_address(value, length, d);
	case FIELD_QUEUE_PAIR:
		return read_queue_pair(value, length, d);
	default:
		return false;
	}
}

/* Parse one field after the other; `left` bytes may be read. */
static const char *read_offer(const uint8_t *at, size_t left, struct ndx_peer_description *d)
{
	unsigned seen = 0;

	while (left > 0) {
		unsigned type;
		size_t length;

		if (left < 2 || left - 2 < at[1])
			return "a field that is cut off";
		type = at[0];
		length = at[1];
		if (type < FIELD_LATER) {
			if (type == 0 || type > FIELD_LAST || HAS(seen, type))
				return "a field that is unknown, or there twice";
			seen |= 1u << type;
			if (!read_field(type, at + 2, length, d))
				return "a field that makes no sense";
		}
		at += 2 + length;
		left -= 2 + length;
	}
	if (!HAS(seen, FIELD_LIMITS))
		return "an offer without limits";
	if (HAS(seen, FIELD_ADDRESS) && !HAS(seen, FIELD_RENDEZVOUS))
		return "an address without a rendezvous";
	if (HAS(seen, FIELD_RENDEZVOUS) && HAS(seen, FIELD_QUEUE_PAIR))
		return "an offer of both a rendezvous and a queue pair";
	return NULL;
}

bool example_parse(const uint8_t *bytes, size_t length, struct example_message *out,
                   const char **why)
{
	struct example_message m = {.step = EXAMPLE_HELLO};
	const uint8_t *body = bytes + HEADER;

	*why = "no message of this format";
	if (length < HEADER || wire_get32(bytes) != MAGIC)
		return false;
	*why = "a message of another version";
	if (bytes[4] != VERSION)
		return false;
	*why = "a message that is cut off, or goes on";
	if (wire_get16(bytes + 6) != length - HEADER)
		return false;
	switch (bytes[5]) {
	case EXAMPLE_HELLO:
		*why = read_hello(body, length - HEADER, &m);
		break;
	case EXAMPLE_OFFER:
		m.step = EXAMPLE_OFFER;
		*why = read_offer(body, length - HEADER, &m.description);
		break;
	case EXAMPLE_CONFIRM:
		m.step = EXAMPLE_CONFIRM;
		*why = read_confirm(body, length - HEADER, &m);
		break;
	default:
		*why = "a message of no known step";
	}
	if (*why != NULL)
		return false;
	*out = m;
	return true;
}

/* ---- writing: each function returns the position after its bytes ---- */

static uint8_t *write_ring(uint8_t *to, const struct example_ring *ring)
{
	wire_put32(to, ring->slots);
	wire_put32(to + 4, ring->slot_size);
	return to + 8;
}

static uint8_t *write_hello(uint8_t *to, const struct example_message *m)
{
	const size_t length = strnlen(m->label, EXAMPLE_LABEL_MAX);

	to = write_ring(to, &m->ring);
	*to++ = (uint8_t)length;
	memcpy(to, m->label, length);
	return to + length;
}

static uint8_t *begin_field(uint8_t *to, enum field type, size_t length)
{
	to[0] = (uint8_t)type;
	to[1] = (uint8_t)length;
	return to + 2;
}

static uint8_t *write_memory(uint8_t *to, const struct ndx_memory_description *memory)
{
	to = begin_field(to, FIELD_MEMORY, 20);
	wire_put64(to, memory->address);
	wire_put64(to + 8, memory->length);
	wire_put32(to + 16, memory->token);
	return to + 20;
}

static uint8_t *write_address(uint8_t *to, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET) {
		to = begin_field(to, FIELD_ADDRESS, 6);
		wire_put16(to, ntohs(in->sin_port));
		memcpy(to + 2, &in->sin_addr, 4);
		return to + 6;
	}
	if (address->ss_family == AF_INET6) {
		to = begin_field(to, FIELD_ADDRESS, 18);
		wire_put16(to, ntohs(in6->sin6_port));
		memcpy(to + 2, &in6->sin6_addr, 16);
		return to + 18;
	}
	return to;
}

static uint8_t *write_rendezvous(uint8_t *to, const struct ndx_peer_description *d)
{
	const size_t length = strnlen(d->stack, sizeof(d->stack) - 1);

	to = begin_field(to, FIELD_RENDEZVOUS, 16 + length);
	memcpy(to, d->cookie, 16);
	memcpy(to + 16, d->stack, length);
	return write_address(to + 16 + length, &d->address);
}

static uint8_t *write_queue_pair(uint8_t *to, const struct ndx_peer_description *d)
{
	to = begin_field(to, FIELD_QUEUE_PAIR, 30);
	wire_put32(to, d->qpn);
	wire_put32(to + 4, d->psn);
	wire_put32(to + 8, d->mtu);
	wire_put16(to + 12, d->lid);
	memcpy(to + 14, d->gid, 16);
	return to + 30;
}

static uint8_t *write_offer(uint8_t *to, const struct ndx_peer_description *d)
{
	to = begin_field(to, FIELD_LIMITS, 8);
	wire_put32(to, d->inbound_read_limit);
	wire_put32(to + 4, d->outbound_read_limit);
	to += 8;
	if (d->memory.length > 0)
		to = write_memory(to, &d->memory);
	if (d->kind == NDX_DESCRIPTION_RENDEZVOUS)
		to = write_rendezvous(to, d);
	else if (d->kind == NDX_DESCRIPTION_VERBS_RC)
		to = write_queue_pair(to, d);
	return to;
}

size_t example_write(uint8_t out[EXAMPLE_MESSAGE_MAX], const struct example_message *m)
{
	uint8_t *end = out + HEADER;

	switch (m->step) {
	case EXAMPLE_HELLO:
		end = write_hello(end, m);
		break;
	case EXAMPLE_OFFER:
		end = write_offer(end, &m->description);
		break;
	case EXAMPLE_CONFIRM:
	default:
		end = write_ring(end, &m->ring);
	}
	wire_put32(out, MAGIC);
	out[4] = VERSION;
	out[5] = (uint8_t)m->step;
	wire_put16(out + 6, (uint16_t)(end - out - HEADER));
	return (size_t)(end - out);
}
