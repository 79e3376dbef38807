/* SPDX-License-Identifier: BSD-2-Clause */
/* Host plugin for plugins written in Python: the exported plugin table. */
#include "python.h"

#include <stdlib.h>

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	struct host_state *kept = malloc(sizeof(*kept));
	const char *failure;

	if (kept == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	failure = py_start();
	if (failure != NULL) {
		(void)snprintf(why, room, "%s", failure);
		free(kept);
		return NDX_E_DEVICE_NOT_READY;
	}
	kept->host = host;
	*state = kept;
	return NDX_OK;
}

static void finalize(void *state)
{
	free(state);
}

static const struct ndx_plugin_guests guests = {"py", guest_open, guest_close};

const struct ndx_plugin ndx_plugin = {
	.abi = NDX_PLUGIN_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = "python",
	.version = "1.0",
	.vendor = "NDX",
	.initialize = initialize,
	.finalize = finalize,
	.guests = &guests,
};
