/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of the clients that measure. */
#include <ndx/ndx.h>
#include <ndx/session.h>

#include "sessions.h"

void sessions_variant(struct ndx_negotiation **negotiation, struct ndx_variant **variant)
{
	if (ndx_negotiation_create(negotiation) != NDX_OK ||
	    ndx_negotiation_register(*negotiation, &sessions_plugin) != NDX_OK ||
	    ndx_negotiation_get_variant(*negotiation, SESSIONS_PLUGIN, SESSIONS_VARIANT, NULL, 0,
	                                variant) != NDX_OK)
		sessions_die("plugin", ndx_last_error());
}

struct ndx_session *sessions_make(struct ndx_variant *variant, const char *server,
                                  const struct ndx_tls_attr *tls)
{
	const char *const servers[] = {server};
	struct ndx_session_attr attr;
	struct ndx_session *session = NULL;

	ndx_session_attr_init(&attr);
	attr.variant = variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.attempts = 1; /* one that has to be repeated is a failure here */
	attr.connect_timeout_ms = 60000;
	attr.max_message = 512;
	attr.max_history = 4;
	attr.tls = tls;
	if (ndx_session_create(&attr, &session) != NDX_OK)
		sessions_die("session", ndx_last_error());
	return session;
}
