/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a connector failed, or how its connection ended, as text. */
#include <ndx/connector.h>

#include <stdio.h>

#include <ndx/spi/log.h>
#include "base_log.h"
#include "connection.h"

void conn_explain(struct ndx_connector *c, char *out, size_t size)
{
	struct conn_result lost = {.status = NDX_E_CONNECTION_ABORTED};
	const enum ndx_disconnect_reason reason = conn_reason(c);
	char whole[BASE_FAILURE_TEXT];
	char text[CONN_TEXT];

	if (c->failure != NULL) {
		base_text_copy(out, size, c->failure);
	} else if (reason == NDX_DISCONNECT_ABORTED) {
		/* A consumer may ask before the teardown is over and has written its record. */
		conn_get_cause(c, &lost);
		conn_failure_text(c, "aborted", &lost, whole);
		base_text_copy(out, size, whole);
	} else if (reason != NDX_DISCONNECT_NONE) {
		(void)snprintf(whole, sizeof(whole),
		               "%s: the peer has disconnected%s; work that had not ended by then "
		               "ends NDX_E_CANCELED",
		               conn_text(c, text),
		               reason == NDX_DISCONNECT_GRACEFUL ? "" : " or has died");
		base_text_copy(out, size, whole);
	} else {
		out[0] = '\0';
	}
}
