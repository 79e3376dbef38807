/* SPDX-License-Identifier: BSD-2-Clause */
/* The declarations of the library, which make the symbols visible that ndx-winrt.map lists. */
#ifndef NDX_WINRT_H
#define NDX_WINRT_H

#pragma GCC visibility push(default)
#include "nd_waitable.h"
#include "ndx_win32_handles.h"
#define NOMINMAX
#include "ws2tcpip.h"
#pragma GCC visibility pop

/* Set the last error, and be a result. */
static inline BOOL winrt_fail(DWORD error)
{
	SetLastError(error);
	return FALSE;
}

static inline void *winrt_null(DWORD error)
{
	SetLastError(error);
	return nullptr;
}

#endif
