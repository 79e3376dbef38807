/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments, sub-segments, read requests: the classes of the original. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include "request.h"
#include "segment.h"
#include "sub_segment.h"

static struct mem mem = {.limit = 1 << 22};

static void fill_bytes(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
}

static void data_are_placed_by_address(void **state)
{
	static uint8_t data[100001], out[100004];
	struct segment *s = segment_create(&mem, 7, 5000, sizeof(data));
	struct ndx_piece pieces[8];

	(void)state;
	fill_bytes(data, sizeof(data));
	for (size_t at = sizeof(data); at > 0;) {
		size_t part = at < 1000 ? at : 1000;

		at -= part;
		assert_false(segment_whole(s));
		assert_true(segment_add_fragment(s, &mem, 5000 + at, data + at, (uint32_t)part));
	}
	assert_true(segment_whole(s));
	assert_int_equal(segment_size(s), sizeof(data));
	assert_int_equal(segment_get_data(s, false, out, sizeof(out)), sizeof(data));
	assert_memory_equal(out, data, sizeof(data));
	assert_int_equal(segment_get_data(s, true, out, sizeof(out)), 100004);
	assert_int_equal(out[100003], 0);
	assert_int_equal(segment_piece_count(s, sizeof(data)), 4);
	segment_pieces(s, sizeof(data), pieces);
	assert_int_equal(ndx_piece_copy(pieces, 4, out, 90000), 90000);
	assert_memory_equal(out, data, 90000);
	segment_free(s, &mem);
	mem_trim(&mem);
	assert_int_equal(mem.held, 0);
}

static void gaps_read_as_zeros_and_what_is_there_stays(void **state)
{
	struct segment *s = segment_create(&mem, 7, 100, 20);
	uint8_t out[20], expected[20] = {0, 0, 0, 0, 0, 'a', 'b', 'c', 'd', 'e'};

	(void)state;
	assert_true(segment_add_fragment(s, &mem, 105, (const uint8_t *)"abcde", 5));
	assert_true(segment_add_fragment(s, &mem, 105, (const uint8_t *)"XXXXX", 5));
	assert_int_equal(segment_get_data(s, false, out, sizeof(out)), 20);
	assert_memory_equal(out, expected, 20);
	assert_false(segment_add_fragment(s, &mem, 99, (const uint8_t *)"x", 1));
	assert_false(segment_add_fragment(s, &mem, 120, (const uint8_t *)"x", 1));
	assert_true(segment_add_fragment(s, &mem, 118, (const uint8_t *)"long", 4));
	assert_int_equal(segment_size(s), 7);
	segment_free(s, &mem);
}

static void a_huge_segment_costs_what_was_sent_of_it(void **state)
{
	struct segment *s = segment_create(&mem, 7, 0, UINT32_MAX);

	(void)state;
	assert_true(segment_add_fragment(s, &mem, UINT32_MAX - 1, (const uint8_t *)"x", 1));
	assert_true(segment_add_fragment(s, &mem, 1u << 31, (const uint8_t *)"x", 1));
	assert_true(segment_add_fragment(s, &mem, 0, (const uint8_t *)"x", 1));
	mem_trim(&mem);
	assert_true(mem.held < 3 * 40000);
	assert_int_equal(s->block_count, 3);
	segment_free(s, &mem);
	mem_trim(&mem);
	assert_int_equal(mem.held, 0);
}

static void packets_are_placed_by_their_numbers(void **state)
{
	struct segment *s = segment_create(&mem, 7, 1000, 2500);
	struct sub_segment sub = {.first = 50, .dma_length = 2500, .address = 1000};
	uint8_t data[2500], out[2500];

	(void)state;
	fill_bytes(data, sizeof(data));
	sub_segment_dimension(&sub, 0);
	assert_int_equal(sub.packets, 10);
	segment_add_sub_segment(s, &sub);
	assert_true(segment_valid_psn(s, 59));
	assert_true(segment_add_data(s, &mem, 52, true, data + 2048, 452));
	assert_true(segment_add_data(s, &mem, 51, false, data + 1024, 1024));
	assert_int_equal(sub.packets, 3);
	assert_false(segment_valid_psn(s, 53));
	assert_false(segment_valid_psn(s, 49));
	assert_false(segment_add_data(s, &mem, 53, false, data, 1024));
	assert_int_equal(sub_segment_size(&sub), 1476);
	assert_true(sub_segment_insert_data(&sub, &mem, 50, false, data, 1024));
	assert_int_equal(sub_segment_size(&sub), 2500);
	assert_int_equal(sub_segment_get_data(&sub, false, out, sizeof(out)), 2500);
	assert_memory_equal(out, data, sizeof(data));
	assert_int_equal(sub_segment_get_data(&sub, true, out, 0), 2500);
	ndxp_list_remove(&sub.in_segment);
	segment_free(s, &mem);
}

