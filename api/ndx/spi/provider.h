/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What a provider owes the core, and what it may count on.
 *
 * The core checks every argument of the control path before it calls an operation: pointers are
 * valid, lengths and flags in range, objects of the same adapter, states right. A provider asserts,
 * it does not check again. Data-path calls (ndx_qp_ops, ndx_cq_ops, ndx_srq_ops) come straight from
 * the application; the provider admits them.
 *
 * Threads. Every adapter has a lock of the core's and a control thread with an event loop.
 * Operations marked [C] run on the control thread, with the adapter lock held; those marked [L] on
 * any thread with the lock held; the others on any thread without it. No operation may block for
 * longer than a few milliseconds. Descriptors, timers and jobs of the loop run on the control
 * thread without the adapter lock.
 *
 * Upcalls (struct ndx_host) may be made from any thread and under any lock of the provider's, also
 * from inside an operation: they record and wake, they never call back. After `conn_destroy`,
 * `listener_destroy` and so on no upcall for the object may be made.
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

#define NDX_SPI_ABI 4u

/** Longest private data any provider hands up. */
#define NDX_SPI_PRIVATE_DATA_MAX 256u

struct ndx_host;
struct ndx_loop; /* the control thread's event loop; core/async/base_loop.h */
struct ndx_provider;

/** Head of a provider's adapter. */
struct ndx_spi_adapter {
	const struct ndx_provider
		*provider; /* set by the core, as all of this, before adapter_open */
	const struct ndx_host *host;
	struct ndx_adapter *front;
	struct ndx_loop *loop;
	/** The provider's: what a peer's adapter must have in common, "ofi:tcp"; 15 characters at
	 * most. NULL: the provider's name. */
	const char *stack;
};

/** What the core keeps in every object that has a public handle. */
struct ndx_spi_object {
	struct ndx_adapter *adapter;
	struct ndx_spi_adapter *native;
	unsigned refs; /* under the adapter lock, as all below */
	uint32_t id;   /* its number among those of its kind, for log and counters; constant */
	struct ndx_spi_object *next;
	struct ndx_spi_object **link; /* what points to it */
};

/** Head of a provider's completion queue. `pub.ops` is set by the provider in cq_create. */
struct ndx_spi_cq {
	struct ndx_cq pub;
	struct ndx_spi_object object;
	uint32_t depth; /* as asked for, or resized to */
};

/** Head of a provider's shared receive queue. */
struct ndx_spi_srq {
	struct ndx_srq pub;
	struct ndx_spi_object object;
};

/** Head of a provider's memory region. The provider sets the tokens. */
struct ndx_spi_mr {
	struct ndx_spi_object object;
	bool registered; /* the core's */
	bool busy;       /* the core's: a register or deregister is in flight */
	uint32_t local_token;
	uint32_t remote_token;
};

/** Head of a provider's memory window. */
struct ndx_spi_mw {
	struct ndx_spi_object object;
	uint32_t remote_token;
};

/** Head of a provider's queue pair. `attr` holds what was granted. */
struct ndx_spi_qp {
	struct ndx_qp pub;
	struct ndx_spi_object object;
	struct ndx_qp_attr attr;
	struct ndx_connector *connector; /* the core's: whose queue pair this is, under the lock */
	bool spent;                      /* the core's: was connected, cannot connect again */
	uint32_t connector_id;           /* the core's: of the latest attempt; 0: none yet */
};

/** Head of a provider's part of a connector. The provider keeps the addresses up to date. */
struct ndx_spi_conn {
	struct ndx_connector *front;
	struct ndx_spi_adapter *native;
	struct ndx_spi_qp *qp; /* the core's: NULL before connect/accept and after conn_detach */
	struct sockaddr_storage local; /* AF_UNSPEC while unknown */
	struct sockaddr_storage peer;
	uint32_t inbound_read_limit; /* the core's: as agreed, set before conn_accept/conn_complete
	                              */
	uint32_t outbound_read_limit;
};

/** Head of a provider's listener. */
struct ndx_spi_listener {
	struct ndx_listener *front;
	struct ndx_spi_adapter *native;
	struct sockaddr_storage local; /* valid once listening */
};

