/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plugin roce with a lie: it describes the own end with a wrong GID, PSN or key of its mailbox. The
 * session's own description is changed, too, so that both ends agree on what is wrong; only the
 * packets can show it. $NDX_TEST_LIE: "gid ADDRESS" with an IPv4 address, or "psn NUMBER" or "key
 * NUMBER", which is added.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/plugin.h>

#define BITS_24 0xffffffu

/* The true plugin; its file was compiled with this name for the table. */
extern const struct ndx_plugin roce_plugin;

static struct ndx_variant_ops ops;
static struct ndx_plugin_variant list;

static bool tell_lie(struct ndx_peer_description *own)
{
	const char *lie = getenv("NDX_TEST_LIE");

	if (lie != NULL && strncmp(lie, "psn ", 4) == 0) {
		own->psn = (own->psn + (uint32_t)strtol(lie + 4, NULL, 0)) & BITS_24;
		return true;
	}
	if (lie != NULL && strncmp(lie, "key ", 4) == 0) {
		own->mailbox_rkey += (uint32_t)strtol(lie + 4, NULL, 0);
		return true;
	}
	return lie != NULL && strncmp(lie, "gid ", 4) == 0 &&
	       inet_pton(AF_INET, lie + 4, own->gid + 12) == 1;
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	/* `own` is constant for plugins, but is no constant. */
	if (x->round == 0 && !tell_lie((struct ndx_peer_description *)(uintptr_t)x->own)) {
		reply->error = NDX_PLUGIN_CONFIGURATION;
		(void)snprintf(reply->text, sizeof(reply->text),
		               "$NDX_TEST_LIE has to be \"gid ADDRESS\", \"psn NUMBER\" or \"key "
		               "NUMBER\"");
		return NDX_E_INVALID_CONFIG;
	}
	/* Only queue pairs of verbs have a GID and a PSN. */
	return roce_plugin.list[0].ops->info(session, x, peer, peer_length, reply);
}

static size_t variants(void *state, const struct ndx_plugin_variant **out)
{
	(void)state;
	ops = *roce_plugin.list[0].ops;
	ops.info = info;
	list = roce_plugin.list[0];
	list.ops = &ops;
	*out = &list;
	return 1;
}

const struct ndx_plugin ndx_plugin = {
	.abi = NDX_PLUGIN_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = "roce",
	.version = "1.0",
	.vendor = "NDX tests",
	.variants = variants,
};
