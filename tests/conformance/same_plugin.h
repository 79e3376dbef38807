/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plugin "same", variant "as-it-is", for two ends in one process: descriptions go as they are. And
 * its functions, for plugins of which some do more.
 */
#ifndef SAME_PLUGIN_H
#define SAME_PLUGIN_H

#include <ndx/negotiation.h>

enum ndx_status same_info(void *session, const struct ndx_exchange *x, const void *peer,
                          size_t length, struct ndx_exchange_reply *reply);
/* Of stages ready and done: there is nothing to say. */
enum ndx_status same_ready(void *session, const struct ndx_exchange *x, const void *peer,
                           size_t length, struct ndx_exchange_reply *reply);
/* A stage begins anew as it began. */
enum ndx_status same_reset(void *session, enum ndx_stage stage);

extern const struct ndx_plugin same_plugin;

#endif
