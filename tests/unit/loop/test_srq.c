/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues, completion queues and the adapter over loop. */
#include "base_ov.h"
#include "rig.h"

#define SRQ_DEPTH 4u

/* Two connections whose passive queue pairs share one queue. */
struct shared {
	struct ndx_spi_srq *srq;
	struct ndx_spi_qp *from[2];
	struct ndx_spi_qp *to[2];
	struct rig_pair pair[2];
};

static struct ndx_spi_srq *make_srq(struct rig *rig, uint32_t depth, uint32_t threshold)
{
	struct ndx_spi_srq *srq = NULL;

	assert_int_equal(rig_ops()->srq_create(rig->b.adapter,
	                                       &(struct ndx_srq_attr){.depth = depth,
	                                                              .max_sge = 2,
	                                                              .threshold = threshold},
	                                       &srq),
	                 NDX_OK);
	return srq;
}

static void join(struct rig *rig, struct shared *s)
{
	s->srq = make_srq(rig, SRQ_DEPTH, 2);
	for (int i = 0; i < 2; i++) {
		s->from[i] = rig_make_qp(rig, &rig->a, NULL);
		s->to[i] = rig_make_qp(rig, &rig->b, &s->srq->pub);
		rig_connect_pair(rig, &s->pair[i], s->from[i], s->to[i]);
	}
}

static void drop_shared(struct rig *rig, struct shared *s)
{
	for (int i = 0; i < 2; i++) {
		rig_drop_pair(rig, &s->pair[i]);
		rig_ops()->qp_destroy(s->from[i]);
		rig_ops()->qp_destroy(s->to[i]);
	}
	rig_ops()->srq_destroy(s->srq);
}

static enum ndx_status post_shared(struct rig *rig, struct shared *s, uintptr_t context,
                                   size_t offset)
{
	const struct ndx_sge sge = rig_sge(&rig->b, offset, 8);

	return ndx_srq_receive(&s->srq->pub, (void *)context, &sge, 1);
}

static enum ndx_status send_from(struct rig *rig, struct ndx_spi_qp *qp, uintptr_t context,
                                 size_t offset)
{
	const struct ndx_sge sge = rig_sge(&rig->a, offset, 8);

	return ndx_qp_send(&qp->pub, (void *)context, &sge, 1, 0);
}

static void each_queue_pair_takes_the_oldest_receive(void **state)
{
	struct rig *rig = *state;
	struct shared s;

	join(rig, &s);
	rig_paint(rig->a.memory, 8, 1);
	rig_paint(rig->a.memory + 8, 8, 2);
	assert_int_equal(post_shared(rig, &s, 1, 0), NDX_OK);
	assert_int_equal(post_shared(rig, &s, 2, 100), NDX_OK);
	assert_int_equal(send_from(rig, s.from[1], 3, 8), NDX_OK);
	assert_int_equal(send_from(rig, s.from[0], 4, 0), NDX_OK);
	assert_int_equal(rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 1, NDX_OK).bytes_transferred, 8);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	rig_assert_painted(rig->b.memory, 8, 2);
	rig_assert_painted(rig->b.memory + 100, 8, 1);
	drop_shared(rig, &s);
}

