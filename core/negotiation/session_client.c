/* SPDX-License-Identifier: BSD-2-Clause */
/* What the role of the client adds to the driver. Loop thread. */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_ov.h"
#include "connection.h"
#include "many_add.h"
#include "session.h"

/* ---- the call in progress ---- */

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
	s->add_error = s->call.adds ? *e : s->add_error;
	pthread_mutex_unlock(&s->lock);
	/* The connection that shares the transport fails with the session. */
	driver_oob_lost(s);
	if (e->status == NDX_E_CANCELED)
		log_info("session %llu: cancelled", (unsigned long long)s->id);
	session_complete(s, e->status);
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
	driver_set_timer(s, ndxp_deadline(SESSION_LAST_WORDS_MS));
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
	driver_flush(s);
	session_complete(s, NDX_OK);
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
		addition_work(s);
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
	driver_qp_go_on(s);
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

static bool step(struct ndx_session *s)
{
	bool was_open;

	if (s->reach.at != REACH_NOT) {
		if (is_cancelled(s))
			(void)session_reach_cancel(s);
		return conclude(s, session_reach_step(s));
	}
	was_open = s->driver.fd >= 0;
	driver_oob_receive(s);
	session_look_idle(s, was_open);
	if (s->driver.phase != DRIVER_ROLE)
		return false;
	if (s->driver.oob != NULL && s->driver.fd < 0 && !s->driver.timer.armed)
		driver_set_timer(s, ndxp_deadline(s->attr.stage_timeout_ms));
	if (!s->parting || !driver_oob_is_over(s))
		return false;
	session_say_bye(s);
	return true;
}

static void on_ended(struct ndx_session *s)
{
	if (s->closed)
		session_finish(s);
	else
		(void)end_failed(s);
}

/* ---- events ---- */

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

	if (session_add_timer(s) || many_timer(s))
		return;
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
		if (session_withdraw(s))
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
	/* A session that has failed since the check does not start, and the driver ends the call.
	 */
	if (posted && !s->call.connects && !s->call.adds && !s->failed_idle)
		(void)dialogue_start(&s->dialogue, (enum ndx_stage)s->call.last);
	return posted;
}

/* Between two calls the session has failed: the call that begins now says so. */
static void tell_idle_failure(struct ndx_session *s)
{
	char cause[sizeof(s->error.text)];

	memcpy(cause, s->error.text, sizeof(cause)); /* only this thread writes it */
	pthread_mutex_lock(&s->lock);
	s->failed_idle = false;
	s->dialogue.error = s->error;
	pthread_mutex_unlock(&s->lock);
	dialogue_fail(&s->dialogue, s->error.layer, s->error.status, false, cause);
	addition_free(s->call.addition);
	s->call.addition = NULL;
	(void)end_failed(s);
}

void session_on_cancel(void *arg)
{
	struct ndx_session *s = arg;
	bool more = false;

	if (__atomic_load_n(&s->call.active, __ATOMIC_ACQUIRE) == 0)
		return;
	if (take_posted(s)) {
		if (s->failed_idle) {
			tell_idle_failure(s);
			return;
		}
		if (session_add_withdraw(s))
			return;
		dialogue_fail(&s->dialogue, NDX_LAYER_TRANSPORT, NDX_E_CANCELED, false,
		              "cancelled");
		(void)end_failed(s);
		return;
	}
	/* The close of a stream has to be done. */
	if (s->reach.at != REACH_CLOSE && session_withdraw(s) && s->driver.phase == DRIVER_ENDING) {
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
	s->break_noted = false;
	if (s->failed_idle) {
		tell_idle_failure(s);
		return;
	}
	if (s->call.connects)
		session_reach(s, false);
	else if (!session_add_begin(s))
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
	.prompt = session_is_prompt,
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
