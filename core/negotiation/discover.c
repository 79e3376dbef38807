/* SPDX-License-Identifier: BSD-2-Clause */
/* Plugins from files: one, or all of a directory. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_log.h"
#include "code_file.h"
#include "frame.h"
#include "plugins.h"

static const struct code_file_kind kind = {"plugin", "ndx-plugin-", "ndx_plugin",
                                           "NDX_PLUGIN_PATH"};

static enum ndx_status load(struct ndx_negotiation *n, const char *path, const char *name)
{
	const void *table;
	enum ndx_status st;
	void *dl;

	st = code_file_open(&kind, path, name, &dl, &table);
	if (st != NDX_OK) {
		plugins_note_failed(n, name, path);
		return st;
	}
	st = plugins_register(n, table, path, dl);
	if (st != NDX_OK)
		code_file_close(dl);
	return st;
}

enum ndx_status ndx_negotiation_load(struct ndx_negotiation *n, const char *path)
{
	char name[NDX_PLUGIN_NAME_MAX + 1];
	const char *file;

	if (n == NULL || path == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_load: %s is NULL",
		            n == NULL ? "negotiation" : "path");
	if (path[0] != '/')
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_load: \"%.200s\" is not absolute", path);
	file = strrchr(path, '/') + 1;
	if (!code_file_name(&kind, file, name, NDX_PLUGIN_NAME_MAX) || !frame_name_valid(name))
		(void)snprintf(name, sizeof(name), "%.31s", file);
	return load(n, path, name);
}

struct find {
	struct ndx_negotiation *negotiation;
	size_t registered;
	bool opened; /* some directory was there */
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_plugin(const struct dirent *entry)
{
	char name[NDX_PLUGIN_NAME_MAX + 1];

	return code_file_name(&kind, entry->d_name, name, NDX_PLUGIN_NAME_MAX) &&
	       frame_name_valid(name);
}

static bool visit(void *arg, const char *directory)
{
	char name[NDX_PLUGIN_NAME_MAX + 1];
	struct find *find = arg;
	struct dirent **entries;
	char path[PATH_MAX];
	const int count = scandir(directory, &entries, is_plugin, by_name);

	if (count < 0)
		return false;
	find->opened = true;
	for (int i = 0; i < count; i++) {
		const int len =
			snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);

		(void)code_file_name(&kind, entries[i]->d_name, name, NDX_PLUGIN_NAME_MAX);
		/* Why one could not be loaded was logged, and stands in the list. */
		if (len > 0 && (size_t)len < sizeof(path) &&
		    load(find->negotiation, path, name) == NDX_OK)
			find->registered++;
		free(entries[i]);
	}
	free(entries);
	return false;
}

enum ndx_status ndx_negotiation_discover(struct ndx_negotiation *n, const char *directory,
                                         size_t *count)
{
	struct find find = {.negotiation = n};

	if (n == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_discover: negotiation is NULL");
	if (directory != NULL && directory[0] != '/')
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_discover: \"%.200s\" is not absolute", directory);
	if (directory == NULL)
		(void)code_file_each_directory(&kind, visit, &find);
	else
		(void)visit(&find, directory);
	if (directory != NULL && !find.opened)
		return fail(NDX_E_NOT_FOUND, 0, "no directory %.200s, or it cannot be read",
		            directory);
	if (count != NULL)
		*count = find.registered;
	return NDX_OK;
}
