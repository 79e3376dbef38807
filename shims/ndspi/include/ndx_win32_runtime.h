/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Threads, time, memory and the machine, in libndx-winrt.so, and macros of Microsoft's compiler.
 *
 * Failures are reported as in ndx_win32_handles.h. All functions may be called by any thread; only
 * Sleep() blocks.
 */
#ifndef NDX_WIN32_RUNTIME_H
#define NDX_WIN32_RUNTIME_H

#include "ndx_win32_handles.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the compiler ---- */

#define __int8 char
#define __int16 short
#define __int32 int
#define __int64 long

/* __declspec(x) is what NDX_ND_DECLSPEC_x is defined as. */
#ifndef __declspec
#define __declspec(attribute) NDX_ND_DECLSPEC_##attribute
#endif
#define NDX_ND_DECLSPEC_align(bytes) __attribute__((aligned(bytes)))
#define NDX_ND_DECLSPEC_allocate(section)
#define NDX_ND_DECLSPEC_deprecated __attribute__((deprecated))
#define NDX_ND_DECLSPEC_dllexport __attribute__((visibility("default")))
#define NDX_ND_DECLSPEC_dllimport
#define NDX_ND_DECLSPEC_noinline __attribute__((noinline))
#define NDX_ND_DECLSPEC_noreturn __attribute__((noreturn))
#define NDX_ND_DECLSPEC_nothrow
#define NDX_ND_DECLSPEC_novtable
#define NDX_ND_DECLSPEC_restrict
#define NDX_ND_DECLSPEC_selectany __attribute__((weak))
#define NDX_ND_DECLSPEC_thread __thread
#define NDX_ND_DECLSPEC_uuid(text)

#define DECLSPEC_ALIGN(bytes) __attribute__((aligned(bytes)))
#define DECLSPEC_CACHEALIGN __attribute__((aligned(64)))
#define DECLSPEC_NORETURN __attribute__((noreturn))
#define DECLSPEC_NOINLINE __attribute__((noinline))
#define __forceinline inline __attribute__((always_inline))
#define __assume(condition) ((condition) ? (void)0 : __builtin_unreachable())

#define UNREFERENCED_PARAMETER(parameter) ((void)(parameter))
#define CONTAINING_RECORD(address, type, field) \
	((type *)(void *)((char *)(address)-offsetof(type, field)))
#define FIELD_OFFSET(type, field) ((LONG)offsetof(type, field))
#define ARRAYSIZE(array) (sizeof(array) / sizeof((array)[0]))
#define _countof(array) ARRAYSIZE(array)
#define MAKEWORD(low, high) ((WORD)(((low)&0xFF) | (((high)&0xFF) << 8)))
#define MAKELONG(low, high) ((LONG)(((DWORD)(low)&0xFFFFu) | ((DWORD)(high) << 16)))
#define LOWORD(value) ((WORD)((value)&0xFFFF))
#define HIWORD(value) ((WORD)(((value) >> 16) & 0xFFFF))
#define LOBYTE(value) ((BYTE)((value)&0xFF))
#define HIBYTE(value) ((BYTE)(((value) >> 8) & 0xFF))
#define MAXDWORD 0xFFFFFFFFu
#define MAX_PATH 260
#define _MAX_PATH MAX_PATH

#define ZeroMemory(target, bytes) ((void)memset((void *)(target), 0, (bytes)))
#define FillMemory(target, bytes, value) ((void)memset((void *)(target), (value), (bytes)))
#define CopyMemory(target, source, bytes) ((void)memcpy((void *)(target), (source), (bytes)))
#define MoveMemory(target, source, bytes) ((void)memmove((void *)(target), (source), (bytes)))
#define RtlZeroMemory ZeroMemory
#define RtlFillMemory FillMemory
#define RtlCopyMemory CopyMemory
#define RtlMoveMemory MoveMemory

#ifndef _ASSERTE
#define _ASSERTE(condition) assert(condition)
#endif
#ifndef ASSERT
#define ASSERT(condition) assert(condition)
#endif

