/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Senders: the counterpart of receivers, and a stand-in for a device that streams frames.
 *
 * A sender owns a ring of slots. A slot keeps its bytes until the peer has received them, because a
 * retry of the device reads the same bytes; so at most `window` frames are in flight. Each frame
 * carries `sequence << 8 | channel` as immediate data where the provider supports immediate data. A
 * sender has no thread: its calls do the work, and only one thread at a time may call it.
 *
 * A sender has a queue pair of its own; or it sends over the connection of a receiver (`receiver`
 * of struct ndx_sender_attr), so that data flow both ways over one connection.
 *
 * These calls are in libndx-stream (pkg-config ndx-stream).
 */
#ifndef NDX_SENDER_H
#define NDX_SENDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/listener.h>
#include <ndx/receiver.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_sender; /* opaque */

/** Attributes of a sender. Call ndx_sender_attr_init() first, then change members. */
struct ndx_sender_attr {
	size_t size; /**< set by ndx_sender_attr_init() */
	/**
	 * Send over the connection of this receiver; NULL: the sender has a queue pair of its own.
	 */
	struct ndx_receiver *receiver;
	/** NULL: the sender opens `uri`. Ignored with a receiver. */
	struct ndx_adapter *adapter;
	const char *uri;             /**< as for ndx_adapter_open() */
	enum ndx_receiver_mode mode; /**< how the peer receives its frames. Default SEND */
	uint32_t slot_size;          /**< longest frame in bytes. Default 4096 */
	uint32_t slot_count;         /**< default 16 */
	uint32_t window;             /**< frames in flight, at most slot_count. Default 0: all */
	uint32_t rate;            /**< highest number of frames per second. Default 0: no limit */
	uint32_t sequence_wrap;   /**< sequence numbers are 0 .. sequence_wrap - 1. Default 2^24 */
	uint64_t peer_address;    /**< mode WRITE: the peer's slab */
	uint32_t peer_token;      /**< mode WRITE */
	uint32_t peer_slot_size;  /**< mode WRITE. Default slot_size */
	uint32_t peer_slot_count; /**< mode WRITE. Default 256 */
	uint32_t no_receive_timeout_ms; /**< as in struct ndx_qp_attr. Default 4000 */
	uint32_t keepalive_ms;          /**< as in struct ndx_qp_attr. Default 5000 */
	/** How long calls that wait poll before they sleep. Default 50. */
	uint32_t spin_us;
	/** How long ndx_sender_close() and ndx_sender_reset() wait. Default 8000. */
	uint32_t close_timeout_ms;
	uint32_t reserved; /**< 0 */
};

/** `size` of struct ndx_sender_attr in version 0.1; the smallest that is accepted. */
#define NDX_SENDER_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_sender_attr, reserved)

/** As ndx_sender_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_sender_attr_init_sized(struct ndx_sender_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_sender_attr_init(struct ndx_sender_attr *attr)
{
	ndx_sender_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a sender.
 *
 * @param[out] out  untouched on failure; release it with ndx_sender_close()
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or a number out of range; ndx_last_error() says
 *                                 which
 * @retval NDX_E_NOT_SUPPORTED     mode WRITE without NDX_CAP_WRITE_IMMEDIATE
 * @return otherwise as ndx_receiver_create()
 */
enum ndx_status ndx_sender_create(const struct ndx_sender_attr *attr, struct ndx_sender **out);

/**
 * Connect to a listener. As ndx_receiver_connect(), also in a callback: NDX_E_WOULD_BLOCK. Not for
 * a sender with a receiver: there the receiver connects.
 */
enum ndx_status ndx_sender_connect(struct ndx_sender *sender, const struct sockaddr *destination,
                                   socklen_t destination_len, const void *private_data,
                                   size_t private_data_len, uint32_t timeout_ms);

/** Take the next request of a listener of the same adapter. As ndx_receiver_accept(). */
enum ndx_status ndx_sender_accept(struct ndx_sender *sender, struct ndx_listener *listener,
                                  const void *private_data, size_t private_data_len,
                                  uint32_t timeout_ms);

/**
 * Describe this end for a peer that gets the description out of band. As ndx_receiver_describe().
 */
enum ndx_status ndx_sender_describe(struct ndx_sender *sender, enum ndx_role role,
                                    struct ndx_peer_description *out);

/** Set the out-of-band stream. As ndx_receiver_set_oob_stream(). */
enum ndx_status ndx_sender_set_oob_stream(struct ndx_sender *sender, int fd);

/** Connect to the peer that sent this description. As ndx_receiver_connect_peer(). */
enum ndx_status ndx_sender_connect_peer(struct ndx_sender *sender,
                                        const struct ndx_peer_description *peer,
                                        uint32_t timeout_ms);

