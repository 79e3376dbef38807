/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of a variant: checks a schema, and checks a configuration against it. */
#include "schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "frame.h"
#include "suggest.h"

#define WHY 160

size_t schema_count(const struct ndx_plugin_param *params)
{
	size_t n = 0;

	while (params != NULL && n < SCHEMA_PARAMS_MAX && params[n].name != NULL)
		n++;
	return n;
}

/* The index of `text` in "a|b|c"; -1 if absent. */
static int64_t choice_index(const char *choices, const char *text)
{
	const size_t length = strlen(text);
	int64_t index = 0;

	for (const char *p = choices; length > 0; index++) {
		const size_t piece = strcspn(p, "|");

		if (piece == length && memcmp(p, text, length) == 0)
			return index;
		if (p[piece] == '\0')
			break;
		p += piece + 1;
	}
	return -1;
}

static bool read_bool(const char *text, int64_t *number)
{
	*number = strcmp(text, "true") == 0;
	return *number == 1 || strcmp(text, "false") == 0;
}

static bool read_int(const char *text, int64_t *number)
{
	const bool digit = text[0] >= '0' && text[0] <= '9';
	const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (!digit && text[0] != '-')
		return false;
	errno = 0;
	*number = strtoll(text, &end, hex ? 16 : 10);
	return errno == 0 && end != text && *end == '\0';
}

/* Whether the text is a valid value of the parameter; if not, `why` names the valid values. */
static bool fits(const struct ndx_plugin_param *p, const char *text, int64_t *number, char why[WHY])
{
	const size_t length = strnlen(text, SCHEMA_TEXT_MAX + 1);

	*number = 0;
	if (length > SCHEMA_TEXT_MAX) {
		(void)snprintf(why, WHY, "it is longer than %u bytes", SCHEMA_TEXT_MAX);
		return false;
	}
	switch (p->type) {
	case NDX_PARAM_BOOL:
		(void)snprintf(why, WHY, "it may be true or false");
		return read_bool(text, number);
	case NDX_PARAM_INT:
		(void)snprintf(why, WHY, "it may be %lld to %lld", (long long)p->least,
		               (long long)p->most);
		return read_int(text, number) && *number >= p->least && *number <= p->most;
	case NDX_PARAM_STRING:
		(void)snprintf(why, WHY, "it may have %lld to %lld bytes", (long long)p->least,
		               (long long)p->most);
		return (int64_t)length >= p->least && (int64_t)length <= p->most;
	case NDX_PARAM_CHOICE:
		(void)snprintf(why, WHY, "it may be %s", p->choices);
		*number = choice_index(p->choices, text);
		return *number >= 0;
	default:
		return false;
	}
}

static const char *type_fault(const struct ndx_plugin_param *p)
{
	switch (p->type) {
	case NDX_PARAM_BOOL:
		return NULL;
	case NDX_PARAM_INT:
		return p->least <= p->most ? NULL : "its range is empty";
	case NDX_PARAM_STRING:
		return p->least >= 0 && p->least <= p->most && p->most <= SCHEMA_TEXT_MAX
		               ? NULL
		               : "its range of lengths is empty or too large";
	case NDX_PARAM_CHOICE:
		return p->choices != NULL && p->choices[0] != '\0' ? NULL : "it has no choices";
	default:
		return "its type is unknown";
	}
}

static const char *param_fault(const struct ndx_plugin_param *params, size_t i, char why[WHY])
{
	const struct ndx_plugin_param *p = &params[i];
	const char *fault = type_fault(p);
	int64_t number;

	if (!frame_name_valid(p->name))
		return "its name is malformed (a-z first, then a-z 0-9 - _, 31 at most)";
	for (size_t k = 0; k < i; k++)
		if (strcmp(params[k].name, p->name) == 0)
			return "there are two of that name";
	if (fault != NULL)
		return fault;
	if (p->required && p->initial != NULL)
		return "it is required and has an initial value";
	if (p->initial != NULL && !fits(p, p->initial, &number, why))
		return "its initial value is not allowed";
	return NULL;
}

enum ndx_status schema_check(const struct ndx_plugin_param *params, char *why, size_t room)
{
	const size_t count = schema_count(params);
	char detail[WHY];

