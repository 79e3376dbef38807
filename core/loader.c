/* SPDX-License-Identifier: BSD-2-Clause */
/* Providers from shared objects: found by name, checked, loaded. */
#include "loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base_log.h"
#include "registry.h"
#include "uri.h"

#ifndef NDX_PLUGIN_DIR
#define NDX_PLUGIN_DIR "/usr/lib/ndx"
#endif

#define PREFIX "ndx-provider-"
#define SUFFIX ".so"
#define SYMBOL "ndx_provider"

struct loaded {
	void *dl;
};

typedef bool directory_fn(void *arg, const char *directory);

const char *loader_directory(void)
{
	return NDX_PLUGIN_DIR;
}

/* Calls `each` for every directory in order until one says stop. */
static bool each_directory(directory_fn *each, void *arg)
{
	const char *path = secure_getenv("NDX_PROVIDER_PATH");
	char directory[PATH_MAX];

	while (path != NULL && *path != '\0') {
		const size_t len = strcspn(path, ":");

		if (path[0] == '/' && len < sizeof(directory)) {
			memcpy(directory, path, len);
			directory[len] = '\0';
			if (each(arg, directory))
				return true;
		} else if (len > 0) {
			log_warn(0, "$NDX_PROVIDER_PATH: \"%.*s\" is ignored, it is not absolute",
			         len < 256 ? (int)len : 256, path);
		}
		path += len;
		if (*path == ':')
			path++;
	}
	return each(arg, NDX_PLUGIN_DIR);
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
	return uri_name_valid(name) && each_directory(look_in, s);
}

bool loader_exists(const char *name)
{
	struct search s;

	return find(&s, name);
}

static enum ndx_status check_writable(const char *path, mode_t type, const char *what)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return fail(NDX_E_DEVICE_NOT_READY, errno, "%s cannot be looked at", path);
	if ((st.st_mode & S_IFMT) != type)
		return fail(NDX_E_DEVICE_NOT_READY, 0, "%s is not a %s; put a provider there", path,
		            what);
	if ((st.st_mode & S_IWOTH) != 0)
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "%s can be written by everybody, so no code is loaded from it; "
		            "chmod o-w %s",
		            path, path);
	return NDX_OK;
}

/* The file behind symbolic links, and the directory it is in. */
static enum ndx_status resolve(const char *path, char real[PATH_MAX])
{
	char directory[PATH_MAX];
	enum ndx_status st;
	char *slash;

	if (realpath(path, real) == NULL)
		return fail(NDX_E_DEVICE_NOT_READY, errno, "%s cannot be resolved", path);
	memcpy(directory, real, strlen(real) + 1);
	slash = strrchr(directory, '/');
	if (slash != NULL)
		slash[slash == directory ? 1 : 0] = '\0';
	st = check_writable(directory, S_IFDIR, "directory");
	if (st != NDX_OK)
		return st;
	return check_writable(real, S_IFREG, "regular file");
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

static enum ndx_status load(const char *path, const char *name, struct loaded *loaded,
                            const struct ndx_provider **provider)
{
	const struct ndx_provider *found;
	const char *why;
	enum ndx_status st;

	loaded->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (loaded->dl == NULL) {
		why = dlerror();
		return fail(NDX_E_DEVICE_NOT_READY, 0, "provider \"%s\" cannot be loaded: %s", name,
		            why != NULL ? why : path);
	}
	found = dlsym(loaded->dl, SYMBOL);
	if (found == NULL)
		st = fail(NDX_E_ABI_MISMATCH, 0,
		          "%s has no symbol " SYMBOL ", so it is no provider; remove or rename it",
		          path);
	else
		st = check(found, path, name);
	if (st == NDX_OK)
		*provider = found;
	else
		(void)dlclose(loaded->dl);
	return st;
}

static enum ndx_status open_file(const char *name, struct loaded **out,
                                 const struct ndx_provider **provider)
{
	struct search search;
	char path[PATH_MAX];
	struct loaded *loaded;
	enum ndx_status st;

	if (!find(&search, name))
		return NDX_E_NOT_FOUND;
	st = resolve(search.path, path);
	if (st != NDX_OK)
		return st;
	loaded = calloc(1, sizeof(*loaded));
	if (loaded == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "provider \"%s\": out of memory", name);
	st = load(path, name, loaded, provider);
	if (st != NDX_OK) {
		free(loaded);
		return st;
	}
	log_info("provider \"%s\" loaded from %s", name, path);
	*out = loaded;
	return NDX_OK;
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
	(void)dlclose(loaded->dl);
	free(loaded);
}

struct visit {
	void (*each)(void *arg, const char *name);
	void *arg;
};

/* "ndx-provider-NAME.so" -> NAME */
static bool name_of_file(const char *file, char name[URI_NAME_MAX + 1])
{
	const size_t prefix = sizeof(PREFIX) - 1;
	const size_t suffix = sizeof(SUFFIX) - 1;
	const size_t len = strlen(file);

	if (len <= prefix + suffix || len > prefix + suffix + URI_NAME_MAX)
		return false;
	if (strncmp(file, PREFIX, prefix) != 0 || strcmp(file + len - suffix, SUFFIX) != 0)
		return false;
	memcpy(name, file + prefix, len - prefix - suffix);
	name[len - prefix - suffix] = '\0';
	return uri_name_valid(name);
}

static bool visit_directory(void *arg, const char *directory)
{
	const struct visit *v = arg;
	char name[URI_NAME_MAX + 1];
	const struct dirent *entry;
	DIR *dir = opendir(directory);

	if (dir == NULL)
		return false;
	/* one stream, one thread: readdir() is safe */
	while ((entry = readdir(dir)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
		if (name_of_file(entry->d_name, name))
			v->each(v->arg, name);
	}
	(void)closedir(dir);
	return false;
}

void loader_each(void (*each)(void *arg, const char *name), void *arg)
{
	struct visit v = {.each = each, .arg = arg};

	(void)each_directory(visit_directory, &v);
}
