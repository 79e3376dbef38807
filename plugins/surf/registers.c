/* SPDX-License-Identifier: BSD-2-Clause */
/* Register accesses over TCP, with time limits. */
#include "registers.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "srp.h"

/* A register answers within microseconds; a longer time means trouble in the network. */
#define ACCESS_MS 2000u
#define HOST_MAX 256u

struct surf_registers {
	int fd;
	int cancel_fds[2]; /* a pipe: a byte in it means cancelled */
	bool limited;      /* the deadline and cancel apply */
	uint64_t deadline;
	uint32_t last_id;
	bool broken;     /* half a message may be in the stream, so no other can follow */
	char cause[128]; /* why the last access failed */
};

static uint64_t now_ms(void *state)
{
	struct timespec ts;

	(void)state;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Wait for a descriptor, until `until` at the latest. */
static enum ndx_status wait_for(int fd, short events, uint64_t until)
{
	struct pollfd set = {.fd = fd, .events = events};

	for (;;) {
		const uint64_t now = now_ms(NULL);
		const int n = poll(&set, 1, now < until ? (int)(until - now) : 0);

		if (n > 0)
			return NDX_OK;
		if (n < 0 && errno != EINTR)
			return NDX_E_INTERNAL_ERROR;
		if (now_ms(NULL) >= until)
			return NDX_E_IO_TIMEOUT;
	}
}

/* ---- connecting ---- */

/* getaddrinfo() accepts numbers above 65535, modulo 2^16. */
static bool is_port(const char *text)
{
	const size_t length = strspn(text, "0123456789");
	const unsigned long number = strtoul(text, NULL, 10);

	return length > 0 && text[length] == '\0' && number > 0 && number <= UINT16_MAX;
}

static bool split(const char *address, char host[HOST_MAX], const char **port)
{
	const char *colon = strrchr(address, ':');
	const char *begin = address;
	const char *end = colon;
	size_t length;

	if (colon == NULL || !is_port(colon + 1))
		return false;
	if (address[0] == '[') {
		begin++;
		end--;
		if (end < begin || *end != ']')
			return false;
	} else if (memchr(address, ':', (size_t)(colon - address)) != NULL) {
		return false; /* IPv6 without brackets: the port is ambiguous */
	}
	length = (size_t)(end - begin);
	if (length == 0 || length >= HOST_MAX)
		return false;
	memcpy(host, begin, length);
	host[length] = '\0';
	*port = colon + 1;
	return true;
}

static enum ndx_status connect_one(struct surf_registers *r, const struct addrinfo *ai,
                                   uint64_t until, char *why, size_t room)
{
	const int on = 1;
	socklen_t size = sizeof(int);
	int error = 0;
	enum ndx_status st;

	r->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (r->fd < 0) {
		(void)snprintf(why, room, "no socket: %s", strerror(errno));
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	(void)setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(r->fd, ai->ai_addr, ai->ai_addrlen) != 0 && errno != EINPROGRESS)
		error = errno;
	st = error == 0 ? wait_for(r->fd, POLLOUT, until) : NDX_OK;
	if (st == NDX_OK && error == 0 &&
	    getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (st == NDX_OK && error == 0)
		return NDX_OK;
	(void)close(r->fd);
	r->fd = -1;
	(void)snprintf(why, room, "the register bus cannot be reached: %s",
	               st != NDX_OK ? "it does not answer in time" : strerror(error));
	return st != NDX_OK ? st : NDX_E_CONNECTION_REFUSED;
}

static enum ndx_status reach(struct surf_registers *r, const char *address, uint32_t timeout_ms,
                             char *why, size_t room)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	const uint64_t until = now_ms(r) + timeout_ms;
	struct addrinfo *found = NULL;
	enum ndx_status st = NDX_E_HOST_UNREACHABLE;
	char host[HOST_MAX];
	const char *port;
	int error;

	if (!split(address, host, &port)) {
		(void)snprintf(why, room,
		               "\"%.64s\" is no address of a register bus: say HOST:PORT or "
		               "[IPV6]:PORT",
		               address);
		return NDX_E_INVALID_ADDRESS;
	}
	error = getaddrinfo(host, port, &hints, &found);
	if (error != 0) {
		(void)snprintf(why, room, "\"%.64s\": %s", address, gai_strerror(error));
		return st;
	}
	for (const struct addrinfo *ai = found; ai != NULL && st != NDX_OK; ai = ai->ai_next)
		st = connect_one(r, ai, until, why, room);
	freeaddrinfo(found);
	return st;
}

enum ndx_status surf_registers_open(const char *address, uint32_t timeout_ms,
                                    struct surf_registers **out, char *why, size_t room)
{
	struct surf_registers *r = calloc(1, sizeof(*r));
	enum ndx_status st;

	if (r == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	r->fd = -1;
	if (pipe2(r->cancel_fds, O_CLOEXEC | O_NONBLOCK) != 0) {
		(void)snprintf(why, room, "no descriptor left");
		free(r);
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	st = reach(r, address, timeout_ms, why, room);
	if (st != NDX_OK) {
		surf_registers_close(r);
		return st;
	}
	*out = r;
	return NDX_OK;
}

void surf_registers_close(struct surf_registers *r)
{
	if (r->fd >= 0)
		(void)close(r->fd);
	(void)close(r->cancel_fds[0]);
	(void)close(r->cancel_fds[1]);
	free(r);
}

void surf_registers_limit(struct surf_registers *r, uint32_t timeout_ms)
{
	r->limited = true;
	r->deadline = now_ms(r) + timeout_ms;
}

void surf_registers_unlimited(struct surf_registers *r)
{
	r->limited = false;
}

void surf_registers_cancel(struct surf_registers *r)
{
	/* The pipe is readable from now on, also if it was full. */
	if (write(r->cancel_fds[1], "", 1) < 0)
		return;
}

bool surf_registers_cancelled(const struct surf_registers *r)
{
	struct pollfd set = {.fd = r->cancel_fds[0], .events = POLLIN};

	return poll(&set, 1, 0) > 0;
}

/* ---- accesses ---- */

static enum ndx_status gone(struct surf_registers *r, const char *why)
{
	(void)snprintf(r->cause, sizeof(r->cause), "%s", why);
	r->broken = true;
	return NDX_E_CONNECTION_ABORTED;
}

/* Transfer all bytes, out or in. */
static enum ndx_status move(struct surf_registers *r, bool out, uint8_t *bytes, size_t length,
                            uint64_t until)
{
	while (length > 0) {
		const ssize_t n = out ? send(r->fd, bytes, length, MSG_NOSIGNAL)
		                      : recv(r->fd, bytes, length, 0);
		enum ndx_status st;

		if (n > 0) {
			bytes += n;
			length -= (size_t)n;
			continue;
		}
		if (n == 0)
			return gone(r, "the register bus closed the connection");
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return gone(r, strerror(errno));
		st = wait_for(r->fd, out ? POLLOUT : POLLIN, until);
		if (st == NDX_E_IO_TIMEOUT)
			(void)gone(r, "the register bus does not answer: is the FPGA on, and its "
			              "network there?");
		if (st != NDX_OK)
			return st;
	}
	return NDX_OK;
}

/* Check the limit before an access, never during it: half a message makes the bus unusable. */
static enum ndx_status check_limit(struct surf_registers *r)
{
	enum ndx_status st = NDX_OK;

	if (r->limited && surf_registers_cancelled(r))
		st = NDX_E_CANCELED;
	else if (r->limited && now_ms(r) > r->deadline)
		st = NDX_E_IO_TIMEOUT;
	r->limited = r->limited && st == NDX_OK;
	return st;
}

static enum ndx_status access_register(struct surf_registers *r, struct srp_request *request,
                                       uint32_t *value)
{
	const uint64_t until = now_ms(r) + ACCESS_MS;
	uint8_t bytes[SRP_RESPONSE_BYTES];
	enum srp_verdict verdict = SRP_OTHER;
	const char *why;
	enum ndx_status st = check_limit(r);

	if (!r->broken)
		r->cause[0] = '\0';
	if (st != NDX_OK || r->broken)
		return st != NDX_OK ? st : NDX_E_CONNECTION_ABORTED;
	request->id = ++r->last_id;
	st = move(r, true, bytes, srp_request_write(bytes, request), until);
	while (st == NDX_OK && verdict == SRP_OTHER) {
		st = move(r, false, bytes, sizeof(bytes), until);
		if (st == NDX_OK)
			verdict = srp_response_parse(bytes, request, value, &why);
		if (st == NDX_OK && verdict == SRP_OTHER && now_ms(r) >= until)
			return gone(r, "the register bus answers what it was not asked");
	}
	if (st != NDX_OK || verdict == SRP_ANSWER)
		return st;
	(void)snprintf(r->cause, sizeof(r->cause), "%s", why);
	r->broken = verdict == SRP_WRONG;
	return NDX_E_REMOTE_ERROR;
}

static enum ndx_status write32(void *state, uint32_t address, uint32_t value)
{
	struct srp_request request = {.write = true, .address = address, .value = value};
	uint32_t echoed;

	return access_register(state, &request, &echoed);
}

static enum ndx_status read32(void *state, uint32_t address, uint32_t *value)
{
	struct srp_request request = {.address = address};

	return access_register(state, &request, value);
}

static enum ndx_status wait_ms(void *state, uint32_t milliseconds)
{
	struct surf_registers *r = state;
	const uint64_t until = now_ms(r) + milliseconds;
	const bool late = r->limited && r->deadline < until;
	enum ndx_status st =
		wait_for(r->limited ? r->cancel_fds[0] : -1, POLLIN, late ? r->deadline : until);

	if (st == NDX_E_IO_TIMEOUT && !late)
		return NDX_OK;
	r->limited = false;
	return st == NDX_OK ? NDX_E_CANCELED : st;
}

static const char *cause(void *state)
{
	const struct surf_registers *r = state;

	return r->cause;
}

const struct surf_bus_ops surf_registers_ops = {
	.write32 = write32, .read32 = read32, .wait = wait_ms, .now = now_ms, .cause = cause};
