/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Receivers: frames from a peer, without a copy, on any provider.
 *
 * A receiver owns a slab of slots (one registered region), a completion queue and a queue pair.
 * Frames (ndx/frame.h) are handed to consumers by callback, or pulled. Its life:
 *
 *     ndx_receiver_create()             created      everything is allocated, no thread runs
 *     ndx_receiver_connect(), accept()  connecting   all slots are posted, then the queue pair
 *     or one of the other ways below    running      connects, then the receiving thread starts
 *     (the peer goes, or dies)          ended        or failed: state, cause and a callback
 *     ndx_receiver_reset()              created      new queue pair, same slab; frames stay valid
 *     ndx_receiver_stop()               stopped      disconnected, joined, memory unregistered
 *     ndx_receiver_close()
 *
 * A call out of turn is NDX_E_INVALID_DEVICE_STATE and says which call is missing.
 *
 * Ways to connect, all with the same outcome:
 *  - ndx_receiver_connect() and ndx_receiver_accept(): by the provider's connection manager;
 *  - ndx_receiver_describe(), then ndx_receiver_connect_peer(): descriptions exchanged by hand;
 *  - ndx_receiver_get_numbers(), then ndx_receiver_complete_connection(): the same in the numbers
 *    of a device that knows nothing of NDX (queue pair number, PSNs, GID);
 *  - ndx_receiver_prepare(), connecting ndx_receiver_get_qp() as you like (a negotiated session),
 *    then ndx_receiver_start().
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

/** Where a receiver stands. */
enum ndx_receiver_state {
	NDX_RECEIVER_CREATED = 0,
	NDX_RECEIVER_CONNECTING = 1,
	NDX_RECEIVER_RUNNING = 2,
	NDX_RECEIVER_ENDED = 3,    /**< the peer said goodbye; all that it sent was delivered */
	NDX_RECEIVER_FAILED = 4,   /**< see ndx_receiver_get_cause() */
	NDX_RECEIVER_STOPPING = 5, /**< ndx_receiver_stop() is at work */
	NDX_RECEIVER_STOPPED = 6,
};

/** Name of a state, "running". Never NULL. Any thread. */
const char *ndx_receiver_state_name(enum ndx_receiver_state state);

/** Why a receiver does not run any more. */
enum ndx_receiver_end {
	NDX_RECEIVER_END_NONE = 0,    /**< it does, or never did */
	NDX_RECEIVER_END_GOODBYE = 1, /**< the peer disconnected */
	NDX_RECEIVER_END_LOST = 2,    /**< the connection broke: the peer died, the wire was cut */
	NDX_RECEIVER_END_REQUEST = 3, /**< a receive failed: too long for a slot, or the device */
	NDX_RECEIVER_END_IDLE = 4,    /**< nothing came for idle_timeout_ms */
	NDX_RECEIVER_END_PROBE = 5,   /**< the peer did not answer the liveness probe */
	NDX_RECEIVER_END_STOPPED = 6, /**< ndx_receiver_stop() */
	NDX_RECEIVER_END_UNKNOWN = 7, /**< the stack cannot tell goodbye from death */
};

/** Name of a cause, "goodbye". Never NULL. Any thread. */
const char *ndx_receiver_end_name(enum ndx_receiver_end end);

/** The cause in full. */
struct ndx_receiver_cause {
	enum ndx_receiver_end end;
	enum ndx_status status; /**< of the request or the connection; NDX_OK after a goodbye */
	int32_t native;         /**< provider's code, 0 if none */
	char text[192];         /**< for people; "" while it runs */
};

/** How frames come. */
enum ndx_receiver_mode {
	/** By sends, with or without immediate data, each into the slot that was posted first. The
	 * peer has no rights to the slab. */
	NDX_RECEIVER_SEND = 0,
	/**
	 * By writes with immediate data into the slab, which its address and token are exported
	 * for: frame n of a connection belongs into slot n modulo slot_count. The peer may write to
	 * any slot at any time, also to one that somebody is reading: nothing but the peer's
	 * discipline keeps a frame intact, and a plain write leaves no trace. Of a frame longer
	 * than the path MTU only the last packet waits for a slot. Only for peers that
	 * are trusted to keep to their ring, and consumers that release in order. Needs
	 * NDX_CAP_WRITE_IMMEDIATE.
	 */
	NDX_RECEIVER_WRITE = 1,
};

