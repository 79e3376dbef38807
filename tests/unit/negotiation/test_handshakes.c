/* SPDX-License-Identifier: BSD-2-Clause */
/* How many connections a second a server takes. */
#include "tls_rig.h"

#include <poll.h>
#include <unistd.h>

#include "handshakes.h"

static const uint64_t moment = UINT64_C(1000000000000);
static const uint64_t a_second = UINT64_C(1000000000);

/* How many of `count` connections of the address are taken at the moment. */
static unsigned taken(struct handshakes *h, const struct ndx_negotiation_server_attr *attr,
                      uint64_t address, uint64_t at, unsigned count, char why[BUDGET_TEXT])
{
	unsigned n = 0;

	while (count-- > 0)
		n += handshakes_take(h, attr, address, at, why);
	return n;
}

static void a_limit_lets_ten_seconds_through_at_once(void **state)
{
	struct ndx_negotiation_server_attr attr = {.max_handshakes_per_address = 5,
	                                           .max_handshakes = 8};
	static struct handshakes h;
	char why[BUDGET_TEXT];

	(void)state;
	memset(&h, 0, sizeof(h));
	assert_int_equal(taken(&h, &attr, 1, moment, 60, why), 50);
	assert_non_null(strstr(why, "5 connections a second"));
	assert_non_null(strstr(why, "one address (max_handshakes_per_address)"));
	/* what one address was refused does not count for all */
	assert_int_equal(taken(&h, &attr, 2, moment, 60, why), 30);
	assert_non_null(strstr(why, "8 connections a second"));
	assert_non_null(strstr(why, "all addresses (max_handshakes)"));
	/* what all are refused does not count for an address: it has 50 - 30 + 5 then */
	assert_int_equal(taken(&h, &attr, 1, moment + a_second, 60, why), 5);
	assert_int_equal(taken(&h, &attr, 2, moment + a_second, 60, why), 3);
	assert_int_equal(taken(&h, &attr, 2, moment + 3 * a_second, 60, why), 16);
	/* a bucket holds no more than it did */
	assert_int_equal(taken(&h, &attr, 1, moment + 100 * a_second, 60, why), 50);
}

/* More addresses than there is room for: those that wait least lose their bucket. */
static void addresses_do_not_fill_the_memory(void **state)
{
	struct ndx_negotiation_server_attr attr = {
		.max_handshakes_per_address = 1, .max_handshakes = NDX_NEGOTIATION_SERVER_NO_LIMIT};
	static struct handshakes h;
	char why[BUDGET_TEXT];

	(void)state;
	memset(&h, 0, sizeof(h));
	assert_int_equal(taken(&h, &attr, 1, moment, 20, why), 10);
	for (uint64_t i = 2; i < 1000; i++)
		assert_int_equal(taken(&h, &attr, i, moment, 1, why), 1);
	assert_int_equal(taken(&h, &attr, 1, moment, 20, why), 0);
}

/* 1,000 clients that lost a server come back to it, and try twice: from one address or many. */
static void the_defaults_survive_a_storm(void **state)
{
	const struct ndx_tls_attr tls = tls_server();
	struct ndx_negotiation_server_attr attr = {.tls = &tls};
	static struct handshakes h;
	char why[BUDGET_TEXT];

	(void)state;
	handshakes_begin(&attr);
	memset(&h, 0, sizeof(h));
	assert_int_equal(taken(&h, &attr, 1, moment, 2000, why), 2000);
	for (uint64_t i = 2; i < 1002; i++)
		assert_int_equal(taken(&h, &attr, i << 32 | i, moment, 2, why), 2);
	assert_true(taken(&h, &attr, 1, moment, 20000, why) < 1000);
	attr = (struct ndx_negotiation_server_attr){.tls = NULL};
	handshakes_begin(&attr);
	memset(&h, 0, sizeof(h));
	assert_int_equal(taken(&h, &attr, 1, moment, 100000, why), 100000);
}

/* The limit of an address, or of all; silent clients are enough, in the handshake or before. */
static void too_fast(void **state, const struct ndx_tls_attr *server, bool of_all)
{
	enum { AT_ONCE = 10, MOST = 200 };
	struct ndx_negotiation_server_stats stats = {.alive = 0};
	struct ndx_negotiation_server_attr attr;
	struct host h;
	char *json = NULL;
	int held[MOST];
	int n = 0;

	host_attr(*state, server, WAIT_MS, &attr);
	attr.max_handshakes_per_address = of_all ? 1000 : 1;
	attr.max_handshakes = of_all ? 1 : 1000;
	host_begin(&h, &attr);
	log_begin();
	/* a second on the clock lets one more through */
	while (n < MOST && stats.refused_handshakes == 0) {
		held[n] = host_join_from(&h, INADDR_LOOPBACK + 1 + (of_all ? (uint32_t)n : 0));
		n++;
		for (int ms = 0; ms < WAIT_MS && stats.accepted < (uint64_t)n; ms++) {
			host_stats(&h, &stats);
			(void)poll(NULL, 0, 1);
		}
		assert_true(n > AT_ONCE || stats.refused == 0);
	}
	assert_true(n > AT_ONCE);
	assert_int_equal(stats.refused_handshakes, 1);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.alive, n - 1);
	host_has_closed(held[--n]);
	log_says("client 127.0.0.", "1 connections a second");
	log_says("client 127.0.0.", of_all ? "all addresses (max_handshakes)"
	                                   : "one address (max_handshakes_per_address)");
	assert_int_equal(ndx_negotiation_server_snapshot(h.server, &json), NDX_OK);
	assert_non_null(strstr(json, "\"refused_handshakes\": 1"));
	assert_non_null(strstr(json, of_all ? "\"max_handshakes\": 1"
	                                    : "\"max_handshakes_per_address\": 1,"));
	free(json);
	while (n > 0)
		(void)close(held[--n]);
	host_await_empty(&h);
	log_end();
	host_close(&h);
}

static void a_server_takes_so_many_in_a_second(void **state)
{
	const struct ndx_tls_attr server = tls_server();

	too_fast(state, &server, false);
	too_fast(state, &server, true);
	too_fast(state, NULL, false);
}

/* Another address is served as before. */
static void the_limit_is_of_one_address(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats = {.alive = 0};
	struct ndx_negotiation_server_attr attr;
	struct ndx_session *s;
	struct host h;

	host_attr(*state, &server, WAIT_MS, &attr);
	attr.max_handshakes_per_address = 1;
	host_begin(&h, &attr);
	/* the server counts on a thread of its own */
	for (int i = 0; i < WAIT_MS && stats.refused_handshakes == 0; i++) {
		if (i < 200)
			(void)close(host_join_from(&h, INADDR_LOOPBACK + 1));
		(void)poll(NULL, 0, 1);
		host_stats(&h, &stats);
	}
	assert_true(stats.refused_handshakes > 0);
	s = tls_session(*state, h.address, &client, WAIT_MS); /* from 127.0.0.1 */
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	ndx_session_close(s);
	host_close(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_limit_lets_ten_seconds_through_at_once),
		T(addresses_do_not_fill_the_memory),
		T(the_defaults_survive_a_storm),
		T(a_server_takes_so_many_in_a_second),
		T(the_limit_is_of_one_address),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
