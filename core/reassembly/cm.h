/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the InfiniBand connection manager: which queue pair talks to which. */
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
	uint16_t kind; /* enum cm_kind, or another attribute: then only `kind` is filled */
	uint32_t local_id;
	uint32_t remote_id; /* all but CM_REQUEST */
	uint32_t qpn;       /* REQUEST, REPLY: the sender's; DISCONNECT_REQUEST: the receiver's */
	uint32_t psn;       /* REQUEST, REPLY: first one that the other side will send */
	uint32_t mtu;       /* REQUEST: of the path, in bytes; 0 if not said */
};

/* False if the bytes are no message of the connection manager, or cut. */
bool cm_parse(const uint8_t *bytes, uint32_t length, struct cm_message *out);

#endif
