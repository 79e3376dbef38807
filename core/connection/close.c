/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors: time-outs, cancel, close, reject. */
#include <ndx/spi/log.h>
#include "connection.h"

/* A step for a timer. A thread that runs late finds expired timers, and behind them events that
 * came in time: handle those events first. */
static void timed_step(struct ndx_connector *c, enum disconnect_event ev)
{
	connector_work(c);
	adapter_lock(c->adapter);
	if (c->phase == CONN_UP && !c->dead)
		conn_step(c, ev);
	adapter_unlock(c->adapter);
	connector_work(c);
}

void conn_on_drain_timeout(void *arg)
{
	timed_step(arg, DISCONNECT_EV_DRAIN_TIMEOUT);
}

void conn_on_disconnect_timeout(void *arg)
{
	timed_step(arg, DISCONNECT_EV_TIMEOUT);
}

void conn_on_connect_timeout(void *arg)
{
	struct ndx_connector *c = arg;

	connector_work(c);
	adapter_lock(c->adapter);
	if (c->phase == CONN_AWAIT_REQUEST && c->rendezvous.on && !c->dead) {
		conn_rendezvous_cancel(c, "CONNECT_TIMEOUT", NDX_E_IO_TIMEOUT);
	} else if (c->phase == CONN_CONNECTING && !c->dead) {
		const struct conn_result late = {
			.status = NDX_E_IO_TIMEOUT,
			.cause = c->oob.on
		                         ? "no answer in connect_timeout_ms; the peer has not "
		                           "called ndx_connector_connect_peer(), or the stream "
		                           "does not carry its messages"
		                         : "no answer in connect_timeout_ms; " CONN_NO_ANSWER_HINT};
		struct ndx_overlapped *ov = c->ov;

		c->ov = NULL; /* conn_give_up() would complete it CANCELED */
		conn_give_up(c, CONN_NEW, "CONNECT_TIMEOUT", &late);
		conn_log_failure(c, "connecting failed", &late);
		conn_complete_ov(c, &ov, NDX_E_IO_TIMEOUT, 0, 0);
	}
	adapter_unlock(c->adapter);
}

/* Lock held, control thread: cancel the operations in flight. */
static void cancel_all(struct ndx_connector *c)
{
	struct ndx_overlapped *ov = c->ov;

	conn_proof_cancel(c);
	c->ov = NULL;
	switch (c->phase) {
	case CONN_DESCRIBED:
		conn_rendezvous_cancel(c, "CANCEL", NDX_E_CANCELED);
		break;
	case CONN_AWAIT_REQUEST:
		if (c->rendezvous.on) {
			c->ov = ov;
			conn_rendezvous_cancel(c, "CANCEL", NDX_E_CANCELED);
			return;
		}
		listener_forget(c);
		break;
	case CONN_CONNECTING:
		conn_give_up(c, CONN_NEW, "CANCEL", &conn_canceled);
		break;
	case CONN_COMPLETING:
	case CONN_ACCEPTING:
		conn_give_up(c, CONN_FAILED, "CANCEL", &conn_canceled);
		break;
	case CONN_UP:
		conn_step(c, DISCONNECT_EV_CANCEL);
		break;
	case CONN_NEW:
	case CONN_CONNECT_RESPONSE:
	case CONN_HAVE_REQUEST:
	case CONN_PEER_GAVE_UP:
	case CONN_FAILED:
		break;
	}
	conn_complete_ov(c, &ov, NDX_E_CANCELED, 0, 0);
}

/*
 * Run the commands that were given earlier, and handle the reports. In a callback no event of the
 * device is handled: a provider that waits for its device to end an abort is asked again, and stops
 * waiting, so that a disconnect that the abort ends has its own outcome.
 */
static void catch_up(struct ndx_connector *c)
{
	bool aborting;

	conn_hurry(c);
	connector_work(c);
	if (!ndxp_loop_is_hurried())
		return;
	adapter_lock(c->adapter);
	aborting = c->phase == CONN_UP && !c->dead &&
	           disconnect_get_state(&c->machine) == DISCONNECT_STATE_ABORTING;
	if (aborting)
		c->adapter->ops->conn_abort(c->native);
	adapter_unlock(c->adapter);
	if (aborting)
		connector_work(c);
}

