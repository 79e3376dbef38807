/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and meanings of the status codes. */
#include <ndx/status.h>

#include <stddef.h>

/* No default in the switch: -Wswitch-enum points here when a code is added, and unit.core.status
 * then misses its text. */

const char *ndx_status_name(enum ndx_status status)
{
	switch (status) {
	case NDX_OK:
		return "NDX_OK";
	case NDX_PENDING:
		return "NDX_PENDING";
	case NDX_E_INVALID_PARAMETER:
		return "NDX_E_INVALID_PARAMETER";
	case NDX_E_INVALID_BUFFER_SIZE:
		return "NDX_E_INVALID_BUFFER_SIZE";
	case NDX_E_BUFFER_OVERFLOW:
		return "NDX_E_BUFFER_OVERFLOW";
	case NDX_E_DATA_OVERRUN:
		return "NDX_E_DATA_OVERRUN";
	case NDX_E_NO_MORE_ENTRIES:
		return "NDX_E_NO_MORE_ENTRIES";
	case NDX_E_ACCESS_VIOLATION:
		return "NDX_E_ACCESS_VIOLATION";
	case NDX_E_INVALID_DEVICE_REQUEST:
		return "NDX_E_INVALID_DEVICE_REQUEST";
	case NDX_E_INVALID_DEVICE_STATE:
		return "NDX_E_INVALID_DEVICE_STATE";
	case NDX_E_DEVICE_BUSY:
		return "NDX_E_DEVICE_BUSY";
	case NDX_E_NOT_SUPPORTED:
		return "NDX_E_NOT_SUPPORTED";
	case NDX_E_WOULD_BLOCK:
		return "NDX_E_WOULD_BLOCK";
	case NDX_E_NOT_FOUND:
		return "NDX_E_NOT_FOUND";
	case NDX_E_INVALID_CONFIG:
		return "NDX_E_INVALID_CONFIG";
	case NDX_E_ABI_MISMATCH:
		return "NDX_E_ABI_MISMATCH";
	case NDX_E_INVALID_ADDRESS:
		return "NDX_E_INVALID_ADDRESS";
	case NDX_E_SHARING_VIOLATION:
		return "NDX_E_SHARING_VIOLATION";
	case NDX_E_ADDRESS_ALREADY_EXISTS:
		return "NDX_E_ADDRESS_ALREADY_EXISTS";
	case NDX_E_ADDRESS_ALREADY_ASSOCIATED:
		return "NDX_E_ADDRESS_ALREADY_ASSOCIATED";
	case NDX_E_TOO_MANY_ADDRESSES:
		return "NDX_E_TOO_MANY_ADDRESSES";
	case NDX_E_BAD_NETWORK_NAME:
		return "NDX_E_BAD_NETWORK_NAME";
	case NDX_E_NETWORK_UNREACHABLE:
		return "NDX_E_NETWORK_UNREACHABLE";
	case NDX_E_HOST_UNREACHABLE:
		return "NDX_E_HOST_UNREACHABLE";
	case NDX_E_CONNECTION_REFUSED:
		return "NDX_E_CONNECTION_REFUSED";
	case NDX_E_CONNECTION_INVALID:
		return "NDX_E_CONNECTION_INVALID";
	case NDX_E_CONNECTION_ACTIVE:
		return "NDX_E_CONNECTION_ACTIVE";
	case NDX_E_CONNECTION_ABORTED:
		return "NDX_E_CONNECTION_ABORTED";
	case NDX_E_IO_TIMEOUT:
		return "NDX_E_IO_TIMEOUT";
	case NDX_E_CANCELED:
		return "NDX_E_CANCELED";
	case NDX_E_REMOTE_ERROR:
		return "NDX_E_REMOTE_ERROR";
	case NDX_E_NO_MEMORY:
		return "NDX_E_NO_MEMORY";
	case NDX_E_INSUFFICIENT_RESOURCES:
		return "NDX_E_INSUFFICIENT_RESOURCES";
	case NDX_E_DEVICE_NOT_READY:
		return "NDX_E_DEVICE_NOT_READY";
	case NDX_E_DEVICE_REMOVED:
		return "NDX_E_DEVICE_REMOVED";
	case NDX_E_INTERNAL_ERROR:
		return "NDX_E_INTERNAL_ERROR";
	case NDX_E_UNSUCCESSFUL:
		return "NDX_E_UNSUCCESSFUL";
	case NDX_E_ACCESS_DENIED:
		return "NDX_E_ACCESS_DENIED";
	}
	return "NDX_?";
}

