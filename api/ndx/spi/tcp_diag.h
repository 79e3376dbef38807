/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries the kernel (sock_diag) about a TCP connection by its two addresses. The cost does not
 * depend on the number of sockets, and the caller needs no descriptor of the connection. */
#ifndef NDX_SPI_TCP_DIAG_H
#define NDX_SPI_TCP_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* Bytes since the connection was established. */
struct ndxp_traffic {
	uint64_t in;  /* received */
	uint64_t out; /* acknowledged by the peer's kernel */
};

struct ndxp_diag_end {
	bool established; /* neither side has closed the connection */
	bool listening;   /* not a connection but a listening socket at the near address */
	bool owned;       /* a process holds the socket; only then the user is known */
	uint32_t uid;     /* the user that created the socket, as this namespace numbers users */
	struct ndxp_traffic bytes;
};

/* A descriptor for queries in the network namespace of the calling thread; -1 with errno. */
int ndxp_diag_open(void);

/* Find the socket of this host with own address `near` and peer address `far`; if there is none, or
 * `far` is NULL, a socket that listens at `near`. One call at a time. False: no such socket, no
 * kernel module tcp_diag, or addresses of two families. */
bool ndxp_diag_tcp(int fd, const struct sockaddr_storage *near, const struct sockaddr_storage *far,
                   struct ndxp_diag_end *out);

NDXP_DECLS_END

#endif
