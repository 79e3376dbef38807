/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Socket addresses under their Windows names. Sockets themselves are those of the platform, whose
 * headers this one includes; their errors are in errno, and WSAGetLastError() knows only the errors
 * of the functions declared here.
 *
 * Programs say `sin_addr.S_un.S_addr`. Where this header is the first to include <netinet/in.h>,
 * struct in_addr is a union of `s_addr` and `S_un`, of the same size, alignment and calling
 * convention, so both names work and the platform's functions take the structure. If something
 * included <netinet/in.h> before, or if NDX_NO_S_UN is defined, the structure is the platform's own
 * and only `s_addr` works.
 */
#ifndef NDX_WINSOCK2_H
#define NDX_WINSOCK2_H

#include "windows.h"

#include <unistd.h>

/** The address of struct in_addr by bytes, words and as a whole, in network order. */
union ndx_nd_s_un {
	struct {
		UCHAR s_b1, s_b2, s_b3, s_b4;
	} S_un_b;
	struct {
		USHORT s_w1, s_w2;
	} S_un_w;
	ULONG S_addr;
};

#if !defined(_NETINET_IN_H) && !defined(s_addr) && !defined(NDX_NO_S_UN)
/* The structure of the platform is `{ in_addr_t s_addr; }`. For the time of its declaration the
 * member's name is replaced by an unnamed field of no bits, which takes no room, and the union. */
#define s_addr                          \
	: 0;                            \
	__extension__ union {           \
		in_addr_t s_addr;       \
		union ndx_nd_s_un S_un; \
	}
#include <netinet/in.h>
#undef s_addr
#endif
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifdef __cplusplus
static_assert(sizeof(struct in_addr) == 4, "struct in_addr is what the platform's functions take");
#else
_Static_assert(sizeof(struct in_addr) == 4, "struct in_addr is what the platform's functions take");
#endif

typedef INT *PINT, *LPINT;
typedef int SOCKET;
#define INVALID_SOCKET (-1)
#define SOCKET_ERROR (-1)
#define SD_RECEIVE SHUT_RD
#define SD_SEND SHUT_WR
#define SD_BOTH SHUT_RDWR

typedef sa_family_t ADDRESS_FAMILY;
typedef struct in_addr IN_ADDR, *PIN_ADDR, *LPIN_ADDR;
typedef struct in6_addr IN6_ADDR, *PIN6_ADDR, *LPIN6_ADDR;
typedef struct sockaddr SOCKADDR, *PSOCKADDR, *LPSOCKADDR;
typedef struct sockaddr_in SOCKADDR_IN, *PSOCKADDR_IN, *LPSOCKADDR_IN;
typedef struct sockaddr_in6 SOCKADDR_IN6, *PSOCKADDR_IN6, *LPSOCKADDR_IN6;
typedef struct sockaddr_storage SOCKADDR_STORAGE, *PSOCKADDR_STORAGE, *LPSOCKADDR_STORAGE;

typedef union _SOCKADDR_INET {
	SOCKADDR_IN Ipv4;
	SOCKADDR_IN6 Ipv6;
	ADDRESS_FAMILY si_family;
} SOCKADDR_INET, *PSOCKADDR_INET;

typedef struct _SOCKET_ADDRESS {
	LPSOCKADDR lpSockaddr;
	INT iSockaddrLength;
} SOCKET_ADDRESS, *PSOCKET_ADDRESS, *LPSOCKET_ADDRESS;

/** A list with room for more addresses than it declares; what they point to is behind them. */
typedef struct _SOCKET_ADDRESS_LIST {
	INT iAddressCount;
	SOCKET_ADDRESS Address[1];
} SOCKET_ADDRESS_LIST, *PSOCKET_ADDRESS_LIST, *LPSOCKET_ADDRESS_LIST;

typedef struct _WSAPROTOCOL_INFOW WSAPROTOCOL_INFOW, *LPWSAPROTOCOL_INFOW;
typedef struct _WSAPROTOCOL_INFOA WSAPROTOCOL_INFOA, *LPWSAPROTOCOL_INFOA;
#define WSAPROTOCOL_INFO NDX_ND_TEXT(WSAPROTOCOL_INFOW, WSAPROTOCOL_INFOA)
#define LPWSAPROTOCOL_INFO NDX_ND_TEXT(LPWSAPROTOCOL_INFOW, LPWSAPROTOCOL_INFOA)

typedef struct _WSADATA {
	WORD wVersion;
	WORD wHighVersion;
	unsigned short iMaxSockets;
	unsigned short iMaxUdpDg;
	char *lpVendorInfo;
	char szDescription[257];
	char szSystemStatus[129];
} WSADATA, *LPWSADATA;

NDX_ND_BEGIN

/**
 * Nothing has to be started; the call is counted.
 *
 * @param[out] data  versions
 * @return 0, WSAEFAULT (no data) or WSAVERNOTSUPPORTED (a version before 1.0)
 */
int WSAStartup(WORD version, LPWSADATA data) NDX_ND_NAMED(WSAStartup);

/** @return 0, or SOCKET_ERROR with WSANOTINITIALISED if WSAStartup() was called less often. */
int WSACleanup(void) NDX_ND_NAMED(WSACleanup);

/** The same value as that of GetLastError(). */
int WSAGetLastError(void) NDX_ND_NAMED(WSAGetLastError);
void WSASetLastError(int error) NDX_ND_NAMED(WSASetLastError);

/**
 * Read an address: `a.b.c.d` and `a.b.c.d:port`; `addr`, `addr%scope`, `[addr]` and `[addr]:port`
 * of IPv6, where scope is a number or the name of an interface.
 *
 * @param family        AF_INET or AF_INET6
 * @param protocol      ignored
 * @param[out] address  untouched on failure
 * @param[in,out] size  bytes of room; then bytes of the address, also if there was not enough room
 * @return 0, or SOCKET_ERROR with WSAEINVAL (no address of that family) or WSAEFAULT (a pointer is
 *         NULL, or there is not enough room)
 */
INT WSAStringToAddressW(LPWSTR text, INT family, LPWSAPROTOCOL_INFOW protocol, LPSOCKADDR address,
                        LPINT size) NDX_ND_NAMED(WSAStringToAddressW);
INT WSAStringToAddressA(LPSTR text, INT family, LPWSAPROTOCOL_INFOA protocol, LPSOCKADDR address,
                        LPINT size) NDX_ND_NAMED(WSAStringToAddressA);
#define WSAStringToAddress NDX_ND_TEXT(WSAStringToAddressW, WSAStringToAddressA)

/**
 * Write an address in the form that WSAStringToAddress() reads; a port of 0 is left out.
 *
 * @param size            bytes of the address
 * @param[out] text       untouched on failure
 * @param[in,out] length  characters of room; then characters written with the terminating one, or
 *                        needed
 * @return 0, or SOCKET_ERROR with WSAEINVAL (family or size) or WSAEFAULT (as above)
 */
INT WSAAddressToStringW(LPSOCKADDR address, DWORD size, LPWSAPROTOCOL_INFOW protocol, LPWSTR text,
                        LPDWORD length) NDX_ND_NAMED(WSAAddressToStringW);
INT WSAAddressToStringA(LPSOCKADDR address, DWORD size, LPWSAPROTOCOL_INFOA protocol, LPSTR text,
                        LPDWORD length) NDX_ND_NAMED(WSAAddressToStringA);
#define WSAAddressToString NDX_ND_TEXT(WSAAddressToStringW, WSAAddressToStringA)

NDX_ND_END

static inline int closesocket(SOCKET socket)
{
	return close(socket);
}

#endif
