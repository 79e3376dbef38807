/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the path of a connection without rdma_cm. Both ends write into the mailbox of the other
 * end: a few bytes, a packet of the path MTU, and a few bytes again. A reliable connection executes
 * requests in order, so the bytes behind the packet arrive only if the packet has.
 */
#include <errno.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "verbs_mailbox.h"
#include "verbs_wr.h"

#define QUERY_MS 50u /* between two queries of the state of a queue pair */
#define PROVES (1u << VERBS_PROVE_SMALL | 1u << VERBS_PROVE_MTU | 1u << VERBS_PROVE_WHOLE)

static enum ndx_status begin_proof(struct verbs_conn *conn, uint64_t value)
{
	struct verbs_qp *qp = conn->qp;
	int err = ENOTCONN;

	if (qp != NULL && qp->native != NULL && conn->mailboxes != NULL &&
	    conn->peer.mailbox_key != 0) {
		const struct verbs_ctrl_write small =
			verbs_mailbox_proof(conn, VERBS_FIELD_SMALL, value);
		const struct verbs_ctrl_write packet = verbs_mailbox_packet(conn, conn->oob.mtu);
		const struct verbs_ctrl_write whole =
			verbs_mailbox_proof(conn, VERBS_FIELD_WHOLE, value);

		ndxp_lock_acquire(&qp->base.lock);
		err = verbs_wr_post_control(qp, VERBS_PROVE_SMALL, &small);
		if (err == 0)
			err = verbs_wr_post_control(qp, VERBS_PROVE_MTU, &packet);
		if (err == 0)
			err = verbs_wr_post_control(qp, VERBS_PROVE_WHOLE, &whole);
		ndxp_lock_release(&qp->base.lock);
	}
	if (err != 0)
		return fail(NDX_E_CONNECTION_ABORTED, err,
		            "the writes that prove the path cannot be posted: %s", strerror(err));
	conn->proving = true;
	conn->queried_ns = ndxp_now_ns();
	/* the consumer does not poll for these writes */
	verbs_flush_watch(qp, true);
	return NDX_OK;
}

/* A device refuses a write for its key, or because its queue pair takes no writes at all. */
static enum ndx_status status_of(enum ibv_wc_status native)
{
	if (native == IBV_WC_REM_ACCESS_ERR || native == IBV_WC_REM_INV_REQ_ERR)
		return NDX_E_ACCESS_VIOLATION;
	return native == IBV_WC_RETRY_EXC_ERR ? NDX_E_IO_TIMEOUT : NDX_E_REMOTE_ERROR;
}

/*
 * Software RoCE reports no queue pair that has refused a write of the peer: with nothing posted,
 * only the state shows that.
 */
static void query_state(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;
	const uint64_t now = ndxp_now_ns();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!conn->adapter->soft_roce || qp->native == NULL ||
	    now - conn->queried_ns < QUERY_MS * UINT64_C(1000000))
		return;
	conn->queried_ns = now;
	if (ibv_query_qp(qp->native, &attr, IBV_QP_STATE, &init) != 0 ||
	    attr.qp_state != IBV_QPS_ERR)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	if (!qp->killed)
		conn->refused = true;
	ndxp_lock_release(&qp->base.lock);
}

/*
 * Has the device refused a write of the peer? *native: how the first own write that failed has
 * ended. That may be the probe of an idle connection, which has the same key: the writes of the
 * proof behind it are flushed. A write of this end may have broken the queue pair, too. Its
 * completion comes before all others that tell of a broken queue pair, so the completions are read
 * again once one of those was seen.
 */
static bool has_refused(struct verbs_conn *conn, enum ibv_wc_status *native)
{
	struct verbs_qp *qp = conn->qp;
	bool refused;

	query_state(conn);
	/* this may be the last look, because the peer has ended the connection */
	verbs_qp_poll(qp);
	ndxp_lock_acquire(&qp->base.lock);
	refused = conn->refused;
	ndxp_lock_release(&qp->base.lock);
	if (refused)
		verbs_cq_poll(qp->initiator_cq);
	ndxp_lock_acquire(&qp->base.lock);
	*native = conn->control_native;
	ndxp_lock_release(&qp->base.lock);
	return refused && (*native == IBV_WC_SUCCESS || *native == IBV_WC_WR_FLUSH_ERR);
}

/* What has arrived of the peer's writes. */
static enum ndx_spi_proved look_for(const struct verbs_conn *conn, uint64_t expect)
{
	if (verbs_mailbox_proves(conn, VERBS_FIELD_WHOLE, expect))
		return NDX_PROVED_WHOLE;
	if (verbs_mailbox_proves(conn, VERBS_FIELD_SMALL, expect))
		return NDX_PROVED_SMALL;
	return NDX_PROVED_NOTHING;
}

enum ndx_status verbs_conn_prove(struct ndx_spi_conn *spi, uint64_t write, uint64_t expect,
                                 struct ndx_spi_proof *proof)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	enum ibv_wc_status native;
	enum ndx_status st = NDX_OK;
	uint32_t done;
	bool refused;

	if (proof == NULL)
		return conn->oob.on ? NDX_OK : NDX_E_NOT_SUPPORTED;
	*proof = (struct ndx_spi_proof){.status = NDX_PENDING};
	if (!conn->proving)
		st = begin_proof(conn, write);
	if (conn->qp == NULL || conn->mailboxes == NULL)
		return st;
	refused = has_refused(conn, &native);
	ndxp_lock_acquire(&conn->qp->base.lock);
	done = conn->proved | conn->controls_done;
	ndxp_lock_release(&conn->qp->base.lock);
	if (done & 1u << VERBS_PROVE_SMALL)
		proof->written = NDX_PROVED_SMALL;
	if (done & 1u << VERBS_PROVE_WHOLE)
		proof->written = NDX_PROVED_WHOLE;
	if (native != IBV_WC_SUCCESS) {
		proof->status = status_of(native);
		proof->native = (int32_t)native;
	} else if (proof->written == NDX_PROVED_WHOLE) {
		proof->status = NDX_OK;
	}
	proof->seen = look_for(conn, expect);
	if (refused && proof->seen != NDX_PROVED_WHOLE)
		proof->seen = NDX_PROVED_REFUSED;
	return st;
}

void verbs_prove_on_done(struct verbs_conn *conn, uint32_t done)
{
	struct verbs_qp *qp = conn->qp;
	bool ending;

	if (!conn->proving || (done & PROVES) == 0 || qp == NULL)
		return;
	conn->proved |= done & PROVES;
	if ((conn->proved & 1u << VERBS_PROVE_WHOLE) == 0)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	ending = qp->draining || qp->quieting;
	ndxp_lock_release(&qp->base.lock);
	if (!ending && conn->wait == VERBS_WAIT_NONE && !conn->disc_sent)
		verbs_flush_watch(qp, false);
	verbs_conn_report(conn, NDX_REPORT_PROOF, 0, NULL);
}
