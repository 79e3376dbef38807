/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider over libibverbs and librdmacm. Queue pairs are our own (rdma_cm_id.qp stays NULL),
 * so that nobody but us moves them: librdmacm would take one to ERR on a disconnect or a reject.
 *
 * Connection state belongs to the control thread. Locks, in order: adapter lock (core's) ->
 * vb_adapter.lock -> vb_cq.poll_lock -> base_qp.lock -> base_cq.lock -> core's leaf locks.
 *
 * A request's native completion names its record by address (wr_id). So a record may go only when
 * the native queue pair is gone or reset and the native queues were polled dry after that.
 */
#ifndef VB_VB_H
#define VB_VB_H

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

#define VB_MAX_SGE 16u
#define VB_MAX_INLINE 512u
#define VB_MAX_TRANSFER (UINT32_C(1) << 30)
#define VB_MAX_DEPTH 16384u
#define VB_MAX_CQ_DEPTH (UINT32_C(1) << 20)
#define VB_BATCH 16

/* ---- private data (vb_cm.c) ---- */

#define VB_TRAILER 8u /* in the last bytes of what rdma_cm carries */
#define VB_CONNECT_ROOM 56u
#define VB_ACCEPT_ROOM 196u
#define VB_REJECT_ROOM 148u
#define VB_CALLER_DATA (VB_CONNECT_ROOM - VB_TRAILER)
#define VB_CALLEE_DATA (VB_REJECT_ROOM - VB_TRAILER)

/* What the other side said of itself. */
struct vb_hello {
	bool is_ndx;
	bool is_ofi; /* ofi:verbs: another protocol of ours */
	bool has_srq;
	uint32_t mailbox_key; /* host byte order */
};

/* Fill all of `room` bytes: data, zeros, trailer. */
void vb_cm_encode(uint8_t *to, size_t room, const void *data, size_t len, uint32_t mailbox_key);
/* What came, `len` bytes; without a trailer all of it is the peer's. */
void vb_cm_decode(const void *from, size_t len, struct ndx_spi_params *params,
                  struct vb_hello *hello);

/* ---- adapters (vb_adapter.c, vb_device.c) ---- */

struct vb_options {
	char device[64]; /* "": the first that is active */
	unsigned port;   /* 0: the first that is active */
	int gid;         /* -1: all addresses of the port */
};

/* What software RoCE counts for the whole device. */
enum vb_counter {
	VB_PACKETS,   /* received */
	VB_NOT_READY, /* ... that say that the peer has no receive yet */
	VB_COUNTERS
};

struct vb_adapter {
	struct ndx_spi_adapter spi;
	struct vb_options options; /* resolved: device and port are known */
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
	bool ethernet;                /* RoCE */
	bool software;                /* rdma_rxe: see vb_watch.c and vb_list_is_good() */
	int counter_fds[VB_COUNTERS]; /* -1: the device does not count that */
	struct base_lock lock;        /* of cqs */
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

static inline struct vb_adapter *vb_adapter_of(struct ndx_spi_adapter *adapter)
{
	return (struct vb_adapter *)(void *)adapter;
}

extern const struct ndx_spi_key vb_keys[];

enum ndx_status vb_parse_options(const struct ndx_spi_open *how, struct vb_options *out);
/* Open the device that the options mean; they are completed. */
enum ndx_status vb_open_device(struct vb_options *options, struct ibv_context **out);
/*
 * The addresses that rdma_cm serves by a port of the device. None, and NDX_OK: the port can have
 * connections that are described by numbers. The list is the caller's to free, if this succeeds.
 */
enum ndx_status vb_find_addresses(const struct vb_options *options, struct ibv_context *context,
                                  struct sockaddr_storage **list, size_t *count);
enum ndx_status vb_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                        ndx_spi_list_fn *each, void *arg);
void vb_describe(const struct vb_adapter *adapter, struct ndx_adapter_info *info);
bool vb_is_own(const struct vb_adapter *adapter, const struct sockaddr_storage *address);
/* Does this rdma_cm_id, which is bound, belong to the adapter? */
bool vb_serves(const struct vb_adapter *adapter, const struct rdma_cm_id *id);
/* For errno values of rdma_cm and of verbs calls. */
enum ndx_status vb_status_of(int err);
void vb_async_on_event(void *arg, uint32_t events);
/* The device is no more: everybody who waits for something is told. */
void vb_device_lost(struct vb_adapter *adapter, int native);
void vb_port_on_timer(void *arg);
/* NDX_E_DEVICE_REMOVED if it is no more. */
enum ndx_status vb_is_there(const struct vb_adapter *adapter, const char *call);
/* What it means that the device refused to make something. */
enum ndx_status vb_refusal(const struct vb_adapter *adapter, int err);

/* ---- completion queues (vb_cq.c) ---- */

/* What for is it armed? The control thread reads when the event comes, or now and then. */
enum vb_cq_mode {
	VB_CQ_AWAY,      /* nothing: a consumer polls */
	VB_CQ_SOLICITED, /* solicited receives, and failures */
	VB_CQ_ARMED,     /* all */
};

struct vb_cq {
	struct base_cq base;
	struct vb_adapter *adapter;
	struct ibv_cq *native;
	struct base_lock poll_lock; /* who holds it hands on what it reads, in order */
	uint32_t room;              /* entries that attached queue pairs may need */
	uint32_t mode;              /* enum vb_cq_mode; atomic, changed under poll_lock */
	uint32_t watchers;          /* who waits for successes; atomic */
	uint32_t seen_polls;
	struct base_list node; /* in vb_adapter.cqs */
};

static inline struct vb_cq *vb_cq_of(struct ndx_cq *cq)
{
	return (struct vb_cq *)(void *)cq;
}

enum ndx_status vb_cq_create(struct ndx_spi_adapter *spi, uint32_t depth, uint64_t affinity,
                             struct ndx_spi_cq **out);
void vb_cq_destroy(struct ndx_spi_cq *spi);
enum ndx_status vb_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                             struct ndx_overlapped *ov);
/* Make room for so many completions more, or less. */
enum ndx_status vb_cq_reserve(struct vb_cq *cq, uint32_t entries);
void vb_cq_unreserve(struct vb_cq *cq, uint32_t entries);
/* Read what there is and hand it on; the second waits for whoever is at it. */
void vb_cq_try_poll(struct vb_cq *cq);
void vb_cq_poll(struct vb_cq *cq);
/* Somebody waits for successes, too, or does not any more; counted. */
void vb_cq_watch(struct vb_cq *cq, bool on);
/* The control thread's, of a queue that it watches: the next completion is read at once unless a
 * consumer polls by then. Who polled until now may well wait for what we are about to do. */
