/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: creation, flush, close. Posting goes straight to the provider. */
#include <ndx/qp.h>

#include <string.h>

#include "base_linux.h"
#include "base_log.h"
#include "core.h"

/* Programs written for ND post two SGEs on a queue pair of one: granting more is allowed. */
#define LEAST_SGE 2u
/* The longest that close waits for the peer's goodbye, when its own work has ended. */
#define GOODBYE_PATIENCE_MS 100u
/* The longest that close leaves the queue pair to a provider that still needs it. */
#define DETACH_MS 2000u
#define DETACH_STEP_MS 10u
#define RNR_TIMER_MAX 31u

void ndx_qp_attr_init(struct ndx_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->receive_depth = 64;
	attr->initiator_depth = 64;
	attr->max_receive_sge = 1;
	attr->max_initiator_sge = 1;
	attr->no_receive_timeout_ms = 4000;
	attr->rnr_timer = NDX_RNR_TIMER_DEFAULT;
}

static enum ndx_status out_of_range(const char *what, uint32_t value, uint32_t least, uint32_t most)
{
	return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_create: %s %u is not in %u..%u", what,
	            value, least, most);
}

static enum ndx_status check_limits(const struct ndx_adapter_info *info,
                                    const struct ndx_qp_attr *attr)
{
	if (attr->initiator_depth == 0 || attr->initiator_depth > info->max_initiator_queue_depth)
		return out_of_range("initiator_depth", attr->initiator_depth, 1,
		                    info->max_initiator_queue_depth);
	if (attr->srq == NULL &&
	    (attr->receive_depth == 0 || attr->receive_depth > info->max_receive_queue_depth))
		return out_of_range("receive_depth", attr->receive_depth, 1,
		                    info->max_receive_queue_depth);
	if (attr->max_initiator_sge > info->max_initiator_sge)
		return out_of_range("max_initiator_sge", attr->max_initiator_sge, 0,
		                    info->max_initiator_sge);
	if (attr->max_receive_sge > info->max_receive_sge)
		return out_of_range("max_receive_sge", attr->max_receive_sge, 0,
		                    info->max_receive_sge);
	if (attr->inline_size > info->max_inline_data_size)
		return out_of_range("inline_size", attr->inline_size, 0,
		                    info->max_inline_data_size);
	if (attr->no_receive_timeout_ms == 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: no_receive_timeout_ms is 0; use NDX_INFINITE for no "
		            "limit");
	return NDX_OK;
}

static enum ndx_status check_rnr_timer(const struct ndx_adapter_info *info,
                                       const struct ndx_qp_attr *attr)
{
	if (attr->rnr_timer == NDX_RNR_TIMER_DEFAULT)
		return NDX_OK;
	if (attr->rnr_timer > RNR_TIMER_MAX)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: rnr_timer %u is neither a code in 0..%u nor "
		            "NDX_RNR_TIMER_DEFAULT",
		            attr->rnr_timer, RNR_TIMER_MAX);
	if (!(info->capabilities & NDX_CAP_RNR_TIMER))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_qp_create: rnr_timer %u: %s has no such timer; leave it "
		            "NDX_RNR_TIMER_DEFAULT",
		            attr->rnr_timer, info->uri);
	return NDX_OK;
}

static enum ndx_status check_attr(const struct ndx_adapter *adapter, const struct ndx_qp_attr *attr)
{
	enum ndx_status st;

	if (attr->size < sizeof(*attr))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: attr->size is %zu, must be at least %zu; call "
		            "ndx_qp_attr_init() first",
		            attr->size, sizeof(*attr));
	if (attr->receive_cq == NULL || attr->initiator_cq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_create: attr->%s is NULL",
		            attr->receive_cq == NULL ? "receive_cq" : "initiator_cq");
	if (spi_cq(attr->receive_cq)->object.adapter != adapter ||
	    spi_cq(attr->initiator_cq)->object.adapter != adapter ||
	    (attr->srq != NULL && spi_srq(attr->srq)->object.adapter != adapter))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_qp_create: a queue belongs to another adapter than %s",
		            adapter->info.uri);
	if (attr->srq != NULL && !(adapter->info.capabilities & NDX_CAP_SRQ))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_qp_create: %s has no shared receive queues", adapter->info.uri);
	st = check_rnr_timer(&adapter->info, attr);
	return st != NDX_OK ? st : check_limits(&adapter->info, attr);
}

