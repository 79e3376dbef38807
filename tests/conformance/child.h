/* SPDX-License-Identifier: BSD-2-Clause */
/* This program once more, as a process of its own, with a pipe to its stdin and one from its
 * stdout. */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* What child_read() returns beside a byte. */
enum {
	CHILD_SILENT = 0, /* no byte came in time */
	CHILD_ENDED = -1, /* the output has ended */
};

struct child {
	pid_t pid; /* 0: not running */
	int to;
	int from;
};

/* Start the process. On failure, errno says why. */
bool child_start(struct child *child, char **argv);

/* The next byte that it writes within `ms`. */
int child_read(const struct child *child, int ms);

/* In the process: write a byte. */
void child_write(int what);

/* Wait until SIGSTOP has stopped it, because its threads run on until then. False: it has ended,
 * and its number may be another process's. */
bool child_stop(const struct child *child);

/* Close the pipes of a process that has ended and was waited for. */
void child_forget(struct child *child);

/* Kill it if it runs, and forget it. */
void child_kill(struct child *child);

#endif
