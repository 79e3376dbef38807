/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Interface between a provider and the core: duties and guarantees.
 *
 * The core checks every argument of the control path before it calls an operation: pointers are
 * valid, lengths and flags are in range, objects belong to the same adapter, states are right. A
 * provider asserts this and does not check it again. Data-path calls (ndx_qp_ops, ndx_cq_ops,
 * ndx_srq_ops) come directly from the application; the provider checks them.
 *
 * Threads. Every adapter has a lock, which belongs to the core, and a control thread with an event
 * loop. Operations marked [C] run on the control thread, with the adapter lock held. Operations
 * marked [L] run on any thread, with the lock held. All others run on any thread without the lock.
 * No operation may block for longer than a few milliseconds. Descriptors, timers and jobs of the
 * event loop run on the control thread without the adapter lock.
 *
 * Upcalls (struct ndx_host) may be made from any thread, under any lock of the provider, and from
 * inside an operation: they record and wake, they never call back. After `conn_destroy`,
 * `listener_destroy` and so on no upcall for the object may be made.
 *
 * Data path: what a provider promises. <ndx/qp.h>, <ndx/cq.h> and <ndx/mr.h> say the same to the
 * program. The halves of queues in <ndx/spi/queue_pair.h> and <ndx/spi/completion_queue.h> keep the
 * promises that are marked with (kit).
 *   - A post never blocks, allocates or logs. Any thread and any callback posts and polls, several
 *     at a time.
 *   - A refused post takes no slot and changes nothing. Statuses, in this order: never connected
 *     CONNECTION_INVALID (receives are welcome), unknown flag INVALID_PARAMETER, too many SGEs
 *     DATA_OVERRUN, too long BUFFER_OVERFLOW, no free slot NO_MORE_ENTRIES. (kit) A read on a
 *     connection with an outbound read limit of 0: INVALID_DEVICE_REQUEST.
 *   - The SGE list, and the bytes of an inline request, are the program's again when the post
 *     returns; the memory of other requests when the result is there.
 *   - Both queues retire in posting order, each by itself, whatever the order of the device. (kit)
 *     A send's result can be taken before the result of the receive that the peer's answer filled.
 *   - A request with NDX_OP_SILENT_SUCCESS has no result if it succeeds. A failure always has one.
 *     (kit)
 *   - A slot is free again when the program has taken the result, or when the request has succeeded
 *     silently. No result is ever lost, however small the completion queue is. (kit)
 *   - Requests run without the program: neither the peer's requests nor a drain waits until the
 *     program polls.
 *   - A send that finds no receive waits, for no_receive_timeout_ms, then fails IO_TIMEOUT. The
 *     requests behind it wait, too.
 *   - The first request that fails ends the connection on both sides. It has the cause as its
 *     status, all others of the queue pair complete CANCELED (kit), and NDX_REPORT_ABORT comes
 *     first. Later posts are accepted and complete CANCELED, in order. (kit)
 *   - Access to memory is checked for each request: the token, the range, the right, the adapter.
 *     Requests and SGEs without bytes need no token. A violation fails the request and never the
 *     post.
 *   - When mr_deregister has returned, or reported NDX_OK, no request accesses the memory.
 *   - A result is visible before its notification fires, and before the upcall that reports the end
 *     of which the result is part: DRAINED, QUIET.
 *   - `bytes_transferred` is set for receives only; `native` for failures only.
 *
 * The interface may change until version 1.0.
 */
#ifndef NDX_SPI_PROVIDER_H
#define NDX_SPI_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/description.h>
#include <ndx/ndx.h>
#include <ndx/spi/host.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/services.h>

#define NDX_SPI_ABI 7u

/** Longest private data that a provider passes to the core. */
#define NDX_SPI_PRIVATE_DATA_MAX 256u

/**
 * Pointers at the end of a first part below, which a later core may use: the provider's build
 * decides how large the first part is. The provider zeroes its objects, and leaves this alone.
 */
#define NDX_SPI_ROOM 4

struct ndx_provider;

