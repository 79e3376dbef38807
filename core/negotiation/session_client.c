/* SPDX-License-Identifier: BSD-2-Clause */
/* What the role of the client adds to the driver. Loop thread. */
#include <stdio.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_ov.h"
#include "connection.h"
#include "many.h"
#include "session.h"

#define LAST_WORDS_MS 100u

/* ---- the call in progress ---- */

void session_stop(void *arg)
{
	struct ndx_session *s = arg;

	driver_set_timer(s, UINT64_MAX);
	s->closed = true;
	s->parting = s->state == NDX_SESSION_CONNECTED && driver_has_oob(s);
	if (s->state != NDX_SESSION_CONNECTED)
		driver_detach(s); /* the connection that shares the transport breaks at once */
	/* The plugin has the dialogue next. Goodbyes of the connection still pass. */
	s->driver.phase = s->parting ? DRIVER_POOL : DRIVER_CLOSING;
	many_set_phase(s, s->driver.phase);
}

/* On the pool: the session was closed in a callback, and nothing runs any more but the plugin's
 * share of the close. */
static void end_abandoned(struct pool_task *task)
{
	struct ndx_session *s = container_of(task, struct ndx_session, driver.task);

	session_end_plugin(s, LAST_WORDS_MS);
	/* Do not wait for the loop thread: it may be in a callback, free the engine there, and wait
	 * for this thread. */
	s->driver.returned = (struct ndxp_job){.fn = session_release, .arg = s};
	ndxp_loop_post(s->driver.engine->loop, &s->driver.returned);
}

void session_end_later(void *arg)
{
	struct ndx_session *s = arg;

	s->driver.task.fn = end_abandoned;
	engine_push(s->driver.engine, &s->driver.task);
}

/* The call has ended. Its waiter or callback may close the session afterwards. */
static void complete(struct ndx_session *s, enum ndx_status st)
{
	struct session_call *call = &s->call;
	struct ndx_overlapped *ov = call->ov;

	driver_set_timer(s, UINT64_MAX);
	if (s->abandoned) {
		session_stop(s);
		session_end_later(s);
		return;
	}
	if (ov != NULL && st != NDX_OK)
		(void)session_say_failure(s); /* one record of the failure */
	pthread_mutex_lock(&s->lock);
	call->status = st;
	call->done = true;
	call->ov = NULL;
	/* A thread that waits in the call ends the call itself, with the status in hand: a call
	 * that began before would overwrite `done` and `status`. */
	if (ov != NULL)
		__atomic_store_n(&call->active, 0, __ATOMIC_RELEASE);
	/* A close that waits for `done` returns when the object is complete; a consumer that sees
	 * the object complete may begin another call. */
	if (ov != NULL)
		base_ov_complete(ov, st, 0, 0);
	(void)pthread_cond_broadcast(&call->turn);
	pthread_mutex_unlock(&s->lock);
}

/* The session has failed, and the peer knows what it has to know. */
static bool end_failed(struct ndx_session *s)
{
	const struct ndx_session_error *e = &s->dialogue.error;

	if (!many_stop(s, end_failed))
		return false;
	s->driver.phase = DRIVER_CLOSING;
	pthread_mutex_lock(&s->lock);
	s->state = NDX_SESSION_FAILED;
	s->error = *e;
	pthread_mutex_unlock(&s->lock);
	/* The connection that shares the transport fails with the session. */
	driver_oob_lost(s);
	if (e->status == NDX_E_CANCELED)
		log_info("session %llu: cancelled", (unsigned long long)s->id);
	complete(s, e->status);
	return false;
}

static bool on_failed(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	d->io_back = false;
	if (!s->dialogue.tell || (d->fd < 0 && d->stream == NULL))
		return end_failed(s);
	d->last_length = dialogue_error_frame(&s->dialogue, d->last_words);
	d->phase = DRIVER_ENDING;
	driver_set_timer(s, ndxp_deadline(LAST_WORDS_MS));
	return true;
}

/* Fail a session whose dialogue goes on. Tell a peer that sent no frame, or none in time; not a
 * peer that is gone, or that has received a part of a frame. */
static bool fail_stage(struct ndx_session *s, enum ndx_error_layer layer, enum ndx_status st,
                       const char *text)
{
	const bool tell = layer == NDX_LAYER_FRAMEWORK && s->dialogue.next == DIALOGUE_RECEIVE;

	dialogue_fail(&s->dialogue, layer, st, tell, text);
	return on_failed(s);
}

