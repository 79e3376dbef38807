/* SPDX-License-Identifier: BSD-2-Clause */
/* How a client ends: with a reason for its peer, after the loss of its transport, or at once. Loop
 * thread. */
#include <stdio.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "connection.h"
#include "many.h"
#include "server.h"

#define LAST_WORDS_MS 1000u
#define SETTLE_MS 3000u

static void on_last(void *arg)
{
	client_close_task(client_of(arg));
}

static bool finish_stopped(struct ndx_session *s)
{
	client_finish(client_of(s));
	return false;
}

void client_finish(struct client *c)
{
	struct ndx_negotiation_server *server = c->server;
	struct ndx_session *s = &c->session;
	const bool failed = c->talking && s->dialogue.next == DIALOGUE_FAILED;

	if (!many_stop(s, finish_stopped))
		return;
	server_pass(c);
	budget_heard(server, &c->share);
	ndxp_list_remove(&c->node);
	if (failed)
		server_count(server, &server->stats.failed);
	pthread_mutex_lock(&s->lock);
	s->state = failed ? NDX_SESSION_FAILED : NDX_SESSION_CLOSED;
	if (failed)
		s->error = s->dialogue.error;
	pthread_mutex_unlock(&s->lock);
	driver_end(s, on_last); /* a drive of the client may be queued, see resume() */
}

bool client_end(struct client *c)
{
	struct driver *d = &c->session.driver;

	if (d->fd < 0 || d->last_length == 0) {
		client_finish(c);
		return false;
	}
	d->phase = DRIVER_ENDING;
	c->rests_ns = ndxp_now_ns();
	if (!d->oob_sending)
		d->sent = 0;
	driver_set_timer(&c->session, ndxp_deadline(LAST_WORDS_MS));
	return true;
}

bool client_fail(struct client *c, enum ndx_status status, const char *text)
{
	struct dialogue *d = &c->session.dialogue;
	struct frame_error e = {.layer = NDX_LAYER_FRAMEWORK, .status = status};
	struct frame f = {.type = FRAME_ERROR};
	struct driver *io = &c->session.driver;

	if (c->talking) {
		dialogue_fail(d, NDX_LAYER_FRAMEWORK, status, true, text);
		if (d->tell)
			io->last_length = dialogue_error_frame(d, io->last_words);
	} else {
		(void)snprintf(e.text, sizeof(e.text), "%.200s", text);
		f.length = frame_write_error(io->last_words + FRAME_HEADER, &e);
		frame_write_header(io->last_words, &f);
		io->last_length = FRAME_HEADER + f.length;
	}
	if (c->talking || server_may_log(c->server))
		log_warn(0, "session %llu of %s: %s: %s", (unsigned long long)c->session.id,
		         c->address, ndx_status_name(status), text);
	return client_end(c);
}

bool client_report_failure(struct client *c)
{
	struct dialogue *d = &c->session.dialogue;
	struct driver *io = &c->session.driver;

	if (d->tell)
		io->last_length = dialogue_error_frame(d, io->last_words);
	if (!c->over_budget || server_may_log(c->server))
		log_warn(0, "session %llu of %s: stage %s, round %u: %s: %s",
		         (unsigned long long)c->session.id, c->address,
		         frame_stage_name(d->error.stage), d->error.round,
		         ndx_status_name(d->error.status), d->error.text);
	return client_end(c);
}

/* The session goes on over another transport, if one comes in time. */
static void await_transport(struct client *c)
{
	struct driver *d = &c->session.driver;

	log_info("session %llu of %s: its transport broke in stage %s; it may come back",
	         (unsigned long long)c->session.id, c->address,
	         frame_stage_name(c->session.dialogue.view.stage));
	c->rests_ns = ndxp_now_ns();
	if (d->phase == DRIVER_QP)
		return; /* the queue pair goes on to connect */
	d->phase = DRIVER_ORPHAN;
	/* Stage ready has ended here, but the client may not know. */
	if (c->session.dialogue.next == DIALOGUE_IDLE) {
		c->idle = false;
		driver_set_timer(&c->session, ndxp_deadline(SETTLE_MS));
	}
}

void client_lost(struct client *c)
{
	struct dialogue *d = &c->session.dialogue;
	const bool between = d->next == DIALOGUE_IDLE;
	const bool replays = c->session.driver.replay.on;
	const bool resumes = replays && driver_can_resume(&c->session);

	if (driver_tls_failed(&c->session))
		log_warn(0, "session %llu of %s: %s", (unsigned long long)c->session.id, c->address,
		         tls_why(c->session.driver.tls));
	driver_detach(&c->session);
	c->session.driver.last_length = 0;
	if (!c->talking) {
		server_count(c->server, &c->server->stats.without_hello);
		client_finish(c);
		return;
	}
	if (resumes || (!replays && !between && d->view.stage != NDX_STAGE_VALIDATE &&
	                c->session.many == NULL && c->session.driver.oob == NULL &&
	                c->session.attr.variant->table->ops->reset != NULL)) {
		await_transport(c);
		return;
	}
	dialogue_fail(d, NDX_LAYER_TRANSPORT, NDX_E_CONNECTION_ABORTED, false,
	              between ? "the client closed the transport without ending the session"
	                      : "the transport broke in mid-stage");
	(void)client_report_failure(c);
}

void client_stop(struct client *c)
{
	struct ndx_session *s = &c->session;

	switch (s->driver.phase) {
	case DRIVER_POOL:
		s->driver.over = true;
		driver_detach(s);
		break;
	case DRIVER_QP:
		s->driver.over = true;
		s->driver.stopped = true;
		many_cancel_attempts(s);
		break;
	case DRIVER_CLOSING:
		break;
	case DRIVER_ROLE:
	case DRIVER_ACTIVE:
	case DRIVER_ORPHAN:
	case DRIVER_ENDING:
	default:
		driver_detach(s);
		if (c->talking)
			dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, NDX_E_CANCELED, false,
			              "the server ends");
		client_finish(c);
	}
}
