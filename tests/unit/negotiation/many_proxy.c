/* SPDX-License-Identifier: BSD-2-Clause */
#include "many_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/byteorder.h>

static uint32_t length_of(const struct proxy_stream *s)
{
	return s->have < FRAME_HEADER ? FRAME_HEADER : FRAME_HEADER + ndxp_get_be32(s->header + 16);
}

/* One more byte has come. True: the frame has ended. */
static bool take_byte(struct proxy_stream *s, uint8_t byte)
{
	if (s->have < FRAME_HEADER)
		s->header[s->have] = byte;
	s->have++;
	if (s->have < FRAME_HEADER || s->have < length_of(s))
		return false;
	if (s->frames < PROXY_FRAMES)
		s->seen[s->frames] = (uint16_t)(s->header[5] * 256 + s->header[6]);
	s->frames++;
	s->have = 0;
	return true;
}

/* How many of these bytes get through. */
static size_t pass(struct proxy *x, enum proxy_direction d, const uint8_t *bytes, size_t length)
{
	struct proxy_stream *s = &x->streams[d];

	if (!__atomic_load_n(&x->armed, __ATOMIC_ACQUIRE))
		return length;
	for (size_t i = 0; i < length; i++) {
		/* a frame may have no more bytes than get through */
		if (d == x->direction &&
		    (s->frames > x->nth || (s->frames == x->nth && s->have >= x->part)))
			return i;
		(void)take_byte(s, bytes[i]);
	}
	return length;
}

/* False: the end, or the cut. */
static bool carry(struct proxy *x, enum proxy_direction d, int from, int to)
{
	uint8_t bytes[4096];
	const ssize_t n = recv(from, bytes, sizeof(bytes), 0);
	size_t passes;

	if (n <= 0)
		return false;
	passes = pass(x, d, bytes, (size_t)n);
	if (passes > 0)
		(void)send(to, bytes, passes, MSG_NOSIGNAL);
	if (passes == (size_t)n)
		return true;
	__atomic_store_n(&x->cut, true, __ATOMIC_RELEASE);
	return false;
}

static int reach(const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	const int on = 1;

	at.sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void hang_up(const struct proxy *x, int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	if (x->cut && x->reset)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	(void)close(fd);
}

static void serve(struct proxy *x, int client)
{
	struct pollfd fds[3] = {{.fd = client, .events = POLLIN},
	                        {.fd = reach(x->server), .events = POLLIN},
	                        {.fd = x->to[0], .events = POLLIN}};
	const int on = 1;
	bool more = true;

	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (more && poll(fds, 3, -1) > 0 && fds[2].revents == 0) {
		if (fds[0].revents != 0)
			more = carry(x, PROXY_TO_SERVER, fds[0].fd, fds[1].fd);
		if (more && fds[1].revents != 0)
			more = carry(x, PROXY_TO_CLIENT, fds[1].fd, fds[0].fd);
	}
	hang_up(x, fds[0].fd);
	hang_up(x, fds[1].fd);
}

static void *proxy_main(void *arg)
{
	struct proxy *x = arg;
	struct pollfd fds[2] = {{.fd = x->listener, .events = POLLIN},
	                        {.fd = x->to[0], .events = POLLIN}};

	while (poll(fds, 2, -1) > 0 && fds[1].revents == 0)
		serve(x, accept(x->listener, NULL, NULL));
	return NULL;
}

void proxy_start(struct proxy *x, struct rig *r)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);

	memcpy(x->server, r->address, sizeof(x->server));
	x->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(x->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(x->listener, 8), 0);
	assert_int_equal(getsockname(x->listener, (struct sockaddr *)&at, &length), 0);
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pipe(x->to), 0);
	assert_int_equal(pthread_create(&x->thread, NULL, proxy_main, x), 0);
}

void proxy_arm(struct proxy *x, bool on)
{
	__atomic_store_n(&x->armed, on, __ATOMIC_RELEASE);
}

void proxy_stop(struct proxy *x)
{
	(void)close(x->to[1]);
	assert_int_equal(pthread_join(x->thread, NULL), 0);
	(void)close(x->to[0]);
	(void)close(x->listener);
}