/** First part of a provider's adapter. */
struct ndx_spi_adapter {
	/** The core sets this and all other members before adapter_open. */
	const struct ndx_provider *provider;
	const struct ndx_host *host;
	struct ndx_adapter *front;
	struct ndx_loop *loop;
	/**
	 * Set by the provider: must be the same at the peer's adapter, for example "ofi:tcp"; at
	 * most 15 characters. NULL: the provider's name.
	 */
	const char *stack;
	void *reserved[NDX_SPI_ROOM]; /* for the core */
};

/** The core's part of every object that has a public handle. */
struct ndx_spi_object {
	struct ndx_adapter *adapter;
	struct ndx_spi_adapter *native;
	unsigned refs; /* under the adapter lock, like all members below */
	uint32_t id;   /* constant; number of the object within its kind, for log and counters */
	struct ndx_spi_object *next;
	struct ndx_spi_object **link; /* the pointer that points to this object */
};

/**
 * First part of a provider's completion queue. The provider sets `pub.ops` in cq_create, with
 * `size` and all functions.
 */
struct ndx_spi_cq {
	struct ndx_cq pub;
	struct ndx_spi_object object;
	uint32_t depth; /* as the program asked for, or as resized */
	void *reserved[NDX_SPI_ROOM];
};

/**
 * First part of a provider's shared receive queue. The provider sets `pub.ops` in srq_create, with
 * `size`. `receive` is a must; the rest as in struct ndx_spi_qp.
 */
struct ndx_spi_srq {
	struct ndx_srq pub;
	struct ndx_spi_object object;
	struct ndx_srq_ops *whole; /* for the core: a complete copy of the provider's functions */
	void *reserved[NDX_SPI_ROOM];
};

/** First part of a provider's memory region. The provider sets the tokens. */
struct ndx_spi_mr {
	struct ndx_spi_object object;
	/* for the core, atomic: */
	struct ndx_overlapped *ov; /* of the registration or deregistration in flight */
	uint32_t busy;
	bool registered;
	uint32_t local_token;
	uint32_t remote_token;
	/* for the core, what ndx_mr_query() returns; under the lock: */
	const void *buffer;
	size_t length;
	uint32_t flags;
	/* ... and atomic: */
	int32_t outcome;
	uint64_t registered_ns;
	uint64_t ended_ns;
	void *reserved[NDX_SPI_ROOM];
};

/** First part of a provider's memory window. */
struct ndx_spi_mw {
	struct ndx_spi_object object;
	uint32_t remote_token;
	void *reserved[NDX_SPI_ROOM];
};

/**
 * First part of a provider's queue pair. `attr` holds the granted values. The provider sets
 * `pub.ops` in qp_create, with `size`. `send`, `receive`, `read` and `write` are a must. If the
 * table lacks another function, or is older than the core's, the core replaces `pub.ops` by a
 * complete copy, so a provider does not find its object by `pub.ops`. In
 * place of a missing post_list or receive_list the copy posts one entry after the other.
 *
 * post_list and receive_list get entries that are `size` bytes apart, at least those of version
 * 0.1. `*posted` is 0 before the call; the provider sets it to the number of posted entries, also
 * when it refuses one.
 */
struct ndx_spi_qp {
	struct ndx_qp pub;
	struct ndx_spi_object object;
	/** For the core, under the lock: connector that uses this queue pair. */
	struct ndx_connector *connector;
	bool spent;               /* for the core: was connected, cannot connect again */
	uint32_t connector_id;    /* for the core: connector of the latest attempt; 0: none yet */
	struct ndx_qp_ops *whole; /* for the core: a complete copy of the provider's functions */
	void *reserved[NDX_SPI_ROOM];
	/** The last member, because it grows; the core reads `attr.size` bytes, and writes none. */
	struct ndx_qp_attr attr;
};

/**
 * First part of a provider's half of a connector. The provider keeps the addresses up to date: in
 * operations, and `local` also on the control thread without the lock, before an upcall. The core
 * reads `local` when it handles the upcall.
 */
