/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a peer may change its keys, and a server give tickets. Each KeyUpdate (RFC 8446, 4.6.3)
 * costs this end a key, and an answer if the peer wants one, and no session needs many: OpenSSL
 * asks for one after 2^24 records. */
#include "tls_private.h"

#include <openssl/ssl3.h>

#include <ndx/spi/system.h>

#define UPDATES_MOST 32u
#define TICKETS_MOST 8u /* OpenSSL's servers give 2, NDX's 1 */
#define PERIOD_NS (UINT64_C(60) * 1000000000)

/* Whether there were more than `most` in the period. */
static bool is_too_often(struct tls_pace *pace, uint32_t most)
{
	const uint64_t now = ndxp_now_ns();

	if (pace->count == 0 || now - pace->since_ns >= PERIOD_NS) {
		pace->count = 0;
		pace->since_ns = now;
	}
	return ++pace->count > most;
}

static void on_message(int sent, int version, int type, const void *bytes, size_t length, SSL *ssl,
                       void *arg)
{
	struct tls *t = SSL_get_app_data(ssl);
	uint8_t message;

	(void)version;
	(void)arg;
	if (sent != 0 || type != SSL3_RT_HANDSHAKE || length == 0 || t == NULL)
		return;
	message = *(const uint8_t *)bytes;
	if (message == SSL3_MT_KEY_UPDATE && is_too_often(&t->updates, t->context->updates_most))
		t->restless = "the peer changes its keys too often";
	if (message == SSL3_MT_NEWSESSION_TICKET &&
	    is_too_often(&t->tickets, t->context->tickets_most))
		t->restless = "the server gives too many tickets";
}

void tls_limit_updates(struct tls_context *c)
{
	c->updates_most = UPDATES_MOST;
	c->tickets_most = TICKETS_MOST;
	SSL_CTX_set_msg_callback(c->ssl, on_message);
}
