/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libfabric provider: what its files share.
 *
 * A queue pair lives longer than its transport: the endpoint is made when connecting begins, and
 * closed when the connection ends. A `link` is that endpoint with all that belongs to it. A link
 * has a native completion queue (ncq), its own or one that it shares. A consumer that polls its
 * completion queue reads the ncqs tied to it; the control thread reads an ncq that no consumer
 * polls.
 *
 * Locks, in this order: ofi_cq.poll_lock, ofi_ncq.lock, queue pair, completion queue, the core's
 * leaf locks; ofi_srq.h has those of shared receive queues. "Control thread" in a comment means
 * that only the control thread uses the field or runs the function. The libfabric domain is opened
 * as FI_THREAD_SAFE.
 */
#ifndef OFI_OFI_H
#define OFI_OFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/queue_pair.h>
#include "ofi_access.h"
#include "ofi_backend.h"
#include "ofi_cq.h"
#include "ofi_info.h"
#include "ofi_keepalive.h"
#include "ofi_mr.h"
#include "ofi_netif.h"
#include "ofi_peer.h"
#include "ofi_sizes.h"
#include "ofi_srq.h"
#include "ofi_wire.h"

#define OFI_API FI_VERSION(1, 17)
#define OFI_MAX_IOV 4u /* libfabric's tcp provider overruns its arrays with more */
#define OFI_MAX_DEPTH OFI_CM_DEPTH_MAX
#define OFI_MAX_CQ_DEPTH (UINT32_C(1) << 20)
#define OFI_MAX_TRANSFER (UINT32_C(1) << 30)
#define OFI_MAX_INLINE 256u
#define OFI_MAX_READS 64u

struct ofi_conn;

/* ---- status (ofi_status.c) ---- */

/* The status for a failed libfabric call of the control path; `err` is positive. */
enum ndx_status ofi_status_of(int err);
/* The status for a request that failed with `err`. */
enum ndx_status ofi_request_status(int err);
/* EMFILE or ENFILE if too few descriptors are left for a call of libfabric, else 0. */
int ofi_no_descriptor(void);

/* ---- event queues (ofi_eq.c); control thread ---- */

struct ofi_cm_event {
	uint32_t what; /* FI_CONNREQ, ...; 0: a failure with err */
	int err;
	int native; /* the provider's own error code */
	fid_t fid;
	struct fi_info *info; /* FI_CONNREQ: `event` has to free it */
	const uint8_t *data;
	size_t len;
};

struct ofi_eq {
	struct ofi_adapter *adapter;
	struct fid_eq *eq;
	struct ndxp_watch watch;
	struct ndxp_timer retry;
	void (*event)(void *owner, const struct ofi_cm_event *event);
	/* Called after each read. True: something happened without an event. May be NULL. */
	bool (*looked)(void *owner);
	void *owner;
	unsigned idle; /* wake-ups in a row that found no event */
	bool throttled;
	bool more; /* the last read left events behind */
};

/* The caller has set event and owner; the rest is zero. */
enum ndx_status ofi_eq_open(struct ofi_eq *eq, struct ofi_adapter *adapter);
void ofi_eq_close(struct ofi_eq *eq);
/* Pass on all events of the queue. */
void ofi_eq_read_all(struct ofi_eq *eq);

/* ---- adapters (ofi_adapter.c, ofi_address.c) ---- */

/* Counters of what happens beside the data path; atomic. */
struct ofi_counts {
	uint64_t ctrl_sent; /* control messages that stand alone, without those for credits only */
	uint64_t ctrl_received;
	uint64_t wakeups;    /* of the control thread, by the descriptor of a native queue */
	uint64_t vain;       /* reads of a native queue by the control thread that found nothing */
	uint64_t rest_waits; /* polls that read on for the rest of a message */
	uint64_t ticks;      /* checks of the control thread whether consumers still poll */
};

