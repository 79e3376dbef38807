/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole frames from a byte stream: one reader for sessions of both roles and for out-of-band
 * streams. */
#ifndef NEGOTIATION_FRAME_IO_H
#define NEGOTIATION_FRAME_IO_H

#include "frame.h"

/* Received and not consumed: a frame or a part of one. Zero it first. */
struct frame_reader {
	uint8_t *bytes; /* NULL: no memory is held */
	size_t room;
	size_t used;
};

/* Receive 1 to `room` bytes. Any other status than NDX_OK ends the read. */
typedef enum ndx_status frame_receive_fn(void *arg, void *data, size_t room, size_t *got);

/*
 * Read one frame, and never a byte behind it. The frame stays until frame_reader_consume(), and is
 * returned again until then.
 *
 * FRAME_MORE: `receive` returned *st instead of NDX_OK. FRAME_BAD: *why.
 */
enum frame_verdict frame_read(struct frame_reader *r, uint32_t most, frame_receive_fn *receive,
                              void *arg, struct frame *f, enum ndx_status *st, const char **why)
	NDX_PRIVATE(frame_read);
/* Remove the frame, and give large memory back. */
void frame_reader_consume(struct frame_reader *r) NDX_PRIVATE(frame_reader_consume);
/* Remove everything, and give all memory back. */
void frame_reader_clear(struct frame_reader *r) NDX_PRIVATE(frame_reader_clear);

#endif
