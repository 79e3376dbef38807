/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions and memory windows. */
#include "objects.h"

namespace nd
{

bool MemoryRegion::has(REFIID iid) const
{
	return iid == IID_IND2MemoryRegion || iid == IID_IND2Overlapped;
}

HRESULT MemoryRegion::CancelOverlappedRequests()
{
	return hresult_of(ndx_mr_cancel(mr_));
}

HRESULT MemoryRegion::Register(const VOID *buffer, SIZE_T length, ULONG flags,
                               OVERLAPPED *overlapped)
{
	/* Windows keeps the pages of a process in place by itself; nothing here does that. */
	flags &= ~static_cast<ULONG>(ND_MR_FLAG_DO_NOT_SECURE_VM);
	if (buffer == nullptr)
		return length == 0 ? ND_INVALID_PARAMETER : ND_ACCESS_VIOLATION;
	return start_call(overlapped, file(), [&](ndx_overlapped *ov) {
		return ndx_mr_register(mr_, buffer, length, flags, ov);
	});
}

HRESULT MemoryRegion::Deregister(OVERLAPPED *overlapped)
{
	return start_call(overlapped, file(),
	                  [&](ndx_overlapped *ov) { return ndx_mr_deregister(mr_, ov); });
}

UINT32 MemoryRegion::GetLocalToken()
{
	return ndx_mr_get_local_token(mr_);
}

UINT32 MemoryRegion::GetRemoteToken()
{
	return ndx_mr_get_remote_token(mr_);
}

bool MemoryWindow::has(REFIID iid) const
{
	return iid == IID_IND2MemoryWindow;
}

UINT32 MemoryWindow::GetRemoteToken()
{
	return ndx_mw_get_remote_token(mw_);
}

} // namespace nd
