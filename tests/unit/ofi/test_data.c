/* SPDX-License-Identifier: BSD-2-Clause */
/* Data transfer over ofi:tcp: sizes, credits, read fences, limits, violations. */
#include "pair.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#define HALF (PAIR_MEMORY / 2)

static void send_and_compare(struct pair *p, uint32_t length, uint32_t flags)
{
	struct ndx_result result;

	pair_fill(p->a.memory, length, length);
	pair_receive(&p->b, 1, HALF, HALF);
	pair_send(&p->a, 2, 0, length, flags);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	result = pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	assert_int_equal(result.bytes_transferred, length);
	assert_int_equal(result.flags, 0);
	pair_assert_filled(p->b.memory + HALF, length, length);
}

static void messages_of_all_sizes_arrive(void **state)
{
	static const uint32_t lengths[] = {0, 1, 127, 128, 129, 4095, 65536, 1000000, HALF};
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		send_and_compare(p, lengths[i], 0);
	pair_disconnect(p);
	pair_drop(p);
}

static void pieces_are_gathered_and_scattered(void **state)
{
	struct pair *p = *state;
	struct ndx_sge from[4];
	struct ndx_sge to[4];

	p->attr.max_initiator_sge = 4;
	p->attr.max_receive_sge = 4;
	pair_make(p);
	pair_connect(p);
	pair_fill(p->a.memory, 4000, 3);
	for (uint32_t i = 0; i < 4; i++) {
		from[i] = pair_sge(&p->a, i * 1000, 1000);
		to[i] = pair_sge(&p->b, HALF + i * 1500, i == 3 ? 2000 : 800);
	}
	assert_int_equal(ndx_qp_receive(p->b.qp, NULL, to, 4), NDX_OK);
	assert_int_equal(ndx_qp_send(p->a.qp, NULL, from, 4, 0), NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	assert_int_equal(pair_expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_OK).bytes_transferred,
	                 4000);
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(p->b.memory + HALF + i * 1500, p->a.memory + i * 800,
		                    i == 3 ? 1600 : 800);
	assert_int_equal(ndx_qp_send(p->a.qp, NULL, (struct ndx_sge[5]){{0}}, 5, 0),
	                 NDX_E_DATA_OVERRUN);
	pair_disconnect(p);
	pair_drop(p);
}

static void immediate_data_arrive_with_the_message(void **state)
{
	struct pair *p = *state;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 10);
	struct ndx_result result;

	pair_make(p);
	pair_connect(p);
	pair_receive(&p->b, 1, 0, 100);
	assert_int_equal(ndx_qp_send_immediate(p->a.qp, NULL, &sge, 1, 0xdeadbeef,
	                                       NDX_OP_SILENT_SUCCESS | NDX_OP_SOLICIT_EVENT),
	                 NDX_OK);
	result = pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	assert_int_equal(result.flags, NDX_RESULT_IMMEDIATE | NDX_RESULT_SOLICITED);
	assert_int_equal(result.immediate, 0xdeadbeef);
	assert_int_equal(result.bytes_transferred, 10);
	pair_disconnect(p);
	pair_drop(p);
}

static void inline_data_may_change_after_the_post(void **state)
{
	struct pair *p = *state;
	char text[] = "inline data, anywhere";
	const struct ndx_sge sge[6] = {{text, 1, 0}, {text + 1, 1, 0},  {text + 2, 1, 0},
	                               {text, 0, 0}, {text + 3, 10, 0}, {text + 13, 9, 0}};

	p->attr.inline_size = 64;
	pair_make(p);
	pair_connect(p);
	/* No receive is posted: the provider keeps the request and its data. */
	assert_int_equal(ndx_qp_send(p->a.qp, NULL, sge, 6, NDX_OP_INLINE), NDX_OK);
	memset(text, 'x', sizeof(text));
	pair_receive(&p->b, 0, 0, 100);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	assert_string_equal((char *)p->b.memory, "inline data, anywhere");
	assert_int_equal(
		ndx_qp_send(p->a.qp, NULL, (struct ndx_sge[1]){{text, 65, 0}}, 1, NDX_OP_INLINE),
		NDX_E_BUFFER_OVERFLOW);
	pair_disconnect(p);
	pair_drop(p);
}

