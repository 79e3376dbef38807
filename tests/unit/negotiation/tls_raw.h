/* SPDX-License-Identifier: BSD-2-Clause */
/* A client that speaks TLS by OpenSSL and frames by hand: a server cannot tell it from NDX, until
 * the test wants that. */
#ifndef TEST_TLS_RAW_H
#define TEST_TLS_RAW_H

#include "tls_rig.h"

#include <openssl/ssl.h>

struct raw {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
	uint8_t bytes[FRAME_HEADER + MESSAGE]; /* the latest frame that has come */
	const char *identity;                  /* of the pre-shared key; NULL: none */
	uint8_t said[2][32];                   /* digests of stage info, by role */
};

/* Connect with a certificate, as "client"; NULL: without. Anything may fail later. */
void raw_open(struct raw *r, const struct host *h, const char *cert);
/* The same by the pre-shared key 00 01 ... 0f, of that identity. */
void raw_open_with_key(struct raw *r, const struct host *h, const char *identity);
/* Cut the connection, without a word. */
void raw_close(struct raw *r);

void raw_send(struct raw *r, const struct frame *f);
/* False: the connection has ended. */
bool raw_receive(struct raw *r, struct frame *f);

/* Hello of variant test/two; the server's answer is in `f`. `again`: of a session that lost its
 * transport in stage info. */
bool raw_greet(struct raw *r, const uint8_t cookie[16], bool again, struct frame *f);
/* Stage info: two rounds. */
void raw_inform(struct raw *r);
/* The server's VALIDATE; its MAC is right. */
void raw_await_validate(struct raw *r, struct frame *f);
/* The key of the channel. */
void raw_key(struct raw *r, uint8_t key[32]);
/* As docs/negotiation-protocol.md says. */
void raw_mac(const struct raw *r, const uint8_t key[32], enum ndx_role from, uint8_t flags,
             const uint8_t payload[FRAME_VALIDATE_SIZE], uint8_t mac[32]);
/* The server ends the session by an ERROR with that text. */
void raw_is_refused(struct raw *r, const char *text);

#endif
