/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-disconnect-figures: what disconnects cost and what they lose. Counts are taken over many
 * connections with messages both ways, each of which has a receive waiting for it; the same
 * schedule also runs straight over libfabric, ended as programs usually do. Times are taken towards
 * peers of several kinds.
 */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MESSAGES = 64, /* most a side sends in one connection; as many receives wait at the other */
	LONGEST = 1024, /* bytes of a message */
	WRITES = 4,     /* of a side into the other's memory, NDX only */
	WRITTEN = 1024, /* bytes of each */

	/* numbers of requests: receives, then sends, then writes */
	FIRST_SEND = MESSAGES,
	FIRST_WRITE = 2 * MESSAGES,
	REQUESTS = 2 * MESSAGES + WRITES,

	WAIT_MS = 20000, /* for whatever has to happen */
};

/* ---- the schedule ---- */

enum who { WHO_A, WHO_B, WHO_BOTH };

/* One connection; the same for everything that is compared. */
struct plan {
	uint32_t count[2]; /* messages that a side sends */
	uint32_t length[2][MESSAGES];
	uint32_t head_start; /* how often results are looked for before the end */
	enum who who;        /* begins to disconnect */
};

void plan_make(struct plan *plan, uint64_t seed, uint64_t round);

/* ---- the account ---- */

struct tally {
	uint64_t connections;
	uint64_t failed;       /* disconnects that did not succeed */
	uint64_t posted;       /* messages that the stack accepted before the end was asked for */
	uint64_t completed;    /* of them, completed well at their sender */
	uint64_t delivered;    /* of them, received */
	uint64_t lost;         /* completed well, not received */
	uint64_t cut_off;      /* accepted, a receive was waiting, not received */
	uint64_t doubled;      /* a request with two results, a message received twice */
	uint64_t unanswered;   /* requests without a result when the end was complete */
	uint64_t late;         /* results, and memory changes, after the end was complete */
	uint64_t corrupt;      /* messages that are not what was sent */
	uint64_t microseconds; /* all of it took, connecting included */
};

/* Books of one connection. */
struct books {
	struct tally *tally;
	const struct plan *plan;
	uint64_t round;
	bool posted[2][REQUESTS];
	bool answered[2][REQUESTS];
	bool completed[2][MESSAGES]; /* by sender */
	bool arrived[2][MESSAGES];   /* by sender */
};

void books_open(struct books *b, struct tally *tally, const struct plan *plan, uint64_t round);
/* Fill a message, or see which one it is. */
void message_fill(const struct books *b, unsigned from, uint32_t index, uint8_t *at);
/* A result of a side's request; `at` and `length` of a receive that brought something. */
void books_result(struct books *b, unsigned side, size_t number, bool good, const uint8_t *at,
                  size_t length);
/* The end is complete at one side: what has no result now has none. */
void books_side_done(struct books *b, unsigned side);
/* Both have ended: what was lost? */
void books_close(struct books *b);

/* ---- times ---- */

enum kind {
	KIND_IDLE,    /* nothing under way; the peer's program waits to be told */
	KIND_BUSY,    /* 64 messages each way under way; the peer's program polls */
	KIND_SLOW,    /* 16 sends under way, the peer looks, and posts receives, every 10 ms */
	KIND_SILENT,  /* the peer's program calls nothing any more; nothing under way */
	KIND_RNR,     /* the same, and 16 sends for which it posts no receive */
	KIND_STOPPED, /* the peer's process is stopped */
	KINDS,
};

struct timing {
	const char *skipped; /* why it was not taken; else NULL */
	size_t count;
	size_t succeeded; /* the others failed CONNECTION_ABORTED, which is right for a stopped peer
	                   */
	uint64_t p50;     /* microseconds */
	uint64_t p99;
	uint64_t max;
};

const char *kind_name(enum kind kind);

/* ---- a run ---- */

struct row {
	const char *name; /* adapter URI, or what was done straight on libfabric */
	bool raw;
	struct tally tally;
	struct timing timings[KINDS];
};

struct options {
	uint64_t seed;
	uint64_t disconnects;
	uint64_t raw_disconnects;
	size_t times;
	const char *json; /* file, "-": standard output, NULL: none */
};

/* False, having said why on standard error. */
bool account_run(const char *uri, const struct options *o, struct tally *tally);
bool times_run(const char *uri, const struct options *o, struct timing timings[KINDS]);
/* Straight on libfabric's tcp provider: fi_shutdown at once, or when the own sends completed. */
bool raw_available(void);
bool raw_run(bool wait_for_sends, const struct options *o, struct tally *tally);

/* The process that is stopped. */
bool stopped_run(const char *uri, size_t count, struct timing *timing);
int stopped_main(int argc, char **argv);

void report_text(const struct row *rows, size_t count, const struct options *o);
bool report_json(const struct row *rows, size_t count, const struct options *o);

uint64_t now_us(void);
void timing_of(struct timing *timing, uint64_t *us, size_t count, size_t succeeded);

#endif
