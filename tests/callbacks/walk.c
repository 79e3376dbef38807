/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: callback-walk URI MAP... [ndx_NAME]: every public call, in a callback of its objects'
 * adapter and in one of another adapter: each comes back, with the status that the table names, and
 * a failure replaces the text of the failure before.
 * MAP: the list of what a library exports; a call without a row is a failure.
 */
#include "walk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
	const struct row *rows;
	const size_t *count;
} tables[] = {
	{object_rows, &object_row_count}, {connection_rows, &connection_row_count},
	{frame_rows, &frame_row_count},   {session_rows, &session_row_count},
	{plain_rows, &plain_row_count},
};
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

static const struct row *find(const char *name)
{
	for (size_t t = 0; t < TABLES; t++) {
		for (size_t i = 0; i < *tables[t].count; i++) {
			if (strcmp(tables[t].rows[i].name, name) == 0)
				return &tables[t].rows[i];
		}
	}
	return NULL;
}

/* Every export has a row; false: one has none, or the list is not one. */
static bool is_complete(const char *path)
{
	FILE *map = fopen(path, "r");
	char line[256];
	char name[128];
	size_t count = 0;
	bool complete = true;

	if (!map) {
		perror(path);
		return false;
	}
	while (fgets(line, sizeof(line), map)) {
		if (sscanf(line, " ndx_%127[a-z0-9_];", name) != 1)
			continue;
		(void)snprintf(line, sizeof(line), "ndx_%s", name);
		count++;
		if (!find(line)) {
			fprintf(stderr, "%s has no row: what does it do in a callback?\n", line);
			complete = false;
		}
	}
	(void)fclose(map);
	return complete && count > 0;
}

/* ---- one call ---- */

struct step {
	struct scene scene;
	const struct row *row;
	struct ndx_overlapped trigger;
	unsigned char memory[64];
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool over;
	enum ndx_status status;
	bool stale; /* it failed, and the text is that of an earlier failure */
	char text[256];
};

static void in_callback(struct ndx_overlapped *ov)
{
	struct step *step = ov->context;
	struct ndx_adapter *none;
	char before[sizeof(step->text)];
	enum ndx_status st;

	(void)ndx_adapter_open("none", &none);
	(void)snprintf(before, sizeof(before), "%s", ndx_last_error());
	st = step->row->call(&step->scene);
	(void)pthread_mutex_lock(&step->lock);
	step->status = st;
	step->stale = st < NDX_OK && strncmp(before, ndx_last_error(), sizeof(before) - 1) == 0;
	(void)snprintf(step->text, sizeof(step->text), "%s", ndx_last_error());
	step->over = true;
	(void)pthread_cond_signal(&step->changed);
	(void)pthread_mutex_unlock(&step->lock);
}

/* What hangs, hangs for good: nothing can be closed any more. */
static void await(struct step *step, const char *where)
{
	struct timespec until;
	int err = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2 * PATIENCE_MS / 1000;
	(void)pthread_mutex_lock(&step->lock);
	while (!step->over && err == 0)
		err = pthread_cond_timedwait(&step->changed, &step->lock, &until);
	(void)pthread_mutex_unlock(&step->lock);
	if (err != 0) {
		fprintf(stderr, "%s in a callback of %s does not come back\n", step->row->name,
		        where);
		abort();
	}
}

static bool is_right(const struct row *row, enum ndx_status st)
{
	return st == row->want || (row->other != NDX_OK && st == row->other);
}

/* Calls of the data path set no text; where the adapter has no shared receive queues, the rows of
 * ndx_srq_ call nothing. */
static bool sets_text(const char *name)
{
	if (strncmp(name, "ndx_srq_", 8) == 0)
		return false;
	return strncmp(name, "ndx_qp_", 7) != 0 || strcmp(name, "ndx_qp_create") == 0 ||
	       strcmp(name, "ndx_qp_flush") == 0;
}

/* In a callback of `adapter`. */
static bool take_step(struct step *step, struct ndx_adapter *adapter, const char *where)
{
	struct ndx_mr *mr = NULL;
	bool good;

	step->trigger = (struct ndx_overlapped){.callback = in_callback, .context = step};
	if (ndx_mr_create(adapter, &mr) != NDX_OK ||
	    ndx_mr_register(mr, step->memory, sizeof(step->memory), 0, &step->trigger) !=
	            NDX_PENDING) {
		fprintf(stderr, "no callback: %s\n", ndx_last_error());
		return false;
	}
	await(step, where);
	good = is_right(step->row, step->status);
	if (!good)
		fprintf(stderr, "%s in a callback of %s: %s (%s), not %s\n", step->row->name, where,
		        ndx_status_name(step->status), step->text,
		        ndx_status_name(step->row->want));
	if (step->stale && sets_text(step->row->name)) {
		fprintf(stderr, "%s in a callback of %s: %s, with the text of another failure\n",
		        step->row->name, where, ndx_status_name(step->status));
		good = false;
	}
	ndx_mr_close(mr);
	return good;
}

static bool walk_one(const char *uri, struct ndx_adapter *other, const struct row *row)
{
	struct step *step = calloc(1, sizeof(*step));
	bool good;

	if (!step)
		return false;
	(void)pthread_mutex_init(&step->lock, NULL);
	(void)pthread_cond_init(&step->changed, NULL);
	step->row = row;
	good = scene_open(&step->scene, uri);
	if (good && other)
		good = take_step(step, other, "another adapter");
	else if (good)
		good = take_step(step, step->scene.own, "its adapter");
	scene_close(&step->scene);
	(void)pthread_cond_destroy(&step->changed);
	(void)pthread_mutex_destroy(&step->lock);
	free(step);
	return good;
}

int main(int argc, char **argv)
{
	struct ndx_adapter *other = NULL;
	const char *only = NULL;
	unsigned calls = 0;
	unsigned maps = 0;
	unsigned failed = 0;

	for (int i = 2; i < argc; i++) {
		if (strncmp(argv[i], "ndx_", 4) == 0)
			only = argv[i];
		else if (!is_complete(argv[i]))
			return 1;
		else
			maps++;
	}
	if (maps == 0) {
		fprintf(stderr, "usage: callback-walk URI MAP... [ndx_NAME]\n");
		return 1;
	}
	if (ndx_adapter_open(argv[1], &other) != NDX_OK) {
		fprintf(stderr, "%s\n", ndx_last_error());
		return 1;
	}
	for (size_t t = 0; t < TABLES; t++) {
		for (size_t i = 0; i < *tables[t].count; i++) {
			const struct row *row = &tables[t].rows[i];

			if (only && strcmp(only, row->name) != 0)
				continue;
			failed += !walk_one(argv[1], NULL, row);
			failed += !walk_one(argv[1], other, row);
			calls++;
		}
	}
	ndx_adapter_close(other);
	printf("%u calls, %u failures\n", calls, failed);
	return failed == 0 && calls > 0 ? 0 : 1;
}
