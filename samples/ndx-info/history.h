/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-info history: the lives of connections, read from snapshots, as text, picture, or JSON. */
#ifndef HISTORY_H
#define HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTORY_FILES 8u             /**< of one call */
#define HISTORY_SHOWN 16u            /**< connections, unless --connector chooses */
#define HISTORY_BYTES (64u << 20)    /**< of a file */
#define HISTORY_ENTRIES 256u         /**< of a connector; the library keeps 16 */
#define HISTORY_TIME_MAX (1ll << 60) /**< ns; sums and differences fit */

/** One transition. Texts belong to the file, and may hold anything. */
struct history_entry {
	int64_t time_ns;
	const char *from, *event, *to;
	const char *status; /* NULL: no failure */
	const char *cause;  /* NULL: none */
};

/** A connector of a snapshot: one side of a connection. */
struct history_side {
	const char *file;
	uint64_t id, qp;          /* 0: no queue pair */
	bool passive;             /* side */
	const char *local, *peer; /* NULL: unknown */
	const char *state;        /* NULL: it failed, and was closed */
	const char *reason;       /* NULL: unknown */
	uint64_t dropped;         /* transitions before those that are listed */
	bool sorted;              /* the times were not in order, and now are */
	struct history_entry *entries;
	size_t count; /* at least 1 */
	size_t root;  /* which of the files */
	bool taken;   /* shown, or part of what is shown */
};

/** The content of the files. Zero it before use. */
struct history {
	json_t *roots[HISTORY_FILES];
	size_t root_count;
	struct history_side *sides;
	size_t count;
};

/**
 * Read a snapshot.
 *
 * @param file  for messages; must stay valid
 * @param why   receives what is wrong, and where, if this returns false
 */
bool history_read(struct history *h, const char *file, const char *text, size_t length, char *why,
                  size_t room);

void history_drop(struct history *h);

/** How the two sides' times were brought together. */
enum history_clock {
	HISTORY_ONE_CLOCK,  /* of one host, or there is one side only */
	HISTORY_ALIGNED,    /* of two hosts: by messages, of which each arrived after it was sent */
	HISTORY_TWO_CLOCKS, /* of two hosts, and no message tells: the last transitions agree */
	HISTORY_CONTRADICTED, /* no shift makes every message arrive after it was sent */
};

/** A line of the time line. */
struct history_row {
	unsigned side; /* index of sides[] */
	const struct history_entry *entry;
	int64_t at_ns;  /* since the first row */
	int64_t gap_ns; /* since the row before */
	size_t from;    /* row of the other side whose message this is; SIZE_MAX: none */
};

/** A connection. sides[0] is the active side; one of the two may be NULL. */
struct history_life {
	const struct history_side *sides[2];
	struct history_row *rows;
	size_t count;
	enum history_clock clock;
	int64_t shift_ns; /* was subtracted from the passive side's times */
	int64_t doubt_ns; /* HISTORY_ALIGNED: by how much that may be wrong, in each direction */
	size_t fatal;     /* the row that ended it badly; SIZE_MAX: none */
};

/**
 * The next connection to be shown, those that ended badly first; its sides are marked as taken.
 *
 * @param connector  only a connection with this id on a side; 0: any
 * @return 1, 0 if there is none any more, or -1 if out of memory
 */
int history_next(struct history *h, uint64_t connector, struct history_life *life);

void history_life_drop(struct history_life *life);

/** Whether a transition is to be marked. */
bool history_is_bad(const struct history_entry *entry);

/** What the event means that ended a connection badly; "" if the event says enough. */
const char *history_meaning(const struct history_entry *entry);

/** A copy of text from a file, at most room - 1 characters: printable ASCII. Returns `out`. */
char *history_clean(const char *text, char *out, size_t room);

/** "connector#7 qp#5" */
char *history_name(const struct history_side *side, char *out, size_t room);

/** FROM + EVENT -> TO */
char *history_transition(const struct history_entry *entry, char *out, size_t room);

/** STATUS: cause; "" if there is neither */
char *history_cause(const struct history_entry *entry, char *out, size_t room);

/** A duration with its unit: "0.165 ms" */
char *history_duration(int64_t ns, char *out, size_t room);

/** What has to be said of the times; "" if nothing. */
char *history_remark(const struct history_life *life, char *out, size_t room);

/** The next line of a text that is folded at `width`; its length, and *text behind it; 0: the end.
 */
size_t history_fold(const char **text, size_t width, const char **line);

void history_print(FILE *out, const struct history_life *life, bool first);

/** A picture of all. */
void history_draw(FILE *out, const struct history_life *lives, size_t count);

/** An object; the caller owns it. NULL: out of memory */
json_t *history_json(const struct history_life *life);

/** The command. Its operands are the files. */
struct history_options {
	char **files;
	size_t count;
	const char *svg; /* NULL: no picture; "-": to stdout */
	uint64_t connector;
};

/** `out`: of --json, or NULL. Returns an enum sample_exit, after sample_json_end(). */
int history_run(const struct history_options *options, FILE *out);

#endif
