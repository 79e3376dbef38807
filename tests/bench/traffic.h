/* SPDX-License-Identifier: BSD-2-Clause */
/* The traffic that is measured, the same over every lane. */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct lane;
struct traffic;

enum traffic_test { TRAFFIC_LATENCY, TRAFFIC_STREAM, TRAFFIC_WRITE, TRAFFIC_TESTS };

struct traffic_block {
	const struct lane *lane;
	enum traffic_test test;
	bool wait;      /* sleep instead of polling */
	uint64_t count; /* messages there (and back, but for streams) */
	uint64_t warm;  /* so many before them, which are not measured */
};

/* threads: 2, an end each; or 1, which drives both in turn and can only poll. */
struct traffic *traffic_start(unsigned threads);
void traffic_stop(struct traffic *traffic);

/* Run a block; nanoseconds, without what warms up. */
uint64_t traffic_run(struct traffic *traffic, const struct traffic_block *block);

/* Keep the thread on the processor of end 0 or 1, as the traffic's own are. */
void traffic_pin(pthread_t thread, unsigned which);

uint64_t traffic_now_ns(void);

#endif
