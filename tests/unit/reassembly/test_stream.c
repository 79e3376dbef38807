/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP segments in any order. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include "stream.h"

static struct mem mem = {.limit = 1 << 20};

static enum stream_verdict judge(struct stream *s, uint32_t sequence, uint32_t length,
                                 uint32_t *skip)
{
	static const uint8_t bytes[2048];
	struct stream_segment head = {.sequence = sequence, .length = length, .captured = length};

	return stream_judge(s, &mem, &head, bytes, skip);
}

static void segments_wait_for_the_gap_and_overlap_is_skipped(void **state)
{
	struct stream_segment *ready;
	struct stream s;
	uint32_t skip;

	(void)state;
	stream_init(&s);
	stream_begin(&s, 0xffffff00);
	assert_int_equal(judge(&s, 0xffffff00, 100, &skip), STREAM_NEXT);
	stream_advance(&s, 100);
	assert_int_equal(judge(&s, 0xffffff00, 100, &skip), STREAM_SEEN);
	assert_int_equal(judge(&s, 0xffffff32, 100, &skip), STREAM_NEXT);
	assert_int_equal(skip, 50);
	assert_int_equal(judge(&s, 44, 100, &skip), STREAM_HELD);
	assert_int_equal(judge(&s, 44, 100, &skip), STREAM_SEEN);
	assert_int_equal(judge(&s, 144, 10, &skip), STREAM_HELD);
	assert_null(stream_ready(&s, &skip));
	assert_int_equal(stream_gap(&s), 44 + 256 - 100);
	stream_advance(&s, 210);
	ready = stream_ready(&s, &skip);
	assert_non_null(ready);
	assert_int_equal(skip, 10);
	stream_drop(&s, &mem, ready);
	stream_jump(&s);
	assert_int_equal(s.next, 144);
	assert_int_equal(s.order, 400);
	stream_fini(&s, &mem);
	assert_int_equal(mem.held, 0);
}

static void without_a_beginning_the_lowest_is_taken_after_a_while(void **state)
{
	struct stream s;
	uint32_t skip, n = 0;

	(void)state;
	stream_init(&s);
	while (!stream_full(&s, 0))
		assert_int_equal(judge(&s, 5000 - 10 * n++, 10, &skip), STREAM_HELD);
	assert_int_equal(n, STREAM_START_SEGMENTS);
	stream_jump(&s);
	assert_int_equal(s.next, 5000 - 10 * (n - 1));
	assert_int_equal(s.order, 0);
	stream_fini(&s, &mem);
}

static void what_waits_is_bounded(void **state)
{
	struct stream s;
	uint32_t skip, kept = 0;

	(void)state;
	stream_init(&s);
	stream_begin(&s, 0);
	for (uint32_t i = 1; i < 3000; i++)
		kept += judge(&s, i * 200, 100, &skip) == STREAM_HELD;
	assert_int_equal(kept, 2 * STREAM_SEGMENTS_MAX);
	assert_true(stream_full(&s, 0));
	stream_fini(&s, &mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_wait_for_the_gap_and_overlap_is_skipped),
		cmocka_unit_test(without_a_beginning_the_lowest_is_taken_after_a_while),
		cmocka_unit_test(what_waits_is_bounded),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