/** What each side tells the other while connecting. Read limits are the sender's own wishes. */
struct ndx_spi_params {
	uint32_t inbound_read_limit;
	uint32_t outbound_read_limit;
	size_t private_data_len;
	uint8_t private_data[NDX_SPI_PRIVATE_DATA_MAX];
};

/** A connection request that came in, made by the provider and handed to ndx_host.request. */
struct ndx_spi_request {
	struct ndx_spi_listener *listener;
	struct ndx_spi_params params; /* the active side's */
	struct sockaddr_storage local;
	struct sockaddr_storage peer;
	struct ndx_spi_adapter *native; /* the core's: the listener's, also when that is gone */
	struct ndx_spi_request *next;   /* the core's */
};

/** What a provider reports of an established connection; bits, each may be reported again. */
enum ndx_spi_report {
	NDX_REPORT_PEER_DISC =
		1 << 0, /**< the peer's goodbye arrived; all that came before is done */
	NDX_REPORT_DISC_ACKED = 1 << 1, /**< the own goodbye was delivered */
	NDX_REPORT_DRAINED = 1 << 2,    /**< asked by conn_drain: own requests have ended */
	NDX_REPORT_ABORT = 1 << 3,      /**< the connection is lost or broken; before any result
	                                that this cancels can be taken */
	NDX_REPORT_QUIET = 1 << 4, /**< asked by conn_finish/conn_abort: nothing moves any more and
	                                every result is visible */
};

/** What the two ends of a connection that has no connection manager tell each other over the
 * channel that the core keeps for it. */
enum ndx_spi_word {
	NDX_WORD_GOODBYE, /**< all that the sender has sent is there; it will send nothing more */
	NDX_WORD_ABORT,   /**< the connection is broken */
	NDX_WORD_LOST,    /**< heard only: the channel has ended without a word */
};

/** Services and upcalls of the core. */
struct ndx_host {
	uint32_t abi; /* NDX_SPI_ABI of the core */
	/** Complete an overlapped operation that the provider kept (it returned NDX_PENDING). */
	void (*complete)(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
	                 int32_t native);
	/** A connection request; the core owns @p request until it passes it back. */
	void (*request)(struct ndx_spi_request *request);
	/**
	 * The peer answered conn_connect: NDX_OK with its @p params, or how the attempt failed
	 * (with a reject's private data in @p params, NULL if none).
	 */
	void (*connected)(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
	                  const struct ndx_spi_params *params);
	/**
	 * conn_complete or conn_accept ended: the connection is up, or how it failed. From NDX_OK
	 * on the queue pair takes posts. Also: the peer gave up while the consumer still thinks
	 * (after `connected`, or after `request` was taken). @p params are the private data of an
	 * active side that refuses what was accepted; NULL in all other cases.
	 */
	void (*established)(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
	                    const struct ndx_spi_params *params);
	/**
	 * Bits of enum ndx_spi_report; @p cause for the log if ABORT, a string constant. Without
	 * bits: why the failure comes that `connected` or `established` is about to tell.
	 */
	void (*report)(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause);
	/** Tell the peer, over the channel of a connection made by qp_connect_peer. The core
	 * reports NDX_REPORT_DISC_ACKED when a goodbye has gone out. */
	void (*say)(struct ndx_spi_conn *conn, enum ndx_spi_word word);
	/** No request will come any more: who waits for one, or will, fails with @p status. */
	void (*listener_failed)(struct ndx_spi_listener *listener, enum ndx_status status,
	                        int32_t native);
};

/** One KEY=VALUE of an adapter URI or of the provider's INI section. */
struct ndx_spi_option {
	const char *key;
	const char *value;
	const char *origin; /**< "URI", "$NDX_ADAPTER" or "file.ini:12", for messages */
};

/** What an adapter is to be opened with. */
struct ndx_spi_open {
	const char *device; /**< part of the URI between ':' and '?'; "" if none */
	const struct ndx_spi_option *options;
	size_t option_count;
};

