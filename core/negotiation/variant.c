/* SPDX-License-Identifier: BSD-2-Clause */
/* Instances of variants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include "plugins.h"
#include "schema.h"
#include "suggest.h"

/* Lock held: find the plugin. On failure `why` has the reason, or is empty if the name is
 * unknown. */
static enum ndx_status find_plugin(struct ndx_negotiation *n, const char *name, struct plugin **out,
                                   char why[PLUGIN_TEXT])
{
	for (struct ndxp_list *node = n->plugins.next; node != &n->plugins; node = node->next) {
		struct plugin *p = container_of(node, struct plugin, node);

		if (strcmp(p->name, name) != 0)
			continue;
		if (p->status == NDX_PLUGIN_READY) {
			*out = p;
			return NDX_OK;
		}
		(void)snprintf(why, PLUGIN_TEXT, "plugin \"%s\" was refused: %.240s", name,
		               p->text);
	}
	return NDX_E_NOT_FOUND;
}

/* The name is unknown: list the known plugins, loaded or not, and where to put more. */
static enum ndx_status fail_unknown(struct ndx_negotiation *n, const char *name)
{
	char known[SUGGEST_TEXT];
	char where[PLUGINS_WHERE];
	struct suggest s;

	suggest_begin(&s, name);
	pthread_mutex_lock(&n->lock);
	for (struct ndxp_list *node = n->plugins.next; node != &n->plugins; node = node->next) {
		const struct plugin *p = container_of(node, struct plugin, node);

		suggest_offer(&s, p->name, p->status == NDX_PLUGIN_READY ? NULL : "refused");
	}
	pthread_mutex_unlock(&n->lock);
	plugins_offer_files(&s);
	return fail(NDX_E_NOT_FOUND, 0, "no plugin \"%.31s\"; %.160s; %s", name,
	            suggest_text(&s, known), plugins_where(name, where));
}

/* Lock held: find the variant. On failure `why` has the reason. */
static enum ndx_status find_variant(const struct plugin *p, const char *name,
                                    const struct ndx_plugin_variant **out, char why[PLUGIN_TEXT])
{
	const struct plugin_variant *found = NULL;
	char known[SUGGEST_TEXT];
	struct suggest s;

	suggest_begin(&s, name);
	for (size_t i = 0; i < p->count; i++) {
		const struct plugin_variant *v = &p->variants[i];

		if (strcmp(v->table->name, name) == 0)
			found = v;
		else
			suggest_offer(&s, v->table->name, v->available ? NULL : "not available");
	}
	if (found != NULL && found->available) {
		*out = found->table;
		return NDX_OK;
	}
	if (found != NULL) {
		(void)snprintf(why, PLUGIN_TEXT,
		               "variant \"%s\" of plugin \"%s\" is not available: %.120s; %.100s",
		               name, p->name, found->text, suggest_text(&s, known));
		return NDX_E_NOT_SUPPORTED;
	}
	(void)snprintf(why, PLUGIN_TEXT, "plugin \"%s\" has no variant \"%.31s\"; %.200s", p->name,
	               name, suggest_text(&s, known));
	return NDX_E_NOT_FOUND;
}

/* Find plugin and variant, and count an instance. */
static enum ndx_status take_variant(struct ndx_negotiation *n, const char *plugin,
                                    const char *variant, struct plugin **p,
                                    const struct ndx_plugin_variant **table, char why[PLUGIN_TEXT])
{
	enum ndx_status st;

	pthread_mutex_lock(&n->lock);
	st = find_plugin(n, plugin, p, why);
	if (st == NDX_OK)
		st = find_variant(*p, variant, table, why);
	if (st == NDX_OK)
		(*p)->instances++;
	pthread_mutex_unlock(&n->lock);
	return st;
}

static void drop_instance(struct plugin *p)
{
	pthread_mutex_lock(&p->negotiation->lock);
	p->instances--;
	pthread_mutex_unlock(&p->negotiation->lock);
}

/* Create the plugin's instance; the count keeps the plugin registered. */
static enum ndx_status create(struct ndx_variant *v)
{
	const struct ndx_variant_ops *ops = v->table->ops;
	struct plugin *p = v->plugin;
	char why[PLUGIN_TEXT] = "";
	enum ndx_status st;

