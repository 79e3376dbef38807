/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter's addresses, and rdma_cm_ids that are bound to them. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "verbs_conn.h"

void verbs_address_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	memset(out, 0, sizeof(*out));
	if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0) {
		memcpy(&v4.sin_addr, gid->raw + sizeof(mapped), sizeof(v4.sin_addr));
		memcpy(out, &v4, sizeof(v4));
	} else {
		memcpy(&v6.sin6_addr, gid->raw, sizeof(v6.sin6_addr));
		memcpy(out, &v6, sizeof(v6));
	}
}

enum ndx_status verbs_address_own(const struct verbs_adapter *adapter,
                                  const struct sockaddr *wanted, socklen_t len,
                                  struct sockaddr_storage *out)
{
	char text[NDXP_SOCKADDR_TEXT];
	uint16_t port;

	ndxp_sockaddr_copy(out, wanted, len);
	if (adapter->address_count == 0)
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "verbs:%s port %u has no IP address: only connections that are "
		            "described by numbers; ip address add ... dev INTERFACE",
		            adapter->options.device, adapter->options.port);
	port = ndxp_sockaddr_port(out);
	for (size_t i = 0; i < adapter->address_count; i++) {
		if (adapter->addresses[i].ss_family != out->ss_family)
			continue;
		if (!ndxp_sockaddr_is_any(out) &&
		    !ndxp_sockaddr_same_host(&adapter->addresses[i], out))
			continue;
		*out = adapter->addresses[i];
		ndxp_sockaddr_set_port(out, port);
		return NDX_OK;
	}
	return fail(NDX_E_INVALID_ADDRESS, 0, "%s is not an address of verbs:%s port %u",
	            ndxp_sockaddr_text(out, text), adapter->options.device, adapter->options.port);
}

void verbs_address_of_id(struct rdma_cm_id *id, struct sockaddr_storage *out)
{
	const struct sockaddr *local = rdma_get_local_addr(id);

	memset(out, 0, sizeof(*out));
	if (ndxp_sockaddr_valid(local, sizeof(struct sockaddr_in6)))
		ndxp_sockaddr_copy(out, local, sizeof(struct sockaddr_in6));
}

enum ndx_status verbs_address_bind(struct verbs_adapter *adapter, void *owner,
                                   const struct sockaddr_storage *address, struct rdma_cm_id **out)
{
	struct sockaddr_storage copy = *address;
	char text[NDXP_SOCKADDR_TEXT];
	struct rdma_cm_id *id;
	enum ndx_status st;
	int only = 1;

	if (rdma_create_id(adapter->cm, &id, owner, RDMA_PS_TCP) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, errno, "rdma_create_id: %s",
		            strerror(errno));
	if (address->ss_family == AF_INET6)
		(void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only,
		                      sizeof(only));
	if (rdma_bind_addr(id, (struct sockaddr *)&copy) != 0) {
		const int err = errno;

		st = verbs_status_of(err);
		if (ndxp_sockaddr_port(address) == 0 && (err == EADDRINUSE || err == EADDRNOTAVAIL))
			st = NDX_E_TOO_MANY_ADDRESSES;
		(void)rdma_destroy_id(id);
		return fail(st, err, "rdma_bind_addr to %s: %s%s",
		            ndxp_sockaddr_text(address, text), strerror(err),
		            err == EACCES ? "; a port below 1024 needs CAP_NET_BIND_SERVICE" : "");
	}
	*out = id;
	return NDX_OK;
}

enum ndx_status verbs_address_make_id(struct verbs_conn *conn, const struct sockaddr_storage *to)
{
	const struct sockaddr_storage any = {.ss_family = to->ss_family};
	struct sockaddr_storage local = conn->bound;
	char text[NDXP_SOCKADDR_TEXT];
	enum ndx_status st = NDX_OK;

	if (conn->bound.ss_family != AF_UNSPEC && conn->bound.ss_family != to->ss_family)
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "connect to %s: the connector is bound to another family",
		            ndxp_sockaddr_text(to, text));
	if (conn->id != NULL)
		return NDX_OK;
	if (local.ss_family == AF_UNSPEC)
		st = verbs_address_own(conn->adapter, (const struct sockaddr *)&any,
		                       ndxp_sockaddr_len(&any), &local);
	if (st != NDX_OK)
		return fail(NDX_E_NETWORK_UNREACHABLE, 0,
		            "connect to %s: the adapter has no address of that family",
		            ndxp_sockaddr_text(to, text));
	return verbs_address_bind(conn->adapter, &conn->owner, &local, &conn->id);
}

enum ndx_status verbs_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                                socklen_t len)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	struct sockaddr_storage local;
	enum ndx_status st = verbs_address_own(conn->adapter, address, len, &local);

	if (st == NDX_OK)
		st = verbs_address_bind(conn->adapter, &conn->owner, &local, &conn->id);
	if (st != NDX_OK)
		return st;
	verbs_address_of_id(conn->id, &conn->bound);
	spi->local = conn->bound;
	return NDX_OK;
}
