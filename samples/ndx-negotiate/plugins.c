/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-negotiate plugins: what can negotiate on this machine, and with which parameters. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "negotiate.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"

static const char name[] = "ndx-negotiate plugins";

/* A variant of roce has more parameters than a line has room for. */
#define HELP_COLUMN 44

static const char *type_name(enum ndx_param_type type)
{
	switch (type) {
	case NDX_PARAM_BOOL:
		return "bool";
	case NDX_PARAM_INT:
		return "int";
	case NDX_PARAM_STRING:
		return "string";
	case NDX_PARAM_CHOICE:
		return "choice";
	default:
		return "?";
	}
}

/* ---- text ---- */

static int print_range(const struct ndx_plugin_param *p)
{
	switch (p->type) {
	case NDX_PARAM_BOOL:
		return printf("true|false");
	case NDX_PARAM_INT:
		return printf("%" PRId64 "..%" PRId64, p->least, p->most);
	case NDX_PARAM_STRING:
		return printf("%" PRId64 "..%" PRId64 " bytes", p->least, p->most);
	case NDX_PARAM_CHOICE:
	default:
		return printf("%s", p->choices);
	}
}

static void print_param(const struct ndx_plugin_param *p)
{
	int column = printf("    %s=", p->name);

	column += print_range(p);
	if (p->required)
		column += printf(" (required)");
	else if (p->initial != NULL)
		column += printf(" (%s)", p->initial[0] != '\0' ? p->initial : "empty");
	if (column < HELP_COLUMN)
		printf("%*s", HELP_COLUMN - column, "");
	printf("  %s\n", p->help);
}

/* A file that failed may have the name of a plugin that did not. */
static bool begins_plugin(const struct ndx_plugin_entry *list, size_t i)
{
	return i == 0 || strcmp(list[i - 1].plugin, list[i].plugin) != 0 ||
	       strcmp(list[i - 1].origin, list[i].origin) != 0 ||
	       list[i - 1].state != list[i].state;
}

static void print_entry(const struct ndx_plugin_entry *list, size_t i)
{
	const struct ndx_plugin_entry *e = &list[i];

	if (begins_plugin(list, i)) {
		printf("%s%s%s", e->plugin, e->version[0] != '\0' ? " " : "", e->version);
		printf("%s%s, %s\n", e->vendor[0] != '\0' ? ", " : "", e->vendor, e->origin);
	}
	if (e->state == NDX_PLUGIN_FAILED) {
		printf("  failed: %s\n", e->text);
		return;
	}
	if (e->variant == NULL) {
		printf("  %s\n", e->help);
		return;
	}
	printf("  %s/%s: %s\n", e->plugin, e->variant, e->help);
	if (!e->available)
		printf("    not available: %s\n", e->text);
	for (const struct ndx_plugin_param *p = e->params; p != NULL && p->name != NULL; p++)
		print_param(p);
}

static int print_text(const struct ndx_plugin_entry *list, size_t count)
{
	if (count == 0)
		printf("no plugins found; they are in $NDX_PLUGIN_PATH, in the folder ndx beside "
		       "libndx.so, or say --plugins DIRECTORY\n");
	for (size_t i = 0; i < count; i++)
		print_entry(list, i);
	return sample_end_output(name, ferror(stdout) == 0);
}

/* ---- JSON ---- */

static json_t *choices_of(const char *choices)
{
	json_t *list = json_array();

	for (const char *at = choices; at != NULL;) {
		const size_t length = strcspn(at, "|");

		json_array_append_new(list, json_stringn(at, length));
		at = at[length] == '|' ? at + length + 1 : NULL;
	}
	return list;
}