static void memory_is_read_and_written_at_the_peer(void **state)
{
	struct pair *p = *state;
	const uint32_t token = ndx_mr_get_remote_token(p->b.mr);
	const uint64_t remote = (uintptr_t)p->b.memory;
	struct ndx_sge sge = pair_sge(&p->a, 0, HALF);

	pair_make(p);
	pair_connect(p);
	pair_fill(p->a.memory, HALF, 1);
	assert_int_equal(ndx_qp_write(p->a.qp, NULL, &sge, 1, remote + 5, token, 0), NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	pair_assert_filled(p->b.memory + 5, HALF, 1);
	pair_fill(p->b.memory, HALF, 2);
	assert_int_equal(ndx_qp_read(p->a.qp, NULL, &sge, 1, remote, token, 0), NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_READ, 0, NDX_OK);
	pair_assert_filled(p->a.memory, HALF, 2);
	/* A read of no bytes, with neither address nor token, probes the peer. */
	assert_int_equal(ndx_qp_read(p->a.qp, NULL, NULL, 0, 1234, 5678, 0), NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_READ, 0, NDX_OK);
	assert_int_equal(ndx_qp_write(p->a.qp, NULL, NULL, 0, 1234, 5678, 0), NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

static void a_fenced_send_carries_what_was_read(void **state)
{
	struct pair *p = *state;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 1 << 20);

	pair_make(p);
	pair_connect(p);
	for (uintptr_t i = 0; i < 20; i++) {
		pair_fill(p->b.memory, 1 << 20, (unsigned)i);
		memset(p->a.memory, 0xee, 1 << 20);
		pair_receive(&p->b, 1, HALF, 1 << 20);
		assert_int_equal(ndx_qp_read(p->a.qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
		                             ndx_mr_get_remote_token(p->b.mr), 0),
		                 NDX_OK);
		assert_int_equal(ndx_qp_send(p->a.qp, (void *)2, &sge, 1, NDX_OP_READ_FENCE),
		                 NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
		pair_assert_filled(p->b.memory + HALF, 1 << 20, (unsigned)i);
		pair_expect(&p->a, NDX_REQUEST_READ, 0, NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void reads_beyond_the_limit_wait_and_without_limit_are_refused(void **state)
{
	struct pair *p = *state;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 100000);

	p->read_limit = 1;
	p->attr.initiator_depth = 32;
	pair_make(p);
	pair_connect(p);
	for (uintptr_t i = 0; i < 32; i++)
		assert_int_equal(ndx_qp_read(p->a.qp, (void *)i, &sge, 1, (uintptr_t)p->b.memory,
		                             ndx_mr_get_remote_token(p->b.mr), 0),
		                 NDX_OK);
	assert_int_equal(ndx_qp_read(p->a.qp, NULL, NULL, 0, 0, 0, 0), NDX_E_NO_MORE_ENTRIES);
	for (uintptr_t i = 0; i < 32; i++)
		pair_expect(&p->a, NDX_REQUEST_READ, i, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);

	p->read_limit = 0;
	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_qp_read(p->a.qp, NULL, &sge, 1, 0, 0, 0),
	                 NDX_E_INVALID_DEVICE_REQUEST);
	pair_disconnect(p);
	pair_drop(p);
}

/* Each side keeps its receives posted and its send queue full until it has sent `total`
 * messages. */
struct stream {
	struct pair_side *side;
	uint32_t depth;
	unsigned total;
	unsigned posted;
	unsigned sent;
	unsigned received;
};

static void stream_begin(struct stream *s)
{
	for (uint32_t i = 0; i < s->depth; i++)
		pair_receive(s->side, i, HALF + i * 64, 64);
}

static bool stream_step(struct stream *s)
{
	const struct ndx_sge sge = pair_sge(s->side, (s->posted % 64) * 64, 1 + s->posted % 64);
	struct ndx_result results[16];
	size_t n;

	if (s->posted < s->total && ndx_qp_send(s->side->qp, NULL, &sge, 1, 0) == NDX_OK)
		s->posted++;
	n = ndx_cq_get_results(s->side->cq, results, 16);
	for (size_t i = 0; i < n; i++) {
		const uintptr_t slot = (uintptr_t)results[i].request_context;

		assert_int_equal(results[i].status, NDX_OK);
		if (results[i].request_type == NDX_REQUEST_SEND) {
			s->sent++;
			continue;
		}
		/* Messages arrive in order: the length identifies the message. */
		assert_int_equal(results[i].bytes_transferred, 1 + s->received % 64);
		assert_int_equal(slot, s->received % s->depth);
		s->received++;
		pair_receive(s->side, slot, HALF + slot * 64, 64);
	}
	return s->sent == s->total && s->received == s->total;
}

static void run_streams(struct pair *p, uint32_t depth, unsigned total)
{
	struct stream a = {.side = &p->a, .depth = depth, .total = total};
	struct stream b = {.side = &p->b, .depth = depth, .total = total};
	const uint64_t end = pair_now() + 6 * PAIR_TIMEOUT_MS;
	bool done = false;

	p->attr.receive_depth = depth;
	p->attr.initiator_depth = depth;
	pair_make(p);
	stream_begin(&a);
	pair_connect(p);
	stream_begin(&b);
	while (!done && pair_now() < end) {
		done = stream_step(&a);
		done = stream_step(&b) && done;
	}
	assert_true(done);
	pair_disconnect(p);
	pair_drop(p);
}

static void streams_both_ways_run_with_receive_queues_of_any_depth(void **state)
{
	static const uint32_t depths[] = {1, 2, 3, 4, 64, 4096};

	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
		run_streams(*state, depths[i], 5000);
}

/* More bytes than sockets buffer: the transfer needs a thread that continues it. */
#define HUGE (UINT32_C(1) << 26)

static struct ndx_sge huge_sge(struct pair_side *side, unsigned char fill, struct ndx_mr **mr)
{
	unsigned char *memory =
		mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	memset(memory, fill, HUGE);
	assert_int_equal(
		ndx_mr_register_new(side->adapter, memory, HUGE, NDX_MR_ALLOW_LOCAL_WRITE, mr),
		NDX_OK);
	return (struct ndx_sge){memory, HUGE, ndx_mr_get_local_token(*mr)};
}

static void a_transfer_needs_no_polls_on_either_side(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr[2];
	const struct ndx_sge from = huge_sge(&p->a, 7, &mr[0]);
	const struct ndx_sge to = huge_sge(&p->b, 0, &mr[1]);
	const volatile unsigned char *last = (const unsigned char *)to.buffer + HUGE - 1;
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, &to, 1), NDX_OK);
	(void)poll(NULL, 0, 50); /* all threads of the provider go to sleep */
	assert_int_equal(ndx_qp_send(p->a.qp, NULL, &from, 1, 0), NDX_OK);
	while (*last != 7 && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_int_equal(*last, 7);
	pair_expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
	ndx_mr_close(mr[0]);
	ndx_mr_close(mr[1]);
	(void)munmap((void *)(uintptr_t)from.buffer, HUGE);
	(void)munmap((void *)(uintptr_t)to.buffer, HUGE);
}

static void a_send_without_receive_times_out_and_ends_the_connection(void **state)
{
	struct pair *p = *state;
	uint64_t before;

	p->attr.no_receive_timeout_ms = 200;
	pair_make(p);
	pair_connect(p);
	before = pair_now();
	pair_send(&p->a, 1, 0, 10, 0);
	pair_send(&p->a, 2, 0, 10, 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_IO_TIMEOUT);
	assert_in_range(pair_now() - before, 195, PAIR_TIMEOUT_MS);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_CANCELED);
	assert_int_equal(ndx_connector_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_ABORTED);
	pair_drop(p);
}

static void a_late_receive_saves_the_send(void **state)
{
	struct pair *p = *state;

	p->attr.no_receive_timeout_ms = 60000;
	pair_make(p);
	pair_connect(p);
	for (uintptr_t i = 0; i < 8; i++)
		pair_send(&p->a, i, 0, 10, 0);
	for (uintptr_t i = 0; i < 8; i++) {
		pair_receive(&p->b, i, 0, 64);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void a_message_longer_than_its_receive_ends_the_connection(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	pair_receive(&p->b, 1, 0, 10);
	pair_receive(&p->b, 2, 0, 1000);
	pair_send(&p->a, 3, 0, 11, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_BUFFER_OVERFLOW);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_CANCELED);
	pair_expect(&p->a, NDX_REQUEST_SEND, 3, NDX_E_DATA_OVERRUN);
	assert_int_equal(ndx_connector_notify_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(p->a.ov.information, NDX_DISCONNECT_ABORTED);
	pair_drop(p);
}

static void foreign_local_memory_is_a_violation(void **state)
{
	struct pair *p = *state;
	struct ndx_sge bad[4] = {pair_sge(&p->a, 0, 10), pair_sge(&p->a, 0, 10),
	                         pair_sge(&p->a, PAIR_MEMORY - 5, 5), pair_sge(&p->a, 0, 10)};

	bad[0].token ^= 1u << 20;                                 /* no such token */
	bad[1].buffer = (const unsigned char *)bad[1].buffer - 1; /* before the region */
	bad[2].length = 6;                                        /* beyond the region */
	bad[3].token = 0;
	for (size_t i = 0; i < 4; i++) {
		pair_make(p);
		pair_connect(p);
		pair_receive(&p->b, 1, 0, 100);
		assert_int_equal(ndx_qp_send(p->a.qp, NULL, &bad[i], 1, 0), NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_SEND, 0, NDX_E_ACCESS_VIOLATION);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
		pair_drop(p);
	}
}

static void a_receive_needs_the_right_to_write(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr;
	struct ndx_sge sge;

	assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, 100, 0, &mr), NDX_OK);
	sge = (struct ndx_sge){p->b.memory, 100, ndx_mr_get_local_token(mr)};
	pair_make(p);
	pair_connect(p);
	pair_receive(&p->b, 1, 0, 100);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)2, &sge, 1), NDX_OK);
	pair_receive(&p->b, 3, 0, 100);
	for (uintptr_t i = 1; i < 4; i++)
		pair_send(&p->a, i, 0, 10, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_ACCESS_VIOLATION);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_CANCELED);
	pair_drop(p);
	ndx_mr_close(mr);
}

