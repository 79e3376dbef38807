/* SPDX-License-Identifier: BSD-2-Clause */
/* Drives the dialogue of a session by events. Loop thread. */
#include <stdlib.h>
#include <sys/epoll.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "session.h"

#define READS_AT_ONCE 32u
#define CALLS_AT_ONCE 4u /* a session with an ordinary plugin has no more in one drive */

/* ---- the pool ---- */

void driver_call(struct ndx_session *s)
{
	driver_flush(s);
	driver_push(s);
	driver_oob_receive(s);
}

static void on_returned(void *arg)
{
	struct ndx_session *s = arg;
	struct driver *d = &s->driver;

	d->io_back = d->io != NULL;
	d->phase = d->io != NULL ? d->io_phase : DRIVER_ACTIVE;
	d->io = NULL;
	if (d->role->returned(s))
		driver_go(s);
}

bool driver_take_qp(struct ndx_session *s)
{
	s->driver.returned_qp = false;
	s->driver.phase = DRIVER_ACTIVE;
	/* The session has failed while its queue pair was connecting. */
	if (s->dialogue.next == DIALOGUE_FAILED)
		return true;
	return driver_qp_done(s);
}

static void on_qp_done(void *arg)
{
	struct ndx_session *s = arg;
	struct driver *d = &s->driver;

	d->connecting = false;
	if (d->lane != NULL && d->many->lane_stopped(s))
		return;
	d->returned_qp = d->phase != DRIVER_QP; /* the transport is being replaced */
	if (!d->returned_qp && driver_take_qp(s))
		driver_go(s);
}

/* ---- the dialogue ---- */

bool driver_receive(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	struct frame f;
	bool more;

	if (d->since_ns == 0)
		d->since_ns = ndxp_now_ns();
	if (!driver_take_frame(s, &f, &more))
		return more;
	if (driver_oob_handle(s, &f))
		return true;
	dialogue_receive(&s->dialogue, &f, d->since_ns);
	d->since_ns = 0;
	driver_consume(s);
	return true;
}

static bool send_out(struct ndx_session *s)
{
	switch (driver_send_soon(s, s->dialogue.out, s->dialogue.out_length)) {
	case IO_DONE:
		replay_sent(&s->driver.replay, s->dialogue.out, s->dialogue.out_length);
		dialogue_sent(&s->dialogue);
		return true;
	case IO_LOST:
		return s->driver.role->lost(s);
	case IO_WAIT:
	case IO_BAD:
	default:
		return false;
	}
}

/* The dialogue's next call is due. Calls that need no other thread follow each other without end if
 * the peer has sent enough; other sessions have their turn between some of them. */
static bool call_plugin(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->calls > 0 && driver_call_here(s)) {
		d->calls--;
		return true;
	}
	if (d->calls == 0 && d->role->prompt != NULL && d->role->prompt(s)) {
		driver_flush(s);
		driver_go_soon(s);
		return false;
	}
	driver_call(s);
	return false;
}

static bool active(struct ndx_session *s)
{
	const struct driver_role *role = s->driver.role;

	if (s->dialogue.next != DIALOGUE_IDLE && role->cancelled != NULL && role->cancelled(s))
		dialogue_fail(&s->dialogue, NDX_LAYER_TRANSPORT, NDX_E_CANCELED, false,
		              "cancelled");
	if (s->driver.many != NULL && s->driver.many->has_stage(s))
		return s->driver.many->step(s);
	switch (s->dialogue.next) {
	case DIALOGUE_IDLE:
		return role->idle(s);
	case DIALOGUE_CALL:
		return call_plugin(s);
	case DIALOGUE_CONNECT:
		if (s->attr.connector != NULL)
			driver_flush(s);
		driver_qp_connect(s);
		return true;
	case DIALOGUE_PROVE:
		driver_flush(s);
		driver_qp_prove(s);
		return true;
	case DIALOGUE_SEND:
		return send_out(s);
	case DIALOGUE_RECEIVE:
		return driver_receive(s);
	case DIALOGUE_FAILED:
		return role->failed(s);
	case DIALOGUE_CLOSED:
	default:
		role->closed(s);
		return false;
	}
}

