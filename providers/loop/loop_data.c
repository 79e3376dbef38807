/* SPDX-License-Identifier: BSD-2-Clause */
/* Moving data: requests run in posting order, one at a time, with the switch's lock held. */
#include <stdio.h>

#include <ndx/spi/system.h>
#include "loop.h"

enum outcome {
	DONE,  /* go on with the next request */
	WAITS, /* loop_conn.wait has the reason */
	BROKE, /* the connection has ended */
};

/* ---- waiting ---- */

/* How much longer a send may wait; NDX_INFINITE: without limit. */
static uint32_t rnr_left_ms(const struct loop_conn *conn)
{
	return conn->wait == LOOP_WAIT_RECEIVE
	               ? ndxp_qp_rnr_left_ms(&conn->qp->base, conn->wait_since_ns)
	               : NDX_INFINITE;
}

static void set_rnr_timer(struct loop_conn *conn, uint32_t ms)
{
	conn->timer_set = true;
	ndxp_timer_set(conn->adapter->spi.loop, &conn->timer, ms);
}

static enum outcome wait_for(struct loop_conn *conn, enum loop_wait what, struct ndxp_list *queue)
{
	const uint32_t limit = conn->qp->base.spi.attr.no_receive_timeout_ms;

	conn->wait = what;
	if (what != LOOP_WAIT_END)
		ndxp_qp_rnr_begin(&conn->qp->base);
	if (queue != NULL)
		ndxp_list_add(queue, &conn->wait_node);
	if (what != LOOP_WAIT_RECEIVE || limit == NDX_INFINITE)
		return WAITS;
	conn->wait_since_ns = ndxp_now_ns();
	if (!conn->timer_set)
		set_rnr_timer(conn, limit);
	return WAITS;
}

/* All slots for results are in use: wait until the peer's consumer has polled. */
static enum outcome wait_for_cq(struct loop_conn *conn, struct loop_cq *cq)
{
	enum outcome outcome = wait_for(conn, LOOP_WAIT_CQ, &cq->slot_waiters);

	(void)__atomic_exchange_n(&cq->has_slot_waiters, 1, __ATOMIC_ACQ_REL);
	return outcome;
}

/* ---- failures ---- */

static enum outcome fail_req(struct loop_conn *conn, struct loop_req *req, enum ndx_status status,
                             const char *own_cause, const char *peers_cause)
{
	ndxp_req_done(&conn->qp->base.initiator, &req->base, status, 0);
	loop_end_break(conn, own_cause, peers_cause);
	return BROKE;
}

/* The same for causes with a reason. The core reads the texts until the ends are destroyed. */
static enum outcome fail_req_why(struct loop_conn *conn, struct loop_req *req,
                                 enum ndx_status status, const char *own_cause,
                                 const char *peers_cause, const char *why)
{
	struct loop_conn *peer = conn->peer;

	(void)snprintf(conn->cause, sizeof(conn->cause), "%s: %s", own_cause, why);
	if (peer != NULL)
		(void)snprintf(peer->cause, sizeof(peer->cause), "%s: %s", peers_cause, why);
	return fail_req(conn, req, status, conn->cause, peer != NULL ? peer->cause : NULL);
}

static enum outcome complete_req(struct loop_conn *conn, struct loop_req *req)
{
	ndxp_req_done(&conn->qp->base.initiator, &req->base, NDX_OK, 0);
	return DONE;
}

static bool is_inline(const struct loop_req *req)
{
	return (req->base.op_flags & NDX_OP_INLINE) != 0;
}

/* Does the request's own list have `right`? Inline bytes are in the request, not in a region. */
static bool own_list_is_good(const struct loop_conn *conn, const struct loop_req *req,
                             enum loop_right right)
{
	return is_inline(req) || loop_key_admits_list(conn->adapter, req->sge, req->length, right);
}

