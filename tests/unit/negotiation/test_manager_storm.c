/* SPDX-License-Identifier: BSD-2-Clause */
/* A server ends and comes back: a thousand connections come back, spread over time, and none is
 * lost. */
#include "manager_rig.h"

#include <poll.h>

enum { CLIENTS = 1000, AWAY_MS = 300, BINS = 8, BACKOFF_MS = 400, CONNECTING = 50 };

/* The pauses after the lives lie evenly in 0 to BACKOFF_MS. */
static void check_spread(struct site *s)
{
	unsigned bins[BINS] = {0};
	unsigned count = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->count; i++) {
		if (s->events[i].kind != NDX_MANAGED_EVENT_DOWN)
			continue;
		count++;
		assert_true(s->events[i].pause_ms < BACKOFF_MS);
		bins[s->events[i].pause_ms * BINS / BACKOFF_MS]++;
	}
	pthread_mutex_unlock(&s->lock);
	assert_int_equal(count, CLIENTS);
	/* 125 in each on average, with a deviation of 10.5. */
	for (unsigned i = 0; i < BINS; i++) {
		print_message("pauses of %u to %u ms: %u\n", i * BACKOFF_MS / BINS,
		              (i + 1) * BACKOFF_MS / BINS, bins[i]);
		assert_in_range(bins[i], 60, 190);
	}
}

static void a_thousand_come_back_after_a_restart(void **state)
{
	struct ndx_session_manager_attr attr;
	struct ndx_session_manager_stats stats;
	struct ndx_managed_entry *list = calloc(CLIENTS, sizeof(*list));
	size_t count = CLIENTS;
	const char *address;
	unsigned most = 0;
	uint16_t port;
	struct site clients;
	struct site server;

	(void)state;
	assert_non_null(list);
	site_open(&clients, false);
	site_open(&server, false);
	site_serve(&server, 0);
	address = server.address;
	site_manager_attr(&clients, &attr);
	attr.max_connecting = CONNECTING;
	attr.backoff_ms = BACKOFF_MS;
	attr.backoff_most_ms = 2000;
	attr.attempts = 12;
	site_manage(&clients, &attr);
	for (int i = 0; i < CLIENTS; i++)
		(void)site_add(&clients, &address, 1);
	site_await(&clients, NDX_MANAGED_UP, CLIENTS);
	assert_int_equal(site_stats(&clients).failed, 0);
	/* The server ends, and is away for a while. */
	port = site_port(&server);
	site_unserve(&server);
	while (site_count(&clients, NDX_MANAGED_EVENT_DOWN) < CLIENTS)
		(void)poll(NULL, 0, 1);
	(void)poll(NULL, 0, AWAY_MS);
	site_serve(&server, port);
	site_await(&clients, NDX_MANAGED_UP, CLIENTS);
	stats = site_stats(&clients);
	assert_int_equal(stats.lives, 2 * CLIENTS);
	assert_int_equal(stats.lost, CLIENTS);
	assert_int_equal(stats.gave_up, 0);
	assert_int_equal(stats.attempts, stats.lives + stats.failed);
	assert_true(clients.connecting_most <= CONNECTING);
	assert_int_equal(ndx_session_manager_list(clients.manager, list, &count, NULL), NDX_OK);
	assert_int_equal(count, CLIENTS);
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(list[i].id, i + 1);
		assert_int_equal(list[i].life, 2);
		most = list[i].attempts > most ? list[i].attempts : most;
	}
	print_message("%u clients are back: %u attempts failed, at most %u attempts of one, at "
	              "most %u at once\n",
	              CLIENTS, (unsigned)stats.failed, most - 2, clients.connecting_most);
	assert_true(most <= 2 + 6);
	check_spread(&clients);
	assert_int_equal(clients.provided, clients.reclaimed + CLIENTS);
	site_close(&clients);
	site_close(&server);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_come_back_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
