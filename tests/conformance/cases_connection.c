/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.*: how a connection comes to be when both sides want it. */
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>

#include "cases.h"
#include "peer.h"
#include "traffic.h"

enum { DATA_MAX = 512 };

/* Connect and accept with these numbers of bytes; the other side must get just these. */
static bool lengths_arrive(struct check *c, size_t caller, size_t callee)
{
	struct pair *p = pair_open(c, NULL, NULL);
	uint8_t sent[2][DATA_MAX];
	uint8_t got[DATA_MAX];
	size_t length = sizeof(got);

	if (!p)
		return false;
	pattern_fill(sent[0], caller, 1);
	pattern_fill(sent[1], callee, 2);
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_PENDING, "get_connection_request");
	check_status(c, side_connect(&p->a, &p->address, caller ? sent[0] : NULL, caller),
	             NDX_PENDING, "connect");
	check_ends(c, &p->b.ov, NDX_OK, "get_connection_request");
	check_status(c, ndx_connector_get_private_data(p->b.conn, got, &length), NDX_OK,
	             "get_private_data at B");
	check_that(c, length == caller, "connect sent %zu bytes, B got %zu", caller, length);
	pattern_there(c, got, caller, 1, "private data at B");
	check_status(c, side_accept(&p->b, callee ? sent[1] : NULL, callee), NDX_PENDING, "accept");
	check_ends(c, &p->a.ov, NDX_OK, "connect");
	length = sizeof(got);
	check_status(c, ndx_connector_get_private_data(p->a.conn, got, &length), NDX_OK,
	             "get_private_data at A");
	check_that(c, length == callee, "accept sent %zu bytes, A got %zu", callee, length);
	pattern_there(c, got, callee, 2, "private data at A");
	return pair_complete(p);
}

void case_connection_private_data_has_its_true_length(struct check *c)
{
	size_t caller = c->world->places[0].info.max_caller_data;
	size_t callee = c->world->places[1].info.max_callee_data;

	(void)(lengths_arrive(c, 0, 0) && lengths_arrive(c, 1, 1) && lengths_arrive(c, 1, 0) &&
	       lengths_arrive(c, 0, 1) && lengths_arrive(c, caller - 1, callee - 1) &&
	       lengths_arrive(c, caller, callee));
}

void case_connection_private_data_too_long_changes_nothing(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	uint8_t data[DATA_MAX] = {0};
	size_t caller = c->world->places[0].info.max_caller_data;
	size_t callee = c->world->places[1].info.max_callee_data;

	if (!p || !check_that(c, caller < DATA_MAX && callee < DATA_MAX, "limits beyond the case"))
		return;
	check_status(c, side_connect(&p->a, &p->address, data, caller + 1),
	             NDX_E_INVALID_BUFFER_SIZE, "connect with too much");
	pair_ask(p);
	check_status(c, side_accept(&p->b, data, callee + 1), NDX_E_INVALID_BUFFER_SIZE,
	             "accept with too much");
	check_status(c, ndx_connector_reject(p->b.conn, data, callee + 1),
	             NDX_E_INVALID_BUFFER_SIZE, "reject with too much");
	(void)(pair_answer(p) && pair_complete(p));
}

void case_connection_private_data_that_does_not_fit_is_not_copied(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	uint8_t data[32];
	uint8_t got[32];
	size_t length = 0;

	if (!p)
		return;
	pattern_fill(data, sizeof(data), 3);
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_PENDING, "get_connection_request");
	check_status(c, side_connect(&p->a, &p->address, data, sizeof(data)), NDX_PENDING,
	             "connect");
	check_ends(c, &p->b.ov, NDX_OK, "get_connection_request");
	check_status(c, ndx_connector_get_private_data(p->b.conn, NULL, &length),
	             NDX_E_BUFFER_OVERFLOW, "get_private_data without room");
	check_no_room(c, "get_private_data", sizeof(data), 0);
	check_that(c, length == sizeof(data), "it takes %zu bytes, not %zu", sizeof(data), length);
	memset(got, 0xee, sizeof(got));
	length = 8;
	check_status(c, ndx_connector_get_private_data(p->b.conn, got, &length),
	             NDX_E_BUFFER_OVERFLOW, "get_private_data with little room");
	check_no_room(c, "get_private_data", sizeof(data), 8);
	check_that(c, length == sizeof(data), "it takes %zu bytes, not %zu", sizeof(data), length);
	bytes_are(c, got, sizeof(got), 0xee, "a buffer that is too small");
	(void)(pair_answer(p) && pair_complete(p));
}

