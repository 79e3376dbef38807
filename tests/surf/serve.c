/* SPDX-License-Identifier: BSD-2-Clause */
/* Register accesses as they come. */
#include "serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "srp.h"

#define STATUS_NO_SUCH_REGISTER 0x3u

int serve_listen(uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_port = htons(*port),
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 8) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &length) != 0) {
		(void)close(fd);
		return -1;
	}
	*port = ntohs(at.sin_port);
	return fd;
}

/* False: it is to stop. */
static bool wait_for(int fd, int stop_fd)
{
	struct pollfd set[2] = {{.fd = fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};

	while (poll(set, 2, -1) < 0 && errno == EINTR)
		;
	return set[1].revents == 0;
}

static bool get_bytes(int fd, int stop_fd, uint8_t *bytes, size_t length, bool *stopped)
{
	while (length > 0) {
		ssize_t n;

		*stopped = !wait_for(fd, stop_fd);
		if (*stopped)
			return false;
		n = recv(fd, bytes, length, 0);
		if (n <= 0)
			return false;
		bytes += n;
		length -= (size_t)n;
	}
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void serve_in_turn(void)
{
	static unsigned turns;

	(void)__atomic_add_fetch(&turns, 1, __ATOMIC_ACQ_REL);
}

static bool answer(int fd, struct surf_fpga *fpga, const struct srp_request *request)
{
	uint8_t bytes[SRP_RESPONSE_BYTES];
	uint32_t value = request->value;
	enum ndx_status st;

	serve_in_turn();
	fpga->now = now_ms();
	if (request->write)
		st = surf_fpga_ops.write32(fpga, request->address, value);
	else
		st = surf_fpga_ops.read32(fpga, request->address, &value);
	serve_in_turn();
	if (st == NDX_E_IO_TIMEOUT)
		return true; /* not a word */
	srp_response_write(bytes, request, value, st == NDX_OK ? 0 : STATUS_NO_SUCH_REGISTER);
	if (st == NDX_E_CONNECTION_ABORTED) /* out of step */
		memset(bytes, 0xa5, sizeof(bytes));
	return send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == (ssize_t)sizeof(bytes);
}

static bool serve_one(int fd, int stop_fd, struct surf_fpga *fpga, bool *stopped)
{
	uint8_t bytes[SRP_WRITE_BYTES];
	struct srp_request request;
	size_t length;

	if (!get_bytes(fd, stop_fd, bytes, SRP_READ_BYTES, stopped))
		return false;
	length = srp_request_length(bytes);
	if (length == 0 ||
	    !get_bytes(fd, stop_fd, bytes + SRP_READ_BYTES, length - SRP_READ_BYTES, stopped))
		return false;
	srp_request_parse(bytes, &request);
	return answer(fd, fpga, &request);
}

bool serve_client(int listener, int stop_fd, struct surf_fpga *fpga)
{
	const int on = 1;
	bool stopped = !wait_for(listener, stop_fd);
	int fd;

	if (stopped)
		return false;
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		return true;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	serve_in_turn();
	__atomic_store_n(&fpga->requests, 0, __ATOMIC_RELAXED);
	fpga->lost = 0;
	fpga->resets = 0;
	fpga->writes = 0;
	memset(fpga->asked, 0, sizeof(fpga->asked));
	serve_in_turn();
	while (serve_one(fd, stop_fd, fpga, &stopped))
		;
	(void)close(fd);
	return !stopped;
}

static void *serving_main(void *arg)
{
	struct serving *s = arg;

	(void)serve_client(s->listener, s->stop_fd, &s->fpga);
	return NULL;
}

bool serving_begin(struct serving *s)
{
	uint16_t port = 0;

	memset(s, 0, sizeof(*s));
	s->listener = serve_listen(&port);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	(void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", port);
	s->serves = s->listener >= 0 && s->stop_fd >= 0 &&
	            pthread_create(&s->thread, NULL, serving_main, s) == 0;
	return s->serves;
}

void serving_end(struct serving *s)
{
	const uint64_t one = 1;

	if (!s->serves)
		return;
	if (write(s->stop_fd, &one, sizeof(one)) < 0)
		return;
	(void)pthread_join(s->thread, NULL);
	(void)close(s->listener);
	(void)close(s->stop_fd);
	s->serves = false;
}
