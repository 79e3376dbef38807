/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions against a server that the test scripts: good, slow, silent, mad, or gone. */
#include "scripted.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include "base_loop.h"
#include "closed_port.h"

static void fails(struct ndx_session *s, enum ndx_status got, enum ndx_status want,
                  enum ndx_error_layer layer, const char *text)
{
	struct ndx_session_error e;

	e.size = sizeof(e);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	if (got != want)
		fail_msg("%s: %s", ndx_status_name(got), e.text);
	assert_int_equal(e.status, want);
	assert_int_equal(e.layer, layer);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_FAILED);
	says(text);
}

static void a_session_goes_through_its_stages(void **state)
{
	struct rig *r = *state;
	struct ndx_agreement agreed;
	struct ndx_session *s;
	struct server server;
	const char *address = server.address;

	server_start(&server, GOOD, r->variant);
	s = rig_session(r, &address, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_INFO), NDX_E_INVALID_DEVICE_STATE);
	says("call ndx_session_connect() first");
	assert_int_equal(ndx_session_get_agreement(s, NULL, NULL, &agreed),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_CONNECTED);
	assert_string_equal(ndx_session_get_server(s), server.address);
	assert_int_equal(ndx_session_get_agreement(s, NULL, NULL, &agreed), NDX_OK);
	assert_int_equal(agreed.kind, NDX_DESCRIPTION_NONE);
	assert_int_equal(ndx_session_connect(s), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_E_INVALID_DEVICE_STATE);
	says("all stages are over");
	ndx_session_close(s);
	server_stop(&server);
}

static unsigned count_kind(struct ndx_session *s, enum ndx_history_kind kind, enum ndx_status st)
{
	struct ndx_history_entry e[128];
	size_t n = sizeof(e) / sizeof(e[0]);
	unsigned count = 0;

	assert_int_equal(ndx_session_get_history(s, e, &n, NULL), NDX_OK);
	for (size_t i = 0; i < n; i++)
		count += e[i].kind == kind && e[i].status == st;
	return count;
}

static void the_backup_is_taken_when_the_first_is_gone(void **state)
{
	struct rig *r = *state;
	char gone[CLOSED_PORT_TEXT];
	struct ndx_session *s;
	struct server server;
	const char *addresses[2] = {gone, server.address};
	const int fd = closed_port(gone);

	server_start(&server, GOOD, r->variant);
	s = rig_session(r, addresses, 2, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_string_equal(ndx_session_get_server(s), server.address);
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT, NDX_E_CONNECTION_REFUSED), 1);
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT, NDX_OK), 1);
	assert_int_equal(count_kind(s, NDX_HISTORY_BACKOFF, NDX_OK), 0);
	ndx_session_close(s);
	server_stop(&server);
	(void)close(fd);
}

static void attempts_end(void **state)
{
	struct rig *r = *state;
	char gone[CLOSED_PORT_TEXT];
	const char *address = gone;
	const int fd = closed_port(gone);
	struct ndx_session *s;

	s = rig_session(r, &address, 1, WAIT_MS, WAIT_MS);
	fails(s, ndx_session_run(s), NDX_E_CONNECTION_REFUSED, NDX_LAYER_TRANSPORT,
	      "cannot be reached");
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT, NDX_E_CONNECTION_REFUSED), 3);
	assert_int_equal(count_kind(s, NDX_HISTORY_BACKOFF, NDX_OK), 2);
	ndx_session_close(s);
	(void)close(fd);
}

