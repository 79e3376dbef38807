/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of the own end, for the peer. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <ndx/stats.h>

#include "connection.h"
#include "session.h"

enum ndx_status describe_own(const struct ndx_session_attr *attr, enum ndx_role role,
                             const struct sockaddr_storage *near, struct ndx_peer_description *own)
{
	enum ndx_status st = NDX_OK;

	memset(own, 0, sizeof(*own));
	own->inbound_read_limit = attr->inbound_read_limit;
	own->outbound_read_limit = attr->outbound_read_limit;
	if (attr->connector != NULL)
		st = conn_describe_near(attr->connector, attr->qp, role, attr->inbound_read_limit,
		                        attr->outbound_read_limit, near, own);
	own->memory = attr->memory;
	if (own->kind == NDX_DESCRIPTION_VERBS_RC)
		own->memory.rkey = ndx_rkey_of_token(attr->memory.token);
	return st;
}

bool describe_takes(const struct ndx_variant *variant, uint32_t count, char *why, size_t room)
{
	if (count == 1 || (variant->plugin->table->flags & NDX_PLUGIN_MANY) != 0)
		return true;
	(void)snprintf(why, room,
	               "plugin \"%s\", variant \"%s\", takes one queue pair in a session, not %u",
	               variant->plugin->name, variant->table->name, count);
	return false;
}

bool describe_adds(const struct ndx_variant *variant, char *why, size_t room)
{
	if ((variant->plugin->table->flags & NDX_PLUGIN_ADDS) != 0)
		return true;
	(void)snprintf(why, room,
	               "plugin \"%s\", variant \"%s\", takes no queue pair that is added later "
	               "(NDX_PLUGIN_ADDS)",
	               variant->plugin->name, variant->table->name);
	return false;
}

/* An IPv6 socket has IPv4 addresses mapped. */
static void unmap(struct sockaddr_storage *near)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6;

	memcpy(&v6, near, sizeof(v6));
	if (near->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return;
	memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof(v4.sin_addr));
	memset(near, 0, sizeof(*near));
	memcpy(near, &v4, sizeof(v4));
}

void describe_near(int fd, struct sockaddr_storage *near)
{
	socklen_t length = sizeof(*near);

	memset(near, 0, sizeof(*near));
	/* A plugin's transport is a local socket here: its own address is unknown. */
	if (fd < 0 || getsockname(fd, (struct sockaddr *)near, &length) != 0 ||
	    near->ss_family == AF_UNIX)
		memset(near, 0, sizeof(*near));
	unmap(near);
}

const char *describe_cause(struct ndx_connector *connector, char cause[DESCRIBE_CAUSE])
{
	struct ndx_transition last;
	size_t count = 1;

	cause[0] = '\0';
	if (connector != NULL &&
	    ndx_connector_get_history(connector, &last, &count, NULL) == NDX_OK && count == 1)
		(void)snprintf(cause, DESCRIBE_CAUSE, "%s", last.cause);
	return cause;
}
