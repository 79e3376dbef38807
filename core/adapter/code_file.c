/* SPDX-License-Identifier: BSD-2-Clause */
/* Code from files: providers and plugins. Every file is checked before it is loaded. */
#include "code_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <ndx/spi/log.h>

/* Where to look if the place of libndx is not known. */
static const char fallback[] = "/usr/lib/ndx";

#define SUFFIX ".so"

const char *code_file_directory(char path[PATH_MAX])
{
	static const char folder[] = "/ndx";
	const char *slash;
	char real[PATH_MAX];
	Dl_info own;

	memcpy(path, fallback, sizeof(fallback));
	/* A relative path was relative to the directory in which the process began. */
	if (dladdr(fallback, &own) == 0 || own.dli_fname == NULL || own.dli_fname[0] != '/' ||
	    realpath(own.dli_fname, real) == NULL)
		return path;
	slash = strrchr(real, '/');
	if ((size_t)(slash - real) + sizeof(folder) > PATH_MAX)
		return path;
	memcpy(path, real, (size_t)(slash - real));
	memcpy(path + (slash - real), folder, sizeof(folder));
	return path;
}

bool code_file_each_directory(const struct code_file_kind *kind, code_file_directory_fn *each,
                              void *arg)
{
	const char *path = secure_getenv(kind->variable);
	char directory[PATH_MAX];

	while (path != NULL && *path != '\0') {
		const size_t len = strcspn(path, ":");

		if (path[0] == '/' && len < sizeof(directory)) {
			memcpy(directory, path, len);
			directory[len] = '\0';
			if (each(arg, directory))
				return true;
		} else if (len > 0) {
			log_warn(0, "$%s: \"%.*s\" is ignored, it is not absolute", kind->variable,
			         len < 256 ? (int)len : 256, path);
		}
		path += len;
		if (*path == ':')
			path++;
	}
	return each(arg, code_file_directory(directory));
}

bool code_file_name(const struct code_file_kind *kind, const char *file, char *name, size_t most)
{
	const size_t prefix = strlen(kind->prefix);
	const size_t suffix = sizeof(SUFFIX) - 1;
	const size_t len = strlen(file);

	if (len <= prefix + suffix || len > prefix + suffix + most)
		return false;
	if (strncmp(file, kind->prefix, prefix) != 0 || strcmp(file + len - suffix, SUFFIX) != 0)
		return false;
	memcpy(name, file + prefix, len - prefix - suffix);
	name[len - prefix - suffix] = '\0';
	return true;
}

static enum ndx_status check_writable(const struct code_file_kind *kind, const char *path,
                                      mode_t type, const char *what)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return fail(NDX_E_DEVICE_NOT_READY, errno, "%s cannot be looked at", path);
	if ((st.st_mode & S_IFMT) != type)
		return fail(NDX_E_DEVICE_NOT_READY, 0, "%s is not a %s; put a %s there", path, what,
		            kind->what);
	if ((st.st_mode & S_IWOTH) != 0)
		return fail(NDX_E_DEVICE_NOT_READY, 0,
		            "%s can be written by every user, so no code is loaded from it; "
		            "chmod o-w %s",
		            path, path);
	return NDX_OK;
}

/* `real` is the file behind symbolic links; check it and its directory. */
enum ndx_status code_file_check(const struct code_file_kind *kind, const char *path,
                                char real[PATH_MAX])
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
	st = check_writable(kind, directory, S_IFDIR, "directory");
	if (st != NDX_OK)
		return st;
	return check_writable(kind, real, S_IFREG, "regular file");
}

#define PACKAGE_ROOM 96 /* bytes of the text about a package */

/*
 * If a library is missing, the name of its Debian package, which follows from the library's:
 * libX.so.N is in libXN, or in libX-N if X ends with a digit (Debian Policy, section 8.1).
 */
static void package_of(const char *why, char text[PACKAGE_ROOM])
{
	static const char missing[] = ": cannot open shared object file: No such file";
	const char *end = strstr(why, missing);
	const char *so = strstr(why, ".so.");
	size_t name;
	size_t version;

	text[0] = '\0';
	if (end == NULL || so == NULL || so == why || so > end ||
	    memchr(why, '/', end - why) != NULL)
		return;
	name = (size_t)(so - why);
	version = (size_t)(end - so) - (sizeof(".so.") - 1);
	if (name + version > PACKAGE_ROOM / 2)
		return;
	(void)snprintf(text, PACKAGE_ROOM, "; install the package with it (Debian: %.*s%s%.*s)",
	               (int)name, why, so[-1] >= '0' && so[-1] <= '9' ? "-" : "", (int)version,
	               so + sizeof(".so.") - 1);
}

/* Whether an earlier load has left the file in the process. The automatic choice opens a file
 * several times, and each time looks the same to a reader of the log. */
static bool is_in_process(const char *real)
{
	void *handle = dlopen(real, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	if (handle == NULL)
		return false;
	(void)dlclose(handle);
	return true;
}

enum ndx_status code_file_open(const struct code_file_kind *kind, const char *path,
                               const char *name, void **dl, const void **datum)
{
	char real[PATH_MAX];
	enum ndx_status st = code_file_check(kind, path, real);
	char package[PACKAGE_ROOM];
	const void *found;
	const char *why;
	void *handle;
	bool again;

	if (st != NDX_OK)
		return st;
	again = is_in_process(real);
	handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		why = dlerror();
		if (why == NULL)
			why = real;
		package_of(why, package);
		return fail(NDX_E_DEVICE_NOT_READY, 0, "%s \"%s\" cannot be loaded: %s%s",
		            kind->what, name, why, package);
	}
	found = dlsym(handle, kind->symbol);
	if (found == NULL) {
		st = fail(NDX_E_ABI_MISMATCH, 0,
		          "%s has no symbol %s, so it is no %s; remove or rename it", real,
		          kind->symbol, kind->what);
		(void)dlclose(handle);
		return st;
	}
	if (again)
		log_debug("%s \"%s\" opened again from %s", kind->what, name, real);
	else
		log_info("%s \"%s\" loaded from %s", kind->what, name, real);
	*dl = handle;
	*datum = found;
	return NDX_OK;
}

void code_file_close(void *dl)
{
	if (dl != NULL)
		(void)dlclose(dl);
}