void vb_cq_attend(struct vb_cq *cq);
void vb_cq_on_event(void *arg, uint32_t events);
void vb_cq_on_tick(void *arg);

/* ---- memory (vb_mr.c) ---- */

struct vb_mr {
	struct ndx_spi_mr spi;
	struct vb_adapter *adapter;
	struct ibv_mr *native;
	bool writable;
	struct base_list node; /* in vb_adapter.regions */
};

/* May the device read, or write to, all pieces of the list? Its completions do not always tell. */
bool vb_list_is_good(struct vb_adapter *adapter, const struct ndx_sge *sge, size_t count,
                     bool write);

enum ndx_status vb_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void vb_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status vb_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length, uint32_t flags,
                               struct ndx_overlapped *ov);
enum ndx_status vb_mr_deregister(struct ndx_spi_mr *spi, struct ndx_overlapped *ov);

/* ---- memory windows (vb_mw.c) ---- */

struct vb_qp;
struct vb_req;
/* All but the head is under windows_lock. */
struct vb_mw {
	struct ndx_spi_mw spi;
	struct vb_adapter *adapter;
	struct ibv_mw *native; /* its rkey is the one that the device will have */
	struct vb_qp *qp;      /* of the latest bind */
	struct vb_mr *mr;
	uint32_t key;     /* the one that the device has for sure */
	uint32_t pending; /* binds and invalidates that have not ended */
	bool bound;
	bool planned;          /* bound when all that is posted has run */
	bool closed;           /* goes with the last that is pending */
	struct base_list node; /* in vb_adapter.windows */
};

