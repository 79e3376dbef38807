/* SPDX-License-Identifier: BSD-2-Clause */
/* The INI file: the adapter's URI, and the default options of each provider. */
#ifndef ADAPTER_CONFIG_H
#define ADAPTER_CONFIG_H

#include <stddef.h>

#include <ndx/status.h>

/*
 *	[ndx]
 *	adapter = PROVIDER:DEVICE   what ndx_adapter_open(NULL) opens
 *	[PROVIDER]
 *	key = value                 as in the adapter URI, which goes before
 */

#define CONFIG_SIZE_MAX 65536 /* bytes of a file */

struct config_entry {
	char *section;
	char *key;
	char *value;
	char *origin; /* "/etc/ndx.ini:12" */
};

/* All entries, checked: sections and keys are known, and no key occurs twice. */
struct config {
	struct config_entry *entries;
	size_t count;
};

/**
 * Read the first of $NDX_CONFIG, ~/.config/ndx.ini, /etc/ndx.ini that exists; only the last of them
 * in set-user-id programs. No file is an empty configuration.
 *
 * @param[out] out  untouched on failure; release with config_free()
 *
 * @retval NDX_E_INVALID_CONFIG the file cannot be read or is wrong; the text has file, line, key
 * and what would be right
 * @retval NDX_E_NO_MEMORY      out of memory
 */
enum ndx_status config_load(struct config *out);

/* Like config_load(), for a text in memory; messages call it @p name. */
enum ndx_status config_parse(const char *name, const char *text, size_t len, struct config *out);

void config_free(struct config *config);

/* The entry with the adapter's URI, or NULL. */
const struct config_entry *config_adapter(const struct config *config);

#endif
