/* SPDX-License-Identifier: BSD-2-Clause */
/* data.*: what is posted at one side arrives at the other. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "traffic.h"

static const size_t sizes[] = {0,    1,    2,     7,     63,    64,      65,
                               127,  128,  129,   511,   1500,  2048,    4095,
                               4097, 9000, 16384, 65536, 65537, 1048576, 1048577};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LARGE = (2 << 20) + 4096 };

static struct pair *pair_with_buffer(struct check *c, size_t bytes)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.buffer = bytes;
	return pair_up(c, &attr);
}

static bool within_limit(const struct side *s, size_t size)
{
	return size <= s->place->info.max_transfer_length;
}

void case_data_sends_of_all_sizes(struct check *c)
{
	struct pair *p = pair_with_buffer(c, LARGE);

	for (size_t i = 0; p && i < SIZES; i++) {
		if (!within_limit(&p->a, sizes[i]) || !within_limit(&p->b, sizes[i]))
			continue;
		if (!message_passes(&p->a, &p->b, sizes[i]) ||
		    !message_passes(&p->b, &p->a, sizes[i]))
			return;
	}
}

void case_data_messages_leave_the_rest_of_a_receive_alone(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	memset(p->b.buf, 0xee, 8192);
	pattern_fill(p->a.buf, 100, 1);
	receive_ok(&p->b, 1, 512, 4096);
	send_ok(&p->a, 2, 0, 100, 0);
	expect_received(&p->b, 1, 100);
	pattern_there(c, p->b.buf + 512, 100, 1, "message");
	bytes_are(c, p->b.buf, 512, 0xee, "in front of the message");
	bytes_are(c, p->b.buf + 612, 8192 - 612, 0xee, "behind the message");
}

void case_data_requests_without_sges(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1), NULL, 0), NDX_OK, "receive");
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), NULL, 0, 0), NDX_OK, "send");
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	expect_received(&p->b, 1, 0);
	receive_ok(&p->b, 3, 0, 64);
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 4), NULL, 0, 0), NDX_OK, "send");
	expect(&p->a, NDX_REQUEST_SEND, 4, NDX_OK);
	expect_received(&p->b, 3, 0);
}

/* Pieces of the buffer, in another order than in memory, some of them empty. */
static size_t scatter(const struct side *s, struct ndx_sge *list, size_t count, size_t piece)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		size_t length = i == 1 ? 0 : piece + i;

		list[i] = sge(s, (count - 1 - i) * (piece + count), length);
		total += length;
	}
	return total;
}

static void gather(uint8_t *out, const struct ndx_sge *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		memcpy(out, list[i].buffer, list[i].length);
		out += list[i].length;
	}
}

void case_data_gathers_and_scatters_in_order(struct check *c)
{
	enum { PIECE = 1000, MOST = 16 };
	struct ndx_sge from[MOST];
	struct ndx_sge to[MOST];
	uint8_t sent[65536];
	uint8_t got[65536];
	struct side_attr attr[2];
	struct pair *p;
	uint32_t count = c->world->places[0].info.max_initiator_sge;
	uint32_t receive_count = c->world->places[1].info.max_receive_sge;
	size_t total;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].initiator_sge = count < MOST ? count : MOST;
	attr[1].receive_sge = receive_count < MOST ? receive_count : MOST;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	pattern_fill(p->a.buf, p->a.attr.buffer, 4);
	total = scatter(&p->a, from, attr[0].initiator_sge, PIECE);
	(void)scatter(&p->b, to, attr[1].receive_sge,
	              attr[1].receive_sge > 2 ? 64000 / attr[1].receive_sge / 2 : 30000);
	check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1), to, attr[1].receive_sge), NDX_OK,
	             "receive");
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), from, attr[0].initiator_sge, 0), NDX_OK,
	             "send");
	memset(from, 0xff, sizeof(from)); /* a post consumes the list */
	(void)scatter(&p->a, from, attr[0].initiator_sge, PIECE);
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	expect_received(&p->b, 1, total);
	gather(sent, from, attr[0].initiator_sge);
	gather(got, to, attr[1].receive_sge);
	check_that(c, memcmp(sent, got, total) == 0, "the pieces were put together wrongly");
}

