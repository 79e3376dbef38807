/* SPDX-License-Identifier: BSD-2-Clause */
#include "cookbook.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void stop(const char *what, enum ndx_status status, const char *why)
{
	(void)fprintf(stderr, "%s: %s (%s) %s\n", what, ndx_status_name(status),
	              ndx_status_text(status), why);
	exit(1);
}

void must(enum ndx_status status, const char *what)
{
	if (status != NDX_OK)
		stop(what, status, ndx_last_error());
}

void must_result(const struct ndx_result *result, struct ndx_connector *connector)
{
	char why[512] = "";
	size_t room = sizeof(why);

	if (result->status == NDX_OK)
		return;
	(void)ndx_connector_get_error_text(connector, why, &room);
	stop("a request", result->status, why);
}

void check(bool good, const char *what)
{
	if (!good) {
		(void)fprintf(stderr, "%s\n", what);
		exit(1);
	}
}

void end_new_qp(struct end *end, struct ndx_qp_attr *attr)
{
	struct ndx_qp_attr plain;

	ndx_qp_attr_init(&plain);
	if (attr == NULL)
		attr = &plain;
	attr->receive_cq = attr->initiator_cq = end->cq;
	must(ndx_qp_create(end->adapter, attr, &end->qp), "create a queue pair");
}

static void end_open(struct end *end, struct ndx_adapter *adapter)
{
	end->adapter = adapter;
	must(ndx_cq_create_depth(adapter, 1024, &end->cq), "create a completion queue");
	end_new_qp(end, NULL);
}

void pair_open(struct pair *pair, const char *uri)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	*pair = (struct pair){.address_len = sizeof(pair->address)};
	must(ndx_adapter_open(uri, &pair->adapter), uri);
	must(ndx_listen_on(pair->adapter, (struct sockaddr *)&here, sizeof(here), 0,
	                   &pair->listener),
	     "listen");
	must(ndx_listener_get_local_address(pair->listener, (struct sockaddr *)&pair->address,
	                                    &pair->address_len),
	     "port");
	end_open(&pair->client, pair->adapter);
	end_open(&pair->server, pair->adapter);
}

struct acceptor {
	struct pair *pair;
	const void *data;
	size_t length;
};

static void *accept_one(void *arg)
{
	const struct acceptor *a = arg;
	struct end *server = &a->pair->server;

	must(ndx_accept_from(server->adapter, a->pair->listener, server->qp, a->data, a->length,
	                     WAIT_MS, &server->connector),
	     "accept");
	return NULL;
}

void pair_connect(struct pair *pair, const void *data, size_t length)
{
	struct acceptor acceptor = {pair, data, length};
	struct end *client = &pair->client;
	pthread_t thread;

	check(pthread_create(&thread, NULL, accept_one, &acceptor) == 0, "no thread");
	must(ndx_connect_to(client->adapter, client->qp, (struct sockaddr *)&pair->address,
	                    pair->address_len, NULL, 0, WAIT_MS, &client->connector),
	     "connect");
	(void)pthread_join(thread, NULL);
}

void end_close(struct end *end)
{
	ndx_connector_close(end->connector);
	ndx_qp_close(end->qp);
	ndx_cq_close(end->cq);
}

void pair_close(struct pair *pair)
{
	if (pair->client.connector != NULL)
		must(ndx_disconnect(pair->client.connector, WAIT_MS), "disconnect");
	end_close(&pair->client);
	end_close(&pair->server);
	ndx_listener_close(pair->listener);
	ndx_adapter_close(pair->adapter);
}

struct ndx_result end_result(struct end *end)
{
	struct ndx_result result;
	size_t got = 0;

	must(ndx_cq_wait_results(end->cq, &result, 1, WAIT_MS, &got), "wait for a result");
	must_result(&result, end->connector);
	return result;
}

void *be_a_client(void *arg)
{
	struct pair *pair = arg;
	struct end client = {.adapter = pair->adapter};

	must(ndx_cq_create_depth(client.adapter, 64, &client.cq), "create a completion queue");
	end_new_qp(&client, NULL);
	must(ndx_connect_to(client.adapter, client.qp, (struct sockaddr *)&pair->address,
	                    pair->address_len, NULL, 0, WAIT_MS, &client.connector),
	     "connect");
	for (int i = 0; i < CLIENT_MESSAGES; i++) {
		must(ndx_qp_send(client.qp, NULL, NULL, 0, 0), "send");
		(void)end_result(&client);
	}
	must(ndx_disconnect(client.connector, WAIT_MS), "disconnect");
	end_close(&client);
	return NULL;
}
