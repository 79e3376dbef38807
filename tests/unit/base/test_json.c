/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ndx/stats.h>

#include "base_json.h"

/* The text of an object with one member, which `build` makes. */
static json_t *made_by(void (*build)(struct base_json *j, json_t *to))
{
	struct base_json j = {.failed = false};
	json_t *root = json_object();
	char *text;

	build(&j, root);
	text = base_json_finish(&j, root);
	assert_non_null(text);
	root = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(root);
	return root;
}

static void put_odd_bytes(struct base_json *j, json_t *to)
{
	base_json_text(j, to, "text", "a\xff\n\x80~ z");
}

static void what_is_not_ascii_becomes_a_question_mark(void **state)
{
	json_t *root = made_by(put_odd_bytes);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(root, "text")), "a???~ z");
	json_decref(root);
}

static void put_a_long_text(struct base_json *j, json_t *to)
{
	char value[300];

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	base_json_text(j, to, "text", value);
}

static void a_long_text_is_cut(void **state)
{
	json_t *root = made_by(put_a_long_text);

	(void)state;
	assert_int_equal(json_string_length(json_object_get(root, "text")), 255);
	json_decref(root);
}

static void put_statuses(struct base_json *j, json_t *to)
{
	uint64_t counts[NDX_STATS_STATUSES] = {[0] = 5, [-NDX_E_CANCELED] = 7};

	base_json_statuses(j, to, "by", counts);
}

static void only_statuses_that_occurred_are_listed(void **state)
{
	json_t *root = made_by(put_statuses);
	const json_t *by = json_object_get(root, "by");

	(void)state;
	assert_int_equal(json_object_size(by), 2);
	assert_int_equal(json_integer_value(json_object_get(by, "NDX_OK")), 5);
	assert_int_equal(json_integer_value(json_object_get(by, "NDX_E_CANCELED")), 7);
	json_decref(root);
}

static void put_buckets(struct base_json *j, json_t *to)
{
	uint64_t full[NDX_STATS_BUCKETS] = {[1] = 3, [NDX_STATS_BUCKETS - 1] = 4};
	uint64_t some[NDX_STATS_BUCKETS] = {[2] = 9};
	uint64_t none[NDX_STATS_BUCKETS] = {0};

	base_json_buckets(j, to, "full", full);
	base_json_buckets(j, to, "some", some);
	base_json_buckets(j, to, "none", none);
}

static void buckets_end_with_the_last_that_is_not_empty(void **state)
{
	json_t *root = made_by(put_buckets);
	const json_t *some = json_object_get(root, "some");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(root, "full")), NDX_STATS_BUCKETS);
	assert_int_equal(json_array_size(some), 3);
	assert_int_equal(json_integer_value(json_array_get(some, 2)), 9);
	assert_int_equal(json_array_size(json_object_get(root, "none")), 0);
	json_decref(root);
}

static void one_member_that_failed_fails_the_whole(void **state)
{
	struct base_json j = {.failed = false};
	json_t *root = json_object();

	(void)state;
	base_json_put(&j, root, "lost", NULL);
	base_json_number(&j, root, "there", 1);
	assert_null(base_json_finish(&j, root));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_ascii_becomes_a_question_mark),
		cmocka_unit_test(a_long_text_is_cut),
		cmocka_unit_test(only_statuses_that_occurred_are_listed),
		cmocka_unit_test(buckets_end_with_the_last_that_is_not_empty),
		cmocka_unit_test(one_member_that_failed_fails_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