/* Only what never comes is waited for briefly. */
static void bad_servers_cost_time_only(void **state)
{
	static const struct {
		enum conduct conduct;
		uint32_t connect_ms;
		uint32_t stage_ms;
		enum ndx_status status;
		enum ndx_error_layer layer;
		enum ndx_status told; /* to the server */
		const char *says;
	} cases[] = {
		{SILENT, 150, WAIT_MS, NDX_E_IO_TIMEOUT, NDX_LAYER_TRANSPORT, NDX_OK,
	         "does not answer within 150 ms"},
		{MAD, WAIT_MS, WAIT_MS, NDX_E_REMOTE_ERROR, NDX_LAYER_FRAMEWORK, NDX_OK,
	         "speaks another protocol"},
		{REFUSING, WAIT_MS, WAIT_MS, NDX_E_NOT_FOUND, NDX_LAYER_FRAMEWORK, NDX_OK,
	         "the server refuses: no plugin \"test\" here"},
		{SLOW_TO_SPEAK, WAIT_MS, 1000, NDX_E_IO_TIMEOUT, NDX_LAYER_FRAMEWORK,
	         NDX_E_IO_TIMEOUT, "nothing came from the peer"},
		{BABBLING, WAIT_MS, WAIT_MS, NDX_E_REMOTE_ERROR, NDX_LAYER_FRAMEWORK,
	         NDX_E_REMOTE_ERROR, "from the server came"},
		{FLOODING, WAIT_MS, 200, NDX_E_IO_TIMEOUT, NDX_LAYER_FRAMEWORK, NDX_OK,
	         "time is over"},
		{DROPPING, WAIT_MS, WAIT_MS, NDX_E_CONNECTION_ABORTED, NDX_LAYER_TRANSPORT, NDX_OK,
	         "the transport"},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ndx_session *s;
		struct server server;
		const char *address = server.address;

		server_start(&server, cases[i].conduct, r->variant);
		s = rig_session(r, &address, 1, cases[i].connect_ms, cases[i].stage_ms);
		fails(s, ndx_session_run(s), cases[i].status, cases[i].layer, cases[i].says);
		ndx_session_close(s);
		server_stop(&server);
		assert_int_equal(server.told, cases[i].told);
	}
}

static void a_broken_stage_begins_anew(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s;
	struct server server;
	const char *address = server.address;

	server_start(&server, DROPPING, r->variant);
	s = rig_session(r, &address, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_int_equal(resets, 1);
	assert_true(server.resumed);
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT, NDX_OK), 2);
	ndx_session_close(s);
	server_stop(&server);
}

/* The queue pair may be connected by then: there is no beginning to go back to. */
static void a_stage_validate_that_broke_does_not_begin_anew(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s;
	struct server server;
	const char *address = server.address;

	server_start(&server, DROPPING_LATE, r->variant);
	s = rig_session(r, &address, 1, WAIT_MS, WAIT_MS);
	fails(s, ndx_session_run(s), NDX_E_CONNECTION_ABORTED, NDX_LAYER_TRANSPORT,
	      "stage validate");
	assert_int_equal(resets, 0);
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT, NDX_OK), 1);
	ndx_session_close(s);
	server_stop(&server);
}

static void a_server_that_drops_each_time_is_not_asked_without_end(void **state)
{
	struct rig *r = *state;
	struct ndx_session_attr attr;
	struct ndx_session *s;
	struct server server;
	const char *address = server.address;

	server_start(&server, DROPPING_EACH, r->variant);
	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.backoff_ms = 20;
	attr.session_timeout_ms = 600;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	assert_int_equal(ndx_session_run(s), NDX_E_IO_TIMEOUT);
	/* The pauses, of at least 10, 20, 40 ... ms, leave no room for more. */
	assert_in_range(__atomic_load_n(&server.served, __ATOMIC_RELAXED), 1, 8);
	ndx_session_close(s);
	server_stop(&server);
}

static void *run_session(void *arg)
{
	return (void *)(intptr_t)ndx_session_run(arg);
}

static void *run_info(void *arg)
{
	return (void *)(intptr_t)ndx_session_execute(arg, NDX_STAGE_INFO);
}

