/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's memory: a request for memory that is not granted fails with an access violation, and
 * the memory does not change. */
#include "pair.h"

#include <pthread.h>
#include <string.h>

#define PART 4096u

static struct ndx_mr *register_part(struct pair_side *side, size_t offset, uint32_t length,
                                    uint32_t flags)
{
	struct ndx_mr *mr;

	assert_int_equal(
		ndx_mr_register_new(side->adapter, side->memory + offset, length, flags, &mr),
		NDX_OK);
	return mr;
}

static void write_to(struct pair *p, uintptr_t context, uint64_t address, uint32_t length,
                     uint32_t token)
{
	const struct ndx_sge sge = pair_sge(&p->a, 0, length);

	assert_int_equal(ndx_qp_write(p->a.qp, (void *)context, &sge, 1, address, token, 0),
	                 NDX_OK);
}

static void assert_all(const unsigned char *at, size_t length, unsigned char value)
{
	for (size_t i = 0; i < length; i++)
		assert_int_equal(at[i], value);
}

/* A write that the peer refuses, between writes that the peer allows. */
static void expect_refused_write(struct pair *p, uint64_t address, uint32_t length, uint32_t token)
{
	const uint32_t good = ndx_mr_get_remote_token(p->b.mr);

	pair_make(p);
	pair_connect(p);
	memset(p->a.memory, 0x11, PAIR_MEMORY / 2);
	memset(p->b.memory, 0xee, PAIR_MEMORY);
	for (uintptr_t i = 0; i < 8; i++)
		write_to(p, i, (uintptr_t)p->b.memory, PAIR_MEMORY / 2, good);
	write_to(p, 8, address, length, token);
	write_to(p, 9, (uintptr_t)p->b.memory, 64, good);
	for (uintptr_t i = 0; i < 8; i++)
		pair_expect(&p->a, NDX_REQUEST_WRITE, i, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 8, NDX_E_ACCESS_VIOLATION);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 9, NDX_E_CANCELED);
	assert_all(p->b.memory + PAIR_MEMORY / 2, PAIR_MEMORY / 2, 0xee);
	assert_int_equal(ndx_connector_notify_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	pair_drop(p);
}

static void what_was_posted_before_a_violation_succeeds(void **state)
{
	struct pair *p = *state;
	const uint32_t good = ndx_mr_get_remote_token(p->b.mr);
	const uint64_t start = (uintptr_t)p->b.memory;
	struct ndx_mr *readable = register_part(&p->b, 0, PART, NDX_MR_ALLOW_REMOTE_READ);

	expect_refused_write(p, start, 64, good + 1);
	expect_refused_write(p, start, 64, 0);
	expect_refused_write(p, start - 1, 64, good);
	expect_refused_write(p, start + PAIR_MEMORY - 63, 64, good);
	expect_refused_write(p, start - 64, 128, good);
	expect_refused_write(p, UINT64_MAX - 63, 64, good);
	expect_refused_write(p, UINT64_MAX - 63, PART, good); /* wraps around */
	expect_refused_write(p, 0, 64, good);
	expect_refused_write(p, start, 64, ndx_mr_get_remote_token(readable));
	ndx_mr_close(readable);
}

static void more_tokens_than_are_remembered_all_work(void **state)
{
	enum { COUNT = 700, ROUNDS = 3 };
	struct pair *p = *state;
	struct ndx_mr *mr[COUNT];

	pair_make(p);
	pair_connect(p);
	for (size_t i = 0; i < COUNT; i++)
		mr[i] = register_part(&p->b, i * PART, PART, NDX_MR_ALLOW_REMOTE_WRITE);
	for (int round = 1; round <= ROUNDS; round++) {
		memset(p->a.memory, round, PART);
		for (size_t i = 0; i < COUNT; i++) {
			write_to(p, i, (uintptr_t)p->b.memory + i * PART, PART,
			         ndx_mr_get_remote_token(mr[i]));
			pair_expect(&p->a, NDX_REQUEST_WRITE, i, NDX_OK);
		}
		assert_all(p->b.memory, (size_t)COUNT * PART, (unsigned char)round);
	}
	for (size_t i = 0; i < COUNT; i++)
		ndx_mr_close(mr[i]);
	pair_disconnect(p);
	pair_drop(p);
}

