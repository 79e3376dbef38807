/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: process-loader LIBRARY: handlers that were there before dlopen() are there after it, and
 * what a thread blocks is blocked, the first time and when it is loaded once more.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

static void handler(int signal_number)
{
	(void)signal_number;
}

static bool load(const char *library)
{
	void *loaded;
	sigset_t before;
	sigset_t after;

	(void)pthread_sigmask(SIG_BLOCK, NULL, &before);
	loaded = dlopen(library, RTLD_NOW);
	if (loaded == NULL) {
		(void)fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	(void)pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int s = 1; s < 32; s++) {
		if (sigismember(&before, s) == sigismember(&after, s))
			continue;
		(void)fprintf(stderr, "loading changed whether signal %d is blocked\n", s);
		return false;
	}
	return dlclose(loaded) == 0;
}

static bool has_handlers(void)
{
	for (int s = 1; s < 32; s++) {
		struct sigaction now;

		if (s == SIGKILL || s == SIGSTOP || sigaction(s, NULL, &now) != 0)
			continue;
		if (now.sa_handler != (s % 3 == 0 ? SIG_IGN : handler)) {
			(void)fprintf(stderr, "loading changed signal %d\n", s);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	sigset_t some;

	if (argc != 2)
		return 2;
	for (int s = 1; s < 32; s++)
		(void)signal(s, s % 3 == 0 ? SIG_IGN : handler);
	if (!load(argv[1]) || !has_handlers())
		return 1;
	(void)sigemptyset(&some);
	(void)sigaddset(&some, SIGTERM);
	(void)sigaddset(&some, SIGUSR1);
	(void)pthread_sigmask(SIG_BLOCK, &some, NULL);
	return load(argv[1]) && has_handlers() ? 0 : 1;
}
