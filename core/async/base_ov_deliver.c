/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_ov_deliver.h"

#include <ndx/spi/system.h>
#include "base_ov_state.h"
#include "base_port.h"

void base_ov_tell(struct ndx_overlapped *ov)
{
	if (ov->port != NULL) {
		base_port_push(ov->port, ov);
		return;
	}
	/* After this line the object may be freed: the futex needs only the address. */
	if (__atomic_exchange_n(&ov->state, BASE_OV_DONE, __ATOMIC_ACQ_REL) == BASE_OV_WAITED)
		ndxp_futex_wake(&ov->state, 1);
}

void base_ov_deliver(struct ndx_overlapped *ov)
{
	base_ov_forget_before(ov);
	if (ov->callback == NULL) {
		base_ov_tell(ov);
		return;
	}
	__atomic_store_n(&ov->state, BASE_OV_DONE, __ATOMIC_RELEASE);
	ov->callback(ov);
}