	v->instance = p->state;
	if (ops->create == NULL)
		return NDX_OK;
	plugin_enter(p);
	st = ops->create(p->state, v->table, v->values, &v->instance, why, sizeof(why));
	plugin_leave(p);
	why[sizeof(why) - 1] = '\0';
	if (st == NDX_OK)
		return NDX_OK;
	return fail(st < 0 ? st : NDX_E_UNSUCCESSFUL, 0,
	            "plugin \"%s\", variant \"%s\" cannot be made: %s", p->name, v->table->name,
	            why[0] != '\0' ? why : ndx_status_text(st));
}

enum ndx_status ndx_negotiation_get_variant(struct ndx_negotiation *n, const char *plugin,
                                            const char *variant, const struct ndx_setting *settings,
                                            size_t count, struct ndx_variant **out)
{
	const struct ndx_plugin_variant *table = NULL;
	char what[2 * NDX_PLUGIN_NAME_MAX + 32];
	char why[PLUGIN_TEXT] = "";
	struct plugin *p = NULL;
	struct ndx_variant *v;
	enum ndx_status st;

	if (n == NULL || plugin == NULL || variant == NULL || out == NULL ||
	    (settings == NULL && count > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_get_variant: an argument is NULL");
	st = take_variant(n, plugin, variant, &p, &table, why);
	if (p == NULL) {
		plugins_try_to_load(n, plugin);
		st = take_variant(n, plugin, variant, &p, &table, why);
	}
	if (p == NULL && why[0] == '\0')
		return fail_unknown(n, plugin);
	if (st != NDX_OK)
		return fail(st, 0, "%s", why);
	v = calloc(1, sizeof(*v));
	if (v == NULL) {
		st = fail(NDX_E_NO_MEMORY, 0, "variant \"%s\": out of memory", variant);
		goto fail_count;
	}
	v->plugin = p;
	v->table = table;
	v->refs = 1;
	tls_share_init(&v->tls);
	v->count = schema_count(table->params);
	(void)snprintf(what, sizeof(what), "variant \"%s\" of plugin \"%s\"", variant, plugin);
	st = schema_values(table->params, what, settings, count, &v->values);
	if (st != NDX_OK)
		goto fail_values;
	st = create(v);
	if (st != NDX_OK)
		goto fail_create;
	*out = v;
	return NDX_OK;
fail_create:
	free(v->values);
fail_values:
	tls_share_fini(&v->tls);
	free(v);
fail_count:
	drop_instance(p);
	return st;
}

void variant_get(struct ndx_variant *v)
{
	(void)__atomic_fetch_add(&v->refs, 1, __ATOMIC_RELAXED);
}

void variant_put(struct ndx_variant *v)
{
	struct plugin *p = v->plugin;

	if (__atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (v->table->ops->destroy != NULL) {
		plugin_enter(p);
		v->table->ops->destroy(v->instance);
		plugin_leave(p);
	}
	tls_share_fini(&v->tls);
	free(v->values);
	free(v);
	drop_instance(p);
}

void ndx_variant_close(struct ndx_variant *v)
{
	if (v != NULL)
		variant_put(v);
}

const char *ndx_variant_plugin_name(const struct ndx_variant *v)
{
	return v != NULL ? v->plugin->name : "";
}

const char *ndx_variant_name(const struct ndx_variant *v)
{
	return v != NULL ? v->table->name : "";
}

const char *ndx_variant_setting(const struct ndx_variant *v, const char *name)
{
	for (size_t i = 0; v != NULL && i < v->count; i++)
		if (strcmp(v->values[i].param->name, name) == 0)
			return v->values[i].text;
	return NULL;
}

const struct ndx_plugin_transport *variant_transport(const struct ndx_variant *v)
{
	const struct ndx_plugin_transport *t = v->plugin->table->transports;

	if (v->table->transport == NULL || strcmp(v->table->transport, "tcp") == 0)
		return NULL;
	while (strcmp(t->name, v->table->transport) != 0)
		t++;
	return t;
}

void variant_transport_more(const struct ndx_variant *v, struct ndx_plugin_transport_more *more)
{
	const struct ndx_plugin_transport_more *const *at = v->plugin->table->more;

	memset(more, 0, sizeof(*more));
	while (at != NULL && *at != NULL && strcmp((*at)->name, v->table->transport) != 0)
		at++;
	if (at != NULL && *at != NULL)
		memcpy(more, *at, (*at)->size < sizeof(*more) ? (*at)->size : sizeof(*more));
}
