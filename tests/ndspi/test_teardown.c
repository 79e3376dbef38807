/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects are released in every order, connected or not. A second argument N leaves out all orders
 * but each N-th, where there is little time. */
#include "nd_op.h"

enum { ADAPTER, CQ, QP, MR, CONNECTOR, ALWAYS, FILE_HANDLE = ALWAYS, LISTENER, PARTS };
enum { SIZE = 64, RECEIVES = 3 };

static int step = 1; /* from one order to the next */

/* Each last Release() returns 0, whatever else is there. */
static void release_part(struct nd_pair *p, int part)
{
	IUnknown *const objects[] = {UNKNOWN(p->a.adapter), UNKNOWN(p->a.cq), UNKNOWN(p->a.qp),
	                             UNKNOWN(p->a.mr), UNKNOWN(p->a.connector)};

	if (part == FILE_HANDLE) {
		assert_true(CloseHandle(p->a.file));
	} else if (part == LISTENER) {
		IND2Listener *listener = p->listener;

		p->listener = NULL;
		if (listener == NULL)
			fail();
		else
			assert_int_equal(CALL(listener, Release), 0);
	} else {
		assert_int_equal(CALL(objects[part], Release), 0);
	}
}

/* Permutation `index` of the first `count` parts. */
static void permute(int index, int count, int order[])
{
	int left[PARTS];
	int orders = 1; /* of the parts that are left */

	for (int i = 0; i < count; i++) {
		left[i] = i;
		orders *= i + 1;
	}
	for (int i = 0; i < count; i++) {
		int chosen;

		orders /= count - i;
		chosen = index / orders;
		index %= orders;
		order[i] = left[chosen];
		memmove(&left[chosen], &left[chosen + 1],
		        (size_t)(count - i - chosen - 1) * sizeof(left[0]));
	}
}

/* Put `part` into the order at a place that differs from order to order. */
static void insert(int order[], int count, int place, int part)
{
	for (int i = count; i > place; i--)
		order[i] = order[i - 1];
	order[place] = part;
}

/* A's parts are gone, except for its event and memory. */
static void forget_a(struct nd_pair *p)
{
	assert_true(CloseHandle(p->a.event));
	free(p->a.memory);
}

static void all_orders_are_different(void **state)
{
	static bool seen[ALWAYS * ALWAYS * ALWAYS * ALWAYS * ALWAYS];

	(void)state;
	for (int index = 0; index < 120; index++) {
		int order[PARTS];
		int key = 0;

		permute(index, ALWAYS, order);
		for (int i = 0; i < ALWAYS; i++)
			key = key * ALWAYS + order[i];
		assert_false(seen[key]);
		seen[key] = true;
	}
}

/* All 720 orders with the file. */
static void unconnected(void **state)
{
	(void)state;
	for (int index = 0; index < 720; index += step) {
		struct nd_pair p;
		int order[PARTS];

		memset(&p, 0, sizeof(p));
		nd_make_side(&p.a);
		for (uintptr_t i = 0; i < RECEIVES; i++)
			nd_receive(&p.a, i, 0, SIZE);
		permute(index, ALWAYS + 1, order);
		for (int i = 0; i < ALWAYS + 1; i++)
			release_part(&p, order[i]);
		forget_a(&p);
	}
}

/* B, whose program does nothing, sees the end. */
static void release_connected(int index, bool receives)
{
	struct nd_pair p;
	OVERLAPPED gone;
	int order[PARTS];

	nd_ov_make(&gone);
	nd_make(&p);
	nd_connect(&p);
	assert_status(CALL(p.b.connector, NotifyDisconnect, &gone), ND_PENDING);
	for (uintptr_t i = 0; receives && i < RECEIVES; i++) {
		nd_receive(&p.a, i, 0, SIZE);
		nd_receive(&p.b, i, 0, SIZE);
	}
	permute(index, ALWAYS, order);
	insert(order, ALWAYS, index % (ALWAYS + 1), FILE_HANDLE);
	insert(order, ALWAYS + 1, index % PARTS, LISTENER);
	for (int i = 0; i < PARTS; i++)
		release_part(&p, order[i]);
	forget_a(&p);
	for (uintptr_t i = 0; receives && i < RECEIVES; i++)
		nd_expect(&p.b, Nd2RequestTypeReceive, i, ND_CANCELED);
	assert_status(nd_ov_end(&gone), ND_SUCCESS);
	assert_ends(CALL(p.b.connector, Disconnect, &p.b.ov), &p.b.ov, ND_SUCCESS);
	nd_drop_side(&p.b);
	nd_ov_drop(&gone);
}

