/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections end: gracefully, from both sides, by an abort; and what becomes of the requests. */
#include "nd_op.h"

enum { ROUNDS = 20, SIZE = 64 };

/* The results of receives 1 to n of the side, in order. */
static void expect_cancelled(struct nd_side *s, ULONG n)
{
	for (ULONG i = 1; i <= n; i++)
		nd_expect(s, Nd2RequestTypeReceive, i, ND_CANCELED);
}

static void post_receives(struct nd_side *s, ULONG n)
{
	for (ULONG i = 1; i <= n; i++)
		nd_receive(s, i, 0, SIZE);
}

/* B's program does nothing. */
static void a_peer_need_not_disconnect(void **state)
{
	struct nd_pair p;
	OVERLAPPED gone, armed;

	(void)state;
	nd_ov_make(&gone);
	nd_ov_make(&armed);
	nd_make(&p);
	nd_connect(&p);
	post_receives(&p.a, 3);
	post_receives(&p.b, 3);
	assert_status(CALL(p.b.connector, NotifyDisconnect, &gone), ND_PENDING);
	assert_status(CALL(p.b.cq, Notify, ND_CQ_NOTIFY_ANY, &armed), ND_PENDING);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	/* the own receives are there with the completion */
	expect_cancelled(&p.a, 3);
	assert_status(nd_ov_end(&armed), ND_SUCCESS);
	expect_cancelled(&p.b, 3);
	assert_status(nd_ov_end(&gone), ND_SUCCESS);
	assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
	nd_drop(&p);
	nd_ov_drop(&gone);
	nd_ov_drop(&armed);
}

static void the_passive_side_may_disconnect(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_connect(&p);
	post_receives(&p.a, 2);
	assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
	expect_cancelled(&p.a, 2);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	nd_drop(&p);
}

static void both_sides_may_disconnect_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct nd_pair p;

		nd_make(&p);
		nd_connect(&p);
		post_receives(&p.a, 2);
		post_receives(&p.b, 2);
		assert_status(CALL(p.a.connector, Disconnect, &p.a.ov), ND_PENDING);
		assert_status(CALL(p.b.connector, Disconnect, &p.b.ov), ND_PENDING);
		assert_status(nd_ov_end(&p.a.ov), ND_SUCCESS);
		assert_status(nd_ov_end(&p.b.ov), ND_SUCCESS);
		expect_cancelled(&p.a, 2);
		expect_cancelled(&p.b, 2);
		nd_drop(&p);
	}
}

/* What was sent before arrives. */
static void a_disconnect_loses_no_message(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_connect(&p);
	post_receives(&p.b, 4);
	memset(p.a.memory, 0x5a, SIZE);
	for (uintptr_t i = 1; i <= 3; i++)
		nd_send(&p.a, i, 0, SIZE, 0);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	for (uintptr_t i = 1; i <= 3; i++) {
		nd_expect(&p.a, Nd2RequestTypeSend, i, ND_SUCCESS);
		nd_expect(&p.b, Nd2RequestTypeReceive, i, ND_SUCCESS);
	}
	nd_expect(&p.b, Nd2RequestTypeReceive, 4, ND_CANCELED);
	assert_memory_equal(p.a.memory, p.b.memory, SIZE);
	nd_drop(&p);
}

/* The peer answers a send with its disconnect. */
static void a_completed_send_is_not_cancelled(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct nd_pair p;

		nd_make(&p);
		nd_connect(&p);
		nd_receive(&p.a, 1, 0, SIZE);
		nd_receive(&p.b, 1, 0, SIZE);
		nd_send(&p.a, 2, 0, SIZE, 0);
		nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
		assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
		nd_expect(&p.a, Nd2RequestTypeSend, 2, ND_SUCCESS);
		nd_expect(&p.a, Nd2RequestTypeReceive, 1, ND_CANCELED);
		nd_drop(&p);
	}
}

/* A Disconnect that is not graceful succeeds, too. */
static void disconnect_after_an_abort_succeeds(void **state)
{
	struct nd_pair p;
	OVERLAPPED gone;

	(void)state;
	nd_ov_make(&gone);
	nd_make(&p);
	nd_connect(&p);
	post_receives(&p.a, 2);
	post_receives(&p.b, 2);
	assert_status(CALL(p.a.connector, NotifyDisconnect, &gone), ND_PENDING);
	assert_status(CALL(p.b.qp, Flush), ND_SUCCESS);
	expect_cancelled(&p.b, 2);
	assert_status(nd_ov_end(&gone), ND_SUCCESS);
	expect_cancelled(&p.a, 2);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
	nd_drop(&p);
	nd_ov_drop(&gone);
}