static void a_cancel_ends_it_wherever_it_is(void **state)
{
	static const enum conduct conducts[] = {SILENT, SLOW_TO_SPEAK, GOOD};
	struct rig *r = *state;

	for (unsigned round = 0; round < 60; round++) {
		struct ndx_session_attr attr;
		struct ndx_session *s;
		struct server server;
		const char *address = server.address;
		enum ndx_status st;
		pthread_t thread;
		void *result;

		server_start(&server, conducts[round % 3], r->variant);
		ndx_session_attr_init(&attr);
		attr.variant = r->variant;
		attr.servers = &address;
		attr.server_count = 1;
		assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
		assert_int_equal(pthread_create(&thread, NULL, run_session, s), 0);
		if (round % 2 == 1)
			await(&server.served);
		ndx_session_cancel(s);
		assert_int_equal(pthread_join(thread, &result), 0);
		st = (enum ndx_status)(intptr_t)result;
		if (st != NDX_E_CANCELED && !(round % 3 == 2 && st == NDX_OK))
			fail_msg("round %u: %s %s", round, ndx_status_name(st), ndx_last_error());
		ndx_session_close(s);
		server_stop(&server);
	}
}

/* A queue pair whose peer listens and never answers. */
struct lonely {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_listener *listener;
	struct ndx_connector *asked;
	struct ndx_overlapped ov;
};

static void lonely_open(struct lonely *l)
{
	socklen_t length = sizeof(rendezvous.address);
	struct ndx_qp_attr attr;

	memset(l, 0, sizeof(*l));
	assert_int_equal(ndx_adapter_open("loop", &l->adapter), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(l->adapter, 4, &l->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = l->cq;
	assert_int_equal(ndx_qp_create(l->adapter, &attr, &l->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(l->adapter, NULL, &l->connector), NDX_OK);
	assert_int_equal(ndx_connector_create(l->adapter, NULL, &l->asked), NDX_OK);
	assert_int_equal(ndx_listener_create(l->adapter, &l->listener), NDX_OK);
	assert_int_equal(ndx_listener_bind(l->listener,
	                                   (const struct sockaddr *)&(struct sockaddr_in){
						   .sin_family = AF_INET,
						   .sin_addr = {htonl(INADDR_LOOPBACK)}},
	                                   sizeof(struct sockaddr_in)),
	                 NDX_OK);
	assert_int_equal(ndx_listener_listen(l->listener, 4), NDX_OK);
	rendezvous.kind = NDX_DESCRIPTION_RENDEZVOUS;
	(void)snprintf(rendezvous.stack, sizeof(rendezvous.stack), "loop");
	rendezvous.cookie[15] = 1;
	assert_int_equal(ndx_listener_get_local_address(
				 l->listener, (struct sockaddr *)&rendezvous.address, &length),
	                 NDX_OK);
	assert_int_equal(ndx_listener_get_connection_request(l->listener, l->asked, &l->ov),
	                 NDX_PENDING);
}

static void lonely_close(struct lonely *l)
{
	ndx_connector_close(l->connector);
	ndx_connector_close(l->asked);
	ndx_listener_close(l->listener);
	ndx_qp_close(l->qp);
	ndx_cq_close(l->cq);
	ndx_adapter_close(l->adapter);
}

static void a_cancel_ends_the_wait_for_the_queue_pair(void **state)
{
	struct rig *r = *state;
	struct ndx_session_attr attr;
	struct ndx_session *s;
	struct server server;
	struct lonely lonely;
	const char *address = server.address;
	pthread_t thread;
	void *result;

	lonely_open(&lonely);
	server_start(&server, GOOD, r->variant);
	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.connector = lonely.connector;
	attr.qp = lonely.qp;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, run_session, s), 0);
	/* The session has sent its hello and waits; no answer will come. */
	assert_int_equal(ndx_overlapped_wait(&lonely.ov, WAIT_MS), NDX_OK);
	ndx_session_cancel(s);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, NDX_E_CANCELED);
	ndx_session_close(s);
	server_stop(&server);
	lonely_close(&lonely);
}

static struct ndx_session *bus_session(struct rig *r, struct ndx_variant **v, const char *address)
{
	const char *servers[1] = {address};
	struct ndx_session_attr attr;
	struct ndx_session *s;

	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", "bus", NULL, 0, v),
	                 NDX_OK);
	ndx_session_attr_init(&attr);
	attr.variant = *v;
	attr.servers = servers;
	attr.server_count = 1;
	attr.attempts = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

