/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's data about the sockets below a connection (ofi_peer.c). Control thread. */
#ifndef OFI_OFI_PEER_H
#define OFI_OFI_PEER_H

#include <stdbool.h>
#include <sys/socket.h>

#include <ndx/status.h>

#include <ndx/spi/tcp_diag.h>

struct ofi_adapter;

enum ofi_peer_found {
	OFI_PEER_UNKNOWN, /* the kernel does not know */
	OFI_PEER_NONE,    /* a socket listens there, but there is no such connection */
	OFI_PEER_FOUND,
};

/* Open the socket for queries. A kernel that does not support it is no failure; the lack of a
 * descriptor is one. */
enum ndx_status ofi_peer_open(struct ofi_adapter *adapter);
void ofi_peer_close(struct ofi_adapter *adapter);

/* The own end of a connection. `local` may be the unspecified address: any of the adapter's. */
enum ofi_peer_found ofi_peer_own_end(const struct ofi_adapter *adapter,
                                     const struct sockaddr_storage *local,
                                     const struct sockaddr_storage *peer,
                                     struct ndxp_diag_end *out);

#define OFI_PEER_TEXT 192

/*
 * May the peer connect? On this host the peer's socket has to belong to the own user, or to root.
 * NULL: yes; otherwise the reason, in `text`.
 */
const char *ofi_peer_check(const struct ofi_adapter *adapter, const struct sockaddr_storage *local,
                           const struct sockaddr_storage *peer, char text[OFI_PEER_TEXT]);
/* Can the kernel tell the users of the peers that connect to this listener's address? If not, an
 * error that says what to do. */
enum ndx_status ofi_peer_check_listener(const struct ofi_adapter *adapter,
                                        const struct sockaddr_storage *local);
/* Does a user listen at the address that is neither the own one nor root? */
bool ofi_peer_is_another_users(const struct ofi_adapter *adapter,
                               const struct sockaddr_storage *address);

#endif