/** A 64-bit number, also by halves. */
typedef union _LARGE_INTEGER {
	__extension__ struct {
		DWORD LowPart;
		LONG HighPart;
	};
	struct {
		DWORD LowPart;
		LONG HighPart;
	} u;
	LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
	__extension__ struct {
		DWORD LowPart;
		DWORD HighPart;
	};
	struct {
		DWORD LowPart;
		DWORD HighPart;
	} u;
	ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

/** A time in units of 100 ns; a date counts from the year 1601. */
typedef struct _FILETIME {
	DWORD dwLowDateTime;
	DWORD dwHighDateTime;
} FILETIME, *PFILETIME, *LPFILETIME;

#define PROCESSOR_ARCHITECTURE_AMD64 9
#define PROCESSOR_ARCHITECTURE_ARM64 12
#define PROCESSOR_ARCHITECTURE_UNKNOWN 0xFFFF

typedef struct _SYSTEM_INFO {
	__extension__ union {
		DWORD dwOemId;
		__extension__ struct {
			WORD wProcessorArchitecture;
			WORD wReserved;
		};
	};
	DWORD dwPageSize;
	LPVOID lpMinimumApplicationAddress;
	LPVOID lpMaximumApplicationAddress;
	DWORD_PTR dwActiveProcessorMask; /**< the first 64 processors */
	DWORD dwNumberOfProcessors;      /**< those on line */
	DWORD dwProcessorType;
	DWORD dwAllocationGranularity; /**< a page: VirtualAlloc() has no coarser unit here */
	WORD wProcessorLevel;
	WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;

typedef DWORD(WINAPI *PTHREAD_START_ROUTINE)(LPVOID parameter);
typedef PTHREAD_START_ROUTINE LPTHREAD_START_ROUTINE;

#define STILL_ACTIVE 259
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x10000u
#define THREAD_PRIORITY_LOWEST (-2)
#define THREAD_PRIORITY_BELOW_NORMAL (-1)
#define THREAD_PRIORITY_NORMAL 0
#define THREAD_PRIORITY_ABOVE_NORMAL 1
#define THREAD_PRIORITY_HIGHEST 2
#define THREAD_PRIORITY_TIME_CRITICAL 15

#define HEAP_NO_SERIALIZE 0x1u
#define HEAP_GENERATE_EXCEPTIONS 0x4u
#define HEAP_ZERO_MEMORY 0x8u
#define HEAP_REALLOC_IN_PLACE_ONLY 0x10u

#define MEM_COMMIT 0x1000u
#define MEM_RESERVE 0x2000u
#define MEM_DECOMMIT 0x4000u
#define MEM_RELEASE 0x8000u
#define PAGE_NOACCESS 0x01u
#define PAGE_READONLY 0x02u
#define PAGE_READWRITE 0x04u
#define PAGE_EXECUTE 0x10u
#define PAGE_EXECUTE_READ 0x20u
#define PAGE_EXECUTE_READWRITE 0x40u

NDX_ND_BEGIN

/* ---- threads ---- */

/**
 * Start a thread. WaitForSingleObject() on its handle waits for its end, which is after the
 * destructors of its thread_local objects. Threads still running when main() returns end with the
 * process.
 *
 * @param security  ignored; may be NULL
 * @param stack     bytes; 0 for the default of the platform
 * @param routine   the thread; what it returns is its exit code
 * @param flags     0 or STACK_SIZE_PARAM_IS_A_RESERVATION
 * @param[out] id   may be NULL
 * @return the handle, for CloseHandle(), which leaves the thread alone; NULL with
 *         ERROR_NOT_ENOUGH_MEMORY, ERROR_INVALID_PARAMETER or ERROR_NOT_SUPPORTED (flags)
 */
HANDLE CreateThread(LPSECURITY_ATTRIBUTES security, SIZE_T stack, LPTHREAD_START_ROUTINE routine,
                    LPVOID parameter, DWORD flags, LPDWORD id) NDX_ND_NAMED(CreateThread);

/** The same with other types: 0 on failure, with errno EAGAIN or EINVAL besides the last error. */
uintptr_t _beginthreadex(void *security, unsigned stack, unsigned(__stdcall *routine)(void *),
                         void *parameter, unsigned flags, unsigned *id)
	NDX_ND_NAMED(_beginthreadex);

/** End the calling thread, as pthread_exit() does: destructors of its C++ objects run. */
void ExitThread(DWORD code) NDX_ND_NAMED(ExitThread) __attribute__((noreturn));
void _endthreadex(unsigned code) NDX_ND_NAMED(_endthreadex) __attribute__((noreturn));

/** @param[out] code  the exit code, or STILL_ACTIVE while the thread runs */
BOOL GetExitCodeThread(HANDLE thread, LPDWORD code) NDX_ND_NAMED(GetExitCodeThread);

/** The platform's id of the thread, as in /proc. */
DWORD GetCurrentThreadId(void) NDX_ND_NAMED(GetCurrentThreadId);

/** A handle that means the calling thread to SetThreadAffinityMask() and SetThreadPriority(). */
#define GetCurrentThread() ((HANDLE)(intptr_t)-2)
#define GetCurrentProcess() ((HANDLE)(intptr_t)-1)

/**
 * Bind a thread to some of the first 64 processors.
 *
 * @return the previous mask; 0 with ERROR_INVALID_HANDLE (no thread, or one that has ended) or
 *         ERROR_INVALID_PARAMETER (none of the processors is usable)
 */
DWORD_PTR SetThreadAffinityMask(HANDLE thread, DWORD_PTR mask) NDX_ND_NAMED(SetThreadAffinityMask);

/** Has no effect: on Linux a thread needs a privilege to gain priority. */
BOOL SetThreadPriority(HANDLE thread, int priority) NDX_ND_NAMED(SetThreadPriority);

/** Blocks for so many milliseconds at least; 0 gives way to another thread. */
void Sleep(DWORD milliseconds) NDX_ND_NAMED(Sleep);
BOOL SwitchToThread(void) NDX_ND_NAMED(SwitchToThread);

/* ---- time ---- */

/** A monotonic clock of 10 MHz, as on Windows: `count * 1000000` does not overflow for days. */
BOOL QueryPerformanceCounter(LARGE_INTEGER *count) NDX_ND_NAMED(QueryPerformanceCounter);
BOOL QueryPerformanceFrequency(LARGE_INTEGER *frequency) NDX_ND_NAMED(QueryPerformanceFrequency);

/** Milliseconds of a monotonic clock; the 32-bit one starts again after 49.7 days. */
DWORD GetTickCount(void) NDX_ND_NAMED(GetTickCount);
ULONGLONG GetTickCount64(void) NDX_ND_NAMED(GetTickCount64);

/** The date and time in UTC. */
void GetSystemTimeAsFileTime(LPFILETIME time) NDX_ND_NAMED(GetSystemTimeAsFileTime);

/**
 * Time that all processors together have spent; any pointer may be NULL.
 *
 * @param[out] kernel  includes the idle time, as on Windows
 * @return FALSE with ERROR_NOT_SUPPORTED if /proc/stat cannot be read
 */
BOOL GetSystemTimes(LPFILETIME idle, LPFILETIME kernel, LPFILETIME user)
	NDX_ND_NAMED(GetSystemTimes);

/* ---- memory ---- */

/**
 * Heaps. Blocks are aligned to 16 bytes. The heap of the process is malloc(), with the size of
 * each block kept before it. Initial and maximal size of a heap are ignored; all heaps are safe for
 * threads. A block freed in another heap than its own is ERROR_INVALID_PARAMETER.
 */
HANDLE GetProcessHeap(void) NDX_ND_NAMED(GetProcessHeap);
HANDLE HeapCreate(DWORD flags, SIZE_T initial, SIZE_T maximal) NDX_ND_NAMED(HeapCreate);

/** Frees all blocks of the heap. The heap of the process: ERROR_INVALID_HANDLE. */
BOOL HeapDestroy(HANDLE heap) NDX_ND_NAMED(HeapDestroy);

/** @return the block, for HeapFree(); NULL with ERROR_NOT_ENOUGH_MEMORY */
LPVOID HeapAlloc(HANDLE heap, DWORD flags, SIZE_T bytes) NDX_ND_NAMED(HeapAlloc);

/** @return the block, moved unless HEAP_REALLOC_IN_PLACE_ONLY; NULL: the old block is as it was */
LPVOID HeapReAlloc(HANDLE heap, DWORD flags, LPVOID block, SIZE_T bytes) NDX_ND_NAMED(HeapReAlloc);

/** NULL as @p block is no failure. */
BOOL HeapFree(HANDLE heap, DWORD flags, LPVOID block) NDX_ND_NAMED(HeapFree);

/** @return the size asked for, or (SIZE_T)-1 */
SIZE_T HeapSize(HANDLE heap, DWORD flags, LPCVOID block) NDX_ND_NAMED(HeapSize);

/**
 * Reserve pages, or make pages usable, or both. Fresh pages are zero.
 *
 * @param address     NULL; or where to reserve; or pages of an earlier reservation to commit
 * @param bytes       rounded up to pages, not 0
 * @param type        MEM_RESERVE, MEM_COMMIT or both
 * @param protection  one PAGE_ value
 * @return the first page, for VirtualFree(); NULL with ERROR_INVALID_PARAMETER (no such value),
 *         ERROR_INVALID_ADDRESS (not free, or not reserved) or ERROR_NOT_ENOUGH_MEMORY
 */
LPVOID VirtualAlloc(LPVOID address, SIZE_T bytes, DWORD type, DWORD protection)
	NDX_ND_NAMED(VirtualAlloc);

/**
 * @param bytes  0 with MEM_RELEASE, which needs what VirtualAlloc() returned; with MEM_DECOMMIT
 *               the pages to empty
 * @return FALSE with ERROR_INVALID_PARAMETER or ERROR_INVALID_ADDRESS
 */
BOOL VirtualFree(LPVOID address, SIZE_T bytes, DWORD type) NDX_ND_NAMED(VirtualFree);

/** @param alignment  a power of two. Returns memory for _aligned_free() only, or NULL. */
void *_aligned_malloc(size_t bytes, size_t alignment) NDX_ND_NAMED(_aligned_malloc);
void _aligned_free(void *block) NDX_ND_NAMED(_aligned_free);

/* ---- the machine and the process ---- */

void GetSystemInfo(LPSYSTEM_INFO info) NDX_ND_NAMED(GetSystemInfo);
DWORD GetCurrentProcessorNumber(void) NDX_ND_NAMED(GetCurrentProcessorNumber);
DWORD GetCurrentProcessId(void) NDX_ND_NAMED(GetCurrentProcessId);

/** exit(): 8 bits of the code reach the parent. */
void ExitProcess(UINT code) NDX_ND_NAMED(ExitProcess) __attribute__((noreturn));

/* ---- names that cost nothing ---- */

#define OPTIONAL
#define _stdcall
#define _cdecl
#define MAXULONG 0xFFFFFFFFu
#define _byteswap_ushort(value) __builtin_bswap16(value)
#define _byteswap_ulong(value) __builtin_bswap32(value)
#define _byteswap_uint64(value) __builtin_bswap64(value)
#define HRESULT_FROM_NT(status) ((HRESULT)((ULONG)(status) | 0x10000000u))
#define E_NOT_SUFFICIENT_BUFFER ((HRESULT)0x8007007A)
#define E_NOT_VALID_STATE ((HRESULT)0x8007139F)

/** Raises SIGTRAP. */
void DebugBreak(void) NDX_ND_NAMED(DebugBreak);

NDX_ND_END

#endif
