/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control region as a mailbox: the fields that the peer writes, and the sources of those that
 * this end writes into the peer's. The lock of the queue pair is held.
 */
#include <endian.h>

#include "ofi_verbs.h"

/* data: the immediate data, if `flags` has FI_REMOTE_CQ_DATA. */
static int write_field(struct ofi_qp *qp, enum ndxp_rc_field which, uint64_t flags, uint32_t data,
                       void *context)
{
	uint64_t *note = ofi_verbs_word(qp->verbs.area, OFI_VERBS_NOTES + (size_t)which);
	const struct iovec iov = {note, sizeof(*note)};
	const struct fi_rma_iov remote = {
		.addr = qp->peer_address + which,
		.len = sizeof(*note),
		.key = qp->peer_key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &qp->verbs.desc,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = context,
		.data = data,
	};

	return -(int)fi_writemsg(qp->ep, &msg, FI_COMPLETION | flags);
}

int ofi_verbs_mail(struct ofi_qp *qp, enum ndxp_rc_field which, uint64_t flags, void *context)
{
	return write_field(qp, which, flags, NDXP_RC_BELL, context);
}

/*
 * verbs gives its requests to the device at once, so its write of a credit may be behind a send
 * that waits for this end's receive, and this end's consumer may post that receive only when its
 * own send has ended. So an end that waits for a credit reads the number.
 */
static void peek(struct ofi_qp *qp)
{
	struct ofi_link *link = container_of(qp->verbs.area, struct ofi_link, area[0]);
	const struct iovec iov = {ofi_verbs_word(qp->verbs.area, OFI_VERBS_MAIL + NDXP_RC_CREDITS),
	                          sizeof(uint64_t)};
	const struct fi_rma_iov remote = {
		.addr = qp->peer_address + NDXP_RC_POSTED,
		.len = sizeof(uint64_t),
		.key = qp->peer_key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &qp->verbs.desc,
		.iov_count = 1,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &link->verbs.peek_op,
	};

	qp->verbs.peeking = fi_readmsg(qp->ep, &msg, FI_COMPLETION) == 0;
}

/* The next read is for the timer: read after read would keep the thread that reads completions. */
void ofi_verbs_peeked(struct ofi_qp *qp)
{
	if (qp->base.rnr_since != 0)
		ofi_submit(qp);
	qp->verbs.peeking = false;
}

void ofi_verbs_refresh(struct ofi_qp *qp)
{
	uint64_t total;
	uint32_t credits;

	if (qp->verbs.area == NULL || !qp->open)
		return;
	total = be64toh(
		__atomic_load_n(ofi_verbs_word(qp->verbs.area, OFI_VERBS_MAIL + NDXP_RC_CREDITS),
	                        __ATOMIC_ACQUIRE));
	credits = (uint32_t)total - qp->verbs.used;
	/* 0: not written yet. More than the peer's queue holds: a fault of the peer, which harms
	 * only itself. */
	if (total != 0 && credits <= qp->peer_depth)
		qp->credits = credits;
	if (qp->credits == 0 && qp->verbs.peer_is_verbs && qp->base.rnr_since != 0 &&
	    !qp->verbs.peeking)
		peek(qp);
}

/* ---- shared receive queues ---- */

/* The receive stands behind all that the peer has asked for, where the peer's next request for
 * receives finds it. */
int ofi_verbs_await_want(struct ofi_qp *qp)
{
	struct ofi_link *link = container_of(qp->verbs.area, struct ofi_link, area[0]);
	const struct fi_msg msg = {.context = &link->verbs.want_op};
	int err;

	if (qp->taker.srq == NULL || qp->verbs.awaits_want || qp->taker.wanted > 0 ||
	    qp->rx_next != qp->base.receive.tail)
		return 0;
	err = -(int)fi_recvmsg(qp->ep, &msg, FI_COMPLETION);
	qp->verbs.awaits_want = err == 0;
	return err;
}

bool ofi_verbs_has_receive(const struct ofi_qp *qp)
{
	return qp->rx_native > 0 || qp->verbs.awaits_want;
}

/* With the number that the peer knows already, because some networks drop requests without
 * bytes. */
int ofi_verbs_send_want(struct ofi_qp *qp, uint16_t count)
{
	return write_field(qp, NDXP_RC_CREDITS, FI_REMOTE_CQ_DATA, count, &qp->adapter->silent);
}

uint16_t ofi_verbs_count_sent(const struct ofi_qp *qp)
{
	return (uint16_t)qp->verbs.used;
}

int ofi_verbs_send_credits(struct ofi_qp *qp, uint32_t fresh)
{
	uint64_t *note = ofi_verbs_word(qp->verbs.area, OFI_VERBS_NOTES + NDXP_RC_CREDITS);
	const uint64_t posted = (uint64_t)qp->verbs.arrived + qp->rx_native;

	(void)fresh; /* what a refused write did not tell, another write may have told */
	if (ofi_verbs_await_want(qp) != 0)
		return FI_EAGAIN;
	/* a write in flight may carry the newer value, which only grows */
	__atomic_store_n(note, htobe64(posted), __ATOMIC_RELEASE);
	return ofi_verbs_mail(qp, NDXP_RC_CREDITS, 0, &qp->adapter->silent);
}