/** Name of a key that stands for any other: the provider checks them itself in adapter_open. */
#define NDX_SPI_KEY_ANY "*"

/** A key that a provider takes, for checking and for spelling suggestions. */
struct ndx_spi_key {
	const char *name;
	const char *values; /**< for people: "network interface", "lan|none" */
};

/** Receives one entry of an enumeration; state, hint and device are the provider's. */
typedef void ndx_spi_list_fn(void *arg, const struct ndx_adapter_entry *entry);

/** Receives one counter; @p name is a string constant in lower_case. */
typedef void ndx_spi_counter_fn(void *arg, const char *name, uint64_t value);

/**
 * Operations. `must`: never NULL. `may`: NULL means NDX_E_NOT_SUPPORTED, answered by the core, and
 * the capability bit is off. *_create allocate the object, whose head the core fills afterwards
 * (but for what is said to be the provider's); `untouched on failure` holds for every out
 * parameter.
 */
struct ndx_provider_ops {
	/* must: adapter */
	/** @p defaults: the options that every open gets, from the INI file; no device. */
	enum ndx_status (*list)(const struct ndx_provider *self,
	                        const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
	                        void *arg);
	/** @p head is copied into the new adapter's head by the provider.. */
	enum ndx_status (*adapter_open)(const struct ndx_spi_adapter *head,
	                                const struct ndx_spi_open *how,
	                                struct ndx_spi_adapter **out);
	/** All objects are gone. Control thread is still there. */
	void (*adapter_close)(struct ndx_spi_adapter *adapter);
	/** Fill everything but size and provider. */
	void (*adapter_query)(struct ndx_spi_adapter *adapter, struct ndx_adapter_info *info);
	/** Addresses, port 0; returns how many there are, fills at most @p room. */
	size_t (*adapter_addresses)(struct ndx_spi_adapter *adapter, struct sockaddr_storage *list,
	                            size_t room);

	/* must: completion queues */
	enum ndx_status (*cq_create)(struct ndx_spi_adapter *adapter, uint32_t depth,
	                             uint64_t affinity, struct ndx_spi_cq **out);
	/** Last reference is gone; queue pairs too. */
	void (*cq_destroy)(struct ndx_spi_cq *cq);
	/** As ndx_cq_notify(); the core has begun @p ov. Returns NDX_PENDING (kept), or a failure.
	 */
	enum ndx_status (*cq_notify)(struct ndx_spi_cq *cq, enum ndx_cq_notify_type type,
	                             struct ndx_overlapped *ov);
	/** Complete kept notifications with @p status, in order, before it returns. */
	void (*cq_cancel)(struct ndx_spi_cq *cq, enum ndx_status status);
	enum ndx_status (*cq_get_fd)(struct ndx_spi_cq *cq, int *fd);
	/* may */
	/** Raise the descriptor of cq_get_fd, or lower it; NULL: it is an eventfd of its own. */
	void (*cq_wake)(struct ndx_spi_cq *cq, bool up);
	enum ndx_status (*cq_resize)(struct ndx_spi_cq *cq, uint32_t depth);
	enum ndx_status (*cq_affinity)(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity);

