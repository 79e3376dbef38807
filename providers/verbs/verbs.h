/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider over libibverbs and librdmacm. This provider makes the native queue pairs itself
 * (rdma_cm_id.qp stays NULL), so that only it changes their states: librdmacm would take a queue
 * pair to ERR on a disconnect or a reject.
 *
 * Connection state belongs to the control thread. Locks, in this order: adapter lock (the core's),
 * verbs_adapter.lock, verbs_cq.poll_lock, ndxp_qp.lock, ndxp_cq.lock, the core's leaf locks.
 *
 * A native completion names the record of its request by address (wr_id). So a record may be freed
 * only when the native queue pair is destroyed or reset, and the native completion queues have been
 * polled empty after that.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/completion_queue.h>
#include <ndx/spi/system.h>
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/mw.h>
#include <ndx/spi/overlapped.h>
#include <ndx/spi/queue_pair.h>
#include <ndx/spi/table.h>

#define VERBS_MAX_SGE 16u
#define VERBS_MAX_INLINE 512u
#define VERBS_MAX_TRANSFER (UINT32_C(1) << 30)
#define VERBS_MAX_DEPTH 16384u
#define VERBS_MAX_CQ_DEPTH (UINT32_C(1) << 20)
#define VERBS_BATCH 16
#define VERBS_FIRST_RECEIVES 1u /* of the provider, for a first message: see verbs_ofi.h */

/* ---- the adapter ---- */

struct verbs_options {
	char device[64]; /* "": the first device with an active port */
	unsigned port;   /* 0: the first active port */
	int gid;         /* index into the GID table; -1: all addresses of the port */
};

/* Counters of software RoCE, for the whole device. */
enum verbs_counter {
	VERBS_PACKETS,   /* packets received */
	VERBS_NOT_READY, /* RNR answers received */
	VERBS_COUNTERS
};

struct verbs_adapter {
	struct ndx_spi_adapter spi;
	struct verbs_options options; /* complete: device and port are known */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct rdma_event_channel *cm;
	struct ndxp_watch completions_watch;
	struct ndxp_watch cm_watch;
	struct ndxp_watch async_watch;
	struct ndxp_timer tick; /* reads the queues that consumers poll ... */
	uint32_t tick_ms;       /* ... in this period */
	struct ibv_device_attr attr;
	uint32_t max_transfer;
	uint32_t max_inline;
	uint32_t max_depth;
	uint32_t max_sge;
	struct sockaddr_storage *addresses;
	size_t address_count;
	bool ethernet;                   /* RoCE */
	bool soft_roce;                  /* rdma_rxe: see verbs_watch.c and verbs_list_is_good() */
	int counter_fds[VERBS_COUNTERS]; /* -1: the device does not have that counter */
	struct ndxp_lock lock;           /* guards cqs */
	struct ndxp_list cqs;
	struct ndxp_lock regions_lock; /* guards regions; a leaf */
	struct ndxp_list regions;
	struct ndxp_lock windows_lock; /* guards windows; a leaf */
	struct ndxp_list windows;
	bool has_windows; /* of type 2 */
	bool has_dmabuf;
	uint32_t max_shared;        /* largest depth of a shared receive queue; 0: there are none */
	struct ndxp_list conns;     /* used by the control thread only */
	struct ndxp_list listeners; /* those that listen; used by the control thread only */
	struct ndxp_list mailboxes; /* regions of mailboxes; used by the control thread only */
	struct ndxp_timer port_down; /* ends connections when the port was down too long */
	bool removed;                /* the device has failed or was removed; atomic */
	struct ndxp_job last;
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

/* The status for an errno of rdma_cm or of a verbs call. */
enum ndx_status verbs_status_of(int err);
/* NDX_OK, or NDX_E_DEVICE_REMOVED. */
enum ndx_status verbs_is_there(const struct verbs_adapter *adapter, const char *call);
/* The status for a call in which the device refused to make an object. */
enum ndx_status verbs_refusal(const struct verbs_adapter *adapter, int err);

/* ---- counters of software RoCE (verbs_counters.c) ---- */

void verbs_counters_open(struct verbs_adapter *adapter); /* after the limits are known */
void verbs_counters_close(struct verbs_adapter *adapter);
/* 0: not known. */
uint64_t verbs_counters_read(const struct verbs_adapter *adapter, enum verbs_counter which);

/* ---- devices (verbs_device.c) and adapters (verbs_adapter.c) ---- */

extern const struct ndx_spi_key verbs_keys[];

enum ndx_status verbs_parse_options(const struct ndx_spi_open *how, struct verbs_options *out);
/* A channel of librdmacm; `device`, for the text of a failure, may be "". */
enum ndx_status verbs_open_cm(const char *device, struct rdma_event_channel **out);
/* Open the device that the options name, and complete the options. */
enum ndx_status verbs_device_open(struct verbs_options *options, struct ibv_context **out);
/*
 * The addresses that rdma_cm serves at a port of the device. NDX_OK without any address: the port
 * can only have connections that are described by numbers. If the call succeeds, the caller frees
 * the list.
 */
enum ndx_status verbs_find_addresses(const struct verbs_options *options,
                                     struct ibv_context *context, struct sockaddr_storage **list,
                                     size_t *count);
enum ndx_status verbs_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                           ndx_spi_list_fn *each, void *arg);
void verbs_describe(const struct verbs_adapter *adapter, struct ndx_adapter_info *info);
/* Does this bound rdma_cm_id belong to the adapter? */
bool verbs_serves(const struct verbs_adapter *adapter, const struct rdma_cm_id *id);

enum ndx_status verbs_adapter_open(const struct ndx_spi_adapter *head,
                                   const struct ndx_spi_open *how, struct ndx_spi_adapter **out);
void verbs_adapter_close(struct ndx_spi_adapter *spi);
void verbs_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info);
size_t verbs_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                               size_t room);