static bool fail_late(struct ndx_session *s)
{
	char late[DRIVER_LATE];
	char lanes[160];
	char text[240];

	(void)snprintf(text, sizeof(text), "time is over (stage %u ms, session %u ms): %s",
	               s->attr.stage_timeout_ms, s->attr.session_timeout_ms,
	               many_late(s, lanes, sizeof(lanes)) != NULL ? lanes
	               : s->dialogue.next == DIALOGUE_RECEIVE     ? "nothing came from the peer"
	                                                          : "the peer takes nothing");
	return fail_stage(s, NDX_LAYER_FRAMEWORK, NDX_E_IO_TIMEOUT, driver_qp_late(s, text, late));
}

static bool is_cancelled(const struct ndx_session *s)
{
	return __atomic_load_n(&s->cancelled, __ATOMIC_ACQUIRE) != 0;
}

/* ---- stages ---- */

static void begin_stage(struct ndx_session *s)
{
	s->stage_deadline_ns = ndxp_deadline(s->attr.stage_timeout_ms);
	if (s->dialogue.view.stage != NDX_STAGE_DONE && s->deadline_ns < s->stage_deadline_ns)
		s->stage_deadline_ns = s->deadline_ns;
	session_set_state(s, NDX_SESSION_EXCHANGING);
	driver_set_timer(s, s->stage_deadline_ns);
	s->driver.since_ns = 0;
	s->driver.phase = DRIVER_ACTIVE;
}

/* Both ends say that stage ready has ended, so that none of them waits for the other's transport to
 * come back once the other end is content. False: not yet. */
static bool await_ready(struct ndx_session *s, bool *more)
{
	const struct replay *r = &s->driver.replay;
	struct frame f;

	*more = false;
	if (!r->on || s->dialogue.finished != NDX_STAGE_READY)
		return true;
	if (!r->settled) {
		if (is_cancelled(s)) {
			*more = fail_stage(s, NDX_LAYER_TRANSPORT, NDX_E_CANCELED, "cancelled");
		} else if (driver_take_frame(s, &f, more)) {
			if (!driver_oob_handle(s, &f)) {
				dialogue_receive(&s->dialogue, &f, ndxp_now_ns());
				driver_consume(s);
			}
			*more = true;
		}
		return false;
	}
	switch (driver_say_ready(s)) {
	case IO_WAIT:
		return false;
	case IO_DONE:
	case IO_LOST: /* the server waits for the word a while, and then gives up */
	case IO_BAD:
	default:
		return true;
	}
}

/* Begin the call's next stage, or complete the call. */
static bool next_stage(struct ndx_session *s)
{
	struct dialogue *x = &s->dialogue;
	bool more;

	if (!await_ready(s, &more))
		return more;
	pthread_mutex_lock(&s->lock);
	s->state = NDX_SESSION_CONNECTED;
	s->agreed = x->agreement_known;
	pthread_mutex_unlock(&s->lock);
	if (x->finished < s->call.last &&
	    dialogue_start(x, (enum ndx_stage)(x->finished + 1)) == NDX_OK) {
		begin_stage(s);
		return true;
	}
	s->driver.phase = DRIVER_ROLE;
	complete(s, NDX_OK);
	return true; /* the connection's goodbyes */
}

/* On a thread that may block. */
static void on_work(struct ndx_session *s)
{
	struct dialogue *x = &s->dialogue;
	struct sockaddr_storage near;
	enum ndx_status st = NDX_OK;

	if (s->driver.restart) {
		s->driver.restart = false;
		st = dialogue_restart(x);
		if (st != NDX_OK)
			dialogue_fail(x, NDX_LAYER_PLUGIN, st, false,
			              "the plugin cannot begin anew");
		return;
	}
	if (s->many != NULL) {
		describe_near(s->driver.fd, &near);
		if (!s->described)
			st = many_describe(s, &near);
		s->described = true;
		if (st == NDX_OK)
			many_work(s);
		return;
	}
	if (!s->described) {
		describe_near(s->driver.fd, &near);
		st = describe_own(&s->attr, NDX_ROLE_CLIENT, &near, &x->own);
		s->described = true;
	}
	if (st != NDX_OK)
		dialogue_fail(x, NDX_LAYER_PROVIDER, st, false, ndx_last_error());
	else
		dialogue_call(x);
}

static bool on_returned(struct ndx_session *s)
{
	/* The plugin or the queue pair has used up the time. The timer ends the stage, or the
	 * attempt to connect, after frames that have arrived are handled. */
	if (s->driver.over)
		driver_set_timer(s, s->driver.deadline_ns);
	s->driver.over = false;
	return true;
}

