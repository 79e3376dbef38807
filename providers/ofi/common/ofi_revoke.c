/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Revoking memory. Behind a deregistration nothing may use the region's memory, but libfabric and
 * the peers still know the region.
 *
 * - Receives are recalled from libfabric and posted again without their memory: a message that
 *   arrives for one of them fails, as on hardware. A message that is arriving has some time to end;
 *   then the connection is closed.
 * - An own request that libfabric does not have yet fails in its turn. A request that libfabric has
 *   cannot be recalled: its connection is closed at once.
 * - Peers that know the token forget it: from then on their requests fail where they are posted,
 *   with the right status. Only then is the key closed, because a request that meets a closed key
 *   breaks the connection and shows no reason. A peer that has not asked for the token has never
 *   used it, and is not asked to forget it.
 * - No new access of a peer begins after the key is closed. Its earlier accesses have ended when
 *   its answer to a SYNC has come (its writes were sent before the answer) and the SYNC was
 *   delivered (the data of its reads was sent before the SYNC). That is a second round.
 * - A SYNC and its answer wait behind all data that is queued on the link. So a peer loses its
 *   connection when nothing has moved for a while that the answer can wait behind (ofi_liveness.c),
 *   not because the answer takes long. A peer that keeps sending data and never answers looks like
 *   a peer with much data: the whole round has a limit, too.
 * - The revoke is a state of the control thread, driven by jobs and a timer. Only the caller waits.
 *   A caller in a callback, where the control thread makes no progress, drives the state itself,
 *   and for a shorter time.
 */
#include <limits.h>

#include <ndx/spi/system.h>
#include "ofi.h"

#define RECALL_STEP_MS 1u
#define HURRY_MS 100u /* limit for an answer that a callback waits for */
#define STEP_MS 1u    /* step of a callback's wait */
#define LOOK_MS 250u

static const char used_cause[] = "memory was deregistered while a request of this end was using it";
static const char silent_cause[] =
	"the peer has not confirmed in time that it has finished with deregistered memory";

/* ---- own requests ---- */

static bool has_token(const uint32_t *tokens, uint8_t count, uint32_t token)
{
	for (uint8_t i = 0; i < count; i++) {
		if (tokens[i] == token)
			return true;
	}
	return false;
}

/* Queue pair's lock held. Receives that libfabric does not have lose their memory; true if
 * libfabric has one that names the token. */
static bool mark_receives(struct ofi_qp *qp, uint32_t token)
{
	struct ndxp_queue *q = &qp->base.receive;
	bool has = false;

	for (uint32_t i = q->head; i != q->tail; i++) {
		struct ofi_rx *rx = ofi_rx_at(qp, i);

		if (rx->base.done || !has_token(rx->tokens, rx->iov_count, token))
			continue;
		has = has || rx->native;
		if (!rx->poisoned && (!rx->native || ofi_backend_of(qp)->native_keys)) {
			rx->poisoned = true;
			rx->denied = OFI_DENIED_REVOKED;
		}
		if (!rx->native)
			rx->iov_count = 0;
	}
	return has;
}

/* Queue pair's lock held. Requests that wait will fail; true if libfabric has one that names the
 * token. */
static bool mark_requests(struct ofi_qp *qp, uint32_t token)
{
	const struct ndxp_queue *q = &qp->base.initiator;
	bool has = false;

	for (uint32_t i = q->head; i != q->tail; i++) {
		struct ofi_tx *tx = ofi_tx_at(qp, i);

		if (tx->base.done || !has_token(tx->tokens, tx->iov_count, token))
			continue;
		/* TOO_LONG went instead: the memory is not used */
		if (tx->unfit && tx->native)
			continue;
		has = has || tx->native;
		tx->unfit = false;
		if (tx->verdict != NDX_E_ACCESS_VIOLATION)
			tx->denied = OFI_DENIED_REVOKED;
		tx->verdict = NDX_E_ACCESS_VIOLATION;
	}
	return has;
}

struct user {
	struct ofi_qp *qp;
	bool requests; /* libfabric has own requests that name the token */
	bool receives; /* libfabric has receives that name it */
};

/* A queue pair with a request in libfabric that names the token; qp is NULL if there is none. */
static struct user mark_users(struct ofi_adapter *adapter, uint32_t token)
{
	struct user found = {0};

	ndxp_lock_acquire(&adapter->qps_lock);
	for (struct ndxp_list *n = adapter->qps.next; n != &adapter->qps; n = n->next) {
		struct user user = {.qp = container_of(n, struct ofi_qp, node)};

		ndxp_lock_acquire(&user.qp->base.lock);
		user.receives = mark_receives(user.qp, token);
		user.requests = mark_requests(user.qp, token);
		ndxp_lock_release(&user.qp->base.lock);
		if (user.receives || user.requests)
			found = user;
	}
	ndxp_lock_release(&adapter->qps_lock);
	return found;
}

