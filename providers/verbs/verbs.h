/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider over libibverbs and librdmacm. Queue pairs are our own (rdma_cm_id.qp stays NULL),
 * so that nobody but us moves them: librdmacm would take one to ERR on a disconnect or a reject.
 *
 * Connection state belongs to the control thread. Locks, in order: adapter lock (core's) ->
 * verbs_adapter.lock -> verbs_cq.poll_lock -> base_qp.lock -> base_cq.lock -> core's leaf locks.
 *
 * A request's native completion names its record by address (wr_id). So a record may go only when
 * the native queue pair is gone or reset and the native queues were polled dry after that.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <ndx/spi/provider.h>

#include "base_container_of.h"
#include "base_cq.h"
#include "base_list.h"
#include "base_lock.h"
#include "base_loop.h"
#include "base_ov.h"
#include "base_qp.h"

#define VERBS_MAX_SGE 16u
#define VERBS_MAX_INLINE 512u
#define VERBS_MAX_TRANSFER (UINT32_C(1) << 30)
#define VERBS_MAX_DEPTH 16384u
#define VERBS_MAX_CQ_DEPTH (UINT32_C(1) << 20)
#define VERBS_BATCH 16

/* ---- the adapter ---- */

struct verbs_options {
	char device[64]; /* "": the first that is active */
	unsigned port;   /* 0: the first that is active */
	int gid;         /* -1: all addresses of the port */
};

/* What software RoCE counts for the whole device. */
enum verbs_counter {
	VERBS_PACKETS,   /* received */
	VERBS_NOT_READY, /* ... that say that the peer has no receive yet */
	VERBS_COUNTERS
};

struct verbs_adapter {
	struct ndx_spi_adapter spi;
	struct verbs_options options; /* resolved: device and port are known */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct rdma_event_channel *cm;
	struct base_watch completions_watch;
	struct base_watch cm_watch;
	struct base_watch async_watch;
	struct base_timer tick; /* looks at queues that a consumer polls, ... */
	uint32_t tick_ms;       /* ... so long after the last time */
	struct ibv_device_attr attr;
	uint32_t max_transfer;
	uint32_t max_inline;
	uint32_t max_depth;
	uint32_t max_sge;
	struct sockaddr_storage *addresses;
	size_t address_count;
	bool ethernet;                   /* RoCE */
	bool soft_roce;                  /* rdma_rxe: see verbs_watch.c and verbs_list_is_good() */
	int counter_fds[VERBS_COUNTERS]; /* -1: the device does not count that */
	struct base_lock lock;           /* of cqs */
	struct base_list cqs;
	struct base_lock regions_lock; /* a leaf */
	struct base_list regions;
	struct base_lock windows_lock; /* a leaf, too */
	struct base_list windows;
	bool has_windows;            /* of type 2 */
	uint32_t max_shared;         /* depth of a shared receive queue; 0: there are none */
	struct base_list conns;      /* the control thread's own */
	struct base_list listeners;  /* likewise: those that listen */
	struct base_list mailboxes;  /* likewise: regions of them */
	struct base_timer port_down; /* connections end when it has been down for so long */
	bool removed;                /* the device has failed, or is gone; atomic */
	struct base_job last;
};

static inline struct verbs_adapter *verbs_adapter_of(struct ndx_spi_adapter *adapter)
{
	return (struct verbs_adapter *)(void *)adapter;
}

static inline const struct ndx_host *verbs_host(const struct verbs_adapter *adapter)
{
	return adapter->spi.host;
}

/* ---- error codes (verbs_status.c) ---- */

/* For errno values of rdma_cm and of verbs calls. */
enum ndx_status verbs_status_of(int err);
/* NDX_E_DEVICE_REMOVED if it is no more. */
enum ndx_status verbs_is_there(const struct verbs_adapter *adapter, const char *call);
/* What it means that the device refused to make something. */
enum ndx_status verbs_refusal(const struct verbs_adapter *adapter, int err);

/* ---- counters of software RoCE (verbs_counters.c) ---- */

void verbs_counters_open(struct verbs_adapter *adapter); /* its limits are known */
void verbs_counters_close(struct verbs_adapter *adapter);
/* 0: not known. */
uint64_t verbs_counters_read(const struct verbs_adapter *adapter, enum verbs_counter which);

/* ---- devices (verbs_device.c) and adapters (verbs_adapter.c) ---- */

extern const struct ndx_spi_key verbs_keys[];

enum ndx_status verbs_parse_options(const struct ndx_spi_open *how, struct verbs_options *out);
/* Open the device that the options mean; they are completed. */
enum ndx_status verbs_device_open(struct verbs_options *options, struct ibv_context **out);
/*
 * The addresses that rdma_cm serves by a port of the device. None, and NDX_OK: the port can have
 * connections that are described by numbers. The list is the caller's to free, if this succeeds.
 */
enum ndx_status verbs_find_addresses(const struct verbs_options *options,
                                     struct ibv_context *context, struct sockaddr_storage **list,
                                     size_t *count);
enum ndx_status verbs_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                           ndx_spi_list_fn *each, void *arg);
void verbs_describe(const struct verbs_adapter *adapter, struct ndx_adapter_info *info);
/* Does this rdma_cm_id, which is bound, belong to the adapter? */
bool verbs_serves(const struct verbs_adapter *adapter, const struct rdma_cm_id *id);