static inline void ofi_count(uint64_t *count)
{
	(void)__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

struct ofi_adapter {
	struct ndx_spi_adapter spi;
	const struct ofi_backend *backend; /* the one of the options */
	struct ofi_counts counts;
	struct ofi_options options;
	struct sockaddr_storage *addresses;
	size_t address_count;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *refuser; /* refuses requests, also those whose listener is gone */
	enum ofi_cq_share share;
	bool software;      /* the device is software RoCE; ofi_complete.c has a workaround */
	uint32_t vendor_id; /* of the device; 0: software, or not known */
	uint32_t max_transfer;
	uint32_t max_depth;  /* of a queue */
	uint32_t answer_ms;  /* OFI_ANSWER_MS */
	uint32_t hello_ms;   /* OFI_HELLO_MS */
	uint32_t stall_ms;   /* OFI_STALL_MS */
	uint32_t confirm_ms; /* OFI_CONFIRM_MS */
	uint32_t recall_ms;  /* OFI_RECALL_MS */
	struct ofi_mr_table regions;
	struct ofi_key_table keys;
	struct ofi_op silent; /* context of operations whose completion is ignored */
	/* Backends with `proves`: what follows the record in first messages of all connections:
	 * zeros to send, then room for what is received, which is garbage. */
	uint8_t *padding;
	struct fid_mr *padding_mr;
	struct ofi_eq eq;
	struct ofi_netifs netifs;
	struct ndxp_list conns; /* guarded by the core's adapter lock */
	struct ndxp_list qps;   /* guarded by qps_lock */
	struct ndxp_lock qps_lock;
	uint32_t link_count;    /* atomic */
	uint32_t looks;         /* `look` is queued, or the tick is set for it; atomic */
	struct ndxp_list asked; /* revokes that have not begun; guarded by asked_lock */
	struct ndxp_lock asked_lock;
	struct ndxp_list srqs; /* guarded by srqs_lock */
	struct ndxp_lock srqs_lock;
	struct ndxp_job serve; /* serves the queue pairs that wait for shared receives */
	/* control thread */
	struct ndxp_list links;
	struct ndxp_list lingering; /* listeners that were destroyed */
	struct ndxp_list ncqs;
	struct ndxp_timer tick; /* checks the ncqs in mode AWAY */
	struct ndxp_job kick;   /* reads the ncqs that are kicked */
	struct ndxp_job look;   /* sets the tick, for acknowledgements that are owed */
	struct ndxp_list revokes;
	struct ndxp_job revoke_job; /* begins the revokes in `asked`, and continues the others */
	struct ndxp_timer revoke_timer;
	int diag;             /* socket for queries about connections (ofi_peer.c); -1: none */
	uint32_t round;       /* number of the latest SYNC round */
	struct ndxp_job last; /* frees the adapter, behind a kick that is still queued */
};

static inline struct ofi_adapter *ofi_adapter_of(struct ndx_spi_adapter *adapter)
{
	return (struct ofi_adapter *)(void *)adapter;
}

static inline const struct ndx_host *ofi_host(const struct ofi_adapter *adapter)
{
	return adapter->spi.host;
}

enum ndx_status ofi_adapter_open(const struct ndx_spi_adapter *head, const struct ndx_spi_open *how,
                                 struct ndx_spi_adapter **out);
void ofi_adapter_close(struct ndx_spi_adapter *spi);
void ofi_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info);
size_t ofi_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                             size_t room);
/* May this adapter connect to the address? INVALID_ADDRESS if not, with a text that says how to
 * allow it. */
enum ndx_status ofi_check_trust(const struct ofi_adapter *adapter,
                                const struct sockaddr_storage *peer, const char *what);
/* Fail with NDX_E_INVALID_ADDRESS unless it is an address of the adapter. The port does not matter.
 */
enum ndx_status ofi_check_own(const struct ofi_adapter *adapter,
                              const struct sockaddr_storage *address);
/* What to do about an errno of binding or listening: "; ...", or "". */
const char *ofi_address_hint(int err);

/* ---- queue pairs (ofi_qp.c, ofi_submit.c, ofi_credit.c, ofi_receive.c, ofi_report.c) ---- */