enum ndx_status vb_mw_create(struct ndx_spi_adapter *spi, struct ndx_spi_mw **out);
void vb_mw_destroy(struct ndx_spi_mw *spi);
enum ndx_status vb_qp_bind(struct ndx_qp *pub, void *context, struct ndx_mr *mr_front,
                           struct ndx_mw *mw_front, void *buffer, size_t length, uint32_t flags);
enum ndx_status vb_qp_invalidate(struct ndx_qp *pub, void *context, struct ndx_mw *mw_front,
                                 uint32_t flags);
/* Under base.lock: a bind or invalidate has ended. False: its window was closed meanwhile. */
bool vb_mw_done(struct vb_req *req, bool ok);
/* The queue pair goes: its windows are not bound any more. */
void vb_mw_leave_qp(struct vb_qp *qp);
/* The region goes: false if windows are bound to it and `force` is not set. */
bool vb_mw_leave_mr(struct vb_mr *mr, bool force);

/* ---- queue pairs and the data path (vb_qp.c, vb_post.c, vb_done.c) ---- */

enum vb_kind {
	VB_INITIATOR,
	VB_RECEIVE,
	VB_SHARED, /* a receive of a shared queue */
	VB_CONTROL,
	VB_WINDOW, /* an initiator request, too: a bind or invalidate that has not ended */
};

struct vb_conn;
struct vb_srq;

struct vb_req {
	struct base_req base;
	union {
		struct vb_qp *qp;
		struct vb_srq *srq; /* of a VB_SHARED */
	};
	union {
		struct vb_mw *mw;    /* of a bind or invalidate that has not ended */
		struct vb_req *next; /* of a VB_SHARED that is not posted */
	};
	uint8_t kind;       /* enum vb_kind */
	bool needs_receive; /* of the peer's */
	bool hopeless;      /* an invalidate of what is not bound */
	bool told;          /* the device tells of its success */
};

/* An initiator request; the list is kept only where it is needed to tell why one failed. */
struct vb_initiator {
	struct vb_req req;
	uint32_t count;
	struct ndx_sge sge[];
};

struct vb_receive {
	struct vb_req req;
	uint32_t count;
	struct ndx_sge sge[];
};

/* Requests of ours, one of a kind at a time. */
enum vb_control {
	VB_GOODBYE,   /* into the peer's mailbox: what I have sent is all there */
	VB_PROBE,     /* likewise: I know that you are there, you need not wait for me */
	VB_ABORTED,   /* likewise: this is the end, and no goodbye */
	VB_KEEPALIVE, /* a byte that changes nothing there: do you answer? */
	VB_SWEEP,     /* likewise: which requests before it have ended without a word? */
	VB_LAST,      /* when all is being cancelled: it is the last, and goes nowhere */
	VB_CONTROLS
};

/* What a request of ours writes: from the own mailbox's last word. */
struct vb_note {
	uint32_t length; /* 0: the peer granted no memory for it, nothing is sent */
	uint32_t lkey;
	uint32_t rkey;
	uint64_t from; /* in our region of mailboxes */
	uint64_t to;   /* in the peer's */
};

/* Has the peer disconnected, and well? Then it is no news that it does not answer. */
enum vb_parted { VB_PARTED_NOT, VB_PARTED, VB_PARTED_WELL };

/* What rdma_cm knows of both directions. */
struct vb_path {
	uint32_t peer_number; /* of its queue pair */
	uint32_t own_psn;     /* the first */
	uint32_t peer_psn;
};

