/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers that an end with TLS does not admit, and the texts at both ends; attributes that are
 * refused. */
#include "tls_rig.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <openssl/ssl.h>

/* What two ends with these attributes say. */
struct clash {
	const struct ndx_tls_attr *client;
	const struct ndx_tls_attr *server;
	enum ndx_status status;
	const char *client_says;
	const char *server_says;
};

static void clashes(void **state, const struct clash *k)
{
	struct ndx_negotiation_server_stats stats;
	struct ndx_session_error e;
	struct ndx_session *s;
	struct host h;

	host_open(&h, *state, k->server, WAIT_MS);
	log_begin();
	s = tls_session(*state, h.address, k->client, WAIT_MS);
	assert_int_equal(ndx_session_run(s), k->status);
	says(k->client_says);
	e.size = sizeof(e);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_FRAMEWORK);
	log_says(" of 127.0.0.1:", k->server_says);
	ndx_session_close(s);
	host_await_empty(&h);
	host_stats(&h, &stats);
	/* Trying again is of no use. */
	assert_int_equal(stats.accepted, 1);
	assert_int_equal(stats.without_hello, 1);
	assert_int_equal(stats.completed, 0);
	log_end();
	host_close(&h);
}

static void a_client_without_certificate_is_refused(void **state)
{
	struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	client.cert_file = NULL;
	client.key_file = NULL;
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "demands a certificate, and this end has none",
	                               "the peer gave no certificate, and one is demanded"});
}

static void a_client_of_another_ca_is_refused(void **state)
{
	struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	client.cert_file = paper("alien-leaf.pem");
	client.key_file = paper("alien-leaf.key");
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "does not know the CA of this end's certificate",
	                               "certificate /CN=an alien: unknown CA"});
}

static void a_server_of_another_ca_is_refused(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();

	server.cert_file = paper("alien-leaf.pem");
	server.key_file = paper("alien-leaf.key");
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "certificate /CN=an alien: unknown CA",
	                               "does not know the CA of this end's certificate"});
}

/* A server that has lasted longer than its certificate. */
static void an_own_expired_certificate_is_refused(void **state)
{
	static const struct leaf old = {"old", "ca", "an old client", "DNS:old.example", -9, -1};
	struct ndx_tls_attr client = tls_client();
	struct ndx_session_attr attr;
	struct ndx_session *s;
	const char *address = "127.0.0.1:1";
	struct rig *r = *state;

	papers_leaf(&old);
	client.cert_file = paper("old.pem");
	client.key_file = paper("old.key");
	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.tls = &client;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_E_INVALID_CONFIG);
	says("old.pem: the certificate has expired");
}

/* A client of OpenSSL, which does not look at the date of its own certificate. */
static void raw_client(const struct host *h, const char *cert, int most)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char file[64];
	const int fd = host_join(h);
	char byte;
	SSL *ssl;

	assert_non_null(ctx);
	if (cert != NULL) {
		(void)snprintf(file, sizeof(file), "%s.pem", cert);
		assert_int_equal(SSL_CTX_use_certificate_file(ctx, paper(file), SSL_FILETYPE_PEM),
		                 1);
		(void)snprintf(file, sizeof(file), "%s.key", cert);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, paper(file), SSL_FILETYPE_PEM),
		                 1);
	}
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, most), 1);
	ssl = SSL_new(ctx);
	assert_non_null(ssl);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	if (SSL_connect(ssl) == 1)
		assert_int_not_equal(SSL_read(ssl, &byte, 1), 1);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	(void)close(fd);
}

static void a_client_whose_certificate_has_expired_is_refused(void **state)
{
	static const struct leaf old = {"old", "ca", "an old client", "DNS:old.example", -9, -1};
	const struct ndx_tls_attr server = tls_server();
	struct host h;

	papers_leaf(&old);
	host_open(&h, *state, &server, WAIT_MS);
	log_begin();
	raw_client(&h, "old", TLS1_3_VERSION);
	log_says(" of 127.0.0.1:", "/CN=an old client: certificate has expired");
	log_end();
	host_close(&h);
}

