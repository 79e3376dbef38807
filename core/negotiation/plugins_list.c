/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of plugins and variants, as a copy: one block that holds the entries, their parameters
 * and all texts. */
#include "plugins.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>

/* The block. The list is written twice, first without memory to learn the sizes. */
struct block {
	char *memory; /* NULL: only count */
	size_t used;
	size_t entries;
};

static void *copy(struct block *b, const void *data, size_t length, size_t alignment)
{
	char *at = NULL;

	b->used = (b->used + alignment - 1) / alignment * alignment;
	if (b->memory != NULL)
		at = memcpy(b->memory + b->used, data, length);
	b->used += length;
	return at;
}

static const char *copy_text(struct block *b, const char *text)
{
	return text != NULL ? copy(b, text, strlen(text) + 1, 1) : NULL;
}

static const struct ndx_plugin_param *copy_params(struct block *b,
                                                  const struct ndx_plugin_param *params)
{
	struct ndx_plugin_param *to;
	size_t count = 0;

	if (params == NULL)
		return NULL;
	while (params[count].name != NULL)
		count++;
	to = copy(b, params, (count + 1) * sizeof(*params), alignof(struct ndx_plugin_param));
	for (size_t i = 0; i < count; i++) {
		const struct ndx_plugin_param text = {.name = copy_text(b, params[i].name),
		                                      .choices = copy_text(b, params[i].choices),
		                                      .initial = copy_text(b, params[i].initial),
		                                      .help = copy_text(b, params[i].help)};

		if (to == NULL)
			continue;
		to[i].name = text.name;
		to[i].choices = text.choices;
		to[i].initial = text.initial;
		to[i].help = text.help;
	}
	return to;
}

static void add(struct block *b, const struct ndx_plugin_entry *e)
{
	const struct ndx_plugin_entry own = {.plugin = copy_text(b, e->plugin),
	                                     .version = copy_text(b, e->version),
	                                     .vendor = copy_text(b, e->vendor),
	                                     .origin = copy_text(b, e->origin),
	                                     .state = e->state,
	                                     .text = copy_text(b, e->text),
	                                     .variant = copy_text(b, e->variant),
	                                     .help = copy_text(b, e->help),
	                                     .available = e->available,
	                                     .params = copy_params(b, e->params)};

	if (b->memory != NULL)
		((struct ndx_plugin_entry *)(void *)b->memory)[b->entries] = own;
	b->entries++;
}

static void add_plugin(struct block *b, const struct plugin *p)
{
	struct ndx_plugin_entry entry = {.plugin = p->name,
	                                 .version = "",
	                                 .vendor = "",
	                                 .origin = p->origin,
	                                 .state = p->status,
	                                 .text = p->text};

	if (p->status == NDX_PLUGIN_FAILED) {
		add(b, &entry);
		return;
	}
	entry.version = p->table->version;
	entry.vendor = p->table->vendor;
	if (p->count == 0) {
		entry.help = "runs plugins of another language";
		add(b, &entry);
	}
	for (size_t i = 0; i < p->count; i++) {
		entry.variant = p->variants[i].table->name;
		entry.help = p->variants[i].table->help;
		entry.params = p->variants[i].table->params;
		entry.available = p->variants[i].available;
		entry.text = p->variants[i].text;
		add(b, &entry);
	}
}

static_assert(sizeof(struct ndx_plugin_entry) % alignof(struct ndx_plugin_param) == 0,
              "both passes have the same gaps");

/* The texts stand behind `entries` entries. The framework's lock is held. */
static void write_list(struct ndx_negotiation *n, struct block *b, size_t entries)
{
	b->used = entries * sizeof(struct ndx_plugin_entry);
	b->entries = 0;
	for (struct ndxp_list *node = n->plugins.next; node != &n->plugins; node = node->next)
		add_plugin(b, container_of(node, struct plugin, node));
}

enum ndx_status ndx_negotiation_list(struct ndx_negotiation *n, struct ndx_plugin_entry **entries,
                                     size_t *count)
{
	struct block b = {.memory = NULL};

	if (n == NULL || entries == NULL || count == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_list: NULL argument");
	pthread_mutex_lock(&n->lock);
	write_list(n, &b, 0);
	/* The size of an entry is a multiple of the alignment of a parameter, so the second pass
	 * has the gaps of the first. One byte more, because calloc() of nothing may return NULL. */
	b.memory = calloc(1, b.entries * sizeof(struct ndx_plugin_entry) + b.used + 1);
	if (b.memory != NULL)
		write_list(n, &b, b.entries);
	pthread_mutex_unlock(&n->lock);
	if (b.memory == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_negotiation_list: out of memory");
	*entries = (struct ndx_plugin_entry *)(void *)b.memory;
	*count = b.entries;
	return NDX_OK;
}

void ndx_negotiation_list_free(struct ndx_plugin_entry *entries)
{
	free(entries);
}
