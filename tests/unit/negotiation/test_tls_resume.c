/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes that are resumed by a ticket, and all that a ticket must not do: channel by channel.
 */
#include "tls_rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tls.h"
#include "tls_private.h"

/* ---- channels between two contexts ---- */

enum { CLIENT, SERVER };

struct pair {
	struct tls_context *contexts[2];
};

struct channel {
	struct tls *ends[2];
	int fds[2];
};

static void pair_open(struct pair *p, const struct ndx_tls_attr *client,
                      const struct ndx_tls_attr *server)
{
	assert_int_equal(
		tls_context_create(client, NDX_ROLE_CLIENT, "client", &p->contexts[CLIENT]),
		NDX_OK);
	assert_int_equal(
		tls_context_create(server, NDX_ROLE_SERVER, "server", &p->contexts[SERVER]),
		NDX_OK);
}

/* Both ends with certificates. */
static void pair_open_usual(struct pair *p)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();

	pair_open(p, &client, &server);
}

static void pair_close(struct pair *p)
{
	tls_context_put(p->contexts[CLIENT]);
	tls_context_put(p->contexts[SERVER]);
}

static void channel_close(struct channel *c)
{
	for (int i = 0; i < 2; i++) {
		tls_end(c->ends[i]);
		(void)close(c->fds[i]);
	}
}

/* Shake hands, and give the ticket time to arrive. False: one end does not admit the other. */
static bool channel_open(struct channel *c, const struct pair *p, const char *server)
{
	uint8_t byte;
	size_t got;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, c->fds), 0);
	c->ends[CLIENT] = tls_begin(p->contexts[CLIENT], c->fds[CLIENT], server);
	c->ends[SERVER] = tls_begin(p->contexts[SERVER], c->fds[SERVER], NULL);
	assert_non_null(c->ends[CLIENT]);
	assert_non_null(c->ends[SERVER]);
	for (int i = 0; i < 40; i++)
		if (tls_receive(c->ends[i % 2], &byte, sizeof(byte), &got) != NDX_PENDING)
			return false;
	return tls_is_ready(c->ends[CLIENT]) && tls_is_ready(c->ends[SERVER]);
}

enum outcome { REFUSED, WHOLE, RESUMED };

static enum outcome shake_at(const struct pair *p, const char *server)
{
	enum outcome outcome = REFUSED;
	struct channel c;

	if (channel_open(&c, p, server)) {
		outcome = tls_is_resumed(c.ends[CLIENT]) ? RESUMED : WHOLE;
		assert_int_equal(tls_is_resumed(c.ends[SERVER]), outcome == RESUMED);
	}
	channel_close(&c);
	return outcome;
}

static enum outcome shake(const struct pair *p)
{
	return shake_at(p, "127.0.0.1:1");
}

static void shakes_and_resumes(const struct pair *p)
{
	assert_int_equal(shake(p), WHOLE);
	assert_int_equal(shake(p), RESUMED);
}

/* ---- what is resumed ---- */

static void the_second_handshake_is_resumed(void **state)
{
	struct pair p;

	(void)state;
	pair_open_usual(&p);
	assert_int_equal(shake(&p), WHOLE);
	for (int i = 0; i < 5; i++)
		assert_int_equal(shake(&p), RESUMED);
	pair_close(&p);
}

/* The certificates are those of the whole handshake, and the keys are new. */
static void identities_stay_and_keys_are_new(void **state)
{
	uint8_t keys[2][3][TLS_EXPORTED];
	struct tls_identity peers[2][3];
	struct pair p;

	(void)state;
	pair_open_usual(&p);
	for (int i = 0; i < 3; i++) {
		struct channel c;

		assert_true(channel_open(&c, &p, "127.0.0.1:1"));
		assert_int_equal(tls_is_resumed(c.ends[SERVER]), i > 0);
		for (int end = 0; end < 2; end++) {
			assert_true(tls_export(c.ends[end], keys[end][i]));
			assert_true(tls_identify(c.ends[end], &peers[end][i]));
			assert_int_equal(peers[end][i].kind, TLS_BY_CERTIFICATE);
			assert_true(tls_is_same(&peers[end][i], &peers[end][0]));
			assert_memory_equal(peers[end][i].principal, peers[end][0].principal,
			                    TLS_DIGEST);
		}
		assert_true(tls_has_name(c.ends[SERVER], "client.example"));
		assert_false(tls_has_name(c.ends[SERVER], "other.example"));
		assert_false(tls_has_key(c.ends[SERVER], "alice"));
		assert_memory_equal(keys[CLIENT][i], keys[SERVER][i], TLS_EXPORTED);
		for (int before = 0; before < i; before++)
			assert_memory_not_equal(keys[CLIENT][i], keys[CLIENT][before],
			                        TLS_EXPORTED);
		channel_close(&c);
	}
	pair_close(&p);
}

