/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's session between two calls, or before stage done: its transport may be lost. Loop
 * thread. */
#include <stdio.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "many.h"
#include "session.h"

static void record_loss(struct ndx_session *s, const char *text)
{
	const struct ndx_history_entry entry = {.kind = NDX_HISTORY_LOST,
	                                        .stage = s->dialogue.view.stage,
	                                        .status = s->driver.io_status};

	history_add(&s->history, &entry, ndxp_now_ns(), text);
}

/* No lane is in progress between two calls. */
static bool nothing_more(struct ndx_session *s)
{
	(void)s;
	return false;
}

/* The session has failed, and the next call returns the cause. The dialogue fails in that call: a
 * thread that begins one reads the dialogue before. `told`: the peer reads a last word, which a
 * close of the socket may take from it. */
static void end_idle(struct ndx_session *s, const struct ndx_session_error *cause, bool told)
{
	(void)many_stop(s, nothing_more);
	s->driver.phase = DRIVER_CLOSING;
	driver_set_timer(s, UINT64_MAX);
	pthread_mutex_lock(&s->lock);
	s->state = NDX_SESSION_FAILED;
	s->error = *cause;
	s->failed_idle = true;
	pthread_mutex_unlock(&s->lock);
	driver_oob_lost(s);
	if (!told)
		driver_detach(s);
	if (s->on_loss != NULL)
		s->on_loss(s->on_loss_arg);
}

/* Whether the next call may connect to the server again, and the server waits for that. Without
 * replays the server begins the next stage at once, and stage validate does not begin anew. */
static bool can_come_back(const struct ndx_session *s)
{
	if (s->driver.io_status != NDX_E_CONNECTION_ABORTED)
		return false;
	if (s->driver.replay.on)
		return driver_can_resume(s);
	return s->many == NULL && s->driver.oob == NULL &&
	       s->attr.variant->table->ops->reset != NULL &&
	       s->dialogue.finished < NDX_STAGE_READY && s->dialogue.finished != NDX_STAGE_INFO;
}

static void note_break(struct ndx_session *s)
{
	if (s->break_noted)
		return;
	s->break_noted = true;
	log_warn(0, "session %llu: the transport is lost between two calls; the next one connects",
	         (unsigned long long)s->id);
	record_loss(s, "the transport; the next call connects again");
}

static void lose_transport(struct ndx_session *s)
{
	struct ndx_session_error cause = {.layer = NDX_LAYER_TRANSPORT,
	                                  .status = s->driver.io_status,
	                                  .stage = s->dialogue.view.stage,
	                                  .round = s->dialogue.view.round};

	/* The call that finds the broken socket replaces it; a call without a socket would only
	 * queue what it sends. */
	if (can_come_back(s)) {
		note_break(s);
		return;
	}
	(void)snprintf(cause.text, sizeof(cause.text), "%s", driver_io_text(s));
	record_loss(s, cause.text);
	end_idle(s, &cause, false);
}

/* The last frame, if the socket takes it at once; then nothing more is sent. False: it is not sent.
 */
static bool tell_peer(struct ndx_session *s, struct dialogue *heard)
{
	struct driver *d = &s->driver;
	enum driver_io io;

	if (d->fd < 0 || d->sent != 0 || !many_flush(s))
		return false;
	d->last_length = dialogue_error_frame(heard, d->last_words);
	io = driver_send(s, d->last_words, d->last_length);
	d->last_length = 0;
	if (io != IO_DONE)
		return false;
	driver_shut(s);
	return true;
}

void session_fail_idle(struct ndx_session *s, const char *why)
{
	struct dialogue heard = s->dialogue; /* see end_idle() */
	bool told;

	dialogue_fail(&heard, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true, why);
	told = tell_peer(s, &heard);
	end_idle(s, &heard.error, told);
}

/* The peer gives up, and closes. */
static void hear_error(struct ndx_session *s, const struct frame *f)
{
	struct dialogue heard = s->dialogue; /* see end_idle() */

	dialogue_receive(&heard, f, ndxp_now_ns());
	driver_consume(s);
	end_idle(s, &heard.error, false);
}

/* The peer sends no frame. */
static void hear_nonsense(struct ndx_session *s, const char *why)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "from the server came %s", why);
	session_fail_idle(s, text);
}

/* The next frame, behind words that are heard at any time. */
static enum driver_io read_word(struct ndx_session *s, struct frame *f, const char **why)
{
	enum driver_io io;

	do
		io = driver_read_frame(s, s->dialogue.limits.max_message, f, why);
	while (io == IO_DONE && driver_oob_handle(s, f) && s->driver.phase == DRIVER_ROLE);
	return io;
}

void session_look_idle(struct ndx_session *s, bool was_open)
{
	enum driver_io io;
	const char *why;
	struct frame f;

	if (s->closed || !was_open || s->driver.phase != DRIVER_ROLE ||
	    s->dialogue.next != DIALOGUE_IDLE || s->dialogue.finished >= NDX_STAGE_DONE ||
	    __atomic_load_n(&s->cancelled, __ATOMIC_ACQUIRE) != 0)
		return;
	if (s->driver.fd < 0) { /* the goodbyes' reader has found out */
		note_break(s);
		return;
	}
	io = read_word(s, &f, &why);
	if (s->driver.phase != DRIVER_ROLE)
		return;
	/* Before stage ready the next call, which is soon, tells what the peer said. */
	if (s->dialogue.finished >= NDX_STAGE_READY && io == IO_BAD) {
		hear_nonsense(s, why);
		return;
	}
	if (io == IO_DONE && f.type == FRAME_ERROR) {
		if (s->dialogue.finished >= NDX_STAGE_READY)
			hear_error(s, &f);
		return;
	}
	/* A frame of the next stage waits for the next call. Its successor is seen if that is the
	 * end of the transport. The peer's end of the session is no loss. */
	if (io == IO_DONE && f.type == FRAME_SESSION_END)
		return;
	if (io == IO_DONE)
		io = driver_read_behind(s, &f);
	if (io == IO_LOST)
		lose_transport(s);
}

bool session_watch_loss(struct ndx_session *s, ndxp_loop_fn *fn, void *arg)
{
	s->on_loss = fn;
	s->on_loss_arg = arg;
	return s->failed_idle;
}
