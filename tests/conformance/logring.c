/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring of log records. The sink is one per process, so its memory is, too. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <ndx/log.h>

#include "logring.h"

enum { RECORDS = 12, RECORD_TEXT = 200 };

struct logring {
	pthread_mutex_t lock;
	bool aloud;
	unsigned written;
	char text[RECORDS][RECORD_TEXT];
};

static struct logring ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_record(void *arg, const struct ndx_log_record *record)
{
	struct logring *r = arg;
	char *text;

	(void)pthread_mutex_lock(&r->lock);
	text = r->text[r->written++ % RECORDS];
	(void)snprintf(text, RECORD_TEXT, "[%s] %s: %s (native %d)",
	               ndx_log_level_name(record->level), record->where, record->text,
	               record->native);
	if (r->aloud)
		(void)printf("# %s\n", text);
	(void)pthread_mutex_unlock(&r->lock);
}

void logring_begin(bool aloud)
{
	ring.aloud = aloud;
	ndx_log_set_sink(keep_record, &ring, aloud ? NDX_LOG_DEBUG : NDX_LOG_INFO);
}

void logring_clear(void)
{
	(void)pthread_mutex_lock(&ring.lock);
	ring.written = 0;
	(void)pthread_mutex_unlock(&ring.lock);
}

void logring_read(char *text, size_t size)
{
	size_t used = 0;
	unsigned first;

	text[0] = '\0';
	(void)pthread_mutex_lock(&ring.lock);
	first = ring.written > RECORDS ? ring.written - RECORDS : 0;
	for (unsigned i = first; i < ring.written && used < size; i++) {
		int n = snprintf(text + used, size - used, "%s\n", ring.text[i % RECORDS]);

		used += n > 0 ? (size_t)n : 0;
	}
	(void)pthread_mutex_unlock(&ring.lock);
}
