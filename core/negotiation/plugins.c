/* SPDX-License-Identifier: BSD-2-Clause */
/* The framework and its plugins: register, unregister. */
#include "plugins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include "code_file.h"
#include "frame.h"
#include "suggest.h"

static struct plugin *plugin_of(struct ndxp_list *node)
{
	return container_of(node, struct plugin, node);
}

enum ndx_status ndx_negotiation_create(struct ndx_negotiation **out)
{
	struct ndx_negotiation *n;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_create: out is NULL");
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_negotiation_create: out of memory");
	(void)pthread_mutex_init(&n->lock, NULL);
	(void)pthread_mutex_init(&n->registering, NULL);
	ndxp_list_init(&n->plugins);
	resolver_init(&n->resolver);
	*out = n;
	return NDX_OK;
}

struct plugin *plugins_find_host(struct ndx_negotiation *n, const char *suffix)
{
	struct plugin *host = NULL;

	pthread_mutex_lock(&n->lock);
	for (struct ndxp_list *node = n->plugins.next; node != &n->plugins; node = node->next) {
		struct plugin *p = plugin_of(node);

		if (p->status == NDX_PLUGIN_READY && p->table->guests != NULL &&
		    strcmp(p->table->guests->suffix, suffix) == 0)
			host = p;
	}
	if (host != NULL)
		host->guests++;
	pthread_mutex_unlock(&n->lock);
	return host;
}

void plugins_drop_guest(struct plugin *host)
{
	pthread_mutex_lock(&host->negotiation->lock);
	host->guests--;
	pthread_mutex_unlock(&host->negotiation->lock);
}

/* The plugin is in no list and has no instances. */
static void plugin_free(struct plugin *p)
{
	if (p->table != NULL && p->status == NDX_PLUGIN_READY && p->table->finalize != NULL)
		p->table->finalize(p->state);
	if (p->runner != NULL) {
		p->runner->table->guests->close(p->runner->state, p->given, p->guest);
		plugins_drop_guest(p->runner);
	}
	code_file_close(p->dl);
	(void)pthread_mutex_destroy(&p->turn);
	free(p->variants);
	free(p->origin);
	free(p);
}

enum ndx_status ndx_negotiation_close(struct ndx_negotiation *n)
{
	unsigned instances = 0;
	struct ndxp_list *node;
	struct ndxp_list *before;

	if (n == NULL)
		return NDX_OK;
	pthread_mutex_lock(&n->lock);
	for (node = n->plugins.next; node != &n->plugins; node = node->next)
		instances += plugin_of(node)->instances;
	pthread_mutex_unlock(&n->lock);
	if (instances > 0)
		return fail(NDX_E_DEVICE_BUSY, 0,
		            "the negotiation framework is in use: %u variants (with what their "
		            "sessions keep) are alive; close them first",
		            instances);
	/* The youngest first, because guests are registered after the plugin that runs them. */
	for (node = n->plugins.prev; node != &n->plugins; node = before) {
		before = node->prev;
		plugin_free(plugin_of(node));
	}
	if (n->engine != NULL)
		engine_put(n->engine);
	resolver_fini(&n->resolver);
	(void)pthread_mutex_destroy(&n->registering);
	(void)pthread_mutex_destroy(&n->lock);
	free(n);
	return NDX_OK;
}

enum ndx_status plugins_engine(struct ndx_negotiation *n, struct engine **out)
{
	enum ndx_status st = NDX_OK;

	pthread_mutex_lock(&n->lock);
	if (n->engine == NULL)
		st = engine_create(&n->engine);
	if (st == NDX_OK) {
		engine_get(n->engine);
		*out = n->engine;
	}
	pthread_mutex_unlock(&n->lock);
	return st;
}

void plugin_enter(struct plugin *p)
{
	if ((p->table->flags & NDX_PLUGIN_ONE_AT_A_TIME) != 0)
		pthread_mutex_lock(&p->turn);
}

void plugin_leave(struct plugin *p)
{
	if ((p->table->flags & NDX_PLUGIN_ONE_AT_A_TIME) != 0)
		pthread_mutex_unlock(&p->turn);
}

#define PROMPT_MOST_NS 100000000u

bool plugin_is_prompt(const struct plugin *p)
{
	return (p->table->flags & (NDX_PLUGIN_PROMPT | NDX_PLUGIN_ONE_AT_A_TIME)) ==
	               NDX_PLUGIN_PROMPT &&
	       __atomic_load_n(&p->dawdled, __ATOMIC_RELAXED) == 0;
}

void plugin_note_prompt(struct plugin *p, uint64_t took_ns)
{
	if (took_ns < PROMPT_MOST_NS || __atomic_exchange_n(&p->dawdled, 1, __ATOMIC_RELAXED) != 0)
		return;
	log_warn(
		0,
		"plugin \"%s\" says that it is prompt, and a call has taken %u ms on the thread of "
		"all sessions; from now on other threads call it",
		p->name, (unsigned)(took_ns / 1000000));
}

