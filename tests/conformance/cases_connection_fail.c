/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.*: attempts that do not end in a connection, and arguments that cannot work. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "cases.h"
#include "traffic.h"

/* The listener rejects with so much; A gets just that, and REFUSED. */
static bool rejected_with(struct check *c, size_t length)
{
	struct pair *p = pair_open(c, NULL, NULL);
	uint8_t data[512];
	uint8_t got[512];
	size_t room = sizeof(got);

	if (!p || !pair_ask(p))
		return false;
	pattern_fill(data, length, 5);
	check_status(c, ndx_connector_reject(p->b.conn, length ? data : NULL, length), NDX_OK,
	             "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	check_status(c, ndx_connector_get_private_data(p->a.conn, got, &room), NDX_OK,
	             "get_private_data of the reject");
	check_that(c, room == length, "reject sent %zu bytes, A got %zu", length, room);
	pattern_there(c, got, length, 5, "private data of the reject");
	return check_status(c, side_accept(&p->b, NULL, 0), NDX_E_CONNECTION_INVALID,
	                    "accept after reject");
}

void case_connection_listener_rejects_with_data(struct check *c)
{
	size_t most = c->world->places[1].info.max_callee_data;

	(void)(rejected_with(c, 0) && rejected_with(c, 1) && rejected_with(c, most));
}

void case_connection_refused_attempt_may_be_repeated(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 2, 0, 64);
	pair_ask(p);
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	side_new_connector(&p->b);
	if (!pair_connect(p))
		return;
	/* the receives of before the failure are still there */
	pattern_fill(p->b.buf, 128, 6);
	sends_ok(&p->b, 4, 2, 0, 64);
	expect_run(&p->b, NDX_REQUEST_SEND, 4, 2, NDX_OK);
	expect_received(&p->a, 0, 64);
	expect_received(&p->a, 1, 64);
	pattern_there(c, p->a.buf, 128, 6, "message after a failed attempt");
}

void case_connection_active_side_rejects_the_answer(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	char got[8];
	size_t room = sizeof(got);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_status(c, ndx_connector_reject(p->a.conn, "no", 2), NDX_OK, "reject of the answer");
	check_ends(c, &p->b.ov, NDX_E_CONNECTION_REFUSED, "accept");
	check_status(c, ndx_connector_get_private_data(p->b.conn, got, &room), NDX_OK,
	             "get_private_data of the reject");
	check_that(c, room == 2 && memcmp(got, "no", 2) == 0,
	           "private data of the reject: %zu bytes", room);
	check_status(c, ndx_connector_complete_connect(p->a.conn, &p->a.ov),
	             NDX_E_CONNECTION_INVALID, "complete_connect after reject");
}

void case_connection_attempt_without_a_listener_is_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 1, 0, 64);
	if (!pair_without_listener(p))
		return;
	check_async(c, side_connect(&p->a, &p->address, NULL, 0), &p->a.ov,
	            NDX_E_CONNECTION_REFUSED, "connect where nobody listens");
	/* the same connector and queue pair serve another attempt */
	side_new_connector(&p->b);
	p->listener = listener_open(c, p->b.adapter, place_address(p->b.place, AF_UNSPEC), 0,
	                            &p->address);
	if (!p->listener || !pair_connect(p))
		return;
	send_ok(&p->b, 1, 0, 64, 0);
	expect(&p->b, NDX_REQUEST_SEND, 1, NDX_OK);
	expect_received(&p->a, 0, 64);
}

void case_connection_closed_listener_refuses_requests_that_were_not_taken(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct pair *taken;

	if (!p)
		return;
	taken = pair_open_on(p, NULL, NULL);
	if (!taken || !pair_ask(taken))
		return;
	check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_PENDING, "connect");
	check_pending(c, &p->a.ov, "connect that nobody took");
	ndx_listener_close(p->listener);
	p->listener = NULL;
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect to a listener that closed");
	/* what is in a connector stays valid */
	(void)(pair_answer(taken) && pair_complete(taken) &&
	       message_passes(&taken->a, &taken->b, 64));
}

