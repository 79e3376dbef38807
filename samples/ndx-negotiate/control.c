/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket of the server: each client gets the server's snapshot as JSON, then the end of
 * the stream. The server reads nothing. One thread serves a few clients at a time, each for a
 * limited time: a client that does not read occupies only one place, and only for that time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_socket.h"
#include "negotiate.h"
#include "sample_clock.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-negotiate server"
#define CLIENTS_MOST 16
#define CLIENT_MS 5000 /* to read the snapshot */
#define PAUSE_MS 1000  /* after a failed accept, for example without descriptors */

/** A client of the control socket; fd -1: a free place. */
struct reader {
	int fd;
	char *text;
	size_t length;
	size_t sent;
	uint64_t deadline_ms;
};

struct control {
	struct ndx_negotiation_server *server;
	struct control_socket socket;
	int stop; /* an eventfd: readable when the thread is to end */
	pthread_t thread;
	struct reader readers[CLIENTS_MOST];
	uint64_t paused_ms; /* no client is accepted before */
};

static void drop(struct reader *r)
{
	(void)close(r->fd);
	free(r->text);
	*r = (struct reader){.fd = -1};
}

static struct reader *free_place(struct control *c)
{
	for (int i = 0; i < CLIENTS_MOST; i++) {
		if (c->readers[i].fd < 0)
			return &c->readers[i];
	}
	return NULL;
}

static void send_on(struct reader *r)
{
	while (r->sent < r->length) {
		const ssize_t n = send(r->fd, r->text + r->sent, r->length - r->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < 0)
			break;
		r->sent += (size_t)n;
	}
	drop(r);
}

static void take_client(struct control *c, struct reader *r)
{
	const int fd = accept4(c->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	enum ndx_status st;

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			c->paused_ms = sample_now_ms() + PAUSE_MS;
		return;
	}
	*r = (struct reader){.fd = fd, .deadline_ms = sample_now_ms() + CLIENT_MS};
	st = ndx_negotiation_server_snapshot(c->server, &r->text);
	if (st != NDX_OK) {
		(void)sample_failed(WHO, st, "take a snapshot for the control socket");
		drop(r);
		return;
	}
	r->length = strlen(r->text);
	send_on(r);
}

/** Wait for the stop, a client, or a client that reads. False: end. */
static bool wait_for_work(struct control *c, short ready[CLIENTS_MOST], bool *called)
{
	struct pollfd fds[CLIENTS_MOST + 2];
	const uint64_t now = sample_now_ms();
	const bool accepts = free_place(c) != NULL && c->paused_ms <= now;
	uint64_t until = c->paused_ms > now ? c->paused_ms : UINT64_MAX;
	int n;

	fds[0] = (struct pollfd){.fd = c->stop, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = accepts ? c->socket.fd : -1, .events = POLLIN};
	for (int i = 0; i < CLIENTS_MOST; i++) {
		const struct reader *r = &c->readers[i];

		fds[i + 2] = (struct pollfd){.fd = r->fd, .events = POLLOUT};
		if (r->fd >= 0 && r->deadline_ms < until)
			until = r->deadline_ms;
	}
	if (until != UINT64_MAX)
		until = until > now ? until - now : 0;
	n = poll(fds, CLIENTS_MOST + 2, until == UINT64_MAX ? -1 : (int)until);
	*called = n > 0 && fds[1].revents != 0;
	for (int i = 0; i < CLIENTS_MOST; i++) {
		ready[i] = 0;
		if (n > 0)
			ready[i] = fds[i + 2].revents;
	}
	return n <= 0 || fds[0].revents == 0;
}

static void *serve(void *arg)
{
	struct control *c = arg;
	short ready[CLIENTS_MOST];
	bool called;

	while (wait_for_work(c, ready, &called)) {
		const uint64_t now = sample_now_ms();

		for (int i = 0; i < CLIENTS_MOST; i++) {
			struct reader *r = &c->readers[i];

			if (r->fd >= 0 && ready[i] != 0)
				send_on(r);
			if (r->fd >= 0 && r->deadline_ms <= now)
				drop(r);
		}
		if (called)
			take_client(c, free_place(c));
	}
	return NULL;
}

int control_open(const char *path, struct ndx_negotiation_server *server, struct control **out)
{
	struct control *c = calloc(1, sizeof(*c));
	int error;
	int rc;

	if (c == NULL)
		return sample_failed(WHO, NDX_E_NO_MEMORY, "make a control socket");
	c->server = server;
	for (int i = 0; i < CLIENTS_MOST; i++)
		c->readers[i].fd = -1;
	rc = control_socket_open(WHO, path, &c->socket);
	if (rc != SAMPLE_EXIT_OK)
		goto free_control;
	rc = SAMPLE_EXIT_FAILED;
	c->stop = eventfd(0, EFD_CLOEXEC);
	if (c->stop < 0) {
		fprintf(stderr, WHO ": no descriptor for --control: %s\n", strerror(errno));
		goto close_socket;
	}
	error = pthread_create(&c->thread, NULL, serve, c);
	if (error != 0) {
		fprintf(stderr, WHO ": no thread for --control: %s\n", strerror(error));
		goto close_stop;
	}
	*out = c;
	return SAMPLE_EXIT_OK;
close_stop:
	(void)close(c->stop);
close_socket:
	control_socket_close(&c->socket);
free_control:
	free(c);
	return rc;
}

void control_close(struct control *c)
{
	if (c == NULL)
		return;
	(void)eventfd_write(c->stop, 1);
	(void)pthread_join(c->thread, NULL);
	for (int i = 0; i < CLIENTS_MOST; i++) {
		if (c->readers[i].fd >= 0)
			drop(&c->readers[i]);
	}
	(void)close(c->stop);
	control_socket_close(&c->socket);
	free(c);
}
