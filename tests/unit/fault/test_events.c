/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of an adapter, from the provider to the program. */
#include "rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

enum { MANY = 40, THREADS = 3, EACH = 200, CALLS = 10 };

static struct ndx_adapter *adapter;

/* The latest record of an event in the log. */
static struct {
	enum ndx_log_level level;
	char text[256];
	unsigned count;
} logged;

static void see(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	if (strstr(record->text, "fault:loop: port") == NULL)
		return;
	logged.level = record->level;
	logged.count++;
	(void)snprintf(logged.text, sizeof(logged.text), "%s", record->text);
}

static int open_adapter(void **state)
{
	(void)state;
	memset(&logged, 0, sizeof(logged));
	ndx_log_set_sink(see, NULL, NDX_LOG_INFO);
	return ndx_adapter_open("fault:loop", &adapter) == NDX_OK ? 0 : -1;
}

static int close_adapter(void **state)
{
	(void)state;
	ndx_adapter_close(adapter);
	adapter = NULL;
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	return 0;
}

/* Event number n of the device: the port goes down, up, down, ... */
static void report(unsigned n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "port 1 changed, time %u", n);
	fault_report_event(adapter,
	                   n % 2 == 1 ? NDX_ADAPTER_EVENT_PORT_DOWN : NDX_ADAPTER_EVENT_PORT_UP, 1,
	                   (int32_t)(1000 + n), text);
}

struct get {
	struct ndx_adapter_event event;
	struct ndx_overlapped ov;
};

static void start_get(struct get *get)
{
	memset(get, 0, sizeof(*get));
	get->event.size = sizeof(get->event);
	assert_int_equal(ndx_adapter_get_event(adapter, &get->event, &get->ov), NDX_PENDING);
}

static void is_event(struct get *get, unsigned n, unsigned lost)
{
	char text[32];

	assert_int_equal(ndx_overlapped_wait(&get->ov, RIG_PATIENCE_MS), NDX_OK);
	(void)snprintf(text, sizeof(text), "port 1 changed, time %u", n);
	assert_int_equal(get->event.size, sizeof(get->event));
	assert_int_equal(get->event.number, n);
	assert_int_equal(get->event.lost, lost);
	assert_int_equal(get->event.type,
	                 n % 2 == 1 ? NDX_ADAPTER_EVENT_PORT_DOWN : NDX_ADAPTER_EVENT_PORT_UP);
	assert_int_equal(get->event.port, 1);
	assert_int_equal(get->event.native, 1000 + n);
	assert_int_not_equal(get->event.time_ns, 0);
	assert_string_equal(get->event.text, text);
}

static void is_pending(struct get *get)
{
	assert_int_equal(ndx_overlapped_status(&get->ov), NDX_PENDING);
}

static void an_event_completes_one_operation(void **state)
{
	struct get first;
	struct get second;

	(void)state;
	start_get(&first);
	start_get(&second);
	is_pending(&first);
	report(1);
	is_event(&first, 1, 0);
	is_pending(&second);
	report(2);
	is_event(&second, 2, 0);
}

static void events_are_kept(void **state)
{
	struct get get;

	(void)state;
	report(1);
	report(2);
	for (unsigned n = 1; n <= 2; n++) {
		start_get(&get);
		is_event(&get, n, 0);
	}
	start_get(&get);
	is_pending(&get);
	report(3);
	is_event(&get, 3, 0);
}

/* The latest are kept, and what is lost is counted. */
static void what_is_not_kept_is_counted(void **state)
{
	const unsigned first = MANY - NDX_ADAPTER_EVENTS_KEPT + 1;
	struct get get;

	(void)state;
	for (unsigned n = 1; n <= MANY; n++)
		report(n);
	for (unsigned n = first; n <= MANY; n++) {
		start_get(&get);
		is_event(&get, n, n == first ? first - 1 : 0);
	}
	start_get(&get);
	is_pending(&get);
	report(MANY + 1);
	is_event(&get, MANY + 1, 0);
}

static void every_event_is_in_the_log(void **state)
{
	(void)state;
	report(1);
	assert_int_equal(logged.count, 1);
	assert_int_equal(logged.level, NDX_LOG_WARN);
	assert_non_null(strstr(logged.text, "fault:loop: port 1 changed, time 1 (native 1001)"));
	report(2);
	assert_int_equal(logged.count, 2);
	assert_int_equal(logged.level, NDX_LOG_INFO);
	fault_report_event(adapter, NDX_ADAPTER_EVENT_DEVICE_REMOVED, 0, 0, "port and all");
	assert_int_equal(logged.level, NDX_LOG_ERROR);
}

