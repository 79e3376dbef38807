/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting over ofi:tcp, and every way to fail. */
#include "pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRIVATE_MAX 214u

static void assert_private_data(struct ndx_connector *connector, const void *data, size_t len)
{
	unsigned char got[256];
	size_t size = sizeof(got);

	assert_int_equal(ndx_connector_get_private_data(connector, got, &size), NDX_OK);
	assert_int_equal(size, len);
	assert_memory_equal(got, data, len);
}

static void private_data_and_limits_cross_with_their_true_length(void **state)
{
	struct pair *p = *state;
	unsigned char long_data[PRIVATE_MAX + 1];
	uint32_t inbound;
	uint32_t outbound;

	pair_fill(long_data, sizeof(long_data), 9);
	pair_make(p);
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_connector_connect(
				 p->a.connector, p->a.qp, (struct sockaddr *)&p->address,
				 sizeof(struct sockaddr_in),
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .private_data = long_data,
	                                                    .private_data_len = PRIVATE_MAX + 1,
	                                                    .inbound_read_limit = 3,
	                                                    .outbound_read_limit = 50},
				 &p->a.ov),
	                 NDX_E_INVALID_BUFFER_SIZE);
	assert_int_equal(ndx_connector_connect(
				 p->a.connector, p->a.qp, (struct sockaddr *)&p->address,
				 sizeof(struct sockaddr_in),
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .private_data = long_data,
	                                                    .private_data_len = PRIVATE_MAX,
	                                                    .inbound_read_limit = 3,
	                                                    .outbound_read_limit = 50},
				 &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_private_data(p->b.connector, long_data, PRIVATE_MAX);
	assert_int_equal(ndx_connector_accept(
				 p->b.connector, p->b.qp,
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .inbound_read_limit = 7,
	                                                    .outbound_read_limit = 2},
				 &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_private_data(p->a.connector, NULL, 0);
	assert_int_equal(ndx_connector_get_read_limits(p->a.connector, &inbound, &outbound),
	                 NDX_OK);
	assert_int_equal(inbound, 2);
	assert_int_equal(outbound, 7);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(ndx_connector_get_read_limits(p->b.connector, &inbound, &outbound),
	                 NDX_OK);
	assert_int_equal(inbound, 7);
	assert_int_equal(outbound, 2);
	pair_disconnect(p);
	pair_drop(p);
}

static void addresses_are_those_of_the_connection(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in a_local;
	struct sockaddr_in b_peer;
	socklen_t len = sizeof(a_local);

	pair_make(p);
	pair_connect(p);
	assert_int_equal(
		ndx_connector_get_local_address(p->a.connector, (struct sockaddr *)&a_local, &len),
		NDX_OK);
	len = sizeof(b_peer);
	assert_int_equal(
		ndx_connector_get_peer_address(p->b.connector, (struct sockaddr *)&b_peer, &len),
		NDX_OK);
	assert_int_equal(a_local.sin_port, b_peer.sin_port);
	assert_int_not_equal(a_local.sin_port, 0);
	assert_int_equal(b_peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	pair_disconnect(p);
	pair_drop(p);
}

static void receives_survive_a_refused_attempt(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	for (uintptr_t i = 0; i < 4; i++)
		pair_receive(&p->a, i, i * 64, 64);
	for (int i = 0; i < 3; i++) {
		pair_request(p);
		assert_int_equal(ndx_connector_reject(p->b.connector, "go away", 7), NDX_OK);
		assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_REFUSED);
		assert_private_data(p->a.connector, "go away", 7);
		pair_drop_side(&p->b);
		pair_make_side(p, &p->b);
	}
	pair_connect(p);
	for (uintptr_t i = 0; i < 4; i++) {
		pair_send(&p->b, i, 0, 10, 0);
		pair_expect(&p->a, NDX_REQUEST_RECEIVE, i, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_SEND, i, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void the_active_side_refuses_the_answer(void **state)
{
	struct pair *p = *state;
	unsigned char data[PRIVATE_MAX];

	pair_fill(data, sizeof(data), 4);
	pair_make(p);
	pair_receive(&p->b, 1, 0, 64);
	pair_receive(&p->a, 2, 0, 64);
	pair_request(p);
	pair_accept(p);
	assert_int_equal(ndx_connector_reject(p->a.connector, data, sizeof(data)), NDX_OK);
	assert_int_equal(pair_wait(&p->b.ov), NDX_E_CONNECTION_REFUSED);
	assert_private_data(p->b.connector, data, sizeof(data));
	/* The queue pairs did not change: they connect with new connectors. */
	ndx_connector_close(p->a.connector);
	ndx_connector_close(p->b.connector);
	assert_int_equal(ndx_connector_create(p->a.adapter, NULL, &p->a.connector), NDX_OK);
	assert_int_equal(ndx_connector_create(p->b.adapter, NULL, &p->b.connector), NDX_OK);
	pair_connect(p);
	pair_send(&p->a, 3, 64, 5, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_send(&p->b, 4, 64, 5, 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 3, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

static void closing_the_connector_after_the_answer_refuses_it(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_request(p);
	pair_accept(p);
	ndx_connector_close(p->a.connector);
	p->a.connector = NULL;
	assert_int_equal(pair_wait(&p->b.ov), NDX_E_CONNECTION_REFUSED);
	pair_drop(p);
}

static void closing_the_connector_before_the_answer_aborts_the_accept(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_request(p);
	ndx_connector_close(p->a.connector);
	p->a.connector = NULL;
	assert_int_equal(ndx_connector_accept(p->b.connector, p->b.qp, NULL, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_E_CONNECTION_ABORTED);
	pair_drop(p);
}

static void closing_the_passive_side_refuses_or_aborts(void **state)
{
	struct pair *p = *state;
	enum ndx_status st;

	pair_make(p);
	pair_request(p);
	ndx_connector_close(p->b.connector);
	p->b.connector = NULL;
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_REFUSED);
	pair_drop(p);

	pair_make(p);
	pair_request(p);
	pair_accept(p);
	ndx_connector_close(p->b.connector);
	p->b.connector = NULL;
	/* The call may report the failure at once, or as its result. */
	st = ndx_connector_complete_connect(p->a.connector, &p->a.ov);
	if (st == NDX_PENDING)
		st = pair_wait(&p->a.ov);
	assert_int_equal(st, NDX_E_CONNECTION_ABORTED);
	pair_drop(p);
}

static void closing_the_listener_refuses_waiting_requests_and_keeps_taken_ones(void **state)
{
	struct pair *p = *state;
	struct ndx_connector *other;
	struct ndx_overlapped ov = {0};
	struct pair_side third = p->a;

	pair_make(p);
	pair_request(p);
	pair_make_side(p, &third);
	assert_int_equal(ndx_connector_create(p->a.adapter, NULL, &other), NDX_OK);
	assert_int_equal(ndx_connector_connect(other, third.qp, (struct sockaddr *)&p->address,
	                                       sizeof(struct sockaddr_in), NULL, &ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&ov, 100), NDX_PENDING);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	assert_int_equal(pair_wait(&ov), NDX_E_CONNECTION_REFUSED);
	pair_accept(p);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_disconnect(p);
	ndx_connector_close(other);
	pair_drop_side(&third);
	pair_drop(p);
}

static void a_connect_without_a_listener_may_be_repeated(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in nobody = {.sin_family = AF_INET, .sin_port = htons(1)};

	nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	pair_make(p);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp,
		                                       (struct sockaddr *)&nobody, sizeof(nobody),
		                                       NULL, &p->a.ov),
		                 NDX_PENDING);
		assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_REFUSED);
	}
	pair_connect(p);
	pair_disconnect(p);
	pair_drop(p);
}

static void a_connect_that_is_not_answered_can_be_cancelled(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_receive(&p->a, 1, 0, 64);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp,
		                                       (struct sockaddr *)&p->address,
		                                       sizeof(struct sockaddr_in), NULL, &p->a.ov),
		                 NDX_PENDING);
		assert_int_equal(ndx_overlapped_wait(&p->a.ov, 20), NDX_PENDING);
		assert_int_equal(ndx_connector_cancel(p->a.connector), NDX_OK);
		assert_int_equal(pair_wait(&p->a.ov), NDX_E_CANCELED);
	}
	assert_int_equal(ndx_qp_flush(p->a.qp), NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	pair_drop(p);
}

/* Wait until b's adapter has received this number of requests. */
static void await_requests(const struct pair *p, uint64_t count)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_adapter_stats stats = {.size = sizeof(stats)};

	while (stats.requests < count && pair_now() < end)
		assert_int_equal(ndx_adapter_get_stats(p->b.adapter, &stats), NDX_OK);
	assert_int_equal(stats.requests, count);
}

