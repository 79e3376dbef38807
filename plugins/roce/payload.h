/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between two ends. Fixed width, big-endian; reserved bytes are 0.
 *
 * Every message begins with 8 bytes:
 *     0  4  "RCQP"
 *     4  1  version, 2
 *     5  1  message: 1 description, 2 agreement
 *     6  1  kind: 1 rendezvous, 2 verbs-rc (enum ndx_description_kind)
 *     7  1  description, verbs-rc: what this end does without, bits: 1 writes of NDX into its
 *           memory, 2 questions whether it lives, 4 goodbyes; 8: it sends often, which is its sign
 *           of life (enum ndx_peer_policy). 0: it runs NDX. Others: reserved
 *
 * A description continues with 32 bytes, then with the fields of its kind:
 *     8  4  reads that this end serves at once
 *    12  4  reads that this end wants in flight
 *    16  8  memory: address
 *    24  8  memory: length; 0: none, then address and key are 0
 *    32  4  memory: rendezvous: remote token, opaque; verbs-rc: rkey
 *    36  4  verbs-rc: rkey of the region of this end's mailbox. An NDX peer may write one byte at
 *           32 * (queue pair number mod 64) + 9 to find out whether this end answers. 0: none,
 *           the peer sends no probe. rendezvous: reserved
 * verbs-rc, 72 bytes in all:
 *    40  4  queue pair number, 24 bits, not 0
 *    44  4  first PSN, 24 bits
 *    48  4  MTU in bytes: 256, 512, 1024, 2048 or 4096
 *    52  2  LID; 0 on Ethernet
 *    54  2  reserved
 *    56 16  GID; 0: none, then there is a LID
 * rendezvous, 96 bytes in all:
 *    40 16  stack, NUL-padded: "ofi:tcp"
 *    56 16  cookie, not 0
 *    72  1  address family: 0 none, 4, 6
 *    73  1  reserved
 *    74  2  port
 *    76 16  address; IPv4 in the first 4 bytes. There is no scope id: it is valid on one host only
 *    92  4  reserved
 *
 * An agreement continues, 24 bytes in all:
 *     8  4  MTU in bytes; 0: does not apply
 *    12  4  reads that the client may have in flight
 *    16  4  reads that the server may have in flight
 *    20  4  reserved
 */
#ifndef ROCE_PAYLOAD_H
#define ROCE_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/description.h>

#define ROCE_PAYLOAD_MAX 96u

enum roce_message {
	ROCE_DESCRIPTION = 1,
	ROCE_AGREEMENT = 2,
};

struct roce_payload {
	enum roce_message message;
	struct ndx_peer_description description;
	struct ndx_agreement agreed;
};

/*
 * Returns false and *why, or fills all of *out. The input is not trusted; a description that passes
 * is valid for a connection.
 */
bool roce_payload_parse(const uint8_t *bytes, size_t length, struct roce_payload *out,
                        const char **why);

/* Returns the length; 0: the format cannot express the payload, *why has the reason. */
size_t roce_payload_write(uint8_t out[ROCE_PAYLOAD_MAX], const struct roce_payload *payload,
                          const char **why);

#endif
