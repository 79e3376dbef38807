/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions whose handshakes are resumed, in one variant, on several threads, and after a change. */
#include "tls_rig.h"

#include <poll.h>

/* Whether the client's history says that its handshake was resumed. */
static bool runs_resumed(void **state, const struct host *h, const struct ndx_tls_attr *tls)
{
	struct ndx_session *s = tls_session(*state, h->address, tls, WAIT_MS);
	bool resumed;
	char *json;

	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(ndx_session_snapshot(s, &json), NDX_OK);
	assert_non_null(strstr(json, "/CN=the server"));
	resumed = strstr(json, "TLS 1.3, resumed, TLS_") != NULL;
	free(json);
	ndx_session_close(s);
	return resumed;
}

static void sessions_of_a_variant_resume(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct host h[2];

	host_open(&h[0], *state, &server, WAIT_MS);
	host_open(&h[1], *state, &server, WAIT_MS);
	papers_age();
	assert_false(runs_resumed(state, &h[0], &client));
	log_begin();
	assert_true(runs_resumed(state, &h[0], &client));
	log_says("TLS 1.3, resumed, TLS_", "certificate of /CN=the client");
	log_end();
	assert_false(runs_resumed(state, &h[1], &client)); /* another port, the same name */
	assert_true(runs_resumed(state, &h[0], &client));
	assert_true(runs_resumed(state, &h[1], &client));
	host_close(&h[0]);
	host_close(&h[1]);
}

static void a_change_of_a_file_ends_what_was_kept(void **state)
{
	struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct host h;

	papers_leaf(&(struct leaf){"renewed", "ca", "the client", "DNS:client.example", -1, 1});
	client.cert_file = paper("renewed.pem");
	client.key_file = paper("renewed.key");
	host_open(&h, *state, &server, WAIT_MS);
	papers_age();
	assert_false(runs_resumed(state, &h, &client));
	assert_true(runs_resumed(state, &h, &client));
	papers_leaf(&(struct leaf){"renewed", "ca", "the client", "DNS:client.example", -1, 2});
	papers_age();
	assert_false(runs_resumed(state, &h, &client));
	assert_true(runs_resumed(state, &h, &client));
	client.no_resumption = true;
	assert_false(runs_resumed(state, &h, &client));
	assert_false(runs_resumed(state, &h, &client));
	host_close(&h);
}

/* A session that goes on over another transport resumes its own handshake. */
static void a_session_goes_on_by_a_ticket(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats;
	struct ndx_session *s;
	struct proxy p;
	struct host h;
	char *json;

	host_open(&h, *state, &server, WAIT_MS);
	proxy_start(&p, &h, false);
	papers_age();
	s = tls_session(*state, p.address, &client, WAIT_MS);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	__atomic_store_n(&p.cut, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < WAIT_MS && __atomic_load_n(&p.cut, __ATOMIC_SEQ_CST) != 0; ms++)
		(void)poll(NULL, 0, 1);
	for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++)
		if (ndx_session_execute(s, (enum ndx_stage)stage) != NDX_OK)
			fail_msg("%s", ndx_last_error());
	host_stats(&h, &stats);
	assert_int_equal(stats.resumed, 1);
	assert_int_equal(ndx_session_snapshot(s, &json), NDX_OK);
	assert_non_null(strstr(json, "TLS 1.3, resumed, TLS_"));
	free(json);
	ndx_session_close(s);
	proxy_stop(&p);
	host_close(&h);
}

/* ---- threads ---- */

static void threads_resume(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct crowd c = {.rig = *state, .tls = &client, .threads = 4, .sessions = 20};
	struct host h;

	host_open(&h, *state, &server, WAIT_MS);
	papers_age();
	c.host = &h;
	crowd_start(&c);
	crowd_end(&c);
	host_close(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin_with_reset, rig_end)
	const struct CMUnitTest tests[] = {
		T(sessions_of_a_variant_resume),
		T(a_change_of_a_file_ends_what_was_kept),
		T(a_session_goes_on_by_a_ticket),
		T(threads_resume),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
