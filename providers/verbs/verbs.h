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

/* ---- private data (verbs_cm.c) ---- */

#define VERBS_TRAILER 8u /* in the last bytes of what rdma_cm carries */
#define VERBS_CONNECT_ROOM 56u
#define VERBS_ACCEPT_ROOM 196u
#define VERBS_REJECT_ROOM 148u
#define VERBS_CALLER_DATA (VERBS_CONNECT_ROOM - VERBS_TRAILER)
#define VERBS_CALLEE_DATA (VERBS_REJECT_ROOM - VERBS_TRAILER)

/* What the other side said of itself. */
struct verbs_cm_peer {
	bool is_ndx;
	bool is_ofi; /* ofi:verbs: another protocol of ours */
	bool has_srq;
	uint32_t mailbox_key; /* host byte order */
};

/* Fill all of `room` bytes: data, zeros, trailer. */
void verbs_cm_encode(uint8_t *to, size_t room, const void *data, size_t len, uint32_t mailbox_key);
/* What came, `len` bytes; without a trailer all of it is the peer's. */
void verbs_cm_decode(const void *from, size_t len, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer);

/* ---- adapters (verbs_adapter.c, verbs_device.c) ---- */

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
bool verbs_is_own(const struct verbs_adapter *adapter, const struct sockaddr_storage *address);
/* Does this rdma_cm_id, which is bound, belong to the adapter? */
bool verbs_serves(const struct verbs_adapter *adapter, const struct rdma_cm_id *id);
/* For errno values of rdma_cm and of verbs calls. */
enum ndx_status verbs_status_of(int err);
void verbs_async_on_event(void *arg, uint32_t events);
/* The device is no more: everybody who waits for something is told. */
void verbs_device_lost(struct verbs_adapter *adapter, int native);
void verbs_port_on_timer(void *arg);
/* NDX_E_DEVICE_REMOVED if it is no more. */
enum ndx_status verbs_is_there(const struct verbs_adapter *adapter, const char *call);
/* What it means that the device refused to make something. */
enum ndx_status verbs_refusal(const struct verbs_adapter *adapter, int err);

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

/* ---- memory windows (verbs_mw.c) ---- */

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

/* ---- queue pairs and the data path (verbs_qp.c, verbs_post.c, verbs_done.c) ---- */

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
bool verbs_qp_is_quiet(const struct verbs_qp *qp); /* under base.lock */
/* Under base.lock: requests that the device will not hand back any more are cancelled. */
void verbs_qp_cancel_initiator(struct verbs_qp *qp);
/* The native queue pair goes, whatever it still has; results are cancelled. */
void verbs_qp_destroy_native(struct verbs_qp *qp);
/* Read both queues. */
void verbs_qp_poll(struct verbs_qp *qp);

/* Under base.lock: take back the slot of a request that the device refused. */
enum ndx_status verbs_post_undo(struct base_queue *q, int err);
/* The native list; returns its length. */
int verbs_post_list(struct ibv_sge *to, const struct ndx_sge *from, size_t count);
/* Under base.lock. 0, or errno. */
int verbs_post_receive(struct verbs_qp *qp, struct verbs_receive *receive);
/* Under base.lock: post a request of our own; no-op if it is under way. 0, or errno. */
int verbs_post_control(struct verbs_qp *qp, enum verbs_control which,
                       const struct verbs_ctrl_write *write);
/* Under base.lock: have the device tell of all that was posted. */
void verbs_post_sweep(struct verbs_qp *qp);

static inline struct verbs_req *verbs_req_of(const struct ibv_wc *wc)
{
	return (struct verbs_req *)(uintptr_t)wc->wr_id;
}

/* Whose; NULL: a queue pair that is gone. poll_lock of its queue held as long as it counts. */
struct verbs_qp *verbs_done_whose(const struct ibv_wc *wc);
/* What a completion says of the message that came. */
void verbs_done_received(struct verbs_req *req, const struct ibv_wc *wc);
/* A native completion; poll_lock of its queue held. */
void verbs_done(const struct ibv_wc *wc);
/* Under base.lock: tell what is owed, if it is due. */
void verbs_done_check(struct verbs_qp *qp);