/* ---- completion queues (verbs_cq.c) ---- */

/* Completions for which the native queue is armed. The control thread reads the queue on the event,
 * or at a tick. */
enum verbs_cq_mode {
	VERBS_CQ_AWAY,      /* none: a consumer polls */
	VERBS_CQ_SOLICITED, /* solicited receives and failures */
	VERBS_CQ_ARMED,     /* all */
};

struct verbs_cq {
	struct ndxp_cq base;
	struct verbs_adapter *adapter;
	struct ibv_cq *native;
	struct ndxp_lock poll_lock; /* its holder passes completions on in order */
	uint32_t room;              /* entries that attached queue pairs may need */
	uint32_t mode;              /* enum verbs_cq_mode; atomic, changed under poll_lock */
	uint32_t watchers;          /* count of users that need successes, too; atomic */
	uint32_t seen_polls;
	struct ndxp_list node; /* in verbs_adapter.cqs */
};

static inline struct verbs_cq *verbs_cq_of(struct ndx_cq *cq)
{
	return (struct verbs_cq *)(void *)cq;
}

enum ndx_status verbs_cq_create(struct ndx_spi_adapter *spi, const struct ndx_cq_attr *attr,
                                struct ndx_spi_cq **out);
void verbs_cq_destroy(struct ndx_spi_cq *spi);
enum ndx_status verbs_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                                struct ndx_overlapped *ov);
/* Reserve room for `entries` more completions, or give it back. */
enum ndx_status verbs_cq_reserve(struct verbs_cq *cq, uint32_t entries);
void verbs_cq_unreserve(struct verbs_cq *cq, uint32_t entries);
/* Read the native queue and pass the completions on; verbs_cq_poll() waits if another thread is
 * reading, verbs_cq_try_poll() returns. */
void verbs_cq_try_poll(struct verbs_cq *cq);
void verbs_cq_poll(struct verbs_cq *cq);
/* Count a user that needs events for successes, too; off: the user does not any more. */
void verbs_cq_watch(struct verbs_cq *cq, bool on);
/* Control thread, for a queue with verbs_cq_watch(): read the next completion at once, unless a
 * consumer polls before. A consumer that has polled until now may be waiting for this thread. */
