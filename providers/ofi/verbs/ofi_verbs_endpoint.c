/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of libfabric's verbs provider: first messages, goodbyes, and the timer that checks
 * them. The ncq's lock is held unless a comment says otherwise.
 */
#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "ofi_verbs.h"

#define LOOK_LEAST 2u      /* ms between two polls for what no event reports: at first, ... */
#define LOOK_MOST 50u      /* ... and when nothing has come for long */
#define WATCH_MS 250u      /* period of the checks when there is nothing to poll for */
#define SILENT_MS 30000u   /* a peer that ends no request for so long is gone */
#define STUCK_MS 3000u     /* the same for software RoCE, which retries without limit, ... */
#define BYTES_PER_MS 1024u /* ... and gets this much more time for long requests */
#define GOODBYE_MS 50u     /* limit of a callback's wait */
#define HURRY_MS 2000u
#define CAUSE_MS                                                                        \
	100u /* for the cause of a failure behind the news that the link has ended, ... \
	      */
#define CAUSE_STEP_MS 16u /* ... in looks of at most this distance */

static void look_in(struct ofi_link *link, uint32_t ms)
{
	link->verbs.watch_ms = ms;
	ndxp_timer_set(link->adapter->spi.loop, &link->verbs.watch, ms);
}

void ofi_verbs_poll_soon(struct ofi_link *link)
{
	if (link->stage == OFI_LINK_UP && !link->peer_disc && !link->closing)
		look_in(link, LOOK_LEAST);
}

/* ---- first messages ---- */

/* Both locks held: the receive for the peer's first message is ahead of all others. Those of the
 * active side wait until the consumer completes the connection. */
void ofi_verbs_attached(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;
	struct ofi_adapter *adapter = link->adapter;
	struct iovec iov[] = {{link->area + OFI_VERBS_IN, NDXP_RC_RECORD_SIZE},
	                      {adapter->padding + NDXP_RC_FIRST_LENGTH,
	                       NDXP_RC_FIRST_LENGTH - NDXP_RC_RECORD_SIZE}};
	void *desc[] = {fi_mr_desc(link->control), fi_mr_desc(adapter->padding_mr)};
	const struct fi_msg msg = {
		.msg_iov = iov,
		.desc = desc,
		.iov_count = 2,
		.context = &link->first_op,
	};

	memset(&qp->verbs.area, 0, sizeof(qp->verbs) - offsetof(struct ofi_verbs_qp, area));
	qp->verbs.area = link->area;
	qp->verbs.desc = desc[0];
	qp->recalling = link->stage == OFI_LINK_CONNECTING;
	link->verbs.watch = (struct ndxp_timer){.fn = ofi_verbs_on_watch, .arg = link};
	link->verbs.peek_op = (struct ofi_op){OFI_OP_PEEK, 0, link};
	link->verbs.want_op = (struct ofi_op){OFI_OP_WANT, 0, link};
	link->verbs.ping_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_PING, link};
	link->verbs.hello_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_HELLO, link};
	if (fi_recvmsg(link->ep, &msg, FI_COMPLETION) != 0)
		log_error(0, "%s: no receive for a first message", link->adapter->backend->device);
	(void)ofi_verbs_await_want(qp); /* else by the timer */
}

/* Send this end's first message, with what the peer has to know. */
static int introduce(struct ofi_link *link, uint8_t type, const void *data, size_t len,
                     struct ofi_op *op)
{
	struct ofi_qp *qp = link->qp;
	struct ndxp_rc_record record = {
		.type = type,
		.key = link->key,
		.address = (uintptr_t)(link->area + OFI_VERBS_MAIL),
		.private_len = len,
	};
	/* a peer on verbs takes the record alone */
	const bool padded = type != OFI_CTRL_REJECT && !link->peer.is_verbs;
	struct iovec iov[] = {{link->area + OFI_VERBS_OUT, 0}, {link->adapter->padding, 0}};
	void *desc[] = {fi_mr_desc(link->control), fi_mr_desc(link->adapter->padding_mr)};
	const struct fi_msg msg = {
		.msg_iov = iov, .desc = desc, .iov_count = padded ? 2 : 1, .context = op};
	int err;