static void senders_wait_for_an_empty_queue_in_turn_and_without_limit(void **state)
{
	struct rig *rig = *state;
	struct shared s;

	rig->attr.no_receive_timeout_ms = 1;
	join(rig, &s);
	assert_int_equal(send_from(rig, s.from[1], 1, 0), NDX_OK);
	assert_int_equal(send_from(rig, s.from[0], 2, 0), NDX_OK);
	assert_int_equal(send_from(rig, s.from[1], 3, 0), NDX_OK);
	assert_int_equal(post_shared(rig, &s, 0, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_OK);
	rig_expect_none(&rig->a);
	assert_int_equal(post_shared(rig, &s, 0, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 2, NDX_OK);
	assert_int_equal(post_shared(rig, &s, 0, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 3, NDX_OK);
	assert_int_equal(s.pair[0].active_book.aborts + s.pair[1].active_book.aborts, 0);
	drop_shared(rig, &s);
}

static void the_queue_has_its_depth_and_a_taken_receive_makes_room(void **state)
{
	struct rig *rig = *state;
	struct ndx_sge sge[3] = {rig_sge(&rig->b, 0, 8)};
	struct shared s;

	join(rig, &s);
	for (unsigned i = 0; i < SRQ_DEPTH; i++)
		assert_int_equal(post_shared(rig, &s, i, 0), NDX_OK);
	assert_int_equal(post_shared(rig, &s, 9, 0), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(ndx_srq_receive(&s.srq->pub, NULL, sge, 3), NDX_E_DATA_OVERRUN);
	sge[0].length = UINT32_C(1) << 30;
	sge[1].length = 1;
	assert_int_equal(ndx_srq_receive(&s.srq->pub, NULL, sge, 2), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(send_from(rig, s.from[0], 1, 0), NDX_OK);
	/* its result need not have been taken for that */
	assert_int_equal(post_shared(rig, &s, 9, 0), NDX_OK);
	drop_shared(rig, &s);
}

/* More results than the queue is deep wait for the consumer, not for room that is not there. */
static void a_consumer_that_does_not_poll_loses_nothing(void **state)
{
	struct rig *rig = *state;
	struct shared s;

	join(rig, &s);
	for (unsigned i = 0; i < 2 * SRQ_DEPTH; i++) {
		assert_int_equal(post_shared(rig, &s, i, 0), NDX_OK);
		assert_int_equal(send_from(rig, s.from[0], i, 0), NDX_OK);
		if (i < SRQ_DEPTH)
			(void)rig_expect(&rig->a, NDX_REQUEST_SEND, i, NDX_OK);
		else
			rig_expect_none(&rig->a);
	}
	for (unsigned i = 0; i < 2 * SRQ_DEPTH; i++)
		(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	for (unsigned i = SRQ_DEPTH; i < 2 * SRQ_DEPTH; i++)
		(void)rig_expect(&rig->a, NDX_REQUEST_SEND, i, NDX_OK);
	drop_shared(rig, &s);
}

static void modifying_keeps_the_receives_and_their_order(void **state)
{
	struct rig *rig = *state;
	struct ndx_overlapped ov = {0};
	struct shared s;

	join(rig, &s);
	/* wrap around the ring first */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(post_shared(rig, &s, i, 0), NDX_OK);
		assert_int_equal(send_from(rig, s.from[0], i, 0), NDX_OK);
		(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	for (unsigned i = 10; i < 10 + SRQ_DEPTH; i++)
		assert_int_equal(post_shared(rig, &s, i, 0), NDX_OK);
	assert_int_equal(rig_ops()->srq_modify(s.srq, SRQ_DEPTH - 1, 0), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(post_shared(rig, &s, 99, 0), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(rig_ops()->srq_modify(s.srq, SRQ_DEPTH + 1, 0), NDX_OK);
	assert_int_equal(post_shared(rig, &s, 14, 0), NDX_OK);
	assert_int_equal(post_shared(rig, &s, 99, 0), NDX_E_NO_MORE_ENTRIES);
	/* a higher threshold may be passed already */
	assert_int_equal(base_ov_begin(&ov, rig->b.loop), NDX_OK);
	assert_int_equal(rig_ops()->srq_notify(s.srq, &ov), NDX_PENDING);
	assert_int_equal(rig_ops()->srq_modify(s.srq, 0, 5), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	assert_int_equal(rig_ops()->srq_modify(s.srq, 0, 6), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
	for (unsigned i = 10; i < 15; i++) {
		assert_int_equal(send_from(rig, s.from[1], i, 0), NDX_OK);
		(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	drop_shared(rig, &s);
}

static void a_sender_that_waits_is_forgotten_with_its_connection(void **state)
{
	struct rig *rig = *state;
	struct shared s;

	join(rig, &s);
	assert_int_equal(send_from(rig, s.from[0], 1, 0), NDX_OK);
	assert_int_equal(send_from(rig, s.from[1], 2, 0), NDX_OK);
	rig_abort(s.pair[0].active, &s.pair[0].active_book);
	s.pair[0].active_book.quiet = 0;
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_E_CANCELED);
	assert_int_equal(post_shared(rig, &s, 3, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 2, NDX_OK);
	drop_shared(rig, &s);
}

/* ---- completion queues and the adapter ---- */

static void affinity_is_what_was_wished_for_or_all(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_cq *cq = NULL;
	uint64_t mask = 0;
	uint16_t group = 7;

	assert_int_equal(rig_ops()->cq_affinity(rig->a.cq, &group, &mask), NDX_OK);
	assert_int_equal(group, 0);
	assert_int_not_equal(mask, 0);
	assert_int_equal(rig_ops()->cq_create(rig->a.adapter,
	                                      &(struct ndx_cq_attr){.depth = 1, .affinity = 5},
	                                      &cq),
	                 NDX_OK);
	assert_int_equal(rig_ops()->cq_affinity(cq, &group, &mask), NDX_OK);
	assert_int_equal(mask, 5);
	rig_ops()->cq_destroy(cq);
}

static void an_adapter_names_itself(void **state)
{
	struct rig *rig = *state;
	struct ndx_adapter_info a = {0};
	struct ndx_adapter_info b = {0};
	struct sockaddr_storage list[3];

	rig_ops()->adapter_query(rig->a.adapter, &a);
	rig_ops()->adapter_query(rig->b.adapter, &b);
	assert_string_equal(a.uri, "loop:a");
	assert_string_equal(b.uri, "loop");
	assert_true(a.adapter_id != b.adapter_id);
	assert_int_equal(a.max_receive_queue_depth, a.max_initiator_queue_depth);
	assert_true(a.inline_request_threshold <= a.max_inline_data_size);
	assert_int_equal(rig_ops()->adapter_addresses(rig->a.adapter, NULL, 0), 2);
	assert_int_equal(rig_ops()->adapter_addresses(rig->a.adapter, list, 3), 2);
	assert_int_equal(list[0].ss_family, AF_INET);
	assert_int_equal(list[1].ss_family, AF_INET6);
}

static void keep_entry(void *arg, const struct ndx_adapter_entry *entry)
{
	*(struct ndx_adapter_entry *)arg = *entry;
}

static void the_list_has_one_entry(void **state)
{
	struct rig *rig = *state;
	struct ndx_adapter_entry entry = {0};
	struct ndx_adapter_info info = {0};

	assert_int_equal(rig_ops()->list(&ndx_provider_loop,
	                                 &(const struct ndx_spi_open){.device = ""}, keep_entry,
	                                 &entry),
	                 NDX_OK);
	assert_string_equal(entry.uri, "loop");
	assert_string_equal(entry.provider, "loop");
	assert_int_equal(entry.state, NDX_OK);
	assert_int_equal(entry.address.ss_family, AF_INET);
	rig_ops()->adapter_query(rig->b.adapter, &info);
	assert_true(entry.adapter_id == info.adapter_id);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_queue_pair_takes_the_oldest_receive),
		TEST(senders_wait_for_an_empty_queue_in_turn_and_without_limit),
		TEST(the_queue_has_its_depth_and_a_taken_receive_makes_room),
		TEST(a_consumer_that_does_not_poll_loses_nothing),
		TEST(modifying_keeps_the_receives_and_their_order),
		TEST(a_sender_that_waits_is_forgotten_with_its_connection),
		TEST(affinity_is_what_was_wished_for_or_all),
		TEST(an_adapter_names_itself),
		TEST(the_list_has_one_entry),
	};

	return cmocka_run_group_tests_name("loop: shared queues, adapter", tests, NULL, NULL);
}