void verbs_cq_attend(struct verbs_cq *cq);
void verbs_cq_on_event(void *arg, uint32_t events);
void verbs_cq_on_tick(void *arg);

/* ---- memory (verbs_mr.c) ---- */

struct verbs_mr {
	struct ndx_spi_mr spi;
	struct verbs_adapter *adapter;
	struct ibv_mr *native;
	uintptr_t start; /* address of the first byte, for SGEs and windows */
	bool writable;
	struct ndxp_list node; /* in verbs_adapter.regions */
};

/* Do the tokens of the list let the device read, or write to, all its memory? Completions do not
 * always tell whether they did. */
bool verbs_list_is_good(struct verbs_adapter *adapter, const struct ndx_sge *sge, size_t count,
                        bool write);

enum ndx_status verbs_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void verbs_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status verbs_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                  uint32_t flags);
enum ndx_status verbs_mr_register_dmabuf(struct ndx_spi_mr *spi, int fd, uint64_t offset,
                                         size_t length, uint64_t iova, uint32_t flags);
/* Whether the device takes the memory of a dma-buf. */
bool verbs_mr_has_dmabuf(const struct verbs_adapter *adapter);
enum ndx_status verbs_mr_deregister(struct ndx_spi_mr *spi, bool closing);

/* ---- memory windows (verbs_mw.c), bound and invalidated (verbs_bind.c) ---- */

struct verbs_qp;
struct verbs_req;
/* All members but spi and adapter are guarded by windows_lock. */
struct verbs_mw {
	struct ndx_spi_mw spi;
	struct verbs_adapter *adapter;
	struct ibv_mw *native; /* its rkey: the device's key when all posted requests have run */
	struct verbs_qp *qp;   /* of the latest bind */
	struct verbs_mr *mr;
	uint32_t key; /* the key that the device is known to have */
	struct ndxp_mw state;
	bool closed;           /* freed with the last pending request */
	struct ndxp_list node; /* in verbs_adapter.windows */
};

enum ndx_status verbs_mw_create(struct ndx_spi_adapter *spi, struct ndx_spi_mw **out);
void verbs_mw_destroy(struct ndx_spi_mw *spi);
enum ndx_status verbs_qp_bind(struct ndx_qp *pub, void *context, struct ndx_mr *mr_front,
                              struct ndx_mw *mw_front, void *buffer, size_t length, uint32_t flags);
enum ndx_status verbs_qp_invalidate(struct ndx_qp *pub, void *context, struct ndx_mw *mw_front,
                                    uint32_t flags);
/* base.lock held: a bind or invalidate has ended. False: its window was closed in between. */
bool verbs_mw_done(struct verbs_req *req, bool ok);
/* The queue pair is destroyed: unbind its windows. */
void verbs_mw_leave_qp(struct verbs_qp *qp);
/* The region is deregistered: unbind its windows. False if windows are bound and `force` is not
 * set. */
bool verbs_mw_leave_mr(struct verbs_mr *mr, bool force);

/* ---- queue pairs and the data path (verbs_qp.c, verbs_post.c, verbs_wr.c, verbs_complete.c) ----
 */

enum verbs_kind {
	VERBS_INITIATOR,
	VERBS_RECEIVE,
	VERBS_SHARED,        /* a receive of a shared receive queue */
	VERBS_OFI_RECEIVE,   /* a receive for messages of a peer on ofi:verbs, ... */
	VERBS_FIRST_RECEIVE, /* ... and the one for the first of them: see verbs_ofi.h */
	VERBS_CONTROL,
	VERBS_WINDOW, /* an initiator request, too: a bind or invalidate that has not ended */
};

struct verbs_conn;
struct verbs_ofi;
struct verbs_srq;

