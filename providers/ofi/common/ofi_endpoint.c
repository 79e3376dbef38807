/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: an endpoint with all that belongs to it, from the first step of connecting to its end. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "ofi.h"

#define RELEASE_MS 100u  /* how long a message may take to arrive while its receive is recalled */
#define FLUSH_STEP_MS 1u /* step of the wait for the rest of a link that ends */
#define ORPHAN_MS 2000u  /* how long the last control message of a link may take */
#define LAST_MS 250u     /* the same, when nothing else keeps the adapter open */
#define SLOW_MS 1000u    /* a call of libfabric that takes longer is logged */

/* ---- making ---- */

static void on_timer(void *arg);

/* Requests to use memory name links by their id, on whatever native queue. */
static bool is_used(const struct ofi_adapter *adapter, uint32_t id)
{
	for (struct ndxp_list *n = adapter->links.next; n != &adapter->links; n = n->next) {
		if (container_of(n, struct ofi_link, node)->id == id)
			return true;
	}
	return false;
}

static enum ndx_status make_control(struct ofi_link *link)
{
	/* target of control messages, and of reads of no bytes */
	const int err = ofi_mr_reg(link->adapter, link->area, link->area_size,
	                           FI_REMOTE_WRITE | FI_REMOTE_READ, &link->control, &link->key);

	if (err != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err, "fi_mr_reg of a control region: %s",
		            fi_strerror(err));
	do {
		if (ndxp_random(&link->id, sizeof(link->id)) != NDX_OK)
			return fail(NDX_E_INSUFFICIENT_RESOURCES, 0, "no random number");
		link->id &= OFI_ID_MASK;
	} while (link->id == 0 || is_used(link->adapter, link->id));
	return NDX_OK;
}

static enum ndx_status make_endpoint(struct ofi_link *link, const struct ofi_qp *qp,
                                     struct fi_info *info)
{
	struct ofi_adapter *adapter = link->adapter;
	const char *call = "fi_endpoint";
	int err;

	if (adapter->backend->adapt_info != NULL)
		adapter->backend->adapt_info(qp, info);
	err = -fi_endpoint(adapter->domain, info, &link->ep, NULL);
	if (err == 0) {
		call = "fi_ep_bind";
		err = -fi_ep_bind(link->ep, &adapter->eq.eq->fid, 0);
	}
	/* completions of receives are never selective */
	if (err == 0)
		err = -fi_ep_bind(link->ep, &link->ncq->cq->fid, adapter->backend->transmit);
	if (err == 0)
		err = -fi_ep_bind(link->ep, &link->ncq->cq->fid, FI_RECV);
	if (err == 0) {
		call = "fi_enable";
		err = -fi_enable(link->ep);
	}
	/* rdma_cm fails like this when the peer has gone, and reports that in no other way */
	if (err == EINVAL && link->stage == OFI_LINK_ACCEPTING)
		return fail(NDX_E_CONNECTION_ABORTED, err, "%s: the peer has given up", call);
	if (err != 0)
		return fail(ofi_status_of(err), err, "%s: %s", call, fi_strerror(err));
	return NDX_OK;
}

/* Give the queue pair its transport, and its receives to the transport. */
static void attach_qp(struct ofi_link *link, struct ofi_qp *qp, struct ofi_cm *own)
{
	struct ofi_ncq *ncq = link->ncq;

	ndxp_lock_acquire(&ncq->lock);
	ndxp_table_add(&ncq->links, &link->by_id, link->id);
	link->qp = qp;
	qp->link = link;
	ndxp_lock_acquire(&qp->base.lock);
	qp->ep = link->ep;
	qp->conn = link->conn;
	qp->ncq = ncq;
	qp->open = false;
	qp->peer_disc = false;
	qp->draining = false;
	qp->broken = false;
	qp->releasing = false;
	qp->verbs.gone = false;
	qp->recalling = false;
	qp->recalled_for = NULL;
	ndxp_qp_rnr_end(&qp->base);
	qp->credits = 0;
	qp->rx_next = qp->base.receive.head;
	qp->rx_native = 0;
	qp->rx_credited = 0;
	qp->tx_next = qp->base.initiator.tail;
	qp->tx_native = 0;
	ofi_acks_begin(qp);
	qp->reads = 0;
	ofi_grants_init(&qp->grants);
	qp->own_id = link->id;
	qp->invalidating = NULL;
	qp->written = 0;
	qp->written_parts = 0;
	qp->peer_shared = false;
	qp->asked = 0;
	qp->taker.wanted = 0;
	ofi_sizes_begin(qp, link);
	if (link->adapter->backend->attached != NULL)
		link->adapter->backend->attached(link);
	ofi_post_receives(qp);
	own->credits = ofi_first_credits(qp);
	own->receive_size = qp->sizes.common;
	qp->sizes.common_told = own->receive_size != OFI_SIZE_UNKNOWN;
	ndxp_lock_release(&qp->base.lock);
	ndxp_lock_release(&ncq->lock);
}

