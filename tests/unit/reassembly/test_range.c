/* SPDX-License-Identifier: BSD-2-Clause */
/* Counted memory, sets of intervals, the hash table. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include "range.h"

static struct mem mem = {.limit = 1 << 20};

static void memory_is_counted_and_bounded(void **state)
{
	struct mem small = {.limit = 100};
	void *a, *b;

	(void)state;
	a = mem_get(&small, 50);
	assert_non_null(a);
	assert_null(mem_get(&small, 50));
	assert_null(mem_get(&small, SIZE_MAX));
	b = mem_resize(&small, a, 50, 70);
	assert_non_null(b);
	assert_null(mem_resize(&small, b, 70, 200));
	assert_int_equal(small.held, 86);
	mem_put(&small, b, 70);
	mem_put(&small, NULL, 70);
	assert_int_equal(small.held, 0);
	assert_int_equal(small.peak, 86);
}

static void intervals_join_where_they_touch(void **state)
{
	struct range_set s = {0};
	struct range gap;
	uint64_t fresh;

	(void)state;
	assert_true(range_add(&s, &mem, 10, 20, &fresh));
	assert_int_equal(fresh, 10);
	assert_null(s.more);
	assert_true(range_add(&s, &mem, 20, 30, &fresh));
	assert_int_equal(s.count, 1);
	assert_true(range_add(&s, &mem, 40, 50, &fresh));
	assert_true(range_add(&s, &mem, 60, 70, &fresh));
	assert_int_equal(s.count, 3);
	assert_true(range_gap(&s, 10, 70, &gap));
	assert_int_equal(gap.from, 30);
	assert_int_equal(gap.to, 40);
	assert_true(range_add(&s, &mem, 25, 65, &fresh));
	assert_int_equal(fresh, 20);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.covered, 60);
	assert_true(range_covers(&s, 10, 70));
	assert_true(range_covers(&s, 5, 5));
	assert_false(range_covers(&s, 9, 70));
	assert_false(range_covers(&s, 10, 71));
	assert_true(range_gap(&s, 0, 100, &gap));
	assert_int_equal(gap.to, 10);
	range_free(&s, &mem);
	assert_int_equal(mem.held, 0);
}

static void random_intervals_agree_with_a_map_of_bytes(void **state)
{
	uint8_t map[512] = {0};
	struct range_set s = {0};
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < 400; i++) {
		uint64_t from, to, fresh, expected = 0, covered = 0;

		random = random * 1103515245 + 12345;
		from = random >> 8 & 511;
		to = from + (random >> 20 & 15);
		if (to > 512)
			to = 512;
		for (uint64_t k = from; k < to; k++) {
			expected += map[k] == 0;
			map[k] = 1;
		}
		assert_true(range_add(&s, &mem, from, to, &fresh));
		assert_int_equal(fresh, expected);
		for (uint64_t k = 0; k < 512; k++) {
			covered += map[k];
			assert_int_equal(range_covers(&s, k, k + 1), map[k]);
		}
		assert_int_equal(s.covered, covered);
	}
	range_free(&s, &mem);
}

static void a_set_too_ragged_is_refused(void **state)
{
	struct mem large = {.limit = 1 << 24};
	struct range_set s = {0};
	uint64_t fresh, i = 0;

	(void)state;
	while (range_add(&s, &large, 2 * i, 2 * i + 1, &fresh))
		i++;
	assert_int_equal(i, 65536);
	assert_int_equal(s.covered, 65536);
	range_free(&s, &large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_counted_and_bounded),
		cmocka_unit_test(intervals_join_where_they_touch),
		cmocka_unit_test(random_intervals_agree_with_a_map_of_bytes),
		cmocka_unit_test(a_set_too_ragged_is_refused),
	};

	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
