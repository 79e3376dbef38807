/* SPDX-License-Identifier: BSD-2-Clause */
/* Providers from shared objects: find by name, check, load. */
#include "loader.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <ndx/spi/log.h>
#include "code_file.h"
#include "registry.h"
#include "uri.h"

#define PREFIX "ndx-provider-"
#define SUFFIX ".so"

static const struct code_file_kind kind = {"provider", PREFIX, "ndx_provider", "NDX_PROVIDER_PATH"};

struct loaded {
	void *dl;
};

const char *loader_directory(void)
{
	return code_file_directory();
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
	*out = loaded;
	*provider = found;
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
	*out = NULL;
	*provider = found;
	return NDX_OK;
}

void loader_close(struct loaded *loaded)
{
	if (loaded == NULL)
		return;
	code_file_close(loaded->dl);
	free(loaded);
}

struct visit {
	void (*each)(void *arg, const char *name);
	void *arg;
};

static bool visit_directory(void *arg, const char *directory)
{
	const struct visit *v = arg;
	char name[URI_NAME_MAX + 1];
	const struct dirent *entry;
	DIR *dir = opendir(directory);

	if (dir == NULL)
		return false;
	/* No other thread uses this stream, so readdir() is safe. */
	while ((entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		if (code_file_name(&kind, entry->d_name, name, URI_NAME_MAX) &&
		    uri_name_valid(name))
			v->each(v->arg, name);
	}
	(void)closedir(dir);
	return false;
}

void loader_each(void (*each)(void *arg, const char *name), void *arg)
{
	struct visit v = {.each = each, .arg = arg};

	(void)code_file_each_directory(&kind, visit_directory, &v);
}
