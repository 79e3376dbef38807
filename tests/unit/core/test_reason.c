/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection ended, on a stack that cannot tell a goodbye from a death: the in-process
 * provider, without the capability. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <ndx/ndx.h>

#include "base_loop.h"
#include "connection.h"
#include "pair.h"

static void finish(struct end *e, enum ndx_status started)
{
	assert_int_equal(started, NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&e->ov, PATIENCE_MS), NDX_OK);
}

static void join(struct ndx_listener *listener, struct end *active, struct end *passive)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	assert_int_equal(ndx_listener_get_local_address(listener, (struct sockaddr *)&to, &len),
	                 NDX_OK);
	assert_int_equal(ndx_connector_connect(active->connector, active->qp,
	                                       (struct sockaddr *)&to, len, NULL, &active->ov),
	                 NDX_PENDING);
	finish(passive,
	       ndx_listener_get_connection_request(listener, passive->connector, &passive->ov));
	assert_int_equal(ndx_connector_accept(passive->connector, passive->qp, NULL, &passive->ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&active->ov, PATIENCE_MS), NDX_OK);
	finish(active, ndx_connector_complete_connect(active->connector, &active->ov));
	assert_int_equal(ndx_overlapped_wait(&passive->ov, PATIENCE_MS), NDX_OK);
}

/* Two ends that are connected over the loop. */
struct both {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct end active;
	struct end passive;
};

static void open_both(struct both *p)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(ndx_adapter_open("loop", &p->adapter), NDX_OK);
	assert_int_equal(
		ndx_listen_on(p->adapter, (struct sockaddr *)&any, sizeof(any), 0, &p->listener),
		NDX_OK);
	pair_make_end(p->adapter, 0, &p->active);
	pair_make_end(p->adapter, 0, &p->passive);
	join(p->listener, &p->active, &p->passive);
}

static void close_both(struct both *p)
{
	pair_drop_end(&p->active);
	pair_drop_end(&p->passive);
	ndx_listener_close(p->listener);
	ndx_adapter_close(p->adapter);
}

static void both_ways_of_asking_for_the_reason_say_the_same(void **state)
{
	struct both p = {0};

	(void)state;
	open_both(&p);
	p.adapter->info.capabilities &= ~(uint64_t)NDX_CAP_DISCONNECT_REASON;
	assert_int_equal(ndx_connector_disconnect(p.active.connector, &p.active.ov), NDX_PENDING);
	finish(&p.passive, ndx_connector_notify_disconnect(p.passive.connector, &p.passive.ov));
	assert_int_equal(p.passive.ov.information, NDX_DISCONNECT_UNKNOWN);
	assert_int_equal(ndx_connector_get_disconnect_reason(p.passive.connector),
	                 NDX_DISCONNECT_UNKNOWN);
	assert_int_equal(ndx_overlapped_wait(&p.active.ov, PATIENCE_MS), NDX_OK);
	close_both(&p);
}

static void explains(const struct end *e, const char *part)
{
	char text[512];
	size_t length = sizeof(text);

	assert_int_equal(ndx_connector_get_error_text(e->connector, text, &length), NDX_OK);
	if (strstr(text, part) == NULL)
		assert_string_equal(text, part); /* shows both */
}

/* The end that closes, or disconnects, is not told that its peer has. */
static void the_own_end_is_not_the_peers(void **state)
{
	for (int closes = 0; closes < 2; closes++) {
		struct both p = {0};

		(void)state;
		open_both(&p);
		explains(&p.active, "");
		if (closes) {
			ndx_qp_close(p.active.qp);
			p.active.qp = NULL;
		} else {
			finish(&p.active,
			       ndx_connector_disconnect(p.active.connector, &p.active.ov));
		}
		finish(&p.passive,
		       ndx_connector_notify_disconnect(p.passive.connector, &p.passive.ov));
		explains(&p.active, closes ? ": closed by its own side, by ndx_qp_close() or "
		                             "ndx_connector_close() before a disconnect; work"
		                           : ": disconnected by its own side; work");
		explains(&p.passive, ": the peer has disconnected; work");
		close_both(&p);
	}
}

