/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of a variant: is the schema sane, does a configuration fit it. */
#ifndef NEGOTIATION_SCHEMA_H
#define NEGOTIATION_SCHEMA_H

#include <stddef.h>

#include <ndx/negotiation.h>

#define SCHEMA_PARAMS_MAX 64u
#define SCHEMA_TEXT_MAX 1024u /* bytes of one value */

/* How many there are; params may be NULL. More than SCHEMA_PARAMS_MAX are not counted. */
size_t schema_count(const struct ndx_plugin_param *params);

/*
 * Is it sane: names valid and different, ranges not empty, initial values within them, no required
 * parameter with an initial value. NDX_E_INVALID_CONFIG: `why` says which is not, and how.
 */
enum ndx_status schema_check(const struct ndx_plugin_param *params, char *why, size_t room);

/*
 * Values for all parameters of a sane schema, in its order, from what was given. The texts are
 * copied behind the array: one free() releases it all. `what` names the variant in messages.
 *
 * NDX_E_INVALID_CONFIG: ndx_last_error() says which parameter, and what it may be.
 */
enum ndx_status schema_values(const struct ndx_plugin_param *params, const char *what,
                              const struct ndx_setting *settings, size_t count,
                              struct ndx_plugin_value **out);

#endif
