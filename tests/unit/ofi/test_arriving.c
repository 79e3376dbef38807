/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that has arrived in part, and may not end. Its memory is to be deregistered, or its
 * receive is to be canceled. Only the calls that need the memory wait: the control thread serves
 * the other connections of the adapter.
 */
#include "relay.h"

#include <poll.h>
#include <string.h>

#include "ofi.h"

#define RATE 500000u /* bytes in a second through the relay */
#define LENGTH (UINT32_C(1) << 21)
#define PARTS 20000000u /* ... with which 200,000 arrive at once */
#define MESSAGES 100u   /* ... of 0.1 s each */
#define EMPTY_TRIES 1000u
#define EMPTY_POLLS 4u
#define NEVER_MS 600000u /* longer than any test */

struct transfer {
	struct pair *p;
	struct relay *relay;
	struct ndx_mr *mr; /* the region of the receive */
};

static struct ofi_qp *qp_of(const struct pair_side *side)
{
	return ofi_qp_of((struct ndx_spi_qp *)(void *)side->qp);
}

/* Write part of a message into b's memory. The rest never arrives. */
static void begin_partial_transfer(struct transfer *t, struct pair *p)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_sge sge;

	t->p = p;
	t->relay = relay_start(p, RATE);
	assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, LENGTH,
	                                     NDX_MR_ALLOW_LOCAL_WRITE, &t->mr),
	                 NDX_OK);
	pair_make(p);
	pair_connect(p);
	memset(p->b.memory, 0, LENGTH);
	memset(p->a.memory, 0x11, LENGTH);
	sge = (struct ndx_sge){p->b.memory, LENGTH, ndx_mr_get_local_token(t->mr)};
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, &sge, 1), NDX_OK);
	pair_send(&p->a, 2, 0, LENGTH, 0);
	while (*(volatile unsigned char *)p->b.memory == 0 && pair_now() < end)
		(void)poll(NULL, 0, 1);
	relay_stall(t->relay);
	assert_int_equal(p->b.memory[0], 0x11);
	assert_int_equal(p->b.memory[LENGTH - 1], 0);
}

static void end_transfer(struct transfer *t)
{
	relay_close(t->relay);
	pair_drop(t->p);
	ndx_mr_close(t->mr);
}

static void deregister_holds_up_nobody_else(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped ov = {0};
	struct transfer t;

	begin_partial_transfer(&t, p);
	qp_of(&p->b)->adapter->recall_ms = NEVER_MS;
	assert_int_equal(ndx_mr_deregister(t.mr, &ov), NDX_PENDING);
	/* these jobs run after the first step of the deregistration */
	pair_run_jobs(&p->b);
	pair_run_jobs(&p->b);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	assert_int_equal(ndx_qp_flush(p->b.qp), NDX_OK);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	end_transfer(&t);
}

/* Two regions of one receive: the recalls take turns, and both regions are free in the end. */
static void deregistrations_take_turns(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped ov[2] = {{0}, {0}};
	struct ndx_mr *other;
	struct ndx_sge sge;
	enum ndx_status st;
	struct transfer t;

	begin_partial_transfer(&t, p);
	qp_of(&p->b)->adapter->recall_ms = NEVER_MS;
	assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory + LENGTH, LENGTH,
	                                     NDX_MR_ALLOW_LOCAL_WRITE, &other),
	                 NDX_OK);
	sge = (struct ndx_sge){p->b.memory + LENGTH, 64, ndx_mr_get_local_token(other)};
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)3, &sge, 1), NDX_OK);
	assert_int_equal(ndx_mr_deregister(t.mr, &ov[0]), NDX_PENDING);
	pair_run_jobs(&p->b);
	/* libfabric may have returned this receive together with the first one */
	st = ndx_mr_deregister(other, &ov[1]);
	assert_true(st == NDX_OK || st == NDX_PENDING);
	pair_run_jobs(&p->b);
	assert_int_equal(ndx_overlapped_status(&ov[0]), NDX_PENDING);
	assert_int_equal(ndx_qp_flush(p->b.qp), NDX_OK);
	assert_int_equal(pair_wait(&ov[0]), NDX_OK);
	if (st == NDX_PENDING)
		assert_int_equal(pair_wait(&ov[1]), NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_CANCELED);
	ndx_mr_close(other);
	end_transfer(&t);
}

