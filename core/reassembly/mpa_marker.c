/* SPDX-License-Identifier: BSD-2-Clause */
#include "mpa_marker.h"

#include <string.h>

#include <ndx/spi/byteorder.h>
#include "mpa.h"
#include "stream.h"

uint32_t marker_distance(const struct stream *s, uint64_t order)
{
	uint32_t past = (uint32_t)((order - s->marker_base) % MPA_MARKER_EVERY);

	return past == 0 ? 0 : MPA_MARKER_EVERY - past;
}

uint32_t marker_raw(const struct stream *s, uint64_t order, uint32_t length)
{
	uint32_t raw = 0;

	if (!s->markers)
		return length;
	while (length > 0) {
		uint32_t part = marker_distance(s, order + raw);

		if (part == 0) {
			raw += MPA_MARKER_SIZE;
			part = MPA_MARKER_EVERY - MPA_MARKER_SIZE;
		}
		if (part > length)
			part = length;
		raw += part;
		length -= part;
	}
	return raw;
}

void marker_strip(const struct stream *s, const struct view *v, uint8_t *out, uint32_t length)
{
	uint32_t raw = 0;

	while (length > 0) {
		uint32_t part = s->markers ? marker_distance(s, v->order + raw) : length;

		if (part == 0) {
			raw += MPA_MARKER_SIZE;
			part = MPA_MARKER_EVERY - MPA_MARKER_SIZE;
		}
		if (part > length)
			part = length;
		memcpy(out, v->bytes + raw, part);
		out += part;
		raw += part;
		length -= part;
	}
}

uint32_t marker_find(const struct view *v, uint32_t plain)
{
	uint32_t end = plain < MPA_MARKER_EVERY ? plain : MPA_MARKER_EVERY;

	if (end > v->captured)
		end = v->captured;
	for (uint32_t at = MPA_MARKER_SIZE; at + MPA_MARKER_SIZE <= end; at += MPA_MARKER_SIZE) {
		if (ndxp_get_be32(v->bytes + at) == at)
			return at;
	}
	return 0;
}
