/* SPDX-License-Identifier: BSD-2-Clause */
/* The own end, as the peer needs to know it. */
#include <string.h>

#include "session.h"

enum ndx_status describe_own(const struct ndx_session_attr *attr, enum ndx_role role,
                             struct ndx_peer_description *own)
{
	enum ndx_status st = NDX_OK;

	memset(own, 0, sizeof(*own));
	own->inbound_read_limit = attr->inbound_read_limit;
	own->outbound_read_limit = attr->outbound_read_limit;
	if (attr->connector != NULL)
		st = ndx_connector_describe(attr->connector, attr->qp, role,
		                            attr->inbound_read_limit, attr->outbound_read_limit,
		                            own);
	own->memory = attr->memory;
	return st;
}
