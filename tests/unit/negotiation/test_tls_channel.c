/* SPDX-License-Identifier: BSD-2-Clause */
/* A channel of TLS by itself: what a failure, a peer that does not read, and odd names lead to. */
#include "tls_rig.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "tls.h"
#include "tls_private.h"

struct channel {
	struct tls_context *contexts[2]; /* of the client, of the server */
	struct tls *ends[2];
	int fds[2];
};

static void channel_open(struct channel *c, const struct ndx_tls_attr *client,
                         const struct ndx_tls_attr *server)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, c->fds), 0);
	assert_int_equal(tls_context_create(client, NDX_ROLE_CLIENT, "client", &c->contexts[0]),
	                 NDX_OK);
	assert_int_equal(tls_context_create(server, NDX_ROLE_SERVER, "server", &c->contexts[1]),
	                 NDX_OK);
	c->ends[0] = tls_begin(c->contexts[0], c->fds[0], "127.0.0.1:1");
	c->ends[1] = tls_begin(c->contexts[1], c->fds[1], NULL);
}

static void channel_close(struct channel *c)
{
	for (int i = 0; i < 2; i++) {
		tls_end(c->ends[i]);
		tls_context_put(c->contexts[i]);
		(void)close(c->fds[i]);
	}
}

/* True: both ends admit each other. */
static bool shake_hands(struct channel *c)
{
	uint8_t byte;
	size_t got;

	for (int i = 0; i < 100; i++) {
		const enum ndx_status st = tls_receive(c->ends[i % 2], &byte, sizeof(byte), &got);

		if (st != NDX_PENDING)
			return false;
	}
	return tls_is_ready(c->ends[0]) && tls_is_ready(c->ends[1]);
}

static void nothing_is_taken_behind_a_failure(void **state)
{
	static const uint8_t garbage[37] = {0x17, 3, 3, 0, 32, 1, 2, 3};
	static const char plain[] = "NDXN in plaintext";
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	uint8_t bytes[64];

	(void)state;
	for (int end = 0; end < 2; end++) {
		struct channel c;
		size_t sent = 0;
		size_t got = 0;

		channel_open(&c, &client, &server);
		assert_true(shake_hands(&c));
		assert_int_equal(send(c.fds[1 - end], garbage, sizeof(garbage), 0),
		                 sizeof(garbage));
		assert_true(tls_receive(c.ends[end], bytes, sizeof(bytes), &got) < 0);
		assert_true(tls_has_failed(c.ends[end]));
		assert_int_equal(send(c.fds[1 - end], plain, sizeof(plain), 0), sizeof(plain));
		for (int i = 0; i < 3; i++)
			assert_true(tls_receive(c.ends[end], bytes, sizeof(bytes), &got) < 0);
		assert_true(tls_send(c.ends[end], bytes, 20, &sent) < 0);
		assert_int_equal(sent, 0);
		/* a drain throws it away, and finds the end */
		assert_int_equal(tls_discard(c.ends[end], bytes, sizeof(bytes), &got), NDX_OK);
		assert_int_equal(got, sizeof(plain));
		assert_int_equal(tls_discard(c.ends[end], bytes, sizeof(bytes), &got), NDX_PENDING);
		assert_int_equal(tls_events(c.ends[end]), EPOLLIN);
		channel_close(&c);
	}
}

