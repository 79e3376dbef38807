/* SPDX-License-Identifier: BSD-2-Clause */
#include "end.h"

#include "ledger.h"
#include "model.h"
#include "post.h"
#include "stage.h"

enum { PAUSE = 20 };

bool end_is_over(const struct end *e)
{
	return __atomic_load_n(&e->over, __ATOMIC_ACQUIRE) != 0;
}

static void set_over(struct end *e)
{
	__atomic_store_n(&e->over, 1, __ATOMIC_RELEASE);
}

static void retire(struct end *e, bool shared_too)
{
	memory_retire(e, AREA_LOCAL);
	memory_retire(e, AREA_RECEIVE);
	if (shared_too) {
		memory_retire(e, AREA_READ);
		memory_retire(e, AREA_WRITE);
	}
	memory_watch(e);
}

/* No thread posts to it any more but for a trial. */
static void hush(struct end *e)
{
	(void)pthread_mutex_lock(&e->initiator.lock);
	(void)pthread_mutex_lock(&e->receive.lock);
	e->quiet = true;
	(void)pthread_mutex_unlock(&e->receive.lock);
	(void)pthread_mutex_unlock(&e->initiator.lock);
}

/* ---- what has completed ---- */

static void on_notified(struct end *e)
{
	note(e->round, e, "notify_disconnect: %s, %s", ndx_status_name(e->notify.status),
	     ndx_disconnect_reason_name((enum ndx_disconnect_reason)e->notify.information));
	if (e->notify.status == NDX_OK)
		model_notified(e, e->notify.information);
	else if (e->notify.status != NDX_E_CANCELED || !e->cancelled)
		fail(e->round, e, "notify_disconnect completed %s",
		     ndx_status_name(e->notify.status));
	else
		e->asked = false; /* and may ask again */
}

/*
 * "When it has completed, it is over: everything you posted has its result, everything that was
 * reported as done has arrived at the peer, and your memory is not accessed any more."
 */
static void on_parted(struct end *e)
{
	if (e->connector == NULL) { /* it was closed in a callback, and this one followed */
		note(e->round, e, "disconnect: %s", ndx_status_name(e->part.status));
		if (e->part.status != NDX_E_CANCELED)
			model_disconnected(e, e->part.status);
		return;
	}
	note(e->round, e, "disconnect: %s", ndx_status_name(e->part.status));
	if (e->part.status == NDX_E_CANCELED) {
		if (!e->cancelled)
			fail(e->round, e, "disconnect was cancelled, and nobody did that");
		return;
	}
	e->parted_at = now_ns();
	/* "A pending notify_disconnect always completes before the disconnect of the same side." */
	if (e->told_first && op_flying(&e->notify) &&
	    op_must_have_ended(&e->notify, "the disconnect of its side has completed"))
		on_notified(e);
	model_disconnected(e, e->part.status);
	model_ended(e);
	hush(e);
	if (!e->initiator.shut)
		ledger_close(e, "its disconnect has completed");
	if (e->part.status == NDX_OK)
		ledger_peer_has_ended(e->peer, e->parted_at);
	retire(e, true);
	model_reason(e, ndx_connector_get_disconnect_reason(e->connector));
	set_over(e);
}

void end_look(struct end *e)
{
	/* in this order: a disconnect that completes now has to be behind the indication */
	bool parted = op_ended(&e->part);

	if (op_ended(&e->notify))
		on_notified(e);
	if (parted)
		on_parted(e);
	if (e->owed && !op_flying(&e->notify) && !op_flying(&e->part)) {
		e->owed = false;
		e->cancelled = e->connector == NULL;
	}
}

/* ---- calls ---- */

void end_ask(struct end *e)
{
	enum ndx_status st;

	if (e->connector == NULL || op_flying(&e->notify) || end_phase(e) != PHASE_UP)
		return;
	e->asked = true;
	/* the one that a disconnect found pending was told, and this one was called after it */
	e->told_first = false;
	(void)op_begin(&e->notify, e->round, side_of(e)->mail, "notify_disconnect",
	               below(&e->random, 3));
	st = op_began(&e->notify, ndx_connector_notify_disconnect(e->connector, e->notify.ov));
	note(e->round, e, "ask for the end: %s", ndx_status_name(st));
	if (st != NDX_PENDING)
		fail(e->round, e, "notify_disconnect returned %s", ndx_status_name(st));
}