static void a_client_that_gave_up_leaves_its_place_in_the_backlog(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(p->address);

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ndx_listener_close(p->listener);
	assert_int_equal(
		ndx_listen_on(p->b.adapter, (struct sockaddr *)&any, sizeof(any), 1, &p->listener),
		NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(p->listener, (struct sockaddr *)&p->address, &len),
		NDX_OK);
	pair_make(p);
	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(
			ndx_connector_connect(
				p->a.connector, p->a.qp, (struct sockaddr *)&p->address,
				sizeof(any),
				&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
		                                           .inbound_read_limit = 16,
		                                           .outbound_read_limit = 16},
				&p->a.ov),
			NDX_PENDING);
		await_requests(p, i);
		if (i == 3)
			break;
		assert_int_equal(ndx_connector_cancel(p->a.connector), NDX_OK);
		assert_int_equal(pair_wait(&p->a.ov), NDX_E_CANCELED);
	}
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_accept(p);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

static void connectors_bind_to_ports_of_their_own(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in local = {.sin_family = AF_INET};
	struct sockaddr_in got;
	socklen_t len = sizeof(got);

	pair_make(p);
	local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(
		ndx_connector_bind(p->a.connector, (struct sockaddr *)&local, sizeof(local)),
		NDX_OK);
	assert_int_equal(
		ndx_connector_get_local_address(p->a.connector, (struct sockaddr *)&local, &len),
		NDX_OK);
	assert_int_not_equal(local.sin_port, 0);
	pair_connect(p);
	len = sizeof(got);
	assert_int_equal(
		ndx_connector_get_peer_address(p->b.connector, (struct sockaddr *)&got, &len),
		NDX_OK);
	assert_int_equal(got.sin_port, local.sin_port);
	pair_disconnect(p);
	pair_drop(p);
	pair_make(p);
	assert_int_equal(
		ndx_connector_bind(p->a.connector, (struct sockaddr *)&p->address, sizeof(local)),
		NDX_E_SHARING_VIOLATION);
	local.sin_addr.s_addr = htonl(0x08080808);
	assert_int_equal(
		ndx_connector_bind(p->a.connector, (struct sockaddr *)&local, sizeof(local)),
		NDX_E_INVALID_ADDRESS);
	pair_drop(p);
}