/* A peer that asks for key updates and does not read: the output waits, and only for the peer. */
static void a_peer_that_does_not_read_is_waited_for(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct channel c;
	uint8_t byte;
	size_t got;

	(void)state;
	channel_open(&c, &client, &server);
	assert_true(shake_hands(&c));
	c.contexts[1]->updates_most = UINT32_MAX;
	for (int i = 0; i < 100000 && tls_events(c.ends[1]) != EPOLLOUT; i++) {
		size_t sent = 0;

		assert_int_equal(SSL_key_update(c.ends[0]->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		(void)tls_send(c.ends[0], (const uint8_t *)"", 0, &sent);
		(void)SSL_do_handshake(c.ends[0]->ssl);
		assert_int_equal(tls_receive(c.ends[1], &byte, 1, &got), NDX_PENDING);
	}
	assert_int_equal(tls_events(c.ends[1]), EPOLLOUT);
	channel_close(&c);
}

static void a_peer_may_not_change_its_keys_often(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	enum { MOST = 32 };

	(void)state;
	for (int end = 0; end < 2; end++) {
		struct channel c;
		size_t sent;
		size_t got;
		uint8_t byte;

		channel_open(&c, &client, &server);
		assert_true(shake_hands(&c));
		for (int i = 0; i <= MOST; i++) {
			sent = 0;
			assert_int_equal(
				SSL_key_update(c.ends[1 - end]->ssl, SSL_KEY_UPDATE_NOT_REQUESTED),
				1);
			assert_int_equal(tls_send(c.ends[1 - end], (const uint8_t *)"x", 1, &sent),
			                 NDX_OK);
			if (i < MOST)
				assert_int_equal(tls_receive(c.ends[end], &byte, 1, &got), NDX_OK);
		}
		assert_int_equal(tls_receive(c.ends[end], &byte, 1, &got),
		                 NDX_E_CONNECTION_ABORTED);
		assert_true(tls_has_failed(c.ends[end]));
		assert_string_equal(tls_why(c.ends[end]),
		                    "TLS: the peer changes its keys too often");
		channel_close(&c);
	}
}

static bool admits(const struct ndx_tls_attr *client, const struct ndx_tls_attr *server)
{
	struct channel c;
	bool admitted;

	channel_open(&c, client, server);
	admitted = c.ends[0] != NULL && shake_hands(&c);
	channel_close(&c);
	return admitted;
}

/* A name of which nothing is left when its zone is cut off is no name. */
static void a_client_needs_a_name(void **state)
{
	struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	(void)state;
	client.server_name = "localhost";
	assert_true(admits(&client, &server));
	client.server_name = "%x";
	assert_false(admits(&client, &server));
	client.server_name = "localhost%x";
	assert_false(admits(&client, &server));
}

static void a_wildcard_is_no_client(void **state)
{
	static const char *const whole[] = {"a.wild.example"};
	static const char *const dotted[] = {".wild.example"};
	struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();
	struct tls_context *context;

	(void)state;
	papers_leaf(&(struct leaf){"wild", "ca", "wild", "DNS:*.wild.example", -1, 1});
	client.server_name = "localhost";
	client.cert_file = strdup(paper("wild.pem"));
	client.key_file = strdup(paper("wild.key"));
	assert_true(admits(&client, &server));
	server.peer_names = whole;
	server.peer_name_count = 1;
	assert_false(admits(&client, &server));
	server.peer_names = dotted;
	assert_int_equal(tls_context_create(&server, NDX_ROLE_SERVER, "server", &context),
	                 NDX_E_INVALID_PARAMETER);
	says("one of peer_names begins with a dot");
	free((char *)(uintptr_t)client.cert_file);
	free((char *)(uintptr_t)client.key_file);
}

/* Certificates that the server gets beside the client's own; it knows "ca" only. */
static int certificates_beside(const struct ndx_tls_attr *client)
{
	const struct ndx_tls_attr server = tls_server();
	struct channel c;
	STACK_OF(X509) * chain;
	int count;

	channel_open(&c, client, &server);
	assert_true(shake_hands(&c));
	chain = SSL_get_peer_cert_chain(c.ends[1]->ssl);
	count = chain != NULL ? sk_X509_num(chain) : 0;
	channel_close(&c);
	return count;
}

/* The peer has it, and the time that it needs to read one is that of a signature. */
static void the_certificate_of_the_ca_is_not_sent(void **state)
{
	struct ndx_tls_attr client = tls_client();

	(void)state;
	assert_int_equal(certificates_beside(&client), 0);
	papers_middle(&(struct leaf){"middle", "ca", "the middle", "DNS:middle", -1, 1});
	papers_leaf(&(struct leaf){"below", "middle", "below", "DNS:client.example", -1, 1});
	paper_join("chain.pem", "below.pem", "middle.pem");
	paper_join("cas.pem", "ca.pem", "middle.pem");
	client.key_file = paper("below.key");
	client.cert_file = paper("chain.pem");
	assert_int_equal(certificates_beside(&client), 1);
	paper_join("whole.pem", "chain.pem", "ca.pem");
	client.cert_file = paper("whole.pem");
	assert_int_equal(certificates_beside(&client), 1);
	/* the one between them may be in the CA file only */
	client.cert_file = paper("below.pem");
	client.ca_file = paper("cas.pem");
	assert_int_equal(certificates_beside(&client), 1);
	/* a CA file that says nothing of the own certificate */
	client.cert_file = paper("chain.pem");
	client.ca_file = paper("alien.pem");
	client.verify = NDX_TLS_VERIFY_NONE;
	assert_int_equal(certificates_beside(&client), 1);
	/* a CA of this end that is below another one for the peer */
	papers_root("rooted", "middle");
	client.ca_file = paper("rooted.pem");
	assert_int_equal(certificates_beside(&client), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(nothing_is_taken_behind_a_failure),
		T(a_peer_that_does_not_read_is_waited_for),
		T(a_peer_may_not_change_its_keys_often),
		T(a_client_needs_a_name),
		T(a_wildcard_is_no_client),
		T(the_certificate_of_the_ca_is_not_sent),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
