/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair of a session in stage validate: it connects, then proves its path. Loop thread. */
#include <stdio.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "connection.h"
#include "proof.h"
#include "session.h"

#define PROOF_MS 3000u
#define AGAIN_LEAST_MS 100u

/* On the adapter's control thread. */
static void on_qp_callback(struct ndx_overlapped *ov)
{
	struct ndx_session *s = ov->context;

	ndxp_loop_post(s->driver.engine->loop, &s->driver.qp_done);
}

/* Whether connecting itself proves the path: then both ends stop half-way through the time that is
 * left for the stage, to tell each other what has arrived. */
static bool connecting_proves(struct ndx_session *s)
{
	return s->dialogue.own.kind == NDX_DESCRIPTION_RENDEZVOUS && !s->dialogue.no_proof &&
	       conn_can_prove(s->attr.connector);
}

/* Both ends connect from now on. */
static void begin_half_time(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const uint64_t now = ndxp_now_ns();

	if (!d->half || d->halving)
		return;
	d->halving = true;
	d->whole_ns = d->deadline_ns;
	d->half_ns = d->whole_ns;
	if (d->whole_ns != UINT64_MAX && d->whole_ns > now)
		d->half_ns = now + (d->whole_ns - now) / 2;
	driver_set_timer(s, d->half_ns);
}

void driver_qp_go_on(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->connecting && d->halving)
		driver_set_timer(s, d->half_ns);
}

void driver_qp_connect(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const bool half = s->attr.connector != NULL && connecting_proves(s);
	char text[DESCRIBE_CAUSE + 64];
	enum ndx_status st;

	if (half && !s->dialogue.announced) {
		dialogue_announce(&s->dialogue);
		return;
	}
	d->given_up = false;
	d->half = half;
	d->halving = false;
	st = driver_oob_open(s);
	if (st == NDX_OK && s->attr.connector != NULL) {
		d->ov = (struct ndx_overlapped){.callback = on_qp_callback, .context = s};
		st = ndx_connector_connect_peer(s->attr.connector, &s->dialogue.peer, &d->ov);
	}
	if (st == NDX_PENDING) {
		d->connecting = true;
		d->phase = DRIVER_QP;
		return;
	}
	d->half = false;
	(void)snprintf(text, sizeof(text), "the queue pair cannot be connected: %.127s",
	               ndx_last_error());
	dialogue_connected(&s->dialogue, st, text);
}

static void give_up(struct ndx_session *s)
{
	if (s->driver.given_up)
		return;
	s->driver.given_up = true;
	conn_cancel_attempt(s->attr.connector);
}

bool driver_qp_on_timer(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->phase != DRIVER_QP || !d->halving)
		return false;
	give_up(s);
	return true;
}

/* The transport is lost while the queue pair connects, which goes on. False: it cannot be replaced.
 */
static bool replace_transport(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const bool cancelled = d->role->cancelled != NULL && d->role->cancelled(s);

	if (cancelled || d->over || d->io_status != NDX_E_CONNECTION_ABORTED ||
	    !driver_can_resume(s))
		return false;
	d->proof_cut = d->proving;
	if (d->role->lost(s))
		ndxp_loop_post(d->engine->loop, &d->go);
	return true;
}

/* The connection's goodbyes use the transport: nothing that comes is handled, but a transport that
 * is lost has to be replaced in time. */
static void look_for_loss(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	struct frame f;
	const char *why;
	enum driver_io io;

	if (!d->replay.on || d->fd < 0)
		return;
	io = driver_read_frame(s, s->dialogue.limits.max_message, &f, &why);
	if (io == IO_DONE)
		io = driver_read_behind(s, &f);
	if (io == IO_LOST)
		(void)replace_transport(s);
}

/* Whether the peer's frame ends the attempt. */
static bool is_last_word(struct ndx_session *s, const struct frame *f)
{
	const struct driver *d = &s->driver;
	struct frame behind;

	if (f->type == FRAME_ERROR || (d->half && f->type == FRAME_PROOF))
		return true;
	/* a frame that waits for the queue pair: has the peer gone since? */
	return driver_read_behind(s, &behind) == IO_LOST && !replace_transport(s);
}

/* What the peer's frame, or the lack of it, means for the proof. IO_WAIT: nothing. IO_LOST: the
 * peer is gone. Else the peer has no verdict. Its own proof waits for that of this end. */