struct vb_qp {
	struct base_qp base;
	struct vb_adapter *adapter;
	struct vb_cq *receive_cq;
	struct vb_cq *initiator_cq;
	bool plain; /* not software RoCE, for which lists have to be kept */
	/* With a shared receive queue: */
	struct vb_srq *srq;
	struct vb_srq_link *srq_link; /* to receive_cq */
	struct base_list taker;       /* in vb_srq.takers; under its lock */
	uint32_t number;              /* the native one's */
	struct vb_path path;
	uint32_t unsettled; /* initiator request that receives do not wait for; poll_lock */
	/* under base.lock: */
	struct ibv_qp *native;
	struct vb_conn *conn;
	struct vb_req controls[VB_CONTROLS];
	uint32_t controls_out;             /* bits of enum vb_control */
	uint32_t controls_at[VB_CONTROLS]; /* the initiator requests before this come first */
	struct vb_note touch;              /* the byte with which the peer is asked */
	uint32_t untold; /* requests since the last one that the device tells of */
	uint32_t outbound_reads;
	bool receiving;        /* the native queue pair has the receives */
	bool draining;         /* DRAINED is owed */
	bool attended;         /* its end watches both queues; the control thread's */
	bool broken;           /* it has failed: that nothing is outstanding is no drain */
	bool killed;           /* taken to ERR by us: cancelled requests are no news */
	bool quieting;         /* conn->work is owed when nothing is outstanding */
	enum vb_parted parted; /* the peer */
	bool deserted;         /* ... well, and then it did not answer: no failure */
	bool late; /* a send waited too long for a receive: its cancellation means that */
};

static inline struct vb_qp *vb_qp_of(struct ndx_spi_qp *qp)
{
	return (struct vb_qp *)(void *)qp;
}

extern const struct ndx_qp_ops vb_qp_ops;

enum ndx_status vb_qp_create(struct ndx_spi_adapter *spi, const struct ndx_qp_attr *attr,
                             struct ndx_spi_qp **out);
void vb_qp_destroy(struct ndx_spi_qp *spi);
void vb_qp_cancel(struct ndx_spi_qp *spi);
void vb_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);
/* Take it to RTS: receives first. 0, or errno; ECONNABORTED: the peer has ended the attempt. */
int vb_qp_bring_up(struct vb_qp *qp, const struct vb_conn *conn);
/* How long the device tries before it gives a peer up, in ms. */
uint32_t vb_qp_patience(void);
void vb_qp_bring_down(struct vb_qp *qp); /* as before the attempt */
/* Under base.lock: nothing goes on; what is outstanding will come back cancelled. */
void vb_qp_kill(struct vb_qp *qp);
bool vb_qp_is_quiet(const struct vb_qp *qp); /* under base.lock */
/* Under base.lock: requests that the device will not hand back any more are cancelled. */
void vb_qp_cancel_initiator(struct vb_qp *qp);
/* The native queue pair goes, whatever it still has; results are cancelled. */
void vb_qp_destroy_native(struct vb_qp *qp);
/* Read both queues. */
void vb_qp_poll(struct vb_qp *qp);

/* Under base.lock: take back the slot of a request that the device refused. */
enum ndx_status vb_post_undo(struct base_queue *q, int err);
/* The native list; returns its length. */
int vb_post_list(struct ibv_sge *to, const struct ndx_sge *from, size_t count);
/* Under base.lock. 0, or errno. */
int vb_post_receive(struct vb_qp *qp, struct vb_receive *receive);
/* Under base.lock: post a request of our own; no-op if it is under way. 0, or errno. */
int vb_post_control(struct vb_qp *qp, enum vb_control which, const struct vb_note *note);
/* Under base.lock: have the device tell of all that was posted. */
void vb_post_sweep(struct vb_qp *qp);

static inline struct vb_req *vb_req_of(const struct ibv_wc *wc)
{
	return (struct vb_req *)(uintptr_t)wc->wr_id;
}

/* Whose; NULL: a queue pair that is gone. poll_lock of its queue held as long as it counts. */
struct vb_qp *vb_done_whose(const struct ibv_wc *wc);
/* What a completion says of the message that came. */
void vb_done_received(struct vb_req *req, const struct ibv_wc *wc);
/* A native completion; poll_lock of its queue held. */
void vb_done(const struct ibv_wc *wc);
/* Under base.lock: tell what is owed, if it is due. */
void vb_done_check(struct vb_qp *qp);

/* ---- connections (vb_conn.c, vb_event.c, vb_end.c) and listeners (vb_listener.c) ---- */

/* What an rdma_cm_id belongs to. */
enum vb_owner { VB_CONN, VB_LISTENER };

