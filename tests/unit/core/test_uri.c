/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include "uri.h"

static struct seen seen;

static int listen_to_log(void **state)
{
	(void)state;
	ndx_log_set_sink(see, &seen, NDX_LOG_ERROR);
	return 0;
}

/* Malformed: the text says where it stands and `part`; the outcome is untouched. */
static void is_refused(const char *text, const char *part)
{
	struct uri uri;
	struct uri before;

	memset(&uri, 0x5a, sizeof(uri));
	memcpy(&before, &uri, sizeof(uri));
	failed_with(&seen, uri_parse(text, "$PLACE", &uri), NDX_E_INVALID_CONFIG);
	says("$PLACE");
	says(part);
	assert_memory_equal(&uri, &before, sizeof(uri));
}

static void a_provider_alone_is_a_uri(void **state)
{
	struct uri uri;

	(void)state;
	assert_int_equal(uri_parse("loop", "URI", &uri), NDX_OK);
	assert_string_equal(uri.provider, "loop");
	assert_string_equal(uri.device, "");
	assert_int_equal(uri.option_count, 0);
}

static void device_and_options_are_taken_apart_and_decoded(void **state)
{
	struct uri uri;

	(void)state;
	assert_int_equal(uri_parse("a-b_9:x%3a:y%2F?k=1&long-key=a%20b%3D=&z=%c3%A9", "URI", &uri),
	                 NDX_OK);
	assert_string_equal(uri.provider, "a-b_9");
	assert_string_equal(uri.device, "x::y/");
	assert_int_equal(uri.option_count, 3);
	assert_string_equal(uri.options[0].key, "k");
	assert_string_equal(uri.options[0].value, "1");
	assert_string_equal(uri.options[1].key, "long-key");
	assert_string_equal(uri.options[1].value, "a b==");
	assert_string_equal(uri.options[2].value, "\xc3\xa9");
}

static void options_need_no_device(void **state)
{
	struct uri uri;

	(void)state;
	assert_int_equal(uri_parse("p?k=a:b", "URI", &uri), NDX_OK);
	assert_string_equal(uri.device, "");
	assert_string_equal(uri.options[0].value, "a:b");
}

static void what_is_malformed_is_refused_with_its_position(void **state)
{
	static const struct {
		const char *text;
		const char *part;
	} cases[] = {
		{"", "is empty; write PROVIDER[:DEVICE][?KEY=VALUE[&KEY=VALUE]...]"},
		{":x", "does not start with the name of a provider"},
		{"?k=v", "does not start with the name of a provider"},
		{"l\xc3\xb6p", "at position 2 cannot be in the name of a provider"},
		{"9p", "character '9' at position 1"},
		{"lo/op", "character '/' at position 3"},
		{"../../evil", "character '.' at position 1"},
		{"abcdefghijklmnop", "longer than 15 characters"},
		{"p:", "no device after the ':' at position 2"},
		{"p:?k=v", "no device after the ':' at position 2"},
		{"p://host", "'//' at position 3 does not belong there"},
		{"p:%2f/", "'//' at position 3 does not belong there"},
		{"p?", "a key is missing at position 3"},
		{"p?k=v&", "a key is missing at position 7"},
		{"p?&k=v", "a key is missing at position 3"},
		{"p?=v", "a key is missing at position 3"},
		{"p?key", "key \"key\" at position 3 has no value; write key=VALUE"},
		{"p?key=", "key \"key\" at position 3 has no value"},
		{"p?k y=1", "space at position 4"},
		{"p?k%20=1", "character '%' at position 4 cannot be in a key"},
		{"p?k=v?k=w", NULL}, /* fine: only the first ? counts */
		{"p&k=v", "'&' at position 2: the first key follows a '?'; write p?k=v"},
		{"p:d&k=v&j=w",
	         "'&' at position 4: the first key follows a '?'; write p:d?k=v&j=w"},
		{"p:d&k=v?j=w",
	         "'&' at position 4: the first key follows a '?'; write p:d?k=v&j=w"},
		{"p;k=v", "';' at position 2: the first key follows a '?'; write p?k=v"},
		{"p:d;k=v;j=w",
	         "';' at position 4: the first key follows a '?'; write p:d?k=v&j=w"},
		{"p:d&e", NULL}, /* fine: the name of a device, with no key behind it */
		{"p:d%26k=v", NULL},
		{"p?k=1&j=2&k=3", "key \"k\" is there a second time at position 11"},
		{"p:%", "'%' at position 3 is not followed by two hex digits"},
		{"p:a%4", "'%' at position 4 is not followed by two hex digits"},
		{"p:%zz", "'%' at position 3"},
		{"p:%-1", "'%' at position 3"},
		{"p?k=%", "'%' at position 5"},
		{"p?k=ab%2", "'%' at position 7"},
		{"p?k=a%2&j=1", "'%' at position 6"},
		{"p?a=%41%41&k=%4x", "'%' at position 14"},
		{"p:%00", "position 3 stands for a control character"},
		{"p?k=a%0A", "position 6 stands for a control character"},
		{"p?k=%7f", "position 5 stands for a control character"},
		{" p", "space at position 1"},
		{"p\n", "control character at position 2"},
		{"p:\x01", "control character at position 3"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct uri uri;

		if (cases[i].part != NULL)
			is_refused(cases[i].text, cases[i].part);
		else
			assert_int_equal(uri_parse(cases[i].text, "URI", &uri), NDX_OK);
	}
}

static void a_uri_has_an_end(void **state)
{
	struct uri uri;
	char text[100000];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "p:", 2);
	text[sizeof(text) - 1] = '\0';
	is_refused(text, "aaa...\" is longer than 255 bytes");
	text[URI_MAX + 1] = '\0';
	is_refused(text, "is longer than 255 bytes");
	text[URI_MAX] = '\0';
	assert_int_equal(uri_parse(text, "URI", &uri), NDX_OK);
	assert_int_equal(strlen(uri.device), URI_MAX - 2);
}