static void a_plugins_transport_carries_a_session(void **state)
{
	struct rig *r = *state;
	struct ndx_variant *v;
	struct ndx_session *s;
	struct server server;
	char address[32];

	server_start(&server, GOOD, r->variant);
	(void)snprintf(address, sizeof(address), "bus %s", strchr(server.address, ':') + 1);
	s = bus_session(r, &v, address);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_int_equal(bus.opened, 1);
	ndx_session_close(s);
	assert_int_equal(bus.opened, 0);
	ndx_variant_close(v);
	server_stop(&server);
}

static void a_plugins_transport_that_fails_is_named(void **state)
{
	static const struct {
		enum ndx_status send;
		bool lies;
		const char *bus;
		enum ndx_status status;
		const char *says;
	} cases[] = {
		{NDX_E_DEVICE_REMOVED, false, "bus", NDX_E_DEVICE_REMOVED,
	         "plugin \"test\", transport \"bus\": its send failed"},
		{NDX_OK, true, "bus", NDX_E_INTERNAL_ERROR,
	         "plugin \"test\", transport \"bus\" received 21 bytes into 20"},
		{NDX_OK, false, "tram", NDX_E_HOST_UNREACHABLE, "there is no such bus"},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ndx_variant *v;
		struct ndx_session *s;
		struct server server;
		char address[32];

		server_start(&server, GOOD, r->variant);
		(void)snprintf(address, sizeof(address), "%s %s", cases[i].bus,
		               strchr(server.address, ':') + 1);
		bus.send = cases[i].send;
		bus.lies = cases[i].lies;
		s = bus_session(r, &v, address);
		fails(s, ndx_session_run(s), cases[i].status, NDX_LAYER_TRANSPORT, cases[i].says);
		assert_int_equal(bus.opened, 0);
		ndx_session_close(s);
		ndx_variant_close(v);
		server_stop(&server);
	}
}

/* Another transport helps where this one is lost, and nowhere else. */
static void only_a_lost_transport_is_replaced(void **state)
{
	static const struct {
		enum ndx_status send;
		enum ndx_status receive;
		enum ndx_error_layer layer; /* NDX_LAYER_NONE: it is replaced */
		unsigned sends;             /* what the stage says, and what it says last */
		const char *says;
	} cases[] = {
		{NDX_E_CONNECTION_ABORTED, NDX_OK, NDX_LAYER_NONE, 0, NULL},
		{NDX_OK, NDX_E_CONNECTION_ABORTED, NDX_LAYER_NONE, 0, NULL},
		{NDX_E_IO_TIMEOUT, NDX_OK, NDX_LAYER_FRAMEWORK, 1, "the peer takes nothing"},
		{NDX_OK, NDX_E_IO_TIMEOUT, NDX_LAYER_FRAMEWORK, 2, "nothing came from the peer"},
		{NDX_E_CANCELED, NDX_OK, NDX_LAYER_TRANSPORT, 1, "cancelled"},
		{NDX_OK, NDX_E_CANCELED, NDX_LAYER_TRANSPORT, 1, "cancelled"},
		{NDX_E_DEVICE_REMOVED, NDX_OK, NDX_LAYER_TRANSPORT, 1, "its send failed"},
		{NDX_OK, NDX_E_DEVICE_REMOVED, NDX_LAYER_TRANSPORT, 1, "its receive failed"},
	};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool replaced = cases[i].layer == NDX_LAYER_NONE;
		struct ndx_variant *v;
		struct ndx_session *s;
		struct server server;
		enum ndx_status st;
		char address[32];

		server_start(&server, GOOD, r->variant);
		(void)snprintf(address, sizeof(address), "bus %s", strchr(server.address, ':') + 1);
		s = bus_session(r, &v, address);
		assert_int_equal(ndx_session_connect(s), NDX_OK);
		bus.send = cases[i].send;
		bus.receive = cases[i].receive;
		bus.sends = 0;
		resets = 0;
		st = ndx_session_execute(s, NDX_STAGE_INFO);
		if (replaced && st != NDX_OK)
			fail_msg("case %zu: %s", i, ndx_last_error());
		if (!replaced) {
			fails(s, st, cases[i].send != NDX_OK ? cases[i].send : cases[i].receive,
			      cases[i].layer, cases[i].says);
			assert_int_equal(bus.sends, cases[i].sends);
		}
		assert_int_equal(resets, replaced);
		assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT, NDX_OK), 1 + replaced);
		assert_int_equal(count_kind(s, NDX_HISTORY_BACKOFF, NDX_OK), replaced);
		ndx_session_close(s);
		ndx_variant_close(v);
		server_stop(&server);
	}
}

