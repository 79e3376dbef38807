/* SPDX-License-Identifier: BSD-2-Clause */
/* The status for a failure in libfabric. */
#include <errno.h>
#include <fcntl.h>

#include <ndx/spi/system.h>
#include <ndx/spi/errno_status.h>
#include "ofi.h"

/* A call of libfabric opens up to so many, and closes the first ones if it gets no more. */
#define DESCRIPTORS 4

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

int ofi_no_descriptor(void)
{
	int fds[DESCRIPTORS];
	int err = 0;
	size_t n = 0;

	while (n < DESCRIPTORS) {
		fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fds[n] < 0) {
			err = errno;
			break;
		}
		n++;
	}
	while (n > 0)
		ndxp_fd_close(fds[--n]);
	return err == EMFILE || err == ENFILE ? err : 0;
}