/* A send, write, read, bind or invalidate. What a request with one SGE needs comes first. */
struct ofi_tx {
	struct ndxp_req base;
	struct ofi_op op;
	uint64_t address; /* remote address of a read or write */
	uint32_t key;
	uint32_t length;
	uint32_t immediate;
	uint8_t iov_count;
	uint8_t ctrl_flags; /* enum ofi_ctrl_flag of a send or write; else 0 */
	uint8_t parts;  /* of a write with immediate data: how many of its parts libfabric has */
	bool native;    /* libfabric has the request, or parts of it */
	bool remote;    /* `verdict` is about the peer's memory */
	bool unacked;   /* a message for which the peer's acknowledgement has not come */
	bool unfit;     /* a message that its receive cannot take, as `verdict` says */
	uint8_t denied; /* enum ofi_denied, with a `verdict` of NDX_E_ACCESS_VIOLATION */
	enum ndx_status verdict; /* NDX_OK, or the status with which it completes in its turn */
	struct iovec iov[OFI_MAX_IOV];
	uint32_t tokens[OFI_MAX_IOV];
	void *desc[OFI_MAX_IOV]; /* if the back end has native keys */
	struct ofi_mw *mw;       /* of a bind or invalidate; NULL: the window was closed */
};

struct ofi_rx {
	struct ndxp_req base;
	struct ofi_op op;
	struct iovec iov[OFI_MAX_IOV];
	void *desc[OFI_MAX_IOV];
	uint32_t tokens[OFI_MAX_IOV];
	uint8_t iov_count;
	bool native;
	bool poisoned;  /* its memory was deregistered, or must not be written: it cannot receive */
	bool placed;    /* `place` is its entry in the peer's control region (ofi_sizes.h) */
	uint8_t denied; /* enum ofi_denied, if it is poisoned */
	uint32_t place;
	enum ndx_status verdict;   /* NDX_OK, or the status for a message that does not fit */
	struct ofi_shared *shared; /* of a shared receive queue; NULL: of the queue pair */
};

/* Acknowledgements of messages (ofi_ack_count.c, ofi_ack.c); counts since the connection began,
 * modulo 2^16. */
struct ofi_acks {
	uint16_t arrived;   /* messages of the peer that have arrived in receives, ... */
	uint16_t told;      /* ... and those of them that the peer has been told of */
	uint16_t every;     /* so many are told without waiting for a better moment */
	uint16_t confirmed; /* own messages that have arrived at the peer */
	uint32_t waiting;   /* own messages that libfabric has taken, and that are not confirmed */
	uint32_t implied;   /* the oldest of them: these are complete nevertheless */
	uint32_t next;      /* the oldest of the others is this request, or a later one */
	uint32_t window;    /* the largest `waiting` that both queues allow */
	uint32_t usual;     /* `waiting` when the consumer began to wait; else it has grown */
	uint32_t unasked;   /* messages in flight behind the last one with ACK_REQ */
	uint32_t empty_polls; /* count of the ncq when the latest message was sent */
	bool ask;             /* the next CREDIT has ACK_REQ */
	bool listed;          /* in ncq->ack_list */
};

struct ofi_qp {
	struct ndxp_qp base;
	struct ofi_adapter *adapter;
	char *bounce; /* initiator_depth * inline_size */
	struct ndxp_list node;
	struct ndxp_list credit_node; /* in ncq->credit_pending */
	struct ndxp_list ack_node;    /* in ncq->ack_list */
	struct ofi_link *link;        /* guarded by the ncq's lock */
	/* guarded by base.lock */
	struct fid_ep *ep;     /* takes receives; NULL: there is no link */
	struct ofi_conn *conn; /* gets the reports */
	struct ofi_ncq *ncq;
	bool open;      /* the endpoint is connected */
	bool peer_disc; /* the peer has said goodbye: it needs no credits any more */
	bool draining;  /* report DRAINED when no own request is in flight */
	bool broken;    /* ABORT was reported; no request is submitted any more */
	bool releasing; /* receives are being canceled because the link ends */
	bool recalling; /* receives are being canceled and will be posted again */
	const struct ofi_revoke *recalled_for; /* by this revoke; NULL: by none, ... */
	uint32_t recall_first;                 /* ... from this one on; control thread */
	uint32_t own_id;  /* identifies the connection in control messages to this end */
	uint32_t peer_id; /* the same, in control messages to the peer */
	uint32_t peer_key;
	uint64_t peer_address;
	uint32_t peer_depth;
	uint32_t credits;     /* how many more receives of the peer this end may use */
	uint32_t rx_next;     /* first receive that libfabric does not have */
	uint32_t rx_native;   /* receives that libfabric has */
	uint32_t rx_credited; /* those of them for which the peer has a credit */
	uint32_t tx_next;     /* first request that libfabric never had */
	uint32_t tx_native;   /* requests that libfabric has, or that are not acknowledged */
	struct ofi_acks acks;
	struct ofi_sizes sizes;
	uint32_t reads; /* reads among them */
	uint32_t read_limit;
	uint32_t written;      /* length of the write that the next message reports */
	uint8_t written_parts; /* parts of that length that have come */
	bool timer_set;
	bool retrying; /* the timer is set for a request for which libfabric had no memory */
	struct ndxp_timer timer;
	uint64_t credit_ctrl_sent; /* control messages with credits and acknowledgements only */
	uint64_t credit_ctrl_received;
	struct ofi_grants grants;
	struct ofi_mw *invalidating; /* the window whose end the request at tx_next waits for */
	struct ndxp_list windows;    /* struct ofi_mw.of_qp; guarded by adapter->regions.lock */
	struct ofi_verbs_qp verbs;
	struct ofi_taker taker;
	bool peer_shared; /* the peer's receives are shared: ask for them (ofi_srq_ask.c) */
	uint16_t asked;   /* messages for which this end has asked, modulo 2^16 */
};