void case_connection_getters_answer_from_their_time_on(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct sockaddr_storage address;
	socklen_t room = sizeof(address);
	uint32_t in = 7;
	uint32_t out = 7;
	size_t length = 0;

	if (!p)
		return;
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out),
	             NDX_E_CONNECTION_INVALID, "get_read_limits of a new connector");
	check_status(c, ndx_connector_get_private_data(p->a.conn, NULL, &length),
	             NDX_E_CONNECTION_INVALID, "get_private_data of a new connector");
	check_status(c, ndx_connector_get_local_address(p->a.conn, address_of(&address), &room),
	             NDX_E_CONNECTION_INVALID, "get_local_address of a new connector");
	check_status(c, ndx_connector_get_peer_address(p->a.conn, address_of(&address), &room),
	             NDX_E_CONNECTION_INVALID, "get_peer_address of a new connector");
	check_that(c, in == 7 && out == 7, "outputs of a failed call were touched");
	if (!pair_ask(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->b.conn, &in, &out), NDX_OK,
	             "get_read_limits of a request");
	room = sizeof(address);
	check_status(c, ndx_connector_get_peer_address(p->b.conn, address_of(&address), &room),
	             NDX_OK, "get_peer_address before accept");
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out),
	             NDX_E_CONNECTION_INVALID, "get_read_limits while connecting");
	if (!pair_answer(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out), NDX_OK,
	             "get_read_limits before complete_connect");
	room = sizeof(address);
	check_status(c, ndx_connector_get_peer_address(p->a.conn, address_of(&address), &room),
	             NDX_OK, "get_peer_address before complete_connect");
	pair_complete(p);
}

static void address_getter_keeps_its_rule(struct check *c, struct ndx_connector *conn)
{
	struct sockaddr_storage address;
	struct sockaddr_storage untouched;
	socklen_t room = 3;

	memset(&address, 0xee, sizeof(address));
	untouched = address;
	check_status(c, ndx_connector_get_local_address(conn, address_of(&address), &room),
	             NDX_E_BUFFER_OVERFLOW, "get_local_address with 3 bytes");
	check_no_room(c, "get_local_address", room, 3);
	check_that(c, room >= sizeof(struct sockaddr_in) && room <= sizeof(struct sockaddr_in6),
	           "it takes %u bytes?", (unsigned)room);
	room = 3;
	check_status(c, ndx_connector_get_peer_address(conn, address_of(&address), &room),
	             NDX_E_BUFFER_OVERFLOW, "get_peer_address with 3 bytes");
	check_no_room(c, "get_peer_address", room, 3);
	check_that(c, memcmp(&address, &untouched, sizeof(address)) == 0,
	           "an address was copied in part");
	check_status(c, ndx_connector_get_peer_address(conn, address_of(&address), &room), NDX_OK,
	             "get_peer_address with the room it asked for");
}

void case_connection_addresses_that_do_not_fit_are_not_copied(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct sockaddr_storage address;
	socklen_t room = 1;

	if (!p)
		return;
	address_getter_keeps_its_rule(c, p->a.conn);
	address_getter_keeps_its_rule(c, p->b.conn);
	check_status(c, ndx_listener_get_local_address(p->listener, address_of(&address), &room),
	             NDX_E_BUFFER_OVERFLOW, "listener_get_local_address with 1 byte");
	check_no_room(c, "listener_get_local_address", room, 1);
	check_status(c, ndx_listener_get_local_address(p->listener, address_of(&address), &room),
	             NDX_OK, "listener_get_local_address with the room it asked for");
}

static bool read_address(struct check *c, struct ndx_connector *conn, bool peer,
                         struct sockaddr_storage *address)
{
	socklen_t room = sizeof(*address);

	memset(address, 0, sizeof(*address));
	if (peer)
		return check_status(
			c, ndx_connector_get_peer_address(conn, address_of(address), &room), NDX_OK,
			"get_peer_address");
	return check_status(c, ndx_connector_get_local_address(conn, address_of(address), &room),
	                    NDX_OK, "get_local_address");
}

