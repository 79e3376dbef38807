/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ndx/spi/table.h>

#define BUCKETS 4u

static void the_newest_of_equals_is_found_first(void **state)
{
	struct ndxp_table_node *buckets[BUCKETS] = {0};
	static struct ndxp_table_node a, b, c;
	struct ndxp_table t;

	(void)state;
	ndxp_table_init(&t, buckets, BUCKETS);
	ndxp_table_add(&t, &a, 5);
	ndxp_table_add(&t, &b, 5 + BUCKETS);
	ndxp_table_add(&t, &c, 5);
	assert_ptr_equal(ndxp_table_first(&t, 5), &c);
	assert_ptr_equal(ndxp_table_next(&c), &a);
	assert_null(ndxp_table_next(&a));
	assert_ptr_equal(ndxp_table_first(&t, 5 + BUCKETS), &b);
	assert_null(ndxp_table_first(&t, 5 + 2 * BUCKETS));
	assert_null(ndxp_table_first(&t, 6));
	ndxp_table_remove(&c);
	assert_ptr_equal(ndxp_table_first(&t, 5), &a);
	ndxp_table_remove(&a);
	assert_null(ndxp_table_first(&t, 5));
	assert_ptr_equal(ndxp_table_first(&t, 5 + BUCKETS), &b);
	ndxp_table_remove(&b);
	assert_null(ndxp_table_walk(&t, NULL));
}

static void a_removed_node_is_in_no_table(void **state)
{
	struct ndxp_table_node *buckets[BUCKETS] = {0};
	static struct ndxp_table_node a, b;
	struct ndxp_table t;

	(void)state;
	ndxp_table_init(&t, buckets, BUCKETS);
	ndxp_table_remove(&a); /* never added */
	ndxp_table_add(&t, &a, 1);
	ndxp_table_remove(&a);
	ndxp_table_add(&t, &b, 1);
	ndxp_table_remove(&a);
	assert_ptr_equal(ndxp_table_first(&t, 1), &b);
	assert_null(ndxp_table_next(&b));
	ndxp_table_add(&t, &a, 2);
	assert_ptr_equal(ndxp_table_first(&t, 2), &a);
}

static void a_walk_meets_each_node_once(void **state)
{
	struct ndxp_table_node *buckets[BUCKETS] = {0};
	static struct ndxp_table_node nodes[11];
	unsigned met[11] = {0};
	struct ndxp_table t;

	(void)state;
	ndxp_table_init(&t, buckets, BUCKETS);
	assert_null(ndxp_table_walk(&t, NULL));
	/* the last bucket of all, then some with long chains, some empty */
	ndxp_table_add(&t, &nodes[0], BUCKETS - 1);
	for (size_t i = 1; i < 11; i++)
		ndxp_table_add(&t, &nodes[i], i * i * i);
	for (struct ndxp_table_node *n = ndxp_table_walk(&t, NULL); n != NULL;
	     n = ndxp_table_walk(&t, n))
		met[n - nodes]++;
	for (size_t i = 0; i < 11; i++)
		assert_int_equal(met[i], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_of_equals_is_found_first),
		cmocka_unit_test(a_removed_node_is_in_no_table),
		cmocka_unit_test(a_walk_meets_each_node_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
