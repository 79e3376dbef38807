/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <ctype.h>

#include <ndx/adapter.h>
#include <ndx/version.h>

#define LAST NDX_E_ACCESS_DENIED

static void every_status_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int a = LAST; a <= NDX_PENDING; a++) {
		const char *name = ndx_status_name((enum ndx_status)a);

		assert_memory_equal(name, "NDX_", 4);
		assert_string_not_equal(name, "NDX_?");
		assert_int_equal(strncmp(name, "NDX_E_", 6) == 0, a < 0);
		for (int b = LAST; b < a; b++)
			assert_string_not_equal(name, ndx_status_name((enum ndx_status)b));
	}
}

static void every_status_has_a_sentence_of_its_own(void **state)
{
	(void)state;
	for (int a = LAST; a <= NDX_PENDING; a++) {
		const char *text = ndx_status_text((enum ndx_status)a);

		assert_true(strlen(text) >= 4);
		assert_true(islower((unsigned char)text[0]));
		for (int b = LAST; b < a; b++)
			assert_string_not_equal(text, ndx_status_text((enum ndx_status)b));
	}
}

/* A status is for several objects: its sentence must name the one that failed. */
static void a_sentence_fits_all_that_the_status_is_for(void **state)
{
	static const struct {
		enum ndx_status status;
		const char *names[6];
	} cases[] = {
		{NDX_E_NOT_FOUND,
	         {"provider", "device", "interface", "plugin", "variant", "directory"}},
		{NDX_E_INVALID_CONFIG,
	         {"URI", "environment", "INI file", "parameter of a plugin", "two ends"}},
		{NDX_E_CONNECTION_ACTIVE,
	         {"queue pair", "connector", "connecting", "connected", "was before"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *text = ndx_status_text(cases[i].status);

		for (size_t k = 0; k < 6 && cases[i].names[k] != NULL; k++)
			if (strstr(text, cases[i].names[k]) == NULL)
				fail_msg("\"%s\" does not say \"%s\"", text, cases[i].names[k]);
	}
}

static void a_number_that_is_no_status_is_named_so(void **state)
{
	static const int wrong[] = {LAST - 1, NDX_PENDING + 1, INT32_MAX, INT32_MIN};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_string_equal(ndx_status_name((enum ndx_status)wrong[i]), "NDX_?");
		assert_string_equal(ndx_status_text((enum ndx_status)wrong[i]),
		                    "not a status of this library");
	}
}

static void every_capability_has_a_name_and_no_other_bit_has(void **state)
{
	(void)state;
	for (int bit = 0; bit < 31; bit++) {
		const char *name = ndx_capability_name((enum ndx_capability)(1 << bit));

		assert_int_equal(name != NULL, 1 << bit <= NDX_CAP_DMABUF);
	}
	assert_string_equal(ndx_capability_name(NDX_CAP_SRQ), "SRQ");
	assert_null(ndx_capability_name((enum ndx_capability)0));
	assert_null(ndx_capability_name((enum ndx_capability)(NDX_CAP_SRQ | NDX_CAP_LOOPBACK)));
}

static void the_version_is_that_of_the_header(void **state)
{
	char text[32];

	(void)state;
	(void)snprintf(text, sizeof(text), "%d.%d.%d", NDX_VERSION_MAJOR, NDX_VERSION_MINOR,
	               NDX_VERSION_PATCH);
	assert_string_equal(ndx_version(), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name_of_its_own),
		cmocka_unit_test(every_status_has_a_sentence_of_its_own),
		cmocka_unit_test(a_sentence_fits_all_that_the_status_is_for),
		cmocka_unit_test(a_number_that_is_no_status_is_named_so),
		cmocka_unit_test(every_capability_has_a_name_and_no_other_bit_has),
		cmocka_unit_test(the_version_is_that_of_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