static void there_is_a_most_of_keys(void **state)
{
	struct uri uri;
	char text[URI_MAX + 1] = "p";

	(void)state;
	for (int i = 0; i < URI_OPTIONS_MAX; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%ck%d=v",
		               i == 0 ? '?' : '&', i);
	assert_int_equal(uri_parse(text, "URI", &uri), NDX_OK);
	assert_int_equal(uri.option_count, URI_OPTIONS_MAX);
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "&more=v");
	is_refused(text, "more than 16 keys");
}

static void what_is_written_is_read_back(void **state)
{
	static const struct ndx_spi_option options[] = {{.key = "a", .value = "x&y=z?%"},
	                                                {.key = "b", .value = "\xc3\xa9 \""}};
	struct uri uri;
	char text[64];
	size_t len;

	(void)state;
	len = uri_write(text, sizeof(text), "p", "d?e:f", options, 2);
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, "p:d%3Fe:f?a=x%26y=z%3F%25&b=%C3%A9%20%22");
	assert_int_equal(uri_parse(text, "URI", &uri), NDX_OK);
	assert_string_equal(uri.device, "d?e:f");
	assert_string_equal(uri.options[0].value, options[0].value);
	assert_string_equal(uri.options[1].value, options[1].value);
	/* as it stands this would be a key behind a wrong mark */
	(void)uri_write(text, sizeof(text), "p", "d;e=f", NULL, 0);
	assert_int_equal(uri_parse(text, "URI", &uri), NDX_OK);
	assert_string_equal(uri.device, "d;e=f");
}

static void writing_stops_where_there_is_no_room_and_tells_the_length(void **state)
{
	char text[8] = "#######";

	(void)state;
	assert_int_equal(uri_write(NULL, 0, "prov", "device", NULL, 0), 11);
	assert_int_equal(uri_write(text, 6, "prov", "device", NULL, 0), 11);
	assert_string_equal(text, "prov:");
	assert_int_equal(text[6], '#');
}

static void names_of_providers_are_short_and_plain(void **state)
{
	(void)state;
	assert_true(uri_name_valid("a"));
	assert_true(uri_name_valid("abcdefghijklmno"));
	assert_false(uri_name_valid("abcdefghijklmnop"));
	assert_false(uri_name_valid(""));
	assert_false(uri_name_valid("a/b"));
	assert_false(uri_name_valid(".."));
	assert_false(uri_name_valid("-a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_provider_alone_is_a_uri),
		cmocka_unit_test(device_and_options_are_taken_apart_and_decoded),
		cmocka_unit_test(options_need_no_device),
		cmocka_unit_test(what_is_malformed_is_refused_with_its_position),
		cmocka_unit_test(a_uri_has_an_end),
		cmocka_unit_test(there_is_a_most_of_keys),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(writing_stops_where_there_is_no_room_and_tells_the_length),
		cmocka_unit_test(names_of_providers_are_short_and_plain),
	};

	return cmocka_run_group_tests(tests, listen_to_log, NULL);
}
