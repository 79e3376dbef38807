/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA, DDP, RDMAP, and CRCs against known values. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <ndx/reassembly.h>

#include "crc.h"
#include "mpa.h"

static void crcs_have_their_known_values(void **state)
{
	static struct crc_tables t;
	const uint8_t *digits = (const uint8_t *)"123456789";

	(void)state;
	crc_tables_init(&t);
	assert_int_equal(~crc_update(t.ieee, 0xffffffff, digits, 9), 0xcbf43926);
	assert_int_equal(~crc_update(t.castagnoli, 0xffffffff, digits, 9), 0xe3069283);
}

static void set_up_frames_are_told_byte_by_byte(void **state)
{
	uint8_t f[28] = "MPA ID Req Frame";
	struct mpa_setup s;

	(void)state;
	f[16] = 0x80 | 0x40 | 0x10;
	f[17] = 2;
	f[19] = 8;
	f[20] = 0xc0;
	f[21] = 5;
	f[23] = 6;
	for (uint32_t n = 0; n < sizeof(f); n++)
		assert_int_equal(mpa_setup_parse(f, n, &s), MPA_MORE);
	assert_int_equal(mpa_setup_parse(f, sizeof(f), &s), MPA_YES);
	assert_true(s.markers && s.crc && !s.rejected && !s.reply && s.enhanced);
	assert_int_equal(s.inbound_reads, 5);
	assert_int_equal(s.outbound_reads, 6);
	f[9] = 'p';
	assert_int_equal(mpa_setup_parse(f, sizeof(f), &s), MPA_YES);
	assert_true(s.reply);
	f[17] = 3;
	assert_int_equal(mpa_setup_parse(f, sizeof(f), &s), MPA_NO);
	f[17] = 1;
	f[18] = 3;
	assert_int_equal(mpa_setup_parse(f, sizeof(f), &s), MPA_NO);
	f[0] = 'm';
	assert_int_equal(mpa_setup_parse(f, 1, &s), MPA_NO);
}

static void frames_are_padded_to_four(void **state)
{
	(void)state;
	assert_int_equal(mpa_frame_size(14), 20);
	assert_int_equal(mpa_frame_size(15), 24);
	assert_int_equal(mpa_frame_size(18), 24);
}

static void tagged_and_untagged_headers_are_read(void **state)
{
	uint8_t b[64];
	struct ddp d;

	(void)state;
	for (uint32_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)i;
	b[0] = 0xc1;
	b[1] = 0x42;
	assert_true(ddp_parse(b, 40, 40, &d));
	assert_true(d.tagged && d.last);
	assert_int_equal(d.opcode, RDMAP_READ_RESPONSE);
	assert_int_equal(d.stag, 0x02030405);
	assert_int_equal(d.offset, 0x060708090a0b0c0d);
	assert_int_equal(d.length, 26);
	b[0] = 0x41;
	b[1] = 0x44;
	assert_true(ddp_parse(b, 30, 40, &d));
	assert_true(d.has_invalidate);
	assert_int_equal(d.invalidate, 0x02030405);
	assert_int_equal(d.queue, 0x06070809);
	assert_int_equal(d.message, 0x0a0b0c0d);
	assert_int_equal(d.message_offset, 0x0e0f1011);
	assert_int_equal(d.length, 22);
	assert_int_equal(d.captured, 12);
	b[1] = 0x41;
	assert_true(ddp_parse(b, 46, 46, &d));
	assert_int_equal(d.read.sink_stag, 0x12131415);
	assert_int_equal(d.read.size, 0x1e1f2021);
	assert_int_equal(d.read.source_stag, 0x22232425);
	assert_false(ddp_parse(b, 45, 46, &d));
	assert_false(ddp_parse(b, 1, 46, &d));
}

static void nonsense_is_not_plausible(void **state)
{
	uint8_t b[2] = {0x41, 0x43};
	static const uint8_t bad[][2] = {{0x43, 0x43}, {0x61, 0x43}, {0x41, 0x83}, {0x41, 0x53},
	                                 {0x41, 0x48}, {0xc1, 0x43}, {0x41, 0x40}};

	(void)state;
	assert_true(ddp_plausible(b, 18));
	assert_false(ddp_plausible(b, 17));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(ddp_plausible(bad[i], 100));
	assert_string_equal(ndx_rdmap_opcode_name(1), "Read Request");
	assert_string_equal(ndx_rdmap_opcode_name(8), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crcs_have_their_known_values),
		cmocka_unit_test(set_up_frames_are_told_byte_by_byte),
		cmocka_unit_test(frames_are_padded_to_four),
		cmocka_unit_test(tagged_and_untagged_headers_are_read),
		cmocka_unit_test(nonsense_is_not_plausible),
	};

	return cmocka_run_group_tests_name("mpa", tests, NULL, NULL);
}
