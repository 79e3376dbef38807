/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run of one case and what it found. The first failure (or reason to skip) is kept; from then
 * on every function that takes a `struct check` does nothing and says false, so that a case is
 * written as straight lines and still ends quickly. Any thread may report.
 */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/ndx.h>

enum {
	WAIT_MS = 10000, /* for what must happen: the longest anything is waited for */
	QUIET_MS = 15,   /* for what must not happen: how long it is watched */
};

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED };

/* What the load cases count, summed over all runs. */
struct totals {
	uint64_t sends_ok;
	uint64_t received;
	uint64_t missing;
};

struct pair;
struct world;

struct check {
	struct world *world;
	uint64_t seed;
	uint64_t random;    /* state of the generator */
	struct pair *pairs; /* what the case opened; the runner closes it, newest first */
	struct totals totals;
	pthread_mutex_t lock; /* of the three below */
	enum outcome outcome;
	char reason[600];
	char notes[600]; /* what a failure should be read with */
};

void check_begin(struct check *c, struct world *world, uint64_t seed);
void check_end(struct check *c);

/* Has it failed, or is it skipped? Then there is nothing more to find out. */
bool check_over(struct check *c);

__attribute__((format(printf, 2, 3))) void check_fail(struct check *c, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void check_skip(struct check *c, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void check_note(struct check *c, const char *fmt, ...);

/* Is it so? False also when the check is over. */
__attribute__((format(printf, 3, 4))) bool check_that(struct check *c, bool truth, const char *fmt,
                                                      ...);

/* A call returned what it should; the failure tells ndx_last_error(). */
bool check_status(struct check *c, enum ndx_status got, enum ndx_status want, const char *what);

/* After a call that returned NDX_E_BUFFER_OVERFLOW: the text has both numbers. */
void check_no_room(struct check *c, const char *what, size_t needed, size_t room);

/* One of two is right. */
bool check_either(struct check *c, enum ndx_status got, enum ndx_status one, enum ndx_status other,
                  const char *what);

/* An operation ends within WAIT_MS, with this status. */
bool check_ends(struct check *c, struct ndx_overlapped *ov, enum ndx_status want, const char *what);

/* An operation does not end for QUIET_MS. */
bool check_pending(struct check *c, struct ndx_overlapped *ov, const char *what);

/* The call returned `want`, or NDX_PENDING and the operation ends with `want`. */
bool check_outcome(struct check *c, enum ndx_status got, struct ndx_overlapped *ov,
                   enum ndx_status want, const char *what);

/* The call returned NDX_PENDING and the operation ends with `want`. */
bool check_async(struct check *c, enum ndx_status got, struct ndx_overlapped *ov,
                 enum ndx_status want, const char *what);

/* How the call or its operation ended; NDX_PENDING if it did not within WAIT_MS. */
enum ndx_status check_result_of(struct check *c, enum ndx_status got, struct ndx_overlapped *ov);

/* Random numbers of this run; one thread. */
uint64_t check_random(struct check *c);
uint32_t check_below(struct check *c, uint32_t limit); /* 0 .. limit - 1 */
bool check_chance(struct check *c, uint32_t percent);

/* The generator by itself. */
uint64_t random_next(uint64_t *state);

uint64_t now_ms(void);

#endif