static void host_log(const struct ndx_plugin_host *host, enum ndx_log_level level, const char *text)
{
	ndxp_log(level, "plugin", 0, "%s: %s", host->name, text);
}

static struct plugin *plugin_new(struct ndx_negotiation *n, const char *name, const char *origin)
{
	struct plugin *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->origin = strdup(origin);
	if (p->origin == NULL) {
		free(p);
		return NULL;
	}
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	(void)pthread_mutex_init(&p->turn, NULL);
	p->negotiation = n;
	p->host = (struct ndx_plugin_host){.abi = NDX_PLUGIN_ABI, .name = p->name, .log = host_log};
	ndxp_list_init(&p->node);
	return p;
}

/* Lock held. Only plugins that are ready, or failed ones as well. */
static struct plugin *find(struct ndx_negotiation *n, const char *name, bool failed)
{
	for (struct ndxp_list *node = n->plugins.next; node != &n->plugins; node = node->next) {
		struct plugin *p = plugin_of(node);

		if (strcmp(p->name, name) == 0 && (failed || p->status == NDX_PLUGIN_READY))
			return p;
	}
	return NULL;
}

/* Add to the list, and remove a failed plugin of that name. */
static void list_plugin(struct ndx_negotiation *n, struct plugin *p)
{
	struct plugin *old;

	pthread_mutex_lock(&n->lock);
	old = find(n, p->name, true);
	if (old != NULL && old->status == NDX_PLUGIN_FAILED)
		ndxp_list_remove(&old->node);
	else
		old = NULL;
	ndxp_list_add(&n->plugins, &p->node);
	pthread_mutex_unlock(&n->lock);
	if (old != NULL)
		plugin_free(old);
}

static void note_failed(struct ndx_negotiation *n, const char *name, const char *origin,
                        const char *why)
{
	struct plugin *p = plugin_new(n, name, origin);

	if (p == NULL)
		return;
	p->status = NDX_PLUGIN_FAILED;
	(void)snprintf(p->text, sizeof(p->text), "%s", why);
	list_plugin(n, p);
}

void plugins_note_failed(struct ndx_negotiation *n, const char *name, const char *origin)
{
	pthread_mutex_lock(&n->registering);
	note_failed(n, name, origin, ndx_last_error());
	pthread_mutex_unlock(&n->registering);
}

/* Ask the plugin which variants can run here. */
static enum ndx_status take_variants(struct plugin *p, const struct ndx_plugin_variant *list,
                                     size_t count)
{
	if (count == 0)
		return NDX_OK;
	p->variants = calloc(count, sizeof(*p->variants));
	if (p->variants == NULL)
		return NDX_E_NO_MEMORY;
	p->count = count;
	for (size_t i = 0; i < count; i++) {
		struct plugin_variant *v = &p->variants[i];
		enum ndx_status st = NDX_OK;

		v->table = &list[i];
		if (list[i].ops->available != NULL)
			st = list[i].ops->available(p->state, &list[i], v->text, sizeof(v->text));
		v->text[sizeof(v->text) - 1] = '\0';
		v->available = st == NDX_OK;
		if (st == NDX_OK)
			v->text[0] = '\0';
		else if (v->text[0] == '\0')
			(void)snprintf(v->text, sizeof(v->text), "%s", ndx_status_text(st));
	}
	return NDX_OK;
}

/* Initialise a plugin whose table was checked. */
static enum ndx_status start(struct plugin *p, const struct ndx_plugin *table,
                             char why[PLUGIN_TEXT])
{
	const struct ndx_plugin_variant *list = table->list;
	size_t count = list != NULL ? table->count : 0;
	enum ndx_status st = NDX_OK;

	if (list != NULL)
		st = plugin_check_variants(table, list, count, why);
	if (st != NDX_OK)
		return st;
	why[0] = '\0';
	if (table->initialize != NULL)
		st = table->initialize(&p->host, &p->state, why, PLUGIN_TEXT);
	why[PLUGIN_TEXT - 1] = '\0';
	if (st != NDX_OK) {
		if (why[0] == '\0')
			(void)snprintf(why, PLUGIN_TEXT, "its initialize failed: %s",
			               ndx_status_text(st));
		return st < 0 ? st : NDX_E_UNSUCCESSFUL;
	}
	if (list == NULL && table->variants != NULL) {
		count = table->variants(p->state, &list);
		st = plugin_check_variants(table, list, count, why);
	}
	if (st == NDX_OK) {
		(void)snprintf(why, PLUGIN_TEXT, "out of memory");
		st = take_variants(p, list, count);
	}
	if (st != NDX_OK && table->finalize != NULL)
		table->finalize(p->state);
	return st;
}

