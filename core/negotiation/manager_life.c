/* SPDX-License-Identifier: BSD-2-Clause */
/* What a managed session does next. Loop thread. */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "manager.h"
#include "session.h"

static uint32_t flags_of(struct managed *m)
{
	uint32_t flags;

	pthread_mutex_lock(&m->manager->lock);
	flags = m->flags;
	pthread_mutex_unlock(&m->manager->lock);
	return flags;
}

static bool is_cancelled(struct managed *m)
{
	return (flags_of(m) & MANAGED_CANCEL) != 0;
}

static void set_state(struct managed *m, enum ndx_managed_state state)
{
	pthread_mutex_lock(&m->manager->lock);
	m->state = state;
	pthread_mutex_unlock(&m->manager->lock);
}

/* ---- tasks ---- */

static void on_task(struct pool_task *task)
{
	struct managed *m = container_of(task, struct managed, task);

	managed_work(m);
	ndxp_loop_post(m->manager->engine->loop, &m->returned);
}

static void on_returned(void *arg)
{
	struct managed *m = arg;

	m->busy = false;
	m->returned_to(m);
}

/* Run `work` on the pool, then `then` here. */
static void push(struct managed *m, void (*work)(struct managed *m), ndxp_loop_fn *then)
{
	m->busy = true;
	m->work = work;
	m->returned_to = then;
	m->task.fn = on_task;
	engine_push(m->manager->engine, &m->task);
}

/* ---- the end of an attempt or a life ---- */

static uint32_t choose_pause(const struct ndx_session_manager_attr *a, uint32_t failures)
{
	uint64_t ms = a->backoff_ms;
	uint32_t random = 0;

	(void)ndxp_random(&random, sizeof(random));
	if (failures == 0)
		return (uint32_t)(ms * (random % 1024) / 1024);
	for (uint32_t i = 1; i < failures && ms < a->backoff_most_ms; i++)
		ms *= 2;
	if (ms > a->backoff_most_ms)
		ms = a->backoff_most_ms;
	return (uint32_t)(ms - ms / 2 * (random % 1024) / 1024);
}

static void on_ended(void *arg)
{
	struct managed *m = arg;
	struct ndx_session_manager *manager = m->manager;

	if (m->verdict == NDX_MANAGED_EVENT_NONE) {
		m->at = MANAGED_AT_PAUSE;
		ndxp_timer_set(manager->engine->loop, &m->timer, m->pause_ms);
		managed_look(m);
		return;
	}
	m->at = MANAGED_AT_REST;
	pthread_mutex_lock(&manager->lock);
	m->state = NDX_MANAGED_OVER;
	if (--manager->living == 0)
		(void)pthread_cond_broadcast(&manager->change);
	pthread_mutex_unlock(&manager->lock);
}

/* Lock held: count the end, and decide whether there is a next attempt. */
static enum ndx_managed_event_kind judge(struct managed *m, bool graceful)
{
	struct ndx_session_manager *manager = m->manager;
	const uint64_t stable_ns = (uint64_t)manager->attr.stable_ms * NDXP_NS_PER_MS;
	struct ndx_session_manager_stats *stats = &manager->stats;

	if ((m->flags & MANAGED_CANCEL) != 0) {
		stats->canceled++;
		return NDX_MANAGED_EVENT_CANCELED;
	}
	stats->lost += m->lived;
	stats->failed += !m->lived;
	if (m->lived && graceful && manager->attr.end_with_peer) {
		stats->ended++;
		return NDX_MANAGED_EVENT_ENDED;
	}
	if (m->lived && ndxp_now_ns() - m->up_ns >= stable_ns)
		m->failures = 0;
	else
		m->failures++;
	if (m->failures < manager->attr.attempts)
		return NDX_MANAGED_EVENT_NONE;
	stats->gave_up++;
	return NDX_MANAGED_EVENT_GAVE_UP;
}

/* End what there is, for the cause in `status`, `layer` and `text`. */
static void end(struct managed *m, bool graceful)
{
	struct ndx_session_manager *manager = m->manager;

	m->at = MANAGED_AT_END;
	pthread_mutex_lock(&manager->lock);
	m->verdict = judge(m, graceful);
	m->state = NDX_MANAGED_WAITING;
	m->flags &= MANAGED_CANCEL;
	if (m->text[0] != '\0') {
		m->shown_status = m->status;
		m->shown_layer = m->layer;
		memcpy(m->shown_text, m->text, sizeof(m->text));
	}
	m->pause_ms = m->verdict == NDX_MANAGED_EVENT_NONE
	                      ? choose_pause(&manager->attr, m->failures)
	                      : 0;
	pthread_mutex_unlock(&manager->lock);
	push(m, managed_end, on_ended);
}