static void addresses_agree(struct check *c, int family)
{
	struct sockaddr_storage local[2];
	struct sockaddr_storage remote[2];
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.family = family;
	for (size_t i = 0; i < 2; i++) {
		if (!place_address(&c->world->places[i], family)) {
			check_skip(c, "the adapter has no %s address",
			           family == AF_INET ? "IPv4" : "IPv6");
			return;
		}
	}
	p = pair_up(c, &attr);
	if (!p || !read_address(c, p->a.conn, false, &local[0]) ||
	    !read_address(c, p->a.conn, true, &remote[0]) ||
	    !read_address(c, p->b.conn, false, &local[1]) ||
	    !read_address(c, p->b.conn, true, &remote[1]))
		return;
	check_that(c, p->address.ss_family == family, "the listener's address has another family");
	check_that(c, address_equal(&remote[0], &p->address), "A's peer is not the listener");
	check_that(c, address_equal(&local[1], &p->address), "B is not where the listener is");
	check_that(c, address_equal(&local[0], &remote[1]), "B sees A at another address");
	check_that(c, address_port(&local[0]) != 0, "A has no port");
	message_passes(&p->a, &p->b, 100);
}

void case_connection_ipv4(struct check *c)
{
	addresses_agree(c, AF_INET);
}

void case_connection_ipv6(struct check *c)
{
	addresses_agree(c, AF_INET6);
}

static uint32_t smaller(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

void case_connection_read_limits_are_crossed_and_lowered(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;
	uint32_t in = 99;
	uint32_t out = 99;
	uint32_t most_in = c->world->places[1].info.max_inbound_read_limit;
	uint32_t most_out = c->world->places[1].info.max_outbound_read_limit;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	attr[0].inbound_reads = 3;
	attr[0].outbound_reads = 4;
	attr[1].inbound_reads = 2;
	attr[1].outbound_reads = 1;
	p = pair_open(c, &attr[0], &attr[1]);
	if (!p || !pair_ask(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->b.conn, &in, &out), NDX_OK,
	             "get_read_limits at B");
	check_that(c, in == smaller(4, most_in) && out == smaller(3, most_out),
	           "A offered to serve 3 and to read 4, B sees inbound %u, outbound %u", in, out);
	if (!pair_answer(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out), NDX_OK,
	             "get_read_limits at A");
	check_that(c, in == 1 && out == smaller(2, most_in),
	           "B serves 2 and reads 1, A sees inbound %u, outbound %u", in, out);
	if (!pair_complete(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->b.conn, &in, &out), NDX_OK,
	             "get_read_limits at B when connected");
	check_that(c, in == smaller(2, most_in) && out == 1,
	           "agreed: B serves 2 and reads 1; it sees inbound %u, outbound %u", in, out);
}

static uint32_t lower(uint32_t one, uint32_t other)
{
	return one < other ? one : other;
}

void case_connection_read_limits_too_large_are_lowered(struct check *c)
{
	const struct ndx_adapter_info *info = &c->world->places[0].info;
	struct side_attr attr;
	struct pair *p;
	uint32_t in = 0;
	uint32_t out = 0;

	side_attr_init(&attr);
	attr.inbound_reads = UINT32_MAX;
	attr.outbound_reads = UINT32_MAX;
	p = pair_up(c, &attr);
	if (!p)
		return;
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out), NDX_OK,
	             "get_read_limits");
	check_that(c, in > 0 && in <= info->max_inbound_read_limit, "inbound %u of at most %u", in,
	           info->max_inbound_read_limit);
	check_that(c, out > 0 && out <= info->max_outbound_read_limit, "outbound %u of at most %u",
	           out, info->max_outbound_read_limit);
	read_ok(&p->a, 1, 0, 64, &p->b, 0, 0);
	expect(&p->a, NDX_REQUEST_READ, 1, NDX_OK);
}

void case_connection_without_attributes_has_the_defaults(struct check *c)
{
	const struct ndx_adapter_info *a = &c->world->places[0].info;
	const struct ndx_adapter_info *b = &c->world->places[1].info;
	struct pair *p = pair_open(c, NULL, NULL);
	uint8_t data[8];
	size_t length = sizeof(data);
	uint32_t in = 0;
	uint32_t out = 0;

	if (!p)
		return;
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	             NDX_PENDING, "get_connection_request");
	check_status(c,
	             ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
	                                   address_length(&p->address), NULL, &p->a.ov),
	             NDX_PENDING, "connect");
	check_ends(c, &p->b.ov, NDX_OK, "get_connection_request");
	check_status(c, ndx_connector_get_private_data(p->b.conn, data, &length), NDX_OK,
	             "get_private_data");
	check_that(c, length == 0, "%zu bytes of private data", length);
	check_status(c, ndx_connector_accept(p->b.conn, p->b.qp, NULL, &p->b.ov), NDX_PENDING,
	             "accept");
	check_ends(c, &p->a.ov, NDX_OK, "connect");
	if (!pair_complete(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out), NDX_OK,
	             "get_read_limits");
	check_that(c, in == lower(a->max_inbound_read_limit, b->max_outbound_read_limit),
	           "inbound %u is not the lower of the two limits", in);
	check_that(c, out == lower(a->max_outbound_read_limit, b->max_inbound_read_limit),
	           "outbound %u is not the lower of the two limits", out);
	message_passes(&p->a, &p->b, 100);
}

