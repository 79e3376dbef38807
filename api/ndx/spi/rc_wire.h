/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of ofi:verbs over reliable connections. The provider verbs uses them, too, with a
 * peer on ofi:verbs. Pure functions; everything that comes from a peer passes through the decoders
 * here. The layout is part of docs/design/ofi-verbs.md: change both, and the version.
 */
#ifndef NDX_SPI_RC_WIRE_H
#define NDX_SPI_RC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* ---- data of connection management ---- */

#define NDXP_RC_CM_HEADER 7u
#define NDXP_RC_CM_CONNECT 55u /* bytes that libfabric carries in a request, ... */
#define NDXP_RC_CM_REJECT 147u /* ... in a refusal, and in an answer at least as many */
#define NDXP_RC_CALLER_DATA (NDXP_RC_CM_CONNECT - NDXP_RC_CM_HEADER)
#define NDXP_RC_CALLEE_DATA (NDXP_RC_CM_REJECT - NDXP_RC_CM_HEADER)

enum ndxp_rc_kind {
	NDXP_RC_CONNECT = 1,
	NDXP_RC_ACCEPT = 2,
	NDXP_RC_REJECT = 3,
};

enum ndxp_rc_flag {
	/* The sender is the provider verbs, which cannot take back a request that waits for a
	 * receive: it may disconnect without a goodbye, and then answers a probe. */
	NDXP_RC_IS_VERBS = 1 << 0,
};

struct ndxp_rc_cm {
	enum ndxp_rc_kind kind;
	uint32_t inbound_read_limit;
	uint32_t outbound_read_limit;
	uint8_t flags; /* OR of enum ndxp_rc_flag */
	size_t private_len;
	uint8_t private_data[NDXP_RC_CALLEE_DATA];
};

/* Returns the number of bytes in `out`. */
size_t ndxp_rc_cm_encode(const struct ndxp_rc_cm *cm, uint8_t out[NDXP_RC_CM_REJECT]);
/* NULL: *cm is filled; otherwise a text that says what is wrong, and *cm is unchanged. */
const char *ndxp_rc_cm_decode(const uint8_t *data, size_t len, enum ndxp_rc_kind kind,
                              struct ndxp_rc_cm *cm);

/* ---- first messages ---- */

#define NDXP_RC_RECORD_HEADER 20u
#define NDXP_RC_RECORD_SIZE (NDXP_RC_RECORD_HEADER + NDXP_RC_CALLER_DATA)
/* Between two ends on ofi:verbs READY and HELLO have this length: bytes without a meaning follow
 * the record. So a path that does not pass packets of the path MTU, which is 4096 at most, is found
 * before the connection is established. */
#define NDXP_RC_FIRST_LENGTH 4096u

enum ndxp_rc_first {
	NDXP_RC_FIRST_READY = 3,  /* from the active side: the connection is complete */
	NDXP_RC_FIRST_REJECT = 4, /* from the active side, with private data */
	NDXP_RC_FIRST_HELLO = 14, /* from the passive side, as the answer to READY */
};

struct ndxp_rc_record {
	uint8_t type;     /* enum ndxp_rc_first */
	uint16_t depth;   /* depth of the receive queue, or most that are held of a shared one */
	bool shared;      /* the receive queue is shared: `credits` is 0 */
	uint32_t key;     /* key of the sender's control region, ... */
	uint64_t address; /* ... and its address */
	uint32_t credits; /* receives that are posted already */
	size_t private_len;
	uint8_t private_data[NDXP_RC_CALLER_DATA];
};

/* Returns the number of bytes in `out`. */
size_t ndxp_rc_record_encode(const struct ndxp_rc_record *record, uint8_t out[NDXP_RC_RECORD_SIZE]);
/* NULL: *record is filled; otherwise a text that says what is wrong. */
const char *ndxp_rc_record_decode(const uint8_t *data, size_t len, struct ndxp_rc_record *record);

/* ---- the fields that the peer writes ---- */

/* Offsets from the address of the first message. Each field is a 64-bit number, big-endian. */
enum ndxp_rc_field {
	NDXP_RC_CREDITS = 0,  /* receives that the writer has posted in all */
	NDXP_RC_GOODBYE = 8,  /* flags below, and messages that the writer has sent in all */
	NDXP_RC_ABORTED = 16, /* not 0: the writer, which is verbs, has aborted */
	NDXP_RC_PROBED = 24,  /* not 0: the writer does not need the queue pair of verbs any more */
	NDXP_RC_FIELDS = 32,  /* bytes of all fields */
	/* Of verbs: the number that verbs writes into CREDITS, for the peer to read. The write may
	 * have to wait, because verbs gives its device requests that wait for a receive. */
	NDXP_RC_POSTED = 32,
};

/* Immediate data of the bell, a goodbye that is written a second time; whether a message is a bell
 * depends on the goodbye. */
#define NDXP_RC_BELL UINT32_C(0x4e445864)
/* Flags of the goodbye: the goodbye was written; its sender closes its queue pair, and waits for
 * the peer's goodbye. */
#define NDXP_RC_SAID (UINT64_C(1) << 63)
#define NDXP_RC_LEAVING (UINT64_C(1) << 62)

NDXP_DECLS_END

#endif