/* A channel that breaks says nothing about its handshake. */
static void a_broken_channel_ends_no_ticket(void **state)
{
	struct pair p;

	(void)state;
	pair_open_usual(&p);
	for (int i = 0; i < 3; i++) {
		struct channel c;

		assert_true(channel_open(&c, &p, "127.0.0.1:1"));
		assert_int_equal(tls_is_resumed(c.ends[SERVER]), i > 0);
		assert_int_equal(shutdown(c.fds[CLIENT], SHUT_RDWR), 0);
		channel_close(&c);
	}
	pair_close(&p);
}

/* A chain of three: the middle is what the client sent with its certificate. */
static void a_certificate_below_another_is_checked_anew(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	struct ndx_tls_attr client = tls_client();
	struct pair p;

	(void)state;
	papers_middle(&(struct leaf){"middle", "ca", "the middle", "DNS:middle", -1, 1});
	papers_leaf(&(struct leaf){"below", "middle", "below", "DNS:client.example", -1, 1});
	paper_join("chain.pem", "below.pem", "middle.pem");
	client.cert_file = paper("chain.pem");
	client.key_file = paper("below.key");
	pair_open(&p, &client, &server);
	shakes_and_resumes(&p);
	assert_int_equal(shake(&p), RESUMED);
	pair_close(&p);
}

/* ---- what is not ---- */

static void either_end_can_switch_it_off(void **state)
{
	(void)state;
	for (int end = 0; end < 2; end++) {
		struct ndx_tls_attr client = tls_client();
		struct ndx_tls_attr server = tls_server();
		struct pair p;

		(end == CLIENT ? &client : &server)->no_resumption = true;
		pair_open(&p, &client, &server);
		for (int i = 0; i < 3; i++)
			assert_int_equal(shake(&p), WHOLE);
		pair_close(&p);
	}
}

static void a_session_is_for_one_name_only(void **state)
{
	struct pair p;

	(void)state;
	pair_open_usual(&p);
	assert_int_equal(shake_at(&p, "127.0.0.1:1"), WHOLE);
	assert_int_equal(shake_at(&p, "localhost:1"), WHOLE);
	assert_int_equal(shake_at(&p, "127.0.0.1:1"), RESUMED);
	assert_int_equal(shake_at(&p, "localhost:1"), RESUMED);
	pair_close(&p);
}

static void a_ticket_is_of_use_at_its_server_only(void **state)
{
	struct tls_context *first;
	struct pair p;
	struct pair other;

	(void)state;
	pair_open_usual(&p);
	pair_open_usual(&other);
	assert_int_equal(shake(&p), WHOLE);
	first = p.contexts[SERVER];
	p.contexts[SERVER] = other.contexts[SERVER]; /* a server that was created anew */
	shakes_and_resumes(&p);
	p.contexts[SERVER] = first;
	assert_int_equal(shake(&p), WHOLE);
	pair_close(&p);
	pair_close(&other);
}

