/* SPDX-License-Identifier: BSD-2-Clause */
/* Wide main functions. FORM says which one: each is a program of its own, and C has form 0 only.
 * The program runs itself with arguments that are hard to convert, and that run answers by its
 * status. */
#if FORM == 0
#include <tchar.h>
#else
#include <wchar.h>
#endif
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define ANSWER 42

#if FORM < 4
static int run(int argc, wchar_t *const *argv)
{
	static char self[] = "/proc/self/exe";
	static char plain[] = "plain";
	static char foreign[] = "\xc3\xa4\xe2\x82\xac";
	static char broken[] = "a\xff"
			       "b";
	static char empty[] = "";
	static char locale[] = "LC_ALL=C";
	char *const arguments[] = {self, plain, foreign, broken, empty, NULL};
	char *const environment[] = {locale, NULL};
	pid_t child;
	int status;

	if (argc == 5)
		return wcscmp(argv[1], L"plain") == 0 && wcscmp(argv[2], L"\u00e4\u20ac") == 0 &&
		                       wcscmp(argv[3], L"a?b") == 0 && argv[4][0] == L'\0' &&
		                       argv[5] == NULL
		               ? ANSWER
		               : 1;
	if (posix_spawn(&child, self, NULL, NULL, arguments, environment) != 0 ||
	    waitpid(child, &status, 0) != child)
		return 1;
	return WIFEXITED(status) && WEXITSTATUS(status) == ANSWER ? 0 : 1;
}
#endif

#if FORM == 0
int __cdecl _tmain(int argc, TCHAR *argv[])
{
	return run(argc, argv);
}
#elif FORM == 1
int wmain(int argc, wchar_t *argv[])
{
	return run(argc, argv);
}
#elif FORM == 2
int wmain(int argc, const wchar_t *argv[])
{
	return run(argc, const_cast<wchar_t **>(argv));
}
#elif FORM == 3
int wmain(int argc, wchar_t *argv[], wchar_t *envp[])
{
	if (argc == 5 && (wcscmp(envp[0], L"LC_ALL=C") != 0 || envp[1] != NULL))
		return 1;
	return run(argc, argv);
}
#else
int wmain()
{
	return 0;
}
#endif
