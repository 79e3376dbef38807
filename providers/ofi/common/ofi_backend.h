/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between the providers of libfabric that NDX uses. Each has a constant table, in a
 * folder of its own. The code in this folder uses the table of its adapter, and never tests for a
 * provider's name.
 */
#ifndef OFI_OFI_BACKEND_H
#define OFI_OFI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/loop.h>
#include "ofi_wire.h"

struct fid_mr;
struct ofi_adapter;
struct ofi_link;
struct ofi_options;
struct ofi_qp;
struct ofi_rx;
struct ofi_tx;

/* The owner of a native completion. The address of this object is the operation's context. */
struct ofi_op {
	enum ofi_op_kind {
		OFI_OP_SILENT,
		OFI_OP_TX,
		OFI_OP_RX,
		OFI_OP_SHARED, /* a receive of a shared receive queue */
		OFI_OP_CTRL,
		OFI_OP_FIRST, /* a receive of the provider's, for the peer's first message */
		OFI_OP_PEEK,  /* of ofi:verbs: a read of the number of the peer's receives */
		OFI_OP_WANT,  /* of ofi:verbs: a receive of the provider's, for a WANT */
	} kind;
	uint8_t type; /* OFI_OP_CTRL: type of the control message */
	void *owner;  /* the queue pair, or the link */
};

/* ---- the members of ofi:verbs in shared structures ---- */

/* In a queue pair, guarded by its lock. */
struct ofi_verbs_qp {
	struct fid_mr *bounce; /* the buffers of inline requests */
	uint8_t *area;         /* the control region of the link; NULL: there is no link */
	void *desc;            /* ... and libfabric's descriptor of it */
	uint32_t arrived;      /* messages received in all */
	uint32_t used;         /* messages sent in all */
	bool leaving;          /* the peer has said goodbye, and takes no request that waits here */
	bool gone;             /* the peer has closed after its goodbye: nothing is submitted */
	bool peer_is_verbs;
	bool peeking;     /* the number of the peer's receives is being read */
	bool awaits_want; /* the receive for the peer's next WANT is posted */
};

/* How far this end has got in asking a peer on verbs, which has disconnected, for a sign of life.
 */
enum ofi_verbs_probe {
	OFI_VERBS_NOT_PROBED,
	OFI_VERBS_TOUCHED, /* a write that changes nothing is posted */
	OFI_VERBS_PAUSED,  /* the write was answered */
	OFI_VERBS_PROBED,  /* the write that lets the peer go is posted */
};

/* In a link, guarded by the ncq's lock. */
struct ofi_verbs_link {
	struct ndxp_timer watch;
	struct ofi_op ping_op;
	struct ofi_op hello_op;
	struct ofi_op peek_op;
	struct ofi_op want_op;
	uint32_t watch_ms;
	uint32_t seen_head;  /* index of the oldest request at the last check, ... */
	uint32_t silent_ms;  /* ... and for how long it has been that */
	bool introduced;     /* the peer's first message has come */
	bool goodbye_wanted; /* asked for before the first message came */
	bool goodbye_sent;
	bool leaving_sent; /* ... with the flag OFI_LEAVING */
	bool rung;
	uint64_t drain_until_ns; /* 0, or the limit for requests that did not end in time */
	uint64_t cut_ns;         /* 0, or when a link that the peer has closed is aborted */
	enum ofi_verbs_probe probe;
	uint64_t probe_ns; /* limit of the wait for the answer, or end of the pause */
};

/* ---- the table ---- */

struct ofi_backend {
	const char *device;       /* in the URI, and the name of libfabric's provider */
	const char *stack;        /* text that two adapters have to have in common */
	uint32_t shared_cq_since; /* first version of libfabric whose endpoints may share a native
	                             queue; UINT32_MAX: none */
	bool needs_trust;         /* it trusts what its peers send */
	bool over_tcp;            /* its connections are TCP connections of the kernel */
	bool answers_late;        /* a destroyed listener has to refuse requests on their way */
	bool skips_events; /* a read of its event queue may consume an event and report none */
	bool one_device; /* all its addresses belong to one device; other addresses do not reach its
	                    domain */
	bool one_event_queue; /* a request does not outlive the event queue that it came by */
	int backlog;          /* 0, or how many unread requests a listener may have */
	bool solicited;       /* a message says whether it is solicited */
	bool windows;
	bool proves;      /* the first messages of a connection are as long as a packet */
	bool tells_sizes; /* the receiver tells the lengths of its receives */
	bool neighbours;  /* it reports a new address of a neighbour as if the connection had timed
	                     out */
	/* Native code of a time-out that says: an answer came, and the peer took the answer back
	 * before this end had completed the connection. 0: none. */
	int taken_back;
	bool verbs_retries; /* a request in another protocol may be of verbs, which then uses this
	                     * one
	                     */
	bool asks_late;     /* a PING is possible only when the connection is established */
	/* A native queue's descriptor becomes readable also while its consumer polls. */
	bool tells_always;
	/* The device makes the keys, checks every access, and stops access when a region is
	 * closed. */
	bool native_keys;
	uint64_t transmit;  /* flags to bind the native queue for requests */
	uint32_t flush_ms;  /* how long requests may take to come back after a shutdown */
	uint32_t credit_ms; /* 0, or the period in which a sender without credits polls for them */
	uint32_t controls;  /* 0: native queues grow; else control completions in one */
	uint32_t max_transfer;  /* bytes of a request; libfabric may allow fewer */
	size_t max_caller_data; /* of the consumer's private data */
	size_t max_callee_data;
	uint64_t capabilities;

