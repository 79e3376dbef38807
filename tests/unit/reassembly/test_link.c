/* SPDX-License-Identifier: BSD-2-Clause */
/* Link layers, one packet each; windows of sequence numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <stdlib.h>

#include "flow.h"
#include "link.h"

static enum link_verdict parse(uint32_t type, const uint8_t *bytes, uint32_t n, uint32_t original,
                               struct frame *f)
{
	struct ndx_packet p = {bytes, 0, n, original, type};

	return link_parse(&p, f);
}

/* IPv4, UDP 4791, base transport header, four bytes, ICRC. */
static const uint8_t roce[48] = {
	0x45, 0, 0, 48, 0,    0, 0x40, 0,    64, 17, 0, 0, 10, 0, 0,    1,
	10,   0, 0, 2,  0xc0, 0, 0x12, 0xb7, 0,  28, 0, 0, 4,  0, 0xff, 0xff,
};

static void raw_ip_and_options_and_padding_are_understood(void **state)
{
	uint8_t padded[60] = {0}, optioned[52] = {0};
	struct frame f;

	(void)state;
	assert_int_equal(parse(NDX_LINK_RAW, roce, 48, 48, &f), LINK_RDMA);
	assert_int_equal(f.transport, NDX_RDMA_ROCE_V2);
	assert_int_equal(f.length, 16);
	assert_int_equal(f.captured, 16);
	assert_int_equal(f.address.source[15], 1);
	assert_int_equal(f.address.destination[15], 2);
	memcpy(padded, roce, 48);
	assert_int_equal(parse(NDX_LINK_IPV4, padded, 60, 60, &f), LINK_RDMA);
	assert_int_equal(f.length, 16);
	memcpy(optioned, roce, 20);
	memcpy(optioned + 24, roce + 20, 28);
	optioned[0] = 0x46;
	optioned[3] = 52;
	assert_int_equal(parse(NDX_LINK_IPV4, optioned, 52, 52, &f), LINK_RDMA);
	assert_int_equal(f.length, 16);
	assert_int_equal(f.network_length, 32);
}

static void fragments_are_reported(void **state)
{
	uint8_t b[48], six[40 + 8 + 28] = {0x60, [5] = 36, [6] = 44, [40] = 17};
	struct frame f;

	(void)state;
	memcpy(b, roce, 48);
	b[6] = 0x20;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_FRAGMENT);
	assert_int_equal(f.transport, NDX_RDMA_ROCE_V2);
	b[7] = 1; /* a later one has no ports */
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_FRAGMENT);
	assert_int_equal(f.transport, NDX_RDMA_IWARP);
	b[9] = 1;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_OTHER);
	memcpy(six + 48, roce + 20, 28);
	assert_int_equal(parse(NDX_LINK_IPV6, six, sizeof(six), sizeof(six), &f), LINK_RDMA);
	assert_int_equal(f.length, 16);
	six[43] = 1;
	assert_int_equal(parse(NDX_LINK_IPV6, six, sizeof(six), sizeof(six), &f), LINK_FRAGMENT);
	assert_int_equal(f.transport, NDX_RDMA_ROCE_V2);
	six[43] = 9;
	assert_int_equal(parse(NDX_LINK_IPV6, six, sizeof(six), sizeof(six), &f), LINK_FRAGMENT);
	assert_int_equal(f.transport, NDX_RDMA_IWARP);
}

static void other_protocols_are_not_ours(void **state)
{
	uint8_t b[48];
	struct frame f;

	(void)state;
	memcpy(b, roce, 48);
	b[23] = 1;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_OTHER);
	b[9] = 1;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_OTHER);
	assert_int_equal(parse(9999, roce, 48, 48, &f), LINK_OTHER);
	assert_int_equal(parse(NDX_LINK_RAW, roce, 0, 48, &f), LINK_BAD);
}

static void lengths_that_contradict_are_refused(void **state)
{
	uint8_t b[48];
	struct frame f;

	(void)state;
	for (uint32_t n = 0; n < 40; n++)
		assert_int_equal(parse(NDX_LINK_IPV4, roce, n, 48, &f), LINK_BAD);
	assert_int_equal(parse(NDX_LINK_IPV4, roce, 42, 48, &f), LINK_RDMA);
	assert_null(f.network);
	memcpy(b, roce, 48);
	b[3] = 49;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_BAD);
	b[3] = 19;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_BAD);
	b[3] = 48;
	b[25] = 7;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_BAD);
	b[25] = 15;
	assert_int_equal(parse(NDX_LINK_IPV4, b, 48, 48, &f), LINK_BAD);
}

