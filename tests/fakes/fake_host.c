/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin that runs others: a file's first word is the name of the plugin it is, "bad" a reason
 * not to run it. Its guests' host says in the log what becomes of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/plugin.h>

struct guest {
	struct ndx_plugin table;
	char name[32];
	const struct ndx_plugin_host *host;
};

static enum ndx_status talk(void *session, const struct ndx_exchange *exchange, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)exchange;
	(void)peer;
	(void)peer_length;
	reply->completed = true;
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.info = talk, .ready = talk};
static const struct ndx_plugin_variant list[] = {
	{.name = "only", .help = "says nothing", .ops = &ops},
};

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	struct guest *guest = *state;

	if (strcmp(guest->name, "lame") == 0) {
		(void)snprintf(why, room, "it limps");
		return NDX_E_DEVICE_NOT_READY;
	}
	guest->host = host;
	return NDX_OK;
}

static void finalize(void *state)
{
	struct guest *guest = state;

	guest->host->log(guest->host, NDX_LOG_DEBUG, "finalized");
}

static enum ndx_status guest_open(void *plugin, const char *path, const struct ndx_plugin **table,
                                  void **out, char *why, size_t room)
{
	struct guest *guest = calloc(1, sizeof(*guest));
	FILE *f = fopen(path, "re");

	(void)plugin;
	if (guest == NULL || f == NULL || fscanf(f, "%31s", guest->name) != 1 ||
	    strcmp(guest->name, "bad") == 0) {
		(void)snprintf(why, room, "a bad word");
		if (f != NULL)
			(void)fclose(f);
		free(guest);
		return NDX_E_INVALID_CONFIG;
	}
	(void)fclose(f);
	guest->table = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                                   .size = sizeof(struct ndx_plugin),
	                                   .name = guest->name,
	                                   .version = "1",
	                                   .vendor = "nobody",
	                                   .initialize = initialize,
	                                   .finalize = finalize,
	                                   .list = list,
	                                   .count = 1};
	*table = &guest->table;
	*out = guest;
	return NDX_OK;
}

static void guest_close(void *plugin, const struct ndx_plugin *table, void *guest)
{
	(void)plugin;
	if (&((struct guest *)guest)->table != table)
		abort();
	free(guest);
}

static const struct ndx_plugin_guests guests = {"word", guest_open, guest_close};

extern __attribute__((visibility("default"))) const struct ndx_plugin ndx_plugin;
const struct ndx_plugin ndx_plugin = {
	.abi = NDX_PLUGIN_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = "fake-host",
	.version = "1",
	.vendor = "nobody",
	.guests = &guests,
};