static void a_wrong_remote_key_ends_the_connection_and_no_other(void **state)
{
	struct pair *p = *state;
	struct pair_side other_a;
	struct pair_side other_b;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 10);

	pair_make(p);
	pair_connect(p);
	other_a = p->a;
	other_b = p->b;
	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_qp_write(p->a.qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
	                              ndx_mr_get_remote_token(p->b.mr) + 1, 0),
	                 NDX_OK);
	assert_int_equal(ndx_connector_notify_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 0, NDX_E_ACCESS_VIOLATION);
	pair_drop(p);
	p->a = other_a;
	p->b = other_b;
	p->a.ov = p->b.ov = (struct ndx_overlapped){0};
	assert_int_equal(ndx_qp_write(p->a.qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
	                              ndx_mr_get_remote_token(p->b.mr), 0),
	                 NDX_OK);
	{
		struct ndx_result result;
		size_t got;

		assert_int_equal(ndx_cq_wait_results(p->a.cq, &result, 1, PAIR_TIMEOUT_MS, &got),
		                 NDX_OK);
		assert_int_equal(result.status, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void silent_requests_free_their_slots(void **state)
{
	struct pair *p = *state;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 8);
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result;

	p->attr.initiator_depth = 4;
	pair_make(p);
	pair_connect(p);
	for (unsigned i = 0; i < 1000 && pair_now() < end;) {
		enum ndx_status st =
			ndx_qp_write(p->a.qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
		                     ndx_mr_get_remote_token(p->b.mr), NDX_OP_SILENT_SUCCESS);

		assert_true(st == NDX_OK || st == NDX_E_NO_MORE_ENTRIES);
		i += st == NDX_OK;
		assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 0);
	}
	assert_true(pair_now() < end);
	pair_disconnect(p);
	assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 0);
	pair_drop(p);
}

