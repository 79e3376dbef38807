/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of ofi:tcp: the data of connection management, and the control messages. Pure
 * functions; everything that comes from a peer passes through the decoders here. The layout is part
 * of docs/design/ofi-tcp.md: change both, and the version.
 */
#ifndef OFI_WIRE_H
#define OFI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#define OFI_CM_SIZE 256u  /* bytes that libfabric's tcp provider carries */
#define OFI_CM_HEADER 42u /* bytes of them before the private data */
#define OFI_CM_PRIVATE (OFI_CM_SIZE - OFI_CM_HEADER)
#define OFI_CM_VERSION 5u
#define OFI_CM_DEPTH_MAX 4096u /* of a receive queue */
/* In the field of the depth: the receives are shared with other connections, and come when the peer
 * asks (WANT). A version without shared receive queues takes the field for an impossible depth. */
#define OFI_CM_SHARED 0x8000u

/* Lengths of receives; see ofi_sizes.h. An entry is 0: as the data of connection management or SIZE
 * say; else the length + 1, or OFI_SIZE_BAD. */
#define OFI_SIZE_ENTRY 4u
#define OFI_SIZE_UNKNOWN UINT32_MAX      /* there is no receive yet */
#define OFI_SIZE_BAD (UINT32_C(1) << 31) /* the receive names memory that it must not write */

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
	uint16_t depth;   /* depth of the receive queue, or most that are held of a shared one */
	bool shared;      /* the receive queue is shared */
	uint16_t initiator_depth; /* requests that may wait for acknowledgements */
	uint32_t receive_size;    /* length of the receives behind `credits`, or OFI_SIZE_UNKNOWN */
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
 *   DATA         63..57 type   56..53 flags   52..40 count   39..32 arrived   31..0 value
 *   all others   63..57 type   56 asks   55..40 count   39..24 arrived   23..0 id
 *
 * count is a number of receive credits (DATA, CREDIT), a length (REJECT), a number of tokens
 * (SYNC), of messages (WANT), or 0. id is that of the receiver's connection.
 *
 * arrived (DATA, CREDIT; 0 in all others) acknowledges: the number of messages that have arrived in
 * the receives of the sender since the connection began, modulo 2^16. A DATA has its lower 8 bits,
 * and the upper ones in `value`, unless that is immediate data: then the receiver completes the
 * number, because never more than 255 are acknowledged so.
 *
 * asks (CREDIT; 0 in all others): the sender waits for the acknowledgement of all that it has sent.
 *
 * SIZE and TOO_LONG have a length in the place of count (upper half) and arrived (lower half).
 */
#define OFI_ID_MASK UINT32_C(0xffffff)
#define OFI_CTRL_ASKS (UINT64_C(1) << 56)

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
	OFI_CTRL_SIZE =
		15, /* length of the receives whose entry is 0, if the peer has not told it */
	OFI_CTRL_TOO_LONG = 16, /* the next message, of this length, does not fit in its receive */
	OFI_CTRL_WANT = 17,     /* so many messages wait for credits of a shared receive queue */
};

enum ofi_ctrl_flag {
	OFI_CTRL_SOLICITED = 1 << 0,
	OFI_CTRL_IMMEDIATE = 1 << 1,
	OFI_CTRL_IS_WRITE = 1 << 2, /* reports a write with immediate data */
	/* AckReq of InfiniBand: the sender will probably wait for the acknowledgement */
	OFI_CTRL_ACK_REQ = 1 << 3,
};

struct ofi_ctrl {
	uint8_t type;
	uint8_t flags; /* of a DATA; OFI_CTRL_ACK_REQ also of a CREDIT */
	uint16_t count;
	uint16_t arrived; /* with OFI_CTRL_IMMEDIATE the lower 8 bits of it */
	uint32_t value;   /* of a DATA the immediate data, or 0; else the id */
};

/* arrived: with OFI_CTRL_IMMEDIATE the upper 8 bits are not sent. */
static inline uint64_t ofi_ctrl_encode_data(uint8_t flags, uint16_t count, uint16_t arrived,
                                            uint32_t immediate)
{
	const uint32_t value = flags & OFI_CTRL_IMMEDIATE ? immediate : (uint32_t)arrived >> 8;

	return (uint64_t)OFI_CTRL_DATA << 57 | (uint64_t)flags << 53 | (uint64_t)count << 40 |
	       (uint64_t)(arrived & 0xff) << 32 | value;
}

static inline uint64_t ofi_ctrl_encode(uint8_t type, uint16_t count, uint16_t arrived, uint32_t id)
{
	return (uint64_t)type << 57 | (uint64_t)count << 40 | (uint64_t)arrived << 24 |
	       (id & OFI_ID_MASK);
}

static inline uint64_t ofi_ctrl_encode_length(uint8_t type, uint32_t length, uint32_t id)
{
	return ofi_ctrl_encode(type, (uint16_t)(length >> 16), (uint16_t)length, id);
}

static inline uint32_t ofi_ctrl_length(const struct ofi_ctrl *ctrl)
{
	return (uint32_t)ctrl->count << 16 | ctrl->arrived;
}

static inline struct ofi_ctrl ofi_ctrl_split(uint64_t ctrl)
{
	struct ofi_ctrl out = {.type = (uint8_t)(ctrl >> 57)};

	if (out.type != OFI_CTRL_DATA) {
		out.flags = ctrl & OFI_CTRL_ASKS ? OFI_CTRL_ACK_REQ : 0;
		out.count = (uint16_t)(ctrl >> 40);
		out.arrived = (uint16_t)(ctrl >> 24);
		out.value = (uint32_t)ctrl & OFI_ID_MASK;
		return out;
	}
	out.flags = (uint8_t)(ctrl >> 53 & 0xf);
	out.count = (uint16_t)(ctrl >> 40 & 0x1fff);
	out.arrived = (uint8_t)(ctrl >> 32);
	out.value = (uint32_t)ctrl;
	if (!(out.flags & OFI_CTRL_IMMEDIATE)) {
		out.arrived |= (uint16_t)((out.value & 0xff) << 8);
		out.value &= ~UINT32_C(0xff);
	}
	return out;
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
	OFI_AREA_SIZES = OFI_AREA_SIZE, /* ofi:tcp: an entry for each receive of the peer */
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
