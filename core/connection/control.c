/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors on the control thread: commands of the consumer, upcalls of the provider, and the
 * disconnect machine between them. */
#include <stdlib.h>

#include <ndx/spi/system.h>
#include "base_log.h"
#include "connection.h"

/* A provider operation may report the next step immediately; there are fewer steps than states. */
#define ROUNDS 16

static void conn_last(void *arg)
{
	struct ndx_connector *c = arg;
	struct ndx_adapter *adapter = c->adapter;

	conn_forget(c);
	conn_inbox_clear(c);
	free(c->oob.pair);
	free(c);
	adapter_put(adapter, false);
}

void conn_reap(struct ndx_connector *c)
{
	struct ndx_loop *loop = c->adapter->loop;

	if (!c->closed || c->dead || !conn_is_over(c))
		return;
	c->dead = true;
	conn_keep_postmortem(c);
	ndxp_list_remove(&c->node);
	stats_count_gone(c->adapter, CORE_CONNECTOR, NULL);
	ndxp_timer_cancel(loop, &c->connect_timer);
	ndxp_timer_cancel(loop, &c->drain_timer);
	ndxp_timer_cancel(loop, &c->disconnect_timer);
	conn_release_qp(c);
	c->adapter->ops->conn_destroy(c->native);
	conn_oob_end(c);
	/* After a work job that may be queued. */
	c->last = (struct ndxp_job){.fn = conn_last, .arg = c};
	ndxp_loop_post(loop, &c->last);
}

void conn_went_up(struct ndx_connector *c)
{
	char text[CONN_TEXT];

	conn_rendezvous_end(c);
	disconnect_init(&c->machine);
	conn_enter(c, CONN_UP, "ESTABLISHED", &conn_fine);
	conn_count_attempt(c, NDX_OK);
	free(c->failure); /* of an earlier attempt */
	c->failure = NULL;
	if (c->qp != NULL)
		c->qp->spent = true;
	if (ndxp_log_enabled(NDX_LOG_INFO))
		log_info("%s: connected", conn_text(c, text));
}

/* ---- the end of a connection ---- */

/* Record why the connection is aborted, if the provider has not given a cause. */
static void note_cause(struct ndx_connector *c, enum disconnect_event ev)
{
	const char *cause = NULL;

	c->outcome = NDX_OUTCOME_ABORTED;
	if (ev == DISCONNECT_EV_FLUSH) {
		c->outcome = NDX_OUTCOME_FLUSHED;
		cause = "flushed or closed by its own side";
	} else if (ev == DISCONNECT_EV_TIMEOUT) {
		c->outcome = NDX_OUTCOME_TIMED_OUT;
		cause = "no goodbye from the peer in time";
	}
	ndxp_lock_acquire(&c->inbox_lock);
	if (cause != NULL && c->cause == NULL)
		c->cause = cause;
	ndxp_lock_release(&c->inbox_lock);
}

static const char *get_cause(struct ndx_connector *c)
{
	const char *cause;

	ndxp_lock_acquire(&c->inbox_lock);
	cause = c->cause;
	ndxp_lock_release(&c->inbox_lock);
	return cause != NULL ? cause : "cause unknown";
}

static int32_t get_native(struct ndx_connector *c)
{
	int32_t native;

	ndxp_lock_acquire(&c->inbox_lock);
	native = c->report_native;
	ndxp_lock_release(&c->inbox_lock);
	return native;
}

static void complete_notifies(struct ndx_connector *c, enum ndx_status status,
                              enum ndx_disconnect_reason reason)
{
	struct ndx_overlapped *ov;

	while ((ov = ndxp_ov_pop(&c->notifies)) != NULL)
		conn_complete_ov(c, &ov, status, reason, 0);
}

static void indicate(struct ndx_connector *c, enum ndx_disconnect_reason reason)
{
	c->indicated = reason;
	complete_notifies(c, NDX_OK, reason);
}

void conn_get_cause(struct ndx_connector *c, struct conn_result *result)
{
	result->native = get_native(c);
	result->cause = get_cause(c);
}

