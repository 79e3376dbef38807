/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of a test, and when one of them sleeps. */
#ifndef ND_THREAD_H
#define ND_THREAD_H

#include <pthread.h>
#include <sys/types.h>

#include "nd_op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct nd_thread {
	pthread_t id;
	pid_t kernel_id; /* atomic; 0: not running yet */
	void (*run)(void *arg);
	void *arg;
};

/* An assertion that fails in `run` ends the program. */
void nd_thread_start(struct nd_thread *t, void (*run)(void *arg), void *arg);
void nd_thread_join(struct nd_thread *t);
/* Returns when the kernel says that the thread sleeps; fails the test when it does not. */
void nd_thread_await_sleep(const struct nd_thread *t);

#ifdef __cplusplus
}
#endif

#endif