static void disconnect_may_be_repeated(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_connect(&p);
	for (int i = 0; i < 3; i++) {
		assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
		assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
	}
	assert_status(CALL(p.a.connector, Connect, UNKNOWN(p.a.qp), (struct sockaddr *)&p.address,
	                   p.address_length, 0, 0, NULL, 0, &p.a.ov),
	              ND_INVALID_DEVICE_STATE);
	nd_drop(&p);
}

static void expect_all_kinds_cancelled(struct nd_pair *p, struct nd_side *s,
                                       const struct nd_side *peer)
{
	ND2_SGE sge = nd_sge(s, 0, SIZE);
	const UINT64 there = (UINT64)(uintptr_t)peer->memory;

	(void)p;
	nd_receive(s, 1, 0, SIZE);
	nd_expect(s, Nd2RequestTypeReceive, 1, ND_CANCELED);
	nd_send(s, 2, 0, SIZE, 0);
	nd_expect(s, Nd2RequestTypeSend, 2, ND_CANCELED);
	nd_send(s, 3, 0, SIZE, ND_OP_FLAG_SILENT_SUCCESS); /* a failure always has a result */
	nd_expect(s, Nd2RequestTypeSend, 3, ND_CANCELED);
	assert_status(CALL(s->qp, Write, (void *)4, &sge, 1, there, 1, 0), ND_SUCCESS);
	nd_expect(s, Nd2RequestTypeWrite, 4, ND_CANCELED);
	assert_status(CALL(s->qp, Read, (void *)5, &sge, 1, there, 1, 0), ND_SUCCESS);
	nd_expect(s, Nd2RequestTypeRead, 5, ND_CANCELED);
}

static void posts_after_the_end_are_cancelled(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_connect(&p);
	nd_receive(&p.b, 9, 0, SIZE);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 9, ND_CANCELED);
	expect_all_kinds_cancelled(&p, &p.a, &p.b);
	expect_all_kinds_cancelled(&p, &p.b, &p.a);
	/* also without the connectors */
	nd_replace_connector(&p.a);
	nd_replace_connector(&p.b);
	expect_all_kinds_cancelled(&p, &p.a, &p.b);
	expect_all_kinds_cancelled(&p, &p.b, &p.a);
	nd_drop(&p);
}

/* The last release of a queue pair or of a connector disconnects. */
static void release_disconnects(void **state)
{
	(void)state;
	for (int of_connector = 0; of_connector < 2; of_connector++) {
		struct nd_pair p;
		OVERLAPPED gone;

		nd_ov_make(&gone);
		nd_make(&p);
		nd_connect(&p);
		post_receives(&p.a, 1);
		post_receives(&p.b, 2);
		assert_status(CALL(p.b.connector, NotifyDisconnect, &gone), ND_PENDING);
		if (of_connector) {
			assert_int_equal(CALL(p.a.connector, Release), 0);
			p.a.connector = NULL;
		} else {
			assert_int_equal(CALL(p.a.qp, Release), 0);
			p.a.qp = NULL;
		}
		expect_cancelled(&p.b, 2);
		expect_cancelled(&p.a, 1); /* its results outlive the queue pair */
		assert_status(nd_ov_end(&gone), ND_SUCCESS);
		assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
		nd_drop(&p);
		nd_ov_drop(&gone);
	}
}

/* The teardown goes on behind a cancelled call. */
static void a_cancelled_disconnect_goes_on(void **state)
{
	struct nd_pair p;
	OVERLAPPED gone;

	(void)state;
	nd_ov_make(&gone);
	nd_make(&p);
	nd_connect(&p);
	assert_status(CALL(p.b.connector, NotifyDisconnect, &gone), ND_PENDING);
	nd_send(&p.a, 1, 0, SIZE, 0); /* waits for a receive */
	assert_status(CALL(p.a.connector, Disconnect, &p.a.ov), ND_PENDING);
	assert_status(CALL(p.a.connector, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(nd_ov_state(&p.a.ov), ND_CANCELED);
	nd_receive(&p.b, 2, 0, SIZE);
	nd_expect(&p.b, Nd2RequestTypeReceive, 2, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeSend, 1, ND_SUCCESS);
	assert_status(nd_ov_end(&gone), ND_SUCCESS);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	nd_drop(&p);
	nd_ov_drop(&gone);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_need_not_disconnect),
		cmocka_unit_test(the_passive_side_may_disconnect),
		cmocka_unit_test(both_sides_may_disconnect_at_once),
		cmocka_unit_test(a_disconnect_loses_no_message),
		cmocka_unit_test(a_completed_send_is_not_cancelled),
		cmocka_unit_test(disconnect_after_an_abort_succeeds),
		cmocka_unit_test(disconnect_may_be_repeated),
		cmocka_unit_test(posts_after_the_end_are_cancelled),
		cmocka_unit_test(release_disconnects),
		cmocka_unit_test(a_cancelled_disconnect_goes_on),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
