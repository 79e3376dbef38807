/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin in a file of its own, for tests of finding, checking and loading one.
 *   FAKE_NAME, FAKE_ABI, FAKE_SYMBOL, FAKE_HOLE, FAKE_INIT   say what is odd about it.
 */
#include <stdio.h>

#include <ndx/spi/plugin.h>

#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif
#ifndef FAKE_ABI
#define FAKE_ABI NDX_PLUGIN_ABI
#endif
#ifndef FAKE_SYMBOL
#define FAKE_SYMBOL ndx_plugin
#endif
#ifdef FAKE_INIT
static const enum ndx_status outcome = FAKE_INIT;
#else
static const enum ndx_status outcome = NDX_OK;
#endif

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	host->log(host, NDX_LOG_DEBUG, "initialize");
	*state = NULL;
	if (outcome != NDX_OK)
		(void)snprintf(why, room, "the card is on fire");
	return outcome;
}

static void finalize(void *state)
{
	(void)state;
}

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

static const struct ndx_variant_ops ops = {
	.info = talk,
#ifndef FAKE_HOLE
	.ready = talk,
#endif
};

static const struct ndx_plugin_variant list[] = {
	{.name = "only", .help = "says nothing", .ops = &ops},
};

extern const struct ndx_plugin FAKE_SYMBOL;
__attribute__((visibility("default"))) const struct ndx_plugin FAKE_SYMBOL = {
	.abi = FAKE_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = FAKE_NAME,
	.version = "1",
	.vendor = "nobody",
	.initialize = initialize,
	.finalize = finalize,
	.list = list,
	.count = 1,
};
