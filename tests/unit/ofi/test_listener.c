/* SPDX-License-Identifier: BSD-2-Clause */
/* What a listener costs, and what it bears: many requests, strangers, no descriptor left. */
#include "pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <string.h>

/* ---- a full backlog ---- */

#define BACKLOG 24

static unsigned searches; /* of all descriptors of the process */

/* The linker puts it before the C library's. */
DIR *__real_opendir(const char *name);
DIR *__wrap_opendir(const char *name);

DIR *__wrap_opendir(const char *name)
{
	(void)__atomic_add_fetch(&searches, 1, __ATOMIC_RELAXED);
	return __real_opendir(name);
}

static void listen_with_a_backlog(struct pair *p, uint32_t most)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(p->address);

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ndx_listener_close(p->listener);
	assert_int_equal(ndx_listen_on(p->b.adapter, (struct sockaddr *)&any, sizeof(any), most,
	                               &p->listener),
	                 NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(p->listener, (struct sockaddr *)&p->address, &len),
		NDX_OK);
}

static void ask_as(const struct pair *p, struct pair_side *side)
{
	assert_int_equal(ndx_connector_connect(
				 side->connector, side->qp, (const struct sockaddr *)&p->address,
				 sizeof(struct sockaddr_in), 0, 0, NULL, 0, &side->ov),
	                 NDX_PENDING);
}

static void await_requests(const struct pair *p, uint64_t count)
{
	const uint64_t end = pair_now() + PAIR_PATIENCE_MS;
	struct ndx_adapter_stats stats = {.size = sizeof(stats)};

	while (stats.requests < count && pair_now() < end)
		assert_int_equal(ndx_adapter_get_stats(p->b.adapter, &stats), NDX_OK);
	assert_int_equal(stats.requests, count);
}

static void a_full_backlog_is_looked_at_without_searching_for_sockets(void **state)
{
	struct pair *p = *state;
	static struct pair_side sides[BACKLOG + 1];

	listen_with_a_backlog(p, BACKLOG);
	for (unsigned i = 0; i < BACKLOG; i++) {
		sides[i] = (struct pair_side){.adapter = p->a.adapter};
		pair_make_side(p, &sides[i]);
		ask_as(p, &sides[i]);
	}
	await_requests(p, BACKLOG);
	sides[BACKLOG] = (struct pair_side){.adapter = p->a.adapter};
	pair_make_side(p, &sides[BACKLOG]);
	searches = 0;
	ask_as(p, &sides[BACKLOG]);
	assert_int_equal(pair_wait(&sides[BACKLOG].ov), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(searches, 0);
	for (unsigned i = 0; i <= BACKLOG; i++)
		pair_drop_side(&sides[i]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_backlog_is_looked_at_without_searching_for_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
