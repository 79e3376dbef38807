/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: flush and close, and the end of the connection that they cause. */
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_loop.h"
#include "connection.h"

/* The longest that close waits for the peer's goodbye after the own work has ended. */
#define GOODBYE_PATIENCE_MS 100u
/* The longest that close waits for a provider that still needs the queue pair. */
#define DETACH_MS 2000u
#define DETACH_STEP_MS 1u

/* A flush or close, for the control thread. */
struct qp_call {
	struct ndx_spi_qp *qp;
	bool can_wait;
	bool again; /* the provider is not ready yet: ask again */
};

/* Lock held: take the queue pair out of an attempt to connect. An attempt that the peer has not
 * answered may be repeated, as after a cancel. */
static void leave_attempt(struct ndx_connector *c)
{
	if (c->phase == CONN_DESCRIBED || c->phase == CONN_AWAIT_REQUEST)
		conn_rendezvous_cancel(c, "RELEASE", NDX_E_CANCELED);
	else
		conn_give_up(c, c->phase == CONN_CONNECTING ? CONN_NEW : CONN_FAILED, "RELEASE",
		             &conn_canceled);
}

static void flush_on_loop(void *arg)
{
	struct qp_call *call = arg;
	struct ndx_spi_qp *qp = call->qp;
	struct ndx_adapter *adapter = qp->object.adapter;
	struct ndx_connector *c;

	adapter_lock(adapter);
	c = qp->connector;
	if (c != NULL)
		conn_hurry(c);
	if (c != NULL && c->phase == CONN_UP) {
		conn_step(c, DISCONNECT_EV_FLUSH);
	} else {
		if (c != NULL)
			leave_attempt(c);
		adapter->ops->qp_cancel(qp);
	}
	adapter_unlock(adapter);
	/* Handle the reports that the provider has made already. */
	if (c != NULL)
		connector_work(c);
}

/* Wait until the queue pair's connection is over; false if that takes too long. */
static bool wait_over(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	uint64_t deadline = ndxp_deadline(CORE_PROVIDER_PATIENCE_MS);
	bool over;

	adapter_lock(adapter);
	while (qp->connector != NULL && !conn_is_over(qp->connector)) {
		if (!base_loop_may_wait(adapter->loop) || !adapter_wait(adapter, deadline))
			break;
	}
	over = qp->connector == NULL || conn_is_over(qp->connector);
	adapter_unlock(adapter);
	return over;
}

/* The end was in progress before the callback began, and the provider waits for the device. When
 * asked a second time, from a callback, the provider stops waiting. */
static void abort_again(void *arg)
{
	struct qp_call *call = arg;
	struct ndx_adapter *adapter = call->qp->object.adapter;
	struct ndx_connector *c;

	adapter_lock(adapter);
	c = call->qp->connector;
	if (c != NULL && c->phase == CONN_UP) {
		const enum disconnect_state state = disconnect_get_state(&c->machine);

		if (state == DISCONNECT_STATE_FINISH || state == DISCONNECT_STATE_ABORTING)
			adapter->ops->conn_abort(c->native);
	}
	adapter_unlock(adapter);
	if (c != NULL)
		connector_work(c);
}

/* The connection is not over: end it within the call if this thread cannot wait. */
static bool end_here(struct qp_call *call)
{
	struct ndx_loop *loop = call->qp->object.adapter->loop;

	if (base_loop_may_wait(loop))
		return false;
	ndxp_loop_call(loop, abort_again, call);
	return wait_over(call->qp);
}

static void qp_get(struct ndx_spi_qp *qp)
{
	adapter_lock(qp->object.adapter);
	qp->object.refs++;
	adapter_unlock(qp->object.adapter);
}

static void qp_put(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	struct ndx_cq *receive_cq = qp->attr.receive_cq;
	struct ndx_cq *initiator_cq = qp->attr.initiator_cq;
	struct ndx_srq *srq = qp->attr.srq;
	struct ndx_qp_ops *whole = qp->whole;
	bool last;

	adapter_lock(adapter);
	last = --qp->object.refs == 0;
	adapter_unlock(adapter);
	if (!last)
		return;
	adapter_remove_object(adapter, &qp->object, CORE_QP);
	adapter->ops->qp_destroy(qp);
	free(whole);
	cq_put(spi_cq(receive_cq));
	cq_put(spi_cq(initiator_cq));
	if (srq != NULL)
		srq_put(spi_srq(srq));
	adapter_put(adapter, true);
}

bool qp_flush(struct ndx_spi_qp *qp)
{
	struct qp_call call = {.qp = qp};
	bool over;

	/* A callback that runs at the end of the connection may close the queue pair. */
	qp_get(qp);
	ndxp_loop_call(qp->object.adapter->loop, flush_on_loop, &call);
	over = wait_over(qp) || end_here(&call);
	qp_put(qp);
	return over;
}

/* First half of close: begin to end the connection. */
static void begin_close(void *arg)
{
	struct qp_call *call = arg;
	struct ndx_connector *c;

	adapter_lock(call->qp->object.adapter);
	c = call->qp->connector;
	if (c != NULL)
		conn_hurry(c);
	if (c != NULL && c->phase == CONN_UP)
		conn_step(c, DISCONNECT_EV_RELEASE);
	else if (c != NULL)
		leave_attempt(c);
	adapter_unlock(call->qp->object.adapter);
	if (c != NULL)
		connector_work(c);
}

