/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of connectors whose ends are described to each other out of band. */
#include <ndx/connector.h>

#include <ndx/spi/log.h>
#include "connection.h"

enum ndx_status ndx_connector_describe(struct ndx_connector *c, struct ndx_qp *qp,
                                       enum ndx_role role, uint32_t inbound_read_limit,
                                       uint32_t outbound_read_limit,
                                       struct ndx_peer_description *out)
{
	const struct sockaddr_storage unknown = {.ss_family = AF_UNSPEC};

	return conn_describe_near(c, qp, role, inbound_read_limit, outbound_read_limit, &unknown,
	                          out);
}

enum ndx_status ndx_connector_connect_peer(struct ndx_connector *c,
                                           const struct ndx_peer_description *peer,
                                           struct ndx_overlapped *ov)
{
	if (c == NULL || peer == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_connect_peer: NULL argument");
	return conn_connect_peer(c, peer, ov);
}

enum ndx_status ndx_connector_set_oob_stream(struct ndx_connector *c, int fd)
{
	if (c == NULL || fd < NDX_NO_OOB_STREAM)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_connector_set_oob_stream: NULL, or no descriptor");
	return conn_oob_set_stream(c, fd);
}
