/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_direct.h"

#include <pthread.h>
#include <string.h>

#include "connection.h"

bool fake_direct_broods;
bool fake_direct_mapped;
bool fake_direct_infiniband;
bool fake_direct_proves;
struct ndx_spi_proof fake_direct_proofs[2];
uint32_t fake_direct_looks;
struct ndx_peer_description fake_direct_peer;

static enum ndx_status describe(struct ndx_spi_conn *conn, const struct sockaddr_storage *near,
                                struct ndx_peer_description *out)
{
	static const uint8_t link_local[16] = {0xfe, 0x80};
	static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, 10, 9, 0, 1};
	static uint32_t last; /* atomic */

	(void)conn;
	(void)near;
	out->kind = NDX_DESCRIPTION_VERBS_RC;
	out->qpn = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	if (out->psn == NDX_PSN_RANDOM)
		out->psn = 7;
	out->mtu = 1024;
	out->lid = fake_direct_infiniband ? 3 : 0;
	memcpy(out->gid, fake_direct_mapped ? mapped : link_local, sizeof(out->gid));
	out->mailbox_rkey = fake_direct_proves ? 1 : 0;
	return NDX_OK;
}

static enum ndx_status connect_peer(struct ndx_spi_conn *conn,
                                    const struct ndx_peer_description *peer)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both ends' threads */

	(void)conn;
	(void)pthread_mutex_lock(&lock);
	fake_direct_peer = *peer;
	(void)pthread_mutex_unlock(&lock);
	return NDX_OK;
}

static enum ndx_status complete(struct ndx_spi_conn *conn)
{
	core_host.established(conn, NDX_OK, 0, NULL);
	return NDX_OK;
}

static void nothing(struct ndx_spi_conn *conn)
{
	(void)conn;
}

static void drain(struct ndx_spi_conn *conn)
{
	core_host.report(conn, NDX_REPORT_DRAINED, 0, NULL);
}

static void send_disc(struct ndx_spi_conn *conn)
{
	core_host.oob_send(conn, NDX_OOB_GOODBYE);
}

static void finish(struct ndx_spi_conn *conn)
{
	core_host.report(conn, NDX_REPORT_QUIET, 0, NULL);
}

static void abort_link(struct ndx_spi_conn *conn)
{
	core_host.oob_send(conn, NDX_OOB_ABORT);
	core_host.report(conn, NDX_REPORT_QUIET, 0, NULL);
}

static void heard(struct ndx_spi_conn *conn, enum ndx_spi_oob_message message)
{
	if (message != NDX_OOB_GOODBYE)
		core_host.report(conn, NDX_REPORT_ABORT, 0, "the peer is gone");
	else if (!fake_direct_broods)
		core_host.report(conn, NDX_REPORT_PEER_DISC, 0, NULL);
}

static enum ndx_status prove(struct ndx_spi_conn *conn, uint64_t write, uint64_t expect,
                             struct ndx_spi_proof *proof)
{
	(void)write;
	(void)expect;
	if (proof != NULL) {
		*proof = fake_direct_proofs[conn->front->passive ? 1 : 0];
		(void)__atomic_add_fetch(&fake_direct_looks, 1, __ATOMIC_SEQ_CST);
	}
	return fake_direct_proves ? NDX_OK : NDX_E_NOT_SUPPORTED;
}

void fake_direct(struct ndx_adapter *adapter)
{
	static struct ndx_provider_ops ops;

	ops = *adapter->ops;
	ops.qp_describe = describe;
	ops.qp_connect_peer = connect_peer;
	ops.conn_oob_received = heard;
	ops.conn_complete = complete;
	ops.conn_abandon = nothing;
	ops.conn_drain = drain;
	ops.conn_cancel_initiator = nothing;
	ops.conn_send_disc = send_disc;
	ops.conn_finish = finish;
	ops.conn_abort = abort_link;
	ops.conn_prove = prove;
	adapter->ops = &ops;
}