static const char *const failures[] = {
	[-NDX_E_INVALID_PARAMETER] = "an argument breaks the documented precondition of the call",
	[-NDX_E_INVALID_BUFFER_SIZE] = "the private data are too long, or the region has length 0",
	[-NDX_E_BUFFER_OVERFLOW] = "the data do not fit into the buffer given",
	[-NDX_E_DATA_OVERRUN] = "more scatter/gather entries or bytes than one request may have",
	[-NDX_E_NO_MORE_ENTRIES] = "the queue is full; poll completions, then post again",
	[-NDX_E_ACCESS_VIOLATION] =
		"the memory is not registered, not mapped, or registered without this right",
	[-NDX_E_INVALID_DEVICE_REQUEST] =
		"the work request makes no sense, as invalidating an unbound window",
	[-NDX_E_INVALID_DEVICE_STATE] = "the object is not in the state that the call needs",
	[-NDX_E_DEVICE_BUSY] = "the object is in use, as a region with windows bound to it",
	[-NDX_E_NOT_SUPPORTED] =
		"this adapter cannot do that; ndx_adapter_query() tells what it can",
	[-NDX_E_WOULD_BLOCK] = "the call would block, and it was made in a callback of an adapter",
	[-NDX_E_NOT_FOUND] =
		"there is no such provider, device, interface, plugin, variant or directory",
	[-NDX_E_INVALID_CONFIG] =
		("a setting is wrong (URI, environment, INI file, parameter of a plugin), or "
                 "two ends do not match"),
	[-NDX_E_ABI_MISMATCH] =
		"the provider or plugin was built against another version of the interface",
	[-NDX_E_INVALID_ADDRESS] = "no adapter has this address, or the provider refuses it",
	[-NDX_E_SHARING_VIOLATION] = "the local port is in use",
	[-NDX_E_ADDRESS_ALREADY_EXISTS] = "the same connection exists already",
	[-NDX_E_ADDRESS_ALREADY_ASSOCIATED] = "the object is bound to an address already",
	[-NDX_E_TOO_MANY_ADDRESSES] = "there is no free local port left",
	[-NDX_E_BAD_NETWORK_NAME] = "the unspecified address is no destination",
	[-NDX_E_NETWORK_UNREACHABLE] = "there is no route to the address",
	[-NDX_E_HOST_UNREACHABLE] = "the host does not answer",
	[-NDX_E_CONNECTION_REFUSED] =
		"no program listens there, its backlog is full, or the peer rejected",
	[-NDX_E_CONNECTION_INVALID] = "there is no connection, and no attempt at one",
	[-NDX_E_CONNECTION_ACTIVE] =
		("the queue pair or connector is connecting, connected or was before: it "
                 "serves once"),
	[-NDX_E_CONNECTION_ABORTED] = "the connection, or the attempt, ended without a goodbye",
	[-NDX_E_IO_TIMEOUT] = "the peer did not answer, or posted no receive, in time",
	[-NDX_E_CANCELED] =
		"cancelled by the caller, or ended with the connection of its queue pair",
	[-NDX_E_REMOTE_ERROR] = "the request caused an error at the peer",
	[-NDX_E_NO_MEMORY] = "out of memory",
	[-NDX_E_INSUFFICIENT_RESOURCES] = "a limit of the device or of the system is reached",
	[-NDX_E_DEVICE_NOT_READY] =
		"the device is there but its driver, port or rights do not let it work",
	[-NDX_E_DEVICE_REMOVED] = "the device is gone; only closing works",
	[-NDX_E_INTERNAL_ERROR] = "the device or its driver failed",
	[-NDX_E_UNSUCCESSFUL] = "failed for a reason that has no code of its own",
	[-NDX_E_ACCESS_DENIED] =
		"the system does not allow this process to do that, as a port below 1024",
};

const char *ndx_status_text(enum ndx_status status)
{
	const unsigned index = 0U - (unsigned)status;

	if (status == NDX_OK)
		return "done";
	if (status == NDX_PENDING)
		return "accepted; the outcome comes as a completion";
	if (status < 0 && index < sizeof(failures) / sizeof(failures[0]))
		return failures[index];
	return "not a status of this library";
}
