/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Receivers: frames from a peer, without a copy, on any provider.
 *
 * A receiver owns a slab of slots (one registered region), a completion queue and a queue pair.
 * Consumers get frames (ndx/frame.h) by callback, or pull them. Life cycle:
 *
 *     ndx_receiver_create()             created      everything is allocated, no thread runs
 *     ndx_receiver_connect(), accept()  connecting   all slots are posted, then the queue pair
 *     or one of the other ways below    running      connects, then the receiving thread starts
 *     (the peer disconnects or dies)    ended        or failed: state, cause and a callback
 *     ndx_receiver_reset()              created      new queue pair, same slab; frames stay valid
 *     ndx_receiver_stop()               stopped      disconnected, joined, memory deregistered
 *     ndx_receiver_close()
 *
 * A call in the wrong state fails with NDX_E_INVALID_DEVICE_STATE; ndx_last_error() names the
 * missing call.
 *
 * Ways to connect, all with the same outcome:
 *   - ndx_receiver_connect() and ndx_receiver_accept(): by the provider's connection manager;
 *   - ndx_receiver_describe(), then ndx_receiver_connect_peer(): descriptions are exchanged by
 *     hand;
 *   - ndx_receiver_get_numbers(), then ndx_receiver_complete_connection(): the same with the
 *     numbers of a device that does not run NDX (queue pair number, PSNs, GID);
 *   - ndx_receiver_prepare(), then any way to connect ndx_receiver_get_qp() (for example a
 *     negotiated session), then ndx_receiver_start().
 *
 * These calls are in libndx-stream (pkg-config ndx-stream).
 */
#ifndef NDX_RECEIVER_H
#define NDX_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/decls.h>
#include <ndx/frame.h>
#include <ndx/listener.h>
#include <ndx/mr.h>
#include <ndx/qp.h>
#include <ndx/stats.h>
#include <ndx/status.h>

NDX_DECLS_BEGIN

struct ndx_receiver;     /* opaque */
struct ndx_receive_loop; /* opaque */

/** State of a receiver. */
enum ndx_receiver_state {
	NDX_RECEIVER_CREATED = 0,
	NDX_RECEIVER_CONNECTING = 1,
	NDX_RECEIVER_RUNNING = 2,
	/** The peer disconnected; everything that it had sent was delivered. */
	NDX_RECEIVER_ENDED = 3,
	NDX_RECEIVER_FAILED = 4,   /**< see ndx_receiver_get_cause() */
	NDX_RECEIVER_STOPPING = 5, /**< ndx_receiver_stop() is in progress */
	NDX_RECEIVER_STOPPED = 6,
};

/** Name of a state, for example "running". Never NULL. Any thread. */
const char *ndx_receiver_state_name(enum ndx_receiver_state state);

/** Why a receiver no longer runs. */
enum ndx_receiver_end {
	NDX_RECEIVER_END_NONE = 0,    /**< the receiver runs, or never ran */
	NDX_RECEIVER_END_GOODBYE = 1, /**< the peer disconnected */
	/** The connection broke: the peer died, or the network failed. */
	NDX_RECEIVER_END_LOST = 2,
	/** A receive failed: a message longer than a slot, or a failure of the device. */
	NDX_RECEIVER_END_REQUEST = 3,
	NDX_RECEIVER_END_IDLE = 4,    /**< no frame for idle_timeout_ms */
	NDX_RECEIVER_END_PROBE = 5,   /**< the peer did not answer the liveness probe */
	NDX_RECEIVER_END_STOPPED = 6, /**< ndx_receiver_stop() was called */
	NDX_RECEIVER_END_UNKNOWN = 7, /**< the stack cannot tell a goodbye from a crash */
};

/** Name of a cause, for example "goodbye". Never NULL. Any thread. */
const char *ndx_receiver_end_name(enum ndx_receiver_end end);

/** Details of the cause. */
struct ndx_receiver_cause {
	enum ndx_receiver_end end;
	/** Status of the request or of the connection; NDX_OK after a goodbye. */
	enum ndx_status status;
	int32_t native; /**< provider's code, 0 if none */
	char text[192]; /**< readable; "" while the receiver runs */
};

