// SPDX-License-Identifier: BSD-2-Clause
// The adapter, and the functions by which programs find one.
#include <vector>

#include <netinet/in.h>

#include "com_objects.hpp"

namespace nd
{

namespace
{

/// Programs offer a buffer and its length; too small a buffer learns how much it takes.
template <class Length, class T> HRESULT offer(T *out, Length *length, std::size_t needed)
{
	if (out != nullptr && *length >= needed) {
		*length = static_cast<Length>(needed);
		return ND_SUCCESS;
	}
	*length = static_cast<Length>(needed);
	return ND_BUFFER_OVERFLOW;
}

std::size_t length_of(const sockaddr_storage &address)
{
	return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

/// The list's head and pointers first, the addresses behind, all in the caller's buffer.
template <class Length>
HRESULT write_list(const std::vector<sockaddr_storage> &addresses, SOCKET_ADDRESS_LIST *list,
                   Length *length)
{
	const std::size_t head =
		offsetof(SOCKET_ADDRESS_LIST, Address) + addresses.size() * sizeof(SOCKET_ADDRESS);
	const std::size_t needed = head + addresses.size() * sizeof(sockaddr_storage);
	const HRESULT result = offer(list, length, needed);
	char *body;

	if (result != ND_SUCCESS)
		return result;
	body = reinterpret_cast<char *>(list) + head;
	list->iAddressCount = static_cast<std::int32_t>(addresses.size());
	for (std::size_t i = 0; i < addresses.size(); i++) {
		std::memcpy(body, &addresses[i], sizeof(addresses[i]));
		list->Address[i].lpSockaddr = reinterpret_cast<sockaddr *>(body);
		list->Address[i].iSockaddrLength =
			static_cast<std::int32_t>(length_of(addresses[i]));
		body += sizeof(addresses[i]);
	}
	return ND_SUCCESS;
}

std::vector<sockaddr_storage> addresses_of(ndx_adapter *adapter)
{
	std::size_t count = 0;

	(void)ndx_adapter_query_addresses(adapter, nullptr, &count);
	std::vector<sockaddr_storage> addresses(count);
	if (ndx_adapter_query_addresses(adapter, addresses.data(), &count) != NDX_OK)
		count = 0;
	addresses.resize(count);
	return addresses;
}

ULONG flags_of(const ndx_adapter_info &info)
{
	static const struct {
		std::uint64_t capability;
		ULONG flag;
	} pairs[] = {
		{NDX_CAP_IN_ORDER_DMA, FLAG_IN_ORDER_DMA},
		{NDX_CAP_INTERRUPT_MODERATION, FLAG_INTERRUPT_MODERATION},
		{NDX_CAP_CQ_RESIZE, FLAG_CQ_RESIZE},
		{NDX_CAP_LOOPBACK, FLAG_LOOPBACK},
	};
	ULONG flags = 0;

	for (const auto &pair : pairs) {
		if ((info.capabilities & pair.capability) != 0)
			flags |= pair.flag;
	}
	return flags;
}

ndx_cq *queue_of(IUnknown *object)
{
	const auto *cq = ours<CompletionQueue>(object);

	return cq != nullptr ? cq->handle() : nullptr;
}

/// What both ways of making a queue pair have in common.
HRESULT make_pair(ndx_adapter *adapter, const ndx_qp_attr &attr, const GUID &iid, void **out)
{
	ndx_qp *qp;
	ndx_status status;

	if (attr.receive_cq == nullptr)
		return invalid_parameter(2);
	if (attr.initiator_cq == nullptr)
		return invalid_parameter(3);
	status = ndx_qp_create(adapter, &attr, &qp);
	if (status != NDX_OK)
		return to_hresult(status);
	return give<QueuePair>(iid, out, QpHandle(qp));
}

} // namespace

HRESULT Adapter::CreateOverlappedFile(HANDLE *file)
{
	*file = new (std::nothrow) OverlappedFile;
	return *file != nullptr ? ND_SUCCESS : ND_NO_MEMORY;
}

HRESULT Adapter::Query(ND2_ADAPTER_INFO *out, ULONG *length)
{
	const HRESULT result = offer(out, length, sizeof(*out));
	ndx_adapter_info info{};

	if (result != ND_SUCCESS)
		return result;
	info.size = sizeof(info);
	const ndx_status status = ndx_adapter_query(adapter_.get(), &info);
	if (status != NDX_OK)
		return to_hresult(status);
	out->VendorId = static_cast<std::uint16_t>(info.vendor_id);
	out->DeviceId = static_cast<std::uint16_t>(info.device_id);
	out->AdapterId = info.adapter_id;
	out->MaxRegistrationSize = info.max_registration_size;
	out->MaxWindowSize = info.max_window_size;
	out->MaxInitiatorSge = info.max_initiator_sge;
	out->MaxReceiveSge = info.max_receive_sge;
	out->MaxReadSge = info.max_read_sge;
	out->MaxTransferLength = info.max_transfer_length;
	out->MaxInlineDataSize = info.max_inline_data_size;
	out->MaxInboundReadLimit = info.max_inbound_read_limit;
	out->MaxOutboundReadLimit = info.max_outbound_read_limit;
	out->MaxReceiveQueueDepth = info.max_receive_queue_depth;
	out->MaxInitiatorQueueDepth = info.max_initiator_queue_depth;
	out->MaxSharedReceiveQueueDepth = info.max_shared_receive_queue_depth;
	out->MaxCompletionQueueDepth = info.max_completion_queue_depth;
	out->InlineRequestThreshold = info.inline_request_threshold;
	out->LargeRequestThreshold = info.large_request_threshold;
	out->MaxCallerData = info.max_caller_data;
	out->MaxCalleeData = info.max_callee_data;
	out->AdapterFlags = flags_of(info);
	return ND_SUCCESS;
}

HRESULT Adapter::QueryAddressList(SOCKET_ADDRESS_LIST *list, ULONG *length)
{
	return write_list(addresses_of(adapter_.get()), list, length);
}

HRESULT Adapter::CreateCompletionQueue(const GUID &iid, HANDLE file, ULONG depth, USHORT group,
                                       KAFFINITY affinity, void **out)
{
	ndx_cq_attr attr;
	ndx_status status;
	ndx_cq *cq;

	ndx_cq_attr_init(&attr);
	attr.depth = depth;
	attr.group = group;
	attr.affinity = affinity;
	status = ndx_cq_create(adapter_.get(), &attr, &cq);
	if (status == NDX_E_INVALID_PARAMETER)
		return invalid_parameter(3);
	if (status != NDX_OK)
		return to_hresult(status);
	return give<CompletionQueue>(iid, out, file, CqHandle(cq));
}

HRESULT Adapter::CreateMemoryRegion(const GUID &iid, HANDLE file, void **out)
{
	ndx_mr *mr;
	const ndx_status status = ndx_mr_create(adapter_.get(), &mr);

	if (status != NDX_OK)
		return to_hresult(status);
	return give<MemoryRegion>(iid, out, file, MrHandle(mr));
}

HRESULT Adapter::CreateMemoryWindow(const GUID &iid, void **out)
{
	ndx_mw *mw;
	const ndx_status status = ndx_mw_create(adapter_.get(), &mw);

	if (status != NDX_OK)
		return to_hresult(status);
	return give<MemoryWindow>(iid, out, MwHandle(mw));
}

HRESULT Adapter::CreateSharedReceiveQueue(const GUID &iid, HANDLE file, ULONG depth, ULONG max_sge,
                                          ULONG threshold, USHORT group, KAFFINITY affinity,
                                          void **out)
{
	ndx_srq_attr attr;
	ndx_status status;
	ndx_srq *srq;

	ndx_srq_attr_init(&attr);
	attr.depth = depth;
	attr.max_sge = max_sge;
	attr.threshold = threshold;
	attr.group = group;
	attr.affinity = affinity;
	status = ndx_srq_create(adapter_.get(), &attr, &srq);
	if (status == NDX_E_INVALID_PARAMETER)
		return invalid_parameter(3);
	if (status != NDX_OK)
		return to_hresult(status);
	return give<SharedReceiveQueue>(iid, out, file, SrqHandle(srq));
}

HRESULT Adapter::CreateQueuePair(const GUID &iid, IUnknown *receive_cq, IUnknown *initiator_cq,
                                 void *context, ULONG receive_depth, ULONG initiator_depth,
                                 ULONG receive_sge, ULONG initiator_sge, ULONG inline_size,
                                 void **out)
{
	ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = queue_of(receive_cq);
	attr.initiator_cq = queue_of(initiator_cq);
	attr.context = context;
	attr.receive_depth = receive_depth;
	attr.initiator_depth = initiator_depth;
	attr.max_receive_sge = receive_sge;
	attr.max_initiator_sge = initiator_sge;
	attr.inline_size = inline_size;
	return make_pair(adapter_.get(), attr, iid, out);
}

HRESULT Adapter::CreateQueuePairWithSrq(const GUID &iid, IUnknown *receive_cq,
                                        IUnknown *initiator_cq, IUnknown *srq, void *context,
                                        ULONG initiator_depth, ULONG initiator_sge,
                                        ULONG inline_size, void **out)
{
	const auto *queue = ours<SharedReceiveQueue>(srq);
	ndx_qp_attr attr;

	if (queue == nullptr)
		return invalid_parameter(4);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = queue_of(receive_cq);
	attr.initiator_cq = queue_of(initiator_cq);
	attr.srq = queue->handle();
	attr.context = context;
	attr.initiator_depth = initiator_depth;
	attr.max_initiator_sge = initiator_sge;
	attr.inline_size = inline_size;
	return make_pair(adapter_.get(), attr, iid, out);
}

HRESULT Adapter::CreateConnector(const GUID &iid, HANDLE file, void **out)
{
	ndx_connector *connector;
	const ndx_status status = ndx_connector_create(adapter_.get(), nullptr, &connector);

	if (status != NDX_OK)
		return to_hresult(status);
	return give<Connector>(iid, out, file, ConnectorHandle(connector));
}

HRESULT Adapter::CreateListener(const GUID &iid, HANDLE file, void **out)
{
	ndx_listener *listener;
	const ndx_status status = ndx_listener_create(adapter_.get(), &listener);

	if (status != NDX_OK)
		return to_hresult(status);
	return give<Listener>(iid, out, file, ListenerHandle(listener));
}

HRESULT NdOpenAdapter(const GUID &iid, const sockaddr *address, SIZE_T length, void **out)
{
	char uri[128];
	std::size_t size = sizeof(uri);
	ndx_adapter *adapter;
	// The route to an address of this host leads to the adapter that has it.
	ndx_status status =
		ndx_resolve(address, static_cast<socklen_t>(length), uri, &size, nullptr);

	if (status == NDX_OK)
		status = ndx_adapter_open(uri, &adapter);
	if (status != NDX_OK)
		return to_hresult(status);
	return give<Adapter>(iid, out, AdapterHandle(adapter));
}

HRESULT NdCheckAddress(const sockaddr *address, SIZE_T length)
{
	char uri[128];
	std::size_t size = sizeof(uri);

	return to_hresult(
		ndx_resolve(address, static_cast<socklen_t>(length), uri, &size, nullptr));
}

HRESULT NdResolveAddress(const sockaddr *remote, SIZE_T remote_length, sockaddr *local,
                         SIZE_T *length)
{
	char uri[128];
	std::size_t size = sizeof(uri);
	sockaddr_storage found{};
	const ndx_status status =
		ndx_resolve(remote, static_cast<socklen_t>(remote_length), uri, &size, &found);
	HRESULT result;

	if (status != NDX_OK)
		return to_hresult(status);
	result = offer(local, length, length_of(found));
	if (result == ND_SUCCESS)
		std::memcpy(local, &found, length_of(found));
	return result;
}

HRESULT NdQueryAddressList(SOCKET_ADDRESS_LIST *list, SIZE_T *length)
{
	std::vector<sockaddr_storage> all;
	ndx_adapter_entry *entries;
	std::size_t count;
	const ndx_status status = ndx_adapter_list(&entries, &count);

	if (status != NDX_OK)
		return to_hresult(status);
	for (std::size_t i = 0; i < count; i++) {
		ndx_adapter *opened;

		if (entries[i].state != NDX_OK ||
		    ndx_adapter_open(entries[i].uri, &opened) != NDX_OK)
			continue;
		const AdapterHandle adapter(opened);
		const std::vector<sockaddr_storage> own = addresses_of(opened);
		all.insert(all.end(), own.begin(), own.end());
	}
	ndx_adapter_list_free(entries);
	return write_list(all, list, length);
}

} // namespace nd