static void a_send_stays_behind_a_write_that_waits_for_an_answer(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	for (unsigned i = 0; i < 100; i++) {
		struct ndx_mr *mr = register_part(&p->b, 0, PART, NDX_MR_ALLOW_REMOTE_WRITE);

		pair_receive(&p->b, 1, PART, 64);
		memset(p->a.memory, (int)i, PART);
		write_to(p, 2, (uintptr_t)p->b.memory, PART, ndx_mr_get_remote_token(mr));
		pair_send(&p->a, 3, 0, 64, 0);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
		assert_all(p->b.memory, PART, (unsigned char)i);
		pair_expect(&p->a, NDX_REQUEST_WRITE, 2, NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_SEND, 3, NDX_OK);
		ndx_mr_close(mr);
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void a_disconnect_waits_for_a_write_that_waits_for_an_answer(void **state)
{
	struct pair *p = *state;

	for (unsigned i = 0; i < 50; i++) {
		pair_make(p);
		pair_connect(p);
		p->b.memory[0] = 0;
		p->a.memory[0] = 1;
		write_to(p, 1, (uintptr_t)p->b.memory, 1, ndx_mr_get_remote_token(p->b.mr));
		pair_disconnect(p);
		pair_expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
		assert_int_equal(p->b.memory[0], 1);
		pair_drop(p);
	}
}

static void write_with_immediate(struct pair *p, uintptr_t context, uint32_t length, uint32_t token)
{
	const struct ndx_sge sge = pair_sge(&p->a, 0, length);

	assert_int_equal(ndx_qp_write_immediate(p->a.qp, (void *)context, &sge, 1,
	                                        (uintptr_t)p->b.memory, token, (uint32_t)context,
	                                        0),
	                 NDX_OK);
}

/* The length takes zero, one or two control messages. Several writes are outstanding, and their
 * receives are posted late. */
static void writes_with_immediate_data_tell_their_length(void **state)
{
	static const uint32_t lengths[] = {0, 1, 65535, 65536, 65537, PAIR_MEMORY, 0, 131072};
	enum { COUNT = sizeof(lengths) / sizeof(lengths[0]) };
	struct pair *p = *state;
	const uint32_t token = ndx_mr_get_remote_token(p->b.mr);
	struct ndx_result result;

	pair_make(p);
	pair_connect(p);
	memset(p->a.memory, 0x11, PAIR_MEMORY);
	memset(p->b.memory, 0xee, PAIR_MEMORY);
	for (uintptr_t i = 0; i < COUNT; i++)
		write_with_immediate(p, i, lengths[i], token);
	for (uintptr_t i = 0; i < COUNT; i++) {
		assert_int_equal(ndx_qp_receive(p->b.qp, (void *)i, NULL, 0), NDX_OK);
		result = pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
		assert_int_equal(result.bytes_transferred, lengths[i]);
		assert_int_equal(result.immediate, i);
		assert_int_equal(result.flags, NDX_RESULT_IMMEDIATE | NDX_RESULT_WRITTEN);
		assert_all(p->b.memory, lengths[i], 0x11);
		pair_expect(&p->a, NDX_REQUEST_WRITE, i, NDX_OK);
	}
	pair_receive(&p->b, 20, 0, 64);
	pair_send(&p->a, 20, 0, 64, 0);
	result = pair_expect(&p->b, NDX_REQUEST_RECEIVE, 20, NDX_OK);
	assert_int_equal(result.bytes_transferred, 64);
	assert_int_equal(result.flags, 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 20, NDX_OK);
	write_with_immediate(p, 21, 64, token + 1);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 21, NDX_E_ACCESS_VIOLATION);
	pair_drop(p);
}

struct closer {
	pthread_t thread;
	struct ndx_mr *mr;
};

static void *close_region(void *arg)
{
	struct closer *closer = arg;

	ndx_mr_close(closer->mr);
	return NULL;
}

/* Write, or read, until one request fails. That request must fail with the reason. */
static void access_until_deregistered(struct pair *p, bool read, unsigned delay)
{
	const struct ndx_sge sge = pair_sge(&p->a, 0, PART);
	struct closer closer = {
		.mr = register_part(&p->b, 0, PART,
	                            read ? NDX_MR_ALLOW_REMOTE_READ : NDX_MR_ALLOW_REMOTE_WRITE)};
	const uint32_t token = ndx_mr_get_remote_token(closer.mr);
	struct ndx_result results[8];
	enum ndx_status first = NDX_OK;
	unsigned posted = 0;
	unsigned ended = 0;

	pair_make(p);
	pair_connect(p);
	while (first == NDX_OK) {
		enum ndx_status st = NDX_OK;
		size_t n;

		while (st == NDX_OK) {
			st = read ? ndx_qp_read(p->a.qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
			                        token, 0)
			          : ndx_qp_write(p->a.qp, NULL, &sge, 1, (uintptr_t)p->b.memory,
			                         token, 0);
			if (st == NDX_OK && posted++ == delay)
				assert_int_equal(
					pthread_create(&closer.thread, NULL, close_region, &closer),
					0);
		}
		assert_int_equal(st, NDX_E_NO_MORE_ENTRIES);
		n = ndx_cq_get_results(p->a.cq, results, 8);
		for (size_t i = 0; i < n; i++, ended++) {
			if (first == NDX_OK)
				first = results[i].status;
			else
				assert_int_equal(results[i].status, NDX_E_CANCELED);
		}
	}
	assert_int_equal(first, NDX_E_ACCESS_VIOLATION);
	assert_true(ended > 0);
	(void)pthread_join(closer.thread, NULL);
	pair_drop(p);
}

static void access_to_memory_that_is_deregistered_gives_the_reason(void **state)
{
	for (unsigned i = 0; i < 20; i++) {
		access_until_deregistered(*state, false, i * 7);
		access_until_deregistered(*state, true, i * 7);
	}
}

struct blocker {
	struct ndx_overlapped ov;
	uint32_t blocked;  /* atomic */
	uint32_t released; /* atomic */
};

static void block_until_released(struct ndx_overlapped *ov)
{
	struct blocker *blocker = ov->context;

	__atomic_store_n(&blocker->blocked, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&blocker->released, __ATOMIC_SEQ_CST) == 0)
		;
}

