/* SPDX-License-Identifier: BSD-2-Clause */
/* Markers of MPA: four bytes at every 512 of the stream, which say how far back their frame began.
 */
#ifndef REASSEMBLY_MARKER_H
#define REASSEMBLY_MARKER_H

#include <stdbool.h>
#include <stdint.h>

struct stream;

/* Bytes of the stream, at its place `order`. */
struct view {
	const uint8_t *bytes;
	uint32_t captured;
	uint32_t length; /* as sent: less is captured only of a cut segment */
	uint64_t order;
};

/* How far it is to the next marker; 0: here is one. */
uint32_t marker_distance(const struct stream *s, uint64_t order);

/* Bytes that `length` bytes take up, with the markers between them. */
uint32_t marker_raw(const struct stream *s, uint64_t order, uint32_t length);

/* Copy `length` bytes without the markers between them; the raw bytes must be there. */
void marker_strip(const struct stream *s, const struct view *v, uint8_t *out, uint32_t length);

/* Where in a frame of `plain` bytes a word is its own distance from the beginning; 0: nowhere. */
uint32_t marker_find(const struct view *v, uint32_t plain);

#endif
