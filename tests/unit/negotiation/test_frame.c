/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <ndx/spi/byteorder.h>
#include "frame.h"

enum { MOST = 4096 };

/* A whole frame of `type` with `length` bytes of 0x5a. */
static size_t make(uint8_t *out, enum frame_type type, uint32_t length)
{
	const struct frame f = {
		.type = type, .stage = NDX_STAGE_READY, .round = 7, .length = length};

	frame_write_header(out, &f);
	memset(out + FRAME_HEADER, 0x5a, length);
	return FRAME_HEADER + length;
}

static void what_was_written_is_read(void **state)
{
	uint8_t bytes[FRAME_HEADER + 64];
	const char *why = NULL;
	struct frame f;
	size_t used = 0;

	(void)state;
	for (int type = FRAME_HELLO; type <= FRAME_PROOF; type++) {
		const size_t length = make(bytes, (enum frame_type)type, 33);

		assert_int_equal(frame_parse(bytes, sizeof(bytes), MOST, &f, &used, &why),
		                 FRAME_WHOLE);
		assert_int_equal(used, length);
		assert_int_equal(f.type, type);
		assert_int_equal(f.stage, NDX_STAGE_READY);
		assert_int_equal(f.round, 7);
		assert_int_equal(f.length, 33);
		assert_ptr_equal(f.payload, bytes + FRAME_HEADER);
	}
}

static void every_beginning_of_a_frame_wants_more(void **state)
{
	uint8_t bytes[FRAME_HEADER + 40];
	const size_t length = make(bytes, FRAME_DATA, 40);
	const char *why = NULL;
	struct frame f;

	(void)state;
	for (size_t n = 0; n < length; n++) {
		size_t used = 0;

		assert_int_equal(frame_parse(bytes, n, MOST, &f, &used, &why), FRAME_MORE);
		assert_int_equal(used, n < FRAME_HEADER ? FRAME_HEADER : length);
	}
}

static void rubbish_is_known_by_its_first_byte(void **state)
{
	const char *why = NULL;
	struct frame f;
	size_t used;

	(void)state;
	for (int first = 0; first < 256; first++) {
		const uint8_t byte = (uint8_t)first;

		assert_int_equal(frame_parse(&byte, 1, MOST, &f, &used, &why),
		                 first == 'N' ? FRAME_MORE : FRAME_BAD);
	}
	assert_string_equal(why, "not a frame: the peer speaks another protocol");
}

static void each_wrong_field_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *why;
	} cases[] = {
		{0, 'n', "not a frame: the peer speaks another protocol"},
		{4, 0, "version 0 of the protocol; versions 1 and 2 are known here"},
		{4, 3, "version 3 of the protocol; versions 1 and 2 are known here"},
		{4, 4, "version 4 of the protocol; versions 1 and 2 are known here"},
		{4, 5, "version 5 or later of the protocol; versions 1 and 2 are known here"},
		{4, 255, "version 5 or later of the protocol; versions 1 and 2 are known here"},
		{5, 0, "unknown type of frame"},
		{5, FRAME_REMOVE + 1, "unknown type of frame"},
		{6, 4, "unknown stage"},
		{7, 0x02, "unknown flag"},
		{12, 1, "reserved bytes are not zero"},
		{13, 1, "reserved bytes are not zero"},
		{14, 1, "reserved bytes are not zero"},
		{15, 1, "reserved bytes are not zero"},
		{16, 1, "payload longer than the limit"},
		{16, 0xff, "payload longer than the limit"},
	};
	uint8_t bytes[FRAME_HEADER + 16];
	struct frame f;
	size_t used;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = NULL;

		(void)make(bytes, FRAME_DATA, 16);
		bytes[cases[i].at] = cases[i].value;
		assert_int_equal(frame_parse(bytes, sizeof(bytes), MOST, &f, &used, &why),
		                 FRAME_BAD);
		assert_string_equal(why, cases[i].why);
	}
}

