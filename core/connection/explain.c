/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a connector failed, or how its connection ended, as text. */
#include <ndx/connector.h>

#include <stdio.h>

#include <ndx/spi/log.h>
#include "base_log.h"
#include "connection.h"

/* How a connection ended that was not aborted; NULL: it has not. */
static const char *ended_how(const struct ndx_connector *c, enum ndx_disconnect_reason reason)
{
	switch (c->own_end) {
	case CONN_DISCONNECTED:
		if (reason != NDX_DISCONNECT_NONE)
			return "disconnected by its own side";
		break;
	case CONN_RELEASED:
		return "closed by its own side, by ndx_qp_close() or ndx_connector_close() before "
		       "a disconnect";
	case CONN_NOT_ENDED:
		if (reason == NDX_DISCONNECT_GRACEFUL)
			return "the peer has disconnected";
		if (reason != NDX_DISCONNECT_NONE)
			return "the peer has disconnected or has died";
		break;
	}
	return NULL;
}

void conn_explain(struct ndx_connector *c, char *out, size_t size)
{
	struct conn_result lost = {.status = NDX_E_CONNECTION_ABORTED};
	const enum ndx_disconnect_reason reason = conn_reason(c);
	const char *how = reason == NDX_DISCONNECT_ABORTED ? NULL : ended_how(c, reason);
	char whole[BASE_FAILURE_TEXT];
	char text[CONN_TEXT];

	if (c->failure != NULL) {
		base_text_copy(out, size, c->failure);
	} else if (reason == NDX_DISCONNECT_ABORTED) {
		/* A consumer may ask before the teardown is over and has written its record. */
		conn_get_cause(c, &lost);
		conn_failure_text(c, conn_abort_words(c), &lost, whole);
		base_text_copy(out, size, whole);
	} else if (how != NULL) {
		(void)snprintf(whole, sizeof(whole),
		               "%s: %s; work that had not ended by then ends NDX_E_CANCELED",
		               conn_text(c, text), how);
		base_text_copy(out, size, whole);
	} else {
		out[0] = '\0';
	}
}
