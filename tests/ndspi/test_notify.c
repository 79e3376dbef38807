/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifications of completion queues and shared receive queues, and results that are flushed. */
#include "nd_thread.h"

enum { SIZE = 64, SOME = 3 };

/* What has completed is seen at once: the sink of the queue has run before a result is taken. */
static void expect_pending(const OVERLAPPED *ov)
{
	assert_status(nd_ov_state(ov), ND_PENDING);
}

static void make_connected(struct nd_pair *p)
{
	nd_make(p);
	nd_connect(p);
}

static void end(struct nd_pair *p)
{
	nd_disconnect(p);
	nd_drop(p);
}

static void arm(struct nd_side *s, ULONG type, OVERLAPPED *ov)
{
	assert_status(CALL(s->cq, Notify, type, ov), ND_PENDING);
}

/* A message from A to B, whose results are taken. */
static void pass(struct nd_pair *p, ULONG flags)
{
	nd_receive(&p->b, 1, 0, SIZE);
	nd_send(&p->a, 2, 0, SIZE, flags);
	nd_expect(&p->a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
}

static void any_fires_once_for_all(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov[SOME];

	(void)state;
	make_connected(&p);
	for (int i = 0; i < SOME; i++) {
		nd_ov_make(&ov[i]);
		arm(&p.b, ND_CQ_NOTIFY_ANY, &ov[i]);
	}
	pass(&p, 0);
	for (int i = 0; i < SOME; i++)
		assert_status(nd_ov_end(&ov[i]), ND_SUCCESS);
	/* the result that was taken does not fire again */
	arm(&p.b, ND_CQ_NOTIFY_ANY, &ov[0]);
	expect_pending(&ov[0]);
	pass(&p, 0);
	assert_status(nd_ov_end(&ov[0]), ND_SUCCESS);
	for (int i = 0; i < SOME; i++)
		nd_ov_drop(&ov[i]);
	end(&p);
}

static void a_result_before_the_call_fires(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov;

	(void)state;
	make_connected(&p);
	nd_ov_make(&ov);
	nd_receive(&p.b, 1, 0, SIZE);
	nd_receive(&p.b, 2, 0, SIZE);
	nd_send(&p.a, 3, 0, SIZE, 0);
	nd_expect(&p.a, Nd2RequestTypeSend, 3, ND_SUCCESS);
	arm(&p.b, ND_CQ_NOTIFY_ANY, &ov);
	assert_status(nd_ov_end(&ov), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	nd_send(&p.a, 4, 0, SIZE, 0);
	nd_expect(&p.a, Nd2RequestTypeSend, 4, ND_SUCCESS);
	arm(&p.b, ND_CQ_NOTIFY_ANY, &ov);
	assert_status(nd_ov_end(&ov), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 2, ND_SUCCESS);
	nd_ov_drop(&ov);
	end(&p);
}

static void solicited_waits_for_a_solicited_one(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov;

	(void)state;
	nd_need(NDX_CAP_NOTIFY_SOLICITED);
	make_connected(&p);
	nd_ov_make(&ov);
	arm(&p.b, ND_CQ_NOTIFY_SOLICITED, &ov);
	pass(&p, 0);
	pass(&p, 0);
	expect_pending(&ov);
	pass(&p, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
	assert_status(nd_ov_end(&ov), ND_SUCCESS);
	arm(&p.b, ND_CQ_NOTIFY_SOLICITED, &ov);
	pass(&p, 0);
	expect_pending(&ov);
	/* a failure fires every type that waits for results */
	nd_receive(&p.b, 1, 0, SIZE);
	assert_status(CALL(p.a.qp, Flush), ND_SUCCESS);
	assert_status(nd_ov_end(&ov), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_CANCELED);
	nd_ov_drop(&ov);
	end(&p);
}

/* Without the capability. */
static void solicited_is_any(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov;

	(void)state;
	if (nd_has(NDX_CAP_NOTIFY_SOLICITED))
		nd_skip("the adapter has NOTIFY_SOLICITED");
	make_connected(&p);
	nd_ov_make(&ov);
	for (int i = 0; i < SOME; i++) {
		arm(&p.b, ND_CQ_NOTIFY_SOLICITED, &ov);
		expect_pending(&ov);
		pass(&p, 0);
		assert_status(nd_ov_end(&ov), ND_SUCCESS);
	}
	nd_ov_drop(&ov);
	end(&p);
}

static void any_overrides_solicited(void **state)
{
	struct nd_pair p;
	OVERLAPPED one, two;

	(void)state;
	nd_need(NDX_CAP_NOTIFY_SOLICITED);
	make_connected(&p);
	nd_ov_make(&one);
	nd_ov_make(&two);
	arm(&p.b, ND_CQ_NOTIFY_SOLICITED, &one);
	pass(&p, 0);
	expect_pending(&one);
	arm(&p.b, ND_CQ_NOTIFY_ANY, &two);
	pass(&p, 0);
	assert_status(nd_ov_end(&one), ND_SUCCESS);
	assert_status(nd_ov_end(&two), ND_SUCCESS);
	nd_ov_drop(&one);
	nd_ov_drop(&two);
	end(&p);
}

/* Results, also those of failures, are no errors of the queue. */
static void errors_waits_for_the_queue(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov;

	(void)state;
	make_connected(&p);
	memset(&ov, 0, sizeof(ov));
	arm(&p.b, ND_CQ_NOTIFY_ERRORS, &ov);
	pass(&p, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
	expect_pending(&ov);
	end(&p);
	assert_status(nd_ov_state(&ov), ND_CANCELED);
}

/* Microsoft's programs read after one notification. */
static void flushed_results_are_there_with_the_notification(void **state)
{
	enum { ALL = 3 * ND_DEPTH };
	struct nd_side s;
	ND2_RESULT results[ALL + 1];

	(void)state;
	nd_make_side(&s);
	nd_replace_qp(&s, ALL, 1, 0);
	for (uintptr_t i = 0; i < ALL; i++)
		nd_receive(&s, i, 0, SIZE);
	arm(&s, ND_CQ_NOTIFY_ANY, &s.ov);
	assert_status(CALL(s.qp, Flush), ND_SUCCESS);
	assert_status(nd_ov_end(&s.ov), ND_SUCCESS);
	assert_int_equal(CALL(s.cq, GetResults, results, ALL + 1), ALL);
	for (uintptr_t i = 0; i < ALL; i++) {
		assert_status(results[i].Status, ND_CANCELED);
		assert_ptr_equal(results[i].RequestContext, (void *)i);
		assert_int_equal(results[i].RequestType, Nd2RequestTypeReceive);
	}
	nd_drop_side(&s);
}

struct drainer {
	struct nd_thread thread;
	struct nd_side *side;
	ULONG seen;
};

static void wait_and_drain(void *arg)
{
	struct drainer *d = (struct drainer *)arg;
	ND2_RESULT results[2 * ND_DEPTH];

	if (WaitForSingleObject(d->side->event, ND_WAIT_MS) == WAIT_OBJECT_0)
		d->seen = CALL(d->side->cq, GetResults, results, 2 * ND_DEPTH);
}

/* A thread that sleeps on the notification sees all of them, too. */
static void a_waiting_thread_sees_all_flushed_results(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct nd_side s;
		struct drainer d;

		nd_make_side(&s);
		memset(&d, 0, sizeof(d));
		d.side = &s;
		for (uintptr_t i = 0; i < ND_DEPTH; i++)
			nd_receive(&s, i, 0, SIZE);
		arm(&s, ND_CQ_NOTIFY_ANY, &s.ov);
		nd_thread_start(&d.thread, wait_and_drain, &d);
		nd_thread_await_sleep(&d.thread);
		assert_status(CALL(s.qp, Flush), ND_SUCCESS);
		nd_thread_join(&d.thread);
		assert_int_equal(d.seen, ND_DEPTH);
		nd_drop_side(&s);
	}
}

/* Other queue pairs of the queue are untouched. */
static void flush_is_for_one_queue_pair(void **state)
{
	struct nd_pair p;
	IND2QueuePair *other;

	(void)state;
	make_connected(&p);
	nd_receive(&p.b, 1, 0, SIZE);
	other = nd_new_qp(&p.b, 1, 1, 0);
	assert_status(CALL(other, Receive, (void *)2, NULL, 0), ND_SUCCESS);
	assert_status(CALL(other, Flush), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 2, ND_CANCELED);
	nd_send(&p.a, 3, 0, SIZE, 0);
	nd_expect(&p.a, Nd2RequestTypeSend, 3, ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	/* an unconnected queue pair stays usable */
	assert_status(CALL(other, Receive, (void *)4, NULL, 0), ND_SUCCESS);
	assert_status(CALL(other, Flush), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 4, ND_CANCELED);
	assert_int_equal(CALL(other, Release), 0);
	end(&p);
}

static void results_outlive_their_queue_pair(void **state)
{
	struct nd_side s;
	IND2QueuePair *qp;

	(void)state;
	nd_make_side(&s);
	qp = nd_new_qp(&s, 2, 1, 0);
	assert_status(CALL(qp, Receive, (void *)1, NULL, 0), ND_SUCCESS);
	assert_status(CALL(qp, Receive, (void *)2, NULL, 0), ND_SUCCESS);
	assert_int_equal(CALL(qp, Release), 0);
	nd_expect(&s, Nd2RequestTypeReceive, 1, ND_CANCELED);
	nd_expect(&s, Nd2RequestTypeReceive, 2, ND_CANCELED);
	nd_drop_side(&s);
}

/* A queue may be smaller than its queue pairs; results are not lost when it is resized. */
static void resize_loses_no_result(void **state)
{
	struct nd_side s;

	(void)state;
	nd_make_side(&s);
	if (!(s.info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED)) {
		nd_drop_side(&s);
		nd_skip("the adapter's queues cannot be resized");
	}
	assert_status(CALL(s.cq, Resize, 2), ND_SUCCESS);
	for (uintptr_t i = 0; i < ND_DEPTH; i++)
		nd_receive(&s, i, 0, SIZE);
	assert_status(CALL(s.qp, Flush), ND_SUCCESS);
	assert_status(CALL(s.cq, Resize, ND_DEPTH - 1), ND_BUFFER_OVERFLOW);
	assert_status(CALL(s.cq, Resize, ND_DEPTH), ND_SUCCESS);
	for (uintptr_t i = 0; i < ND_DEPTH; i++)
		nd_expect(&s, Nd2RequestTypeReceive, i, ND_CANCELED);
	nd_drop_side(&s);
}

/* ---- shared receive queues ---- */

static IND2SharedReceiveQueue *share(struct nd_side *s, ULONG threshold)
{
	IND2SharedReceiveQueue *srq = NULL;

	assert_status(CALL(s->adapter, CreateSharedReceiveQueue, BY_ID(IID_IND2SharedReceiveQueue),
	                   s->file, ND_DEPTH, 1, threshold, 0, 0, OUT(srq)),
	              ND_SUCCESS);
	assert_int_equal(CALL(s->qp, Release), 0);
	s->qp = NULL;
	assert_status(CALL(s->adapter, CreateQueuePairWithSrq, BY_ID(IID_IND2QueuePair),
	                   UNKNOWN(s->cq), UNKNOWN(s->cq), UNKNOWN(srq), s, ND_DEPTH, 1, 0,
	                   OUT(s->qp)),
	              ND_SUCCESS);
	return srq;
}

static void post(struct nd_side *s, IND2SharedReceiveQueue *srq, uintptr_t context)
{
	const ND2_SGE sge = nd_sge(s, 0, SIZE);

	assert_status(CALL(srq, Receive, (void *)context, &sge, 1), ND_SUCCESS);
}

static void use_receive(struct nd_pair *p, uintptr_t context)
{
	nd_send(&p->a, 5, 0, SIZE, 0);
	nd_expect(&p->a, Nd2RequestTypeSend, 5, ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeReceive, context, ND_SUCCESS);
}

static void a_threshold_notifies_all(void **state)
{
	struct nd_pair p;
	IND2SharedReceiveQueue *srq;
	OVERLAPPED ov[SOME];

	(void)state;
	nd_need(NDX_CAP_SRQ);
	nd_make(&p);
	srq = share(&p.b, 2);
	nd_connect(&p);
	for (uintptr_t i = 1; i <= 3; i++)
		post(&p.b, srq, i);
	for (int i = 0; i < SOME; i++) {
		nd_ov_make(&ov[i]);
		assert_status(CALL(srq, Notify, &ov[i]), ND_PENDING);
	}
	use_receive(&p, 1);
	for (int i = 0; i < SOME; i++)
		expect_pending(&ov[i]);
	use_receive(&p, 2);
	for (int i = 0; i < SOME; i++)
		assert_status(nd_ov_end(&ov[i]), ND_SUCCESS);
	/* below it already */
	assert_ends(CALL(srq, Notify, &ov[0]), &ov[0], ND_SUCCESS);
	assert_status(CALL(srq, Modify, 0, 1), ND_SUCCESS);
	assert_status(CALL(srq, Notify, &ov[0]), ND_PENDING);
	expect_pending(&ov[0]);
	use_receive(&p, 3);
	assert_status(nd_ov_end(&ov[0]), ND_SUCCESS);
	post(&p.b, srq, 4);
	assert_status(CALL(srq, Notify, &ov[0]), ND_PENDING);
	assert_int_equal(CALL(srq, Release), 0);
	assert_status(nd_ov_end(&ov[0]), ND_CANCELED);
	use_receive(&p, 4); /* the queue pair keeps the queue */
	for (int i = 0; i < SOME; i++)
		nd_ov_drop(&ov[i]);
	end(&p);
}

/* A send that meets an empty queue waits. */
static void an_empty_shared_queue_breaks_nothing(void **state)
{
	struct nd_pair p;
	IND2SharedReceiveQueue *srq;

	(void)state;
	nd_need(NDX_CAP_SRQ);
	nd_make(&p);
	srq = share(&p.b, 0);
	nd_connect(&p);
	arm(&p.a, ND_CQ_NOTIFY_ANY, &p.a.ov);
	nd_send(&p.a, 5, 0, SIZE, 0);
	assert_int_equal(WaitForSingleObject(p.a.event, 100), WAIT_TIMEOUT);
	post(&p.b, srq, 6);
	assert_status(nd_ov_end(&p.a.ov), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 6, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeSend, 5, ND_SUCCESS);
	assert_int_equal(CALL(srq, Release), 0);
	end(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_fires_once_for_all),
		cmocka_unit_test(a_result_before_the_call_fires),
		cmocka_unit_test(solicited_waits_for_a_solicited_one),
		cmocka_unit_test(solicited_is_any),
		cmocka_unit_test(any_overrides_solicited),
		cmocka_unit_test(errors_waits_for_the_queue),
		cmocka_unit_test(flushed_results_are_there_with_the_notification),
		cmocka_unit_test(a_waiting_thread_sees_all_flushed_results),
		cmocka_unit_test(flush_is_for_one_queue_pair),
		cmocka_unit_test(results_outlive_their_queue_pair),
		cmocka_unit_test(resize_loses_no_result),
		cmocka_unit_test(a_threshold_notifies_all),
		cmocka_unit_test(an_empty_shared_queue_breaks_nothing),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
