/* SPDX-License-Identifier: BSD-2-Clause */
/* The TLS handshake in the history of both ends: version, cipher, the name of the peer; never a
 * key. */
#include "tls_rig.h"

enum { ENTRIES = 64 };

/* The only entry of that kind. */
static struct ndx_history_entry handshake_of(const struct ndx_session *s)
{
	struct ndx_history_entry e[ENTRIES];
	struct ndx_history_entry found = {.kind = NDX_HISTORY_CONNECT};
	size_t count = ENTRIES;

	assert_int_equal(ndx_session_get_history(s, e, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++) {
		if (e[i].kind != NDX_HISTORY_TLS)
			continue;
		assert_int_equal(found.kind, NDX_HISTORY_CONNECT);
		found = e[i];
	}
	assert_int_equal(found.kind, NDX_HISTORY_TLS);
	return found;
}

static void has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void it_names_version_cipher_and_peer(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_history_entry e;
	struct ndx_session *s;
	struct host h;
	char *json;

	host_open(&h, *state, &server, WAIT_MS);
	s = tls_session(*state, h.address, &client, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	e = handshake_of(s);
	assert_int_equal(e.status, NDX_OK);
	assert_true(e.duration_us > 0);
	has(e.text, "TLS 1.3, TLS_");
	has(e.text, "/CN=the server");
	assert_int_equal(ndx_session_snapshot(s, &json), NDX_OK);
	has(json, "\"tls\"");
	assert_null(strstr(json, "PRIVATE KEY"));
	free(json);
	ndx_session_close(s);
	host_close(&h);
}

static void a_servers_snapshot_names_the_client(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_session *s;
	struct host h;
	char *json;

	host_open(&h, *state, &server, WAIT_MS);
	s = tls_session(*state, h.address, &client, WAIT_MS);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	assert_int_equal(ndx_negotiation_server_snapshot(h.server, &json), NDX_OK);
	has(json, "TLS 1.3, TLS_");
	has(json, "/CN=the client");
	free(json);
	ndx_session_close(s);
	host_close(&h);
}

static void a_pre_shared_key_is_named_and_not_told(void **state)
{
	struct ndx_tls_attr tls;
	struct ndx_session *s;
	struct host h;
	char *json[2];

	ndx_tls_attr_init(&tls);
	tls.psk_file = paper("psk");
	host_open(&h, *state, &tls, WAIT_MS);
	s = tls_session(*state, h.address, &tls, WAIT_MS);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	has(handshake_of(s).text, "alice");
	assert_int_equal(ndx_session_snapshot(s, &json[0]), NDX_OK);
	assert_int_equal(ndx_negotiation_server_snapshot(h.server, &json[1]), NDX_OK);
	for (int i = 0; i < 2; i++) {
		has(json[i], "alice");
		assert_null(strstr(json[i], "00010203"));
		assert_null(strstr(json[i], "0c0d0e0f"));
		free(json[i]);
	}
	ndx_session_close(s);
	host_close(&h);
}

static void a_handshake_that_fails_is_in_it(void **state)
{
	struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_history_entry e;
	struct ndx_session *s;
	struct host h;

	client.ca_file = paper("alien.pem");
	host_open(&h, *state, &server, WAIT_MS);
	s = tls_session(*state, h.address, &client, WAIT_MS);
	assert_int_not_equal(ndx_session_connect(s), NDX_OK);
	e = handshake_of(s);
	assert_int_equal(e.status, NDX_E_CONNECTION_REFUSED);
	has(e.text, "certificate");
	ndx_session_close(s);
	host_close(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(it_names_version_cipher_and_peer),
		T(a_servers_snapshot_names_the_client),
		T(a_pre_shared_key_is_named_and_not_told),
		T(a_handshake_that_fails_is_in_it),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