static void the_limit_ends_the_connection(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped ov = {0};
	struct transfer t;

	begin_partial_transfer(&t, p);
	assert_int_equal(ndx_mr_deregister(t.mr, &ov), NDX_PENDING);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	assert_int_equal(ndx_connector_get_disconnect_reason(p->b.connector),
	                 NDX_DISCONNECT_ABORTED);
	end_transfer(&t);
}

struct detach_call {
	struct ofi_qp *qp;
	enum ndx_status status;
};

static void detach_call(void *arg)
{
	struct detach_call *d = arg;

	d->status = ofi_conn_detach(&d->qp->conn->spi);
}

static void a_close_waits_for_a_message_as_a_state(void **state)
{
	struct pair *p = *state;
	struct detach_call d;
	struct transfer t;

	begin_partial_transfer(&t, p);
	d.qp = qp_of(&p->b);
	ndxp_loop_call(d.qp->adapter->spi.loop, detach_call, &d);
	assert_int_equal(d.status, NDX_PENDING);
	assert_int_equal(ndx_qp_flush(p->b.qp), NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	end_transfer(&t);
}

/* Arm the queue by its descriptor, which is returned. */
static int arm(const struct pair_side *side)
{
	int fd;

	assert_int_equal(ndx_cq_get_fd(side->cq, &fd), NDX_OK);
	assert_int_equal(ndx_cq_notify(side->cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK);
	return fd;
}

/* A poll that is not scheduled for a moment looks like one that copies, so only a few in a row have
 * to be in time. */
static bool some_empty_polls_wait_for_nothing(const struct pair_side *side)
{
	struct ndx_result result;

	for (unsigned i = 0; i < EMPTY_TRIES; i++) {
		const uint64_t waits = pair_counter(side, false, "rest_waits");

		for (unsigned k = 0; k < EMPTY_POLLS; k++)
			assert_int_equal(ndx_cq_get_results(side->cq, &result, 1), 0);
		if (pair_counter(side, false, "rest_waits") == waits)
			return true;
	}
	return false;
}

/* One message in parts to a consumer that sleeps. */
static void take_in_parts(struct pair *p)
{
	struct pollfd readable = {.events = POLLIN};
	struct ndx_result result;

	pair_receive(&p->b, 1, 0, LENGTH);
	pair_send(&p->a, 2, 0, LENGTH, 0);
	while (ndx_cq_get_results(p->b.cq, &result, 1) == 0) {
		readable.fd = arm(&p->b);
		assert_int_equal(poll(&readable, 1, PAIR_TIMEOUT_MS), 1);
	}
	assert_int_equal(result.status, NDX_OK);
	assert_int_equal(result.bytes_transferred, LENGTH);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
}

/* A consumer that sleeps reads on for a moment when it is woken by a part of a message; not when
 * nothing has come. */
static void a_poll_waits_a_moment_for_the_rest(void **state)
{
	struct pair *p = *state;
	struct relay *relay = relay_start(p, PARTS);
	uint64_t waits;

	pair_make(p);
	pair_connect(p);
	(void)arm(&p->b);
	assert_true(some_empty_polls_wait_for_nothing(&p->b));
	waits = pair_counter(&p->b, false, "rest_waits");
	/* the control thread reads for a consumer that is not scheduled */
	for (unsigned i = 0; i < MESSAGES && pair_counter(&p->b, false, "rest_waits") == waits; i++)
		take_in_parts(p);
	assert_true(pair_counter(&p->b, false, "rest_waits") > waits);
	pair_disconnect(p);
	pair_drop(p);
	relay_close(relay);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_poll_waits_a_moment_for_the_rest),
		CASE(deregister_holds_up_nobody_else),
		CASE(deregistrations_take_turns),
		CASE(the_limit_ends_the_connection),
		CASE(a_close_waits_for_a_message_as_a_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
