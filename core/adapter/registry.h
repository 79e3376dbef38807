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

/* The names of the providers that NDX has in files of their own, whether these are installed or
 * not; NULL after the last. */
const char *registry_module(size_t index, size_t *len);

/* Whether it is one of those names. */
bool registry_is_module(const char *name);

/**
 * Look before the first call: interface version, name, holes in the table of operations.
 *
 * @param from  where the provider comes from, for messages
 *
 * @retval NDX_E_ABI_MISMATCH something is missing or was built against another interface
 */
enum ndx_status registry_check(const struct ndx_provider *provider, const char *from);

/* A provider of a file, complete: what its build did not have is zero. */
struct adopted {
	struct ndx_provider provider;
	struct ndx_provider_ops ops;
};

/* Copy a checked provider. */
void registry_adopt(const struct ndx_provider *provider, struct adopted *own);

/* Give the provider the services of this library, before its first call; any thread. False: another
 * copy of libndx in this process uses the provider. */
bool registry_bind(const struct ndx_provider *provider, const struct ndx_spi_services *services);
/* The end of what registry_bind() began, after the last call of the provider. */
void registry_unbind(const struct ndx_provider *provider);

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
