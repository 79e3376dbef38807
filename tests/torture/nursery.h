/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where peer processes come from: a process that was forked before there was any thread or adapter,
 * and forks them on demand.
 */
#ifndef NURSERY_H
#define NURSERY_H

#include <stdbool.h>
#include <sys/types.h>

struct nursery {
	int fd; /* -1: none */
	pid_t pid;
	pid_t child; /* 0: none */
};

typedef void nursery_main(void *arg); /* a child's life; its return is its good end */

bool nursery_open(struct nursery *nursery, nursery_main *life, void *arg);
void nursery_close(struct nursery *nursery);

/* False if that was not possible. One at a time. */
bool nursery_start(struct nursery *nursery);
void nursery_signal(const struct nursery *nursery, int signal_number);
/* Wait until the child has ended or stopped; its status as from waitpid(). */
int nursery_wait(struct nursery *nursery);

#endif
