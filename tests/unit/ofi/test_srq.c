/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: which connection gets a receive, and what becomes of receives that a
 * connection does not use. */
#include "lanes.h"

#include <string.h>

#include "bare.h"
#include "ofi.h"

enum { WANTED = 5, READY = 8 };

/* ---- ends of NDX ---- */

static void the_adapter_says_so(void **state)
{
	struct pair *p = *state;
	struct ndx_adapter_info info = {.size = sizeof(info)};

	assert_int_equal(ndx_adapter_query(p->a.adapter, &info), NDX_OK);
	assert_true((info.capabilities & NDX_CAP_SRQ) != 0);
	assert_int_equal(info.max_shared_receive_queue_depth, OFI_MAX_DEPTH);
}

static void a_connection_without_messages_holds_no_receive(void **state)
{
	struct lanes l;

	lanes_open(&l, *state, READY, 3);
	lanes_post(&l, 0);
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < 3; i++) {
			pair_run_jobs(&l.lane[i].b);
			assert_int_equal(pair_counter(&l.lane[i].b, true, "receives_native"), 0);
			assert_int_equal(pair_counter(&l.lane[i].a, true, "credits"), 0);
		}
		/* the only receive serves any of them */
		lanes_pass(&l, round % 3, round);
		lanes_post(&l, round + 1);
	}
	lanes_close(&l);
}

/* The lane that has got the receive. */
static unsigned find_taker(struct lanes *l, uintptr_t context)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result;

	while (pair_now() < end) {
		for (unsigned i = 0; i < LANES; i++) {
			if (ndx_cq_get_results(l->lane[i].b.cq, &result, 1) == 0)
				continue;
			assert_int_equal(result.status, NDX_OK);
			assert_int_equal((uintptr_t)result.request_context, context);
			assert_ptr_equal(result.queue_pair_context, &l->lane[i].b);
			return i;
		}
	}
	fail_msg("receive %u was not used", (unsigned)context);
	return 0;
}

static void fewer_receives_than_connections_go_round(void **state)
{
	unsigned got[LANES] = {0};
	struct lanes l;

	lanes_open(&l, *state, READY, LANES);
	for (unsigned i = 0; i < LANES; i++) {
		/* the first message asks for itself, the others wait for its answer */
		for (unsigned k = 0; k < WANTED; k++)
			pair_send(&l.lane[i].a, k, 0, 64, 0);
		lanes_await(&l.lane[i].b, "receives_wanted", 1);
	}
	for (unsigned n = 0; n < LANES * WANTED; n++) {
		unsigned taker;

		lanes_post(&l, n);
		taker = find_taker(&l, n);
		got[taker]++;
		/* before the next receive the lane waits again, for all that is left */
		lanes_await(&l.lane[taker].b, "receives_wanted", WANTED - got[taker]);
		for (unsigned i = 0; i < LANES; i++)
			assert_in_range(got[i], n / LANES, n / LANES + 1);
	}
	for (unsigned i = 0; i < LANES; i++) {
		for (unsigned k = 0; k < WANTED; k++)
			pair_expect(&l.lane[i].a, NDX_REQUEST_SEND, k, NDX_OK);
	}
	lanes_close(&l);
}

/* More messages than a connection may hold receives, and a queue that is filled again all the
 * time. */
static void a_stream_takes_what_it_needs(void **state)
{
	enum { MESSAGES = 1000, DEPTH = 100, WINDOW = 50 };
	struct ndx_qp_stats stats = {.size = sizeof(stats)};
	struct lanes l;

	lanes_open(&l, *state, DEPTH, 2);
	for (unsigned i = 0; i < DEPTH; i++)
		lanes_post(&l, i);
	for (unsigned i = 0; i < WINDOW; i++)
		pair_send(&l.lane[1].a, i, 0, 64, 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		pair_expect(&l.lane[1].a, NDX_REQUEST_SEND, i, NDX_OK);
		pair_expect(&l.lane[1].b, NDX_REQUEST_RECEIVE, i % DEPTH, NDX_OK);
		lanes_post(&l, i % DEPTH);
		if (i + WINDOW < MESSAGES)
			pair_send(&l.lane[1].a, i + WINDOW, 0, 64, 0);
	}
	assert_int_equal(ndx_qp_get_stats(l.lane[1].b.qp, &stats), NDX_OK);
	assert_int_equal(stats.receive.posted, MESSAGES);
	assert_int_equal(stats.receive.completed, MESSAGES);
	assert_int_equal(pair_counter(&l.lane[0].b, true, "receives_native"), 0);
	lanes_close(&l);
}