static void ports_in_use_are_a_sharing_violation(void **state)
{
	struct pair *p = *state;
	struct ndx_listener *second;

	assert_int_equal(ndx_listen_on(p->b.adapter, (struct sockaddr *)&p->address,
	                               sizeof(struct sockaddr_in), 0, &second),
	                 NDX_E_SHARING_VIOLATION);
}

static void the_unspecified_address_stands_for_the_adapters_own(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct sockaddr_in got;
	socklen_t len = sizeof(got);
	struct ndx_listener *listener;

	assert_int_equal(
		ndx_listen_on(p->b.adapter, (struct sockaddr *)&any, sizeof(any), 0, &listener),
		NDX_OK);
	assert_int_equal(ndx_listener_get_local_address(listener, (struct sockaddr *)&got, &len),
	                 NDX_OK);
	assert_int_equal(got.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	ndx_listener_close(listener);
}

static enum ndx_status listen_at(struct pair *p, const struct in6_addr *host,
                                 struct ndx_listener **listener)
{
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = *host};

	return ndx_listen_on(p->b.adapter, (const struct sockaddr *)&six, sizeof(six), 0, listener);
}

/* Connect to the listener, and send a message. */
static void use_listener(struct pair *p, struct ndx_listener *listener)
{
	struct sockaddr_in6 six;
	socklen_t len = sizeof(six);
	struct ndx_listener *four = p->listener;

	assert_int_equal(ndx_listener_get_local_address(listener, (struct sockaddr *)&six, &len),
	                 NDX_OK);
	pair_make(p);
	p->listener = listener;
	assert_int_equal(ndx_listener_get_connection_request(listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp, (struct sockaddr *)&six,
	                                       len, NULL, &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_accept(p);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_receive(&p->b, 1, 0, 64);
	pair_send(&p->a, 2, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
	ndx_listener_close(listener);
	p->listener = four;
}

static void ipv6_works_on_the_same_adapter(void **state)
{
	struct pair *p = *state;
	struct ndx_listener *listener;

	if (listen_at(p, &in6addr_loopback, &listener) != NDX_OK)
		skip(); /* this host has no IPv6 */
	use_listener(p, listener);
}

/* Programs that use only IPv6 write an IPv4 address as a mapped one. */
static void an_ipv4_address_may_be_written_as_one_of_ipv6(void **state)
{
	struct pair *p = *state;
	struct ndx_listener *listener;
	struct in6_addr host;

	if (listen_at(p, &in6addr_loopback, &listener) != NDX_OK)
		skip(); /* this host has no IPv6 */
	ndx_listener_close(listener);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &host), 1);
	assert_int_equal(listen_at(p, &host, &listener), NDX_OK);
	use_listener(p, listener);
}

static void peers_beyond_this_host_need_trust(void **state)
{
	struct pair *p = *state;
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(4000)};

	far.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	pair_make(p);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp, (struct sockaddr *)&far,
	                                       sizeof(far), NULL, &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_INVALID_ADDRESS);
	pair_drop(p);
}

