/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of ofi:tcp: the data of connection management, and the control messages. Pure
 * functions; everything that comes from a peer passes through the decoders here. The layout is part
 * of docs/providers.md: change both, and the version.
 */
#ifndef OFI_WIRE_H
#define OFI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#define OFI_CM_SIZE 256u  /* bytes that libfabric's tcp provider carries */
#define OFI_CM_HEADER 36u /* bytes of them before the private data */
#define OFI_CM_PRIVATE (OFI_CM_SIZE - OFI_CM_HEADER)
#define OFI_CM_VERSION 3u

enum ofi_cm_kind {
	OFI_CM_CONNECT = 1,
	OFI_CM_ACCEPT = 2,
	OFI_CM_REJECT = 3,
};

/* Identifies the sender and its parameters. A REJECT has only private data. */
struct ofi_cm {
	enum ofi_cm_kind kind;
	uint32_t id;      /* identifies the connection in control messages to the sender */
	uint32_t key;     /* key of the sender's control region, ... */
	uint64_t address; /* ... and its address */
	uint16_t credits; /* receives that are posted already */
	uint16_t depth;   /* depth of the receive queue */
	uint32_t inbound_read_limit;
	uint32_t outbound_read_limit;
	bool is_verbs; /* of ofi:verbs: the sender is the provider verbs */
	size_t private_len;
	uint8_t private_data[OFI_CM_PRIVATE];
};

/* Returns the number of bytes in `out`. */
size_t ofi_cm_encode(const struct ofi_cm *cm, uint8_t out[OFI_CM_SIZE]);

/* NULL: *cm is filled; otherwise a text that says what is wrong, and *cm is unchanged. */
const char *ofi_cm_decode(const uint8_t *data, size_t len, enum ofi_cm_kind kind,
                          struct ofi_cm *cm);

/*
 * A control message that is a question has an answer, and the question may be repeated only when
 * the answer was delivered: so no end has to keep more than one answer of a kind for a peer that
 * does not read.
 *
 * A control message is 64 bits that go with every Send (DATA), or with a write to the peer's
 * control region (all others), which has no bytes or a record below.
 *
 *   63..56 type   55..48 flags   47..32 count   31..0 value
 *
 * count is a number of receive credits (DATA, CREDIT), a length (REJECT), a number of tokens
 * (SYNC), or 0. value is the immediate data of a DATA that has some, else 0; in all others the id
 * of the receiver's connection.
 */
enum ofi_ctrl_type {
	OFI_CTRL_DATA = 1,
	OFI_CTRL_CREDIT = 2,
	OFI_CTRL_READY = 3,  /* from the active side: the connection is complete */
	OFI_CTRL_REJECT = 4, /* from the active side; the private data was written before */
	OFI_CTRL_DISC = 5,
	OFI_CTRL_PING = 6, /* the answer is PONG */
	OFI_CTRL_SYNC = 7, /* forget these tokens; the answer is SYNCED, behind all sent data */
	OFI_CTRL_SYNCED = 8,
	OFI_CTRL_ASK = 9, /* which rights has this token? */
	OFI_CTRL_ANSWER = 10,
	OFI_CTRL_WRITTEN = 11, /* length of a write, for the next IS_WRITE: lower 16 bits, ... */
	OFI_CTRL_WRITTEN_HIGH = 12, /* ... and the upper 16 bits, if they are not 0 */
	OFI_CTRL_PONG = 13,
	OFI_CTRL_HELLO = 14, /* ofi:verbs: the passive side's first message */
};

enum ofi_ctrl_flag {
	OFI_CTRL_SOLICITED = 1 << 0,
	OFI_CTRL_IMMEDIATE = 1 << 1,
	OFI_CTRL_IS_WRITE = 1 << 2, /* reports a write with immediate data */
};

struct ofi_ctrl {
	uint8_t type;
	uint8_t flags;
	uint16_t count;
	uint32_t value;
};

static inline uint64_t ofi_ctrl_encode(uint8_t type, uint8_t flags, uint16_t count, uint32_t value)
{
	return (uint64_t)type << 56 | (uint64_t)flags << 48 | (uint64_t)count << 32 | value;
}

static inline struct ofi_ctrl ofi_ctrl_split(uint64_t ctrl)
{
	return (struct ofi_ctrl){
		.type = (uint8_t)(ctrl >> 56),
		.flags = (uint8_t)(ctrl >> 48),
		.count = (uint16_t)(ctrl >> 32),
		.value = (uint32_t)ctrl,
	};
}

/*
 * The control region, which the peer writes. It may change while this end reads it: copy first,
 * then check.
 */
#define OFI_TOKENS_MAX 8u         /* tokens that one SYNC can name; ... */
#define OFI_TOKENS_ALL UINT16_MAX /* ... as its count: forget every token */
#define OFI_GRANT_SIZE 24u

enum ofi_area_offset {
	OFI_AREA_REFUSAL = 0, /* the private data of a REJECT */
	OFI_AREA_QUESTION = 224,
	OFI_AREA_ANSWER = 232,
	OFI_AREA_TOKENS = 256,
	OFI_AREA_SIZE = OFI_AREA_TOKENS + 4 * OFI_TOKENS_MAX,
};

enum ofi_grant_right {
	OFI_GRANT_READ = 1 << 0,
	OFI_GRANT_WRITE = 1 << 1,
};

/* The rights of a token for this peer; an unknown token has none. */
struct ofi_grant {
	uint64_t start;
	uint64_t length;
	uint32_t token;
	uint32_t rights; /* OR of enum ofi_grant_right */
};

void ofi_grant_encode(const struct ofi_grant *grant, uint8_t out[OFI_GRANT_SIZE]);
/* NULL: *grant is filled; otherwise a text that says what is wrong, and *grant is unchanged. */
const char *ofi_grant_decode(const uint8_t data[OFI_GRANT_SIZE], struct ofi_grant *grant);

/* Does the grant cover these bytes? length is not 0. */
static inline bool ofi_grant_covers(const struct ofi_grant *grant, uint64_t address,
                                    uint32_t length, uint32_t right)
{
	return (grant->rights & right) != 0 && address >= grant->start && length <= grant->length &&
	       address - grant->start <= grant->length - length;
}

/* NULL: valid with a Send; otherwise a text that says what is wrong. */
const char *ofi_ctrl_check_data(const struct ofi_ctrl *ctrl);
/* NULL: valid alone; otherwise a text that says what is wrong. */
const char *ofi_ctrl_check_alone(const struct ofi_ctrl *ctrl);

#endif