/* Another number, and the right number with the wrong secret. */
static void a_ticket_that_was_made_up_is_none(void **state)
{
	struct pair p;

	(void)state;
	for (int secret = 0; secret < 2; secret++) {
		SSL_SESSION *kept;
		uint8_t key[64];
		size_t length;

		pair_open_usual(&p);
		assert_int_equal(shake(&p), WHOLE);
		if (secret == 0) {
			/* the server has another session under this number */
			SSL_SESSION *given = p.contexts[SERVER]->given[0].session;
			static const uint8_t made_up[SSL_MAX_SSL_SESSION_ID_LENGTH] = {0, 0, 9};

			assert_non_null(given);
			assert_int_equal(SSL_SESSION_set1_id(given, made_up, sizeof(made_up)), 1);
			assert_int_equal(shake(&p), WHOLE);
			assert_int_equal(shake(&p), RESUMED);
			pair_close(&p);
			continue;
		}
		kept = p.contexts[CLIENT]->kept[0].session;
		assert_non_null(kept);
		length = SSL_SESSION_get_master_key(kept, key, sizeof(key));
		key[0] ^= 1;
		assert_int_equal(SSL_SESSION_set1_master_key(kept, key, length), 1);
		assert_int_equal(shake(&p), REFUSED);
		assert_int_equal(shake(&p), WHOLE); /* the client has forgotten it */
		pair_close(&p);
	}
}

static void a_ticket_does_not_live_long(void **state)
{
	struct pair p;

	(void)state;
	for (int end = 0; end < 2; end++) {
		pair_open_usual(&p);
		assert_int_equal(p.contexts[end]->ticket_s, 300);
		assert_int_equal(shake(&p), WHOLE);
		assert_int_equal(shake(&p), RESUMED);
		p.contexts[end]->ticket_s = 0;
		assert_int_equal(shake(&p), WHOLE);
		assert_int_equal(shake(&p), WHOLE);
		pair_close(&p);
	}
}

/* Put a certificate with another end, in seconds from now, in place of one of a chain. */
static void let_end(STACK_OF(X509) * chain, int which, long seconds)
{
	X509 *was = sk_X509_value(chain, which);
	X509 *cert = X509_dup(was);

	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), seconds));
	(void)sk_X509_set(chain, which, cert);
	X509_free(was);
}

/* One of the client's certificates has expired since: its own, or its CA's. */
static void certificates_that_have_expired_are_not_resumed(void **state)
{
	(void)state;
	for (int which = 0; which < 2; which++) {
		struct tls_given *given;
		struct pair p;

		pair_open_usual(&p);
		shakes_and_resumes(&p);
		given = &p.contexts[SERVER]->given[0];
		assert_int_equal(sk_X509_num(given->chain), 2);
		let_end(given->chain, which, 3600);
		assert_int_equal(shake(&p), RESUMED);
		let_end(given->chain, which, -1);
		assert_int_equal(shake(&p), WHOLE);
		/* and a whole handshake at such a time is refused */
		X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(p.contexts[SERVER]->ssl),
		                           time(NULL) + (time_t)40 * 86400);
		let_end(p.contexts[SERVER]->given[1].chain, which, -1);
		assert_int_equal(shake(&p), REFUSED);
		pair_close(&p);
	}
}

/* The CAs are those of the context: a server with others is another one, and knows no ticket. */
static void a_ca_that_is_not_trusted_any_more_is_refused(void **state)
{
	struct ndx_tls_attr alien = tls_server();
	struct tls_context *first;
	struct pair p;

	(void)state;
	alien.ca_file = paper("alien.pem");
	pair_open_usual(&p);
	shakes_and_resumes(&p);
	first = p.contexts[SERVER];
	assert_int_equal(tls_context_create(&alien, NDX_ROLE_SERVER, "server", &p.contexts[SERVER]),
	                 NDX_OK);
	assert_int_equal(shake(&p), REFUSED);
	tls_context_put(first);
	pair_close(&p);
}

static void a_name_that_is_not_allowed_any_more_is_refused(void **state)
{
	static const char *const names[] = {"client.example"};
	const struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();
	struct pair p;

	(void)state;
	server.peer_names = names;
	server.peer_name_count = 1;
	pair_open(&p, &client, &server);
	shakes_and_resumes(&p);
	p.contexts[SERVER]->names[0][0] = 'x'; /* no call does that: the check stands for itself */
	assert_int_equal(shake(&p), REFUSED);
	pair_close(&p);
}