/* ---- a peer that asks and does not send ---- */

/* As bare_connect_to_b(), with a shared queue and until the connection is up. */
static void connect_bare(struct bare *b, struct lanes *l, struct pair *p)
{
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm own;
	uint32_t event;

	*p = *l->p;
	p->attr.srq = l->srq;
	pair_make_side(p, &p->b);
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	own = bare_cm(b, OFI_CM_CONNECT);
	own.initiator_depth = 2 * READY;
	bare_connect(b, p, bytes, ofi_cm_encode(&own, bytes));
	while (ndx_overlapped_status(&p->b.ov) == NDX_PENDING) {
		errno = 0;
		(void)fi_eq_read(b->eq, &event, bytes, 0, 0);
	}
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_OK);
	assert_int_equal(ndx_connector_accept(p->b.connector, p->b.qp, NULL, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(bare_wait_event(b, NULL), FI_CONNECTED);
	assert_null(ofi_cm_decode(b->data, b->len, OFI_CM_ACCEPT, &b->peer));
	assert_int_equal(b->peer.credits, 0);
	assert_int_equal(b->peer.depth, OFI_SRQ_HELD);
	assert_true(b->peer.shared);
	bare_send_ready(b, p);
}

static void want(struct bare *b, uint16_t count)
{
	bare_write_ctrl(b, bare_encode_ctrl(b, OFI_CTRL_WANT, count));
}

/* Read until so many credits have come in all. */
static void read_credits(struct bare *b, unsigned count)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;
	struct ofi_ctrl ctrl;

	while (count > 0 && pair_now() < end) {
		if (fi_cq_read(b->cq, &entry, 1) != 1 || !(entry.flags & FI_REMOTE_CQ_DATA))
			continue;
		ctrl = ofi_ctrl_split(entry.data);
		if (ctrl.type != OFI_CTRL_CREDIT)
			continue;
		assert_in_range(ctrl.count, 0, count); /* 0: an acknowledgement */
		count -= ctrl.count;
	}
	assert_int_equal(count, 0);
}

/* The peer is gone; the passive side knows. */
static void end_bare(struct bare *b, struct pair *p)
{
	bare_close(b);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
}

