/* SPDX-License-Identifier: BSD-2-Clause */
/* Non-blocking I/O of a session. Loop thread. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "base_socket.h"
#include "session.h"

/* Each change of the socket is one event, so that nothing has to be armed for the next one. Until
 * an event comes, a read that has emptied the socket, and a send that has filled it, need not be
 * tried again. */
#define CHANGES (EPOLLIN | EPOLLOUT | EPOLLRDHUP | (uint32_t)EPOLLET)
#define ENDS ((uint32_t)EPOLLRDHUP | EPOLLHUP | EPOLLERR)

bool driver_attach(struct ndx_session *s, int fd)
{
	struct driver *d = &s->driver;

	d->fd = fd;
	d->sent = 0;
	d->blocked_ns = 0;
	d->wanted = 0;
	d->seen = 0;
	d->ahead_at = 0;
	d->ahead_end = 0;
	d->drained = false;
	d->unsent = false;
	frame_reader_consume(&d->in);
	frame_reader_consume(&d->behind);
	link_keep_alive(fd);
	d->watch.fd = fd;
	d->watched = ndxp_watch_add(d->engine->loop, &d->watch, CHANGES, false) == NDX_OK;
	return d->watched;
}

void driver_take_ahead(struct ndx_session *s, const struct driver *from)
{
	struct driver *d = &s->driver;

	memcpy(d->ahead, from->ahead, sizeof(d->ahead));
	d->ahead_at = from->ahead_at;
	d->ahead_end = from->ahead_end;
}

static void drop_held(struct driver *d)
{
	free(d->held);
	d->held = NULL;
	d->held_length = 0;
	d->held_sent = 0;
}

void driver_detach(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	/* History and replay count them as sent; a wait for room would have no end. */
	driver_flush(s);
	drop_held(d);
	if (d->watched)
		ndxp_watch_remove(d->engine->loop, &d->watch);
	d->watched = false;
	tls_end(d->tls);
	d->tls = NULL;
	d->secured = false;
	ndxp_fd_close(d->fd);
	d->fd = -1;
	if (d->relay != NULL)
		relay_leave(d->relay);
	d->relay = NULL;
}

static enum driver_io wait_for(struct driver *d, uint32_t events)
{
	d->wanted |= events;
	return IO_WAIT;
}

/* The socket has nothing, or takes nothing. TLS may have to send before it can receive. */
static enum driver_io wait_for_socket(struct driver *d, uint32_t events)
{
	return wait_for(d, d->tls != NULL ? tls_events(d->tls) : events);
}

enum driver_io driver_wait(struct ndx_session *s, uint32_t events)
{
	return wait_for(&s->driver, events);
}

static enum driver_io lose(struct driver *d, enum ndx_status st)
{
	d->io_errno = errno;
	d->io_status = st;
	(void)snprintf(d->io_text, sizeof(d->io_text), "%s", d->tls != NULL ? tls_why(d->tls) : "");
	if (d->relay != NULL)
		(void)relay_why(d->relay, &d->io_status, d->io_text, sizeof(d->io_text));
	driver_note_tls_lost(d, st);
	return IO_LOST;
}

/* A peer that sends faster than this side reads would occupy the thread: others have their turn
 * before the rest is read. */
static bool may_read(struct driver *d)
{
	if (d->reads == 0)
		return false;
	d->reads--;
	return true;
}

/* A read that did not fill the room has emptied the socket, unless the peer's end, which came with
 * the same event, is behind. What comes later is another event. */
static enum ndx_status receive_once(struct driver *d, void *data, size_t room, size_t *got)
{
	enum ndx_status st;

	if (d->drained)
		return NDX_PENDING;
	st = base_socket_receive(d->fd, data, room, got);
	d->drained = st == NDX_PENDING || (st == NDX_OK && *got < room && (d->seen & ENDS) == 0);
	return st;
}

static enum ndx_status receive_ahead(struct driver *d, void *data, size_t room, size_t *got)
{
	if (d->ahead_at == d->ahead_end) {
		size_t n = 0;
		enum ndx_status st;

		if (room >= sizeof(d->ahead))
			return receive_once(d, data, room, got);
		st = receive_once(d, d->ahead, sizeof(d->ahead), &n);
		if (st != NDX_OK)
			return st;
		d->ahead_at = 0;
		d->ahead_end = (uint16_t)n;
	}
	*got = (size_t)d->ahead_end - d->ahead_at;
	if (*got > room)
		*got = room;
	memcpy(data, d->ahead + d->ahead_at, *got);
	d->ahead_at = (uint16_t)(d->ahead_at + *got);
	return NDX_OK;
}

/* No event comes for bytes that this thread has left in the socket, or has read already. */
static enum ndx_status read_later(struct driver *d)
{
	ndxp_loop_post(d->engine->loop, &d->go);
	return NDX_PENDING;
}

