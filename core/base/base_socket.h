/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes of a stream socket that do not block. */
#ifndef BASE_SOCKET_H
#define BASE_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/status.h>

#include "base_private.h"

/* Both: NDX_PENDING: not now. NDX_E_CONNECTION_ABORTED: the stream is lost; errno is 0 if the peer
 * closed it. */

/* Receive 1 to `room` bytes. */
enum ndx_status base_socket_receive(int fd, void *data, size_t room, size_t *got)
	NDX_PRIVATE(base_socket_receive);
/* Write from *sent on; NDX_OK: all `length` bytes are written. */
enum ndx_status base_socket_send(int fd, const uint8_t *bytes, size_t length, size_t *sent)
	NDX_PRIVATE(base_socket_send);

#endif
