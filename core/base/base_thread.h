/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "base_private.h"

/*
 * Start a thread with a name (15 characters) that takes no signal of the program: handlers expect
 * the program's own threads. Faults that the thread raises itself (SIGSEGV, ...) stay deliverable,
 * because otherwise the kernel would end the process without calling the program's handler. 0, or
 * an errno.
 */
int base_thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
	NDX_PRIVATE(base_thread_start);

/*
 * The same, bound to processors from its beginning. `given`: those that it got, which are fewer if
 * the process may not use some. EINVAL: it may use none of them; there is no thread, and `given` is
 * empty.
 */
int base_thread_start_bound(pthread_t *thread, const char *name, const cpu_set_t *cpus,
                            cpu_set_t *given, void *(*fn)(void *), void *arg);

/* Block the same signals in the calling thread, and restore its mask. */
void base_signals_block(sigset_t *before);
void base_signals_restore(const sigset_t *before);

#endif