static void an_older_tls_is_refused(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	struct host h;

	host_open(&h, *state, &server, WAIT_MS);
	log_begin();
	raw_client(&h, "client", TLS1_2_VERSION);
	log_says(" of 127.0.0.1:", "the peer does not speak TLS 1.3");
	log_end();
	host_close(&h);
}

static void an_address_is_no_name_of_a_host(void **state)
{
	static const struct leaf loose = {"loose", "ca", "a loose one", "DNS:127.0.0.1,DNS:*.0.0.1",
	                                  -1,      30};
	const struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();

	papers_leaf(&loose);
	server.cert_file = paper("loose.pem");
	server.key_file = paper("loose.key");
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "name mismatch: it is not for \"127.0.0.1\"",
	                               "does not admit this end's certificate"});
}

static void a_server_of_another_name_is_refused(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr named = tls_client();
	struct ndx_tls_attr server = tls_server();

	server.cert_file = paper("other.pem");
	server.key_file = paper("other.key");
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "name mismatch: it is not for \"127.0.0.1\"",
	                               "does not admit this end's certificate"});
	named.server_name = "elsewhere.example";
	clashes(state, &(struct clash){&named, &server, NDX_E_CONNECTION_REFUSED,
	                               "name mismatch: it is not for \"elsewhere.example\"",
	                               "does not admit this end's certificate"});
}

static void a_client_of_another_name_is_refused(void **state)
{
	static const char *const names[] = {"nobody.example", "spiffe://example/d", "10.0.0.1"};
	const struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();

	server.peer_names = names;
	server.peer_name_count = 3;
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "does not admit this end's certificate",
	                               "/CN=the client: name mismatch: none of its names"});
}

static void names_admit_those_that_have_them(void **state)
{
	static const char *const all[] = {"client.example", "spiffe://example/c"};
	struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();
	struct host h;

	client.server_name = "localhost";
	for (size_t i = 0; i < 2; i++) {
		struct ndx_session *s;

		server.peer_names = &all[i];
		server.peer_name_count = 1;
		host_open(&h, *state, &server, WAIT_MS);
		s = tls_session(*state, h.address, &client, WAIT_MS);
		if (ndx_session_run(s) != NDX_OK)
			fail_msg("%s", ndx_last_error());
		ndx_session_close(s);
		host_close(&h);
	}
}

static void a_wrong_pre_shared_key_is_refused(void **state)
{
	struct ndx_tls_attr client;
	struct ndx_tls_attr server;

	ndx_tls_attr_init(&client);
	ndx_tls_attr_init(&server);
	client.psk_file = paper("psk-wrong");
	server.psk_file = paper("psk");
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED,
	                               "wrong pre-shared key", "different keys for \"alice\""});
	client.psk_file = paper("psk-unknown");
	clashes(state, &(struct clash){&client, &server, NDX_E_CONNECTION_REFUSED, "TLS: the peer",
	                               "identity \"bob\" is not known here"});
}

static void plaintext_and_tls_do_not_mix(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	clashes(state, &(struct clash){NULL, &server, NDX_E_INVALID_CONFIG,
	                               "the client speaks plaintext, this server takes TLS only",
	                               "the client speaks plaintext, this server takes TLS only"});
	clashes(state,
	        &(struct clash){&client, NULL, NDX_E_INVALID_CONFIG, "the server speaks plaintext",
	                        "the client speaks TLS, this server has none"});
}

/* ---- attributes ---- */

struct mistake {
	struct ndx_tls_attr attr;
	enum ndx_status status;
	const char *says[2];
};

static void refused(void **state, const struct mistake *m)
{
	const char *address = "127.0.0.1:1";
	struct ndx_session *s = NULL;
	struct ndx_session_attr attr;
	struct rig *r = *state;

	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.tls = &m->attr;
	assert_int_equal(ndx_session_create(&attr, &s), m->status);
	assert_null(s);
	says(m->says[0]);
	says(m->says[1]);
}

