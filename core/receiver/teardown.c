/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a run: detection, disconnect, and the report. */
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "receiver.h"

/* The delay before a failed post is repeated. */
#define RETRY_NS NDXP_NS_PER_MS
#define PROBE_LOOK_NS (5 * NDXP_NS_PER_MS)
#define LOG_PAUSE_NS (1000 * NDXP_NS_PER_MS)

static void on_parted(struct ndx_overlapped *ov)
{
	struct ndx_receiver *r = ov->context;

	(void)__atomic_or_fetch(&r->events, RECEIVER_PARTED, __ATOMIC_RELEASE);
	loop_poke(r->loop);
}

/* Disconnect; frames that have arrived are still delivered. */
static void part_from_peer(struct ndx_receiver *r)
{
	if (r->parting)
		return;
	r->parting = true;
	slab_detach(r->slab);
	receiver_set_sending(r, false);
	ndx_overlapped_init(&r->disconnect);
	r->disconnect.callback = on_parted;
	r->disconnect.context = r;
	if (ndx_connector_disconnect(r->end.connector, &r->disconnect) != NDX_PENDING)
		on_parted(&r->disconnect);
}

/* A peer that does not answer gets no graceful disconnect. */
static void abort_connection(struct ndx_receiver *r)
{
	receiver_set_sending(r, false);
	(void)ndx_qp_flush(r->end.qp);
	part_from_peer(r);
}

/* Log the probable cause of an abort. */
static void explain_loss(struct ndx_receiver *r)
{
	uint64_t since;
	uint32_t held;

	ndxp_lock_acquire(&r->slab->lock);
	since = r->slab->out_of_slots_since_ns;
	held = r->slab->held;
	ndxp_lock_release(&r->slab->lock);
	if (since != 0)
		receiver_because(r, NDX_RECEIVER_END_LOST, NDX_E_CONNECTION_ABORTED,
		                 r->notify.native,
		                 "the connection was lost when no slot was posted for %llu ms: "
		                 "consumers hold %u of %u, and the peer may have given up",
		                 (unsigned long long)((ndxp_now_ns() - since) / NDXP_NS_PER_MS),
		                 held, r->slab->count);
	else
		receiver_because(r, NDX_RECEIVER_END_LOST, NDX_E_CONNECTION_ABORTED,
		                 r->notify.native, "the connection was lost");
}

static void on_indication(struct ndx_receiver *r)
{
	enum ndx_disconnect_reason reason = NDX_DISCONNECT_NONE;

	if (r->notify.status == NDX_OK)
		reason = (enum ndx_disconnect_reason)r->notify.information;
	/* Handle results first: a failed receive has a better cause than the abort that it
	 * triggered. */
	while (receiver_poll(r) > 0)
		;
	switch (reason) {
	case NDX_DISCONNECT_GRACEFUL:
		receiver_because(r, NDX_RECEIVER_END_GOODBYE, NDX_OK, 0, "the peer disconnected");
		break;
	case NDX_DISCONNECT_UNKNOWN:
		receiver_because(r, NDX_RECEIVER_END_UNKNOWN, NDX_E_CONNECTION_ABORTED,
		                 r->notify.native, "the peer disconnected, or died");
		break;
	case NDX_DISCONNECT_ABORTED:
		explain_loss(r);
		break;
	case NDX_DISCONNECT_NONE:
	default:
		return;
	}
	part_from_peer(r);
}

/* The queue may also have results of a sender that was closed. */
static void look_for_answer(struct ndx_receiver *r)
{
	struct ndx_result result;

	ndxp_lock_acquire(&r->tx_lock);
	while (!r->has_sender && ndx_cq_get_results(r->tx_cq, &result, 1) > 0) {
		if (result.request_context == NULL && result.status == NDX_OK)
			r->probing = false;
	}
	/* A new sender takes the results now. */
	if (r->has_sender)
		r->probing = false;
	ndxp_lock_release(&r->tx_lock);
}

/* tx_lock held. The probe writes 0 bytes, so it needs no right, and an NDX peer answers. A
 * device that was connected by numbers may break the connection for this: such a peer gets one byte
 * where it granted write access, or is not probed. For other peers the provider decides. */
static bool post_probe(struct ndx_receiver *r, uint32_t flags)
{
	const struct ndx_sge one = {
		.buffer = r->slab->memory, .length = 1, .token = r->slab->token};

	if (r->tx_qp == NULL || (r->no_oob && r->probe_token == 0))
		return false;
	if (!r->no_oob)
		return ndx_qp_write(r->tx_qp, NULL, NULL, 0, 0, 0, flags) == NDX_OK;
	return ndx_qp_write(r->tx_qp, NULL, &one, 1, r->probe_address, r->probe_token, flags) ==
	       NDX_OK;
}

