/* SPDX-License-Identifier: BSD-2-Clause */
#include "objects.h"

namespace nd
{

namespace
{

/* The rare part is apart, so that a post that succeeds costs one comparison. */
__attribute__((noinline, cold)) HRESULT refused(ndx_status status, int flags_position)
{
	return hresult_of(status, flags_position);
}

inline HRESULT posted(ndx_status status, int flags_position)
{
	return __builtin_expect(status == NDX_OK, 1) ? ND_SUCCESS : refused(status, flags_position);
}

} // namespace

bool QueuePair::has(REFIID iid) const
{
	return iid == IID_IND2QueuePair || (immediate_ && iid == IID_IND2ManaQueuePair);
}

HRESULT QueuePair::Flush()
{
	return hresult_of(ndx_qp_flush(qp_));
}

HRESULT QueuePair::Send(VOID *context, const ND2_SGE sge[], ULONG count, ULONG flags)
{
	return posted(ndx_qp_send(qp_, context, sges(sge), count, flags), 4);
}

HRESULT QueuePair::Receive(VOID *context, const ND2_SGE sge[], ULONG count)
{
	return posted(ndx_qp_receive(qp_, context, sges(sge), count), 2);
}

HRESULT QueuePair::Bind(VOID *context, IUnknown *region, IUnknown *window, const VOID *buffer,
                        SIZE_T length, ULONG flags)
{
	const Ours<MemoryRegion> mr(region, adapter);
	const Ours<MemoryWindow> mw(window, adapter);

	if (!mr)
		return invalid_parameter(2);
	if (!mw)
		return invalid_parameter(3);
	return posted(ndx_qp_bind(qp_, context, mr->handle(), mw->handle(),
	                          const_cast<VOID *>(buffer), length, flags),
	              6);
}

HRESULT QueuePair::Invalidate(VOID *context, IUnknown *window, ULONG flags)
{
	const Ours<MemoryWindow> mw(window, adapter);

	if (!mw)
		return invalid_parameter(2);
	return posted(ndx_qp_invalidate(qp_, context, mw->handle(), flags), 3);
}

HRESULT QueuePair::Read(VOID *context, const ND2_SGE sge[], ULONG count, UINT64 address,
                        UINT32 token, ULONG flags)
{
	return posted(ndx_qp_read(qp_, context, sges(sge), count, address, token, flags), 6);
}

HRESULT QueuePair::Write(VOID *context, const ND2_SGE sge[], ULONG count, UINT64 address,
                         UINT32 token, ULONG flags)
{
	return posted(ndx_qp_write(qp_, context, sges(sge), count, address, token, flags), 6);
}

HRESULT QueuePair::SendWithImmediate(VOID *context, const ND2_SGE sge[], ULONG count, ULONG flags,
                                     UINT32 immediate)
{
	return posted(ndx_qp_send_immediate(qp_, context, sges(sge), count, immediate, flags), 4);
}

HRESULT QueuePair::WriteWithImmediate(VOID *context, const ND2_SGE sge[], ULONG count,
                                      UINT64 address, UINT32 token, ULONG flags, UINT32 immediate)
{
	return posted(ndx_qp_write_immediate(qp_, context, sges(sge), count, address, token,
	                                     immediate, flags),
	              6);
}

} // namespace nd
