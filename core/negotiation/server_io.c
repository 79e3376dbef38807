/* SPDX-License-Identifier: BSD-2-Clause */
/* Non-blocking I/O of a client. Loop thread. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include "server.h"

#define ROOM_KEPT 256u /* of an empty inbox */

bool client_attach(struct client *c, int fd)
{
	c->fd = fd;
	c->sent = 0;
	c->session.inbox_used = 0;
	link_keep_alive(fd);
	c->watch.fd = fd;
	c->watched = ndxp_watch_add(c->server->loop, &c->watch, 0, true) == NDX_OK;
	return c->watched;
}

void client_detach(struct client *c)
{
	if (c->watched)
		ndxp_watch_remove(c->server->loop, &c->watch);
	c->watched = false;
	ndxp_fd_close(c->fd);
	c->fd = -1;
}

static enum client_io wait_for(struct client *c, uint32_t events)
{
	ndxp_watch_rearm(c->server->loop, &c->watch, events);
	return IO_WAIT;
}

static bool make_room(struct client *c, size_t wanted)
{
	uint8_t *grown;

	if (wanted <= c->session.inbox_room)
		return true;
	grown = realloc(c->session.inbox, wanted);
	if (grown == NULL)
		return false;
	c->session.inbox = grown;
	c->session.inbox_room = wanted;
	return true;
}

/* A client that sends faster than the server reads would occupy the thread; the rest wakes it
 * again. */
static bool may_read(struct client *c)
{
	if (c->reads == 0)
		return false;
	c->reads--;
	return true;
}

enum client_io client_read_frame(struct client *c, uint32_t most, struct frame *f, const char **why)
{
	struct ndx_session *s = &c->session;
	size_t used = FRAME_HEADER;

	for (;;) {
		static const uint8_t nothing[1];
		const enum frame_verdict v = frame_parse(s->inbox != NULL ? s->inbox : nothing,
		                                         s->inbox_used, most, f, &used, why);
		ssize_t n;

		if (v == FRAME_WHOLE)
			return IO_DONE;
		if (v == FRAME_BAD)
			return IO_BAD;
		if (!make_room(c, used)) {
			*why = "there is no memory for it";
			return IO_BAD;
		}
		if (!may_read(c))
			return wait_for(c, EPOLLIN);
		n = recv(c->fd, s->inbox + s->inbox_used, used - s->inbox_used, 0);
		if (n > 0)
			s->inbox_used += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return wait_for(c, EPOLLIN);
		else if (n == 0 || errno != EINTR)
			return IO_LOST;
	}
}

void client_consume(struct client *c)
{
	struct ndx_session *s = &c->session;

	s->inbox_used = 0;
	if (s->inbox_room <= ROOM_KEPT)
		return;
	free(s->inbox);
	s->inbox = NULL;
	s->inbox_room = 0;
}

enum client_io client_peek(struct client *c, uint8_t header[FRAME_HEADER])
{
	ssize_t n;

	if (!may_read(c))
		return wait_for(c, EPOLLIN);
	do
		n = recv(c->fd, header, FRAME_HEADER, MSG_PEEK);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return wait_for(c, EPOLLIN);
	if (n <= 0)
		return IO_LOST;
	return n == (ssize_t)FRAME_HEADER ? IO_DONE : IO_BAD;
}

enum client_io client_send(struct client *c, const uint8_t *bytes, size_t length)
{
	while (c->sent < length) {
		const ssize_t n = send(c->fd, bytes + c->sent, length - c->sent, MSG_NOSIGNAL);

		if (n >= 0)
			c->sent += (size_t)n;
		else if (errno == EAGAIN)
			return wait_for(c, EPOLLOUT);
		else if (errno != EINTR)
			return IO_LOST;
	}
	c->sent = 0;
	return IO_DONE;
}

enum client_io client_drain(struct client *c)
{
	uint8_t rest[1024];

	while (may_read(c)) {
		const ssize_t n = recv(c->fd, rest, sizeof(rest), 0);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return IO_DONE;
		if (n < 0 && errno == EAGAIN)
			break;
	}
	return wait_for(c, EPOLLIN);
}