	if (qp == NULL || !link->open || link->closing)
		return ENOTCONN;
	if (type != OFI_CTRL_REJECT) {
		ndxp_lock_acquire(&qp->base.lock);
		qp->recalling = false;
		ofi_post_receives(qp);
		(void)ofi_take_credits(qp);
		record.credits = qp->rx_credited;
		record.depth = (uint16_t)qp->base.receive.depth;
		record.shared = qp->taker.srq != NULL;
		ndxp_lock_release(&qp->base.lock);
	}
	if (len > 0)
		memcpy(record.private_data, data, len);
	iov[0].iov_len = ndxp_rc_record_encode(&record, link->area + OFI_VERBS_OUT);
	iov[1].iov_len = NDXP_RC_FIRST_LENGTH - iov[0].iov_len;
	err = -(int)fi_sendmsg(link->ep, &msg, FI_COMPLETION);
	link->ctrl_out += err == 0 && op->kind == OFI_OP_CTRL;
	if (err == 0)
		ofi_count(&link->adapter->counts.ctrl_sent);
	return err;
}

int ofi_verbs_send_ready(struct ofi_link *link)
{
	return introduce(link, OFI_CTRL_READY, NULL, 0, &link->ready_op);
}

int ofi_verbs_send_reject(struct ofi_link *link, const void *data, size_t len)
{
	return introduce(link, OFI_CTRL_REJECT, data, len, &link->reject_op);
}

void ofi_verbs_opened(struct ofi_link *link)
{
	link->open = true;
}

/* From now on the queue pair may use the connection. */
static void take_introduction(struct ofi_link *link, const struct ndxp_rc_record *record)
{
	struct ofi_qp *qp = link->qp;

	link->verbs.introduced = true;
	link->peer.key = record->key;
	link->peer.address = record->address;
	ndxp_lock_acquire(&qp->base.lock);
	qp->peer_key = record->key;
	qp->peer_address = record->address;
	qp->peer_depth = record->depth;
	qp->peer_shared = record->shared;
	qp->credits = record->credits;
	qp->verbs.peer_is_verbs = link->peer.is_verbs;
	qp->open = qp->ep != NULL;
	ofi_send_credits(qp);
	ofi_submit(qp);
	ndxp_lock_release(&qp->base.lock);
}

static const char *take_first(struct ofi_link *link, const struct ndxp_rc_record *record)
{
	struct ofi_ctrl word = {.type = record->type, .count = (uint16_t)record->private_len};
	const bool passive = link->stage == OFI_LINK_ACCEPTING;

	if (passive && record->type == OFI_CTRL_REJECT) {
		memcpy(link->area + OFI_AREA_REFUSAL, record->private_data, record->private_len);
		return ofi_ctrl_handle(link, &word);
	}
	if (record->type != (passive ? OFI_CTRL_READY : OFI_CTRL_HELLO) || link->verbs.introduced)
		return "a first message of the wrong type";
	take_introduction(link, record);
	if (passive) {
		if (introduce(link, OFI_CTRL_HELLO, NULL, 0, &link->verbs.hello_op) != 0)
			return ofi_link_lost;
		return ofi_ctrl_handle(link, &word);
	}
	/* a peer that has sent HELLO has READY, whatever the device reports later */
	if (link->stage == OFI_LINK_COMPLETING)
		ofi_link_go_up(link);
	if (link->verbs.goodbye_wanted &&
	    ofi_verbs_send_ctrl(link, OFI_CTRL_DISC, 0, &link->disc_op) != 0)
		return "the goodbye could not be sent";
	return NULL;
}