static void many_connections_share_an_adapter(void **state)
{
	enum { MANY = 40 };
	struct pair *p = *state;
	struct pair_side a[MANY];
	struct pair_side b[MANY];

	for (size_t i = 0; i < MANY; i++) {
		pair_make(p);
		pair_receive(&p->b, i, i * 64, 64);
		pair_connect(p);
		a[i] = p->a;
		b[i] = p->b;
	}
	for (size_t i = 0; i < MANY; i++) {
		const struct ndx_sge sge = pair_sge(&p->a, i * 64, 64);

		pair_fill(p->a.memory + i * 64, 64, (unsigned)i);
		assert_int_equal(ndx_qp_send(a[i].qp, NULL, &sge, 1, NDX_OP_SILENT_SUCCESS),
		                 NDX_OK);
	}
	for (size_t i = 0; i < MANY; i++) {
		struct ndx_result result;
		size_t got;

		assert_int_equal(ndx_cq_wait_results(b[i].cq, &result, 1, PAIR_TIMEOUT_MS, &got),
		                 NDX_OK);
		assert_int_equal(result.status, NDX_OK);
		pair_assert_filled(p->b.memory + i * 64, 64, (unsigned)i);
	}
	for (size_t i = 0; i < MANY; i++) {
		pair_drop_side(&a[i]); /* implicit disconnect */
		pair_drop_side(&b[i]);
	}
	memset(&p->a.ov, 0, sizeof(p->a.ov));
	p->a.connector = p->b.connector = NULL;
	p->a.qp = p->b.qp = NULL;
	p->a.cq = p->b.cq = NULL;
}

static void assert_opens(const char *uri, enum ndx_status expected)
{
	struct ndx_adapter *adapter;
	const enum ndx_status st = ndx_adapter_open(uri, &adapter);

	assert_int_equal(st, expected);
	if (st == NDX_OK)
		ndx_adapter_close(adapter);
	else
		assert_true(strlen(ndx_last_error()) > 20);
}

static void uris_are_checked(void **state)
{
	struct ndx_adapter *verbs;

	(void)state;
	assert_opens("ofi", NDX_OK);
	assert_opens("ofi:tcp", NDX_OK);
	assert_opens("ofi:tcp?addr=127.0.0.1&trust=none&cq=auto", NDX_OK);
	assert_opens("ofi:tcp?iface=lo&trust=lan", NDX_OK);
	/* this host may or may not have an RDMA device */
	if (ndx_adapter_open("ofi:verbs", &verbs) == NDX_OK)
		ndx_adapter_close(verbs);
	else
		assert_non_null(strstr(ndx_last_error(), "finds no RDMA device"));
	assert_opens("ofi:verbs?iface=lo", NDX_E_NOT_FOUND);
	assert_opens("ofi:verbs?iface=nosuch0", NDX_E_NOT_FOUND);
	assert_opens("ofi:tpc", NDX_E_NOT_FOUND);
	assert_opens("ofi:tcp?iface=nosuch0", NDX_E_NOT_FOUND);
	assert_opens("ofi:tcp?addr=192.0.2.77", NDX_E_NOT_FOUND);
	assert_opens("ofi:tcp?addr=localhost", NDX_E_INVALID_CONFIG);
	assert_opens("ofi:tcp?trust=all", NDX_E_INVALID_CONFIG);
	assert_opens("ofi:tcp?cq=both", NDX_E_INVALID_CONFIG);
	assert_opens("ofi:tcp?iface=lo&peers=any", NDX_OK);
	assert_opens("ofi:tcp?iface=lo&trust=lan&peers=user", NDX_OK);
	assert_opens("ofi:tcp?peers=all", NDX_E_INVALID_CONFIG);
	assert_opens("ofi:tcp?ifcae=lo", NDX_E_INVALID_CONFIG);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(private_data_and_limits_cross_with_their_true_length),
		CASE(addresses_are_those_of_the_connection),
		CASE(receives_survive_a_refused_attempt),
		CASE(the_active_side_refuses_the_answer),
		CASE(closing_the_connector_after_the_answer_refuses_it),
		CASE(closing_the_connector_before_the_answer_aborts_the_accept),
		CASE(closing_the_passive_side_refuses_or_aborts),
		CASE(closing_the_listener_refuses_waiting_requests_and_keeps_taken_ones),
		CASE(a_connect_without_a_listener_may_be_repeated),
		CASE(a_connect_that_is_not_answered_can_be_cancelled),
		CASE(a_client_that_gave_up_leaves_its_place_in_the_backlog),
		CASE(connectors_bind_to_ports_of_their_own),
		CASE(ports_in_use_are_a_sharing_violation),
		CASE(the_unspecified_address_stands_for_the_adapters_own),
		CASE(ipv6_works_on_the_same_adapter),
		CASE(an_ipv4_address_may_be_written_as_one_of_ipv6),
		CASE(peers_beyond_this_host_need_trust),
		CASE(many_connections_share_an_adapter),
		cmocka_unit_test(uris_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
