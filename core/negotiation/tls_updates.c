/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a peer may change its keys. Each KeyUpdate (RFC 8446, 4.6.3) costs this end a key, and
 * an answer if the peer wants one, and no session needs many: OpenSSL asks for one after 2^24
 * records. */
#include "tls_private.h"

#include <openssl/ssl3.h>

#include <ndx/spi/system.h>

#define MOST 32u
#define PERIOD_NS (UINT64_C(60) * 1000000000)

static void on_message(int sent, int version, int type, const void *bytes, size_t length, SSL *ssl,
                       void *arg)
{
	struct tls *t = SSL_get_app_data(ssl);
	uint64_t now;

	(void)version;
	(void)arg;
	if (sent != 0 || type != SSL3_RT_HANDSHAKE || length == 0 ||
	    *(const uint8_t *)bytes != SSL3_MT_KEY_UPDATE || t == NULL)
		return;
	now = ndxp_now_ns();
	if (t->updates == 0 || now - t->updates_since_ns >= PERIOD_NS) {
		t->updates = 0;
		t->updates_since_ns = now;
	}
	t->updates++;
	t->restless = t->restless || t->updates > t->context->updates_most;
}

void tls_limit_updates(struct tls_context *c)
{
	c->updates_most = MOST;
	SSL_CTX_set_msg_callback(c->ssl, on_message);
}