static void what_a_dead_connection_held_goes_back_in_order(void **state)
{
	struct ndx_result result;
	struct lanes l;
	struct pair p;
	struct bare b;

	lanes_open(&l, *state, READY, 1);
	for (unsigned i = 0; i < READY; i++)
		lanes_post(&l, i);
	connect_bare(&b, &l, &p);
	want(&b, 2 * READY);
	/* half of the queue, because another connection has it, too */
	read_credits(&b, READY / 2);
	assert_int_equal(pair_counter(&p.b, true, "receives_native"), READY / 2);
	assert_int_equal(pair_counter(&p.b, true, "receives_wanted"), 2 * READY - READY / 2);
	/* two of them are used, in order */
	for (uintptr_t i = 0; i < 2; i++) {
		bare_send(&b, ofi_ctrl_encode_data(0, 0, 0, 0), FI_REMOTE_CQ_DATA);
		pair_expect(&p.b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	/* then the connection takes half of what is left */
	read_credits(&b, READY / 4);
	lanes_pass(&l, 0, READY / 2 + READY / 4);
	end_bare(&b, &p);
	lanes_await(&p.b, "receives_native", 0);
	assert_int_equal(ndx_cq_get_results(p.b.cq, &result, 1), 0);
	for (uintptr_t i = 2; i < READY; i++) {
		if (i != READY / 2 + READY / 4)
			lanes_pass(&l, 0, i);
	}
	assert_int_equal(ndx_cq_get_results(p.b.cq, &result, 1), 0);
	pair_drop_side(&p.b);
	lanes_close(&l);
}

/* A connection waits; the receives of another one that ends are what it waits for. */
static void what_goes_back_serves_those_that_wait(void **state)
{
	struct lanes l;
	struct pair p;
	struct bare b;

	lanes_open(&l, *state, READY, 1);
	connect_bare(&b, &l, &p);
	want(&b, 3);
	lanes_await(&p.b, "receives_wanted", 3);
	pair_send(&l.lane[0].a, 1, 0, 64, 0);
	lanes_await(&l.lane[0].b, "receives_wanted", 1);
	lanes_post(&l, 5);
	read_credits(&b, 1);
	end_bare(&b, &p);
	pair_expect(&l.lane[0].a, NDX_REQUEST_SEND, 1, NDX_OK);
	pair_expect(&l.lane[0].b, NDX_REQUEST_RECEIVE, 5, NDX_OK);
	pair_drop_side(&p.b);
	lanes_close(&l);
}

static void held_receives_count_as_left(void **state)
{
	struct ndx_overlapped ov = {0};
	struct lanes l;
	struct pair p;
	struct bare b;

	lanes_open(&l, *state, READY, 0);
	assert_int_equal(ndx_srq_modify(l.srq, 0, READY - 2), NDX_OK);
	for (unsigned i = 0; i < READY; i++)
		lanes_post(&l, i);
	connect_bare(&b, &l, &p);
	want(&b, READY);
	/* alone it gets all */
	read_credits(&b, READY);
	assert_int_equal(ndx_srq_notify(l.srq, &ov), NDX_PENDING);
	assert_int_equal(ndx_srq_modify(l.srq, READY - 1, 0), NDX_E_BUFFER_OVERFLOW);
	for (uintptr_t i = 0; i < 3; i++) {
		assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
		bare_send(&b, ofi_ctrl_encode_data(0, 0, 0, 0), FI_REMOTE_CQ_DATA);
		pair_expect(&p.b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	assert_int_equal(pair_wait(&ov), NDX_OK);
	end_bare(&b, &p);
	pair_drop_side(&p.b);
	lanes_close(&l);
}

static void register_again(struct pair *p)
{
	struct ndx_overlapped ov = {0};

	assert_int_equal(ndx_mr_register(p->b.mr, p->b.memory, PAIR_MEMORY,
	                                 NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ, &ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&ov), NDX_OK);
}

/* The lengths at the peer say that the receives of a region that is gone take no message. */
static void a_deregistration_reaches_held_receives(void **state)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_overlapped ov = {0};
	struct lanes l;
	struct pair p;
	struct bare b;
	enum ndx_status st;

	lanes_open(&l, *state, READY, 0);
	for (unsigned i = 0; i < 3; i++)
		lanes_post(&l, i);
	connect_bare(&b, &l, &p);
	want(&b, 2);
	read_credits(&b, 2);
	st = ndx_mr_deregister(p.b.mr, &ov);
	assert_true(st == NDX_OK || st == NDX_PENDING);
	if (st == NDX_PENDING)
		assert_int_equal(pair_wait(&ov), NDX_OK);
	want(&b, 1);
	read_credits(&b, 1);
	for (size_t i = 0; i < 3; i++) {
		const uint8_t *entry = b.memory + OFI_AREA_SIZES + i * OFI_SIZE_ENTRY;

		while (entry[0] != 0x80 && pair_now() < end)
			(void)fi_cq_read(b.cq, NULL, 0);
		assert_int_equal(entry[0], 0x80);
	}
	end_bare(&b, &p);
	pair_drop_side(&p.b);
	lanes_close(&l);
	register_again(*state);
}

/* The peer asks while receives are recalled, so nothing is given; the end of the recall serves it.
 * A recall takes time only while a message arrives, and then no question can arrive behind the
 * message: so it is another recall, which the test begins and ends, that keeps this one waiting. */
static void what_is_wanted_during_a_recall_is_given_afterwards(void **state)
{
	static const struct ofi_revoke other;
	struct ndx_overlapped ov = {0};
	struct ofi_qp *qp;
	struct lanes l;
	struct pair p;
	struct bare b;

	lanes_open(&l, *state, READY, 0);
	for (unsigned i = 0; i < 3; i++)
		lanes_post(&l, i);
	connect_bare(&b, &l, &p);
	want(&b, 1);
	read_credits(&b, 1);
	qp = (struct ofi_qp *)(void *)p.b.qp;
	ndxp_lock_acquire(&qp->base.lock);
	qp->adapter->recall_ms = PAIR_TIMEOUT_MS;
	qp->recalling = true;
	qp->recalled_for = &other;
	ndxp_lock_release(&qp->base.lock);
	assert_int_equal(ndx_mr_deregister(p.b.mr, &ov), NDX_PENDING);
	want(&b, 2);
	lanes_await(&p.b, "receives_wanted", 2);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	ndxp_lock_acquire(&qp->base.lock);
	qp->recalled_for = NULL;
	ndxp_lock_release(&qp->base.lock);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	read_credits(&b, 2);
	assert_int_equal(pair_counter(&p.b, true, "receives_wanted"), 0);
	end_bare(&b, &p);
	((struct ofi_qp *)(void *)p.b.qp)->adapter->recall_ms = OFI_RECALL_MS;
	pair_drop_side(&p.b);
	lanes_close(&l);
	register_again(*state);
}

/* ---- violations ---- */

static void want_of_a_queue_of_its_own(struct bare *b)
{
	want(b, 1);
}

static void violate(struct pair *fixture, uint16_t first, uint16_t second)
{
	struct lanes l;
	struct pair p;
	struct bare b;

	lanes_open(&l, fixture, READY, 1);
	connect_bare(&b, &l, &p);
	want(&b, first);
	if (second > 0)
		want(&b, second);
	assert_int_equal(pair_wait(&p.b.ov), NDX_OK);
	assert_int_equal(p.b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(&b);
	pair_drop_side(&p.b);
	lanes_post(&l, 1);
	lanes_pass(&l, 0, 1); /* the others go on */
	lanes_close(&l);
}

static void violations_end_their_connection(void **state)
{
	bare_violate(*state, want_of_a_queue_of_its_own);
	violate(*state, 2 * READY + 1, 0); /* more than it has requests */
	violate(*state, 3, 1);             /* before the first question is answered */
}

/* ---- libfabric has no memory ---- */

static struct {
	struct fi_ops_rma rma;
	struct fi_ops_msg msg;
	struct fi_ops_rma *real_rma;
	struct fi_ops_msg *real_msg;
	unsigned refuse; /* calls that fail; atomic */
} stack;

static bool is_refused(void)
{
	unsigned left = __atomic_load_n(&stack.refuse, __ATOMIC_SEQ_CST);

	while (left > 0 && !__atomic_compare_exchange_n(&stack.refuse, &left, left - 1, false,
	                                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		continue;
	return left > 0;
}

static ssize_t refuse_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return is_refused() ? -FI_EAGAIN : stack.real_rma->writemsg(ep, msg, flags);
}

static ssize_t refuse_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return is_refused() ? -FI_EAGAIN : stack.real_msg->recvmsg(ep, msg, flags);
}

static void refuse_calls(const struct pair_side *side, unsigned count)
{
	struct ofi_qp *qp = (struct ofi_qp *)(void *)side->qp;

	ndxp_lock_acquire(&qp->base.lock);
	stack.real_rma = qp->ep->rma;
	stack.real_msg = qp->ep->msg;
	stack.rma = *stack.real_rma;
	stack.msg = *stack.real_msg;
	stack.rma.writemsg = refuse_writemsg;
	stack.msg.recvmsg = refuse_recvmsg;
	qp->ep->rma = &stack.rma;
	qp->ep->msg = &stack.msg;
	stack.refuse = count;
	ndxp_lock_release(&qp->base.lock);
}

static void refuse_no_more(const struct pair_side *side)
{
	struct ofi_qp *qp = (struct ofi_qp *)(void *)side->qp;

	assert_int_equal(__atomic_load_n(&stack.refuse, __ATOMIC_SEQ_CST), 0);
	ndxp_lock_acquire(&qp->base.lock);
	qp->ep->rma = stack.real_rma;
	qp->ep->msg = stack.real_msg;
	ndxp_lock_release(&qp->base.lock);
}

static void questions_and_grants_are_repeated(void **state)
{
	struct lanes l;

	for (unsigned refused = 1; refused <= 6; refused++) {
		lanes_open(&l, *state, READY, 1);
		lanes_post(&l, 1);
		refuse_calls(&l.lane[0].a, refused);
		lanes_pass(&l, 0, 1);
		refuse_no_more(&l.lane[0].a);
		lanes_post(&l, 2);
		refuse_calls(&l.lane[0].b, refused);
		lanes_pass(&l, 0, 2);
		refuse_no_more(&l.lane[0].b);
		lanes_close(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_adapter_says_so),
		cmocka_unit_test(a_connection_without_messages_holds_no_receive),
		cmocka_unit_test(fewer_receives_than_connections_go_round),
		cmocka_unit_test(a_stream_takes_what_it_needs),
		cmocka_unit_test(what_a_dead_connection_held_goes_back_in_order),
		cmocka_unit_test(what_goes_back_serves_those_that_wait),
		cmocka_unit_test(held_receives_count_as_left),
		cmocka_unit_test(a_deregistration_reaches_held_receives),
		cmocka_unit_test(what_is_wanted_during_a_recall_is_given_afterwards),
		cmocka_unit_test(violations_end_their_connection),
		cmocka_unit_test(questions_and_grants_are_repeated),
	};

	return cmocka_run_group_tests(tests, pair_up, pair_down);
}