static uint32_t grant_sge(uint32_t asked, uint32_t most)
{
	uint32_t least = LEAST_SGE < most ? LEAST_SGE : most;

	return asked > least ? asked : least;
}

enum ndx_status ndx_qp_create(struct ndx_adapter *adapter, const struct ndx_qp_attr *attr,
                              struct ndx_qp **out)
{
	struct ndx_qp_attr grant;
	struct ndx_spi_qp *qp = NULL;
	enum ndx_status st;

	if (adapter == NULL || attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_create: NULL argument");
	st = check_attr(adapter, attr);
	if (st != NDX_OK)
		return st;
	grant = *attr;
	grant.size = sizeof(grant);
	grant.max_initiator_sge =
		grant_sge(attr->max_initiator_sge, adapter->info.max_initiator_sge);
	grant.max_receive_sge = grant_sge(attr->max_receive_sge, adapter->info.max_receive_sge);
	st = adapter->ops->qp_create(adapter->native, &grant, &qp);
	if (st != NDX_OK)
		return st;
	qp->connector = NULL;
	qp->spent = false;
	qp->connector_id = 0;
	adapter_lock(adapter);
	spi_cq(attr->receive_cq)->object.refs++;
	spi_cq(attr->initiator_cq)->object.refs++;
	if (attr->srq != NULL)
		spi_srq(attr->srq)->object.refs++;
	adapter_unlock(adapter);
	adapter_adopt(adapter, &qp->object, CORE_QP);
	*out = &qp->pub;
	return NDX_OK;
}

/* What flush and close ask the control thread for. */
struct qp_call {
	struct ndx_spi_qp *qp;
	bool can_wait;
	bool again; /* the provider is not ready for that yet */
};

/* Lock held: the queue pair leaves an attempt to connect. What has not been answered yet may be
 * tried again, as after a cancel. */
static void leave_attempt(struct ndx_connector *c)
{
	if (c->phase == CONN_DESCRIBED || c->phase == CONN_WANTED)
		conn_meeting_cancel(c, "RELEASE", NDX_E_CANCELED);
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
	/* What the provider has reported already need not wait for the next round. */
	if (c != NULL)
		connector_work(c);
}

/* Until the queue pair's connection is over; false if the provider does not get there. */
static bool wait_over(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	uint64_t deadline = base_deadline(CORE_PROVIDER_PATIENCE_MS);
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

static void qp_get(struct ndx_spi_qp *qp)
{
	adapter_lock(qp->object.adapter);
	qp->object.refs++;
	adapter_unlock(qp->object.adapter);
}

static void qp_put(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	struct ndx_qp_attr attr = qp->attr;
	bool last;

	adapter_lock(adapter);
	last = --qp->object.refs == 0;
	adapter_unlock(adapter);
	if (!last)
		return;
	adapter_disown(adapter, &qp->object, CORE_QP);
	adapter->ops->qp_destroy(qp);
	cq_put(spi_cq(attr.receive_cq));
	cq_put(spi_cq(attr.initiator_cq));
	if (attr.srq != NULL)
		srq_put(spi_srq(attr.srq));
	adapter_put(adapter, true);
}

enum ndx_status ndx_qp_flush(struct ndx_qp *qp)
{
	struct qp_call call = {.qp = spi_qp(qp)};
	bool over;

	if (qp == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_qp_flush: qp is NULL");
	/* A callback that the end of the connection causes may close the queue pair. */
	qp_get(call.qp);
	base_loop_call(call.qp->object.adapter->loop, flush_on_loop, &call);
	over = wait_over(call.qp);
	qp_put(call.qp);
	if (!over)
		return fail(NDX_E_INTERNAL_ERROR, 0,
		            "ndx_qp_flush: the device did not hand the requests back in %u ms",
		            CORE_PROVIDER_PATIENCE_MS);
	return NDX_OK;
}

/* First half of close: the connection begins to end. */
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

/* Own requests have ended, or the connection is ending anyway. */
static bool is_drained(const struct ndx_connector *c)
{
	return c == NULL || c->phase != CONN_UP || disconnect_is_drained(&c->machine);
}

static void wait_drained(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	uint64_t deadline = base_deadline(CORE_PROVIDER_PATIENCE_MS);

	adapter_lock(adapter);
	while (!is_drained(qp->connector)) {
		/* In a callback nobody else can drive the drain: it ends here, abortively. */
		if (!base_loop_may_wait(adapter->loop) || !adapter_wait(adapter, deadline))
			break;
	}
	adapter_unlock(adapter);
}

/*
 * Messages may be under way for receives that are about to be cancelled; a stack that cannot refuse
 * one has to break the connection then. The peer's goodbye says that there are none, and mostly it
 * comes at once.
 */
static void wait_goodbye(struct ndx_spi_qp *qp)
{
	struct ndx_adapter *adapter = qp->object.adapter;
	uint64_t deadline;
	uint32_t ms;

	adapter_lock(adapter);
	ms = qp->connector == NULL ? 0 : qp->connector->attr.drain_timeout_ms;
	deadline = base_deadline(ms < GOODBYE_PATIENCE_MS ? ms : GOODBYE_PATIENCE_MS);
	while (qp->connector != NULL && qp->connector->phase == CONN_UP &&
	       !conn_is_over(qp->connector)) {
		if (!base_loop_may_wait(adapter->loop) || !adapter_wait(adapter, deadline))
			break;
	}
	adapter_unlock(adapter);
}

/* Second half: take the queue pair out of a goodbye that goes on without it. */
static void end_close(void *arg)
{
	struct qp_call *call = arg;
	struct ndx_spi_qp *qp = call->qp;
	struct ndx_adapter *adapter = qp->object.adapter;
	enum ndx_status st = NDX_E_DEVICE_BUSY;
	struct ndx_connector *c;

	adapter_lock(adapter);
	c = qp->connector;
	call->again = false;
	if (c != NULL && !conn_is_over(c)) {
		enum disconnect_state state = disconnect_get_state(&c->machine);
		bool waits = state == DISCONNECT_STATE_WAIT || state == DISCONNECT_STATE_WAIT_A ||
		             state == DISCONNECT_STATE_WAIT_P;

		if (waits)
			st = adapter->ops->conn_detach(c->native);
		call->again = st == NDX_PENDING && call->can_wait;
		if (st == NDX_OK)
			conn_release_qp(c);
		else if (!call->again)
			conn_step(c, DISCONNECT_EV_FLUSH);
	}
	adapter_unlock(adapter);
	if (c != NULL)
		connector_work(c);
}

/* A provider that needs the queue pair for longer is asked a last time, and then it is taken away:
 * the connection ends abortively. */
static void detach(struct qp_call *call)
{
	struct ndx_adapter *adapter = call->qp->object.adapter;
	const uint64_t deadline = base_deadline(DETACH_MS);

	call->can_wait = base_loop_may_wait(adapter->loop);
	base_loop_call(adapter->loop, end_close, call);
	while (call->again) {
		adapter_lock(adapter);
		(void)adapter_wait(adapter, base_deadline(DETACH_STEP_MS));
		adapter_unlock(adapter);
		call->can_wait = base_now_ns() < deadline;
		base_loop_call(adapter->loop, end_close, call);
	}
}

static void part(void *arg)
{
	struct qp_call *call = arg;

	adapter_lock(call->qp->object.adapter);
	if (call->qp->connector != NULL)
		conn_release_qp(call->qp->connector);
	adapter_unlock(call->qp->object.adapter);
}

void ndx_qp_close(struct ndx_qp *qp)
{
	struct qp_call call = {.qp = spi_qp(qp)};
	struct ndx_loop *loop;

	if (qp == NULL)
		return;
	loop = call.qp->object.adapter->loop;
	base_loop_call(loop, begin_close, &call);
	wait_drained(call.qp);
	wait_goodbye(call.qp);
	detach(&call);
	if (!wait_over(call.qp)) {
		/* Freeing memory that a device may still write to is worse than losing it. */
		log_error(0,
		          "ndx_qp_close: the device did not let go of qp#%u in %u ms; it is leaked",
		          call.qp->object.id, CORE_PROVIDER_PATIENCE_MS);
		return;
	}
	base_loop_call(loop, part, &call);
	qp_put(call.qp);
}
