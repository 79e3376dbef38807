/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses, IPv4 and IPv6. */
#ifndef NDX_SPI_SOCKADDR_H
#define NDX_SPI_SOCKADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/status.h>

#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

#define NDXP_SOCKADDR_TEXT 80

/* Whether the address is of a known family and has that family's length. */
bool ndxp_sockaddr_valid(const struct sockaddr *address, socklen_t len) NDXP_SHARED;
/* The length of the family's addresses; 0 for an unknown family. */
socklen_t ndxp_sockaddr_len(const struct sockaddr_storage *address) NDXP_SHARED;
uint16_t ndxp_sockaddr_port(const struct sockaddr_storage *address) NDXP_SHARED;
void ndxp_sockaddr_set_port(struct sockaddr_storage *address, uint16_t port) NDXP_SHARED;
bool ndxp_sockaddr_is_any(const struct sockaddr_storage *address);
bool ndxp_sockaddr_is_loopback(const struct sockaddr_storage *address) NDXP_SHARED;
/* Whether the addresses are equal; ports and scopes do not count. */
bool ndxp_sockaddr_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Choose the own address by which a peer that was reached from `near` can reach this host: `near`
 * itself, else one of its family, else the first. `count` is 1 or more. */
const struct sockaddr_storage *ndxp_sockaddr_nearest(const struct sockaddr_storage *own,
                                                     size_t count,
                                                     const struct sockaddr_storage *near);
/* "10.0.0.1:4000", "[fe80::1%eth0]:4000", "-" for none. Returns `text`. */
const char *ndxp_sockaddr_text(const struct sockaddr_storage *address,
                               char text[NDXP_SOCKADDR_TEXT]) NDXP_SHARED;
/* Copy a validated address into a storage; the rest becomes zero. */
void ndxp_sockaddr_copy(struct sockaddr_storage *to, const struct sockaddr *address,
                        socklen_t len) NDXP_SHARED;

/* Copy an address into a caller's buffer of *length bytes, and set *length to the length of the
 * address. NDX_E_BUFFER_OVERFLOW, and no byte copied, if the buffer is too small or NULL; `call` is
 * for the text. */
enum ndx_status ndxp_sockaddr_copy_out(const char *call, const struct sockaddr_storage *address,
                                       struct sockaddr *to, socklen_t *length) NDXP_SHARED;

NDXP_DECLS_END

#endif
