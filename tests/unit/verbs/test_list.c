/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of requests: native lists, one lock, and what is left when the device refuses a part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "rig.h"
#include "verbs_ofi.h"
#include "verbs_wr.h"

#define DEPTH 16u
#define MOST 128u

/* ---- counting locks ---- */

static struct ndxp_lock *counted;
static unsigned locks;

void __real_ndxp_lock_slow(struct ndxp_lock *lock);
void __real_ndxp_lock_wake(struct ndxp_lock *lock);
void __wrap_ndxp_lock_slow(struct ndxp_lock *lock);
void __wrap_ndxp_lock_wake(struct ndxp_lock *lock);

/* The control thread comes here with other locks. */
static bool is_counted(const struct ndxp_lock *lock)
{
	return lock == __atomic_load_n(&counted, __ATOMIC_RELAXED);
}

/* The counted lock always looks taken and waited for, so that each use of it comes here. */
void __wrap_ndxp_lock_slow(struct ndxp_lock *lock)
{
	if (is_counted(lock))
		locks++;
	else
		__real_ndxp_lock_slow(lock);
}

void __wrap_ndxp_lock_wake(struct ndxp_lock *lock)
{
	if (is_counted(lock))
		lock->word = 2;
	else
		__real_ndxp_lock_wake(lock);
}

static void count_locks(struct ndxp_lock *lock)
{
	locks = 0;
	__atomic_store_n(&counted, lock, __ATOMIC_RELAXED);
	lock->word = 2;
}

static unsigned locks_used(void)
{
	counted->word = 0;
	__atomic_store_n(&counted, NULL, __ATOMIC_RELAXED);
	return locks;
}

/* ---- lists ---- */

static char memory[MOST];

struct list {
	struct ndx_request requests[MOST];
	struct ndx_receive receives[MOST];
	struct ndx_sge sges[MOST];
};

/* Sends and receives of i bytes each, with the contexts `first` and following. */
static void make_list(struct list *list, uintptr_t first, size_t count, uint32_t flags)
{
	memset(list, 0, sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		list->sges[i] = (struct ndx_sge){memory, (uint32_t)i + 1, 1};
		list->requests[i] = (struct ndx_request){.context = (void *)(first + i),
		                                         .sge = &list->sges[i],
		                                         .sge_count = 1,
		                                         .flags = flags,
		                                         .type = NDX_POST_SEND};
		list->receives[i] = (struct ndx_receive){(void *)(first + i), &list->sges[i], 1};
	}
}

static enum ndx_status post(struct rig *rig, const struct list *list, size_t count, size_t *posted)
{
	*posted = 0;
	return rig->qp->pub.ops->post_list(&rig->qp->pub, list->requests, sizeof(list->requests[0]),
	                                   count, posted);
}

static enum ndx_status receive(struct rig *rig, const struct list *list, size_t count,
                               size_t *posted)
{
	*posted = 0;
	return rig->qp->pub.ops->receive_list(&rig->qp->pub, list->receives,
	                                      sizeof(list->receives[0]), count, posted);
}

static void a_list_is_one_call_under_one_lock(void **state)
{
	struct list list;
	struct rig rig;
	size_t posted;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	make_list(&list, 10, 8, 0);
	count_locks(&rig_qp(&rig)->base.lock);
	assert_int_equal(post(&rig, &list, 8, &posted), NDX_OK);
	assert_int_equal(locks_used(), 1);
	assert_int_equal(posted, 8);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 1);
	count_locks(&rig_qp(&rig)->base.lock);
	assert_int_equal(receive(&rig, &list, 8, &posted), NDX_OK);
	assert_int_equal(locks_used(), 1);
	assert_int_equal(posted, 8);
	assert_int_equal(rig.device.count[FAKE_POST_RECV], 1);
	assert_int_equal(fake_qp_of(rig_native(&rig))->receive_tail, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(fake_qp_of(rig_native(&rig))->sends[i].bytes, i + 1);
	fake_complete_sends(rig_native(&rig), 8);
	for (unsigned i = 0; i < 8; i++)
		rig_expect(&rig, 10 + i, NDX_OK);
	for (unsigned i = 0; i < 8; i++)
		assert_true(fake_arrive(rig_native(&rig), 1));
	for (unsigned i = 0; i < 8; i++)
		rig_expect(&rig, 10 + i, NDX_OK);
	rig_expect_none(&rig);
	rig_close(&rig);
}

