/* SPDX-License-Identifier: BSD-2-Clause */
/* NotifyDisconnect: any number may be pending, and one after the end completes at once. */
#include "nd_op.h"

enum { SOME = 3 };

static void expect_all(OVERLAPPED *ov, HRESULT status)
{
	for (int i = 0; i < SOME; i++)
		assert_status(nd_ov_end(&ov[i]), status);
}

static void make_all(OVERLAPPED *ov)
{
	for (int i = 0; i < SOME; i++)
		nd_ov_make(&ov[i]);
}

static void drop_all(OVERLAPPED *ov)
{
	for (int i = 0; i < SOME; i++)
		nd_ov_drop(&ov[i]);
}

static void several_complete_together(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov[SOME];

	(void)state;
	make_all(ov);
	nd_make(&p);
	nd_connect(&p);
	for (int i = 0; i < SOME; i++)
		assert_status(CALL(p.b.connector, NotifyDisconnect, &ov[i]), ND_PENDING);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	expect_all(ov, ND_SUCCESS);
	nd_drop(&p);
	drop_all(ov);
}

static void one_after_the_end_completes_at_once(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov[SOME];

	(void)state;
	make_all(ov);
	nd_make(&p);
	nd_connect(&p);
	nd_receive(&p.b, 1, 0, 8);
	assert_ends(CALL(p.a.connector, Disconnect, &p.a.ov), &p.a.ov, ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_CANCELED);
	for (int i = 0; i < SOME; i++)
		assert_ends(CALL(p.b.connector, NotifyDisconnect, &ov[i]), &ov[i], ND_SUCCESS);
	assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
	for (int i = 0; i < SOME; i++) {
		assert_ends(CALL(p.b.connector, NotifyDisconnect, &ov[i]), &ov[i], ND_SUCCESS);
		assert_ends(CALL(p.a.connector, NotifyDisconnect, &ov[i]), &ov[i], ND_SUCCESS);
	}
	nd_drop(&p);
	drop_all(ov);
}

static void cancelled_ones_may_be_repeated(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov[SOME];

	(void)state;
	make_all(ov);
	nd_make(&p);
	nd_connect(&p);
	for (int round = 0; round < SOME; round++) {
		for (int i = 0; i < SOME; i++)
			assert_status(CALL(p.b.connector, NotifyDisconnect, &ov[i]), ND_PENDING);
		assert_status(CALL(p.b.connector, CancelOverlappedRequests), ND_SUCCESS);
		for (int i = 0; i < SOME; i++)
			assert_status(nd_ov_state(&ov[i]), ND_CANCELED);
		expect_all(ov, ND_CANCELED);
	}
	assert_status(CALL(p.b.connector, NotifyDisconnect, &ov[0]), ND_PENDING);
	nd_disconnect(&p);
	assert_status(nd_ov_end(&ov[0]), ND_SUCCESS);
	nd_drop(&p);
	drop_all(ov);
}

static void an_abort_completes_them_too(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov[SOME];

	(void)state;
	make_all(ov);
	nd_make(&p);
	nd_connect(&p);
	for (int i = 0; i < SOME; i++)
		assert_status(CALL(p.b.connector, NotifyDisconnect, &ov[i]), ND_PENDING);
	assert_status(CALL(p.a.qp, Flush), ND_SUCCESS);
	expect_all(ov, ND_SUCCESS);
	assert_ends(CALL(p.b.connector, NotifyDisconnect, &ov[0]), &ov[0], ND_SUCCESS);
	nd_drop(&p);
	drop_all(ov);
}

static void release_cancels_them(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov[SOME];

	(void)state;
	make_all(ov);
	nd_make(&p);
	nd_connect(&p);
	for (int i = 0; i < SOME; i++)
		assert_status(CALL(p.b.connector, NotifyDisconnect, &ov[i]), ND_PENDING);
	assert_int_equal(CALL(p.b.connector, Release), 0);
	p.b.connector = NULL;
	expect_all(ov, ND_CANCELED);
	nd_drop(&p);
	drop_all(ov);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_complete_together),
		cmocka_unit_test(one_after_the_end_completes_at_once),
		cmocka_unit_test(cancelled_ones_may_be_repeated),
		cmocka_unit_test(an_abort_completes_them_too),
		cmocka_unit_test(release_cancels_them),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
