/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the threads of a test run. */
#ifndef PERF_PIN_H
#define PERF_PIN_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "perf.h"

/**
 * Without --cpus: the processor of a thread, as ndx-perf compare pins its two ends. The client has
 * the first, third ... of those that the process may use, the server the second, fourth ..., so
 * that the two do not meet on one host. -1: any, because there are not enough for both.
 */
int pin_default(const cpu_set_t *allowed, bool client, uint32_t threads, uint32_t index);

/** Whether this process may use that processor. */
bool pin_allowed(uint32_t cpu);

/** Let a thread of `threads` run where `cpus` says. The caller's thread is not pinned. */
void pin_thread(pthread_t thread, const struct perf_cpus *cpus, bool client, uint32_t threads,
                uint32_t index);

#endif