void case_connection_accept_waits_for_complete_connect(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_pending(c, &p->b.ov, "accept before complete_connect");
	check_status(c, send_raw(&p->a, 1, 0, 8, 0), NDX_E_CONNECTION_INVALID,
	             "send before complete_connect");
	check_status(c, send_raw(&p->b, 1, 0, 8, 0), NDX_E_CONNECTION_INVALID,
	             "send while accept is pending");
	pair_complete(p);
	message_passes(&p->a, &p->b, 8);
}

void case_connection_slow_consumers_are_not_timed_out(struct check *c)
{
	struct ndx_overlapped never;
	struct pair *p = pair_open(c, NULL, NULL);
	uint64_t until = now_ms() + 6000;

	if (!p || !pair_ask(p))
		return;
	ndx_overlapped_init(&never);
	while (now_ms() < until && check_pending(c, &p->a.ov, "connect without an answer"))
		continue;
	pair_answer(p);
	until = now_ms() + 6000;
	while (now_ms() < until && check_pending(c, &p->b.ov, "accept before complete_connect"))
		continue;
	pair_complete(p);
	message_passes(&p->a, &p->b, 8);
}

void case_connection_passive_side_may_send_first(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 4, 0, 64);
	pair_connect(p);
	pattern_fill(p->b.buf, 256, 11);
	sends_ok(&p->b, 8, 4, 0, 64);
	expect_run(&p->b, NDX_REQUEST_SEND, 8, 4, NDX_OK);
	for (size_t i = 0; i < 4; i++)
		expect_received(&p->a, i, 64);
	pattern_there(c, p->a.buf, 256, 11, "messages of the passive side");
}

void case_connection_receives_posted_before_it_are_used(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_open(c, &attr, NULL);
	if (!p)
		return;
	receives_ok(&p->a, 0, 8, 0, 64);
	receives_ok(&p->b, 0, 8, 0, 64);
	pair_connect(p);
	sends_ok(&p->a, 20, 8, 1024, 64);
	sends_ok(&p->b, 20, 8, 1024, 64);
	expect_run(&p->a, NDX_REQUEST_SEND, 20, 8, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_SEND, 20, 8, NDX_OK);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 0, 8, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 8, NDX_OK);
}

void case_connection_requests_wait_until_they_are_asked_for(struct check *c)
{
	struct pair *p[3];
	uint8_t number;
	size_t length;
	unsigned seen = 0;

	if (!pairs_open(c, p, 3, NULL, NULL))
		return;
	for (size_t i = 0; i < 3; i++) {
		number = (uint8_t)i;
		check_status(c, side_connect(&p[i]->a, &p[0]->address, &number, 1), NDX_PENDING,
		             "connect");
	}
	check_pending(c, &p[2]->a.ov, "connect that nobody asked for");
	for (size_t i = 0; i < 3; i++) {
		check_async(c,
		            ndx_listener_get_connection_request(p[0]->listener, p[i]->b.conn,
		                                                &p[i]->b.ov),
		            &p[i]->b.ov, NDX_OK, "get_connection_request");
		length = 1;
		check_status(c, ndx_connector_get_private_data(p[i]->b.conn, &number, &length),
		             NDX_OK, "get_private_data");
		seen |= 1u << number;
		check_status(c, side_accept(&p[i]->b, &number, 1), NDX_PENDING, "accept");
	}
	check_that(c, seen == 7, "not all three requests came: mask %u", seen);
	for (size_t i = 0; i < 3; i++)
		check_ends(c, &p[i]->a.ov, NDX_OK, "connect");
}

void case_connection_requests_complete_the_oldest_question(struct check *c)
{
	struct pair *p[3];

	if (!pairs_open(c, p, 3, NULL, NULL))
		return;
	for (size_t i = 0; i < 3; i++)
		check_status(c,
		             ndx_listener_get_connection_request(p[0]->listener, p[i]->b.conn,
		                                                 &p[i]->b.ov),
		             NDX_PENDING, "get_connection_request");
	for (size_t i = 0; i < 3; i++) {
		check_status(c, side_connect(&p[i]->a, &p[0]->address, NULL, 0), NDX_PENDING,
		             "connect");
		check_ends(c, &p[i]->b.ov, NDX_OK, "the oldest get_connection_request");
		if (i < 2)
			check_pending(c, &p[i + 1]->b.ov, "the next get_connection_request");
	}
	for (size_t i = 0; i < 3; i++)
		(void)(pair_answer(p[i]) && pair_complete(p[i]));
	for (size_t i = 0; i < 3; i++)
		message_passes(&p[i]->a, &p[i]->b, 32);
}

