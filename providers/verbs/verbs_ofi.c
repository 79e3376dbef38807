/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs_ofi.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "verbs_wr.h"

_Static_assert((int)NDXP_RC_POSTED == (int)NDXP_RC_FIELDS + (int)NDXP_RC_CREDITS,
               "the source of the credits is where the peer reads it");

/* Offsets in the control region. */
enum {
	AT_FIELDS = 0,                        /* written by the peer */
	AT_NOTES = NDXP_RC_FIELDS,            /* sources of this end's fields */
	AT_OUT = AT_NOTES + NDXP_RC_FIELDS,   /* this end's first message, ... */
	AT_IN = AT_OUT + NDXP_RC_RECORD_SIZE, /* ... and the peer's */
	AREA_SIZE = AT_IN + NDXP_RC_RECORD_SIZE,
};

static uint64_t *field_at(const struct verbs_ofi *ofi, size_t offset)
{
	return (uint64_t *)(void *)(ofi->area + offset);
}

static uint64_t read_field(const struct verbs_ofi *ofi, enum ndxp_rc_field which)
{
	return be64toh(__atomic_load_n(field_at(ofi, AT_FIELDS + (size_t)which), __ATOMIC_ACQUIRE));
}

/* ---- open and close ---- */

enum ndx_status verbs_ofi_open(struct verbs_conn *conn)
{
	struct verbs_qp *qp = verbs_qp_of(conn->spi.qp);
	struct verbs_ofi *ofi;

	if (qp->srq != NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0, "%s", VERBS_OFI_NO_SRQ);
	ofi = calloc(1, sizeof(*ofi));
	if (ofi == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "connect: no memory for the control region");
	ofi->area = calloc(1, AREA_SIZE);
	if (ofi->area == NULL) {
		free(ofi);
		return fail(NDX_E_NO_MEMORY, ENOMEM, "connect: no memory for the control region");
	}
	ofi->mr = ibv_reg_mr(conn->adapter->pd, ofi->area, AREA_SIZE,
	                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	                             IBV_ACCESS_REMOTE_READ);
	if (ofi->mr == NULL) {
		const int err = errno;

		free(ofi->area);
		free(ofi);
		return fail(verbs_refusal(conn->adapter, err), err,
		            "connect: no region for the goodbye: ibv_reg_mr: %s; see ulimit -l",
		            strerror(err));
	}
	ofi->first = (struct verbs_req){.qp = qp, .kind = VERBS_FIRST_RECEIVE};
	conn->ofi = ofi;
	return NDX_OK;
}

void verbs_ofi_close(struct verbs_conn *conn)
{
	struct verbs_ofi *ofi = conn->ofi;

	if (ofi == NULL)
		return;
	conn->ofi = NULL;
	ndxp_timer_cancel(conn->adapter->spi.loop, &ofi->look);
	if (ibv_dereg_mr(ofi->mr) != 0)
		log_warn(errno, "ibv_dereg_mr: %s", strerror(errno));
	free(ofi->area);
	free(ofi);
}

/* ---- receives ---- */

int verbs_ofi_begin(struct verbs_qp *qp)
{
	struct verbs_ofi *ofi = qp->ofi;
	struct ibv_sge list = {
		.addr = (uintptr_t)(ofi->area + AT_IN),
		.length = NDXP_RC_RECORD_SIZE,
		.lkey = ofi->mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = (uintptr_t)&ofi->first, .sg_list = &list, .num_sge = 1};
	struct ibv_recv_wr *bad;

	ofi->start = qp->base.receive.head;
	return ibv_post_recv(qp->native, &wr, &bad);
}

/* base.lock held: messages received in all. */
static uint32_t count_arrived(const struct verbs_qp *qp)
{
	return qp->base.receive.head - qp->ofi->start;
}

void verbs_ofi_first_done(struct verbs_qp *qp, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS || qp->ofi == NULL || qp->conn == NULL)
		return;
	qp->ofi->first_came = true;
	qp->ofi->first_len = wc->byte_len;
	ndxp_loop_post(qp->adapter->spi.loop, &qp->conn->work);
}

