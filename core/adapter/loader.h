/* SPDX-License-Identifier: BSD-2-Clause */
/* Providers by name: built in, or ndx-provider-NAME.so. */
#ifndef ADAPTER_LOADER_H
#define ADAPTER_LOADER_H

#include <limits.h>
#include <stdbool.h>

#include <ndx/spi/provider.h>
#include <ndx/status.h>

/* The loader searches the directories of $NDX_PROVIDER_PATH (absolute, separated by ':'; ignored in
 * set-user-id programs), then the folder ndx beside libndx. A file exports one constant, `const
 * struct ndx_provider ndx_provider`, whose abi is compared before the first call. */

struct loaded; /* a provider's file; opaque */

/**
 * Get a provider, checked. A file does not replace what is built in.
 *
 * @param name  a provider's name; anything
 * @param[out] out       NULL if the provider is built in; else release with loader_close() when
 *                       nothing of the provider is used any more; untouched on failure
 * @param[out] provider  lives as long as @p out
 *
 * @retval NDX_E_NOT_FOUND    no such provider; nothing was logged, the caller says what there is
 * @retval NDX_E_DEVICE_NOT_READY the file may not or cannot be loaded; the text says why
 * @retval NDX_E_ABI_MISMATCH it is not a provider for this library
 * @retval NDX_E_NO_MEMORY    out of memory
 */
enum ndx_status loader_open(const char *name, struct loaded **out,
                            const struct ndx_provider **provider);

/* Does nothing for NULL. */
void loader_close(struct loaded *loaded);

/* Whether there is a file of that provider. */
bool loader_exists(const char *name);

typedef void loader_name_fn(void *arg, const char *name);

/* Call `each` with the name of every provider that has a file and is not built in; each name once,
 * in the order of the alphabet. */
void loader_each(loader_name_fn *each, void *arg);

/* The same for the providers of NDX that are not installed. */
void loader_each_missing(loader_name_fn *each, void *arg);

/* The directory beside libndx, for messages. Returns `path`. */
const char *loader_directory(char path[PATH_MAX]);

#endif