/* a's control thread answers no control message before it is released. */
static void block_control_thread_of_a(struct pair *p, struct blocker *blocker)
{
	*blocker = (struct blocker){.ov.callback = block_until_released, .ov.context = blocker};
	pair_receive(&p->a, 9, PART, 64);
	assert_int_equal(ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &blocker->ov), NDX_PENDING);
	pair_send(&p->b, 9, PART, 64, 0);
	while (__atomic_load_n(&blocker->blocked, __ATOMIC_SEQ_CST) == 0)
		;
	pair_expect(&p->b, NDX_REQUEST_SEND, 9, NDX_OK);
}

/* The second request comes while the peer is asked to forget the token. */
static void two_invalidates_of_a_window_at_once_both_complete(void **state)
{
	struct pair *p = *state;
	struct pair other = *p;
	struct ndx_mw *mw;
	struct blocker blocker;

	assert_int_equal(ndx_mw_create(p->b.adapter, &mw), NDX_OK);
	for (int i = 0; i < 20; i++) {
		pair_make(p);
		pair_connect(p);
		pair_make(&other);
		pair_connect(&other);
		assert_int_equal(ndx_qp_bind(p->b.qp, (void *)1, p->b.mr, mw, p->b.memory, PART,
		                             NDX_OP_ALLOW_WRITE),
		                 NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_BIND, 1, NDX_OK);
		write_to(p, 4, (uintptr_t)p->b.memory, PART, ndx_mw_get_remote_token(mw));
		pair_expect(&p->a, NDX_REQUEST_WRITE, 4, NDX_OK);
		block_control_thread_of_a(p, &blocker);
		assert_int_equal(ndx_qp_invalidate(p->b.qp, (void *)2, mw, 0), NDX_OK);
		assert_int_equal(ndx_qp_invalidate(other.b.qp, (void *)3, mw, 0), NDX_OK);
		__atomic_store_n(&blocker.released, 1, __ATOMIC_SEQ_CST);
		pair_expect(&p->a, NDX_REQUEST_RECEIVE, 9, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_INVALIDATE, 2, NDX_OK);
		pair_expect(&other.b, NDX_REQUEST_INVALIDATE, 3, NDX_OK);
		pair_disconnect(p);
		pair_disconnect(&other);
		pair_drop(p);
		pair_drop(&other);
	}
	ndx_mw_close(mw);
}

struct cross_close {
	struct ndx_overlapped ov;
	struct ndx_mr *mr;
	uint32_t *arrived; /* atomic; makes both closes overlap */
	uint32_t done;     /* atomic */
};

static void close_the_others_region(struct ndx_overlapped *ov)
{
	struct cross_close *x = ov->context;

	(void)__atomic_add_fetch(x->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(x->arrived, __ATOMIC_SEQ_CST) < 2)
		;
	ndx_mr_close(x->mr);
	__atomic_store_n(&x->done, 1, __ATOMIC_SEQ_CST);
}

/* The connection may end, because each control thread is busy with the close of the other adapter's
 * region. */
static void callbacks_of_two_adapters_close_each_others_regions(void **state)
{
	struct pair *p = *state;
	struct cross_close x[2] = {0};
	uint32_t arrived = 0;

	pair_make(p);
	pair_connect(p);
	x[0].mr = register_part(&p->b, 0, PART, NDX_MR_ALLOW_REMOTE_WRITE);
	x[1].mr = register_part(&p->a, 0, PART, NDX_MR_ALLOW_REMOTE_WRITE);
	for (int i = 0; i < 2; i++) {
		x[i].arrived = &arrived;
		x[i].ov.callback = close_the_others_region;
		x[i].ov.context = &x[i];
	}
	assert_int_equal(ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &x[0].ov), NDX_PENDING);
	assert_int_equal(ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, &x[1].ov), NDX_PENDING);
	pair_receive(&p->b, 1, 0, 64);
	pair_send(&p->a, 2, 0, 64, 0);
	for (int i = 0; i < 2; i++) {
		while (__atomic_load_n(&x[i].done, __ATOMIC_SEQ_CST) == 0)
			;
	}
	pair_drop(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_was_posted_before_a_violation_succeeds),
		CASE(more_tokens_than_are_remembered_all_work),
		CASE(a_send_stays_behind_a_write_that_waits_for_an_answer),
		CASE(a_disconnect_waits_for_a_write_that_waits_for_an_answer),
		CASE(writes_with_immediate_data_tell_their_length),
		CASE(access_to_memory_that_is_deregistered_gives_the_reason),
		CASE(callbacks_of_two_adapters_close_each_others_regions),
		CASE(two_invalidates_of_a_window_at_once_both_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
