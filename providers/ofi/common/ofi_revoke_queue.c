/* SPDX-License-Identifier: BSD-2-Clause */
/* Revokes that have not begun. Any thread queues one, and the control thread begins it. */
#include "ofi.h"

void ofi_revoke_begin(struct ofi_revoke *revoke)
{
	struct ofi_adapter *adapter = revoke->adapter;

	revoke->round = 0;
	revoke->hurried_ns = 0;
	(void)__atomic_add_fetch(revoke->going, 1, __ATOMIC_RELEASE);
	ndxp_lock_acquire(&adapter->asked_lock);
	ndxp_list_add(&adapter->asked, &revoke->node);
	ndxp_lock_release(&adapter->asked_lock);
	ndxp_loop_post(adapter->spi.loop, &adapter->revoke_job);
}

struct ndxp_list *ofi_revoke_take_asked(struct ofi_adapter *adapter)
{
	struct ndxp_list *node;

	ndxp_lock_acquire(&adapter->asked_lock);
	node = ndxp_list_take(&adapter->asked);
	ndxp_lock_release(&adapter->asked_lock);
	return node;
}