static void link_breaks(void *arg)
{
	struct ndx_connector *c = arg;

	core_host.report(c->native, NDX_REPORT_ABORT, 0, "the link broke");
}

/* The control thread has closed the queue pair, and the peer's goodbye has not come. */
static void close_and_break(void *arg)
{
	struct ndx_connector *c = arg;

	adapter_lock(c->adapter);
	conn_step(c, DISCONNECT_EV_RELEASE);
	adapter_unlock(c->adapter);
	link_breaks(c);
}

static void an_abort_behind_the_own_close_says_both(void **state)
{
	struct both p = {0};

	(void)state;
	open_both(&p);
	assert_int_equal(ndx_connector_notify_disconnect(p.active.connector, &p.active.ov),
	                 NDX_PENDING);
	ndxp_loop_call(p.adapter->loop, close_and_break, p.active.connector);
	assert_int_equal(ndx_overlapped_wait(&p.active.ov, PATIENCE_MS), NDX_OK);
	explains(&p.active, ": closed by its own side before a disconnect, then aborted: "
	                    "NDX_E_CONNECTION_ABORTED: the link broke");
	close_both(&p);
}

struct late {
	struct ndx_connector *connector;
	enum ndx_disconnect_reason reason;
};

/* On the control thread, which has not looked into the connector's inbox since. */
static void goodbye_comes(void *arg)
{
	struct late *late = arg;

	core_host.report(late->connector->native, NDX_REPORT_PEER_DISC, 0, NULL);
	late->reason = ndx_connector_get_disconnect_reason(late->connector);
}

static void a_goodbye_is_known_before_the_control_thread_takes_it(void **state)
{
	struct both p = {0};
	struct late late = {0};

	(void)state;
	open_both(&p);
	late.connector = p.passive.connector;
	ndxp_loop_call(p.adapter->loop, goodbye_comes, &late);
	assert_int_equal(late.reason, NDX_DISCONNECT_GRACEFUL);
	close_both(&p);
}

/* A thread that sees a request fail may be ahead of the thread that sees the goodbye. */
static void failure_comes_ahead_of_the_goodbye(void *arg)
{
	struct ndx_connector *c = arg;

	core_host.report(c->native, NDX_REPORT_ABORT, 0, "a request behind the goodbye failed");
	core_host.report(c->native, NDX_REPORT_PEER_DISC, 0, NULL);
}