struct verbs_req {
	struct ndxp_req base;
	union {
		struct verbs_qp *qp;
		struct verbs_srq *srq; /* of a VERBS_SHARED */
	};
	union {
		struct verbs_mw *mw;    /* of a bind or invalidate that has not ended */
		struct verbs_req *next; /* of a VERBS_SHARED that is not posted */
	};
	uint8_t kind;        /* enum verbs_kind */
	bool needs_receive;  /* uses a receive of the peer */
	bool bad_invalidate; /* an invalidate of a window that is not bound */
	bool signaled;       /* a success has a completion, too */
	bool in_mailbox;     /* the target is the peer's mailbox, not memory of the program */
};

/* An initiator request. The list is kept only for software RoCE, to find out why a request
 * failed. */
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

/* Requests of the provider itself, at most one of each kind in flight. */
enum verbs_control {
	VERBS_GOODBYE, /* a write into the peer's mailbox: all that this end has sent has arrived */
	VERBS_PROBE,   /* a write into the peer's mailbox: the peer need not wait any more */
	VERBS_ABORTED, /* a write into the peer's mailbox: the connection is aborted */
	VERBS_KEEPALIVE,   /* a write that changes nothing: does the peer answer? */
	VERBS_SWEEP,       /* a write that changes nothing: completes the unsignaled requests */
	VERBS_LAST,        /* a request in state ERR: it is flushed last */
	VERBS_FIRST,       /* to a peer on ofi:verbs: this end's first message, ... */
	VERBS_CREDIT,      /* ... the number of posted receives, ... */
	VERBS_BELL,        /* ... and a goodbye that completes a receive */
	VERBS_PROVE_SMALL, /* the proof of the path: a few bytes, ... */
	VERBS_PROVE_MTU,   /* ... a packet of the path MTU, ... */
	VERBS_PROVE_WHOLE, /* ... and a few bytes behind that packet */
	VERBS_CONTROLS
};

enum verbs_ctrl_how { VERBS_CTRL_WRITE, VERBS_CTRL_WRITE_IMMEDIATE, VERBS_CTRL_SEND };

/* A control request, usually a write from the own mailbox's last field. */
struct verbs_ctrl_write {
	enum verbs_ctrl_how how;
	uint32_t immediate;
	uint32_t length; /* 0: the peer has granted no memory, and nothing is sent */
	uint32_t lkey;
	uint32_t rkey;
	uint64_t from; /* address in this adapter's region of mailboxes */
	uint64_t to;   /* address in the peer's region */
};

/* Has the peer disconnected, and with a goodbye? Then a request without an answer is no failure. */
enum verbs_peer_state { VERBS_PEER_CONNECTED, VERBS_PEER_DISCONNECTED, VERBS_PEER_SAID_GOODBYE };

/* How long a device may need to end a message for a receive of a shared queue, if it does not
 * report the end. */
#define VERBS_SHARED_MS 5u

/* Numbers of both directions, from rdma_cm. */
struct verbs_numbers {
	uint32_t peer_number; /* of the peer's queue pair */
	uint32_t own_psn;     /* first PSN of this end */
	uint32_t peer_psn;
};

struct verbs_qp {
	struct ndxp_qp base;
	struct verbs_adapter *adapter;
	struct verbs_cq *receive_cq;
	struct verbs_cq *initiator_cq;
	bool soft_roce;   /* a copy of the adapter's; the lists of requests are kept then */
	bool keeps_books; /* soft_roce, or the messages to the peer are counted; base.lock */
	/* with a shared receive queue: */
	struct verbs_srq *srq;
	struct ndxp_srq_link *srq_link; /* its link to receive_cq */
	struct ndxp_table_node taker;   /* in verbs_srq.takers; guarded by its lock */
	struct verbs_numbers path;
	/* guarded by base.lock: */
	struct ibv_qp *native;
	struct verbs_conn *conn;
	struct verbs_ofi *ofi; /* NULL: the peer is not on ofi:verbs */
	struct verbs_req controls[VERBS_CONTROLS];
	uint32_t controls_out;                /* bits of enum verbs_control: requests in flight */
	uint32_t controls_at[VERBS_CONTROLS]; /* index behind the requests that end before */
	struct verbs_ctrl_write noop_write; /* target of a write that changes nothing in the peer */
	bool not_asked;                     /* the peer is not probed, see NDX_PEER_NOT_ASKED */
	uint32_t unsignaled;                /* requests since the last signaled one */
	uint32_t outbound_reads;
	bool receiving;        /* the native queue pair has the receives, ... */
	bool receives_plainly; /* ... and the peer need not be told of new ones */
	bool draining;         /* DRAINED has to be reported */
	bool watched_cqs;      /* the end of the connection watches both queues; control thread */
	bool broken;           /* the connection has failed: an empty queue is no completed drain */
	bool killed;           /* verbs_qp_kill() has run: flushed requests are expected */
	bool quieting;         /* post conn->work when nothing is outstanding */
	enum verbs_peer_state peer_state;
	bool peer_closed; /* the peer said goodbye, and then did not answer: no failure */
	bool rnr_expired; /* a send waited too long for a receive: flushed means timed out */
	/* With a shared receive queue, after verbs_qp_kill(): a message may still be written into a
	 * receive until the device reports the last one, or until this time. */
	bool last_receive;
	uint64_t receives_until_ns;
};

