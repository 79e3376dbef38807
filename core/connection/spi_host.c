/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of upcalls for providers. */
#include "base_ov.h"
#include "connection.h"
#include "region.h"

static void host_oob_send(struct ndx_spi_conn *conn, enum ndx_spi_oob_message message)
{
	struct ndx_connector *c = conn->front;

	if (c->oob.link != NULL)
		oob_link_tell(c->oob.link, OOB_CONNECTION, (enum oob_event)(1 << message));
}

const struct ndx_host core_host = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_host),
	.complete = base_ov_complete,
	.mr_ended = region_ended,
	.request = listener_request,
	.listener_failed = listener_failed,
	.connected = host_connected,
	.established = host_established,
	.report = host_report,
	.oob_send = host_oob_send,
	.adapter_event = adapter_event_report,
};