bool verbs_ofi_took_bell(struct verbs_qp *qp, struct verbs_req *req, const struct ibv_wc *wc)
{
	uint64_t goodbye;

	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM ||
	    wc->byte_len != sizeof(uint64_t) || ntohl(wc->imm_data) != NDXP_RC_BELL ||
	    qp->conn == NULL)
		return false;
	goodbye = read_field(qp->ofi, NDXP_RC_GOODBYE);
	if ((goodbye & NDXP_RC_SAID) == 0 || (uint32_t)goodbye != count_arrived(qp))
		return false;
	/* no message follows a goodbye, so the order of the receives does not matter any more; a
	 * queue pair in ERR may not flush what is posted to it */
	if (!qp->receiving || qp->killed ||
	    verbs_wr_post_receive(qp, (struct verbs_receive *)(void *)req) != 0)
		ndxp_req_done(&qp->base.receive, &req->base, NDX_E_CANCELED, 0);
	ndxp_loop_post(qp->adapter->spi.loop, &qp->conn->work);
	return true;
}

/* ---- what this end writes ---- */

/* A write of this end's field, which has the value from now on. */
static struct verbs_ctrl_write write_of(const struct verbs_ofi *ofi, enum ndxp_rc_field which,
                                        uint64_t value)
{
	uint64_t *note = field_at(ofi, AT_NOTES + (size_t)which);

	/* a write in flight may carry the newer value, which only grows */
	__atomic_store_n(note, htobe64(value), __ATOMIC_RELEASE);
	return (struct verbs_ctrl_write){
		.length = sizeof(*note),
		.lkey = ofi->mr->lkey,
		.rkey = ofi->key,
		.from = (uintptr_t)note,
		.to = ofi->address + (size_t)which,
	};
}

static int post_write(struct verbs_qp *qp, enum verbs_control which, enum ndxp_rc_field field,
                      uint64_t value)
{
	struct verbs_ctrl_write write;

	if (!qp->ofi->introduced)
		return ENOTCONN;
	write = write_of(qp->ofi, field, value);
	if (which == VERBS_BELL) {
		write.how = VERBS_CTRL_WRITE_IMMEDIATE;
		write.immediate = NDXP_RC_BELL;
	}
	return verbs_wr_post_control(qp, which, &write);
}

int verbs_ofi_write(struct verbs_conn *conn, enum verbs_control which)
{
	struct verbs_qp *qp = conn->qp;
	int err;

	ndxp_lock_acquire(&qp->base.lock);
	if (which == VERBS_ABORTED)
		err = post_write(qp, which, NDXP_RC_ABORTED, 1);
	else if (ndxp_queue_outstanding(&qp->base.initiator) > 0)
		err = EBUSY;
	else
		err = post_write(qp, which, NDXP_RC_GOODBYE, NDXP_RC_SAID | qp->ofi->sent);
	ndxp_lock_release(&qp->base.lock);
	return err;
}

void verbs_ofi_ring(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;
	struct verbs_ofi *ofi = conn->ofi;
	uint32_t credits;

	ndxp_lock_acquire(&qp->base.lock);
	credits = (uint32_t)read_field(ofi, NDXP_RC_CREDITS);
	if (credits == 0) /* not written yet */
		credits = ofi->credits;
	credits -= ofi->sent;
	if (!ofi->rung && credits > 0 && credits <= ofi->depth)
		ofi->rung =
			post_write(qp, VERBS_BELL, NDXP_RC_GOODBYE, NDXP_RC_SAID | ofi->sent) == 0;
	ndxp_lock_release(&qp->base.lock);
}

/* A fixed part of the queue would dead-lock small queues: a peer without any credit needs the first
 * one. */
