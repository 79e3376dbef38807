/* SPDX-License-Identifier: BSD-2-Clause */
#include "many_raw.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <ndx/spi/byteorder.h>

/* ---- bytes ---- */

/* Each wait has an end, and no frame waits for the one behind it. */
static void limit_waits(int fd)
{
	const struct timeval most = {.tv_sec = RAW_WAIT_MS / 1000};
	const int on = 1;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)), 0);
}

void raw_send(struct raw *p, const void *bytes, size_t length)
{
	if (p->ssl != NULL)
		(void)SSL_write(p->ssl, bytes, (int)length);
	else
		(void)send(p->fd, bytes, length, MSG_NOSIGNAL); /* the real end may have closed */
}

static int receive(struct raw *p, void *bytes, size_t room)
{
	if (p->ssl != NULL)
		return SSL_read(p->ssl, bytes, (int)room);
	return (int)recv(p->fd, bytes, room, 0);
}

void raw_say(struct raw *p, const struct frame *f)
{
	uint8_t bytes[FRAME_HEADER + 2 * MESSAGE];

	assert_true(f->length <= 2 * MESSAGE);
	frame_write_header(bytes, f);
	if (f->length > 0)
		memcpy(bytes + FRAME_HEADER, f->payload, f->length);
	raw_send(p, bytes, FRAME_HEADER + f->length);
}

bool raw_hear(struct raw *p, struct frame *f)
{
	size_t used = FRAME_HEADER;
	size_t have = 0;
	const char *why;

	for (;;) {
		const enum frame_verdict v = frame_parse(p->bytes, have, MESSAGE, f, &used, &why);
		int n;

		if (v == FRAME_WHOLE)
			return true;
		assert_int_equal(v, FRAME_MORE);
		n = receive(p, p->bytes + have, used - have);
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
}

/* ---- the ends ---- */

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **identity, size_t *length,
                   SSL_SESSION **session)
{
	static const uint8_t cipher[] = {0x13, 0x01};
	static const unsigned char name[] = "many";
	uint8_t key[16];

	(void)md;
	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 0x11);
	*session = SSL_SESSION_new();
	assert_non_null(*session);
	assert_int_equal(SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, cipher)), 1);
	assert_int_equal(SSL_SESSION_set1_master_key(*session, key, sizeof(key)), 1);
	assert_int_equal(SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION), 1);
	*identity = name;
	*length = sizeof(name) - 1;
	return 1;
}

static void speak_tls(struct raw *p)
{
	p->ctx = SSL_CTX_new(TLS_client_method());
	assert_non_null(p->ctx);
	assert_int_equal(SSL_CTX_set_ciphersuites(p->ctx, "TLS_AES_128_GCM_SHA256"), 1);
	SSL_CTX_set_psk_use_session_callback(p->ctx, use_key);
	p->ssl = SSL_new(p->ctx);
	assert_non_null(p->ssl);
	assert_int_equal(SSL_set_fd(p->ssl, p->fd), 1);
	assert_int_equal(SSL_connect(p->ssl), 1);
	assert_int_equal(SSL_export_keying_material(p->ssl, p->key, 32, "EXPORTER-ndx-validate", 21,
	                                            NULL, 0, 0),
	                 1);
}