/* Whether the own requests have ended, or the connection is aborted already. */
static bool is_drained(const struct ndx_connector *c)
{
	return c == NULL || c->phase != CONN_UP || disconnect_is_drained(&c->machine);
}

static void wait_drained(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	uint64_t deadline = ndxp_deadline(CORE_PROVIDER_PATIENCE_MS);

	adapter_lock(adapter);
	while (!is_drained(qp->connector)) {
		/* In a callback, the control thread cannot drive the drain: stop waiting; the end
		 * is abortive. */
		if (!base_loop_may_wait(adapter->loop) || !adapter_wait(adapter, deadline))
			break;
	}
	adapter_unlock(adapter);
}

/* Messages may be in flight for receives that are about to be cancelled; a stack that cannot refuse
 * a message would then have to break the connection. The peer's goodbye proves that none is in
 * flight, and usually the goodbye arrives at once. */
static void wait_goodbye(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	uint64_t deadline;
	uint32_t ms;

	adapter_lock(adapter);
	ms = qp->connector == NULL ? 0 : qp->connector->attr.drain_timeout_ms;
	deadline = ndxp_deadline(ms < GOODBYE_PATIENCE_MS ? ms : GOODBYE_PATIENCE_MS);
	while (qp->connector != NULL && qp->connector->phase == CONN_UP &&
	       !conn_is_over(qp->connector)) {
		if (!base_loop_may_wait(adapter->loop) || !adapter_wait(adapter, deadline))
			break;
	}
	adapter_unlock(adapter);
}

/* The provider does not let go of the queue pair: the connection ends abortively, unless the peer's
 * goodbye is among the reports that the provider has made by now. */
static void abort_unless_over(struct ndx_connector *c)
{
	struct ndx_adapter *adapter = c->adapter;

	connector_work(c);
	adapter_lock(adapter);
	if (!conn_is_over(c))
		conn_step(c, DISCONNECT_EV_FLUSH);
	adapter_unlock(adapter);
}

/* Second half of close: a goodbye that is still in progress continues without the queue pair. */
static void end_close(void *arg)
{
	struct qp_call *call = arg;
	struct ndx_spi_qp *qp = call->qp;
	struct ndx_adapter *adapter = qp->object.adapter;
	enum ndx_status st = NDX_E_DEVICE_BUSY;
	struct ndx_connector *c;
	bool up;

	adapter_lock(adapter);
	c = qp->connector;
	call->again = false;
	up = c != NULL && !conn_is_over(c);
	if (up) {
		enum disconnect_state state = disconnect_get_state(&c->machine);
		bool waits = state == DISCONNECT_STATE_WAIT || state == DISCONNECT_STATE_WAIT_A ||
		             state == DISCONNECT_STATE_WAIT_P;

		if (waits)
			st = adapter->ops->conn_detach(c->native);
		call->again = st == NDX_PENDING && call->can_wait;
		if (st == NDX_OK)
			conn_release_qp(c);
	}
	adapter_unlock(adapter);
	if (up && st != NDX_OK && !call->again)
		abort_unless_over(c);
	if (c != NULL)
		connector_work(c);
}

/* Ask a provider that needs the queue pair for longer a last time, then take the queue pair away:
 * the connection ends abortively. */
static void detach(struct qp_call *call)
{
	struct ndx_adapter *adapter = call->qp->object.adapter;
	const uint64_t deadline = ndxp_deadline(DETACH_MS);

	call->can_wait = base_loop_may_wait(adapter->loop);
	ndxp_loop_call(adapter->loop, end_close, call);
	while (call->again) {
		adapter_lock(adapter);
		(void)adapter_wait(adapter, ndxp_deadline(DETACH_STEP_MS));
		adapter_unlock(adapter);
		call->can_wait = ndxp_now_ns() < deadline;
		ndxp_loop_call(adapter->loop, end_close, call);
	}
}

static void detach_on_loop(void *arg)
{
	struct qp_call *call = arg;

	adapter_lock(call->qp->object.adapter);
	if (call->qp->connector != NULL)
		conn_release_qp(call->qp->connector);
	adapter_unlock(call->qp->object.adapter);
}

void qp_close(struct ndx_spi_qp *qp)
{
	struct qp_call call = {.qp = qp};
	struct ndx_loop *loop = qp->object.adapter->loop;
	bool over;

	ndxp_loop_call(loop, begin_close, &call);
	wait_drained(qp);
	wait_goodbye(qp);
	detach(&call);
	over = wait_over(qp) || end_here(&call);
	if (!over) {
		const bool waited = base_loop_may_wait(loop);

		/* A leak is better than freeing memory to which a device may still write. */
		log_error(0,
		          "ndx_qp_close: the device did not let go of qp#%u in %u ms%s; it is "
		          "leaked: disconnect before you close",
		          qp->object.id, waited ? CORE_PROVIDER_PATIENCE_MS : 0,
		          waited ? "" : ", a callback does not wait");
		return;
	}
	ndxp_loop_call(loop, detach_on_loop, &call);
	qp_put(qp);
}