enum vb_conn_state {
	VB_CONN_IDLE,
	VB_CONN_RESOLVING, /* active: address, then route */
	VB_CONN_ASKING,    /* active: the request is sent */
	VB_CONN_ANSWERED,  /* active: the peer accepted */
	VB_CONN_REQUESTED, /* passive: holds a request */
	VB_CONN_ACCEPTED,  /* passive: has accepted */
	VB_CONN_UP,
	VB_CONN_OVER,
};

/* What the end of a connection waits for. */
enum vb_wait {
	VB_WAIT_NONE,
	VB_WAIT_ANSWER, /* is the peer still there? */
	VB_WAIT_MOMENT, /* a process that is killed may answer for a moment */
	VB_WAIT_PROBE,  /* is it there now? It may go when it was asked this */
	VB_WAIT_PROBED, /* the peer's probe: it needs our queue pair for that */
	VB_WAIT_QUIET,  /* cancelled requests */
};

/* A connection without rdma_cm: both ends were told of each other (vb_peer.c). */
struct vb_told {
	bool on;
	uint8_t gid_index;
	uint8_t peer_gid[16];
	uint16_t peer_lid;
	uint32_t peer_number; /* of its queue pair */
	uint32_t peer_psn;    /* the first, as the own one */
	uint32_t psn;
	uint32_t mtu; /* bytes; the port's, then the path's */
};

/* What a request to connect will say, when the route is known. */
struct vb_asked {
	uint8_t data[VB_CONNECT_ROOM];
	uint8_t inbound_read_limit;
	uint8_t outbound_read_limit;
};

struct vb_conn {
	enum vb_owner owner;
	struct ndx_spi_conn spi;
	struct vb_adapter *adapter;
	struct base_list node; /* in vb_adapter.conns, from the first rdma_cm_id on */
	enum vb_conn_state state;
	struct sockaddr_storage bound; /* AF_UNSPEC: by connect itself */
	struct rdma_cm_id *id;
	struct vb_qp *qp; /* NULL: none, or not any more */
	struct vb_asked asked;
	struct vb_hello peer;
	struct vb_told told;
	struct vb_mailboxes *mailboxes; /* NULL: it has none */
	struct ibv_mr *mailbox_mr;      /* theirs */
	uint64_t *mailbox;              /* the peer writes to all but the last word */
	struct base_job work;           /* what a completion asks for */
	struct base_job last;
	struct base_timer timer; /* limit of `wait` */
	enum vb_wait wait;
	uint64_t not_ready;         /* VB_NOT_READY when the question was asked */
	uint32_t asked_ms;          /* since then */
	uint64_t bare_until;        /* so long the peer may ask after a disc_bare */
	struct base_timer watchdog; /* of sends that wait, and of silence */
	uint32_t watched_head;      /* initiator request that was the oldest, ... */
	uint32_t watched_ms;        /* ... for so long */
	uint32_t silent_ms;
	uint32_t idle_ms;    /* nothing has been under way that would tell of a failure */
	uint32_t stuck_head; /* with software RoCE: the same, of any request, ... */
	uint32_t stuck_ms;
	uint32_t deaf_ms;   /* ... and for so long the device has received nothing */
	uint64_t packets;   /* ... beyond these */
	bool disc_said;     /* rdma_disconnect was called */
	bool disc_bare;     /* ... without a word in the mailbox */
	bool deserted;      /* nobody would read that, or ask: the peer has closed already */
	bool lost;          /* it has failed: nobody would read that it is aborted */
	bool peer_said;     /* rdma_cm told of the peer's */
	bool peer_reported; /* ... and so did we */
	bool dead;          /* conn_destroy was there */
	/* under qp->base.lock: */
	uint32_t controls_done; /* bits of enum vb_control */
};

static inline struct vb_conn *vb_conn_of(struct ndx_spi_conn *conn)
{
	return container_of(conn, struct vb_conn, spi);
}

static inline const struct ndx_host *vb_host(const struct vb_adapter *adapter)
{
	return adapter->spi.host;
}

struct vb_request {
	struct ndx_spi_request spi;
	struct vb_adapter *adapter;
	struct rdma_cm_id *id;
	struct vb_hello peer;
};

/* A copy of what rdma_cm told, which was acknowledged already. */
struct vb_event {
	enum rdma_cm_event_type what;
	int status;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	bool srq;
	size_t data_len;
	uint8_t data[NDX_SPI_PRIVATE_DATA_MAX];
};