const char *conn_abort_words(const struct ndx_connector *c)
{
	return c->own_end == CONN_RELEASED
	               ? "closed by its own side before a disconnect, then aborted"
	               : "aborted";
}

static void act(struct ndx_connector *c, enum disconnect_action action)
{
	const struct ndx_provider_ops *ops = c->adapter->ops;
	struct ndx_loop *loop = c->adapter->loop;

	switch (action) {
	case DISCONNECT_DO_NOTIFY_GRACEFUL:
		indicate(c, conn_goodbye(c));
		break;
	case DISCONNECT_DO_NOTIFY_ABORTED:
		indicate(c, NDX_DISCONNECT_ABORTED);
		break;
	case DISCONNECT_DO_NOTIFY_CANCELED:
		complete_notifies(c, NDX_E_CANCELED, NDX_DISCONNECT_NONE);
		break;
	case DISCONNECT_DO_DISC_OK:
		conn_complete_ov(c, &c->ov_disconnect, NDX_OK, 0, 0);
		break;
	case DISCONNECT_DO_DISC_ABORTED:
		conn_complete_ov(c, &c->ov_disconnect, NDX_E_CONNECTION_ABORTED, 0,
		                 c->report_native);
		break;
	case DISCONNECT_DO_DISC_CANCELED:
		conn_complete_ov(c, &c->ov_disconnect, NDX_E_CANCELED, 0, 0);
		break;
	case DISCONNECT_DO_START_DRAIN:
		ndxp_timer_set(loop, &c->drain_timer, c->attr.drain_timeout_ms);
		ops->conn_drain(c->native);
		break;
	case DISCONNECT_DO_CANCEL_INITIATOR:
		ops->conn_cancel_initiator(c->native);
		break;
	case DISCONNECT_DO_SEND_DISC:
		ndxp_timer_cancel(loop, &c->drain_timer);
		ndxp_timer_set(loop, &c->disconnect_timer, c->attr.disconnect_timeout_ms);
		ops->conn_send_disc(c->native);
		break;
	case DISCONNECT_DO_FINISH:
		ops->conn_finish(c->native);
		break;
	case DISCONNECT_DO_ABORT_LINK:
		ops->conn_abort(c->native);
		break;
	case DISCONNECT_ACTIONS:
		break;
	}
}

static void went_over(struct ndx_connector *c)
{
	bool good = disconnect_get_state(&c->machine) == DISCONNECT_STATE_CLOSED_OK;
	struct conn_result result = {.status = NDX_E_CONNECTION_ABORTED};
	char text[CONN_TEXT];

	conn_get_cause(c, &result);
	conn_count_end(c);
	ndxp_timer_cancel(c->adapter->loop, &c->drain_timer);
	ndxp_timer_cancel(c->adapter->loop, &c->disconnect_timer);
	c->native->qp = NULL;
	conn_oob_end(c);
	if (!good)
		conn_log_failure(c, conn_abort_words(c), &result);
	else if (ndxp_log_enabled(NDX_LOG_INFO))
		log_info("%s: disconnected in %.3f ms", conn_text(c, text),
		         (double)(ndxp_now_ns() - c->ending_since) / 1e6);
}

/* Record a step of the machine in log, history and counters. */
static void note_step(struct ndx_connector *c, enum disconnect_state before,
                      enum disconnect_event ev, uint32_t actions)
{
	enum disconnect_state after = disconnect_get_state(&c->machine);
	struct conn_result result = conn_fine;

	if (before == DISCONNECT_STATE_UP && after != before) {
		c->ending_since = ndxp_now_ns();
		if (ev == DISCONNECT_EV_DISCONNECT)
			c->own_end = CONN_DISCONNECTED;
		else if (ev == DISCONNECT_EV_RELEASE)
			c->own_end = CONN_RELEASED;
	}
	if (actions & DISCONNECT_DO(CANCEL_INITIATOR))
		c->adapter->stats.drain_timeouts++;
	if (after == DISCONNECT_STATE_ABORTING && before != after) {
		note_cause(c, ev);
		result.status = NDX_E_CONNECTION_ABORTED;
		conn_get_cause(c, &result);
	}
	if (after != before || actions != 0)
		conn_note(c, disconnect_state_name(before), disconnect_event_name(ev), &result);
}