void case_data_writes_of_all_sizes(struct check *c)
{
	struct pair *p = pair_with_buffer(c, LARGE);

	for (size_t i = 0; p && i < SIZES && !check_over(c); i++) {
		uint64_t key = check_random(c);

		if (!within_limit(&p->a, sizes[i]))
			continue;
		memset(p->b.buf, 0xee, sizes[i] + 1024);
		pattern_fill(p->a.buf, sizes[i], key);
		write_ok(&p->a, i, 0, sizes[i], &p->b, 512, 0);
		expect(&p->a, NDX_REQUEST_WRITE, i, NDX_OK);
		pattern_there(c, p->b.buf + 512, sizes[i], key, "written data");
		bytes_are(c, p->b.buf, 512, 0xee, "in front of a write");
		bytes_are(c, p->b.buf + 512 + sizes[i], 512, 0xee, "behind a write");
	}
}

void case_data_reads_of_all_sizes(struct check *c)
{
	struct pair *p = pair_with_buffer(c, LARGE);

	for (size_t i = 0; p && i < SIZES && !check_over(c); i++) {
		uint64_t key = check_random(c);

		if (!within_limit(&p->a, sizes[i]))
			continue;
		memset(p->a.buf, 0xee, sizes[i] + 1024);
		pattern_fill(p->b.buf, sizes[i], key);
		read_ok(&p->a, i, 512, sizes[i], &p->b, 0, 0);
		expect(&p->a, NDX_REQUEST_READ, i, NDX_OK);
		pattern_there(c, p->a.buf + 512, sizes[i], key, "read data");
		bytes_are(c, p->a.buf, 512, 0xee, "in front of a read");
		bytes_are(c, p->a.buf + 512 + sizes[i], 512, 0xee, "behind a read");
	}
}

void case_data_passive_side_reads_and_writes_too(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	pattern_fill(p->b.buf, 4096, 31);
	pattern_fill(p->a.buf + 8192, 4096, 32);
	write_ok(&p->b, 1, 0, 4096, &p->a, 0, 0);
	read_ok(&p->b, 2, 8192, 4096, &p->a, 8192, 0);
	expect(&p->b, NDX_REQUEST_WRITE, 1, NDX_OK);
	expect(&p->b, NDX_REQUEST_READ, 2, NDX_OK);
	pattern_there(c, p->a.buf, 4096, 31, "written data");
	pattern_there(c, p->b.buf + 8192, 4096, 32, "read data");
}

void case_data_reads_and_writes_of_no_bytes(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	/* neither address nor token need to mean anything then */
	check_status(c, ndx_qp_read(p->a.qp, tag(&p->a, 1), NULL, 0, 0, 0, 0), NDX_OK, "read");
	check_status(c, ndx_qp_write(p->a.qp, tag(&p->a, 2), NULL, 0, 1, 0x12345678, 0), NDX_OK,
	             "write");
	read_ok(&p->a, 3, 0, 0, &p->b, 0, 0);
	write_ok(&p->a, 4, 0, 0, &p->b, p->b.attr.buffer, 0);
	expect(&p->a, NDX_REQUEST_READ, 1, NDX_OK);
	expect(&p->a, NDX_REQUEST_WRITE, 2, NDX_OK);
	expect(&p->a, NDX_REQUEST_READ, 3, NDX_OK);
	expect(&p->a, NDX_REQUEST_WRITE, 4, NDX_OK);
	message_passes(&p->a, &p->b, 64);
}

void case_data_reads_and_writes_with_several_sges(struct check *c)
{
	enum { PIECE = 500, MOST = 8 };
	struct ndx_sge list[MOST];
	uint8_t seen[MOST * (PIECE + MOST)];
	struct side_attr attr[2];
	struct pair *p;
	uint32_t count = c->world->places[0].info.max_read_sge;
	size_t total;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].initiator_sge = count < MOST ? count : MOST;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	pattern_fill(p->a.buf, 16384, 6);
	total = scatter(&p->a, list, attr[0].initiator_sge, PIECE);
	gather(seen, list, attr[0].initiator_sge);
	check_status(c,
	             ndx_qp_write(p->a.qp, tag(&p->a, 1), list, attr[0].initiator_sge,
	                          (uint64_t)(uintptr_t)p->b.buf, ndx_mr_get_remote_token(p->b.mr),
	                          0),
	             NDX_OK, "write");
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	check_that(c, memcmp(p->b.buf, seen, total) == 0, "the write was put together wrongly");
	memset(p->a.buf, 0, 16384);
	check_status(c,
	             ndx_qp_read(p->a.qp, tag(&p->a, 2), list, attr[0].initiator_sge,
	                         (uint64_t)(uintptr_t)p->b.buf, ndx_mr_get_remote_token(p->b.mr),
	                         0),
	             NDX_OK, "read");
	expect(&p->a, NDX_REQUEST_READ, 2, NDX_OK);
	gather(seen, list, attr[0].initiator_sge);
	check_that(c, memcmp(p->b.buf, seen, total) == 0, "the read was taken apart wrongly");
}

