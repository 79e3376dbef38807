/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.*: what a connector may be used for, and when no longer. */
#include <pthread.h>
#include <string.h>

#include "cases.h"
#include "traffic.h"

/* A connector that carried an attempt as the passive side: it takes nothing any more. */
static void is_used_up(struct check *c, struct pair *p)
{
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	check_status(c, side_accept(&p->b, NULL, 0), NDX_E_CONNECTION_INVALID, "accept again");
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_E_CONNECTION_INVALID,
	             "reject afterwards");
	check_status(c, ndx_connector_complete_connect(p->b.conn, &ov), NDX_E_CONNECTION_INVALID,
	             "complete_connect at the passive side");
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &ov),
	             NDX_E_INVALID_DEVICE_STATE, "another request into it");
	check_status(c, side_connect(&p->b, &p->address, NULL, 0), NDX_E_INVALID_DEVICE_STATE,
	             "connect with it");
	check_status(c, ndx_connector_disconnect(p->b.conn, &ov), NDX_E_CONNECTION_INVALID,
	             "disconnect of what was never connected");
}

void case_connection_failed_accept_uses_its_connector_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_status(c, ndx_connector_reject(p->a.conn, NULL, 0), NDX_OK, "reject of the answer");
	check_ends(c, &p->b.ov, NDX_E_CONNECTION_REFUSED, "accept");
	is_used_up(c, p);
}

void case_connection_cancelled_accept_uses_its_connector_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_status(c, ndx_connector_cancel(p->b.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->b.ov), NDX_E_CANCELED, "accept");
	is_used_up(c, p);
}

void case_connection_rejecting_uses_its_connector_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p))
		return;
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	is_used_up(c, p);
	/* the other side's may try again, and its queue pair, too */
	side_new_connector(&p->b);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}

/* Data that are announced and not there are refused, and nothing has changed by it. */
void case_connection_private_data_has_to_be_there(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	size_t length = 4;

	if (!p)
		return;
	check_status(c, side_connect(&p->a, &p->address, NULL, 4), NDX_E_ACCESS_VIOLATION,
	             "connect with 4 bytes at NULL");
	pair_ask(p);
	check_status(c, side_accept(&p->b, NULL, 4), NDX_E_ACCESS_VIOLATION,
	             "accept with 4 bytes at NULL");
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 4), NDX_E_ACCESS_VIOLATION,
	             "reject with 4 bytes at NULL");
	check_status(c, ndx_connector_get_private_data(p->b.conn, NULL, &length),
	             NDX_E_INVALID_PARAMETER, "get_private_data into 4 bytes at NULL");
	check_status(c, ndx_connector_get_private_data(p->b.conn, NULL, NULL),
	             NDX_E_INVALID_PARAMETER, "get_private_data without a length");
	(void)(pair_answer(p) && pair_complete(p) && message_passes(&p->a, &p->b, 64));
}

/* The listener goes while the request is on its way: the attempt ends, whichever was faster. */
void case_connection_listener_closed_while_a_request_comes(struct check *c)
{
	struct ndx_adapter *own = NULL; /* of B, so that the sides run at the same time */
	struct side_attr attr[2];
	enum ndx_status status;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	check_status(c, ndx_adapter_open(c->world->places[1].uri, &own), NDX_OK, "open");
	attr[1].adapter = own;
	for (unsigned i = 0; i < 60 && own && !check_over(c); i++) {
		struct pair *p = pair_open(c, &attr[0], &attr[1]);
		uint32_t spins = check_below(c, 20000);

		if (!p)
			break;
		check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_PENDING, "connect");
		for (volatile uint32_t n = 0; n < spins; n++)
			continue;
		ndx_listener_close(p->listener);
		p->listener = NULL;
		status = check_result_of(c, NDX_PENDING, &p->a.ov);
		check_either(c, status, NDX_E_CONNECTION_REFUSED, NDX_E_CONNECTION_ABORTED,
		             "connect to a listener that goes");
		pair_close_all(c);
	}
	pair_close_all(c);
	ndx_adapter_close(own);
}

/* The blocking helpers need a thread at the other end: a client that comes twice. */
struct client {
	struct pair *p;
	enum ndx_status first, second;
	struct ndx_connector *conn;
};

static void *come_twice(void *arg)
{
	struct client *client = arg;
	struct side *a = &client->p->a;
	struct sockaddr_storage *to = &client->p->address;

	client->first = ndx_connect_to(a->adapter, a->qp, address_of(to), address_length(to), "bad",
	                               3, WAIT_MS, &client->conn);
	client->second = ndx_connect_to(a->adapter, a->qp, address_of(to), address_length(to),
	                                "good", 4, WAIT_MS, &client->conn);
	return NULL;
}

