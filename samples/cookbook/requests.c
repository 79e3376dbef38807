/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-requests [URI]
 * A server looks at what a client says before it accepts, and has several requests in flight, so
 * that a slow decision about one client keeps no other waiting.
 */
#include "cookbook.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define IN_FLIGHT 3
#define CLIENTS 8

/** One request in flight: the port returns the address of `ov`. */
struct request {
	struct ndx_overlapped ov;
	struct ndx_connector *connector;
};

static void *call_server(void *arg)
{
	struct pair *pair = arg;
	const char *words[] = {"password", "guess"};
	struct ndx_connector *connector;
	enum ndx_status st;

	for (int i = 0; i < CLIENTS; i++) {
		struct end client = {.adapter = pair->adapter, .cq = pair->client.cq};
		const char *word = words[i % 2];

		end_new_qp(&client, NULL);
		st = ndx_connect_to(client.adapter, client.qp, (struct sockaddr *)&pair->address,
		                    pair->address_len, word, strlen(word), WAIT_MS, &connector);
		check(st == (i % 2 == 0 ? NDX_OK : NDX_E_CONNECTION_REFUSED), "a wrong answer");
		if (st == NDX_OK) {
			must(ndx_disconnect(connector, WAIT_MS), "disconnect");
			ndx_connector_close(connector);
		}
		ndx_qp_close(client.qp);
	}
	return NULL;
}

static void ask(struct pair *pair, struct request *request)
{
	must(ndx_connector_create(pair->adapter, NULL, &request->connector), "a connector");
	check(ndx_listener_get_connection_request(pair->listener, request->connector,
	                                          &request->ov) == NDX_PENDING,
	      "ask for a request");
}

/* True: the client was accepted. */
static bool decide(struct pair *pair, struct request *request)
{
	static const char no[] = "wrong password";
	struct end server = {.adapter = pair->adapter, .cq = pair->server.cq};
	char data[256];
	size_t length = sizeof(data);
	bool good;

	must(ndx_connector_get_private_data(request->connector, data, &length), "private data");
	good = length >= 8 && memcmp(data, "password", 8) == 0;
	if (!good) {
		must(ndx_connector_reject(request->connector, no, sizeof(no)), "reject");
		ndx_connector_close(request->connector);
		return false;
	}
	end_new_qp(&server, NULL);
	must(ndx_accept(request->connector, server.qp, NULL, 0, WAIT_MS), "accept");
	must(ndx_disconnect(request->connector, WAIT_MS), "disconnect");
	ndx_connector_close(request->connector);
	ndx_qp_close(server.qp);
	return true;
}

int main(int argc, char **argv)
{
	struct request requests[IN_FLIGHT] = {0};
	struct ndx_overlapped *done[IN_FLIGHT];
	int accepted = 0, decided = 0;
	struct ndx_port *port;
	struct pair pair;
	pthread_t thread;

	pair_open(&pair, adapter_of(argc, argv));
	must(ndx_port_create(&port), "create a port");
	for (int i = 0; i < IN_FLIGHT; i++) {
		requests[i].ov.port = port;
		requests[i].ov.context = &requests[i];
		ask(&pair, &requests[i]);
	}
	check(pthread_create(&thread, NULL, call_server, &pair) == 0, "no thread");
	while (decided < CLIENTS) {
		const size_t got = ndx_port_get(port, done, IN_FLIGHT, WAIT_MS);

		check(got > 0, "no client comes");
		for (size_t i = 0; i < got; i++, decided++) {
			struct request *request = done[i]->context;

			must(request->ov.status, "a request");
			accepted += decide(&pair, request);
			ask(&pair, request);
		}
	}
	(void)pthread_join(thread, NULL);
	printf("%d clients, %d accepted\n", decided, accepted);
	check(accepted == CLIENTS / 2, "another number was accepted");
	/* Closing the connectors completes the requests into the port: take them out before the
	 * memory of the overlapped objects goes. */
	for (int i = 0; i < IN_FLIGHT; i++)
		ndx_connector_close(requests[i].connector);
	for (size_t left = IN_FLIGHT; left > 0;) {
		const size_t got = ndx_port_get(port, done, left, WAIT_MS);

		check(got > 0, "a closed request does not complete");
		left -= got;
	}
	ndx_port_close(port);
	pair_close(&pair);
	return 0;
}
