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

static int start(pthread_t *thread, const char *name, const pthread_attr_t *attr,
                 void *(*fn)(void *), void *arg)
{
	sigset_t before;
	int err;

	base_signals_block(&before);
	err = pthread_create(thread, attr, fn, arg);
	base_signals_restore(&before);
	if (err == 0)
		(void)pthread_setname_np(*thread, name);
	return err;
}

int base_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
{
	return start(thread, name, NULL, fn, arg);
}

int base_thread_start_bound(pthread_t *thread, const char *name, const cpu_set_t *cpus,
                            cpu_set_t *given, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	CPU_ZERO(given);
	if (err != 0)
		return err;
	err = pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	if (err == 0)
		err = start(thread, name, &attr, fn, arg);
	(void)pthread_attr_destroy(&attr);
	/* A kernel with more processors than the set has room for refuses: then what was asked. */
	if (err == 0 && pthread_getaffinity_np(*thread, sizeof(*given), given) != 0)
		*given = *cpus;
	return err;
}
