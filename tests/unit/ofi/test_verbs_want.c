/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a shared queue over libfabric's verbs provider: how a peer asks for them, and which
 * receive its request finds. */
#include "verbs_fixture.h"

#include <endian.h>
#include <string.h>

/* ---- the end with the shared queue ---- */

struct shared {
	struct fixture *f;
	struct ndx_spi_srq *srq;
};

static struct shared share(struct fixture *f)
{
	struct shared s = {.f = f};

	fixture_share(f, &s.srq);
	assert_int_equal(ofi_verbs_await_want(f->qp), 0);
	assert_int_equal(f->posted, 1);
	assert_ptr_equal(f->receives[0], &f->link->verbs.want_op);
	return s;
}

/* As at the end of the link. */
static void end(const struct shared *s)
{
	ndxp_lock_acquire(&s->f->qp->base.lock);
	ofi_srq_return_all(s->f->qp);
	ndxp_lock_release(&s->f->qp->base.lock);
	ofi_srq_leave(s->f->qp);
	s->f->qp->taker.srq = NULL;
	ofi_srq_destroy(s->srq);
}

static void post(const struct shared *s, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(s->srq->pub.ops->receive(&s->srq->pub, NULL, NULL, 0), NDX_OK);
}

/* A completion in the receive that is posted for a WANT. */
static void arrive(const struct shared *s, uint64_t flags, size_t len, uint64_t data)
{
	const struct fi_cq_data_entry entry = {
		.op_context = &s->f->link->verbs.want_op, .flags = flags, .len = len, .data = data};

	assert_true(s->f->qp->verbs.awaits_want);
	ndxp_lock_acquire(&s->f->ncq.lock);
	ofi_verbs.wanted(s->f->qp, &entry);
	ndxp_lock_release(&s->f->ncq.lock);
}

static void want(const struct shared *s, uint64_t count)
{
	arrive(s, FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, sizeof(uint64_t), count);
}

/* The peer's next WANT comes behind all messages for which it has asked. */
static void a_want_is_awaited_behind_all_that_was_asked_for(void **state)
{
	struct fixture *f = *state;
	struct shared s = share(f);

	post(&s, 3);
	assert_int_equal(f->posted, 1);
	want(&s, 5);
	assert_int_equal(f->posted, 1 + 3);
	assert_int_equal(f->announced, 3);
	assert_false(f->qp->verbs.awaits_want);
	post(&s, 1);
	assert_int_equal(f->posted, 1 + 4);
	assert_int_equal(f->announced, 4);
	assert_false(f->qp->verbs.awaits_want);
	post(&s, 2);
	assert_int_equal(f->posted, 1 + 5 + 1);
	assert_int_equal(f->announced, 5);
	assert_ptr_equal(f->receives[6], &f->link->verbs.want_op);
	assert_int_equal(f->reports, 0);
	end(&s);
}

static void watch(void *arg)
{
	struct fixture *f = arg;

	ofi_verbs_on_watch(f->link);
}

/* The device has room for the first message's receive only. The peer gets no credit before it can
 * ask, so no message and no credit leads to the second try. */
static void a_receive_that_is_refused_at_first_is_posted_by_the_timer(void **state)
{
	struct fixture *f = *state;
	struct shared s = {.f = f};
	uint8_t padding[NDXP_RC_FIRST_LENGTH];

	fixture_share(f, &s.srq);
	f->adapter.padding = padding;
	f->adapter.padding_mr = &f->control;
	f->room = 1;
	ndxp_lock_acquire(&f->ncq.lock);
	ndxp_lock_acquire(&f->qp->base.lock);
	ofi_verbs_attached(f->link);
	ndxp_lock_release(&f->qp->base.lock);
	ndxp_lock_release(&f->ncq.lock);
	assert_ptr_equal(f->link->verbs.want_op.owner, f->link);
	assert_ptr_equal(f->receives[0], &f->link->first_op);
	f->room = FIXTURE_REQUESTS;
	fixture_call(f, watch);
	assert_int_equal(f->posted, 2);
	assert_ptr_equal(f->receives[1], &f->link->verbs.want_op);
	fixture_call(f, watch);
	assert_int_equal(f->posted, 2);
	end(&s);
}

