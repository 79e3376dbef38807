/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues and shared receive queues. */
#include <cerrno>

#include "objects.h"

namespace nd
{

namespace
{

/* IBV_WC_REM_OP_ERR in `native`: the number of verbs, and what stands for it where the device is
 * used through libfabric. Software RoCE reports it for a message that is longer than the peer's
 * receive, other devices report what NDX makes DATA_OVERRUN of. Programs take that status for such
 * a message, and no other one. */
constexpr std::int32_t operation_failed_at_peer[] = {11, EREMOTEIO};

/* ND2_RESULT is the first part of ndx_result, up to the padding at its end. */
constexpr std::size_t common = offsetof(ND2_RESULT, RequestType) + sizeof(ND2_REQUEST_TYPE);
static_assert(common == offsetof(ndx_result, request_type) + sizeof(ndx_request_type) &&
                      offsetof(ND2_RESULT, Status) == offsetof(ndx_result, status) &&
                      offsetof(ND2_RESULT, BytesTransferred) ==
                              offsetof(ndx_result, bytes_transferred) &&
                      offsetof(ND2_RESULT, QueuePairContext) ==
                              offsetof(ndx_result, queue_pair_context) &&
                      offsetof(ND2_RESULT, RequestContext) == offsetof(ndx_result, request_context),
              "ND2_RESULT is not the first part of ndx_result");

__attribute__((noinline, cold)) HRESULT failure_of(const ndx_result &result)
{
	if (result.status == NDX_E_REMOTE_ERROR && result.request_type == NDX_REQUEST_SEND &&
	    (result.native == operation_failed_at_peer[0] ||
	     result.native == operation_failed_at_peer[1]))
		return ND_DATA_OVERRUN;
	return hresult_of(result.status);
}

inline void convert(const ndx_result &from, ND2_RESULT *to)
{
	std::memcpy(to, &from, common);
	if (__builtin_expect(from.status != NDX_OK, 0))
		to->Status = failure_of(from);
}

ND2_MANA_REQUEST_TYPE mana_type(const ndx_result &result)
{
	switch (result.request_type) {
	case NDX_REQUEST_SEND:
		return Nd2ManaRequestTypeSend;
	case NDX_REQUEST_BIND:
		return Nd2ManaRequestTypeBind;
	case NDX_REQUEST_INVALIDATE:
		return Nd2ManaRequestTypeInvalidate;
	case NDX_REQUEST_READ:
		return Nd2ManaRequestTypeRead;
	case NDX_REQUEST_WRITE:
		return Nd2ManaRequestTypeWrite;
	case NDX_REQUEST_RECEIVE:
		break;
	}
	if (!(result.flags & NDX_RESULT_IMMEDIATE))
		return Nd2ManaRequestTypeRecv;
	return result.flags & NDX_RESULT_WRITTEN ? Nd2ManaRequestTypeRecvRdmaWithImmediate
	                                         : Nd2ManaRequestTypeRecvWithImmediate;
}

inline void convert(const ndx_result &from, ND2_MANA_RESULT *to)
{
	to->Status = from.status == NDX_OK ? ND_SUCCESS : failure_of(from);
	to->BytesTransferred = from.bytes_transferred;
	to->QueuePairContext = from.queue_pair_context;
	to->RequestContext = from.request_context;
	to->RequestType = mana_type(from);
	to->ImmediateDataOrRKey = from.immediate;
}

template <class Result> ULONG take_results(ndx_cq *cq, Result results[], ULONG count)
{
	constexpr ULONG batch = 16;
	ndx_result some[batch];
	ULONG taken = 0;

	while (taken < count) {
		const ULONG wanted = count - taken < batch ? count - taken : batch;
		const auto got = static_cast<ULONG>(ndx_cq_get_results(cq, some, wanted));

		for (ULONG i = 0; i < got; i++)
			convert(some[i], &results[taken + i]);
		taken += got;
		if (got < wanted)
			break;
	}
	return taken;
}

HRESULT affinity_of(ndx_status status, std::uint64_t mask, KAFFINITY *affinity)
{
	if (status == NDX_OK)
		*affinity = static_cast<KAFFINITY>(mask);
	return hresult_of(status);
}

} // namespace

bool CompletionQueue::has(REFIID iid) const
{
	return iid == IID_IND2CompletionQueue || iid == IID_IND2Overlapped ||
	       (immediate_ && iid == IID_IND2ManaCompletionQueue);
}

HRESULT CompletionQueue::CancelOverlappedRequests()
{
	return hresult_of(ndx_cq_cancel(cq_));
}

HRESULT CompletionQueue::GetNotifyAffinity(USHORT *group, KAFFINITY *affinity)
{
	std::uint64_t mask = 0;

	if (group == nullptr || affinity == nullptr)
		return ND_INVALID_PARAMETER;
	return affinity_of(ndx_cq_get_notify_affinity(cq_, group, &mask), mask, affinity);
}

HRESULT CompletionQueue::Resize(ULONG depth)
{
	return hresult_of(ndx_cq_resize(cq_, depth));
}

HRESULT CompletionQueue::Notify(ULONG type, OVERLAPPED *overlapped)
{
	if (type > ND_CQ_NOTIFY_SOLICITED)
		return ND_INVALID_PARAMETER_1;
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_cq_notify(cq_, static_cast<ndx_cq_notify_type>(type), ov);
	});
}

ULONG CompletionQueue::GetResults(ND2_RESULT results[], ULONG count)
{
	ndx_result one;

	if (count != 1)
		return take_results(cq_, results, count);
	/* programs take one at a time: without a loop */
	if (ndx_cq_get_results(cq_, &one, 1) == 0)
		return 0;
	convert(one, results);
	return 1;
}

ULONG CompletionQueue::GetManaResults(ND2_MANA_RESULT results[], ULONG count)
{
	return take_results(cq_, results, count);
}

bool SharedReceiveQueue::has(REFIID iid) const
{
	return iid == IID_IND2SharedReceiveQueue || iid == IID_IND2Overlapped;
}

HRESULT SharedReceiveQueue::CancelOverlappedRequests()
{
	return hresult_of(ndx_srq_cancel(srq_));
}

HRESULT SharedReceiveQueue::GetNotifyAffinity(USHORT *group, KAFFINITY *affinity)
{
	std::uint64_t mask = 0;

	if (group == nullptr || affinity == nullptr)
		return ND_INVALID_PARAMETER;
	return affinity_of(ndx_srq_get_notify_affinity(srq_, group, &mask), mask, affinity);
}

HRESULT SharedReceiveQueue::Modify(ULONG depth, ULONG threshold)
{
	return hresult_of(ndx_srq_modify(srq_, depth, threshold));
}

HRESULT SharedReceiveQueue::Notify(OVERLAPPED *overlapped)
{
	return start_call(overlapped, file(),
	                  [&](ndx_overlapped *ov) { return ndx_srq_notify(srq_, ov); });
}

HRESULT SharedReceiveQueue::Receive(VOID *context, const ND2_SGE sge[], ULONG count)
{
	return hresult_of(ndx_srq_receive(srq_, context, sges(sge), count));
}

} // namespace nd