/** How the peer sends frames. */
enum ndx_receiver_mode {
	/**
	 * With sends, with or without immediate data. Each send fills the slot that was posted
	 * first. The peer has no access rights to the slab.
	 */
	NDX_RECEIVER_SEND = 0,
	/**
	 * With writes with immediate data into the slab. The peer gets the slab's address and
	 * token. Frame n of a connection belongs into slot n modulo slot_count. The peer can write
	 * to any slot at any time, even to a slot that a consumer is reading: only the peer's
	 * discipline keeps a frame intact, and a plain write leaves no trace. Of a frame that is
	 * longer than the path MTU, only the last packet waits for a posted slot. So this mode is
	 * only for peers that are trusted to keep to their ring, and for consumers that release
	 * frames in order. Needs NDX_CAP_WRITE_IMMEDIATE.
	 */
	NDX_RECEIVER_WRITE = 1,
};

/** All channels. */
#define NDX_CHANNEL_ANY (-1)

/** Number of consumers in struct ndx_receiver_attr. */
#define NDX_RECEIVER_CONSUMERS 8

/**
 * Takes a frame. The receiving thread calls it for each frame, one at a time. The frame is valid
 * until the function returns; ndx_frame_retain() keeps it longer. The function returns whether it
 * succeeded; a failure is counted, and reception goes on. While it runs, all receivers of the loop
 * wait.
 */
typedef bool ndx_frame_fn(void *context, const struct ndx_frame *frame);

/** One consumer. Consumers get frames in the order of the list. */
struct ndx_frame_consumer {
	ndx_frame_fn *fn; /**< NULL ends the list */
	void *context;
	/** 0 .. 255, or NDX_CHANNEL_ANY. Frames without immediate data have channel 0. */
	int channel;
};

/**
 * Called by the receiving thread when a receiver has become ENDED, FAILED or STOPPED. STOPPED is
 * reported only if the receiving thread itself called ndx_receiver_stop(), and after
 * ndx_receiver_close() in a callback of an adapter. The function may make any call that does not
 * block.
 */
typedef void ndx_receiver_fn(void *context, struct ndx_receiver *receiver,
                             enum ndx_receiver_state state);

/** Attributes of a receiver. Call ndx_receiver_attr_init() first, then change members. */
struct ndx_receiver_attr {
	size_t size; /**< set by ndx_receiver_attr_init() */
	/** NULL: the receiver opens `uri`, and closes that adapter with itself. */
	struct ndx_adapter *adapter;
	/** As for ndx_adapter_open(); ignored with an adapter. */
	const char *uri;
	enum ndx_receiver_mode mode; /**< default SEND */
	/** Longest frame in bytes, at least 1. Default 9000. */
	uint32_t slot_size;
	/** At least 1; slot_size * slot_count must be below 4 GiB. Default 256. */
	uint32_t slot_count;
	/**
	 * When fewer slots than this are posted, frames are copied out of their slots, so that slow
	 * consumers do not stop the peer. 0 (default): never.
	 */
	uint32_t copy_below;
	uint32_t copy_count; /**< room for this many copies. Default 0 */
	/** Sequence numbers are 0 .. sequence_wrap - 1. Default 2^24. */
	uint32_t sequence_wrap;
	bool need_immediate; /**< frames without immediate data are counted and dropped */
	/** Frames are queued for ndx_receiver_pull(), after the consumers have had them. */
	bool pull;
	/** Queue depth for a sender on the same connection. Default 16. */
	uint32_t send_depth;
	/** Of the queue pair, for its sends (struct ndx_qp_attr). Default 4000. */
	uint32_t no_receive_timeout_ms;
	/** Of the queue pair (struct ndx_qp_attr). Default 5000; 0: the peer is never probed. */
	uint32_t keepalive_ms;
	/** FAILED when no frame came for this long. 0 (default): never. */
	uint32_t idle_timeout_ms;
	/**
	 * Probe the peer's device after this long without a frame, with a write. An NDX peer has
	 * memory for it; a device that was told numbers is probed only if it granted a byte
	 * (probe_rkey of struct ndx_receiver_peer). 0 (default): never.
	 */
	uint32_t probe_ms;
	/** As in struct ndx_qp_attr. Default NDX_RNR_TIMER_DEFAULT. */
	uint32_t rnr_timer;
	/**
	 * FAILED if a probe is not answered for this long. With a sender on the connection, the
	 * time-out of the stack decides instead. Default 2000.
	 */
	uint32_t probe_timeout_ms;
	/** NULL: the receiver has a thread of its own, "ndx-recv". */
	struct ndx_receive_loop *loop;
	/** Own thread: how long it polls before it sleeps. Default 50. */
	uint32_t spin_us;
	/** Own thread: results taken at once, 1 .. 64. Default 16. */
	uint32_t batch;
	struct ndx_frame_consumer consumers[NDX_RECEIVER_CONSUMERS];
	ndx_receiver_fn *on_end; /**< may be NULL */
	void *context;           /**< passed to on_end */
};

