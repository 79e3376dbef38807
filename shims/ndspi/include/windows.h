/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What programs for NetworkDirect use of Windows besides NetworkDirect. Link with ndx-ndspi and
 * ndx-winrt. Not there: files, sockets, locks, registry, windows; docs/porting-from-windows.md has
 * the list.
 */
#ifndef NDX_WINDOWS_H
#define NDX_WINDOWS_H

#include "ndx_win32_types.h"
#include "sal.h"
#include "winerror.h"
#include "ndx_win32_handles.h"
#include "ndx_win32_interlocked.h"
#include "ndx_win32_text.h"
#include "ndx_win32_runtime.h"

#if !defined(NOMINMAX) && defined(__cplusplus) && !defined(min) && !defined(max)
extern "C++" { /* programs include this header in extern "C", too */
#include <type_traits>

/* Templates, not macros: std::min and members of the name go on to work. Two types, so that an
 * unqualified call behind `using namespace std` is not ambiguous: for equal types the template of
 * std is the more special one. The operands get their common type first, as in a macro. */
template <class Left, class Right>
constexpr typename std::common_type<Left, Right>::type min(const Left &left, const Right &right)
{
	typedef typename std::common_type<Left, Right>::type Common;
	return Common(right) < Common(left) ? Common(right) : Common(left);
}
template <class Left, class Right>
constexpr typename std::common_type<Left, Right>::type max(const Left &left, const Right &right)
{
	typedef typename std::common_type<Left, Right>::type Common;
	return Common(left) < Common(right) ? Common(right) : Common(left);
}
} // extern "C++"
#elif !defined(NOMINMAX) && !defined(__cplusplus)
#ifndef min
#define min(left, right) ((left) < (right) ? (left) : (right))
#endif
#ifndef max
#define max(left, right) ((left) > (right) ? (left) : (right))
#endif
#endif

#endif
