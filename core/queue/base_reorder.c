/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/reorder.h>

#include <sched.h>

#include <ndx/spi/system.h>

#define WAIT_MS 100u

void ndxp_reorder_await(struct ndxp_qp *qp, ndxp_reorder_oldest_fn *oldest,
                        ndxp_reorder_read_fn *read, void *arg)
{
	uint64_t deadline = 0;
	uint32_t index;
	uint32_t end;
	int n = 1;

	ndxp_lock_acquire(&qp->lock);
	end = qp->initiator.tail;
	while (n >= 0 && oldest(qp, &index) && (int32_t)(end - index) > 0 &&
	       index != qp->reorder_exempt) {
		ndxp_lock_release(&qp->lock);
		n = read(arg);
		if (n == 0 && deadline == 0) /* read the clock only if the wait is needed */
			deadline = ndxp_deadline(WAIT_MS);
		if (n == 0 && ndxp_now_ns() < deadline)
			(void)sched_yield();
		else if (n == 0) /* the request itself waits, perhaps for a receive of the peer */
			qp->reorder_exempt = index;
		ndxp_lock_acquire(&qp->lock);
	}
	ndxp_lock_release(&qp->lock);
}