void conn_step(struct ndx_connector *c, enum disconnect_event ev)
{
	enum disconnect_state before = disconnect_get_state(&c->machine);
	bool was_over = disconnect_is_over(&c->machine);
	char text[CONN_TEXT];
	uint32_t actions;

	if (!disconnect_expects(&c->machine, ev))
		log_warn(0, "%s: %s + %s: not expected", conn_text(c, text),
		         disconnect_state_name(before), disconnect_event_name(ev));
	if (ev == DISCONNECT_EV_PEER)
		c->peer_disc = true;
	actions = disconnect_step(&c->machine, ev);
	note_step(c, before, ev, actions);
	/* the actions separate the provider's half from the queue pair */
	if (disconnect_get_state(&c->machine) != DISCONNECT_STATE_UP)
		conn_proof_end(c);
	if (!was_over && disconnect_is_over(&c->machine))
		went_over(c);
	for (unsigned i = 0; i < DISCONNECT_ACTIONS; i++) {
		if (actions & (UINT32_C(1) << i))
			act(c, (enum disconnect_action)i);
	}
	(void)pthread_cond_broadcast(&c->adapter->changed);
}

/* ---- commands ---- */

/* The phase after a failed attempt: some failures allow another attempt on the same connector. */
static enum conn_phase phase_after(enum ndx_status status)
{
	return status == NDX_E_CONNECTION_REFUSED || status == NDX_E_NETWORK_UNREACHABLE ||
	                       status == NDX_E_HOST_UNREACHABLE || status == NDX_E_IO_TIMEOUT
	               ? CONN_NEW
	               : CONN_FAILED;
}

/* End the attempt after a failure that the provider reported; its cause was reported before. */
static void end_by_upcall(struct ndx_connector *c, enum conn_phase next, enum ndx_status status,
                          int32_t native)
{
	struct conn_result result = {.status = status, .native = native};

	ndxp_lock_acquire(&c->inbox_lock);
	result.cause = c->cause;
	ndxp_lock_release(&c->inbox_lock);
	conn_end_attempt(c, next, &result);
}

/* End the attempt after a provider operation failed immediately: its error text is the cause. */
static void end_at_once(struct ndx_connector *c, enum conn_phase next, enum ndx_status status)
{
	char cause[BASE_FAILURE_TEXT];
	const struct conn_result result = {.status = status, .cause = cause};

	base_text_copy(cause, sizeof(cause), ndx_last_error());
	conn_end_attempt(c, next, &result);
}

/* The commands of an attempt. */
static void run_attempt(struct ndx_connector *c, unsigned commands)
{
	const struct ndx_provider_ops *ops = c->adapter->ops;
	const bool connects = (commands & CONN_DO_CONNECT) && c->phase == CONN_CONNECTING;
	const bool accepts = (commands & CONN_DO_ACCEPT) && c->phase == CONN_ACCEPTING;
	enum ndx_status st = connects || accepts ? conn_inbox_ready(c) : NDX_OK;
	enum conn_phase after = CONN_FAILED;

	if (st != NDX_OK) {
		end_at_once(c, after, st);
		return;
	}
	if (connects) {
		if (c->attr.connect_timeout_ms != NDX_INFINITE)
			ndxp_timer_set(c->adapter->loop, &c->connect_timer,
			               c->attr.connect_timeout_ms);
		st = ops->conn_connect(c->native, (const struct sockaddr *)&c->destination,
		                       c->destination_len, &c->own);
		after = phase_after(st);
	} else if ((commands & CONN_DO_RENDEZVOUS) && c->phase == CONN_CONNECTING) {
		st = conn_oob_connect(c);
	} else if ((commands & CONN_DO_COMPLETE) && c->phase == CONN_COMPLETING) {
		st = ops->conn_complete(c->native);
	} else if (accepts) {
		st = ops->conn_accept(c->native, &c->own);
	}
	if (st != NDX_OK)
		end_at_once(c, after, st);
}

