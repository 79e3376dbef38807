/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Names that are wide or, if _MBCS is defined, narrow. A program whose main function is _tmain()
 * links with ndx-wmain, which has the main() that converts the arguments.
 */
#ifndef NDX_TCHAR_H
#define NDX_TCHAR_H

#include "ndx_win32_text.h"

typedef TCHAR _TCHAR;
#define _T(text) TEXT(text)
#define _TEXT(text) TEXT(text)
#define __T(text) TEXT(text)

NDX_ND_BEGIN
int wmain(int argc, wchar_t **argv);
NDX_ND_END
#define _tmain NDX_ND_TEXT(wmain, main)

#define _tprintf NDX_ND_TEXT(wprintf, printf)
#define _ftprintf NDX_ND_TEXT(fwprintf, fprintf)
#define _vtprintf NDX_ND_TEXT(vwprintf, vprintf)
#define _vftprintf NDX_ND_TEXT(vfwprintf, vfprintf)
#define _stprintf_s NDX_ND_TEXT(swprintf_s, sprintf_s)
#define _sntprintf NDX_ND_TEXT(_snwprintf, _snprintf)
#define _putts NDX_ND_TEXT(_putws, puts)
#define _fputts NDX_ND_TEXT(fputws, fputs)
#define _fgetts NDX_ND_TEXT(fgetws, fgets)
#define _tfopen NDX_ND_TEXT(_wfopen, fopen)
#define _tfreopen NDX_ND_TEXT(_wfreopen, freopen)

#define _tcslen NDX_ND_TEXT(wcslen, strlen)
#define _tcscmp NDX_ND_TEXT(wcscmp, strcmp)
#define _tcsncmp NDX_ND_TEXT(wcsncmp, strncmp)
#define _tcsicmp NDX_ND_TEXT(_wcsicmp, _stricmp)
#define _tcschr NDX_ND_TEXT(wcschr, strchr)
#define _tcsrchr NDX_ND_TEXT(wcsrchr, strrchr)
#define _tcsstr NDX_ND_TEXT(wcsstr, strstr)
#define _tcscpy NDX_ND_TEXT(wcscpy, strcpy)
#define _tcsncpy NDX_ND_TEXT(wcsncpy, strncpy)
#define _tcscat NDX_ND_TEXT(wcscat, strcat)
#define _tcscpy_s NDX_ND_TEXT(wcscpy_s, strcpy_s)
#define _tcscat_s NDX_ND_TEXT(wcscat_s, strcat_s)

#define _ttoi NDX_ND_TEXT(_wtoi, atoi)
#define _tstoi _ttoi
#define _ttol NDX_ND_TEXT(_wtol, atol)
#define _tstol _ttol
#define _ttoi64 NDX_ND_TEXT(_wtoi64, atoll)
#define _tstoi64 _ttoi64
#define _tcstol NDX_ND_TEXT(wcstol, strtol)
#define _tcstoul NDX_ND_TEXT(wcstoul, strtoul)
#define _tcstoi64 NDX_ND_TEXT(wcstoll, strtoll)
#define _tcstoui64 NDX_ND_TEXT(wcstoull, strtoull)
#define _tcstod NDX_ND_TEXT(wcstod, strtod)

#define _totlower NDX_ND_TEXT(towlower, tolower)
#define _totupper NDX_ND_TEXT(towupper, toupper)
#define _istdigit NDX_ND_TEXT(iswdigit, isdigit)
#define _istspace NDX_ND_TEXT(iswspace, isspace)

#endif
