/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Frames: what a receiver received, in place.
 *
 * A frame is a view of one slot of a receiver's slab: nothing was copied. Whoever is given a frame
 * may keep it (ndx_frame_retain()) and let it go later (ndx_frame_release()), from any thread and
 * in any order; with the last reference the slot goes back to the device. As long as somebody holds
 * it, its bytes stay as they are and stay mapped, also when the receiver has been stopped or closed
 * meanwhile. Slots that are held are slots that the peer cannot fill: hold them briefly, or have
 * them copied (copy_below of struct ndx_receiver_attr).
 *
 * The immediate data of a frame are read as `sequence << 8 | channel`: the position in the sender's
 * ring in bits 31:8, the channel in bits 7:0.
 */
#ifndef NDX_FRAME_H
#define NDX_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/decls.h>

NDX_DECLS_BEGIN

/** Bits of ndx_frame.flags. */
enum ndx_frame_flag {
	NDX_FRAME_IMMEDIATE =
		1 << 0,             /**< channel, sequence and immediate hold what the peer sent */
	NDX_FRAME_COPIED = 1 << 1,  /**< a copy: its slot is back at the device already */
	NDX_FRAME_WRITTEN = 1 << 2, /**< the peer wrote it into the slab; see NDX_RECEIVER_WRITE */
};

/** One frame. Read only; what lies behind it is the library's. */
struct ndx_frame {
	const void *data;
	uint32_t length;    /**< bytes, at least 1 */
	uint32_t slot;      /**< which slot of the slab holds it; of a copy: held it */
	uint32_t immediate; /**< host byte order; 0 without NDX_FRAME_IMMEDIATE */
	uint32_t sequence;  /**< bits 31:8 of it */
	uint32_t lost;      /**< sequence numbers that are missing right before this frame */
	uint8_t channel;    /**< bits 7:0 of it */
	uint8_t flags;      /**< OR of enum ndx_frame_flag */
	uint64_t time_ns;   /**< monotonic clock, when its batch of results was taken */
};

/** One more holder. Any thread that holds it. Returns @p frame. */
const struct ndx_frame *ndx_frame_retain(const struct ndx_frame *frame);

/**
 * One holder less; the last one gives the slot back. NULL is a no-op. Any thread, also in
 * callbacks, also after the receiver was stopped or closed. Blocks: no.
 */
void ndx_frame_release(const struct ndx_frame *frame);

NDX_DECLS_END

#endif
