/* SPDX-License-Identifier: BSD-2-Clause */
/* sample_stop_with(): a program ends by the signal, with its summary if there is a way to it. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample_stop.h"

enum { TOLD = 'x' };

static void write_told(void *arg)
{
	const char told = TOLD;

	(void)!write(*(const int *)arg, &told, 1);
}

/* The program that starts the test may have blocked the signals. */
static void unblock(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* What the child sends itself: one signal, the same twice as timeout(1) does, or one more later. */
enum signals { ONE, TWICE, AGAIN };

/* The signal that ends a child that gets SIGINT; *told: whether its summary came. */
static int end_of_child(bool stuck, enum signals signals, bool *told)
{
	int pair[2];
	int status = 0;
	char byte = 0;
	pid_t child;

	assert_int_equal(pipe(pair), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		unblock();
		if (sample_stop_with("test", write_told, &pair[1]) != 0)
			_exit(1);
		if (stuck)
			sample_stop_lock();
		(void)raise(SIGINT);
		if (signals == TWICE)
			(void)raise(SIGTERM);
		if (signals == AGAIN && poll(NULL, 0, SAMPLE_AGAIN_MS) == 0)
			(void)raise(SIGTERM);
		while (poll(NULL, 0, 10000 * (int)SAMPLE_STOP_S) < 0 && errno == EINTR)
			;
		_exit(2);
	}
	(void)close(pair[1]);
	*told = read(pair[0], &byte, 1) == 1 && byte == TOLD;
	(void)close(pair[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void a_signal_ends_it_behind_its_summary(void **state)
{
	bool told;

	(void)state;
	assert_int_equal(end_of_child(false, ONE, &told), SIGINT);
	assert_true(told);
	assert_int_equal(end_of_child(false, TWICE, &told), SIGINT);
	assert_true(told);
}

static void and_in_time_if_the_locks_owner_is_stuck(void **state)
{
	bool told;

	(void)state;
	assert_int_equal(end_of_child(true, ONE, &told), SIGINT);
	assert_false(told);
}

static void and_by_another_signal(void **state)
{
	bool told;

	(void)state;
	assert_int_equal(end_of_child(true, AGAIN, &told), SIGTERM);
	assert_false(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_ends_it_behind_its_summary),
		cmocka_unit_test(and_in_time_if_the_locks_owner_is_stuck),
		cmocka_unit_test(and_by_another_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