/* The machine has one request for the indication, however many calls are in flight, and gives one
 * indication: later calls get the same answer here. */
static void ask_notify(struct ndx_connector *c)
{
	if (c->indicated != NDX_DISCONNECT_NONE)
		indicate(c, c->indicated);
	else if (c->notifies.head != NULL && !disconnect_notify_is_pending(&c->machine))
		conn_step(c, DISCONNECT_EV_NOTIFY);
}

static void run_commands(struct ndx_connector *c)
{
	unsigned commands = c->commands;

	c->commands = 0;
	ndxp_fail_hold(true);
	run_attempt(c, commands);
	ndxp_fail_hold(false);
	if (commands & CONN_DO_PROVE)
		conn_proof_begin(c);
	if ((commands & CONN_DO_NOTIFY) && c->phase == CONN_UP)
		ask_notify(c);
	/* The machine may still have a disconnect call that was withdrawn: then the new call gets
	 * the answer to that one. */
	if ((commands & CONN_DO_DISCONNECT) && c->phase == CONN_UP && c->ov_disconnect != NULL &&
	    !disconnect_call_is_pending(&c->machine))
		conn_step(c, DISCONNECT_EV_DISCONNECT);
}

/* ---- upcalls ---- */

static void remember_peer(struct ndx_connector *c, const struct conn_upcall *upcall,
                          const struct ndx_spi_params *params)
{
	if (!upcall->has_params)
		return;
	c->peer = *params;
	c->peer_known = true;
}

/* Another program listens at the address now. */
static const struct conn_result wrong_server = {.status = NDX_E_CONNECTION_REFUSED,
                                                .cause = "the answer is not the described peer's"};

static void take_connected(struct ndx_connector *c, const struct conn_upcall *upcall,
                           const struct ndx_spi_params *params)
{
	if (c->phase != CONN_CONNECTING)
		return;
	remember_peer(c, upcall, params);
	if (upcall->status != NDX_OK) {
		end_by_upcall(c, phase_after(upcall->status), upcall->status, upcall->native);
		return;
	}
	ndxp_timer_cancel(c->adapter->loop, &c->connect_timer);
	conn_agree(c);
	conn_enter(c, CONN_CONNECT_RESPONSE, "ANSWER", &conn_fine);
	if (!c->rendezvous.on) {
		conn_complete_ov(c, &c->ov, NDX_OK, 0, 0);
	} else if (conn_rendezvous_is_peer(c)) {
		conn_enter(c, CONN_COMPLETING, "COMPLETE", &conn_fine);
		conn_command(c, CONN_DO_COMPLETE);
	} else {
		conn_end_attempt(c, CONN_FAILED, &wrong_server);
	}
}

static void take_established(struct ndx_connector *c, const struct conn_upcall *upcall,
                             const struct ndx_spi_params *params)
{
	switch (c->phase) {
	case CONN_COMPLETING:
	case CONN_ACCEPTING:
		if (upcall->status == NDX_OK) {
			conn_went_up(c);
			conn_complete_ov(c, &c->ov, NDX_OK, 0, 0);
		} else {
			remember_peer(c, upcall, params);
			end_by_upcall(c, CONN_FAILED, upcall->status, upcall->native);
		}
		break;
	case CONN_CONNECT_RESPONSE:
	case CONN_HAVE_REQUEST:
		remember_peer(c, upcall, params);
		c->gone_status =
			upcall->status != NDX_OK ? upcall->status : NDX_E_CONNECTION_ABORTED;
		end_by_upcall(c, CONN_PEER_GAVE_UP, c->gone_status, upcall->native);
		break;
	case CONN_CONNECTING:
		end_by_upcall(c, phase_after(upcall->status), upcall->status, upcall->native);
		break;
	case CONN_NEW:
	case CONN_DESCRIBED:
	case CONN_AWAIT_REQUEST:
	case CONN_UP:
	case CONN_PEER_GAVE_UP:
	case CONN_FAILED:
		break;
	}
}

