/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Senders: the other end of a receiver, and a stand-in for a device that streams frames.
 *
 * A sender owns a ring of slots. A slot keeps its bytes until the peer has them (a retry of the
 * device reads the same bytes), so no more than `window` frames are under way. Each frame carries
 * `sequence << 8 | channel` as immediate data where the provider has them. It has no thread: its
 * calls do the work, and one thread at a time may be in them.
 *
 * It stands alone, with a queue pair of its own; or it sends over the connection of a receiver
 * (`receiver` of struct ndx_sender_attr), so that data flow both ways over one connection.
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

/** What a sender does wrong on purpose, to see what the receiver makes of it. */
enum ndx_sender_fault {
	NDX_SENDER_FAULT_NONE = 0,
	NDX_SENDER_FAULT_DROP = 1,         /**< does not send the frame; its number is used up */
	NDX_SENDER_FAULT_REPEAT = 2,       /**< sends it with the number of the one before */
	NDX_SENDER_FAULT_NO_IMMEDIATE = 3, /**< sends it without immediate data */
	NDX_SENDER_FAULT_EMPTY = 4,        /**< sends no bytes */
	NDX_SENDER_FAULT_OVERSIZE = 5,     /**< sends 1 byte more than the peer's slot has: fatal */
};

/** Attributes; ndx_sender_attr_init() first, then what differs. */
struct ndx_sender_attr {
	size_t size;                    /**< set by ndx_sender_attr_init() */
	struct ndx_receiver *receiver;  /**< send over its connection; NULL: an own queue pair */
	struct ndx_adapter *adapter;    /**< or NULL: opens `uri`; ignored with a receiver */
	const char *uri;                /**< as ndx_adapter_open() */
	enum ndx_receiver_mode mode;    /**< how the peer wants its frames. Default SEND */
	uint32_t slot_size;             /**< longest frame in bytes. Default 4096 */
	uint32_t slot_count;            /**< default 16 */
	uint32_t window;                /**< frames under way, at most slot_count. Default 0: all */
	uint32_t rate;                  /**< frames per second at most. Default 0: no limit */
	uint32_t sequence_wrap;         /**< the sequence runs 0 .. sequence_wrap - 1; 2^24 */
	uint64_t peer_address;          /**< mode WRITE: the peer's slab */
	uint32_t peer_token;            /**< mode WRITE */
	uint32_t peer_slot_size;        /**< mode WRITE, and fault OVERSIZE. Default slot_size */
	uint32_t peer_slot_count;       /**< mode WRITE. Default 256 */
	enum ndx_sender_fault fault;    /**< default NONE */
	uint32_t fault_every;           /**< every so many frames; 0: the first one only */
	uint32_t no_receive_timeout_ms; /**< as of struct ndx_qp_attr. Default 4000 */
	uint32_t keepalive_ms;          /**< as of struct ndx_qp_attr. Default 5000 */
	uint32_t spin_us;          /**< how long waiting calls poll before they sleep. Default 50 */
	uint32_t close_timeout_ms; /**< how long _close() and _reset() wait. Default 8000 */
};

/** Set `size` and the defaults. */
void ndx_sender_attr_init(struct ndx_sender_attr *attr);

/**
 * Create a sender.
 *
 * @param[out] out  untouched on failure; release with ndx_sender_close()
 * @retval NDX_E_INVALID_PARAMETER NULL, or a number out of range; ndx_last_error() says which
 * @retval NDX_E_NOT_SUPPORTED     mode WRITE without NDX_CAP_WRITE_IMMEDIATE
 * @return otherwise as ndx_receiver_create()
 */
enum ndx_status ndx_sender_create(const struct ndx_sender_attr *attr, struct ndx_sender **out);

/** Connect, as ndx_receiver_connect(), also in a callback. Not with a receiver: that connects. */
enum ndx_status ndx_sender_connect(struct ndx_sender *sender, const struct sockaddr *destination,
                                   socklen_t destination_len, const void *private_data,
                                   size_t private_data_len, uint32_t timeout_ms);

/** As ndx_receiver_accept(). */
enum ndx_status ndx_sender_accept(struct ndx_sender *sender, struct ndx_listener *listener,
                                  const void *private_data, size_t private_data_len,
                                  uint32_t timeout_ms);

/** As ndx_receiver_describe(). */
enum ndx_status ndx_sender_describe(struct ndx_sender *sender, enum ndx_role role,
                                    struct ndx_peer_description *out);