	if (params != NULL && params[count].name != NULL) {
		(void)snprintf(why, room, "more than %u parameters, or no end of them",
		               SCHEMA_PARAMS_MAX);
		return NDX_E_INVALID_CONFIG;
	}
	for (size_t i = 0; params != NULL && i < count; i++) {
		const char *fault = param_fault(params, i, detail);

		if (fault == NULL)
			continue;
		(void)snprintf(why, room, "parameter \"%.31s\": %s", params[i].name, fault);
		return NDX_E_INVALID_CONFIG;
	}
	return NDX_OK;
}

static const struct ndx_plugin_param *find(const struct ndx_plugin_param *params, size_t count,
                                           const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(params[i].name, name) == 0)
			return &params[i];
	return NULL;
}

/* Check that every setting names a parameter, and none twice. */
static enum ndx_status check_names(const struct ndx_plugin_param *params, size_t known,
                                   const char *what, const struct ndx_setting *settings,
                                   size_t count)
{
	char text[SUGGEST_TEXT];
	struct suggest s;

	for (size_t i = 0; i < count; i++) {
		if (settings[i].name == NULL || settings[i].value == NULL)
			return fail(NDX_E_INVALID_PARAMETER, 0, "%s: setting %zu is NULL", what, i);
		if (find(params, known, settings[i].name) == NULL) {
			suggest_begin(&s, settings[i].name);
			for (size_t k = 0; k < known; k++)
				suggest_offer(&s, params[k].name, NULL);
			return fail(NDX_E_INVALID_CONFIG, 0, "%s has no parameter \"%.64s\"; %s",
			            what, settings[i].name,
			            known > 0 ? suggest_text(&s, text) : "it takes none");
		}
		for (size_t k = 0; k < i; k++)
			if (strcmp(settings[k].name, settings[i].name) == 0)
				return fail(NDX_E_INVALID_CONFIG, 0,
				            "%s: parameter \"%s\" is given twice", what,
				            settings[i].name);
	}
	return NDX_OK;
}

static const char *given(const struct ndx_setting *settings, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(settings[i].name, name) == 0)
			return settings[i].value;
	return NULL;
}

/* Parse one value; its text is copied to *texts, which advances. */
static enum ndx_status take_value(const struct ndx_plugin_param *p, const char *what,
                                  const char *text, struct ndx_plugin_value *value, char **texts)
{
	char why[WHY];

	if (text == NULL && p->required)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s needs parameter \"%s\": %s", what, p->name,
		            p->help != NULL ? p->help : "it has no initial value");
	text = text != NULL ? text : p->initial;
	value->param = p;
	value->text = *texts;
	value->given = text != NULL;
	if (text != NULL && !fits(p, text, &value->number, why))
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: parameter \"%s\" is \"%.64s\", %s", what,
		            p->name, text, why);
	if (text != NULL)
		*texts = stpcpy(*texts, text);
	(*texts)++;
	return NDX_OK;
}

/* The total size of the texts of all values. */
static size_t texts_size(const struct ndx_plugin_param *params, size_t known,
                         const struct ndx_setting *settings, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < known; i++) {
		const char *text = given(settings, count, params[i].name);

		text = text != NULL ? text : params[i].initial;
		bytes += text != NULL ? strnlen(text, SCHEMA_TEXT_MAX) + 1 : 1;
	}
	return bytes;
}

enum ndx_status schema_values(const struct ndx_plugin_param *params, const char *what,
                              const struct ndx_setting *settings, size_t count,
                              struct ndx_plugin_value **out)
{
	const size_t known = schema_count(params);
	struct ndx_plugin_value *values;
	enum ndx_status st = check_names(params, known, what, settings, count);
	char *texts;

	if (st != NDX_OK)
		return st;
	values = calloc(1,
	                (known + 1) * sizeof(*values) + texts_size(params, known, settings, count));
	if (values == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", what);
	texts = (char *)(values + known + 1);
	for (size_t i = 0; st == NDX_OK && i < known; i++)
		st = take_value(&params[i], what, given(settings, count, params[i].name),
		                &values[i], &texts);
	if (st != NDX_OK) {
		free(values);
		return st;
	}
	*out = values;
	return NDX_OK;
}