/** `size` of struct ndx_receiver_attr in version 0.1; the smallest that is accepted. */
#define NDX_RECEIVER_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_receiver_attr, context)

/** As ndx_receiver_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_receiver_attr_init_sized(struct ndx_receiver_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_receiver_attr_init(struct ndx_receiver_attr *attr)
{
	ndx_receiver_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a receiver: open the adapter if needed, allocate and register the slab, create the queue
 * pair. No slot is posted and no thread runs.
 *
 * @param[out] out  untouched on failure, when everything is undone; release it with
 *                  ndx_receiver_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or a number out of range; ndx_last_error() says
 *                                 which
 * @retval NDX_E_NOT_SUPPORTED     mode WRITE without NDX_CAP_WRITE_IMMEDIATE
 * @retval NDX_E_NO_MEMORY         no memory for the slab
 * @retval NDX_E_WOULD_BLOCK       called in a callback of an adapter
 * @return otherwise as ndx_adapter_open(), ndx_mr_register(), ndx_cq_create(), ndx_qp_create()
 *
 * Thread safety: any thread. Blocks: no longer than pinning takes; not in a callback.
 */
enum ndx_status ndx_receiver_create(const struct ndx_receiver_attr *attr,
                                    struct ndx_receiver **out);

/**
 * Connect to a listener, and run. After a failure the receiver is CREATED again.
 *
 * @param timeout_ms  limit for all steps together
 * @retval NDX_E_INVALID_DEVICE_STATE not CREATED
 * @retval NDX_E_WOULD_BLOCK          called in a callback of an adapter; nothing has changed
 * @return otherwise as ndx_connect_to()
 *
 * Thread safety: any thread, one at a time. Blocks: yes.
 */
enum ndx_status ndx_receiver_connect(struct ndx_receiver *receiver,
                                     const struct sockaddr *destination, socklen_t destination_len,
                                     const void *private_data, size_t private_data_len,
                                     uint32_t timeout_ms);

/** Take the next request of a listener of the same adapter, and run. As ndx_receiver_connect(). */
enum ndx_status ndx_receiver_accept(struct ndx_receiver *receiver, struct ndx_listener *listener,
                                    const void *private_data, size_t private_data_len,
                                    uint32_t timeout_ms);

/**
 * Describe this end for a peer that gets the description out of band. As ndx_connector_describe();
 * in mode WRITE, `memory` describes the slab. The call posts all slots, and the receiver becomes
 * CONNECTING.
 *
 * Thread safety: any thread, one at a time. Blocks: for some milliseconds at most.
 */
enum ndx_status ndx_receiver_describe(struct ndx_receiver *receiver, enum ndx_role role,
                                      struct ndx_peer_description *out);

/**
 * Set the out-of-band stream, between describe and connect_peer, where the provider has no
 * connection manager. As ndx_connector_set_oob_stream(). ndx_receiver_complete_connection() needs
 * no stream.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_describe() was not called
 */
enum ndx_status ndx_receiver_set_oob_stream(struct ndx_receiver *receiver, int fd);

