/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading libfabric changes nothing in the process. Distributions build libfabric with a provider
 * for old hardware whose library, libinfinipath, takes SIGINT, SIGTERM and four signals of crashes
 * in a constructor. Its handler ends the process with status 1, so a crash leaves no core file, and
 * that exit waits for a lock that the interrupted thread may hold.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "ofi_early.h"

static bool is_infinipath(const struct sigaction *action)
{
	void *handler;
	Dl_info info;

	/* the same place for both kinds of handlers, and for SIG_DFL and SIG_IGN */
	memcpy(&handler, &action->sa_handler, sizeof(handler));
	return dladdr(handler, &info) != 0 && info.dli_fname != NULL &&
	       strstr(info.dli_fname, "/libinfinipath.so") != NULL;
}

/* Runs after the constructors of the libraries that this one depends on. Handlers of other
 * libraries stay. If libinfinipath's handlers were there before, the program has loaded it, and
 * they stay, too. */
__attribute__((constructor)) static void put_dispositions_back(void)
{
	for (int s = 1; s < NDX_EARLY_SIGNALS; s++) {
		const struct sigaction *before = ndx_early_action(s);
		struct sigaction now;

		if (sigaction(s, NULL, &now) == 0 && is_infinipath(&now) && !is_infinipath(before))
			(void)sigaction(s, before, NULL);
	}
	ndx_early_loaded();
}
