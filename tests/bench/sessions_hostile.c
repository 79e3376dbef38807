/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that do no good, all of them on one thread. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sessions.h"

enum { HEADER = 20, HELLO = HEADER + 84 }; /* docs/negotiation-protocol.md */

/* What the client at place i does; `i` modulo HABITS. */
enum habit {
	SILENT,  /* connects, and says nothing */
	RUBBISH, /* sends bytes that are no frame, again and again */
	SLOW,    /* sends hello byte by byte */
	LEAVING, /* sends hello, and then nothing in stage info */
	HABITS,
};

struct hostile {
	pthread_t thread;
	unsigned count;
	int again_ms; /* between two things that one of them does */
	struct sockaddr_in to;
	struct pollfd *set;
	size_t *told; /* bytes of hello that were sent */
	uint8_t hello[HELLO];
	atomic_bool stop;
	atomic_bool begun;
	uint64_t sent;
};

static void write_hello(uint8_t hello[HELLO])
{
	static const uint8_t head[] = {'N', 'D', 'X', 'N', 1, 1};

	memset(hello, 0, HELLO);
	memcpy(hello, head, sizeof(head));
	hello[19] = HELLO - HEADER;
	hello[HELLO - 66] = 4; /* the longest message: 1024 */
	(void)snprintf((char *)hello + HELLO - 64, 32, "%s", SESSIONS_PLUGIN);
	(void)snprintf((char *)hello + HELLO - 32, 32, "%s", SESSIONS_VARIANT);
}

static int reach(const struct hostile *h)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		sessions_die("hostile client", "no descriptor");
	if (connect(fd, (const struct sockaddr *)&h->to, sizeof(h->to)) != 0 &&
	    errno != EINPROGRESS)
		sessions_die("hostile client", "cannot connect");
	return fd;
}

static void begin_anew(struct hostile *h, unsigned i)
{
	h->told[i] = 0;
	h->set[i] = (struct pollfd){.fd = reach(h), .events = POLLIN};
	if (i % HABITS != SILENT)
		h->set[i].events |= POLLOUT;
}

/* Send what is next of hello; afterwards listen for the end only. */
static void greet(struct hostile *h, unsigned i, size_t most)
{
	struct pollfd *p = &h->set[i];
	const size_t left = HELLO - h->told[i];
	const ssize_t n =
		send(p->fd, h->hello + h->told[i], left < most ? left : most, MSG_NOSIGNAL);

	if (n > 0)
		h->told[i] += (size_t)n;
	if (n <= 0 || h->told[i] == HELLO)
		p->events = POLLIN;
}

static void babble(struct hostile *h, unsigned i)
{
	uint8_t bytes[64];

	for (size_t k = 0; k < sizeof(bytes); k++)
		bytes[k] = (uint8_t)rand_r(&(unsigned){(unsigned)(h->sent + k)});
	if (send(h->set[i].fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		h->sent++;
	h->set[i].events = POLLIN;
}

static void act(struct hostile *h, unsigned i)
{
	struct pollfd *p = &h->set[i];
	uint8_t bytes[256];

	if ((p->revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
	    recv(p->fd, bytes, sizeof(bytes), 0) <= 0) {
		(void)close(p->fd);
		begin_anew(h, i);
		return;
	}
	if ((p->revents & POLLOUT) == 0)
		return;
	if (i % HABITS == RUBBISH)
		babble(h, i);
	else
		greet(h, i, i % HABITS == SLOW ? 1 : HELLO);
}

static void *run(void *arg)
{
	struct hostile *h = arg;

	for (unsigned i = 0; i < h->count; i++)
		begin_anew(h, i);
	h->begun = true;
	while (!h->stop) {
		const int ready = poll(h->set, h->count, h->again_ms);

		for (unsigned i = 0; ready > 0 && i < h->count; i++)
			if (h->set[i].revents != 0)
				act(h, i);
		(void)poll(NULL, 0, h->again_ms);
	}
	for (unsigned i = 0; i < h->count; i++)
		(void)close(h->set[i].fd);
	return NULL;
}

struct hostile *hostile_start(uint16_t port, unsigned count, unsigned again_ms)
{
	struct hostile *h = calloc(1, sizeof(*h));

	if (h == NULL)
		sessions_die("hostile clients", "no memory");
	h->count = count;
	h->again_ms = (int)again_ms;
	h->set = calloc(count, sizeof(*h->set));
	h->told = calloc(count, sizeof(*h->told));
	write_hello(h->hello);
	h->to.sin_family = AF_INET;
	h->to.sin_port = htons(port);
	h->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (h->set == NULL || h->told == NULL || pthread_create(&h->thread, NULL, run, h) != 0)
		sessions_die("hostile clients", "no memory, or no thread");
	while (!h->begun)
		(void)poll(NULL, 0, 1);
	return h;
}

uint64_t hostile_stop(struct hostile *h)
{
	uint64_t sent;

	h->stop = true;
	(void)pthread_join(h->thread, NULL);
	sent = h->sent;
	free(h->set);
	free(h->told);
	free(h);
	return sent;
}