/* Version 2: the number of a queue pair. */
static void a_frame_may_be_of_one_queue_pair(void **state)
{
	static const uint16_t numbers[] = {0, 1, 255, 256, 1023};
	uint8_t bytes[FRAME_HEADER];
	const char *why = NULL;
	struct frame f;
	size_t used;

	(void)state;
	for (int type = FRAME_HELLO; type <= FRAME_PROOF; type++) {
		const bool whole = type == FRAME_WELCOME || type == FRAME_SESSION_END;

		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			const struct frame in = {.type = (enum frame_type)type,
			                         .numbered = true,
			                         .queue_pair = numbers[i]};
			const bool good = !whole && (type != FRAME_HELLO || numbers[i] == 0);

			frame_write_header(bytes, &in);
			assert_int_equal(frame_parse(bytes, sizeof(bytes), MOST, &f, &used, &why),
			                 good ? FRAME_WHOLE : FRAME_BAD);
			if (!good)
				continue;
			assert_true(f.numbered);
			assert_int_equal(f.queue_pair, numbers[i]);
		}
	}
	(void)make(bytes, FRAME_DATA, 0);
	bytes[4] = 2;
	bytes[12] = 0xff; /* those that are added have higher indices than 1023 */
	assert_int_equal(frame_parse(bytes, sizeof(bytes), MOST, &f, &used, &why), FRAME_WHOLE);
	assert_int_equal(f.queue_pair, 0xff00);
	(void)make(bytes, FRAME_HELLO, 0);
	bytes[4] = 2;
	bytes[13] = 1;
	assert_int_equal(frame_parse(bytes, sizeof(bytes), MOST, &f, &used, &why), FRAME_BAD);
	assert_string_equal(why, "a hello with the number of a queue pair");
	(void)make(bytes, FRAME_DATA, 0);
	bytes[4] = 2;
	bytes[15] = 1;
	assert_int_equal(frame_parse(bytes, sizeof(bytes), MOST, &f, &used, &why), FRAME_BAD);
	assert_string_equal(why, "reserved bytes are not zero");
}

static struct frame as_frame(const uint8_t *payload, uint32_t length)
{
	return (struct frame){.type = FRAME_HELLO, .payload = payload, .length = length};
}

static void hello_is_read_and_its_names_are_checked(void **state)
{
	struct frame_hello in = {.max_message = 1234, .plugin = "roce", .variant = "verbs-rc"};
	uint8_t bytes[FRAME_HELLO_SIZE];
	struct frame_hello out;
	const char *why = NULL;
	struct frame f = as_frame(bytes, FRAME_HELLO_SIZE);

	(void)state;
	memset(in.session, 0xab, sizeof(in.session));
	assert_int_equal(frame_write_hello(bytes, &in), FRAME_HELLO_SIZE);
	assert_true(frame_parse_hello(&f, &out, &why));
	assert_memory_equal(out.session, in.session, 16);
	assert_int_equal(out.max_message, 1234);
	assert_string_equal(out.plugin, "roce");
	assert_string_equal(out.variant, "verbs-rc");
	f.length--;
	assert_false(frame_parse_hello(&f, &out, &why));
	f.length++;
	bytes[20] = 'R'; /* upper case */
	assert_false(frame_parse_hello(&f, &out, &why));
	bytes[20] = 'r';
	bytes[20 + NDX_PLUGIN_NAME_MAX] = 'x'; /* behind the end */
	assert_false(frame_parse_hello(&f, &out, &why));
	memset(bytes + 20, 'x', NDX_PLUGIN_NAME_MAX + 1); /* no end */
	assert_false(frame_parse_hello(&f, &out, &why));
	assert_string_equal(why, "malformed name of a plugin or variant");
}

static void hello_may_ask_for_several_queue_pairs(void **state)
{
	static const uint32_t wrong[] = {0, 1, 1025, UINT32_MAX};
	struct frame_hello in = {
		.max_message = 1234, .queue_pairs = 1024, .plugin = "a", .variant = "b"};
	uint8_t bytes[FRAME_HELLO_SIZE_MAX];
	struct frame_hello out;
	const char *why = NULL;
	struct frame f = as_frame(bytes, FRAME_HELLO_SIZE_MAX);

	(void)state;
	memset(in.session, 1, sizeof(in.session));
	assert_int_equal(frame_write_hello(bytes, &in), FRAME_HELLO_SIZE_MAX);
	assert_false(frame_parse_hello(&f, &out, &why)); /* of version 1 */
	f.numbered = true;
	assert_true(frame_parse_hello(&f, &out, &why));
	assert_int_equal(out.queue_pairs, 1024);
	f.length = FRAME_HELLO_SIZE;
	assert_false(frame_parse_hello(&f, &out, &why));
	f.numbered = false;
	assert_true(frame_parse_hello(&f, &out, &why));
	assert_int_equal(out.queue_pairs, 1);
	f = as_frame(bytes, FRAME_HELLO_SIZE_MAX);
	f.numbered = true;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ndxp_put_be32(bytes + FRAME_HELLO_SIZE, wrong[i]);
		assert_false(frame_parse_hello(&f, &out, &why));
		assert_string_equal(why, "a number of queue pairs that is not 2 to 1024");
	}
}

