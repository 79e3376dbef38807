/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses for the error codes of rdma_cm and of verbs calls. */
#include <errno.h>

#include <ndx/spi/errno_status.h>
#include <ndx/spi/log.h>
#include "verbs.h"

enum ndx_status verbs_status_of(int err)
{
	switch (err) {
	case ENODEV:
		return NDX_E_INVALID_ADDRESS;
	case ENOMEM:
		return NDX_E_INSUFFICIENT_RESOURCES;
	case EFAULT:
		return NDX_E_ACCESS_VIOLATION;
	case EIO:
		return NDX_E_DEVICE_REMOVED;
	default:
		return ndxp_errno_status(err);
	}
}

enum ndx_status verbs_is_there(const struct verbs_adapter *adapter, const char *call)
{
	if (!__atomic_load_n(&adapter->removed, __ATOMIC_RELAXED))
		return NDX_OK;
	return fail(NDX_E_DEVICE_REMOVED, 0, "%s: verbs:%s has failed or was removed", call,
	            adapter->options.device);
}

enum ndx_status verbs_refusal(const struct verbs_adapter *adapter, int err)
{
	if (err == EIO || __atomic_load_n(&adapter->removed, __ATOMIC_RELAXED))
		return NDX_E_DEVICE_REMOVED;
	return NDX_E_INSUFFICIENT_RESOURCES;
}