/* ---- connections (verbs_conn.c, verbs_event.c, verbs_end.c) and listeners (verbs_listener.c) ----
 */

/* What an rdma_cm_id belongs to. */
enum verbs_owner { VERBS_CONN, VERBS_LISTENER };

enum verbs_conn_state {
	VERBS_CONN_IDLE,
	VERBS_CONN_RESOLVING, /* active: address, then route */
	VERBS_CONN_ASKING,    /* active: the request is sent */
	VERBS_CONN_ANSWERED,  /* active: the peer accepted */
	VERBS_CONN_REQUESTED, /* passive: holds a request */
	VERBS_CONN_ACCEPTED,  /* passive: has accepted */
	VERBS_CONN_UP,
	VERBS_CONN_OVER,
};

/* What the end of a connection waits for. */
enum verbs_wait {
	VERBS_WAIT_NONE,
	VERBS_WAIT_ANSWER, /* is the peer still there? */
	VERBS_WAIT_MOMENT, /* a process that is killed may answer for a moment */
	VERBS_WAIT_PROBE,  /* is it there now? It may go when it was asked this */
	VERBS_WAIT_PROBED, /* the peer's probe: it needs our queue pair for that */
	VERBS_WAIT_QUIET,  /* cancelled requests */
};

/* The path of a connection without rdma_cm: each end got the other's description out of band. */
struct verbs_oob_path {
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
struct verbs_asked {
	uint8_t data[VERBS_CONNECT_ROOM];
	uint8_t inbound_read_limit;
	uint8_t outbound_read_limit;
};

struct verbs_conn {
	enum verbs_owner owner;
	struct ndx_spi_conn spi;
	struct verbs_adapter *adapter;
	struct base_list node; /* in verbs_adapter.conns, from the first rdma_cm_id on */
	enum verbs_conn_state state;
	struct sockaddr_storage bound; /* AF_UNSPEC: by connect itself */
	struct rdma_cm_id *id;
	struct verbs_qp *qp; /* NULL: none, or not any more */
	struct verbs_asked asked;
	struct verbs_cm_peer peer;
	struct verbs_oob_path oob;
	struct verbs_mailboxes *mailboxes; /* NULL: it has none */
	struct ibv_mr *mailbox_mr;         /* theirs */
	uint64_t *mailbox;                 /* the peer writes to all but the last word */
	struct base_job work;              /* what a completion asks for */
	struct base_job last;
	struct base_timer timer; /* limit of `wait` */
	enum verbs_wait wait;
	uint64_t not_ready;         /* VERBS_NOT_READY when the question was asked */
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
	bool peer_closed;   /* nobody would read that, or ask: the peer has closed already */
	bool lost;          /* it has failed: nobody would read that it is aborted */
	bool peer_said;     /* rdma_cm told of the peer's */
	bool peer_reported; /* ... and so did we */
	bool dead;          /* conn_destroy was there */
	/* under qp->base.lock: */
	uint32_t controls_done; /* bits of enum verbs_control */
};

static inline struct verbs_conn *verbs_conn_of(struct ndx_spi_conn *conn)
{
	return container_of(conn, struct verbs_conn, spi);
}

static inline const struct ndx_host *verbs_host(const struct verbs_adapter *adapter)
{
	return adapter->spi.host;
}

struct verbs_request {
	struct ndx_spi_request spi;
	struct verbs_adapter *adapter;
	struct rdma_cm_id *id;
	struct verbs_cm_peer peer;
};

/* A copy of what rdma_cm told, which was acknowledged already. */
struct verbs_event {
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

void verbs_cm_on_event(void *arg, uint32_t events);
/* The peer's half of an event's parameters. */
void verbs_event_params(const struct verbs_event *event, struct ndx_spi_params *params,
                        struct verbs_cm_peer *peer);
void verbs_conn_on_event(struct verbs_conn *conn, const struct verbs_event *event);
/* The device is no more. */
void verbs_conn_on_removal(struct verbs_conn *conn, int native);
struct verbs_listener;
void verbs_listeners_on_removal(struct verbs_adapter *adapter, int native);
void verbs_listener_on_event(struct verbs_listener *listener, const struct verbs_event *event);

enum ndx_status verbs_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                  struct ndx_spi_conn **out);
void verbs_conn_destroy(struct ndx_spi_conn *spi);
enum ndx_status verbs_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                                socklen_t len);
enum ndx_status verbs_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                   socklen_t len, const struct ndx_spi_params *params);
enum ndx_status verbs_conn_complete(struct ndx_spi_conn *spi);
void verbs_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *request);
enum ndx_status verbs_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params);
enum ndx_status verbs_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len);
void verbs_conn_abandon(struct ndx_spi_conn *spi);