static void a_goodbye_counts_before_a_failure_that_is_not_handled(void **state)
{
	struct both p = {0};

	(void)state;
	open_both(&p);
	assert_int_equal(ndx_connector_notify_disconnect(p.passive.connector, &p.passive.ov),
	                 NDX_PENDING);
	ndxp_loop_call(p.adapter->loop, failure_comes_ahead_of_the_goodbye, p.passive.connector);
	assert_int_equal(ndx_overlapped_wait(&p.passive.ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(p.passive.ov.information, NDX_DISCONNECT_GRACEFUL);
	close_both(&p);
}

/* Every indication has the reason of the first, whatever became of the connection since. */
static void an_abort_behind_the_goodbye_changes_no_indication(void **state)
{
	struct both p = {0};

	(void)state;
	open_both(&p);
	assert_int_equal(ndx_connector_notify_disconnect(p.passive.connector, &p.passive.ov),
	                 NDX_PENDING);
	ndxp_loop_call(p.adapter->loop, failure_comes_ahead_of_the_goodbye, p.passive.connector);
	assert_int_equal(ndx_overlapped_wait(&p.passive.ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_get_disconnect_reason(p.passive.connector),
	                 NDX_DISCONNECT_ABORTED);
	for (int i = 0; i < 2; i++) {
		p.passive.ov.information = 99;
		finish(&p.passive,
		       ndx_connector_notify_disconnect(p.passive.connector, &p.passive.ov));
		assert_int_equal(p.passive.ov.information, NDX_DISCONNECT_GRACEFUL);
	}
	close_both(&p);
}

/* A provider that waits for its device in a state: only in a callback it ends within the call. */
static const struct ndx_provider_ops *quick;
static struct ndx_spi_conn *slow_one;
static unsigned aborts;

static void abort_slowly(struct ndx_spi_conn *conn)
{
	if (conn == slow_one)
		(void)__atomic_add_fetch(&aborts, 1, __ATOMIC_ACQ_REL);
	if (conn != slow_one || ndxp_loop_is_hurried())
		quick->conn_abort(conn);
}

static void flush_here(struct ndx_overlapped *ov)
{
	struct end *e = ov->context;

	ov->information = (uint32_t)ndx_qp_flush(e->qp);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* The control thread calls the operations, so it exchanges them. */
struct exchange {
	struct ndx_adapter *adapter;
	const struct ndx_provider_ops *ops;
};

static void exchange_ops(void *arg)
{
	struct exchange *exchange = arg;
	const struct ndx_provider_ops *before = exchange->adapter->ops;

	exchange->adapter->ops = exchange->ops;
	exchange->ops = before;
	__atomic_store_n(&aborts, 0, __ATOMIC_RELEASE);
}

static void a_flush_in_a_callback_ends_what_was_under_way(void **state)
{
	struct both p = {0};
	struct ndx_provider_ops slow;
	struct ndx_overlapped flush = {.callback = flush_here};
	struct exchange exchange;

	(void)state;
	open_both(&p);
	quick = p.adapter->ops;
	slow = *quick;
	slow.conn_abort = abort_slowly;
	slow_one = p.active.connector->native;
	exchange = (struct exchange){p.adapter, &slow};
	ndxp_loop_call(p.adapter->loop, exchange_ops, &exchange);
	ndxp_loop_call(p.adapter->loop, link_breaks, p.active.connector);
	ndxp_loop_call(p.adapter->loop, nothing, NULL); /* behind the job that handles the report */
	assert_int_equal(__atomic_load_n(&aborts, __ATOMIC_ACQUIRE), 1);
	flush.context = &p.active;
	flush.information = 99;
	base_loop_callback(p.adapter->loop, &flush);
	ndxp_loop_call(p.adapter->loop, nothing, NULL);
	assert_int_equal(flush.information, NDX_OK);
	assert_int_equal(__atomic_load_n(&aborts, __ATOMIC_ACQUIRE), 2);
	ndxp_loop_call(p.adapter->loop, exchange_ops, &exchange);
	close_both(&p);
}

/* A description that fails after its adapter has begun to listen ends the listener. */
static void a_description_that_fails_keeps_no_listener(void **state)
{
	struct ndx_peer_description description;
	struct ndx_adapter *adapter;
	struct end e = {0};

	(void)state;
	assert_int_equal(ndx_adapter_open("loop", &adapter), NDX_OK);
	pair_make_end(adapter, 0, &e);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ndx_connector_describe(e.connector, e.qp, NDX_ROLE_SERVER, 0, 0,
		                                        &description),
		                 i == 0 ? NDX_OK : NDX_E_CONNECTION_ACTIVE);
	adapter_lock(adapter);
	assert_int_equal(adapter->rendezvous_users, 1);
	adapter_unlock(adapter);
	pair_drop_end(&e);
	adapter_lock(adapter);
	assert_int_equal(adapter->rendezvous_users, 0);
	adapter_unlock(adapter);
	ndx_adapter_close(adapter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_of_asking_for_the_reason_say_the_same),
		cmocka_unit_test(the_own_end_is_not_the_peers),
		cmocka_unit_test(an_abort_behind_the_own_close_says_both),
		cmocka_unit_test(a_goodbye_is_known_before_the_control_thread_takes_it),
		cmocka_unit_test(a_goodbye_counts_before_a_failure_that_is_not_handled),
		cmocka_unit_test(an_abort_behind_the_goodbye_changes_no_indication),
		cmocka_unit_test(a_flush_in_a_callback_ends_what_was_under_way),
		cmocka_unit_test(a_description_that_fails_keeps_no_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
