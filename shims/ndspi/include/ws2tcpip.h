/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Names to addresses. inet_pton(), getaddrinfo() and the like are those of the platform. */
#ifndef NDX_WS2TCPIP_H
#define NDX_WS2TCPIP_H

#include "winsock2.h"

#include <netdb.h>

#define InetPtonA inet_pton
#define InetNtopA inet_ntop
#define InetPton NDX_ND_TEXT(InetPtonW, InetPtonA)
#define InetNtop NDX_ND_TEXT(InetNtopW, InetNtopA)

NDX_ND_BEGIN

/** inet_pton() for a wide string: 1, 0 (no address), or -1 with WSAEFAULT or WSAEAFNOSUPPORT. */
INT InetPtonW(INT family, PCWSTR text, PVOID address) NDX_ND_NAMED(InetPtonW);

/** inet_ntop() for a wide string of @p length characters: @p text, or NULL with WSAEINVAL. */
PCWSTR InetNtopW(INT family, const VOID *address, PWSTR text, size_t length)
	NDX_ND_NAMED(InetNtopW);

NDX_ND_END

#endif
