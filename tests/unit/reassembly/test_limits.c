/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets by hand: settings, bounds, what hostile senders do, what is only told. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <ndx/reassembly.h>

#include "synth_packet.h"

static void ignore(void *context, const struct ndx_reassembly_event *event)
{
	(void)context;
	(void)event;
}

/* A raw IPv4 RoCE packet: opcode, queue pair, sequence number, what follows; from host `host`. */
static void feed(struct ndx_reassembly *r, uint32_t host, uint8_t opcode, uint32_t qpn,
                 uint32_t psn, const uint8_t *rest, uint32_t length)
{
	uint8_t p[2048] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17};
	struct ndx_packet packet = {p, 0, 44 + length, 44 + length, NDX_LINK_RAW};

	synth_put16(p + 2, (uint16_t)(44 + length));
	synth_put32(p + 12, 0x0a000000 + host);
	synth_put32(p + 16, 0x0b000000);
	synth_put16(p + 22, 4791);
	synth_put16(p + 24, (uint16_t)(24 + length));
	p[28] = opcode;
	synth_put24(p + 33, qpn);
	synth_put24(p + 37, psn);
	if (length > 0)
		memcpy(p + 40, rest, length);
	assert_int_equal(ndx_reassembly_feed(r, &packet), NDX_OK);
}

/* A call that offers `n` segments of the length, with handles from `handle` on. */
static void offer(struct ndx_reassembly *r, uint32_t host, uint32_t psn, uint32_t handle,
                  uint32_t n, uint32_t length)
{
	uint8_t m[1024] = {0};
	uint32_t at = 28;

	synth_put32(m, psn + 1);
	synth_put32(m + 4, 1);
	synth_put32(m + 20, 1);
	synth_put32(m + 24, n);
	for (uint32_t i = 0; i < n; i++, at += 16) {
		synth_put32(m + at, handle + i);
		synth_put32(m + at + 4, length);
	}
	synth_put32(m + at + 8, psn + 1);
	synth_put32(m + at + 16, 2);
	feed(r, host, 4, 0x11, psn, m, at + 32);
}

/* Whatever is sent, memory stays within the bound. */
static void hostile_input_stays_within_the_bound(void **state)
{
	static const uint32_t bounds[] = {1 << 20, 24 << 20};
	uint8_t head[16 + 4] = {0};

	(void)state;
	for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
		struct ndx_reassembly_stats stats;
		struct ndx_reassembly_attr attr;
		struct ndx_reassembly *r;

		ndx_reassembly_attr_init(&attr);
		attr.max_bytes = bounds[b];
		attr.on_event = ignore;
		assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
		/* Segments of 4 GiB without end, a few bytes of each at their far ends. */
		for (uint32_t i = 0; i < 6000; i++) {
			offer(r, 1, i, 40 * i, 40, UINT32_MAX);
			synth_put64(head, i * UINT64_C(65536));
			synth_put32(head + 8, 40 * i + i % 40);
			synth_put32(head + 12, 4);
			feed(r, 1, 10, 0x12, i, head, 20);
		}
		/* Operations of 16 M packets each, their packets anywhere. */
		for (uint32_t i = 0; i < 6000; i++) {
			synth_put32(head + 8, i);
			synth_put32(head + 12, UINT32_MAX);
			feed(r, 2, 6, 0x12, i * 77, head, 20);
			feed(r, 2, 7, 0x12, i * 7919, head, 20);
			feed(r, 2, 12, 0x12, i * 31, head, 16);
			feed(r, 2, 14, 0x12, i * 331, head, 20);
			feed(r, 2, 0, 0x12, i * 17, head, 20);
			feed(r, 2, 1, 0x12, i * 3, head, 20);
		}
		/* Handles, hosts and queue pairs without end. */
		for (uint32_t i = 0; i < 15000; i++) {
			synth_put32(head + 8, i);
			synth_put32(head + 12, 4);
			feed(r, i, 10, i, i, head, 20);
		}
		stats.size = sizeof(stats);
		assert_int_equal(ndx_reassembly_get_stats(r, &stats), NDX_OK);
		assert_true(stats.bytes_peak <= attr.max_bytes);
		assert_true(stats.evictions > 0);
		ndx_reassembly_flush(r);
		assert_int_equal(ndx_reassembly_size(r), 0);
		ndx_reassembly_reset(r);
		stats.size = sizeof(stats);
		assert_int_equal(ndx_reassembly_get_stats(r, &stats), NDX_OK);
		assert_int_equal(stats.packets, 0);
		ndx_reassembly_close(r);
	}
}