/** Every channel. */
#define NDX_CHANNEL_ANY (-1)

/** Length of consumers in struct ndx_receiver_attr. */
#define NDX_RECEIVER_CONSUMERS 8

/**
 * Called for each frame by the receiving thread, one at a time. The frame is valid until it
 * returns; ndx_frame_retain() to keep it. Returns whether it went well: if not, that is counted,
 * and reception goes on. It holds up all receivers of its loop while it runs.
 */
typedef bool ndx_frame_fn(void *context, const struct ndx_frame *frame);

/** One of those that are given the frames, in the order of the list. */
struct ndx_frame_consumer {
	ndx_frame_fn *fn; /**< NULL ends the list */
	void *context;
	int channel; /**< 0 .. 255, or NDX_CHANNEL_ANY; 0 is what frames without immediate have */
};

/**
 * Called by the receiving thread when a receiver has come to ENDED, FAILED or STOPPED; to the last
 * after a stop that this thread called, and after a close in a callback of an adapter. Allowed in
 * there: everything but what blocks.
 */
typedef void ndx_receiver_fn(void *context, struct ndx_receiver *receiver,
                             enum ndx_receiver_state state);

/** Attributes; ndx_receiver_attr_init() first, then what differs. */
struct ndx_receiver_attr {
	size_t size;                 /**< set by ndx_receiver_attr_init() */
	struct ndx_adapter *adapter; /**< or NULL: the receiver opens `uri`, and closes it */
	const char *uri;             /**< as ndx_adapter_open(); ignored with an adapter */
	enum ndx_receiver_mode mode; /**< default SEND */
	uint32_t slot_size;          /**< longest frame in bytes, 1 ..; default 9000 */
	uint32_t slot_count;         /**< 1 ..; default 256; slot_size * slot_count < 4 GiB */
	uint32_t copy_below; /**< with fewer slots posted than this, frames are copied out, so that
	                          slow consumers do not stop the peer. 0 (default): never */
	uint32_t copy_count; /**< room for that many copies; default 0 */
	uint32_t sequence_wrap; /**< the sequence runs 0 .. sequence_wrap - 1. Default 2^24 */
	bool need_immediate;    /**< frames without immediate data are counted and dropped */
	bool pull;           /**< frames are queued for ndx_receiver_pull(), after the consumers */
	uint32_t send_depth; /**< requests of a sender on the same connection. Default 16 */
	uint32_t no_receive_timeout_ms; /**< of the queue pair, for its sends. Default 4000 */
	uint32_t keepalive_ms;          /**< of the queue pair. Default 5000; 0: never asked */
	uint32_t idle_timeout_ms; /**< FAILED when no frame came for so long. 0 (default): never */
	uint32_t probe_ms;  /**< ask the peer's device for a sign of life after so long without a
	                         frame, by a write: an NDX peer has memory for it, a device that was
	                         told numbers is asked if it granted some (probe_rkey of struct
	                         ndx_receiver_peer). 0 (default): never */
	uint32_t rnr_timer; /**< as of struct ndx_qp_attr. Default NDX_RNR_TIMER_DEFAULT */
	uint32_t probe_timeout_ms; /**< FAILED if it gives none for so long; with a sender on the
	                                connection as the stack finds. Default 2000 */
	struct ndx_receive_loop *loop; /**< NULL: a thread of its own, "ndx-recv" */
	uint32_t spin_us; /**< own thread: how long it polls before it sleeps. Default 50 */
	uint32_t batch;   /**< own thread: results taken at once, 1 .. 64. Default 16 */
	struct ndx_frame_consumer consumers[NDX_RECEIVER_CONSUMERS];
	ndx_receiver_fn *on_end; /**< or NULL */
	void *context;           /**< of on_end */
};

/** Set `size` and the defaults. */
void ndx_receiver_attr_init(struct ndx_receiver_attr *attr);

