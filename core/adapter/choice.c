/* SPDX-License-Identifier: BSD-2-Clause */
#include "choice.h"

#include <stdio.h>
#include <string.h>

#include "loader.h"
#include "registry.h"

struct collecting {
	struct choice *list;
	size_t count;
	choice_without_fn *without;
	void *arg;
};

/* Whether the first place is better: the higher rank, of equal ones by name. */
static bool is_before(const struct choice *a, const struct choice *b)
{
	return a->rank != b->rank ? a->rank > b->rank : strcmp(a->uri, b->uri) < 0;
}

static void insert(struct collecting *c, const struct choice *new)
{
	size_t at = c->count;

	while (at > 0 && is_before(new, &c->list[at - 1]))
		at--;
	if (at == CHOICE_MOST)
		return;
	if (c->count == CHOICE_MOST)
		c->count--;
	memmove(&c->list[at + 1], &c->list[at], (c->count - at) * sizeof(c->list[0]));
	c->list[at] = *new;
	c->count++;
}

static void take_ranks(struct collecting *c, const struct ndx_provider *provider)
{
	struct choice new;

	for (const struct ndx_spi_rank *r = provider->ranks; r != NULL && r->device != NULL; r++) {
		const int len = snprintf(new.uri, sizeof(new.uri), "%s%s%s", provider->name,
		                         r->device[0] != '\0' ? ":" : "", r->device);

		new.rank = r->rank;
		if (r->rank > 0 && len > 0 && (size_t)len < sizeof(new.uri))
			insert(c, &new);
	}
}

/* For loader_each(). */
static void take_file(void *arg, const char *name)
{
	struct collecting *c = arg;
	const struct ndx_provider *provider;
	struct loaded *loaded;
	enum ndx_status st;

	st = loader_open(name, &loaded, &provider);
	if (st != NDX_OK) {
		/* The failure has been logged; the other providers stay available. */
		c->without(c->arg, name, ndx_status_text(st));
		return;
	}
	take_ranks(c, provider);
	loader_close(loaded);
}

/* For loader_each_missing(). */
static void name_missing(void *arg, const char *name)
{
	const struct collecting *c = arg;
	char reason[64];

	(void)snprintf(reason, sizeof(reason), "package ndx-provider-%s is not installed", name);
	c->without(c->arg, name, reason);
}

size_t choice_collect(struct choice list[CHOICE_MOST], choice_without_fn *without, void *arg)
{
	struct collecting c = {.list = list, .without = without, .arg = arg};
	const struct ndx_provider *provider;

	for (size_t i = 0; (provider = registry_get(i)) != NULL; i++)
		take_ranks(&c, provider);
	loader_each(take_file, &c);
	loader_each_missing(name_missing, &c);
	return c.count;
}