/* NULL: out of memory. The active side does not know yet how many receives the peer may post. */
static struct ofi_link *alloc_link(const struct ofi_adapter *adapter, const struct ofi_qp *qp,
                                   const struct ofi_cm *peer)
{
	const size_t receives = peer != NULL ? peer->depth : OFI_MAX_DEPTH;
	const size_t sizes = adapter->backend->tells_sizes ? receives * OFI_SIZE_ENTRY : 0;
	struct ofi_link *link = calloc(1, sizeof(*link) + sizes);

	if (link == NULL)
		return NULL;
	link->area_size = OFI_AREA_SIZE + sizes;
	if (!adapter->backend->tells_sizes)
		return link;
	/* one more, because calloc() of nothing may return NULL */
	link->sizes = calloc(qp->base.receive.depth + 1, OFI_SIZE_ENTRY);
	if (link->sizes != NULL)
		return link;
	free(link);
	return NULL;
}

static void free_link(struct ofi_link *link)
{
	free(link->sizes);
	free(link);
}

enum ndx_status ofi_link_create(struct ofi_conn *conn, struct ofi_qp *qp, struct fi_info *info,
                                const struct ofi_cm *peer, struct ofi_link **out,
                                struct ofi_cm *own)
{
	struct ofi_link *link = alloc_link(conn->adapter, qp, peer);
	enum ndx_status st;

	if (link == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a connection");
	link->adapter = conn->adapter;
	link->conn = conn;
	link->stage = peer != NULL ? OFI_LINK_ACCEPTING : OFI_LINK_CONNECTING;
	link->keepalive_ms = qp->base.spi.attr.keepalive_ms;
	link->timer = (struct ndxp_timer){.fn = on_timer, .arg = link};
	link->ready_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_READY, link};
	link->reject_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_REJECT, link};
	link->disc_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_DISC, link};
	link->sync_op = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_SYNC, link};
	link->answers[0] = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_ANSWER, link};
	link->answers[1] = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_SYNCED, link};
	link->answers[2] = (struct ofi_op){OFI_OP_CTRL, OFI_CTRL_PONG, link};
	link->first_op = (struct ofi_op){OFI_OP_FIRST, 0, link};
	st = ofi_ncq_get(conn->adapter, qp, own->outbound_read_limit > 0, &link->ncq);
	if (st != NDX_OK)
		goto drop_link;
	st = make_control(link);
	if (st == NDX_OK)
		st = make_endpoint(link, qp, info);
	if (st != NDX_OK)
		goto close_fids;
	attach_qp(link, qp, own);
	ofi_ncq_await(link->ncq);
	ndxp_list_add(&conn->adapter->links, &link->node);
	(void)__atomic_add_fetch(&conn->adapter->link_count, 1, __ATOMIC_SEQ_CST);
	own->id = link->id;
	own->key = link->key;
	own->address = (uintptr_t)link->area;
	own->depth = (uint16_t)qp->base.receive.depth;
	own->shared = qp->taker.srq != NULL;
	own->initiator_depth = (uint16_t)qp->base.initiator.depth;
	*out = link;
	return NDX_OK;

close_fids:
	if (link->ep != NULL)
		(void)fi_close(&link->ep->fid);
	if (link->control != NULL)
		(void)fi_close(&link->control->fid);
	ofi_ncq_untie(link->ncq, qp);
	ofi_ncq_put(link->ncq);
drop_link:
	free_link(link);
	return st;
}

/* ---- ending; control thread ---- */

/* Does libfabric still have requests, receives or control messages of the link? */
static bool has_outstanding(struct ofi_link *link)
{
	bool any = link->ctrl_out > 0;

	if (link->qp != NULL) {
		ndxp_lock_acquire(&link->qp->base.lock);
		any = any || link->qp->rx_native > 0 || link->qp->tx_native > 0;
		ndxp_lock_release(&link->qp->base.lock);
	}
	return any;
}

