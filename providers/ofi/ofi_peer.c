/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel tells of the sockets below a connection. They are libfabric's, which tells their
 * descriptors to nobody (before 2.2), and to look for one among all descriptors takes the longer
 * the more there are, and a free descriptor. So the kernel is asked by addresses.
 */
#include <errno.h>
#include <string.h>

#include "base_linux.h"
#include "base_log.h"
#include "base_sockaddr.h"
#include "ofi.h"

enum ndx_status ofi_peer_open(struct ofi_adapter *adapter)
{
	enum ndx_status st;
	int err;

	adapter->diag = -1;
	if (!adapter->flavour->over_tcp)
		return NDX_OK;
	adapter->diag = base_diag_open();
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
	base_fd_close(adapter->diag);
}

static enum ofi_peer_found find(int fd, const struct sockaddr_storage *near,
                                const struct sockaddr_storage *far, struct base_diag_end *out)
{
	if (!base_diag_tcp(fd, near, far, out))
		return OFI_PEER_UNKNOWN;
	return out->listening ? OFI_PEER_NONE : OFI_PEER_FOUND;
}

enum ofi_peer_found ofi_peer_own_end(const struct ofi_adapter *adapter,
                                     const struct sockaddr_storage *local,
                                     const struct sockaddr_storage *peer, struct base_diag_end *out)
{
	enum ofi_peer_found best = OFI_PEER_UNKNOWN;

	if (!base_sockaddr_is_any(local))
		return find(adapter->diag, local, peer, out);
	for (size_t i = 0; i < adapter->address_count && best != OFI_PEER_FOUND; i++) {
		struct sockaddr_storage near = adapter->addresses[i];
		enum ofi_peer_found found;

		base_sockaddr_set_port(&near, base_sockaddr_port(local));
		found = find(adapter->diag, &near, peer, out);
		if (found != OFI_PEER_UNKNOWN)
			best = found;
	}
	return best;
}