static void cancel_on_loop(void *arg)
{
	struct ndx_connector *c = arg;

	catch_up(c);
	adapter_lock(c->adapter);
	cancel_all(c);
	adapter_unlock(c->adapter);
}

void conn_cancel(struct ndx_connector *c)
{
	ndxp_loop_call(c->adapter->loop, cancel_on_loop, c);
}

static void cancel_attempt_on_loop(void *arg)
{
	struct ndx_connector *c = arg;

	catch_up(c);
	adapter_lock(c->adapter);
	if (c->phase == CONN_UP)
		conn_proof_cancel(c);
	else
		cancel_all(c);
	adapter_unlock(c->adapter);
}

void conn_cancel_attempt(struct ndx_connector *c)
{
	ndxp_loop_call(c->adapter->loop, cancel_attempt_on_loop, c);
}

struct withdraw_call {
	struct ndx_connector *c;
	struct ndx_overlapped *ov;
};

static void withdraw_on_loop(void *arg)
{
	struct withdraw_call *call = arg;
	struct ndx_connector *c = call->c;

	catch_up(c);
	adapter_lock(c->adapter);
	if (c->ov_disconnect == call->ov)
		conn_complete_ov(c, &c->ov_disconnect, NDX_E_CANCELED, 0, 0);
	adapter_unlock(c->adapter);
}

void conn_withdraw_disconnect(struct ndx_connector *c, struct ndx_overlapped *ov)
{
	struct withdraw_call call = {.c = c, .ov = ov};

	ndxp_loop_call(c->adapter->loop, withdraw_on_loop, &call);
}

static void close_on_loop(void *arg)
{
	struct ndx_connector *c = arg;
	struct ndx_adapter *adapter = c->adapter;

	catch_up(c);
	adapter_lock(adapter);
	if (c->phase == CONN_UP) {
		conn_proof_cancel(c);
		conn_step(c, DISCONNECT_EV_CLOSE);
		conn_step(c, DISCONNECT_EV_RELEASE);
	} else {
		cancel_all(c);
		if (c->phase == CONN_CONNECT_RESPONSE || c->phase == CONN_HAVE_REQUEST)
			conn_give_up(c, CONN_FAILED, "CLOSE", &conn_canceled);
	}
	c->closed = true;
	adapter->handles--;
	conn_reap(c);
	adapter_unlock(adapter);
}

void conn_close(struct ndx_connector *c)
{
	ndxp_loop_call(c->adapter->loop, close_on_loop, c);
}

struct reject_call {
	struct ndx_connector *c;
	const void *data;
	size_t len;
	enum ndx_status status;
	struct error_capture said;
};

static void reject_on_loop(void *arg)
{
	struct reject_call *call = arg;
	struct ndx_connector *c = call->c;

	connector_work(c);
	error_capture_begin();
	adapter_lock(c->adapter);
	if (c->phase == CONN_PEER_GAVE_UP) {
		call->status =
			fail(c->gone_status, 0, "ndx_connector_reject: the peer has given up");
	} else if (c->phase != CONN_HAVE_REQUEST && c->phase != CONN_CONNECT_RESPONSE) {
		call->status = fail(NDX_E_CONNECTION_INVALID, 0,
		                    "ndx_connector_reject: there is nothing to refuse");
	} else {
		call->status = c->adapter->ops->conn_reject(c->native, call->data, call->len);
		conn_note_local(c);
		conn_release_qp(c);
		if (c->passive)
			c->adapter->stats.rejects_passive++;
		else
			c->adapter->stats.rejects_active++;
		conn_enter(c, CONN_FAILED, "REJECT", &conn_fine);
	}
	adapter_unlock(c->adapter);
	error_capture_end(&call->said);
}

enum ndx_status conn_reject(struct ndx_connector *c, const void *data, size_t len)
{
	struct reject_call call = {.c = c, .data = data, .len = len};

	ndxp_loop_call(c->adapter->loop, reject_on_loop, &call);
	return error_capture_restore(call.status, &call.said);
}
