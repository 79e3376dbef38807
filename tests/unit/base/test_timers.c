/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a loop's timers, whatever is added and removed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_timers.h"

#define TIMERS 200u
#define STEPS 200000u
#define DEADLINES 64u /* few, so that many are equal */

static uint64_t seed;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

static uint64_t earliest(const struct ndxp_timer *timers)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < TIMERS; i++) {
		if (timers[i].armed && timers[i].deadline_ns < first)
			first = timers[i].deadline_ns;
	}
	return first;
}

static void check_first(const struct base_timers *heap, const struct ndxp_timer *timers)
{
	const uint64_t first = earliest(timers);

	if (first == UINT64_MAX) {
		assert_null(heap->first);
		return;
	}
	assert_non_null(heap->first);
	assert_true(heap->first->armed);
	assert_int_equal(heap->first->deadline_ns, first);
}

/* The first one is always the earliest of those that were added and not removed. */
static void the_earliest_timer_is_the_first(void **state)
{
	static struct ndxp_timer timers[TIMERS];
	struct base_timers heap = {0};
	const char *again = getenv("NDX_SEED");

	(void)state;
	seed = again != NULL ? strtoull(again, NULL, 0) : (uint64_t)(uintptr_t)&heap;
	print_message("NDX_SEED=%llu\n", (unsigned long long)seed);
	for (unsigned step = 0; step < STEPS; step++) {
		struct ndxp_timer *timer = &timers[random_below(TIMERS)];

		if (random_below(3) == 0 && heap.first != NULL)
			timer = heap.first; /* as a timer that has run out */
		if (timer->armed) {
			base_timers_remove(&heap, timer);
			timer->armed = false;
		} else {
			timer->deadline_ns = random_below(DEADLINES);
			base_timers_add(&heap, timer);
			timer->armed = true;
		}
		check_first(&heap, timers);
	}
	while (heap.first != NULL) {
		struct ndxp_timer *timer = heap.first;

		assert_true(timer->armed);
		base_timers_remove(&heap, timer);
		timer->armed = false;
		check_first(&heap, timers);
	}
	assert_int_equal(earliest(timers), UINT64_MAX);
}

/* Timers that were set in this order run in the order of their deadlines. */
static void timers_leave_in_order(void **state)
{
	static struct ndxp_timer timers[TIMERS];
	struct base_timers heap = {0};

	(void)state;
	for (unsigned i = 0; i < TIMERS; i++) {
		timers[i].deadline_ns = (i * 77u) % TIMERS; /* each number once */
		base_timers_add(&heap, &timers[i]);
	}
	for (unsigned i = 0; i < TIMERS; i++) {
		assert_non_null(heap.first);
		assert_int_equal(heap.first->deadline_ns, i);
		base_timers_remove(&heap, heap.first);
	}
	assert_null(heap.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_earliest_timer_is_the_first),
		cmocka_unit_test(timers_leave_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
