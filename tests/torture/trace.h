/* SPDX-License-Identifier: BSD-2-Clause */
/* The last operations of a round, of all its threads and processes, and the end of a run that
 * fails. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/status.h>

struct end;
struct round;

enum { TRACE_LINES = 1024, TRACE_TEXT = 192 };

struct trace_line {
	uint64_t at;
	char text[TRACE_TEXT];
};

struct trace {
	uint64_t count; /* atomic: lines ever written */
	uint64_t began;
	uint32_t failing; /* atomic: a thread has found a fault, and reports it */
	uint32_t told;    /* atomic: it has been told */
	bool all;         /* print every line at once */
	char repeat[256]; /* the command that repeats the round */
	struct trace_line lines[TRACE_LINES];
};

/* Note an operation; `e` NULL: of no end in particular. */
__attribute__((format(printf, 3, 4))) void note(struct round *round, const struct end *e,
                                                const char *fmt, ...);

/* From now on what the library logs is noted, too: why it gave a connection up, for instance. */
void trace_log_library(struct round *round);

/* Something is not as it has to be: say what, print the trace and the command that repeats the
 * round, end the process. */
__attribute__((format(printf, 3, 4), noreturn)) void fail(struct round *round, const struct end *e,
                                                          const char *fmt, ...);

/* Another thread's fail() is in progress: wait until it has reported, and end. */
void trace_stop_if_failing(struct round *round);

/* Called once in this process, by any thread, before a failure ends the process. */
void trace_on_failure(void (*tell)(void *arg), void *arg);

void trace_print(struct round *round);

/* Where the threads of this process are: the call of the kernel in which each one stands, and for
 * root how it got there. */
void trace_print_threads(void);

#endif
