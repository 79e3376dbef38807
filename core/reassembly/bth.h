/* SPDX-License-Identifier: BSD-2-Clause */
/* Base transport header and the headers after it: a pure parser. */
#ifndef REASSEMBLY_BTH_H
#define REASSEMBLY_BTH_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

/* The operation of a packet, independent of the transport service. */
enum bth_kind {
	BTH_NONE, /* no such opcode */
	BTH_SEND,
	BTH_WRITE,
	BTH_READ_REQUEST,
	BTH_READ_RESPONSE,
	BTH_ACKNOWLEDGE,
	BTH_ATOMIC_ACKNOWLEDGE,
	BTH_ATOMIC, /* request */
	BTH_OTHER,  /* RESYNC, congestion notification */
};

/* Transport service: the upper three bits of the opcode. */
enum bth_service {
	BTH_RC = 0,
	BTH_UC = 1,
	BTH_RD = 2,
	BTH_UD = 3,
	BTH_CNP = 4,
	BTH_XRC = 5,
};

struct bth {
	uint8_t opcode;
	uint8_t service; /* enum bth_service */
	uint8_t kind;    /* enum bth_kind */
	bool first;      /* First or Only */
	bool last;       /* Last or Only */
	bool has_reth;
	bool has_immediate;
	bool has_invalidate;
	bool has_aeth;
	bool has_deth;
	bool has_atomic;
	uint32_t qpn; /* destination */
	uint32_t psn;
	uint64_t address; /* RETH, AtomicETH */
	uint32_t handle;
	uint32_t dma_length;
	uint32_t immediate;
	uint32_t invalidate;
	uint32_t syndrome; /* AETH */
	uint32_t msn;
	uint32_t source_qpn;    /* DETH */
	uint64_t swap, compare; /* AtomicETH */
	uint64_t original;      /* AtomicAckETH: the previous value */
	uint32_t srq;           /* XRCETH */
	const uint8_t *data;
	uint32_t length;   /* of the data on the wire, without padding */
	uint32_t captured; /* captured bytes of these */
};

/* Parse the headers of a packet of `length` bytes without ICRC, of which `captured` were captured.
 * False if the capture ends within the headers, or if lengths contradict. Fields of absent headers
 * are 0. */
bool bth_parse(const uint8_t *bytes, uint32_t captured, uint32_t length, struct bth *out);

/* Difference of two packet sequence numbers, -2^23 .. 2^23 - 1. */
static inline int32_t psn_delta(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
