/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions over TLS: all stages, awkward transports, many at once; and handshakes that do not end.
 */
#include "tls_rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

enum { MANY = 200 };

static void runs(struct ndx_session *s)
{
	if (ndx_session_run(s) != NDX_OK)
		fail_msg("%s", ndx_last_error());
}

static void a_session_goes_through_all_stages(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_session *s;
	struct host h;

	host_open(&h, *state, &server, WAIT_MS);
	log_begin();
	s = tls_session(*state, h.address, &client, WAIT_MS);
	runs(s);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	host_await_empty(&h);
	log_says("TLS 1.3", "certificate of /CN=the client");
	log_says("TLS 1.3", "certificate of /CN=the server");
	log_end();
	host_close(&h);
}

static void an_overlapped_session_goes_through_all_stages(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct host h;

	host_open(&h, *state, &server, WAIT_MS);
	s = tls_session(*state, h.address, &client, WAIT_MS);
	assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_DONE, &ov), NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&ov, WAIT_MS), NDX_OK);
	ndx_session_close(s);
	host_close(&h);
}

static void a_pre_shared_key_suffices(void **state)
{
	struct ndx_tls_attr tls;
	struct ndx_session *s;
	struct host h;

	ndx_tls_attr_init(&tls);
	tls.psk_file = paper("psk");
	host_open(&h, *state, &tls, WAIT_MS);
	log_begin();
	s = tls_session(*state, h.address, &tls, WAIT_MS);
	runs(s);
	ndx_session_close(s);
	host_await_empty(&h);
	log_says("TLS 1.3", "pre-shared key of \"alice\"");
	log_end();
	host_close(&h);
}

/* The same server takes those with a certificate, and one without where that is optional. */
static void a_server_takes_keys_and_certificates(void **state)
{
	struct ndx_tls_attr server = tls_server();
	struct ndx_tls_attr client = tls_client();
	struct ndx_session *s;
	struct host h;

	server.psk_file = paper("psk");
	server.verify = NDX_TLS_VERIFY_OPTIONAL;
	host_open(&h, *state, &server, WAIT_MS);
	s = tls_session(*state, h.address, &client, WAIT_MS);
	runs(s);
	ndx_session_close(s);
	client.cert_file = NULL;
	client.key_file = NULL;
	s = tls_session(*state, h.address, &client, WAIT_MS);
	runs(s);
	ndx_session_close(s);
	client.ca_file = NULL;
	client.psk_file = paper("psk");
	s = tls_session(*state, h.address, &client, WAIT_MS);
	runs(s);
	ndx_session_close(s);
	host_close(&h);
}

static void a_handshake_may_come_byte_by_byte(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_session *s;
	struct proxy p;
	struct host h;

	host_open(&h, *state, &server, 6 * WAIT_MS);
	proxy_start(&p, &h, true);
	s = tls_session(*state, p.address, &client, 6 * WAIT_MS);
	runs(s);
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_DONE), NDX_OK);
	ndx_session_close(s);
	proxy_stop(&p);
	host_close(&h);
}

static void many_sessions_run_at_once(void **state)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats;
	static struct ndx_overlapped ov[MANY];
	static struct ndx_session *s[MANY];
	struct host h;

	memset(ov, 0, sizeof(ov));
	host_open(&h, *state, &server, 6 * WAIT_MS);
	for (int i = 0; i < MANY; i++) {
		s[i] = tls_session(*state, h.address, &client, 6 * WAIT_MS);
		assert_int_equal(ndx_session_run_overlapped(s[i], &ov[i]), NDX_PENDING);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ndx_overlapped_wait(&ov[i], 6 * WAIT_MS), NDX_OK);
	for (int i = 0; i < MANY; i++)
		ndx_session_close(s[i]);
	host_await_empty(&h);
	host_stats(&h, &stats);
	assert_int_equal(stats.completed, MANY);
	assert_int_equal(stats.failed, 0);
	host_close(&h);
}

/* ---- more in one record than the server reads at once ---- */

static size_t add_frame(uint8_t *bytes, size_t at, const struct frame *f)
{
	frame_write_header(bytes + at, f);
	return at + FRAME_HEADER;
}

/* Hello, many heartbeats, the end: one record. */
static size_t record(uint8_t *bytes)
{
	enum { HEARTBEATS = 700 };
	struct frame_hello hello = {.max_message = MESSAGE, .plugin = "test", .variant = "two"};
	struct frame f = {.type = FRAME_HELLO};
	size_t used;

	f.length = frame_write_hello(bytes + FRAME_HEADER, &hello);
	used = add_frame(bytes, 0, &f) + f.length;
	f = (struct frame){.type = FRAME_ALIVE};
	for (int i = 0; i < HEARTBEATS; i++)
		used = add_frame(bytes, used, &f);
	f.type = FRAME_SESSION_END;
	return add_frame(bytes, used, &f);
}