/* Queue pair's lock held: how many receives from `first` on does libfabric have? */
static uint32_t count_native(const struct ofi_qp *qp, uint32_t first)
{
	uint32_t count = 0;

	for (uint32_t i = first; ofi_is_before(i, qp->rx_next); i++)
		count += ofi_rx_at(qp, i)->native;
	return count;
}

/* Recall the first receive that names the token and all behind it; returns its index. */
static uint32_t recall_receives(struct ofi_qp *qp, uint32_t token)
{
	uint32_t first = qp->base.receive.head;

	while (ofi_is_before(first, qp->rx_next)) {
		const struct ofi_rx *rx = ofi_rx_at(qp, first);

		if (rx->native && has_token(rx->tokens, rx->iov_count, token))
			break;
		first++;
	}
	qp->recalling = true;
	/* from the youngest on: a message that arrives in between takes the oldest one */
	for (uint32_t i = qp->rx_next; qp->ep != NULL && ofi_is_before(first, i); i--) {
		struct ofi_rx *rx = ofi_rx_at(qp, i - 1);

		if (rx->native)
			(void)fi_cancel(&qp->ep->fid, &rx->op);
	}
	return first;
}

/* Queue pair's lock held: begin the recall, unless another revoke's is in progress. Receives keep
 * their order, so there is one recall at a time. */
static bool begin_recall(const struct ofi_revoke *revoke, struct ofi_qp *qp)
{
	if (qp->recalled_for == NULL) {
		qp->recalled_for = revoke;
		qp->recall_first = recall_receives(qp, revoke->token);
	}
	return qp->recalled_for == revoke;
}

/* Queue pair's lock held. False: a message is still arriving in one of the receives. */
static bool end_recall(const struct ofi_revoke *revoke, struct ofi_qp *qp)
{
	/* receives that were completed in between may have left the ring */
	if ((int32_t)(qp->base.receive.head - qp->recall_first) > 0)
		qp->recall_first = qp->base.receive.head;
	if (count_native(qp, qp->recall_first) > 0)
		return false;
	(void)mark_receives(qp, revoke->token);
	qp->rx_next = qp->recall_first;
	qp->recalled_for = NULL;
	qp->recalling = false;
	ofi_post_receives(qp);
	ofi_srq_recalled(qp);
	return true;
}

/* Control thread: a step of the recall; true if it is over. */
static bool step_recall(const struct ofi_revoke *revoke, struct ofi_qp *qp)
{
	bool over;

	ndxp_lock_acquire(&qp->base.lock);
	over = begin_recall(revoke, qp);
	ndxp_lock_release(&qp->base.lock);
	if (!over)
		return false;
	ofi_ncq_catch_up(qp->link->ncq);
	ndxp_lock_acquire(&qp->base.lock);
	over = end_recall(revoke, qp);
	ndxp_lock_release(&qp->base.lock);
	return over;
}

/* Control thread: a step to make libfabric forget every own request that names the token; true if
 * none is left. */
static bool clear_users(const struct ofi_revoke *revoke)
{
	struct user user;

	/* only links give requests to libfabric, and only this thread closes links */
	while ((user = mark_users(revoke->adapter, revoke->token)).qp != NULL &&
	       user.qp->link != NULL) {
		if (!user.requests && step_recall(revoke, user.qp))
			continue;
		if (!user.requests && ndxp_now_ns() < revoke->recall_until_ns)
			return false;
		ofi_link_force_close(user.qp->link, used_cause);
	}
	return true;
}

/* ---- peers; control thread ---- */

static void close_key(struct ofi_revoke *revoke)
{
	if (revoke->mr != NULL)
		(void)fi_close(&revoke->mr->fid);
	revoke->mr = NULL;
}

/* The ncq's lock held. */
static void add_token(struct ofi_link *link, uint32_t token)
{
	if (link->token_count < OFI_TOKENS_MAX)
		link->tokens[link->token_count++] = token;
	else
		link->token_count = OFI_TOKENS_ALL;
}

/* Begin a SYNC round with the peers that know the token. The key is closed in the first round in
 * which no peer has to forget a token. */
