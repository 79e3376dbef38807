// SPDX-License-Identifier: BSD-2-Clause
// The calls of the facade. Nothing here waits, polls or keeps state of connections: that the
// library does. What remains is spelling.
#include <algorithm>
#include <vector>

#include "com_objects.hpp"

namespace nd
{

namespace
{

HRESULT copy_length(ndx_status status, socklen_t got, ULONG *length)
{
	*length = got;
	return to_hresult(status);
}

/// An address getter of the library, with the length as programs pass it.
template <class Handle, class Getter>
HRESULT get_address(Handle *handle, Getter getter, sockaddr *address, ULONG *length)
{
	socklen_t room = *length;
	const ndx_status status = getter(handle, address, &room);

	return copy_length(status, room, length);
}

/// Flags outside those a call takes are this call's n-th argument being wrong.
HRESULT posted(ndx_status status, std::uint32_t flags_position)
{
	if (status == NDX_E_INVALID_PARAMETER)
		return invalid_parameter(flags_position);
	return to_hresult(status);
}

} // namespace

HRESULT CompletionQueue::CancelOverlappedRequests()
{
	return to_hresult(ndx_cq_cancel(cq_.get()));
}

HRESULT CompletionQueue::GetNotifyAffinity(USHORT *group, KAFFINITY *affinity)
{
	std::uint64_t mask = 0;
	const ndx_status status = ndx_cq_get_notify_affinity(cq_.get(), group, &mask);

	if (status == NDX_OK)
		*affinity = static_cast<KAFFINITY>(mask);
	return to_hresult(status);
}

HRESULT CompletionQueue::Resize(ULONG depth)
{
	return to_hresult(ndx_cq_resize(cq_.get(), depth));
}

HRESULT CompletionQueue::Notify(ULONG type, OVERLAPPED *overlapped)
{
	return start(overlapped, [&](ndx_overlapped *ov) {
		return ndx_cq_notify(cq_.get(), static_cast<ndx_cq_notify_type>(type), ov);
	});
}

ULONG CompletionQueue::GetResults(ND2_RESULT results[], ULONG count)
{
	ndx_result batch[16];
	ULONG done = 0;

	while (done < count) {
		const ULONG wanted = count - done < 16 ? count - done : 16;
		const std::size_t got = ndx_cq_get_results(cq_.get(), batch, wanted);

		for (std::size_t i = 0; i < got; i++) {
			ND2_RESULT &result = results[done++];

			result.Status = to_hresult(batch[i].status);
			result.BytesTransferred = batch[i].bytes_transferred;
			result.QueuePairContext = batch[i].queue_pair_context;
			result.RequestContext = batch[i].request_context;
			result.RequestType = batch[i].request_type;
		}
		if (got < wanted)
			break;
	}
	return done;
}

HRESULT SharedReceiveQueue::CancelOverlappedRequests()
{
	return to_hresult(ndx_srq_cancel(srq_.get()));
}

HRESULT SharedReceiveQueue::GetNotifyAffinity(USHORT *group, KAFFINITY *affinity)
{
	std::uint64_t mask = 0;
	const ndx_status status = ndx_srq_get_notify_affinity(srq_.get(), group, &mask);

	if (status == NDX_OK)
		*affinity = static_cast<KAFFINITY>(mask);
	return to_hresult(status);
}

HRESULT SharedReceiveQueue::Modify(ULONG depth, ULONG threshold)
{
	return to_hresult(ndx_srq_modify(srq_.get(), depth, threshold));
}

HRESULT SharedReceiveQueue::Notify(OVERLAPPED *overlapped)
{
	return start(overlapped,
	             [&](ndx_overlapped *ov) { return ndx_srq_notify(srq_.get(), ov); });
}

HRESULT SharedReceiveQueue::Receive(void *context, const ND2_SGE sge[], ULONG count)
{
	return to_hresult(ndx_srq_receive(srq_.get(), context, sges(sge), count));
}

HRESULT MemoryRegion::CancelOverlappedRequests()
{
	return to_hresult(ndx_mr_cancel(mr_.get()));
}

HRESULT MemoryRegion::Register(const void *buffer, SIZE_T length, ULONG flags,
                               OVERLAPPED *overlapped)
{
	return start(overlapped, [&](ndx_overlapped *ov) {
		return ndx_mr_register(mr_.get(), const_cast<void *>(buffer), length,
		                       flags & ~MR_DO_NOT_SECURE_VM, ov);
	});
}

HRESULT MemoryRegion::Deregister(OVERLAPPED *overlapped)
{
	return start(overlapped,
	             [&](ndx_overlapped *ov) { return ndx_mr_deregister(mr_.get(), ov); });
}

std::uint32_t MemoryRegion::GetLocalToken()
{
	return ndx_mr_get_local_token(mr_.get());
}

std::uint32_t MemoryRegion::GetRemoteToken()
{
	return ndx_mr_get_remote_token(mr_.get());
}

std::uint32_t MemoryWindow::GetRemoteToken()
{
	return ndx_mw_get_remote_token(mw_.get());
}

HRESULT QueuePair::Flush()
{
	return to_hresult(ndx_qp_flush(qp_.get()));
}

HRESULT QueuePair::Send(void *context, const ND2_SGE sge[], ULONG count, ULONG flags)
{
	return posted(ndx_qp_send(qp_.get(), context, sges(sge), count, flags), 4);
}

HRESULT QueuePair::Receive(void *context, const ND2_SGE sge[], ULONG count)
{
	return to_hresult(ndx_qp_receive(qp_.get(), context, sges(sge), count));
}

HRESULT QueuePair::Bind(void *context, IUnknown *region, IUnknown *window, const void *buffer,
                        SIZE_T length, ULONG flags)
{
	const auto *mr = ours<MemoryRegion>(region);
	const auto *mw = ours<MemoryWindow>(window);

	if (mr == nullptr || mw == nullptr)
		return ND_INVALID_PARAMETER;
	return posted(ndx_qp_bind(qp_.get(), context, mr->handle(), mw->handle(),
	                          const_cast<void *>(buffer), length, flags),
	              6);
}

HRESULT QueuePair::Invalidate(void *context, IUnknown *window, ULONG flags)
{
	const auto *mw = ours<MemoryWindow>(window);

	if (mw == nullptr)
		return ND_INVALID_PARAMETER;
	return posted(ndx_qp_invalidate(qp_.get(), context, mw->handle(), flags), 3);
}

HRESULT QueuePair::Read(void *context, const ND2_SGE sge[], ULONG count, std::uint64_t address,
                        std::uint32_t token, ULONG flags)
{
	return posted(ndx_qp_read(qp_.get(), context, sges(sge), count, address, token, flags), 6);
}

HRESULT QueuePair::Write(void *context, const ND2_SGE sge[], ULONG count, std::uint64_t address,
                         std::uint32_t token, ULONG flags)
{
	return posted(ndx_qp_write(qp_.get(), context, sges(sge), count, address, token, flags), 6);
}

HRESULT Connector::CancelOverlappedRequests()
{
	return to_hresult(ndx_connector_cancel(connector_.get()));
}

HRESULT Connector::Bind(const sockaddr *address, ULONG length)
{
	return to_hresult(ndx_connector_bind(connector_.get(), address, length));
}

static ndx_connect_attr connect_attr(ULONG inbound, ULONG outbound, const void *data,
                                     ULONG data_length)
{
	ndx_connect_attr attr;

	ndx_connect_attr_init(&attr);
	attr.inbound_read_limit = inbound;
	attr.outbound_read_limit = outbound;
	attr.private_data = data;
	attr.private_data_len = data_length;
	return attr;
}

HRESULT Connector::Connect(IUnknown *qp, const sockaddr *address, ULONG length, ULONG inbound,
                           ULONG outbound, const void *data, ULONG data_length,
                           OVERLAPPED *overlapped)
{
	const auto *pair = ours<QueuePair>(qp);

	if (pair == nullptr)
		return ND_INVALID_PARAMETER;
	return start(overlapped, [&](ndx_overlapped *ov) {
		const auto attr = connect_attr(inbound, outbound, data, data_length);

		return ndx_connector_connect(connector_.get(), pair->handle(), address, length,
		                             &attr, ov);
	});
}

HRESULT Connector::CompleteConnect(OVERLAPPED *overlapped)
{
	return start(overlapped, [&](ndx_overlapped *ov) {
		return ndx_connector_complete_connect(connector_.get(), ov);
	});
}

HRESULT Connector::Accept(IUnknown *qp, ULONG inbound, ULONG outbound, const void *data,
                          ULONG data_length, OVERLAPPED *overlapped)
{
	const auto *pair = ours<QueuePair>(qp);

	if (pair == nullptr)
		return ND_INVALID_PARAMETER;
	return start(overlapped, [&](ndx_overlapped *ov) {
		const auto attr = connect_attr(inbound, outbound, data, data_length);

		return ndx_connector_accept(connector_.get(), pair->handle(), &attr, ov);
	});
}

HRESULT Connector::Reject(const void *data, ULONG length)
{
	return to_hresult(ndx_connector_reject(connector_.get(), data, length));
}

HRESULT Connector::GetReadLimits(ULONG *inbound, ULONG *outbound)
{
	return to_hresult(ndx_connector_get_read_limits(connector_.get(), inbound, outbound));
}

HRESULT Connector::GetPrivateData(void *data, ULONG *length)
{
	const std::size_t room = *length;
	std::size_t there = room;
	ndx_status status = ndx_connector_get_private_data(connector_.get(), data, &there);

	*length = static_cast<ULONG>(there);
	if (status != NDX_E_BUFFER_OVERFLOW || room == 0)
		return to_hresult(status);
	// NetworkDirect copies what fits.
	std::vector<unsigned char> all(there);
	status = ndx_connector_get_private_data(connector_.get(), all.data(), &there);
	if (status != NDX_OK)
		return to_hresult(status);
	std::copy_n(all.data(), room, static_cast<unsigned char *>(data));
	return to_hresult(NDX_E_BUFFER_OVERFLOW);
}

HRESULT Connector::GetLocalAddress(sockaddr *address, ULONG *length)
{
	return get_address(connector_.get(), ndx_connector_get_local_address, address, length);
}

HRESULT Connector::GetPeerAddress(sockaddr *address, ULONG *length)
{
	return get_address(connector_.get(), ndx_connector_get_peer_address, address, length);
}

HRESULT Connector::NotifyDisconnect(OVERLAPPED *overlapped)
{
	return start(overlapped, [&](ndx_overlapped *ov) {
		return ndx_connector_notify_disconnect(connector_.get(), ov);
	});
}

HRESULT Connector::Disconnect(OVERLAPPED *overlapped)
{
	return start(overlapped, [&](ndx_overlapped *ov) {
		return ndx_connector_disconnect(connector_.get(), ov);
	});
}

HRESULT Listener::CancelOverlappedRequests()
{
	return to_hresult(ndx_listener_cancel(listener_.get()));
}

HRESULT Listener::Bind(const sockaddr *address, ULONG length)
{
	return to_hresult(ndx_listener_bind(listener_.get(), address, length));
}

HRESULT Listener::Listen(ULONG backlog)
{
	return to_hresult(ndx_listener_listen(listener_.get(), backlog));
}

HRESULT Listener::GetLocalAddress(sockaddr *address, ULONG *length)
{
	return get_address(listener_.get(), ndx_listener_get_local_address, address, length);
}

HRESULT Listener::GetConnectionRequest(IUnknown *connector, OVERLAPPED *overlapped)
{
	const auto *taker = ours<Connector>(connector);

	if (taker == nullptr)
		return ND_INVALID_PARAMETER;
	return start(overlapped, [&](ndx_overlapped *ov) {
		return ndx_listener_get_connection_request(listener_.get(), taker->handle(), ov);
	});
}

} // namespace nd