void case_connection_listener_close_cancels_in_order(struct check *c)
{
	struct ndx_overlapped *done[4];
	struct ndx_port *port = NULL;
	struct pair *p = pair_open(c, NULL, NULL);
	struct pair *other;

	if (!p)
		return;
	other = pair_open_on(p, NULL, NULL);
	if (!other || !check_status(c, ndx_port_create(&port), NDX_OK, "port_create"))
		return;
	p->b.ov.port = port;
	other->b.ov.port = port;
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_PENDING, "get_connection_request");
	check_status(c,
	             ndx_listener_get_connection_request(p->listener, other->b.conn, &other->b.ov),
	             NDX_PENDING, "get_connection_request");
	ndx_listener_close(p->listener);
	p->listener = NULL;
	check_that(c, ndx_port_get(port, done, 4, 0) == 2, "not both were complete on return");
	check_that(c, check_over(c) || (done[0] == &p->b.ov && done[1] == &other->b.ov),
	           "completed in another order");
	check_status(c, p->b.ov.status, NDX_E_CANCELED, "first request");
	check_status(c, other->b.ov.status, NDX_E_CANCELED, "second request");
	ndx_port_close(port);
	p->b.ov.port = NULL;
	other->b.ov.port = NULL;
}

void case_connection_backlog_full_refuses(struct check *c)
{
	enum { MANY = 4 };
	struct sockaddr_storage address;
	struct ndx_listener *listener;
	struct pair *p[MANY];
	unsigned refused = 0;

	if (!pairs_open(c, p, MANY, NULL, NULL))
		return;
	listener = listener_open(c, p[0]->b.adapter, place_address(p[0]->b.place, AF_UNSPEC), 1,
	                         &address);
	if (!listener)
		return;
	for (size_t i = 0; i < MANY; i++)
		check_status(c, side_connect(&p[i]->a, &address, NULL, 0), NDX_PENDING, "connect");
	for (uint64_t until = now_ms() + WAIT_MS; refused < MANY - 1 && now_ms() < until;) {
		refused = 0;
		for (size_t i = 0; i < MANY; i++)
			refused += ndx_overlapped_wait(&p[i]->a.ov, 1) == NDX_E_CONNECTION_REFUSED;
	}
	check_that(c, refused == MANY - 1, "with a backlog of 1, %u of %d were refused", refused,
	           MANY);
	check_async(c, ndx_listener_get_connection_request(listener, p[0]->b.conn, &p[0]->b.ov),
	            &p[0]->b.ov, NDX_OK, "the one that waits");
	ndx_listener_close(listener);
}

void case_connection_connect_cancelled_before_the_answer(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p))
		return;
	check_status(c, ndx_connector_cancel(p->a.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->a.ov), NDX_E_CANCELED, "connect");
	check_outcome(c, side_accept(&p->b, NULL, 0), &p->b.ov, NDX_E_CONNECTION_ABORTED,
	              "accept of an attempt that was given up");
	/* and again */
	side_new_connector(&p->b);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}

void case_connection_connector_closed_before_the_answer(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p))
		return;
	side_close_connector(&p->a);
	check_status(c, ndx_overlapped_status(&p->a.ov), NDX_E_CANCELED, "connect");
	check_outcome(c, side_accept(&p->b, NULL, 0), &p->b.ov, NDX_E_CONNECTION_ABORTED,
	              "accept of an attempt that was given up");
}

void case_connection_connector_closed_after_the_answer(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	side_close_connector(&p->a);
	check_ends(c, &p->b.ov, NDX_E_CONNECTION_REFUSED, "accept");
	/* the queue pair of the active side can be used again */
	side_new_connector(&p->a);
	side_new_connector(&p->b);
	side_new_qp(&p->b);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}

void case_connection_reject_of_an_attempt_given_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	enum ndx_status status;

	if (!p || !pair_ask(p))
		return;
	side_close_connector(&p->a);
	status = ndx_connector_reject(p->b.conn, NULL, 0);
	check_either(c, status, NDX_OK, NDX_E_CONNECTION_ABORTED, "reject");
}

void case_connection_cancelled_accept_ends_the_attempt(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	enum ndx_status status;

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_status(c, ndx_connector_cancel(p->b.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->b.ov), NDX_E_CANCELED, "accept");
	check_status(c, side_accept(&p->b, NULL, 0), NDX_E_CONNECTION_INVALID,
	             "accept on a connector whose accept was cancelled");
	/* A completes before or after the news has reached it; either way it does not stay
	 * connected */
	status = check_result_of(c, ndx_connector_complete_connect(p->a.conn, &p->a.ov), &p->a.ov);
	if (status == NDX_OK) {
		side_start_notify(&p->a);
		side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
	} else {
		check_either(c, status, NDX_E_CONNECTION_ABORTED, NDX_E_CONNECTION_INVALID,
		             "complete_connect");
	}
}