static void ask_peers(struct ofi_revoke *revoke)
{
	struct ofi_adapter *adapter = revoke->adapter;

	if (revoke->forget == 0)
		close_key(revoke);
	revoke->asked_ns = ndxp_now_ns();
	revoke->look_ns = revoke->asked_ns + LOOK_MS * NDXP_NS_PER_MS;
	revoke->round = ++adapter->round;
	for (struct ndxp_list *n = adapter->links.next; n != &adapter->links; n = n->next) {
		struct ofi_link *link = container_of(n, struct ofi_link, node);

		if (!ofi_key_users_has(&revoke->users, link->id))
			continue;
		ndxp_lock_acquire(&link->ncq->lock);
		if (link->stage == OFI_LINK_UP && !link->peer_disc && !link->lost) {
			link->sync_wanted = revoke->round;
			if (revoke->forget != 0)
				add_token(link, revoke->forget);
			ofi_link_sync(link);
		}
		ndxp_lock_release(&link->ncq->lock);
	}
	revoke->forget = 0;
	ndxp_timer_set(adapter->spi.loop, &adapter->revoke_timer, LOOK_MS);
}

/* How far a link is with a round. */
enum round {
	ROUND_OVER,
	ROUND_PENDING, /* the round is in progress */
	ROUND_STUCK,   /* the round cannot end */
};

/* look: check also whether the peer is alive. */
static enum round round_of(const struct ofi_revoke *revoke, struct ofi_link *link, bool look)
{
	const struct ofi_adapter *adapter = revoke->adapter;
	const uint64_t now = ndxp_now_ns();
	enum round state = ROUND_OVER;

	if (!ofi_key_users_has(&revoke->users, link->id))
		return state;
	ndxp_lock_acquire(&link->ncq->lock);
	if (link->sync_wanted >= revoke->round && link->sync_done < revoke->round)
		state = ROUND_PENDING;
	if (link->lost && link->stage == OFI_LINK_UP)
		state = ROUND_STUCK;
	if (state == ROUND_PENDING && look &&
	    (ofi_liveness_stall_ns(link, revoke->asked_ns) >= adapter->stall_ms * NDXP_NS_PER_MS ||
	     now - revoke->asked_ns >= adapter->confirm_ms * NDXP_NS_PER_MS))
		state = ROUND_STUCK;
	ndxp_lock_release(&link->ncq->lock);
	return state;
}

/* The first link with at least this state. */
static struct ofi_link *find_link(const struct ofi_revoke *revoke, enum round least, bool look)
{
	struct ofi_adapter *adapter = revoke->adapter;

	/* a list is a ring: next is never NULL */
	for (struct ndxp_list *n = adapter->links.next; n != &adapter->links;
	     n = n->next) { /* NOLINT(clang-analyzer-core.NullDereference) */
		struct ofi_link *link = container_of(n, struct ofi_link, node);

		if (round_of(revoke, link, look) >= least)
			return link;
	}
	return NULL;
}

/* Does a callback wait, and has it waited long enough for this round? */
static bool is_late(const struct ofi_revoke *revoke, uint64_t now)
{
	const uint64_t from =
		revoke->asked_ns > revoke->hurried_ns ? revoke->asked_ns : revoke->hurried_ns;

	return revoke->hurried_ns != 0 && now - from >= HURRY_MS * NDXP_NS_PER_MS;
}

/* Close the links that will not answer; true if all others have answered. */
static bool is_over(struct ofi_revoke *revoke)
{
	const uint64_t now = ndxp_now_ns();
	const bool look = now >= revoke->look_ns;
	const enum round most = is_late(revoke, now) ? ROUND_PENDING : ROUND_STUCK;
	struct ofi_link *link;

	if (revoke->round == 0)
		return true;
	if (look)
		revoke->look_ns = now + LOOK_MS * NDXP_NS_PER_MS;
	while ((link = find_link(revoke, most, look)) != NULL)
		ofi_link_force_close(link, silent_cause);
	return find_link(revoke, ROUND_PENDING, false) == NULL;
}

