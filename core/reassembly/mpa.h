/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP: MPA set-up frames and frames, DDP and RDMAP headers. Pure parsers. */
#ifndef REASSEMBLY_MPA_H
#define REASSEMBLY_MPA_H

#include <stdbool.h>
#include <stdint.h>

#define MPA_SETUP_SIZE 20 /* before the private data */
#define MPA_MARKER_EVERY 512
#define MPA_MARKER_SIZE 4

enum mpa_verdict {
	MPA_NO,   /* something else */
	MPA_MORE, /* perhaps; more bytes are needed */
	MPA_YES,
};

/* The frames at the beginning of a connection. */
struct mpa_setup {
	bool reply;
	bool markers; /* the sender wants to receive markers */
	bool crc;
	bool rejected;
	uint8_t revision;
	uint16_t private_length;
	bool enhanced; /* revision 2: the private data start with read limits */
	uint16_t inbound_reads, outbound_reads;
};

enum mpa_verdict mpa_setup_parse(const uint8_t *bytes, uint32_t length, struct mpa_setup *out);

/* The size of a frame with a ULPDU of that length: with length field, padding and CRC, without
 * markers. */
static inline uint32_t mpa_frame_size(uint32_t ulpdu)
{
	return ((ulpdu + 2 + 3) & ~3u) + 4;
}

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INVALIDATE = 4,
	RDMAP_SEND_SOLICITED = 5,
	RDMAP_SEND_SOLICITED_INVALIDATE = 6,
	RDMAP_TERMINATE = 7,
};

#define DDP_TAGGED_SIZE 14
#define DDP_UNTAGGED_SIZE 18
#define RDMAP_READ_REQUEST_SIZE 28

struct ddp {
	bool tagged;
	bool last;
	uint8_t opcode; /* of RDMAP */
	bool has_invalidate;
	uint32_t invalidate;
	uint32_t stag; /* tagged */
	uint64_t offset;
	uint32_t queue; /* untagged */
	uint32_t message;
	uint32_t message_offset;
	struct { /* READ_REQUEST */
		uint32_t sink_stag;
		uint64_t sink_offset;
		uint32_t size;
		uint32_t source_stag;
		uint64_t source_offset;
	} read;
	const uint8_t *data;
	uint32_t length;   /* as sent */
	uint32_t captured; /* captured bytes of the data */
};

/* Whether a ULPDU can begin like this. Needs the first two bytes. */
bool ddp_plausible(const uint8_t *bytes, uint32_t length);

/* Parse the headers of a ULPDU of `length` bytes, of which `captured` were captured. */
bool ddp_parse(const uint8_t *bytes, uint32_t captured, uint32_t length, struct ddp *out);

#endif