/**
 * Connect to the peer that sent this description, and run. After a failure the receiver is CREATED
 * again, and must describe itself again.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_describe() was not called
 * @retval NDX_E_WOULD_BLOCK          called in a callback of an adapter; nothing has changed
 * @return otherwise as ndx_connector_connect_peer()
 *
 * Thread safety: any thread, one at a time. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_receiver_connect_peer(struct ndx_receiver *receiver,
                                          const struct ndx_peer_description *peer,
                                          uint32_t timeout_ms);

/** The numbers of this end, for a device that does not run NDX. */
struct ndx_receiver_numbers {
	uint32_t qpn;         /**< 24 bits */
	uint32_t send_psn;    /**< PSN of the first packet that this end sends; the peer's RQ PSN */
	uint32_t receive_psn; /**< PSN that this end expects first; the peer's SQ PSN */
	uint32_t mtu;         /**< the port's active MTU in bytes */
	uint16_t lid;         /**< 0 on Ethernet */
	uint8_t gid[16];
	char gid_text[40];     /**< eight groups of four hex digits */
	uint64_t address;      /**< address of the slab */
	uint32_t length;       /**< length of the slab in bytes */
	uint32_t remote_token; /**< of the slab, mode WRITE only; opaque, for an NDX peer */
	uint32_t rkey;         /**< of the slab, for any other device: the number on the wire */
};

/**
 * The numbers of this end, for ndx_receiver_complete_connection(). The first call describes the end
 * in the role of a server, and draws receive_psn at random. Only for descriptions of kind
 * NDX_DESCRIPTION_VERBS_RC.
 *
 * @retval NDX_E_NOT_SUPPORTED the provider has no such numbers
 * @return otherwise as ndx_receiver_describe()
 */
enum ndx_status ndx_receiver_get_numbers(struct ndx_receiver *receiver,
                                         struct ndx_receiver_numbers *out);

/** The peer's numbers. */
struct ndx_receiver_peer {
	uint8_t gid[16];
	uint16_t lid;    /**< 0 on Ethernet */
	uint32_t qpn;    /**< 24 bits */
	uint32_t rq_psn; /**< PSN that the peer expects first: the send_psn that it was told */
	uint32_t sq_psn; /**< PSN that the peer sends first: the receive_psn that it was told */
	/**
	 * Address of one byte of the peer's memory that the probe may overwrite (probe_ms).
	 * probe_rkey 0: the peer granted none, and is not probed.
	 */
	uint64_t probe_address;
	uint32_t probe_rkey;
	uint32_t mtu; /**< in bytes, 256, 512, ... 4096; 0: the port's active MTU */
};

/**
 * Connect to a peer whose numbers are known: post all slots, move the queue pair to RTR and RTS,
 * start the thread. The numbers are checked before anything changes.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_get_numbers() was not called
 * @retval NDX_E_WOULD_BLOCK          called in a callback of an adapter; nothing has changed
 * @retval NDX_E_INVALID_PARAMETER    a number is out of range, there is no GID, the path MTU is
 *                                    above the port's, or a PSN is not the one that the peer was
 *                                    told; ndx_last_error() says which
 * @return otherwise as ndx_receiver_connect_peer()
 */
enum ndx_status ndx_receiver_complete_connection(struct ndx_receiver *receiver,
                                                 const struct ndx_receiver_peer *peer,
                                                 uint32_t timeout_ms);

/**
 * Post all slots, so that the program can connect the queue pair by any means. The receiver becomes
 * CONNECTING.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE the receiver is not in state CREATED
 */
enum ndx_status ndx_receiver_prepare(struct ndx_receiver *receiver);

/**
 * Run on the connection that the program made with the queue pair after ndx_receiver_prepare().
 *
 * @param connector  connected; on success the receiver owns it
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_prepare() was not called
 */
enum ndx_status ndx_receiver_start(struct ndx_receiver *receiver, struct ndx_connector *connector);

/** The queue pair; valid until the next reset or stop. */
struct ndx_qp *ndx_receiver_get_qp(struct ndx_receiver *receiver);

/**
 * The slab as a peer may access it, for mode WRITE; in mode SEND the token is 0. Valid until stop.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 */
enum ndx_status ndx_receiver_get_memory(struct ndx_receiver *receiver,
                                        struct ndx_memory_description *out);

