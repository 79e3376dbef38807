/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's data about the sockets below a connection. The sockets are libfabric's, which does
 * not give away their descriptors (before 2.2). A search among all descriptors would need a free
 * one, and time in proportion to their number. So the kernel is asked by addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"

#define NOBODY 65534u /* the kernel's overflowuid, unless an administrator has changed it */

enum ndx_status ofi_peer_open(struct ofi_adapter *adapter)
{
	enum ndx_status st;
	int err;

	adapter->diag = -1;
	if (!adapter->backend->over_tcp)
		return NDX_OK;
	adapter->diag = ndxp_diag_open();
	if (adapter->diag >= 0)
		return NDX_OK;
	err = errno;
	st = ofi_status_of(err);
	if (st == NDX_E_INSUFFICIENT_RESOURCES || st == NDX_E_NO_MEMORY)
		return fail(st, err, "socket to ask the kernel of connections: %s; see ulimit -n",
		            strerror(err));
	return NDX_OK;
}

void ofi_peer_close(struct ofi_adapter *adapter)
{
	ndxp_fd_close(adapter->diag);
}

static enum ofi_peer_found find_socket(int fd, const struct sockaddr_storage *near,
                                       const struct sockaddr_storage *far,
                                       struct ndxp_diag_end *out)
{
	if (!ndxp_diag_tcp(fd, near, far, out))
		return OFI_PEER_UNKNOWN;
	return out->listening ? OFI_PEER_NONE : OFI_PEER_FOUND;
}

/* The end of the connection to ask about. */
enum side { OWN_END, PEERS_END };

static enum ofi_peer_found find_between(const struct ofi_adapter *adapter, enum side side,
                                        const struct sockaddr_storage *local,
                                        const struct sockaddr_storage *peer,
                                        struct ndxp_diag_end *out)
{
	return side == OWN_END ? find_socket(adapter->diag, local, peer, out)
	                       : find_socket(adapter->diag, peer, local, out);
}

static enum ofi_peer_found find_end(const struct ofi_adapter *adapter, enum side side,
                                    const struct sockaddr_storage *local,
                                    const struct sockaddr_storage *peer, struct ndxp_diag_end *out)
{
	enum ofi_peer_found best = OFI_PEER_UNKNOWN;

	if (!ndxp_sockaddr_is_any(local))
		return find_between(adapter, side, local, peer, out);
	for (size_t i = 0; i < adapter->address_count && best != OFI_PEER_FOUND; i++) {
		struct sockaddr_storage one = adapter->addresses[i];
		enum ofi_peer_found found;

		ndxp_sockaddr_set_port(&one, ndxp_sockaddr_port(local));
		found = find_between(adapter, side, &one, peer, out);
		if (found != OFI_PEER_UNKNOWN)
			best = found;
	}
	return best;
}

enum ofi_peer_found ofi_peer_own_end(const struct ofi_adapter *adapter,
                                     const struct sockaddr_storage *local,
                                     const struct sockaddr_storage *peer, struct ndxp_diag_end *out)
{
	return find_end(adapter, OWN_END, local, peer, out);
}

/* ---- users ---- */

/* The own user, or root. A user namespace shows all users without a number in it as one uid, which
 * is no particular user's. */
static bool is_friend(uint32_t uid)
{
	return uid == 0 || (uid == geteuid() && (uid != NOBODY || ndxp_users_have_numbers()));
}

const char *ofi_peer_check(const struct ofi_adapter *adapter, const struct sockaddr_storage *local,
                           const struct sockaddr_storage *peer, char text[OFI_PEER_TEXT])
{
	struct ndxp_diag_end end;

	if (!adapter->backend->over_tcp || adapter->options.any_user)
		return NULL;
	switch (find_end(adapter, PEERS_END, local, peer, &end)) {
	case OFI_PEER_FOUND:
		if (end.owned && is_friend(end.uid))
			return NULL;
		if (!end.owned)
			return "is a socket that its process has closed, so the kernel does not "
			       "know its user";
		(void)snprintf(
			text, OFI_PEER_TEXT,
			"is of uid %u, not of uid %u or root; peers=any in the adapter's URI would "
			"allow other users, and each of them can crash this process",
			end.uid, geteuid());
		return text;
	case OFI_PEER_NONE:
	case OFI_PEER_UNKNOWN:
		break;
	}
	/* the peer is on another host: trust=lan has allowed that */
	if (!ndxp_sockaddr_is_loopback(peer))
		return NULL;
	return "has no socket whose user the kernel knows; peers=any in the adapter's URI would "
	       "allow other users, and each of them can crash this process";
}

enum ndx_status ofi_peer_check_listener(const struct ofi_adapter *adapter,
                                        const struct sockaddr_storage *local)
{
	struct ndxp_diag_end end;

	if (!adapter->backend->over_tcp || adapter->options.any_user ||
	    ndxp_diag_tcp(adapter->diag, local, NULL, &end))
		return NDX_OK;
	return fail(NDX_E_DEVICE_NOT_READY, 0,
	            "the kernel does not tell the user of a socket, so every peer would be "
	            "refused: load its module tcp_diag, or allow every user of this host by "
	            "peers=any in the adapter's URI");
}

bool ofi_peer_is_another_users(const struct ofi_adapter *adapter,
                               const struct sockaddr_storage *address)
{
	struct ndxp_diag_end end;

	return ndxp_diag_tcp(adapter->diag, address, NULL, &end) && end.owned &&
	       !is_friend(end.uid);
}
