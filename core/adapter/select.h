/* SPDX-License-Identifier: BSD-2-Clause */
/* Which provider, which device, which options: from the call, the environment or the INI file. */
#ifndef ADAPTER_SELECT_H
#define ADAPTER_SELECT_H

#include <stddef.h>

#include <ndx/spi/provider.h>
#include <ndx/status.h>

struct loaded; /* loader.h */

/* One adapter to open. The selection owns everything it points to; it may be moved by memcpy(). */
struct selection {
	const struct ndx_provider *provider; /* checked */
	const char *device;                  /* "" if none */
	struct ndx_spi_option *options;      /* URI over INI file, keys checked, each key once */
	size_t option_count;                 /* for the provider; behind them are ... */
	size_t thread_option_count;          /* ... those for control_thread_start() */
	char *uri;                           /* the same as text, with all options */
	struct loaded *loaded; /* the provider's file, NULL if built in; loaded until freed */
};

/**
 * Choose.
 *
 * @param uri  as of ndx_adapter_open(), NULL included
 * @param[out] list   what to try, in this order, until one opens; untouched on failure; release
 *                    with selection_free() of each and free()
 * @param[out] count  at least 1; more only for the automatic choice
 *
 * @retval NDX_E_INVALID_CONFIG   URI, variable or file is malformed or has an unknown key
 * @retval NDX_E_NOT_FOUND        no such provider, or nothing that could be chosen automatically
 * @retval NDX_E_DEVICE_NOT_READY the provider is a file that cannot be loaded
 * @retval NDX_E_ABI_MISMATCH     the provider was built against another interface
 * @retval NDX_E_NO_MEMORY        out of memory
 */
enum ndx_status select_adapter(const char *uri, struct selection **list, size_t *count);

/**
 * What $NDX_ADAPTER or the INI file names.
 *
 * @param[out] uri  release with free(); NULL: neither names one, the choice is automatic
 *
 * @retval NDX_E_INVALID_CONFIG the file is malformed
 * @retval NDX_E_NO_MEMORY      out of memory
 */
enum ndx_status select_named(char **uri);

/* Release what one selection owns, not the structure itself. */
void selection_free(struct selection *selection);

#endif