/* All 120 orders, with the file and the listener at changing places. */
static void connected(void **state)
{
	(void)state;
	for (int index = 0; index < 120; index += step)
		release_connected(index, false);
}

static void connected_with_receives(void **state)
{
	(void)state;
	for (int index = 0; index < 120; index += step)
		release_connected(index, true);
}

/* An attempt that is under way goes with its objects. */
static void connecting(void **state)
{
	(void)state;
	for (int index = 0; index < 120; index += 7) {
		struct nd_pair p;
		int order[PARTS];
		HRESULT status;

		nd_make(&p);
		nd_ask(&p, NULL);
		if (index % 2)
			nd_answer(&p, NULL);
		permute(index, ALWAYS, order);
		insert(order, ALWAYS, index % (ALWAYS + 1), FILE_HANDLE);
		for (int i = 0; i < ALWAYS + 1; i++)
			release_part(&p, order[i]);
		if (index % 2) {
			assert_status(nd_ov_end(&p.b.ov), ND_CONNECTION_REFUSED);
		} else {
			assert_status(nd_ov_end(&p.a.ov), ND_CANCELED);
			status = CALL(p.b.connector, Accept, UNKNOWN(p.b.qp), 0, 0, NULL, 0,
			              &p.b.ov);
			assert_status(status == ND_PENDING ? nd_ov_end(&p.b.ov) : status,
			              ND_CONNECTION_ABORTED);
		}
		forget_a(&p);
		assert_int_equal(CALL(p.listener, Release), 0);
		nd_drop_side(&p.b);
	}
}

/* Windows, in front of and behind what they are bound with. */
static void windows(void **state)
{
	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	for (int last = 0; last < 2; last++) {
		struct nd_pair p;
		IND2MemoryWindow *mw;

		nd_make(&p);
		nd_connect(&p);
		mw = nd_new_window(&p.a);
		assert_status(CALL(p.a.qp, Bind, NULL, UNKNOWN(p.a.mr), UNKNOWN(mw), p.a.memory,
		                   SIZE, ND_OP_FLAG_ALLOW_READ),
		              ND_SUCCESS);
		nd_expect(&p.a, Nd2RequestTypeBind, 0, ND_SUCCESS);
		if (!last)
			assert_int_equal(CALL(mw, Release), 0);
		for (int part = ADAPTER; part <= FILE_HANDLE; part++)
			release_part(&p, part);
		if (last)
			assert_int_equal(CALL(mw, Release), 0);
		forget_a(&p);
		assert_int_equal(CALL(p.listener, Release), 0);
		nd_drop_side(&p.b);
	}
}

/* Both ends go at once, each with its objects in an own order. */
static void both_ends(void **state)
{
	(void)state;
	for (int index = 0; index < 120; index += 11) {
		struct nd_pair p, other;
		int order[PARTS];

		nd_make(&p);
		nd_connect(&p);
		nd_receive(&p.a, 1, 0, SIZE);
		nd_receive(&p.b, 1, 0, SIZE);
		memset(&other, 0, sizeof(other));
		other.a = p.b;
		permute(index, ALWAYS, order);
		for (int i = 0; i < ALWAYS; i++) {
			release_part(&p, order[i]);
			release_part(&other, order[ALWAYS - 1 - i]);
		}
		release_part(&p, FILE_HANDLE);
		release_part(&other, FILE_HANDLE);
		forget_a(&p);
		forget_a(&other);
		assert_int_equal(CALL(p.listener, Release), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_orders_are_different),
		cmocka_unit_test(unconnected),
		cmocka_unit_test(connected),
		cmocka_unit_test(connected_with_receives),
		cmocka_unit_test(connecting),
		cmocka_unit_test(windows),
		cmocka_unit_test(both_ends),
	};
	const int rc = nd_begin(argc, argv);

	if (argc > 2)
		step = (int)strtol(argv[2], NULL, 10);
	if (step < 1)
		return 1;
	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
