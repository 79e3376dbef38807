/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/log.h>

#include "round.h"

enum { TOLD_MS = 5000 };

static void add(struct round *round, const struct end *e, const char *text)
{
	struct trace *t = &round->trace;
	uint64_t number = __atomic_fetch_add(&t->count, 1, __ATOMIC_RELAXED);
	struct trace_line *line = &t->lines[number % TRACE_LINES];
	char side = '-';
	char conn = '-';

	if (e != NULL) {
		side = e->side == SIDE_A ? 'A' : 'B';
		conn = (char)('0' + e->conn->index);
	}
	line->at = now_ns();
	(void)snprintf(line->text, sizeof(line->text), "%c%c %.*s", conn, side, TRACE_TEXT - 4,
	               text);
	if (t->all)
		(void)fprintf(stderr, "# %9.3f ms %s\n", (double)(line->at - t->began) / 1e6,
		              line->text);
}

void note(struct round *round, const struct end *e, const char *fmt, ...)
{
	char text[TRACE_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add(round, e, text);
}

static void note_log_record(void *arg, const struct ndx_log_record *record)
{
	note(arg, NULL, "%s: %s", ndx_log_level_name(record->level), record->text);
}

void trace_log_library(struct round *round)
{
	ndx_log_set_sink(note_log_record, round, NDX_LOG_INFO);
}

void trace_print(struct round *round)
{
	struct trace *t = &round->trace;
	uint64_t count = __atomic_load_n(&t->count, __ATOMIC_RELAXED);
	uint64_t first = count > TRACE_LINES ? count - TRACE_LINES : 0;

	for (uint64_t n = first; n < count; n++) {
		const struct trace_line *line = &t->lines[n % TRACE_LINES];

		(void)fprintf(stderr, "# %9.3f ms %.*s\n", (double)(line->at - t->began) / 1e6,
		              TRACE_TEXT, line->text);
	}
}

static void print_proc(const char *thread, const char *name)
{
	char path[64];
	char line[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.16s/%s", thread, name);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		(void)fprintf(stderr, "# thread %s, %s: %s\n", thread, name, line);
	}
	(void)fclose(f);
}

void trace_print_threads(void)
{
	static const char *const names[] = {"comm", "wchan", "syscall", "stack"};
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *thread;

	while (threads != NULL && (thread = readdir(threads)) != NULL) {
		for (size_t i = 0; thread->d_name[0] != '.' && i < 4; i++)
			print_proc(thread->d_name, names[i]);
	}
	if (threads != NULL)
		(void)closedir(threads);
}

static void print_round(struct round *round, const struct end *e, const char *what)
{
	char plan[1600];

	(void)plan_print(&round->plan, plan, sizeof(plan));
	(void)fprintf(stderr, "# round %llu: %s\n# the last operations (connection, side):\n",
	              (unsigned long long)round->number, plan);
	trace_print(round);
	(void)fprintf(stderr, "FAILED round %llu, ", (unsigned long long)round->number);
	if (e != NULL)
		(void)fprintf(stderr, "connection %u side %c: ", e->conn->index,
		              e->side == SIDE_A ? 'A' : 'B');
	(void)fprintf(stderr, "%s\nrepeat it with: %s\n", what, round->trace.repeat);
	(void)fflush(stderr);
}

void fail(struct round *round, const struct end *e, const char *fmt, ...)
{
	struct trace *t = &round->trace;
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (__atomic_exchange_n(&t->failing, 1, __ATOMIC_ACQ_REL) == 0) {
		print_round(round, e, what);
		__atomic_store_n(&t->told, 1, __ATOMIC_RELEASE);
	}
	trace_stop_if_failing(round);
	_exit(1);
}

static struct {
	pid_t owner;
	void (*tell)(void *arg);
	void *arg;
	unsigned told; /* atomic */
} at_failure;

void trace_on_failure(void (*tell)(void *arg), void *arg)
{
	at_failure.owner = getpid();
	at_failure.tell = tell;
	at_failure.arg = arg;
}

/* Another thread that fails waits for the end that this one brings. */
static void tell_failure(void)
{
	if (at_failure.tell == NULL || getpid() != at_failure.owner)
		return;
	while (__atomic_exchange_n(&at_failure.told, 1, __ATOMIC_ACQ_REL) != 0)
		(void)poll(NULL, 0, TOLD_MS);
	at_failure.tell(at_failure.arg);
}

void trace_stop_if_failing(struct round *round)
{
	struct trace *t = &round->trace;
	uint64_t end = now_ns() + TOLD_MS * UINT64_C(1000000);

	if (__atomic_load_n(&t->failing, __ATOMIC_ACQUIRE) == 0)
		return;
	while (__atomic_load_n(&t->told, __ATOMIC_ACQUIRE) == 0 && now_ns() < end)
		(void)poll(NULL, 0, 1);
	tell_failure();
	_exit(1);
}