static void a_cancel_reaches_a_plugins_transport(void **state)
{
	struct rig *r = *state;
	struct ndx_variant *v;
	struct ndx_session *s;
	struct server server;
	char address[32];
	pthread_t thread;
	void *result;

	server_start(&server, SLOW_TO_SPEAK, r->variant);
	(void)snprintf(address, sizeof(address), "bus %s", strchr(server.address, ':') + 1);
	s = bus_session(r, &v, address);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, run_info, s), 0);
	ndx_session_cancel(s);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, NDX_E_CANCELED);
	ndx_session_close(s);
	ndx_variant_close(v);
	server_stop(&server);
}

static void attributes_are_checked(void **state)
{
	static const char *const bad[] = {"",      "host",    "host:",   ":1",     "::1:80",
	                                  "[::1]", "[::1]80", "h:65536", "h:8o80", "h:0"};
	struct rig *r = *state;
	struct ndx_session_attr attr;
	struct ndx_session *s = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ndx_session_attr_init(&attr);
		attr.variant = r->variant;
		attr.servers = &bad[i];
		attr.server_count = 1;
		assert_int_equal(ndx_session_create(&attr, &s), NDX_E_INVALID_ADDRESS);
	}
	assert_int_equal(ndx_session_create(NULL, &s), NDX_E_INVALID_PARAMETER);
	attr.servers = (const char *const[]){"[fe80::1%lo]:1"};
	attr.max_message = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_E_INVALID_PARAMETER);
	says("max_message must be 512 to 1048576");
	assert_null(s);
}

static void run_in_a_callback(void *arg)
{
	struct ndx_session *s = arg;

	assert_int_equal(ndx_session_run(s), NDX_E_WOULD_BLOCK);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_INFO), NDX_E_WOULD_BLOCK);
}

static void what_would_block_is_refused_in_a_callback(void **state)
{
	struct server server;
	const char *address = server.address;
	struct rig *r = *state;
	struct ndx_session *s;
	struct ndx_loop *loop;

	server_start(&server, GOOD, r->variant);
	s = rig_session(r, &address, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(base_loop_create("test", &loop), NDX_OK);
	ndxp_loop_call(loop, run_in_a_callback, s);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	base_loop_destroy(loop, NULL, NULL);
	ndx_session_close(s);
	server_stop(&server);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_session_goes_through_its_stages),
		T(the_backup_is_taken_when_the_first_is_gone),
		T(attempts_end),
		T(bad_servers_cost_time_only),
		cmocka_unit_test_setup_teardown(a_broken_stage_begins_anew, rig_begin_with_reset,
	                                        rig_end),
		cmocka_unit_test_setup_teardown(a_stage_validate_that_broke_does_not_begin_anew,
	                                        rig_begin_with_reset, rig_end),
		T(a_cancel_ends_it_wherever_it_is),
		T(what_would_block_is_refused_in_a_callback),
		T(a_cancel_ends_the_wait_for_the_queue_pair),
		cmocka_unit_test_setup_teardown(
			a_server_that_drops_each_time_is_not_asked_without_end,
			rig_begin_with_reset, rig_end),
		T(a_plugins_transport_carries_a_session),
		T(a_plugins_transport_that_fails_is_named),
		cmocka_unit_test_setup_teardown(only_a_lost_transport_is_replaced,
	                                        rig_begin_with_reset, rig_end),
		T(a_cancel_reaches_a_plugins_transport),
		T(attributes_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
