/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters of all providers, in one list. */
#ifndef ADAPTER_LIST_H
#define ADAPTER_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/adapter.h>
#include <ndx/spi/provider.h>
#include <ndx/status.h>

struct config; /* config.h */

/* Starts as {0}; release with list_clear(). */
struct listing {
	struct ndx_adapter_entry *entries;
	int32_t *ranks; /* of the entries; 0: not for the automatic choice */
	size_t count;
	size_t room;
	struct sockaddr_storage *addresses; /* of all entries, in the order of the entries */
	size_t address_count;
	size_t address_room;
	bool too_many;          /* an entry had more addresses than fit, and the log has this */
	enum ndx_status status; /* NDX_E_NO_MEMORY if an entry was lost */
};

/* Append the adapters of a provider, with its options of the INI file; a provider that fails
 * becomes an entry with the error. Only NDX_E_NO_MEMORY is a failure. */
enum ndx_status list_provider(const struct ndx_provider *provider, const struct config *config,
                              struct listing *listing);

/* The rank of a provider's adapter in the automatic choice; 0 if it has none. */
int32_t list_rank(const struct ndx_provider *provider, const struct ndx_adapter_entry *entry);

/* The adapters of the provider that a URI names; none, and no log record, if there is no such
 * provider or it cannot be loaded. */
void list_provider_of(const char *uri, struct listing *out);

/* The adapters of all providers, built in or not. */
void list_all(struct listing *out);

/* Whether an entry matches a URI: same provider, and same device if the URI has one. Options do not
 * count. */
bool list_entry_fits(const struct ndx_adapter_entry *entry, const char *uri);

/* Move the entries and their addresses into one block, which free() releases. Fails with
 * NDX_E_NO_MEMORY only. */
enum ndx_status list_pack(struct listing *listing);

void list_clear(struct listing *listing);

#endif
