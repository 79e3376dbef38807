/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as text. */
#include "winrt.h"

#include <net/if.h>

#define LONGEST_ADDRESS 128
#define VERSION_HIGHEST MAKEWORD(2, 2)

namespace
{

int startups;

INT fail(int error)
{
	SetLastError(static_cast<DWORD>(error));
	return SOCKET_ERROR;
}

/* Decimal digits and nothing else, up to a limit. */
bool read_number(const char *text, uint32_t limit, uint32_t *number)
{
	uint64_t value = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + static_cast<uint64_t>(*text - '0');
		if (value > limit)
			return false;
	}
	*number = static_cast<uint32_t>(value);
	return true;
}

/* Cut the text at the last `mark`, behind which is a port; none: the port is 0. */
bool cut_port(char *text, char mark, in_port_t *port)
{
	char *const at = strrchr(text, mark);
	uint32_t number = 0;

	if (at != nullptr) {
		*at = '\0';
		if (!read_number(at + 1, UINT16_MAX, &number))
			return false;
	}
	*port = htons(static_cast<uint16_t>(number));
	return true;
}

bool read_ipv4(char *text, SOCKADDR_IN *address)
{
	return cut_port(text, ':', &address->sin_port) &&
	       inet_pton(AF_INET, text, &address->sin_addr) == 1;
}

bool cut_scope(char *text, uint32_t *scope)
{
	char *const at = strchr(text, '%');

	if (at == nullptr)
		return true;
	*at = '\0';
	if (read_number(at + 1, UINT32_MAX, scope))
		return true;
	*scope = if_nametoindex(at + 1);
	return *scope != 0;
}

bool read_ipv6(char *text, SOCKADDR_IN6 *address)
{
	if (*text == '[') {
		char *const end = strchr(++text, ']');

		if (end == nullptr || (end[1] != '\0' && end[1] != ':'))
			return false;
		if (!cut_port(end, ':', &address->sin6_port))
			return false;
		*end = '\0';
	}
	return cut_scope(text, &address->sin6_scope_id) &&
	       inet_pton(AF_INET6, text, &address->sin6_addr) == 1;
}

/* The text is overwritten. */
INT read_address(char *text, INT family, LPSOCKADDR address, LPINT size)
{
	SOCKADDR_INET read;
	const INT needed = family == AF_INET6 ? static_cast<INT>(sizeof(read.Ipv6))
	                                      : static_cast<INT>(sizeof(read.Ipv4));

	memset(&read, 0, sizeof(read));
	read.si_family = static_cast<ADDRESS_FAMILY>(family);
	if (family == AF_INET ? !read_ipv4(text, &read.Ipv4)
	                      : family != AF_INET6 || !read_ipv6(text, &read.Ipv6))
		return fail(WSAEINVAL);
	if (*size < needed) {
		*size = needed;
		return fail(WSAEFAULT);
	}
	memcpy(address, &read, static_cast<size_t>(needed));
	*size = needed;
	return 0;
}

/* false: the text has other characters than an address, or is too long for one. */
bool narrow(const wchar_t *wide, char *text, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		if (static_cast<uint32_t>(wide[i]) > '~')
			return false;
		text[i] = static_cast<char>(wide[i]);
		if (wide[i] == 0)
			return true;
	}
	return false;
}

/* The length with the terminating character; 0: the address is none. */
DWORD write_address(const SOCKADDR *address, DWORD size, char *text, size_t room)
{
	SOCKADDR_INET copy;
	char host[INET6_ADDRSTRLEN];
	char scope[16] = "";
	int length = -1;

	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, address, size < sizeof(copy) ? size : sizeof(copy));
	if (size >= sizeof(copy.Ipv4) && copy.si_family == AF_INET) {
		const unsigned port = ntohs(copy.Ipv4.sin_port);

		(void)inet_ntop(AF_INET, &copy.Ipv4.sin_addr, host, sizeof(host));
		length = port == 0 ? snprintf(text, room, "%s", host)
		                   : snprintf(text, room, "%s:%u", host, port);
	} else if (size >= sizeof(copy.Ipv6) && copy.si_family == AF_INET6) {
		const unsigned port = ntohs(copy.Ipv6.sin6_port);

		(void)inet_ntop(AF_INET6, &copy.Ipv6.sin6_addr, host, sizeof(host));
		if (copy.Ipv6.sin6_scope_id != 0)
			(void)snprintf(scope, sizeof(scope), "%%%u", copy.Ipv6.sin6_scope_id);
		length = port == 0 ? snprintf(text, room, "%s%s", host, scope)
		                   : snprintf(text, room, "[%s%s]:%u", host, scope, port);
	}
	return length < 0 ? 0 : static_cast<DWORD>(length) + 1;
}

