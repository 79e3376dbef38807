/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting over loop: what the other side is told in which state, and ports. */
#include "rig.h"

#include <netinet/in.h>

#include <ndx/spi/sockaddr.h>
#include "loop.h"

static enum ndx_status connect_to(struct ndx_spi_conn *conn, const struct sockaddr_storage *to)
{
	const struct ndx_spi_params params = {0};

	return rig_ops()->conn_connect(conn, (const struct sockaddr *)to, ndxp_sockaddr_len(to),
	                               &params);
}

static void connecting_to_a_closed_listener_is_refused(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_storage to = rig->listener->local;

	rig_make_qps(rig);
	rig->a.conn->qp = rig->a.qp;
	rig_ops()->listener_destroy(rig->listener);
	rig->listener = NULL;
	assert_int_equal(connect_to(rig->a.conn, &to), NDX_E_CONNECTION_REFUSED);
}

static void other_hosts_are_unreachable(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_storage to = rig_address("10.1.2.3", 4711);

	assert_int_equal(connect_to(rig->a.conn, &to), NDX_E_NETWORK_UNREACHABLE);
	to = rig_address("fe80::1", 4711);
	assert_int_equal(connect_to(rig->a.conn, &to), NDX_E_NETWORK_UNREACHABLE);
}

static void a_request_outlives_its_listener(void **state)
{
	struct rig *rig = *state;

	rig_make_qps(rig);
	rig->a.conn->qp = rig->a.qp;
	assert_int_equal(connect_to(rig->a.conn, &rig->listener->local), NDX_OK);
	rig_ops()->listener_destroy(rig->listener);
	rig->listener = NULL;
	rig_ops()->request_refuse(rig_take_request(rig));
	assert_int_equal(rig->a.book.connected_status, NDX_E_CONNECTION_REFUSED);
}

