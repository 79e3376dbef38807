/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions that go on over another channel are of the same identity; what was recorded is of no
 * use. */
#include "tls_raw.h"

#include <sys/socket.h>
#include <unistd.h>

static const uint8_t cookie[16] = {9, 8, 7};

/* A peer, by its proof. */
struct peer {
	const char *cert;
	const char *key;
};

static void join(struct raw *r, const struct host *h, const struct peer *p)
{
	if (p->key != NULL)
		raw_open_with_key(r, h, p->key);
	else
		raw_open(r, h, p->cert);
}

/* The server takes certificates, keys, and peers without either. */
static void open_to_all(struct host *h, void **state)
{
	struct ndx_tls_attr server = tls_server();

	paper_write("two-keys",
	            "alice:000102030405060708090a0b0c0d0e0f\n"
	            "bob:000102030405060708090a0b0c0d0e0f\n",
	            0600);
	server.psk_file = paper("two-keys");
	server.verify = NDX_TLS_VERIFY_OPTIONAL;
	host_open(h, *state, &server, WAIT_MS);
}

/* `cut`: the owner's channel has broken; else the owner is connected, and the server waits for it.
 */
static void tries(void **state, const struct peer *owner, const struct peer *another, bool cut)
{
	struct ndx_negotiation_server_stats stats;
	struct raw a;
	struct raw b;
	struct frame f;
	struct host h;

	open_to_all(&h, state);
	log_begin();
	join(&a, &h, owner);
	assert_true(raw_greet(&a, cookie, false, &f));
	assert_int_equal(f.type, FRAME_WELCOME);
	assert_true(raw_receive(&a, &f)); /* from here on the server waits for the client */
	if (cut) {
		raw_close(&a);
		log_says("its transport broke in stage info", "");
	}
	join(&b, &h, another);
	assert_true(raw_greet(&b, cookie, true, &f));
	assert_int_equal(f.type, FRAME_ERROR);
	raw_close(&b);
	log_says("wants to go on with session 1, which is of", "the identities differ");
	log_says(" of 127.0.0.1:", "is of another identity");
	if (cut) {
		join(&a, &h, owner);
		assert_true(raw_greet(&a, cookie, true, &f));
		assert_int_equal(f.type, FRAME_WELCOME);
		assert_int_equal(f.flags, FRAME_RESUMED);
		raw_inform(&a);
		raw_await_validate(&a, &f);
	} else {
		const struct frame mine = {.type = FRAME_DATA,
		                           .round = 0,
		                           .payload = (const uint8_t *)"hallo",
		                           .length = 5};

		raw_send(&a, &mine);
		assert_true(raw_receive(&a, &f));
		assert_int_equal(f.type, FRAME_DATA);
		assert_int_equal(f.round, 1);
	}
	host_stats(&h, &stats);
	assert_int_equal(stats.refused_identities, 1);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.resumed, cut);
	raw_close(&a);
	log_end();
	host_close(&h);
}

static const struct peer peers[] = {
	{.cert = "client"}, {.cert = "second"}, {.cert = NULL}, {.key = "alice"}, {.key = "bob"},
};
#define PEERS (sizeof(peers) / sizeof(peers[0]))

static void another_peer_with_the_cookie_is_refused(void **state)
{
	for (size_t i = 0; i < PEERS; i++)
		for (size_t k = 0; k < PEERS; k++)
			if (i != k)
				tries(state, &peers[i], &peers[k], true);
}

static void another_peer_does_not_end_a_channel(void **state)
{
	tries(state, &peers[0], &peers[1], false);
	tries(state, &peers[3], &peers[4], false);
}

/* The same names, and the same key of the certificate's owner, but another certificate. */
static void a_new_certificate_is_another_identity(void **state)
{
	static const struct peer renewed = {.cert = "renewed"};
	static const struct leaf leaf = {
		"renewed", "ca", "the client", "DNS:client.example,URI:spiffe://example/c", -1, 30};

	papers_leaf(&leaf);
	tries(state, &peers[0], &renewed, true);
}

/* ---- what was recorded ---- */

static void replays(void **state, const struct ndx_tls_attr *client,
                    const struct ndx_tls_attr *server)
{
	struct ndx_negotiation_server_stats before;
	struct ndx_negotiation_server_stats after;
	static struct proxy p;
	struct ndx_session *s;
	uint8_t answer[4096];
	struct host h;
	int fd;

	host_open(&h, *state, server, WAIT_MS);
	proxy_start(&p, &h, false);
	s = tls_session(*state, p.address, client, WAIT_MS);
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	host_await_empty(&h);
	proxy_stop(&p);
	assert_in_range(p.recorded_length, 500, sizeof(p.recorded) - 1);
	host_stats(&h, &before);
	assert_int_equal(before.completed, 1);
	log_begin();
	fd = host_join(&h);
	assert_int_equal(send(fd, p.recorded, p.recorded_length, MSG_NOSIGNAL), p.recorded_length);
	while (recv(fd, answer, sizeof(answer), 0) > 0)
		;
	(void)close(fd);
	host_await_empty(&h);
	log_says(" of 127.0.0.1:", "TLS: ");
	log_end();
	host_stats(&h, &after);
	assert_int_equal(after.accepted, before.accepted + 1);
	assert_int_equal(after.without_hello, before.without_hello + 1);
	assert_int_equal(after.completed, before.completed);
	assert_int_equal(after.failed, before.failed);
	host_close(&h);
}

static void a_recorded_session_is_of_no_use(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_tls_attr key;

	replays(state, &client, &server);
	ndx_tls_attr_init(&key);
	key.psk_file = paper("psk");
	replays(state, &key, &key);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin_with_reset, rig_end)
	const struct CMUnitTest tests[] = {
		T(another_peer_with_the_cookie_is_refused),
		T(another_peer_does_not_end_a_channel),
		T(a_new_certificate_is_another_identity),
		T(a_recorded_session_is_of_no_use),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
