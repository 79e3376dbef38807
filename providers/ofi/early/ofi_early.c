/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_early.h"

#include <ndx/spi/close_on_exec.h>

static struct sigaction before[NDX_EARLY_SIGNALS];
static sigset_t mask;
static bool holding;

__attribute__((constructor)) static void keep(void)
{
	sigset_t ends;

	/* Loading takes a while; a signal in that time is delivered when the old
	 * dispositions are back. Only these two are blocked, since threads that libraries start now
	 * inherit the mask. */
	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	holding = pthread_sigmask(SIG_BLOCK, &ends, &mask) == 0;
	for (int s = 1; s < NDX_EARLY_SIGNALS; s++)
		(void)sigaction(s, NULL, &before[s]);
}

__attribute__((visibility("default"))) const struct sigaction *ndx_early_action(int signal_number)
{
	return &before[signal_number];
}

__attribute__((visibility("default"))) void ndx_early_loaded(void)
{
	/* another thread may load libndx once more, when no signal is blocked */
	if (holding)
		(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	holding = false;
}

/* The table that is changed may outlive libndx, but this library is never unloaded. */
__attribute__((visibility("default"))) bool ndx_early_close_on_exec(const void *function)
{
	return ndxp_close_on_exec(function);
}
