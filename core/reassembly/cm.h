/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the InfiniBand connection manager, which show the queue pairs of a connection. */
#ifndef REASSEMBLY_CM_H
#define REASSEMBLY_CM_H

#include <stdbool.h>
#include <stdint.h>

enum cm_kind {
	CM_REQUEST = 0x10,
	CM_REJECT = 0x12,
	CM_REPLY = 0x13,
	CM_READY = 0x14,
	CM_DISCONNECT_REQUEST = 0x15,
	CM_DISCONNECT_REPLY = 0x16,
};

struct cm_message {
	uint16_t kind; /* enum cm_kind, or another attribute, which sets `kind` only */
	uint32_t local_id;
	uint32_t remote_id; /* all but CM_REQUEST */
	uint32_t qpn;       /* REQUEST, REPLY: the sender's; DISCONNECT_REQUEST: the receiver's */
	uint32_t psn;       /* REQUEST, REPLY: the first PSN that the other side will send */
	uint32_t mtu;       /* REQUEST: path MTU in bytes; 0 if absent */
};

/* False if the bytes are not a message of the connection manager, or are incomplete. */
bool cm_parse(const uint8_t *bytes, uint32_t length, struct cm_message *out);

#endif