static void finish_revoke(struct ofi_revoke *revoke)
{
	const struct ndx_host *host = ofi_host(revoke->adapter);
	struct ndx_spi_mr *region = revoke->region;
	uint32_t *going = revoke->going;

	ndxp_list_remove(&revoke->node);
	/* `ended` may begin the revoke again, or free it */
	if (revoke->ended != NULL)
		revoke->ended(revoke);
	if (region != NULL)
		host->mr_ended(region, NDX_OK, 0);
	/* the region may be freed from here on: to wake a waiter only the address is used */
	(void)__atomic_sub_fetch(going, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(going, INT_MAX);
}

static void begin_revoke(struct ofi_revoke *revoke)
{
	revoke->cleared = false;
	revoke->recall_until_ns = ndxp_deadline(revoke->adapter->recall_ms);
	ndxp_list_add(&revoke->adapter->revokes, &revoke->node);
}

/* A step; false if the revoke waits for messages that arrive in own receives. */
static bool step_revoke(struct ofi_revoke *revoke)
{
	if (!revoke->cleared) {
		if (revoke->token != 0 && !clear_users(revoke))
			return false;
		revoke->cleared = true;
		if (revoke->users.count == 0)
			close_key(revoke);
		if (revoke->mr != NULL)
			ask_peers(revoke);
	}
	while (is_over(revoke) && revoke->mr != NULL)
		ask_peers(revoke);
	if (is_over(revoke))
		finish_revoke(revoke);
	return true;
}

void ofi_revoke_on_job(void *arg)
{
	struct ofi_adapter *adapter = arg;
	struct ndxp_list *asked;
	bool recalls = false;

	while ((asked = ofi_revoke_take_asked(adapter)) != NULL)
		begin_revoke(container_of(asked, struct ofi_revoke, node));
	for (struct ndxp_list *n = adapter->revokes.next, *next; n != &adapter->revokes; n = next) {
		struct ofi_revoke *revoke = container_of(n, struct ofi_revoke, node);

		next = n->next;
		recalls = !step_revoke(revoke) || recalls;
	}
	if (recalls)
		ndxp_timer_set(adapter->spi.loop, &adapter->revoke_timer, RECALL_STEP_MS);
}

void ofi_revoke_on_timer(void *arg)
{
	struct ofi_adapter *adapter = arg;

	ofi_revoke_on_job(adapter);
	if (!ndxp_list_empty(&adapter->revokes) && !adapter->revoke_timer.armed)
		ndxp_timer_set(adapter->spi.loop, &adapter->revoke_timer, LOOK_MS);
}

/* ---- any thread ---- */

/* A callback waits on the control thread, so nothing else drives queues and revokes. */
static void drive_adapter(struct ofi_adapter *adapter)
{
	for (struct ndxp_list *n = adapter->ncqs.next; n != &adapter->ncqs; n = n->next)
		ofi_ncq_catch_up(container_of(n, struct ofi_ncq, node));
	ofi_eq_read_all(&adapter->eq);
	ofi_revoke_on_job(adapter);
}

struct wait {
	struct ofi_adapter *adapter;
	const uint32_t *count;
};

/* Let the revokes that the callback waits for end soon, if need be at the cost of connections. */
static void hurry_revokes(const struct wait *wait, uint64_t since)
{
	struct ofi_adapter *adapter = wait->adapter;

	for (struct ndxp_list *n = adapter->revokes.next; n != &adapter->revokes; n = n->next) {
		struct ofi_revoke *revoke = container_of(n, struct ofi_revoke, node);

		if (revoke->going == wait->count || revoke->bound == wait->count)
			revoke->hurried_ns = since;
	}
}

static void drive_until_zero(void *arg)
{
	const struct wait *wait = arg;
	const uint64_t since = ndxp_now_ns();
	uint32_t count;

	drive_adapter(wait->adapter);
	while ((count = __atomic_load_n(wait->count, __ATOMIC_ACQUIRE)) != 0) {
		hurry_revokes(wait, since);
		ndxp_futex_wait(wait->count, count, ndxp_deadline(STEP_MS));
		drive_adapter(wait->adapter);
	}
}

void ofi_revoke_wait(struct ofi_adapter *adapter, const uint32_t *count)
{
	struct wait wait = {adapter, count};
	uint32_t left;

	/* In a callback of another adapter, its control thread may be what this adapter's control
	 * thread waits for. So the call drives this adapter while that thread waits. */
	if (ndxp_loop_on_any() && __atomic_load_n(count, __ATOMIC_ACQUIRE) != 0)
		ndxp_loop_call(adapter->spi.loop, drive_until_zero, &wait);
	while ((left = __atomic_load_n(count, __ATOMIC_ACQUIRE)) != 0)
		ndxp_futex_wait(count, left, UINT64_MAX);
}

enum ndx_status ofi_revoke(struct ofi_revoke *revoke)
{
	struct ofi_adapter *adapter = revoke->adapter;

	/* the usual case: no request uses the token, and no peer can */
	if (mark_users(adapter, revoke->token).qp == NULL &&
	    (revoke->mr == NULL || revoke->users.count == 0 ||
	     __atomic_load_n(&adapter->link_count, __ATOMIC_SEQ_CST) == 0)) {
		close_key(revoke);
		return NDX_OK;
	}
	ofi_revoke_begin(revoke);
	return NDX_PENDING;
}

enum ndx_status ofi_revoke_native(struct ofi_revoke *revoke)
{
	/* a thread that has looked the token up before it was removed holds a lock that
	 * mark_users() takes */
	(void)mark_users(revoke->adapter, revoke->token);
	close_key(revoke);
	return NDX_OK;
}
