/* SPDX-License-Identifier: BSD-2-Clause */
#include "same_plugin.h"

#include <string.h>

enum ndx_status same_info(void *session, const struct ndx_exchange *x, const void *peer,
                          size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	if (x->round == 0) {
		memcpy(reply->data, x->own, sizeof(*x->own));
		reply->length = sizeof(*x->own);
		return NDX_OK;
	}
	if (peer == NULL || length != sizeof(*x->peer))
		return NDX_E_REMOTE_ERROR;
	memcpy(x->peer, peer, sizeof(*x->peer));
	reply->completed = true;
	return NDX_OK;
}

enum ndx_status same_ready(void *session, const struct ndx_exchange *x, const void *peer,
                           size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)x;
	(void)peer;
	(void)length;
	reply->completed = true;
	return NDX_OK;
}

enum ndx_status same_reset(void *session, enum ndx_stage stage)
{
	(void)session;
	(void)stage;
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.info = same_info, .ready = same_ready};
static const struct ndx_plugin_variant variant = {.name = "as-it-is", .help = "test", .ops = &ops};

const struct ndx_plugin same_plugin = {.abi = NDX_PLUGIN_ABI,
                                       .size = sizeof(struct ndx_plugin),
                                       .name = "same",
                                       .version = "1",
                                       .vendor = "test",
                                       .flags = NDX_PLUGIN_MANY | NDX_PLUGIN_ADDS,
                                       .list = &variant,
                                       .count = 1};