/**
 * Create a receiver: opens the adapter if it has to, allocates and registers the slab, creates the
 * queue pair. Nothing is posted, no thread runs.
 *
 * @param[out] out  untouched on failure, when all is undone; release with ndx_receiver_close()
 *
 * @retval NDX_E_INVALID_PARAMETER NULL, or a number out of range; ndx_last_error() says which
 * @retval NDX_E_NOT_SUPPORTED     mode WRITE without NDX_CAP_WRITE_IMMEDIATE
 * @retval NDX_E_NO_MEMORY         no memory for the slab
 * @retval NDX_E_WOULD_BLOCK       in a callback of an adapter
 * @return otherwise as ndx_adapter_open(), ndx_mr_register(), ndx_cq_create(), ndx_qp_create()
 *
 * Thread safety: any thread. Blocks: no longer than pinning takes; not in a callback.
 */
enum ndx_status ndx_receiver_create(const struct ndx_receiver_attr *attr,
                                    struct ndx_receiver **out);

/**
 * Connect to a listener, and run. After a failure the receiver is CREATED again.
 *
 * @param timeout_ms  for everything together
 * @retval NDX_E_INVALID_DEVICE_STATE not CREATED
 * @retval NDX_E_WOULD_BLOCK          in a callback of an adapter; nothing has changed
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
 * Describe this end for a peer that is told of it out of band; as ndx_connector_describe(), with
 * the slab as `memory` in mode WRITE. All slots are posted. The receiver is CONNECTING then.
 *
 * Thread safety: any thread, one at a time. Blocks: for some milliseconds at most.
 */
enum ndx_status ndx_receiver_describe(struct ndx_receiver *receiver, enum ndx_role role,
                                      struct ndx_peer_description *out);

/**
 * Between describe and connect_peer, where the provider has no connection manager: as
 * ndx_connector_set_channel(). ndx_receiver_complete_connection() needs none.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_describe() is missing
 */
enum ndx_status ndx_receiver_set_channel(struct ndx_receiver *receiver, int fd);

/**
 * Connect to the peer that this description came from, and run. After a failure the receiver is
 * CREATED again, and describes itself anew.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_describe() is missing
 * @retval NDX_E_WOULD_BLOCK          in a callback of an adapter; nothing has changed
 * @return otherwise as ndx_connector_connect_peer()
 *
 * Thread safety: any thread, one at a time. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_receiver_connect_peer(struct ndx_receiver *receiver,
                                          const struct ndx_peer_description *peer,
                                          uint32_t timeout_ms);

/** What a device that knows nothing of NDX has to be told of this end. */
struct ndx_receiver_numbers {
	uint32_t qpn;         /**< 24 bits */
	uint32_t send_psn;    /**< of the first packet that we send; the peer's RQ PSN */
	uint32_t receive_psn; /**< of the first packet that we expect; the peer's SQ PSN */
	uint32_t mtu;         /**< bytes, the port's active one */
	uint16_t lid;         /**< 0 on Ethernet */
	uint8_t gid[16];
	char gid_text[40];     /**< eight groups of four hex digits */
	uint64_t address;      /**< of the slab */
	uint32_t length;       /**< of the slab, bytes */
	uint32_t remote_token; /**< of the slab, mode WRITE only: opaque, for an NDX peer */
	uint32_t rkey;         /**< the same for any other device: the number as the wire has it */
};

/**
 * The numbers of this end, for ndx_receiver_complete_connection(). The first call describes the
 * end as a server does, and draws receive_psn at random. Only where ends are described as
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
	uint32_t rq_psn; /**< what the peer expects first: the send_psn that it was told */
	uint32_t sq_psn; /**< what the peer sends first: the receive_psn that it was told */
	/** One byte of the peer's memory that we may overwrite to learn whether it answers
	 * (probe_ms). probe_rkey 0: it granted none, and is not asked. */
	uint64_t probe_address;
	uint32_t probe_rkey;
	uint8_t path_mtu; /**< 0: as large as both ports can; 1 .. 5: 256 .. 4096 bytes */
};

/**
 * Connect by hand: all slots are posted, then the queue pair goes to RTR and RTS, then the thread
 * starts. The numbers are checked before anything is touched.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_get_numbers() is missing
 * @retval NDX_E_WOULD_BLOCK          in a callback of an adapter; nothing has changed
 * @retval NDX_E_INVALID_PARAMETER    a number out of range, no GID, a path MTU beyond the port's,
 *                                    or a PSN that is not what the peer was told; the text says
 *                                    which
 * @return otherwise as ndx_receiver_connect_peer()
 */
