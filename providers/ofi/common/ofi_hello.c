/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections at a listener that have not sent a request yet. libfabric's tcp provider accepts them
 * by itself, waits for their requests without end, and forgets their sockets when the listener is
 * closed. So each peer that connects and sends nothing would take a descriptor for good.
 *
 * libfabric before 1.18 keeps the sockets in the epoll set of its event queue, and the kernel shows
 * the members of that set. Only libfabric may close the sockets; after a shutdown() of one of them
 * libfabric reads its end and closes it. All of that happens on the control thread, which alone
 * reads the event queue: so no socket in the set is closed in between.
 */
#include "ofi_hello.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"

enum {
	LOOK_MS = 500,   /* period of the checks while there are such connections */
	LOOK_EVERY = 16, /* wake-ups for the event queue before a check: each accepts some */
	MOST = 256,      /* connections that are allowed, ... */
	SHARE = 8,       /* ... and this part of the descriptors, if that is fewer */
	LEAST = 8,
	ROOMS = 8, /* times `most`: connections that are noted before the limits are applied */
	END_ROUNDS = 64, /* rounds of reading the ends after shutdown(), about a thousand each */
};

struct ofi_pending {
	int fd;
	uint64_t inode; /* a descriptor's number is used again, a socket's inode is not */
	struct sockaddr_storage peer;
	uint64_t since_ns;     /* when a look found it first */
	uint64_t connected_ns; /* the order of those that the same look found */
	bool there;
	bool shut; /* by this provider; libfabric closes it at its next read */
};

struct looking {
	struct ofi_hello *hello;
	uint64_t now_ns;
	bool listens;
	bool changed;
};

static struct ofi_pending *find_pending(const struct ofi_hello *hello, int fd, uint64_t inode)
{
	for (size_t i = 0; i < hello->count; i++) {
		if (hello->pending[i].fd == fd && hello->pending[i].inode == inode)
			return &hello->pending[i];
	}
	return NULL;
}

/* When the connection was made: a new socket's latest acknowledgement is that of the handshake. The
 * sockets that one look finds have no order otherwise. */
static uint64_t connected_ns(int fd, uint64_t now_ns)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	uint64_t age = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
		age = info.tcpi_last_ack_recv * NDXP_NS_PER_MS;
	return age < now_ns ? now_ns - age : 0;
}

/* libfabric may have accepted any number since the last look. A look compares each connection with
 * each other one, so their number has a limit. */
static bool make_room(struct ofi_hello *hello)
{
	const size_t room = hello->room > 0 ? 2 * hello->room : hello->most + LOOK_EVERY;
	struct ofi_pending *pending;

	if (hello->count < hello->room)
		return true;
	if (hello->room > ROOMS * hello->most)
		return false;
	pending = realloc(hello->pending, room * sizeof(*pending));
	if (pending == NULL)
		return false;
	hello->pending = pending;
	hello->room = room;
	return true;
}

static void note_socket(void *arg, int fd, uint64_t inode)
{
	struct looking *looking = arg;
	struct ofi_hello *hello = looking->hello;
	struct ofi_pending *s = find_pending(hello, fd, inode);
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);

	if (fd == hello->listening) {
		looking->listens = true;
		return;
	}
	if (s != NULL) {
		s->there = true;
		return;
	}
	memset(&peer, 0, sizeof(peer));
	/* neither the event queue's own wake-up descriptor, nor a socket whose end libfabric reads
	 * next */
	if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 || !ndxp_sockaddr_len(&peer))
		return;
	looking->changed = true;
	if (!make_room(hello)) {
		(void)shutdown(fd, SHUT_RDWR);
		return;
	}
	hello->pending[hello->count++] =
		(struct ofi_pending){.fd = fd,
	                             .inode = inode,
	                             .peer = peer,
	                             .since_ns = looking->now_ns,
	                             .connected_ns = connected_ns(fd, looking->now_ns),
	                             .there = true};
}

/* Remove the connections that have sent a request, or have been closed. */
static bool remove_gone(struct ofi_hello *hello)
{
	size_t kept = 0;
	bool any;

	for (size_t i = 0; i < hello->count; i++) {
		if (!hello->pending[i].there)
			continue;
		hello->pending[kept] = hello->pending[i];
		hello->pending[kept++].there = false;
	}
	any = kept < hello->count;
	hello->count = kept;
	return any;
}

/* Those of an earlier look are older, whatever the kernel's clock, which ticks every few
 * milliseconds, says. */
static int compare_ages(const void *a, const void *b)
{
	const struct ofi_pending *x = a;
	const struct ofi_pending *y = b;

	if (x->since_ns != y->since_ns)
		return x->since_ns < y->since_ns ? -1 : 1;
	return (x->connected_ns > y->connected_ns) - (x->connected_ns < y->connected_ns);
}

