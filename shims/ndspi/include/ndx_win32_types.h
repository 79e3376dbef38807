/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * The types that every other header here needs. They have their Windows sizes: a long of Windows
 * has 32 bits, so ULONG and DWORD are uint32_t. A program that passes the address of a plain `long`
 * where a LONG is wanted does not compile.
 */
#ifndef NDX_WIN32_TYPES_H
#define NDX_WIN32_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* clang-format off */
#ifdef __cplusplus
#define EXTERN_C extern "C"
#define NDX_ND_BEGIN extern "C" { _Pragma("GCC visibility push(default)")
#define NDX_ND_END _Pragma("GCC visibility pop") }
#else
#define EXTERN_C extern
#define NDX_ND_BEGIN _Pragma("GCC visibility push(default)")
#define NDX_ND_END _Pragma("GCC visibility pop")
#endif
/* clang-format on */

/* The functions of Windows have other names in the libraries, so that a process may have another
 * library with such names. */
#define NDX_ND_NAMED(name) __asm__("ndx_nd_" #name)

/* The calling conventions of Windows on x86-64 are one, here that of the platform. */
#define WINAPI
#define CALLBACK
#define APIENTRY
#define STDMETHODCALLTYPE
#define STDAPICALLTYPE
#define __stdcall
#define __cdecl
#define __fastcall
#define FAR
#define CONST const
#define DECLSPEC_SELECTANY __attribute__((weak))
#define FORCEINLINE inline

typedef void VOID;
typedef char CHAR;
typedef wchar_t WCHAR;
typedef signed char INT8;
typedef int16_t SHORT, INT16;
typedef int32_t LONG, INT32, BOOL, HRESULT, NTSTATUS;
typedef int INT;
typedef int64_t LONGLONG, INT64, LONG64;
typedef uint8_t BYTE, UCHAR, UINT8, BOOLEAN;
typedef uint16_t WORD, USHORT, UINT16;
typedef uint32_t DWORD, ULONG, UINT32, DWORD32, ULONG32;
typedef unsigned int UINT;
typedef uint64_t ULONGLONG, UINT64, DWORD64, ULONG64, DWORDLONG;
typedef size_t SIZE_T;
typedef ptrdiff_t SSIZE_T;
typedef intptr_t INT_PTR, LONG_PTR;
typedef uintptr_t UINT_PTR, ULONG_PTR, DWORD_PTR, KAFFINITY;

typedef void *PVOID, *LPVOID, *HANDLE, *HMODULE, *HINSTANCE;
typedef const void *LPCVOID, *PCVOID;
typedef CHAR *PCHAR, *PSTR, *LPSTR;
typedef const CHAR *PCSTR, *LPCSTR;
typedef WCHAR *PWCHAR, *PWSTR, *LPWSTR;
typedef const WCHAR *PCWSTR, *LPCWSTR;
typedef BYTE *PBYTE, *LPBYTE;
typedef UCHAR *PUCHAR;
typedef USHORT *PUSHORT;
typedef WORD *PWORD, *LPWORD;
typedef LONG *PLONG, *LPLONG;
typedef ULONG *PULONG;
typedef DWORD *PDWORD, *LPDWORD;
typedef BOOL *PBOOL, *LPBOOL;
typedef HANDLE *PHANDLE, *LPHANDLE;
typedef SIZE_T *PSIZE_T;
typedef ULONG_PTR *PULONG_PTR;
typedef ULONGLONG *PULONGLONG;
typedef UINT64 *PUINT64;

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

/** What identifies an interface. */
typedef struct _GUID {
	uint32_t Data1;
	uint16_t Data2;
	uint16_t Data3;
	uint8_t Data4[8];
} GUID, IID, CLSID, UUID;

/**
 * The caller's object for one asynchronous call. Programs derive from the structure and may set
 * every member, so the libraries store only a status in Internal, and have all else elsewhere.
 */
typedef struct _OVERLAPPED {
	ULONG_PTR Internal; /**< status of the call; ND_PENDING while the call is in flight */
	ULONG_PTR InternalHigh;
	__extension__ union {
		__extension__ struct {
			DWORD Offset;
			DWORD OffsetHigh;
		};
		PVOID Pointer;
	};
	/** Set when the call completes; may be NULL. If the lowest bit of the handle is set, the
	 * completion port gets no packet. */
	HANDLE hEvent;
} OVERLAPPED, *LPOVERLAPPED;

/* Status values. A warning is a failure, too: FAILED() looks at the highest bit. */
#define SUCCEEDED(hr) (((HRESULT)(hr)) >= 0)
#define FAILED(hr) (((HRESULT)(hr)) < 0)
#define S_OK ((HRESULT)0)
#define S_FALSE ((HRESULT)1)
#define E_NOTIMPL ((HRESULT)0x80004001)
#define E_NOINTERFACE ((HRESULT)0x80004002)
#define E_POINTER ((HRESULT)0x80004003)
#define E_ABORT ((HRESULT)0x80004004)
#define E_FAIL ((HRESULT)0x80004005)
#define E_UNEXPECTED ((HRESULT)0x8000FFFF)
#define E_ACCESSDENIED ((HRESULT)0x80070005)
#define E_HANDLE ((HRESULT)0x80070006)
#define E_OUTOFMEMORY ((HRESULT)0x8007000E)
#define E_INVALIDARG ((HRESULT)0x80070057)
#define CLASS_E_NOAGGREGATION ((HRESULT)0x80040110)
#define CLASS_E_CLASSNOTAVAILABLE ((HRESULT)0x80040111)

#endif
