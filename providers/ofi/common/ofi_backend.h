/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between libfabric's providers. One constant table for each, in a folder of its
 * own; this folder asks the table of its adapter, and no provider's name.
 */
#ifndef OFI_OFI_BACKEND_H
#define OFI_OFI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <ndx/spi/provider.h>

#include "base_loop.h"
#include "ofi_wire.h"

struct fid_mr;
struct ofi_adapter;
struct ofi_link;
struct ofi_options;
struct ofi_qp;
struct ofi_rx;
struct ofi_tx;

/* What a native completion belongs to. Its address is the operation's context. */
struct ofi_op {
	enum ofi_op_kind {
		OFI_OP_SILENT,
		OFI_OP_TX,
		OFI_OP_RX,
		OFI_OP_WORD,
		OFI_OP_FIRST, /* a receive of our own, for the peer's first message */
	} kind;
	uint8_t word; /* OFI_OP_WORD: its type */
	void *owner;  /* queue pair, or link */
};

/* ---- what ofi:verbs keeps in what all have ---- */

/* In a queue pair, under its lock. */
struct ofi_verbs_qp {
	struct fid_mr *bounce; /* the buffers of inline requests */
	uint8_t *area;         /* the link's; NULL: there is none */
	void *desc;            /* ... and its descriptor */
	uint32_t told;         /* receives that the peer was told of, ever, ... */
	uint32_t arrived;      /* ... and messages that came */
	uint32_t used;         /* messages that went to the peer, ever */
	bool leaving;          /* the peer has said goodbye, and takes nothing that waits here */
	bool gone;             /* it has closed after its goodbye: nothing is handed over */
};

/* In a link, under the ncq's lock. */
struct ofi_verbs_link {
	struct base_timer watch;
	struct ofi_op ping_op;
	uint32_t watch_ms;
	uint32_t seen_head;  /* the oldest request at the last look, ... */
	uint32_t silent_ms;  /* ... and since when it is that */
	bool introduced;     /* the peer's first message came */
	bool goodbye_wanted; /* before that */
	bool goodbye_said;
	bool leaving_said; /* ... and that we are leaving */
	bool rung;
	uint64_t drain_until_ns; /* 0, or when requests that should have ended must have */
};

/* ---- the table ---- */

struct ofi_flavour {
	const char *device;       /* in the URI; libfabric's name of the provider */
	const char *stack;        /* what two adapters must have in common */
	uint32_t shared_cq_since; /* libfabric from which endpoints may share a native queue;
	                             UINT32_MAX: never */
	bool needs_trust;         /* it believes what its peers send */
	bool over_tcp;            /* its connections are the kernel's, which can be asked of them */
	bool answers_late;        /* a listener that goes has to refuse what is on its way */
	bool skips_events;        /* a look at its event queue may find an event and tell of none */
	bool one_device;      /* all its addresses are a device's; others do not reach its domain */
	bool one_event_queue; /* a request does not outlive the event queue that it came by */
	int backlog;          /* 0, or how many requests a listener may have that nobody read */
	bool solicited;       /* a message says whether it is to wake */
	bool windows;
	bool neighbours; /* that one has another address now is told as if it timed out */
	bool asks_late;  /* a peer can be asked for a sign of life when the connection is up only */
	/* A native queue's descriptor tells of completions also while its consumer polls. */
	bool tells_always;
	/* The stack makes the keys, checks every access, and stops it when a region is closed. */
	bool native_keys;
	uint64_t transmit;      /* flags with which an endpoint's requests are bound to them */
	uint32_t flush_ms;      /* how long requests may take to come back from a shutdown */
	uint32_t credit_ms;     /* 0, or how often who waits for credits has to look for them */
	uint32_t controls;      /* 0: native queues grow; else completions of our own in one */
	uint32_t max_transfer;  /* bytes of a request; the stack may allow less */
	size_t max_caller_data; /* of the consumer's */
	size_t max_callee_data;
	uint64_t capabilities;

	/* ---- opening ---- */

	/* What to ask libfabric for. */
	void (*hint)(struct fi_info *hints);
	/* Is it enough? It may be changed for good. */
	bool (*accept_info)(struct fi_info *info);
	/* Of the addresses that the options leave, those of one adapter: *info is of the first. */
	enum ndx_status (*choose)(const struct ofi_options *options, struct sockaddr_storage *list,
	                          size_t *count, struct fi_info **info);
	/* May the domain be used? May be NULL. */
	enum ndx_status (*check)(struct ofi_adapter *adapter);
	enum ndx_status (*list)(const struct ofi_options *defaults, ndx_spi_list_fn *each,
	                        void *arg);

	/* ---- connecting; control thread ---- */

	/* Returns the number of bytes in `out`, which has OFI_CM_SIZE. */
	size_t (*cm_encode)(const struct ofi_cm *cm, uint8_t *out);
	/* NULL: *cm is filled; otherwise why not, for people. */
	const char *(*cm_decode)(const uint8_t *data, size_t len, enum ofi_cm_kind kind,
	                         struct ofi_cm *cm);
	/* What the endpoint of a queue pair needs; may be NULL. */
	void (*fit)(const struct ofi_qp *qp, struct fi_info *info);
	/* Both locks held, before receives are handed over: the link has its endpoint; may be
	 * NULL. */
	void (*attached)(struct ofi_link *link);
	/* The ncq's lock held: READY; 0 or an errno. */
	int (*say_ready)(struct ofi_link *link);
	/* The same: REJECT with its data. */
	int (*say_reject)(struct ofi_link *link, const void *data, size_t len);
	/* The same: a word without a record; see ofi_link_say(). */
	int (*say)(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op);
	/* The ncq's lock held: the endpoint is connected. */
	void (*opened)(struct ofi_link *link);
	/* The same: it has come up; may be NULL. */
	void (*up)(struct ofi_link *link);
	/* The same: the peer has closed it; what came before was read. */
	void (*shut)(struct ofi_link *link);
	/* The same: requests that the stack has did not end in time; NULL: that is the end. */
	void (*hurry)(struct ofi_link *link);
	/* The queue pair goes, our goodbye has begun. */
	enum ndx_status (*detach)(struct ofi_link *link);

	/* ---- data; the queue pair's lock held ---- */

	/* Hand a request to the stack: 0 or an errno. */
	int (*hand_over)(struct ofi_qp *qp, struct ofi_tx *tx);
	/* Look whether there are credits by now; may be NULL. */
	void (*refresh)(struct ofi_qp *qp);
	/* Tell the peer of so many new receives: 0 or an errno. */
	int (*tell)(struct ofi_qp *qp, uint32_t fresh);

	/* ---- completions; the ncq's lock held, the queue pair's not ---- */

	void (*received)(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e);
	/* What the peer's first message brings; may be NULL. */
	void (*first)(struct ofi_link *link, const struct fi_cq_data_entry *e);
	/* An errno for ofi_request_status(). */
	int (*error_of)(const struct fi_cq_err_entry *e);
};

extern const struct ofi_flavour ofi_tcp;
extern const struct ofi_flavour ofi_verbs;

#endif
