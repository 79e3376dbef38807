/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <ndx/spi/reorder.h>

/* A queue pair whose requests are done when `head` passes them, and a native queue. */
struct rig {
	struct ndxp_qp qp;
	unsigned reads;
	int (*native)(struct rig *rig);
};

static int read_native(void *arg)
{
	struct rig *rig = arg;
	int n;

	rig->reads++;
	ndxp_lock_acquire(&rig->qp.lock);
	n = rig->native(rig);
	ndxp_lock_release(&rig->qp.lock);
	return n;
}

static bool oldest_of_all(const struct ndxp_qp *qp, uint32_t *index)
{
	*index = qp->initiator.head;
	return *index != qp->initiator.tail;
}

static unsigned await_all(struct rig *rig)
{
	rig->reads = 0;
	ndxp_reorder_await(&rig->qp, oldest_of_all, read_native, rig);
	return rig->reads;
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->qp.reorder_exempt = -1;
	rig->qp.initiator.head = UINT32_MAX - 3; /* the positions wrap */
	rig->qp.initiator.tail = UINT32_MAX - 3;
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static int complete_one(struct rig *rig)
{
	rig->qp.initiator.head++;
	return 1;
}

static void nothing_is_read_without_requests(void **state)
{
	struct rig *rig = *state;

	rig->native = complete_one;
	assert_int_equal(await_all(rig), 0);
}

static void every_earlier_request_is_awaited(void **state)
{
	struct rig *rig = *state;

	rig->native = complete_one;
	rig->qp.initiator.tail += 5;
	assert_int_equal(await_all(rig), 5);
	assert_int_equal(rig->qp.initiator.head, 1);
}

static int complete_one_and_post_one(struct rig *rig)
{
	rig->qp.initiator.tail++;
	return complete_one(rig);
}

/* A program that posts all the time would hold the receive for good. */
static void no_later_request_is_awaited(void **state)
{
	struct rig *rig = *state;

	rig->native = complete_one_and_post_one;
	rig->qp.initiator.tail += 5;
	assert_int_equal(await_all(rig), 5);
}

static int complete_one_then_fail(struct rig *rig)
{
	return rig->reads > 1 ? -1 : complete_one(rig);
}

static void reading_stops_at_a_failure(void **state)
{
	struct rig *rig = *state;

	rig->native = complete_one_then_fail;
	rig->qp.initiator.tail += 5;
	assert_int_equal(await_all(rig), 2);
}

static int find_nothing(struct rig *rig)
{
	(void)rig;
	return 0;
}

/* The request may itself wait for the receive's consumer. */
static void a_request_that_waits_is_awaited_once(void **state)
{
	struct rig *rig = *state;

	rig->native = find_nothing;
	rig->qp.initiator.tail += 2;
	assert_true(await_all(rig) > 0);
	assert_int_equal(await_all(rig), 0);
	rig->native = complete_one;
	rig->qp.initiator.head++;
	assert_int_equal(await_all(rig), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_read_without_requests),     TEST(every_earlier_request_is_awaited),
		TEST(no_later_request_is_awaited),          TEST(reading_stops_at_a_failure),
		TEST(a_request_that_waits_is_awaited_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
