/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include <string.h>

static struct stream_segment *at_link(struct ndxp_list *at)
{
	return container_of(at, struct stream_segment, link);
}

static int32_t behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

void stream_init(struct stream *stream)
{
	*stream = (struct stream){0};
	ndxp_list_init(&stream->waiting);
	ndxp_list_init(&stream->gathers);
}

void stream_drop(struct stream *stream, struct mem *mem, struct stream_segment *segment)
{
	ndxp_list_remove(&segment->link);
	stream->segments--;
	stream->held -= segment->captured;
	mem_put(mem, segment, sizeof(*segment) + segment->captured);
}

void stream_fini(struct stream *stream, struct mem *mem)
{
	while (!ndxp_list_empty(&stream->waiting))
		stream_drop(stream, mem, at_link(stream->waiting.next));
	mem_put(mem, stream->partial, stream->partial_room);
	stream->partial = NULL;
	stream->partial_room = stream->partial_fill = 0;
}

void stream_begin(struct stream *stream, uint32_t sequence)
{
	stream->next = sequence;
	stream->known = true;
}

static enum stream_verdict keep_segment(struct stream *stream, struct mem *mem,
                                        const struct stream_segment *head, const uint8_t *bytes)
{
	struct stream_segment *s;
	struct ndxp_list *at = stream->waiting.prev;

	while (at != &stream->waiting && behind(at_link(at)->sequence, head->sequence) > 0)
		at = at->prev;
	if (at != &stream->waiting && at_link(at)->sequence == head->sequence &&
	    at_link(at)->length >= head->length)
		return STREAM_SEEN;
	if (stream->segments >= 2 * STREAM_SEGMENTS_MAX)
		return STREAM_LOST;
	s = mem_get(mem, sizeof(*s) + head->captured);
	if (s == NULL)
		return STREAM_LOST;
	*s = *head;
	if (head->captured > 0)
		memcpy(s->bytes, bytes, head->captured);
	ndxp_list_add(at->next, &s->link);
	stream->segments++;
	stream->held += s->captured;
	return STREAM_HELD;
}

enum stream_verdict stream_judge(struct stream *stream, struct mem *mem,
                                 const struct stream_segment *head, const uint8_t *bytes,
                                 uint32_t *skip)
{
	int32_t late;

	*skip = 0;
	if (!stream->known)
		return keep_segment(stream, mem, head, bytes);
	late = behind(stream->next, head->sequence);
	if (late < 0)
		return keep_segment(stream, mem, head, bytes);
	if ((uint32_t)late >= head->length)
		return STREAM_SEEN;
	*skip = (uint32_t)late;
	return STREAM_NEXT;
}

void stream_advance(struct stream *stream, uint32_t length)
{
	stream->since = 0;
	stream->next += length;
	stream->order += length;
}

struct stream_segment *stream_ready(struct stream *stream, uint32_t *skip)
{
	struct stream_segment *s;
	int32_t late;

	if (!stream->known || ndxp_list_empty(&stream->waiting))
		return NULL;
	s = at_link(stream->waiting.next);
	late = behind(stream->next, s->sequence);
	if (late < 0)
		return NULL;
	*skip = (uint32_t)late < s->length ? (uint32_t)late : s->length;
	return s;
}

uint32_t stream_gap(const struct stream *stream)
{
	if (ndxp_list_empty(&stream->waiting))
		return 0;
	return at_link(stream->waiting.next)->sequence - stream->next;
}

bool stream_acknowledge(struct stream *stream, uint32_t sequence, uint64_t now)
{
	if (stream->since != 0 || ndxp_list_empty(&stream->waiting) ||
	    (stream->known && behind(sequence, at_link(stream->waiting.next)->sequence) < 0))
		return false;
	stream->since = now;
	return true;
}

bool stream_patient(const struct stream *stream, uint64_t now)
{
	return stream->since != 0 && now - stream->since <= STREAM_PATIENCE;
}

bool stream_full(const struct stream *stream, uint64_t now)
{
	if (stream->since != 0 && !stream_patient(stream, now))
		return true;
	if (!stream->known)
		return stream->segments >= STREAM_START_SEGMENTS || stream->held >= STREAM_HELD_MAX;
	return stream->segments >= STREAM_SEGMENTS_MAX || stream->held >= STREAM_HELD_MAX;
}

void stream_jump(struct stream *stream)
{
	if (ndxp_list_empty(&stream->waiting))
		return;
	if (stream->known)
		stream->order += stream_gap(stream);
	stream->next = at_link(stream->waiting.next)->sequence;
	stream->known = true;
	stream->since = 0;
}
