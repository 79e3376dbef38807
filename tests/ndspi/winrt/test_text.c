/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing, text and addresses, as a C program has them. */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <tchar.h>
#include <ntstatus.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <locale.h>
#include <net/if.h>

/* ---- what goes to stdout ---- */

static struct {
	int saved;
	int pipe[2];
	char text[8192];
} capture;

static void begin_capture(void)
{
	assert_int_equal(fflush(stdout), 0);
	assert_int_equal(pipe(capture.pipe), 0);
	capture.saved = dup(STDOUT_FILENO);
	assert_int_equal(dup2(capture.pipe[1], STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(close(capture.pipe[1]), 0);
}

static const char *end_capture(void)
{
	ssize_t bytes;

	assert_int_equal(fflush(stdout), 0);
	assert_int_equal(dup2(capture.saved, STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(close(capture.saved), 0);
	bytes = read(capture.pipe[0], capture.text, sizeof(capture.text) - 1);
	assert_int_equal(close(capture.pipe[0]), 0);
	assert_true(bytes >= 0);
	capture.text[bytes] = '\0';
	return capture.text;
}

static void wide_and_narrow_output_mix(void **state)
{
	(void)state;
	begin_capture();
	assert_int_equal(wprintf(L"one %d\n", 1), 6);
	assert_int_equal(printf("two %d\n", 2), 6);
	_tprintf(_T("three %s\n"), _T("3"));
	assert_int_equal(_fcloseall(), 0);
	printf("four\n");
	fputws(L"five ", stdout);
	_putts(TEXT("six"));
	_ftprintf(stdout, _T("%c"), L'7');
	assert_string_equal(end_capture(), "one 1\ntwo 2\nthree 3\nfour\nfive six\n7");
}

static void text_conversions_are_microsofts(void **state)
{
	(void)state;
	begin_capture();
	wprintf(L"[%s|%S|%hs|%ls|%ws]", L"wide", "narrow", "h", L"l", L"w");
	wprintf(L"[%c%C%hc%lc]", L'a', 'b', 'c', L'd');
	wprintf(L"[%-6s|%6S|%.2s|%*.*s]", L"abc", "def", L"ghi", 4, 1, L"jk");
	wprintf(L"[%s%%]", L"100");
	assert_string_equal(end_capture(),
	                    "[wide|narrow|h|l|w][abcd][abc   |   def|gh|   j][100%]");
}

static void integer_conversions_are_microsofts(void **state)
{
	const DWORD many = 0xFFFFFFFFu;
	const LONG less = -1;

	(void)state;
	begin_capture();
	wprintf(L"[%I64d|%I64u|%016I64x]", INT64_MIN, UINT64_MAX, (UINT64)0xABCD);
	wprintf(L"[%I32d|%I32x|%Id|%Iu|%5Id]", -3, 255, (INT_PTR)-4, SIZE_MAX, (INT_PTR)6);
	wprintf(L"[%ld|%lu|%lx|%08lX|%lld|%hu|%hhd|%zu]", less, many, less, 0xBEEF, -1LL,
	        (unsigned short)7, (signed char)-8, (size_t)9);
	wprintf(L"[%d %d %d %d %d %d %ld %lu %I64d]", 1, 2, 3, 4, 5, 6, less, many, INT64_MAX);
	wprintf(L"[%.1f|%5.2lf|%x|%#o]", 1.25, 2.5, 0xAu, 8u);
	assert_string_equal(end_capture(),
	                    "[-9223372036854775808|18446744073709551615|000000000000abcd]"
	                    "[-3|ff|-4|18446744073709551615|    6]"
	                    "[-1|4294967295|ffffffff|0000BEEF|-1|7|-8|9]"
	                    "[1 2 3 4 5 6 -1 4294967295 9223372036854775807]"
	                    "[1.2| 2.50|a|010]");
}

static int print(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = ndx_nd_vprintf(format, arguments);
	va_end(arguments);
	return length;
}

static void narrow_formats_are_translated_on_request(void **state)
{
	(void)state;
	begin_capture();
	assert_int_equal(print("[%I64d|%6Id|%s|%S|%ws|%hs|%C|%lu]", INT64_MAX, (INT_PTR)5, "n",
	                       L"w", L"x", "y", L'z', (ULONG)1),
	                 40);
	print("%d%%", 5);
	print("%");
	print("");
	assert_string_equal(end_capture(), "[9223372036854775807|     5|n|w|x|y|z|1]5%");
}

static void long_and_foreign_text_is_written(void **state)
{
	wchar_t wide[3001];

	(void)state;
	for (size_t i = 0; i < 3000; i++)
		wide[i] = L'x';
	wide[3000] = L'\0';
	begin_capture();
	assert_int_equal(wprintf(L"%s", wide), 3000);
	assert_int_equal(strlen(end_capture()), 3000);

	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	begin_capture();
	assert_int_equal(wprintf(L"%5s|", L"\u00e4\u20ac"), 6);
	assert_string_equal(end_capture(), "   \u00e4\u20ac|");
	assert_non_null(setlocale(LC_CTYPE, "C"));
	begin_capture();
	assert_int_equal(wprintf(L"%s", L"a\u20acb"), 3);
	assert_string_equal(end_capture(), "a?b");
}

/* ---- text that knows its room ---- */

static void copies_stay_within_their_room(void **state)
{
	wchar_t wide[4] = L"abc";
	char narrow[4] = "abc";

	(void)state;
	assert_int_equal(wcscpy_s(wide, _countof(wide), L"xyz"), 0);
	assert_int_equal(wcscmp(wide, L"xyz"), 0);
	assert_int_equal(wcscpy_s(wide, _countof(wide), L"four"), ERANGE);
	assert_int_equal(wide[0], 0);
	assert_int_equal(wide[1], L'y');
	assert_int_equal(wcscpy_s(wide, 0, L""), ERANGE);
	assert_int_equal(wcscpy_s(wide, 4, NULL), EINVAL);
	assert_int_equal(wcscpy_s(NULL, 4, L""), EINVAL);
	assert_int_equal(_tcscpy_s(wide, 4, _T("a")), 0);
	assert_int_equal(_tcscat_s(wide, 4, _T("bc")), 0);
	assert_int_equal(_tcscmp(wide, _T("abc")), 0);
	assert_int_equal(wcscat_s(wide, 4, L"d"), ERANGE);
	assert_int_equal(strcpy_s(narrow, 4, "abc"), 0);
	assert_int_equal(strcat_s(narrow, 3, "d"), ERANGE);
	assert_int_equal(strcpy_s(narrow, 4, "abcd"), ERANGE);
	assert_string_equal(narrow, "");
	assert_int_equal(memcpy_s(narrow, 4, "wxyz", 4), 0);
	assert_memory_equal(narrow, "wxyz", 4);
	assert_int_equal(memcpy_s(narrow, 4, "12345", 5), ERANGE);
	assert_memory_equal(narrow, "\0\0\0\0", 4);
	assert_int_equal(memcpy_s(NULL, 4, "", 1), EINVAL);
	assert_int_equal(memcpy_s(narrow, 4, NULL, 1), EINVAL);
}

static void prints_stay_within_their_room(void **state)
{
	wchar_t wide[8] = L"1234567";
	char narrow[8] = "1234567";

	(void)state;
	assert_int_equal(swprintf_s(wide, 5, L"%s%S", L"ab", "cd"), 4);
	assert_int_equal(wcscmp(wide, L"abcd"), 0);
	assert_int_equal(wide[5], L'6');
	assert_int_equal(swprintf_s(wide, 4, L"%s", L"abcd"), -1);
	assert_int_equal(wide[0], 0);
	assert_int_equal(wide[5], L'6');
	assert_int_equal(swprintf_s(NULL, 4, L"x"), -1);
	assert_int_equal(sprintf_s(narrow, 5, "%I64d", (INT64)1234), 4);
	assert_string_equal(narrow, "1234");
	assert_int_equal(sprintf_s(narrow, 4, "%d", 1234), -1);
	assert_string_equal(narrow, "");
	assert_int_equal(_snwprintf(wide, 3, L"%d", 98765), -1);
	assert_int_equal(wmemcmp(wide, L"987", 3), 0);
	assert_int_equal(wide[3], L'd');
	assert_int_equal(_snprintf(narrow, 3, "%d", 98765), -1);
	assert_memory_equal(narrow, "9874", 4);
	assert_int_equal(_snprintf(NULL, 0, "%d", 98765), 5);
	assert_int_equal(_snprintf(narrow, 5, "%d", 98765), 5); /* without an end */
	assert_int_equal(swprintf(wide, 3, L"%d", 12), 2);
	assert_int_equal(swprintf(wide, 3, L"%d", 123), -1);
	assert_int_equal(wcscmp(wide, L"12"), 0);
}

static void numbers_and_names_are_read(void **state)
{
	FILE *file;
	char line[16];

	(void)state;
	assert_int_equal(_ttol(_T(" 42x")), 42);
	assert_int_equal(_ttoi(_T("-7")), -7);
	assert_int_equal(_ttoi(_T("99999999999")), INT32_MAX);
	assert_int_equal(_ttol(_T("-99999999999")), INT32_MIN);
	assert_true(_ttoi64(_T("99999999999")) == 99999999999);
	assert_int_equal(_tcstoul(_T("0x10"), NULL, 0), 16);
	assert_int_equal(_tcsicmp(_T("AbC"), _T("aBc")), 0);
	assert_true(_wcsicmp(L"a", L"B") < 0);
	assert_int_equal(_stricmp("X", "x"), 0);
	file = _tfopen(_T("/proc/self/comm"), _T("r"));
	assert_non_null(file);
	file = _tfreopen(_T("/dev/null"), _T("r"), file);
	assert_non_null(file);
	assert_null(fgets(line, sizeof(line), file));
	assert_int_equal(fclose(file), 0);
	assert_null(_wfopen(L"/nowhere/at/all", L"r"));
}

/* ---- addresses ---- */

static void addresses_are_read(void **state)
{
	SOCKADDR_INET address;
	INT size = sizeof(address);
	wchar_t v4[] = L"10.1.2.3:4567";
	char v6[] = "[fe80::1%1]:80";
	char plain[] = "::1";

	(void)state;
	assert_int_equal(WSAStringToAddress(v4, AF_INET, NULL, (SOCKADDR *)&address, &size), 0);
	assert_int_equal(size, sizeof(SOCKADDR_IN));
	assert_int_equal(address.si_family, AF_INET);
	assert_int_equal(address.Ipv4.sin_port, htons(4567));
	assert_int_equal(address.Ipv4.sin_addr.S_un.S_addr, htonl(0x0A010203));
	assert_int_equal(address.Ipv4.sin_addr.s_addr, htonl(0x0A010203));
	assert_int_equal(address.Ipv4.sin_addr.S_un.S_un_b.s_b4, 3);
	assert_string_equal(inet_ntoa(address.Ipv4.sin_addr), "10.1.2.3");
	size = sizeof(address);
	assert_int_equal(WSAStringToAddressA(v6, AF_INET6, NULL, (SOCKADDR *)&address, &size), 0);
	assert_int_equal(size, sizeof(SOCKADDR_IN6));
	assert_int_equal(address.Ipv6.sin6_port, htons(80));
	assert_int_equal(address.Ipv6.sin6_scope_id, 1);
	size = sizeof(address);
	assert_int_equal(WSAStringToAddressA(plain, AF_INET6, NULL, (SOCKADDR *)&address, &size),
	                 0);
	assert_int_equal(address.Ipv6.sin6_port, 0);
	assert_true(IN6_IS_ADDR_LOOPBACK(&address.Ipv6.sin6_addr));
	assert_string_equal(v6, "[fe80::1%1]:80");
}

static void bad_addresses_are_refused(void **state)
{
	static const wchar_t *const v4[] = {
		L"",
		L" ",
		L"1.2.3",
		L"1.2.3.4.5",
		L"256.1.1.1",
		L"1.2.3.4:",
		L"1.2.3.4:x",
		L"1.2.3.4:-1",
		L"1.2.3.4:+1",
		L"1.2.3.4:65536",
		L"1.2.3.4 ",
		L"::1",
		L"a.b.c.d",
		L":80",
		L"1.2.3.4:80:80",
		L"1.2.3.\u20ac",
		L"1.2.3.4:99999999999999999999999999999999999999",
	};
	static const wchar_t *const v6[] = {
		L"",        L"[",        L"[]",          L"[::1",     L"::1]",
		L"[::1]80", L"[::1]:",   L"[::1]:65536", L"::1%",     L"::1%nosuch",
		L"1.2.3.4", L"[::1]:8 ", L"1::2::3",     L"[::1]]:1",
	};
	wchar_t text[200];
	SOCKADDR_INET address;
	INT size;

	(void)state;
	memset(&address, 0x5A, sizeof(address));
	for (size_t i = 0; i < _countof(v4) + _countof(v6); i++) {
		const BOOL is_v4 = i < _countof(v4);

		size = sizeof(address);
		assert_int_equal(wcscpy_s(text, 200, is_v4 ? v4[i] : v6[i - _countof(v4)]), 0);
		assert_int_equal(WSAStringToAddressW(text, is_v4 ? AF_INET : AF_INET6, NULL,
		                                     (SOCKADDR *)&address, &size),
		                 SOCKET_ERROR);
		assert_int_equal(WSAGetLastError(), WSAEINVAL);
		assert_int_equal(address.si_family, 0x5A5A);
		assert_int_equal(size, sizeof(address));
	}
	for (size_t i = 0; i < 199; i++)
		text[i] = L'1';
	text[199] = L'\0';
	assert_int_equal(WSAStringToAddressW(text, AF_INET, NULL, (SOCKADDR *)&address, &size),
	                 SOCKET_ERROR);
	assert_int_equal(GetLastError(), WSAEINVAL);
}

static void lengths_of_addresses_are_checked(void **state)
{
	SOCKADDR_INET address;
	char text[] = "1.2.3.4";
	INT size;

	(void)state;
	memset(&address, 0x5A, sizeof(address));
	for (size = -1; size < (INT)sizeof(SOCKADDR_IN); size++) {
		INT room = size;

		assert_int_equal(
			WSAStringToAddressA(text, AF_INET, NULL, (SOCKADDR *)&address, &room),
			SOCKET_ERROR);
		assert_int_equal(WSAGetLastError(), WSAEFAULT);
		assert_int_equal(room, sizeof(SOCKADDR_IN));
		assert_int_equal(address.si_family, 0x5A5A);
	}
	assert_int_equal(WSAStringToAddressA(NULL, AF_INET, NULL, (SOCKADDR *)&address, &size), -1);
	assert_int_equal(WSAGetLastError(), WSAEFAULT);
	assert_int_equal(WSAStringToAddressA(text, AF_INET, NULL, NULL, &size), -1);
	assert_int_equal(WSAStringToAddressA(text, AF_INET, NULL, (SOCKADDR *)&address, NULL), -1);
	assert_int_equal(WSAStringToAddressA(text, AF_UNIX, NULL, (SOCKADDR *)&address, &size), -1);
	assert_int_equal(WSAGetLastError(), WSAEINVAL);
}

static void addresses_are_written_as_they_are_read(void **state)
{
	static const char *const texts[] = {
		"1.2.3.4", "255.255.255.255:65535", "::", "::1%1", "[fe80::2%1]:1", "[::1]:65535",
	};

	(void)state;
	for (size_t i = 0; i < _countof(texts); i++) {
		SOCKADDR_INET address;
		INT size = sizeof(address);
		char text[64];
		wchar_t wide[64];
		DWORD length = (DWORD)strlen(texts[i]);

		assert_int_equal(strcpy_s(text, sizeof(text), texts[i]), 0);
		assert_int_equal(WSAStringToAddressA(text, i < 2 ? AF_INET : AF_INET6, NULL,
		                                     (SOCKADDR *)&address, &size),
		                 0);
		memset(text, '#', sizeof(text));
		assert_int_equal(
			WSAAddressToStringA((SOCKADDR *)&address, (DWORD)size, NULL, text, &length),
			SOCKET_ERROR);
		assert_int_equal(WSAGetLastError(), WSAEFAULT);
		assert_int_equal(text[0], '#');
		assert_int_equal(length, strlen(texts[i]) + 1);
		assert_int_equal(
			WSAAddressToStringA((SOCKADDR *)&address, (DWORD)size, NULL, text, &length),
			0);
		assert_string_equal(text, texts[i]);
		assert_int_equal(text[length], '#');
		assert_int_equal(
			WSAAddressToString((SOCKADDR *)&address, (DWORD)size, NULL, wide, &length),
			0);
		assert_int_equal(wcslen(wide) + 1, length);
		assert_int_equal(WSAAddressToStringA((SOCKADDR *)&address, 7, NULL, text, &length),
		                 SOCKET_ERROR);
		assert_int_equal(WSAGetLastError(), WSAEINVAL);
	}
}

static void sockets_start_and_end(void **state)
{
	WSADATA data;
	IN_ADDR address;
	wchar_t text[16];

	(void)state;
	assert_int_equal(WSACleanup(), SOCKET_ERROR);
	assert_int_equal(WSAGetLastError(), WSANOTINITIALISED);
	assert_int_equal(WSAStartup(MAKEWORD(2, 2), NULL), WSAEFAULT);
	assert_int_equal(WSAStartup(MAKEWORD(0, 9), &data), WSAVERNOTSUPPORTED);
	assert_int_equal(WSAStartup(MAKEWORD(2, 2), &data), 0);
	assert_int_equal(data.wVersion, MAKEWORD(2, 2));
	assert_int_equal(WSAStartup(MAKEWORD(1, 1), &data), 0);
	assert_int_equal(data.wVersion, MAKEWORD(1, 1));
	assert_int_equal(WSACleanup(), 0);
	assert_int_equal(WSACleanup(), 0);
	assert_int_equal(WSACleanup(), SOCKET_ERROR);
	assert_int_equal(InetPton(AF_INET, L"1.2.3.4", &address), 1);
	assert_int_equal(InetPton(AF_INET, L"1.2.3", &address), 0);
	assert_int_equal(InetPton(AF_UNIX, L"1.2.3.4", &address), -1);
	assert_ptr_equal(InetNtop(AF_INET, &address, text, 8), text);
	assert_int_equal(wcscmp(text, L"1.2.3.4"), 0);
	assert_null(InetNtop(AF_INET, &address, text, 7));
	assert_int_equal(closesocket(socket(AF_INET, SOCK_DGRAM, 0)), 0);
}

/* ---- C only ---- */

static void atomic_operations_are_macros_in_c(void **state)
{
	volatile LONG value = 5;
	LONG64 wide = 1;
	int number = 1;
	void *pointer = NULL;

	(void)state;
	assert_int_equal(InterlockedIncrement(&value), 6);
	assert_int_equal(InterlockedDecrement(&value), 5);
	assert_int_equal(InterlockedExchange(&value, 7), 5);
	assert_int_equal(InterlockedExchangeAdd(&value, 1), 7);
	assert_int_equal(InterlockedCompareExchange(&value, 1, 8), 8);
	assert_int_equal(InterlockedAdd64(&wide, 2), 3);
	assert_int_equal(InterlockedOr(&number, 2), 1);
	assert_null(InterlockedExchangePointer(&pointer, &number));
	assert_ptr_equal(InterlockedCompareExchangePointer(&pointer, NULL, &number), &number);
	assert_int_equal(min(3, 4), 3);
	assert_int_equal(max(3, 4), 4);
	MemoryBarrier();
	switch ((NTSTATUS)0xC0000238) {
	case STATUS_ADDRESS_ALREADY_ASSOCIATED:
		number = 100;
		__fallthrough;
	default:
		number++;
	}
	assert_int_equal(number, 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wide_and_narrow_output_mix),
		cmocka_unit_test(text_conversions_are_microsofts),
		cmocka_unit_test(integer_conversions_are_microsofts),
		cmocka_unit_test(narrow_formats_are_translated_on_request),
		cmocka_unit_test(long_and_foreign_text_is_written),
		cmocka_unit_test(copies_stay_within_their_room),
		cmocka_unit_test(prints_stay_within_their_room),
		cmocka_unit_test(numbers_and_names_are_read),
		cmocka_unit_test(addresses_are_read),
		cmocka_unit_test(bad_addresses_are_refused),
		cmocka_unit_test(lengths_of_addresses_are_checked),
		cmocka_unit_test(addresses_are_written_as_they_are_read),
		cmocka_unit_test(sockets_start_and_end),
		cmocka_unit_test(atomic_operations_are_macros_in_c),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
