/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of a session's socket. Loop thread. */
#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include "session.h"

bool driver_secure(struct ndx_session *s, struct tls_context *c, const char *server)
{
	struct driver *d = &s->driver;

	d->secured = false;
	if (c == NULL)
		return true;
	d->tls = tls_begin(c, d->fd, server);
	return d->tls != NULL;
}

bool driver_tls_failed(const struct ndx_session *s)
{
	return s->driver.tls != NULL && tls_has_failed(s->driver.tls);
}

bool driver_bind(struct ndx_session *s)
{
	struct binding *b = &s->dialogue.binding;

	b->bound = s->driver.tls != NULL;
	return !b->bound || tls_export(s->driver.tls, b->key);
}

void driver_note_tls(struct driver *d)
{
	const struct ndx_session *s = container_of(d, struct ndx_session, driver);
	char text[TLS_TEXT];

	if (d->secured || !tls_is_ready(d->tls))
		return;
	d->secured = true;
	log_info("session %llu: TLS 1.3, %s", (unsigned long long)s->id,
	         tls_describe(d->tls, text, sizeof(text)));
}
