/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Wide text, and printing as Microsoft's C library does it.
 *
 * A stream of the platform is for narrow or for wide characters, whichever comes first; on Windows
 * both go. So wprintf() and its like are macros here for functions that convert to the encoding of
 * the locale and write narrow characters, `?` for those that the encoding does not have. Their
 * formats are Microsoft's:
 *  - in wide forms %s and %c are wide, %S and %C narrow; h and l before them say it outright;
 *  - %I64d, %I32d and %Id are a 64-bit, a 32-bit and a pointer-sized integer;
 *  - %ld and %lu are 32 bits, what LONG and ULONG are.
 * printf() is that of the platform. A program whose printf formats are Microsoft's links with
 * ndx-wmain and `-Wl,--wrap=printf,--wrap=fprintf`, or calls ndx_nd_vprintf().
 *
 * All functions may be called by any thread; an output of one call is not torn.
 */
#ifndef NDX_WIN32_TEXT_H
#define NDX_WIN32_TEXT_H

#include "ndx_win32_handles.h"

#include <stdarg.h>
#ifdef __cplusplus
/* These undefine macros with the names of functions, so they come before ours. */
extern "C++" {
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <cwctype>
}
#else
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>
#endif

typedef NDX_ND_TEXT(WCHAR, CHAR) TCHAR;
typedef TCHAR *PTSTR, *LPTSTR, *PTCHAR;
typedef const TCHAR *PCTSTR, *LPCTSTR;
#define NDX_ND_WIDEN(text) L##text
#define TEXT(text) NDX_ND_TEXT(NDX_ND_WIDEN(text), text)

typedef int errno_t;

NDX_ND_BEGIN

/** Characters written, or -1. */
int ndx_nd_wprintf(const wchar_t *format, ...);
int ndx_nd_fwprintf(FILE *stream, const wchar_t *format, ...);
int ndx_nd_vwprintf(const wchar_t *format, va_list arguments);
int ndx_nd_vfwprintf(FILE *stream, const wchar_t *format, va_list arguments);

/** Characters written without the terminating one; -1 if @p count is too small. */
int ndx_nd_swprintf(wchar_t *text, size_t count, const wchar_t *format, ...);
int ndx_nd_fputws(const wchar_t *text, FILE *stream);
int _putws(const wchar_t *text) NDX_ND_NAMED(_putws);

/** printf() with Microsoft's formats. Bytes written, or -1. */
int ndx_nd_vprintf(const char *format, va_list arguments);
int ndx_nd_vfprintf(FILE *stream, const char *format, va_list arguments);

/**
 * Functions that know the room, in elements. Nothing is written behind it.
 *
 * @return the s-functions for copying: 0, EINVAL (a pointer is NULL) or ERANGE (too little room,
 *         0 elements included), and then the target is empty (memcpy_s: zero). Those for printing:
 *         characters written, or -1, and then the target is empty. _snprintf and _snwprintf: -1 if
 *         the text was cut, which then has no terminating character.
 */
errno_t strcpy_s(char *target, size_t room, const char *source) NDX_ND_NAMED(strcpy_s);
errno_t strcat_s(char *target, size_t room, const char *source) NDX_ND_NAMED(strcat_s);
errno_t wcscpy_s(wchar_t *target, size_t room, const wchar_t *source) NDX_ND_NAMED(wcscpy_s);
errno_t wcscat_s(wchar_t *target, size_t room, const wchar_t *source) NDX_ND_NAMED(wcscat_s);
errno_t memcpy_s(void *target, size_t room, const void *source, size_t bytes)
	NDX_ND_NAMED(memcpy_s);
int sprintf_s(char *text, size_t room, const char *format, ...) NDX_ND_NAMED(sprintf_s);
int swprintf_s(wchar_t *text, size_t room, const wchar_t *format, ...) NDX_ND_NAMED(swprintf_s);
int _snprintf(char *text, size_t room, const char *format, ...) NDX_ND_NAMED(_snprintf);
int _snwprintf(wchar_t *text, size_t room, const wchar_t *format, ...) NDX_ND_NAMED(_snwprintf);

int _stricmp(const char *left, const char *right) NDX_ND_NAMED(_stricmp);
int _wcsicmp(const wchar_t *left, const wchar_t *right) NDX_ND_NAMED(_wcsicmp);

/** The number at the beginning of the text, or the nearest that 32 bits hold. */
int _wtoi(const wchar_t *text) NDX_ND_NAMED(_wtoi);
long _wtol(const wchar_t *text) NDX_ND_NAMED(_wtol);
LONGLONG _wtoi64(const wchar_t *text) NDX_ND_NAMED(_wtoi64);

/** fopen() and freopen() with names in the encoding of the locale; NULL with errno. */
FILE *_wfopen(const wchar_t *path, const wchar_t *mode) NDX_ND_NAMED(_wfopen);
FILE *_wfreopen(const wchar_t *path, const wchar_t *mode, FILE *stream) NDX_ND_NAMED(_wfreopen);

/** Writes out all streams and closes none: a program may print afterwards. Returns 0. */
int _fcloseall(void) NDX_ND_NAMED(_fcloseall);

NDX_ND_END

/* With _FORTIFY_SOURCE and clang the platform has macros of these names. */
#undef wprintf
#undef fwprintf
#undef vwprintf
#undef vfwprintf
#undef swprintf
#undef fputws
#define wprintf ndx_nd_wprintf
#define fwprintf ndx_nd_fwprintf
#define vwprintf ndx_nd_vwprintf
#define vfwprintf ndx_nd_vfwprintf
#define swprintf ndx_nd_swprintf
#define fputws ndx_nd_fputws

#ifdef __cplusplus
/* Programs write std::wprintf, too. */
namespace std
{
using ::ndx_nd_fputws;
using ::ndx_nd_fwprintf;
using ::ndx_nd_swprintf;
using ::ndx_nd_vfwprintf;
using ::ndx_nd_vwprintf;
using ::ndx_nd_wprintf;
} // namespace std

/* The forms that take the room from the type of the array. */
extern "C++" {
template <size_t Room> inline errno_t strcpy_s(char (&target)[Room], const char *source)
{
	return strcpy_s(target, Room, source);
}
template <size_t Room> inline errno_t strcat_s(char (&target)[Room], const char *source)
{
	return strcat_s(target, Room, source);
}
template <size_t Room> inline errno_t wcscpy_s(wchar_t (&target)[Room], const wchar_t *source)
{
	return wcscpy_s(target, Room, source);
}
template <size_t Room> inline errno_t wcscat_s(wchar_t (&target)[Room], const wchar_t *source)
{
	return wcscat_s(target, Room, source);
}
template <size_t Room, class... Arguments>
inline int sprintf_s(char (&text)[Room], const char *format, Arguments... arguments)
{
	return sprintf_s(text, Room, format, arguments...);
}
template <size_t Room, class... Arguments>
inline int swprintf_s(wchar_t (&text)[Room], const wchar_t *format, Arguments... arguments)
{
	return swprintf_s(text, Room, format, arguments...);
}
} // extern "C++"
#endif

#endif
