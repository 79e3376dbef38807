/* SPDX-License-Identifier: BSD-2-Clause */
/* One direction of a TCP connection, in order: each byte comes out once, without gaps, whatever the
 * order and number of copies of the segments. */
#ifndef REASSEMBLY_STREAM_H
#define REASSEMBLY_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/list.h>
#include "mem.h"

/* The limits of what waits for a gap to be filled, before the gap counts as lost. */
#define STREAM_HELD_MAX (UINT32_C(512) << 10)
#define STREAM_SEGMENTS_MAX 512u
/* The number of segments after which the lowest counts as the beginning. */
#define STREAM_START_SEGMENTS 64u
/* The same for a stream of few segments, in packets of the whole capture, because the reverse
 * direction must not wait for it. Also how long a gap may stay open after the receiver acknowledged
 * it. */
#define STREAM_PATIENCE 256u

struct stream_segment {
	struct ndxp_list link; /* sorted by sequence */
	uint32_t sequence;
	uint32_t acknowledged;
	uint32_t length;   /* as sent */
	uint32_t captured; /* captured bytes: bytes[] */
	uint8_t bytes[];
};

struct stream {
	bool known;            /* `next` is valid: from SYN, or chosen */
	bool synchronised;     /* from SYN */
	uint32_t next;         /* the next sequence number */
	uint64_t order;        /* bytes before `next`, since the stream began */
	uint32_t acknowledged; /* by the current segment */
	struct ndxp_list waiting;
	uint64_t since;    /* packet count when the wait began, or at the acknowledgement */
	uint32_t segments; /* waiting segments */
	uint32_t held;     /* the bytes of those */
	/* The parser of the stream (iwarp.c). */
	uint8_t state;
	bool recognised;
	uint32_t losses;    /* how often bytes were missing */
	bool setup;         /* its set-up frame was captured */
	bool crc;           /* its set-up frame requests CRCs */
	uint8_t crcs;       /* whether frames have CRCs, as far as known */
	bool markers_known; /* `markers` is valid */
	bool markers;
	uint32_t tries;       /* segments without a recognised frame */
	uint64_t marker_base; /* order of the first marker */
	uint8_t *partial;     /* an incomplete frame */
	uint32_t partial_fill;
	uint32_t partial_room;
	struct ndxp_list gathers; /* SENDs in several frames */
	uint32_t gather_count;
};

/* What to do with a segment. */
enum stream_verdict {
	STREAM_NEXT, /* use its bytes now, from `skip` on */
	STREAM_HELD, /* held for later */
	STREAM_SEEN, /* a duplicate */
	STREAM_LOST, /* no memory to hold it */
};

void stream_init(struct stream *stream);
void stream_fini(struct stream *stream, struct mem *mem);

/* Set the sequence number of the first byte. */
void stream_begin(struct stream *stream, uint32_t sequence);

/* Classify a segment, `head` and its bytes; holds it if it has to wait. */
enum stream_verdict stream_judge(struct stream *stream, struct mem *mem,
                                 const struct stream_segment *head, const uint8_t *bytes,
                                 uint32_t *skip);

/* `length` bytes were consumed. */
void stream_advance(struct stream *stream, uint32_t length);

/* The waiting segment that is next now; NULL if none. The caller consumes its bytes from `skip` on,
 * advances, and drops it. */
struct stream_segment *stream_ready(struct stream *stream, uint32_t *skip);
void stream_drop(struct stream *stream, struct mem *mem, struct stream_segment *segment);

/* The number of bytes from `next` to the first waiting segment; 0 if none waits. */
uint32_t stream_gap(const struct stream *stream);

/* The receiver has acknowledged everything before `sequence`: gaps there will not be filled by
 * retransmission. True if that is new; `now` is the packet count. */
bool stream_acknowledge(struct stream *stream, uint32_t sequence, uint64_t now);

/* Whether the acknowledgement is recent. */
bool stream_patient(const struct stream *stream, uint64_t now);

/* Whether to choose a beginning now, or to give up a gap. */
bool stream_full(const struct stream *stream, uint64_t now);

/* Continue at the lowest waiting sequence number. */
void stream_jump(struct stream *stream);

#endif
