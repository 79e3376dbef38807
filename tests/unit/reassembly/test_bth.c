/* SPDX-License-Identifier: BSD-2-Clause */
/* Base transport headers and connection manager messages. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <ndx/reassembly.h>

#include "bth.h"
#include "cm.h"

static uint8_t packet[64] = {[4] = 0xff, [6] = 1, [7] = 2, [8] = 0x80, [9] = 3, [11] = 4};

static bool parse(uint8_t opcode, uint32_t length, struct bth *b)
{
	packet[0] = opcode;
	for (uint32_t i = 12; i < sizeof(packet); i++)
		packet[i] = (uint8_t)i;
	return bth_parse(packet, length, length, b);
}

static void headers_stand_where_the_opcode_says(void **state)
{
	struct bth b;

	(void)state;
	assert_true(parse(0x06, 40, &b));
	assert_int_equal(b.kind, BTH_WRITE);
	assert_true(b.first && !b.last && b.has_reth);
	assert_int_equal(b.qpn, 0x000102);
	assert_int_equal(b.psn, 0x030004);
	assert_int_equal(b.address, 0x0c0d0e0f10111213);
	assert_int_equal(b.handle, 0x14151617);
	assert_int_equal(b.dma_length, 0x18191a1b);
	assert_int_equal(b.length, 12);
	assert_true(parse(0x0b, 40, &b));
	assert_true(b.has_immediate);
	assert_int_equal(b.immediate, 0x1c1d1e1f);
	assert_true(parse(0x17, 40, &b));
	assert_true(b.has_invalidate && !b.has_immediate);
	assert_int_equal(b.invalidate, 0x0c0d0e0f);
	assert_true(parse(0x0d, 40, &b));
	assert_true(b.has_aeth);
	assert_int_equal(b.kind, BTH_READ_RESPONSE);
	assert_int_equal(b.syndrome, 0x0c);
	assert_int_equal(b.msn, 0x0d0e0f);
	assert_int_equal(b.length, 24);
	assert_true(parse(0x12, 40, &b));
	assert_int_equal(b.original, 0x1011121314151617);
	assert_true(parse(0x13, 60, &b));
	assert_true(b.has_atomic);
	assert_int_equal(b.compare, 0x2021222324252627);
}

static void services_add_their_headers(void **state)
{
	struct bth b;

	(void)state;
	assert_true(parse(0x64, 40, &b));
	assert_true(b.has_deth);
	assert_int_equal(b.source_qpn, 0x111213);
	assert_int_equal(b.length, 20);
	assert_true(parse(0xa6, 60, &b));
	assert_int_equal(b.service, BTH_XRC);
	assert_int_equal(b.srq, 0x0d0e0f);
	assert_int_equal(b.handle, 0x18191a1b);
	assert_true(parse(0xad, 60, &b));
	assert_int_equal(b.length, 60 - 16);
	assert_true(parse(0x46, 60, &b));
	assert_int_equal(b.service, BTH_RD);
	assert_int_equal(b.handle, 0x20212223);
	assert_true(parse(0x81, 40, &b));
	assert_int_equal(b.kind, BTH_OTHER);
}

static void opcodes_that_are_none_are_none(void **state)
{
	struct bth b;

	(void)state;
	assert_true(parse(0x1f, 40, &b));
	assert_int_equal(b.kind, BTH_NONE);
	assert_true(parse(0x2c, 40, &b)); /* UC does not read */
	assert_int_equal(b.kind, BTH_NONE);
	assert_true(parse(0x60, 40, &b)); /* UD has no First */
	assert_int_equal(b.kind, BTH_NONE);
	assert_string_equal(ndx_rdma_opcode_name(0x1f), "?");
	assert_string_equal(ndx_rdma_opcode_name(0x04), "RC SEND_Only");
	assert_string_equal(ndx_rdma_opcode_name(0xac), "XRC READ_Request");
	assert_string_equal(ndx_rdma_opcode_name(0x81), "CNP");
}

static void cut_headers_are_refused_and_cut_data_counted(void **state)
{
	struct bth b;

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		for (uint32_t n = 0; n <= 60; n++) {
			packet[0] = (uint8_t)opcode;
			if (bth_parse(packet, n, 60, &b))
				assert_true(b.captured <= b.length && n >= 12);
		}
	}
	packet[0] = 4;
	packet[1] = 0x30;
	assert_true(bth_parse(packet, 20, 60, &b));
	assert_int_equal(b.length, 45);
	assert_int_equal(b.captured, 8);
	assert_false(bth_parse(packet, 14, 14, &b)); /* more padding than data */
	packet[1] = 0;
}

static void differences_wrap(void **state)
{
	(void)state;
	assert_int_equal(psn_delta(5, 3), 2);
	assert_int_equal(psn_delta(1, 0xffffff), 2);
	assert_int_equal(psn_delta(0xffffff, 1), -2);
	assert_int_equal(psn_delta(0x800000, 0), -0x800000);
}

static void the_connection_manager_tells_queue_pairs(void **state)
{
	uint8_t mad[256] = {1, 7, 2, 3};
	struct cm_message m;

	(void)state;
	mad[17] = 0x10;
	mad[24] = 9;
	mad[24 + 34] = 0x11;
	mad[24 + 46] = 0x22;
	mad[24 + 50] = 0x30;
	assert_true(cm_parse(mad, 256, &m));
	assert_int_equal(m.kind, CM_REQUEST);
	assert_int_equal(m.local_id, 0x09000000);
	assert_int_equal(m.qpn, 0x11);
	assert_int_equal(m.psn, 0x22);
	assert_int_equal(m.mtu, 1024);
	mad[17] = 0x13;
	mad[28] = 8;
	mad[24 + 14] = 0x33;
	mad[24 + 22] = 0x44;
	assert_true(cm_parse(mad, 256, &m));
	assert_int_equal(m.remote_id, 0x08000000);
	assert_int_equal(m.qpn, 0x33);
	assert_int_equal(m.psn, 0x44);
	mad[17] = 0x15;
	assert_true(cm_parse(mad, 256, &m));
	assert_int_equal(m.kind, CM_DISCONNECT_REQUEST);
	mad[17] = 0x14;
	assert_true(cm_parse(mad, 256, &m));
	assert_false(cm_parse(mad, 255, &m));
	mad[1] = 3;
	assert_false(cm_parse(mad, 256, &m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_stand_where_the_opcode_says),
		cmocka_unit_test(services_add_their_headers),
		cmocka_unit_test(opcodes_that_are_none_are_none),
		cmocka_unit_test(cut_headers_are_refused_and_cut_data_counted),
		cmocka_unit_test(differences_wrap),
		cmocka_unit_test(the_connection_manager_tells_queue_pairs),
	};

	return cmocka_run_group_tests_name("bth", tests, NULL, NULL);
}