void raw_connect(struct raw *p, const struct rig *r, bool tls)
{
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	memset(p, 0, sizeof(*p));
	p->role = NDX_ROLE_CLIENT;
	p->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	limit_waits(p->fd);
	assert_int_equal(connect(p->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	if (tls)
		speak_tls(p);
}

uint8_t raw_begin(struct raw *p, uint32_t count, uint8_t flags)
{
	static uint32_t last; /* each session has a cookie of its own */
	struct frame_hello hello = {.max_message = MESSAGE,
	                            .queue_pairs = count,
	                            .plugin = "same",
	                            .variant = "as-it-is"};
	struct frame f = {.type = FRAME_HELLO, .numbered = true, .flags = flags};
	uint8_t payload[FRAME_HELLO_SIZE_MAX];
	uint8_t welcome;

	ndxp_put_be32(hello.session, ++last);
	f.length = frame_write_hello(payload, &hello);
	f.payload = payload;
	raw_say(p, &f);
	assert_true(raw_hear(p, &f));
	assert_int_equal(f.type, FRAME_WELCOME);
	welcome = f.flags;
	raw_lanes(p, 0, count, RAW_ALL);
	return welcome;
}

int raw_listen(struct rig *r)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	limit_waits(fd);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

void raw_accept_until(struct raw *p, int listener, uint8_t flags, enum raw_until until)
{
	const struct frame_welcome w = {MESSAGE, RAW_WAIT_MS, RAW_WAIT_MS};
	uint8_t payload[FRAME_WELCOME_SIZE];
	const struct frame f = {.type = FRAME_WELCOME,
	                        .flags = flags,
	                        .payload = payload,
	                        .length = frame_write_welcome(payload, &w)};
	struct frame_hello hello;
	struct frame got;
	const char *why;

	memset(p, 0, sizeof(*p));
	p->role = NDX_ROLE_SERVER;
	p->fd = accept(listener, NULL, NULL);
	assert_true(p->fd >= 0);
	limit_waits(p->fd);
	assert_true(raw_hear(p, &got));
	assert_true(frame_parse_hello(&got, &hello, &why));
	assert_int_equal(got.flags & FRAME_ADDS, FRAME_ADDS);
	raw_say(p, &f);
	raw_lanes(p, 0, hello.queue_pairs, until);
}

void raw_accept(struct raw *p, int listener, uint8_t flags)
{
	raw_accept_until(p, listener, flags, RAW_ALL);
}

void raw_end(struct raw *p, bool reset)
{
	const struct linger at_once = {.l_onoff = 1};

	if (reset)
		(void)setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	else if (p->ssl != NULL)
		(void)SSL_shutdown(p->ssl);
	SSL_free(p->ssl);
	SSL_CTX_free(p->ctx);
	(void)close(p->fd);
	p->fd = -1;
}

/* ---- the whole session ---- */

void raw_say_numbers(struct raw *p, enum frame_type type, const uint32_t *numbers, size_t count,
                     size_t length)
{
	uint8_t payload[2 * MESSAGE] = {0};
	const struct frame f = {.type = type, .payload = payload, .length = (uint32_t)length};

	for (size_t i = 0; i < count; i++)
		ndxp_put_be32(payload + 4 * i, numbers[i]);
	raw_say(p, &f);
}

void raw_add(struct raw *p, uint32_t batch, uint32_t first, uint32_t count)
{
	const uint32_t numbers[] = {batch, first, count};

	raw_say_numbers(p, FRAME_ADD, numbers, 3, FRAME_ADD_SIZE);
}

void raw_abandon(struct raw *p, uint32_t batch)
{
	const struct frame_abandon w = {.batch = batch,
	                                .queue_pair = FRAME_NO_QUEUE_PAIR,
	                                .error = {.layer = NDX_LAYER_FRAMEWORK,
	                                          .status = NDX_E_UNSUCCESSFUL,
	                                          .text = "raw"}};
	uint8_t payload[FRAME_ABANDON_SIZE_MAX];
	const struct frame f = {.type = FRAME_ABANDON,
	                        .payload = payload,
	                        .length = frame_write_abandon(payload, &w)};

	raw_say(p, &f);
}

void raw_remove(struct raw *p, uint32_t first, uint32_t count)
{
	const uint32_t numbers[] = {first, count};

	raw_say_numbers(p, FRAME_REMOVE, numbers, 2, FRAME_REMOVE_SIZE);
}

void raw_await(struct raw *p, enum frame_type type, struct frame *f)
{
	do {
		if (!raw_hear(p, f))
			fail_msg("the end in place of %s", frame_type_name(type));
		if (f->type != type && !f->numbered && f->type != FRAME_ALIVE)
			fail_msg("%s in place of %s: %.*s", frame_type_name(f->type),
			         frame_type_name(type), (int)(f->length > 8 ? f->length - 8 : 0),
			         (const char *)f->payload + 8);
	} while (f->type != type);
}

void raw_is_refused(struct raw *p, const char *text)
{
	struct frame_error e;
	const char *why;
	struct frame f;

	raw_await(p, FRAME_ERROR, &f);
	assert_true(frame_parse_error(&f, &e, &why));
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
	assert_false(raw_hear(p, &f));
}

void raw_is_abandoned(struct raw *p, uint32_t batch, const char *text)
{
	struct frame_abandon w;
	const char *why;
	struct frame f;

	raw_await(p, FRAME_ABANDON, &f);
	assert_true(frame_parse_abandon(&f, &w, &why));
	assert_int_equal(w.batch, batch);
	if (strstr(w.error.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", w.error.text, text);
}

void raw_adds(struct raw *p, uint32_t batch, uint32_t first, uint32_t count)
{
	struct frame_add add;
	const char *why;
	struct frame f;

	raw_add(p, batch, first, count);
	p->batch = batch;
	raw_lanes(p, first, count, RAW_ALL);
	raw_await(p, FRAME_ADD, &f);
	assert_true(frame_parse_add(&f, &add, &why));
	assert_int_equal(add.batch, batch);
	assert_int_equal(add.first, first);
	assert_int_equal(add.count, count);
}

/* ---- the queue pairs ---- */

static void note(struct raw *p, enum ndx_role from, const struct frame *f)
{
	uint8_t input[32 + 4 + MESSAGE];
	uint8_t *digest;

	if (p->ssl == NULL)
		return;
	assert_true(f->queue_pair < RAW_LANES);
	digest = p->said[f->queue_pair][from];
	memcpy(input, digest, 32);
	ndxp_put_be32(input + 32, f->length);
	if (f->length > 0)
		memcpy(input + 36, f->payload, f->length);
	assert_non_null(SHA256(input, 36 + f->length, digest));
}

/* As docs/negotiation-protocol.md says, but for what `p->mac` wants. */
static void make_mac(struct raw *p, const struct frame *f, uint32_t batch, uint8_t mac[32])
{
	uint8_t input[15 + 2 + 2 + 4 + 64 + FRAME_VALIDATE_SIZE] = "ndx validate 3";
	size_t used = 15;
	unsigned length = 32;

	if (batch == 0)
		input[13] = '2';
	input[used++] = (uint8_t)p->role;
	input[used++] = f->flags;
	ndxp_put_be16(input + used, f->queue_pair);
	used += 2;
	if (batch > 0) {
		ndxp_put_be32(input + used, batch);
		used += 4;
	}
	memcpy(input + used, p->said[f->queue_pair], 64);
	used += 64;
	memcpy(input + used, f->payload, FRAME_VALIDATE_SIZE);
	used += FRAME_VALIDATE_SIZE;
	assert_non_null(HMAC(EVP_sha256(), p->key, 32, input, used, mac, &length));
}

static void bind_to_channel(struct raw *p, struct frame *f, uint8_t *payload)
{
	uint8_t *mac = payload + FRAME_VALIDATE_SIZE;
	uint32_t batch = p->batch;

	if (batch == 0 && p->ssl == NULL)
		return;
	if (p->mac == RAW_MAC_OF_BATCH_BEFORE)
		batch--;
	if (p->mac == RAW_MAC_OF_THE_FIRST)
		batch = 0;
	if (p->mac == RAW_MAC_NONE || (p->ssl == NULL && p->mac != RAW_MAC_FLAG_ALONE))
		return;
	f->flags |= FRAME_BOUND;
	if (p->ssl != NULL)
		make_mac(p, f, batch, mac);
	f->length = FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE;
	if (p->mac == RAW_MAC_REPLAYED)
		memcpy(mac, p->latest_mac, FRAME_MAC_SIZE);
	else
		memcpy(p->latest_mac, mac, FRAME_MAC_SIZE);
}

/* The two ends change places. */
static void answer_validate(struct raw *p, const struct frame *got)
{
	uint8_t payload[FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE] = {0};
	struct frame f = {.type = FRAME_VALIDATE,
	                  .stage = NDX_STAGE_VALIDATE,
	                  .numbered = true,
	                  .queue_pair = got->queue_pair,
	                  .payload = payload,
	                  .length = FRAME_VALIDATE_SIZE};

	assert_true(got->length >= FRAME_VALIDATE_SIZE);
	memcpy(payload, got->payload, 16);
	memcpy(payload + 16, got->payload + 32, 16);
	memcpy(payload + 32, got->payload + 16, 16);
	bind_to_channel(p, &f, payload);
	raw_say(p, &f);
}

/* A server's end that is not there. */
static void describe_absent(struct ndx_peer_description *own)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_port = htons(1),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	own->cookie[0] ^= 1;
	memcpy(&own->address, &at, sizeof(at));
}

/* Rounds 0 and 1: the real end's description, as if it were the own one; but two queue pairs do not
 * have one number, nor one cookie. */
static void answer_info(struct raw *p, const struct frame *got)
{
	struct ndx_peer_description own;
	struct frame f = *got;

	assert_int_equal(f.length, sizeof(own));
	memcpy(&own, f.payload, sizeof(own));
	if (own.kind == NDX_DESCRIPTION_VERBS_RC)
		own.qpn += 1000;
	else if (own.kind == NDX_DESCRIPTION_RENDEZVOUS)
		describe_absent(&own);
	f.payload = (const uint8_t *)&own;
	note(p, p->role, &f);
	raw_say(p, &f);
	f.round = 1;
	f.flags = FRAME_COMPLETED;
	f.length = 0;
	note(p, p->role, &f);
	raw_say(p, &f);
}

/* Which step that is; -1: none that needs an answer. */
static int step_of(const struct frame *f)
{
	if (f->type == FRAME_VALIDATE)
		return RAW_VALIDATE;
	if (f->type != FRAME_DATA || f->round > 0)
		return -1;
	return f->stage == NDX_STAGE_INFO ? RAW_INFO : f->stage == NDX_STAGE_READY ? RAW_READY : -1;
}

static int last_step(enum raw_until until)
{
	if (until == RAW_ALL)
		return RAW_READY;
	if (until == RAW_INFO_ALL)
		return RAW_INFO;
	return until == RAW_VALIDATE_ALL ? RAW_VALIDATE : (int)until;
}

/* The next frame of a queue pair. */
static void hear_lane(struct raw *p, struct frame *f, uint32_t left)
{
	if (!raw_hear(p, f))
		fail_msg("the end, %u queue pairs are left", left);
	if (!f->numbered || f->type == FRAME_ERROR)
		fail_msg("%s: %.*s", frame_type_name(f->type),
		         (int)(f->length > 16 ? f->length - 16 : 0), (const char *)f->payload + 16);
}

static void answer_step(struct raw *p, const struct frame *f, int step)
{
	if (step == RAW_INFO)
		answer_info(p, f);
	else if (step == RAW_VALIDATE)
		answer_validate(p, f);
	else
		raw_say(p, f); /* completed in round 0, as the real end */
}

void raw_lanes(struct raw *p, uint32_t first, uint32_t count, enum raw_until until)
{
	const int last = last_step(until);
	uint32_t left = count;
	struct frame f;

	for (uint32_t i = first; p->ssl != NULL && i < first + count && i < RAW_LANES; i++)
		memset(p->said[i], 0, sizeof(p->said[i]));
	while (left > 0) {
		int step;

		hear_lane(p, &f, left);
		if (f.queue_pair < first || f.queue_pair >= first + count)
			continue; /* of a batch that was given up */
		step = step_of(&f);
		if (f.type == FRAME_DATA && f.stage == NDX_STAGE_INFO)
			note(p, p->role == NDX_ROLE_CLIENT ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT, &f);
		left -= step == last;
		if (step >= 0 && step != (int)until)
			answer_step(p, &f, step);
	}
}