static void a_long_list_goes_in_parts_under_one_lock(void **state)
{
	const size_t count = 3 * VERBS_LIST + 1;
	struct list list;
	struct rig rig;
	size_t posted;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, MOST, NULL);
	make_list(&list, 0, count, 0);
	count_locks(&rig_qp(&rig)->base.lock);
	assert_int_equal(post(&rig, &list, count, &posted), NDX_OK);
	assert_int_equal(locks_used(), 1);
	assert_int_equal(posted, count);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 4);
	assert_int_equal(receive(&rig, &list, count, &posted), NDX_OK);
	assert_int_equal(posted, count);
	assert_int_equal(rig.device.count[FAKE_POST_RECV], 4);
	fake_complete_sends(rig_native(&rig), (unsigned)count);
	for (unsigned i = 0; i < count; i++)
		rig_expect(&rig, i, NDX_OK);
	rig_close(&rig);
}

/* Whatever the device refuses: the requests before are posted, and the next ones find all other
 * slots free. */
static void a_refusal_takes_back_exactly_the_rest(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 8; k++) {
		struct fake_qp *fake;
		struct list list;
		struct rig rig;
		size_t posted;

		rig_open(&rig);
		rig_connect(&rig, DEPTH, NULL);
		fake = fake_qp_of(rig_native(&rig));
		/* a turn of the ring's positions, with the statistics, lies in the middle */
		rig_qp(&rig)->base.initiator.head = rig_qp(&rig)->base.initiator.tail =
			rig_qp(&rig)->base.initiator.freed = UINT32_MAX - 3;
		make_list(&list, 0, DEPTH, 0);
		rig.device.refuse_errno = EINVAL;
		rig.device.refuse_entry = k + 1;
		assert_int_equal(post(&rig, &list, 8, &posted), NDX_E_INTERNAL_ERROR);
		assert_int_equal(posted, k);
		assert_int_equal(fake->send_tail, k);
		assert_int_equal(ndxp_queue_outstanding(&rig_qp(&rig)->base.initiator), k);
		rig.device.refuse_entry = k + 1;
		assert_int_equal(receive(&rig, &list, 8, &posted), NDX_E_INTERNAL_ERROR);
		assert_int_equal(posted, k);
		assert_int_equal(fake->receive_tail, k);
		assert_int_equal(ndxp_queue_outstanding(&rig_qp(&rig)->base.receive), k);
		make_list(&list, k, DEPTH - k, 0);
		assert_int_equal(post(&rig, &list, DEPTH - k, &posted), NDX_OK);
		assert_int_equal(receive(&rig, &list, DEPTH - k, &posted), NDX_OK);
		assert_int_equal(rig_send(&rig, 99, 0), NDX_E_NO_MORE_ENTRIES);
		assert_int_equal(rig_receive(&rig, 99), NDX_E_NO_MORE_ENTRIES);
		fake_complete_sends(rig_native(&rig), DEPTH);
		for (unsigned i = 0; i < DEPTH; i++)
			rig_expect(&rig, i, NDX_OK);
		rig_expect_none(&rig);
		assert_int_equal(rig_qp(&rig)->base.initiator.laps, 1);
		rig_close(&rig);
	}
}

/* Post the requests before `refused`, one by one. */
static void post_singly(struct rig *rig, const struct list *list, unsigned refused)
{
	for (unsigned i = 0; i < 7 && i != refused; i++)
		assert_int_equal(ndx_qp_send(&rig->qp->pub, NULL, &list->sges[i], 1,
		                             list->requests[i].flags),
		                 NDX_OK);
}

