/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel tells of the sockets below a connection (ofi_peer.c). Control thread. */
#ifndef OFI_OFI_PEER_H
#define OFI_OFI_PEER_H

#include <stdbool.h>
#include <sys/socket.h>

#include <ndx/status.h>

#include "base_diag.h"

struct ofi_adapter;

enum ofi_peer_found {
	OFI_PEER_UNKNOWN, /* the kernel does not tell */
	OFI_PEER_NONE,    /* somebody listens there, but there is no such connection */
	OFI_PEER_FOUND,
};

/* From now on the kernel can be asked. Where it cannot, that is no failure; to lack a descriptor
 * is one. */
enum ndx_status ofi_peer_open(struct ofi_adapter *adapter);
void ofi_peer_close(struct ofi_adapter *adapter);

/* The own end of a connection. `local` may be the unspecified address: any of the adapter's. */
enum ofi_peer_found ofi_peer_own_end(const struct ofi_adapter *adapter,
                                     const struct sockaddr_storage *local,
                                     const struct sockaddr_storage *peer,
                                     struct base_diag_end *out);

#define OFI_PEER_TEXT 192

/*
 * May whoever made the socket at the other end connect to us? On this host that is the own user,
 * or root. NULL: yes; else why not, for people, in `text`.
 */
const char *ofi_peer_check(const struct ofi_adapter *adapter, const struct sockaddr_storage *local,
                           const struct sockaddr_storage *peer, char text[OFI_PEER_TEXT]);
/* Can that be told of those who connect to this listener's address? Else an error that says what
 * to do. */
enum ndx_status ofi_peer_check_listener(const struct ofi_adapter *adapter,
                                        const struct sockaddr_storage *local);
/* Does another user listen there, and not root? */
bool ofi_peer_is_another_users(const struct ofi_adapter *adapter,
                               const struct sockaddr_storage *address);

#endif