static enum ndx_status receive_now(void *arg, void *data, size_t room, size_t *got)
{
	struct driver *d = arg;
	enum ndx_status st;

	if (!may_read(d))
		return read_later(d);
	if (d->tls == NULL)
		return receive_ahead(d, data, room, got);
	st = tls_receive(d->tls, data, room, got);
	driver_note_tls(d);
	return st == NDX_PENDING && tls_has_left(d->tls) ? read_later(d) : st;
}

/* A send has failed, and there is nothing to read, or other sessions have their turn first. Nothing
 * is to be waited for, whether or not the socket can still be read. */
static enum driver_io say_unsent(struct driver *d)
{
	if (d->reads > 0 && (d->tls == NULL || !tls_has_left(d->tls)))
		return IO_LOST;
	(void)read_later(d);
	return IO_WAIT;
}

static enum driver_io read_into(struct ndx_session *s, struct frame_reader *r, uint32_t most,
                                struct frame *f, const char **why)
{
	struct driver *d = &s->driver;
	enum ndx_status st;

	for (;;) {
		switch (frame_read(r, most, receive_now, d, f, &st, why)) {
		case FRAME_WHOLE:
			return IO_DONE;
		case FRAME_MORE:
			break;
		case FRAME_BAD:
		default:
			return IO_BAD;
		}
		if (st != NDX_PENDING)
			return lose(d, st); /* before a send changes errno */
		if (d->unsent)
			return say_unsent(d);
		driver_flush(s);
		if (!d->unsent)
			return wait_for_socket(d, EPOLLIN);
	}
}

const char *driver_io_text(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->io_text[0] != '\0')
		return d->io_text;
	(void)fail(d->io_status, d->io_errno, "%s",
	           d->io_errno == 0 ? "the server closed the transport"
	                            : "the transport to the server is lost");
	return ndx_last_error();
}

/* ---- the stream of a device's plugin ---- */

static enum ndx_status receive_slowly(void *arg, void *data, size_t room, size_t *got)
{
	struct driver *d = arg;

	return link_receive(d->stream, data, room, got, d->deadline_ns);
}

static enum ndx_status read_slowly(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	enum ndx_status st = NDX_OK;

	d->io_verdict = frame_read(&d->in, (uint32_t)d->io_length, receive_slowly, d, &d->io_frame,
	                           &st, &d->io_why);
	return d->io_verdict == FRAME_MORE ? st : NDX_OK;
}

static enum ndx_status send_slowly(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	return link_send(d->stream, d->io_bytes, d->io_length, d->deadline_ns);
}

static enum driver_io read_stream(struct ndx_session *s, uint32_t most, struct frame *f,
                                  const char **why)
{
	struct driver *d = &s->driver;
	enum driver_io io;

	d->io_length = most;
	io = driver_block(s, read_slowly);
	if (io != IO_DONE)
		return io;
	/* Not parsed again: a lack of memory is over by now, and then the frame is incomplete. */
	*f = d->io_frame;
	*why = d->io_why;
	return d->io_verdict == FRAME_WHOLE ? IO_DONE : IO_BAD;
}

/* ---- either ---- */

/* Whether the frame is of one of several queue pairs, for its own dialogue. */
static bool is_of_lane(const struct ndx_session *s, const struct frame *f)
{
	return f->numbered && f->type != FRAME_HELLO && (f->type != FRAME_ERROR || s->many == NULL);
}

enum driver_io driver_read_frame(struct ndx_session *s, uint32_t most, struct frame *f,
                                 const char **why)
{
	const struct driver_many *many = s->driver.many;
	enum driver_io io;

	if (s->driver.lane != NULL)
		return many->read(s, f);
	while (many == NULL || !many->is_full(s)) {
		io = s->driver.stream != NULL ? read_stream(s, most, f, why)
		                              : read_into(s, &s->driver.in, most, f, why);
		if (io == IO_DONE && many != NULL && !many->has_place(s, f, why))
			return IO_BAD;
		if (io != IO_DONE || !is_of_lane(s, f))
			return io;
		if (many == NULL) {
			*why = "a frame of one of several queue pairs; the session has one";
			return IO_BAD;
		}
		if (!many->take(s, f, why))
			return IO_BAD;
		driver_consume(s);
	}
	return IO_WAIT;
}

bool driver_is_open(const struct ndx_session *s)
{
	return s->driver.lane != NULL ? s->driver.many->is_open(s) : s->driver.fd >= 0;
}

enum driver_io driver_read_behind(struct ndx_session *s, struct frame *f)
{
	const char *why;

	if (s->driver.lane != NULL)
		return s->driver.many->read_behind(s, f);
	return read_into(s, &s->driver.behind, 0, f, &why);
}

void driver_consume_behind(struct ndx_session *s)
{
	if (s->driver.lane != NULL) {
		s->driver.many->consume_behind(s);
		return;
	}
	replay_received(&s->driver.replay, &s->driver.behind);
	frame_reader_consume(&s->driver.behind);
}