/* There is no attempt and no life. */
static void end_idle(struct managed *m)
{
	m->text[0] = '\0';
	m->status = NDX_E_CANCELED;
	m->layer = NDX_LAYER_NONE;
	end(m, false);
}

/* ---- attempts ---- */

static void attempt_over(struct managed *m)
{
	struct ndx_session_manager *manager = m->manager;

	manager->connecting--;
	ndxp_loop_post(manager->engine->loop, &manager->pump);
}

static void note_failure(struct managed *m, enum ndx_status st)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	(void)ndx_session_get_error(m->session, &e);
	m->status = st;
	m->layer = e.layer;
	(void)snprintf(m->text, sizeof(m->text), "%s",
	               e.text[0] != '\0' ? e.text : ndx_status_text(st));
}

static void on_gone(struct ndx_overlapped *ov)
{
	struct managed *m = ov->context;
	struct ndx_session_manager *manager = m->manager;

	pthread_mutex_lock(&manager->lock);
	m->told_gone = true;
	/* Otherwise cancelled, for the end of the life. */
	if (ov->status == NDX_OK) {
		m->flags |= MANAGED_GONE;
		m->reason = ov->information;
		/* Under the lock: the session may be freed as soon as `told_gone` is seen. */
		ndxp_loop_post(manager->engine->loop, &m->look);
	}
	pthread_mutex_unlock(&manager->lock);
}

static void on_lost(void *arg)
{
	struct managed *m = arg;

	pthread_mutex_lock(&m->manager->lock);
	m->flags |= MANAGED_LOST;
	ndxp_loop_post(m->manager->engine->loop, &m->look);
	pthread_mutex_unlock(&m->manager->lock);
}

/* A connector that cannot tell of its end has none any more. Without a connector the transport
 * tells; with one, the connection may well outlive the transport. */
static void watch_connector(struct managed *m)
{
	enum ndx_status st;

	if (m->resources.connector == NULL) {
		if (session_watch_loss(m->session, on_lost, m))
			on_lost(m);
		return;
	}
	ndx_overlapped_init(&m->gone);
	m->gone.callback = on_gone;
	m->gone.context = m;
	st = ndx_connector_notify_disconnect(m->resources.connector, &m->gone);
	m->watches = st == NDX_PENDING;
	if (m->watches)
		return;
	pthread_mutex_lock(&m->manager->lock);
	m->flags |= MANAGED_GONE;
	m->reason = NDX_DISCONNECT_NONE;
	pthread_mutex_unlock(&m->manager->lock);
}

static void begin_life(struct managed *m)
{
	struct ndx_session_manager *manager = m->manager;

	m->at = MANAGED_AT_LIFE;
	m->lived = true;
	m->up_ns = ndxp_now_ns();
	m->text[0] = '\0';
	m->status = NDX_OK;
	m->layer = NDX_LAYER_NONE;
	pthread_mutex_lock(&manager->lock);
	m->life++;
	m->flags &= MANAGED_CANCEL;
	m->told_gone = false;
	m->state = NDX_MANAGED_UP;
	manager->stats.lives++;
	(void)snprintf(m->server, sizeof(m->server), "%s", ndx_session_get_server(m->session));
	pthread_mutex_unlock(&manager->lock);
	watch_connector(m);
	push(m, managed_tell_up, managed_look);
}

static void on_run(struct ndx_overlapped *ov)
{
	struct managed *m = ov->context;

	attempt_over(m);
	if (ov->status == NDX_OK && !is_cancelled(m)) {
		begin_life(m);
		return;
	}
	note_failure(m, ov->status != NDX_OK ? ov->status : NDX_E_CANCELED);
	end(m, false);
}

static void on_provided(void *arg)
{
	struct managed *m = arg;
	enum ndx_status st = m->status;

	if (st == NDX_OK && !is_cancelled(m)) {
		ndx_overlapped_init(&m->run);
		m->run.callback = on_run;
		m->run.context = m;
		m->at = MANAGED_AT_SESSION;
		st = ndx_session_run_overlapped(m->session, &m->run);
		if (st == NDX_PENDING)
			return;
		m->status = st;
		(void)snprintf(m->text, sizeof(m->text), "%s", ndx_last_error());
	}
	attempt_over(m);
	end(m, false);
}