	/* ---- opening ---- */

	/* Fill the hints for libfabric. */
	void (*hint)(struct fi_info *hints);
	/* Does the description suffice? The call may change the description. */
	bool (*accept_info)(struct fi_info *info);
	/* Of the addresses that match the options choose those of one adapter; *info is that of the
	 * first. */
	enum ndx_status (*choose)(const struct ofi_options *options, struct sockaddr_storage *list,
	                          size_t *count, struct fi_info **info);
	/* Called before a domain is opened. May be NULL. */
	void (*prepare)(void);
	/* May the domain be used? May be NULL. */
	enum ndx_status (*check)(struct ofi_adapter *adapter);
	enum ndx_status (*list)(const struct ofi_options *defaults, ndx_spi_list_fn *each,
	                        void *arg);

	/* ---- connecting; control thread ---- */

	/* Returns the number of bytes in `out`, which has OFI_CM_SIZE. */
	size_t (*cm_encode)(const struct ofi_cm *cm, uint8_t *out);
	/* NULL: *cm is filled; otherwise a text that says why not. */
	const char *(*cm_decode)(const uint8_t *data, size_t len, enum ofi_cm_kind kind,
	                         struct ofi_cm *cm);
	/* Adapt `info` to the queue pair; may be NULL. */
	void (*adapt_info)(const struct ofi_qp *qp, struct fi_info *info);
	/* Both locks held: the link has its endpoint and no receives yet; may be NULL. */
	void (*attached)(struct ofi_link *link);
	/* The ncq's lock held: send READY; 0 or an errno. */
	int (*send_ready)(struct ofi_link *link);
	/* The ncq's lock held: send REJECT with its private data. */
	int (*send_reject)(struct ofi_link *link, const void *data, size_t len);
	/* The ncq's lock held: send a control message without a record; see ofi_link_send_ctrl().
	 */
	int (*send_ctrl)(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op);
	/* The ncq's lock held: the endpoint is connected. */
	void (*opened)(struct ofi_link *link);
	/* The ncq's lock held: the connection is established; may be NULL. */
	void (*up)(struct ofi_link *link);
	/* The ncq's lock held: the peer has closed the link; what it sent before has been read. */
	void (*peer_shutdown)(struct ofi_link *link);
	/* The ncq's lock held: requests did not end in time; NULL: the connection breaks. */
	void (*limit_requests)(struct ofi_link *link);
	/* The queue pair is closed after this end has said goodbye. */
	enum ndx_status (*detach)(struct ofi_link *link);

	/* ---- data; the queue pair's lock held ---- */

	/* Give a request to libfabric: 0 or an errno. */
	int (*submit)(struct ofi_qp *qp, struct ofi_tx *tx);
	/* Check for new credits; may be NULL. */
	void (*refresh)(struct ofi_qp *qp);
	/* The read of an OFI_OP_PEEK has ended; may be NULL. */
	void (*peeked)(struct ofi_qp *qp);
	/* Tell the peer of `fresh` new receives: 0 or an errno. */
	int (*send_credits)(struct ofi_qp *qp, uint32_t fresh);
	/* Tell the peer, whose receive queue is shared, how many messages wait: 0 or an errno. */
	int (*send_want)(struct ofi_qp *qp, uint16_t count);
	/* Messages that this end has sent since the connection began, modulo 2^16. */
	uint16_t (*count_sent)(const struct ofi_qp *qp);

	/* ---- completions; the ncq's lock held, the queue pair's not ---- */

	void (*received)(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e);
	/* The same for a receive of a shared receive queue; NULL without those. */
	void (*received_shared)(struct ofi_qp *qp, struct ofi_rx *rx,
	                        const struct fi_cq_data_entry *e);
	/* The same for the receive of a WANT, and the failure of that receive; may be NULL. */
	void (*wanted)(struct ofi_qp *qp, const struct fi_cq_data_entry *e);
	void (*want_failed)(struct ofi_qp *qp, int err);
	/* The peer's first message; may be NULL. */
	void (*first)(struct ofi_link *link, const struct fi_cq_data_entry *e);
	/* An errno for ofi_request_status(). */
	int (*error_of)(const struct fi_cq_err_entry *e);
};

extern const struct ofi_backend ofi_tcp;
extern const struct ofi_backend ofi_verbs;

#endif