static inline struct ofi_qp *ofi_qp_of(struct ndx_spi_qp *spi)
{
	return (struct ofi_qp *)(void *)spi;
}

static inline struct ofi_tx *ofi_tx_at(const struct ofi_qp *qp, uint32_t index)
{
	return (struct ofi_tx *)(void *)ndxp_queue_at(&qp->base.initiator, index);
}

static inline struct ofi_rx *ofi_rx_at(const struct ofi_qp *qp, uint32_t index)
{
	return (struct ofi_rx *)(void *)ndxp_queue_at(&qp->base.receive, index);
}

/* Is `index` before `next`, the first request that libfabric never had? A request that is posted
 * after the end of the connection completes at once, so the oldest request may be behind `next`: a
 * loop must not test for equality. */
static inline bool ofi_is_before(uint32_t index, uint32_t next)
{
	return (int32_t)(index - next) < 0;
}

enum ndx_status ofi_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_spi_qp **out);
void ofi_qp_destroy(struct ndx_spi_qp *spi);
void ofi_qp_cancel(struct ndx_spi_qp *spi);
static inline const struct ofi_backend *ofi_backend_of(const struct ofi_qp *qp)
{
	return qp->adapter->backend;
}
/* Counters (ofi_stats.c); the lock is not held. */
void ofi_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);
void ofi_get_counters(struct ndx_spi_adapter *spi, struct ndx_spi_qp *qp, ndx_spi_counter_fn *each,
                      void *arg);

/* Which check memory has failed, in words. */
const char *ofi_denied_text(enum ofi_denied denied);

/* All below: the queue pair's lock is held. */