void vb_cm_on_event(void *arg, uint32_t events);
/* The peer's half of an event's parameters. */
void vb_event_params(const struct vb_event *event, struct ndx_spi_params *params,
                     struct vb_hello *hello);
void vb_conn_on_event(struct vb_conn *conn, const struct vb_event *event);
/* The device is no more. */
void vb_conn_on_removal(struct vb_conn *conn, int native);
struct vb_listener;
void vb_listeners_on_removal(struct vb_adapter *adapter, int native);
void vb_listener_on_event(struct vb_listener *listener, const struct vb_event *event);

enum ndx_status vb_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                               struct ndx_spi_conn **out);
void vb_conn_destroy(struct ndx_spi_conn *spi);
enum ndx_status vb_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                             socklen_t len);
enum ndx_status vb_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                socklen_t len, const struct ndx_spi_params *params);
enum ndx_status vb_conn_complete(struct ndx_spi_conn *spi);
void vb_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *request);
enum ndx_status vb_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params);
enum ndx_status vb_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len);
void vb_conn_abandon(struct ndx_spi_conn *spi);

void vb_conn_drain(struct ndx_spi_conn *spi);
void vb_conn_cancel_initiator(struct ndx_spi_conn *spi);
void vb_conn_send_disc(struct ndx_spi_conn *spi);
void vb_conn_finish(struct ndx_spi_conn *spi);
void vb_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status vb_conn_detach(struct ndx_spi_conn *spi);
enum ndx_status vb_qp_describe(struct ndx_spi_conn *spi, const struct sockaddr_storage *near,
                               struct ndx_peer_description *out);
enum ndx_status vb_qp_connect_peer(struct ndx_spi_conn *spi,
                                   const struct ndx_peer_description *peer);
/* What rdma_init_qp_attr() would say, of a connection that rdma_cm does not know. */
void vb_peer_attr(const struct vb_conn *conn, struct ibv_qp_attr *attr, int *mask);
void vb_conn_heard(struct ndx_spi_conn *spi, enum ndx_spi_word word);
/* The conn has its queue pair: tie the two. */
void vb_conn_tie(struct vb_conn *conn);
/* The address that a GID stands for; RoCE v2 keeps IPv4 addresses mapped. */
void vb_address_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out);
/* rdma_cm says that the peer disconnected, or that our own request for it timed out. */
void vb_end_on_disconnected(struct vb_conn *conn, int status);
void vb_end_on_work(void *arg); /* what completions have asked for */
void vb_end_on_timer(void *arg);
/* The peer, which has said goodbye, does not take the word of ours. */
void vb_end_unheard(struct vb_conn *conn);
/* The peer, which has said goodbye, does not answer requests that are under way. */
void vb_end_deserted(struct vb_conn *conn);

/* ---- while a connection is up (vb_watch.c) ---- */

void vb_watch_open(struct vb_adapter *adapter); /* its limits are known */
void vb_watch_close(struct vb_adapter *adapter);
/* 0: not known. */
uint64_t vb_watch_count(const struct vb_adapter *adapter, enum vb_counter which);
void vb_watch_begin(struct vb_conn *conn);
void vb_watch_end(struct vb_conn *conn);
void vb_watch_on_timer(void *arg);

/* A new rdma_cm_id, bound to an address. */
enum ndx_status vb_bind(struct vb_adapter *adapter, void *owner,
                        const struct sockaddr_storage *address, struct rdma_cm_id **out);
/* An address to bind to: one of the adapter's, for the unspecified one the first of its family. */
enum ndx_status vb_own_address(const struct vb_adapter *adapter, const struct sockaddr *wanted,
                               socklen_t len, struct sockaddr_storage *out);
/* What an rdma_cm_id is bound to. */
void vb_local_of(struct rdma_cm_id *id, struct sockaddr_storage *out);

enum ndx_status vb_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                   struct ndx_spi_listener **out);
void vb_listener_destroy(struct ndx_spi_listener *spi);
enum ndx_status vb_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                 socklen_t len);
enum ndx_status vb_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog);
void vb_request_refuse(struct ndx_spi_request *spi);

#endif
