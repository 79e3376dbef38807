/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that do no good, all of them on one thread. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sessions.h"

struct hostile {
	pthread_t thread;
	unsigned count;
	int again_ms; /* between two things that one of them does */
	struct sockaddr_in to;
	struct pollfd *set;
	atomic_bool stop;
	atomic_bool begun;
	uint64_t sent;
};

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

static void talk(struct hostile *h, struct pollfd *p)
{
	uint8_t bytes[64];

	if (p->revents & POLLOUT) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rand_r(&(unsigned){(unsigned)(h->sent + i)});
		if (send(p->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
			h->sent++;
		p->events = POLLIN;
	} else if (p->revents != 0 && recv(p->fd, bytes, sizeof(bytes), 0) <= 0) {
		(void)close(p->fd);
		p->fd = reach(h);
		p->events = POLLOUT;
	}
}

static void *run(void *arg)
{
	struct hostile *h = arg;

	for (unsigned i = 0; i < h->count; i++)
		h->set[i] = (struct pollfd){.fd = reach(h), .events = i % 2 != 0 ? POLLOUT : 0};
	h->begun = true;
	while (!h->stop) {
		const int ready = poll(h->set, h->count, h->again_ms);

		for (unsigned i = 1; ready > 0 && i < h->count; i += 2)
			talk(h, &h->set[i]);
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
	h->to.sin_family = AF_INET;
	h->to.sin_port = htons(port);
	h->to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (h->set == NULL || pthread_create(&h->thread, NULL, run, h) != 0)
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
	free(h);
	return sent;
}
