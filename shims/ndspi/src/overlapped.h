/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that end later. NDX needs more room than an OVERLAPPED has, and programs may use one
 * OVERLAPPED for two calls at a time, so each call in flight has a record of its own. The
 * OVERLAPPED gets the status and nothing else.
 */
#ifndef NDX_ND_OVERLAPPED_H
#define NDX_ND_OVERLAPPED_H

#include <ndx/ndx.h>

#include "port.h"
#include "status.h"

namespace nd
{

/* nullptr: no memory. */
File *create_file();

/* Before the call of NDX; nullptr: `failure` says why. */
Call *begin_call(OVERLAPPED *caller, File *file, HRESULT *failure);
/* NDX did not start it: nothing completes. */
void abandon_call(Call *call);

/* Start a call: `start(ndx_overlapped *)` is that of NDX. Either it fails, and nothing completes;
 * or it is pending, and completes once. Programs expect no third way. */
template <class Start>
HRESULT start_call(OVERLAPPED *caller, File *file, Start start, bool aborted_is_ended = false)
{
	HRESULT failure = ND_SUCCESS;
	ndx_status status;
	Call *call;

	if (caller == nullptr)
		return ND_INVALID_PARAMETER;
	call = begin_call(caller, file, &failure);
	if (call == nullptr)
		return failure;
	call->aborted_is_ended = aborted_is_ended;
	status = start(&call->ov);
	if (status == NDX_PENDING)
		return ND_PENDING; /* `call` may be gone */
	abandon_call(call);
	return hresult_of(status);
}

/* How the call on this OVERLAPPED ended, whichever object the call was made on. */
HRESULT result_of(OVERLAPPED *overlapped, bool wait);

} // namespace nd

#endif