static void a_text_that_is_too_long_is_cut(void **state)
{
	char text[300];
	struct get get;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	start_get(&get);
	fault_report_event(adapter, NDX_ADAPTER_EVENT_SUBNET_CHANGE, 1, 0, text);
	assert_int_equal(ndx_overlapped_wait(&get.ov, RIG_PATIENCE_MS), NDX_OK);
	assert_int_equal(strlen(get.event.text), sizeof(get.event.text) - 1);
}

/* A program of an older version has a shorter structure. */
static void an_older_program_gets_what_fits(void **state)
{
	struct get get;

	(void)state;
	memset(&get, 0, sizeof(get));
	get.event.size = NDX_ADAPTER_EVENT_SIZE_0_1;
	assert_int_equal(ndx_adapter_get_event(adapter, &get.event, &get.ov), NDX_PENDING);
	report(1);
	assert_int_equal(ndx_overlapped_wait(&get.ov, RIG_PATIENCE_MS), NDX_OK);
	assert_int_equal(get.event.size, NDX_ADAPTER_EVENT_SIZE_0_1);
	assert_int_equal(get.event.number, 1);
}

/* ---- callbacks ---- */

static struct {
	struct get get;
	sem_t called;
	enum ndx_status last;
	enum ndx_status again; /* what the next operation returned */
} repeated;

static void get_again(struct ndx_overlapped *ov)
{
	repeated.last = ov->status;
	repeated.get.event.size = sizeof(repeated.get.event);
	repeated.again = ndx_adapter_get_event(adapter, &repeated.get.event, &repeated.get.ov);
	(void)sem_post(&repeated.called);
}

static void await_call(void)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RIG_PATIENCE_MS / 1000;
	assert_int_equal(sem_timedwait(&repeated.called, &until), 0);
}

/* Events that come before the callback has begun the next operation are kept for it. */
static void a_callback_gets_the_next(void **state)
{
	struct get other;

	(void)state;
	memset(&repeated, 0, sizeof(repeated));
	assert_int_equal(sem_init(&repeated.called, 0, 0), 0);
	repeated.get.ov.callback = get_again;
	repeated.get.event.size = sizeof(repeated.get.event);
	assert_int_equal(ndx_adapter_get_event(adapter, &repeated.get.event, &repeated.get.ov),
	                 NDX_PENDING);
	for (unsigned n = 1; n <= CALLS; n++)
		report(n);
	for (unsigned n = 1; n <= CALLS; n++)
		await_call();
	assert_int_equal(repeated.last, NDX_OK);
	/* the callback of a cancel begins an operation, too, ... */
	assert_int_equal(ndx_adapter_cancel(adapter), NDX_OK);
	await_call();
	assert_int_equal(repeated.last, NDX_E_CANCELED);
	assert_int_equal(repeated.again, NDX_PENDING);
	/* ... which the close cancels; that callback cannot begin another */
	start_get(&other);
	ndx_adapter_close(adapter);
	adapter = NULL;
	await_call();
	assert_int_equal(ndx_overlapped_status(&other.ov), NDX_E_CANCELED);
	assert_int_equal(repeated.last, NDX_E_CANCELED);
	assert_int_equal(repeated.again, NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(sem_trywait(&repeated.called), -1);
	(void)sem_destroy(&repeated.called);
}

/* ---- threads ---- */

static void *report_many(void *arg)
{
	(void)arg;
	for (unsigned n = 1; n <= EACH; n++)
		report(n);
	return NULL;
}

/* Every event is either reported or counted as lost, whatever the order of the threads. */
static void no_event_is_unaccounted_for(void **state)
{
	pthread_t threads[THREADS];
	uint64_t got = 0;
	uint64_t lost = 0;
	struct get get;

	(void)state;
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, report_many, NULL), 0);
	do {
		start_get(&get);
		assert_int_equal(ndx_overlapped_wait(&get.ov, RIG_PATIENCE_MS), NDX_OK);
		got++;
		lost += get.event.lost;
		assert_int_equal(get.event.number, got + lost);
	} while (get.event.number < (uint64_t)THREADS * EACH);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(got + lost, THREADS * EACH);
}

#define WITH_ADAPTER(test) cmocka_unit_test_setup_teardown(test, open_adapter, close_adapter)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ADAPTER(an_event_completes_one_operation),
		WITH_ADAPTER(events_are_kept),
		WITH_ADAPTER(what_is_not_kept_is_counted),
		WITH_ADAPTER(every_event_is_in_the_log),
		WITH_ADAPTER(a_text_that_is_too_long_is_cut),
		WITH_ADAPTER(an_older_program_gets_what_fits),
		WITH_ADAPTER(a_callback_gets_the_next),
		WITH_ADAPTER(no_event_is_unaccounted_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
