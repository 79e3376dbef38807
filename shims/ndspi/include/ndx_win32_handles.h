/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Handles: events, completion ports, and waiting for them. The functions are in libndx-ndspi.so.
 *
 * Every function reports a failure by its return value and leaves the reason for GetLastError(),
 * which is a value of the calling thread. A function that succeeds leaves the last error alone. All
 * functions may be called by any thread. Only the functions that take milliseconds block; INFINITE
 * means no limit. Objects have no names: a name other than NULL fails with ERROR_INVALID_PARAMETER.
 */
#ifndef NDX_WIN32_HANDLES_H
#define NDX_WIN32_HANDLES_H

#include "ndx_win32_types.h"
#include "winerror.h"

/* Programs have wide names unless they are compiled for multibyte characters. */
#if defined(_MBCS) && !defined(UNICODE) && !defined(_UNICODE)
#define NDX_ND_TEXT(wide, narrow) narrow
#else
#define NDX_ND_TEXT(wide, narrow) wide
#endif

#define INVALID_HANDLE_VALUE ((HANDLE)(intptr_t)-1)
#define INFINITE 0xFFFFFFFFu
#define WAIT_OBJECT_0 0u
#define WAIT_ABANDONED 0x80u
#define WAIT_ABANDONED_0 0x80u
#define WAIT_IO_COMPLETION 0xC0u
#define WAIT_FAILED 0xFFFFFFFFu
#define MAXIMUM_WAIT_OBJECTS 64

/** Ignored: objects here have no owner and child processes do not inherit them. */
typedef struct _SECURITY_ATTRIBUTES {
	DWORD nLength;
	LPVOID lpSecurityDescriptor;
	BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

/** One packet of a completion port. */
typedef struct _OVERLAPPED_ENTRY {
	ULONG_PTR lpCompletionKey;
	LPOVERLAPPED lpOverlapped;
	ULONG_PTR Internal;
	DWORD dwNumberOfBytesTransferred;
} OVERLAPPED_ENTRY, *LPOVERLAPPED_ENTRY;

/** Whether the call of an OVERLAPPED is no longer in flight. */
#define HasOverlappedIoCompleted(overlapped) \
	(__atomic_load_n(&(overlapped)->Internal, __ATOMIC_ACQUIRE) != 0x103u)

NDX_ND_BEGIN

/** The reason why the last function failed in this thread. */
DWORD GetLastError(void) NDX_ND_NAMED(GetLastError);
void SetLastError(DWORD error) NDX_ND_NAMED(SetLastError);

/**
 * Drop the program's reference of a handle. The two lowest bits of the handle are ignored. An
 * object lives on while a thread waits for it or a call uses it.
 *
 * @return FALSE with ERROR_INVALID_HANDLE if there is no such handle
 */
BOOL CloseHandle(HANDLE handle) NDX_ND_NAMED(CloseHandle);

/**
 * Create an event.
 *
 * @param security      ignored; may be NULL
 * @param manual_reset  TRUE: the event stays set until ResetEvent(); FALSE: one waiter resets it
 * @param initial_state TRUE: the event is set from the beginning
 * @param name          NULL
 * @return the handle, for CloseHandle(); NULL with ERROR_NOT_ENOUGH_MEMORY or
 *         ERROR_INVALID_PARAMETER
 */
HANDLE CreateEventW(LPSECURITY_ATTRIBUTES security, BOOL manual_reset, BOOL initial_state,
                    LPCWSTR name) NDX_ND_NAMED(CreateEventW);
HANDLE CreateEventA(LPSECURITY_ATTRIBUTES security, BOOL manual_reset, BOOL initial_state,
                    LPCSTR name) NDX_ND_NAMED(CreateEventA);
#define CreateEvent NDX_ND_TEXT(CreateEventW, CreateEventA)
BOOL SetEvent(HANDLE event) NDX_ND_NAMED(SetEvent);
BOOL ResetEvent(HANDLE event) NDX_ND_NAMED(ResetEvent);

/**
 * Wait until an event is set or a thread has ended.
 *
 * @return WAIT_OBJECT_0, WAIT_TIMEOUT, or WAIT_FAILED with ERROR_INVALID_HANDLE
 */
DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds) NDX_ND_NAMED(WaitForSingleObject);

/**
 * Wait for one of several objects, or for all of them.
 *
 * @param count     1 .. MAXIMUM_WAIT_OBJECTS
 * @param handles   the objects; the caller owns the array
 * @param wait_all  FALSE: the first object of the array that is signalled ends the wait
 * @return WAIT_OBJECT_0 + index, WAIT_TIMEOUT, or WAIT_FAILED with ERROR_INVALID_HANDLE or
 *         ERROR_INVALID_PARAMETER
 */
DWORD WaitForMultipleObjects(DWORD count, const HANDLE *handles, BOOL wait_all, DWORD milliseconds)
	NDX_ND_NAMED(WaitForMultipleObjects);

/**
 * Create a completion port, or bind an overlapped file of an adapter to one, or both.
 *
 * @param file      INVALID_HANDLE_VALUE: only create a port
 * @param existing  NULL: create a port
 * @param key       what the packets of the file carry
 * @param threads   ignored: all threads that wait may run
 * @return the port, for CloseHandle(); NULL with ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER (the
 *         file is bound already) or ERROR_NOT_ENOUGH_MEMORY
 */
HANDLE CreateIoCompletionPort(HANDLE file, HANDLE existing, ULONG_PTR key, DWORD threads)
	NDX_ND_NAMED(CreateIoCompletionPort);

/**
 * Take a packet off a port.
 *
 * @return TRUE for the packet of a call that succeeded. FALSE with *overlapped not NULL is the
 *         packet of a call that failed. FALSE with *overlapped NULL is no packet: WAIT_TIMEOUT,
 *         ERROR_ABANDONED_WAIT_0 (the port was closed) or ERROR_INVALID_HANDLE.
 */
BOOL GetQueuedCompletionStatus(HANDLE port, DWORD *bytes, ULONG_PTR *key, LPOVERLAPPED *overlapped,
                               DWORD milliseconds) NDX_ND_NAMED(GetQueuedCompletionStatus);

/**
 * Take up to @p count packets off a port; blocks until there is one.
 *
 * @param alertable  ignored
 */
BOOL GetQueuedCompletionStatusEx(HANDLE port, LPOVERLAPPED_ENTRY entries, ULONG count,
                                 ULONG *removed, DWORD milliseconds, BOOL alertable)
	NDX_ND_NAMED(GetQueuedCompletionStatusEx);

/** Put a packet of the program's own on a port; the library does not look at @p overlapped. */
BOOL PostQueuedCompletionStatus(HANDLE port, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped)
	NDX_ND_NAMED(PostQueuedCompletionStatus);

/**
 * Result of a call on an overlapped file. Programs for NetworkDirect use the function of the same
 * name that the object has.
 *
 * @param wait  TRUE: block until the call has completed; FALSE: ERROR_IO_INCOMPLETE if it has not
 */
BOOL GetOverlappedResult(HANDLE file, LPOVERLAPPED overlapped, DWORD *bytes, BOOL wait)
	NDX_ND_NAMED(GetOverlappedResult);

/**
 * Extension: a descriptor that is readable while the port has a packet, for poll() and epoll. The
 * port owns the descriptor.
 *
 * @return the descriptor, or -1 with ERROR_INVALID_HANDLE or ERROR_NOT_ENOUGH_MEMORY
 */
int NdxPortDescriptor(HANDLE port) NDX_ND_NAMED(NdxPortDescriptor);

NDX_ND_END

#endif
