/* SPDX-License-Identifier: BSD-2-Clause */
/* The lower half of the generator: bytes of packets. */
#ifndef SYNTH_PACKET_H
#define SYNTH_PACKET_H

#include "synth.h"

/* One side of a connection, and what it sends. */
struct synth_side {
	uint8_t address[16]; /* IPv4: the last four */
	uint32_t qpn;        /* or port */
	uint32_t psn;        /* next it sends; or TCP sequence number */
	uint32_t message;    /* iWARP: next SEND, from 1 */
	uint32_t reads;      /* iWARP: next read request */
	uint64_t streamed;   /* iWARP: bytes since frames began, for markers */
	uint8_t *pending;    /* iWARP, unaligned: bytes that wait for a segment */
	uint32_t pending_count;
};

struct synth_connection {
	struct synth *synth;
	struct synth_side side[2]; /* 0 is the client */
	uint32_t random;
	uint32_t calls;      /* made so far */
	uint32_t generation; /* how often it was begun before */
};

/* Memory that a call offers. */
struct synth_segment {
	uint32_t handle, length;
	uint64_t offset;
	uint32_t position;
};

bool synth_iwarp(const struct synth_connection *c);

/* Random, 0 .. limit - 1. */
uint32_t synth_below(struct synth_connection *c, uint32_t limit);

/* A message from that side, by SEND; `invalidate` 0: none. */
void synth_send_message(struct synth_connection *c, unsigned from, const uint8_t *bytes,
                        uint32_t length, uint32_t invalidate);

/* That side acknowledges, if it does so at all. */
void synth_ack(struct synth_connection *c, unsigned from, uint32_t psn);

/* The server writes into the client's memory. */
void synth_write_segment(struct synth_connection *c, const struct synth_segment *s,
                         const uint8_t *bytes, uint32_t length);

/* It reads from there, as one of the reads under way; the answer may be sent later. */
struct synth_read {
	uint32_t psn;
	uint64_t sink;
};

void synth_read_request(struct synth_connection *c, const struct synth_segment *s, uint32_t index,
                        struct synth_read *read);
void synth_read_answer(struct synth_connection *c, const struct synth_segment *s,
                       const struct synth_read *read, const uint8_t *bytes);

/* A packet of the opcode from that side; `head` are the extended headers. */
void synth_bth(struct synth_connection *c, unsigned from, uint8_t opcode, uint32_t psn,
               const uint8_t *head, uint32_t head_length, const uint8_t *data, uint32_t length);

/* A datagram of the connection manager: 232 bytes behind the MAD header. */
void synth_manage(struct synth_connection *c, unsigned from, uint16_t kind, const uint8_t *data);

/* TCP: segment with flags, or bytes of the stream; all that waits if `flush`. */
void synth_tcp(struct synth_connection *c, unsigned from, uint8_t flags, const uint8_t *data,
               uint32_t length);
void synth_stream(struct synth_connection *c, unsigned from, const uint8_t *data, uint32_t length,
                  bool flush);

/* A frame of MPA around a ULPDU. */
void synth_frame(struct synth_connection *c, unsigned from, const uint8_t *ulpdu, uint32_t length);

uint32_t synth_crc32(uint32_t polynomial, uint32_t crc, const uint8_t *bytes, size_t length);

void synth_put16(uint8_t *p, uint16_t v);
void synth_put24(uint8_t *p, uint32_t v);
void synth_put32(uint8_t *p, uint32_t v);
void synth_put64(uint8_t *p, uint64_t v);

#endif
