/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames by which a session gets more queue pairs, and gives some up: parse, write. */
#include "frame.h"

#include <ndx/spi/byteorder.h>

/* Indices of queue pairs, all of which the session can have. */
static bool are_indices(uint32_t first, uint32_t count)
{
	return count > 0 && count <= FRAME_QUEUE_PAIRS_MAX && first < FRAME_INDICES &&
	       count <= FRAME_INDICES - first;
}

bool frame_parse_add(const struct frame *f, struct frame_add *out, const char **why)
{
	if (f->length != FRAME_ADD_SIZE) {
		*why = "payload of the wrong length";
		return false;
	}
	out->batch = ndxp_get_be32(f->payload);
	out->first = ndxp_get_be32(f->payload + 4);
	out->count = ndxp_get_be32(f->payload + 8);
	*why = "queue pairs that no session can add";
	return out->batch > 0 && are_indices(out->first, out->count);
}

bool frame_parse_abandon(const struct frame *f, struct frame_abandon *out, const char **why)
{
	struct frame rest = *f;

	if (f->length < 8) {
		*why = "payload of the wrong length";
		return false;
	}
	out->batch = ndxp_get_be32(f->payload);
	out->queue_pair = ndxp_get_be32(f->payload + 4);
	if (out->batch == 0 ||
	    (out->queue_pair >= FRAME_INDICES && out->queue_pair != FRAME_NO_QUEUE_PAIR)) {
		*why = "queue pairs that no session can add";
		return false;
	}
	rest.payload += 8;
	rest.length -= 8;
	return frame_parse_error(&rest, &out->error, why);
}

bool frame_parse_remove(const struct frame *f, struct frame_remove *out, const char **why)
{
	if (f->length != FRAME_REMOVE_SIZE) {
		*why = "payload of the wrong length";
		return false;
	}
	out->first = ndxp_get_be32(f->payload);
	out->count = ndxp_get_be32(f->payload + 4);
	*why = "queue pairs that no session has";
	return are_indices(out->first, out->count);
}

uint32_t frame_write_add(uint8_t out[FRAME_ADD_SIZE], const struct frame_add *add)
{
	ndxp_put_be32(out, add->batch);
	ndxp_put_be32(out + 4, add->first);
	ndxp_put_be32(out + 8, add->count);
	return FRAME_ADD_SIZE;
}

uint32_t frame_write_abandon(uint8_t out[FRAME_ABANDON_SIZE_MAX],
                             const struct frame_abandon *abandon)
{
	ndxp_put_be32(out, abandon->batch);
	ndxp_put_be32(out + 4, abandon->queue_pair);
	return 8 + frame_write_error(out + 8, &abandon->error);
}

uint32_t frame_write_remove(uint8_t out[FRAME_REMOVE_SIZE], const struct frame_remove *remove)
{
	ndxp_put_be32(out, remove->first);
	ndxp_put_be32(out + 4, remove->count);
	return FRAME_REMOVE_SIZE;
}
