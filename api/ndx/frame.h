/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Frames: received messages, in place.
 *
 * A frame is a view of one slot of a receiver's slab; nothing is copied. A consumer may keep a
 * frame (ndx_frame_retain()) and release it later (ndx_frame_release()), from any thread and in any
 * order. With the last reference the slot is posted to the device again. While a reference exists,
 * the bytes of the frame do not change and stay mapped, even after the receiver was stopped or
 * closed. The peer cannot fill a slot that a consumer holds: release frames soon, or have the
 * library copy them (copy_below of struct ndx_receiver_attr).
 *
 * The library reads the immediate data of a frame as `sequence << 8 | channel`: the position in the
 * sender's ring in bits 31:8, the channel in bits 7:0.
 *
 * These calls are in libndx-stream (pkg-config ndx-stream).
 */
#ifndef NDX_FRAME_H
#define NDX_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** Bits of ndx_frame.flags. */
enum ndx_frame_flag {
	/** channel, sequence and immediate are valid: the peer sent immediate data. */
	NDX_FRAME_IMMEDIATE = 1 << 0,
	NDX_FRAME_COPIED = 1 << 1, /**< the data are a copy; the slot is posted again already */
	NDX_FRAME_WRITTEN =
		1 << 2, /**< written into the slab by the peer; see NDX_RECEIVER_WRITE */
};

/** One frame. Read only. The library owns the memory that it points to. */
struct ndx_frame {
	const void *data;
	uint32_t length;    /**< bytes, at least 1 */
	uint32_t slot;      /**< slot of the slab that holds the frame; for a copy, that held it */
	uint32_t immediate; /**< host byte order; 0 without NDX_FRAME_IMMEDIATE */
	uint32_t sequence;  /**< bits 31:8 of `immediate` */
	uint32_t lost;      /**< sequence numbers that are missing directly before this frame */
	uint8_t channel;    /**< bits 7:0 of `immediate` */
	uint8_t flags;      /**< OR of enum ndx_frame_flag */
	uint64_t time_ns;   /**< monotonic clock, when the frame's batch of results was taken */
};

/** Add a reference. Any thread that holds the frame. Returns @p frame. */
const struct ndx_frame *ndx_frame_retain(const struct ndx_frame *frame);

/**
 * Drop a reference; the last one posts the slot again. NULL is a no-op.
 *
 * Thread safety: any thread, also in callbacks, also after the receiver was stopped or closed.
 * Blocks: no.
 */
void ndx_frame_release(const struct ndx_frame *frame);

/**
 * Drop a reference of each frame, as ndx_frame_release(), and post the slots again together: with
 * fewer locks and posts than one by one.
 *
 * @param frames  @p count frames, of any receivers; a frame may be there more than once if as many
 *                references are dropped. NULL entries are passed over, and a NULL list is a no-op
 *
 * Thread safety: any thread, also in callbacks, also after the receiver was stopped or closed.
 * Blocks: no.
 */
void ndx_frame_release_list(const struct ndx_frame *const *frames, size_t count);

NDX_DECLS_END

#endif