void case_connection_passive_connector_closed_with_a_request(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p))
		return;
	side_close_connector(&p->b);
	check_either(c, check_result_of(c, NDX_PENDING, &p->a.ov), NDX_E_CONNECTION_REFUSED,
	             NDX_E_CONNECTION_ABORTED, "connect to a consumer that closed");
}

void case_connection_no_answer_in_time(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	uint64_t start;

	side_attr_init(&attr);
	attr.connect_ms = 1200; /* enough for the request and the last attempt, on a slow machine */
	p = pair_open(c, &attr, NULL);
	if (!p)
		return;
	start = now_ms();
	pair_ask(p);
	check_ends(c, &p->a.ov, NDX_E_IO_TIMEOUT, "connect");
	check_that(c, now_ms() - start >= 1180, "gave up after %u ms of 1200",
	           (unsigned)(now_ms() - start));
	check_outcome(c, side_accept(&p->b, NULL, 0), &p->b.ov, NDX_E_CONNECTION_ABORTED,
	              "accept after that");
	side_new_connector(&p->b);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}

void case_connection_objects_in_use_are_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct pair *other;
	struct ndx_overlapped ov;

	if (!p)
		return;
	other = pair_open_on(p, NULL, NULL);
	if (!other || !pair_ask(p))
		return;
	ndx_overlapped_init(&ov);
	check_status(c,
	             ndx_connector_connect(p->a.conn, other->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, &ov),
	             NDX_E_CONNECTION_ACTIVE, "connect twice");
	check_status(c,
	             ndx_connector_connect(other->a.conn, p->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, &ov),
	             NDX_E_CONNECTION_ACTIVE, "connect of a queue pair that is connecting");
	pair_answer(p);
	check_status(c, ndx_connector_accept(p->b.conn, other->b.qp, NULL, &ov),
	             NDX_E_CONNECTION_ACTIVE, "accept twice");
	pair_complete(p);
	check_status(c,
	             ndx_connector_connect(other->a.conn, p->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, &ov),
	             NDX_E_CONNECTION_ACTIVE, "connect of a queue pair that is connected");
	message_passes(&p->a, &p->b, 64);
}

void case_connection_calls_out_of_turn_are_refused(struct check *c)
{
	struct ndx_listener *listener = NULL;
	struct pair *p = pair_open(c, NULL, NULL);
	struct sockaddr_storage address;
	socklen_t room = sizeof(address);

	if (!p)
		return;
	check_status(c, side_accept(&p->b, NULL, 0), NDX_E_CONNECTION_INVALID,
	             "accept without a request");
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_E_CONNECTION_INVALID,
	             "reject of nothing");
	check_status(c, ndx_connector_complete_connect(p->a.conn, &p->a.ov),
	             NDX_E_CONNECTION_INVALID, "complete_connect without connect");
	check_status(c, ndx_listener_create(p->b.adapter, &listener), NDX_OK, "listener_create");
	check_status(c, ndx_listener_get_connection_request(listener, p->b.conn, &p->b.ov),
	             NDX_E_INVALID_DEVICE_STATE, "get_connection_request before listen");
	check_status(c, ndx_listener_get_local_address(listener, address_of(&address), &room),
	             NDX_E_INVALID_DEVICE_STATE, "get_local_address before listen");
	check_status(c, ndx_listener_listen(listener, 0), NDX_E_INVALID_DEVICE_STATE,
	             "listen before bind");
	check_status(c, ndx_listener_listen(p->listener, 0), NDX_E_INVALID_DEVICE_STATE,
	             "listen twice");
	ndx_listener_close(listener);
	pair_ask(p);
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_E_INVALID_DEVICE_STATE, "get_connection_request into a used connector");
	check_status(c, ndx_connector_complete_connect(p->a.conn, &p->b.ov),
	             NDX_E_CONNECTION_INVALID, "complete_connect before the answer");
	(void)(pair_answer(p) && pair_complete(p));
}

void case_connection_time_outs_have_rules(struct check *c)
{
	struct ndx_connector *conn = NULL;
	struct ndx_connector_attr attr;
	struct ndx_adapter *adapter = c->world->places[0].adapter;

	ndx_connector_attr_init(&attr);
	check_that(c,
	           attr.drain_timeout_ms == 2000 && attr.disconnect_timeout_ms == 5000 &&
	                   attr.connect_timeout_ms == NDX_INFINITE,
	           "the defaults are others than documented");
	attr.drain_timeout_ms = 2001;
	check_status(c, ndx_connector_create(adapter, &attr, &conn), NDX_E_INVALID_PARAMETER,
	             "a drain of more than 2 s");
	attr.drain_timeout_ms = 500;
	attr.disconnect_timeout_ms = 500;
	check_status(c, ndx_connector_create(adapter, &attr, &conn), NDX_E_INVALID_PARAMETER,
	             "disconnect time-out not larger than the drain's");
	check_that(c, conn == NULL, "an output of a failed call was touched");
	check_status(c, ndx_connector_create(adapter, NULL, NULL), NDX_E_INVALID_PARAMETER,
	             "connector_create without output");
}