/* Neither gets a ticket; one that had a ticket all the same would not be let in by it. */
static void a_client_without_certificate_has_no_ticket(void **state)
{
	struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();
	struct tls_given *given;
	struct pair p;

	(void)state;
	server.verify = NDX_TLS_VERIFY_OPTIONAL;
	pair_open(&p, &client, &server);
	shakes_and_resumes(&p);
	pair_close(&p);

	client.cert_file = NULL;
	client.key_file = NULL;
	pair_open(&p, &client, &server);
	assert_int_equal(shake(&p), WHOLE);
	assert_int_equal(shake(&p), WHOLE);
	assert_int_equal(p.contexts[SERVER]->given_next, 0);

	/* what a server that gave tickets to all would have */
	p.contexts[CLIENT]->resumes = true;
	tls_keep_sessions(p.contexts[CLIENT]);
	assert_int_equal(SSL_CTX_set_num_tickets(p.contexts[SERVER]->ssl, 1), 1);
	assert_int_equal(shake(&p), WHOLE);
	given = &p.contexts[SERVER]->given[0];
	assert_non_null(given->session);
	assert_null(SSL_SESSION_get0_peer(given->session));
	assert_non_null(p.contexts[CLIENT]->kept[0].session);
	assert_int_equal(shake(&p), WHOLE);
	pair_close(&p);
}

/* A peer sends what it likes beside its certificate: a table of that would take the memory. */
static void many_certificates_are_not_kept(void **state)
{
	struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct pair p;

	(void)state;
	paper_join("many.pem", "client.pem", "other.pem");
	for (int i = 0; i < 8; i++)
		paper_join("many.pem", "many.pem", "other.pem");
	client.cert_file = paper("many.pem");
	pair_open(&p, &client, &server);
	assert_int_equal(shake(&p), WHOLE);
	assert_int_equal(shake(&p), WHOLE);
	assert_int_equal(p.contexts[SERVER]->given_next, 2);
	for (unsigned i = 0; i < TLS_GIVEN_MOST; i++)
		assert_null(p.contexts[SERVER]->given[i].session);
	pair_close(&p);
}

/* Any bytes make an identity, also those that look like a ticket. */
static void an_identity_is_no_ticket(void **state)
{
	struct ndx_tls_attr server = tls_server();
	struct ndx_tls_attr client = {.size = 0};
	struct tls_identity peer;
	struct channel c;
	struct pair p;

	(void)state;
	paper_write("long",
	            "J\xc3\xb6rg-of-thirty-two-characters-1:"
	            "000102030405060708090a0b0c0d0e0f\n",
	            0600);
	ndx_tls_attr_init(&client);
	server.psk_file = paper("long");
	client.psk_file = server.psk_file;
	pair_open(&p, &client, &server);
	assert_true(channel_open(&c, &p, "127.0.0.1:1"));
	assert_true(tls_identify(c.ends[SERVER], &peer));
	assert_int_equal(peer.kind, TLS_BY_KEY);
	channel_close(&c);
	pair_close(&p);
}

static void a_pre_shared_key_has_no_ticket(void **state)
{
	struct ndx_tls_attr client = tls_client();
	struct ndx_tls_attr server = tls_server();
	struct tls_identity peer;
	struct pair p;

	(void)state;
	server.psk_file = paper("psk");
	client.psk_file = server.psk_file;
	pair_open(&p, &client, &server);
	for (int i = 0; i < 3; i++) {
		struct channel c;

		assert_true(channel_open(&c, &p, "127.0.0.1:1"));
		assert_false(tls_is_resumed(c.ends[CLIENT]));
		assert_false(tls_is_resumed(c.ends[SERVER]));
		assert_true(tls_identify(c.ends[SERVER], &peer));
		assert_int_equal(peer.kind, TLS_BY_KEY);
		channel_close(&c);
	}
	assert_int_equal(p.contexts[SERVER]->given_next, 0);
	assert_null(p.contexts[CLIENT]->kept[0].session);
	pair_close(&p);

	/* beside keys, those with a certificate have tickets */
	client.psk_file = NULL;
	pair_open(&p, &client, &server);
	shakes_and_resumes(&p);
	pair_close(&p);
}

/* The client's side of it: what was verified is not valid any more. */
static void a_client_looks_at_the_servers_dates(void **state)
{
	struct tls_kept *kept;
	struct pair p;

	(void)state;
	pair_open_usual(&p);
	shakes_and_resumes(&p);
	kept = &p.contexts[CLIENT]->kept[0];
	assert_int_equal(sk_X509_num(kept->chain), 2);
	let_end(kept->chain, 1, -1);
	assert_int_equal(shake(&p), WHOLE);
	pair_close(&p);
}