template <class Char>
INT address_to_text(const SOCKADDR *address, DWORD size, Char *text, LPDWORD length)
{
	char narrow_text[LONGEST_ADDRESS];
	DWORD needed;
	DWORD room;

	if (address == nullptr || text == nullptr || length == nullptr ||
	    size < sizeof(address->sa_family))
		return fail(WSAEFAULT);
	needed = write_address(address, size, narrow_text, sizeof(narrow_text));
	if (needed == 0)
		return fail(WSAEINVAL);
	room = *length;
	*length = needed;
	if (room < needed)
		return fail(WSAEFAULT);
	for (DWORD i = 0; i < needed; i++)
		text[i] = static_cast<Char>(narrow_text[i]);
	return 0;
}

} // namespace

int WSAStartup(WORD version, LPWSADATA data)
{
	if (data == nullptr)
		return WSAEFAULT;
	memset(data, 0, sizeof(*data));
	data->wHighVersion = VERSION_HIGHEST;
	data->wVersion = VERSION_HIGHEST;
	if (LOBYTE(version) == 0)
		return WSAVERNOTSUPPORTED;
	if (LOBYTE(version) < 2 || version == MAKEWORD(2, 0) || version == MAKEWORD(2, 1))
		data->wVersion = version;
	(void)__atomic_add_fetch(&startups, 1, __ATOMIC_RELAXED);
	return 0;
}

int WSACleanup()
{
	int count = __atomic_load_n(&startups, __ATOMIC_RELAXED);

	while (count > 0 && !__atomic_compare_exchange_n(&startups, &count, count - 1, false,
	                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
	}
	return count > 0 ? 0 : fail(WSANOTINITIALISED);
}

int WSAGetLastError()
{
	return static_cast<int>(GetLastError());
}

void WSASetLastError(int error)
{
	SetLastError(static_cast<DWORD>(error));
}

INT WSAStringToAddressW(LPWSTR text, INT family, LPWSAPROTOCOL_INFOW, LPSOCKADDR address,
                        LPINT size)
{
	char copy[LONGEST_ADDRESS];

	if (text == nullptr || address == nullptr || size == nullptr)
		return fail(WSAEFAULT);
	if (!narrow(text, copy, sizeof(copy)))
		return fail(WSAEINVAL);
	return read_address(copy, family, address, size);
}

INT WSAStringToAddressA(LPSTR text, INT family, LPWSAPROTOCOL_INFOA, LPSOCKADDR address, LPINT size)
{
	char copy[LONGEST_ADDRESS];
	size_t length;

	if (text == nullptr || address == nullptr || size == nullptr)
		return fail(WSAEFAULT);
	length = strnlen(text, sizeof(copy));
	if (length == sizeof(copy))
		return fail(WSAEINVAL);
	memcpy(copy, text, length + 1);
	return read_address(copy, family, address, size);
}

INT WSAAddressToStringW(LPSOCKADDR address, DWORD size, LPWSAPROTOCOL_INFOW, LPWSTR text,
                        LPDWORD length)
{
	return address_to_text(address, size, text, length);
}

INT WSAAddressToStringA(LPSOCKADDR address, DWORD size, LPWSAPROTOCOL_INFOA, LPSTR text,
                        LPDWORD length)
{
	return address_to_text(address, size, text, length);
}

INT InetPtonW(INT family, PCWSTR text, PVOID address)
{
	char copy[LONGEST_ADDRESS];

	if (text == nullptr || address == nullptr)
		return fail(WSAEFAULT);
	if (family != AF_INET && family != AF_INET6)
		return fail(WSAEAFNOSUPPORT);
	return narrow(text, copy, sizeof(copy)) ? inet_pton(family, copy, address) : 0;
}

PCWSTR InetNtopW(INT family, const VOID *address, PWSTR text, size_t length)
{
	char copy[INET6_ADDRSTRLEN];

	if (address == nullptr || text == nullptr ||
	    inet_ntop(family, address, copy, sizeof(copy)) == nullptr || strlen(copy) >= length)
		return static_cast<PCWSTR>(winrt_null(WSAEINVAL));
	for (size_t i = 0; i <= strlen(copy); i++)
		text[i] = static_cast<wchar_t>(copy[i]);
	return text;
}
