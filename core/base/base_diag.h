/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel knows of a TCP connection, asked for by its two addresses (sock_diag). Costs the
 * same however many sockets there are, and needs no descriptor of the connection.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Bytes of a connection since it began. */
struct base_traffic {
	uint64_t in;  /* received */
	uint64_t out; /* acknowledged by the peer's side */
};

struct base_diag_end {
	bool established; /* neither side has closed it */
	bool listening;   /* no connection: who listens at the near address */
	bool owned;       /* a process holds it; of no other the kernel knows the user */
	uint32_t uid;     /* of who made it, if it is owned; as the own user namespace has it */
	struct base_traffic bytes;
};

/* A descriptor to ask by, in the network namespace of the calling thread; -1: errno says why. */
int base_diag_open(void);

/*
 * The socket of this host whose own address is `near` and whose peer's is `far`; one that listens
 * at `near` if there is none, or if `far` is NULL. One call at a time. False: there is neither, or
 * the kernel does not say (module tcp_diag), or the addresses are of two families.
 */
bool base_diag_tcp(int fd, const struct sockaddr_storage *near, const struct sockaddr_storage *far,
                   struct base_diag_end *out);

#endif
