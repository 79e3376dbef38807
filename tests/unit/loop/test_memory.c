/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions and windows over loop: rights, revoking, and what a window serves. */
#include "rig.h"

/* Which rights each flag gives, tried one by one on fresh connections. */
struct right_case {
	uint32_t flags;
	bool receive; /* own side */
	bool sink;
	bool remote_read;
	bool remote_write;
};

static const struct right_case right_cases[] = {
	{0, false, false, false, false},
	{NDX_MR_ALLOW_LOCAL_WRITE, true, true, false, false},
	{NDX_MR_RDMA_READ_SINK, false, true, false, false},
	{NDX_MR_ALLOW_REMOTE_READ, false, false, true, false},
	{NDX_MR_ALLOW_REMOTE_WRITE, true, true, false, true},
};

static enum ndx_status outcome_at(struct rig_side *side)
{
	struct ndx_result result = {0};

	assert_int_equal(ndx_cq_get_results(&side->cq->pub, &result, 1), 1);
	return result.status;
}

enum access { RECEIVE, SINK, REMOTE_READ, REMOTE_WRITE };

/* Use region `mr` of side b's memory in one way, over a connection of its own. */
static enum ndx_status use(struct rig *rig, const struct ndx_spi_mr *mr, enum access access)
{
	struct ndx_spi_qp *from = rig_make_qp(rig, &rig->a, NULL);
	struct ndx_spi_qp *to = rig_make_qp(rig, &rig->b, NULL);
	struct ndx_sge mine = rig_sge(&rig->a, 0, 8);
	struct ndx_sge theirs = rig_sge(&rig->b, 0, 8);
	struct rig_side *who = access == REMOTE_READ || access == REMOTE_WRITE ? &rig->a : &rig->b;
	struct rig_pair pair;
	enum ndx_status st;
	struct ndx_result rest;

	theirs.token = mr->local_token;
	rig_connect_pair(rig, &pair, from, to);
	switch (access) {
	case RECEIVE:
		assert_int_equal(ndx_qp_receive(&to->pub, NULL, &theirs, 1), NDX_OK);
		assert_int_equal(ndx_qp_send(&from->pub, NULL, &mine, 1, 0), NDX_OK);
		break;
	case SINK:
		assert_int_equal(ndx_qp_read(&to->pub, NULL, &theirs, 1, rig_remote(&rig->a, 0),
		                             rig->a.mr->remote_token, 0),
		                 NDX_OK);
		break;
	case REMOTE_READ:
		assert_int_equal(ndx_qp_read(&from->pub, NULL, &mine, 1, rig_remote(&rig->b, 0),
		                             mr->remote_token, 0),
		                 NDX_OK);
		break;
	case REMOTE_WRITE:
		assert_int_equal(ndx_qp_write(&from->pub, NULL, &mine, 1, rig_remote(&rig->b, 0),
		                              mr->remote_token, 0),
		                 NDX_OK);
		break;
	}
	st = outcome_at(who);
	rig_drop_pair(rig, &pair);
	rig_ops()->qp_destroy(from);
	rig_ops()->qp_destroy(to);
	while (ndx_cq_get_results(&rig->a.cq->pub, &rest, 1) > 0) {
	}
	return st;
}

static void assert_right(struct rig *rig, const struct ndx_spi_mr *mr, enum access access,
                         bool allowed)
{
	assert_int_equal(use(rig, mr, access), allowed ? NDX_OK : NDX_E_ACCESS_VIOLATION);
}

static void each_flag_gives_its_rights_and_no_other(void **state)
{
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(right_cases) / sizeof(right_cases[0]); i++) {
		const struct right_case *c = &right_cases[i];
		struct ndx_spi_mr *mr = rig_register(&rig->b, rig->b.memory, RIG_MEMORY, c->flags);

		assert_right(rig, mr, RECEIVE, c->receive);
		assert_right(rig, mr, SINK, c->sink);
		assert_right(rig, mr, REMOTE_READ, c->remote_read);
		assert_right(rig, mr, REMOTE_WRITE, c->remote_write);
		rig_drop_mr(mr);
	}
}

/* ---- windows ---- */

static struct ndx_spi_mw *make_window(struct rig_side *side)
{
	struct ndx_spi_mw *mw = NULL;

	assert_int_equal(rig_ops()->mw_create(side->adapter, &mw), NDX_OK);
	return mw;
}

/* Bind [100, 200) of b's memory through b's queue pair. */
static enum ndx_status bind_window(struct rig_side *side, struct ndx_spi_mw *mw,
                                   struct ndx_spi_mr *mr, uint32_t flags)
{
	return ndx_qp_bind(&side->qp->pub, NULL, (struct ndx_mr *)(void *)mr,
	                   (struct ndx_mw *)(void *)mw, side->memory + 100, 100, flags);
}

static enum ndx_status invalidate(struct rig_side *side, struct ndx_spi_mw *mw)
{
	return ndx_qp_invalidate(&side->qp->pub, NULL, (struct ndx_mw *)(void *)mw, 0);
}

static enum ndx_status write_window(struct rig *rig, const struct ndx_spi_mw *mw, size_t offset,
                                    uint32_t length)
{
	const struct ndx_sge sge = rig_sge(&rig->a, 0, length);

	return ndx_qp_write(&rig->a.qp->pub, NULL, &sge, 1, rig_remote(&rig->b, offset),
	                    mw->remote_token, 0);
}