/**
 * Start to send on a connected queue pair. As ndx_receiver_start(), without a prepare call before
 * it.
 */
enum ndx_status ndx_sender_start(struct ndx_sender *sender, struct ndx_connector *connector);

/** The queue pair on which the sender sends. */
struct ndx_qp *ndx_sender_get_qp(struct ndx_sender *sender);

/** The sender's adapter. */
struct ndx_adapter *ndx_sender_get_adapter(struct ndx_sender *sender);

/** The connector of a sender without a receiver, once connected; else NULL. */
struct ndx_connector *ndx_sender_get_connector(struct ndx_sender *sender);

/**
 * Switch to mode WRITE, with the slab of the peer as the peer described it. Call it before the
 * first frame. From then on the sequence runs to the largest multiple of @p slot_count.
 *
 * @retval NDX_E_INVALID_PARAMETER    NULL argument, 0 slots, or the slab is smaller than its slots
 * @retval NDX_E_INVALID_DEVICE_STATE frames were sent already
 * @retval NDX_E_NOT_SUPPORTED        the adapter lacks NDX_CAP_WRITE_IMMEDIATE
 */
enum ndx_status ndx_sender_set_memory(struct ndx_sender *sender,
                                      const struct ndx_memory_description *memory,
                                      uint32_t slot_size, uint32_t slot_count);

/**
 * Get the buffer of the next frame, of slot_size bytes. Waits until a slot is free and until the
 * rate allows another frame. Returns the same buffer until ndx_sender_post().
 *
 * @param[out] buffer  untouched unless NDX_OK
 * @retval NDX_PENDING                the time is over
 * @retval NDX_E_INVALID_DEVICE_STATE not connected
 * @retval NDX_E_WOULD_BLOCK          called in a callback, and no slot is free
 * @return otherwise the failure of an earlier frame: the connection has ended
 *
 * Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_sender_acquire(struct ndx_sender *sender, uint32_t timeout_ms, void **buffer);

/**
 * Send the buffer that ndx_sender_acquire() returned.
 *
 * @param length   1 .. slot_size
 * @param channel  0 .. 255
 * @retval NDX_E_INVALID_PARAMETER    length or channel out of range
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_sender_acquire() was not called
 * @return otherwise as ndx_qp_send(); after a failure ndx_sender_acquire() returns the same buffer
 *         again
 */
enum ndx_status ndx_sender_post(struct ndx_sender *sender, uint32_t length, uint32_t channel);

/**
 * Acquire, copy and post.
 *
 * @return otherwise as ndx_sender_acquire() and ndx_sender_post()
 */
enum ndx_status ndx_sender_send(struct ndx_sender *sender, const void *data, uint32_t length,
                                uint32_t channel, uint32_t timeout_ms);

/**
 * Wait until the peer has received every frame.
 *
 * @retval NDX_PENDING the time is over
 * @return otherwise as ndx_sender_acquire()
 */
enum ndx_status ndx_sender_flush(struct ndx_sender *sender, uint32_t timeout_ms);

/** Counters of a sender. */
struct ndx_sender_stats {
	size_t size;     /**< the caller sets sizeof(struct ndx_sender_stats) */
	uint64_t frames; /**< frames that the peer has received */
	uint64_t bytes;  /**< bytes of these frames */
	uint64_t waits;  /**< how often all slots were in flight */
	uint32_t under_way;
	uint32_t most_under_way;
	enum ndx_status failed; /**< status of the first frame that failed; NDX_OK: none */
};

/** `size` of struct ndx_sender_stats in version 0.1; the smallest that is accepted. */
#define NDX_SENDER_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_sender_stats, failed)

/**
 * Read the counters.
 *
 * @param[in,out] stats  the caller sets `size`
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 */
enum ndx_status ndx_sender_get_stats(struct ndx_sender *sender, struct ndx_sender_stats *stats);

/**
 * Create a new queue pair after the connection has ended, as ndx_receiver_reset(). Not for a sender
 * with a receiver. In a callback of an adapter NDX_E_WOULD_BLOCK.
 */
enum ndx_status ndx_sender_reset(struct ndx_sender *sender);

/**
 * Release a sender. NULL is a no-op.
 *
 * A connection of its own is disconnected. On the connection of a receiver, frames in flight have
 * `close_timeout_ms` to end. Frames that remain are given up; because their memory goes with the
 * sender, this ends the connection.
 *
 * Thread safety: once. Blocks: up to `close_timeout_ms` of struct ndx_sender_attr. In a callback of
 * an adapter it does not wait: frames in flight are given up.
 */
void ndx_sender_close(struct ndx_sender *sender);

NDX_DECLS_END

#endif