/** The receiver's adapter. */
struct ndx_adapter *ndx_receiver_get_adapter(struct ndx_receiver *receiver);

/** State of the receiver. Any thread. */
enum ndx_receiver_state ndx_receiver_get_state(const struct ndx_receiver *receiver);

/** Why the receiver does not run. Any thread. */
void ndx_receiver_get_cause(struct ndx_receiver *receiver, struct ndx_receiver_cause *out);

/**
 * Take frames from the queue; release each of them. Needs `pull`.
 *
 * @param[out] frames  room for @p count frames
 * @param[out] got     number of frames taken; 0 unless NDX_OK
 *
 * @retval NDX_PENDING                the time is over and no frame came
 * @retval NDX_E_CANCELED             no frame is left, and the receiver does not run
 * @retval NDX_E_WOULD_BLOCK          called in a callback of an adapter, and no frame is there
 * @retval NDX_E_INVALID_DEVICE_STATE created without `pull`
 *
 * Thread safety: any thread, several at once. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_receiver_pull(struct ndx_receiver *receiver, const struct ndx_frame **frames,
                                  size_t count, uint32_t timeout_ms, size_t *got);

/**
 * Descriptor for poll, epoll and select: readable while ndx_receiver_pull() would not wait. The
 * receiver closes it when it is closed. -1 without `pull`.
 */
int ndx_receiver_get_fd(struct ndx_receiver *receiver);

/**
 * After ENDED or FAILED: create a new queue pair on the same slab. Frames that consumers hold stay
 * valid, and their slots become available as they are released. Sequence numbers start again;
 * counters continue.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE neither ENDED nor FAILED
 * @retval NDX_E_WOULD_BLOCK          called in a callback of an adapter; nothing has changed
 * @return otherwise as ndx_qp_create(); on failure the receiver is unchanged
 *
 * Thread safety: any thread, one at a time. Blocks: as ndx_qp_close().
 */
enum ndx_status ndx_receiver_reset(struct ndx_receiver *receiver);

/**
 * Disconnect, take back posted receives, end the thread, and deregister. Frames that consumers hold
 * stay valid. May be called twice, and by several threads: each call returns when the stop is done.
 *
 * @retval NDX_OK            stopped
 * @retval NDX_E_DEVICE_BUSY a call that connects the receiver is in progress: let it time out, or
 *                           cancel its listener; nothing has changed
 * @retval NDX_PENDING       called by the receiving thread: the thread ends when the callback has
 *                           returned
 * @retval NDX_E_WOULD_BLOCK called in a callback of an adapter; nothing has changed
 *
 * Thread safety: any thread. Blocks: as ndx_connector_disconnect(), up to its time-outs.
 */
enum ndx_status ndx_receiver_stop(struct ndx_receiver *receiver);

/**
 * Stop, and release. Frames that consumers hold stay valid. NULL is a no-op. Not beside another
 * call on the same receiver.
 *
 * Blocks: as ndx_receiver_stop(). In a callback of an adapter it does not wait: if the receiver
 * runs, the receiving thread completes the stop, and then calls `on_end` with STOPPED.
 */
void ndx_receiver_close(struct ndx_receiver *receiver);

