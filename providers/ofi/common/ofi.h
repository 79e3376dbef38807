/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libfabric provider: what its files share.
 *
 * A queue pair lives longer than the transport below it: the endpoint is made when connecting
 * begins and closed when it ends. That endpoint with all that belongs to it is the `link`. A link
 * has one native completion queue (ncq), for its own or shared with others; whoever polls a
 * completion queue of the consumer's moves the ncqs tied to it, and the control thread moves them
 * when nobody polls.
 *
 * Locks, in this order: ofi_cq.poll_lock -> ofi_ncq.lock -> queue pair -> completion queue ->
 * core's leaf locks. "Control thread" as a comment means that only it touches the field, or runs
 * the function. libfabric itself is opened FI_THREAD_SAFE.
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
#undef container_of /* libfabric brings its own */

#include <ndx/spi/provider.h>

#include "base_container_of.h"
#include "base_list.h"
#include "base_lock.h"
#include "base_loop.h"
#include "base_qp.h"
#include "ofi_access.h"
#include "ofi_backend.h"
#include "ofi_cq.h"
#include "ofi_keepalive.h"
#include "ofi_mr.h"
#include "ofi_peer.h"
#include "ofi_wire.h"

#define OFI_API FI_VERSION(1, 17)
#define OFI_MAX_IOV 4u /* the tcp provider overruns its arrays with more */
#define OFI_MAX_DEPTH 4096u
#define OFI_MAX_CQ_DEPTH (UINT32_C(1) << 20)
#define OFI_MAX_TRANSFER (UINT32_C(1) << 30)
#define OFI_MAX_INLINE 256u
#define OFI_MAX_READS 64u

struct ifaddrs;
struct ofi_conn;

/* ---- descriptions (ofi_info.c, ofi_options.c) and status (ofi_status.c) ---- */

enum ofi_cq_choice { OFI_CQ_AUTO, OFI_CQ_PRIVATE, OFI_CQ_SHARED };

/* The URI, understood. */
struct ofi_options {
	const struct ofi_flavour *flavour;
	char iface[32];                  /* "" if not given */
	struct sockaddr_storage address; /* AF_UNSPEC if not given */
	bool lan;                        /* peers beyond this host are trusted */
	bool any_user;    /* users of this host other than the own and root may connect */
	bool peers_named; /* peers= stands somewhere */
	enum ofi_cq_choice cq;
};

extern const struct ndx_spi_key ofi_keys[];

enum ndx_status ofi_parse_options(const struct ndx_spi_open *how, struct ofi_options *out);
/* The addresses that the options leave; *list is the caller's to free. */
enum ndx_status ofi_find_addresses(const struct ofi_options *options,
                                   struct sockaddr_storage **list, size_t *count);
/* Ask libfabric for its description of the endpoint type we use, at a local address. */
enum ndx_status ofi_get_info(const struct ofi_flavour *flavour,
                             const struct sockaddr_storage *address, struct fi_info **out);
/* An address of an interface that can be used: *out, and true. */
bool ofi_usable_address(const struct ifaddrs *i, struct sockaddr_storage *out);
/* The same at every open, and different for different devices. */
uint64_t ofi_adapter_id(const char *device, const char *where);
/* A copy with other addresses; NULL for none. The caller frees it; NULL: out of memory. */
struct fi_info *ofi_dup_info(const struct fi_info *info, const struct sockaddr_storage *source,
                             const struct sockaddr_storage *destination);
enum ndx_status ofi_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                         ndx_spi_list_fn *each, void *arg);
void ofi_describe(const struct ofi_options *options, struct ndx_adapter_info *info);

/* Status for a failed libfabric call of the control path; `err` is positive. */
enum ndx_status ofi_status_of(int err);
/* Status for a request that failed with `err`. */
enum ndx_status ofi_request_status(int err);

/* ---- event queues (ofi_eq.c); control thread ---- */

struct ofi_cm_event {
	uint32_t what; /* FI_CONNREQ, ...; 0: failed with err */
	int err;
	int native; /* what the provider calls it */
	fid_t fid;
	struct fi_info *info; /* FI_CONNREQ: the receiver's to free */
	const uint8_t *data;
	size_t len;
};

