/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_early.h"

#include "base_close_on_exec.h"

static struct sigaction before[NDX_EARLY_SIGNALS];
static sigset_t mask;

__attribute__((constructor)) static void keep(void)
{
	sigset_t ends;

	/* Loading takes a while; a signal that comes meanwhile waits for the dispositions that were
	 * there. No more than these two, since threads that others start now inherit the mask. */
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &ends, &mask);
	for (int s = 1; s < NDX_EARLY_SIGNALS; s++)
		(void)sigaction(s, NULL, &before[s]);
}

__attribute__((visibility("default"))) const struct sigaction *ndx_early_action(int signal_number)
{
	return &before[signal_number];
}

__attribute__((visibility("default"))) void ndx_early_loaded(void)
{
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* The table that is changed may outlive libndx; this library is never unloaded. */
__attribute__((visibility("default"))) bool ndx_early_close_on_exec(const void *function)
{
	return base_close_on_exec(function);
}
