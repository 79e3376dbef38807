/* SPDX-License-Identifier: BSD-2-Clause */
/* Plugins from files: one, all of a directory, or one by its name; also files that other plugins
 * run. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/spi/log.h>
#include "code_file.h"
#include "frame.h"
#include "plugins.h"
#include "suggest.h"

#define PREFIX "ndx-plugin-"
#define SUFFIX_MAX 7u

static const struct code_file_kind kind = {"plugin", PREFIX, "ndx_plugin", "NDX_PLUGIN_PATH"};
static const struct code_file_kind host_kind = {"plugin", "ndx-host-", "ndx_plugin",
                                                "NDX_PLUGIN_PATH"};

/* The parts of a plugin's file name. */
struct file_name {
	char name[NDX_PLUGIN_NAME_MAX + 1];
	char suffix[SUFFIX_MAX + 1]; /* "so", "py" */
};

/* False: not the name of a plugin's file. */
static bool file_name_read(const char *file, struct file_name *out)
{
	const size_t prefix = sizeof(PREFIX) - 1;
	const char *dot = strrchr(file, '.');
	size_t length;

	if (strncmp(file, PREFIX, prefix) != 0 || dot == NULL || dot < file + prefix)
		return false;
	length = (size_t)(dot - file) - prefix;
	if (length > NDX_PLUGIN_NAME_MAX || strlen(dot + 1) > SUFFIX_MAX ||
	    strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(dot + 1))
		return false;
	memcpy(out->name, file + prefix, length);
	out->name[length] = '\0';
	memcpy(out->suffix, dot + 1, strlen(dot + 1) + 1);
	return frame_name_valid(out->name) && out->suffix[0] != '\0';
}

/* ---- files of machine code ---- */

static enum ndx_status load_code(struct ndx_negotiation *n, const struct code_file_kind *of,
                                 const char *path, const char *name)
{
	struct plugin_source source = {.origin = path};
	const void *table;
	enum ndx_status st = code_file_open(of, path, name, &source.dl, &table);

	if (st != NDX_OK) {
		plugins_note_failed(n, name, path);
		return st;
	}
	st = plugins_register(n, table, &source);
	if (st != NDX_OK)
		code_file_close(source.dl);
	return st;
}

/* ---- files that another plugin runs ---- */

struct host_search {
	struct ndx_negotiation *negotiation;
	const char *suffix;
	bool found; /* whatever the outcome */
};

static bool visit_for_host(void *arg, const char *directory)
{
	struct host_search *search = arg;
	char path[PATH_MAX];
	const int length =
		snprintf(path, sizeof(path), "%s/ndx-host-%s.so", directory, search->suffix);

	if (length < 0 || (size_t)length >= sizeof(path) || access(path, F_OK) != 0)
		return false;
	search->found = true;
	return load_code(search->negotiation, &host_kind, path, search->suffix) == NDX_OK;
}

/* Counts a guest. */
static enum ndx_status get_host(struct ndx_negotiation *n, const char *path, const char *suffix,
                                struct plugin **out)
{
	struct host_search search = {n, suffix, false};
	char directory[PATH_MAX];

	*out = plugins_find_host(n, suffix);
	if (*out != NULL)
		return NDX_OK;
	(void)snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path),
	               path);
	if (!visit_for_host(&search, directory))
		(void)code_file_each_directory(&host_kind, visit_for_host, &search);
	*out = plugins_find_host(n, suffix);
	if (*out != NULL)
		return NDX_OK;
	if (search.found) /* the fault was logged */
		return NDX_E_DEVICE_NOT_READY;
	return fail(NDX_E_DEVICE_NOT_READY, 0,
	            "%s needs ndx-host-%s.so, which is neither beside it nor in %s nor in a "
	            "directory of $NDX_PLUGIN_PATH",
	            path, suffix, code_file_directory(directory));
}

