/* SPDX-License-Identifier: BSD-2-Clause */
/* The lengths of receives: what the peer is told of them, and what becomes of a message that its
 * receive cannot take. */
#include "pair.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SIZE = 64,
	ROUNDS = 20,
	POLLED_ROUNDS = 60,
	MIXED_ROUNDS = 30,
	MIXED_MESSAGES = 200,
	LONG = 3 << 20,
};

/* ---- two ends of NDX ---- */

/* Posted behind the message that is too long; both ends have much on its way. */
static void post_traffic(struct pair *p)
{
	for (uintptr_t i = 10; i < 14; i++) {
		pair_receive(&p->a, i, 0, LONG);
		pair_receive(&p->b, i, 0, LONG);
		pair_send(&p->a, i, 0, LONG, 0);
		pair_send(&p->b, i, 0, LONG, 0);
	}
}

static void messages_that_are_too_long(struct pair *p, uint32_t room, uint32_t length, bool traffic)
{
	pair_make(p);
	pair_connect(p);
	memset(p->b.memory, 0xee, 2 * SIZE);
	pair_fill(p->a.memory, SIZE, 1);
	pair_receive(&p->b, 1, 0, SIZE);
	pair_receive(&p->b, 2, SIZE, room);
	pair_receive(&p->b, 3, 0, SIZE);
	pair_send(&p->a, 1, 0, SIZE, 0);
	pair_send(&p->a, 2, 0, length, 0);
	pair_send(&p->a, 3, 0, 0, 0);
	if (traffic)
		post_traffic(p);
	assert_int_equal(pair_next_status(&p->a, 1), NDX_OK);
	assert_int_equal(pair_next_status(&p->a, 2), NDX_E_DATA_OVERRUN);
	assert_int_equal(pair_next_status(&p->a, 3), NDX_E_CANCELED);
	if (!traffic) {
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_BUFFER_OVERFLOW);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_CANCELED);
		pair_assert_filled(p->b.memory, SIZE, 1);
		for (uint32_t i = SIZE; i < 2 * SIZE; i++)
			assert_int_equal(p->b.memory[i], 0xee);
	}
	pair_drop(p);
}

static void both_ends_get_the_reason(void **state)
{
	for (int i = 0; i < ROUNDS; i++) {
		messages_that_are_too_long(*state, SIZE - 1, SIZE, false);
		messages_that_are_too_long(*state, 0, 1, false);
		messages_that_are_too_long(*state, SIZE - 1, LONG, false);
	}
}

static void traffic_does_not_hide_the_reason(void **state)
{
	for (int i = 0; i < ROUNDS; i++)
		messages_that_are_too_long(*state, SIZE - 1, i % 2 == 0 ? SIZE : LONG, true);
}

/* No side polls before both consumers have lost the connection. */
static void nobody_has_to_poll(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_connector_notify_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	pair_receive(&p->b, 1, 0, SIZE);
	pair_send(&p->a, 1, 0, SIZE + 1, 0);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(p->a.ov.information, NDX_DISCONNECT_ABORTED);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_DATA_OVERRUN);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_BUFFER_OVERFLOW);
	pair_drop(p);
}

/* Receives that are posted before the connection is there; the first length is the common one. */
static void receives_of_before_the_connection_have_their_lengths(void **state)
{
	static const uint32_t lengths[] = {SIZE, SIZE, 4 * SIZE, 2 * SIZE, SIZE, 8};
	struct pair *p = *state;

	pair_make(p);
	for (uintptr_t i = 0; i < 6; i++)
		pair_receive(&p->b, i, 0, lengths[i]);
	pair_connect(p);
	for (uintptr_t i = 0; i < 6; i++)
		pair_send(&p->a, i, 0, i < 5 ? lengths[i] : 9, 0);
	for (uintptr_t i = 0; i < 6; i++) {
		const enum ndx_status sent = i < 5 ? NDX_OK : NDX_E_DATA_OVERRUN;
		const enum ndx_status received = i < 5 ? NDX_OK : NDX_E_BUFFER_OVERFLOW;

		pair_expect(&p->a, NDX_REQUEST_SEND, i, sent);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, received);
	}
	pair_drop(p);
}

/* ---- a consumer that polls while the connection is made ---- */

struct poller {
	pthread_t thread;
	struct ndx_cq *cq;
	atomic_bool stop;
};

static void *poll_queue(void *arg)
{
	struct poller *poller = arg;
	struct ndx_result result;

	while (!atomic_load(&poller->stop))
		(void)ndx_cq_get_results(poller->cq, &result, 1);
	return NULL;
}

/* The consumer's polls read what the peer sends before the control thread has read that the
 * connection is there. The connection data have the first length only; the peer tells the others
 * later, and no credit is lost. */
static void a_consumer_that_polls_does_not_harm_the_connection(void **state)
{
	const struct ndx_connect_attr attr = {
		.size = sizeof(attr), .inbound_read_limit = 4, .outbound_read_limit = 4};
	struct pair *p = *state;

	p->attr.receive_depth = 8;
	for (int round = 0; round < POLLED_ROUNDS; round++) {
		struct poller poller = {.stop = false};
		enum ndx_status st;

		pair_make(p);
		for (uintptr_t i = 0; i < 8; i++)
			pair_receive(&p->b, i, 0, i == 0 ? SIZE : 2 * SIZE);
		pair_request(p);
		poller.cq = p->a.cq;
		assert_int_equal(pthread_create(&poller.thread, NULL, poll_queue, &poller), 0);
		st = ndx_connector_accept(p->b.connector, p->b.qp, &attr, &p->b.ov);
		if (st == NDX_PENDING)
			st = pair_wait(&p->a.ov);
		if (st == NDX_OK)
			st = ndx_connector_complete_connect(p->a.connector, &p->a.ov);
		if (st == NDX_PENDING)
			st = pair_wait(&p->a.ov);
		atomic_store(&poller.stop, true);
		assert_int_equal(pthread_join(poller.thread, NULL), 0);
		assert_int_equal(st, NDX_OK);
		assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
		for (uintptr_t i = 0; i < 8; i++)
			pair_send(&p->a, i, 0, i == 0 ? SIZE : 2 * SIZE, 0);
		for (uintptr_t i = 0; i < 8; i++)
			pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		pair_drop(p);
	}
}

