/* SPDX-License-Identifier: BSD-2-Clause */
/* How a session finds a server: the order, the pauses, which servers are given up, what has run
 * out. */
#include "scripted.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "closed_port.h"

enum { ENTRIES = 128 };

static unsigned count_kind(struct ndx_session *s, enum ndx_history_kind kind)
{
	struct ndx_history_entry e[ENTRIES];
	size_t n = ENTRIES;
	unsigned count = 0;

	assert_int_equal(ndx_session_get_history(s, e, &n, NULL), NDX_OK);
	for (size_t i = 0; i < n; i++)
		count += e[i].kind == kind;
	return count;
}

static int served(struct server *s)
{
	return __atomic_load_n(&s->served, __ATOMIC_RELAXED);
}

/* Whatever is wrong with those before, the backup is asked, and at once. */
static void the_backup_is_asked_whatever_the_first_answers(void **state)
{
	static const enum conduct conducts[] = {REFUSING, MAD, SILENT};
	struct rig *r = *state;

	for (size_t i = 0; i < sizeof(conducts) / sizeof(conducts[0]); i++) {
		struct ndx_session *s;
		struct server first;
		struct server backup;
		const char *addresses[2] = {first.address, backup.address};

		server_start(&first, conducts[i], r->variant);
		server_start(&backup, GOOD, r->variant);
		s = rig_session(r, addresses, 2, conducts[i] == SILENT ? 300 : WAIT_MS, WAIT_MS);
		if (ndx_session_run(s) != NDX_OK)
			fail_msg("conduct %d: %s", (int)conducts[i], ndx_last_error());
		assert_string_equal(ndx_session_get_server(s), backup.address);
		assert_int_equal(served(&first), 1);
		assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT), 2);
		assert_int_equal(count_kind(s, NDX_HISTORY_BACKOFF), 0);
		ndx_session_close(s);
		server_stop(&backup);
		server_stop(&first);
	}
}

static void a_pause_comes_when_each_server_was_asked(void **state)
{
	struct rig *r = *state;
	char gone[2][CLOSED_PORT_TEXT];
	const char *addresses[2] = {gone[0], gone[1]};
	const int fds[2] = {closed_port(gone[0]), closed_port(gone[1])};
	static const enum ndx_history_kind wanted[] = {
		NDX_HISTORY_CONNECT, NDX_HISTORY_CONNECT, NDX_HISTORY_BACKOFF, NDX_HISTORY_CONNECT,
		NDX_HISTORY_CONNECT, NDX_HISTORY_BACKOFF, NDX_HISTORY_CONNECT, NDX_HISTORY_CONNECT};
	enum { WANTED = sizeof(wanted) / sizeof(wanted[0]) };
	struct ndx_history_entry e[ENTRIES];
	struct ndx_session *s = rig_session(r, addresses, 2, WAIT_MS, WAIT_MS);
	size_t count = ENTRIES;

	assert_int_equal(ndx_session_run(s), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(ndx_session_get_history(s, e, &count, NULL), NDX_OK);
	assert_int_equal(count, WANTED);
	for (size_t i = 0; i < WANTED; i++)
		assert_int_equal(e[i].kind, wanted[i]);
	ndx_session_close(s);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void a_server_that_lacks_the_variant_is_asked_once(void **state)
{
	struct rig *r = *state;
	char gone[CLOSED_PORT_TEXT];
	const int fd = closed_port(gone);
	struct server refusing;
	struct server mad;
	const char *one_lasts[2] = {refusing.address, gone};
	const char *both_last[2] = {refusing.address, mad.address};
	struct ndx_session *s;

	server_start(&refusing, REFUSING, r->variant);
	server_start(&mad, MAD, r->variant);
	s = rig_session(r, one_lasts, 2, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT), 1 + 3);
	assert_int_equal(served(&refusing), 1);
	ndx_session_close(s);
	/* No server is left that the session could wait for. */
	s = rig_session(r, both_last, 2, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_E_REMOTE_ERROR);
	says("speaks another protocol");
	assert_int_equal(count_kind(s, NDX_HISTORY_CONNECT), 2);
	assert_int_equal(count_kind(s, NDX_HISTORY_BACKOFF), 0);
	ndx_session_close(s);
	server_stop(&mad);
	server_stop(&refusing);
	(void)close(fd);
}

static void the_sessions_time_is_the_frameworks_affair(void **state)
{
	struct rig *r = *state;
	char gone[CLOSED_PORT_TEXT];
	const char *address = gone;
	const int fd = closed_port(gone);
	struct ndx_session_error e;
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.attempts = UINT32_MAX;
	attr.session_timeout_ms = 150;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	assert_int_equal(ndx_session_run(s), NDX_E_IO_TIMEOUT);
	e.size = sizeof(e);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_FRAMEWORK);
	says("the session's time, 150 ms, is over while connecting: server 127.0.0.1:");
	ndx_session_close(s);
	(void)close(fd);
}

