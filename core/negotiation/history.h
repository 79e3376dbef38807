/* SPDX-License-Identifier: BSD-2-Clause */
/* The history of a session: a ring of entries, written and read by any thread. */
#ifndef NEGOTIATION_HISTORY_H
#define NEGOTIATION_HISTORY_H

#include <pthread.h>

#include <ndx/session.h>

/* Of all entries that were ever written. */
struct history_totals {
	uint64_t calls; /* of the plugin */
	uint64_t sent;  /* frames, ... */
	uint64_t received;
	uint64_t sent_bytes; /* ... and their payload */
	uint64_t received_bytes;
};

struct history {
	pthread_mutex_t lock;
	struct ndx_history_entry *ring;
	uint32_t room;
	uint64_t written; /* how many entries were ever written */
	uint64_t began_ns;
	struct history_totals totals;
};

enum ndx_status history_init(struct history *h, uint32_t room);
void history_fini(struct history *h);
/* Add an event that began at `since_ns`; sets time and duration. `text` may be NULL. */
void history_add(struct history *h, const struct ndx_history_entry *entry, uint64_t since_ns,
                 const char *text);
/* Add that hello and welcome were exchanged, of so many bytes of payload. */
void history_add_hello(struct history *h, enum ndx_stage stage, uint32_t out, uint32_t in,
                       uint64_t since_ns);
/* As ndx_session_get_history(). */
void history_copy(struct history *h, struct ndx_history_entry *list, size_t *count,
                  uint64_t *total);
void history_sum(struct history *h, struct history_totals *totals);

#endif