static enum ndx_status read_window(struct rig *rig, const struct ndx_spi_mw *mw, size_t offset,
                                   uint32_t length)
{
	const struct ndx_sge sge = rig_sge(&rig->a, 0, length);

	return ndx_qp_read(&rig->a.qp->pub, NULL, &sge, 1, rig_remote(&rig->b, offset),
	                   mw->remote_token, 0);
}

static void a_bind_of_no_window_is_refused(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(bind_window(&rig->b, NULL, rig->b.mr, 0), NDX_E_INVALID_PARAMETER);
	assert_int_equal(rig->b.book.aborts, 0);
}

static void bind_and_invalidate_wait_their_turn(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_mw *mw = make_window(&rig->b);
	uint32_t first;

	rig_connect_new(rig);
	assert_int_equal(bind_window(&rig->b, mw, rig->b.mr, NDX_OP_ALLOW_WRITE), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_OK);
	first = mw->remote_token;
	assert_int_equal(rig_send(&rig->b, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(invalidate(&rig->b, mw), NDX_OK);
	/* still served: the invalidate waits behind the send */
	assert_int_equal(write_window(rig, mw, 100, 8), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	/* planned on: what follows the invalidate may bind again */
	assert_int_equal(bind_window(&rig->b, mw, rig->b.mr, NDX_OP_ALLOW_READ), NDX_OK);
	assert_int_not_equal(mw->remote_token, first);
	assert_int_equal(bind_window(&rig->b, mw, rig->b.mr, NDX_OP_ALLOW_READ), NDX_E_DEVICE_BUSY);
	assert_int_equal(rig_receive(&rig->a, 2, 0, 8), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 1, NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_INVALIDATE, 0, NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	assert_int_equal(read_window(rig, mw, 100, 8), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_READ, 0, NDX_OK);
	rig_ops()->mw_destroy(mw);
}

static void a_window_may_be_closed_under_requests_that_wait(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_mw *bound = make_window(&rig->b);
	struct ndx_spi_mw *other = make_window(&rig->b);

	rig_connect_new(rig);
	assert_int_equal(bind_window(&rig->b, bound, rig->b.mr, 0), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_OK);
	assert_int_equal(rig_send(&rig->b, 1, 0, 8, NDX_OP_SILENT_SUCCESS), NDX_OK);
	assert_int_equal(invalidate(&rig->b, bound), NDX_OK);
	assert_int_equal(bind_window(&rig->b, other, rig->b.mr, 0), NDX_OK);
	rig_ops()->mw_destroy(bound);
	rig_ops()->mw_destroy(other);
	assert_int_equal(rig_receive(&rig->a, 2, 0, 8), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_INVALIDATE, 0, NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_E_CANCELED);
	assert_int_equal(rig->b.book.aborts, 0);
}

static void a_cancelled_bind_leaves_the_window_free(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_mw *mw = make_window(&rig->b);
	struct ndx_spi_qp *from;
	struct ndx_spi_qp *to;
	struct rig_pair pair;

	rig_connect_new(rig);
	from = rig_make_qp(rig, &rig->a, NULL);
	to = rig_make_qp(rig, &rig->b, NULL);
	rig_connect_pair(rig, &pair, from, to);
	assert_int_equal(rig_send(&rig->b, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(bind_window(&rig->b, mw, rig->b.mr, 0), NDX_OK);
	rig_abort(rig->b.conn, &rig->b.book);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 1, NDX_E_CANCELED);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_E_CANCELED);
	assert_int_equal(ndx_qp_bind(&to->pub, NULL, (struct ndx_mr *)(void *)rig->b.mr,
	                             (struct ndx_mw *)(void *)mw, rig->b.memory, 8, 0),
	                 NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_OK);
	rig_drop_pair(rig, &pair);
	rig_ops()->qp_destroy(from);
	/* the binding goes with its queue pair */
	rig_ops()->qp_destroy(to);
	assert_int_equal(rig_ops()->mr_deregister(rig->b.mr, false), NDX_OK);
	rig_ops()->mw_destroy(mw);
}

static void a_region_deregistered_before_its_bind_runs_fails_it(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_mw *mw = make_window(&rig->b);
	struct ndx_spi_mr *mr = rig_register(&rig->b, rig->b.memory, RIG_MEMORY, 0);

	rig_connect_new(rig);
	assert_int_equal(rig_send(&rig->b, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(bind_window(&rig->b, mw, mr, 0), NDX_OK);
	rig_drop_mr(mr);
	assert_int_equal(rig_receive(&rig->a, 2, 0, 8), NDX_OK);
	rig_assert_broken(rig);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 1, NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_BIND, 0, NDX_E_ACCESS_VIOLATION);
	rig_ops()->mw_destroy(mw);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_flag_gives_its_rights_and_no_other),
		TEST(a_bind_of_no_window_is_refused),
		TEST(bind_and_invalidate_wait_their_turn),
		TEST(a_window_may_be_closed_under_requests_that_wait),
		TEST(a_cancelled_bind_leaves_the_window_free),
		TEST(a_region_deregistered_before_its_bind_runs_fails_it),
	};

	return cmocka_run_group_tests_name("loop: memory", tests, NULL, NULL);
}
