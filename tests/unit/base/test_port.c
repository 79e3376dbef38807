/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that wait at a port, and how often and when they are woken. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "base_port.h"

#define LIMIT_MS 10000u
#define CONSUMERS 2
#define MOST 8

struct consumer {
	pthread_t thread;
	size_t max;
	struct ndx_overlapped *got[MOST];
	size_t count;
};

static struct {
	struct ndx_port *port;
	bool on;
	bool check_lock; /* another thread takes from the port while one is being woken */
	bool was_locked; /* ... and could not */
	uint32_t about;  /* consumers that are about to sleep, or do */
	uint32_t wakes;
	uint32_t back;   /* consumers that have slept, ... */
	uint32_t let_go; /* ... and stay there until this is set */
	uint32_t looked;
} at;

static void set_word(uint32_t *word, uint32_t value);

void __real_ndxp_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
void __wrap_ndxp_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
void __real_ndxp_futex_wake(uint32_t *word, int count);
void __wrap_ndxp_futex_wake(uint32_t *word, int count);

static void set_word(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	__real_ndxp_futex_wake(word, CONSUMERS);
}

static void add_one(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
	__real_ndxp_futex_wake(word, CONSUMERS);
}

/* False if it has not come that far within the limit. */
static bool await(const uint32_t *word, uint32_t least)
{
	const uint64_t deadline = ndxp_deadline(LIMIT_MS);
	uint32_t seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < least && ndxp_now_ns() < deadline)
		__real_ndxp_futex_wait(word, seen, deadline);
	return seen >= least;
}

/* In place of ndxp_futex_wait(): a consumer that comes back late. */
void __wrap_ndxp_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
	if (!at.on) {
		__real_ndxp_futex_wait(word, value, deadline_ns);
		return;
	}
	add_one(&at.about);
	__real_ndxp_futex_wait(word, value, deadline_ns);
	add_one(&at.back);
	(void)await(&at.let_go, 1);
}

static void *look(void *arg)
{
	struct ndx_overlapped *ov;

	(void)arg;
	(void)ndx_port_get(at.port, &ov, 0, 0);
	set_word(&at.looked, 1);
	return NULL;
}

/* In place of ndxp_futex_wake(): is the port free by then? */
void __wrap_ndxp_futex_wake(uint32_t *word, int count)
{
	pthread_t thread;

	if (at.on) {
		__atomic_fetch_add(&at.wakes, 1, __ATOMIC_ACQ_REL);
		if (at.check_lock && pthread_create(&thread, NULL, look, NULL) == 0) {
			at.was_locked = !await(&at.looked, 1);
			(void)pthread_detach(thread);
		}
	}
	__real_ndxp_futex_wake(word, count);
}

static void *consume(void *arg)
{
	struct consumer *c = arg;

	c->count = ndx_port_get(at.port, c->got, c->max, LIMIT_MS);
	return NULL;
}

/* Until all of them sleep, or are where they do nothing else any more. */
static void start_consumers(struct consumer *consumers, size_t count, size_t max)
{
	at.on = true;
	for (size_t i = 0; i < count; i++) {
		consumers[i].max = max;
		assert_int_equal(pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]),
		                 0);
	}
	assert_true(await(&at.about, (uint32_t)count));
}