void case_connection_many_through_one_listener(struct check *c)
{
	/* More at once than a provider may want to look at in one go. */
	enum { MANY = 200 };
	struct side_attr attr;
	struct pair *p[MANY];

	side_attr_init(&attr);
	attr.receive_depth = 4;
	attr.initiator_depth = 4;
	attr.buffer = 4096;
	if (!pairs_open(c, p, MANY, &attr, NULL))
		return;
	for (size_t i = 0; i < MANY; i++) {
		check_status(c,
		             ndx_listener_get_connection_request(p[0]->listener, p[i]->b.conn,
		                                                 &p[i]->b.ov),
		             NDX_PENDING, "get_connection_request");
		check_status(c, side_connect(&p[i]->a, &p[0]->address, NULL, 0), NDX_PENDING,
		             "connect");
	}
	for (size_t i = 0; i < MANY; i++) {
		check_ends(c, &p[i]->b.ov, NDX_OK, "get_connection_request");
		check_status(c, side_accept(&p[i]->b, NULL, 0), NDX_PENDING, "accept");
	}
	for (size_t i = 0; i < MANY; i++) {
		check_ends(c, &p[i]->a.ov, NDX_OK, "connect");
		check_async(c, ndx_connector_complete_connect(p[i]->a.conn, &p[i]->a.ov),
		            &p[i]->a.ov, NDX_OK, "complete_connect");
	}
	for (size_t i = 0; i < MANY; i++)
		check_ends(c, &p[i]->b.ov, NDX_OK, "accept");
}

void case_connection_from_another_process(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct peer peer;

	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_ECHO, 0)) {
		pattern_fill(p->b.buf + 8192, PEER_MESSAGE, 77);
		send_ok(&p->b, 10, 8192, PEER_MESSAGE, 0);
		expect(&p->b, NDX_REQUEST_SEND, 10, NDX_OK);
		expect_received(&p->b, 0, PEER_MESSAGE);
		pattern_there(c, p->b.buf, PEER_MESSAGE, 77, "echo");
		side_start_notify(&p->b);
		peer_disconnect(&peer);
		side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
		side_disconnect(&p->b, NDX_OK);
	}
	peer_end(&peer);
}

/* The blocking helpers need a thread at the other end. */
struct acceptor {
	struct pair *p;
	enum ndx_status status;
};

static void *accept_one(void *arg)
{
	struct acceptor *acceptor = arg;
	struct side *b = &acceptor->p->b;
	struct ndx_connector *conn = NULL;

	acceptor->status =
		ndx_accept_from(b->adapter, acceptor->p->listener, b->qp, "bb", 2, WAIT_MS, &conn);
	if (acceptor->status == NDX_OK) {
		ndx_connector_close(b->conn);
		b->conn = conn;
	}
	return NULL;
}

void case_connection_helpers_connect_and_disconnect(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct acceptor acceptor = {.p = p, .status = NDX_PENDING};
	struct ndx_connector *conn = NULL;
	enum ndx_status status;
	pthread_t thread;
	char data[4];
	size_t length = sizeof(data);

	if (!p ||
	    !check_that(c, pthread_create(&thread, NULL, accept_one, &acceptor) == 0, "thread"))
		return;
	status = ndx_connect_to(p->a.adapter, p->a.qp, address_of(&p->address),
	                        address_length(&p->address), "aaa", 3, WAIT_MS, &conn);
	check_status(c, status, NDX_OK, "connect_to");
	(void)pthread_join(thread, NULL);
	check_status(c, acceptor.status, NDX_OK, "accept_from");
	if (check_over(c))
		return;
	ndx_connector_close(p->a.conn);
	p->a.conn = conn;
	check_status(c, ndx_connector_get_private_data(p->b.conn, data, &length), NDX_OK,
	             "get_private_data");
	check_that(c, length == 3 && memcmp(data, "aaa", 3) == 0, "private data of connect_to");
	message_passes(&p->a, &p->b, 32);
	check_status(c, ndx_disconnect(p->a.conn, WAIT_MS), NDX_OK, "disconnect helper at A");
	check_status(c, ndx_disconnect(p->b.conn, WAIT_MS), NDX_OK, "disconnect helper at B");
}