static void begin_attempt(struct managed *m)
{
	struct ndx_session_manager *manager = m->manager;

	manager->connecting++;
	m->at = MANAGED_AT_OBJECTS;
	pthread_mutex_lock(&manager->lock);
	m->state = NDX_MANAGED_CONNECTING;
	m->attempts++;
	m->server[0] = '\0';
	manager->stats.attempts++;
	pthread_mutex_unlock(&manager->lock);
	push(m, managed_provide, on_provided);
}

void manager_pump(void *arg)
{
	struct ndx_session_manager *manager = arg;

	while (manager->connecting < manager->attr.max_connecting &&
	       !ndxp_list_empty(&manager->ready)) {
		struct managed *m =
			container_of(ndxp_list_take(&manager->ready), struct managed, ready);

		begin_attempt(m);
	}
}

/* ---- what other threads want ---- */

static void enqueue(struct managed *m)
{
	m->at = MANAGED_AT_QUEUE;
	set_state(m, NDX_MANAGED_QUEUED);
	ndxp_list_add(&m->manager->ready, &m->ready);
	manager_pump(m->manager);
}

static void on_timer(void *arg)
{
	enqueue(arg);
}

static void note_end(struct managed *m, uint32_t flags)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	const char *text = "the connection has ended";
	enum ndx_status st = NDX_E_CONNECTION_ABORTED;

	(void)ndx_session_get_error(m->session, &e);
	pthread_mutex_lock(&m->manager->lock);
	if ((flags & MANAGED_CANCEL) != 0) {
		text = "cancelled";
		st = NDX_E_CANCELED;
	} else if ((flags & MANAGED_REPORTED) != 0) {
		text = "the program reports the end of the connection";
		st = m->reported;
	} else if ((flags & MANAGED_LOST) != 0) {
		text = e.text;
		st = e.status;
	} else if (m->reason == NDX_DISCONNECT_GRACEFUL) {
		text = "the peer has ended the connection";
		st = NDX_OK;
	} else if (m->reason == NDX_DISCONNECT_ABORTED) {
		text = "the connection was aborted";
	}
	pthread_mutex_unlock(&m->manager->lock);
	m->status = st;
	(void)snprintf(m->text, sizeof(m->text), "%s", text);
}

static bool is_graceful(struct managed *m, uint32_t flags)
{
	return (flags & (MANAGED_CANCEL | MANAGED_REPORTED)) == 0 && m->status == NDX_OK;
}

void managed_look(void *arg)
{
	struct managed *m = arg;
	const uint32_t flags = flags_of(m);
	const bool cancelled = (flags & MANAGED_CANCEL) != 0;

	if (m->busy)
		return; /* looked at when the task has returned */
	switch (m->at) {
	case MANAGED_AT_NEW:
		if (cancelled)
			end_idle(m);
		else
			enqueue(m);
		break;
	case MANAGED_AT_QUEUE:
		if (!cancelled)
			break;
		ndxp_list_remove(&m->ready);
		end_idle(m);
		break;
	case MANAGED_AT_PAUSE:
		if (!cancelled)
			break;
		ndxp_timer_cancel(m->manager->engine->loop, &m->timer);
		end_idle(m);
		break;
	case MANAGED_AT_SESSION:
		if (!cancelled || m->cancelling)
			break;
		m->cancelling = true;
		ndx_session_cancel(m->session); /* on_run() follows */
		break;
	case MANAGED_AT_LIFE:
		if (flags == 0)
			break;
		note_end(m, flags);
		end(m, is_graceful(m, flags));
		break;
	case MANAGED_AT_OBJECTS:
	case MANAGED_AT_END:
	case MANAGED_AT_REST:
	default:
		break;
	}
}

void managed_init(struct managed *m)
{
	m->at = MANAGED_AT_NEW;
	ndxp_list_init(&m->ready);
	m->look = (struct ndxp_job){.fn = managed_look, .arg = m};
	m->returned = (struct ndxp_job){.fn = on_returned, .arg = m};
	m->timer = (struct ndxp_timer){.fn = on_timer, .arg = m};
}