static enum outcome fail_own_list(struct loop_conn *conn, struct loop_req *req,
                                  enum loop_right right)
{
	return fail_req_why(conn, req, NDX_E_ACCESS_VIOLATION,
	                    "a request named memory that it may not use",
	                    "the peer's request named memory of its own that it may not use",
	                    loop_key_why_list(conn->adapter, req->sge, req->length, right));
}

/* ---- receives ---- */

/* The peer's next receive; NULL: loop_conn.wait has the reason. */
static struct loop_receive *next_receive(struct loop_conn *conn, struct loop_qp *target)
{
	const struct ndxp_queue *q = &target->base.receive;
	const struct ndxp_queue *results = &target->from_srq;

	if (target->srq == NULL) {
		if (ndxp_queue_outstanding(q) == 0) {
			(void)wait_for(conn, LOOP_WAIT_RECEIVE, NULL);
			return NULL;
		}
		return (struct loop_receive *)(void *)ndxp_queue_at(q, q->head);
	}
	if (loop_srq_first(target->srq) == NULL) {
		(void)wait_for(conn, LOOP_WAIT_SRQ, &target->srq->waiters);
		return NULL;
	}
	if (results->tail - __atomic_load_n(&results->freed, __ATOMIC_ACQUIRE) >= results->depth) {
		(void)wait_for_cq(conn, target->receive_cq);
		/* a consumer that polled in between has not seen the flag: look again */
		if (results->tail - __atomic_load_n(&results->freed, __ATOMIC_ACQUIRE) >=
		    results->depth)
			return NULL;
		loop_data_stop_waiting(conn);
	}
	return loop_srq_first(target->srq);
}

/* A receive of the shared queue becomes a result of the queue pair that uses it. */
static void end_shared_receive(struct loop_qp *target, const struct loop_receive *receive,
                               enum ndx_status status)
{
	struct ndx_result result = {
		.status = status,
		.bytes_transferred = receive->base.bytes,
		.queue_pair_context = target->base.spi.attr.context,
		.request_context = receive->base.context,
		.request_type = NDX_REQUEST_RECEIVE,
		.flags = receive->base.result_flags,
		.immediate = receive->base.immediate,
	};

	target->from_srq.tail++;
	target->from_srq.head++;
	if (status != NDX_OK)
		target->from_srq.failed[ndxp_status_index(status)]++;
	ndxp_cq_push(&target->receive_cq->base, &target->from_srq, &result);
	loop_srq_drop_first(target->srq);
}

static void end_receive(struct loop_qp *target, struct loop_receive *receive,
                        const struct loop_req *req, enum ndx_status status)
{
	receive->base.bytes = req->length;
	receive->base.immediate = req->with_immediate ? req->immediate : 0;
	receive->base.result_flags = req->with_immediate ? NDX_RESULT_IMMEDIATE : 0;
	if ((req->base.op_flags & NDX_OP_SOLICIT_EVENT) != 0)
		receive->base.result_flags |= NDX_RESULT_SOLICITED;
	if (req->base.type == NDX_REQUEST_WRITE)
		receive->base.result_flags |= NDX_RESULT_WRITTEN;
	if (target->srq != NULL)
		end_shared_receive(target, receive, status);
	else
		ndxp_req_done(&target->base.receive, &receive->base, status, 0);
}

/* ---- the requests ---- */

static enum outcome fail_overrun(struct loop_conn *conn, struct loop_req *req, uint32_t room)
{
	char lengths[48];

	(void)snprintf(lengths, sizeof(lengths), "%u bytes, for %u", req->length, room);
	return fail_req_why(conn, req, NDX_E_DATA_OVERRUN,
	                    "a message was longer than the peer's receive",
	                    "a message was longer than its receive", lengths);
}

static enum outcome run_send(struct loop_conn *conn, struct loop_req *req, struct loop_qp *target)
{
	struct loop_receive *receive;

