/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of a server one address, and one principal, may take; and the variants that a principal
 * may use. */
#include "tls_raw.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "budget.h"
#include "server.h"

/* ---- addresses ---- */

static void await_alive(const struct host *h, uint32_t wanted)
{
	struct ndx_negotiation_server_stats stats = {.alive = wanted + 1};

	for (int ms = 0; ms < WAIT_MS && stats.alive != wanted; ms++) {
		host_stats(h, &stats);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(stats.alive, wanted);
}

/* Silent clients, in plaintext or in the handshake of TLS, hold the places of their own address
 * only. */
static void silent(void **state, const struct ndx_tls_attr *server, const struct ndx_tls_attr *tls)
{
	enum { MOST = 4 };
	struct ndx_negotiation_server_stats stats;
	struct ndx_negotiation_server_attr attr;
	struct ndx_session *s;
	struct host h;
	int held[MOST];

	host_attr(*state, server, WAIT_MS, &attr);
	attr.max_waiting_per_address = MOST;
	host_begin(&h, &attr);
	log_begin();
	for (int i = 0; i < MOST; i++) {
		held[i] = host_join_from(&h, INADDR_LOOPBACK + 1);
		if (i == 0) /* half of a record of TLS, or of a frame */
			assert_int_equal(
				send(held[i], server != NULL ? "\x16\x03" : "ND", 2, MSG_NOSIGNAL),
				2);
	}
	await_alive(&h, MOST);
	host_has_closed(host_join_from(&h, INADDR_LOOPBACK + 1));
	host_has_closed(host_join_from(&h, INADDR_LOOPBACK + 1));
	log_says("client 127.0.0.2:",
	         "4 connections of its address wait for their hello, the limit");
	host_stats(&h, &stats);
	assert_int_equal(stats.refused_addresses, 2);
	assert_int_equal(stats.refused, 2);
	s = tls_session(*state, h.address, tls, WAIT_MS); /* from 127.0.0.1 */
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	ndx_session_close(s);
	await_alive(&h, MOST);
	/* Rubbish ends a wait, and a session that has said hello does not wait. */
	assert_int_equal(send(held[1], "rubbish of 20 bytes.", 20, MSG_NOSIGNAL), 20);
	host_has_closed(held[1]);
	(void)close(held[2]);
	await_alive(&h, MOST - 2);
	for (int i = 1; i < 3; i++)
		held[i] = host_join_from(&h, INADDR_LOOPBACK + 1);
	await_alive(&h, MOST);
	host_has_closed(host_join_from(&h, INADDR_LOOPBACK + 1));
	for (int i = 0; i < MOST; i++)
		(void)close(held[i]);
	host_await_empty(&h);
	log_end();
	host_close(&h);
}

static void an_address_has_places_for_its_silent_clients(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	silent(state, NULL, NULL);
	silent(state, &server, &client);
}

/* A client that has said hello makes room. */
static void sessions_do_not_count_for_their_address(void **state)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_session *s[4];
	struct host h;

	host_attr(*state, NULL, WAIT_MS, &attr);
	attr.max_waiting_per_address = 1;
	host_begin(&h, &attr);
	for (int i = 0; i < 4; i++) {
		s[i] = tls_session(*state, h.address, NULL, WAIT_MS);
		if (ndx_session_run(s[i]) != NDX_OK)
			fail_msg("%s", ndx_last_error());
	}
	for (int i = 0; i < 4; i++)
		ndx_session_close(s[i]);
	host_close(&h);
}

static void networks_of_64_bits_are_one_address(void **state)
{
	static const struct {
		const char *one;
		const char *two;
		bool same;
	} pairs[] = {
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1", "fe80::2", false},
		{"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
		{"::ffff:10.0.0.1", "10.0.0.1", true},
	};
	static struct ndx_negotiation_server server;

	(void)state;
	memset(&server, 0, sizeof(server));
	assert_int_equal(pthread_mutex_init(&server.lock, NULL), 0);
	budgets_begin(&server);
	server.attr.max_waiting_per_address = 1;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *const texts[2] = {pairs[i].one, pairs[i].two};
		struct budget_share shares[2] = {{NULL}, {NULL}};
		bool fits[2];

		for (int k = 0; k < 2; k++) {
			struct sockaddr_storage at = {.ss_family = AF_INET6};
			struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
			struct sockaddr_in v4 = {.sin_family = AF_INET};
			char why[BUDGET_TEXT];

			if (inet_pton(AF_INET6, texts[k], &v6.sin6_addr) == 1)
				memcpy(&at, &v6, sizeof(v6));
			else if (inet_pton(AF_INET, texts[k], &v4.sin_addr) == 1)
				memcpy(&at, &v4, sizeof(v4));
			fits[k] = budget_wait(&server, &at, &shares[k], why);
		}
		assert_true(fits[0]);
		assert_int_equal(fits[1], !pairs[i].same);
		for (int k = 0; k < 2; k++)
			budget_heard(&server, &shares[k]);
	}
	for (size_t i = 0; i < BUDGET_BUCKETS; i++)
		assert_null(server.budgets.buckets[i]);
	(void)pthread_mutex_destroy(&server.lock);
}

