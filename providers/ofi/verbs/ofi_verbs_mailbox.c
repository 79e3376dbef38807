/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control region as a mailbox: two fields that the peer writes, and the two that this end
 * writes into the peer's. The lock of the queue pair is held.
 */
#include <endian.h>

#include "ofi_verbs.h"

static uint64_t *word_at(uint8_t *area, size_t offset)
{
	return (uint64_t *)(void *)(area + offset);
}

int ofi_verbs_mail(struct ofi_qp *qp, size_t word, uint64_t flags, void *context)
{
	uint64_t *note = word_at(qp->verbs.area, word + (OFI_VERBS_NOTES - OFI_VERBS_MAIL));
	const struct iovec iov = {note, sizeof(*note)};
	const struct fi_rma_iov remote = {
		.addr = qp->peer_address + word,
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
		.data = OFI_BELL,
	};

	return -(int)fi_writemsg(qp->ep, &msg, FI_COMPLETION | flags);
}

void ofi_verbs_refresh(struct ofi_qp *qp)
{
	uint64_t total;
	uint32_t credits;

	if (qp->verbs.area == NULL || !qp->open)
		return;
	total = be64toh(
		__atomic_load_n(word_at(qp->verbs.area, OFI_VERBS_CREDITS), __ATOMIC_ACQUIRE));
	credits = (uint32_t)total - qp->verbs.used;
	/* 0: not written yet. More than the peer's queue holds: a fault of the peer, which harms
	 * only itself. */
	if (total != 0 && credits <= qp->peer_depth)
		qp->credits = credits;
}

int ofi_verbs_send_credits(struct ofi_qp *qp, uint32_t fresh)
{
	uint64_t *note = word_at(qp->verbs.area, OFI_VERBS_NOTES);
	int err;

	/* a write in flight may carry the newer value, which only grows */
	__atomic_store_n(note, htobe64((uint64_t)qp->verbs.announced + fresh), __ATOMIC_RELEASE);
	err = ofi_verbs_mail(qp, OFI_VERBS_CREDITS, 0, &qp->adapter->silent);
	if (err == 0)
		qp->verbs.announced += fresh;
	return err;
}