struct ofi_eq {
	struct ofi_adapter *adapter;
	struct fid_eq *eq;
	struct base_watch watch;
	struct base_timer retry;
	void (*event)(void *owner, const struct ofi_cm_event *event);
	/* It was looked at. True: something happened that is no event. May be NULL. */
	bool (*looked)(void *owner);
	void *owner;
	unsigned idle; /* wake-ups in a row that found nothing */
	bool throttled;
	bool more; /* it was left with events unread */
};

/* event and owner are set; the rest is zero. */
enum ndx_status ofi_eq_open(struct ofi_eq *eq, struct ofi_adapter *adapter);
void ofi_eq_close(struct ofi_eq *eq);
/* Hand on all events that are there. */
void ofi_eq_read_all(struct ofi_eq *eq);

/* ---- adapters (ofi_adapter.c, ofi_address.c) ---- */

/* Counted beside the data path; atomic. */
struct ofi_counts {
	uint64_t words_sent; /* control words that stand alone, but for those with credits */
	uint64_t words_received;
	uint64_t wakeups; /* of the control thread, by a native queue's descriptor */
	uint64_t vain;    /* looks of the control thread at a native queue that found nothing */
	uint64_t ticks;   /* at which it looked whether consumers still poll */
};

static inline void ofi_count(uint64_t *count)
{
	(void)__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

struct ofi_adapter {
	struct ndx_spi_adapter spi;
	const struct ofi_flavour *flavour; /* the one of the options */
	struct ofi_counts counts;
	struct ofi_options options;
	struct sockaddr_storage *addresses;
	size_t address_count;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_pep *refuser; /* refuses requests, also when their listener is gone */
	enum ofi_cq_share share;
	bool software;      /* rdma_rxe: see ofi_complete.c */
	uint32_t vendor_id; /* of the device; 0 for software, or not known */
	uint32_t max_transfer;
	uint32_t max_depth;  /* of a queue */
	uint32_t answer_ms;  /* OFI_ANSWER_MS */
	uint32_t hello_ms;   /* OFI_HELLO_MS */
	uint32_t stall_ms;   /* OFI_STALL_MS */
	uint32_t confirm_ms; /* OFI_CONFIRM_MS */
	struct ofi_mr_table regions;
	struct ofi_key_table keys;
	struct ofi_op silent; /* context of what completes without anybody's interest */
	struct ofi_eq eq;
	struct base_list conns; /* core's adapter lock */
	struct base_list qps;   /* qps_lock */
	struct base_lock qps_lock;
	uint32_t link_count;    /* atomic */
	struct base_list asked; /* revokes that have not begun; asked_lock */
	struct base_lock asked_lock;
	/* control thread */
	struct base_list links;
	struct base_list lingering; /* listeners that were destroyed */
	struct base_list ncqs;
	struct base_timer tick; /* looks at the ncqs that are away */
	struct base_job kick;   /* looks at the ncqs that are kicked */
	struct base_list revokes;
	struct base_job revoke_job; /* looks at them, and at those asked for */
	struct base_timer revoke_timer;
	int diag;             /* to ask the kernel of connections (ofi_peer.c); -1: none */
	uint32_t round;       /* of asking peers whether all has arrived */
	struct base_job last; /* frees the adapter behind a kick that may be queued */
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
/* May we talk to this address? INVALID_ADDRESS if not, with a text that says how to allow it. */
enum ndx_status ofi_check_trust(const struct ofi_adapter *adapter,
                                const struct sockaddr_storage *peer, const char *what);
/* Is it one of the adapter's? The port does not matter. */
bool ofi_is_own(const struct ofi_adapter *adapter, const struct sockaddr_storage *address);

/* ---- queue pairs (ofi_qp.c, ofi_submit.c, ofi_credit.c, ofi_receive.c, ofi_report.c) ---- */

/* Request to send, write or read. */
struct ofi_tx {
	struct base_req base;
	struct ofi_op op;
	struct iovec iov[OFI_MAX_IOV];
	void *desc[OFI_MAX_IOV]; /* if the flavour has native keys */
	uint32_t tokens[OFI_MAX_IOV];
	uint64_t address; /* remote, of read and write */
	uint32_t key;
	uint32_t length;
	uint32_t immediate;
	uint8_t iov_count;
	uint8_t word_flags;      /* enum ofi_word_flag, of send and write; else 0 */
	uint8_t parts;           /* how many of a write with immediate data the stack has */
	bool native;             /* the stack has it, or parts of it */
	bool remote;             /* the verdict is about the peer's memory */
	struct ofi_mw *mw;       /* of bind and invalidate; NULL: closed meanwhile */
	enum ndx_status verdict; /* NDX_OK, or what it completes with when its turn comes */
};

struct ofi_rx {
	struct base_req base;
	struct ofi_op op;
	struct iovec iov[OFI_MAX_IOV];
	void *desc[OFI_MAX_IOV];
	uint32_t tokens[OFI_MAX_IOV];
	uint8_t iov_count;
	bool native;
	bool poisoned; /* its memory has gone: takes no byte */
};

struct ofi_qp {
	struct base_qp base;
	struct ofi_adapter *adapter;
	char *bounce; /* initiator_depth * inline_size */
	struct base_list node;
	struct base_list debtor; /* in ncq->debtors */
	struct ofi_link *link;   /* under the ncq's lock */
	/* under base.lock */
	struct fid_ep *ep;     /* takes receives; NULL: there is no link */
	struct ofi_conn *conn; /* to report to */
	struct ofi_ncq *ncq;
	bool open;        /* the endpoint is connected: takes everything */
	bool mute;        /* the peer has said goodbye: no credits any more */
	bool draining;    /* report when nothing of ours is under way */
	bool broken;      /* nothing is issued any more; the core knows */
	bool releasing;   /* receives are being taken back for good, ... */
	bool recalling;   /* ... or to be handed over again */
	uint32_t own_id;  /* names the connection in control words to us, ... */
	uint32_t peer_id; /* ... and to the peer */
	uint32_t peer_key;
	uint64_t peer_address;
	uint32_t peer_depth;
	uint32_t credits;   /* how many receives of the peer's we may still use */
	uint32_t rx_next;   /* first receive that the stack does not have */
	uint32_t rx_native; /* receives that the stack has */
	uint32_t rx_told;   /* of those, the ones the peer knows of */
	uint32_t tx_next;   /* first request that the stack never had */
	uint32_t tx_native; /* requests that the stack has */
	uint32_t reads;     /* of those, reads */
	uint32_t read_limit;
	uint32_t unsettled;    /* request that receives do not wait for; the ncq's lock */
	uint32_t written;      /* length of the write that the next message stands for, ... */
	uint8_t written_words; /* ... told in so many words */
	bool timer_set;
	bool retrying; /* that timer is set for a request that the stack had no memory for */
	struct base_timer timer;
	uint64_t credit_words_sent; /* control words with nothing but credits */
	uint64_t credit_words_received;
	struct ofi_grants grants;
	struct ofi_mw *invalidating; /* what the request at tx_next waits for */
	struct base_list windows;    /* struct ofi_mw.of_qp; adapter->regions.lock */
	struct ofi_verbs_qp verbs;
};

static inline struct ofi_qp *ofi_qp_of(struct ndx_spi_qp *spi)
{
	return (struct ofi_qp *)(void *)spi;
}

static inline struct ofi_tx *ofi_tx_at(const struct ofi_qp *qp, uint32_t index)
{
	return (struct ofi_tx *)(void *)base_queue_at(&qp->base.initiator, index);
}

static inline struct ofi_rx *ofi_rx_at(const struct ofi_qp *qp, uint32_t index)
{
	return (struct ofi_rx *)(void *)base_queue_at(&qp->base.receive, index);
}

/* Is it before the first that the stack never had? What is posted after the end is done at once, so
 * the oldest request may be beyond that one: to go on until they are equal would take for ever. */
static inline bool ofi_is_before(uint32_t index, uint32_t next)
{
	return (int32_t)(index - next) < 0;
}

enum ndx_status ofi_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_spi_qp **out);
void ofi_qp_destroy(struct ndx_spi_qp *spi);
void ofi_qp_cancel(struct ndx_spi_qp *spi);
static inline const struct ofi_flavour *ofi_flavour_of(const struct ofi_qp *qp)
{
	return qp->adapter->flavour;
}
/* Counters (ofi_stats.c); lock not held. */
void ofi_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);
void ofi_get_counters(struct ndx_spi_adapter *spi, struct ndx_spi_qp *qp, ndx_spi_counter_fn *each,
                      void *arg);