struct ndx_spi_conn {
	struct ndx_connector *front;
	struct ndx_spi_adapter *native;
	/** Set by the core: NULL before connect/accept and after conn_detach. */
	struct ndx_spi_qp *qp;
	struct sockaddr_storage local; /* AF_UNSPEC while unknown */
	struct sockaddr_storage peer;
	/** Set by the core before conn_accept and conn_complete: the agreed limits. */
	uint32_t inbound_read_limit;
	uint32_t outbound_read_limit;
	void *reserved[NDX_SPI_ROOM];
};

/** First part of a provider's listener. */
struct ndx_spi_listener {
	struct ndx_listener *front;
	struct ndx_spi_adapter *native;
	struct sockaddr_storage local; /* valid once listening */
	void *reserved[NDX_SPI_ROOM];
};

/**
 * Parameters that each side sends while connecting. Each side sends the read limits that it wants.
 */
struct ndx_spi_params {
	uint32_t inbound_read_limit;
	uint32_t outbound_read_limit;
	size_t private_data_len;
	uint8_t private_data[NDX_SPI_PRIVATE_DATA_MAX];
};

/** An incoming connection request, created by the provider and passed to ndx_host.request. */
struct ndx_spi_request {
	struct ndx_spi_listener *listener;
	struct ndx_spi_params params; /* of the active side */
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	/** For the core: the listener's adapter, also when the listener is closed. */
	struct ndx_spi_adapter *native;
	struct ndx_spi_request *next; /* for the core */
	void *reserved[NDX_SPI_ROOM];
};

/**
 * One KEY=VALUE of an adapter URI or of the provider's section in the INI file. The core keeps the
 * keys "thread" and "cpus" for itself.
 */
struct ndx_spi_option {
	const char *key;
	const char *value;
	const char *origin; /**< "URI", "$NDX_ADAPTER" or "file.ini:12", for error texts */
};

/** Parameters of adapter_open. */
struct ndx_spi_open {
	const char *device; /**< part of the URI between ':' and '?'; "" if none */
	const struct ndx_spi_option *options;
	size_t option_count;
};

/** Key name that allows any key: the provider checks the keys itself in adapter_open. */
#define NDX_SPI_KEY_ANY "*"

/** A key that a provider accepts; for checks and for spelling suggestions. */
struct ndx_spi_key {
	const char *name;
	const char *values; /**< for the user: "network interface", "lan|none" */
};

/**
 * Takes one entry of an enumeration; state, hint and device come from the provider. The core copies
 * the entry and its `addresses`, which are valid for the time of the call only, and makes `address`
 * the first of them. A provider that leaves `addresses` NULL has the one in `address`, or none. All
 * entries together have at most 262,144 addresses; an entry with more than are left keeps
 * `address`.
 */
typedef void ndx_spi_list_fn(void *arg, const struct ndx_adapter_entry *entry);

/** How much of a direction of a path is proved. */
enum ndx_spi_proved {
	NDX_PROVED_NOTHING = 0,
	NDX_PROVED_SMALL = 1, /**< a packet of a few bytes has arrived */
	NDX_PROVED_WHOLE = 2, /**< so has a packet of the path MTU */
	/** Only of `seen`: a write of the peer came, and the own device refused the write, for its
	 * key or because the own queue pair takes no writes. The answer may get lost, so that the
	 * peer's device does not know. */
	NDX_PROVED_REFUSED = 3,
};

/** What conn_prove has found out so far. */
struct ndx_spi_proof {
	enum ndx_spi_proved written; /**< of the own writes the peer has acknowledged this much */
	enum ndx_spi_proved seen;    /**< of the peer's writes this much has arrived */
	/** NDX_PENDING: the own writes are in flight; else their end, NDX_OK or the failure. */
	enum ndx_status status;
	int32_t native; /**< the device's code of the failure; 0 if there is none */
};

/** Takes one counter; @p name is a string constant in lower_case. */
typedef void ndx_spi_counter_fn(void *arg, const char *name, uint64_t value);

/**
 * Operations of a provider. `must`: never NULL. `may`: NULL means that the core answers
 * NDX_E_NOT_SUPPORTED; the capability bit must then be off. *_create operations allocate the
 * object; the core fills the object's first part afterwards, except for members that the provider
 * sets. No operation changes its out parameters on failure.
 */