static void giving_up_before_the_request_is_taken_aborts_the_taker(void **state)
{
	struct rig *rig = *state;

	rig_make_qps(rig);
	rig->a.conn->qp = rig->a.qp;
	assert_int_equal(connect_to(rig->a.conn, &rig->listener->local), NDX_OK);
	rig_ops()->conn_abandon(rig->a.conn);
	rig_ops()->conn_take(rig->b.conn, rig_take_request(rig));
	assert_int_equal(rig->b.book.established_status, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(rig->a.book.connected, 0);
	assert_int_equal(rig_ops()->conn_reject(rig->b.conn, NULL, 0), NDX_E_CONNECTION_ABORTED);
}

static void giving_up_before_the_answer_aborts_the_accept(void **state)
{
	struct rig *rig = *state;
	const struct ndx_spi_params params = {0};

	rig_make_qps(rig);
	rig_ask(rig);
	rig_ops()->conn_abandon(rig->a.conn);
	assert_int_equal(rig->b.book.established, 1);
	assert_int_equal(rig->b.book.established_status, NDX_E_CONNECTION_ABORTED);
	rig->b.conn->qp = rig->b.qp;
	assert_int_equal(rig_ops()->conn_accept(rig->b.conn, &params), NDX_E_CONNECTION_ABORTED);
}

static void a_passive_side_that_leaves_aborts_the_connect(void **state)
{
	struct rig *rig = *state;

	rig_make_qps(rig);
	rig_ask(rig);
	rig_ops()->conn_abandon(rig->b.conn);
	assert_int_equal(rig->a.book.connected, 1);
	assert_int_equal(rig->a.book.connected_status, NDX_E_CONNECTION_ABORTED);
}

static void a_passive_side_that_leaves_after_its_answer_aborts_the_completion(void **state)
{
	struct rig *rig = *state;

	rig_make_qps(rig);
	rig_ask(rig);
	rig_answer(rig);
	rig_ops()->conn_abandon(rig->b.conn);
	assert_int_equal(rig->a.book.established, 1);
	assert_int_equal(rig->a.book.established_status, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(rig_ops()->conn_complete(rig->a.conn), NDX_E_CONNECTION_ABORTED);
}

static void giving_up_what_has_just_succeeded_breaks_it_for_the_peer(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_receive(&rig->b, 1, 0, 8), NDX_OK);
	rig_ops()->conn_abandon(rig->b.conn);
	assert_int_equal(rig->b.book.aborts, 0);
	assert_int_equal(rig->a.book.aborts, 1);
	assert_int_equal(rig_send(&rig->b, 2, 0, 8, 0), NDX_E_CONNECTION_INVALID);
	rig_expect_none(&rig->b);
	rig_abort(rig->a.conn, &rig->a.book);
}

static void destroying_a_connected_end_breaks_it_for_the_peer(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	rig_drop_conn(&rig->b, rig->b.conn);
	rig->b.conn = NULL;
	assert_int_equal(rig->a.book.aborts, 1);
	rig_abort(rig->a.conn, &rig->a.book);
}

/* ---- addresses ---- */

static enum ndx_status bind_conn(struct ndx_spi_conn *conn, const char *text, uint16_t port)
{
	const struct sockaddr_storage to = rig_address(text, port);

	return rig_ops()->conn_bind(conn, (const struct sockaddr *)&to, ndxp_sockaddr_len(&to));
}

static void only_the_loopback_addresses_can_be_bound(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(bind_conn(rig->a.conn, "127.0.0.2", 0), NDX_E_INVALID_ADDRESS);
	assert_int_equal(bind_conn(rig->a.conn, "192.168.0.1", 0), NDX_E_INVALID_ADDRESS);
	assert_int_equal(bind_conn(rig->a.conn, "::1", 0), NDX_OK);
	assert_true(ndxp_sockaddr_port(&rig->a.conn->local) >= 49152);
}

static void a_port_belongs_to_one(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_conn *third;

	assert_int_equal(bind_conn(rig->a.conn, "127.0.0.1", 5000), NDX_OK);
	assert_int_equal(bind_conn(rig->b.conn, "127.0.0.1", 5000), NDX_E_SHARING_VIOLATION);
	assert_int_equal(bind_conn(rig->b.conn, "0.0.0.0", 5000), NDX_E_SHARING_VIOLATION);
	assert_int_equal(bind_conn(rig->b.conn, "::1", 5000), NDX_OK);
	rig_drop_conn(&rig->a, rig->a.conn);
	rig->a.conn = NULL;
	third = rig_make_conn(&rig->b, &rig->b.book);
	assert_int_equal(bind_conn(third, "127.0.0.1", 5000), NDX_OK);
	rig_drop_conn(&rig->b, third);
}

static void any_port_means_a_free_one(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(bind_conn(rig->a.conn, "127.0.0.1", 0), NDX_OK);
	assert_int_equal(bind_conn(rig->b.conn, "127.0.0.1", 0), NDX_OK);
	assert_int_not_equal(ndxp_sockaddr_port(&rig->a.conn->local),
	                     ndxp_sockaddr_port(&rig->b.conn->local));
}

static void the_ephemeral_ports_run_out_cleanly(void **state)
{
	static struct loop_port ports[65535 - 49152 + 1];
	const struct sockaddr_storage any = rig_address("127.0.0.1", 0);
	struct loop_switch empty = {.last_port = 0};
	struct loop_port one_more = {0};
	size_t count = sizeof(ports) / sizeof(ports[0]);

	(void)state;
	ndxp_table_init(&empty.ports, empty.buckets, LOOP_PORT_BUCKETS);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(loop_switch_bind(&empty, &ports[i], &any), NDX_OK);
	assert_int_equal(loop_switch_bind(&empty, &one_more, &any), NDX_E_TOO_MANY_ADDRESSES);
	loop_switch_unbind(&ports[77]);
	assert_int_equal(loop_switch_bind(&empty, &one_more, &any), NDX_OK);
	loop_switch_unbind(&one_more);
	for (size_t i = 0; i < count; i++)
		loop_switch_unbind(&ports[i]);
	assert_null(ndxp_table_walk(&empty.ports, NULL));
}

static void a_listener_on_the_unspecified_address_serves_its_family(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_listener *wide = NULL;
	struct sockaddr_storage any = rig_address("::", 6000);
	struct sockaddr_storage to = rig_address("::1", 6000);

	rig_make_qps(rig);
	rig->a.conn->qp = rig->a.qp;
	assert_int_equal(rig_ops()->listener_create(rig->b.adapter,
	                                            (struct ndx_listener *)(void *)rig, &wide),
	                 NDX_OK);
	wide->front = (struct ndx_listener *)(void *)rig;
	assert_int_equal(
		rig_ops()->listener_bind(wide, (struct sockaddr *)&any, ndxp_sockaddr_len(&any)),
		NDX_OK);
	/* bound is not listening */
	assert_int_equal(connect_to(rig->a.conn, &to), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(rig_ops()->listener_listen(wide, 0), NDX_OK);
	assert_int_equal(ndxp_sockaddr_port(&wide->local), 6000);
	assert_int_equal(connect_to(rig->a.conn, &to), NDX_OK);
	rig_ops()->conn_take(rig->b.conn, rig_take_request(rig));
	assert_true(ndxp_sockaddr_is_loopback(&rig->b.conn->local));
	assert_int_equal(rig->b.conn->local.ss_family, AF_INET6);
	rig_ops()->conn_abandon(rig->a.conn);
	/* of its family alone, and a connector that is bound keeps to its own */
	assert_int_equal(bind_conn(rig->a.conn, "127.0.0.1", 0), NDX_OK);
	assert_int_equal(connect_to(rig->a.conn, &to), NDX_E_INVALID_ADDRESS);
	to = rig_address("127.0.0.1", 6000);
	assert_int_equal(connect_to(rig->a.conn, &to), NDX_E_CONNECTION_REFUSED);
	rig_ops()->listener_destroy(wide);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connecting_to_a_closed_listener_is_refused),
		TEST(other_hosts_are_unreachable),
		TEST(a_request_outlives_its_listener),
		TEST(giving_up_before_the_request_is_taken_aborts_the_taker),
		TEST(giving_up_before_the_answer_aborts_the_accept),
		TEST(a_passive_side_that_leaves_aborts_the_connect),
		TEST(a_passive_side_that_leaves_after_its_answer_aborts_the_completion),
		TEST(giving_up_what_has_just_succeeded_breaks_it_for_the_peer),
		TEST(destroying_a_connected_end_breaks_it_for_the_peer),
		TEST(only_the_loopback_addresses_can_be_bound),
		TEST(a_port_belongs_to_one),
		TEST(any_port_means_a_free_one),
		TEST(the_ephemeral_ports_run_out_cleanly),
		TEST(a_listener_on_the_unspecified_address_serves_its_family),
	};

	return cmocka_run_group_tests_name("loop: connecting", tests, NULL, NULL);
}
