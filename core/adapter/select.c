/* SPDX-License-Identifier: BSD-2-Clause */
/* From a URI, the environment or the INI file to the adapter that is opened. */
#include "select.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "choice.h"
#include "config.h"
#include "control_thread.h"
#include "list.h"
#include "loader.h"
#include "registry.h"
#include "suggest.h"
#include "uri.h"

#define CHOICES_MAX 8
#define REASONS 320 /* bytes of text why no candidate was chosen */

static const char automatic[] = "auto";

void selection_free(struct selection *s)
{
	loader_close(s->loaded);
	free(s->options);
	free(s->uri); /* ... which holds all other strings, too */
}

static void offer(void *arg, const char *name)
{
	suggest_offer(arg, name, NULL);
}

static void ignore_reason(void *arg, const char *uri, const char *reason)
{
	(void)arg;
	(void)uri;
	(void)reason;
}

/* A device without its provider, as "tcp" for "ofi:tcp": offer the whole name. */
static void suggest_device(struct suggest *s)
{
	struct choice *choices = calloc(CHOICE_MOST, sizeof(*choices));
	size_t count;

	if (choices == NULL)
		return;
	count = choice_collect(choices, ignore_reason, NULL);
	for (size_t i = 0; i < count; i++) {
		const char *colon = strchr(choices[i].uri, ':');

		if (colon != NULL)
			suggest_whole(s, colon + 1, choices[i].uri);
	}
	free(choices);
}

/* The name of a device or of a network interface, as "rxe0" for "verbs:rxe0": offer an adapter that
 * this host has. */
static void suggest_adapter(struct suggest *s)
{
	struct listing listing = {0};

	list_all(&listing);
	for (size_t i = 0; i < listing.count; i++) {
		const struct ndx_adapter_entry *e = &listing.entries[i];

		if (e->device[0] != '\0')
			suggest_whole(s, e->device, e->uri);
		if (strcmp(e->interface_name, s->word) == 0)
			suggest_whole(s, e->interface_name, e->uri);
	}
	list_clear(&listing);
}

static enum ndx_status fail_provider(const char *origin, const char *name)
{
	const struct ndx_provider *provider;
	struct suggest s;
	char text[SUGGEST_TEXT];
	char directory[PATH_MAX];

	suggest_begin(&s, name);
	for (size_t i = 0; (provider = registry_get(i)) != NULL; i++)
		suggest_offer(&s, provider->name, provider->devices);
	loader_each(offer, &s);
	suggest_offer(&s, automatic, NULL);
	if (registry_is_module(name))
		return fail(NDX_E_NOT_FOUND, 0,
		            "%s: provider \"%s\" is not installed in %s; install the package "
		            "ndx-provider-%s; there are: %s",
		            origin, name, loader_directory(directory), name, s.known);
	if (suggest_nearest(&s)[0] == '\0') {
		ndxp_fail_hold(true); /* files that cannot be loaded are another matter */
		suggest_device(&s);
		if (suggest_nearest(&s)[0] == '\0')
			suggest_adapter(&s);
		ndxp_fail_hold(false);
	}
	if (suggest_nearest(&s)[0] == '\0')
		return fail(NDX_E_NOT_FOUND, 0,
		            "%s: no provider \"%s\"; %s; a device of that name would stand behind "
		            "its provider: PROVIDER:%s",
		            origin, name, suggest_text(&s, text), name);
	return fail(NDX_E_NOT_FOUND, 0, "%s: no provider \"%s\"; %s", origin, name,
	            suggest_text(&s, text));
}

/* ---- options ---- */

static bool in_uri(const struct uri *uri, const char *key)
{
	for (size_t i = 0; i < uri->option_count; i++) {
		if (strcmp(uri->options[i].key, key) == 0)
			return true;
	}
	return false;
}

/* The URI's options, then the options of the file that the URI does not have. Strings are
 * borrowed. */
static size_t merge(const struct uri *uri, const char *origin, const struct config *config,
                    struct ndx_spi_option *options)
{
	size_t count = 0;

	for (; count < uri->option_count; count++)
		options[count] = (struct ndx_spi_option){.key = uri->options[count].key,
		                                         .value = uri->options[count].value,
		                                         .origin = origin};
	for (size_t i = 0; i < config->count; i++) {
		const struct config_entry *e = &config->entries[i];

		if (strcmp(e->section, uri->provider) == 0 && !in_uri(uri, e->key))
			options[count++] = (struct ndx_spi_option){
				.key = e->key, .value = e->value, .origin = e->origin};
	}
	return count;
}

static bool is_key(const struct ndx_provider *provider, const char *text)
{
	for (const struct ndx_spi_key *k = provider->keys; k->name != NULL; k++) {
		const size_t len = strlen(k->name);

		if (strncmp(text, k->name, len) == 0 && text[len] == '=')
			return true;
	}
	return false;
}

