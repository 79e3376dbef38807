/* SPDX-License-Identifier: BSD-2-Clause */
/* The command: read the files, choose the connections, and show them. */
#include "history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sample_json.h"
#include "sample_options.h"
#include "sample_svg.h"

#define WHO "ndx-info history"
#define CHUNK 65536u

static int complain(const char *text)
{
	fprintf(stderr, WHO ": %s\n", text);
	sample_json_error(text);
	return SAMPLE_EXIT_FAILED;
}

/* All of a file, at most HISTORY_BYTES; "-": stdin. NULL: `why` says what is wrong. */
static char *load(const char *path, size_t *length, char *why, size_t room)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char *text = NULL, *grown;
	size_t have = 0, size = 0, got = 1;

	if (file == NULL) {
		(void)snprintf(why, room, "%s cannot be read: %s", path, strerror(errno));
		return NULL;
	}
	why[0] = '\0';
	while (got > 0 && why[0] == '\0') {
		if (have == size) {
			size = size > 0 ? 2 * size : CHUNK;
			grown = realloc(text, size);
			if (grown == NULL) {
				(void)snprintf(why, room, "%s: out of memory", path);
				break;
			}
			text = grown;
		}
		got = fread(text + have, 1, size - have, file);
		have += got;
		if (have > HISTORY_BYTES)
			(void)snprintf(why, room,
			               "%s has more than %u MiB; a snapshot has some KiB for a "
			               "connection",
			               path, HISTORY_BYTES >> 20);
	}
	if (ferror(file) != 0 && why[0] == '\0')
		(void)snprintf(why, room, "%s cannot be read: %s", path, strerror(errno));
	if (file != stdin)
		(void)fclose(file);
	*length = have;
	if (why[0] == '\0')
		return text;
	free(text);
	return NULL;
}

static int read_all(struct history *h, const struct history_options *o)
{
	char why[700];

	for (size_t i = 0; i < o->count; i++) {
		size_t length;
		char *text = load(o->files[i], &length, why, sizeof(why));
		const bool good = text != NULL &&
		                  history_read(h, o->files[i], text, length, why, sizeof(why));

		free(text);
		if (!good)
			return complain(why);
	}
	return SAMPLE_EXIT_OK;
}

/* Up to HISTORY_SHOWN of them; one, if it was chosen. */
static int choose(struct history *h, const struct history_options *o, struct history_life *lives,
                  size_t *count, size_t *left)
{
	int found = 1;

	*left = 0;
	while (*count < HISTORY_SHOWN && found > 0) {
		found = history_next(h, o->connector, &lives[*count]);
		*count += found > 0;
	}
	if (found < 0)
		return complain("out of memory");
	for (size_t i = 0; i < h->count; i++)
		*left +=
			!h->sides[i].taken && (o->connector == 0 || h->sides[i].id == o->connector);
	if (*count > 0)
		return SAMPLE_EXIT_OK;
	if (h->count == 0)
		return complain("there is no connection in it. A snapshot has the connectors whose "
		                "handles are open, and the last eight that failed: take it before "
		                "the connector is closed");
	return complain("there is no connector with this id; without --connector all are shown");
}

json_t *history_json(const struct history_life *life)
{
	static const char *const clocks[] = {"same", "aligned", "unknown", "contradicted"};
	json_t *object, *sides = json_array(), *rows = json_array();

	for (unsigned s = 0; s < 2; s++) {
		const struct history_side *side = life->sides[s];

		if (side != NULL)
			(void)json_array_append_new(
				sides,
				json_pack("{s:s, s:s, s:I, s:I, s:s?, s:s?, s:s?, s:s?}", "side",
			                  s == 0 ? "active" : "passive", "file", side->file, "id",
			                  (json_int_t)side->id, "qp", (json_int_t)side->qp, "local",
			                  side->local, "peer", side->peer, "state", side->state,
			                  "reason", side->reason));
	}
	for (size_t i = 0; i < life->count; i++) {
		const struct history_row *row = &life->rows[i];
		const struct history_entry *e = row->entry;

		(void)json_array_append_new(
			rows, json_pack("{s:s, s:I, s:s, s:s, s:s, s:s?, s:s?}", "side",
		                        row->side == 0 ? "active" : "passive", "at_ns",
		                        (json_int_t)row->at_ns, "from", e->from, "event", e->event,
		                        "to", e->to, "status", e->status, "cause", e->cause));
	}
	object = json_pack("{s:o, s:o, s:s, s:I, s:I}", "sides", sides, "transitions", rows,
	                   "clock", clocks[life->clock], "shift_ns", (json_int_t)life->shift_ns,
	                   "doubt_ns", (json_int_t)life->doubt_ns);
	if (object != NULL && life->fatal != SIZE_MAX)
		(void)json_object_set_new(object, "ended_badly_by",
		                          json_integer((json_int_t)life->fatal));
	return object;
}

static json_t *all_as_json(const struct history_life *lives, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(list, history_json(&lives[i]));
	return json_pack("{s:o}", "connections", list);
}

static int draw(const struct history_options *o, const struct history_life *lives, size_t count)
{
	FILE *file;
	int rc = sample_svg_open(WHO, o->svg, &file);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	history_draw(file, lives, count);
	return sample_svg_close(WHO, o->svg, file, rc);
}

int history_run(const struct history_options *o, FILE *out)
{
	struct history_life lives[HISTORY_SHOWN];
	struct history history = {0};
	size_t count = 0, left;
	json_t *object = NULL;
	int rc = read_all(&history, o);

	if (rc == SAMPLE_EXIT_OK)
		rc = choose(&history, o, lives, &count, &left);
	if (rc != SAMPLE_EXIT_OK)
		goto end;
	if (left > 0)
		fprintf(stderr, WHO ": %zu more are not shown; choose one with --connector\n",
		        left);
	if (o->svg != NULL)
		rc = draw(o, lives, count);
	if (out != NULL)
		object = all_as_json(lives, count);
	for (size_t i = 0; i < count && out == NULL && o->svg == NULL; i++)
		history_print(stdout, &lives[i], i == 0);
end:
	for (size_t i = 0; i < count; i++)
		history_life_drop(&lives[i]);
	history_drop(&history);
	return sample_end(WHO, sample_json_end("ndx-info", out, object, rc));
}
