/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_ND_STATUS_H
#define NDX_ND_STATUS_H

#include <ndx/status.h>

#include "ndstatus.h"

namespace nd
{

/* The status as NetworkDirect has it. */
HRESULT hresult_of(ndx_status status);

/* The n-th argument is wrong; 1 .. 10. */
constexpr HRESULT invalid_parameter(int n)
{
	return ND_INVALID_PARAMETER_1 + n - 1;
}

/* As hresult_of(), where a wrong parameter can only be the n-th. */
HRESULT hresult_of(ndx_status status, int n);

} // namespace nd

#endif
