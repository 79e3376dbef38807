/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends of a client's calls, and of its session. Loop thread. */
#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include "base_ov.h"
#include "many.h"
#include "session.h"

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

	session_end_plugin(s, SESSION_LAST_WORDS_MS);
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

bool session_withdraw(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->phase != DRIVER_POOL || (s->call.ov == NULL && !s->abandoned) ||
	    !pool_withdraw(&d->engine->pool, &d->task))
		return false;
	d->phase = d->io != NULL ? d->io_phase : DRIVER_ACTIVE;
	d->io = NULL;
	return true;
}

void session_complete(struct ndx_session *s, enum ndx_status st)
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
	/* A cancel was of this call alone; from here on, one is of no call. */
	if (call->adds)
		__atomic_store_n(&s->cancelled, 0, __ATOMIC_RELEASE);
	call->ov = NULL;
	/* A thread that waits in the call ends the call itself, with the status in hand: a call
	 * that began before would overwrite `done` and `status`. */
	if (ov != NULL)
		__atomic_store_n(&call->active, 0, __ATOMIC_RELEASE);
	/* A close that waits for `done` returns when the object is complete; a consumer that sees
	 * the object complete may begin another call. */
	if (ov != NULL)
		base_ov_complete(ov, st, call->information, 0);
	(void)pthread_cond_broadcast(&call->turn);
	pthread_mutex_unlock(&s->lock);
}

/* Tell the peer that the session is over, and wait for the socket to take that. */
void session_say_bye(struct ndx_session *s)
{
	const struct frame bye = {.type = FRAME_SESSION_END};

	s->parting = false;
	frame_write_header(s->driver.last_words, &bye);
	s->driver.last_length = FRAME_HEADER;
	s->driver.phase = DRIVER_ENDING;
	driver_set_timer(s, ndxp_deadline(SESSION_LAST_WORDS_MS));
}

/* ---- after the close ---- */

void session_finish(struct ndx_session *s)
{
	driver_end(s, session_free);
}

void session_release(void *arg)
{
	struct ndx_session *s = arg;

	if (s->driver.fd < 0) {
		session_finish(s);
		return;
	}
	if (s->parting) {
		s->driver.phase = DRIVER_ROLE;
		many_set_phase(s, DRIVER_ROLE);
	} else {
		session_say_bye(s);
	}
	driver_go(s);
}
