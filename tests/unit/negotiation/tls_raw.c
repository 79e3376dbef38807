/* SPDX-License-Identifier: BSD-2-Clause */
#include "tls_raw.h"

#include <unistd.h>

#include <openssl/hmac.h>
#include <openssl/sha.h>

static void prepare_client(struct raw *r, const struct host *h)
{
	memset(r, 0, sizeof(*r));
	r->ctx = SSL_CTX_new(TLS_client_method());
	r->fd = host_join(h);
	assert_non_null(r->ctx);
}

static void shake_hands(struct raw *r)
{
	r->ssl = SSL_new(r->ctx);
	assert_non_null(r->ssl);
	assert_int_equal(SSL_set_app_data(r->ssl, r), 1);
	assert_int_equal(SSL_set_fd(r->ssl, r->fd), 1);
	assert_int_equal(SSL_connect(r->ssl), 1);
}

void raw_open(struct raw *r, const struct host *h, const char *cert)
{
	char file[64];

	prepare_client(r, h);
	if (cert != NULL) {
		(void)snprintf(file, sizeof(file), "%s.pem", cert);
		assert_int_equal(
			SSL_CTX_use_certificate_file(r->ctx, paper(file), SSL_FILETYPE_PEM), 1);
		(void)snprintf(file, sizeof(file), "%s.key", cert);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(r->ctx, paper(file), SSL_FILETYPE_PEM),
		                 1);
	}
	shake_hands(r);
}

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **identity, size_t *length,
                   SSL_SESSION **session)
{
	static const uint8_t cipher[] = {0x13, 0x01};
	const struct raw *r = SSL_get_app_data(ssl);
	uint8_t key[16];

	(void)md;
	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	*session = SSL_SESSION_new();
	assert_non_null(*session);
	assert_int_equal(SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, cipher)), 1);
	assert_int_equal(SSL_SESSION_set1_master_key(*session, key, sizeof(key)), 1);
	assert_int_equal(SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION), 1);
	*identity = (const unsigned char *)r->identity;
	*length = strlen(r->identity);
	return 1;
}

void raw_open_with_key(struct raw *r, const struct host *h, const char *identity)
{
	prepare_client(r, h);
	r->identity = identity;
	assert_int_equal(SSL_CTX_set_ciphersuites(r->ctx, "TLS_AES_128_GCM_SHA256"), 1);
	SSL_CTX_set_psk_use_session_callback(r->ctx, use_key);
	shake_hands(r);
}

void raw_close(struct raw *r)
{
	SSL_free(r->ssl);
	SSL_CTX_free(r->ctx);
	(void)close(r->fd);
}

void raw_send(struct raw *r, const struct frame *f)
{
	uint8_t bytes[FRAME_HEADER + MESSAGE];

	frame_write_header(bytes, f);
	if (f->length > 0)
		memcpy(bytes + FRAME_HEADER, f->payload, f->length);
	assert_int_equal(SSL_write(r->ssl, bytes, (int)(FRAME_HEADER + f->length)),
	                 FRAME_HEADER + f->length);
}

bool raw_receive(struct raw *r, struct frame *f)
{
	size_t used = FRAME_HEADER;
	size_t have = 0;
	const char *why;

	for (;;) {
		const enum frame_verdict v = frame_parse(r->bytes, have, MESSAGE, f, &used, &why);
		int n;

		if (v == FRAME_WHOLE)
			return true;
		assert_int_equal(v, FRAME_MORE);
		n = SSL_read(r->ssl, r->bytes + have, (int)(used - have));
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
}

bool raw_greet(struct raw *r, const uint8_t cookie[16], bool again, struct frame *f)
{
	struct frame_hello hello = {.max_message = MESSAGE, .plugin = "test", .variant = "two"};
	struct frame mine = {.type = FRAME_HELLO, .flags = again ? FRAME_RESUMED : 0};
	uint8_t payload[FRAME_HELLO_SIZE];

	memcpy(hello.session, cookie, 16);
	mine.length = frame_write_hello(payload, &hello);
	mine.payload = payload;
	raw_send(r, &mine);
	return raw_receive(r, f);
}

static void note(struct raw *r, enum ndx_role from, const void *message, size_t length)
{
	uint8_t input[32 + 4 + MESSAGE] = {0};

	memcpy(input, r->said[from], 32);
	input[34] = (uint8_t)(length >> 8);
	input[35] = (uint8_t)length;
	memcpy(input + 36, message, length);
	assert_non_null(SHA256(input, 36 + length, r->said[from]));
}

void raw_inform(struct raw *r)
{
	memset(r->said, 0, sizeof(r->said));
	for (uint32_t round = 0; round < 2; round++) {
		const struct frame mine = {.type = FRAME_DATA,
		                           .round = round,
		                           .flags = round == 1 ? FRAME_COMPLETED : 0,
		                           .payload = (const uint8_t *)"hallo",
		                           .length = 5};
		struct frame f;

		raw_send(r, &mine);
		note(r, NDX_ROLE_CLIENT, mine.payload, mine.length);
		assert_true(raw_receive(r, &f));
		assert_int_equal(f.type, FRAME_DATA);
		assert_int_equal(f.round, round);
		note(r, NDX_ROLE_SERVER, f.payload, f.length);
	}
}

void raw_key(struct raw *r, uint8_t key[32])
{
	assert_int_equal(SSL_export_keying_material(r->ssl, key, 32, "EXPORTER-ndx-validate", 21,
	                                            NULL, 0, 0),
	                 1);
}

void raw_mac(const struct raw *r, const uint8_t key[32], enum ndx_role from, uint8_t flags,
             const uint8_t payload[FRAME_VALIDATE_SIZE], uint8_t mac[32])
{
	uint8_t input[15 + 2 + 64 + FRAME_VALIDATE_SIZE] = "ndx validate 1";
	unsigned length = 32;

	input[15] = (uint8_t)from;
	input[16] = flags;
	memcpy(input + 17, r->said, 64);
	memcpy(input + 81, payload, FRAME_VALIDATE_SIZE);
	assert_non_null(HMAC(EVP_sha256(), key, 32, input, sizeof(input), mac, &length));
	assert_int_equal(length, 32);
}

void raw_await_validate(struct raw *r, struct frame *f)
{
	uint8_t key[32];
	uint8_t mac[32];

	assert_true(raw_receive(r, f));
	assert_int_equal(f->type, FRAME_VALIDATE);
	assert_int_equal(f->flags, FRAME_BOUND);
	assert_int_equal(f->length, FRAME_VALIDATE_SIZE + 32);
	raw_key(r, key);
	raw_mac(r, key, NDX_ROLE_SERVER, f->flags, f->payload, mac);
	assert_memory_equal(mac, f->payload + FRAME_VALIDATE_SIZE, 32);
}

void raw_is_refused(struct raw *r, const char *text)
{
	struct frame_error e;
	const char *why;
	struct frame f;

	do
		assert_true(raw_receive(r, &f));
	while (f.type != FRAME_ERROR);
	assert_true(frame_parse_error(&f, &e, &why));
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
	assert_false(raw_receive(r, &f));
}