	/* must: memory regions */
	enum ndx_status (*mr_create)(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
	/** Not registered any more. */
	void (*mr_destroy)(struct ndx_spi_mr *mr);
	/**
	 * Returns the outcome, or NDX_PENDING and completes @p ov later through ndx_host.complete.
	 * @p ov is NULL when the core deregisters for mr_close: then it must not return
	 * NDX_PENDING, and windows that are bound are invalidated, not refused.
	 */
	enum ndx_status (*mr_register)(struct ndx_spi_mr *mr, void *buffer, size_t length,
	                               uint32_t flags, struct ndx_overlapped *ov);
	enum ndx_status (*mr_deregister)(struct ndx_spi_mr *mr, struct ndx_overlapped *ov);
	/**
	 * may; for providers whose mr_register or mr_deregister returns NDX_PENDING, who have to
	 * have it: ndx_mr_cancel() counts on it. Returns when no such operation is going on any
	 * more; its ov was completed before, with the outcome it has, not NDX_E_CANCELED. Must
	 * return within seconds whatever peers do, and may be called on the control thread too, so
	 * it drives there what it waits for. Called without the lock, beside register and
	 * deregister of other regions, also when nothing is going on.
	 */
	void (*mr_settle)(struct ndx_spi_mr *mr);

	/* may: memory windows, both or neither (bind and invalidate are in ndx_qp_ops) */
	enum ndx_status (*mw_create)(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out);
	void (*mw_destroy)(struct ndx_spi_mw *mw);

	/* may: shared receive queues, all or none; srq_affinity with NDX_CAP_NOTIFY_AFFINITY */
	enum ndx_status (*srq_create)(struct ndx_spi_adapter *adapter, uint32_t depth,
	                              uint32_t max_sge, uint32_t threshold, uint64_t affinity,
	                              struct ndx_spi_srq **out);
	void (*srq_destroy)(struct ndx_spi_srq *srq);
	enum ndx_status (*srq_modify)(struct ndx_spi_srq *srq, uint32_t depth, uint32_t threshold);
	enum ndx_status (*srq_notify)(struct ndx_spi_srq *srq, struct ndx_overlapped *ov);
	void (*srq_cancel)(struct ndx_spi_srq *srq, enum ndx_status status);
	enum ndx_status (*srq_affinity)(struct ndx_spi_srq *srq, uint16_t *group,
	                                uint64_t *affinity);

	/* must: queue pairs */
	/** @p attr was checked; the provider copies it to the head's `attr` with what it grants. */
	enum ndx_status (*qp_create)(struct ndx_spi_adapter *adapter,
	                             const struct ndx_qp_attr *attr, struct ndx_spi_qp **out);
	/**
	 * [C] or the closing thread, lock not held. Not connected any more (conn_detach or QUIET
	 * was before). Receives still there complete NDX_E_CANCELED; results stay in the queues.
	 */
	void (*qp_destroy)(struct ndx_spi_qp *qp);
	/** [L] Flush of an unconnected queue pair: receives complete NDX_E_CANCELED. */
	void (*qp_cancel)(struct ndx_spi_qp *qp);

	/* must: connecting. conn->qp is set by the core before connect and accept. */
	enum ndx_status (*conn_create)(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
	                               struct ndx_spi_conn **out); /* [L] */
	void (*conn_destroy)(struct ndx_spi_conn *conn);           /* [C] */
	enum ndx_status (*conn_bind)(struct ndx_spi_conn *conn, const struct sockaddr *address,
	                             socklen_t len); /* [L] */
	/** [C] NDX_OK: ndx_host.connected follows. Failure: it does not, nothing is left behind. */
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
	/** [C] Passive: refuse the request. Active: refuse the answer. Then as conn_abandon. */
	enum ndx_status (*conn_reject)(struct ndx_spi_conn *conn, const void *private_data,
	                               size_t len);
	/**
	 * [C] Give up an attempt in any state before established, also after it failed. When it
	 * returns the queue pair is as before the attempt, and the conn may connect again.
	 */
	void (*conn_abandon)(struct ndx_spi_conn *conn);

	/*
	 * must: mechanics of the end; [C]; what they ask for is reported through ndx_host.report.
	 * What is there already when the call returns - nothing is under way: DRAINED; all is
	 * quiet: QUIET - must be reported from inside it. In a callback of the application's nobody
	 * else drives the provider, and the core then waits for nothing: a close there parts
	 * gracefully only if conn_drain has said so, and is over only if conn_abort and conn_finish
	 * have.
	 */
	/** Own requests run to their end; posts from now on complete NDX_E_CANCELED, in order. */
	void (*conn_drain)(struct ndx_spi_conn *conn);
	/** Cancel own requests that have not ended; -> DRAINED, or ABORT if that cannot be done. */
	void (*conn_cancel_initiator)(struct ndx_spi_conn *conn);
	/** Say goodbye; -> DISC_ACKED. The queue pair stays usable to the peer. */
	void (*conn_send_disc)(struct ndx_spi_conn *conn);
	/** Both goodbyes are there: cancel receives, close; -> QUIET. */
	void (*conn_finish)(struct ndx_spi_conn *conn);
	/** Cancel everything now, tell the peer if possible; -> QUIET. */
	void (*conn_abort)(struct ndx_spi_conn *conn);
	/**
	 * The queue pair is being closed after conn_send_disc: cancel its receives so that its
	 * memory is not touched again; the goodbye goes on without it. NDX_PENDING: not yet, the
	 * two sides still need it; the core asks again until that is over. The limit is the core's:
	 * two seconds, in a callback none at all. Then, and on any failure, it aborts.
	 */
	enum ndx_status (*conn_detach)(struct ndx_spi_conn *conn);

	/*
	 * may, all or none: connections without a connection manager. Without them the core has the
	 * two ends meet by the ordinary calls above.
	 */
	/**
	 * [C] Describe the end that conn->qp is to be: kind, and what that kind has. @p near: the
	 * own address by which the peer is reached, AF_UNSPEC if that is not known; the conn may be
	 * bound, too. out->psn is the wanted one, or NDX_PSN_RANDOM. Failure: nothing is left
	 * behind. Otherwise until conn_abandon or the end.
	 */
	enum ndx_status (*qp_describe)(struct ndx_spi_conn *conn,
	                               const struct sockaddr_storage *near,
	                               struct ndx_peer_description *out);
	/**
	 * [C] Connect conn->qp to @p peer, which was checked and goes together with the own end:
	 * from now on it takes what the peer sends. Then conn_complete, when the peer does so, too;
	 * in between conn_abandon. Failure: the text says what the matter is.
	 */
	enum ndx_status (*qp_connect_peer)(struct ndx_spi_conn *conn,
	                                   const struct ndx_peer_description *peer);
	/** [C] What the peer said, once the connection is up; also more than once. */
	void (*conn_heard)(struct ndx_spi_conn *conn, enum ndx_spi_word word);

	/* must: listening */
	enum ndx_status (*listener_create)(struct ndx_spi_adapter *adapter,
	                                   struct ndx_listener *front,
	                                   struct ndx_spi_listener **out); /* [L] */
	void (*listener_destroy)(struct ndx_spi_listener *listener);       /* [C] */
	enum ndx_status (*listener_bind)(struct ndx_spi_listener *listener,
	                                 const struct sockaddr *address, socklen_t len); /* [L] */
	enum ndx_status (*listener_listen)(struct ndx_spi_listener *listener,
	                                   uint32_t backlog); /* [C] */
	/** [C] Refuse a request that nobody took, and free it. Also after the listener is gone. */
	void (*request_refuse)(struct ndx_spi_request *request);
	/** [C] may; has the active side given up a request that nobody took? It then need not keep
	 * others out of a backlog. */
	bool (*request_is_stale)(const struct ndx_spi_request *request);

	/* may: counters */
	/** [L] Fill the counters of struct ndx_qp_stats: from `initiator` on. */
	void (*qp_get_stats)(struct ndx_spi_qp *qp, struct ndx_qp_stats *stats);
	/** [L] Fill all but size and id. */
	void (*cq_get_stats)(struct ndx_spi_cq *cq, struct ndx_cq_stats *stats);
	/** [L] The provider's own counters: of @p qp, or of the adapter if that is NULL. */
	void (*get_counters)(struct ndx_spi_adapter *adapter, struct ndx_spi_qp *qp,
	                     ndx_spi_counter_fn *each, void *arg);
};

/** A provider. Constant for the life of the process. */
struct ndx_provider {
	uint32_t abi; /**< NDX_SPI_ABI it was built with; read before anything else */
	const char *name;
	const struct ndx_provider_ops *ops;
	const struct ndx_spi_key *keys; /**< option names, ends with a NULL name */
	const char *devices;            /**< for people: "tcp, verbs" */
	void *state;                    /**< the provider's own; NULL if it keeps none */
};

NDX_DECLS_BEGIN

/** What a provider that is a file of its own, ndx-provider-NAME.so, exports; nothing else. */
extern const struct ndx_provider ndx_provider;

NDX_DECLS_END

#endif
