/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of the adapters of all providers. */
#include "list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "config.h"
#include "control_thread.h"
#include "loader.h"
#include "registry.h"

#define LIST_MAX 1024            /* entries of all providers; a provider with more is defective */
#define ADDRESSES_MAX (1u << 18) /* of all entries */

_Static_assert(sizeof(struct ndx_adapter_entry) % _Alignof(struct sockaddr_storage) == 0,
               "list_pack() puts addresses behind entries");

void list_clear(struct listing *listing)
{
	free(listing->entries);
	free(listing->ranks);
	free(listing->addresses);
	*listing = (struct listing){0};
}

static enum ndx_status fail_memory(struct listing *l)
{
	l->status = fail(NDX_E_NO_MEMORY, 0, "list of adapters: out of memory");
	return l->status;
}

static bool make_room(struct listing *l)
{
	const size_t room = l->room == 0 ? 8 : l->room * 2;
	struct ndx_adapter_entry *entries;
	int32_t *ranks;

	if (l->count < l->room)
		return true;
	entries = reallocarray(l->entries, room, sizeof(*entries));
	if (entries != NULL)
		l->entries = entries;
	ranks = reallocarray(l->ranks, room, sizeof(*ranks));
	if (ranks != NULL)
		l->ranks = ranks;
	if (entries == NULL || ranks == NULL) {
		(void)fail_memory(l);
		return false;
	}
	l->room = room;
	return true;
}

/* ---- addresses ---- */

/* Point the entries to their addresses, of which the first is at `at`. */
static void point(struct listing *l, const struct sockaddr_storage *at)
{
	for (size_t i = 0; i < l->count; i++) {
		l->entries[i].addresses = l->entries[i].address_count > 0 ? at : NULL;
		at += l->entries[i].address_count;
	}
}

static bool make_room_for_addresses(struct listing *l, size_t more)
{
	size_t room = l->address_room == 0 ? 16 : l->address_room;
	struct sockaddr_storage *addresses;

	while (room - l->address_count < more)
		room *= 2;
	if (room == l->address_room)
		return true;
	addresses = reallocarray(l->addresses, room, sizeof(*addresses));
	if (addresses == NULL) {
		(void)fail_memory(l);
		return false;
	}
	l->addresses = addresses;
	l->address_room = room;
	point(l, addresses);
	return true;
}

/* The addresses that a provider gave. One that does not know the member gave `address` only. */
static const struct sockaddr_storage *
addresses_of(struct listing *l, const struct ndx_adapter_entry *entry, size_t *count)
{
	const bool knows = entry->addresses != NULL && entry->address_count > 0;
	const size_t left = l->address_count < ADDRESSES_MAX ? ADDRESSES_MAX - l->address_count : 0;

	if (knows && entry->address_count <= left) {
		*count = entry->address_count;
		return entry->addresses;
	}
	if (knows && !l->too_many)
		log_warn(0, "list of adapters: %zu addresses do not fit; entries lack some",
		         entry->address_count);
	l->too_many |= knows;
	*count = entry->address.ss_family != AF_UNSPEC ? 1 : 0;
	return &entry->address;
}

/* Copy the addresses of `entry` behind those of the other entries, and into `own`. */
static bool take_addresses(struct listing *l, const struct ndx_adapter_entry *entry,
                           struct ndx_adapter_entry *own)
{
	size_t count;
	const struct sockaddr_storage *from = addresses_of(l, entry, &count);

	own->addresses = NULL;
	own->address_count = count;
	if (count == 0)
		return true;
	if (!make_room_for_addresses(l, count))
		return false;
	own->addresses = l->addresses + l->address_count;
	memcpy(l->addresses + l->address_count, from, count * sizeof(*from));
	l->address_count += count;
	own->address = own->addresses[0];
	return true;
}

