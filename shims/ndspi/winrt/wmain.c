/* SPDX-License-Identifier: BSD-2-Clause */
/* main() of programs that have a wide one. tchar.h declares wmain() with C linkage, but a C++
 * program may have another list of parameters or not include the header, and then the function has
 * one of the names that the C++ compiler makes. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

typedef int wide_main(int argc, wchar_t **argv, wchar_t **envp);

__attribute__((weak)) extern wide_main wmain;
__attribute__((weak)) extern wide_main wmain_none __asm__("_Z5wmainv");
__attribute__((weak)) extern wide_main wmain_two __asm__("_Z5wmainiPPw");
__attribute__((weak)) extern wide_main wmain_two_const __asm__("_Z5wmainiPPKw");
__attribute__((weak)) extern wide_main wmain_three __asm__("_Z5wmainiPPwS0_");

/* The lists live as long as the process, since destructors may read them. A leak checker finds them
 * here. */
static wchar_t **volatile kept[2];

/* An argument in wide characters; a byte that the locale does not know becomes '?'. */
static wchar_t *widen(const char *text)
{
	wchar_t *wide = calloc(strlen(text) + 1, sizeof(*wide));
	mbstate_t state;
	size_t length = 0;

	memset(&state, 0, sizeof(state));
	while (wide != NULL && *text != '\0') {
		const size_t bytes = mbrtowc(&wide[length], text, strlen(text), &state);

		if (bytes == (size_t)-1 || bytes == (size_t)-2) {
			wide[length] = L'?';
			memset(&state, 0, sizeof(state));
			text++;
		} else {
			text += bytes;
		}
		length++;
	}
	return wide;
}

/* A list like argv; the process keeps it. NULL: no memory. */
static wchar_t **widen_all(char **list)
{
	wchar_t **wide;
	size_t count = 0;

	while (list[count] != NULL)
		count++;
	wide = calloc(count + 1, sizeof(wchar_t *));
	for (size_t i = 0; wide != NULL && i < count; i++) {
		wide[i] = widen(list[i]);
		if (wide[i] == NULL) {
			free(wide); /* the process ends now */
			return NULL;
		}
	}
	return wide;
}

int main(int argc, char **argv, char **envp)
{
	wide_main *const mains[] = {wmain, wmain_two, wmain_two_const, wmain_three, wmain_none};
	wchar_t **wide;
	wchar_t **environment;

	if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1)
		(void)setlocale(LC_CTYPE, "C.UTF-8");
	wide = widen_all(argv);
	environment = widen_all(envp);
	kept[0] = wide;
	kept[1] = environment;
	if (wide == NULL || environment == NULL) {
		fputs("ndx-wmain: no memory for the arguments\n", stderr);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < sizeof(mains) / sizeof(mains[0]); i++) {
		if (mains[i] != NULL)
			return mains[i](argc, wide, environment);
	}
	fputs("ndx-wmain: the program has no wmain()\n", stderr);
	return EXIT_FAILURE;
}