static void ipv6_extension_headers_are_passed(void **state)
{
	uint8_t b[40 + 8 + 28] = {0x60, [5] = 36, [6] = 0, [40] = 17};
	struct frame f;

	(void)state;
	memcpy(b + 48, roce + 20, 28);
	assert_int_equal(parse(NDX_LINK_IPV6, b, sizeof(b), sizeof(b), &f), LINK_RDMA);
	assert_int_equal(f.length, 16);
	b[41] = 200;
	assert_int_equal(parse(NDX_LINK_IPV6, b, sizeof(b), sizeof(b), &f), LINK_BAD);
	b[6] = 58;
	assert_int_equal(parse(NDX_LINK_IPV6, b, sizeof(b), sizeof(b), &f), LINK_OTHER);
}

static void erf_records_hold_ethernet_or_infiniband(void **state)
{
	uint8_t eth[16 + 8 + 2 + 14 + 48] = {[8] = 0x82};
	uint8_t ib[16 + 8 + 40 + 12 + 4 + 4 + 2] = {[8] = 21};
	struct frame f;

	(void)state;
	eth[15] = 14 + 48;
	eth[26 + 12] = 8;
	memcpy(eth + 40, roce, 48);
	assert_int_equal(parse(NDX_LINK_ERF, eth, sizeof(eth), sizeof(eth), &f), LINK_RDMA);
	memset(eth + 16, 0x80, sizeof(eth) - 16); /* extension headers that go on and on */
	assert_int_equal(parse(NDX_LINK_ERF, eth, sizeof(eth), sizeof(eth), &f), LINK_BAD);
	eth[8] = 1;
	assert_int_equal(parse(NDX_LINK_ERF, eth, sizeof(eth), sizeof(eth), &f), LINK_OTHER);
	ib[15] = 70;
	ib[17] = 3;
	ib[21] = 17;
	ib[24] = 0x60;
	ib[24 + 5] = 20;
	ib[24 + 6] = 0x1b;
	ib[24 + 23] = 1;
	ib[24 + 39] = 2;
	assert_int_equal(parse(NDX_LINK_ERF, ib, sizeof(ib), sizeof(ib), &f), LINK_RDMA);
	assert_int_equal(f.family, NDX_RDMA_ADDRESS_GID);
	assert_int_equal(f.length, 16);
	ib[24 + 6] = 0;
	assert_int_equal(parse(NDX_LINK_ERF, ib, sizeof(ib), sizeof(ib), &f), LINK_OTHER);
	ib[17] = 0;
	assert_int_equal(parse(NDX_LINK_ERF, ib, sizeof(ib), sizeof(ib), &f), LINK_OTHER);
	ib[21] = 200;
	assert_int_equal(parse(NDX_LINK_ERF, ib, sizeof(ib), sizeof(ib), &f), LINK_BAD);
}

static void a_window_knows_what_it_saw(void **state)
{
	struct mem mem = {.limit = 1 << 20};
	struct window w = {0};

	(void)state;
	assert_int_equal(window_mark(&w, &mem, 100000), WINDOW_NEW);
	assert_int_equal(window_mark(&w, &mem, 100000), WINDOW_SEEN);
	assert_int_equal(window_mark(&w, &mem, 99990), WINDOW_NEW);
	assert_int_equal(window_mark(&w, &mem, 100500), WINDOW_NEW);
	assert_int_equal(window_mark(&w, &mem, 100000), WINDOW_SEEN);
	assert_false(window_has(&w, 100400));
	assert_true(window_has(&w, 99990));
	assert_int_equal(window_mark(&w, &mem, 100500 - FLOW_WINDOW), WINDOW_OLD);
	assert_int_equal(window_mark(&w, &mem, 100000 + FLOW_WINDOW), WINDOW_NEW);
	assert_false(window_has(&w, 100000));
	assert_true(window_has(&w, 100500));
	assert_int_equal(window_mark(&w, &mem, 10 * FLOW_WINDOW), WINDOW_NEW);
	for (uint64_t i = 1; i < FLOW_WINDOW; i++)
		assert_false(window_has(&w, 10 * FLOW_WINDOW - i));
	mem_put(&mem, w.bits, FLOW_WINDOW / 8);
	mem.limit = 0;
	w = (struct window){0};
	assert_int_equal(window_mark(&w, &mem, 5), WINDOW_NO_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_ip_and_options_and_padding_are_understood),
		cmocka_unit_test(fragments_are_reported),
		cmocka_unit_test(other_protocols_are_not_ours),
		cmocka_unit_test(lengths_that_contradict_are_refused),
		cmocka_unit_test(ipv6_extension_headers_are_passed),
		cmocka_unit_test(erf_records_hold_ethernet_or_infiniband),
		cmocka_unit_test(a_window_knows_what_it_saw),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
