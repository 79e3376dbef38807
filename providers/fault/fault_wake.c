/* SPDX-License-Identifier: BSD-2-Clause */
/* Set the timer of the control thread for what is delayed. */
#include <ndx/spi/system.h>
#include "fault.h"

void fault_wake_at(struct fault_adapter *fa, uint64_t due)
{
	if (due == UINT64_MAX)
		return;
	ndxp_lock_acquire(&fa->timer_lock);
	if (due < fa->timer_due) {
		fa->timer_due = due;
		ndxp_timer_set(fa->loop, &fa->timer, ndxp_ms_until(due));
	}
	ndxp_lock_release(&fa->timer_lock);
}

void fault_cqs_end_delay(struct fault_adapter *fa)
{
	(void)__atomic_add_fetch(&fa->delays_ended, 1, __ATOMIC_ACQ_REL);
	if (__atomic_load_n(&fa->waiting, __ATOMIC_ACQUIRE) > 0)
		fault_wake_at(fa, 0);
}