enum ndx_status list_pack(struct listing *l)
{
	const size_t of_entries = l->count * sizeof(*l->entries);
	const size_t of_addresses = l->address_count * sizeof(*l->addresses);
	struct sockaddr_storage *addresses;
	char *block;

	if (l->count == 0)
		return NDX_OK;
	block = realloc(l->entries, of_entries + of_addresses);
	if (block == NULL)
		return fail_memory(l);
	l->entries = (struct ndx_adapter_entry *)(void *)block;
	l->room = l->count;
	addresses = (struct sockaddr_storage *)(void *)(block + of_entries);
	if (of_addresses > 0)
		memcpy(addresses, l->addresses, of_addresses);
	point(l, addresses);
	free(l->addresses);
	l->addresses = NULL;
	l->address_count = 0;
	l->address_room = 0;
	return NDX_OK;
}

/* ---- entries ---- */

static void end_string(char *text, size_t size)
{
	text[size - 1] = '\0';
}

/* ndx_spi_list_fn */
static void append_entry(void *arg, const struct ndx_adapter_entry *entry)
{
	struct listing *l = arg;
	struct ndx_adapter_entry *e;

	if (l->count == LIST_MAX || !make_room(l))
		return;
	e = &l->entries[l->count];
	*e = *entry;
	memset(e->reserved, 0, sizeof(e->reserved)); /* a newer provider's are unknown here */
	if (!take_addresses(l, entry, e))
		return;
	l->ranks[l->count++] = 0;
	end_string(e->uri, sizeof(e->uri));
	end_string(e->provider, sizeof(e->provider));
	end_string(e->device, sizeof(e->device));
	end_string(e->interface_name, sizeof(e->interface_name));
	end_string(e->hint, sizeof(e->hint));
}

/* An entry for a provider that could not be listed. */
static void take_failure(struct listing *l, const char *name, enum ndx_status status)
{
	struct ndx_adapter_entry entry = {.state = status};

	(void)snprintf(entry.uri, sizeof(entry.uri), "%s", name);
	(void)snprintf(entry.provider, sizeof(entry.provider), "%s", name);
	if (ndx_last_error()[0] != '\0')
		(void)snprintf(entry.hint, sizeof(entry.hint), "%s", ndx_last_error());
	else
		(void)snprintf(entry.hint, sizeof(entry.hint),
		               "provider \"%s\" failed and did not say why", name);
	append_entry(l, &entry);
}

/* The options of the provider's section; strings are borrowed. NULL: out of memory. */
static struct ndx_spi_option *section_of(const struct config *config, const char *name,
                                         size_t *count)
{
	struct ndx_spi_option *options = calloc(config->count + 1, sizeof(*options));

	*count = 0;
	for (size_t i = 0; options != NULL && i < config->count; i++) {
		const struct config_entry *e = &config->entries[i];

		if (strcmp(e->section, name) == 0 && !control_thread_has_key(e->key))
			options[(*count)++] = (struct ndx_spi_option){
				.key = e->key, .value = e->value, .origin = e->origin};
	}
	return options;
}

/* The length of "PROVIDER:DEVICE" in a URI. */
static size_t head_length(const char *uri)
{
	return strcspn(uri, "?");
}

bool list_entry_fits(const struct ndx_adapter_entry *entry, const char *uri)
{
	const size_t provider = strcspn(uri, ":?");
	const size_t head = head_length(uri);

	if (strlen(entry->provider) != provider || memcmp(entry->provider, uri, provider) != 0)
		return false;
	if (head == provider)
		return true;
	return head_length(entry->uri) == head && memcmp(entry->uri, uri, head) == 0;
}