static void send_probe(struct ndx_receiver *r, uint64_t now_ns)
{
	uint32_t flags = 0;

	ndxp_lock_acquire(&r->tx_lock);
	/* The sender takes the results of a connection that it uses, at any time: then do not wait
	 * for the result. Without an answer the connection breaks anyway. */
	if (r->has_sender)
		flags = NDX_OP_SILENT_SUCCESS;
	r->probe_ns =
		now_ns; /* also if the peer is not probed: there is no need to check again soon */
	r->probing = post_probe(r, flags) && flags == 0;
	ndxp_lock_release(&r->tx_lock);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Detect silence; both functions return the time of the next check. */
static uint64_t watch_idle(struct ndx_receiver *r, uint64_t now_ns)
{
	const uint64_t patience = r->attr.idle_timeout_ms * NDXP_NS_PER_MS;

	if (patience == 0)
		return UINT64_MAX;
	if (now_ns < r->last_ns + patience)
		return r->last_ns + patience;
	receiver_because(r, NDX_RECEIVER_END_IDLE, NDX_E_IO_TIMEOUT, 0, "no frame came for %u ms",
	                 r->attr.idle_timeout_ms);
	abort_connection(r);
	return UINT64_MAX;
}

static uint64_t watch_peer(struct ndx_receiver *r, uint64_t now_ns)
{
	const uint64_t patience = r->attr.probe_ms * NDXP_NS_PER_MS;
	uint64_t quiet_since;

	if (patience == 0)
		return UINT64_MAX;
	if (r->probing) {
		look_for_answer(r);
		if (!r->probing)
			return now_ns + patience;
		if (now_ns < r->probe_ns + r->attr.probe_timeout_ms * NDXP_NS_PER_MS)
			return now_ns + PROBE_LOOK_NS;
		receiver_because(r, NDX_RECEIVER_END_PROBE, NDX_E_IO_TIMEOUT, 0,
		                 "the peer did not answer a probe in %u ms",
		                 r->attr.probe_timeout_ms);
		abort_connection(r);
		return UINT64_MAX;
	}
	quiet_since = r->last_ns > r->probe_ns ? r->last_ns : r->probe_ns;
	if (now_ns < quiet_since + patience)
		return quiet_since + patience;
	send_probe(r, now_ns);
	return now_ns + PROBE_LOOK_NS;
}

/* Post slots whose post failed, and detect that consumers hold all slots. */
static uint64_t watch_slots(struct ndx_receiver *r, uint64_t now_ns)
{
	uint64_t out_of_slots;
	uint32_t held;

	ndxp_lock_acquire(&r->slab->lock);
	out_of_slots = r->slab->out_of_slots;
	held = r->slab->held;
	ndxp_lock_release(&r->slab->lock);
	if (out_of_slots > r->out_of_slots_logged &&
	    now_ns >= r->out_of_slots_logged_ns + LOG_PAUSE_NS) {
		log_warn(0,
		         "receiver: no slot is posted: consumers hold %u of %u; the peer waits "
		         "(%llu times since the last such line)",
		         held, r->slab->count,
		         (unsigned long long)(out_of_slots - r->out_of_slots_logged));
		r->out_of_slots_logged = out_of_slots;
		r->out_of_slots_logged_ns = now_ns;
	}
	if (__atomic_load_n(&r->slab->unposted, __ATOMIC_RELAXED) == 0)
		return UINT64_MAX;
	slab_retry(r->slab);
	return now_ns + RETRY_NS;
}

bool receiver_attend(struct ndx_receiver *r, uint64_t now_ns, uint64_t *due_ns)
{
	const uint32_t events = __atomic_exchange_n(&r->events, 0, __ATOMIC_ACQUIRE);

	*due_ns = UINT64_MAX;
	if (events & RECEIVER_STOP) {
		receiver_because(r, NDX_RECEIVER_END_STOPPED, NDX_OK, 0, "stopped");
		part_from_peer(r);
	}
	if (events & RECEIVER_INDICATED)
		on_indication(r);
	if (events & RECEIVER_PARTED) {
		receiver_dismantle(r);
		return false;
	}
	if (!r->parting)
		*due_ns = watch_idle(r, now_ns);
	if (!r->parting)
		*due_ns = sooner(*due_ns, watch_peer(r, now_ns));
	if (!r->parting)
		*due_ns = sooner(*due_ns, watch_slots(r, now_ns));
	return true;
}

void receiver_dismantle(struct ndx_receiver *r)
{
	uint32_t missing;

	slab_detach(r->slab);
	receiver_set_sending(r, false);
	while (receiver_poll(r) > 0)
		;
	endpoint_forget(&r->end);
	/* Flush, but keep the queue pair until reset or stop: other threads may be in calls on
	 * it. */
	(void)ndx_qp_flush(r->end.qp);
	while (receiver_poll(r) > 0)
		;
	look_for_answer(r);
	missing = slab_reclaim(r->slab);
	if (missing > 0)
		log_warn(0, "receiver: %u receives never came back from the device", missing);
}

void receiver_left(struct ndx_receiver *r)
{
	enum ndx_receiver_state state = NDX_RECEIVER_FAILED;
	bool stopping;

	pthread_mutex_lock(&r->lock);
	stopping = r->state == NDX_RECEIVER_STOPPING;
	if (r->cause.end == NDX_RECEIVER_END_GOODBYE)
		state = NDX_RECEIVER_ENDED;
	if (!stopping)
		receiver_set_state(r, state);
	/* After the state: a program whose pull has ended may reset the receiver at once. */
	pull_end(&r->pull, true);
	pthread_mutex_unlock(&r->lock);
	if (stopping) {
		state = NDX_RECEIVER_STOPPED;
		endpoint_dismantle(&r->end);
		slab_unregister(r->slab);
		pthread_mutex_lock(&r->lock);
		receiver_set_state(r, state);
		pthread_mutex_unlock(&r->lock);
	}
	if (r->attr.on_end != NULL && (!stopping || r->told_in_callback))
		r->attr.on_end(r->attr.context, r, state);
	receiver_drop(r);
}
