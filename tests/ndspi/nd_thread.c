/* SPDX-License-Identifier: BSD-2-Clause */
#include "nd_thread.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *enter(void *arg)
{
	struct nd_thread *t = (struct nd_thread *)arg;

	__atomic_store_n(&t->kernel_id, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	t->run(t->arg);
	return NULL;
}

void nd_thread_start(struct nd_thread *t, void (*run)(void *arg), void *arg)
{
	t->kernel_id = 0;
	t->run = run;
	t->arg = arg;
	assert_int_equal(pthread_create(&t->id, NULL, enter, t), 0);
}

void nd_thread_join(struct nd_thread *t)
{
	assert_int_equal(pthread_join(t->id, NULL), 0);
}

static char state_of(pid_t id)
{
	char path[64];
	char text[256];
	const char *end;
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	f = fopen(path, "r");
	if (f == NULL)
		return '?';
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	return (char)(end != NULL && end[1] == ' ' ? end[2] : '?');
}

void nd_thread_await_sleep(const struct nd_thread *t)
{
	const time_t end = time(NULL) + ND_WAIT_MS / 1000;
	pid_t id;

	for (;;) {
		id = __atomic_load_n(&t->kernel_id, __ATOMIC_ACQUIRE);
		if (id != 0 && state_of(id) == 'S')
			return;
		if (time(NULL) > end)
			fail_msg("the thread does not sleep");
		(void)sched_yield();
	}
}