void case_data_written_before_a_message_is_there_with_it(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	for (size_t i = 0; p && i < 50 && !check_over(c); i++) {
		size_t length = 1 + check_below(c, 20000);
		uint64_t key = check_random(c);

		pattern_fill(p->a.buf, length, key);
		receive_ok(&p->b, 1, 40000, 64);
		write_ok(&p->a, 2, 0, length, &p->b, 0, NDX_OP_SILENT_SUCCESS);
		send_ok(&p->a, 3, 0, 1, 0);
		expect_received(&p->b, 1, 1);
		pattern_there(c, p->b.buf, length, key, "data written before the message");
		expect(&p->a, NDX_REQUEST_SEND, 3, NDX_OK);
	}
}

/* The peer's consumer makes no call at all while its memory is worked on. */
void case_data_peers_memory_is_served_without_its_consumer(struct check *c)
{
	struct pair *p = pair_with_buffer(c, LARGE);
	volatile uint8_t *last;
	uint64_t until;

	if (!p)
		return;
	last = p->b.buf + ((size_t)1 << 20) - 1;
	memset(p->a.buf, 0x5a, (size_t)1 << 20);
	write_ok(&p->a, 1, 0, (size_t)1 << 20, &p->b, 0, 0);
	until = now_ms() + WAIT_MS;
	while (*last != 0x5a && now_ms() < until)
		continue;
	check_that(c, *last == 0x5a, "waited %d ms for the last byte of a write", WAIT_MS);
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	pattern_fill(p->b.buf, (size_t)1 << 20, 8);
	read_ok(&p->a, 2, 0, (size_t)1 << 20, &p->b, 0, 0);
	expect(&p->a, NDX_REQUEST_READ, 2, NDX_OK);
	pattern_there(c, p->a.buf, (size_t)1 << 20, 8, "read data");
}

/* Programs poll the last byte of a write, and then use all that is in front of it. */
void case_data_bytes_appear_in_order(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	for (size_t i = 1; p && i <= 200 && !check_over(c); i++) {
		size_t length = 1 + check_below(c, 60000);
		uint8_t value = (uint8_t)(1 + i % 250);
		const uint8_t *last = p->b.buf + length - 1;
		uint64_t until = now_ms() + WAIT_MS;

		memset(p->b.buf, 0, length);
		memset(p->a.buf, value, length);
		write_ok(&p->a, i, 0, length, &p->b, 0, 0);
		while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != value && now_ms() < until)
			continue;
		bytes_are(c, p->b.buf, length, value, "in front of the last byte of a write");
		expect(&p->a, NDX_REQUEST_WRITE, i, NDX_OK);
	}
}

void case_data_immediate_with_send(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_result result = {.status = NDX_PENDING};
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->a, 0, 100);
	receives_ok(&p->b, 0, 3, 0, 128);
	check_status(c, ndx_qp_send_immediate(p->a.qp, tag(&p->a, 1), &one, 1, 0xdeadbeef, 0),
	             NDX_OK, "send_immediate");
	check_status(c, ndx_qp_send_immediate(p->a.qp, tag(&p->a, 2), NULL, 0, 0, 0), NDX_OK,
	             "send_immediate of no bytes");
	send_ok(&p->a, 3, 0, 100, 0);
	for (size_t i = 0; i < 3; i++) {
		bool with = i < 2;

		(void)take(&p->b, p->b.rcq, &result);
		result_is(&p->b, &result, NDX_REQUEST_RECEIVE, i, NDX_OK);
		check_that(c, result.bytes_transferred == (i == 1 ? 0u : 100u), "%u bytes",
		           result.bytes_transferred);
		check_that(c, ((result.flags & NDX_RESULT_IMMEDIATE) != 0) == with,
		           "receive %zu: flags %#x", i, result.flags);
		check_that(c, !with || result.immediate == (i == 0 ? 0xdeadbeef : 0),
		           "receive %zu: immediate %#x", i, result.immediate);
	}
	expect_run(&p->a, NDX_REQUEST_SEND, 1, 3, NDX_OK);
}

