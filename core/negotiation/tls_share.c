/* SPDX-License-Identifier: BSD-2-Clause */
/* A context that the sessions of a variant share, as long as reading the files again would give the
 * same. Making one costs as much as the rest of a session. */
#include "tls_private.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tls_share_init(struct tls_share *share)
{
	(void)pthread_mutex_init(&share->lock, NULL);
	share->latest = NULL;
}

void tls_share_fini(struct tls_share *share)
{
	tls_context_put(share->latest);
	(void)pthread_mutex_destroy(&share->lock);
}

/* ---- files ---- */

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Whether the file is still the one that was read, and this process may still read it. */
static bool is_unchanged(const struct tls_stamp *stamp, const char *path)
{
	struct stat is;

	return !stamp->fresh && stat(path, &is) == 0 && is.st_dev == stamp->device &&
	       is.st_ino == stamp->inode && is.st_size == stamp->size &&
	       is_same_time(&is.st_mtim, &stamp->modified) &&
	       is_same_time(&is.st_ctim, &stamp->changed) &&
	       faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0;
}

/* ---- attributes ---- */

static void list_paths(const struct ndx_tls_attr *a, const char *paths[TLS_FILES])
{
	paths[TLS_FILE_CERT] = a->cert_file;
	paths[TLS_FILE_KEY] = a->key_file;
	paths[TLS_FILE_CA] = a->ca_file;
	paths[TLS_FILE_PSK] = a->psk_file;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* A client has no other attributes: tls_take_attr() refuses `peer_names`. */
static bool is_of(const struct tls_context *c, const struct ndx_tls_attr *a)
{
	const char *paths[TLS_FILES];
	const enum ndx_tls_verify verify =
		a->verify == NDX_TLS_VERIFY_NONE ? NDX_TLS_VERIFY_NONE : NDX_TLS_VERIFY_REQUIRED;
	bool same = c->verify == verify && c->no_resumption == a->no_resumption &&
	            is_same_text(c->server_name, a->server_name);

	list_paths(a, paths);
	for (unsigned i = 0; same && i < TLS_FILES; i++)
		same = is_same_text(c->paths[i], paths[i]);
	return same;
}

/* What tls_context_make() would find to be the same. */
static bool is_current(const struct tls_context *c)
{
	bool current = true;

	for (unsigned i = 0; current && i < TLS_FILES; i++)
		current = c->paths[i] == NULL || is_unchanged(&c->stamps[i], c->paths[i]);
	return current && (!c->has_cert || tls_date_fault(c) == NULL);
}

static bool copy_paths(struct tls_context *c, const struct ndx_tls_attr *a)
{
	const char *paths[TLS_FILES];

	list_paths(a, paths);
	for (unsigned i = 0; i < TLS_FILES; i++) {
		c->paths[i] = paths[i] != NULL ? strdup(paths[i]) : NULL;
		if (paths[i] != NULL && c->paths[i] == NULL)
			return false;
	}
	return true;
}

/* ---- */

/* The latest context, if it is of these attributes, with a reference for the caller. The files are
 * looked at without the lock, because a file system may be slow. */
static struct tls_context *find(struct tls_share *share, const struct ndx_tls_attr *a)
{
	struct tls_context *c;

	pthread_mutex_lock(&share->lock);
	c = share->latest != NULL && is_of(share->latest, a) ? share->latest : NULL;
	if (c != NULL)
		(void)__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&share->lock);
	if (c != NULL && is_current(c))
		return c;
	tls_context_put(c);
	return NULL;
}

/* NULL: the next session makes its own. */
static void replace(struct tls_share *share, struct tls_context *c)
{
	struct tls_context *former;

	if (c != NULL)
		(void)__atomic_fetch_add(&c->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&share->lock);
	former = share->latest;
	share->latest = c;
	pthread_mutex_unlock(&share->lock);
	tls_context_put(former);
}

enum ndx_status tls_share_take(struct tls_share *share, const struct ndx_tls_attr *attr,
                               const char *call, struct tls_context **out)
{
	struct tls_context *c = NULL;
	struct ndx_tls_attr own;
	enum ndx_status st = tls_take_attr(attr, NDX_ROLE_CLIENT, call, &own);

	if (st != NDX_OK)
		return st;
	c = find(share, &own);
	if (c != NULL) {
		tls_warn(c, call);
		*out = c;
		return NDX_OK;
	}
	st = tls_context_make(&own, NDX_ROLE_CLIENT, call, &c);
	/* A file that is gone takes its key out of the memory, too. */
	replace(share, st == NDX_OK && copy_paths(c, &own) ? c : NULL);
	if (st == NDX_OK)
		*out = c;
	return st;
}