/* The socket does not become readable again for what TLS has read. */
static void a_record_of_many_frames_is_read_to_its_end(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	static uint8_t bytes[16384];
	const size_t length = record(bytes);
	struct host h;
	SSL *ssl;
	int fd;

	host_open(&h, *state, &server, WAIT_MS);
	fd = host_join(&h);
	assert_int_equal(SSL_CTX_use_certificate_file(ctx, paper("client.pem"), SSL_FILETYPE_PEM),
	                 1);
	assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, paper("client.key"), SSL_FILETYPE_PEM),
	                 1);
	ssl = SSL_new(ctx);
	assert_non_null(ssl);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	assert_int_equal(SSL_connect(ssl), 1);
	assert_int_equal(SSL_write(ssl, bytes, (int)length), length);
	host_await_empty(&h);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	(void)close(fd);
	host_close(&h);
}

/* ---- the transport breaks ---- */

static void resumes(void **state, bool spoil)
{
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats;
	struct ndx_session *s;
	struct proxy p;
	struct host h;

	host_open(&h, *state, &server, WAIT_MS);
	proxy_start(&p, &h, false);
	s = tls_session(*state, p.address, &client, WAIT_MS);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	__atomic_store_n(spoil ? &p.spoiled : &p.cut, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; !spoil && ms < WAIT_MS && __atomic_load_n(&p.cut, __ATOMIC_SEQ_CST) != 0;
	     ms++)
		(void)poll(NULL, 0, 1);
	for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++)
		if (ndx_session_execute(s, (enum ndx_stage)stage) != NDX_OK)
			fail_msg("%s", ndx_last_error());
	host_stats(&h, &stats);
	assert_int_equal(stats.resumed, 1);
	ndx_session_close(s);
	proxy_stop(&p);
	host_close(&h);
}

static void a_session_goes_on_over_another_channel(void **state)
{
	resumes(state, false);
}

/* A record that was changed on the way is a lost transport, not a message. */
static void a_changed_record_is_a_lost_transport(void **state)
{
	resumes(state, true);
}

/* ---- handshakes that do not end ---- */

static void a_slow_handshake_ends_in_time(void **state)
{
	static const uint8_t begin[] = {0x16, 0x03, 0x01};
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	struct server silent;
	struct ndx_session *s;
	uint8_t byte;
	struct host h;
	int fd;

	host_open(&h, *state, &server, 200);
	log_begin();
	fd = host_join(&h);
	assert_int_equal(send(fd, begin, sizeof(begin), MSG_NOSIGNAL), sizeof(begin));
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	(void)close(fd);
	log_says("session", "the TLS handshake did not end in time");
	log_end();
	host_close(&h);
	server_start(&silent, SILENT, NULL);
	s = tls_session(*state, silent.address, &client, 100);
	assert_int_equal(ndx_session_run(s), NDX_E_IO_TIMEOUT);
	says("the TLS handshake does not end within 100 ms");
	ndx_session_close(s);
	server_stop(&silent);
}

/* What a client of TLS says first. */
static size_t client_hello(uint8_t *bytes, size_t room)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem());
	BIO *out = BIO_new(BIO_s_mem());
	int length;

	assert_true(ssl != NULL && in != NULL && out != NULL);
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	assert_int_equal(SSL_do_handshake(ssl), -1);
	length = BIO_read(out, bytes, (int)room);
	assert_true(length > 0);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return (size_t)length;
}

static void garbage_after_the_clients_hello_harms_nobody_else(void **state)
{
	static const uint8_t tails[][6] = {
		{0x17, 0x03, 0x03, 0xff, 0xff, 0}, /* a record that is too long */
		{0x17, 0x03, 0x03, 0, 1, 0xaa},    /* one that cannot be decrypted */
		{0x16, 0x03, 0x03, 0, 0, 0},       /* an empty one */
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x15, 0x03, 0x03, 0, 2, 2}, /* a part of an alert */
	};
	const struct ndx_tls_attr client = tls_client();
	const struct ndx_tls_attr server = tls_server();
	uint8_t hello[4096];
	const size_t length = client_hello(hello, sizeof(hello));
	struct ndx_session *s;
	struct host h;

	host_open(&h, *state, &server, 300);
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		const int fd = host_join(&h);
		uint8_t answer[4096];

		(void)send(fd, hello, length, MSG_NOSIGNAL);
		(void)send(fd, tails[i], sizeof(tails[i]), MSG_NOSIGNAL);
		while (recv(fd, answer, sizeof(answer), 0) > 0)
			;
		(void)close(fd);
		host_await_empty(&h);
		s = tls_session(*state, h.address, &client, WAIT_MS);
		runs(s);
		ndx_session_close(s);
		host_await_empty(&h);
	}
	host_close(&h);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin_with_reset, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_session_goes_through_all_stages),
		T(an_overlapped_session_goes_through_all_stages),
		T(a_pre_shared_key_suffices),
		T(a_server_takes_keys_and_certificates),
		T(a_handshake_may_come_byte_by_byte),
		T(many_sessions_run_at_once),
		T(a_record_of_many_frames_is_read_to_its_end),
		T(a_session_goes_on_over_another_channel),
		T(a_changed_record_is_a_lost_transport),
		T(a_slow_handshake_ends_in_time),
		T(garbage_after_the_clients_hello_harms_nobody_else),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