static enum ndx_status register_checked(struct ndx_negotiation *n, const struct ndx_plugin *table,
                                        const struct ndx_plugin *given,
                                        const struct plugin_source *source)
{
	const char *origin = source->origin;
	char why[PLUGIN_TEXT] = "out of memory";
	struct plugin *p = plugin_new(n, table->name, origin);
	struct plugin *old;
	enum ndx_status st;

	if (p == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "plugin \"%s\": out of memory", table->name);
	pthread_mutex_lock(&n->lock);
	old = find(n, table->name, false);
	if (old != NULL)
		(void)snprintf(why, sizeof(why), "%.200s", old->origin);
	pthread_mutex_unlock(&n->lock);
	if (old != NULL) {
		plugin_free(p);
		return fail(NDX_E_DEVICE_BUSY, 0,
		            "plugin \"%s\" (%s) is refused: the name is taken by the plugin of %s",
		            table->name, origin, why);
	}
	p->own = *table;
	p->state = source->guest;
	st = start(p, &p->own, why);
	if (st != NDX_OK) {
		p->status = NDX_PLUGIN_FAILED;
		(void)snprintf(p->text, sizeof(p->text), "%s", why);
		st = fail(st, 0, "plugin \"%s\" (%s) is refused: %s", p->name, origin, why);
		list_plugin(n, p);
		return st;
	}
	p->table = &p->own;
	p->given = given;
	p->dl = source->dl;
	p->runner = source->host;
	p->guest = source->guest;
	p->status = NDX_PLUGIN_READY;
	list_plugin(n, p);
	log_info("plugin \"%s\" %s (%s), from %s: %zu variants", p->name, table->version,
	         table->vendor, origin, p->count);
	return NDX_OK;
}

enum ndx_status plugins_register(struct ndx_negotiation *n, const struct ndx_plugin *table,
                                 const struct plugin_source *source)
{
	char why[PLUGIN_TEXT];
	struct ndx_plugin own;
	enum ndx_status st = plugin_take_table(table, &own, why);
	const char *name = "?";

	pthread_mutex_lock(&n->registering);
	if (st == NDX_OK) {
		if (own.name != NULL && frame_name_valid(own.name))
			name = own.name;
		st = plugin_check_table(&own, why);
	}
	if (st == NDX_OK) {
		st = register_checked(n, &own, table, source);
	} else {
		st = fail(st, 0, "plugin \"%s\" (%s) is refused: %s", name, source->origin, why);
		/* A plugin without a name can only be identified by its origin. */
		if (source->dl != NULL || source->host != NULL || name[0] != '?')
			note_failed(n, name, source->origin, why);
	}
	pthread_mutex_unlock(&n->registering);
	return st;
}

enum ndx_status ndx_negotiation_register(struct ndx_negotiation *n, const struct ndx_plugin *plugin)
{
	const struct plugin_source source = {.origin = "registered"};

	if (n == NULL || plugin == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_register: %s is NULL",
		            n == NULL ? "negotiation" : "plugin");
	return plugins_register(n, plugin, &source);
}

enum ndx_status ndx_negotiation_unregister(struct ndx_negotiation *n, const char *name)
{
	char known[SUGGEST_TEXT];
	enum ndx_status st = NDX_OK;
	struct suggest s;
	struct plugin *p;
	unsigned instances = 0;
	unsigned guests = 0;

	if (n == NULL || name == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_unregister: %s is NULL",
		            n == NULL ? "negotiation" : "name");
	suggest_begin(&s, name);
	pthread_mutex_lock(&n->registering);
	pthread_mutex_lock(&n->lock);
	p = find(n, name, true);
	if (p != NULL && p->instances == 0 && p->guests == 0)
		ndxp_list_remove(&p->node);
	for (struct ndxp_list *node = n->plugins.next; node != &n->plugins; node = node->next)
		suggest_offer(&s, plugin_of(node)->name, NULL);
	instances = p != NULL ? p->instances : 0;
	guests = p != NULL ? p->guests : 0;
	pthread_mutex_unlock(&n->lock);
	if (p == NULL)
		st = fail(NDX_E_NOT_FOUND, 0, "no plugin \"%.64s\"; %s", name,
		          suggest_text(&s, known));
	else if (instances > 0)
		st = fail(NDX_E_DEVICE_BUSY, 0,
		          "plugin \"%s\" is in use: %u of its variants are alive", name, instances);
	else if (guests > 0)
		st = fail(NDX_E_DEVICE_BUSY, 0,
		          "plugin \"%s\" runs %u others; unregister them first", name, guests);
	else
		plugin_free(p);
	pthread_mutex_unlock(&n->registering);
	return st;
}
