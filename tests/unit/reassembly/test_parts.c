/* SPDX-License-Identifier: BSD-2-Clause */
/* Reassembly of what the program has dissected: transport, operations, single segments. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <ndx/reassembly_parts.h>

#include "link.h"
#include "synth.h"
#include "synth_packet.h"

#define PAGE 5000u

/* What came out. */
struct told {
	unsigned events[16];
	uint64_t connection; /* of the last call or reply */
	uint32_t number;     /* of a queue pair or port of that connection */
	uint8_t message[2 * PAGE];
	size_t length;
	struct synth_result *result;
};

static void note(void *context, const struct ndx_reassembly_event *event)
{
	struct told *told = context;

	told->events[event->type]++;
	if (event->type != NDX_REASSEMBLY_CALL && event->type != NDX_REASSEMBLY_REPLY)
		return;
	told->connection = event->connection->id;
	told->number = event->connection->side[0].number;
	told->length = ndx_piece_copy(event->rpc.pieces, event->rpc.piece_count, told->message,
	                              sizeof(told->message));
	if (told->result != NULL && event->type == NDX_REASSEMBLY_CALL)
		synth_note(&told->result->calls, 0, event->rpc.pieces, event->rpc.piece_count);
	else if (told->result != NULL && event->rpc.call_known)
		synth_note(&told->result->replies, 0, event->rpc.pieces, event->rpc.piece_count);
}

static struct ndx_reassembly *create(struct told *told)
{
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *r = NULL;

	ndx_reassembly_attr_init(&attr);
	attr.on_event = note;
	attr.context = told;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
	return r;
}

/* ---- transport ---- */

/* Without link and network headers the same comes out. */
static void transport_gives_what_packets_give(void **state)
{
	(void)state;
	for (int wire = 0; wire < SYNTH_WIRES; wire++) {
		struct synth_result whole, parts = {.events = {0}};
		struct told told = {.result = &parts};
		struct ndx_reassembly *r = create(&told);
		struct synth_options options;
		struct synth *synth;

		synth_defaults(&options);
		options.wire = (enum synth_wire)wire;
		options.calls = 40;
		synth = synth_create(&options);
		assert_non_null(synth);
		synth_shuffle(synth, 8, 3);
		synth_run(synth, NULL, &whole);
		for (size_t i = 0; i < synth->count; i++) {
			const struct synth_packet *s = &synth->packets[i];
			struct ndx_packet packet = {s->bytes, s->time_ns, s->captured, s->original,
			                            synth->link_type};
			struct ndx_transport_packet p = {.size = sizeof(p)};
			struct frame f;

			if (link_parse(&packet, &f) != LINK_RDMA)
				continue;
			p.time_ns = s->time_ns;
			p.transport = (enum ndx_rdma_transport)f.transport;
			p.family = (enum ndx_rdma_address)f.family;
			memcpy(p.source.address, f.address.source, 16);
			memcpy(p.destination.address, f.address.destination, 16);
			if (p.family == NDX_RDMA_ADDRESS_IPV4) /* only the last 4 bytes count */
				memset(p.source.address, 9, 12);
			if (p.transport == NDX_RDMA_IWARP) {
				p.source.number = f.source_port;
				p.destination.number = f.destination_port;
				p.sequence = f.sequence;
				p.acknowledged = f.acknowledged;
				p.tcp_flags = f.tcp_flags;
			}
			p.captured = f.captured;
			p.length = f.length;
			p.bytes = f.payload;
			assert_int_equal(ndx_reassembly_feed_transport(r, &p), NDX_OK);
		}
		ndx_reassembly_flush(r);
		assert_true(whole.calls.count >= 40);
		assert_int_equal(parts.calls.count, whole.calls.count);
		assert_int_equal(parts.replies.count, whole.replies.count);
		assert_true(synth_subset(&parts.calls, &whole.calls));
		assert_true(synth_subset(&parts.replies, &whole.replies));
		synth_result_free(&whole);
		synth_result_free(&parts);
		synth_free(synth);
		ndx_reassembly_close(r);
	}
}

