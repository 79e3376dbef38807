/* SPDX-License-Identifier: BSD-2-Clause */
/* libfabric returns FI_EAGAIN: the tables of operations of an endpoint are replaced by the
 * test's. */
#include "pair.h"

#include <string.h>

#include "ofi.h"

#define LONG 70000u /* a length that takes two control messages */

/* The operations of one endpoint. Only this endpoint fails. */
static struct {
	struct fi_ops_rma rma;
	struct fi_ops_msg msg;
	struct fi_ops_rma *real_rma;
	struct fi_ops_msg *real_msg;
	uint32_t calls;  /* atomic */
	uint32_t refuse; /* bit n: the call with number n fails */
} stack;

static bool is_refused(void)
{
	const uint32_t call = __atomic_fetch_add(&stack.calls, 1, __ATOMIC_SEQ_CST);

	return call < 32 && (stack.refuse & UINT32_C(1) << call) != 0;
}

static ssize_t writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return is_refused() ? -FI_EAGAIN : stack.real_rma->writemsg(ep, msg, flags);
}

static ssize_t sendmsg_(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return is_refused() ? -FI_EAGAIN : stack.real_msg->sendmsg(ep, msg, flags);
}

static ssize_t recvmsg_(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return is_refused() ? -FI_EAGAIN : stack.real_msg->recvmsg(ep, msg, flags);
}

static void refuse_calls(const struct pair_side *side, uint32_t which)
{
	struct ofi_qp *qp = (struct ofi_qp *)(void *)side->qp;

	ndxp_lock_acquire(&qp->base.lock);
	if (qp->ep->rma != &stack.rma) {
		stack.real_rma = qp->ep->rma;
		stack.real_msg = qp->ep->msg;
		stack.rma = *stack.real_rma;
		stack.msg = *stack.real_msg;
		stack.rma.writemsg = writemsg;
		stack.msg.sendmsg = sendmsg_;
		stack.msg.recvmsg = recvmsg_;
		qp->ep->rma = &stack.rma;
		qp->ep->msg = &stack.msg;
	}
	stack.calls = 0;
	stack.refuse = which;
	ndxp_lock_release(&qp->base.lock);
}

static void write_with_immediate(struct pair *p, const struct ndx_mr *mr, uintptr_t context)
{
	const struct ndx_sge sge = {p->a.memory, LONG, ndx_mr_get_local_token(mr)};

	assert_int_equal(ndx_qp_write_immediate(p->a.qp, (void *)context, &sge, 1,
	                                        (uintptr_t)p->b.memory,
	                                        ndx_mr_get_remote_token(p->b.mr), 77, 0),
	                 NDX_OK);
}

static void expect_written(struct pair *p, uintptr_t context)
{
	struct ndx_result result;

	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)context, NULL, 0), NDX_OK);
	result = pair_expect(&p->b, NDX_REQUEST_RECEIVE, context, NDX_OK);
	assert_int_equal(result.bytes_transferred, LONG);
	assert_int_equal(result.flags, NDX_RESULT_IMMEDIATE | NDX_RESULT_WRITTEN);
	pair_expect(&p->a, NDX_REQUEST_WRITE, context, NDX_OK);
}

static void a_refused_ask_is_retried_soon_after_a_waiting_send(void **state)
{
	struct pair *p = *state;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 64);

	p->attr.no_receive_timeout_ms = 100 * PAIR_TIMEOUT_MS;
	pair_make(p);
	pair_connect(p);
	pair_send(&p->a, 1, 0, 64, 0);
	pair_receive(&p->b, 2, 0, 64);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	refuse_calls(&p->a, 1);
	assert_int_equal(ndx_qp_write(p->a.qp, (void *)3, &sge, 1, (uintptr_t)p->b.memory,
	                              ndx_mr_get_remote_token(p->b.mr), 0),
	                 NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 3, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

/* Whichever call fails, each of the three parts is sent once. */
static void a_write_with_immediate_data_goes_on_where_it_stopped(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	write_with_immediate(p, p->a.mr, 100);
	expect_written(p, 100);
	for (uint32_t which = 0; which < 64; which++) {
		refuse_calls(&p->a, which);
		write_with_immediate(p, p->a.mr, which);
		expect_written(p, which);
	}
	pair_disconnect(p);
	pair_drop(p);
}

/* libfabric has accepted the write and never accepts the message: the memory stays in use until the
 * link ends. */
static void memory_of_a_write_that_began_is_not_given_back_before_it_ends(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr;

	pair_make(p);
	assert_int_equal(ndx_mr_register_new(p->a.adapter, p->a.memory, LONG, 0, &mr), NDX_OK);
	pair_connect(p);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, NULL, 0), NDX_OK);
	write_with_immediate(p, p->a.mr, 1);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)2, NULL, 0), NDX_OK);
	refuse_calls(&p->a, UINT32_MAX << 2);
	write_with_immediate(p, mr, 2);
	while (__atomic_load_n(&stack.calls, __ATOMIC_SEQ_CST) < 3)
		; /* the message waits for the peer's credit */
	ndx_mr_close(mr);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 2, NDX_E_CANCELED);
	pair_drop(p);
}

/* The sender waits for its only credit. The consumer of the receive, which does nothing more, has
 * polled so much before that its next poll is to send credits; or it has not polled. */
static void refuse_receive(struct pair *p, uint32_t which, bool polls)
{
	struct ndx_result result;

	pair_make(p);
	pair_connect(p);
	pair_send(&p->a, 1, 0, 64, 0);
	for (unsigned i = 0; polls && i < 1000; i++)
		assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	refuse_calls(&p->b, which);
	pair_receive(&p->b, 2, 0, 64);
	if (polls)
		assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	assert_true(__atomic_load_n(&stack.calls, __ATOMIC_SEQ_CST) > 1);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

static void a_refused_credit_is_sent_again(void **state)
{
	struct pair *p = *state;

	p->attr.no_receive_timeout_ms = NDX_INFINITE;
	refuse_receive(p, 2, false); /* the receive is call 0 */
	refuse_receive(p, 6, false);
	refuse_receive(p, 2, true);
	refuse_receive(p, 6, true);
}

/* No receive is with libfabric that could complete, and bring this one along. */
static void a_refused_receive_is_posted_again(void **state)
{
	struct pair *p = *state;

	p->attr.no_receive_timeout_ms = NDX_INFINITE;
	refuse_receive(p, 1, false);
	refuse_receive(p, 3, false);
	refuse_receive(p, 1, true);
}

/* Both ends wait for a receive of the other one, and the time for that is much longer than that
 * until the credit is sent again. */
static void a_send_that_waits_does_not_delay_a_refused_credit(void **state)
{
	struct pair *p = *state;

	p->attr.no_receive_timeout_ms = 3000;
	pair_make(p);
	pair_connect(p);
	pair_send(&p->a, 1, 0, 64, 0);
	pair_send(&p->b, 3, 0, 64, 0);
	refuse_calls(&p->b, 6);
	pair_receive(&p->b, 2, 0, 64);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	pair_receive(&p->a, 4, 0, 64);
	pair_expect(&p->b, NDX_REQUEST_SEND, 3, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_refused_ask_is_retried_soon_after_a_waiting_send),
		CASE(a_refused_credit_is_sent_again),
		CASE(a_refused_receive_is_posted_again),
		CASE(a_send_that_waits_does_not_delay_a_refused_credit),
		CASE(a_write_with_immediate_data_goes_on_where_it_stopped),
		CASE(memory_of_a_write_that_began_is_not_given_back_before_it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
