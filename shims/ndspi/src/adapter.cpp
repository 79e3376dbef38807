/* SPDX-License-Identifier: BSD-2-Clause */
#include "addresses.h"
#include "objects.h"

namespace nd
{

namespace
{

ULONG flags_of(std::uint64_t capabilities)
{
	static const struct {
		std::uint64_t capability;
		ULONG flag;
	} pairs[] = {
		{NDX_CAP_IN_ORDER_DMA, ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED},
		{NDX_CAP_INTERRUPT_MODERATION, ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED},
		{NDX_CAP_CQ_RESIZE, ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED},
		{NDX_CAP_LOOPBACK, ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED},
	};
	ULONG flags = 0;

	for (const auto &pair : pairs) {
		if ((capabilities & pair.capability) != 0)
			flags |= pair.flag;
	}
	return flags;
}

/* The result of NDX's create, and of the object around it. */
template <class T, class Handle, class Close, class... More>
HRESULT finish(ndx_status status, const ndx_adapter *owner, File *file, Handle *handle, Close close,
               REFIID iid, VOID **out, More... more)
{
	if (status != NDX_OK) {
		release(file);
		return hresult_of(status);
	}
	T *object = new T(owner, file, handle, more...);
	if (object == nullptr) {
		close(handle);
		release(file);
	}
	return give(object, iid, out);
}

/* What is wrong with the numbers of a queue pair: the position of the first one, or 0. */
struct Numbers {
	ULONG value;
	ULONG least;
	ULONG most;
	int position;
};

template <std::size_t count> int first_wrong(const Numbers (&numbers)[count])
{
	for (const Numbers &number : numbers) {
		if (number.value < number.least || number.value > number.most)
			return number.position;
	}
	return 0;
}

} // namespace

Adapter::Adapter(ndx_adapter *adapter, const ndx_adapter_info &info)
    : adapter_(adapter), info_(), capabilities_(info.capabilities)
{
	/* Programs give credits for (depth - 1) / 2 messages when depth / 2 have come. With an even
	 * depth they lose one each time, until none is left. */
	const ULONG depth = info.max_receive_queue_depth < info.max_initiator_queue_depth
	                            ? info.max_receive_queue_depth
	                            : info.max_initiator_queue_depth;

	info_.InfoVersion = ND_VERSION_2;
	info_.VendorId = static_cast<UINT16>(info.vendor_id);
	info_.DeviceId = static_cast<UINT16>(info.device_id);
	info_.AdapterId = info.adapter_id;
	info_.MaxRegistrationSize = info.max_registration_size;
	info_.MaxWindowSize = info.max_window_size;
	info_.MaxInitiatorSge = info.max_initiator_sge;
	info_.MaxReceiveSge = info.max_receive_sge;
	info_.MaxReadSge = info.max_read_sge;
	info_.MaxTransferLength = info.max_transfer_length;
	info_.MaxInlineDataSize = info.max_inline_data_size;
	info_.MaxInboundReadLimit = info.max_inbound_read_limit;
	info_.MaxOutboundReadLimit = info.max_outbound_read_limit;
	info_.MaxReceiveQueueDepth = depth > 1 ? (depth - 1) | 1u : depth;
	info_.MaxInitiatorQueueDepth = info_.MaxReceiveQueueDepth;
	info_.MaxSharedReceiveQueueDepth = info.max_shared_receive_queue_depth;
	info_.MaxCompletionQueueDepth = info.max_completion_queue_depth;
	info_.InlineRequestThreshold = info.inline_request_threshold < info.max_inline_data_size
	                                       ? info.inline_request_threshold
	                                       : info.max_inline_data_size;
	info_.LargeRequestThreshold = info.large_request_threshold;
	info_.MaxCallerData = info.max_caller_data;
	info_.MaxCalleeData = info.max_callee_data;
	info_.AdapterFlags = flags_of(info.capabilities);
}

bool Adapter::has(REFIID iid) const
{
	return iid == IID_IND2Adapter;
}

bool Adapter::has_immediate() const
{
	const std::uint64_t both = NDX_CAP_SEND_IMMEDIATE | NDX_CAP_WRITE_IMMEDIATE;

	return (capabilities_ & both) == both;
}

HRESULT Adapter::CreateOverlappedFile(HANDLE *out)
{
	if (out == nullptr)
		return ND_INVALID_PARAMETER_1;
	*out = handle_of(create_file());
	return *out != nullptr ? ND_SUCCESS : ND_NO_MEMORY;
}

HRESULT Adapter::Query(ND2_ADAPTER_INFO *info, ULONG *size)
{
	ULONG version;

	if (size == nullptr)
		return ND_INVALID_PARAMETER_2;
	if (!has_room(info, size, sizeof(*info)))
		return ND_BUFFER_OVERFLOW;
	version = info->InfoVersion;
	if (version != ND_VERSION_1 && version != ND_VERSION_2)
		return ND_INVALID_PARAMETER_1;
	*info = info_;
	info->InfoVersion = version;
	return ND_SUCCESS;
}

HRESULT Adapter::QueryAddressList(SOCKET_ADDRESS_LIST *list, ULONG *size)
{
	Addresses addresses;

	if (size == nullptr)
		return ND_INVALID_PARAMETER_2;
	if (!addresses.add(adapter_))
		return ND_NO_MEMORY;
	return give_list(addresses, list, size);
}

HRESULT Adapter::CreateCompletionQueue(REFIID iid, HANDLE handle, ULONG depth, USHORT group,
                                       KAFFINITY affinity, VOID **out)
{
	clear(out);
	ndx_cq *cq = nullptr;
	ndx_cq_attr attr;
	ndx_status status;
	File *file;

	if (depth == 0 || depth > info_.MaxCompletionQueueDepth)
		return invalid_parameter(3);
	if (group != 0)
		return invalid_parameter(4);
	file = find_as<File>(handle);
	if (file == nullptr)
		return ND_INVALID_HANDLE;
	ndx_cq_attr_init(&attr);
	attr.depth = depth;
	attr.affinity = affinity;
	status = ndx_cq_create(adapter_, &attr, &cq);
	return finish<CompletionQueue>(status, adapter_, file, cq, ndx_cq_close, iid, out,
	                               has_immediate());
}

HRESULT Adapter::CreateMemoryRegion(REFIID iid, HANDLE handle, VOID **out)
{
	clear(out);
	ndx_mr *mr = nullptr;
	File *file = find_as<File>(handle);

	if (file == nullptr)
		return ND_INVALID_HANDLE;
	const ndx_status status = ndx_mr_create(adapter_, &mr);
	return finish<MemoryRegion>(status, adapter_, file, mr, ndx_mr_close, iid, out);
}

HRESULT Adapter::CreateMemoryWindow(REFIID iid, VOID **out)
{
	clear(out);
	ndx_mw *mw;
	const ndx_status status = ndx_mw_create(adapter_, &mw);

	if (status != NDX_OK)
		return hresult_of(status);
	auto *object = new MemoryWindow(adapter_, mw);
	if (object == nullptr)
		ndx_mw_close(mw);
	return give(object, iid, out);
}

HRESULT Adapter::CreateSharedReceiveQueue(REFIID iid, HANDLE handle, ULONG depth, ULONG max_sge,
                                          ULONG threshold, USHORT group, KAFFINITY affinity,
                                          VOID **out)
{
	clear(out);
	const Numbers numbers[] = {
		{depth, 1, info_.MaxSharedReceiveQueueDepth, 3},
		{max_sge, 0, info_.MaxReceiveSge, 4},
		{group, 0, 0, 6},
	};
	ndx_srq *srq = nullptr;
	ndx_srq_attr attr;
	ndx_status status;
	File *file;

	if (info_.MaxSharedReceiveQueueDepth == 0)
		return ND_NOT_SUPPORTED;
	const int wrong = first_wrong(numbers);
	if (wrong != 0)
		return invalid_parameter(wrong);
	file = find_as<File>(handle);
	if (file == nullptr)
		return ND_INVALID_HANDLE;
	ndx_srq_attr_init(&attr);
	attr.depth = depth;
	attr.max_sge = max_sge > 0 ? max_sge : 1;
	attr.threshold = threshold;
	attr.affinity = affinity;
	status = ndx_srq_create(adapter_, &attr, &srq);
	return finish<SharedReceiveQueue>(status, adapter_, file, srq, ndx_srq_close, iid, out);
}

/* The part that queue pairs with and without a shared receive queue have in common. */
static HRESULT make_pair(ndx_adapter *adapter, ndx_qp_attr *attr, IUnknown *receive_cq,
                         IUnknown *initiator_cq, bool immediate, REFIID iid, VOID **out)
{
	const Ours<CompletionQueue> receives(receive_cq, adapter);
	const Ours<CompletionQueue> initiator(initiator_cq, adapter);
	ndx_status status;
	ndx_qp *qp;

	if (!receives)
		return invalid_parameter(2);
	if (!initiator)
		return invalid_parameter(3);
	attr->receive_cq = receives->handle();
	attr->initiator_cq = initiator->handle();
	status = ndx_qp_create(adapter, attr, &qp);
	if (status != NDX_OK)
		return hresult_of(status);
	auto *object = new QueuePair(adapter, qp, immediate);
	if (object == nullptr)
		ndx_qp_close(qp);
	return give(object, iid, out);
}

HRESULT Adapter::CreateQueuePair(REFIID iid, IUnknown *receive_cq, IUnknown *initiator_cq,
                                 VOID *context, ULONG receive_depth, ULONG initiator_depth,
                                 ULONG receive_sge, ULONG initiator_sge, ULONG inline_size,
                                 VOID **out)
{
	clear(out);
	const Numbers numbers[] = {
		{receive_depth, 1, info_.MaxReceiveQueueDepth, 5},
		{initiator_depth, 1, info_.MaxInitiatorQueueDepth, 6},
		{receive_sge, 0, info_.MaxReceiveSge, 7},
		{initiator_sge, 0, info_.MaxInitiatorSge, 8},
		{inline_size, 0, info_.MaxInlineDataSize, 9},
	};
	const int wrong = first_wrong(numbers);
	ndx_qp_attr attr;

	if (wrong != 0)
		return invalid_parameter(wrong);
	ndx_qp_attr_init(&attr);
	attr.context = context;
	attr.receive_depth = receive_depth;
	attr.initiator_depth = initiator_depth;
	attr.max_receive_sge = receive_sge;
	attr.max_initiator_sge = initiator_sge;
	attr.inline_size = inline_size;
	return make_pair(adapter_, &attr, receive_cq, initiator_cq, has_immediate(), iid, out);
}

HRESULT Adapter::CreateQueuePairWithSrq(REFIID iid, IUnknown *receive_cq, IUnknown *initiator_cq,
                                        IUnknown *srq, VOID *context, ULONG initiator_depth,
                                        ULONG initiator_sge, ULONG inline_size, VOID **out)
{
	clear(out);
	const Numbers numbers[] = {
		{initiator_depth, 1, info_.MaxInitiatorQueueDepth, 6},
		{initiator_sge, 0, info_.MaxInitiatorSge, 7},
		{inline_size, 0, info_.MaxInlineDataSize, 8},
	};
	const Ours<SharedReceiveQueue> queue(srq, adapter_);
	const int wrong = first_wrong(numbers);
	ndx_qp_attr attr;

	if (info_.MaxSharedReceiveQueueDepth == 0)
		return ND_NOT_SUPPORTED;
	if (!queue)
		return invalid_parameter(4);
	if (wrong != 0)
		return invalid_parameter(wrong);
	ndx_qp_attr_init(&attr);
	attr.srq = queue->handle();
	attr.context = context;
	attr.initiator_depth = initiator_depth;
	attr.max_initiator_sge = initiator_sge;
	attr.inline_size = inline_size;
	return make_pair(adapter_, &attr, receive_cq, initiator_cq, has_immediate(), iid, out);
}

HRESULT Adapter::CreateConnector(REFIID iid, HANDLE handle, VOID **out)
{
	clear(out);
	ndx_connector *connector = nullptr;
	File *file = find_as<File>(handle);

	if (file == nullptr)
		return ND_INVALID_HANDLE;
	const ndx_status status = ndx_connector_create(adapter_, nullptr, &connector);
	return finish<Connector>(status, adapter_, file, connector, ndx_connector_close, iid, out);
}

HRESULT Adapter::CreateListener(REFIID iid, HANDLE handle, VOID **out)
{
	clear(out);
	ndx_listener *listener = nullptr;
	File *file = find_as<File>(handle);

	if (file == nullptr)
		return ND_INVALID_HANDLE;
	const ndx_status status = ndx_listener_create(adapter_, &listener);
	return finish<Listener>(status, adapter_, file, listener, ndx_listener_close, iid, out);
}

} // namespace nd