enum ndx_status verbs_adapter_open(const struct ndx_spi_adapter *head,
                                   const struct ndx_spi_open *how, struct ndx_spi_adapter **out);
void verbs_adapter_close(struct ndx_spi_adapter *spi);
void verbs_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info);
size_t verbs_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                               size_t room);

/* ---- completion queues (verbs_cq.c) ---- */

/* What for is it armed? The control thread reads when the event comes, or now and then. */
enum verbs_cq_mode {
	VERBS_CQ_AWAY,      /* nothing: a consumer polls */
	VERBS_CQ_SOLICITED, /* solicited receives, and failures */
	VERBS_CQ_ARMED,     /* all */
};

struct verbs_cq {
	struct base_cq base;
	struct verbs_adapter *adapter;
	struct ibv_cq *native;
	struct base_lock poll_lock; /* who holds it hands on what it reads, in order */
	uint32_t room;              /* entries that attached queue pairs may need */
	uint32_t mode;              /* enum verbs_cq_mode; atomic, changed under poll_lock */
	uint32_t watchers;          /* who waits for successes; atomic */
	uint32_t seen_polls;
	struct base_list node; /* in verbs_adapter.cqs */
};

static inline struct verbs_cq *verbs_cq_of(struct ndx_cq *cq)
{
	return (struct verbs_cq *)(void *)cq;
}

enum ndx_status verbs_cq_create(struct ndx_spi_adapter *spi, uint32_t depth, uint64_t affinity,
                                struct ndx_spi_cq **out);
void verbs_cq_destroy(struct ndx_spi_cq *spi);
enum ndx_status verbs_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                                struct ndx_overlapped *ov);
/* Make room for so many completions more, or less. */
enum ndx_status verbs_cq_reserve(struct verbs_cq *cq, uint32_t entries);
void verbs_cq_unreserve(struct verbs_cq *cq, uint32_t entries);
/* Read what there is and hand it on; the second waits for whoever is at it. */
void verbs_cq_try_poll(struct verbs_cq *cq);
void verbs_cq_poll(struct verbs_cq *cq);
/* Somebody waits for successes, too, or does not any more; counted. */
void verbs_cq_watch(struct verbs_cq *cq, bool on);
/* The control thread's, of a queue that it watches: the next completion is read at once unless a
 * consumer polls by then. Who polled until now may well wait for what we are about to do. */
void verbs_cq_attend(struct verbs_cq *cq);
void verbs_cq_on_event(void *arg, uint32_t events);
void verbs_cq_on_tick(void *arg);

/* ---- memory (verbs_mr.c) ---- */

struct verbs_mr {
	struct ndx_spi_mr spi;
	struct verbs_adapter *adapter;
	struct ibv_mr *native;
	bool writable;
	struct base_list node; /* in verbs_adapter.regions */
};

/* May the device read, or write to, all pieces of the list? Its completions do not always tell. */
bool verbs_list_is_good(struct verbs_adapter *adapter, const struct ndx_sge *sge, size_t count,
                        bool write);

enum ndx_status verbs_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void verbs_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status verbs_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                  uint32_t flags, struct ndx_overlapped *ov);
enum ndx_status verbs_mr_deregister(struct ndx_spi_mr *spi, struct ndx_overlapped *ov);

/* ---- memory windows (verbs_mw.c), bound and invalidated (verbs_bind.c) ---- */

