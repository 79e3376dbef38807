/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in providers, and the checks that every provider must pass. */
#ifndef ADAPTER_REGISTRY_H
#define ADAPTER_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/spi/provider.h>
#include <ndx/status.h>

#include "suggest.h"

/* The built-in providers, from index 0; NULL after the last. */
const struct ndx_provider *registry_get(size_t index);

/* The built-in provider of that name, or NULL. */
const struct ndx_provider *registry_find(const char *name);

/* What the automatic choice tries, best first: adapter URIs, of providers that need not be present;
 * NULL after the last. */
const char *registry_automatic(size_t index);

/* Whether a provider of that name exists, perhaps not in this build. */
bool registry_knows(const char *name);

/**
 * Look before the first call: interface version, name, holes in the table of operations.
 *
 * @param from  where the provider comes from, for messages
 *
 * @retval NDX_E_ABI_MISMATCH something is missing or was built against another interface
 */
enum ndx_status registry_check(const struct ndx_provider *provider, const char *from);

/**
 * Is it a key of the provider's, or of every adapter?
 *
 * @param origin  where the key stands, for messages
 *
 * @retval NDX_E_INVALID_CONFIG it is not; the text has the nearest one and all there are
 */
enum ndx_status registry_check_key(const struct ndx_provider *provider, const char *key,
                                   const char *origin);

#endif