void ofi_verbs_first(struct ofi_link *link, const struct fi_cq_data_entry *e)
{
	struct ndxp_rc_record record;
	const char *wrong;

	link->signs_of_life++;
	if (link->lost || link->closing || link->conn == NULL || link->qp == NULL)
		return;
	link->open = true; /* even if the event is still in the event queue */
	ofi_count(&link->adapter->counts.ctrl_received);
	ofi_prove_seen(link->conn, NDX_PROVED_WHOLE);
	wrong = ndxp_rc_record_decode(
		link->area + OFI_VERBS_IN,
		e->len == NDXP_RC_FIRST_LENGTH ? NDXP_RC_RECORD_HEADER : e->len, &record);
	if (wrong == NULL)
		wrong = take_first(link, &record);
	if (wrong != NULL)
		ofi_link_break(link, 0, wrong);
}

/* ---- control messages ---- */

/* Write the bell if the peer has a receive for it. */
static void ring(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	if (link->verbs.rung || qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	ofi_verbs_refresh(qp);
	if (qp->credits > 0 || (qp->peer_shared && !ofi_srq_is_due(qp)))
		link->verbs.rung = ofi_verbs_mail(qp, NDXP_RC_GOODBYE, FI_REMOTE_CQ_DATA,
		                                  &link->adapter->silent) == 0;
	ndxp_lock_release(&qp->base.lock);
}

static int write_goodbye(struct ofi_link *link, uint64_t flags, struct ofi_op *op)
{
	uint64_t *note = ofi_verbs_word(link->area, OFI_VERBS_NOTES + NDXP_RC_GOODBYE);
	struct ofi_qp *qp = link->qp;
	int err;

	ndxp_lock_acquire(&qp->base.lock);
	*note = htobe64(flags | qp->verbs.used);
	err = ofi_verbs_mail(qp, NDXP_RC_GOODBYE, 0, op);
	ndxp_lock_release(&qp->base.lock);
	link->ctrl_out += err == 0;
	return err;
}

static int send_goodbye(struct ofi_link *link, struct ofi_op *op)
{
	const int err = write_goodbye(link, NDXP_RC_SAID, op);

	if (err != 0)
		return err;
	link->verbs.goodbye_sent = true;
	ring(link);
	look_in(link, LOOK_LEAST);
	return 0;
}

/* This end's queue pair is being closed, and waits for the peer's goodbye only. */
static void send_leaving(struct ofi_link *link)
{
	link->verbs.leaving_sent =
		!link->lost &&
		write_goodbye(link, NDXP_RC_SAID | NDXP_RC_LEAVING, &link->verbs.ping_op) == 0;
}

int ofi_verbs_send_ctrl(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op)
{
	const struct ndx_host *host = ofi_host(link->adapter);
	int err;

	(void)count;
	if (type == OFI_CTRL_DISC && link->qp != NULL && link->qp->verbs.gone) {
		/* the peer has said goodbye and closed */
		host->report(&link->conn->spi, NDX_REPORT_DISC_ACKED, 0, NULL);
		return 0;
	}
	if (!link->open || link->closing || link->qp == NULL)
		return ENOTCONN;
	if (type == OFI_CTRL_DISC)
		link->verbs.goodbye_wanted = true;
	if (type == OFI_CTRL_DISC)
		return link->verbs.introduced ? send_goodbye(link, op) : 0;
	if (!link->verbs.introduced) /* the peer has granted no memory for a probe yet */
		return ENOTCONN;
	ndxp_lock_acquire(&link->qp->base.lock);
	err = ofi_verbs_mail(link->qp, NDXP_RC_CREDITS, 0, &link->verbs.ping_op);
	ndxp_lock_release(&link->qp->base.lock);
	link->ctrl_out += err == 0;
	return err;
}

static uint64_t goodbye_of(struct ofi_link *link)
{
	return be64toh(__atomic_load_n(ofi_verbs_word(link->area, OFI_VERBS_MAIL + NDXP_RC_GOODBYE),
	                               __ATOMIC_ACQUIRE));
}

bool ofi_verbs_heard_goodbye(struct ofi_link *link)
{
	const uint64_t word = goodbye_of(link);
	struct ofi_qp *qp = link->qp;
	bool all;

	if ((word & NDXP_RC_SAID) == 0 || qp == NULL)
		return false;
	ndxp_lock_acquire(&qp->base.lock);
	all = (uint32_t)word == qp->verbs.arrived;
	ndxp_lock_release(&qp->base.lock);
	return all;
}

void ofi_verbs_check_goodbye(struct ofi_link *link)
{
	static const struct ofi_ctrl goodbye = {.type = OFI_CTRL_DISC};
	struct ofi_qp *qp = link->qp;

	if (link->lost || link->closing || link->conn == NULL || !ofi_verbs_heard_goodbye(link))
		return;
	if (!link->peer_disc) {
		(void)ofi_ctrl_handle(link, &goodbye);
		look_in(link, LOOK_LEAST); /* to see whether the peer leaves */
	}
	if ((goodbye_of(link) & NDXP_RC_LEAVING) == 0)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	if (!qp->verbs.leaving && qp->draining) {
		/* The peer posts no receive any more, and waits for this end's goodbye. */
		ofi_cancel_waiting(qp);
		ofi_check_drained(qp);
	}
	qp->verbs.leaving = true;
	ndxp_lock_release(&qp->base.lock);
}

/* ---- the timer ---- */

void ofi_verbs_up(struct ofi_link *link)
{
	look_in(link, LOOK_LEAST);
}

/* The queue pair's lock held: how much longer software RoCE may take for the oldest requests. */
static uint32_t slowness_ms(const struct ofi_qp *qp, uint32_t requests)
{
	uint64_t bytes = 0;

	if (!qp->adapter->software)
		return 0;
	for (uint32_t i = qp->base.initiator.head; requests > 0 && ofi_is_before(i, qp->tx_next);
	     i++) {
		bytes += ofi_tx_at(qp, i)->length;
		requests--;
	}
	return (uint32_t)(bytes / BYTES_PER_MS);
}

/* The queue pair's lock held: do what could not be done for lack of memory. Without a receive for
 * WANT no peer gets credits. */
static void try_again(struct ofi_qp *qp)
{
	ofi_send_credits(qp);
	if (qp->open && !qp->broken && !qp->peer_disc)
		(void)ofi_verbs_await_want(qp);
}

/* Has the oldest request taken too long? No request waits for the peer's consumer. */
static bool is_silent(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;
	uint32_t limit = link->adapter->software ? STUCK_MS : SILENT_MS;
	uint32_t head;
	bool owes;

	ndxp_lock_acquire(&qp->base.lock);
	owes = qp->tx_native > 0;
	head = qp->base.initiator.head;
	limit += slowness_ms(qp, 1);
	try_again(qp);
	ndxp_lock_release(&qp->base.lock);
	if (!owes || head != link->verbs.seen_head)
		link->verbs.silent_ms = 0;
	else
		link->verbs.silent_ms += link->verbs.watch_ms;
	link->verbs.seen_head = head;
	return link->verbs.silent_ms >= limit;
}

static bool has_requests(struct ofi_link *link)
{
	bool any;

	ndxp_lock_acquire(&link->qp->base.lock);
	any = link->qp->tx_native > 0;
	ndxp_lock_release(&link->qp->base.lock);
	return any;
}

/* Have the requests in flight not ended in the extra time? */
static bool is_overdue(struct ofi_link *link)
{
	if (link->verbs.drain_until_ns == 0 || ndxp_now_ns() < link->verbs.drain_until_ns)
		return false;
	link->verbs.drain_until_ns = 0;
	return has_requests(link);
}

/* No request in flight waits for the peer's consumer, so it takes as long as the network does. */
void ofi_verbs_limit_requests(struct ofi_link *link)
{
	uint32_t ms = HURRY_MS;

	ndxp_lock_acquire(&link->qp->base.lock);
	ms += slowness_ms(link->qp, UINT32_MAX);
	ndxp_lock_release(&link->qp->base.lock);
	link->verbs.drain_until_ns = ndxp_deadline(ms);
	if (link->verbs.cut_ns == 0) /* else the timer ends the link sooner */
		look_in(link, HURRY_MS < WATCH_MS ? HURRY_MS : WATCH_MS);
}

/* Is there anything to poll for that no event reports? */
static bool must_look(const struct ofi_link *link)
{
	if (link->verbs.goodbye_sent && !link->verbs.rung)
		return true;
	return (link->peer_disc || !ofi_verbs_has_receive(link->qp)) && !link->qp->verbs.leaving;
}

/* ---- a link that the peer has closed ---- */

/* The peer has said goodbye and closed: the requests in flight cannot reach it. */
static void go(struct ofi_link *link)
{
	static const struct ofi_ctrl goodbye = {.type = OFI_CTRL_DISC};
	struct ofi_qp *qp = link->qp;

	ndxp_lock_acquire(&qp->base.lock);
	qp->verbs.gone = true;
	qp->releasing = true;
	qp->open = false;
	ofi_cancel_waiting(qp);
	ndxp_lock_release(&qp->base.lock);
	if (!link->peer_disc)
		(void)ofi_ctrl_handle(link, &goodbye);
	link->lost = true;
	if (link->verbs.goodbye_sent)
		ofi_host(link->adapter)->report(&link->conn->spi, NDX_REPORT_DISC_ACKED, 0, NULL);
	(void)fi_shutdown(link->ep, 0);
}

/*
 * A request that fails at the peer breaks the peer's queue pair, and the peer closes the link. The
 * connection manager's disconnect may overtake the device's completion with the cause, so requests
 * under way get a moment to tell the cause.
 */
static void cut(struct ofi_link *link)
{
	uint32_t next = link->verbs.watch_ms * 2;

	if (link->verbs.cut_ns == 0) {
		link->verbs.cut_ns = ndxp_deadline(CAUSE_MS);
		next = LOOK_LEAST;
		ndxp_lock_acquire(&link->qp->base.lock);
		link->qp->open = false; /* nothing follows what is under way */
		ndxp_lock_release(&link->qp->base.lock);
	}
	if (ofi_verbs_may_answer(link) && ofi_verbs_has_answered(link))
		go(link);
	else if (ofi_verbs_may_answer(link) ||
	         (has_requests(link) && ndxp_now_ns() < link->verbs.cut_ns))
		look_in(link, next < CAUSE_STEP_MS ? next : CAUSE_STEP_MS);
	else
		ofi_link_cut(link);
}

static bool is_in_use(const struct ofi_link *link)
{
	return link->stage == OFI_LINK_UP && link->conn != NULL && link->qp != NULL &&
	       !link->lost && !link->closing;
}

static void watch(struct ofi_link *link)
{
	uint32_t next = WATCH_MS;

	if (!is_in_use(link))
		return;
	if (link->verbs.cut_ns != 0) {
		ofi_verbs_shut(link); /* a goodbye may have been among the completions */
		return;
	}
	ofi_verbs_check_goodbye(link);
	if (link->verbs.goodbye_sent)
		ring(link);
	if (is_overdue(link)) {
		ofi_link_break(link, 0, "requests that the stack has taken did not end in time");
		return;
	}
	if (is_silent(link)) {
		ofi_link_break(link, ETIMEDOUT, "the peer does not answer");
		return;
	}
	if (must_look(link)) {
		next = link->verbs.watch_ms * 2;
		if (next > LOOK_MOST)
			next = link->verbs.watch_ms > LOOK_MOST ? LOOK_LEAST : LOOK_MOST;
	}
	look_in(link, next);
}

/* Control thread, lock not held. */
void ofi_verbs_on_watch(void *arg)
{
	struct ofi_link *link = arg;
	struct ofi_ncq *ncq = link->ncq;

	ndxp_lock_acquire(&ncq->lock);
	ofi_ncq_catch_up_locked(ncq);
	watch(link);
	ndxp_lock_release(&ncq->lock);
}

/* ---- the end ---- */

void ofi_verbs_shut(struct ofi_link *link)
{
	if (link->stage == OFI_LINK_UP && link->conn != NULL && !link->lost &&
	    ofi_verbs_heard_goodbye(link) && !ofi_verbs_has_aborted(link) &&
	    (!link->peer_disc || (goodbye_of(link) & NDXP_RC_LEAVING) != 0 || link->peer.is_verbs))
		go(link);
	else if (is_in_use(link))
		cut(link);
	else
		ofi_link_cut(link);
}

/* Control thread, lock not held: are this end's control messages delivered and, if `both`, is the
 * peer's goodbye here? A callback can only wait for them here. */
static bool await_goodbye(struct ofi_link *link, bool both)
{
	const uint64_t deadline = ndxp_loop_is_hurried() ? ndxp_deadline(GOODBYE_MS) : 0;
	bool all;

	do {
		ndxp_lock_acquire(&link->ncq->lock);
		ofi_ncq_catch_up_locked(link->ncq);
		ofi_verbs_check_goodbye(link);
		all = link->verbs.goodbye_sent && link->ctrl_out == 0 && !link->lost &&
		      (!both || link->peer_disc);
		ndxp_lock_release(&link->ncq->lock);
		if (all)
			return true;
		(void)sched_yield();
	} while (ndxp_now_ns() < deadline);
	return false;
}

/* Control thread, lock not held: have both ends said goodbye? */
static bool have_both_discs(struct ofi_link *link)
{
	bool first;
	bool peer_disc;

	if (!await_goodbye(link, false))
		return false;
	ndxp_lock_acquire(&link->ncq->lock);
	first = !link->peer_disc && !link->verbs.leaving_sent;
	if (first)
		send_leaving(link);
	peer_disc = link->peer_disc && !link->lost;
	ndxp_lock_release(&link->ncq->lock);
	return peer_disc || (first && await_goodbye(link, true));
}

/*
 * Control thread, lock not held. A device returns receives only when the queue pair is destroyed.
 * If that happened before the peer's goodbye, this end could not tell later whether the peer has
 * said goodbye or aborted: the connection manager reports the same. So this end tells the peer that
 * it is leaving. The peer cancels what waits for this end's receives, and says goodbye when its
 * requests in flight have ended. A slow machine must not break the connection: until then the core,
 * which has a limit of its own, calls again.
 */
enum ndx_status ofi_verbs_detach(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;
	enum ndx_status st;

	if (!qp->verbs.gone && !have_both_discs(link)) {
		if (!link->lost)
			return NDX_PENDING;
		return fail(NDX_E_DEVICE_BUSY, 0, "the link was lost before both had said goodbye");
	}
	if (!link->lost) {
		ndxp_lock_acquire(&link->ncq->lock);
		link->lost = true;
		ndxp_lock_acquire(&qp->base.lock);
		qp->verbs.gone = true;
		qp->releasing = true;
		ndxp_lock_release(&qp->base.lock);
		(void)fi_shutdown(link->ep, 0);
		ndxp_lock_release(&link->ncq->lock);
	}
	st = ofi_link_release_later(link);
	if (st == NDX_PENDING)
		return st;
	if (st != NDX_OK)
		return fail(st, 0, "the device does not return receives in time");
	ndxp_timer_cancel(link->adapter->spi.loop, &link->verbs.watch);
	ofi_link_detach(link);
	return NDX_OK;
}
