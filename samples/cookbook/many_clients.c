/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-many-clients [URI]
 * One thread serves any number of clients from one epoll loop. When the connection of a client has
 * ended, results of the client may lie in the shared queue: the recipe is about that.
 */
#include "cookbook.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { CLIENTS = 20, SLOTS = 4 };

enum stage { EXPECTED, ACCEPTED, WATCHED, LEAVING };

/** Freed when the last operation has completed AND the queue was emptied after that. */
struct client {
	struct ndx_overlapped ov; /* one operation at a time */
	enum stage stage;
	struct ndx_connector *connector;
	struct ndx_qp *qp;
};

struct server {
	struct pair pair;
	struct ndx_port *port;
	int gone, messages;
};

static void expect_client(struct server *s)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		abort();
	client->ov.port = s->port;
	client->ov.context = client;
	must(ndx_connector_create(s->pair.adapter, NULL, &client->connector), "a connector");
	check(ndx_listener_get_connection_request(s->pair.listener, client->connector,
	                                          &client->ov) == NDX_PENDING,
	      "ask for a request");
}

static enum ndx_status accept_client(struct server *s, struct client *client)
{
	struct end end = {.adapter = s->pair.adapter, .cq = s->pair.server.cq};
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.context = client;
	end_new_qp(&end, &attr);
	client->qp = end.qp;
	for (int i = 0; i < SLOTS; i++) /* before the accept: the client may send at once */
		must(ndx_qp_receive(client->qp, NULL, NULL, 0), "post a receive");
	return ndx_connector_accept(client->connector, client->qp, NULL, &client->ov);
}

/* The operation of a client has completed: begin the next. False: there is none, free it. */
static bool advance(struct server *s, struct client *client)
{
	const enum stage was = client->stage++;

	if (client->ov.status != NDX_OK) /* gave up, or aborted */
		return false;
	if (was == EXPECTED) {
		expect_client(s); /* the place for the next one */
		return accept_client(s, client) == NDX_PENDING;
	}
	if (was == ACCEPTED)
		return ndx_connector_notify_disconnect(client->connector, &client->ov) ==
		       NDX_PENDING;
	return was == WATCHED &&
	       ndx_connector_disconnect(client->connector, &client->ov) == NDX_PENDING;
}

/* Take all, then arm: a result that came in between fires at once. */
static void take_results(struct server *s)
{
	struct ndx_result results[16];
	size_t got;

	while ((got = ndx_cq_get_results(s->pair.server.cq, results, 16)) > 0) {
		for (size_t i = 0; i < got; i++) {
			const struct client *client = results[i].queue_pair_context;

			if (results[i].status != NDX_OK)
				continue; /* the port tells of the end */
			s->messages++;
			(void)ndx_qp_receive(client->qp, NULL, NULL, 0);
		}
	}
	must(ndx_cq_notify(s->pair.server.cq, NDX_CQ_NOTIFY_ANY, NULL), "arm");
}

static void take_completions(struct server *s)
{
	struct ndx_overlapped *done[16];
	const size_t got = ndx_port_get(s->port, done, 16, 0);

	take_results(s); /* first: `done` may end clients whose results are there */
	for (size_t i = 0; i < got; i++) {
		struct client *client = done[i]->context;

		if (advance(s, client))
			continue;
		ndx_connector_close(client->connector);
		ndx_qp_close(client->qp);
		take_results(s); /* what the close has cancelled; nothing comes after it */
		s->gone += client->stage > ACCEPTED;
		free(client);
	}
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t threads[CLIENTS];
	int epoll, cq_fd;
	struct server s = {0};

	pair_open(&s.pair, adapter_of(argc, argv));
	must(ndx_port_create(&s.port), "port");
	must(ndx_cq_get_fd(s.pair.server.cq, &cq_fd), "the queue's descriptor");
	epoll = epoll_create1(EPOLL_CLOEXEC);
	check(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, cq_fd, &event) == 0 &&
	              epoll_ctl(epoll, EPOLL_CTL_ADD, ndx_port_get_fd(s.port), &event) == 0,
	      "epoll");
	expect_client(&s);
	take_results(&s);
	for (int i = 0; i < CLIENTS; i++)
		check(pthread_create(&threads[i], NULL, be_a_client, &s.pair) == 0, "no thread");
	while (s.gone < CLIENTS) {
		check(epoll_wait(epoll, &event, 1, (int)WAIT_MS) > 0, "nothing happens");
		take_completions(&s);
	}
	for (int i = 0; i < CLIENTS; i++)
		(void)pthread_join(threads[i], NULL);
	printf("%d clients, %d messages\n", s.gone, s.messages);
	check(s.messages == CLIENTS * CLIENT_MESSAGES, "messages are missing");
	(void)ndx_listener_cancel(s.pair.listener); /* no next client */
	take_completions(&s);
	(void)close(epoll);
	ndx_port_close(s.port);
	pair_close(&s.pair);
	return 0;
}
