/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include "schema.h"

static const struct ndx_plugin_param params[] = {
	{.name = "mtu", .type = NDX_PARAM_INT, .least = 256, .most = 4096, .initial = "1024"},
	{.name = "mode", .type = NDX_PARAM_CHOICE, .choices = "rc|uc", .initial = "rc"},
	{.name = "fast", .type = NDX_PARAM_BOOL, .initial = "false"},
	{.name = "label", .type = NDX_PARAM_STRING, .least = 1, .most = 8},
	{.name = "card",
         .type = NDX_PARAM_STRING,
         .least = 1,
         .most = 8,
         .required = true,
         .help = "which card"},
	{.name = NULL},
};

static enum ndx_status values(const struct ndx_setting *settings, size_t count,
                              struct ndx_plugin_value **out)
{
	return schema_values(params, "variant \"v\"", settings, count, out);
}

static void values_come_in_the_schemas_order(void **state)
{
	const struct ndx_setting settings[] = {{"card", "two"}, {"fast", "true"}, {"mtu", "0x200"}};
	struct ndx_plugin_value *v = NULL;

	(void)state;
	assert_int_equal(values(settings, 3, &v), NDX_OK);
	assert_int_equal(v[0].number, 512);
	assert_string_equal(v[0].text, "0x200");
	assert_true(v[0].given);
	assert_int_equal(v[1].number, 0);
	assert_string_equal(v[1].text, "rc");
	assert_int_equal(v[2].number, 1);
	assert_false(v[3].given);
	assert_string_equal(v[3].text, "");
	assert_string_equal(v[4].text, "two");
	assert_ptr_equal(v[4].param, &params[4]);
	free(v);
}

static void what_does_not_fit_is_named(void **state)
{
	static const struct {
		struct ndx_setting setting;
		const char *says;
	} cases[] = {
		{{"mtu", "255"}, "parameter \"mtu\" is \"255\", it may be 256 to 4096"},
		{{"mtu", "4097"}, "256 to 4096"},
		{{"mtu", "1k"}, "256 to 4096"},
		{{"mtu", ""}, "256 to 4096"},
		{{"mtu", " 512"}, "256 to 4096"},
		{{"mtu", "99999999999999999999"}, "256 to 4096"},
		{{"mode", "ud"}, "it may be rc|uc"},
		{{"mode", ""}, "it may be rc|uc"},
		{{"mode", "rc|uc"}, "it may be rc|uc"},
		{{"fast", "yes"}, "true or false"},
		{{"label", ""}, "1 to 8 bytes"},
		{{"label", "123456789"}, "1 to 8 bytes"},
		{{"mut", "512"}, "has no parameter \"mut\"; did you mean \"mtu\"?"},
		{{"card", "again"}, "\"card\" is given twice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ndx_setting settings[] = {{"card", "one"}, cases[i].setting};
		struct ndx_plugin_value *v = NULL;

		assert_int_equal(values(settings, 2, &v), NDX_E_INVALID_CONFIG);
		assert_null(v);
		says(cases[i].says);
	}
}

static void what_is_required_must_be_given(void **state)
{
	struct ndx_plugin_value *v = NULL;

	(void)state;
	assert_int_equal(values(NULL, 0, &v), NDX_E_INVALID_CONFIG);
	says("needs parameter \"card\": which card");
}

static void a_sane_schema_passes(void **state)
{
	char why[200];

	(void)state;
	assert_int_equal(schema_check(params, why, sizeof(why)), NDX_OK);
	assert_int_equal(schema_check(NULL, why, sizeof(why)), NDX_OK);
	assert_int_equal(schema_count(params), 5);
	assert_int_equal(schema_count(NULL), 0);
}

static void each_fault_of_a_schema_is_found(void **state)
{
	static const struct {
		struct ndx_plugin_param param;
		const char *says;
	} cases[] = {
		{{.name = "Big", .type = NDX_PARAM_BOOL}, "malformed"},
		{{.name = "first", .type = NDX_PARAM_BOOL}, "two of that name"},
		{{.name = "x", .type = NDX_PARAM_INT, .least = 2, .most = 1}, "range is empty"},
		{{.name = "x", .type = NDX_PARAM_STRING, .least = -1, .most = 1}, "lengths"},
		{{.name = "x", .type = NDX_PARAM_STRING, .most = 1 << 20}, "too large"},
		{{.name = "x", .type = NDX_PARAM_CHOICE}, "no choices"},
		{{.name = "x", .type = (enum ndx_param_type)9}, "type is unknown"},
		{{.name = "x", .type = NDX_PARAM_INT, .most = 5, .initial = "6"},
	         "initial value is not allowed"},
		{{.name = "x", .type = NDX_PARAM_BOOL, .initial = "true", .required = true},
	         "required and has an initial value"},
	};
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct ndx_plugin_param schema[] = {
			{.name = "first", .type = NDX_PARAM_BOOL}, cases[i].param, {.name = NULL}};

		assert_int_equal(schema_check(schema, why, sizeof(why)), NDX_E_INVALID_CONFIG);
		if (strstr(why, cases[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", why, cases[i].says);
	}
}

static void a_schema_without_an_end_is_refused(void **state)
{
	struct ndx_plugin_param endless[SCHEMA_PARAMS_MAX + 1];
	char why[200];

	(void)state;
	for (size_t i = 0; i <= SCHEMA_PARAMS_MAX; i++)
		endless[i] = (struct ndx_plugin_param){.name = "x", .type = NDX_PARAM_BOOL};
	assert_int_equal(schema_check(endless, why, sizeof(why)), NDX_E_INVALID_CONFIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_in_the_schemas_order),
		cmocka_unit_test(what_does_not_fit_is_named),
		cmocka_unit_test(what_is_required_must_be_given),
		cmocka_unit_test(a_sane_schema_passes),
		cmocka_unit_test(each_fault_of_a_schema_is_found),
		cmocka_unit_test(a_schema_without_an_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