void verbs_ofi_tell_credits(struct verbs_qp *qp)
{
	struct verbs_ofi *ofi = qp->ofi;
	const uint32_t posted = qp->base.receive.tail - ofi->start;
	const uint32_t fresh = posted - ofi->announced;

	/* the peer reads the number if the write has to wait */
	__atomic_store_n(field_at(ofi, AT_NOTES + NDXP_RC_CREDITS), htobe64(posted),
	                 __ATOMIC_RELEASE);
	if (!ofi->introduced || qp->killed || fresh == 0 ||
	    qp->peer_state != VERBS_PEER_CONNECTED ||
	    (qp->controls_out & (1u << VERBS_CREDIT)) != 0)
		return;
	if (ofi->announced != count_arrived(qp) && fresh < qp->base.receive.depth / 2)
		return;
	if (post_write(qp, VERBS_CREDIT, NDXP_RC_CREDITS, posted) == 0)
		ofi->announced = posted;
}

/* ---- first messages ---- */

int verbs_ofi_introduce(struct verbs_conn *conn, enum ndxp_rc_first type)
{
	struct verbs_qp *qp = verbs_qp_of(conn->spi.qp);
	struct verbs_ofi *ofi = conn->ofi;
	struct ndxp_rc_record record = {
		.type = (uint8_t)type,
		.depth = (uint16_t)qp->base.receive.depth,
		.key = ofi->mr->rkey,
		.address = (uintptr_t)ofi->area,
	};
	struct verbs_ctrl_write send = {
		.how = VERBS_CTRL_SEND,
		.lkey = ofi->mr->lkey,
		.from = (uintptr_t)(ofi->area + AT_OUT),
	};
	int err;

	ndxp_lock_acquire(&qp->base.lock);
	ofi->announced = qp->base.receive.tail - ofi->start;
	record.credits = ofi->announced;
	send.length = (uint32_t)ndxp_rc_record_encode(&record, ofi->area + AT_OUT);
	err = verbs_wr_post_control(qp, VERBS_FIRST, &send);
	ndxp_lock_release(&qp->base.lock);
	return err;
}

bool verbs_ofi_first_came(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;
	bool came;

	ndxp_lock_acquire(&qp->base.lock);
	came = conn->ofi->first_came; /* qp->ofi is NULL until the queue pair is ready to receive */
	conn->ofi->first_came = false;
	ndxp_lock_release(&qp->base.lock);
	return came;
}

const char *verbs_ofi_read_first(struct verbs_conn *conn, struct ndxp_rc_record *record)
{
	struct verbs_qp *qp = conn->qp;
	struct verbs_ofi *ofi = conn->ofi;
	uint8_t bytes[NDXP_RC_RECORD_SIZE];
	const char *wrong;

	ndxp_lock_acquire(&qp->base.lock);
	/* the peer may write there while this end reads */
	memcpy(bytes, ofi->area + AT_IN, sizeof(bytes));
	wrong = ndxp_rc_record_decode(bytes, ofi->first_len, record);
	if (wrong == NULL && record->shared)
		wrong = "the peer on ofi:verbs has a shared receive queue, which verbs cannot use";
	if (wrong == NULL && record->type != NDXP_RC_FIRST_REJECT) {
		ofi->introduced = true;
		ofi->key = record->key;
		ofi->address = record->address;
		ofi->credits = record->credits;
		ofi->depth = record->depth;
		qp->noop_write = write_of(ofi, NDXP_RC_CREDITS, ofi->announced);
	}
	ndxp_lock_release(&qp->base.lock);
	return wrong;
}

/* ---- what the peer writes ---- */

uint64_t verbs_ofi_goodbye(const struct verbs_conn *conn)
{
	const uint64_t goodbye = read_field(conn->ofi, NDXP_RC_GOODBYE);
	struct verbs_qp *qp = conn->qp;
	bool all;

	if ((goodbye & NDXP_RC_SAID) == 0 || qp == NULL)
		return 0;
	ndxp_lock_acquire(&qp->base.lock);
	all = (uint32_t)goodbye == count_arrived(qp);
	ndxp_lock_release(&qp->base.lock);
	return all ? goodbye : 0;
}

bool verbs_ofi_has(const struct verbs_conn *conn, enum ndxp_rc_field which)
{
	return read_field(conn->ofi, which) != 0;
}