/* Send the last frame; then wait for the peer to close, until the time-out. */
static bool ending(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->many != NULL && !d->many->flush(s))
		return false;
	if (d->last_length > 0) {
		const enum driver_io io = driver_send(s, d->last_words, d->last_length);

		if (io == IO_WAIT)
			return false;
		d->last_length = 0;
		if (io == IO_DONE && d->last_words[FRAME_TYPE_AT] == FRAME_SESSION_END)
			dialogue_record_word(&s->dialogue, NDX_HISTORY_SENT, FRAME_SESSION_END,
			                     NDX_OK);
		/* of a channel of TLS that has failed, OpenSSL's last words are sent */
		if ((io == IO_DONE || driver_tls_failed(s)) && d->role->drains)
			driver_shut(s);
	}
	if (d->many != NULL && !d->many->stop(s, ending))
		return false;
	if (!d->role->drains || driver_drain(s) == IO_DONE)
		d->role->ended(s);
	return false;
}

void driver_go(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	bool more = true;

	d->reads = READS_AT_ONCE;
	d->calls = CALLS_AT_ONCE;
	d->wanted = 0;
	driver_flush(s); /* what the socket did not take before */
	while (more) {
		const bool cancelled = d->phase == DRIVER_ACTIVE && d->role->cancelled != NULL &&
		                       d->role->cancelled(s);

		/* A cancelled session does not wait until the peer takes what it lacks. */
		if (!cancelled && (!driver_replay_send(s) || !driver_oob_send(s))) {
			driver_oob_receive(
				s); /* the peer's goodbye does not wait for the own one */
			return;
		}
		if (d->many != NULL)
			(void)d->many->flush(s);
		switch (d->phase) {
		case DRIVER_ROLE:
			more = d->role->step(s);
			break;
		case DRIVER_ACTIVE:
			more = active(s);
			break;
		case DRIVER_ENDING:
			more = ending(s);
			break;
		case DRIVER_POOL:
			driver_oob_receive(s);
			more = false;
			break;
		case DRIVER_QP:
			driver_qp_look(s);
			more = false;
			break;
		case DRIVER_ORPHAN:
		case DRIVER_CLOSING:
		default:
			more = false;
		}
	}
}

static void on_go(void *arg)
{
	driver_go(arg);
}

void driver_go_soon(struct ndx_session *s)
{
	ndxp_loop_post(s->driver.engine->loop, &s->driver.go);
}

static void on_event(void *arg, uint32_t events)
{
	struct ndx_session *s = arg;

	s->driver.seen |= events;
	/* Room for a send is no news for a session that has nothing to send. */
	if ((events & ~(uint32_t)EPOLLOUT) == 0 && (s->driver.wanted & EPOLLOUT) == 0)
		return;
	s->driver.drained = false;
	driver_go(s);
}

static void on_timer(void *arg)
{
	struct ndx_session *s = arg;

	if (!driver_qp_on_timer(s))
		s->driver.role->timer(s);
}

void driver_init(struct ndx_session *s, const struct driver_role *role, struct engine *engine)
{
	s->driver = (struct driver){
		.role = role,
		.engine = engine,
		.fd = -1,
		.watch = {.fd = -1, .fn = on_event, .arg = s},
		.timer = {.fn = on_timer, .arg = s},
		.returned = {.fn = on_returned, .arg = s},
		.qp_done = {.fn = on_qp_done, .arg = s},
		.go = {.fn = on_go, .arg = s},
	};
}

void driver_end(struct ndx_session *s, ndxp_loop_fn *then)
{
	struct driver *d = &s->driver;

	driver_set_timer(s, UINT64_MAX);
	driver_detach(s);
	d->phase = DRIVER_CLOSING;
	if (d->many != NULL)
		d->many->close(s);
	driver_oob_close(s);
	/* Nothing posts a job of the session any more. */
	d->last = (struct ndxp_job){.fn = then, .arg = s};
	ndxp_loop_post(d->engine->loop, &d->last);
}

void driver_fini(struct ndx_session *s)
{
	frame_reader_clear(&s->driver.in);
	frame_reader_clear(&s->driver.behind);
	free(s->driver.held);
	replay_clear(&s->driver.replay);
}
