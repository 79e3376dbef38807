/* SPDX-License-Identifier: BSD-2-Clause */
/* printf() with Microsoft's formats, for a program linked with -Wl,--wrap=printf,--wrap=fprintf.
 * The test is that of a pipe from the program's own output. */
#include <windows.h>

#include <unistd.h>

int main(void)
{
	const char *volatile format = "[%I64d|%Id|%lu|%s]\n"; /* the compiler knows other formats */
	const char expected[] = "[-5|6|7|n]\n[8]\n[9|w]\n";
	char text[64] = "";
	ssize_t bytes;
	int ends[2];

	if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0)
		return 1;
	printf(format, (INT64)-5, (INT_PTR)6, (ULONG)7, "n");
	format = "[%I32d]\n";
	fprintf(stdout, format, 8);
	wprintf(L"[%I64d|%s]\n", (INT64)9, L"w");
	(void)fflush(stdout);
	bytes = read(ends[0], text, sizeof(text) - 1);
	if (bytes == (ssize_t)strlen(expected) && strcmp(text, expected) == 0)
		return 0;
	fprintf(stderr, "printed: %s", text);
	return 1;
}