/* All below: the queue pair's lock is held. */

/* Report once that the connection is broken; nothing is issued from now on. */
void ofi_qp_break(struct ofi_qp *qp, int native, const char *cause);
/* Hand over what waits, as far as it may go. */
void ofi_issue(struct ofi_qp *qp);
/* The stack is done with a request: err 0, or an errno of libfabric's. */
void ofi_tx_done(struct ofi_qp *qp, struct ofi_tx *tx, int err);
/* Complete what the stack has nothing of, CANCELED. */
void ofi_cancel_held(struct ofi_qp *qp);
/* The timer of the queue pair (ofi_qp_timer.c). Issue again in a moment. */
void ofi_issue_later(struct ofi_qp *qp);
/* A send waits for the peer to post a receive: from now on the clock runs. */
void ofi_rnr_begin(struct ofi_qp *qp);
/* Come back when the time is over, or to look for credits that nobody tells us of. */
void ofi_await_credits(struct ofi_qp *qp, uint64_t waited_ns);
/* Report DRAINED if it was asked for and is so. */
void ofi_check_drained(struct ofi_qp *qp);
void ofi_on_starved(void *arg); /* the timer; lock not held */
/* Hand receives to the stack, as many as it takes. */
void ofi_post_receives(struct ofi_qp *qp);
/* Tell the peer of new receives, if it is time: now, or with the next send or poll. */
void ofi_tell_credits(struct ofi_qp *qp);
/* Not with the lock held, but the ncq's: do so for all that put it off. */
void ofi_tell_all_credits(struct ofi_ncq *ncq);
/* How many receives the peer does not know of; they count as told from now on. */
uint16_t ofi_take_credits(struct ofi_qp *qp);
/* The stack has given a receive back, one way or another. */
void ofi_rx_take_back(struct ofi_qp *qp, struct ofi_rx *rx);
/* It came back without a message. */
void ofi_rx_failed(struct ofi_qp *qp, struct ofi_rx *rx, int err);

