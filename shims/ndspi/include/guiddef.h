/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Names of interfaces. The library has the identifiers of the NetworkDirect interfaces. A program
 * that includes <initguid.h> first has its own copies.
 */
#ifndef NDX_GUIDDEF_H
#define NDX_GUIDDEF_H

#include <string.h>

#include "ndx_win32_types.h"

#ifdef __cplusplus
#define REFGUID const GUID &
#define REFIID const IID &
#define REFCLSID const IID &

inline int InlineIsEqualGUID(REFGUID left, REFGUID right)
{
	return memcmp(&left, &right, sizeof(GUID)) == 0;
}
inline bool operator==(REFGUID left, REFGUID right)
{
	return InlineIsEqualGUID(left, right) != 0;
}
inline bool operator!=(REFGUID left, REFGUID right)
{
	return InlineIsEqualGUID(left, right) == 0;
}
#else
#define REFGUID const GUID *
#define REFIID const IID *
#define REFCLSID const IID *

static inline int InlineIsEqualGUID(REFGUID left, REFGUID right)
{
	return memcmp(left, right, sizeof(GUID)) == 0;
}
#endif
#define IsEqualGUID(left, right) InlineIsEqualGUID(left, right)
#define IsEqualIID(left, right) InlineIsEqualGUID(left, right)
#define IsEqualCLSID(left, right) InlineIsEqualGUID(left, right)

#define NDX_GUID(a, b, c, d, e, f, g, h, i, j, k) \
	{                                         \
		a, b, c,                          \
		{                                 \
			d, e, f, g, h, i, j, k    \
		}                                 \
	}

#endif

/* Outside the guard: a header that is included before <initguid.h> declares, and one behind it
 * defines. */
#undef DEFINE_GUID
#if defined(INITGUID) && defined(__cplusplus)
#define DEFINE_GUID(name, ...)                                                   \
	extern "C" const GUID name __attribute__((weak, visibility("default"))); \
	extern "C" const GUID name = NDX_GUID(__VA_ARGS__)
#elif defined(INITGUID)
#define DEFINE_GUID(name, ...)                                               \
	extern const GUID name __attribute__((weak, visibility("default"))); \
	const GUID name = NDX_GUID(__VA_ARGS__)
#else
#define DEFINE_GUID(name, ...) EXTERN_C const GUID name
#endif
