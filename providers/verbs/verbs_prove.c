/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the path of a connection without rdma_cm. Both ends write into the mailbox of the other
 * end: a few bytes, a packet of the path MTU, and a few bytes again. A reliable connection executes
 * requests in order, so the bytes behind the packet arrive only if the packet has.
 */
#include <errno.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "verbs_mailbox.h"
#include "verbs_wr.h"

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

enum ndx_status verbs_conn_prove(struct ndx_spi_conn *spi, uint64_t write, uint64_t expect,
                                 struct ndx_spi_proof *proof)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	enum ibv_wc_status native = IBV_WC_SUCCESS;
	enum ndx_status st = NDX_OK;
	uint32_t done;

	if (proof == NULL)
		return conn->oob.on ? NDX_OK : NDX_E_NOT_SUPPORTED;
	*proof = (struct ndx_spi_proof){.status = NDX_PENDING};
	if (!conn->proving)
		st = begin_proof(conn, write);
	if (conn->qp == NULL || conn->mailboxes == NULL)
		return st;
	ndxp_lock_acquire(&conn->qp->base.lock);
	native = conn->prove_native;
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
	if (verbs_mailbox_proves(conn, VERBS_FIELD_SMALL, expect))
		proof->seen = NDX_PROVED_SMALL;
	if (verbs_mailbox_proves(conn, VERBS_FIELD_WHOLE, expect))
		proof->seen = NDX_PROVED_WHOLE;
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