/* The ncq's lock held: read until the native queue is empty and (up to the deadline) all of the
 * link's operations are back. A shared queue may never be empty: there it is enough that all of the
 * link's operations are back. */
static void drain_native(struct ofi_link *link, uint64_t deadline_ns)
{
	bool enough = false;

	do {
		while (!enough && ofi_ncq_progress(link->ncq) > 0)
			enough = link->ncq->shared && !has_outstanding(link);
	} while (!enough && ndxp_now_ns() < deadline_ns && has_outstanding(link) &&
	         sched_yield() == 0);
	/* of other links: nothing else may look after what was read here */
	if (ofi_ncq_owes(link->ncq))
		ofi_ack_look(link->ncq);
}

/* Log a slow call: it stops the control thread, and perhaps a consumer that polls. Returns the
 * time. */
static uint64_t note_slow(const struct ofi_adapter *adapter, const char *call, uint64_t since)
{
	const uint64_t now = ndxp_now_ns();
	const uint64_t ms = (now - since) / 1000000;

	if (ms >= SLOW_MS)
		log_warn(0, "%s: %s took %llu ms; all connections of the adapter have waited",
		         adapter->backend->stack, call, (unsigned long long)ms);
	return now;
}

/* The ncq's lock held: from now on nothing goes to the endpoint, and nothing is reported. */
static void stop_qp(struct ofi_qp *qp, bool keep)
{
	ndxp_lock_acquire(&qp->base.lock);
	/* what the consumer has got must not end as canceled at the peer */
	if (qp->open && !qp->broken && ofi_acks_owed(qp) > 0)
		(void)ofi_ack_now(qp);
	qp->ep = NULL;
	qp->open = false;
	qp->broken = true;
	if (keep)
		qp->base.state = NDXP_QP_IDLE;
	ndxp_lock_release(&qp->base.lock);
}

/* The ncq's lock held: shut the endpoint down, which brings the rest back. Control messages count
 * only for messages that have arrived already. */
static void begin_close(struct ofi_link *link, bool keep)
{
	uint64_t since;

	link->closing = true;
	ndxp_timer_cancel(link->adapter->spi.loop, &link->verbs.watch);
	if (link->qp != NULL)
		stop_qp(link->qp, keep);
	/* what has arrived by now belongs to the consumer */
	ofi_ncq_catch_up_locked(link->ncq);
	since = ndxp_now_ns();
	if (link->open)
		(void)fi_shutdown(link->ep, 0);
	(void)note_slow(link->adapter, "fi_shutdown", since);
	link->flush_until_ns = ndxp_deadline(link->open ? link->adapter->backend->flush_ms : 0);
}

/* The ncq's lock held, so no other thread reads the native queue: wait for the requests that are
 * not back yet, and close the endpoint. */
static void close_endpoint(struct ofi_link *link)
{
	uint64_t since;

	drain_native(link, link->flush_until_ns);
	since = ndxp_now_ns();
	(void)fi_close(&link->ep->fid);
	(void)note_slow(link->adapter, "fi_close of an endpoint", since);
	drain_native(link, 0);
}

/* Cancel the requests that libfabric never had, or did not bring back. */
static void cancel_rest(struct ofi_qp *qp, bool keep)
{
	struct ndxp_queue *rx = &qp->base.receive;

	ndxp_lock_acquire(&qp->base.lock);
	qp->recalling = false;
	qp->recalled_for = NULL;
	ofi_sizes_end(qp);
	ofi_cancel_waiting(qp);
	ndxp_queue_cancel(&qp->base.initiator, NDX_E_CANCELED);
	if (qp->taker.srq != NULL) {
		ofi_srq_return_all(qp);
	} else if (keep) {
		for (uint32_t i = rx->head; i != rx->tail; i++)
			ofi_rx_at(qp, i)->native = false;
		qp->rx_next = rx->head;
	} else {
		ndxp_queue_cancel(rx, NDX_E_CANCELED);
		qp->rx_next = rx->tail;
	}
	ndxp_lock_release(&qp->base.lock);
}

