/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of session calls that do not block share. */
#include "async_rig.h"

#include <arpa/inet.h>

struct ndx_session *session_with(struct rig *r, const char *address)
{
	const char *servers[1] = {address};

	return rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
}

struct ndx_session *bus_session(struct rig *r, struct ndx_variant **v, const struct server *server)
{
	struct ndx_session_attr attr;
	struct ndx_session *s;
	char address[32];
	const char *servers[1] = {address};

	(void)snprintf(address, sizeof(address), "bus %s", strchr(server->address, ':') + 1);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", "bus", NULL, 0, v),
	                 NDX_OK);
	ndx_session_attr_init(&attr);
	attr.variant = *v;
	attr.servers = servers;
	attr.server_count = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

struct ndx_session *busy_session(struct rig *r, const char *address, struct ndx_overlapped *ov)
{
	struct ndx_session *s = session_with(r, address);

	__atomic_store_n(&stuck, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_run_overlapped(s, ov), NDX_PENDING);
	await_value(&stuck, 2);
	return s;
}

void completes(struct ndx_overlapped *ov, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(ov, WAIT_MS), status);
}

void await_served(struct server *server)
{
	await(&server->served);
}

struct ndx_negotiation_server *many_server(struct rig *r, char address[32])
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
	return server;
}