enum ndx_status ndx_receiver_complete_connection(struct ndx_receiver *receiver,
                                                 const struct ndx_receiver_peer *peer,
                                                 uint32_t timeout_ms);

/** Post all slots, so that the queue pair can be connected by any means. CONNECTING then. */
enum ndx_status ndx_receiver_prepare(struct ndx_receiver *receiver);

/**
 * Run, with the connection that was made of the queue pair after ndx_receiver_prepare().
 *
 * @param connector  connected; the receiver's from now on, unless this fails
 * @retval NDX_E_INVALID_DEVICE_STATE ndx_receiver_prepare() is missing
 */
enum ndx_status ndx_receiver_start(struct ndx_receiver *receiver, struct ndx_connector *connector);

/** The queue pair, until the next reset or stop. */
struct ndx_qp *ndx_receiver_get_qp(struct ndx_receiver *receiver);

/**
 * The slab as a peer may reach it, for mode WRITE; the token is 0 in mode SEND. Valid until stop.
 *
 * @retval NDX_E_INVALID_PARAMETER NULL argument
 */
enum ndx_status ndx_receiver_get_memory(struct ndx_receiver *receiver,
                                        struct ndx_memory_description *out);

/** The adapter. */
struct ndx_adapter *ndx_receiver_get_adapter(struct ndx_receiver *receiver);

/** Where it stands. Any thread. */
enum ndx_receiver_state ndx_receiver_get_state(const struct ndx_receiver *receiver);

/** Why it does not run. Any thread. */
void ndx_receiver_get_cause(struct ndx_receiver *receiver, struct ndx_receiver_cause *out);

/**
 * Take frames from the queue; each is to be released. Needs `pull`.
 *
 * @param[out] frames  room for @p count
 * @param[out] got     how many; 0 unless NDX_OK
 *
 * @retval NDX_PENDING                time is over, nothing came
 * @retval NDX_E_CANCELED             none is left, and the receiver does not run
 * @retval NDX_E_WOULD_BLOCK          in a callback of an adapter, and nothing is there
 * @retval NDX_E_INVALID_DEVICE_STATE created without `pull`
 *
 * Thread safety: any thread, several at once. Blocks: up to @p timeout_ms.
 */
enum ndx_status ndx_receiver_pull(struct ndx_receiver *receiver, const struct ndx_frame **frames,
                                  size_t count, uint32_t timeout_ms, size_t *got);

/**
 * Descriptor for poll/epoll/select, readable while ndx_receiver_pull() would not wait. Closed with
 * the receiver. -1 without `pull`.
 */
int ndx_receiver_get_fd(struct ndx_receiver *receiver);

/**
 * After ENDED or FAILED: a new queue pair on the same slab; frames that are held stay valid and
 * their slots come back as they are released. Sequence numbers begin anew, counters go on.
 *
 * @retval NDX_E_INVALID_DEVICE_STATE neither ENDED nor FAILED
 * @retval NDX_E_WOULD_BLOCK          in a callback of an adapter; nothing has changed
 * @return otherwise as ndx_qp_create(); it stays as it was
 *
 * Thread safety: any thread, one at a time. Blocks: as ndx_qp_close().
 */
enum ndx_status ndx_receiver_reset(struct ndx_receiver *receiver);

/**
 * Disconnect, take back what is posted, end the thread, unregister. Frames that somebody holds
 * stay valid. Safe to call twice, and by several threads: all return when it is done.
 *
 * @retval NDX_OK            stopped
 * @retval NDX_E_DEVICE_BUSY a call that connects it is at work: let it run out of time, or cancel
 *                           its listener; nothing has changed
 * @retval NDX_PENDING       called by the receiving thread: it ends when the callback has returned
 * @retval NDX_E_WOULD_BLOCK in a callback of an adapter; nothing has changed
 *
 * Thread safety: any thread. Blocks: as ndx_connector_disconnect(), by its time-outs.
 */
enum ndx_status ndx_receiver_stop(struct ndx_receiver *receiver);

/**
 * Stop, and release. Frames that are held stay valid. NULL is a no-op. Not beside another call.
 *
 * Blocks: as ndx_receiver_stop(). In a callback of an adapter it does not wait: the receiving
 * thread goes on with the end of a receiver that runs, and calls `on_end` with STOPPED when it is
 * done.
 */
