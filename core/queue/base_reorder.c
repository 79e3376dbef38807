/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_reorder.h"

#include <sched.h>

#include "base_linux.h"

#define WAIT_MS 100u

void base_reorder_await(struct base_qp *qp, base_reorder_oldest_fn *oldest,
                        base_reorder_read_fn *read, void *arg)
{
	uint64_t deadline = 0;
	uint32_t index;
	uint32_t end;
	int n = 1;

	base_lock_acquire(&qp->lock);
	end = qp->initiator.tail;
	while (n >= 0 && oldest(qp, &index) && (int32_t)(end - index) > 0 &&
	       index != qp->reorder_exempt) {
		base_lock_release(&qp->lock);
		n = read(arg);
		if (n == 0 && deadline == 0) /* read the clock only if the wait is needed */
			deadline = base_deadline(WAIT_MS);
		if (n == 0 && base_now_ns() < deadline)
			(void)sched_yield();
		else if (n == 0) /* the request itself waits, perhaps for a receive of the peer */
			qp->reorder_exempt = index;
		base_lock_acquire(&qp->lock);
	}
	base_lock_release(&qp->lock);
}