void case_connection_helpers_give_up_in_time(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_connector *conn = NULL;
	uint64_t start = now_ms();

	if (!p)
		return;
	check_status(c, ndx_accept_from(p->b.adapter, p->listener, p->b.qp, NULL, 0, 50, &conn),
	             NDX_E_IO_TIMEOUT, "accept_from that nobody calls");
	check_status(c,
	             ndx_connect_to(p->a.adapter, p->a.qp, address_of(&p->address),
	                            address_length(&p->address), NULL, 0, 50, &conn),
	             NDX_E_IO_TIMEOUT, "connect_to that nobody answers");
	check_that(c, now_ms() - start >= 80 && now_ms() - start < 80 + WAIT_MS,
	           "two waits of 50 ms took %u ms", (unsigned)(now_ms() - start));
	check_that(c, conn == NULL, "an output of a failed call was touched");
	if (!pair_without_listener(p))
		return;
	check_status(c,
	             ndx_connect_to(p->a.adapter, p->a.qp, address_of(&p->address),
	                            address_length(&p->address), NULL, 0, WAIT_MS, &conn),
	             NDX_E_CONNECTION_REFUSED, "connect_to where nobody listens");
}

struct patience {
	struct pair *p;
	enum ndx_status status;
};

static void *accept_patiently(void *arg)
{
	struct patience *patience = arg;
	struct side *b = &patience->p->b;
	struct ndx_connector *conn = NULL;

	patience->status =
		ndx_accept_from(b->adapter, patience->p->listener, b->qp, NULL, 0, WAIT_MS, &conn);
	if (patience->status == NDX_OK) {
		ndx_connector_close(b->conn);
		b->conn = conn;
	}
	return NULL;
}

void case_connection_accept_helper_outlives_clients_that_give_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct patience patience = {.p = p, .status = NDX_PENDING};
	struct ndx_connector *conn = NULL;
	pthread_t thread;

	if (!p || !check_that(c, pthread_create(&thread, NULL, accept_patiently, &patience) == 0,
	                      "thread"))
		return;
	for (unsigned i = 0; i < 3; i++) {
		/* goes as far as the answer, then turns away */
		check_async(c, side_connect(&p->a, &p->address, NULL, 0), &p->a.ov, NDX_OK,
		            "connect");
		check_status(c, ndx_connector_reject(p->a.conn, NULL, 0), NDX_OK, "reject");
		side_new_connector(&p->a);
	}
	check_status(c,
	             ndx_connect_to(p->a.adapter, p->a.qp, address_of(&p->address),
	                            address_length(&p->address), NULL, 0, WAIT_MS, &conn),
	             NDX_OK, "connect_to");
	(void)pthread_join(thread, NULL);
	check_status(c, patience.status, NDX_OK, "accept_from");
	ndx_connector_close(p->a.conn);
	p->a.conn = conn;
	message_passes(&p->a, &p->b, 16);
}

void case_connection_foreign_objects_are_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_adapter *adapter = NULL;
	struct side_attr attr;
	struct pair *foreign = NULL;

	side_attr_init(&attr);
	if (!p ||
	    !check_status(c, ndx_adapter_open(p->a.place->uri, &adapter), NDX_OK, "adapter_open"))
		return;
	attr.adapter = adapter;
	foreign = pair_open_on(p, &attr, NULL);
	ndx_adapter_close(adapter);
	if (!foreign)
		return;
	check_status(c,
	             ndx_connector_connect(p->a.conn, foreign->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, &p->a.ov),
	             NDX_E_INVALID_PARAMETER, "connect of another adapter's queue pair");
	check_status(c, ndx_listener_get_connection_request(p->listener, foreign->a.conn, &p->a.ov),
	             NDX_E_INVALID_PARAMETER, "request into another adapter's connector");
	pair_ask(p);
	check_status(c, ndx_connector_accept(p->b.conn, foreign->a.qp, NULL, &p->b.ov),
	             NDX_E_INVALID_PARAMETER, "accept with another adapter's queue pair");
	(void)(pair_answer(p) && pair_complete(p));
}