/* Post a list of 7 whose request `refused` the device refuses, if there is one. */
static void post_refused(struct rig *rig, const struct list *list, unsigned refused)
{
	const bool whole = refused >= 7;
	size_t posted;

	rig->device.refuse_entry = whole ? 0 : refused + 1;
	assert_int_equal(post(rig, list, 7, &posted), whole ? NDX_OK : NDX_E_INTERNAL_ERROR);
	assert_int_equal(posted, whole ? 7 : refused);
}

/* What the device got of 30 lists, most with silent success. */
static void record_sends(bool singly, struct fake_wr sends[FAKE_WR_MAX])
{
	enum ndx_status status;
	uintptr_t context;
	struct list list;
	struct rig rig;

	rig_open(&rig);
	rig.device.runs = true;
	rig.device.refuse_errno = EINVAL;
	rig_connect(&rig, DEPTH, NULL);
	for (unsigned n = 0; n < 30; n++) {
		make_list(&list, n, 7, NDX_OP_SILENT_SUCCESS);
		if (n % 3 == 0)
			list.requests[n % 7].flags = 0;
		if (singly)
			post_singly(&rig, &list, n % 10);
		else
			post_refused(&rig, &list, n % 10);
		while (rig_next(&rig, &context, &status))
			assert_int_equal(status, NDX_OK);
	}
	memcpy(sends, fake_qp_of(rig_native(&rig))->sends, FAKE_WR_MAX * sizeof(*sends));
	for (unsigned i = 0; i < FAKE_WR_MAX; i++)
		sends[i].id = 0; /* an address */
	rig_close(&rig);
}

/* The same requests are signaled as if each had been posted singly; that includes the lists that
 * the device refuses in the middle. */
static void lists_signal_what_single_requests_signal(void **state)
{
	static struct fake_wr lists[FAKE_WR_MAX];
	static struct fake_wr single[FAKE_WR_MAX];

	(void)state;
	record_sends(false, lists);
	record_sends(true, single);
	assert_memory_equal(lists, single, sizeof(lists));
}

/* As for a single request: the queue is read once when it is full, because unsignaled requests free
 * their slots only then. */
