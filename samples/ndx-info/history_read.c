/* SPDX-License-Identifier: BSD-2-Clause */
/* Snapshots of adapters, as docs/observability.md describes them. Nothing in a file is trusted. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"

#define FORMAT 1 /* of a snapshot */

/* Where the reader is, for messages. */
struct place {
	struct history *history;
	const char *file;
	const char *list; /* "connectors" or "failed"; NULL: above them */
	size_t item, entry;
	bool in_entry;
	char *why;
	size_t room;
};

/* Always false. */
__attribute__((format(printf, 3, 4))) static bool wrong(const struct place *p, const char *member,
                                                        const char *format, ...)
{
	char where[96] = "";
	char what[400], clean[400]; /* jansson quotes the file, which may hold anything */
	va_list args;

	if (p->list != NULL && p->in_entry)
		(void)snprintf(where, sizeof(where), "%s[%zu].history[%zu]%s%s: ", p->list, p->item,
		               p->entry, member != NULL ? "." : "", member != NULL ? member : "");
	else if (p->list != NULL)
		(void)snprintf(where, sizeof(where), "%s[%zu]%s%s: ", p->list, p->item,
		               member != NULL ? "." : "", member != NULL ? member : "");
	else if (member != NULL)
		(void)snprintf(where, sizeof(where), "%s: ", member);
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	(void)snprintf(p->why, p->room, "%s: %s%s", p->file, where,
	               history_clean(what, clean, sizeof(clean)));
	return false;
}

static bool get_number(const struct place *p, const json_t *object, const char *member,
                       int64_t most, int64_t *out)
{
	const json_t *value = json_object_get(object, member);

	if (value == NULL)
		return wrong(p, member, "is missing");
	if (!json_is_integer(value))
		return wrong(p, member, "is no whole number");
	*out = json_integer_value(value);
	if (*out < 0 || *out > most)
		return wrong(p, member, "is %" PRId64 ", not from 0 to %" PRId64, *out, most);
	return true;
}

/* Absent and null give NULL, unless `needed`. */
static bool get_text(const struct place *p, const json_t *object, const char *member, bool needed,
                     const char **out)
{
	const json_t *value = json_object_get(object, member);

	*out = NULL;
	if ((value == NULL || json_is_null(value)) && !needed)
		return true;
	if (value == NULL)
		return wrong(p, member, "is missing");
	if (!json_is_string(value))
		return wrong(p, member, "is no text");
	*out = json_string_value(value);
	return true;
}

static bool read_entry(const struct place *p, const json_t *object, struct history_entry *e)
{
	if (!json_is_object(object))
		return wrong(p, NULL, "is no object");
	return get_number(p, object, "time_ns", HISTORY_TIME_MAX, &e->time_ns) &&
	       get_text(p, object, "from", true, &e->from) &&
	       get_text(p, object, "event", true, &e->event) &&
	       get_text(p, object, "to", true, &e->to) &&
	       get_text(p, object, "status", false, &e->status) &&
	       get_text(p, object, "cause", false, &e->cause);
}

/* Into the order of the times; entries of one time stay as they are. */
static void sort_entries(struct history_side *side)
{
	for (size_t i = 1; i < side->count; i++) {
		const struct history_entry e = side->entries[i];
		size_t at = i;

		for (; at > 0 && side->entries[at - 1].time_ns > e.time_ns; at--)
			side->entries[at] = side->entries[at - 1];
		side->entries[at] = e;
		side->sorted = side->sorted || at != i;
	}
}

static bool read_entries(struct place *p, const json_t *list, struct history_side *side)
{
	if (!json_is_array(list))
		return wrong(p, "history", list == NULL ? "is missing" : "is no list");
	if (json_array_size(list) > HISTORY_ENTRIES)
		return wrong(p, "history", "has %zu transitions; at most %u are read",
		             json_array_size(list), HISTORY_ENTRIES);
	side->count = json_array_size(list);
	if (side->count == 0)
		return true;
	side->entries = calloc(side->count, sizeof(*side->entries));
	if (side->entries == NULL)
		return wrong(p, NULL, "out of memory");
	p->in_entry = true;
	for (p->entry = 0; p->entry < side->count; p->entry++) {
		if (!read_entry(p, json_array_get(list, p->entry), &side->entries[p->entry]))
			return false;
	}
	p->in_entry = false;
	sort_entries(side);
	return true;
}