	if (!own_list_is_good(conn, req, LOOP_LOCAL_READ))
		return fail_own_list(conn, req, LOOP_LOCAL_READ);
	receive = next_receive(conn, target);
	if (receive == NULL)
		return WAITS;
	if (req->length > receive->length) {
		const uint32_t room = receive->length; /* the receive ends here */

		end_receive(target, receive, req, NDX_E_BUFFER_OVERFLOW);
		return fail_overrun(conn, req, room);
	}
	if (!loop_key_admits_list(target->adapter, receive->sge, req->length, LOOP_LOCAL_WRITE)) {
		const char *why = loop_key_why_list(target->adapter, receive->sge, req->length,
		                                    LOOP_LOCAL_WRITE);

		end_receive(target, receive, req, NDX_E_ACCESS_VIOLATION);
		return fail_req_why(conn, req, NDX_E_REMOTE_ERROR,
		                    "the peer's receive named memory that it may not write",
		                    "a receive named memory that it may not write", why);
	}
	loop_memory_move(receive->sge, req->sge, req->length);
	end_receive(target, receive, req, NDX_OK);
	return complete_req(conn, req);
}

static enum outcome fail_remote(struct loop_conn *conn, struct loop_req *req,
                                const struct loop_qp *target, enum loop_right right)
{
	return fail_req_why(conn, req, NDX_E_ACCESS_VIOLATION,
	                    "a request named memory of the peer that it may not access",
	                    "the peer named memory that it may not access",
	                    loop_key_why(target->adapter, req->remote_token, right, target));
}

/* A request without bytes needs no key. */
static bool remote_is_good(const struct loop_req *req, const struct loop_qp *target,
                           enum loop_right right)
{
	return req->length == 0 || loop_key_admits(target->adapter, req->remote_token,
	                                           req->remote_address, req->length, right, target);
}

static struct ndx_sge remote_list(const struct loop_req *req)
{
	return (struct ndx_sge){
		.buffer = (void *)(uintptr_t)req->remote_address,
		.length = req->length,
	};
}

static enum outcome run_write(struct loop_conn *conn, struct loop_req *req, struct loop_qp *target)
{
	const struct ndx_sge remote = remote_list(req);
	struct loop_receive *receive = NULL;

	if (!own_list_is_good(conn, req, LOOP_LOCAL_READ))
		return fail_own_list(conn, req, LOOP_LOCAL_READ);
	if (!remote_is_good(req, target, LOOP_REMOTE_WRITE))
		return fail_remote(conn, req, target, LOOP_REMOTE_WRITE);
	if (req->with_immediate) {
		receive = next_receive(conn, target);
		if (receive == NULL)
			return WAITS;
	}
	loop_memory_move(&remote, req->sge, req->length);
	if (receive != NULL)
		end_receive(target, receive, req, NDX_OK);
	return complete_req(conn, req);
}

static enum outcome run_read(struct loop_conn *conn, struct loop_req *req, struct loop_qp *target)
{
	const struct ndx_sge remote = remote_list(req);

	if (!own_list_is_good(conn, req, LOOP_READ_SINK))
		return fail_own_list(conn, req, LOOP_READ_SINK);
	if (!remote_is_good(req, target, LOOP_REMOTE_READ))
		return fail_remote(conn, req, target, LOOP_REMOTE_READ);
	loop_memory_move(req->sge, &remote, req->length);
	return complete_req(conn, req);
}

static enum outcome run_window(struct loop_conn *conn, struct loop_req *req)
{
	enum ndx_status st = loop_mw_run(conn->qp, req);

	if (st == NDX_OK)
		return complete_req(conn, req);
	if (st != NDX_E_CANCELED)
		return fail_req(conn, req, st, "a bind or invalidate failed",
		                "the peer's bind or invalidate failed");
	ndxp_req_done(&conn->qp->base.initiator, &req->base, st, 0);
	return DONE;
}