static void end(struct consumer *consumers, size_t count)
{
	set_word(&at.let_go, 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(pthread_join(consumers[i].thread, NULL), 0);
	at.on = false;
}

static int make_port(void **state)
{
	(void)state;
	memset(&at, 0, sizeof(at));
	return ndx_port_create(&at.port) == NDX_OK ? 0 : -1;
}

static int drop_port(void **state)
{
	(void)state;
	ndx_port_close(at.port);
	return 0;
}

static void a_consumer_is_woken_when_the_port_is_free(void **state)
{
	struct ndx_overlapped ov = {.status = NDX_OK};
	struct consumer consumer;

	(void)state;
	at.check_lock = true;
	start_consumers(&consumer, 1, MOST);
	ndx_port_post(at.port, &ov);
	end(&consumer, 1);
	assert_int_equal(at.wakes, 1);
	assert_false(at.was_locked);
	assert_int_equal(consumer.count, 1);
}

static void a_consumer_is_woken_once_until_it_is_back(void **state)
{
	struct ndx_overlapped ovs[MOST];
	struct consumer consumer;

	(void)state;
	memset(ovs, 0, sizeof(ovs));
	start_consumers(&consumer, 1, MOST);
	ndx_port_post(at.port, &ovs[0]);
	assert_true(await(&at.back, 1));
	for (size_t i = 1; i < MOST; i++)
		ndx_port_post(at.port, &ovs[i]);
	assert_int_equal(at.wakes, 1);
	end(&consumer, 1);
	assert_int_equal(consumer.count, MOST);
	for (size_t i = 0; i < MOST; i++)
		assert_ptr_equal(consumer.got[i], &ovs[i]);
	/* no thread sleeps there: none is woken */
	at.on = true;
	ndx_port_post(at.port, &ovs[0]);
	at.on = false;
	assert_int_equal(at.wakes, 1);
	assert_int_equal(ndx_port_get(at.port, consumer.got, MOST, 0), 1);
}

static void each_consumer_is_woken_for_one(void **state)
{
	struct ndx_overlapped ovs[CONSUMERS];
	struct consumer consumers[CONSUMERS];

	(void)state;
	memset(ovs, 0, sizeof(ovs));
	start_consumers(consumers, CONSUMERS, 1);
	for (size_t i = 0; i < CONSUMERS; i++)
		ndx_port_post(at.port, &ovs[i]);
	end(consumers, CONSUMERS);
	assert_int_equal(at.wakes, CONSUMERS);
	for (size_t i = 0; i < CONSUMERS; i++)
		assert_int_equal(consumers[i].count, 1);
}

/* However late the consumer runs. */
static void a_consumer_that_sleeps_keeps_what_comes(void **state)
{
	struct ndx_overlapped ovs[2];
	struct ndx_overlapped *got = NULL;
	struct consumer consumer;

	(void)state;
	memset(ovs, 0, sizeof(ovs));
	start_consumers(&consumer, 1, 1);
	ndx_port_post(at.port, &ovs[0]);
	ndx_port_post(at.port, &ovs[1]);
	assert_int_equal(ndx_port_get(at.port, &got, 1, 0), 1);
	assert_ptr_equal(got, &ovs[1]);
	assert_int_equal(ndx_port_get(at.port, &got, 1, 0), 0);
	end(&consumer, 1);
	assert_int_equal(consumer.count, 1);
	assert_ptr_equal(consumer.got[0], &ovs[0]);
}

static void a_waiter_that_has_given_up_is_not_woken(void **state)
{
	struct ndx_overlapped ov = {.status = NDX_OK};
	struct ndx_overlapped *got;

	(void)state;
	at.on = true;
	at.let_go = 1;
	/* a thread that is held up finds its time over before it sleeps */
	for (int i = 0; i < 1000 && at.about == 0; i++)
		assert_int_equal(ndx_port_get(at.port, &got, 1, 1), 0);
	assert_int_not_equal(at.about, 0);
	ndx_port_post(at.port, &ov);
	at.on = false;
	assert_int_equal(at.wakes, 0);
	assert_int_equal(ndx_port_get(at.port, &got, 1, 0), 1);
}

/* ---- many at once: no thread sleeps on while there is an object to take ---- */

#define ROUNDS 20000u

static uint32_t taken;

static void *take_many(void *arg)
{
	struct ndx_overlapped *got[MOST];
	unsigned seed = *(const unsigned *)arg;
	bool ended = false;

	while (!ended) {
		const unsigned draw = (unsigned)rand_r(&seed);
		const size_t n = ndx_port_get(at.port, got, draw % 3 + 1,
		                              draw & 64 ? LIMIT_MS : draw / 128 % 2);

		if (n == 0 && (draw & 64))
			return NULL; /* forgotten: what is missing is seen */
		for (size_t i = 0; i < n; i++) {
			if (got[i]->context == NULL)
				add_one(&taken);
			else if (ended)
				ndx_port_post(at.port, got[i]); /* the other one's */
			else
				ended = true;
		}
	}
	return NULL;
}

static void no_thread_sleeps_while_there_are_objects(void **state)
{
	struct ndx_overlapped *ovs = calloc(ROUNDS, sizeof(*ovs));
	struct ndx_overlapped last[CONSUMERS];
	unsigned seeds[CONSUMERS];
	pthread_t threads[CONSUMERS];
	unsigned seed = (unsigned)ndxp_now_ns();

	(void)state;
	assert_non_null(ovs);
	print_message("seed %u\n", seed);
	taken = 0;
	memset(last, 0, sizeof(last));
	for (size_t i = 0; i < CONSUMERS; i++) {
		seeds[i] = (unsigned)rand_r(&seed);
		assert_int_equal(pthread_create(&threads[i], NULL, take_many, &seeds[i]), 0);
	}
	for (uint32_t i = 0; i < ROUNDS; i++) {
		ndx_port_post(at.port, &ovs[i]);
		/* mostly they are asleep again by the next one */
		if ((unsigned)rand_r(&seed) % 4 != 0)
			assert_true(await(&taken, i + 1));
	}
	assert_true(await(&taken, ROUNDS));
	for (size_t i = 0; i < CONSUMERS; i++) {
		last[i].context = &last[i];
		ndx_port_post(at.port, &last[i]);
	}
	for (size_t i = 0; i < CONSUMERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(taken, ROUNDS);
	free(ovs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_consumer_is_woken_when_the_port_is_free,
	                                        make_port, drop_port),
		cmocka_unit_test_setup_teardown(a_consumer_is_woken_once_until_it_is_back,
	                                        make_port, drop_port),
		cmocka_unit_test_setup_teardown(each_consumer_is_woken_for_one, make_port,
	                                        drop_port),
		cmocka_unit_test_setup_teardown(a_consumer_that_sleeps_keeps_what_comes, make_port,
	                                        drop_port),
		cmocka_unit_test_setup_teardown(a_waiter_that_has_given_up_is_not_woken, make_port,
	                                        drop_port),
		cmocka_unit_test_setup_teardown(no_thread_sleeps_while_there_are_objects, make_port,
	                                        drop_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
