/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_json.h"

#include <stdio.h>
#include <stdlib.h>

#include <ndx/stats.h>

#define TEXT_ROOM 256

void base_json_put(struct base_json *j, json_t *to, const char *key, json_t *value)
{
	if (json_object_set_new(to, key, value) != 0)
		j->failed = true;
}

void base_json_append(struct base_json *j, json_t *to, json_t *value)
{
	if (json_array_append_new(to, value) != 0)
		j->failed = true;
}

void base_json_number(struct base_json *j, json_t *to, const char *key, uint64_t value)
{
	base_json_put(j, to, key, json_integer((json_int_t)value));
}

void base_json_text(struct base_json *j, json_t *to, const char *key, const char *value)
{
	char plain[TEXT_ROOM];

	(void)snprintf(plain, sizeof(plain), "%s", value);
	for (char *p = plain; *p != '\0'; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	base_json_put(j, to, key, json_string(plain));
}

void base_json_statuses(struct base_json *j, json_t *to, const char *key, const uint64_t *counts)
{
	json_t *list = json_object();

	for (int i = 0; i < NDX_STATS_STATUSES; i++) {
		if (counts[i] > 0)
			base_json_number(j, list, ndx_status_name((enum ndx_status) - i),
			                 counts[i]);
	}
	base_json_put(j, to, key, list);
}

void base_json_buckets(struct base_json *j, json_t *to, const char *key, const uint64_t *buckets)
{
	json_t *list = json_array();
	int end = NDX_STATS_BUCKETS;

	while (end > 0 && buckets[end - 1] == 0)
		end--;
	for (int i = 0; i < end; i++)
		base_json_append(j, list, json_integer((json_int_t)buckets[i]));
	base_json_put(j, to, key, list);
}

char *base_json_finish(struct base_json *j, json_t *root)
{
	char *text = j->failed ? NULL : json_dumps(root, JSON_INDENT(2));
	char *line = NULL;

	json_decref(root);
	if (text != NULL && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}
