/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include "suggest.h"

static void distances_count_slips_of_the_finger(void **state)
{
	static const struct {
		const char *a;
		const char *b;
		unsigned distance;
	} cases[] = {
		{"", "", 0},          {"", "abc", 3},           {"same", "same", 0},
		{"LOUD", "loud", 0},  {"lopo", "loop", 1},      {"lop", "loop", 1},
		{"looop", "loop", 1}, {"liop", "loop", 1},      {"pool", "loop", 2},
		{"abcd", "badc", 2},  {"kitten", "sitting", 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(suggest_distance(cases[i].a, cases[i].b), cases[i].distance);
		assert_int_equal(suggest_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
}

static void words_that_are_too_long_are_far_from_everything(void **state)
{
	char word[SUGGEST_WORD + 2];

	(void)state;
	memset(word, 'a', sizeof(word));
	word[SUGGEST_WORD + 1] = '\0';
	assert_int_equal(suggest_distance(word, word), SUGGEST_WORD + 1);
	assert_int_equal(suggest_distance("a", word), SUGGEST_WORD + 1);
	word[SUGGEST_WORD] = '\0';
	assert_int_equal(suggest_distance(word, word), 0);
	assert_int_equal(suggest_distance("", word), SUGGEST_WORD);
}

static void the_nearest_name_is_asked_for_and_all_are_listed(void **state)
{
	struct suggest s;
	char text[SUGGEST_TEXT];

	(void)state;
	suggest_begin(&s, "ifcae");
	suggest_offer(&s, "trust", "lan|none");
	suggest_offer(&s, "iface", "network interface");
	suggest_offer(&s, "depth", NULL);
	assert_string_equal(suggest_nearest(&s), "iface");
	assert_string_equal(suggest_text(&s, text),
	                    "did you mean \"iface\"? There are: trust (lan|none), iface (network "
	                    "interface), depth");
}

static void a_word_that_is_like_none_gets_the_list_only(void **state)
{
	struct suggest s;
	char text[SUGGEST_TEXT];

	(void)state;
	suggest_begin(&s, "quux");
	suggest_offer(&s, "loop", NULL);
	assert_string_equal(suggest_nearest(&s), "");
	assert_string_equal(suggest_text(&s, text), "there are: loop");
}

static void a_list_of_nothing_says_so(void **state)
{
	struct suggest s;
	char text[SUGGEST_TEXT];

	(void)state;
	suggest_begin(&s, "loop");
	assert_string_equal(suggest_nearest(&s), "");
	assert_string_equal(suggest_text(&s, text), "there are none");
}

static void a_list_that_does_not_fit_ends_with_dots(void **state)
{
	struct suggest s;
	char text[SUGGEST_TEXT];

	(void)state;
	suggest_begin(&s, "name");
	for (int i = 0; i < 1000; i++)
		suggest_offer(&s, "some-other-name", "of something");
	suggest_offer(&s, "nane", NULL);
	(void)suggest_text(&s, text);
	assert_string_equal(suggest_nearest(&s), "nane");
	assert_true(strlen(text) < SUGGEST_TEXT);
	assert_string_equal(text + strlen(text) - 6, "), ...");
}

static void a_part_of_a_name_brings_the_whole_name_unlisted(void **state)
{
	struct suggest s;
	char text[SUGGEST_TEXT];

	(void)state;
	suggest_begin(&s, "dveice");
	suggest_offer(&s, "loop", NULL);
	suggest_whole(&s, "device", "provider:device");
	suggest_whole(&s, "other", "provider:other");
	assert_string_equal(suggest_text(&s, text),
	                    "did you mean \"provider:device\"? There are: loop");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_count_slips_of_the_finger),
		cmocka_unit_test(words_that_are_too_long_are_far_from_everything),
		cmocka_unit_test(the_nearest_name_is_asked_for_and_all_are_listed),
		cmocka_unit_test(a_word_that_is_like_none_gets_the_list_only),
		cmocka_unit_test(a_list_of_nothing_says_so),
		cmocka_unit_test(a_part_of_a_name_brings_the_whole_name_unlisted),
		cmocka_unit_test(a_list_that_does_not_fit_ends_with_dots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