void ofi_link_close(struct ofi_link *link, bool keep)
{
	struct ofi_adapter *adapter = link->adapter;
	struct ofi_ncq *ncq = link->ncq;
	struct ofi_qp *qp = link->qp;
	uint64_t since;

	ndxp_timer_cancel(adapter->spi.loop, &link->timer);
	ndxp_lock_acquire(&ncq->lock);
	if (!link->ending)
		begin_close(link, keep);
	close_endpoint(link);
	ndxp_table_remove(&link->by_id);
	ndxp_lock_release(&ncq->lock);
	if (qp != NULL) {
		cancel_rest(qp, keep);
		ofi_link_detach(link);
	}
	ncq->draining_links--;
	since = ndxp_now_ns();
	(void)fi_close(&link->control->fid);
	since = note_slow(adapter, "fi_close of a region", since);
	ndxp_list_remove(&link->node);
	(void)__atomic_sub_fetch(&adapter->link_count, 1, __ATOMIC_SEQ_CST);
	if (!ndxp_list_empty(&adapter->revokes))
		ndxp_loop_post(adapter->spi.loop, &adapter->revoke_job);
	ofi_ncq_put(ncq);
	(void)note_slow(adapter, "fi_close of a completion queue", since);
	free_link(link);
}

/* Close the link, now or as soon as its time is over, and report QUIET. */
static void end(struct ofi_link *link)
{
	struct ofi_adapter *adapter = link->adapter;
	struct ofi_conn *conn = link->conn;

	conn->link = NULL;
	ofi_link_close(link, false);
	ofi_host(adapter)->report(&conn->spi, NDX_REPORT_QUIET, 0, NULL);
}

/* A step of the end: close the link, or come back later. */
static void step_end(void *arg)
{
	struct ofi_link *link = arg;
	bool wait;

	ndxp_lock_acquire(&link->ncq->lock);
	drain_native(link, 0);
	wait = has_outstanding(link) && ndxp_now_ns() < link->flush_until_ns &&
	       !ndxp_loop_is_hurried();
	if (wait)
		ndxp_timer_set(link->adapter->spi.loop, &link->timer, FLUSH_STEP_MS);
	ndxp_lock_release(&link->ncq->lock);
	if (!wait)
		end(link);
}

void ofi_link_end(struct ofi_link *link)
{
	if (!link->ending) {
		ndxp_timer_cancel(link->adapter->spi.loop, &link->timer);
		link->timer = (struct ndxp_timer){.fn = step_end, .arg = link};
		ndxp_lock_acquire(&link->ncq->lock);
		begin_close(link, false);
		link->ending = true;
		ndxp_lock_release(&link->ncq->lock);
	}
	step_end(link);
}

void ofi_link_force_close(struct ofi_link *link, const char *cause)
{
	struct ofi_conn *conn = link->conn;
	bool was_up;

	if (link->ending) {
		end(link);
		return;
	}
	ndxp_lock_acquire(&link->ncq->lock);
	was_up = link->stage == OFI_LINK_UP;
	if (conn != NULL)
		ofi_link_break(link, 0, cause);
	ndxp_lock_release(&link->ncq->lock);
	if (conn != NULL)
		conn->link = NULL;
	if (was_up && link->qp != NULL) {
		ndxp_lock_acquire(&link->qp->base.lock);
		link->qp->base.state = NDXP_QP_DEAD;
		ndxp_lock_release(&link->qp->base.lock);
	}
	ofi_link_close(link, !was_up);
}

static void recall_receives(struct ofi_qp *qp)
{
	struct fid_ep *ep;

	ndxp_lock_acquire(&qp->base.lock);
	ep = qp->ep;
	qp->ep = NULL;
	qp->open = false;
	qp->releasing = true;
	/* from the youngest on: a message that arrives in between takes the oldest one */
	for (uint32_t i = qp->rx_next; ep != NULL && ofi_is_before(qp->base.receive.head, i); i--) {
		struct ofi_rx *rx = ofi_rx_at(qp, i - 1);

		if (rx->native)
			(void)fi_cancel(&ep->fid, &rx->op);
	}
	ndxp_lock_release(&qp->base.lock);
}

static bool is_recalled(struct ofi_qp *qp)
{
	bool all;

	ndxp_lock_acquire(&qp->base.lock);
	all = qp->rx_native == 0;
	ndxp_lock_release(&qp->base.lock);
	return all;
}

bool ofi_link_release(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;
	bool all;

	if (qp == NULL)
		return true;
	recall_receives(qp);
	ofi_ncq_catch_up(link->ncq);
	all = is_recalled(qp);
	if (all)
		cancel_rest(qp, true);
	return all;
}