void verbs_conn_drain(struct ndx_spi_conn *spi);
void verbs_conn_cancel_initiator(struct ndx_spi_conn *spi);
void verbs_conn_send_disc(struct ndx_spi_conn *spi);
void verbs_conn_finish(struct ndx_spi_conn *spi);
void verbs_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status verbs_conn_detach(struct ndx_spi_conn *spi);
enum ndx_status verbs_qp_describe(struct ndx_spi_conn *spi, const struct sockaddr_storage *near,
                                  struct ndx_peer_description *out);
enum ndx_status verbs_qp_connect_peer(struct ndx_spi_conn *spi,
                                      const struct ndx_peer_description *peer);
/* What rdma_init_qp_attr() would say, of a connection that rdma_cm does not know. */
void verbs_peer_attr(const struct verbs_conn *conn, struct ibv_qp_attr *attr, int *mask);
void verbs_conn_heard(struct ndx_spi_conn *spi, enum ndx_spi_word word);
/* The conn has its queue pair: tie the two. */
void verbs_conn_tie(struct verbs_conn *conn);
/* The address that a GID stands for; RoCE v2 keeps IPv4 addresses mapped. */
void verbs_address_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out);
/* rdma_cm says that the peer disconnected, or that our own request for it timed out. */
void verbs_end_on_disconnected(struct verbs_conn *conn, int status);
void verbs_end_on_work(void *arg); /* what completions have asked for */
void verbs_end_on_timer(void *arg);
/* The peer, which has said goodbye, does not take the word of ours. */
void verbs_end_unheard(struct verbs_conn *conn);
/* The peer, which has said goodbye, does not answer requests that are under way. */
void verbs_end_peer_closed(struct verbs_conn *conn);

/* ---- while a connection is up (verbs_watch.c) ---- */

void verbs_watch_open(struct verbs_adapter *adapter); /* its limits are known */
void verbs_watch_close(struct verbs_adapter *adapter);
/* 0: not known. */
uint64_t verbs_watch_count(const struct verbs_adapter *adapter, enum verbs_counter which);
void verbs_watch_begin(struct verbs_conn *conn);
void verbs_watch_end(struct verbs_conn *conn);
void verbs_watch_on_timer(void *arg);

/* A new rdma_cm_id, bound to an address. */
enum ndx_status verbs_bind(struct verbs_adapter *adapter, void *owner,
                           const struct sockaddr_storage *address, struct rdma_cm_id **out);
/* An address to bind to: one of the adapter's, for the unspecified one the first of its family. */
enum ndx_status verbs_own_address(const struct verbs_adapter *adapter,
                                  const struct sockaddr *wanted, socklen_t len,
                                  struct sockaddr_storage *out);
/* What an rdma_cm_id is bound to. */
void verbs_local_of(struct rdma_cm_id *id, struct sockaddr_storage *out);

enum ndx_status verbs_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                      struct ndx_spi_listener **out);
void verbs_listener_destroy(struct ndx_spi_listener *spi);
enum ndx_status verbs_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                    socklen_t len);
enum ndx_status verbs_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog);
void verbs_request_refuse(struct ndx_spi_request *spi);

#endif