/* ---- links (ofi_endpoint.c, ofi_endpoint_state.c, ofi_ctrl.c) ---- */

enum ofi_stage {
	OFI_LINK_CONNECTING, /* active: no answer yet */
	OFI_LINK_ANSWERED,   /* active: the consumer thinks */
	OFI_LINK_COMPLETING, /* active: READY is on its way */
	OFI_LINK_ACCEPTING,  /* passive: READY has not come */
	OFI_LINK_UP,
	OFI_LINK_OVER, /* failed or refused: the core knows */
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
	struct fid_mr *control; /* what control words are written to, ... */
	uint32_t key;
	_Alignas(8) uint8_t area[OFI_AREA_SIZE]; /* ... with their records; enum ofi_area_offset */
	uint8_t refusal[OFI_CM_PRIVATE];         /* data of our own REJECT */
	uint8_t answer[OFI_GRANT_SIZE]; /* our own records: the next one of a kind is made when */
	uint8_t forget[4 * OFI_TOKENS_MAX]; /* the peer has reacted to this one */
	uint32_t id;
	/* control thread */
	struct base_list node; /* in adapter->links */
	struct fid_ep *ep;
	struct base_timer timer; /* answers, then keepalive (ofi_keepalive.c); end of an orphan */
	uint32_t keepalive_ms;
	uint32_t seen;        /* what was heard at the end of the last period of that */
	uint64_t pinged_ns;   /* when it was asked last */
	struct ofi_life life; /* when the peer last gave a sign of it, ... */
	uint64_t life_ns;     /* ... which was then */
	struct ofi_flow flow; /* what moved while an answer to SYNC was awaited */
	/* under the ncq's lock */
	struct ofi_link *next; /* in its bucket */
	struct ofi_conn *conn; /* NULL: an orphan, which only has to say its last word */
	struct ofi_qp *qp;     /* NULL: detached */
	enum ofi_stage stage;
	struct ofi_cm peer;
	bool known;           /* peer is filled */
	bool open;            /* the endpoint is connected */
	bool closing;         /* by us: what fails now fails because of that */
	bool lost;            /* reported as broken */
	bool parted;          /* the peer's DISC came */
	bool pinged;          /* and not yet answered */
	uint32_t answering;   /* bit of a word's type: such an answer is on its way */
	uint32_t sync_wanted; /* rounds (ofi_revoke.c): asked for, ... */
	uint32_t sync_sent;   /* ... the one on its way, or done, ... */
	uint32_t sync_done;
	uint32_t tokens[OFI_TOKENS_MAX]; /* that the next one is to name, ... */
	uint16_t token_count;            /* ... this many; OFI_TOKENS_ALL: too many */
	bool sync_acked;    /* ours was delivered: so was all that we had sent before */
	bool sync_answered; /* all that the peer had sent before has come */
	uint32_t words;     /* control words under way */
	uint32_t heard;     /* counts what the peer lets us hear, ... */
	uint32_t words_in;  /* ... and the control words among that */
	struct ofi_verbs_link verbs;
};