struct ndx_provider_ops {
	/* must: adapter */
	/**
	 * @p defaults: the options from the INI file that every open gets; no device.
	 */
	enum ndx_status (*list)(const struct ndx_provider *self,
	                        const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
	                        void *arg);
	/** The provider copies @p head into the first part of the new adapter. */
	enum ndx_status (*adapter_open)(const struct ndx_spi_adapter *head,
	                                const struct ndx_spi_open *how,
	                                struct ndx_spi_adapter **out);
	/** All objects are destroyed. The control thread still exists; afterwards no job, timer or
	 * watch of the provider may be left in its loop. */
	void (*adapter_close)(struct ndx_spi_adapter *adapter);
	/** Fill all members except size and provider; at most `size` bytes, which a core that is
	 * older than the provider gives less of. */
	void (*adapter_query)(struct ndx_spi_adapter *adapter, struct ndx_adapter_info *info);
	/** Addresses, with port 0. Returns how many there are, and fills at most @p room. */
	size_t (*adapter_addresses)(struct ndx_spi_adapter *adapter, struct sockaddr_storage *list,
	                            size_t room);

	/* must: completion queues */
	/** @p attr is checked. */
	enum ndx_status (*cq_create)(struct ndx_spi_adapter *adapter,
	                             const struct ndx_cq_attr *attr, struct ndx_spi_cq **out);
	/** The last reference is gone, and all queue pairs that used the queue. */
	void (*cq_destroy)(struct ndx_spi_cq *cq);
	/**
	 * As ndx_cq_notify(). The core has put @p ov in flight. Returns NDX_PENDING if the provider
	 * keeps @p ov, else a failure.
	 */
	enum ndx_status (*cq_notify)(struct ndx_spi_cq *cq, enum ndx_cq_notify_type type,
	                             struct ndx_overlapped *ov);
	/** Complete the kept notifications with @p status, in order, before it returns. */
	void (*cq_cancel)(struct ndx_spi_cq *cq, enum ndx_status status);
	enum ndx_status (*cq_get_fd)(struct ndx_spi_cq *cq, int *fd);
	/* may */
	/**
	 * Make the descriptor of cq_get_fd readable (@p up) or unreadable. NULL: the descriptor is
	 * an eventfd of its own.
	 */
	void (*cq_wake)(struct ndx_spi_cq *cq, bool up);
	enum ndx_status (*cq_resize)(struct ndx_spi_cq *cq, uint32_t depth);
	enum ndx_status (*cq_affinity)(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity);

