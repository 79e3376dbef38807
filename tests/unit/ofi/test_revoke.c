/* SPDX-License-Identifier: BSD-2-Clause */
/* After deregister has completed, no request touches the memory, whatever was outstanding. */
#include "pair.h"

#include <poll.h>
#include <string.h>

#define PART 65536u

/* Register a new region over a part of the side's memory. */
static struct ndx_mr *register_part(struct pair_side *side, size_t offset, uint32_t flags)
{
	struct ndx_mr *mr;

	assert_int_equal(
		ndx_mr_register_new(side->adapter, side->memory + offset, PART, flags, &mr),
		NDX_OK);
	return mr;
}

static struct ndx_sge sge_of_region(struct pair_side *side, size_t offset, uint32_t length,
                                    const struct ndx_mr *mr)
{
	return (struct ndx_sge){side->memory + offset, length, ndx_mr_get_local_token(mr)};
}

static void deregister(struct ndx_mr *mr)
{
	struct ndx_overlapped ov = {0};

	assert_int_equal(ndx_mr_deregister(mr, &ov), NDX_PENDING);
	assert_int_equal(pair_wait(&ov), NDX_OK);
}

static void a_posted_receive_survives_until_a_message_finds_it(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = register_part(&p->b, 0, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_sge sge = sge_of_region(&p->b, 0, 64, mr);

	pair_make(p);
	pair_receive(&p->b, 1, 2 * PART, 64);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)2, &sge, 1), NDX_OK);
	pair_connect(p);
	pair_receive(&p->b, 3, 2 * PART, 64);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)4, &sge, 1), NDX_OK);
	pair_receive(&p->b, 5, 2 * PART, 64);
	deregister(mr);
	memset(p->b.memory, 0xee, 64);
	pair_send(&p->a, 1, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_send(&p->a, 2, 0, 0, 0); /* a message of no bytes touches no memory */
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	pair_send(&p->a, 3, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_OK);
	for (uintptr_t i = 1; i <= 3; i++)
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
	pair_send(&p->a, 4, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 4, NDX_E_ACCESS_VIOLATION);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 5, NDX_E_CANCELED);
	pair_expect(&p->a, NDX_REQUEST_SEND, 4, NDX_E_REMOTE_ERROR);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(p->b.memory[i], 0xee);
	pair_drop(p);
	ndx_mr_close(mr);
}

static void a_graceful_end_survives_deregistration(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = register_part(&p->b, 0, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_sge sge = sge_of_region(&p->b, 0, 64, mr);

	pair_make(p);
	pair_connect(p);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(ndx_qp_receive(p->b.qp, (void *)i, &sge, 1), NDX_OK);
	ndx_mr_close(mr);
	pair_disconnect(p);
	for (uintptr_t i = 0; i < 4; i++)
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_E_CANCELED);
	pair_drop(p);
}

static void credits_stay_right_while_regions_come_and_go(void **state)
{
	struct pair *p = *state;

	p->attr.receive_depth = 4;
	pair_make(p);
	pair_connect(p);
	for (int i = 0; i < 200; i++) {
		struct ndx_mr *mr = register_part(&p->b, 0, NDX_MR_ALLOW_REMOTE_WRITE);
		struct ndx_sge sge = sge_of_region(&p->b, 0, 64, mr);

		for (uintptr_t k = 0; k < 3; k++)
			pair_receive(&p->b, k, 2 * PART, 64);
		assert_int_equal(ndx_qp_receive(p->b.qp, (void *)3, &sge, 1), NDX_OK);
		ndx_mr_close(mr);
		for (uintptr_t k = 0; k < 4; k++) {
			pair_send(&p->a, k, 0, k < 3 ? 64 : 0, 0);
			pair_expect(&p->b, NDX_REQUEST_RECEIVE, k, NDX_OK);
			pair_expect(&p->a, NDX_REQUEST_SEND, k, NDX_OK);
		}
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void a_send_that_waits_fails_when_its_turn_comes(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = register_part(&p->a, 0, 0);
	struct ndx_sge sge = sge_of_region(&p->a, 0, 64, mr);

	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_qp_send(p->a.qp, (void *)1, &sge, 1, 0), NDX_OK);
	deregister(mr);
	pair_receive(&p->b, 2, 0, 64);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_ACCESS_VIOLATION);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_CANCELED);
	pair_drop(p);
	ndx_mr_close(mr);
}

