/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs connected without rdma_cm: both ends know each other's QP number, first PSN, GID or
 * LID, and MTU. The path is the one between the two GIDs. The first PSNs are random, because no
 * time-wait state protects a QP number that is used again. The goodbye travels out of band, over
 * the core's out-of-band stream.
 */
#include <errno.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "verbs_mailbox.h"

#define PSN_BITS 0xffffffu

static enum ndx_status query_port(const struct verbs_adapter *adapter, struct ibv_port_attr *out)
{
	const struct verbs_options *o = &adapter->options;
	const int err = ibv_query_port(adapter->context, (uint8_t)o->port, out);

	if (err != 0)
		return fail(NDX_E_DEVICE_NOT_READY, err, "verbs:%s port %u: ibv_query_port: %s",
		            o->device, o->port, strerror(err));
	if (out->state != IBV_PORT_ACTIVE)
		return fail(NDX_E_DEVICE_NOT_READY, 0, "verbs:%s port %u is down", o->device,
		            o->port);
	return NDX_OK;
}

/* ---- choosing the GID ---- */

/* The own address for the GID: the one that the connector is bound to, or the one that reaches the
 * peer. */
static const struct sockaddr_storage *choose_address(const struct verbs_conn *conn,
                                                     const struct sockaddr_storage *near)
{
	const struct verbs_adapter *adapter = conn->adapter;

	if (conn->bound.ss_family != AF_UNSPEC)
		return &conn->bound;
	return ndxp_sockaddr_nearest(adapter->addresses, adapter->address_count, near);
}

/* The GID of an address; RoCE v2 rather than v1, whose GID is the same. */
static enum ndx_status find_gid(const struct verbs_adapter *adapter, int gids,
                                const struct sockaddr_storage *address, struct ibv_gid_entry *out)
{
	const struct verbs_options *o = &adapter->options;
	char text[NDXP_SOCKADDR_TEXT];
	struct sockaddr_storage at;
	struct ibv_gid_entry entry;
	bool found = false;

	for (int i = 0; i < gids; i++) {
		if (ibv_query_gid_ex(adapter->context, o->port, (uint32_t)i, &entry, 0) != 0)
			continue;
		verbs_address_of_gid(&entry.gid, &at);
		if (!ndxp_sockaddr_same_host(&at, address) ||
		    (found && entry.gid_type != IBV_GID_TYPE_ROCE_V2))
			continue;
		*out = entry;
		found = true;
	}
	if (found)
		return NDX_OK;
	return fail(NDX_E_INVALID_ADDRESS, 0, "verbs:%s port %u has no GID of %s", o->device,
	            o->port, ndxp_sockaddr_text(address, text));
}

static enum ndx_status own_gid(const struct verbs_conn *conn, const struct ibv_port_attr *port,
                               const struct sockaddr_storage *near, struct ibv_gid_entry *out)
{
	const struct verbs_adapter *adapter = conn->adapter;
	const struct verbs_options *o = &adapter->options;
	const uint32_t index = o->gid < 0 ? 0 : (uint32_t)o->gid;
	int err;

	if (o->gid < 0 && port->link_layer != IBV_LINK_LAYER_INFINIBAND)
		return find_gid(adapter, port->gid_tbl_len, choose_address(conn, near), out);
	err = ibv_query_gid_ex(adapter->context, o->port, index, out, 0);
	if (err != 0)
		return fail(NDX_E_NOT_FOUND, err, "verbs:%s port %u has no GID %u", o->device,
		            o->port, index);
	return NDX_OK;
}

enum ndx_status verbs_qp_describe(struct ndx_spi_conn *spi, const struct sockaddr_storage *near,
                                  struct ndx_peer_description *out)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	const struct verbs_qp *qp = verbs_qp_of(spi->qp);
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	enum ndx_status st;

	if (qp->native == NULL)
		return fail(NDX_E_DEVICE_NOT_READY, 0, "the queue pair was lost");
	st = query_port(conn->adapter, &port);
	if (st == NDX_OK)
		st = own_gid(conn, &port, near, &gid);
	conn->oob.psn = out->psn;
	if (st == NDX_OK && out->psn == NDX_PSN_RANDOM)
		st = ndxp_random(&conn->oob.psn, sizeof(conn->oob.psn));
	verbs_mailbox_close(conn); /* that of an earlier description */
	if (st == NDX_OK)
		st = verbs_mailbox_open(conn);
	if (st != NDX_OK)
		return st;
	conn->oob.on = true;
	conn->oob.psn &= PSN_BITS;
	conn->oob.gid_index = (uint8_t)gid.gid_index;
	conn->oob.mtu = verbs_oob_path_bytes(port.active_mtu);
	verbs_address_of_gid(&gid.gid, &spi->local);
	out->kind = NDX_DESCRIPTION_VERBS_RC;
	out->qpn = qp->native->qp_num;
	out->psn = conn->oob.psn;
	out->mtu = conn->oob.mtu;
	out->lid = port.link_layer == IBV_LINK_LAYER_INFINIBAND ? port.lid : 0;
	memcpy(out->gid, gid.gid.raw, sizeof(out->gid));
	out->mailbox_rkey = conn->mailbox_mr->rkey;
	return NDX_OK;
}

/* ---- connecting ---- */

static enum ndx_status check_path(const struct verbs_conn *conn,
                                  const struct ndx_peer_description *peer)
{
	struct ibv_port_attr port;
	enum ndx_status st = query_port(conn->adapter, &port);

	if (st != NDX_OK)
		return st;
	if ((peer->mtu < conn->oob.mtu ? peer->mtu : conn->oob.mtu) >
	    verbs_oob_path_bytes(port.active_mtu))
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "the path MTU was %u when the queue pair was described, the port's is "
		            "%u by now",
		            conn->oob.mtu, verbs_oob_path_bytes(port.active_mtu));
	return NDX_OK;
}

enum ndx_status verbs_qp_connect_peer(struct ndx_spi_conn *spi,
                                      const struct ndx_peer_description *peer)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	char text[NDXP_SOCKADDR_TEXT];
	enum ndx_status st = check_path(conn, peer);
	union ibv_gid gid;
	int err;

	if (st != NDX_OK)
		return st;
	conn->oob.peer_number = peer->qpn;
	conn->oob.peer_psn = peer->psn;
	conn->oob.peer_lid = peer->lid;
	conn->oob.policy = peer->policy;
	conn->peer.mailbox_key =
		(peer->policy & NDX_PEER_NOT_WRITTEN) != 0 ? 0 : peer->mailbox_rkey;
	conn->proving = false;
	conn->proved = 0;
	conn->control_native = IBV_WC_SUCCESS;
	conn->refused = false;
	memcpy(conn->oob.peer_gid, peer->gid, sizeof(conn->oob.peer_gid));
	if (peer->mtu < conn->oob.mtu)
		conn->oob.mtu = peer->mtu;
	memcpy(gid.raw, peer->gid, sizeof(gid.raw));
	verbs_address_of_gid(&gid, &spi->peer);
	ndxp_list_add(&conn->adapter->conns, &conn->node);
	verbs_conn_tie(conn);
	err = verbs_qp_bring_up(conn->qp, conn);
	if (err != 0) {
		st = verbs_status_of(err);
		return fail(err == ETIMEDOUT ? NDX_E_HOST_UNREACHABLE : st, err,
		            "the queue pair does not get ready for %s, path MTU %u: %s",
		            ndxp_sockaddr_text(&spi->peer, text), conn->oob.mtu, strerror(err));
	}
	conn->state = VERBS_CONN_ANSWERED;
	return NDX_OK;
}