static void files_are_checked(void **state)
{
	const struct ndx_tls_attr good = tls_client();
	struct mistake m = {.attr = good, .status = NDX_E_NOT_FOUND};

	m.attr.cert_file = paper("none.pem");
	m.says[0] = "none.pem cannot be opened";
	m.says[1] = "ndx_session_create";
	refused(state, &m);
	m.status = NDX_E_INVALID_CONFIG;
	m.attr = good;
	m.attr.key_file = paper("server.key");
	m.says[0] = "server.key: the key does not match the certificate";
	refused(state, &m);
	m.attr = good;
	m.attr.key_file = paper("open.key");
	paper_write("open.key", "", 0640);
	m.says[0] = "open.key is secret, and its mode 0640 lets others open it; chmod 600";
	refused(state, &m);
	paper_write("empty.key", "nothing\n", 0600);
	m.attr.key_file = paper("empty.key");
	m.says[0] = "empty.key: has no key in PEM without passphrase";
	refused(state, &m);
	m.attr = good;
	m.attr.ca_file = paper("client.key");
	m.says[0] = "client.key: has no certificate in PEM";
	refused(state, &m);
	m.attr.ca_file = paper(".");
	m.says[0] = "is no ordinary file";
	refused(state, &m);
}

static void keys_are_checked(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} files[] = {
		{"", "has 0 keys, one is needed"},
		{"alice\n", "line 1 is not \"identity:key\""},
		{"\n# c\n:00\n", "line 3 has no identity"},
		{"alice:00\n", "line 1 has no key of 32 to 128"},
		{"alice:000102030405060708090a0b0c0d0e0g", "line 1 has a key that is not hex"},
		{"a:000102030405060708090a0b0c0d0e0f\nb:000102030405060708090a0b0c0d0e0f\n",
	         "has 2 keys, a client takes one"},
		{"a:000102030405060708090a0b0c0d0e0f\r\na:000102030405060708090a0b0c0d0e0f",
	         "line 2 has an identity for the second time"},
	};
	struct mistake m = {.status = NDX_E_INVALID_CONFIG};

	ndx_tls_attr_init(&m.attr);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		paper_write("keys", files[i].text, 0600);
		m.attr.psk_file = paper("keys");
		m.says[0] = files[i].says;
		m.says[1] = "/keys";
		refused(state, &m);
	}
	paper_write("keys", "a:000102030405060708090a0b0c0d0e0f\n", 0604);
	m.says[0] = "mode 0604 lets others open it";
	assert_int_equal(chmod(paper("keys"), 0604), 0);
	m.attr.psk_file = paper("keys");
	refused(state, &m);
}

static void attributes_are_checked(void **state)
{
	static const char *const names[] = {"a"};
	const struct ndx_tls_attr good = tls_client();
	struct mistake m = {.attr = good, .status = NDX_E_INVALID_PARAMETER};

	m.says[1] = "ndx_session_create: ";
	m.attr.key_file = NULL;
	m.says[0] = "cert_file and key_file go together";
	refused(state, &m);
	m.attr = good;
	m.attr.ca_file = NULL;
	m.says[0] = "neither ca_file nor psk_file";
	refused(state, &m);
	m.attr = good;
	m.attr.verify = (enum ndx_tls_verify)3;
	m.says[0] = "verify is not of enum ndx_tls_verify";
	refused(state, &m);
	m.attr = good;
	m.attr.reserved = 1;
	m.says[0] = "reserved is not 0";
	refused(state, &m);
	m.attr = good;
	m.attr.peer_names = names;
	m.attr.peer_name_count = 1;
	m.says[0] = "a client has server_name";
	refused(state, &m);
	m.attr = good;
	m.attr.size = 8;
	m.says[0] = "struct ndx_tls_attr has size 8";
	refused(state, &m);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_client_without_certificate_is_refused),
		T(a_client_of_another_ca_is_refused),
		T(a_server_of_another_ca_is_refused),
		T(an_own_expired_certificate_is_refused),
		T(a_client_whose_certificate_has_expired_is_refused),
		T(an_older_tls_is_refused),
		T(an_address_is_no_name_of_a_host),
		T(a_server_of_another_name_is_refused),
		T(a_client_of_another_name_is_refused),
		T(names_admit_those_that_have_them),
		T(a_wrong_pre_shared_key_is_refused),
		T(plaintext_and_tls_do_not_mix),
		T(files_are_checked),
		T(keys_are_checked),
		T(attributes_are_checked),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