/* The peer must not use its last credit before there is a receive for what comes behind. */
static void nothing_is_announced_without_a_receive_for_the_next_want(void **state)
{
	struct fixture *f = *state;
	struct shared s = share(f);

	post(&s, 2);
	f->room = 3;
	want(&s, 2);
	assert_int_equal(f->posted, 3);
	assert_int_equal(f->announced, 0);
	f->room = FIXTURE_REQUESTS;
	ofi_on_rnr_timer(f->qp);
	assert_int_equal(f->posted, 4);
	assert_ptr_equal(f->receives[3], &f->link->verbs.want_op);
	assert_int_equal(f->announced, 2);
	end(&s);
}

/* Each write of the number tells the peer. The peer may use the receives at once. */
static void a_number_that_was_told_does_not_go_back(void **state)
{
	struct fixture *f = *state;
	struct shared s = share(f);
	const struct fi_cq_data_entry entry = {.flags = FI_RECV};

	post(&s, 2);
	f->refusing = true;
	want(&s, 2);
	assert_int_equal(f->posted, 1 + 2 + 1);
	f->refusing = false;
	ndxp_lock_acquire(&f->ncq.lock);
	assert_int_equal(ofi_verbs_send_ctrl(f->link, OFI_CTRL_PING, 0, NULL), 0);
	assert_int_equal(f->announced, 2);
	ofi_verbs.received(f->qp, ofi_rx_at(f->qp, 0), &entry);
	ndxp_lock_release(&f->ncq.lock);
	ofi_on_rnr_timer(f->qp);
	assert_int_equal(f->announced, 2);
	end(&s);
}

static void assert_violation(struct fixture *f, uint64_t flags, uint64_t data)
{
	struct shared s = share(f);

	post(&s, 1);
	arrive(&s, flags, sizeof(uint64_t), data);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
	assert_int_equal(f->posted, 1);
	end(&s);
}

static void a_message_without_a_credit_ends_the_connection(void **state)
{
	assert_violation(*state, FI_RECV | FI_REMOTE_CQ_DATA, 1);
}

static void want_without_a_number_ends_the_connection(void **state)
{
	assert_violation(*state, FI_RECV | FI_REMOTE_WRITE, 1);
}

static void want_for_nothing_ends_the_connection(void **state)
{
	assert_violation(*state, FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, 0);
}

static void want_for_too_much_ends_the_connection(void **state)
{
	assert_violation(*state, FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, OFI_MAX_DEPTH + 1);
}

static void the_bell_may_use_the_receive(void **state)
{
	const uint64_t goodbye = htobe64(NDXP_RC_SAID);
	struct fixture *f = *state;
	struct shared s = share(f);

	memcpy(f->link->area + OFI_VERBS_MAIL + NDXP_RC_GOODBYE, &goodbye, sizeof(goodbye));
	want(&s, NDXP_RC_BELL);
	assert_int_equal(f->reports, NDX_REPORT_PEER_DISC);
	assert_int_equal(f->posted, 1);
	end(&s);
}

/* A device that fails brings the receive back. */
static void a_receive_that_fails_ends_the_connection(void **state)
{
	struct fixture *f = *state;
	struct shared s = share(f);

	ndxp_lock_acquire(&f->qp->base.lock);
	f->qp->releasing = true;
	ofi_verbs.want_failed(f->qp, ECANCELED);
	assert_int_equal(f->reports, 0);
	f->qp->releasing = false;
	f->qp->verbs.awaits_want = true;
	ofi_verbs.want_failed(f->qp, ECANCELED);
	ndxp_lock_release(&f->qp->base.lock);
	assert_int_equal(f->reports, NDX_REPORT_ABORT);
	end(&s);
}

/* ---- a queue pair that leaves the link before the device returns the receive ---- */

static void detach_link(void *arg)
{
	struct fixture *f = arg;

	ofi_link_detach(f->link);
	f->link->lost = true; /* as the link of a refusal that is delivered */
}

/* What comes back from the old link must not end what the queue pair does now. */
static void assert_dropped(struct fixture *f, int error)
{
	const struct shared s = share(f);

	f->adapter.software = true; /* both ways to read */
	fixture_call(f, detach_link);
	assert_null(f->link->qp);
	/* as on the queue pair's next link, where a receive stands, too */
	f->qp->conn = &f->conn;
	f->qp->verbs.awaits_want = true;
	f->error = error;
	f->done[f->delivered++] = f->receives[0];
	fixture_call(f, fixture_read_completions);
	assert_int_equal(f->next, f->delivered);
	assert_true(f->qp->verbs.awaits_want);
	assert_int_equal(f->reports, 0);
	end(&s);
}