struct verbs_qp;
struct verbs_req;
/* All but the head is under windows_lock. */
struct verbs_mw {
	struct ndx_spi_mw spi;
	struct verbs_adapter *adapter;
	struct ibv_mw *native; /* its rkey is the one that the device will have */
	struct verbs_qp *qp;   /* of the latest bind */
	struct verbs_mr *mr;
	uint32_t key;     /* the one that the device has for sure */
	uint32_t pending; /* binds and invalidates that have not ended */
	bool bound;
	bool planned;          /* bound when all that is posted has run */
	bool closed;           /* goes with the last that is pending */
	struct base_list node; /* in verbs_adapter.windows */
};

enum ndx_status verbs_mw_create(struct ndx_spi_adapter *spi, struct ndx_spi_mw **out);
void verbs_mw_destroy(struct ndx_spi_mw *spi);
enum ndx_status verbs_qp_bind(struct ndx_qp *pub, void *context, struct ndx_mr *mr_front,
                              struct ndx_mw *mw_front, void *buffer, size_t length, uint32_t flags);
enum ndx_status verbs_qp_invalidate(struct ndx_qp *pub, void *context, struct ndx_mw *mw_front,
                                    uint32_t flags);
/* Under base.lock: a bind or invalidate has ended. False: its window was closed meanwhile. */
bool verbs_mw_done(struct verbs_req *req, bool ok);
/* The queue pair goes: its windows are not bound any more. */
void verbs_mw_leave_qp(struct verbs_qp *qp);
/* The region goes: false if windows are bound to it and `force` is not set. */
bool verbs_mw_leave_mr(struct verbs_mr *mr, bool force);

/* ---- queue pairs and the data path (verbs_qp.c, verbs_post.c, verbs_wr.c, verbs_complete.c) ----
 */

enum verbs_kind {
	VERBS_INITIATOR,
	VERBS_RECEIVE,
	VERBS_SHARED, /* a receive of a shared queue */
	VERBS_CONTROL,
	VERBS_WINDOW, /* an initiator request, too: a bind or invalidate that has not ended */
};

struct verbs_conn;
struct verbs_srq;

struct verbs_req {
	struct base_req base;
	union {
		struct verbs_qp *qp;
		struct verbs_srq *srq; /* of a VERBS_SHARED */
	};
	union {
		struct verbs_mw *mw;    /* of a bind or invalidate that has not ended */
		struct verbs_req *next; /* of a VERBS_SHARED that is not posted */
	};
	uint8_t kind;        /* enum verbs_kind */
	bool needs_receive;  /* of the peer's */
	bool bad_invalidate; /* an invalidate of what is not bound */
	bool signaled;       /* a success has a completion, too */
	bool in_mailbox;     /* it writes into the peer's mailbox, not into memory of the program */
};

/* An initiator request; the list is kept only where it is needed to tell why one failed. */
struct verbs_initiator {
	struct verbs_req req;
	uint32_t count;
	struct ndx_sge sge[];
};

struct verbs_receive {
	struct verbs_req req;
	uint32_t count;
	struct ndx_sge sge[];
};

/* Requests of ours, one of a kind at a time. */
enum verbs_control {
	VERBS_GOODBYE,   /* into the peer's mailbox: what I have sent is all there */
	VERBS_PROBE,     /* likewise: I know that you are there, you need not wait for me */
	VERBS_ABORTED,   /* likewise: this is the end, and no goodbye */
	VERBS_KEEPALIVE, /* a byte that changes nothing there: do you answer? */
	VERBS_SWEEP,     /* likewise: which requests before it have ended without a word? */
	VERBS_LAST,      /* when all is being cancelled: it is the last, and goes nowhere */
	VERBS_CONTROLS
};

/* What a request of ours writes: from the own mailbox's last word. */
struct verbs_ctrl_write {
	uint32_t length; /* 0: the peer granted no memory for it, nothing is sent */
	uint32_t lkey;
	uint32_t rkey;
	uint64_t from; /* in our region of mailboxes */
	uint64_t to;   /* in the peer's */
};

/* Has the peer disconnected, and with a goodbye? Then a request without an answer is no failure. */
enum verbs_peer_state { VERBS_PEER_CONNECTED, VERBS_PEER_DISCONNECTED, VERBS_PEER_SAID_GOODBYE };

