/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided traffic to targets that do not poll, beside messages to a consumer that sleeps. */
#ifndef BENCH_PASSIVE_H
#define BENCH_PASSIVE_H

#include <stdint.h>

#define PASSIVE_SECONDS 3600u /* at the most */

enum passive_kind {
	PASSIVE_MESSAGES,      /* one at a time, to a consumer that sleeps in a notification */
	PASSIVE_ASLEEP,        /* writes; the target sleeps in a notification */
	PASSIVE_SPIN,          /* writes; the target looks at its memory, and never polls */
	PASSIVE_SPIN_POLL,     /* ... and polls every millisecond */
	PASSIVE_PING_MESSAGES, /* there and back; both sides sleep in notifications */
	PASSIVE_PING_MEMORY,   /* both sides look at their memory, and poll for their own results */
	PASSIVE_KINDS,
};

struct passive_row {
	enum passive_kind kind;
	unsigned seconds;
	uint64_t done[PASSIVE_SECONDS]; /* writes, messages or round trips of each second */
};

/* kind and seconds are given; fills the rest. */
void passive_run(const char *const uris[2], struct passive_row *row);

#endif