/* Report ABORT once; from now on no request is submitted. */
void ofi_qp_break(struct ofi_qp *qp, int native, const char *cause);
/* The same with a text that is formatted. */
void ofi_qp_break_with(struct ofi_qp *qp, int native, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Submit the waiting requests, as far as order, credits and memory allow. */
void ofi_submit(struct ofi_qp *qp);
/* libfabric has completed a request: err 0, or an errno of libfabric's. */
void ofi_tx_done(struct ofi_qp *qp, struct ofi_tx *tx, int err);
/* Complete the requests of which libfabric has no part as CANCELED. */
void ofi_cancel_waiting(struct ofi_qp *qp);
/* Set the queue pair's timer (ofi_qp_timer.c) to submit again after a moment. */
void ofi_submit_later(struct ofi_qp *qp);
/* A send begins to wait for a receive of the peer: start the RNR clock. */
void ofi_rnr_begin(struct ofi_qp *qp);
/* Set the timer for the end of the RNR time, which is `left_ms` away, or to poll for credits where
 * no event reports them. */
void ofi_await_credits(struct ofi_qp *qp, uint32_t left_ms);
/* Report DRAINED if the core waits for it and no request is outstanding. */
void ofi_check_drained(struct ofi_qp *qp);
void ofi_on_rnr_timer(void *arg); /* the timer's function; the lock is not held */
/* Give receives to libfabric, as many as it takes. */
void ofi_post_receives(struct ofi_qp *qp);
/* Announce new receives to the peer if they are enough: now, or with the next send or poll. */
void ofi_send_credits(struct ofi_qp *qp);
/* The ncq's lock is held, no queue pair's: send the credits and the acknowledgements that are
 * overdue. */
void ofi_send_pending_credits(struct ofi_ncq *ncq);
/* The number of receives that the peer does not know; from now on they count as announced. */
uint16_t ofi_take_credits(struct ofi_qp *qp);
/* The same for the data of connection management. */
uint16_t ofi_first_credits(struct ofi_qp *qp);
/* Send one control message with the credits and acknowledgements that the peer does not know;
 * false: libfabric does not take one now. */
bool ofi_announce(struct ofi_qp *qp);
/* The same, if there is a credit that the peer does not know. */
bool ofi_announce_all(struct ofi_qp *qp);
/* A receive is no longer with libfabric. */
void ofi_rx_returned(struct ofi_qp *qp, struct ofi_rx *rx);
/* A receive has ended: it becomes a result, or goes back to its shared queue. */
void ofi_rx_done(struct ofi_qp *qp, struct ofi_rx *rx, enum ndx_status status, int native);
/* Break the connection of a receive that failed. */
void ofi_rx_break(struct ofi_qp *qp, const struct ofi_rx *rx, enum ndx_status status, int native);
/* A receive came back without a message. */
void ofi_rx_failed(struct ofi_qp *qp, struct ofi_rx *rx, int err);

/* ---- acknowledgements (ofi_ack_count.c, ofi_ack.c); the queue pair's lock is held ---- */

#define OFI_EMPTY_WAIT 2u /* polls in a row that find nothing: the consumer waits */

void ofi_acks_begin(struct ofi_qp *qp);
/* The endpoint is connected; the peer has at most `peer_initiator_depth` requests in flight. */
void ofi_acks_open(struct ofi_qp *qp, uint32_t peer_initiator_depth);
/* Nothing is owed or asked any more, because it is said, or because nothing can be said. */
void ofi_acks_end(struct ofi_qp *qp);
/* How many messages of the peer has this end not acknowledged yet? */
static inline uint16_t ofi_acks_owed(const struct ofi_qp *qp)
{
	return (uint16_t)(qp->acks.arrived - qp->acks.told);
}
/* A message has arrived in a receive: its acknowledgement may wait for a better moment. asked: it
 * has OFI_CTRL_ACK_REQ. The ncq's lock is held, too. */
void ofi_ack_later(struct ofi_qp *qp, bool asked);
/* ofi_ack_all() has to look at the queue pair. */
void ofi_ack_list(struct ofi_qp *qp);
/* A message tells the peer of all that has arrived, or nothing can. */
void ofi_ack_told(struct ofi_qp *qp);
/* OFI_CTRL_ACK_REQ if this end will probably wait for the acknowledgement of the next message, or
 * 0. */
uint8_t ofi_ack_request(const struct ofi_qp *qp);
/* libfabric has taken a message with these flags. */
void ofi_ack_await(struct ofi_qp *qp, struct ofi_tx *tx, uint8_t flags);
/* Tell the peer what has arrived, and ask for all that is not asked for; false: libfabric has no
 * memory for the moment, and the next tick does so. */
bool ofi_ack_now(struct ofi_qp *qp);
/* The number of messages that has these lower 8 bits, the next one that is not confirmed yet. */
static inline uint16_t ofi_ack_complete(const struct ofi_qp *qp, uint8_t low)
{
	return (uint16_t)(qp->acks.confirmed + (uint8_t)(low - qp->acks.confirmed));
}
/* The peer acknowledges: complete what has arrived there. NULL, or the peer's violation of the
 * protocol. ofi_ack_take() also goes on with what has waited for that. */
const char *ofi_ack_cover(struct ofi_qp *qp, uint16_t arrived);
const char *ofi_ack_take(struct ofi_qp *qp, uint16_t arrived);
/* libfabric has completed a write or read: complete the messages before it. */
void ofi_ack_imply(struct ofi_qp *qp, const struct ofi_tx *tx);

/* The ncq's lock is held, no queue pair's. */
/* Send every acknowledgement that is owed, and ask for all that are not asked for. */
void ofi_ack_all(struct ofi_ncq *ncq);
/* No result will come for a while: do the same, if one that is owed is asked for, or one is not
 * asked for. */
void ofi_ack_asked(struct ofi_ncq *ncq);
/* The consumer arms a notification. */
void ofi_ack_armed(struct ofi_ncq *ncq);
/* The consumer has polled. away: it polls all the time. */
void ofi_ack_polled(struct ofi_ncq *ncq, bool found, bool away);
/* Any thread: the control thread has to send soon what is owed then. */
void ofi_ack_look(struct ofi_ncq *ncq);

/* ---- links (ofi_endpoint.c, ofi_endpoint_state.c, ofi_ctrl.c) ---- */

enum ofi_stage {
	OFI_LINK_CONNECTING, /* active side: no answer yet */
	OFI_LINK_ANSWERED, /* active side: the peer has accepted, the consumer has not completed */
	OFI_LINK_COMPLETING, /* active side: READY is in flight */
	OFI_LINK_ACCEPTING,  /* passive side: READY has not come */
	OFI_LINK_UP,
	OFI_LINK_OVER, /* failed or refused; the core knows */
};

struct ofi_link {
	struct ofi_adapter *adapter;
	struct ofi_ncq *ncq;
	struct ofi_op ready_op;
	struct ofi_op reject_op;
	struct ofi_op disc_op;
	struct ofi_op sync_op;
	struct ofi_op answers[3]; /* to ASK, SYNC and PING */
	struct ofi_op first_op;
	struct fid_mr *control; /* memory region of `area`, into which the peer writes records */
	uint32_t key;
	size_t area_size;
	uint8_t *sizes; /* the peer's entries for the own receives (ofi_sizes.h); NULL: none */
	uint8_t refusal[OFI_CM_PRIVATE]; /* private data of the own REJECT */
	uint8_t answer[OFI_GRANT_SIZE];  /* records of this end: the next one of a kind is written
	                                    when */
	uint8_t forget[4 * OFI_TOKENS_MAX]; /* the peer has acted on the one before */
	uint32_t id;
	/* control thread */
	struct ndxp_list node; /* in adapter->links */
	struct fid_ep *ep;
	struct ndxp_timer timer; /* answers, then keepalive (ofi_keepalive.c); end of an orphan */
	uint32_t keepalive_ms;
	uint32_t seen;                /* `heard` at the end of the last period */
	uint64_t release_until_ns;    /* limit of ofi_link_release_later(); 0: not called yet */
	uint64_t flush_until_ns;      /* limit of the wait for the rest, once `closing` */
	uint64_t pinged_ns;           /* when the latest PING was sent */
	struct ofi_liveness liveness; /* the peer's latest sign of life, ... */
	uint64_t liveness_ns;         /* ... and when it came */
	struct ofi_flow flow;         /* what moved while a SYNC waits for its answer */
	/* guarded by the ncq's lock */
	struct ndxp_table_node by_id; /* in ncq->links, while a queue pair is attached */
	struct ofi_conn *conn; /* NULL: an orphan, which only sends its last control message */
	struct ofi_qp *qp;     /* NULL: detached */
	enum ofi_stage stage;
	struct ofi_cm peer;
	bool known;           /* `peer` is filled */
	bool open;            /* the endpoint is connected */
	bool closing;         /* this end closes it: failures are expected */
	bool ending;          /* it is closed when the rest is back; then QUIET is reported */
	bool lost;            /* the failure was reported */
	bool peer_disc;       /* the peer's DISC has come */
	bool pinged;          /* a PING has no answer yet */
	uint32_t answering;   /* bits 1 << type of the answers that are in flight */
	uint32_t sync_wanted; /* SYNC rounds (ofi_revoke.c): the latest that was asked for, ... */
	uint32_t sync_sent;   /* ... the latest that was sent, ... */
	uint32_t sync_done;
	uint32_t tokens[OFI_TOKENS_MAX]; /* tokens that the next SYNC names, ... */
	uint16_t token_count; /* ... and their number; OFI_TOKENS_ALL: too many to name */
	bool sync_acked; /* the SYNC was delivered, and with it all that this end had sent before */
	bool sync_answered;     /* all that the peer had sent before has arrived */
	uint32_t ctrl_out;      /* control messages in flight */
	uint32_t signs_of_life; /* count of signs of life of the peer, ... */
	uint32_t ctrl_in;       /* ... and of the control messages among them */
	struct ofi_verbs_link verbs;
	/* The records; enum ofi_area_offset. The entries of the peer's receives follow in the same
	 * block of memory (alloc_link() in ofi_endpoint.c). */
	_Alignas(8) uint8_t area[OFI_AREA_SIZE];
};

/* The lock of the native queue is held: the link with this id; NULL if there is none. */
static inline struct ofi_link *ofi_ncq_find(const struct ofi_ncq *ncq, uint32_t id)
{
	struct ndxp_table_node *node = ndxp_table_first(&ncq->links, id);

	return node != NULL ? container_of(node, struct ofi_link, by_id) : NULL;
}

/*
 * Control thread. Make an endpoint for `conn` and its queue pair from `info`, and give it the
 * receives that are posted already. *own has the parameters of the connection; the call adds the
 * rest of what the peer has to know. peer: of the passive side, what the peer has sent; NULL on the
 * active side.
 */
enum ndx_status ofi_link_create(struct ofi_conn *conn, struct ofi_qp *qp, struct fi_info *info,
                                const struct ofi_cm *peer, struct ofi_link **out,
                                struct ofi_cm *own);
/*
 * Control thread: close the endpoint and free the link. The queue pair's requests have come back or
 * are canceled when this returns. keep: the attempt has failed, and the queue pair keeps its
 * receives for the next one.
 */
void ofi_link_close(struct ofi_link *link, bool keep);
/*
 * Control thread: close the link of an established connection as a state, and report QUIET. The
 * device takes its time to bring requests back, and other connections need this thread. In a
 * callback the wait is in here; to be called again there while the state lasts.
 */
void ofi_link_end(struct ofi_link *link);
/* Control thread: take the receives of an attempt back, for the next one; false if one remains
 * because a message is arriving. */
bool ofi_link_release(struct ofi_link *link);
/* Control thread, with a queue pair: take the receives back, as a state; they complete as CANCELED.
 * NDX_PENDING: a message is arriving, or the device still has them: ask again; NDX_E_DEVICE_BUSY:
 * that does not end. In a callback the wait is in here. */
enum ndx_status ofi_link_release_later(struct ofi_link *link);
/* Control thread: separate the link from the queue pair and its completion queues. */
void ofi_link_detach(struct ofi_link *link);
/* Control thread: the link has no conn any more, and ends by itself. */
void ofi_link_orphan(struct ofi_link *link);
/* Control thread: close every link of the adapter. */
void ofi_link_close_all(struct ofi_adapter *adapter);
struct ofi_link *ofi_link_find(struct ofi_adapter *adapter, const struct fid *fid);
/* Control thread: close the link, whatever state the core is in, and report that it is lost. */
void ofi_link_force_close(struct ofi_link *link, const char *cause);

/* The ncq's lock is held, below here. */
/* Send a control message; 0 or an errno of libfabric's. Unless `op` is the adapter's silent one,
 * its delivery is confirmed in ofi_ctrl_done(). */
int ofi_link_send_ctrl(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op);
/* Send a control message with a record for the peer's control region. */
int ofi_link_send_record(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op,
                         enum ofi_area_offset offset, const struct iovec *record);
/* Begin the next SYNC round, if one is asked for and none is in flight. */
void ofi_link_sync(struct ofi_link *link);
/* The endpoint is connected, and `peer` has the peer's parameters. */
void ofi_link_opened(struct ofi_link *link);
/* The cause of a link that ended without a goodbye: what is known of it, which is little. */
extern const char ofi_link_lost[];
/* The link has failed: report the failure that belongs to its stage. */
void ofi_link_break(struct ofi_link *link, int native, const char *cause);
/* The peer has closed the link without a goodbye. */
void ofi_link_cut(struct ofi_link *link);
/* The connection is established: the queue pair takes posts. */
void ofi_link_go_up(struct ofi_link *link);
/* Act on a control message; NULL, or the peer's violation of the protocol. */
const char *ofi_ctrl_handle(struct ofi_link *link, const struct ofi_ctrl *ctrl);
/* A control message came alone. */
void ofi_ctrl_received(struct ofi_ncq *ncq, uint64_t data);
/* An own control message was delivered, or was not. */
void ofi_ctrl_done(struct ofi_link *link, uint8_t type, int err);

#include "ofi_conn.h"
#include "ofi_hello.h"

#endif