/* ---- principals ---- */

static struct ndx_session *running(void **state, const struct host *h,
                                   const struct ndx_tls_attr *tls)
{
	struct ndx_session *s = tls_session(*state, h->address, tls, WAIT_MS);

	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	return s;
}

static struct ndx_tls_attr second_client(void)
{
	struct ndx_tls_attr tls = tls_client();

	tls.cert_file = paper("second.pem");
	tls.key_file = paper("second.key");
	return tls;
}

static void a_principal_has_so_many_sessions(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr second = second_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats;
	struct ndx_negotiation_server_attr attr;
	struct ndx_session *s[4];
	char counted[64];
	char *json = NULL;
	struct host h;

	host_attr(*state, &server, WAIT_MS, &attr);
	attr.max_sessions_per_principal = 2;
	host_begin(&h, &attr);
	log_begin();
	s[0] = running(state, &h, &client);
	s[1] = running(state, &h, &client);
	s[2] = tls_session(*state, h.address, &client, WAIT_MS);
	assert_int_equal(ndx_session_run(s[2]), NDX_E_CONNECTION_REFUSED);
	says("\"client.example\" would have more than 2 sessions, the limit "
	     "(max_sessions_per_principal)");
	ndx_session_close(s[2]);
	log_says(" of 127.0.0.1:", "\"client.example\" would have more than 2 sessions");
	host_stats(&h, &stats);
	assert_true(stats.refused_principals >= 1);
	assert_int_equal(ndx_negotiation_server_snapshot(h.server, &json), NDX_OK);
	(void)snprintf(counted, sizeof(counted), "\"refused_principals\": %llu",
	               (unsigned long long)stats.refused_principals);
	if (strstr(json, counted) == NULL)
		fail_msg("no %s in %s", counted, json);
	free(json);
	s[2] = running(state, &h, &second);
	ndx_session_close(s[0]);
	await_alive(&h, 2);
	s[0] = running(state, &h, &client);
	for (int i = 0; i < 3; i++)
		ndx_session_close(s[i]);
	log_end();
	host_close(&h);
}

/* How often the server's snapshot has both as members that follow each other. */
static unsigned count_told(const struct host *h, const char *principal, const char *by)
{
	unsigned n = 0;
	char both[160];
	char *json;

	(void)snprintf(both, sizeof(both), "\"principal\": %s,", principal);
	assert_int_equal(ndx_negotiation_server_snapshot(h->server, &json), NDX_OK);
	for (const char *p = json; (p = strstr(p, both)) != NULL;) {
		const char *next = strstr(p, "\"principal_by\": ");

		p += strlen(both);
		assert_non_null(next);
		assert_true(next - p < 32); /* the space between them */
		n += strncmp(next + strlen("\"principal_by\": "), by, strlen(by)) == 0;
	}
	free(json);
	return n;
}

static void a_snapshot_names_the_principal_of_each_session(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr nameless = tls_client();
	struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_attr attr;
	struct ndx_session *s[3];
	struct ndx_tls_attr key;
	struct host h;
	int silent_one;

	server.psk_file = paper("psk");
	server.verify = NDX_TLS_VERIFY_OPTIONAL;
	nameless.cert_file = NULL;
	nameless.key_file = NULL;
	ndx_tls_attr_init(&key);
	key.psk_file = paper("psk");
	host_attr(*state, &server, WAIT_MS, &attr);
	host_begin(&h, &attr);
	s[0] = running(state, &h, &client);
	s[1] = running(state, &h, &key);
	s[2] = running(state, &h, &nameless);
	silent_one = host_join_from(&h, INADDR_LOOPBACK);
	await_alive(&h, 4);
	assert_int_equal(count_told(&h, "\"client.example\"", "\"certificate\""), 1);
	assert_int_equal(count_told(&h, "\"alice\"", "\"key\""), 1);
	assert_int_equal(count_told(&h, "\"no certificate\"", "\"nothing\""), 1);
	assert_int_equal(count_told(&h, "null", "null"), 1);
	assert_int_equal(count_told(&h, "\"plaintext\"", "null"), 0);
	(void)close(silent_one);
	for (int i = 0; i < 3; i++)
		ndx_session_close(s[i]);
	host_close(&h);
	host_attr(*state, NULL, WAIT_MS, &attr);
	host_begin(&h, &attr);
	s[0] = running(state, &h, NULL);
	assert_int_equal(count_told(&h, "\"plaintext\"", "null"), 1);
	ndx_session_close(s[0]);
	host_close(&h);
}