/* A '?', ';' or ',' where the next key was meant to begin: "iface=lo?trust=lan". */
static enum ndx_status check_separator(const struct ndx_provider *provider,
                                       const struct ndx_spi_option *option)
{
	static const char wrong[] = "?;,";
	char keys[URI_MAX + 1];

	for (const char *mark = option->value; (mark = strpbrk(mark, wrong)) != NULL; mark++) {
		if (!is_key(provider, mark + 1))
			continue;
		(void)snprintf(keys, sizeof(keys), "%s", option->value);
		uri_join_keys(keys, wrong);
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: %s=%.64s: keys are separated by '&'; write %s=%.128s",
		            option->origin, option->key, option->value, option->key, keys);
	}
	return NDX_OK;
}

static enum ndx_status check_options(const struct ndx_provider *provider,
                                     const struct ndx_spi_option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum ndx_status st =
			registry_check_key(provider, options[i].key, options[i].origin);

		if (st == NDX_OK)
			st = check_separator(provider, &options[i]);
		if (st != NDX_OK)
			return st;
	}
	return NDX_OK;
}

static const char *store(char **at, const char *text)
{
	const size_t size = strlen(text) + 1;
	char *to = *at;

	memcpy(to, text, size);
	*at += size;
	return to;
}

/* Move the control thread's options behind those of the provider. */
static void sort_options(struct ndx_spi_option *options, size_t count, size_t *of_provider)
{
	size_t front = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ndx_spi_option o = options[i];

		if (control_thread_has_key(o.key))
			continue;
		options[i] = options[front];
		options[front++] = o;
	}
	*of_provider = front;
}

/* Copy the strings of the selection into one block that it owns. */
static enum ndx_status own_strings(struct selection *s, const struct uri *uri,
                                   const struct ndx_spi_option *options, size_t count)
{
	const size_t uri_size =
		uri_write(NULL, 0, s->provider->name, uri->device, options, count) + 1;
	size_t size = strlen(uri->device) + 1 + uri_size;
	char *at;

	for (size_t i = 0; i < count; i++)
		size += strlen(options[i].key) + strlen(options[i].value) +
		        strlen(options[i].origin) + 3;
	at = malloc(size);
	if (at == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "adapter options: out of memory");
	s->uri = at;
	at += uri_write(s->uri, uri_size, s->provider->name, uri->device, options, count) + 1;
	s->device = store(&at, uri->device);
	for (size_t i = 0; i < count; i++) {
		s->options[i].key = store(&at, options[i].key);
		s->options[i].value = store(&at, options[i].value);
		s->options[i].origin = store(&at, options[i].origin);
	}
	sort_options(s->options, count, &s->option_count);
	s->thread_option_count = count - s->option_count;
	return NDX_OK;
}

static enum ndx_status fill_options(struct selection *s, const struct uri *uri, const char *origin,
                                    const struct config *config)
{
	const size_t room = uri->option_count + config->count + 1;
	struct ndx_spi_option *options = calloc(room, sizeof(*options));
	size_t count;
	enum ndx_status st;

	s->options = calloc(room, sizeof(*s->options));
	if (options == NULL || s->options == NULL) {
		free(options);
		return fail(NDX_E_NO_MEMORY, 0, "adapter options: out of memory");
	}
	count = merge(uri, origin, config, options);
	st = check_options(s->provider, options, count);
	if (st == NDX_OK)
		st = own_strings(s, uri, options, count);
	free(options);
	return st;
}

/* ---- one adapter ---- */

/* `out` is zero, and stays zero on failure. */
static enum ndx_status choose(const struct uri *uri, const char *origin,
                              const struct config *config, struct selection *out)
{
	struct selection s = {0};
	enum ndx_status st = loader_open(uri->provider, &s.loaded, &s.provider);

	if (st == NDX_E_NOT_FOUND)
		return fail_provider(origin, uri->provider);
	if (st != NDX_OK)
		return st;
	st = fill_options(&s, uri, origin, config);
	if (st != NDX_OK) {
		selection_free(&s);
		return st;
	}
	*out = s;
	return NDX_OK;
}

/* ---- the automatic choice ---- */

/* State of the automatic choice. */
struct choosing {
	const struct config *config;
	struct selection *list;
	size_t count;
	char listed[URI_NAME_MAX + 1]; /* the provider of the adapters in `listing` */
	struct listing listing;
	char reasons[REASONS];
	size_t used;
};

/* choice_without_fn */
static void add_reason(void *arg, const char *uri, const char *reason)
{
	struct choosing *c = arg;
	const int len = snprintf(c->reasons + c->used, sizeof(c->reasons) - c->used, "%s%s: %s",
	                         c->used > 0 ? "; " : "", uri, reason);

	if (len > 0)
		c->used += (size_t)len;
	if (c->used >= sizeof(c->reasons))
		c->used = sizeof(c->reasons) - 1;
}

/* Whether one of the candidate's adapters is usable. Listing takes time: list each provider at most
 * once, and none after the first usable candidate. */