/* In the order in which they happen to a connection. */
static const struct {
	uint32_t bit;
	enum disconnect_event ev;
} report_events[] = {
	{NDX_REPORT_PEER_DISC, DISCONNECT_EV_PEER},  {NDX_REPORT_DISC_ACKED, DISCONNECT_EV_ACKED},
	{NDX_REPORT_DRAINED, DISCONNECT_EV_DRAINED}, {NDX_REPORT_ABORT, DISCONNECT_EV_ABORT},
	{NDX_REPORT_QUIET, DISCONNECT_EV_QUIET},
};

/* The state of the machine after all reports in the inbox. Returns whether the peer's goodbye has
 * arrived. Any thread. */
static bool foresee(struct ndx_connector *c, struct disconnect *machine)
{
	const uint32_t reports = conn_inbox_reports(c);

	*machine = c->machine;
	for (size_t i = 0; i < sizeof(report_events) / sizeof(report_events[0]); i++) {
		if (reports & report_events[i].bit)
			(void)disconnect_step(machine, report_events[i].ev);
	}
	return c->peer_disc || (reports & NDX_REPORT_PEER_DISC) != 0;
}

/* A consumer may take a cancelled result and ask for the reason before the control thread has
 * handled the reports in the inbox: count them as handled. */
enum ndx_disconnect_reason conn_reason(struct ndx_connector *c)
{
	struct disconnect machine;
	enum disconnect_state state;
	bool peer_disc;

	if (c->phase != CONN_UP)
		return NDX_DISCONNECT_NONE;
	peer_disc = foresee(c, &machine);
	state = disconnect_get_state(&machine);
	if (state == DISCONNECT_STATE_ABORTING || state == DISCONNECT_STATE_CLOSED_BAD)
		return NDX_DISCONNECT_ABORTED;
	return peer_disc ? conn_goodbye(c) : NDX_DISCONNECT_NONE;
}

static void take_reports(struct ndx_connector *c, uint32_t reports)
{
	static const struct conn_upcall lost = {.status = NDX_E_CONNECTION_ABORTED};

	if (c->phase != CONN_UP) {
		if (reports & NDX_REPORT_ABORT)
			take_established(c, &lost, NULL);
		return;
	}
	if (reports & NDX_REPORT_PROOF)
		conn_proof_look(c);
	for (size_t i = 0; i < sizeof(report_events) / sizeof(report_events[0]); i++) {
		if (reports & report_events[i].bit)
			conn_step(c, report_events[i].ev);
	}
}

/* One round; false if there was nothing to do. */
static bool work_round(struct ndx_connector *c, struct conn_inbox *inbox)
{
	const bool any = conn_inbox_take(c, conn_oob_may_handle(c), inbox);
	const uint32_t oob = inbox->events >> CONN_EVENT_OOB;

	if (!any && c->commands == 0)
		return false;
	run_commands(c);
	conn_note_local(c);
	if (inbox->events & CONN_EVENT_CONNECTED)
		take_connected(c, &inbox->connected, inbox->params);
	if (inbox->events & CONN_EVENT_ESTABLISHED)
		take_established(c, &inbox->established, inbox->params);
	take_reports(c, inbox->events >> CONN_EVENT_REPORTS);
	if (oob != 0)
		conn_oob_handle(c, oob);
	free(inbox->params);
	return true;
}

void connector_work(void *arg)
{
	struct ndx_connector *c = arg;
	struct ndx_adapter *adapter = c->adapter;
	struct conn_inbox inbox;

	adapter_lock(adapter);
	for (int i = 0; i < ROUNDS && !c->dead; i++) {
		if (!work_round(c, &inbox))
			break;
		conn_reap(c);
	}
	adapter_unlock(adapter);
}