static void *run_session(void *arg)
{
	return (void *)(intptr_t)ndx_session_run(arg);
}

static void count_faults(void *arg, const struct ndx_log_record *record)
{
	if (strstr(record->text, "no socket") != NULL)
		(void)__atomic_add_fetch((uint32_t *)arg, 1, __ATOMIC_SEQ_CST);
}

/* What this host lacks is waited for like a server that is away. */
static void a_session_without_a_thread_says_what_lacks(void **state)
{
	struct rig *r = *state;
	struct ndx_session_attr attr;
	struct ndx_session *s = NULL;
	const char *address = "127.0.0.1:1";
	struct rlimit before;
	const int next = dup(STDERR_FILENO);

	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, before.rlim_max}),
	                 0);
	assert_int_equal(ndx_session_create(&attr, &s), NDX_E_INSUFFICIENT_RESOURCES);
	says("no descriptor for the control thread ndx-neg; see ulimit -n");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(s);
}

static void a_fault_of_our_own_is_no_reason_to_hurry_or_to_stop(void **state)
{
	struct rig *r = *state;
	struct ndx_session_attr attr;
	struct ndx_session *s;
	struct server server;
	const char *address = server.address;
	struct rlimit before;
	uint32_t faults = 0; /* two records each: the failure, and that the session goes on */
	struct ndx_history_entry e[ENTRIES];
	pthread_t thread;
	void *result;
	size_t n;
	int next;

	server_start(&server, GOOD, r->variant);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	ndx_log_set_sink(count_faults, &faults, NDX_LOG_WARN);
	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.attempts = 1000;
	attr.backoff_ms = 20;
	attr.backoff_most_ms = 40;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	/* No further descriptor; poll(2) still takes those that there are. */
	next = dup(STDERR_FILENO);
	assert_true(next >= 0);
	(void)close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, before.rlim_max}),
	                 0);
	assert_int_equal(pthread_create(&thread, NULL, run_session, s), 0);
	for (int ms = 0; ms < WAIT_MS && __atomic_load_n(&faults, __ATOMIC_SEQ_CST) < 6; ms++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_int_equal((intptr_t)result, NDX_OK);
	/* A pause for each attempt but the first, of no less than a half. */
	n = ENTRIES;
	assert_int_equal(ndx_session_get_history(s, e, &n, NULL), NDX_OK);
	for (size_t i = 0; i < n; i++)
		assert_true(e[i].kind != NDX_HISTORY_BACKOFF || e[i].duration_us >= 10000);
	assert_int_equal(count_kind(s, NDX_HISTORY_BACKOFF) + 1,
	                 count_kind(s, NDX_HISTORY_CONNECT));
	assert_true(count_kind(s, NDX_HISTORY_CONNECT) >= 4);
	ndx_session_close(s);
	server_stop(&server);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(the_backup_is_asked_whatever_the_first_answers),
		T(a_pause_comes_when_each_server_was_asked),
		T(a_server_that_lacks_the_variant_is_asked_once),
		T(a_session_without_a_thread_says_what_lacks),
		T(a_fault_of_our_own_is_no_reason_to_hurry_or_to_stop),
		T(the_sessions_time_is_the_frameworks_affair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