static void transport_is_checked(void **state)
{
	static const uint8_t bytes[12];
	const struct ndx_transport_packet good = {.size = sizeof(good),
	                                          .transport = NDX_RDMA_ROCE_V2,
	                                          .family = NDX_RDMA_ADDRESS_IPV4,
	                                          .captured = 12,
	                                          .length = 12,
	                                          .bytes = bytes};
	struct ndx_transport_packet wrong[10], huge = good;
	struct told told = {.length = 0};
	struct ndx_reassembly *r = create(&told);

	(void)state;
	for (size_t i = 0; i < 10; i++)
		wrong[i] = good;
	wrong[0].size = 8;
	wrong[1].transport = (enum ndx_rdma_transport)9;
	wrong[2].family = (enum ndx_rdma_address)5;
	wrong[3].captured = 11;
	wrong[4].length = 11;
	wrong[5].bytes = NULL;
	wrong[6].transport = wrong[7].transport = wrong[8].transport = NDX_RDMA_IWARP;
	wrong[6].source.number = 65536;
	wrong[7].destination.number = NDX_RDMA_QPN_UNKNOWN;
	wrong[8].tcp_flags = 256;
	wrong[9].length = (UINT32_C(1) << 30) + 1;
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(ndx_reassembly_feed_transport(r, &wrong[i]),
		                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed_transport(r, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed_transport(NULL, &good), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed_transport(r, &good), NDX_OK);
	/* The largest, in each place of the window of sequence numbers. */
	huge.length = UINT32_C(1) << 30;
	assert_int_equal(ndx_reassembly_feed_transport(r, &huge), NDX_OK);
	huge.transport = NDX_RDMA_IWARP;
	for (uint32_t i = 0; i < 9; i++) {
		huge.sequence = i << 29;
		assert_int_equal(ndx_reassembly_feed_transport(r, &huge), NDX_OK);
	}
	ndx_reassembly_close(r);
}

/* ---- operations ---- */

/* An operation from host `from` (1 or 2), between queue pairs or ports `number` of both. */
static struct ndx_rdma_operation operation(enum ndx_rdma_transport transport, uint8_t from,
                                           uint32_t number, enum ndx_rdma_operation_kind kind,
                                           const uint8_t *bytes, uint32_t length)
{
	struct ndx_rdma_operation op = {.size = sizeof(op),
	                                .transport = transport,
	                                .family = NDX_RDMA_ADDRESS_IPV4,
	                                .kind = kind,
	                                .captured = length,
	                                .length = length,
	                                .bytes = bytes};

	op.source.address[15] = from;
	op.destination.address[15] = 3 - from;
	op.source.number = op.destination.number = number;
	return op;
}

static void feed_one(struct ndx_reassembly *r, const struct ndx_rdma_operation *op)
{
	assert_int_equal(ndx_reassembly_feed_operation(r, op), NDX_OK);
}

/* RPC-over-RDMA with a read chunk at position 40 and a write chunk; returns the length. */
static uint32_t call_header(uint8_t *m, uint32_t xid, uint32_t handle)
{
	const uint32_t words[] = {xid, 1, 8,      0,          1,    40, handle, PAGE, 0, 0x1000,
	                          0,   1, 1,      handle + 1, PAGE, 0,  0x8000, 0,    0, xid,
	                          0,   2, 100003, 4,          1,    0,  0,      0,    0};

	for (size_t i = 0; i < sizeof(words) / 4; i++)
		synth_put32(m + 4 * i, words[i]);
	return sizeof(words);
}

static uint32_t reply_header(uint8_t *m, uint32_t xid, uint32_t handle)
{
	const uint32_t words[] = {xid,    1, 8, 0,   0, 1, 1, handle + 1, PAGE, 0,
	                          0x8000, 0, 0, xid, 1, 0, 0, 0,          0};

	for (size_t i = 0; i < sizeof(words) / 4; i++)
		synth_put32(m + 4 * i, words[i]);
	return sizeof(words);
}

/* The data of a chunk, in two parts, the second one first. */
static void two_parts(struct ndx_reassembly *r, struct ndx_rdma_operation op, uint64_t address)
{
	const uint8_t *bytes = op.bytes;

	op.address = address + 3000;
	op.bytes = bytes + 3000;
	op.captured = op.length = PAGE - 3000;
	feed_one(r, &op);
	op.address = address;
	op.bytes = bytes;
	op.captured = op.length = 3000;
	feed_one(r, &op);
}

static void operations_become_calls_and_replies(void **state)
{
	static const enum ndx_rdma_transport transports[] = {NDX_RDMA_ROCE_V2, NDX_RDMA_IWARP};
	static uint8_t data[PAGE], back[PAGE], m[256];

	(void)state;
	memset(data, 'd', sizeof(data));
	memset(back, 'b', sizeof(back));
	for (size_t t = 0; t < 2; t++) {
		struct told told = {.length = 0};
		struct ndx_reassembly *r = create(&told);
		struct ndx_rdma_operation op;
		uint64_t connection[2];

		/* Two connections with equal handles and xids: the numbers tell them apart. */
		for (uint32_t number = 17; number < 19; number++) {
			op = operation(transports[t], 1, number, NDX_RDMA_OPERATION_SEND, m,
			               call_header(m, 0xabc, 7));
			feed_one(r, &op);
		}
		assert_int_equal(told.events[NDX_REASSEMBLY_CALL], 0);
		for (uint32_t number = 18; number >= 17; number--) {
			data[0] = back[0] = (uint8_t)number;
			op = operation(transports[t], 2, number, NDX_RDMA_OPERATION_READ, data,
			               PAGE);
			op.handle = 7;
			two_parts(r, op, 0x1000);
			assert_int_equal(told.events[NDX_REASSEMBLY_CALL], 19 - number);
			assert_int_equal(told.length, 40 + PAGE);
			assert_memory_equal(told.message + 40, data, PAGE);
			assert_int_equal(told.number, number);
			connection[number - 17] = told.connection;
			op = operation(transports[t], 2, number, NDX_RDMA_OPERATION_WRITE, back,
			               PAGE);
			op.handle = 8;
			two_parts(r, op, 0x8000);
			op = operation(transports[t], 2, number, NDX_RDMA_OPERATION_SEND, m,
			               reply_header(m, 0xabc, 7));
			feed_one(r, &op);
			assert_int_equal(told.events[NDX_REASSEMBLY_REPLY], 19 - number);
			assert_int_equal(told.length, 24 + PAGE);
			assert_memory_equal(told.message + 24, back, PAGE);
			assert_int_equal(told.connection, connection[number - 17]);
		}
		assert_int_not_equal(connection[0], connection[1]);
		ndx_reassembly_flush(r);
		assert_int_equal(told.events[NDX_REASSEMBLY_HOLE], 0);
		assert_int_equal(told.events[NDX_REASSEMBLY_ORPHAN], 0);
		ndx_reassembly_close(r);
	}
}

static void a_part_that_lacks_is_a_hole(void **state)
{
	static uint8_t data[PAGE], m[256];
	struct told told = {.length = 0};
	struct ndx_reassembly *r = create(&told);
	struct ndx_rdma_operation op;

	(void)state;
	op = operation(NDX_RDMA_ROCE_V2, 1, NDX_RDMA_QPN_UNKNOWN, NDX_RDMA_OPERATION_SEND, m,
	               call_header(m, 5, 7));
	feed_one(r, &op);
	op = operation(NDX_RDMA_ROCE_V2, 2, NDX_RDMA_QPN_UNKNOWN, NDX_RDMA_OPERATION_READ, data,
	               PAGE - 1);
	op.handle = 7;
	op.address = 0x1000;
	op.length = PAGE; /* the capture cut the last byte */
	feed_one(r, &op);
	ndx_reassembly_flush(r);
	assert_int_equal(told.events[NDX_REASSEMBLY_CALL], 0);
	assert_int_equal(told.events[NDX_REASSEMBLY_HOLE], 1);
	ndx_reassembly_close(r);
}

static void operations_are_checked(void **state)
{
	static const uint8_t bytes[4];
	const struct ndx_rdma_operation good =
		operation(NDX_RDMA_ROCE_V2, 1, 0xffffff, NDX_RDMA_OPERATION_SEND, bytes, 4);
	struct ndx_rdma_operation wrong[9];
	struct told told = {.length = 0};
	struct ndx_reassembly *r = create(&told);

	(void)state;
	for (size_t i = 0; i < 9; i++)
		wrong[i] = good;
	wrong[0].size = 16;
	wrong[1].transport = (enum ndx_rdma_transport)0;
	wrong[2].family = (enum ndx_rdma_address)0;
	wrong[3].kind = (enum ndx_rdma_operation_kind)4;
	wrong[4].length = 3;
	wrong[5].bytes = NULL;
	wrong[6].source.number = 1 << 24;
	wrong[7].transport = NDX_RDMA_IWARP;
	wrong[8].kind = (enum ndx_rdma_operation_kind)0;
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(ndx_reassembly_feed_operation(r, &wrong[i]),
		                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed_operation(r, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed_operation(NULL, &good), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_reassembly_feed_operation(r, &good), NDX_OK);
	assert_int_equal(told.events[NDX_REASSEMBLY_SEND], 1);
	ndx_reassembly_close(r);
}

/* Operations without sense take no more memory than the attributes say. */
static void operations_stay_within_the_bound(void **state)
{
	static uint8_t m[256], data[PAGE];
	struct told told = {.length = 0};
	struct ndx_reassembly_stats stats = {.size = sizeof(stats)};
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *r = NULL;

	(void)state;
	ndx_reassembly_attr_init(&attr);
	attr.max_bytes = 1 << 20;
	attr.max_connections = 64;
	attr.on_event = note;
	attr.context = &told;
	assert_int_equal(ndx_reassembly_create(&attr, &r), NDX_OK);
	for (uint32_t i = 0; i < 5000; i++) {
		enum ndx_rdma_transport t = i % 2 != 0 ? NDX_RDMA_IWARP : NDX_RDMA_ROCE_V1;
		struct ndx_rdma_operation op =
			operation(t, (uint8_t)(1 + i % 2), i % 200, NDX_RDMA_OPERATION_SEND, m,
		                  call_header(m, i, i));

		op.destination.number = i * 7 % 300;
		op.has_invalidate = i % 3 == 0;
		op.invalidate = i - 7;
		feed_one(r, &op);
		op.kind = NDX_RDMA_OPERATION_WRITE;
		op.bytes = data;
		op.captured = op.length = PAGE;
		op.handle = i - 3;
		op.address = 0x1000 + i % 3;
		feed_one(r, &op);
	}
	assert_int_equal(ndx_reassembly_get_stats(r, &stats), NDX_OK);
	assert_true(stats.bytes_peak <= attr.max_bytes && stats.evictions > 0);
	ndx_reassembly_flush(r);
	ndx_reassembly_close(r);
}

/* ---- segments ---- */

static struct ndx_rdma_segment *segment_of(uint64_t address, uint32_t length)
{
	struct ndx_rdma_segment *s = NULL;

	assert_int_equal(ndx_rdma_segment_create(address, length, 1 << 20, &s), NDX_OK);
	return s;
}

static void a_segment_takes_packets_by_their_numbers(void **state)
{
	struct ndx_rdma_segment *s = segment_of(1000, 2500);
	uint8_t data[2500], out[2500];
	uint64_t offset = 0, length = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(ndx_rdma_segment_add_packet(s, 1, false, data, 1024), NDX_E_NOT_FOUND);
	/* The numbers wrap around within the operation. */
	assert_int_equal(ndx_rdma_segment_add_operation(s, 0xfffffe, 1000, 2500, 0), NDX_OK);
	assert_true(ndx_rdma_segment_valid_psn(s, 7));
	assert_int_equal(ndx_rdma_segment_add_packet(s, 0, true, data + 2048, 452), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_packet(s, 0xfffffe, false, data, 1024), NDX_OK);
	assert_false(ndx_rdma_segment_valid_psn(s, 1));
	assert_false(ndx_rdma_segment_valid_psn(s, 0xfffffd));
	assert_int_equal(ndx_rdma_segment_size(s), 1476);
	assert_true(ndx_rdma_segment_gap(s, 0, &offset, &length));
	assert_int_equal(offset, 1024);
	assert_int_equal(length, 1024);
	assert_int_equal(ndx_rdma_segment_add_data(s, 2024, data + 1024, 1024), NDX_OK);
	assert_false(ndx_rdma_segment_gap(s, 0, NULL, NULL));
	assert_int_equal(ndx_rdma_segment_get_data(s, false, out, sizeof(out)), 2500);
	assert_memory_equal(out, data, sizeof(data));
	assert_int_equal(ndx_rdma_segment_get_data(s, true, NULL, 99), 2500);
	ndx_rdma_segment_close(s);
}

static void what_is_present_stays(void **state)
{
	struct ndx_rdma_segment *s = segment_of(100, 12);
	uint8_t out[12];

	(void)state;
	assert_int_equal(ndx_rdma_segment_add_data(s, 102, (const uint8_t *)"AA", 2), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_data(s, 106, (const uint8_t *)"BB", 2), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_data(s, 101, (const uint8_t *)"cccccccc", 8), NDX_OK);
	assert_int_equal(ndx_rdma_segment_size(s), 8);
	assert_int_equal(ndx_rdma_segment_get_data(s, false, out, sizeof(out)), 12);
	assert_memory_equal(out, "\0cAAccBBc\0\0\0", 12);
	ndx_rdma_segment_close(s);
}

/* A path MTU that was told holds: packets of another length belong to no operation. */
static void a_path_mtu_that_was_told_stays(void **state)
{
	static const uint8_t data[4096] = {1};
	struct ndx_rdma_segment *s = segment_of(0, 2500);

	(void)state;
	assert_int_equal(ndx_rdma_segment_add_operation(s, 0, 0, 2500, 1024), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_packet(s, 1, false, data, 4096), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_rdma_segment_add_packet(s, 1, false, data, 1000), NDX_E_NOT_FOUND);
	assert_true(ndx_rdma_segment_valid_psn(s, 2));
	assert_int_equal(ndx_rdma_segment_add_packet(s, 1, false, data, 1024), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_packet(s, 2, true, data, 452), NDX_OK);
	assert_int_equal(ndx_rdma_segment_size(s), 1476);
	ndx_rdma_segment_close(s);
}

static void a_segment_takes_responses_by_their_requests(void **state)
{
	struct ndx_rdma_segment *s = segment_of(UINT64_MAX - 99, 100);
	const uint8_t *text = (const uint8_t *)"0123456789";
	uint8_t out[100];

	(void)state;
	assert_int_equal(ndx_rdma_segment_add_request(s, 3, 500, UINT64_MAX - 9, 10), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_request(s, 3, 500, UINT64_MAX - 99, 10), NDX_OK);
	assert_int_equal(ndx_rdma_segment_add_request(s, 3, 0, 5, 10), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_rdma_segment_add_response(s, 4, 500, text, 10), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_rdma_segment_add_response(s, 3, 501, text, 10), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_rdma_segment_add_response(s, 3, 504, text + 4, 6), NDX_OK);
	assert_int_equal(ndx_rdma_segment_size(s), 6);
	assert_int_equal(ndx_rdma_segment_get_data(s, false, out, sizeof(out)), 100);
	assert_memory_equal(out + 4, text + 4, 6);
	ndx_rdma_segment_close(s);
}

static void segments_are_checked(void **state)
{
	struct ndx_rdma_segment *s = NULL;
	const uint8_t *x = (const uint8_t *)"x";

	(void)state;
	assert_int_equal(ndx_rdma_segment_create(0, 0, 9999, &s), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_create(0, 1, 9999, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_create(UINT64_MAX, 2, 9999, &s), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_create(0, 1, 9, &s), NDX_E_NO_MEMORY);
	assert_null(s);
	s = segment_of(0, UINT32_MAX);
	assert_int_equal(ndx_rdma_segment_add_operation(s, 1 << 24, 0, 1, 0),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_operation(s, 0, 0, 1, 1000), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_operation(s, 0, UINT32_MAX, 1, 256), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_rdma_segment_add_packet(s, 1 << 24, true, x, 1),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_data(s, 0, NULL, 1), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_data(s, UINT32_MAX, x, 1), NDX_E_NOT_FOUND);
	for (uint32_t i = 0; i < 1024; i++) {
		assert_int_equal(ndx_rdma_segment_add_operation(s, i, 0, 1, 0), NDX_OK);
		assert_int_equal(ndx_rdma_segment_add_request(s, i, 0, 0, 1), NDX_OK);
	}
	assert_int_equal(ndx_rdma_segment_add_operation(s, 0, 0, 1, 0), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(ndx_rdma_segment_add_request(s, 0, 0, 0, 1), NDX_E_NO_MORE_ENTRIES);
	/* A byte in each block, until the memory that was allowed is used. */
	for (uint32_t i = 0; i < 32; i++)
		(void)ndx_rdma_segment_add_data(s, i * 32768, x, 1);
	assert_int_equal(ndx_rdma_segment_add_data(s, 40 * 32768, x, 1), NDX_E_NO_MEMORY);
	assert_int_equal(ndx_rdma_segment_add_data(s, 0, x, 1), NDX_OK);
	ndx_rdma_segment_close(s);
	ndx_rdma_segment_close(NULL);
	assert_int_equal(ndx_rdma_segment_add_data(NULL, 0, x, 1), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_packet(NULL, 0, true, x, 1), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_operation(NULL, 0, 0, 1, 0), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_request(NULL, 0, 0, 0, 1), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_add_response(NULL, 0, 0, x, 1), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_rdma_segment_size(NULL), 0);
	assert_int_equal(ndx_rdma_segment_get_data(NULL, true, NULL, 0), 0);
	assert_false(ndx_rdma_segment_valid_psn(NULL, 0));
	assert_false(ndx_rdma_segment_gap(NULL, 0, NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transport_gives_what_packets_give),
		cmocka_unit_test(transport_is_checked),
		cmocka_unit_test(operations_become_calls_and_replies),
		cmocka_unit_test(a_part_that_lacks_is_a_hole),
		cmocka_unit_test(operations_are_checked),
		cmocka_unit_test(operations_stay_within_the_bound),
		cmocka_unit_test(a_segment_takes_packets_by_their_numbers),
		cmocka_unit_test(what_is_present_stays),
		cmocka_unit_test(a_path_mtu_that_was_told_stays),
		cmocka_unit_test(a_segment_takes_responses_by_their_requests),
		cmocka_unit_test(segments_are_checked),
	};

	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
