/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole frames over a byte stream. */
#include "frame_io.h"

#include <stdlib.h>

#define ROOM_KEPT 256u /* of an empty reader: idle sessions are many */

static bool make_room(struct frame_reader *r, size_t wanted)
{
	uint8_t *grown;

	if (wanted <= r->room)
		return true;
	grown = realloc(r->bytes, wanted);
	if (grown == NULL)
		return false;
	r->bytes = grown;
	r->room = wanted;
	return true;
}

enum frame_verdict frame_read(struct frame_reader *r, uint32_t most, frame_receive_fn *receive,
                              void *arg, struct frame *f, enum ndx_status *st, const char **why)
{
	static const uint8_t nothing[1];
	size_t wanted = FRAME_HEADER;

	for (;;) {
		const enum frame_verdict v = frame_parse(r->bytes != NULL ? r->bytes : nothing,
		                                         r->used, most, f, &wanted, why);
		size_t got;

		if (v != FRAME_MORE)
			return v;
		if (!make_room(r, wanted)) {
			*why = "there is no memory for it";
			return FRAME_BAD;
		}
		*st = receive(arg, r->bytes + r->used, wanted - r->used, &got);
		if (*st != NDX_OK)
			return FRAME_MORE;
		r->used += got;
	}
}

void frame_reader_consume(struct frame_reader *r)
{
	r->used = 0;
	if (r->room > ROOM_KEPT)
		frame_reader_clear(r);
}

void frame_reader_clear(struct frame_reader *r)
{
	free(r->bytes);
	*r = (struct frame_reader){0};
}