/* In a hurry: the log keeps ten records in ten seconds. */
static void refusals_do_not_fill_the_log(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_attr attr;
	struct ndx_session *first;
	struct host h;

	host_attr(*state, &server, WAIT_MS, &attr);
	attr.max_sessions_per_principal = 1;
	host_begin(&h, &attr);
	first = running(state, &h, &client);
	log_begin();
	for (int i = 0; i < 30; i++) {
		static const uint8_t cookie[16] = {1};
		struct frame f;
		struct raw r;

		raw_open(&r, &h, "client");
		assert_true(raw_greet(&r, cookie, false, &f));
		assert_int_equal(f.type, FRAME_ERROR);
		raw_close(&r);
	}
	assert_in_range(log_count("would have more than 1 sessions"), 1, 20);
	log_end();
	ndx_session_close(first);
	host_close(&h);
}

/* What `open` gives. */
enum { PAIRS = 6 };
struct gift {
	struct ndx_session_resources resources;
	struct ndx_qp *qps[PAIRS];
	struct ndx_connector *connectors[PAIRS];
	unsigned opened; /* atomic */
	unsigned closed; /* atomic */
};

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct gift *g = arg;
	unsigned next;

	(void)session;
	*resources = g->resources;
	next = __atomic_fetch_add(&g->opened, 1, __ATOMIC_SEQ_CST) % PAIRS;
	resources->qp = g->qps[next];
	resources->connector = g->connectors[next];
	return NDX_OK;
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct gift *g = arg;

	(void)session;
	(void)__atomic_add_fetch(&g->closed, 1, __ATOMIC_SEQ_CST);
}

/* A client that waits in stage info, behind `open`; or is refused there. */
static void asks(struct raw *r, const struct host *h, const char *cert, bool fits)
{
	static const uint8_t cookie[16] = {1};
	struct frame f;

	raw_open(r, h, cert);
	assert_true(raw_greet(r, cookie, false, &f));
	assert_int_equal(f.type, FRAME_WELCOME);
	if (!fits)
		return;
	assert_true(raw_receive(r, &f));
	assert_int_equal(f.type, FRAME_DATA);
}

/* Two fit, a third does not, until one of them has ended. */
static void two_fit(void **state, struct ndx_negotiation_server_attr *attr, struct gift *g,
                    const char *says_what)
{
	struct ndx_negotiation_server_stats stats;
	struct raw r[4];
	struct host h;

	(void)state;
	attr->events = (struct ndx_negotiation_server_events){
		.open = on_open, .closed = on_closed, .arg = g};
	host_begin(&h, attr);
	log_begin();
	asks(&r[0], &h, "client", true);
	asks(&r[1], &h, "client", true);
	asks(&r[2], &h, "client", false);
	raw_is_refused(&r[2], says_what);
	raw_close(&r[2]);
	log_says(" of 127.0.0.1:", says_what);
	asks(&r[3], &h, "second", true);
	await_alive(&h, 3);
	assert_int_equal(__atomic_load_n(&g->closed, __ATOMIC_SEQ_CST), 1);
	raw_close(&r[0]);
	await_alive(&h, 2);
	asks(&r[0], &h, "client", true);
	host_stats(&h, &stats);
	assert_int_equal(stats.refused_principals, 1);
	raw_close(&r[0]);
	raw_close(&r[1]);
	raw_close(&r[3]);
	log_end();
	host_close(&h);
}

static void a_principal_has_so_much_memory(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	struct gift g = {.resources = {.memory = {.address = 4096, .length = 500, .token = 1}}};
	struct ndx_negotiation_server_attr attr;

	host_attr(*state, &server, WAIT_MS, &attr);
	attr.max_memory_per_principal = 1000;
	two_fit(state, &attr, &g,
	        "\"client.example\" would have more than 1000 bytes of memory, the limit");
}

