/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-reconnect [URI]
 * The server aborts, again and again; the client connects anew. A connection that has ended cannot
 * be used again: queue pair and connector are made anew, memory and completion queue stay.
 */
#include "cookbook.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ABORTS 3

/* Accept a client, take one message, and abort; at the last time part gracefully. */
static void *serve(void *arg)
{
	struct pair *pair = arg;
	struct end *server = &pair->server;

	for (int i = 0; i <= ABORTS; i++) {
		must(ndx_qp_receive(server->qp, NULL, NULL, 0), "post a receive");
		must(ndx_accept_from(server->adapter, pair->listener, server->qp, NULL, 0, WAIT_MS,
		                     &server->connector),
		     "accept");
		(void)end_result(server);
		if (i < ABORTS)
			must(ndx_qp_flush(server->qp), "abort");
		else
			must(ndx_disconnect(server->connector, WAIT_MS), "disconnect");
		ndx_connector_close(server->connector);
		server->connector = NULL;
		ndx_qp_close(server->qp);
		end_new_qp(server, NULL);
	}
	return NULL;
}

/* The limit doubles; the pause is random below the limit, so that clients of a server that comes
 * back do not come in the same moment. */
static void pause_before(unsigned attempt)
{
	const unsigned limit_ms = attempt > 6 ? 1000 : 10u << attempt;
	const unsigned ms = 1 + (unsigned)random() % limit_ms;
	const struct timespec pause = {.tv_nsec = (long)ms * 1000000};

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static void connect_anew(struct pair *pair)
{
	struct end *client = &pair->client;
	enum ndx_status st;

	for (unsigned attempt = 0; attempt < 20; attempt++) {
		end_new_qp(client, NULL);
		st = ndx_connect_to(client->adapter, client->qp, (struct sockaddr *)&pair->address,
		                    pair->address_len, NULL, 0, WAIT_MS, &client->connector);
		if (st == NDX_OK)
			return;
		printf("not yet: %s\n", ndx_last_error());
		ndx_qp_close(client->qp);
		pause_before(attempt);
	}
	must(st, "connect");
}

/* True: the connection ended gracefully. */
static bool use_connection(struct end *client)
{
	struct ndx_overlapped ended = {0};
	struct ndx_result results[16];
	enum ndx_disconnect_reason reason;

	/* The indication says that the connection has ended; results do not say why. */
	check(ndx_connector_notify_disconnect(client->connector, &ended) == NDX_PENDING, "notify");
	must(ndx_qp_send(client->qp, NULL, NULL, 0, 0), "post a send");
	check(ndx_overlapped_wait(&ended, WAIT_MS) != NDX_PENDING, "the connection goes on");
	reason = ndx_connector_get_disconnect_reason(client->connector);
	printf("connection: %s\n", ndx_disconnect_reason_name(reason));
	if (reason == NDX_DISCONNECT_GRACEFUL)
		must(ndx_disconnect(client->connector, WAIT_MS), "disconnect");
	ndx_connector_close(client->connector);
	client->connector = NULL;
	ndx_qp_close(client->qp);
	client->qp = NULL;
	/* The results of the queue pair that is gone are in the queue still. */
	while (ndx_cq_get_results(client->cq, results, 16) > 0)
		;
	return reason == NDX_DISCONNECT_GRACEFUL;
}

int main(int argc, char **argv)
{
	struct pair pair;
	pthread_t thread;
	int aborts = 0;

	pair_open(&pair, adapter_of(argc, argv));
	ndx_qp_close(pair.client.qp);
	pair.client.qp = NULL;
	check(pthread_create(&thread, NULL, serve, &pair) == 0, "no thread");
	do
		connect_anew(&pair);
	while (!use_connection(&pair.client) && aborts++ < ABORTS);
	(void)pthread_join(thread, NULL);
	check(aborts == ABORTS, "another number of aborts");
	pair_close(&pair);
	return 0;
}
