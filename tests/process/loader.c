/* SPDX-License-Identifier: BSD-2-Clause */
/* usage: process-loader LIBRARY: handlers that were there before dlopen() are there after it. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

static void handler(int signal_number)
{
	(void)signal_number;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	for (int s = 1; s < 32; s++)
		(void)signal(s, s % 3 == 0 ? SIG_IGN : handler);
	if (dlopen(argv[1], RTLD_NOW) == NULL) {
		(void)fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	for (int s = 1; s < 32; s++) {
		struct sigaction now;

		if (s == SIGKILL || s == SIGSTOP || sigaction(s, NULL, &now) != 0)
			continue;
		if (now.sa_handler != (s % 3 == 0 ? SIG_IGN : handler)) {
			(void)fprintf(stderr, "loading changed signal %d\n", s);
			return 1;
		}
	}
	return 0;
}