void end_disconnect(struct end *e)
{
	enum ndx_status st;

	if (e->connector == NULL || op_flying(&e->part))
		return;
	(void)op_begin(&e->part, e->round, side_of(e)->mail, "disconnect", below(&e->random, 3));
	e->told_first = op_flying(&e->notify);
	model_graceful_begins(e);
	st = op_began(&e->part, ndx_connector_disconnect(e->connector, e->part.ov));
	model_graceful_done(e);
	note(e->round, e, "disconnect: %s", ndx_status_name(st));
	if (st != NDX_PENDING)
		fail(e->round, e, "disconnect returned %s", ndx_status_name(st));
}

void end_cancel(struct end *e)
{
	enum ndx_status st;

	if (e->connector == NULL)
		return;
	e->cancelled = true;
	st = ndx_connector_cancel(e->connector);
	note(e->round, e, "cancel: %s", ndx_status_name(st));
	if (st != NDX_OK)
		fail(e->round, e, "ndx_connector_cancel returned %s", ndx_status_name(st));
	if (op_flying(&e->part))
		model_ended(e); /* "a cancelled disconnect goes on", and has begun by now */
	if (op_flying(&e->notify) && op_must_have_ended(&e->notify, "its connector was cancelled"))
		on_notified(e);
	if (op_flying(&e->part) && op_must_have_ended(&e->part, "its connector was cancelled"))
		on_parted(e);
	e->owed = op_flying(&e->notify) || op_flying(&e->part);
	e->cancelled = e->owed;
}

/* "All results can be taken when it returns", and it ends the connection abortively. */
void end_flush(struct end *e)
{
	enum ndx_status st;

	if (e->qp == NULL)
		return;
	model_abortive_begins(e, FINISH_FLUSH);
	note(e->round, e, "flush");
	st = ndx_qp_flush(e->qp);
	if (st != NDX_OK)
		fail(e->round, e, "ndx_qp_flush: %s", ndx_status_name(st));
	model_abortive_done(e);
	model_ended(e);
	note(e->round, e, "flushed");
	hush(e);
	ledger_close(e, "its queue pair was flushed");
	retire(e, false);
}

/*
 * "When it returns, the device does not touch the queue pair's memory any more; results that were
 * not taken can still be." What the peer reads and writes is served until it has said goodbye, too.
 */
void end_close_qp(struct end *e)
{
	struct ndx_qp *qp;

	(void)pthread_mutex_lock(&e->initiator.lock);
	(void)pthread_mutex_lock(&e->receive.lock);
	qp = e->qp;
	e->qp = NULL;
	(void)pthread_mutex_unlock(&e->receive.lock);
	(void)pthread_mutex_unlock(&e->initiator.lock);
	if (qp == NULL)
		return;
	note(e->round, e, "close qp");
	/* "In a callback it waits for nothing: ... the connection is aborted" */
	if (stage_inside())
		model_abortive_begins(e, FINISH_CLOSE_QP);
	model_graceful_begins(e);
	ndx_qp_close(qp);
	model_graceful_done(e);
	model_ended(e);
	note(e->round, e, "qp is closed");
	ledger_close(e, "its queue pair was closed");
	retire(e, false);
}

void end_close_connector(struct end *e)
{
	if (e->connector == NULL)
		return;
	e->cancelled = true;
	note(e->round, e, "close connector");
	model_graceful_begins(e);
	ndx_connector_close(e->connector);
	e->connector = NULL;
	model_graceful_done(e);
	model_ended(e);
	if (op_flying(&e->notify) && op_must_have_ended(&e->notify, "its connector was closed"))
		on_notified(e);
	if (op_flying(&e->part) && op_must_have_ended(&e->part, "its connector was closed")) {
		note(e->round, e, "disconnect: %s", ndx_status_name(e->part.status));
		if (e->part.status != NDX_E_CANCELED)
			model_disconnected(e, e->part.status);
	}
}

