/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: process-cases URI LOADER LIBRARY [SEED]. Signals of a process that uses the library: they
 * do what they would do without it. Each case runs in children; those that are this program anew
 * are called as process-cases --ROLE.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <ndx/ndx.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The start and the end of the sanitizer take most of the time of a child. */
enum { SHOTS = 48 };
#else
enum { SHOTS = 104 }; /* signals at random moments of opening */
#endif

enum {
	LOADS = 20,       /* signals at random moments of loading */
	AT_ONCE = 8,      /* children at a time */
	PATIENCE_S = 100, /* a child that lives longer hangs */
	EXIT_STATUS = 3,  /* of a handler that ends the process */
};

static const char *self;
static const char *uri;
static const char *loader;
static const char *library;
static uint64_t seed;

static uint32_t chance(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* What waitpid() says of a child, which SIGALRM ends if it hangs. */
static int end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		fail_msg("a child hung");
	return status;
}

static int run(const char *program, const char *argument)
{
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)argument, NULL};
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
	return end_of(pid);
}

/* ---- what a role does, in a process that has just begun ---- */

static int tell_dispositions(void)
{
	sigset_t mask;

	for (int s = 1; s < 32; s++) {
		const bool ignored = s == SIGINT;
		struct sigaction now;

		if (sigaction(s, NULL, &now) == 0 &&
		    now.sa_handler != (ignored ? SIG_IGN : SIG_DFL)) {
			(void)fprintf(stderr, "signal %d is not as it was at exec\n", s);
			return 1;
		}
	}
	(void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
	return sigismember(&mask, SIGTERM);
}

static int sleep_on(void)
{
	sigset_t none;

	(void)sigemptyset(&none);
	for (;;)
		(void)sigsuspend(&none);
	return 0;
}

static int crash(const char *name)
{
	const struct rlimit none = {0, 0};

	(void)setrlimit(RLIMIT_CORE, &none);
	if (ndx_status_name(NDX_OK) == NULL)
		return 1;
	if (strcmp(name, "abort") == 0)
		abort();
	(void)raise(strcmp(name, "interrupt") == 0 ? SIGINT : SIGSEGV);
	return 1;
}

/* ---- cases ---- */

static void dispositions_are_those_of_exec(void **state)
{
	struct sigaction before[32];

	(void)state;
	for (int s = 1; s < 32; s++) {
		(void)sigaction(s, NULL, &before[s]);
		(void)signal(s, s == SIGINT ? SIG_IGN : SIG_DFL);
	}
	assert_int_equal(run(self, "--dispositions"), 0);
	for (int s = 1; s < 32; s++)
		(void)sigaction(s, &before[s], NULL);
}

static void handlers_survive_loading(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("the thread sanitizer ends a program that unloads a library which its "
	              "suppressions name\n");
	skip();
#else
	assert_int_equal(run(loader, library), 0);
#endif
}

static void a_crash_ends_by_its_signal(void **state)
{
	static const struct {
		const char *role;
		int signal_number;
	} ends[] = {{"--crash", SIGSEGV}, {"--abort", SIGABRT}, {"--interrupt", SIGINT}};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const int status = run(self, ends[i].role);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != ends[i].signal_number)
			fail_msg("%s ended with %#x", ends[i].role, (unsigned)status);
	}
}

/* From exec on: while libraries are loaded, too. */
static void a_signal_while_loading_ends_the_process(void **state)
{
	const char *argv[] = {self, "--sleep", NULL};
	uint64_t longest;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	/* as long as loading takes, and the same time in what follows */
	assert_int_equal(run(self, "--nothing"), 0);
	longest = now_us();
	assert_int_equal(run(self, "--nothing"), 0);
	longest = 2 * (now_us() - longest) + 1;
	for (int i = 0; i < LOADS; i++) {
		const uint32_t us = chance((uint32_t)longest);
		const struct timespec moment = {us / 1000000, (long)(us % 1000000) * 1000};
		pid_t pid;
		int status;

		assert_int_equal(posix_spawn(&pid, self, NULL, NULL, (char *const *)(uintptr_t)argv,
		                             environ),
		                 0);
		(void)ppoll(NULL, 0, &moment, NULL);
		assert_int_equal(kill(pid, SIGTERM), 0);
		status = end_of(pid);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
			fail_msg("SIGTERM while loading: ended with %#x", (unsigned)status);
	}
}

static void end_here(int signal_number)
{
	(void)signal_number;
	exit(EXIT_STATUS);
}