/* The transport is lost: connect again, if the session can go on. */
static bool on_lost(struct ndx_session *s)
{
	const enum ndx_status st = s->driver.io_status;

	if (is_cancelled(s) || st == NDX_E_CANCELED)
		return fail_stage(s, NDX_LAYER_TRANSPORT, NDX_E_CANCELED, "cancelled");
	if (st == NDX_E_IO_TIMEOUT)
		return fail_late(s);
	if (st != NDX_E_CONNECTION_ABORTED || !driver_can_replace(s))
		return fail_stage(s, NDX_LAYER_TRANSPORT, st, driver_io_text(s));
	log_warn(0, "session %llu: the transport is lost in stage %s; connecting again",
	         (unsigned long long)s->id, frame_stage_name(s->dialogue.view.stage));
	session_reach(s, true);
	return true;
}

static bool on_bad(struct ndx_session *s, const char *why)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "from the server came %s", why);
	return fail_stage(s, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, text);
}

static void on_closed(struct ndx_session *s)
{
	dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, NDX_E_CONNECTION_ABORTED, false,
	              "the peer ended the session in mid-stage");
	(void)on_failed(s);
}

/* ---- connecting ---- */

/* The session has failed while the transport was being replaced. */
static bool end_reach_failed(struct ndx_session *s)
{
	if (!s->driver.connecting)
		return end_failed(s);
	s->driver.phase = DRIVER_QP; /* until the queue pair's call has returned */
	conn_cancel_attempt(s->attr.connector);
	return false;
}

/* The transport was replaced, and the session is where it was. */
static bool go_on(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (!replay_resume(d, s->reach.peer_received)) {
		dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the server lacks messages that are not kept");
		return end_reach_failed(s);
	}
	log_info("session %llu: goes on in stage %s", (unsigned long long)s->id,
	         frame_stage_name(s->dialogue.view.stage));
	if (d->returned_qp)
		return driver_take_qp(s);
	d->phase = d->connecting ? DRIVER_QP : DRIVER_ACTIVE;
	return true;
}

/* Handle the outcome of connecting to a server, if there is one. `more`: continue to connect. */
static bool conclude(struct ndx_session *s, bool more)
{
	struct reach *r = &s->reach;
	const enum reach_state at = r->at;

	if (at != REACH_DONE && at != REACH_FAILED)
		return more;
	r->at = REACH_NOT;
	if (at == REACH_FAILED) {
		dialogue_fail(&s->dialogue, r->layer, r->status, false, r->why);
		return end_reach_failed(s);
	}
	if (!r->again)
		return next_stage(s);
	session_set_state(s, NDX_SESSION_EXCHANGING);
	driver_set_timer(s, s->stage_deadline_ns);
	s->driver.since_ns = 0;
	if (r->resumed)
		return go_on(s);
	s->driver.restart = true;
	driver_call(s);
	return false;
}

/* Tell the peer that the session is over, and wait for the socket to take that. */
static void say_bye(struct ndx_session *s)
{
	const struct frame bye = {.type = FRAME_SESSION_END};

	s->parting = false;
	frame_write_header(s->driver.last_words, &bye);
	s->driver.last_length = FRAME_HEADER;
	s->driver.phase = DRIVER_ENDING;
	driver_set_timer(s, ndxp_deadline(LAST_WORDS_MS));
}

static bool step(struct ndx_session *s)
{
	if (s->reach.at != REACH_NOT) {
		if (is_cancelled(s))
			(void)session_reach_cancel(s);
		return conclude(s, session_reach_step(s));
	}
	driver_oob_receive(s);
	if (s->driver.oob != NULL && s->driver.fd < 0 && !s->driver.timer.armed)
		driver_set_timer(s, ndxp_deadline(s->attr.stage_timeout_ms));
	if (!s->parting || !driver_oob_is_over(s))
		return false;
	say_bye(s);
	return true;
}

/* ---- after the close ---- */

static void finish(struct ndx_session *s)
{
	driver_end(s, session_free);
}

void session_release(void *arg)
{
	struct ndx_session *s = arg;

	if (s->driver.fd < 0) {
		finish(s);
		return;
	}
	if (s->parting) {
		s->driver.phase = DRIVER_ROLE;
		many_set_phase(s, DRIVER_ROLE);
	} else {
		say_bye(s);
	}
	driver_go(s);
}

static void on_ended(struct ndx_session *s)
{
	if (s->closed)
		finish(s);
	else
		(void)end_failed(s);
}

/* ---- events ---- */

/* Take back a task that still waits for a thread of the pool: the phase is then that before the
 * task. */
static bool withdraw(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->phase != DRIVER_POOL || (s->call.ov == NULL && !s->abandoned) ||
	    !pool_withdraw(&d->engine->pool, &d->task))
		return false;
	d->phase = d->io != NULL ? d->io_phase : DRIVER_ACTIVE;
	d->io = NULL;
	return true;
}