/* Take a request and compare its private data. */
static struct ndx_connector *get_request_with(struct pair *p, const char *want)
{
	struct check *c = p->b.c;
	struct ndx_connector *conn = NULL;
	char data[256];
	size_t length = sizeof(data);

	if (!check_status(c, ndx_get_request(p->b.adapter, p->listener, WAIT_MS, &conn), NDX_OK,
	                  "get_request"))
		return NULL;
	check_status(c, ndx_connector_get_private_data(conn, data, &length), NDX_OK,
	             "get_private_data");
	check_that(c, length >= strlen(want) && memcmp(data, want, strlen(want)) == 0,
	           "the request does not say \"%s\"", want);
	return conn;
}

void case_connection_request_helper_shows_the_request_before_the_accept(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct client client = {.p = p};
	struct ndx_connector *conn = NULL;
	pthread_t thread;

	if (!p)
		return;
	check_status(c, ndx_get_request(p->b.adapter, p->listener, 50, &conn), NDX_E_IO_TIMEOUT,
	             "get_request without a client");
	check_that(c, conn == NULL, "an output of a failed call was touched");
	if (!check_that(c, pthread_create(&thread, NULL, come_twice, &client) == 0, "thread"))
		return;
	conn = get_request_with(p, "bad");
	if (conn)
		check_status(c, ndx_connector_reject(conn, NULL, 0), NDX_OK, "reject");
	ndx_connector_close(conn);
	conn = get_request_with(p, "good");
	if (conn)
		check_status(c, ndx_accept(conn, p->b.qp, NULL, 0, WAIT_MS), NDX_OK, "accept");
	(void)pthread_join(thread, NULL);
	check_status(c, client.first, NDX_E_CONNECTION_REFUSED, "connect_to that is rejected");
	check_status(c, client.second, NDX_OK, "connect_to that is accepted");
	if (conn) {
		ndx_connector_close(p->b.conn);
		p->b.conn = conn;
	}
	if (client.conn) {
		ndx_connector_close(p->a.conn);
		p->a.conn = client.conn;
	}
	if (check_over(c))
		return;
	check_status(c, ndx_accept(p->b.conn, p->b.qp, NULL, 0, WAIT_MS), NDX_E_CONNECTION_ACTIVE,
	             "accept again");
	message_passes(&p->a, &p->b, 16);
}

/*
 * The active side sends as soon as it may, and B asks its completion queue before its accept. So
 * whether the accept has completed when the result is there is up to chance, and a send of B may be
 * refused then; what came and what was refused must be right either way.
 */
static bool first_message(struct check *c)
{
	struct side_attr attr;
	enum ndx_status st;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_open(c, &attr, NULL);
	if (!p)
		return false;
	receive_ok(&p->a, 0, 0, 64);
	receive_ok(&p->b, 0, 0, 64);
	if (!pair_ask(p) || !pair_answer(p))
		return false;
	pattern_fill(p->a.buf + 256, 64, 5);
	check_async(c, ndx_connector_complete_connect(p->a.conn, &p->a.ov), &p->a.ov, NDX_OK,
	            "complete_connect");
	sends_ok(&p->a, 8, 2, 256, 32);
	expect_received(&p->b, 0, 32);
	st = send_raw(&p->b, 9, 0, 32, 0);
	check_either(c, st, NDX_OK, NDX_E_CONNECTION_INVALID,
	             "send with the first message, whether or not the accept has completed");
	receive_ok(&p->b, 1, 32, 32);
	check_ends(c, &p->b.ov, NDX_OK, "accept");
	if (st != NDX_OK)
		send_ok(&p->b, 9, 0, 32, 0);
	expect_received(&p->b, 1, 32);
	expect(&p->b, NDX_REQUEST_SEND, 9, NDX_OK);
	expect_run(&p->a, NDX_REQUEST_SEND, 8, 2, NDX_OK);
	expect_received(&p->a, 0, 32);
	pattern_there(c, p->b.buf, 64, 5, "the first messages");
	pattern_there(c, p->a.buf, 32, 5, "the answer");
	return side_disconnect(&p->a, NDX_OK) && side_disconnect(&p->b, NDX_OK);
}

void case_connection_first_message_does_not_wait_for_the_accept(struct check *c)
{
	enum { ROUNDS = 16 };

	for (size_t i = 0; i < ROUNDS && first_message(c); i++)
		continue;
}
