/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a TCP connection, put in order: bytes come out once, without gaps, in whatever
 * order and however often their segments came.
 */
#ifndef REASSEMBLY_STREAM_H
#define REASSEMBLY_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base_list.h"
#include "mem.h"

/* What may wait for a gap to be filled, before the gap is taken for lost. */
#define STREAM_HELD_MAX (UINT32_C(512) << 10)
#define STREAM_SEGMENTS_MAX 512u
/* Segments that are looked at before the lowest is taken for the beginning. */
#define STREAM_START_SEGMENTS 64u
/* The same, in packets of the whole capture: for a stream of few segments, which the other
 * direction must not wait for. Likewise, how long a gap may be open that its receiver says it has
 * got. */
#define STREAM_PATIENCE 256u

struct stream_segment {
	struct base_list link; /* sorted by sequence */
	uint32_t sequence;
	uint32_t acknowledged;
	uint32_t length;   /* as sent */
	uint32_t captured; /* of it: bytes[] */
	uint8_t bytes[];
};

struct stream {
	bool known;            /* `next` is: from SYN, or chosen */
	bool synchronised;     /* from SYN */
	uint32_t next;         /* sequence number that comes next */
	uint64_t order;        /* bytes that came before it, since the stream began for us */
	uint32_t acknowledged; /* by the segment that is being used */
	struct base_list waiting;
	uint64_t since; /* packets when the wait for a beginning began, or a gap was acknowledged */
	uint32_t segments; /* that wait */
	uint32_t held;     /* their bytes */
	/* What is made of it (iwarp.c). */
	uint8_t state;
	bool recognised;
	uint32_t losses;    /* how often bytes were missing */
	bool setup;         /* its set-up frame was seen */
	bool crc;           /* it asked for CRCs */
	uint8_t crcs;       /* whether frames have them, as far as known */
	bool markers_known; /* whether there are markers */
	bool markers;
	uint32_t tries;       /* segments that could not be recognised */
	uint64_t marker_base; /* order of the first marker */
	uint8_t *partial;     /* the beginning of a frame */
	uint32_t partial_fill;
	uint32_t partial_room;
	struct base_list gathers; /* SENDs in several frames */
	uint32_t gather_count;
};

/* What becomes of a segment. */
enum stream_verdict {
	STREAM_NEXT, /* its bytes, from `skip` on, are next */
	STREAM_HELD, /* kept for later */
	STREAM_SEEN, /* all of it was there */
	STREAM_LOST, /* no room to keep it */
};

void stream_init(struct stream *stream);
void stream_fini(struct stream *stream, struct mem *mem);

/* The sequence number of the first byte is known. */
void stream_begin(struct stream *stream, uint32_t sequence);

/* Judge a segment, `head` and its bytes; it is kept if it has to wait. */
enum stream_verdict stream_judge(struct stream *stream, struct mem *mem,
                                 const struct stream_segment *head, const uint8_t *bytes,
                                 uint32_t *skip);

/* `length` bytes were used. */
void stream_advance(struct stream *stream, uint32_t length);

/*
 * The next segment that waits and is next now; NULL if there is none. The caller uses its bytes
 * from `skip` on, advances, and drops it.
 */
struct stream_segment *stream_ready(struct stream *stream, uint32_t *skip);
void stream_drop(struct stream *stream, struct mem *mem, struct stream_segment *segment);

/* Bytes from `next` to the first segment that waits; 0 if none waits. */
uint32_t stream_gap(const struct stream *stream);

/*
 * The receiver says that it has got all before `sequence`: such a gap will not be filled by sending
 * again. True if that was not known; `now` is packets so far.
 */
bool stream_acknowledge(struct stream *stream, uint32_t sequence, uint64_t now);

/* Was it said only a short while ago? */
bool stream_patient(const struct stream *stream, uint64_t now);

/* Is it time to choose a beginning, or to give up a gap? */
bool stream_full(const struct stream *stream, uint64_t now);

/* Choose the lowest sequence number that waits as the next one. */
void stream_jump(struct stream *stream);

#endif