static void the_last_packet_fits_or_is_of_something_else(void **state)
{
	struct sub_segment sub = {.first = 0, .dma_length = 3000};
	uint64_t offset;

	(void)state;
	sub_segment_dimension(&sub, 0);
	assert_true(sub_segment_offset(&sub, 2, true, 3000 - 2048, &offset));
	assert_int_equal(offset, 2048);
	assert_false(sub_segment_offset(&sub, 3, true, 3000 - 2048, &offset));
	assert_false(sub_segment_offset(&sub, 2, true, 4000, &offset));
	assert_true(sub_segment_offset(&sub, 0, false, 1024, &offset));
	assert_false(sub_segment_offset(&sub, 1, true, 3000 - 2048, &offset));
	sub.dma_length = 0;
	sub.mtu = 0;
	sub_segment_dimension(&sub, 0);
	assert_int_equal(sub.packets, 1);
	assert_true(sub_segment_offset(&sub, 0, true, 0, &offset));
}

static void sub_segments_of_part_of_a_segment_know_their_bytes(void **state)
{
	struct segment *s = segment_create(&mem, 7, 0, 100000);
	struct sub_segment sub = {.first = 0, .dma_length = 50000, .address = 30000, .mtu = 1024};
	static uint8_t out[50000], data[50000];

	(void)state;
	fill_bytes(data, sizeof(data));
	assert_int_equal(sub_segment_size(&sub), 0);
	assert_int_equal(sub_segment_get_data(&sub, false, out, 10), 50000);
	segment_add_sub_segment(s, &sub);
	assert_true(segment_add_fragment(s, &mem, 31000, data + 1000, 40000));
	assert_int_equal(sub_segment_size(&sub), 40000);
	assert_int_equal(sub_segment_get_data(&sub, false, out, sizeof(out)), 50000);
	assert_memory_equal(out + 1000, data + 1000, 40000);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[49999], 0);
	ndxp_list_remove(&sub.in_segment);
	segment_free(s, &mem);
	mem_trim(&mem);
	assert_int_equal(mem.held, 0);
}

static void requests_translate_sink_to_source(void **state)
{
	struct request q = {.sink_stag = 1,
	                    .source_stag = 2,
	                    .sink_offset = 1000,
	                    .source_offset = 5,
	                    .size = 100,
	                    .sequence = 0xfffffff0};

	(void)state;
	assert_true(request_contains(&q, 1, 1000));
	assert_true(request_contains(&q, 1, 1099));
	assert_false(request_contains(&q, 1, 1100));
	assert_false(request_contains(&q, 1, 999));
	assert_false(request_contains(&q, 2, 1000));
	assert_int_equal(request_get_offset(&q, 1050), 55);
	assert_true(request_before(&q, 4));
	assert_false(request_before(&q, 0xfffffff0));
	q.size = 0;
	assert_true(request_contains(&q, 1, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_are_placed_by_address),
		cmocka_unit_test(gaps_read_as_zeros_and_what_is_there_stays),
		cmocka_unit_test(a_huge_segment_costs_what_was_sent_of_it),
		cmocka_unit_test(packets_are_placed_by_their_numbers),
		cmocka_unit_test(the_last_packet_fits_or_is_of_something_else),
		cmocka_unit_test(sub_segments_of_part_of_a_segment_know_their_bytes),
		cmocka_unit_test(requests_translate_sink_to_source),
	};

	return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