static void a_principal_has_so_many_queue_pairs(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_attr attr;
	struct ndx_adapter *adapter = NULL;
	struct ndx_qp_attr qp_attr;
	struct ndx_cq *cq = NULL;
	struct gift g = {.closed = 0};

	if (ndx_adapter_open("loop", &adapter) != NDX_OK)
		skip();
	assert_int_equal(ndx_cq_create_depth(adapter, 64, &cq), NDX_OK);
	ndx_qp_attr_init(&qp_attr);
	qp_attr.receive_cq = cq;
	qp_attr.initiator_cq = cq;
	qp_attr.receive_depth = 1;
	qp_attr.initiator_depth = 1;
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(ndx_qp_create(adapter, &qp_attr, &g.qps[i]), NDX_OK);
		assert_int_equal(ndx_connector_create(adapter, NULL, &g.connectors[i]), NDX_OK);
	}
	host_attr(*state, &server, WAIT_MS, &attr);
	attr.max_queue_pairs_per_principal = 2;
	two_fit(state, &attr, &g,
	        "\"client.example\" would have more than 2 queue pairs, the limit");
	for (int i = 0; i < PAIRS; i++) {
		ndx_connector_close(g.connectors[i]);
		ndx_qp_close(g.qps[i]);
	}
	ndx_cq_close(cq);
	ndx_adapter_close(adapter);
}

/* ---- grants ---- */

static void a_principal_uses_what_it_was_granted(void **state)
{
	static const struct ndx_variant_grant table[] = {
		{.plugin = "other", .name = "second.example"},
		{.plugin = "test", .variant = "bus", .name = "second.example"},
		{.plugin = "test", .variant = "two", .name = "spiffe://example/c"},
		{.plugin = "test", .psk_identity = "alice"},
		{.plugin = "test", .name = "alice"},
		{.plugin = "test", .psk_identity = "second.example"},
	};
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr second = second_client();
	struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats;
	struct ndx_negotiation_server_attr attr;
	struct ndx_tls_attr nameless = tls_client();
	struct ndx_tls_attr key;
	struct ndx_session *s;
	struct host h;

	server.psk_file = paper("psk");
	server.verify = NDX_TLS_VERIFY_OPTIONAL;
	nameless.cert_file = NULL;
	nameless.key_file = NULL;
	ndx_tls_attr_init(&key);
	key.psk_file = paper("psk");
	host_attr(*state, &server, WAIT_MS, &attr);
	attr.grants = table;
	attr.grant_count = sizeof(table) / sizeof(table[0]);
	host_begin(&h, &attr);
	log_begin();
	ndx_session_close(running(state, &h, &client));
	ndx_session_close(running(state, &h, &key));
	s = tls_session(*state, h.address, &second, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_E_NOT_SUPPORTED);
	says("\"second.example\" has no grant for variant test/two");
	ndx_session_close(s);
	log_says(" of 127.0.0.1:", "\"second.example\" has no grant for variant test/two");
	s = tls_session(*state, h.address, &nameless, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_E_NOT_SUPPORTED);
	says("\"no certificate\" has no grant");
	ndx_session_close(s);
	host_stats(&h, &stats);
	assert_int_equal(stats.refused_variants, 2); /* it is of no use to try again */
	log_end();
	host_close(&h);
}

static void grants_are_checked(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	struct ndx_variant_grant grant = {.plugin = "test", .name = "a"};
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *none;

	host_attr(*state, NULL, WAIT_MS, &attr);
	attr.grants = &grant;
	attr.grant_count = 1;
	assert_int_equal(ndx_negotiation_server_create(&attr, &none), NDX_E_INVALID_PARAMETER);
	says("whom only TLS can know");
	attr.tls = &server;
	grant.psk_identity = "a";
	assert_int_equal(ndx_negotiation_server_create(&attr, &none), NDX_E_INVALID_PARAMETER);
	says("either a name or a psk_identity");
	grant.psk_identity = NULL;
	grant.reserved[3] = &grant;
	assert_int_equal(ndx_negotiation_server_create(&attr, &none), NDX_E_INVALID_PARAMETER);
	says("reserved of a grant is not NULL");
	grant.reserved[3] = NULL;
	attr.grant_count = 0;
	assert_int_equal(ndx_negotiation_server_create(&attr, &none), NDX_E_INVALID_PARAMETER);
	says("grants and grant_count");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(an_address_has_places_for_its_silent_clients),
		T(sessions_do_not_count_for_their_address),
		T(networks_of_64_bits_are_one_address),
		T(a_principal_has_so_many_sessions),
		T(a_snapshot_names_the_principal_of_each_session),
		T(refusals_do_not_fill_the_log),
		T(a_principal_has_so_much_memory),
		T(a_principal_has_so_many_queue_pairs),
		T(a_principal_uses_what_it_was_granted),
		T(grants_are_checked),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