static enum driver_io look_at_word(struct ndx_session *s, enum driver_io io, const struct frame *f)
{
	struct frame behind;

	if (io != IO_DONE || f->type != FRAME_PROOF)
		return io;
	return driver_read_behind(s, &behind) == IO_LOST ? IO_LOST : IO_WAIT;
}

/* While the path is being proved. Goodbyes belong to the connection, and heartbeats to nothing. */
static void look_while_proving(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const char *why;
	struct frame f;

	while (driver_is_open(s) && d->stream == NULL && !d->peer_left) {
		enum driver_io io = driver_read_frame(s, s->dialogue.limits.max_message, &f, &why);

		if (io == IO_DONE && driver_oob_handle(s, &f))
			continue;
		if (io == IO_DONE && f.type == FRAME_ALIVE) {
			driver_consume(s);
			continue;
		}
		io = look_at_word(s, io, &f);
		if (io == IO_WAIT || (io == IO_LOST && replace_transport(s)))
			return;
		d->peer_left = true;
		conn_cancel_attempt(s->attr.connector);
		return; /* the session may have ended in that call */
	}
}

void driver_qp_look(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	struct frame f;
	const char *why;

	if (s->many != NULL)
		return; /* its lanes connect */
	if (d->proving) {
		look_while_proving(s);
		return;
	}
	if (d->oob != NULL) {
		look_for_loss(s);
		return;
	}
	while (driver_is_open(s)) {
		switch (driver_read_frame(s, s->dialogue.limits.max_message, &f, &why)) {
		case IO_DONE:
			if (f.type == FRAME_ALIVE) {
				dialogue_receive(&s->dialogue, &f, ndxp_now_ns());
				driver_consume(s);
				if (s->dialogue.peer_connects)
					begin_half_time(s);
				continue;
			}
			if (is_last_word(s, &f))
				give_up(s);
			return;
		case IO_LOST:
			if (!replace_transport(s))
				give_up(s);
			return;
		case IO_BAD:
			give_up(s);
			return;
		case IO_WAIT:
		default:
			return;
		}
	}
}

/* The peer gave up first, so that this end did: the peer's word, or its silence, is the outcome. */
static bool take_last_word(struct ndx_session *s)
{
	struct frame f;
	bool more;

	if (driver_take_frame(s, &f, &more)) {
		dialogue_receive(&s->dialogue, &f, ndxp_now_ns());
		driver_consume(s);
		more = true;
	}
	if (s->driver.phase == DRIVER_ACTIVE && s->dialogue.next == DIALOGUE_CONNECT)
		dialogue_connected(&s->dialogue, NDX_E_CONNECTION_ABORTED, "the peer gave up");
	return more;
}

/* Both ends have to tell each other the outcome before the time for the stage is over. */
static uint32_t proof_ms(const struct driver *d)
{
	const uint64_t left =
		d->deadline_ns == UINT64_MAX ? UINT64_MAX : ndxp_ms_until(d->deadline_ns);

	return left / 2 < PROOF_MS ? (uint32_t)(left / 2) : PROOF_MS;
}

/* The number that the end with the first PSN `from` writes to the end with the first PSN `to`, both
 * as they were described, so that both ends know the number and no other peer does. */
static uint64_t secret_number(uint32_t from, uint32_t to)
{
	return UINT64_C(1) << 63 | (uint64_t)to << 24 | from;
}

void driver_qp_prove(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const uint32_t own = s->dialogue.own.psn;
	const uint32_t peer = s->dialogue.peer.psn;
	char text[DESCRIBE_CAUSE + 64];
	enum ndx_status st;

	d->ov = (struct ndx_overlapped){.callback = on_qp_callback, .context = s};
	d->peer_left = false;
	st = conn_prove(s->attr.connector, secret_number(own, peer), secret_number(peer, own),
	                proof_ms(d), &d->ov);
	if (st == NDX_PENDING) {
		d->proving = true;
		d->connecting = true;
		d->phase = DRIVER_QP;
		return;
	}
	(void)snprintf(text, sizeof(text), "the path cannot be proved: %.127s", ndx_last_error());
	dialogue_proved(&s->dialogue, st, NULL, text);
}

/* The transport was lost during the proof, so that the peer may begin its own one so much later:
 * look again. */
static bool begin_again(struct ndx_session *s, const struct frame_proof *found)
{
	struct driver *d = &s->driver;

	if (!d->proof_cut || found->denied || found->seen >= NDX_PROVED_WHOLE ||
	    proof_ms(d) < AGAIN_LEAST_MS)
		return false;
	d->proof_cut = d->fd < 0;
	driver_qp_prove(s);
	return true;
}

