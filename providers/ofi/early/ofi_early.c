/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_early.h"

#include "base_close_on_exec.h"

static struct sigaction before[NDX_EARLY_SIGNALS];

__attribute__((constructor)) static void keep(void)
{
	for (int s = 1; s < NDX_EARLY_SIGNALS; s++)
		(void)sigaction(s, NULL, &before[s]);
}

__attribute__((visibility("default"))) const struct sigaction *ndx_early_action(int signal_number)
{
	return &before[signal_number];
}

/* The table that is changed may outlive libndx; this library is never unloaded. */
__attribute__((visibility("default"))) bool ndx_early_close_on_exec(const void *function)
{
	return base_close_on_exec(function);
}