static json_t *param_of(const struct ndx_plugin_param *p)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", sample_json_text(p->name));
	json_object_set_new(o, "type", sample_json_text(type_name(p->type)));
	json_object_set_new(o, "required", json_boolean(p->required));
	if (p->type == NDX_PARAM_INT || p->type == NDX_PARAM_STRING) {
		json_object_set_new(o, "least", json_integer(p->least));
		json_object_set_new(o, "most", json_integer(p->most));
	}
	if (p->type == NDX_PARAM_CHOICE)
		json_object_set_new(o, "choices", choices_of(p->choices));
	json_object_set_new(o, "default", sample_json_text(p->initial));
	json_object_set_new(o, "help", sample_json_text(p->help));
	return o;
}

static json_t *variant_of(const struct ndx_plugin_entry *e)
{
	json_t *params = json_array();
	json_t *o = json_object();

	for (const struct ndx_plugin_param *p = e->params; p != NULL && p->name != NULL; p++)
		json_array_append_new(params, param_of(p));
	json_object_set_new(o, "name", sample_json_text(e->variant));
	json_object_set_new(o, "help", sample_json_text(e->help));
	json_object_set_new(o, "available", json_boolean(e->available));
	json_object_set_new(o, "text", sample_json_text(e->text));
	json_object_set_new(o, "parameters", params);
	return o;
}

static json_t *plugin_of(const struct ndx_plugin_entry *e)
{
	const bool failed = e->state == NDX_PLUGIN_FAILED;
	json_t *o = json_object();

	json_object_set_new(o, "name", sample_json_text(e->plugin));
	json_object_set_new(o, "version", sample_json_text(e->version));
	json_object_set_new(o, "vendor", sample_json_text(e->vendor));
	json_object_set_new(o, "origin", sample_json_text(e->origin));
	json_object_set_new(o, "failed", failed ? sample_json_text(e->text) : json_null());
	json_object_set_new(o, "variants", json_array());
	return o;
}

static json_t *json_of(const struct ndx_plugin_entry *list, size_t count)
{
	json_t *plugins = json_array();
	json_t *root = json_object();
	json_t *plugin = NULL;

	for (size_t i = 0; i < count; i++) {
		if (begins_plugin(list, i)) {
			plugin = plugin_of(&list[i]);
			json_array_append_new(plugins, plugin);
		}
		if (list[i].variant != NULL)
			json_array_append_new(json_object_get(plugin, "variants"),
			                      variant_of(&list[i]));
	}
	json_object_set_new(root, "plugins", plugins);
	return root;
}

/* ---- the command ---- */

static int show(const char *directory, FILE *out)
{
	struct ndx_negotiation *negotiation = NULL;
	struct ndx_plugin_entry *list = NULL;
	json_t *object = NULL;
	size_t count = 0;
	enum ndx_status st = ndx_negotiation_create(&negotiation);
	int rc = SAMPLE_EXIT_OK;

	if (st == NDX_OK)
		st = ndx_negotiation_discover(negotiation, directory, NULL);
	if (st == NDX_OK)
		st = ndx_negotiation_list(negotiation, &list, &count);
	if (st != NDX_OK)
		rc = sample_failed(name, st, "look for plugins");
	else if (out != NULL)
		object = json_of(list, count);
	else
		rc = print_text(list, count);
	ndx_negotiation_list_free(list);
	if (negotiation != NULL)
		(void)ndx_negotiation_close(negotiation);
	return sample_json_end(name, out, object, rc);
}

int plugins_main(int argc, char **argv)
{
	const char *directory = NULL;
	const char *json = NULL;
	bool verbose = false;
	const struct sample_option options[] = {
		{"--plugins", "DIRECTORY", "only those in this folder, absolute",
	         .text = &directory},
		SAMPLE_ROW_JSON(json),
		SAMPLE_ROW_VERBOSE(verbose),
	};
	const struct sample_program program = {
		.name = name,
		.synopsis = "[options]",
		.about = "Lists the plugins, their variants, and the parameters for --set with "
			 "range and default.",
		.details = "A plugin that cannot be used is listed with the reason.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
	};
	size_t operands;
	FILE *out;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	rc = sample_json_open(name, json, &out);
	return rc == SAMPLE_EXIT_OK ? show(directory, out) : rc;
}