static bool list_pending(struct ofi_hello *hello)
{
	struct looking looking = {.hello = hello, .now_ns = ndxp_now_ns()};
	bool gone;

	hello->looks = 0;
	(void)ndxp_poll_look(hello->look, note_socket, &looking);
	gone = remove_gone(hello);
	if (hello->count > 1)
		qsort(hello->pending, hello->count, sizeof(*hello->pending), compare_ages);
	return gone || looking.changed;
}

static size_t count_of_address(const struct ofi_hello *hello, const struct ofi_pending *of)
{
	size_t n = 0;

	for (size_t i = 0; i < hello->count; i++) {
		if (!hello->pending[i].shut &&
		    ndxp_sockaddr_same_host(&hello->pending[i].peer, &of->peer))
			n++;
	}
	return n;
}

static void shut_down(struct ofi_hello *hello, struct ofi_pending *s, const char *why)
{
	s->shut = true;
	(void)shutdown(s->fd, SHUT_RDWR);
	hello->refused(hello->owner, &s->peer, why);
}

/* Shut down the connections that have not sent a request in time, and the oldest ones above the
 * limits. */
static void limit_pending(struct ofi_hello *hello)
{
	const uint64_t limit_ns = hello->eq->adapter->hello_ms * UINT64_C(1000000);
	const uint64_t now = ndxp_now_ns();
	size_t left = 0;

	for (size_t i = 0; i < hello->count; i++)
		left += !hello->pending[i].shut;
	for (size_t i = 0; i < hello->count; i++) {
		struct ofi_pending *s = &hello->pending[i];
		const char *why = NULL;

		if (s->shut)
			continue;
		if (now - s->since_ns >= limit_ns)
			why = "has connected, and has sent no request in time";
		else if (left > hello->most)
			why = "is one of too many that have connected and send no request";
		else if (left > hello->most / 2 && count_of_address(hello, s) > hello->most / 2)
			why = "has connected too many times without sending a request";
		if (why != NULL) {
			shut_down(hello, s, why);
			left--;
		}
	}
}

static void set_timer(struct ofi_hello *hello)
{
	if (hello->timed)
		return;
	hello->timed = true;
	ndxp_timer_set(hello->eq->adapter->spi.loop, &hello->timer, LOOK_MS);
}

static void on_timer(void *arg)
{
	struct ofi_hello *hello = arg;

	hello->timed = false;
	(void)list_pending(hello);
	limit_pending(hello);
	if (hello->count > 0)
		set_timer(hello);
}

bool ofi_hello_looked(struct ofi_hello *hello)
{
	bool changed;

	if (hello->look < 0)
		return false;
	set_timer(hello);
	if (++hello->looks < LOOK_EVERY)
		return false;
	changed = list_pending(hello);
	limit_pending(hello);
	return changed;
}

static size_t choose_most(void)
{
	struct rlimit limit;
	size_t most = MOST;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / SHARE < most)
		most = (size_t)(limit.rlim_cur / SHARE);
	return most < LEAST ? LEAST : most;
}

enum ndx_status ofi_hello_begin(struct ofi_hello *hello, int listening)
{
	struct looking looking = {.hello = hello, .now_ns = ndxp_now_ns()};

	hello->listening = listening;
	hello->most = choose_most();
	hello->timer = (struct ndxp_timer){.fn = on_timer, .arg = hello};
	hello->look = ndxp_poll_look_open(hello->eq->watch.fd);
	if (hello->look < 0)
		return fail(ofi_status_of(errno), errno,
		            "the connections of a listener cannot be listed: %s; see ulimit -n",
		            strerror(errno));
	if (!make_room(hello)) {
		ndxp_fd_close(hello->look);
		hello->look = -1;
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to listen");
	}
	(void)ndxp_poll_look(hello->look, note_socket, &looking);
	if (looking.listens)
		return NDX_OK;
	/* other versions of libfabric keep the sockets where no call shows them */
	log_info("ofi:tcp: libfabric %u.%u does not show the peers that have connected and send no "
	         "request: there is no limit for them",
	         FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	ofi_hello_end(hello);
	return NDX_OK;
}

void ofi_hello_end(struct ofi_hello *hello)
{
	if (hello->look < 0)
		return;
	for (int i = 0; i < END_ROUNDS; i++) {
		(void)list_pending(hello);
		if (hello->count == 0)
			break;
		for (size_t k = 0; k < hello->count; k++)
			(void)shutdown(hello->pending[k].fd, SHUT_RDWR);
		ofi_eq_read_all(hello->eq);
	}
	ndxp_timer_cancel(hello->eq->adapter->spi.loop, &hello->timer);
	ndxp_fd_close(hello->look);
	hello->look = -1;
	free(hello->pending);
	hello->pending = NULL;
	hello->room = 0;
}