void driver_consume(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->lane != NULL) {
		d->many->consume(s);
		return;
	}
	replay_received(&d->replay, &d->in);
	frame_reader_consume(&d->in);
	if (d->behind.used == 0)
		return;
	frame_reader_clear(&d->in);
	d->in = d->behind;
	d->behind = (struct frame_reader){0};
}

static enum driver_io send_now(struct ndx_session *s, const uint8_t *bytes, size_t length,
                               size_t *sent)
{
	struct driver *d = &s->driver;
	enum ndx_status st;

	if (d->tls == NULL) {
		st = base_socket_send(d->fd, bytes, length, sent);
	} else {
		st = tls_send(d->tls, bytes, length, sent);
		driver_note_tls(d);
		if (st == NDX_PENDING && tls_has_left(d->tls))
			(void)read_later(d);
	}
	if (st == NDX_PENDING) {
		if (d->blocked_ns == 0)
			d->blocked_ns = ndxp_now_ns();
		return wait_for_socket(d, EPOLLOUT);
	}
	d->blocked_ns = 0;
	if (st != NDX_OK) {
		d->unsent = true;
		d->drained = false; /* what the peer has said before is in the socket */
		return lose(d, st);
	}
	*sent = 0;
	return IO_DONE;
}

static enum driver_io send_held(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	enum driver_io io;

	if (d->held_length == 0)
		return IO_DONE;
	io = send_now(s, d->held, d->held_length, &d->held_sent);
	if (io != IO_WAIT)
		drop_held(d);
	return io;
}

void driver_flush(struct ndx_session *s)
{
	(void)send_held(s);
}

enum driver_io driver_send_from(struct ndx_session *s, const uint8_t *bytes, size_t length,
                                size_t *sent)
{
	const enum driver_io io = send_held(s);

	return io == IO_DONE ? send_now(s, bytes, length, sent) : io;
}

enum driver_io driver_send_soon(struct ndx_session *s, const uint8_t *bytes, size_t length)
{
	struct driver *d = &s->driver;

	/* Neither among the bytes of another frame, nor behind frames that the socket refuses. */
	if (d->lane != NULL || d->stream != NULL || d->sent != 0 || d->held_sent != 0 ||
	    d->blocked_ns != 0 || length > DRIVER_HELD - d->held_length)
		return driver_send(s, bytes, length);
	if (d->held == NULL)
		d->held = malloc(DRIVER_HELD);
	if (d->held == NULL)
		return driver_send(s, bytes, length);
	memcpy(d->held + d->held_length, bytes, length);
	d->held_length += length;
	return IO_DONE;
}

enum driver_io driver_send(struct ndx_session *s, const uint8_t *bytes, size_t length)
{
	struct driver *d = &s->driver;

	if (d->lane != NULL)
		return d->many->send(s, bytes, length);
	if (d->stream == NULL)
		return driver_send_from(s, bytes, length, &d->sent);
	d->io_bytes = bytes;
	d->io_length = length;
	return driver_block(s, send_slowly);
}

void driver_shut(struct ndx_session *s)
{
	if (s->driver.tls != NULL)
		tls_shut(s->driver.tls);
	(void)shutdown(s->driver.fd, SHUT_WR);
}

static enum ndx_status discard_now(struct driver *d)
{
	uint8_t rest[1024];
	size_t got;

	if (d->tls == NULL || !tls_has_failed(d->tls))
		return receive_now(d, rest, sizeof(rest), &got);
	return may_read(d) ? tls_discard(d->tls, rest, sizeof(rest), &got) : read_later(d);
}

enum driver_io driver_drain(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	enum ndx_status st = NDX_OK;

	while (st == NDX_OK)
		st = discard_now(d);
	return st == NDX_PENDING ? wait_for_socket(d, EPOLLIN) : IO_DONE;
}

void driver_set_timer(struct ndx_session *s, uint64_t deadline_ns)
{
	struct driver *d = &s->driver;

	d->deadline_ns = deadline_ns;
	if (deadline_ns == UINT64_MAX) /* no limit */
		ndxp_timer_cancel(d->engine->loop, &d->timer);
	else
		ndxp_timer_set(d->engine->loop, &d->timer, ndxp_ms_until(deadline_ns));
}

bool driver_take_frame(struct ndx_session *s, struct frame *f, bool *more)
{
	const char *why = NULL;

	*more = false;
	switch (driver_read_frame(s, s->dialogue.limits.max_message, f, &why)) {
	case IO_DONE:
		return true;
	case IO_LOST:
		*more = s->driver.role->lost(s);
		return false;
	case IO_BAD:
		*more = s->driver.role->bad(s, why);
		return false;
	case IO_WAIT:
	default:
		return false;
	}
}
