/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/errno_status.h>

#include <errno.h>

enum ndx_status ndxp_errno_status(int err)
{
	switch (err) {
	case EADDRINUSE:
		return NDX_E_SHARING_VIOLATION;
	case EADDRNOTAVAIL:
		return NDX_E_INVALID_ADDRESS;
	case EACCES: /* a port below 1024 */
	case EPERM:
		return NDX_E_ACCESS_DENIED;
	case ECONNREFUSED:
		return NDX_E_CONNECTION_REFUSED;
	case ETIMEDOUT:
		return NDX_E_IO_TIMEOUT;
	case ENETUNREACH:
	case ENETDOWN:
		return NDX_E_NETWORK_UNREACHABLE;
	case EHOSTUNREACH:
	case EHOSTDOWN:
		return NDX_E_HOST_UNREACHABLE;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOSPC:
		return NDX_E_INSUFFICIENT_RESOURCES;
	default:
		return NDX_E_UNSUCCESSFUL;
	}
}
