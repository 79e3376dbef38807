/* SPDX-License-Identifier: BSD-2-Clause */
/* Providers from shared objects: find by name, check, load. */
#include "loader.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <ndx/spi/loop.h>
#include "base_log.h"
#include "base_ov.h"
#include "code_file.h"
#include "registry.h"
#include "uri.h"

#define PREFIX "ndx-provider-"
#define SUFFIX ".so"

static const struct code_file_kind kind = {"provider", PREFIX, "ndx_provider", "NDX_PROVIDER_PATH"};

struct loaded {
	void *dl;
	struct adopted own;
};

const char *loader_directory(char path[PATH_MAX])
{
	return code_file_directory(path);
}

struct search {
	const char *name;
	char path[PATH_MAX];
};

static bool look_in(void *arg, const char *directory)
{
	struct search *s = arg;
	struct stat file;
	const int len =
		snprintf(s->path, sizeof(s->path), "%s/" PREFIX "%s" SUFFIX, directory, s->name);

	return len > 0 && (size_t)len < sizeof(s->path) && lstat(s->path, &file) == 0;
}

static bool find(struct search *s, const char *name)
{
	s->name = name;
	return uri_name_valid(name) && code_file_each_directory(&kind, look_in, s);
}

bool loader_exists(const char *name)
{
	struct search s;

	return find(&s, name);
}

static enum ndx_status serve_open(const char *name, const struct ndx_provider **provider,
                                  void **file);
static void serve_close(void *file);

static const struct ndx_spi_services services = {
	.abi = NDX_SPI_ABI,
	.size = sizeof(struct ndx_spi_services),
	.log = base_log_list,
	.log_enabled = ndxp_log_enabled,
	.record_failure = base_fail_list,
	.fail_hold = ndxp_fail_hold,
	.set_last_error = base_set_last_error_list,
	.last_error = ndx_last_error,
	.loop_on_any = ndxp_loop_on_any,
	.loop_is_hurried = ndxp_loop_is_hurried,
	.loop_post = ndxp_loop_post,
	.loop_call = ndxp_loop_call,
	.timer_set = ndxp_timer_set,
	.timer_cancel = ndxp_timer_cancel,
	.watch_add = ndxp_watch_add,
	.watch_rearm = ndxp_watch_rearm,
	.watch_remove = ndxp_watch_remove,
	.complete = base_ov_complete,
	.provider_open = serve_open,
	.provider_close = serve_close,
};

static enum ndx_status check(const struct ndx_provider *found, const char *path, const char *name)
{
	enum ndx_status st = registry_check(found, path);

	if (st == NDX_OK && strcmp(found->name, name) != 0)
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "%s holds provider \"%s\", not \"%s\"; name the file " PREFIX
		            "%s" SUFFIX,
		            path, found->name, name, found->name);
	return st;
}

static enum ndx_status open_file(const char *name, struct loaded **out,
                                 const struct ndx_provider **provider)
{
	struct search search;
	const void *found;
	struct loaded *loaded;
	enum ndx_status st;

	if (!find(&search, name))
		return NDX_E_NOT_FOUND;
	loaded = calloc(1, sizeof(*loaded));
	if (loaded == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "provider \"%s\": out of memory", name);
	st = code_file_open(&kind, search.path, name, &loaded->dl, &found);
	if (st != NDX_OK)
		goto fail_open;
	st = check(found, search.path, name);
	if (st != NDX_OK)
		goto fail_check;
	registry_adopt(found, &loaded->own);
	if (!registry_bind(found, &services)) {
		st = fail(NDX_E_DEVICE_NOT_READY, 0,
		          "%s serves another copy of libndx in this process; let all parts of the "
		          "program use one libndx",
		          search.path);
		goto fail_check;
	}
	*out = loaded;
	*provider = &loaded->own.provider;
	return NDX_OK;
fail_check:
	code_file_close(loaded->dl);
fail_open:
	free(loaded);
	return st;
}

enum ndx_status loader_open(const char *name, struct loaded **out,
                            const struct ndx_provider **provider)
{
	const struct ndx_provider *found = registry_find(name);
	enum ndx_status st;

	if (found == NULL)
		return open_file(name, out, provider);
	st = registry_check(found, "this build");
	if (st != NDX_OK)
		return st;
	(void)registry_bind(found, &services);
	*out = NULL;
	*provider = found;
	return NDX_OK;
}

void loader_close(struct loaded *loaded)
{
	if (loaded == NULL)
		return;
	registry_unbind(&loaded->own.provider);
	code_file_close(loaded->dl);
	free(loaded);
}

static enum ndx_status serve_open(const char *name, const struct ndx_provider **provider,
                                  void **file)
{
	struct loaded *loaded = NULL;
	const enum ndx_status st = loader_open(name, &loaded, provider);

	if (st == NDX_OK)
		*file = loaded;
	return st;
}

static void serve_close(void *file)
{
	loader_close(file);
}

/* The names of the files of all directories. */
struct names {
	char (*list)[URI_NAME_MAX + 1];
	size_t count;
	size_t room;
};

static bool make_room(struct names *names)
{
	const size_t room = names->room == 0 ? 16 : names->room * 2;
	char(*list)[URI_NAME_MAX + 1];

	if (names->count < names->room)
		return true;
	list = reallocarray(names->list, room, sizeof(*list));
	if (list == NULL) {
		log_error(0, "list of providers: out of memory; some are left out");
		return false;
	}
	names->list = list;
	names->room = room;
	return true;
}

static bool visit_directory(void *arg, const char *directory)
{
	struct names *names = arg;
	const struct dirent *entry;
	DIR *dir = opendir(directory);

	if (dir == NULL)
		return false;
	/* No other thread uses this stream, so readdir() is safe. */
	while (make_room(names) &&
	       (entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		char *name = names->list[names->count];

		if (code_file_name(&kind, entry->d_name, name, URI_NAME_MAX) &&
		    uri_name_valid(name))
			names->count++;
	}
	(void)closedir(dir);
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

void loader_each(loader_name_fn *each, void *arg)
{
	struct names names = {0};

	(void)code_file_each_directory(&kind, visit_directory, &names);
	if (names.count > 0)
		qsort(names.list, names.count, sizeof(*names.list), by_name);
	for (size_t i = 0; i < names.count; i++) {
		if (registry_find(names.list[i]) == NULL &&
		    (i == 0 || strcmp(names.list[i], names.list[i - 1]) != 0))
			each(arg, names.list[i]);
	}
	free(names.list);
}

void loader_each_missing(loader_name_fn *each, void *arg)
{
	char name[URI_NAME_MAX + 1];
	const char *module;
	size_t len;

	for (size_t i = 0; (module = registry_module(i, &len)) != NULL; i++) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, module);
		if (registry_find(name) == NULL && !loader_exists(name))
			each(arg, name);
	}
}