/*
 * "When it returns, no local or remote access to the memory goes on or can begin." Messages that
 * arrived before may still lie there unread, so only what the peer reads and writes is painted.
 */
void end_close_region(struct end *e, enum area area)
{
	struct ndx_mr *mr = e->mr[area];

	if (mr == NULL)
		return;
	model_abortive_begins(e, FINISH_CLOSE_MEMORY);
	note(e->round, e, "close region %d", (int)area);
	(void)pthread_mutex_lock(&e->initiator.lock);
	(void)pthread_mutex_lock(&e->window_lock);
	for (uint32_t i = 0; i < AREAS; i++) {
		if (e->mr[i] == mr)
			e->mr[i] = NULL;
	}
	(void)pthread_mutex_unlock(&e->window_lock);
	(void)pthread_mutex_unlock(&e->initiator.lock);
	ndx_mr_close(mr);
	note(e->round, e, "region %d is closed", (int)area);
	if (e->mr[AREA_READ] == NULL)
		memory_retire(e, AREA_READ);
	if (e->mr[AREA_WRITE] == NULL)
		memory_retire(e, AREA_WRITE);
	memory_watch(e);
}

void end_close_window(struct end *e)
{
	struct ndx_mw *mw = e->mw;

	if (mw == NULL)
		return;
	/* "A bound window is invalidated first": a peer that uses it still fails */
	if (e->window != WINDOW_FREE)
		model_abortive_begins(e, FINISH_CLOSE_MEMORY);
	note(e->round, e, "close window");
	(void)pthread_mutex_lock(&e->initiator.lock);
	e->mw = NULL;
	(void)pthread_mutex_unlock(&e->initiator.lock);
	ndx_mw_close(mw);
}

void end_finish(struct end *e, uint32_t turn)
{
	if (e->finishing)
		return;
	e->finishing = true;
	e->calls = true;
	e->call_at = turn + below(&e->random, PAUSE);
	note(e->round, e, "its end begins: %s", finish_name(e->plan->finish));
	switch (e->plan->finish) {
	case FINISH_DISCONNECT:
	case FINISH_NOTHING:
		e->call_at = turn;
		end_disconnect(e);
		break;
	case FINISH_CLOSE_QP:
		end_close_qp(e);
		break;
	case FINISH_CLOSE_CONNECTOR:
		end_close_connector(e);
		e->calls = false;
		break;
	case FINISH_FLUSH:
		end_flush(e);
		break;
	case FINISH_LOCAL_TOKEN:
		model_abortive_begins(e, e->plan->finish);
		post_wrong_local(e);
		break;
	case FINISH_REMOTE_TOKEN:
	case FINISH_REMOTE_RANGE:
		model_abortive_begins(e, e->plan->finish);
		post_wrong_remote(e, e->plan->finish == FINISH_REMOTE_TOKEN);
		break;
	case FINISH_SHORT_RECEIVE:
		model_abortive_begins(e, e->plan->finish);
		if (!end_has_srq(e))
			post_short_receive(e);
		break;
	case FINISH_CLOSE_MEMORY:
		end_close_region(e, (enum area)below(&e->random, AREAS));
		break;
	case FINISH_INVALIDATE:
		model_abortive_begins(e, e->plan->finish);
		post_wrong_invalidate(e);
		break;
	case FINISH_NO_RECEIVE: /* noted when it was connected */
	case FINISHES:
		break;
	}
}

void end_query(struct end *e)
{
	bool untouched;
	enum ndx_disconnect_reason reason;

	if (e->connector == NULL || end_phase(e) != PHASE_UP)
		return;
	reason = ndx_connector_get_disconnect_reason(e->connector);
	untouched = model_untouched(e->conn);
	if (untouched && reason != NDX_DISCONNECT_NONE)
		fail(e->round, e, "a connection that nobody has touched has ended %s",
		     ndx_disconnect_reason_name(reason));
	model_reason(e, reason);
}

void end_post_mortem(struct end *e)
{
	if (e->qp == NULL || e->post_mortem || e->initiator.blind || e->receive.blind ||
	    end_phase(e) != PHASE_UP || e->outcome == NDX_PENDING)
		return;
	e->post_mortem = true;
	post_into_the_void(e);
	memory_watch(e);
}