static bool read_side(struct place *p, const json_t *object, struct history_side *side)
{
	int64_t id, qp = 0, total = 0;
	const char *kind;

	if (!json_is_object(object))
		return wrong(p, NULL, "is no object");
	if (!get_number(p, object, "id", INT64_MAX, &id) ||
	    (json_object_get(object, "qp") != NULL &&
	     !get_number(p, object, "qp", INT64_MAX, &qp)) ||
	    (json_object_get(object, "transitions") != NULL &&
	     !get_number(p, object, "transitions", INT64_MAX, &total)) ||
	    !get_text(p, object, "side", true, &kind) ||
	    !get_text(p, object, "local", false, &side->local) ||
	    !get_text(p, object, "peer", false, &side->peer) ||
	    !get_text(p, object, "state", false, &side->state) ||
	    !get_text(p, object, "reason", false, &side->reason) ||
	    !read_entries(p, json_object_get(object, "history"), side))
		return false;
	side->passive = strcmp(kind, "passive") == 0;
	if (!side->passive && strcmp(kind, "active") != 0)
		return wrong(p, "side", "is neither active nor passive");
	side->id = (uint64_t)id;
	side->qp = (uint64_t)qp;
	side->dropped = (uint64_t)total > side->count ? (uint64_t)total - side->count : UINT64_C(0);
	return true;
}

/* The connectors of one list; those that have done nothing yet are left out. */
static bool read_list(struct place *p, const json_t *root, const char *name)
{
	const json_t *list = json_object_get(root, name);
	struct history *h = p->history;
	struct history_side *grown;
	const size_t count = json_array_size(list);

	if (list == NULL)
		return true;
	if (!json_is_array(list))
		return wrong(p, name, "is no list");
	if (count == 0)
		return true;
	grown = realloc(h->sides, (h->count + count) * sizeof(*h->sides));
	if (grown == NULL)
		return wrong(p, name, "out of memory");
	h->sides = grown;
	p->list = name;
	for (p->item = 0; p->item < count; p->item++) {
		struct history_side *side = &h->sides[h->count];

		memset(side, 0, sizeof(*side));
		side->file = p->file;
		side->root = h->root_count;
		if (!read_side(p, json_array_get(list, p->item), side)) {
			free(side->entries);
			return false;
		}
		h->count += side->count > 0;
	}
	p->list = NULL;
	return true;
}

static bool is_snapshot(const json_t *object)
{
	return json_object_get(object, "connectors") != NULL ||
	       json_object_get(object, "failed") != NULL;
}

static bool read_snapshot(struct place *p, const json_t *object)
{
	const json_t *format = json_object_get(object, "snapshot");

	if (format != NULL && (!json_is_integer(format) || json_integer_value(format) != FORMAT))
		return wrong(p, "snapshot",
		             "is not %d, the format that this ndx-info knows; use "
		             "the ndx-info of the library that wrote the file",
		             FORMAT);
	return read_list(p, object, "failed") && read_list(p, object, "connectors");
}

/* A snapshot, or an object that has some, as `ndx-reqresp --stats --json` writes. */
static bool read_root(struct place *p, json_t *root)
{
	const char *name;
	json_t *member;
	bool any = false;

	if (is_snapshot(root))
		return read_snapshot(p, root);
	json_object_foreach(root, name, member)
	{
		if (!json_is_object(member) || !is_snapshot(member))
			continue;
		any = true;
		if (!read_snapshot(p, member))
			return false;
	}
	if (any)
		return true;
	if (json_object_get(root, "session") != NULL || json_object_get(root, "sessions") != NULL)
		return wrong(p, NULL,
		             "is the snapshot of a session or of a negotiation server; "
		             "their steps are in it as text. Take the adapter's: "
		             "ndx_adapter_snapshot()");
	return wrong(p, NULL,
	             "has no \"connectors\": this is no snapshot of an adapter. "
	             "ndx_adapter_snapshot() makes one, and ndx-reqresp --stats --json");
}

static void explain_json(const struct place *p, const json_error_t *e, const char *text,
                         size_t length)
{
	size_t at = 0;

	while (at < length && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
		at++;
	if (at == length)
		(void)wrong(p, NULL,
		            "is empty; was the disk full, or the program killed, when it "
		            "was written?");
	else if (text[at] != '{')
		(void)wrong(p, NULL,
		            "does not begin with {. If a program printed other lines "
		            "before the snapshot: sed -n '/^{/,/^}/p' FILE >SNAPSHOT");
	else
		(void)wrong(p, NULL,
		            "line %d, column %d: %s. The text is no JSON from there on; "
		            "take the snapshot again",
		            e->line, e->column, e->text);
}

bool history_read(struct history *h, const char *file, const char *text, size_t length, char *why,
                  size_t room)
{
	struct place p = {.history = h, .file = file, .why = why, .room = room};
	json_error_t error;
	json_t *root;

	if (h->root_count == HISTORY_FILES)
		return wrong(&p, NULL, "is one file too many; at most %u", HISTORY_FILES);
	root = json_loadb(text, length, 0, &error);
	if (root == NULL || !json_is_object(root)) {
		explain_json(&p, &error, text, length);
		json_decref(root);
		return false;
	}
	if (!read_root(&p, root)) {
		/* What was read of it stays, with the texts that it needs. */
		h->roots[h->root_count++] = root;
		return false;
	}
	h->roots[h->root_count++] = root;
	return true;
}

void history_drop(struct history *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->sides[i].entries);
	free(h->sides);
	for (size_t i = 0; i < h->root_count; i++)
		json_decref(h->roots[i]);
	memset(h, 0, sizeof(*h));
}