/** As ndx_receiver_set_channel(). */
enum ndx_status ndx_sender_set_channel(struct ndx_sender *sender, int fd);

/** As ndx_receiver_connect_peer(). */
enum ndx_status ndx_sender_connect_peer(struct ndx_sender *sender,
                                        const struct ndx_peer_description *peer,
                                        uint32_t timeout_ms);

/** As ndx_receiver_start(); nothing needs to be prepared. */
enum ndx_status ndx_sender_start(struct ndx_sender *sender, struct ndx_connector *connector);

/** The queue pair that it sends on. */
struct ndx_qp *ndx_sender_get_qp(struct ndx_sender *sender);

/** The adapter. */
struct ndx_adapter *ndx_sender_get_adapter(struct ndx_sender *sender);

/** The connector of a sender that stands alone, once connected; NULL otherwise. */
struct ndx_connector *ndx_sender_get_connector(struct ndx_sender *sender);

/**
 * The peer wants its frames written into this slab (mode WRITE), which was told on the way; before
 * the first frame. The sequence runs to the largest multiple of @p slot_count from now on.
 *
 * @retval NDX_E_INVALID_PARAMETER    NULL, 0 slots, or the slab is smaller than they are
 * @retval NDX_E_INVALID_DEVICE_STATE frames were sent already
 * @retval NDX_E_NOT_SUPPORTED        no NDX_CAP_WRITE_IMMEDIATE
 */
enum ndx_status ndx_sender_set_memory(struct ndx_sender *sender,
                                      const struct ndx_memory_description *memory,
                                      uint32_t slot_size, uint32_t slot_count);

/**
 * The buffer of the next frame, slot_size bytes; waits until one is free and until the rate allows
 * it. The same again until ndx_sender_post().
 *
 * @param[out] buffer  untouched unless NDX_OK
 * @retval NDX_PENDING                time is over
 * @retval NDX_E_INVALID_DEVICE_STATE not connected
 * @retval NDX_E_WOULD_BLOCK          in a callback, and none is free
 * @return otherwise why an earlier frame failed: the connection is over
 *
 * Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_sender_acquire(struct ndx_sender *sender, uint32_t timeout_ms, void **buffer);

/**
 * Send the buffer that ndx_sender_acquire() gave.
 *
 * @param length   1 .. slot_size
 * @param channel  0 .. 255
 * @retval NDX_E_INVALID_PARAMETER    length or channel out of range
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_sender_acquire() is missing
 * @return otherwise as ndx_qp_send(); the buffer is still the next one's
 */
enum ndx_status ndx_sender_post(struct ndx_sender *sender, uint32_t length, uint32_t channel);

/** Acquire, copy and post. */
enum ndx_status ndx_sender_send(struct ndx_sender *sender, const void *data, uint32_t length,
                                uint32_t channel, uint32_t timeout_ms);

/**
 * Wait until the peer has every frame.
 *
 * @retval NDX_PENDING time is over
 * @return otherwise as ndx_sender_acquire()
 */
enum ndx_status ndx_sender_flush(struct ndx_sender *sender, uint32_t timeout_ms);

/** Counters of a sender. */
struct ndx_sender_stats {
	size_t size;     /**< sizeof(struct ndx_sender_stats), set by the caller */
	uint64_t frames; /**< that the peer has */
	uint64_t bytes;  /**< of those */
	uint64_t faults; /**< made on purpose */
	uint64_t waits;  /**< how often all slots were under way */
	uint32_t under_way;
	uint32_t most_under_way;
	enum ndx_status failed; /**< of the first frame that failed; NDX_OK: none */
};

/** Read the counters. NDX_E_INVALID_PARAMETER: NULL, or `size` is too small. */
enum ndx_status ndx_sender_get_stats(struct ndx_sender *sender, struct ndx_sender_stats *stats);

/** After the connection ended: a new queue pair, as ndx_receiver_reset(). Not with a receiver. In a
 * callback of an adapter NDX_E_WOULD_BLOCK. */
enum ndx_status ndx_sender_reset(struct ndx_sender *sender);

/**
 * Release. NULL is a no-op.
 *
 * Its own connection is disconnected. On a receiver's, what is under way has `close_timeout_ms` to
 * end. The rest is given up, and as its memory goes with the sender, that ends the connection.
 *
 * Thread safety: once. Blocks: up to `close_timeout_ms` of struct ndx_sender_attr. In a callback of
 * an adapter it does not wait: frames that are under way are given up.
 */
void ndx_sender_close(struct ndx_sender *sender);

NDX_DECLS_END

#endif
