/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of the adapter, and of the peers that it trusts. */
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"
#include "ofi_early.h"

/* The URI has named the loopback, by interface or address: trust=lan adds no address to it. */
static bool is_of_loopback(const struct ofi_adapter *adapter)
{
	bool named = adapter->options.iface[0] != '\0' ||
	             adapter->options.address.ss_family != AF_UNSPEC;

	for (size_t i = 0; i < adapter->address_count; i++)
		named = named && ndxp_sockaddr_is_loopback(&adapter->addresses[i]);
	return named;
}

enum ndx_status ofi_check_trust(const struct ofi_adapter *adapter,
                                const struct sockaddr_storage *peer, const char *what)
{
	char text[NDXP_SOCKADDR_TEXT];

	if (adapter->options.lan || !adapter->backend->needs_trust ||
	    ndxp_sockaddr_is_loopback(peer))
		return NDX_OK;
	if (is_of_loopback(adapter))
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "will not %s %s: this adapter is the loopback's, which reaches this "
		            "host only; use ofi:tcp?trust=lan, or iface=NAME&trust=lan with the "
		            "interface that leads there, if all hosts that reach the port are "
		            "trusted",
		            what, ndxp_sockaddr_text(peer, text));
	return fail(
		NDX_E_INVALID_ADDRESS, 0,
		"will not %s %s: libfabric's tcp provider trusts what peers send; add trust=lan "
		"to the adapter's URI if all hosts that reach the port are trusted",
		what, ndxp_sockaddr_text(peer, text));
}

static bool is_own(const struct ofi_adapter *adapter, const struct sockaddr_storage *address)
{
	for (size_t i = 0; i < adapter->address_count; i++) {
		if (ndxp_sockaddr_same_host(&adapter->addresses[i], address))
			return true;
	}
	return false;
}

enum ndx_status ofi_check_own(const struct ofi_adapter *adapter,
                              const struct sockaddr_storage *address)
{
	char text[NDXP_SOCKADDR_TEXT];

	if (is_own(adapter, address))
		return NDX_OK;
	return fail(NDX_E_INVALID_ADDRESS, 0, "%s is not an address of this adapter%s",
	            ndxp_sockaddr_text(address, text),
	            adapter->backend->needs_trust && !adapter->options.lan
	                    ? ", which has those of the loopback or of its URI's iface or addr; "
	                      "ofi:tcp?trust=lan has those of all interfaces"
	                    : "");
}
