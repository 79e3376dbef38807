/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and meanings of the status codes. */
#include <ndx/status.h>

/* No default in either switch: -Wswitch-enum points here when a code is added. */

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
	}
	return "NDX_?";
}

const char *ndx_status_text(enum ndx_status status)
{
	switch (status) {
	case NDX_OK:
		return "done";
	case NDX_PENDING:
		return "accepted; the outcome comes as a completion";
	case NDX_E_INVALID_PARAMETER:
		return "an argument breaks the documented precondition of the call";
	case NDX_E_INVALID_BUFFER_SIZE:
		return "the private data are too long, or the region has length 0";
	case NDX_E_BUFFER_OVERFLOW:
		return "the data do not fit into the buffer given";
	case NDX_E_DATA_OVERRUN:
		return "more scatter/gather entries or bytes than one request may have";
	case NDX_E_NO_MORE_ENTRIES:
		return "the queue is full; poll completions, then post again";
	case NDX_E_ACCESS_VIOLATION:
		return "the memory is not registered, not mapped, or registered without this right";
	case NDX_E_INVALID_DEVICE_REQUEST:
		return "the work request makes no sense, as invalidating an unbound window";
	case NDX_E_INVALID_DEVICE_STATE:
		return "the object is not in the state that the call needs";
	case NDX_E_DEVICE_BUSY:
		return "the object is in use, as a region with windows bound to it";
	case NDX_E_NOT_SUPPORTED:
		return "this adapter cannot do that; ndx_adapter_query() tells what it can";
	case NDX_E_WOULD_BLOCK:
		return "the call would block, and it was made in a callback of an adapter";
	case NDX_E_NOT_FOUND:
		return "there is no such provider, device, interface, plugin, variant or directory";
	case NDX_E_INVALID_CONFIG:
		return "a setting is wrong (URI, environment, INI file, parameter of a plugin), or "
		       "two ends do not match";
	case NDX_E_ABI_MISMATCH:
		return "the provider or plugin was built against another version of the interface";
	case NDX_E_INVALID_ADDRESS:
		return "no adapter has this address, or the provider refuses it";
	case NDX_E_SHARING_VIOLATION:
		return "the local port is in use";
	case NDX_E_ADDRESS_ALREADY_EXISTS:
		return "the same connection exists already";
	case NDX_E_ADDRESS_ALREADY_ASSOCIATED:
		return "the object is bound to an address already";
	case NDX_E_TOO_MANY_ADDRESSES:
		return "there is no free local port left";
	case NDX_E_BAD_NETWORK_NAME:
		return "the unspecified address is no destination";
	case NDX_E_NETWORK_UNREACHABLE:
		return "there is no route to the address";
	case NDX_E_HOST_UNREACHABLE:
		return "the host does not answer";
	case NDX_E_CONNECTION_REFUSED:
		return "no program listens there, its backlog is full, or the peer rejected";
	case NDX_E_CONNECTION_INVALID:
		return "there is no connection, and no attempt at one";
	case NDX_E_CONNECTION_ACTIVE:
		return "the queue pair or connector is connecting, connected or was before: it "
		       "serves once";
	case NDX_E_CONNECTION_ABORTED:
		return "the connection, or the attempt, ended without a goodbye";
	case NDX_E_IO_TIMEOUT:
		return "the peer did not answer, or posted no receive, in time";
	case NDX_E_CANCELED:
		return "cancelled by the caller, or ended with the connection of its queue pair";
	case NDX_E_REMOTE_ERROR:
		return "the request caused an error at the peer";
	case NDX_E_NO_MEMORY:
		return "out of memory";
	case NDX_E_INSUFFICIENT_RESOURCES:
		return "a limit of the device or of the system is reached";
	case NDX_E_DEVICE_NOT_READY:
		return "the device is there but its driver, port or rights do not let it work";
	case NDX_E_DEVICE_REMOVED:
		return "the device is gone; only closing works";
	case NDX_E_INTERNAL_ERROR:
		return "the device or its driver failed";
	case NDX_E_UNSUCCESSFUL:
		return "failed for a reason that has no code of its own; see ndx_last_error()";
	}
	return "not a status of this library";
}