	/* must: memory regions */
	enum ndx_status (*mr_create)(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
	/** The region is not registered any more. */
	void (*mr_destroy)(struct ndx_spi_mr *mr);
	/**
	 * Returns the outcome; or NDX_PENDING, and reports the outcome through ndx_host.mr_ended. A
	 * region has one such operation at a time. The provider sets the tokens before it reports
	 * NDX_OK for a registration.
	 */
	enum ndx_status (*mr_register)(struct ndx_spi_mr *mr, void *buffer, size_t length,
	                               uint32_t flags);
	/**
	 * As mr_register. @p closing: the region is destroyed next. Then the operation must not
	 * return NDX_PENDING and must not fail, and invalidates bound windows instead of refusing.
	 */
	enum ndx_status (*mr_deregister)(struct ndx_spi_mr *mr, bool closing);
	/**
	 * may; required from a provider whose mr_register or mr_deregister returns NDX_PENDING,
	 * because ndx_mr_cancel() and ndx_mr_close() depend on it. Returns when no such operation
	 * is in progress. Its end has been reported before, with its own outcome and not
	 * NDX_E_CANCELED. Must return within seconds whatever peers do. May be called on the
	 * control thread; there it must itself drive what it waits for. Called without the lock,
	 * concurrently with register and deregister of other regions, and also when nothing is in
	 * progress.
	 */
	void (*mr_wait_idle)(struct ndx_spi_mr *mr);

	/* may: memory windows, both or neither (bind and invalidate are in ndx_qp_ops) */
	enum ndx_status (*mw_create)(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out);
	void (*mw_destroy)(struct ndx_spi_mw *mw);

	/* may: shared receive queues, all or none; srq_affinity with NDX_CAP_NOTIFY_AFFINITY */
	/** @p attr is checked. */
	enum ndx_status (*srq_create)(struct ndx_spi_adapter *adapter,
	                              const struct ndx_srq_attr *attr, struct ndx_spi_srq **out);
	void (*srq_destroy)(struct ndx_spi_srq *srq);
	enum ndx_status (*srq_modify)(struct ndx_spi_srq *srq, uint32_t depth, uint32_t threshold);
	enum ndx_status (*srq_notify)(struct ndx_spi_srq *srq, struct ndx_overlapped *ov);
	void (*srq_cancel)(struct ndx_spi_srq *srq, enum ndx_status status);
	enum ndx_status (*srq_affinity)(struct ndx_spi_srq *srq, uint16_t *group,
	                                uint64_t *affinity);

	/* must: queue pairs */
	/**
	 * @p attr is checked; the provider copies it, with the values that it grants, to `attr` of
	 * the first part.
	 */
	enum ndx_status (*qp_create)(struct ndx_spi_adapter *adapter,
	                             const struct ndx_qp_attr *attr, struct ndx_spi_qp **out);
	/**
	 * [C] or the closing thread, without the lock. The queue pair is not connected any more
	 * (after conn_detach or QUIET). Receives that are left complete NDX_E_CANCELED; results
	 * stay in the completion queues.
	 */
	void (*qp_destroy)(struct ndx_spi_qp *qp);
	/** [L] Flush of an unconnected queue pair: its receives complete NDX_E_CANCELED. */
	void (*qp_cancel)(struct ndx_spi_qp *qp);

	/* must: connecting. The core sets conn->qp before connect and accept. */
	enum ndx_status (*conn_create)(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
	                               struct ndx_spi_conn **out); /* [L] */
	void (*conn_destroy)(struct ndx_spi_conn *conn);           /* [C] */
	enum ndx_status (*conn_bind)(struct ndx_spi_conn *conn, const struct sockaddr *address,
	                             socklen_t len); /* [L] */
	/**
	 * [C] NDX_OK: ndx_host.connected follows. On failure it does not follow, and the provider
	 * has undone everything.
	 */
	enum ndx_status (*conn_connect)(struct ndx_spi_conn *conn,
	                                const struct sockaddr *destination, socklen_t len,
	                                const struct ndx_spi_params *params);
	/** [C] NDX_OK: ndx_host.established follows. */
	enum ndx_status (*conn_complete)(struct ndx_spi_conn *conn);
	/** [C] Make @p conn the passive end of @p request; the provider frees the request. */
	void (*conn_take)(struct ndx_spi_conn *conn, struct ndx_spi_request *request);
	/** [C] NDX_OK: ndx_host.established follows. */
	enum ndx_status (*conn_accept)(struct ndx_spi_conn *conn,
	                               const struct ndx_spi_params *params);
	/**
	 * [C] Passive side: refuse the request. Active side: refuse the accepted connection. Then
	 * as conn_abandon.
	 */
	enum ndx_status (*conn_reject)(struct ndx_spi_conn *conn, const void *private_data,
	                               size_t len);
	/**
	 * [C] Give up an attempt in any state before established, also after it has failed. On
	 * return the queue pair is as it was before the attempt, and the conn may connect again.
	 */
	void (*conn_abandon)(struct ndx_spi_conn *conn);

	/*
	 * must: steps of the disconnect; [C]. The provider reports their outcome through
	 * ndx_host.report. What is already the case during the call must be reported from inside
	 * the call: DRAINED if no own request is in flight, QUIET if nothing moves any more. The
	 * reason: in a callback of the application no other thread drives the provider, so the core
	 * does not wait. A close in a callback disconnects gracefully only if conn_drain has
	 * reported DRAINED during the call, and is over only if conn_abort or conn_finish has
	 * reported QUIET during the call.
	 */
	/** Let own requests run to their end; later posts complete NDX_E_CANCELED, in order. */
	void (*conn_drain)(struct ndx_spi_conn *conn);
	/**
	 * Cancel own requests that have not ended; -> DRAINED, or ABORT if that is not possible.
	 */
	void (*conn_cancel_initiator)(struct ndx_spi_conn *conn);
	/** Send the goodbye; -> DISC_ACKED. The peer can still use the queue pair. */
	void (*conn_send_disc)(struct ndx_spi_conn *conn);
	/** Both goodbyes have arrived: cancel the receives and close; -> QUIET. */
	void (*conn_finish)(struct ndx_spi_conn *conn);
	/**
	 * Cancel everything now, and inform the peer if possible; -> QUIET. Also called, again or
	 * after conn_finish, when a callback closes or flushes the queue pair, or closes or
	 * cancels the connector of an aborted connection, before QUIET has been reported.
	 */
	void (*conn_abort)(struct ndx_spi_conn *conn);
	/**
	 * The queue pair is being closed after conn_send_disc: cancel its receives, so that its
	 * memory is not accessed again. The disconnect goes on without the queue pair. NDX_PENDING:
	 * the two sides still need the queue pair; the core then calls again, for at most two
	 * seconds, and in a callback not at all. After that, and on any failure, the core aborts.
	 */
	enum ndx_status (*conn_detach)(struct ndx_spi_conn *conn);

	/*
	 * may, all or none: connections without a connection manager. Without these operations the
	 * core connects the two ends with the ordinary operations above.
	 */
	/**
	 * [C] Describe the end that conn->qp will be: kind, and the fields of that kind. @p near:
	 * the own address by which the peer is reached, AF_UNSPEC if unknown; the conn may also be
	 * bound. out->psn holds the requested PSN, or NDX_PSN_RANDOM. On failure the provider has
	 * undone everything. On success the description holds until conn_abandon or the end of the
	 * connection.
	 */
	enum ndx_status (*qp_describe)(struct ndx_spi_conn *conn,
	                               const struct sockaddr_storage *near,
	                               struct ndx_peer_description *out);
	/**
	 * [C] Connect conn->qp to @p peer, a checked description that fits the own end: from now on
	 * the queue pair takes what the peer sends. conn_complete follows when the peer has done
	 * the same; before that conn_abandon may come. On failure, ndx_last_error() has the cause.
	 */
	enum ndx_status (*qp_connect_peer)(struct ndx_spi_conn *conn,
	                                   const struct ndx_peer_description *peer);
	/**
	 * [C] A message that the peer sent, once the connection is established; may come
	 * repeatedly.
	 */
	void (*conn_oob_received)(struct ndx_spi_conn *conn, enum ndx_spi_oob_message message);

	/* must: listening */
	enum ndx_status (*listener_create)(struct ndx_spi_adapter *adapter,
	                                   struct ndx_listener *front,
	                                   struct ndx_spi_listener **out); /* [L] */
	void (*listener_destroy)(struct ndx_spi_listener *listener);       /* [C] */
	enum ndx_status (*listener_bind)(struct ndx_spi_listener *listener,
	                                 const struct sockaddr *address, socklen_t len); /* [L] */
	enum ndx_status (*listener_listen)(struct ndx_spi_listener *listener,
	                                   uint32_t backlog); /* [C] */
	/**
	 * [C] Refuse a request that no connector took, and free it. Also after the listener is
	 * destroyed.
	 */
	void (*request_refuse)(struct ndx_spi_request *request);
	/**
	 * [C] may; has the active side given up a request that no connector has taken? Such a
	 * request need not occupy a place in the backlog.
	 */
	bool (*request_is_stale)(const struct ndx_spi_request *request);

	/* may: counters */
	/** [L] Fill the counters of struct ndx_qp_stats, from `initiator` on. */
	void (*qp_get_stats)(struct ndx_spi_qp *qp, struct ndx_qp_stats *stats);
	/** [L] Fill all members except size and id; at most `size` bytes. */
	void (*cq_get_stats)(struct ndx_spi_cq *cq, struct ndx_cq_stats *stats);
	/** [L] The provider's own counters: of @p qp, or of the adapter if @p qp is NULL. */
	void (*get_counters)(struct ndx_spi_adapter *adapter, struct ndx_spi_qp *qp,
	                     ndx_spi_counter_fn *each, void *arg);
	/**
	 * [L] may; fill the members of @p info about the device's queue pair, from `device_state`
	 * on. They are 0 before.
	 */
	void (*qp_query)(struct ndx_spi_qp *qp, struct ndx_qp_info *info);
	/** may, with NDX_CAP_DMABUF; as mr_register, for memory of a dma-buf. */
	enum ndx_status (*mr_register_dmabuf)(struct ndx_spi_mr *mr, int fd, uint64_t offset,
	                                      size_t length, uint64_t iova, uint32_t flags);
	/**
	 * may; prove both directions of a connection whose ends were described to each other.
	 *
	 * [L] @p proof is NULL: only say whether this connection can be proved, NDX_OK or
	 * NDX_E_NOT_SUPPORTED.
	 *
	 * [C] Else fill @p proof; called until both directions are proved, or the core gives up.
	 * What arrives from the peer need not be reported.
	 *
	 * With qp_connect_peer: the first call, on the established connection, begins. The own end
	 * writes the number @p write, a packet of the path MTU and @p write again into memory that
	 * the peer keeps for that, in this order; the peer does the same with @p expect, and no
	 * other peer knows these numbers. NDX_REPORT_PROOF says that
	 * the own writes have ended well; if they fail, the connection is lost as with any request.
	 *
	 * Without: the messages of connecting are the proof, and the last two of them have the
	 * length of a packet. `seen` is NDX_PROVED_SMALL when the peer's first message has arrived,
	 * NDX_PROVED_WHOLE when its last has. Also called for an attempt that has failed.
	 */
	enum ndx_status (*conn_prove)(struct ndx_spi_conn *conn, uint64_t write, uint64_t expect,
	                              struct ndx_spi_proof *proof);
};

/**
 * A place in the automatic choice. The adapters of all providers with a place are tried, the
 * highest rank first: NDX_SPI_RANK_DEVICE, NDX_SPI_RANK_LAYERED and NDX_SPI_RANK_SOFTWARE are the
 * ranks of verbs, ofi:verbs and ofi:tcp. Of two equal ranks the name decides, in the order of the
 * alphabet.
 */
struct ndx_spi_rank {
	const char *device; /**< of the URI, "" if it has none; NULL ends the list */
	int32_t rank;       /**< 1 or more */
};

#define NDX_SPI_RANK_DEVICE 300   /**< drives a device itself */
#define NDX_SPI_RANK_LAYERED 200  /**< drives a device through another stack */
#define NDX_SPI_RANK_SOFTWARE 100 /**< needs no device that does RDMA */

/**
 * A provider. The core works with a copy, which lives as long as the adapters and lists made by
 * it: keep no pointer to what an operation gets as its provider. Later versions append members here
 * and in struct ndx_provider_ops; `size` and `ops_size` say what the provider's build has, so that
 * the core loads providers that are older and newer than itself, as long as `abi` is the same.
 * Operations that are missing at the end of the table are those that may be missing.
 */
struct ndx_provider {
	uint32_t abi;  /**< NDX_SPI_ABI of the provider's build; read before all else */
	uint32_t size; /**< sizeof(struct ndx_provider) */
	const char *name;
	const struct ndx_provider_ops *ops;
	size_t ops_size;                /**< sizeof(struct ndx_provider_ops) */
	const struct ndx_spi_key *keys; /**< options that it accepts; ends with a NULL name */
	const char *devices;            /**< for the user: "tcp, verbs" */
	void *state;                    /**< for the provider; NULL if it keeps none */
	/** NULL: the automatic choice never takes one of its adapters. */
	const struct ndx_spi_rank *ranks;
	/**
	 * Where the core stores its services before the first call: &ndxp_binding of the kit. NULL
	 * if the provider does without the kit.
	 */
	struct ndx_spi_binding *binding;
};

NDX_DECLS_BEGIN

/** The only export of a provider in a file of its own, ndx-provider-NAME.so. */
extern const struct ndx_provider ndx_provider;

NDX_DECLS_END

#endif
