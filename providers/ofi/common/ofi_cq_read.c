/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading native completion queues. The lock of the queue is held. */
#include "ofi.h"

#define READS 64      /* batches in a row before other threads get the lock */
#define CATCH_UP 4096 /* reads in a row, more than a queue ever holds between two polls */

static bool is_away(const struct ofi_ncq *ncq)
{
	return __atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) == OFI_NCQ_POLLED;
}

/*
 * Reading a native queue clears its descriptor, even if libfabric has just found more completions
 * in its sockets than this read returns. So a reader reads until the queue is empty, unless a
 * polling consumer will read again soon anyway.
 */
unsigned ofi_ncq_progress(struct ofi_ncq *ncq)
{
	unsigned total = 0;
	bool again = true;

	ofi_send_pending_credits(ncq);
	for (int i = 0; again && i < READS; i++) {
		const ssize_t n = ofi_ncq_read(ncq);

		if (n > 0)
			total += (unsigned)n;
		/* a short read is the last, or ends before a failure */
		again = n == OFI_BATCH || (n > 0 && !is_away(ncq));
	}
	if (again && !is_away(ncq))
		ofi_ncq_kick(ncq);
	return total;
}

void ofi_ncq_poll(struct ofi_ncq *ncq, struct ndxp_cq *cq, size_t count)
{
	ssize_t n = OFI_BATCH;
	bool any = false;

	if (!is_away(ncq)) {
		any = ofi_ncq_progress(ncq) > 0;
		ofi_ack_polled(ncq, any || ndxp_cq_has(cq, 1), false);
		return;
	}
	ofi_send_pending_credits(ncq);
	for (int i = 0; n == OFI_BATCH && i < READS && !ndxp_cq_has(cq, count); i++) {
		n = ofi_ncq_read(ncq);
		any = any || n > 0;
	}
	ofi_ack_polled(ncq, any || ndxp_cq_has(cq, 1), is_away(ncq));
	if (n == OFI_BATCH && !is_away(ncq))
		ofi_ncq_kick(ncq);
}

void ofi_ncq_catch_up_locked(struct ofi_ncq *ncq)
{
	for (int i = 0; i < CATCH_UP && ofi_ncq_progress(ncq) > 0; i++) {
		/* ofi_ncq_progress() does the work */
	}
	ofi_ack_all(ncq);
}

void ofi_ncq_catch_up(struct ofi_ncq *ncq)
{
	ndxp_lock_acquire(&ncq->lock);
	ofi_ncq_catch_up_locked(ncq);
	ndxp_lock_release(&ncq->lock);
}
