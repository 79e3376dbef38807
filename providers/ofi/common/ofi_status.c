/* SPDX-License-Identifier: BSD-2-Clause */
/* The status for a failure in libfabric. */
#include <errno.h>

#include "ofi.h"

static const struct {
	int err;
	enum ndx_status status;
} statuses[] = {
	{EADDRINUSE, NDX_E_SHARING_VIOLATION},
	{EADDRNOTAVAIL, NDX_E_INVALID_ADDRESS},
	{EACCES, NDX_E_INVALID_ADDRESS}, /* a port below 1024 */
	{ECONNREFUSED, NDX_E_CONNECTION_REFUSED},
	{ETIMEDOUT, NDX_E_IO_TIMEOUT},
	{ENETUNREACH, NDX_E_NETWORK_UNREACHABLE},
	{ENETDOWN, NDX_E_NETWORK_UNREACHABLE},
	{EHOSTUNREACH, NDX_E_HOST_UNREACHABLE},
	{EHOSTDOWN, NDX_E_HOST_UNREACHABLE},
	{ENOMEM, NDX_E_NO_MEMORY},
	{EMFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENFILE, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOBUFS, NDX_E_INSUFFICIENT_RESOURCES},
	{ENOSPC, NDX_E_INSUFFICIENT_RESOURCES},
	{FI_ENODATA, NDX_E_DEVICE_NOT_READY},
};

enum ndx_status ofi_status_of(int err)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].err == err)
			return statuses[i].status;
	}
	return NDX_E_UNSUCCESSFUL;
}

enum ndx_status ofi_request_status(int err)
{
	switch (err) {
	case 0:
		return NDX_OK;
	case ENOTCONN:
	case ECANCELED:
	case ECONNRESET:
	case EPIPE:
	case ESHUTDOWN:
		return NDX_E_CANCELED;
	case FI_ETRUNC:
		return NDX_E_BUFFER_OVERFLOW;
	case EFAULT:
	case EACCES:
		return NDX_E_ACCESS_VIOLATION;
	case EMSGSIZE:
		return NDX_E_DATA_OVERRUN;
	case EREMOTEIO:
		return NDX_E_REMOTE_ERROR;
	case ETIMEDOUT:
		return NDX_E_IO_TIMEOUT;
	default:
		return NDX_E_INTERNAL_ERROR;
	}
}
