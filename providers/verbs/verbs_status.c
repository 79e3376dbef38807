/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses for the error codes of rdma_cm and of verbs calls. */
#include <errno.h>

#include "base_log.h"
#include "verbs.h"

static const struct {
	int err;
	enum ndx_status status;
} statuses[] = {
	{EADDRINUSE, NDX_E_SHARING_VIOLATION},
	{EADDRNOTAVAIL, NDX_E_INVALID_ADDRESS},
	{ENODEV, NDX_E_INVALID_ADDRESS},
	{EACCES, NDX_E_INVALID_ADDRESS}, /* a port below 1024 */
	{ECONNREFUSED, NDX_E_CONNECTION_REFUSED},
	{ETIMEDOUT, NDX_E_IO_TIMEOUT},
	{ENETUNREACH, NDX_E_NETWORK_UNREACHABLE},
	{ENETDOWN, NDX_E_NETWORK_UNREACHABLE},
	{EHOSTUNREACH, NDX_E_HOST_UNREACHABLE},
	{EHOSTDOWN, NDX_E_HOST_UNREACHABLE},
	{ENOMEM, NDX_E_INSUFFICIENT_RESOURCES},
	{EMFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOBUFS, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOSPC, NDX_E_INSUFFICIENT_RESOURCES},
	{EFAULT, NDX_E_ACCESS_VIOLATION},
	{EIO, NDX_E_DEVICE_REMOVED},
};

enum ndx_status verbs_status_of(int err)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].err == err)
			return statuses[i].status;
	}
	return NDX_E_UNSUCCESSFUL;
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