/* A read fence needs no code: an earlier read has ended before a later request begins. */
static enum outcome run_req(struct loop_conn *conn, struct loop_req *req)
{
	struct loop_qp *target = conn->peer != NULL ? conn->peer->qp : NULL;

	if (req->base.type == NDX_REQUEST_BIND || req->base.type == NDX_REQUEST_INVALIDATE)
		return run_window(conn, req);
	if (target == NULL)
		return wait_for(conn, LOOP_WAIT_END, NULL);
	if (req->base.type == NDX_REQUEST_SEND)
		return run_send(conn, req, target);
	if (req->base.type == NDX_REQUEST_WRITE)
		return run_write(conn, req, target);
	return run_read(conn, req, target);
}

void loop_data_pump(struct loop_conn *conn)
{
	struct ndxp_queue *q;
	enum outcome outcome = DONE;

	if (conn == NULL || conn->state != LOOP_CONN_UP || conn->qp == NULL)
		return;
	q = &conn->qp->base.initiator;
	while (outcome == DONE && ndxp_queue_outstanding(q) > 0) {
		loop_data_stop_waiting(conn);
		outcome = run_req(conn, (struct loop_req *)(void *)ndxp_queue_at(q, q->head));
		if (outcome == DONE)
			ndxp_qp_rnr_end(&conn->qp->base);
	}
	loop_end_check_drained(conn);
}

void loop_data_posted(struct loop_conn *conn)
{
	/* a request behind one that waits does not end that wait */
	if (conn != NULL && conn->wait == LOOP_WAIT_NONE)
		loop_data_pump(conn);
}

/* ---- waiting senders ---- */

static void no_receive(struct loop_conn *conn)
{
	const struct ndxp_queue *q = &conn->qp->base.initiator;

	(void)fail_req(conn, (struct loop_req *)(void *)ndxp_queue_at(q, q->head), NDX_E_IO_TIMEOUT,
	               "the peer posted no receive in no_receive_timeout_ms",
	               "no receive was posted in the no_receive_timeout_ms of the peer's send");
}

/* The timer is set for the first send that waits. When the timer fires, a later send may be
 * waiting: set the timer for the rest of its time. */
void loop_data_timeout(void *arg)
{
	struct loop_conn *conn = arg;
	uint32_t left;

	loop_switch_lock(conn->adapter->sw);
	conn->timer_set = false;
	left = conn->state == LOOP_CONN_UP ? rnr_left_ms(conn) : NDX_INFINITE;
	if (left == 0)
		no_receive(conn);
	else if (left != NDX_INFINITE)
		set_rnr_timer(conn, left);
	loop_switch_unlock(conn->adapter->sw);
}

/* Run the senders that wait for slots; those that find none are put on the list again. */
static void run_slot_waiters(struct loop_cq *cq)
{
	struct ndxp_list waiting;
	struct ndxp_list *node;

	ndxp_list_init(&waiting);
	loop_switch_lock(cq->sw);
	(void)__atomic_exchange_n(&cq->has_slot_waiters, 0, __ATOMIC_ACQ_REL);
	while ((node = ndxp_list_take(&cq->slot_waiters)) != NULL)
		ndxp_list_add(&waiting, node);
	while ((node = ndxp_list_take(&waiting)) != NULL)
		loop_data_pump(container_of(node, struct loop_conn, wait_node));
	loop_switch_unlock(cq->sw);
}

size_t loop_data_get_results(struct ndx_cq *pub, struct ndx_result *results, size_t count)
{
	struct loop_cq *cq = container_of(ndxp_cq_of(pub), struct loop_cq, base);
	size_t taken = ndxp_cq_take(&cq->base, results, count);

	/* The slots are free already. A sender raises the flag, then looks at the slots once more;
	 * both sides use an atomic exchange, so at least one of them sees the other. */
	if (taken > 0 && __atomic_fetch_or(&cq->has_slot_waiters, 0, __ATOMIC_ACQ_REL) != 0)
		run_slot_waiters(cq);
	return taken;
}