static void a_list_on_a_full_queue_reads_the_results_first(void **state)
{
	struct list list;
	struct rig rig;
	size_t posted;

	(void)state;
	rig_open(&rig);
	rig.device.runs = true;
	rig_connect(&rig, DEPTH, NULL);
	make_list(&list, 0, 5 * DEPTH, NDX_OP_SILENT_SUCCESS);
	assert_int_equal(post(&rig, &list, 5 * DEPTH, &posted), NDX_OK);
	assert_int_equal(posted, 5 * DEPTH);
	rig_expect_none(&rig);
	/* results keep their slots until the consumer takes them */
	make_list(&list, 0, 2 * DEPTH, 0);
	assert_int_equal(post(&rig, &list, 2 * DEPTH, &posted), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(posted, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, i, NDX_OK);
	rig_close(&rig);
}

/* Each request is refused for its own reason; the requests before it are posted. */
static void the_first_wrong_request_ends_the_list(void **state)
{
	static const struct {
		enum ndx_status status;
		struct ndx_request request;
	} wrong[] = {
		{NDX_E_INVALID_PARAMETER, {.type = (enum ndx_post)0}},
		{NDX_E_INVALID_PARAMETER, {.type = (enum ndx_post)6}},
		{NDX_E_INVALID_PARAMETER, {.type = NDX_POST_READ, .flags = NDX_OP_INLINE}},
		{NDX_E_DATA_OVERRUN, {.type = NDX_POST_SEND, .sge_count = 5}},
		{NDX_E_INVALID_DEVICE_REQUEST, {.type = NDX_POST_READ}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct list list;
		struct rig rig;
		size_t posted;

		rig_open(&rig);
		rig_connect(&rig, DEPTH, NULL);
		rig_qp(&rig)->outbound_reads = 0;
		make_list(&list, 0, 5, 0);
		list.requests[3] = wrong[i].request;
		assert_int_equal(post(&rig, &list, 5, &posted), wrong[i].status);
		assert_int_equal(posted, 3);
		assert_int_equal(fake_qp_of(rig_native(&rig))->send_tail, 3);
		assert_int_equal(ndxp_queue_outstanding(&rig_qp(&rig)->base.initiator), 3);
		rig_close(&rig);
	}
}

/* Opcode, bytes and entries of each type. A write of no bytes goes to the peer's mailbox; inline
 * requests of several entries are gathered, more bytes of them than one part has room for. */
static void every_type_of_request_goes_into_a_list(void **state)
{
	static const struct fake_wr want[] = {
		{0, IBV_WR_SEND, IBV_SEND_SIGNALED, 7},
		{0, IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, 7},
		{0, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 7},
		{0, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SIGNALED, 0},
		{0, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED | IBV_SEND_FENCE, 7},
		{0, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1},
	};
	const struct ndx_sge two[] = {{memory, 3, 1}, {memory, 4, 1}};
	struct ndx_request requests[] = {
		{.type = NDX_POST_SEND},
		{.type = NDX_POST_SEND_IMMEDIATE, .flags = NDX_OP_SOLICIT_EVENT},
		{.type = NDX_POST_WRITE},
		{.type = NDX_POST_WRITE_IMMEDIATE},
		{.type = NDX_POST_READ, .flags = NDX_OP_READ_FENCE},
		{.type = NDX_POST_WRITE},
	};
	struct rig rig;
	size_t posted = 0;
	struct fake_qp *fake;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	fake = fake_qp_of(rig_native(&rig));
	for (size_t i = 0; i < 6; i++) {
		requests[i].sge = two;
		requests[i].sge_count = i == 3 || i == 5 ? 0 : 2;
	}
	assert_int_equal(
		rig.qp->pub.ops->post_list(&rig.qp->pub, requests, sizeof(requests[0]), 6, &posted),
		NDX_OK);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(fake->sends[i].opcode, want[i].opcode);
		assert_int_equal(fake->sends[i].flags, want[i].flags);
		assert_int_equal(fake->sends[i].bytes, want[i].bytes);
	}
	/* the short way of requests with one entry and without flags */
	for (size_t i = 0; i < 4; i++) {
		requests[i].sge_count = 1;
		requests[i].flags = 0;
	}
	posted = 0;
	assert_int_equal(
		rig.qp->pub.ops->post_list(&rig.qp->pub, requests, sizeof(requests[0]), 4, &posted),
		NDX_OK);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(fake->sends[6 + i].opcode, want[i].opcode);
		assert_int_equal(fake->sends[6 + i].flags, IBV_SEND_SIGNALED);
		assert_int_equal(fake->sends[6 + i].bytes, 3);
	}
	rig_qp(&rig)->base.spi.attr.inline_size = VERBS_MAX_INLINE / 2;
	for (size_t i = 0; i < 6; i++)
		requests[i] = (struct ndx_request){
			.type = NDX_POST_SEND, .flags = NDX_OP_INLINE, .sge = two, .sge_count = 2};
	rig.device.count[FAKE_POST_SEND] = 0;
	posted = 0;
	assert_int_equal(
		rig.qp->pub.ops->post_list(&rig.qp->pub, requests, sizeof(requests[0]), 6, &posted),
		NDX_OK);
	assert_int_equal(posted, 6);
	for (size_t i = 10; i < 16; i++)
		assert_int_equal(fake->sends[i].bytes, 7);
	rig_close(&rig);
}

/* The books of a single request: for software RoCE the entries, for a peer on ofi:verbs the number
 * of messages. */
static void the_books_are_kept(void **state)
{
	struct verbs_ofi ofi = {0};
	struct list list;
	struct rig rig;
	size_t posted;

	(void)state;
	rig_open(&rig);
	rig.adapter.soft_roce = true;
	rig_connect(&rig, DEPTH, NULL);
	assert_true(rig_qp(&rig)->keeps_books);
	rig_qp(&rig)->ofi = &ofi;
	make_list(&list, 0, 8, 0);
	list.requests[2].type = NDX_POST_WRITE;
	rig.device.refuse_errno = EINVAL;
	rig.device.refuse_entry = 7;
	assert_int_equal(post(&rig, &list, 8, &posted), NDX_E_INTERNAL_ERROR);
	assert_int_equal(posted, 6);
	assert_int_equal(ofi.sent, 5);
	for (unsigned i = 0; i < 6; i++) {
		const struct verbs_initiator *own =
			(void *)ndxp_queue_at(&rig_qp(&rig)->base.initiator, i);

		assert_int_equal(own->count, 1);
		assert_memory_equal(own->sge, &list.sges[i], sizeof(list.sges[i]));
	}
	rig_qp(&rig)->ofi = NULL;
	rig_close(&rig);
}