/* The lock of the native queue is held: the link with this id; NULL if there is none. */
static inline struct ofi_link *ofi_ncq_find(const struct ofi_ncq *ncq, uint32_t id)
{
	struct ofi_link *link = ncq->buckets[id % OFI_NCQ_BUCKETS];

	while (link != NULL && link->id != id)
		link = link->next;
	return link;
}

/*
 * Control thread. An endpoint for `conn` and its queue pair, made from `info`; receives that were
 * posted already are handed to it. *own has the parameters; what else the peer has to know is
 * added.
 */
enum ndx_status ofi_link_create(struct ofi_conn *conn, struct ofi_qp *qp, struct fi_info *info,
                                enum ofi_stage stage, struct ofi_link **out, struct ofi_cm *own);
/*
 * Control thread: close the endpoint and free the link; the queue pair's requests have come back or
 * are cancelled when this returns. keep: the attempt has failed, the queue pair is as before it.
 */
void ofi_link_close(struct ofi_link *link, bool keep);
/* Control thread: take the receives back from the endpoint; false if one stays (a message is coming
 * in). keep: they wait for the next attempt; else they are cancelled. */
bool ofi_link_release(struct ofi_link *link, bool keep);
/* Control thread: the queue pair and its queues are no part of it any more. */
void ofi_link_detach(struct ofi_link *link);
/* Control thread: no conn any more; it ends by itself. */
void ofi_link_orphan(struct ofi_link *link);
/* Control thread: closes every link of the adapter. */
void ofi_link_close_all(struct ofi_adapter *adapter);
struct ofi_link *ofi_link_find(struct ofi_adapter *adapter, const struct fid *fid);
/* Control thread: close it whatever the core thinks; the core hears that it is lost. */
void ofi_link_force_close(struct ofi_link *link, const char *cause);

/* The ncq's lock held: */
/* Say a control word; 0 or an errno of libfabric's. Unless `op` is the adapter's silent one, its
 * delivery is proved and ends in ofi_word_done(). */
int ofi_link_say(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op);
/* The same, with a record for the peer's control region. */
int ofi_link_tell(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op,
                  enum ofi_area_offset offset, const struct iovec *record);
/* Begin the next round, if one is wanted and none is under way. */
void ofi_link_sync(struct ofi_link *link);
/* The endpoint is connected, and what the peer told is in `peer`. */
void ofi_link_opened(struct ofi_link *link);
/* It is of no use any more: tell the core what that means at this stage. */
void ofi_link_break(struct ofi_link *link, int native, const char *cause);
/* The peer has closed it, and that is no goodbye. */
void ofi_link_cut(struct ofi_link *link);
/* The queue pair takes posts from now on. */
void ofi_link_go_up(struct ofi_link *link);
/* A control word that passed its check; NULL, or what is wrong. */
const char *ofi_word_take(struct ofi_link *link, const struct ofi_word *word);
/* A control word came alone. */
void ofi_word_in(struct ofi_ncq *ncq, uint64_t data);
/* Our own control word was delivered, or was not. */
void ofi_word_done(struct ofi_link *link, uint8_t type, int err);

#include "ofi_conn.h"
#include "ofi_hello.h"

#endif
