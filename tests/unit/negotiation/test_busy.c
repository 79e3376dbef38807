/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions whose calls do not block, while functions of plugins occupy the threads. */
#include "async_rig.h"

#include <poll.h>

static void a_cancel_does_not_wait_for_the_plugin(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = busy_session(r, server.address, &ov);
	ndx_session_cancel(s);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	completes(&ov, NDX_E_CANCELED);
	ndx_session_close(s);
	server_stop(&server);
}

/* The busy session has the only thread. */
static void a_session_that_waits_for_a_thread_ends(void **state)
{
	struct rig *r = *state;

	for (int cancel = 0; cancel < 2; cancel++) {
		struct ndx_overlapped busy_ov = {0};
		struct ndx_overlapped ov = {0};
		struct ndx_negotiation_server *good;
		struct ndx_session *busy;
		struct pool *pool;
		struct ndx_session *s;
		struct server server;
		char address[32];
		const char *servers[1] = {address};

		good = many_server(r, address);
		server_start(&server, GOOD, r->variant);
		busy = busy_session(r, server.address, &busy_ov);
		pool = &busy->driver.engine->pool;
		pthread_mutex_lock(&pool->lock);
		pool->most = pool->threads;
		pthread_mutex_unlock(&pool->lock);
		s = rig_session(r, servers, 1, WAIT_MS, cancel ? WAIT_MS : 100);
		assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
		completes(&ov, NDX_OK);
		assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, &ov),
		                 NDX_PENDING);
		if (cancel) {
			(void)poll(NULL, 0, 20);
			ndx_session_cancel(s);
			assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
		} else {
			completes(&ov, NDX_E_IO_TIMEOUT);
		}
		__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
		completes(&busy_ov, NDX_OK);
		ndx_session_close(s);
		ndx_session_close(busy);
		server_stop(&server);
		ndx_negotiation_server_close(good);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_cancel_does_not_wait_for_the_plugin),
		T(a_session_that_waits_for_a_thread_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