/* The session's time is over while its task waits for a thread. */
static bool fail_queued(struct ndx_session *s)
{
	const struct driver *d = &s->driver;
	const char *text = d->called_ns < d->deadline_ns
	                           ? "time is over: all threads for functions of plugins are busy"
	                           : "time is over: the plugin has used it up";

	switch (s->driver.phase) {
	case DRIVER_ROLE:
		return conclude(s, session_reach_queued(s, text));
	case DRIVER_ENDING:
		on_ended(s);
		return false;
	case DRIVER_ACTIVE:
	case DRIVER_POOL:
	case DRIVER_QP:
	case DRIVER_ORPHAN:
	case DRIVER_CLOSING:
	default:
		return fail_stage(s, NDX_LAYER_FRAMEWORK, NDX_E_IO_TIMEOUT, text);
	}
}

/* Between two calls, the transport was lost, and the call that would replace it does not come. */
static void give_up_connection(struct ndx_session *s)
{
	if (s->driver.oob != NULL && s->driver.fd < 0)
		oob_link_tell(s->driver.oob, OOB_CARRIER, OOB_LOST);
}

static void on_timer(struct ndx_session *s)
{
	bool more = false;

	switch (s->driver.phase) {
	case DRIVER_ROLE:
		if (s->reach.at == REACH_NOT)
			give_up_connection(s);
		else
			more = conclude(s, session_reach_timer(s));
		break;
	case DRIVER_ACTIVE:
		more = fail_late(s);
		break;
	case DRIVER_POOL:
		if (withdraw(s))
			more = fail_queued(s);
		else
			s->driver.over = true;
		break;
	case DRIVER_QP:
		s->driver.over = true;
		many_cancel_attempts(s);
		break;
	case DRIVER_ENDING:
		on_ended(s);
		break;
	case DRIVER_ORPHAN:
	case DRIVER_CLOSING:
	default:
		break;
	}
	if (more)
		driver_go(s);
}

/* Whether a call was started and has not begun; now the caller has that call. */
static bool take_posted(struct ndx_session *s)
{
	bool posted;

	pthread_mutex_lock(&s->lock);
	posted = s->call.posted;
	s->call.posted = false;
	pthread_mutex_unlock(&s->lock);
	return posted;
}

void session_on_cancel(void *arg)
{
	struct ndx_session *s = arg;
	bool more = false;

	if (__atomic_load_n(&s->call.active, __ATOMIC_ACQUIRE) == 0)
		return;
	if (take_posted(s)) {
		dialogue_fail(&s->dialogue, NDX_LAYER_TRANSPORT, NDX_E_CANCELED, false,
		              "cancelled");
		(void)end_failed(s);
		return;
	}
	/* The close of a stream has to be done. */
	if (s->reach.at != REACH_CLOSE && withdraw(s) && s->driver.phase == DRIVER_ENDING) {
		on_ended(s);
		return;
	}
	switch (s->driver.phase) {
	case DRIVER_ROLE:
	case DRIVER_ACTIVE:
		more = true; /* the next step sees it */
		break;
	case DRIVER_QP:
		many_cancel_attempts(s);
		break;
	case DRIVER_POOL: /* when the task returns */
	case DRIVER_ORPHAN:
	case DRIVER_ENDING:
	case DRIVER_CLOSING:
	default:
		break;
	}
	if (more)
		driver_go(s);
}

void session_abandon(void *arg)
{
	struct session_abandoning *a = arg;
	struct ndx_session *s = a->session;
	struct ndx_overlapped *ov = s->call.ov;

	a->done = ov != NULL;
	if (ov == NULL)
		return; /* the call has ended before this job ran */
	s->abandoned = true;
	s->call.ov = NULL;
	base_ov_complete(ov, NDX_E_CANCELED, 0, 0);
}

void session_on_begin(void *arg)
{
	struct ndx_session *s = arg;

	if (!take_posted(s))
		return; /* a cancel has ended the call */
	if (s->call.connects)
		session_reach(s, false);
	else
		begin_stage(s);
	driver_go(s);
}

/* A thread that waits for the call runs its tasks; if there is none, the pool. */
static void push(struct ndx_session *s)
{
	if (s->call.ov != NULL || s->abandoned) {
		engine_push(s->driver.engine, &s->driver.task);
		return;
	}
	pthread_mutex_lock(&s->lock);
	s->call.task = &s->driver.task;
	(void)pthread_cond_signal(&s->call.turn);
	pthread_mutex_unlock(&s->lock);
}

const struct driver_role session_client_role = {
	.step = step,
	.idle = next_stage,
	.work = on_work,
	.returned = on_returned,
	.lost = on_lost,
	.bad = on_bad,
	.failed = on_failed,
	.closed = on_closed,
	.ended = on_ended,
	.cancelled = is_cancelled,
	.push = push,
	.timer = on_timer,
	.takes_late = true,
	.late = "the peer's queue pair does not connect in time",
};