/** Counters of a receiver; a reset does not clear them. */
struct ndx_receiver_stats {
	size_t size;      /**< the caller sets sizeof(struct ndx_receiver_stats) */
	uint64_t time_ns; /**< when the counters were read */
	uint64_t frames;  /**< frames delivered */
	uint64_t bytes;   /**< bytes of these frames */
	uint64_t copied;  /**< of `frames`: copied out of their slots */
	/** Frames to be copied out for which there was no room. */
	uint64_t copies_missed;
	uint64_t empty; /**< frames of length 0: dropped */
	/** Frames without immediate data; dropped with need_immediate. */
	uint64_t no_immediate;
	uint64_t lost;     /**< frames missing in the sequence */
	uint64_t repeated; /**< frames with a sequence number that came before, or late */
	/** Mode WRITE: frames dropped because their slot was still held. */
	uint64_t overwritten;
	/**
	 * Messages that do not fit the mode, dropped: in mode WRITE anything but a write with
	 * immediate data, in mode SEND a write.
	 */
	uint64_t misplaced;
	uint64_t oversize;        /**< receives that failed because the frame was too long */
	uint64_t repost_failed;   /**< posts that failed and were repeated */
	uint64_t connections;     /**< how often the receiver started to run */
	uint64_t out_of_slots;    /**< how often no slot was posted */
	uint64_t out_of_slots_ns; /**< total time without a posted slot, up to now */
	uint64_t sleeps;          /**< how often the thread went to sleep */
	uint64_t wakeups;         /**< how often it was woken for this receiver */
	uint64_t consumer_errors[NDX_RECEIVER_CONSUMERS];
	uint64_t errors[NDX_STATS_STATUSES]; /**< failed receives by status, at [-status] */
	uint32_t slots;                      /**< slot_count */
	uint32_t posted;                     /**< slots that the peer can fill at present */
	uint32_t held;                       /**< slots that consumers hold */
	uint32_t low_water;                  /**< lowest number of posted slots while running */
	uint32_t queued;                     /**< frames in the queue of ndx_receiver_pull() */
	uint64_t sizes[NDX_STATS_BUCKETS];   /**< frames by length; [n]: 2^n bytes and more, below
	                                        2^(n+1) */
	/**
	 * Time between frames. [0]: below 2 us; [n]: 2^n us and more. Frames of one batch count as
	 * 0.
	 */
	uint64_t gaps[NDX_STATS_BUCKETS];
};

/** `size` of struct ndx_receiver_stats in version 0.1; the smallest that is accepted. */
#define NDX_RECEIVER_STATS_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_receiver_stats, gaps)

/**
 * Read the counters.
 *
 * @param[in,out] stats  the caller sets `size`
 * @retval NDX_E_INVALID_PARAMETER NULL argument, or `size` is smaller than in any released version
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_receiver_get_stats(struct ndx_receiver *receiver,
                                       struct ndx_receiver_stats *stats);

/**
 * State, cause and counters as one JSON text; docs/receiver.md describes the members.
 *
 * @param[out] json  ends with a newline and a null byte; release it with free(); untouched on
 *                   failure
 * @retval NDX_E_NO_MEMORY out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_receiver_snapshot(struct ndx_receiver *receiver, char **json);

/** Attributes of a receive loop. Call ndx_receive_loop_attr_init() first. */
struct ndx_receive_loop_attr {
	size_t size; /**< set by ndx_receive_loop_attr_init() */
	/** How long the thread polls before it sleeps; 0: not at all. Default 50. */
	uint32_t spin_us;
	/** Results taken at once from each receiver, 1 .. 64. Default 16. */
	uint32_t batch;
};

/** `size` of struct ndx_receive_loop_attr in version 0.1; the smallest that is accepted. */
#define NDX_RECEIVE_LOOP_ATTR_SIZE_0_1 NDX_SIZE_UP_TO(struct ndx_receive_loop_attr, batch)

/** As ndx_receive_loop_attr_init(), of a structure of @p size bytes; for other languages. */
void ndx_receive_loop_attr_init_sized(struct ndx_receive_loop_attr *attr, size_t size);

/** Set `size` and the defaults. NULL is a no-op. */
static inline void ndx_receive_loop_attr_init(struct ndx_receive_loop_attr *attr)
{
	ndx_receive_loop_attr_init_sized(attr, sizeof(*attr));
}

/**
 * Create a receive loop: one thread, "ndx-recv", for many receivers. The receivers may belong to
 * different adapters.
 *
 * @param attr      NULL: defaults
 * @param[out] out  untouched on failure; release it with ndx_receive_loop_close()
 * @retval NDX_E_INVALID_PARAMETER      NULL argument, or batch out of range
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread or descriptor left
 */
enum ndx_status ndx_receive_loop_create(const struct ndx_receive_loop_attr *attr,
                                        struct ndx_receive_loop **out);

/**
 * Release the handle of a receive loop. The thread ends with the last receiver that runs on the
 * loop. NULL is a no-op. Any thread.
 */
void ndx_receive_loop_close(struct ndx_receive_loop *loop);

NDX_DECLS_END

#endif
