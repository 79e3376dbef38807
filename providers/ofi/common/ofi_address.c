/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of the adapter, and of the peers that it trusts. */
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"
#include "ofi_early.h"

enum ndx_status ofi_check_trust(const struct ofi_adapter *adapter,
                                const struct sockaddr_storage *peer, const char *what)
{
	char text[NDXP_SOCKADDR_TEXT];

	if (adapter->options.lan || !adapter->backend->needs_trust ||
	    ndxp_sockaddr_is_loopback(peer))
		return NDX_OK;
	return fail(
		NDX_E_INVALID_ADDRESS, 0,
		"will not %s %s: libfabric's tcp provider trusts what peers send; add trust=lan "
		"to the adapter's URI if all hosts that reach the port are trusted",
		what, ndxp_sockaddr_text(peer, text));
}

bool ofi_is_own(const struct ofi_adapter *adapter, const struct sockaddr_storage *address)
{
	for (size_t i = 0; i < adapter->address_count; i++) {
		if (ndxp_sockaddr_same_host(&adapter->addresses[i], address))
			return true;
	}
	return false;
}
