/* SPDX-License-Identifier: BSD-2-Clause */
/* The status for a failure in libfabric. */
#include <errno.h>

#include <ndx/spi/errno_status.h>
#include "ofi.h"

enum ndx_status ofi_status_of(int err)
{
	switch (err) {
	case ENOMEM:
		return NDX_E_NO_MEMORY;
	case FI_ENODATA:
		return NDX_E_DEVICE_NOT_READY;
	default:
		return ndxp_errno_status(err);
	}
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
