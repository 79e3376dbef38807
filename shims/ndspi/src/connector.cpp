/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors and listeners. */
#include "objects.h"

namespace nd
{

namespace
{

constexpr std::size_t longest_private_data = 1024; /* no transport has more */

ndx_connect_attr connect_attr(ULONG inbound, ULONG outbound, const VOID *data, ULONG length)
{
	ndx_connect_attr attr;

	ndx_connect_attr_init(&attr);
	attr.inbound_read_limit = inbound;
	attr.outbound_read_limit = outbound;
	attr.private_data = data;
	attr.private_data_len = length;
	return attr;
}

template <class Handle, class Getter>
HRESULT address_of(Handle *handle, Getter getter, struct sockaddr *address, ULONG *length)
{
	socklen_t room;
	ndx_status status;

	if (length == nullptr)
		return ND_INVALID_PARAMETER_2;
	room = address != nullptr ? *length : 0;
	status = getter(handle, address, &room);
	if (status == NDX_OK || status == NDX_E_BUFFER_OVERFLOW)
		*length = room;
	return hresult_of(status);
}

} // namespace

bool Connector::has(REFIID iid) const
{
	return iid == IID_IND2Connector || iid == IID_IND2Overlapped;
}

HRESULT Connector::CancelOverlappedRequests()
{
	return hresult_of(ndx_connector_cancel(connector_));
}

HRESULT Connector::Bind(const struct sockaddr *address, ULONG length)
{
	return hresult_of(ndx_connector_bind(connector_, address, length));
}

HRESULT Connector::Connect(IUnknown *qp, const struct sockaddr *address, ULONG length,
                           ULONG inbound, ULONG outbound, const VOID *data, ULONG data_length,
                           OVERLAPPED *overlapped)
{
	const auto attr = connect_attr(inbound, outbound, data, data_length);
	const Ours<QueuePair> pair(qp, adapter);

	if (!pair)
		return invalid_parameter(1);
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_connector_connect(connector_, pair->handle(), address, length, &attr,
		                             ov);
	});
}

HRESULT Connector::CompleteConnect(OVERLAPPED *overlapped)
{
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_connector_complete_connect(connector_, ov);
	});
}

HRESULT Connector::Accept(IUnknown *qp, ULONG inbound, ULONG outbound, const VOID *data,
                          ULONG data_length, OVERLAPPED *overlapped)
{
	const auto attr = connect_attr(inbound, outbound, data, data_length);
	const Ours<QueuePair> pair(qp, adapter);

	if (!pair)
		return invalid_parameter(1);
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_connector_accept(connector_, pair->handle(), &attr, ov);
	});
}

HRESULT Connector::Reject(const VOID *data, ULONG length)
{
	return hresult_of(ndx_connector_reject(connector_, data, length));
}

HRESULT Connector::GetReadLimits(ULONG *inbound, ULONG *outbound)
{
	ULONG unwanted;

	return hresult_of(
		ndx_connector_get_read_limits(connector_, inbound != nullptr ? inbound : &unwanted,
	                                      outbound != nullptr ? outbound : &unwanted));
}

HRESULT Connector::GetPrivateData(VOID *data, ULONG *length)
{
	unsigned char all[longest_private_data];
	std::size_t there = sizeof(all);
	std::size_t room;
	ndx_status status;

	if (length == nullptr)
		return ND_INVALID_PARAMETER_2;
	status = ndx_connector_get_private_data(connector_, all, &there);
	if (status != NDX_OK)
		return hresult_of(status);
	room = data != nullptr ? *length : 0;
	*length = static_cast<ULONG>(there);
	/* unlike NDX, NetworkDirect copies what fits */
	if (room > 0)
		std::memcpy(data, all, there < room ? there : room);
	return there <= room ? ND_SUCCESS : ND_BUFFER_OVERFLOW;
}

HRESULT Connector::GetLocalAddress(struct sockaddr *address, ULONG *length)
{
	return address_of(connector_, ndx_connector_get_local_address, address, length);
}

HRESULT Connector::GetPeerAddress(struct sockaddr *address, ULONG *length)
{
	return address_of(connector_, ndx_connector_get_peer_address, address, length);
}

HRESULT Connector::NotifyDisconnect(OVERLAPPED *overlapped)
{
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_connector_notify_disconnect(connector_, ov);
	});
}

/* A disconnect of NetworkDirect does not fail once there was a connection: programs end if it does.
 */
HRESULT Connector::Disconnect(OVERLAPPED *overlapped)
{
	return start_call(
		overlapped, file(),
		[&](ndx_overlapped *ov) { return ndx_connector_disconnect(connector_, ov); }, true);
}

bool Listener::has(REFIID iid) const
{
	return iid == IID_IND2Listener || iid == IID_IND2Overlapped;
}

HRESULT Listener::CancelOverlappedRequests()
{
	return hresult_of(ndx_listener_cancel(listener_));
}

HRESULT Listener::Bind(const struct sockaddr *address, ULONG length)
{
	return hresult_of(ndx_listener_bind(listener_, address, length));
}

HRESULT Listener::Listen(ULONG backlog)
{
	return hresult_of(ndx_listener_listen(listener_, backlog));
}

HRESULT Listener::GetLocalAddress(struct sockaddr *address, ULONG *length)
{
	return address_of(listener_, ndx_listener_get_local_address, address, length);
}

HRESULT Listener::GetConnectionRequest(IUnknown *connector, OVERLAPPED *overlapped)
{
	const Ours<Connector> taker(connector, adapter);

	if (!taker)
		return invalid_parameter(1);
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_listener_get_connection_request(listener_, taker->handle(), ov);
	});
}

} // namespace nd