static void what_the_peer_writes_ends_before_deregister_does(void **state)
{
	struct pair *p = *state;
	const uint32_t length = PAIR_MEMORY / 2;
	const struct ndx_sge sge = pair_sge(&p->a, 0, length);

	memset(p->a.memory, 0x11, length);
	for (int i = 0; i < 20; i++) {
		struct ndx_mr *mr;

		pair_make(p);
		pair_connect(p);
		assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, length,
		                                     NDX_MR_ALLOW_REMOTE_WRITE, &mr),
		                 NDX_OK);
		memset(p->b.memory, 0, length);
		for (int k = 0; k < 8; k++)
			assert_int_equal(ndx_qp_write(p->a.qp, NULL, &sge, 1,
			                              (uintptr_t)p->b.memory,
			                              ndx_mr_get_remote_token(mr), 0),
			                 NDX_OK);
		/* Deregister in the middle of the writes. */
		while (*(volatile unsigned char *)(p->b.memory + i * 4096) == 0) {
		}
		if (i % 2 == 0)
			deregister(mr);
		ndx_mr_close(mr);
		memset(p->b.memory, 0xee, length);
		(void)poll(NULL, 0, 5);
		for (size_t n = 0; n < length; n++) {
			if (p->b.memory[n] != 0xee)
				fail_msg("round %d: byte %zu was written", i, n);
		}
		pair_drop(p);
	}
}

static void a_big_send_in_flight_ends_with_its_connection(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr;
	const uint32_t length = PAIR_MEMORY;
	struct ndx_sge sge;
	struct ndx_result result;
	size_t got;

	assert_int_equal(ndx_mr_register_new(p->a.adapter, p->a.memory, length, 0, &mr), NDX_OK);
	sge = (struct ndx_sge){p->a.memory, length, ndx_mr_get_local_token(mr)};
	pair_make(p);
	pair_receive(&p->b, 1, 0, length);
	pair_connect(p);
	assert_int_equal(ndx_qp_send(p->a.qp, NULL, &sge, 1, 0), NDX_OK);
	deregister(mr);
	assert_int_equal(ndx_cq_wait_results(p->a.cq, &result, 1, PAIR_TIMEOUT_MS, &got), NDX_OK);
	assert_true(result.status == NDX_OK || result.status == NDX_E_CANCELED);
	pair_drop(p);
	ndx_mr_close(mr);
}

struct callback {
	struct ndx_overlapped ov; /* first */
	struct ndx_mr *mr;
	uint32_t done;
};

static void close_region(struct ndx_overlapped *ov)
{
	struct callback *c = (struct callback *)(void *)ov;

	ndx_mr_close(c->mr);
	__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
}

static void regions_can_be_closed_in_a_callback(void **state)
{
	struct pair *p = *state;
	struct callback c = {.ov.callback = close_region};
	struct ndx_sge sge;
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	pair_make(p);
	c.mr = register_part(&p->b, 0, NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ);
	sge = sge_of_region(&p->b, 0, 64, c.mr);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, &sge, 1), NDX_OK);
	pair_connect(p);
	assert_int_equal(ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, &c.ov), NDX_PENDING);
	pair_receive(&p->b, 2, PART, 64);
	pair_send(&p->a, 1, 0, 0, 0);
	while (__atomic_load_n(&c.done, __ATOMIC_ACQUIRE) == 0 && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_int_equal(c.done, 1);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_send(&p->a, 2, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_posted_receive_survives_until_a_message_finds_it),
		CASE(a_graceful_end_survives_deregistration),
		CASE(credits_stay_right_while_regions_come_and_go),
		CASE(a_send_that_waits_fails_when_its_turn_comes),
		CASE(what_the_peer_writes_ends_before_deregister_does),
		CASE(a_big_send_in_flight_ends_with_its_connection),
		CASE(regions_can_be_closed_in_a_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
