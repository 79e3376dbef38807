/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between the variant and the transport: the variant sends the values for the FPGA, the
 * transport sends the FPGA's response. Both belong to this plugin; the framework between them
 * carries bytes (docs/negotiation-protocol.md).
 */
#ifndef SURF_WORDS_H
#define SURF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every member is a uint64_t. On the wire the members follow in this order, big-endian. */
struct surf_order {
	uint64_t base;       /* address of the FPGA's RoCE engine */
	uint64_t udp_client; /* address of the client in its UDP engine; 0: do not set it */
	uint64_t host_ip;    /* IPv4, 0x0a090001 for 10.9.0.1 */
	uint64_t host_qpn;
	uint64_t host_psn; /* first PSN of the host */
	uint64_t host_reads_in;
	uint64_t host_reads_out;
	uint64_t mr_address;
	uint64_t mr_length;
	uint64_t pmtu; /* code */
	uint64_t min_rnr_timer;
	uint64_t timeout;
	uint64_t retry_count;
	uint64_t rnr_retry;
	uint64_t step_ms;
	uint64_t wrap;
	uint64_t stream; /* 1: switch the dispatcher on when the host is ready */
};

struct surf_answer {
	uint64_t qpn;
	uint64_t psn; /* first PSN of the FPGA */
};

#define SURF_ORDER_BYTES sizeof(struct surf_order)
#define SURF_ANSWER_BYTES sizeof(struct surf_answer)

/* Reads that the FPGA serves, and reads that it wants in flight. */
#define SURF_READS 16u

void surf_words_write(uint8_t *to, const void *members, size_t bytes);
void surf_words_read(void *members, const uint8_t *from, size_t bytes);

/* ---- the framework's frames, as far as a device needs them ---- */

#define SURF_FRAME_HEADER 20u
#define SURF_FRAME_PAYLOAD 1024u
#define SURF_VALIDATE_BYTES 48u

enum surf_frame_type {
	SURF_HELLO = 1,
	SURF_WELCOME = 2,
	SURF_DATA = 3,
	SURF_VALIDATE = 4,
	SURF_ERROR = 5,
	SURF_BYE = 6,
};

struct surf_frame {
	uint8_t type;
	uint8_t stage;
	uint8_t flags;
	uint32_t round;
	uint32_t length;
	const uint8_t *payload;
};

#define SURF_FRAME_COMPLETED 0x1u

/* Parse the first frame of these bytes. False: no frame, or an incomplete one. */
bool surf_frame_parse(const uint8_t *bytes, size_t length, struct surf_frame *out);
/* Write header and payload; returns the number of bytes. */
size_t surf_frame_write(uint8_t *to, const struct surf_frame *frame);

#endif