/* What was told, by type of event and kind of orphan. */
struct told {
	unsigned events[16];
	unsigned orphans[8];
};

static void note(void *context, const struct ndx_reassembly_event *event)
{
	struct told *told = context;

	told->events[event->type]++;
	if (event->type == NDX_REASSEMBLY_ORPHAN)
		told->orphans[event->orphan.kind]++;
}

static void fragments_of_ip_are_reported(void **state)
{
	uint8_t p[60] = {
		0x45, 0, 0, 60, 0, 1, 0x20, 0, 64, 17, [22] = 4791 >> 8, [23] = 4791 & 255};
	struct ndx_packet packet = {p, 0, sizeof(p), sizeof(p), NDX_LINK_RAW};
	struct ndx_reassembly_stats stats;
	struct ndx_reassembly_attr attr;
	struct told told = {{0}, {0}};
	struct ndx_reassembly *r;

	(void)state;
	ndx_reassembly_attr_init(&attr);
	attr.on_event = note;
	attr.context = &told;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
	assert_int_equal(ndx_reassembly_feed(r, &packet), NDX_OK);
	p[6] = 0;
	p[7] = 5; /* a later one, which may be anything */
	assert_int_equal(ndx_reassembly_feed(r, &packet), NDX_OK);
	stats.size = sizeof(stats);
	assert_int_equal(ndx_reassembly_get_stats(r, &stats), NDX_OK);
	assert_int_equal(stats.ip_fragments, 2);
	assert_int_equal(stats.orphans, 1);
	assert_int_equal(stats.malformed, 0);
	assert_int_equal(told.orphans[NDX_ORPHAN_IP_FRAGMENT], 1);
	ndx_reassembly_close(r);
}

/* A reply whose one chunk returns the same segment, of handle 7, twice: of these lengths. */
static void answer(struct ndx_reassembly *r, uint32_t psn, uint32_t first, uint32_t second)
{
	uint8_t m[28 + 2 * 16 + 8 + 24] = {0};

	synth_put32(m, psn + 1);
	synth_put32(m + 4, 1);
	synth_put32(m + 20, 1);
	synth_put32(m + 24, 2);
	synth_put32(m + 28, 7);
	synth_put32(m + 32, first);
	synth_put32(m + 44, 7);
	synth_put32(m + 48, second);
	synth_put32(m + 68, psn + 1);
	synth_put32(m + 72, 1);
	feed(r, 1, 4, 0x11, psn, m, sizeof(m));
}

/* Reads each byte of a reply. */
static void read_reply(void *context, const struct ndx_reassembly_event *event)
{
	static uint8_t bytes[200000];

	note(context, event);
	if (event->type != NDX_REASSEMBLY_REPLY)
		return;
	assert_true(event->rpc.length <= sizeof(bytes));
	assert_int_equal(
		ndx_piece_copy(event->rpc.pieces, event->rpc.piece_count, bytes, sizeof(bytes)),
		event->rpc.length);
	for (size_t i = 24; i < event->rpc.length; i++)
		assert_int_equal(bytes[i], 0x5a);
}

/* A segment is complete when the bytes of each of its places in the reply have come, whichever of
 * the lengths comes last. The first one is all that it has: no call has told another size. */
