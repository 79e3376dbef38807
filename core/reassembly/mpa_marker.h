/* SPDX-License-Identifier: BSD-2-Clause */
/* Markers of MPA: four bytes at every 512 of the stream, with the distance to their frame's
 * beginning. */
#ifndef REASSEMBLY_MPA_MARKER_H
#define REASSEMBLY_MPA_MARKER_H

#include <stdbool.h>
#include <stdint.h>

struct stream;

/* Bytes of the stream, at position `order`. */
struct view {
	const uint8_t *bytes;
	uint32_t captured;
	uint32_t length; /* as sent: `captured` is less only in a truncated segment */
	uint64_t order;
};

/* The distance to the next marker; 0: there is one here. */
uint32_t marker_distance(const struct stream *s, uint64_t order);

/* The size of `length` bytes with the markers among them. */
uint32_t marker_raw(const struct stream *s, uint64_t order, uint32_t length);

/* Copy `length` bytes without the markers among them; the raw bytes must be captured. */
void marker_strip(const struct stream *s, const struct view *v, uint8_t *out, uint32_t length);

/* The first position in a frame of `plain` bytes where a word equals its distance from the frame's
 * beginning; 0: none. */
uint32_t marker_find(const struct view *v, uint32_t plain);

#endif