/* A child that opens and then sleeps until a signal ends it. */
static void open_and_wait(void)
{
	struct ndx_adapter *adapter;
	sigset_t none;

	(void)alarm(PATIENCE_S);
	if (ndx_adapter_open(uri, &adapter) != NDX_OK)
		_exit(1);
	(void)sigemptyset(&none);
	for (;;)
		(void)sigsuspend(&none);
}

static pid_t start_opening(bool handle)
{
	pid_t pid;

	/* The child has it from its first moment on. */
	(void)signal(SIGTERM, handle ? end_here : SIG_DFL);
	pid = fork();
	if (pid == 0)
		open_and_wait();
	(void)signal(SIGTERM, SIG_DFL);
	assert_true(pid > 0);
	return pid;
}

/* How long opening takes in a child; the moments of signals are chosen by that. The end of the
 * child is no part of it: a process with threads takes a second to exit under the thread sanitizer.
 */
static uint32_t time_of_opening(void)
{
	struct ndx_adapter *adapter;
	uint64_t start;
	uint64_t taken;
	char opened = 0;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	start = now_us();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (ndx_adapter_open(uri, &adapter) == NDX_OK)
			opened = 1;
		_exit(write(ends[1], &opened, 1) != 1);
	}
	assert_int_equal(read(ends[0], &opened, 1), 1);
	taken = now_us() - start;
	assert_int_equal(end_of(pid), 0);
	assert_int_equal(opened, 1);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return (uint32_t)taken;
}

static void check_end(pid_t pid, bool handle)
{
	const int status = end_of(pid);

	if (handle ? !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_STATUS
	           : !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
		fail_msg("SIGTERM, %s: the child ended with %#x",
		         handle ? "with a handler that exits" : "at default", (unsigned)status);
}

/* At default it ends by the signal; with a handler that calls exit(), as many have, by that: no
 * lock is in its way. */
static void a_signal_while_opening_ends_the_process(void **state)
{
	pid_t pids[AT_ONCE];
	uint64_t due[AT_ONCE];
	uint32_t longest;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	longest = time_of_opening() * (AT_ONCE / 2) + 1000;
	for (int i = 0; i < SHOTS; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++) {
			pids[j] = start_opening(j % 2 > 0);
			due[j] = now_us() + chance(longest);
		}
		for (int j = 0; j < AT_ONCE; j++) {
			const uint64_t now = now_us();
			const uint64_t left = due[j] > now ? due[j] - now : 0;
			const struct timespec rest = {(time_t)(left / 1000000),
			                              (long)(left % 1000000) * 1000};

			(void)ppoll(NULL, 0, &rest, NULL);
			assert_int_equal(kill(pids[j], SIGTERM), 0);
		}
		for (int j = 0; j < AT_ONCE; j++)
			check_end(pids[j], j % 2 > 0);
	}
}

/* A sanitizer has handlers of its own, which are not what is looked at; nor are leaks: those of
 * other libraries cannot be told by their names when they have been unloaded. */
static void without_handlers(const char *name)
{
	const char *before = getenv(name);
	char text[1024];

	(void)snprintf(text, sizeof(text),
	               "%s:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:"
	               "handle_sigill=0:handle_abort=0:detect_leaks=0",
	               before != NULL ? before : "");
	(void)setenv(name, text, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dispositions_are_those_of_exec),
		cmocka_unit_test(handlers_survive_loading),
		cmocka_unit_test(a_crash_ends_by_its_signal),
		cmocka_unit_test(a_signal_while_loading_ends_the_process),
		cmocka_unit_test(a_signal_while_opening_ends_the_process),
	};

	if (argc == 2 && strcmp(argv[1], "--dispositions") == 0)
		return tell_dispositions();
	if (argc == 2 && strcmp(argv[1], "--nothing") == 0)
		return 0;
	if (argc == 2 && strcmp(argv[1], "--sleep") == 0)
		return sleep_on();
	if (argc == 2 && strncmp(argv[1], "--", 2) == 0)
		return crash(argv[1] + 2);
	if (argc < 4)
		return 2;
	self = argv[0];
	uri = argv[1];
	loader = argv[2];
	library = argv[3];
	without_handlers("ASAN_OPTIONS");
	without_handlers("TSAN_OPTIONS");
	without_handlers("UBSAN_OPTIONS");
	seed = argc > 4 ? strtoull(argv[4], NULL, 10) : (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