static inline struct verbs_qp *verbs_qp_of(struct ndx_spi_qp *qp)
{
	return (struct verbs_qp *)(void *)qp;
}

extern const struct ndx_qp_ops verbs_qp_ops;

enum ndx_status verbs_qp_create(struct ndx_spi_adapter *spi, const struct ndx_qp_attr *attr,
                                struct ndx_spi_qp **out);
void verbs_qp_destroy(struct ndx_spi_qp *spi);
void verbs_qp_cancel(struct ndx_spi_qp *spi);
void verbs_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);
void verbs_qp_query(struct ndx_spi_qp *spi, struct ndx_qp_info *info);
/* Take the native queue pair to RTS; the receives are posted first. 0, or errno; ECONNABORTED: the
 * peer has ended the attempt. */
int verbs_qp_bring_up(struct verbs_qp *qp, const struct verbs_conn *conn);
/* How long the device tries to reach a peer before it gives up, in ms. */
uint32_t verbs_qp_patience(void);
void verbs_qp_bring_down(struct verbs_qp *qp); /* back to the state before the attempt */
/* base.lock held: take the native queue pair to ERR; outstanding requests will be flushed. */
void verbs_qp_kill(struct verbs_qp *qp);
/* base.lock held, after verbs_qp_kill(): is no request of this queue pair outstanding, and no
 * receive of its shared queue in use? */
static inline bool verbs_qp_is_quiet(const struct verbs_qp *qp)
{
	return ndxp_queue_outstanding(&qp->base.initiator) == 0 &&
	       ndxp_queue_outstanding(&qp->base.receive) == 0 && qp->controls_out == 0 &&
	       (qp->last_receive || qp->receives_until_ns == 0 ||
	        ndxp_now_ns() >= qp->receives_until_ns);
}
/* The device reports that the queue pair uses no receive of its shared queue any more. */
void verbs_qp_on_last_receive(struct verbs_qp *qp);
/* base.lock held: cancel the requests that the device will not complete any more. */
void verbs_qp_cancel_initiator(struct verbs_qp *qp);
/* Destroy the native queue pair; the requests that it still has are canceled. */
void verbs_qp_destroy_native(struct verbs_qp *qp);
/* Read both completion queues. */
void verbs_qp_poll(struct verbs_qp *qp);

static inline struct verbs_req *verbs_req_of(const struct ibv_wc *wc)
{
	return (struct verbs_req *)(uintptr_t)wc->wr_id;
}

/* The queue pair of a completion; NULL: it is destroyed. The result is valid while the queue's
 * poll_lock is held. */
struct verbs_qp *verbs_complete_qp_of(const struct ibv_wc *wc);
/* Copy the data of a received message into its record. */
void verbs_complete_received(struct verbs_req *req, const struct ibv_wc *wc);
/* Handle a native completion; the queue's poll_lock is held. */
void verbs_complete(const struct ibv_wc *wc);
/* base.lock held: report what the core waits for, if it is due. */
void verbs_complete_check(struct verbs_qp *qp);

#endif