/* What rdma_cm knows of both directions. */
struct verbs_numbers {
	uint32_t peer_number; /* of its queue pair */
	uint32_t own_psn;     /* the first */
	uint32_t peer_psn;
};

struct verbs_qp {
	struct base_qp base;
	struct verbs_adapter *adapter;
	struct verbs_cq *receive_cq;
	struct verbs_cq *initiator_cq;
	bool soft_roce; /* the adapter's; its lists are kept */
	/* With a shared receive queue: */
	struct verbs_srq *srq;
	struct verbs_srq_link *srq_link; /* to receive_cq */
	struct base_list taker;          /* in verbs_srq.takers; under its lock */
	uint32_t number;                 /* the native one's */
	struct verbs_numbers path;
	uint32_t unsettled; /* initiator request that receives do not wait for; poll_lock */
	/* under base.lock: */
	struct ibv_qp *native;
	struct verbs_conn *conn;
	struct verbs_req controls[VERBS_CONTROLS];
	uint32_t controls_out;                /* bits of enum verbs_control */
	uint32_t controls_at[VERBS_CONTROLS]; /* the initiator requests before this come first */
	struct verbs_ctrl_write touch;        /* the byte with which the peer is asked */
	uint32_t unsignaled;                  /* requests since the last signaled one */
	uint32_t outbound_reads;
	bool receiving; /* the native queue pair has the receives */
	bool draining;  /* DRAINED is owed */
	bool attended;  /* its end watches both queues; the control thread's */
	bool broken;    /* it has failed: that nothing is outstanding is no drain */
	bool killed;    /* taken to ERR by us: cancelled requests are no news */
	bool quieting;  /* conn->work is owed when nothing is outstanding */
	enum verbs_peer_state peer_state;
	bool peer_closed; /* it said goodbye, and then did not answer: no failure */
	bool rnr_expired; /* a send waited too long for a receive: its cancellation means that */
};

static inline struct verbs_qp *verbs_qp_of(struct ndx_spi_qp *qp)
{
	return (struct verbs_qp *)(void *)qp;
}

/* Under base.lock: does the device have nothing of ours? */
static inline bool verbs_qp_is_quiet(const struct verbs_qp *qp)
{
	return base_queue_outstanding(&qp->base.initiator) == 0 &&
	       base_queue_outstanding(&qp->base.receive) == 0 && qp->controls_out == 0;
}

extern const struct ndx_qp_ops verbs_qp_ops;

enum ndx_status verbs_qp_create(struct ndx_spi_adapter *spi, const struct ndx_qp_attr *attr,
                                struct ndx_spi_qp **out);
void verbs_qp_destroy(struct ndx_spi_qp *spi);
void verbs_qp_cancel(struct ndx_spi_qp *spi);
void verbs_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);
/* Take it to RTS: receives first. 0, or errno; ECONNABORTED: the peer has ended the attempt. */
int verbs_qp_bring_up(struct verbs_qp *qp, const struct verbs_conn *conn);
/* How long the device tries before it gives a peer up, in ms. */
uint32_t verbs_qp_patience(void);
void verbs_qp_bring_down(struct verbs_qp *qp); /* as before the attempt */
/* Under base.lock: nothing goes on; what is outstanding will come back cancelled. */
void verbs_qp_kill(struct verbs_qp *qp);
/* Under base.lock: requests that the device will not hand back any more are cancelled. */
void verbs_qp_cancel_initiator(struct verbs_qp *qp);
/* The native queue pair goes, whatever it still has; results are cancelled. */
void verbs_qp_destroy_native(struct verbs_qp *qp);
/* Read both queues. */
void verbs_qp_poll(struct verbs_qp *qp);

static inline struct verbs_req *verbs_req_of(const struct ibv_wc *wc)
{
	return (struct verbs_req *)(uintptr_t)wc->wr_id;
}

/* Whose; NULL: a queue pair that is gone. poll_lock of its queue held as long as it counts. */
struct verbs_qp *verbs_complete_qp_of(const struct ibv_wc *wc);
/* What a completion says of the message that came. */
void verbs_complete_received(struct verbs_req *req, const struct ibv_wc *wc);
/* A native completion; poll_lock of its queue held. */
void verbs_complete(const struct ibv_wc *wc);
/* Under base.lock: tell what is owed, if it is due. */
void verbs_complete_check(struct verbs_qp *qp);

#endif