/* The peer's word, or its silence, is the outcome: see look_while_proving(). */
static bool end_left_proof(struct ndx_session *s)
{
	struct frame f;
	bool more;

	if (!driver_take_frame(s, &f, &more))
		return more;
	if (f.type == FRAME_PROOF) /* behind which the transport was lost */
		return s->driver.role->lost(s);
	dialogue_receive(&s->dialogue, &f, ndxp_now_ns());
	driver_consume(s);
	if (s->dialogue.next == DIALOGUE_PROVE)
		dialogue_proved(&s->dialogue, NDX_E_CONNECTION_ABORTED, NULL, "the peer gave up");
	return true;
}

const char *driver_qp_late(const struct ndx_session *s, const char *text, char out[DRIVER_LATE])
{
	const struct dialogue *x = &s->dialogue;
	char found[PROOF_TEXT];

	if (!x->proving || !x->own_completed || x->next != DIALOGUE_RECEIVE)
		return text;
	proof_describe(&x->proof, found);
	(void)snprintf(out, DRIVER_LATE, "%.110s; no proof of the path; this end: %.110s", text,
	               found);
	return out;
}

/* Of a queue pair whose time is over. */
static enum ndx_status status_over(const struct driver *d)
{
	return d->stopped ? NDX_E_CANCELED : NDX_E_IO_TIMEOUT;
}

static const char *text_cancelled(const struct driver *d)
{
	return d->stopped ? "the server ends" : "cancelled";
}

static bool on_proof_done(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const enum ndx_status st = d->over ? status_over(d) : d->ov.status;
	const struct frame_proof proof = {
		.written = CONN_PROOF_WRITTEN(d->ov.information),
		.seen = CONN_PROOF_SEEN(d->ov.information),
		.denied = (d->ov.information & CONN_PROOF_DENIED) != 0,
	};

	d->proving = false;
	if (d->peer_left && !d->over && st == NDX_E_CANCELED)
		return end_left_proof(s);
	if (st == NDX_OK && begin_again(s, &proof))
		return true;
	if (d->given_up && st == NDX_OK) {
		dialogue_unconnected(&s->dialogue, &proof);
		return true;
	}
	dialogue_proved(&s->dialogue, st, &proof,
	                st == NDX_E_CANCELED ? text_cancelled(d)
	                                     : "the path was not proved in time");
	return true;
}

/* True: the path may be the cause of the failure. */
static bool end_half_time(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (!d->half)
		return false;
	d->half = false;
	if (d->halving)
		driver_set_timer(s, d->whole_ns);
	d->halving = false;
	if (d->over || (d->ov.status == NDX_E_CANCELED && !d->given_up))
		return false;
	d->given_up = d->ov.status == NDX_E_CANCELED || d->ov.status == NDX_E_IO_TIMEOUT ||
	              d->ov.status == NDX_E_HOST_UNREACHABLE ||
	              d->ov.status == NDX_E_NETWORK_UNREACHABLE ||
	              d->ov.status == NDX_E_CONNECTION_ABORTED;
	return d->given_up;
}

bool driver_qp_done(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const bool takes = d->role->takes_late && d->ov.status != NDX_E_CANCELED;
	const enum ndx_status st = d->over && !takes ? status_over(d) : d->ov.status;
	char text[DESCRIBE_CAUSE + 64];
	char cause[DESCRIBE_CAUSE];

	if (d->proving)
		return on_proof_done(s);
	if (end_half_time(s)) {
		driver_qp_prove(s);
		return true;
	}
	if (d->given_up && d->ov.status == NDX_E_CANCELED && !d->over)
		return take_last_word(s);
	d->given_up = false;
	s->dialogue.can_prove = conn_can_prove(s->attr.connector);
	if (st == NDX_E_IO_TIMEOUT)
		(void)snprintf(text, sizeof(text), "%s", d->role->late);
	else if (st == NDX_E_CANCELED)
		(void)snprintf(text, sizeof(text), "%s", text_cancelled(d));
	else
		(void)snprintf(text, sizeof(text), "the queue pair cannot be connected: %s",
		               describe_cause(s->attr.connector, cause));
	dialogue_connected(&s->dialogue, st, text);
	return !(d->over && takes) || d->role->returned(s);
}