static enum ndx_status is_usable(struct choosing *c, const struct selection *s, const char *name,
                                 const char *uri, bool *usable)
{
	const char *reason = "no device";

	*usable = c->count > 0;
	if (*usable)
		return NDX_OK;
	if (strcmp(c->listed, name) != 0) {
		enum ndx_status st;

		list_clear(&c->listing);
		(void)snprintf(c->listed, sizeof(c->listed), "%s", name);
		st = list_provider(s->provider, c->config, &c->listing);
		if (st != NDX_OK)
			return st;
	}
	for (size_t i = 0; i < c->listing.count && !*usable; i++) {
		const struct ndx_adapter_entry *e = &c->listing.entries[i];

		if (list_entry_fits(e, uri)) {
			*usable = e->state == NDX_OK;
			reason = e->hint[0] != '\0' ? e->hint : ndx_status_text(e->state);
		}
	}
	if (!*usable)
		add_reason(c, uri, reason);
	return NDX_OK;
}

static enum ndx_status consider(struct choosing *c, const char *text)
{
	static const char origin[] = "automatic choice";
	struct selection s = {0};
	struct uri uri;
	bool usable;
	enum ndx_status st = uri_parse(text, origin, &uri);

	if (st != NDX_OK) {
		add_reason(c, text, "no adapter URI");
		return NDX_OK;
	}
	st = choose(&uri, origin, c->config, &s);
	if (st == NDX_E_NO_MEMORY || st == NDX_E_INVALID_CONFIG)
		return st;
	if (st != NDX_OK) {
		/* A broken file has been logged; the other candidates stay available. */
		add_reason(c, text, ndx_status_text(st));
		return NDX_OK;
	}
	st = is_usable(c, &s, uri.provider, text, &usable);
	if (st == NDX_OK && usable)
		c->list[c->count++] = s;
	else
		selection_free(&s);
	return st;
}

static enum ndx_status choose_automatically(const struct config *config, struct selection *list,
                                            size_t *count)
{
	struct choosing c = {.config = config, .list = list};
	struct choice *choices = calloc(CHOICE_MOST, sizeof(*choices));
	enum ndx_status st = NDX_OK;
	size_t most;

	if (choices == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "automatic choice: out of memory");
	most = choice_collect(choices, add_reason, &c);
	for (size_t i = 0; st == NDX_OK && i < most && c.count < CHOICES_MAX; i++)
		st = consider(&c, choices[i].uri);
	list_clear(&c.listing);
	free(choices);
	if (st == NDX_OK && c.count == 0)
		st = fail(NDX_E_NOT_FOUND, 0,
		          "automatic choice: no adapter is usable (%s); name one in the call, "
		          "$NDX_ADAPTER or the INI file",
		          c.reasons);
	*count = c.count;
	return st;
}

/* ---- which ---- */

/* The URI that takes precedence, and its origin. */
static const char *find_uri(const char *uri, const struct config *config, const char **origin)
{
	const char *variable = secure_getenv("NDX_ADAPTER");
	const struct config_entry *entry = config_adapter(config);

	*origin = "URI";
	if (uri != NULL)
		return uri;
	*origin = "$NDX_ADAPTER";
	if (variable != NULL && variable[0] != '\0')
		return variable;
	if (entry == NULL)
		return automatic;
	*origin = entry->origin;
	return entry->value;
}

static enum ndx_status fill_list(const char *text, const char *origin, const struct config *config,
                                 struct selection *list, size_t *count)
{
	struct uri uri;
	enum ndx_status st = uri_parse(text, origin, &uri);

	if (st != NDX_OK)
		return st;
	if (strcmp(uri.provider, automatic) == 0) {
		if (uri.device[0] != '\0' || uri.option_count > 0)
			return fail(NDX_E_INVALID_CONFIG, 0,
			            "%s \"%s\": \"%s\" takes neither device nor keys; put defaults "
			            "into the INI file's section of the provider",
			            origin, text, automatic);
		return choose_automatically(config, list, count);
	}
	*count = 0;
	st = choose(&uri, origin, config, &list[0]);
	if (st == NDX_OK)
		*count = 1;
	return st;
}

enum ndx_status select_adapter(const char *uri, struct selection **list, size_t *count)
{
	struct config config;
	struct selection *found;
	size_t found_count = 0;
	const char *origin;
	const char *text;
	enum ndx_status st = config_load(&config);

	if (st != NDX_OK)
		return st;
	found = calloc(CHOICES_MAX, sizeof(*found));
	if (found == NULL) {
		st = fail(NDX_E_NO_MEMORY, 0, "choosing an adapter: out of memory");
		goto free_config;
	}
	text = find_uri(uri, &config, &origin);
	st = fill_list(text, origin, &config, found, &found_count);
	if (st != NDX_OK)
		goto free_found;
	*list = found;
	*count = found_count;
	config_free(&config);
	return NDX_OK;

free_found:
	for (size_t i = 0; i < found_count; i++)
		selection_free(&found[i]);
	free(found);
free_config:
	config_free(&config);
	return st;
}

enum ndx_status select_named(char **uri)
{
	struct config config;
	const char *origin;
	const char *text;
	enum ndx_status st = config_load(&config);

	if (st != NDX_OK)
		return st;
	*uri = NULL;
	text = find_uri(NULL, &config, &origin);
	if (strcmp(text, automatic) != 0) {
		*uri = strdup(text);
		if (*uri == NULL)
			st = fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", origin);
	}
	config_free(&config);
	return st;
}
