/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams: how often the peer's count is told, and that it goes round. */
#include "pair.h"

#include <pthread.h>

enum {
	DEPTH = 64, /* of both queues */
	STREAM = 20000,
	WHOLE = 4096,          /* the deepest queues, ... */
	ROUND = 3 * 65536 + 7, /* ... and messages that pass 2^16 three times */
	TAKEN = 64,
	LIMIT_MS = 60000, /* for each side */
};

struct stream {
	struct pair_side *side;
	uintptr_t count;
	uintptr_t depth;
	enum ndx_status failed;
};

static void *receive_all(void *arg)
{
	struct stream *s = arg;
	const uint64_t end = pair_now() + LIMIT_MS;
	struct ndx_result results[TAKEN];

	for (uintptr_t got = 0; got < s->count && s->failed == NDX_OK;) {
		const size_t n = ndx_cq_get_results(s->side->cq, results, TAKEN);

		if (n == 0 && pair_now() >= end)
			s->failed = NDX_E_IO_TIMEOUT;
		for (size_t i = 0; i < n && s->failed == NDX_OK; i++, got++) {
			s->failed = results[i].status;
			if (s->failed == NDX_OK && got + s->depth < s->count)
				pair_receive(s->side, got, 0, 0);
		}
	}
	return NULL;
}

/* NDX_OK: all messages have come, and all sends have completed in their order. */
static enum ndx_status send_all(struct stream *s, struct pair_side *to)
{
	struct stream other = {to, s->count, s->depth, NDX_OK};
	const uint64_t end = pair_now() + LIMIT_MS;
	struct ndx_result results[TAKEN];
	uintptr_t sent = 0;
	pthread_t thread;

	for (uintptr_t i = 0; i < s->depth; i++)
		pair_receive(to, i, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, receive_all, &other), 0);
	for (uintptr_t done = 0; done < s->count && s->failed == NDX_OK;) {
		size_t n;

		for (; sent < s->count && sent - done < s->depth; sent++)
			pair_send(s->side, sent, 0, 0, 0);
		n = ndx_cq_get_results(s->side->cq, results, TAKEN);
		if (n == 0 && pair_now() >= end)
			s->failed = NDX_E_IO_TIMEOUT;
		for (size_t i = 0; i < n && s->failed == NDX_OK; i++, done++) {
			s->failed = results[i].status;
			if (s->failed == NDX_OK)
				assert_ptr_equal(results[i].request_context, (void *)done);
		}
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	return s->failed != NDX_OK ? s->failed : other.failed;
}

static void connect_with(struct pair *p, uint32_t depth)
{
	const struct ndx_qp_attr attr = p->attr;

	p->attr.receive_depth = depth;
	p->attr.initiator_depth = depth;
	pair_make(p);
	p->attr = attr;
	pair_connect(p);
}

/* One for half of the receives; more only where a side loses its processor. */
static void a_stream_has_few_control_messages(void **state)
{
	struct pair *p = *state;
	struct stream s = {&p->a, STREAM, DEPTH, NDX_OK};

	connect_with(p, DEPTH);
	assert_int_equal(send_all(&s, &p->b), NDX_OK);
	assert_in_range(pair_counter(&p->b, true, "credit_messages_sent"), 1, STREAM / 10);
	pair_disconnect(p);
	pair_drop(p);
}

static void the_count_goes_round(void **state)
{
	struct pair *p = *state;
	struct stream s = {&p->a, ROUND, WHOLE, NDX_OK};

	connect_with(p, WHOLE);
	assert_int_equal(send_all(&s, &p->b), NDX_OK);
	assert_int_equal(pair_counter(&p->a, true, "sends_unacknowledged"), 0);
	pair_disconnect(p);
	pair_drop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stream_has_few_control_messages, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(the_count_goes_round, pair_up, pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