enum ndx_status ofi_link_release_later(struct ofi_link *link)
{
	const bool first = link->release_until_ns == 0;
	bool all;

	if (first) {
		link->release_until_ns = ndxp_deadline(RELEASE_MS);
		recall_receives(link->qp);
	}
	do {
		ofi_ncq_catch_up(link->ncq);
		all = is_recalled(link->qp);
	} while (!all && ndxp_loop_is_hurried() && sched_yield() == 0 &&
	         ndxp_now_ns() < link->release_until_ns);
	if (all) {
		cancel_rest(link->qp, false);
		return NDX_OK;
	}
	if (ndxp_now_ns() < link->release_until_ns || (first && !ndxp_loop_is_hurried()))
		return NDX_PENDING;
	return NDX_E_DEVICE_BUSY;
}

void ofi_link_detach(struct ofi_link *link)
{
	struct ofi_qp *qp = link->qp;

	ndxp_lock_acquire(&link->ncq->lock);
	link->qp = NULL;
	qp->link = NULL;
	ndxp_lock_acquire(&qp->base.lock);
	ofi_acks_end(qp);
	qp->ep = NULL;
	qp->open = false;
	qp->conn = NULL;
	qp->ncq = NULL;
	qp->verbs.area = NULL;
	qp->draining = false;
	qp->timer_set = false;
	qp->retrying = false;
	ndxp_lock_release(&qp->base.lock);
	ndxp_lock_acquire(&link->ncq->credit_lock);
	ndxp_list_remove(&qp->credit_node);
	ndxp_list_remove(&qp->ack_node);
	ndxp_lock_release(&link->ncq->credit_lock);
	ndxp_lock_release(&link->ncq->lock);
	ndxp_timer_cancel(link->adapter->spi.loop, &qp->timer);
	ofi_ncq_untie(link->ncq, qp);
	link->ncq->draining_links++;
}

void ofi_link_orphan(struct ofi_link *link)
{
	uint32_t ms = ORPHAN_MS;

	ndxp_lock_acquire(&link->ncq->lock);
	link->conn = NULL;
	link->stage = OFI_LINK_OVER;
	if (link->lost || link->ctrl_out == 0)
		ms = 0;
	ndxp_timer_set(link->adapter->spi.loop, &link->timer, ms);
	ndxp_lock_release(&link->ncq->lock);
}

/* Does a link whose connector is gone still send its last control message, such as REJECT? */
static bool sends_last_message(struct ofi_adapter *adapter)
{
	bool any = false;

	for (struct ndxp_list *n = adapter->links.next; n != &adapter->links; n = n->next) {
		struct ofi_link *link = container_of(n, struct ofi_link, node);

		ndxp_lock_acquire(&link->ncq->lock);
		if (link->conn == NULL && !link->lost) {
			ofi_ncq_catch_up_locked(link->ncq);
			any |= !link->lost && link->ctrl_out > 0;
		}
		ndxp_lock_release(&link->ncq->lock);
	}
	return any;
}

void ofi_link_close_all(struct ofi_adapter *adapter)
{
	const uint64_t deadline = ndxp_loop_is_hurried() ? 0 : ndxp_deadline(LAST_MS);

	/* without the message the peer takes a refusal for an abort */
	while (sends_last_message(adapter) && ndxp_now_ns() < deadline)
		(void)poll(NULL, 0, 1);
	for (struct ndxp_list *n = adapter->links.next, *next; n != &adapter->links; n = next) {
		next = n->next;
		ofi_link_close(container_of(n, struct ofi_link, node), false);
	}
}

struct ofi_link *ofi_link_find(struct ofi_adapter *adapter, const struct fid *fid)
{
	for (struct ndxp_list *n = adapter->links.next; n != &adapter->links; n = n->next) {
		struct ofi_link *link = container_of(n, struct ofi_link, node);

		if (&link->ep->fid == fid)
			return link;
	}
	return NULL;
}

static void on_timer(void *arg)
{
	struct ofi_link *link = arg;
	uint32_t ms;

	if (link->conn == NULL) {
		ofi_link_close(link, false);
		return;
	}
	ndxp_lock_acquire(&link->ncq->lock);
	ms = ofi_keepalive_check(link);
	if (ms > 0)
		ndxp_timer_set(link->adapter->spi.loop, &link->timer, ms);
	ndxp_lock_release(&link->ncq->lock);
}
