/* SPDX-License-Identifier: BSD-2-Clause */
/* What ndx-send and ndx-recv have in common: frames that check themselves, and a greeting. */
#ifndef SAMPLE_FRAMES_H
#define SAMPLE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a frame before its pattern: number and length, so that nothing can be mistaken. */
#define SAMPLE_FRAME_HEADER 12u

/** Write frame `number`: its header, then PRBS-31 (ITU-T O.150) that begins with the number. */
void sample_frame_fill(void *data, uint32_t length, uint64_t number);

/** Is it a whole frame, and which? False: a byte is wrong. */
bool sample_frame_check(const void *data, uint32_t length, uint64_t *number);

/** What a receiver tells a sender with its accept; fixed width, big-endian. */
struct sample_greeting {
	bool by_write; /**< frames are written into the slab */
	uint32_t slot_size;
	uint32_t slot_count;
	uint32_t token; /**< of the slab, by_write only */
	uint64_t address;
};

#define SAMPLE_GREETING_BYTES 32u

void sample_greeting_write(const struct sample_greeting *greeting,
                           uint8_t bytes[SAMPLE_GREETING_BYTES]);

/** False: that is not from ndx-recv. */
bool sample_greeting_read(struct sample_greeting *greeting, const uint8_t *bytes, size_t length);

#endif