static enum ndx_status load_guest(struct ndx_negotiation *n, const char *path,
                                  const struct file_name *file)
{
	struct plugin_source source = {.origin = path};
	const struct ndx_plugin *table = NULL;
	char why[PLUGIN_TEXT] = "";
	char real[PATH_MAX];
	enum ndx_status st = code_file_check(&kind, path, real);

	if (st == NDX_OK)
		st = get_host(n, path, file->suffix, &source.host);
	if (st != NDX_OK) {
		plugins_note_failed(n, file->name, path);
		return st;
	}
	st = source.host->table->guests->open(source.host->state, real, &table, &source.guest, why,
	                                      sizeof(why));
	why[sizeof(why) - 1] = '\0';
	if (st != NDX_OK) {
		st = fail(st < 0 ? st : NDX_E_UNSUCCESSFUL, 0, "plugin \"%s\" (%s) is refused: %s",
		          file->name, path, why[0] != '\0' ? why : ndx_status_text(st));
		plugins_note_failed(n, file->name, path);
		goto drop;
	}
	st = plugins_register(n, table, &source);
	if (st == NDX_OK)
		return NDX_OK;
	source.host->table->guests->close(source.host->state, table, source.guest);
drop:
	plugins_drop_guest(source.host);
	return st;
}

/* ---- one, all, by name ---- */

static enum ndx_status load(struct ndx_negotiation *n, const char *path,
                            const struct file_name *file)
{
	if (strcmp(file->suffix, "so") == 0)
		return load_code(n, &kind, path, file->name);
	return load_guest(n, path, file);
}

enum ndx_status ndx_negotiation_load(struct ndx_negotiation *n, const char *path)
{
	struct file_name file = {.suffix = "so"};
	const char *last;

	if (n == NULL || path == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_negotiation_load: %s is NULL",
		            n == NULL ? "negotiation" : "path");
	if (path[0] != '/')
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_negotiation_load: \"%.200s\" is not absolute", path);
	last = strrchr(path, '/') + 1;
	/* A file with any other name is treated as machine code. */
	if (!file_name_read(last, &file))
		(void)snprintf(file.name, sizeof(file.name), "%.31s", last);
	return load(n, path, &file);
}

struct find {
	struct ndx_negotiation *negotiation;
	const char *name; /* only this plugin; NULL: all */
	size_t registered;
	bool opened; /* a directory exists */
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_plugin(const struct dirent *entry)
{
	struct file_name file;

	return file_name_read(entry->d_name, &file);
}

static void load_entry(struct find *find, const char *directory, const char *entry)
{
	struct file_name file;
	char path[PATH_MAX];
	const int length = snprintf(path, sizeof(path), "%s/%s", directory, entry);

	if (length < 0 || (size_t)length >= sizeof(path) || !file_name_read(entry, &file) ||
	    (find->name != NULL && strcmp(find->name, file.name) != 0))
		return;
	/* The reason of a failure was logged, and is in the list. */
	if (load(find->negotiation, path, &file) == NDX_OK)
		find->registered++;
}

static bool visit(void *arg, const char *directory)
{
	struct find *find = arg;
	struct dirent **entries;
	const int count = scandir(directory, &entries, is_plugin, by_name);

	if (count < 0)
		return false;
	find->opened = true;
	for (int i = 0; i < count; i++) {
		load_entry(find, directory, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return find->name != NULL && find->registered > 0;
}

void plugins_try_to_load(struct ndx_negotiation *n, const char *name)
{
	struct find find = {.negotiation = n, .name = name};

	if (frame_name_valid(name))
		(void)code_file_each_directory(&kind, visit, &find);
}

static bool visit_to_offer(void *arg, const char *directory)
{
	struct suggest *s = arg;
	struct dirent **entries;
	const int count = scandir(directory, &entries, is_plugin, by_name);
	struct file_name file;

	if (count < 0)
		return false;
	for (int i = 0; i < count; i++) {
		if (file_name_read(entries[i]->d_name, &file) && !suggest_has(s, file.name))
			suggest_offer(s, file.name, NULL);
		free(entries[i]);
	}
	free(entries);
	return false;
}

void plugins_offer_files(struct suggest *s)
{
	(void)code_file_each_directory(&kind, visit_to_offer, s);
}

const char *plugins_where(const char *name, char text[PLUGINS_WHERE])
{
	const char *path = secure_getenv(kind.variable);
	char directory[PATH_MAX];

	(void)snprintf(
		text, PLUGINS_WHERE,
		"looked in %.60s and $%s (%.60s): set %s=DIRECTORY, absolute, to where %s%.31s.so "
		"is",
		code_file_directory(directory), kind.variable,
		path != NULL && path[0] != '\0' ? path : "not set", kind.variable, kind.prefix,
		name);
	return text;
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
