/* SPDX-License-Identifier: BSD-2-Clause */
/* Plaintext with other hosts: refused by both ends unless their attributes allow it. */
#include "tls_rig.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

/* fake_names.c: 192.0.2.1 and 127.0.0.1; the first alone. */
#define HALF "half.test"
#define AWAY "away.test"

static enum ndx_status serve(struct rig *r, const char *address, bool allow,
                             const struct ndx_tls_attr *tls, struct ndx_negotiation_server **server)
{
	struct ndx_negotiation_server_attr attr;

	ndx_negotiation_server_attr_init(&attr);
	assert_false(attr.allow_plaintext);
	attr.address = address;
	attr.variants = &r->variant;
	attr.variant_count = 1;
	attr.tls = tls;
	attr.allow_plaintext = allow;
	return ndx_negotiation_server_create(&attr, server);
}

static struct ndx_session *session(struct rig *r, const char *address, bool allow,
                                   const struct ndx_tls_attr *tls)
{
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	assert_false(attr.allow_plaintext);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.attempts = 2;
	attr.backoff_ms = 1;
	attr.connect_timeout_ms = 200;
	attr.tls = tls;
	attr.allow_plaintext = allow;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

static void a_server_refuses_other_hosts(void **state)
{
	static const char *const addresses[] = {"0.0.0.0:0", "both.test:0", HALF ":0"};
	struct ndx_negotiation_server *server = NULL;

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		assert_int_equal(serve(*state, addresses[i], false, NULL, &server),
		                 NDX_E_INVALID_CONFIG);
		assert_null(server);
		says("in plaintext: set tls, or allow_plaintext");
		says(addresses[i]);
	}
	assert_int_equal(serve(*state, "127.0.0.1:0", false, NULL, &server), NDX_OK);
	ndx_negotiation_server_close(server);
}

static void a_server_that_may_names_the_risk_once(void **state)
{
	const struct ndx_tls_attr tls = tls_server();
	struct ndx_negotiation_server *server = NULL;

	log_begin();
	assert_int_equal(serve(*state, "127.0.0.1:0", true, NULL, &server), NDX_OK);
	ndx_negotiation_server_close(server);
	assert_int_equal(serve(*state, "0.0.0.0:0", false, &tls, &server), NDX_OK);
	ndx_negotiation_server_close(server);
	assert_int_equal(log_count("allow_plaintext"), 0);
	assert_int_equal(serve(*state, "0.0.0.0:0", true, NULL, &server), NDX_OK);
	ndx_negotiation_server_close(server);
	log_says("listens at 0.0.0.0:0 in plaintext", "addresses and keys of memory");
	assert_int_equal(log_count("allow_plaintext"), 1);
	log_end();
}

/* It is of no use to try again. */
static void a_client_refuses_other_hosts(void **state)
{
	struct ndx_session *s = session(*state, "192.0.2.1:1", false, NULL);
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_history_entry list[8];
	size_t count = 8;

	assert_int_equal(ndx_session_run(s), NDX_E_INVALID_CONFIG);
	says("will not connect to 192.0.2.1:1");
	says("in plaintext: set tls, or allow_plaintext");
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_FRAMEWORK);
	assert_int_equal(ndx_session_get_history(s, list, &count, NULL), NDX_OK);
	assert_int_equal(count, 1);
	ndx_session_close(s);
	s = session(*state, AWAY ":1", false, NULL);
	assert_int_equal(ndx_session_run(s), NDX_E_INVALID_CONFIG);
	says(AWAY);
	ndx_session_close(s);
}

/* Of the addresses of a name those of the loopback are tried. */
static void a_client_takes_the_loopback_of_a_name(void **state)
{
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	struct ndx_session *s;
	char address[64];

	assert_int_equal(serve(*state, "127.0.0.1:0", false, NULL, &server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), HALF ":%u", ntohs(at.sin_port));
	s = session(*state, address, false, NULL);
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	ndx_session_close(s);
	ndx_negotiation_server_close(server);
	/* The failure of the loopback counts, in any order: the server may start. */
	for (int i = 0; i < 2; i++) {
		s = session(*state, address, false, NULL);
		assert_int_equal(ndx_session_run(s), NDX_E_CONNECTION_REFUSED);
		ndx_session_close(s);
		(void)snprintf(address, sizeof(address), "near.test:%u", ntohs(at.sin_port));
	}
}

/* An own address that is not of the loopback. */
static bool find_address(char text[INET_ADDRSTRLEN])
{
	struct ifaddrs *list = NULL;
	bool found = false;

	assert_int_equal(getifaddrs(&list), 0);
	for (const struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
		struct sockaddr_in at;

		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET ||
		    (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & IFF_UP) == 0)
			continue;
		memcpy(&at, i->ifa_addr, sizeof(at));
		found = inet_ntop(AF_INET, &at.sin_addr, text, INET_ADDRSTRLEN) != NULL;
	}
	freeifaddrs(list);
	return found;
}

static void sessions_that_may_name_the_risk_once(void **state)
{
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	char host[INET_ADDRSTRLEN];
	char address[64];

	if (!find_address(host)) {
		print_message("this host has the loopback only\n");
		skip();
	}
	assert_int_equal(serve(*state, "0.0.0.0:0", true, NULL, &server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), "%s:%u", host, ntohs(at.sin_port));
	log_begin();
	for (int i = 0; i < 2; i++) {
		struct ndx_session *s = session(*state, address, true, NULL);

		if (ndx_session_run(s) != NDX_OK)
			fail_msg("%s", ndx_last_error());
		ndx_session_close(s);
	}
	log_says("in plaintext (allow_plaintext)", "addresses and keys of memory");
	assert_int_equal(log_count("allow_plaintext"), 1);
	log_end();
	ndx_negotiation_server_close(server);
}

/* What TLS protects may go anywhere. */
static void tls_needs_no_leave(void **state)
{
	const struct ndx_tls_attr tls = tls_client();
	struct ndx_session *s = session(*state, "192.0.2.1:1", false, &tls);

	assert_int_not_equal(ndx_session_run(s), NDX_E_INVALID_CONFIG);
	ndx_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_server_refuses_other_hosts),         T(a_server_that_may_names_the_risk_once),
		T(a_client_refuses_other_hosts),         T(a_client_takes_the_loopback_of_a_name),
		T(sessions_that_may_name_the_risk_once), T(tls_needs_no_leave),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