static void the_peers_words_are_made_printable(void **state)
{
	struct frame_error in = {.layer = 2, .plugin_error = 3, .status = -27};
	uint8_t bytes[FRAME_ERROR_SIZE_MAX];
	struct frame_error out;
	const char *why = NULL;
	struct frame f;
	uint32_t length;

	(void)state;
	(void)snprintf(in.text, sizeof(in.text), "a\x1b[31mb\nc");
	length = frame_write_error(bytes, &in);
	f = as_frame(bytes, length);
	assert_true(frame_parse_error(&f, &out, &why));
	assert_int_equal(out.status, -27);
	assert_int_equal(out.layer, 2);
	assert_int_equal(out.plugin_error, 3);
	assert_string_equal(out.text, "a?[31mb?c");
	for (uint32_t n = 0; n < 8; n++) {
		f = as_frame(bytes, n);
		assert_false(frame_parse_error(&f, &out, &why));
	}
	f = as_frame(bytes, FRAME_ERROR_SIZE_MAX + 1);
	assert_false(frame_parse_error(&f, &out, &why));
}

static void the_other_payloads_have_one_length(void **state)
{
	const struct frame_welcome w = {512, 30000, 120000};
	const struct frame_validate v = {.agreed = {1, 4096, 3, 4}, .own = {1}, .peer = {2}};
	uint8_t bytes[FRAME_VALIDATE_SIZE + 1];
	struct frame_validate v2;
	struct frame_welcome w2;
	const char *why = NULL;
	struct frame f;

	(void)state;
	for (uint32_t n = 0; n <= FRAME_VALIDATE_SIZE + 1; n++) {
		f = as_frame(bytes, n);
		(void)frame_write_welcome(bytes, &w);
		assert_int_equal(frame_parse_welcome(&f, &w2, &why), n == FRAME_WELCOME_SIZE);
		(void)frame_write_validate(bytes, &v);
		assert_int_equal(frame_parse_validate(&f, &v2, &why), n == FRAME_VALIDATE_SIZE);
	}
	assert_memory_equal(&w2, &w, sizeof(w));
	assert_memory_equal(&v2, &v, sizeof(v));
}

static void names_keep_the_rule(void **state)
{
	static const char longest[] = "a23456789012345678901234567890_";

	(void)state;
	assert_int_equal(strlen(longest), NDX_PLUGIN_NAME_MAX);
	assert_true(frame_name_valid("a"));
	assert_true(frame_name_valid("verbs-rc_2"));
	assert_true(frame_name_valid(longest));
	assert_false(frame_name_valid(""));
	assert_false(frame_name_valid("2a"));
	assert_false(frame_name_valid("-a"));
	assert_false(frame_name_valid("A"));
	assert_false(frame_name_valid("a b"));
	assert_false(frame_name_valid("a/../b"));
	assert_false(frame_name_valid("a23456789012345678901234567890_x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(every_beginning_of_a_frame_wants_more),
		cmocka_unit_test(rubbish_is_known_by_its_first_byte),
		cmocka_unit_test(each_wrong_field_is_refused),
		cmocka_unit_test(a_frame_may_be_of_one_queue_pair),
		cmocka_unit_test(hello_may_ask_for_several_queue_pairs),
		cmocka_unit_test(hello_is_read_and_its_names_are_checked),
		cmocka_unit_test(the_peers_words_are_made_printable),
		cmocka_unit_test(the_other_payloads_have_one_length),
		cmocka_unit_test(names_keep_the_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