/* ---- a server that gives many tickets ---- */

static void many_tickets_end_the_channel(void **state)
{
	enum { MOST = 8 };
	struct channel c;
	struct pair p;
	unsigned kept = 0;
	uint8_t byte;
	size_t got;

	(void)state;
	pair_open_usual(&p);
	assert_true(channel_open(&c, &p, "127.0.0.1:1")); /* one */
	for (int i = 1; i <= MOST; i++) {
		assert_int_equal(SSL_new_session_ticket(c.ends[SERVER]->ssl), 1);
		assert_int_equal(SSL_do_handshake(c.ends[SERVER]->ssl), 1);
		assert_int_equal(tls_flush(c.ends[SERVER]), NDX_OK);
		if (i < MOST)
			assert_int_equal(tls_receive(c.ends[CLIENT], &byte, 1, &got), NDX_PENDING);
	}
	assert_int_equal(tls_receive(c.ends[CLIENT], &byte, 1, &got), NDX_E_CONNECTION_ABORTED);
	assert_string_equal(tls_why(c.ends[CLIENT]), "TLS: the server gives too many tickets");
	for (unsigned i = 0; i < TLS_KEPT_MOST; i++)
		kept += p.contexts[CLIENT]->kept[i].session != NULL;
	assert_int_equal(kept, 1);
	channel_close(&c);
	pair_close(&p);
}

/* The oldest gives way, at both ends. */
static void tables_are_of_fixed_size(void **state)
{
	struct tls_context *server;
	struct tls_context *client;
	unsigned kept = 0;
	struct pair p;

	(void)state;
	pair_open_usual(&p);
	client = p.contexts[CLIENT];
	server = p.contexts[SERVER];
	server->given_next = TLS_GIVEN_MOST - 1;
	for (unsigned i = 0; i <= TLS_KEPT_MOST; i++) {
		assert_int_equal(shake(&p), WHOLE);
		/* from now on it is of another server */
		client->kept[i % TLS_KEPT_MOST].of.name[0] = 'x';
	}
	for (unsigned i = 0; i < TLS_KEPT_MOST; i++) {
		kept += client->kept[i].session != NULL;
		assert_int_equal(client->kept[i].number, i == 0 ? TLS_KEPT_MOST + 1 : i + 1);
	}
	assert_int_equal(kept, TLS_KEPT_MOST);
	assert_int_equal(server->given_next, TLS_GIVEN_MOST + TLS_KEPT_MOST);
	assert_non_null(server->given[TLS_GIVEN_MOST - 1].session);
	assert_non_null(server->given[TLS_KEPT_MOST - 1].session);
	assert_null(server->given[TLS_KEPT_MOST].session);

	/* what is old goes by and by */
	server->ticket_s = 0;
	for (unsigned i = 0; i < 16; i++)
		tls_forget_old(server);
	for (unsigned i = 0; i < TLS_GIVEN_MOST; i++)
		assert_null(server->given[i].session);
	pair_close(&p);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(the_second_handshake_is_resumed),
		T(identities_stay_and_keys_are_new),
		T(a_broken_channel_ends_no_ticket),
		T(a_certificate_below_another_is_checked_anew),
		T(either_end_can_switch_it_off),
		T(a_session_is_for_one_name_only),
		T(a_ticket_is_of_use_at_its_server_only),
		T(a_ticket_that_was_made_up_is_none),
		T(a_ticket_does_not_live_long),
		T(certificates_that_have_expired_are_not_resumed),
		T(a_ca_that_is_not_trusted_any_more_is_refused),
		T(a_name_that_is_not_allowed_any_more_is_refused),
		T(a_client_without_certificate_has_no_ticket),
		T(many_certificates_are_not_kept),
		T(an_identity_is_no_ticket),
		T(a_pre_shared_key_has_no_ticket),
		T(a_client_looks_at_the_servers_dates),
		T(many_tickets_end_the_channel),
		T(tables_are_of_fixed_size),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
