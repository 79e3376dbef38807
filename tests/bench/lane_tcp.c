/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lane over two sockets of TCP, without any library: the kernel's own price of a message. All
 * messages have one length, so the lane has no header. Nothing is promised but that the kernel has
 * taken the bytes when a send ends.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lane.h"

#define SLEEP_MS 5000
#define ROOM_MOST 65536u /* bytes that one recv() may take, if that is more than one message */

struct tcp_end {
	struct end base;
	int fd;
	uint32_t size;
	char *memory; /* what is sent, then what is received */
	/* sends of which the kernel has not yet taken all bytes */
	uint32_t under_way;
	uint32_t gone; /* bytes that the kernel has taken of the first of them */
	char *out;
	unsigned out_turn;
	/* One recv() may take several messages, which lie side by side. */
	uint32_t room; /* bytes, of whole messages */
	uint32_t got;  /* bytes of `room` that have come */
	char *in;
	unsigned in_turn;
};

struct tcp_lane {
	struct lane base;
	struct tcp_end ends[2];
};

static struct tcp_end *of(struct end *end)
{
	return (struct tcp_end *)(void *)end;
}

static void must(const char *call, bool done)
{
	if (!done)
		lane_die(call, strerror(errno));
}

/* Neither a full nor an empty socket is a failure. */
static bool try_later(const char *call)
{
	must(call, errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
	return true;
}

/* The socket's buffer is what is posted. */
static void end_receive(struct end *base)
{
	(void)base;
}

static void push_bytes(struct tcp_end *end)
{
	while (end->under_way > 0) {
		const ssize_t n = send(end->fd, end->out + end->gone, end->size - end->gone,
		                       MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && try_later("tcp: send"))
			return;
		end->gone += (uint32_t)n;
		/* The kernel takes a part only if its buffer is full then. */
		if (end->gone < end->size)
			return;
		end->gone = 0;
		end->out = lane_turn(end->memory, &end->out_turn);
		end->under_way--;
		end->base.sent++;
	}
}

static bool end_send(struct end *base)
{
	struct tcp_end *end = of(base);

	if (end->under_way == LANE_WINDOW)
		return false;
	/* Behind others the message waits for a poll: there was no room for those. */
	if (end->under_way++ == 0)
		push_bytes(end);
	return true;
}

static void pull_bytes(struct tcp_end *end)
{
	const uint32_t before = end->got / end->size;
	const ssize_t n = recv(end->fd, end->in + end->got, end->room - end->got, MSG_DONTWAIT);

	if (n < 0 && try_later("tcp: recv"))
		return;
	if (n == 0)
		lane_die("tcp: recv", "the peer has closed the connection");
	end->got += (uint32_t)n;
	end->base.received += end->got / end->size - before;
	if (end->got == end->room) {
		end->got = 0;
		end->in = lane_turn(end->memory + end->size + LANE_LINE, &end->in_turn);
	}
}

static void end_poll(struct end *base)
{
	push_bytes(of(base));
	pull_bytes(of(base));
}

static void end_wait(struct end *base)
{
	struct tcp_end *end = of(base);
	struct pollfd p = {.fd = end->fd, .events = POLLIN};

	if (end->under_way > 0)
		p.events |= POLLOUT;
	if (poll(&p, 1, SLEEP_MS) == 0)
		lane_die("tcp: nothing came for", "five seconds");
}

static const struct end_ops ops = {
	.receive = end_receive, .send = end_send, .poll = end_poll, .wait = end_wait};

static uint32_t room_for(uint32_t size)
{
	const uint32_t messages = ROOM_MOST / size;

	if (messages <= 1)
		return size;
	return size * (messages < LANE_BATCH ? messages : LANE_BATCH);
}

static void open_end(struct tcp_end *end, const struct lane_attr *attr)
{
	const int on = 1;

	end->base.ops = &ops;
	end->size = attr->size;
	end->room = room_for(attr->size);
	end->memory = lane_memory((size_t)end->size + end->room + 2 * LANE_LINE);
	end->out = end->memory;
	end->in = end->memory + end->size + LANE_LINE;
	must("tcp: TCP_NODELAY",
	     setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
}

/* The kernel connects to a listener before the listener's program accepts, so one thread will do.
 */
static void connect_ends(struct tcp_lane *lane, const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_storage bound;
	const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must("tcp: socket", listener >= 0);
	must("tcp: bind", bind(listener, address, len) == 0);
	must("tcp: listen", listen(listener, 1) == 0);
	len = sizeof(bound);
	must("tcp: getsockname", getsockname(listener, (struct sockaddr *)&bound, &len) == 0);
	lane->ends[0].fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must("tcp: socket", lane->ends[0].fd >= 0);
	must("tcp: connect", connect(lane->ends[0].fd, (struct sockaddr *)&bound, len) == 0);
	lane->ends[1].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	must("tcp: accept", lane->ends[1].fd >= 0);
	(void)close(listener);
}

static void close_lane(struct lane *base)
{
	struct tcp_lane *lane = (struct tcp_lane *)(void *)base;

	for (int i = 0; i < 2; i++) {
		(void)close(lane->ends[i].fd);
		free(lane->ends[i].memory);
	}
	free(lane);
}

struct lane *lane_open_tcp(const struct lane_attr *attr, const struct sockaddr *address,
                           socklen_t len)
{
	struct tcp_lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		lane_die("no memory", "for a connection");
	lane->base.name = "tcp";
	lane->base.close = close_lane;
	connect_ends(lane, address, len);
	for (int i = 0; i < 2; i++) {
		lane->base.ends[i] = &lane->ends[i].base;
		open_end(&lane->ends[i], attr);
	}
	return &lane->base;
}