static void write_immediate(struct pair *p, size_t number, size_t length, uint32_t immediate)
{
	struct ndx_sge one = sge(&p->a, 0, length);

	check_status(p->c,
	             ndx_qp_write_immediate(p->a.qp, tag(&p->a, number), &one, length ? 1 : 0,
	                                    (uint64_t)(uintptr_t)(p->b.buf + 4096),
	                                    ndx_mr_get_remote_token(p->b.mr), immediate, 0),
	             NDX_OK, "write_immediate");
}

void case_data_immediate_with_write(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_result result = {.status = NDX_PENDING};

	if (!p)
		return;
	memset(p->b.buf, 0xee, 256);
	receives_ok(&p->b, 0, 2, 0, 128);
	pattern_fill(p->a.buf, 1000, 12);
	write_immediate(p, 1, 1000, 0x01020304);
	write_immediate(p, 2, 0, 5);
	for (size_t i = 0; i < 2; i++) {
		(void)take(&p->b, p->b.rcq, &result);
		result_is(&p->b, &result, NDX_REQUEST_RECEIVE, i, NDX_OK);
		check_that(c, result.bytes_transferred == (i == 0 ? 1000u : 0u), "%u bytes",
		           result.bytes_transferred);
		check_that(c,
		           (result.flags & NDX_RESULT_IMMEDIATE) &&
		                   result.immediate == (i == 0 ? 0x01020304u : 5u),
		           "flags %#x, immediate %#x", result.flags, result.immediate);
	}
	expect_run(&p->a, NDX_REQUEST_WRITE, 1, 2, NDX_OK);
	pattern_there(c, p->b.buf + 4096, 1000, 12, "written data");
	bytes_are(c, p->b.buf, 256, 0xee, "the receives' own memory");
}

void case_data_no_immediate_without_the_capability(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;
	bool all = true;

	if (!p)
		return;
	one = sge(&p->a, 0, 8);
	if (!has_capability(&p->a, NDX_CAP_SEND_IMMEDIATE)) {
		all = false;
		check_status(c, ndx_qp_send_immediate(p->a.qp, NULL, &one, 1, 1, 0),
		             NDX_E_NOT_SUPPORTED, "send_immediate");
	}
	if (!has_capability(&p->a, NDX_CAP_WRITE_IMMEDIATE)) {
		all = false;
		check_status(c, ndx_qp_write_immediate(p->a.qp, NULL, &one, 1, 0, 0, 1, 0),
		             NDX_E_NOT_SUPPORTED, "write_immediate");
	}
	if (all)
		check_skip(c, "the adapter has both capabilities");
}

/* The send would carry the old bytes if it did not wait for the read. */
static bool fenced(struct pair *p, bool write)
{
	const size_t length = (size_t)1 << 20;
	struct check *c = p->c;

	memset(p->a.buf, 0x11, length);
	memset(p->b.buf, 0x22, length);
	memset(p->b.buf + length, 0, length);
	receive_ok(&p->b, 1, length, length);
	read_ok(&p->a, 2, 0, length, &p->b, 0, 0);
	if (write)
		write_ok(&p->a, 3, 0, length, &p->b, length, NDX_OP_READ_FENCE);
	else
		send_ok(&p->a, 3, 0, length, NDX_OP_READ_FENCE);
	expect(&p->a, NDX_REQUEST_READ, 2, NDX_OK);
	expect(&p->a, write ? NDX_REQUEST_WRITE : NDX_REQUEST_SEND, 3, NDX_OK);
	if (write)
		send_ok(&p->a, 4, 0, 0, 0);
	expect_received(&p->b, 1, write ? 0 : length);
	if (write)
		expect(&p->a, NDX_REQUEST_SEND, 4, NDX_OK);
	return bytes_are(c, p->b.buf + length, length, 0x22, "sent behind the fence");
}

void case_data_read_fence_orders_send_after_read(struct check *c)
{
	struct pair *p = pair_with_buffer(c, LARGE);

	(void)(p && fenced(p, false) && fenced(p, false));
}

void case_data_read_fence_orders_write_after_read(struct check *c)
{
	struct pair *p = pair_with_buffer(c, LARGE);

	(void)(p && fenced(p, true) && fenced(p, true));
}

void case_data_registered_rights_are_enough(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	/* remote write contains local write; remote read alone allows sending */
	side_attr_init(&attr);
	attr.access = NDX_MR_ALLOW_REMOTE_WRITE;
	p = pair_up(c, &attr);
	if (!p)
		return;
	message_passes(&p->a, &p->b, 64);
	pair_close_all(c);
	attr.access = NDX_MR_ALLOW_LOCAL_WRITE;
	p = pair_up(c, &attr);
	if (p)
		message_passes(&p->a, &p->b, 64);
}