/* The slots of canceled requests, in order, without a native call. */
static void a_list_on_an_ended_connection_is_canceled(void **state)
{
	struct list list;
	struct rig rig;
	size_t posted;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	rig_qp(&rig)->base.state = NDXP_QP_DEAD;
	make_list(&list, 0, DEPTH + 1, 0);
	assert_int_equal(post(&rig, &list, DEPTH + 1, &posted), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(posted, DEPTH);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 0);
	for (unsigned i = 0; i < DEPTH; i++)
		rig_expect(&rig, i, NDX_E_CANCELED);
	assert_int_equal(receive(&rig, &list, 3, &posted), NDX_OK);
	assert_int_equal(posted, 3);
	assert_int_equal(rig.device.count[FAKE_POST_RECV], 0);
	for (unsigned i = 0; i < 3; i++)
		rig_expect(&rig, i, NDX_E_CANCELED);
	rig_close(&rig);
}

static void a_shared_list_is_one_call_under_one_lock(void **state)
{
	struct ndx_spi_srq *srq = NULL;
	struct list list;
	struct rig rig;
	size_t posted = 0;

	(void)state;
	rig_open(&rig);
	assert_int_equal(verbs_srq_create(&rig.adapter.spi,
	                                  &(struct ndx_srq_attr){.depth = DEPTH, .max_sge = 2},
	                                  &srq),
	                 NDX_OK);
	rig_connect(&rig, DEPTH, srq);
	make_list(&list, 0, DEPTH + 1, 0);
	count_locks(&verbs_srq_of(&srq->pub)->base.lock);
	assert_int_equal(srq->pub.ops->receive_list(&srq->pub, list.receives,
	                                            sizeof(list.receives[0]), 8, &posted),
	                 NDX_OK);
	assert_int_equal(locks_used(), 1);
	assert_int_equal(posted, 8);
	assert_int_equal(rig.device.count[FAKE_POST_SRQ_RECV], 1);
	/* the device refuses the third of the next ones */
	rig.device.refuse_errno = EINVAL;
	rig.device.refuse_entry = 3;
	posted = 0;
	assert_int_equal(srq->pub.ops->receive_list(&srq->pub, &list.receives[8],
	                                            sizeof(list.receives[0]), 5, &posted),
	                 NDX_E_INTERNAL_ERROR);
	assert_int_equal(posted, 2);
	assert_int_equal(verbs_srq_of(&srq->pub)->base.posted, 10);
	posted = 0;
	assert_int_equal(srq->pub.ops->receive_list(&srq->pub, &list.receives[10],
	                                            sizeof(list.receives[0]), 7, &posted),
	                 NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(posted, 6);
	for (unsigned i = 0; i < DEPTH; i++) {
		assert_true(fake_arrive(rig_native(&rig), 1));
		rig_expect(&rig, i, NDX_OK);
	}
	assert_false(fake_arrive(rig_native(&rig), 1));
	rig_close(&rig);
	verbs_srq_destroy(srq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_one_call_under_one_lock),
		cmocka_unit_test(a_long_list_goes_in_parts_under_one_lock),
		cmocka_unit_test(a_refusal_takes_back_exactly_the_rest),
		cmocka_unit_test(lists_signal_what_single_requests_signal),
		cmocka_unit_test(a_list_on_a_full_queue_reads_the_results_first),
		cmocka_unit_test(the_first_wrong_request_ends_the_list),
		cmocka_unit_test(every_type_of_request_goes_into_a_list),
		cmocka_unit_test(the_books_are_kept),
		cmocka_unit_test(a_list_on_an_ended_connection_is_canceled),
		cmocka_unit_test(a_shared_list_is_one_call_under_one_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
