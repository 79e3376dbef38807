/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by ndx-send and ndx-recv: frames that can be verified, and a greeting. */
#ifndef SAMPLE_FRAMES_H
#define SAMPLE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Bytes of a frame before its pattern: number and length, so that a frame cannot be confused with
 * another one.
 */
#define SAMPLE_FRAME_HEADER 12u

/** Write frame `number`: its header, then PRBS-31 (ITU-T O.150), seeded with the number. */
void sample_frame_fill(void *data, uint32_t length, uint64_t number);

/** Verify a frame, and return its number. False: a byte is wrong. */
bool sample_frame_check(const void *data, uint32_t length, uint64_t *number);

/** Private data of a receiver's accept; fixed width, big-endian. */
struct sample_greeting {
	bool by_write; /**< frames are written into the slab */
	uint32_t slot_size;
	uint32_t slot_count;
	uint32_t token; /**< of the slab, only with by_write */
	uint64_t address;
};

#define SAMPLE_GREETING_BYTES 32u

void sample_greeting_write(const struct sample_greeting *greeting,
                           uint8_t bytes[SAMPLE_GREETING_BYTES]);

/** False: the bytes are not from ndx-recv. */
bool sample_greeting_read(struct sample_greeting *greeting, const uint8_t *bytes, size_t length);

#endif
