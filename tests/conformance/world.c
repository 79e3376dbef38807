/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening the adapters under test, and addresses. */
#include <netinet/in.h>
#include <string.h>
#include <arpa/inet.h>

#include "sample_json.h"
#include "world.h"

static bool place_open(struct place *place, const char *uri)
{
	enum ndx_status status;

	place->uri = uri;
	status = ndx_adapter_open(uri, &place->adapter);
	if (status != NDX_OK) {
		char text[512];

		(void)snprintf(text, sizeof(text), "cannot open adapter '%s': %s: %s", uri,
		               ndx_status_name(status), ndx_last_error());
		(void)fprintf(stderr, "ndx-conformance: %s\n", text);
		sample_json_error(text);
		return false;
	}
	place->info.size = sizeof(place->info);
	status = ndx_adapter_query(place->adapter, &place->info);
	if (status == NDX_OK) {
		place->address_count = WORLD_ADDRESSES;
		status = ndx_adapter_query_addresses(place->adapter, place->addresses,
		                                     &place->address_count);
	}
	if (status != NDX_OK || place->address_count == 0) {
		(void)fprintf(stderr,
		              "adapter '%s' does not tell its limits and addresses: %s: %s\n", uri,
		              ndx_status_name(status), ndx_last_error());
		ndx_adapter_close(place->adapter);
		place->adapter = NULL;
		return false;
	}
	return true;
}

/* The kind in which an adapter describes its queue pairs; -1: the adapter does not describe any. */
static int64_t describes_as(const struct place *place)
{
	struct ndx_qp_attr attr;
	struct ndx_peer_description description;
	struct ndx_connector *conn = NULL;
	struct ndx_qp *qp = NULL;
	struct ndx_cq *cq = NULL;
	int64_t kind = -1;

	if (ndx_cq_create_depth(place->adapter, 2, &cq) != NDX_OK)
		return kind;
	ndx_qp_attr_init(&attr);
	attr.receive_cq = cq;
	attr.initiator_cq = cq;
	attr.receive_depth = 1;
	attr.initiator_depth = 1;
	if (ndx_qp_create(place->adapter, &attr, &qp) == NDX_OK &&
	    ndx_connector_create(place->adapter, NULL, &conn) == NDX_OK &&
	    ndx_connector_describe(conn, qp, NDX_ROLE_CLIENT, 0, 0, &description) == NDX_OK)
		kind = description.kind;
	ndx_connector_close(conn);
	ndx_qp_close(qp);
	ndx_cq_close(cq);
	return kind;
}

bool world_open(struct world *world, const char *first, const char *second)
{
	memset(world, 0, sizeof(*world));
	if (!place_open(&world->places[0], first))
		return false;
	if (!second) {
		world->shared = true;
		world->places[1] = world->places[0];
		world->describes_alike = true;
		return true;
	}
	if (!place_open(&world->places[1], second)) {
		ndx_adapter_close(world->places[0].adapter);
		return false;
	}
	world->describes_alike = describes_as(&world->places[0]) == describes_as(&world->places[1]);
	return true;
}

void world_close(struct world *world)
{
	if (!world->shared)
		ndx_adapter_close(world->places[1].adapter);
	ndx_adapter_close(world->places[0].adapter);
}

const struct sockaddr_storage *place_address(const struct place *place, int family)
{
	for (size_t i = 0; i < place->address_count; i++) {
		if (family == AF_UNSPEC || place->addresses[i].ss_family == family)
			return &place->addresses[i];
	}
	return NULL;
}

socklen_t address_length(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 ? (socklen_t)sizeof(struct sockaddr_in6)
	                                      : (socklen_t)sizeof(struct sockaddr_in);
}

/* Copies, because a sockaddr_storage must not be looked at through another type. */
static in_port_t raw_port(const struct sockaddr_storage *address)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (address->ss_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		return v6.sin6_port;
	}
	memcpy(&v4, address, sizeof(v4));
	return v4.sin_port;
}

uint16_t address_port(const struct sockaddr_storage *address)
{
	return ntohs(raw_port(address));
}

void address_set_port(struct sockaddr_storage *address, uint16_t port)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (address->ss_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		v6.sin6_port = htons(port);
		memcpy(address, &v6, sizeof(v6));
	} else {
		memcpy(&v4, address, sizeof(v4));
		v4.sin_port = htons(port);
		memcpy(address, &v4, sizeof(v4));
	}
}

bool address_equal(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
	struct sockaddr_in6 v6[2];
	struct sockaddr_in v4[2];

	if (one->ss_family != other->ss_family || raw_port(one) != raw_port(other))
		return false;
	if (one->ss_family == AF_INET6) {
		memcpy(&v6[0], one, sizeof(v6[0]));
		memcpy(&v6[1], other, sizeof(v6[1]));
		return memcmp(&v6[0].sin6_addr, &v6[1].sin6_addr, sizeof(v6[0].sin6_addr)) == 0;
	}
	memcpy(&v4[0], one, sizeof(v4[0]));
	memcpy(&v4[1], other, sizeof(v4[1]));
	return v4[0].sin_addr.s_addr == v4[1].sin_addr.s_addr;
}

struct sockaddr *address_of(struct sockaddr_storage *address)
{
	return (struct sockaddr *)address;
}

const struct sockaddr *address_of_const(const struct sockaddr_storage *address)
{
	return (const struct sockaddr *)address;
}
