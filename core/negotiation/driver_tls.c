/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of a session's socket. Loop thread. */
#include <stdio.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "session.h"

bool driver_secure(struct ndx_session *s, struct tls_context *c, const char *server)
{
	struct driver *d = &s->driver;

	d->secured = false;
	d->tls_ns = ndxp_now_ns();
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

static void record_tls(struct driver *d, enum ndx_status status, const char *text)
{
	struct ndx_session *s = container_of(d, struct ndx_session, driver);
	const struct ndx_history_entry entry = {
		.kind = NDX_HISTORY_TLS, .stage = NDX_STAGE_INFO, .status = status};

	history_add(&s->history, &entry, d->tls_ns, text);
}

void driver_note_tls_lost(struct driver *d, enum ndx_status status)
{
	if (d->tls == NULL || d->secured || tls_is_ready(d->tls) || !tls_has_failed(d->tls))
		return;
	d->secured = true; /* once is enough */
	record_tls(d, status, tls_why(d->tls));
}

void driver_note_tls(struct driver *d)
{
	const struct ndx_session *s = container_of(d, struct ndx_session, driver);
	char whole[TLS_TEXT + 8];
	char text[TLS_TEXT];

	if (d->secured || !tls_is_ready(d->tls))
		return;
	d->secured = true;
	(void)snprintf(whole, sizeof(whole), "TLS 1.3, %s",
	               tls_describe(d->tls, text, sizeof(text)));
	log_info("session %llu: %s", (unsigned long long)s->id, whole);
	record_tls(d, NDX_OK, whole);
}