static void a_receive_of_an_earlier_link_fails_for_no_queue_pair(void **state)
{
	assert_dropped(*state, 5); /* IBV_WC_WR_FLUSH_ERR */
}

static void a_receive_of_an_earlier_link_is_used_for_no_queue_pair(void **state)
{
	assert_dropped(*state, 0);
}

/* ---- the end that asks ---- */

static void queue_sends(struct fixture *f, unsigned count)
{
	ndxp_lock_acquire(&f->qp->base.lock);
	for (unsigned i = 0; i < count; i++) {
		struct ofi_tx *tx = (struct ofi_tx *)(void *)ndxp_queue_take(
			&f->qp->base.initiator, NULL, NDX_REQUEST_SEND, 0);

		assert_non_null(tx);
		tx->verdict = NDX_OK;
	}
	ofi_submit(f->qp);
	ndxp_lock_release(&f->qp->base.lock);
}

static void grant(struct fixture *f, uint64_t total)
{
	const uint64_t field = htobe64(total);

	memcpy(f->link->area + OFI_VERBS_MAIL + NDXP_RC_CREDITS, &field, sizeof(field));
	ndxp_lock_acquire(&f->qp->base.lock);
	ofi_submit(f->qp);
	ndxp_lock_release(&f->qp->base.lock);
}

static void an_end_asks_again_when_it_has_used_what_it_asked_for(void **state)
{
	struct fixture *f = *state;

	f->qp->peer_shared = true;
	queue_sends(f, 2);
	assert_int_equal(f->told, 1);
	assert_int_equal(f->data, 2);
	queue_sends(f, 1);
	assert_int_equal(f->told, 1);
	grant(f, 1);
	assert_int_equal(f->sent, 1);
	assert_int_equal(f->told, 1); /* one more is due */
	grant(f, 2);
	assert_int_equal(f->sent, 2);
	assert_int_equal(f->told, 2);
	assert_int_equal(f->data, 1);
	grant(f, 3);
	assert_int_equal(f->sent, 3);
	assert_int_equal(f->told, 2);
}

/* Not while an answer is due: the receive for the next WANT is not posted then. */
static void the_bell_rings_without_a_credit(void **state)
{
	struct fixture *f = *state;
	struct ofi_link *link = f->link;

	f->qp->peer_shared = true;
	f->qp->asked = 1;
	ndxp_lock_acquire(&f->ncq.lock);
	assert_int_equal(ofi_verbs_send_ctrl(link, OFI_CTRL_DISC, 0, &link->disc_op), 0);
	assert_false(link->verbs.rung);
	f->qp->verbs.used = 1;
	assert_int_equal(ofi_verbs_send_ctrl(link, OFI_CTRL_DISC, 0, &link->disc_op), 0);
	assert_true(link->verbs.rung);
	ndxp_lock_release(&f->ncq.lock);
	assert_int_equal(f->data, NDXP_RC_BELL);
}

#define WITH_FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_create, fixture_destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_want_is_awaited_behind_all_that_was_asked_for),
		WITH_FIXTURE(a_receive_that_is_refused_at_first_is_posted_by_the_timer),
		WITH_FIXTURE(nothing_is_announced_without_a_receive_for_the_next_want),
		WITH_FIXTURE(a_number_that_was_told_does_not_go_back),
		WITH_FIXTURE(a_message_without_a_credit_ends_the_connection),
		WITH_FIXTURE(want_without_a_number_ends_the_connection),
		WITH_FIXTURE(want_for_nothing_ends_the_connection),
		WITH_FIXTURE(want_for_too_much_ends_the_connection),
		WITH_FIXTURE(the_bell_may_use_the_receive),
		WITH_FIXTURE(a_receive_that_fails_ends_the_connection),
		WITH_FIXTURE(a_receive_of_an_earlier_link_fails_for_no_queue_pair),
		WITH_FIXTURE(a_receive_of_an_earlier_link_is_used_for_no_queue_pair),
		WITH_FIXTURE(an_end_asks_again_when_it_has_used_what_it_asked_for),
		WITH_FIXTURE(the_bell_rings_without_a_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