/* Every receive has a length of its own, and some messages fill it to the last byte; the last one
 * has a byte more. */
static void mix_lengths(struct pair *p, unsigned *seed)
{
	const uint32_t depth = 1 + (uint32_t)rand_r(seed) % 9;
	uint32_t rooms[MIXED_MESSAGES];
	uint32_t given = 0;

	p->attr.receive_depth = depth;
	pair_make(p);
	pair_connect(p);
	for (uint32_t i = 0; i < MIXED_MESSAGES; i++)
		rooms[i] = (uint32_t)rand_r(seed) % 4 * SIZE + (uint32_t)rand_r(seed) % 2;
	for (uint32_t i = 0; i < MIXED_MESSAGES; i++) {
		const bool last = i + 1 == MIXED_MESSAGES;
		const bool full = rand_r(seed) % 2 == 0;
		uint32_t length = full ? rooms[i] : rooms[i] / 2;

		for (; given < MIXED_MESSAGES && given < i + depth; given++)
			pair_receive(&p->b, given, 0, rooms[given]);
		if (last)
			length = rooms[i] + 1;
		pair_send(&p->a, i, 0, length, 0);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, last ? NDX_E_DATA_OVERRUN : NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, last ? NDX_E_BUFFER_OVERFLOW : NDX_OK);
	}
	pair_drop(p);
}

static void every_receive_has_its_own_length(void **state)
{
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	unsigned seed = (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	for (int i = 0; i < MIXED_ROUNDS; i++)
		mix_lengths(*state, &seed);
	((struct pair *)*state)->attr = attr;
}

static void post_bad_receive(struct pair *p, uintptr_t context)
{
	struct ndx_sge sge = pair_sge(&p->b, 0, SIZE);

	sge.token ^= 0x5a5a5a5a;
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)context, &sge, 1), NDX_OK);
}

/* Nothing happens before a message comes; a message of no bytes needs no memory. */
static void a_bad_receive_fails_when_a_message_comes(void **state)
{
	struct pair *p = *state;
	struct ndx_result result;

	pair_make(p);
	post_bad_receive(p, 1);
	pair_connect(p);
	pair_receive(&p->b, 2, 0, SIZE);
	post_bad_receive(p, 3);
	pair_receive(&p->b, 4, 0, SIZE);
	memset(p->b.memory, 0xee, SIZE);
	(void)poll(NULL, 0, 20);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	for (uintptr_t i = 1; i < 5; i++)
		pair_send(&p->a, i, SIZE, i < 3 ? 0 : 8, 0);
	for (uintptr_t i = 1; i < 3; i++) {
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	pair_expect(&p->a, NDX_REQUEST_SEND, 3, NDX_E_REMOTE_ERROR);
	pair_expect(&p->a, NDX_REQUEST_SEND, 4, NDX_E_CANCELED);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_ACCESS_VIOLATION);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 4, NDX_E_CANCELED);
	pair_drop(p);
}

/* The connection data tell of no receive then. */
static void a_bad_receive_of_before_the_connection_is_told(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	post_bad_receive(p, 1);
	pair_connect(p);
	pair_send(&p->a, 1, 0, SIZE, 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_REMOTE_ERROR);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_ACCESS_VIOLATION);
	pair_drop(p);
}

static void a_receive_of_four_sges_has_the_sum_of_their_lengths(void **state)
{
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	struct pair *p = *state;
	struct ndx_sge sge[4];

	p->attr.max_receive_sge = 4;
	pair_make(p);
	p->attr = attr;
	pair_connect(p);
	for (size_t i = 0; i < 4; i++)
		sge[i] = pair_sge(&p->b, i * SIZE, 3);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, sge, 4), NDX_OK);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)2, sge, 4), NDX_OK);
	pair_send(&p->a, 1, 0, 12, 0);
	pair_send(&p->a, 2, 0, 13, 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_DATA_OVERRUN);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_BUFFER_OVERFLOW);
	pair_drop(p);
}

/* A flush while the peer has the message's place, but has not confirmed that. */
static void a_flush_beside_it_loses_no_result(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < ROUNDS; i++) {
		struct ndx_result result;

		pair_make(p);
		pair_connect(p);
		pair_receive(&p->b, 1, 0, SIZE);
		pair_run_jobs(&p->b);
		pair_send(&p->a, 1, 0, SIZE + 1, 0);
		pair_send(&p->a, 2, 0, SIZE, 0);
		assert_int_equal(ndx_qp_flush(p->a.qp), NDX_OK);
		assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 1);
		assert_ptr_equal(result.request_context, (void *)1);
		assert_true(result.status == NDX_E_DATA_OVERRUN || result.status == NDX_E_CANCELED);
		pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_CANCELED);
		pair_drop(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ends_get_the_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(traffic_does_not_hide_the_reason, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(nobody_has_to_poll, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			receives_of_before_the_connection_have_their_lengths, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_consumer_that_polls_does_not_harm_the_connection,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(every_receive_has_its_own_length, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_bad_receive_fails_when_a_message_comes, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_bad_receive_of_before_the_connection_is_told,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_receive_of_four_sges_has_the_sum_of_their_lengths,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_flush_beside_it_loses_no_result, pair_up,
	                                        pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