void ndx_receiver_close(struct ndx_receiver *receiver);

/** Counters; they go on over a reset. */
struct ndx_receiver_stats {
	size_t size;            /**< sizeof(struct ndx_receiver_stats), set by the caller */
	uint64_t time_ns;       /**< when they were read */
	uint64_t frames;        /**< delivered */
	uint64_t bytes;         /**< of those */
	uint64_t copied;        /**< of those, copied out */
	uint64_t copies_missed; /**< should have been, but there was no room */
	uint64_t empty;         /**< frames of length 0: dropped */
	uint64_t no_immediate;  /**< came without; dropped with need_immediate */
	uint64_t lost;          /**< gaps in the sequence, in frames */
	uint64_t repeated;      /**< sequence numbers that came again, or late */
	uint64_t overwritten;   /**< mode WRITE: a frame came into a slot that was still held */
	uint64_t misplaced;     /**< mode WRITE: neither written nor with immediate data; dropped */
	uint64_t oversize;      /**< receives that failed because the frame was too long */
	uint64_t repost_failed; /**< posts that failed and were tried again */
	uint64_t connections;   /**< how often it ran */
	uint64_t starved;       /**< how often no slot was posted */
	uint64_t starved_ns;    /**< how long altogether, the time that goes on included */
	uint64_t sleeps;        /**< how often the thread went to sleep */
	uint64_t wakeups;       /**< and how often it was woken for this receiver */
	uint64_t consumer_errors[NDX_RECEIVER_CONSUMERS];
	uint64_t errors[NDX_STATS_STATUSES]; /**< receives by status; [-status], no NDX_OK */
	uint32_t slots;                      /**< slot_count */
	uint32_t posted;                     /**< slots that the peer can fill now */
	uint32_t held;                       /**< slots that consumers have */
	uint32_t low_water;                  /**< the fewest that were ever posted while running */
	uint32_t queued;                     /**< frames that nobody has pulled yet */
	uint64_t sizes[NDX_STATS_BUCKETS];   /**< [n]: 2^n bytes and more, below 2^(n+1) */
	/** Time between frames: [0]: below 2 us; [n]: 2^n us and more. Those of a batch count as 0.
	 */
	uint64_t gaps[NDX_STATS_BUCKETS];
};

/**
 * Read the counters.
 *
 * @param[in,out] stats  `size` set by the caller
 * @retval NDX_E_INVALID_PARAMETER NULL, or `size` is smaller than any released version's
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_receiver_get_stats(struct ndx_receiver *receiver,
                                       struct ndx_receiver_stats *stats);

/**
 * State, cause and counters as one JSON text; docs/receiver.md describes its members.
 *
 * @param[out] json  NUL-terminated; release with free(); untouched on failure
 * @retval NDX_E_NO_MEMORY out of memory
 *
 * Thread safety: any thread. Blocks: no.
 */
enum ndx_status ndx_receiver_snapshot(struct ndx_receiver *receiver, char **json);

/** Attributes of a loop; ndx_receive_loop_attr_init() first. */
struct ndx_receive_loop_attr {
	size_t size;      /**< set by ndx_receive_loop_attr_init() */
	uint32_t spin_us; /**< how long it polls before it sleeps; 0: not at all. Default 50 */
	uint32_t batch;   /**< results taken at once from each receiver, 1 .. 64. Default 16 */
};

/** Set `size` and the defaults. */
void ndx_receive_loop_attr_init(struct ndx_receive_loop_attr *attr);

/**
 * A thread for many receivers, "ndx-recv". They may be of different adapters.
 *
 * @param attr      NULL: defaults
 * @param[out] out  untouched on failure; release with ndx_receive_loop_close()
 * @retval NDX_E_INVALID_PARAMETER      NULL, or batch out of range
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread or no descriptor left
 */
enum ndx_status ndx_receive_loop_create(const struct ndx_receive_loop_attr *attr,
                                        struct ndx_receive_loop **out);

/** Let go; the thread ends with the last receiver that runs on it. NULL is a no-op. Any thread. */
void ndx_receive_loop_close(struct ndx_receive_loop *loop);

NDX_DECLS_END

#endif
