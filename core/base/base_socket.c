/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_socket.h"

#include <errno.h>
#include <sys/socket.h>

enum ndx_status base_socket_receive(int fd, void *data, size_t room, size_t *got)
{
	for (;;) {
		const ssize_t n = recv(fd, data, room, MSG_DONTWAIT);

		if (n > 0) {
			*got = (size_t)n;
			return NDX_OK;
		}
		if (n == 0) {
			errno = 0;
			return NDX_E_CONNECTION_ABORTED;
		}
		if (errno == EAGAIN)
			return NDX_PENDING;
		if (errno != EINTR)
			return NDX_E_CONNECTION_ABORTED;
	}
}

enum ndx_status base_socket_send(int fd, const uint8_t *bytes, size_t length, size_t *sent)
{
	while (*sent < length) {
		const ssize_t n =
			send(fd, bytes + *sent, length - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			*sent += (size_t)n;
		else if (errno == EAGAIN)
			return NDX_PENDING;
		else if (errno != EINTR)
			return NDX_E_CONNECTION_ABORTED;
	}
	return NDX_OK;
}