static void a_living_peer_survives_keepalive(void **state)
{
	struct pair *p = *state;
	const uint64_t end = pair_now() + 2500;

	p->attr.keepalive_ms = 1000; /* long enough for an answer on a slow machine */
	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_connector_notify_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	while (pair_now() < end)
		assert_int_equal(ndx_overlapped_wait(&p->a.ov, 100), NDX_PENDING);
	send_and_compare(p, 100, 0);
	assert_int_equal(ndx_connector_cancel(p->a.connector), NDX_OK);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CANCELED);
	pair_disconnect(p);
	pair_drop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_of_all_sizes_arrive, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(pieces_are_gathered_and_scattered, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(immediate_data_arrive_with_the_message, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(inline_data_may_change_after_the_post, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(memory_is_read_and_written_at_the_peer, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_fenced_send_carries_what_was_read, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(
			reads_beyond_the_limit_wait_and_without_limit_are_refused, pair_up,
			pair_down),
		cmocka_unit_test_setup_teardown(
			streams_both_ways_run_with_receive_queues_of_any_depth, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_transfer_needs_no_polls_on_either_side, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(
			a_send_without_receive_times_out_and_ends_the_connection, pair_up,
			pair_down),
		cmocka_unit_test_setup_teardown(a_late_receive_saves_the_send, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			a_message_longer_than_its_receive_ends_the_connection, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(foreign_local_memory_is_a_violation, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_receive_needs_the_right_to_write, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_wrong_remote_key_ends_the_connection_and_no_other,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(silent_requests_free_their_slots, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_living_peer_survives_keepalive, pair_up,
	                                        pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