static void a_segment_that_is_returned_twice_needs_all_its_bytes(void **state)
{
	static const uint32_t lengths[][2] = {{100000, 0}, {100000, 20}, {0, 100000},
	                                      {40, 20},    {20, 20},     {0, 0}};
	uint8_t data[16 + 20];
	struct ndx_reassembly_attr attr;

	(void)state;
	memset(data, 0x5a, sizeof(data));
	synth_put64(data, 0);
	synth_put32(data + 8, 7);
	synth_put32(data + 12, 20);
	ndx_reassembly_attr_init(&attr);
	attr.on_event = read_reply;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const bool whole = lengths[i][0] <= 20;
		struct told told = {{0}, {0}};
		struct ndx_reassembly *r;

		attr.context = &told;
		assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
		answer(r, 9, lengths[i][0], lengths[i][1]);
		feed(r, 1, 10, 0x11, 8, data, sizeof(data)); /* overtaken by the reply */
		ndx_reassembly_flush(r);
		assert_int_equal(told.events[NDX_REASSEMBLY_REPLY], whole ? 1 : 0);
		assert_int_equal(told.orphans[NDX_ORPHAN_REPLY], 1);
		ndx_reassembly_close(r);
	}
}

/* A call that waits for its data, then nothing for long. */
static void age_is_a_limit(void **state)
{
	uint8_t p[44] = {0};
	struct ndx_packet later = {p, UINT64_C(400) * 1000000000, sizeof(p), sizeof(p), 0};
	struct ndx_reassembly_stats stats;
	struct ndx_reassembly_attr attr;
	struct told told = {{0}, {0}};
	struct ndx_reassembly *r;

	(void)state;
	ndx_reassembly_attr_init(&attr);
	attr.on_event = note;
	attr.context = &told;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
	offer(r, 1, 7, 1, 3, 5000);
	assert_int_equal(ndx_reassembly_size(r), 3);
	later.time_ns = attr.max_age_ns;
	assert_int_equal(ndx_reassembly_feed(r, &later), NDX_OK);
	assert_int_equal(ndx_reassembly_size(r), 3);
	later.time_ns++;
	assert_int_equal(ndx_reassembly_feed(r, &later), NDX_OK);
	assert_int_equal(ndx_reassembly_size(r), 0);
	stats.size = sizeof(stats);
	assert_int_equal(ndx_reassembly_get_stats(r, &stats), NDX_OK);
	assert_int_equal(stats.evictions, 1);
	assert_int_equal(told.events[NDX_REASSEMBLY_EVICTION], 1);
	ndx_reassembly_close(r);
}

static void settings_are_checked(void **state)
{
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *r = NULL;
	struct ndx_packet packet = {0};

	(void)state;
	ndx_reassembly_attr_init(&attr);
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_E_INVALID_PARAMETER);
	attr.on_event = ignore;
	assert_int_equal(ndx_reassembly_create(NULL, &r), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_create(&attr, NULL), NDX_E_INVALID_PARAMETER);
	attr.size--;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_E_INVALID_PARAMETER);
	attr.size++;
	attr.max_bytes = (1 << 20) - 1;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_E_INVALID_PARAMETER);
	attr.max_bytes++;
	attr.max_segments = 0;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_E_INVALID_PARAMETER);
	attr.max_segments = 1;
	assert_null(r);
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
	assert_int_equal(ndx_reassembly_feed(r, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed(NULL, &packet), NDX_E_INVALID_PARAMETER);
	packet.captured = 1;
	assert_int_equal(ndx_reassembly_feed(r, &packet), NDX_E_INVALID_PARAMETER);
	ndx_reassembly_close(r);
	ndx_reassembly_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_checked),
		cmocka_unit_test(hostile_input_stays_within_the_bound),
		cmocka_unit_test(fragments_of_ip_are_reported),
		cmocka_unit_test(a_segment_that_is_returned_twice_needs_all_its_bytes),
		cmocka_unit_test(age_is_a_limit),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