int32_t list_rank(const struct ndx_provider *provider, const struct ndx_adapter_entry *entry)
{
	const char *device = entry->uri + strcspn(entry->uri, ":?");
	int32_t of_all = 0;
	size_t len = 0;

	if (*device == ':')
		len = strcspn(++device, "?");
	for (const struct ndx_spi_rank *r = provider->ranks; r != NULL && r->device != NULL; r++) {
		if (strlen(r->device) == len && memcmp(r->device, device, len) == 0)
			return r->rank > 0 ? r->rank : 0;
		if (r->device[0] == '\0') /* all other devices */
			of_all = r->rank > 0 ? r->rank : 0;
	}
	return of_all;
}

enum ndx_status list_provider(const struct ndx_provider *provider, const struct config *config,
                              struct listing *l)
{
	const size_t before = l->count;
	struct ndx_spi_open defaults = {.device = ""};
	struct ndx_spi_option *options = section_of(config, provider->name, &defaults.option_count);
	enum ndx_status st;

	if (options == NULL)
		return fail_memory(l);
	defaults.options = options;
	ndxp_set_last_error("%s", ""); /* so that a text afterwards is the provider's */
	st = provider->ops->list(provider, &defaults, append_entry, l);
	free(options);
	for (size_t i = before; i < l->count; i++) {
		(void)snprintf(l->entries[i].provider, sizeof(l->entries[i].provider), "%s",
		               provider->name);
		l->ranks[i] = list_rank(provider, &l->entries[i]);
	}
	if (st != NDX_OK && st != NDX_E_NO_MEMORY)
		take_failure(l, provider->name, st);
	else if (st != NDX_OK)
		l->status = st;
	return l->status;
}

void list_provider_of(const char *uri, struct listing *out)
{
	const struct ndx_provider *provider;
	struct config config = {0};
	struct listing l = {0};
	struct loaded *loaded;
	char *name = strndup(uri, strcspn(uri, ":?"));
	enum ndx_status st;

	if (name == NULL) {
		(void)fail_memory(out);
		return;
	}
	ndxp_fail_hold(true); /* opening the URI fails with a log record */
	st = config_load(&config);
	if (st == NDX_OK)
		st = loader_open(name, &loaded, &provider);
	ndxp_fail_hold(false);
	if (st == NDX_OK) {
		(void)list_provider(provider, &config, &l);
		loader_close(loaded);
	}
	config_free(&config);
	free(name);
	*out = l;
}

struct all {
	struct listing listing;
	struct config config;
};

/* For loader_each(). */
static void list_loadable(void *arg, const char *name)
{
	struct all *all = arg;
	struct listing *l = &all->listing;
	const struct ndx_provider *provider;
	struct loaded *loaded;
	enum ndx_status st;

	st = loader_open(name, &loaded, &provider);
	if (st != NDX_OK) {
		take_failure(l, name, st);
		return;
	}
	(void)list_provider(provider, &all->config, l);
	loader_close(loaded);
}

/* For loader_each_missing(). */
static void list_missing(void *arg, const char *name)
{
	struct all *all = arg;
	struct ndx_adapter_entry entry = {.state = NDX_E_NOT_FOUND};

	(void)snprintf(entry.uri, sizeof(entry.uri), "%s", name);
	(void)snprintf(entry.provider, sizeof(entry.provider), "%s", name);
	(void)snprintf(entry.hint, sizeof(entry.hint),
	               "not installed: install the package ndx-provider-%s", name);
	append_entry(&all->listing, &entry);
}

void list_all(struct listing *out)
{
	struct all all = {0};
	const struct ndx_provider *provider;

	/* A broken file has been logged. The list stays available, because it helps to mend the
	 * file. */
	(void)config_load(&all.config);
	for (size_t i = 0; (provider = registry_get(i)) != NULL; i++) {
		const enum ndx_status st = registry_check(provider, "this build");

		if (st != NDX_OK)
			take_failure(&all.listing, provider->name != NULL ? provider->name : "?",
			             st);
		else
			(void)list_provider(provider, &all.config, &all.listing);
	}
	loader_each(list_loadable, &all);
	loader_each_missing(list_missing, &all);
	config_free(&all.config);
	*out = all.listing;
}
