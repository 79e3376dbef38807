/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules for a plugin's table. Reads the table, calls none of its functions. */
#include <stdio.h>
#include <string.h>

#include "base_log.h"
#include "base_struct.h"
#include "frame.h"
#include "plugins.h"
#include "schema.h"

enum ndx_status plugin_take_table(const struct ndx_plugin *table, struct ndx_plugin *own,
                                  char why[PLUGIN_TEXT])
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the last member is a pointer */
	static const struct base_struct layout = BASE_STRUCT(
		struct ndx_plugin, NDX_PLUGIN_SIZE_0_1, "set `size` to sizeof(struct ndx_plugin)");
	enum ndx_status st;

	memset(own, 0, sizeof(*own));
	if (table->abi != NDX_PLUGIN_ABI) {
		(void)snprintf(
			why, PLUGIN_TEXT,
			"it was built for plugin interface %u, this library has %u; build it "
			"against this library's headers",
			table->abi, NDX_PLUGIN_ABI);
		return NDX_E_ABI_MISMATCH;
	}
	ndxp_fail_hold(true); /* the registration writes the record, with the plugin's name */
	st = base_struct_in(&layout, "its table", own, table, table->size);
	ndxp_fail_hold(false);
	if (st == NDX_OK)
		return NDX_OK;
	base_text_copy(why, PLUGIN_TEXT, ndx_last_error());
	return NDX_E_ABI_MISMATCH;
}

static const char *transports_fault(const struct ndx_plugin_transport *t)
{
	for (size_t i = 0; t != NULL && t[i].name != NULL; i++) {
		if (!frame_name_valid(t[i].name) || strcmp(t[i].name, "tcp") == 0)
			return "a transport's name is malformed or taken (\"tcp\" is built in)";
		if (t[i].connect == NULL || t[i].send == NULL || t[i].receive == NULL ||
		    t[i].cancel == NULL || t[i].close == NULL)
			return "a transport lacks one of connect, send, receive, cancel, close";
		for (size_t k = 0; k < i; k++)
			if (strcmp(t[k].name, t[i].name) == 0)
				return "two transports have the same name";
	}
	return NULL;
}

static const struct ndx_plugin_transport *find_transport(const struct ndx_plugin *table,
                                                         const char *name)
{
	const struct ndx_plugin_transport *t = table->transports;

	while (t != NULL && t->name != NULL && strcmp(t->name, name) != 0)
		t++;
	return t != NULL && t->name != NULL ? t : NULL;
}

/* Members that this library does not know have to be 0. */
static bool more_is_known(const struct ndx_plugin_transport_more *more)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the last member is a pointer */
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_plugin_transport_more, NDX_PLUGIN_TRANSPORT_MORE_SIZE_0_1,
	                    "set `size` to its sizeof()");
	struct ndx_plugin_transport_more own = {0};
	enum ndx_status st;

	ndxp_fail_hold(true);
	st = base_struct_in(&layout, "its table", &own, more, more->size);
	ndxp_fail_hold(false);
	return st == NDX_OK;
}

static const char *more_fault(const struct ndx_plugin *table)
{
	const struct ndx_plugin_transport_more *const *more = table->more;

	for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
		if (!more_is_known(more[i]))
			return "`more` has an entry of a size that this library does not know";
		if (more[i]->name == NULL || find_transport(table, more[i]->name) == NULL)
			return "`more` names a transport that the plugin does not have";
		for (size_t k = 0; k < i; k++)
			if (strcmp(more[k]->name, more[i]->name) == 0)
				return "`more` has two entries for the same transport";
	}
	return NULL;
}

enum ndx_status plugin_check_table(const struct ndx_plugin *table, char why[PLUGIN_TEXT])
{
	const char *fault = NULL;

	if (table->name == NULL || !frame_name_valid(table->name))
		fault = "its name is malformed (a-z first, then a-z 0-9 - _, 31 at most)";
	else if (table->version == NULL || table->vendor == NULL)
		fault = "it does not say its version or vendor";
	else if ((table->flags & ~(NDX_PLUGIN_ONE_AT_A_TIME | NDX_PLUGIN_DEVICE | NDX_PLUGIN_MANY |
	                           NDX_PLUGIN_ADDS | NDX_PLUGIN_PROMPT)) != 0)
		fault = "it has flags that this library does not know";
	else if (table->variants == NULL && table->guests == NULL &&
	         (table->list == NULL || table->count == 0))
		fault = "it offers no variant";
	else if (table->guests != NULL &&
	         (table->guests->suffix == NULL || table->guests->open == NULL ||
	          table->guests->close == NULL))
		fault = "it runs other plugins, but lacks one of suffix, open, close";
	else if (table->variants != NULL && table->list != NULL)
		fault = "it has both a list of variants and a function for them";
	else if (table->finalize == NULL && table->initialize != NULL)
		fault = "it has initialize, but no finalize";
	else
		fault = transports_fault(table->transports);
	if (fault == NULL)
		fault = more_fault(table);
	if (fault == NULL)
		return NDX_OK;
	(void)snprintf(why, PLUGIN_TEXT, "%s", fault);
	return NDX_E_INVALID_CONFIG;
}

static const char *ops_fault(const struct ndx_variant_ops *ops)
{
	if (ops == NULL)
		return "it has no functions";
	if (ops->info == NULL)
		return "required function info is missing";
	if (ops->ready == NULL)
		return "required function ready is missing";
	if ((ops->create == NULL) != (ops->destroy == NULL))
		return "create and destroy go together, one is missing";
	if ((ops->begin == NULL) != (ops->end == NULL))
		return "begin and end go together, one is missing";
	return NULL;
}

static bool has_transport(const struct ndx_plugin *table, const char *name)
{
	return name == NULL || strcmp(name, "tcp") == 0 || find_transport(table, name) != NULL;
}

static const char *variant_fault(const struct ndx_plugin *table,
                                 const struct ndx_plugin_variant *list, size_t i,
                                 char detail[PLUGIN_TEXT])
{
	const struct ndx_plugin_variant *v = &list[i];

	for (size_t k = 0; k < i; k++)
		if (strcmp(list[k].name, v->name) == 0)
			return "there are two of that name";
	if (!has_transport(table, v->transport))
		return "its transport is neither tcp nor one of the plugin's";
	if (schema_check(v->params, detail, PLUGIN_TEXT) != NDX_OK)
		return detail;
	return ops_fault(v->ops);
}

enum ndx_status plugin_check_variants(const struct ndx_plugin *table,
                                      const struct ndx_plugin_variant *list, size_t count,
                                      char why[PLUGIN_TEXT])
{
	char detail[PLUGIN_TEXT];

	if (list == NULL || count == 0 || count > PLUGIN_VARIANTS_MAX) {
		(void)snprintf(why, PLUGIN_TEXT, "it offers %zu variants, 1 to %u are allowed",
		               list == NULL ? 0 : count, PLUGIN_VARIANTS_MAX);
		return NDX_E_INVALID_CONFIG;
	}
	for (size_t i = 0; i < count; i++) {
		const char *fault;

		if (list[i].name == NULL || !frame_name_valid(list[i].name)) {
			(void)snprintf(why, PLUGIN_TEXT, "the name of variant %zu is malformed", i);
			return NDX_E_INVALID_CONFIG;
		}
		fault = variant_fault(table, list, i, detail);
		if (fault == NULL)
			continue;
		(void)snprintf(why, PLUGIN_TEXT, "variant \"%s\": %.240s", list[i].name, fault);
		return NDX_E_INVALID_CONFIG;
	}
	return NDX_OK;
}
