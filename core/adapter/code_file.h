/* SPDX-License-Identifier: BSD-2-Clause */
/* Code from files: providers and plugins. Every file is checked before it is loaded. */
#ifndef ADAPTER_CODE_FILE_H
#define ADAPTER_CODE_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <ndx/status.h>

#include "base_private.h"

/* A kind of file: its name is PREFIX NAME .so, and it exports one constant. */
struct code_file_kind {
	const char *what;   /* "provider" */
	const char *prefix; /* "ndx-provider-" */
	const char *symbol; /* "ndx_provider" */
	const char
		*variable; /* "NDX_PROVIDER_PATH": more directories, absolute, separated by ':' */
};

/* Visits a directory; returns true to end the search. */
typedef bool code_file_directory_fn(void *arg, const char *directory);

/* Visit the directories of the kind's variable (ignored in set-user-id programs), then
 * code_file_directory(). True if a visit returned true. */
bool code_file_each_directory(const struct code_file_kind *kind, code_file_directory_fn *each,
                              void *arg) NDX_PRIVATE(code_file_each_directory);

/* The folder "ndx" beside libndx, so that a tree may be moved. Returns `path`. */
const char *code_file_directory(char path[PATH_MAX]) NDX_PRIVATE(code_file_directory);

/*
 * "PREFIXname.so" -> "name"; false if the file is of another kind, or the name is longer than
 * `most`. `name` has space for most + 1.
 */
bool code_file_name(const struct code_file_kind *kind, const char *file, char *name, size_t most);

/**
 * Load a file.
 *
 * @param path  absolute; symbolic links are followed; neither the file nor its directory may be
 *              writable by every user
 * @param name  for messages
 * @param[out] dl     for code_file_close(); untouched on failure, as the next
 * @param[out] datum  the exported constant; nothing of the file but constructors was called
 *
 * @retval NDX_E_DEVICE_NOT_READY the file may not or cannot be loaded; the text says why
 * @retval NDX_E_ABI_MISMATCH     it exports no such constant
 */
enum ndx_status code_file_open(const struct code_file_kind *kind, const char *path,
                               const char *name, void **dl, const void **datum)
	NDX_PRIVATE(code_file_open);

/* The checks of code_file_open() alone: `real` is the file behind symbolic links. */
enum ndx_status code_file_check(const struct code_file_kind *kind, const char *path,
                                char real[PATH_MAX]) NDX_PRIVATE(code_file_check);

/* Does nothing for NULL. */
void code_file_close(void *dl) NDX_PRIVATE(code_file_close);

#endif
