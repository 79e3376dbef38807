/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of a variant: checks a schema, and checks a configuration against it. */
#ifndef NEGOTIATION_SCHEMA_H
#define NEGOTIATION_SCHEMA_H

#include <stddef.h>

#include <ndx/negotiation.h>

#define SCHEMA_PARAMS_MAX 64u
#define SCHEMA_TEXT_MAX 1024u /* bytes of one value */

/* The number of parameters, at most SCHEMA_PARAMS_MAX + 1; params may be NULL. */
size_t schema_count(const struct ndx_plugin_param *params);

/* Check a schema: names valid and distinct, ranges not empty, initial values within them, no
 * required parameter with an initial value. NDX_E_INVALID_CONFIG: `why` names the parameter and the
 * fault. */
enum ndx_status schema_check(const struct ndx_plugin_param *params, char *why, size_t room);

/*
 * The values of all parameters of a checked schema, in its order, from the settings. The texts are
 * copied behind the array: one free() releases everything. `what` names the variant in messages.
 *
 * NDX_E_INVALID_CONFIG: ndx_last_error() names the parameter and its valid values.
 */
enum ndx_status schema_values(const struct ndx_plugin_param *params, const char *what,
                              const struct ndx_setting *settings, size_t count,
                              struct ndx_plugin_value **out);

#endif
