/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_thread.h"

void base_signals_block(sigset_t *before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t set;

	(void)sigfillset(&set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigdelset(&set, faults[i]);
	(void)pthread_sigmask(SIG_BLOCK, &set, before);
}

void base_signals_restore(const sigset_t *before)
{
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

int base_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
{
	sigset_t before;
	int err;

	base_signals_block(&before);
	err = pthread_create(thread, NULL, fn, arg);
	base_signals_restore(&before);
	if (err == 0)
		(void)pthread_setname_np(*thread, name);
	return err;
}
