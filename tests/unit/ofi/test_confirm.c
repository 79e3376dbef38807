/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deregistered memory, and a peer that asked for its token and never confirms that it has finished
 * with it. The peer lives: it reads, and says other things all the time.
 */
#include "bare.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

#include <ndx/stats.h>

#include "ofi.h"

#define PART 4096u
#define MESSAGE 480u
#define PAUSE_MS 50u
#define NOTES 64u
#define NEVER_MS 600000u /* longer than any test */

enum habit {
	HABIT_SILENT,
	HABIT_PING,    /* now and then */
	HABIT_FLOOD,   /* as fast as they are answered */
	HABIT_RECEIVE, /* takes all that is sent to it */
};

struct liar {
	struct pair *pair;
	struct bare bare;
	struct pair_side bystander[2];
	struct ndx_mr *mr; /* b's, whose token it knows */
	enum habit habit;
	uint64_t said; /* when it said PING last */
	bool pinged;   /* and has not heard PONG */
	bool sending;  /* b's message is under way */
};

static struct ndx_mr *region(struct pair_side *side)
{
	struct ndx_mr *mr;

	assert_int_equal(ndx_mr_register_new(side->adapter, side->memory, PART,
	                                     NDX_MR_ALLOW_REMOTE_WRITE, &mr),
	                 NDX_OK);
	return mr;
}

/* Connected, and it knows a region of b's. */
static void liar_up(struct liar *l, struct pair *p, enum habit habit)
{
	struct ofi_grant grant;

	memset(l, 0, sizeof(*l));
	l->pair = p;
	l->habit = habit;
	bare_bystander_begin(p, l->bystander);
	bare_join(&l->bare, p);
	bare_go_up(&l->bare, p);
	l->mr = region(&p->b);
	(void)bare_ask(&l->bare, ndx_mr_get_remote_token(l->mr), &grant);
	if (habit == HABIT_RECEIVE) {
		assert_int_equal(
			fi_recv(l->bare.ep, l->bare.memory, MESSAGE, NULL, 0, l->bare.memory), 0);
		bare_say(&l->bare, bare_control(&l->bare, OFI_CTRL_CREDIT, 1));
	}
}

static void take_one(struct liar *l)
{
	struct fi_cq_data_entry entry;

	if (fi_cq_read(l->bare.cq, &entry, 1) != 1) {
		/* Who only spins has to wait for its turn on a busy machine, and is no flood. */
		(void)poll(NULL, 0, 1);
		return;
	}
	if (entry.op_context == l->bare.memory) {
		(void)fi_recv(l->bare.ep, l->bare.memory, MESSAGE, NULL, 0, l->bare.memory);
		bare_say(&l->bare, bare_control(&l->bare, OFI_CTRL_CREDIT, 1));
	} else if (ofi_ctrl_split(entry.data).type == OFI_CTRL_PONG) {
		l->pinged = false;
	}
}

/* It goes on with what it does, and b with its part. */
static void live(struct liar *l)
{
	struct pair_side *b = &l->pair->b;
	struct ndx_result result;

	if (ndx_overlapped_status(&b->ov) != NDX_PENDING)
		return; /* it has lost its connection */
	take_one(l);
	if ((l->habit == HABIT_PING || l->habit == HABIT_FLOOD) && !l->pinged &&
	    (l->habit == HABIT_FLOOD || pair_now() - l->said >= PAUSE_MS)) {
		const uint64_t word = bare_control(&l->bare, OFI_CTRL_PING, 0);

		l->pinged = fi_inject_writedata(l->bare.ep, "", 0, word, 0, l->bare.peer.address,
		                                l->bare.peer.key) == 0;
		l->said = pair_now();
	}
	if (l->habit != HABIT_RECEIVE)
		return;
	if (l->sending)
		l->sending = ndx_cq_get_results(b->cq, &result, 1) == 0;
	if (!l->sending) {
		pair_send(b, 1, PART, MESSAGE, 0);
		l->sending = true;
	}
}

static void live_until(struct liar *l, const uint32_t *done)
{
	const uint64_t end = pair_now() + PAIR_PATIENCE_MS;

	while (__atomic_load_n(done, __ATOMIC_ACQUIRE) == 0) {
		if (pair_now() > end)
			fail_msg("it waits for a peer that never answers");
		live(l);
	}
}

/* The connection was cut, the log can say why, and nobody else noticed. */
static void end(struct liar *l)
{
	struct ndx_transition notes[NOTES];
	size_t count = NOTES;
	bool told = false;

	assert_int_equal(pair_wait(&l->pair->b.ov), NDX_OK);
	assert_int_equal(l->pair->b.ov.information, NDX_DISCONNECT_ABORTED);
	assert_int_equal(ndx_connector_get_history(l->pair->b.connector, notes, &count, NULL),
	                 NDX_OK);
	for (size_t i = 0; i < count; i++)
		told = told || strstr(notes[i].cause, "has not confirmed") != NULL;
	assert_true(told);
	bare_close(&l->bare);
	pair_drop_side(&l->pair->b);
	bare_bystander_end(l->pair, l->bystander);
}

/* ---- in a thread ---- */

struct call {
	struct ndx_mr *mr;
	bool cancel;
	struct ndx_overlapped ov;
	uint32_t done;
};

static void *close_in_thread(void *arg)
{
	struct call *call = arg;

	if (call->cancel) {
		(void)ndx_mr_deregister(call->mr, &call->ov);
		(void)ndx_mr_cancel(call->mr);
	} else {
		ndx_mr_close(call->mr);
	}
	__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void close_against(struct pair *p, enum habit habit, bool cancel)
{
	struct call call = {.cancel = cancel};
	pthread_t thread;
	struct liar l;

	liar_up(&l, p, habit);
	call.mr = l.mr;
	assert_int_equal(pthread_create(&thread, NULL, close_in_thread, &call), 0);
	live_until(&l, &call.done);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (cancel) {
		assert_int_equal(ndx_overlapped_status(&call.ov), NDX_OK);
		ndx_mr_close(call.mr);
	}
	end(&l);
}

static void silence_ends_the_wait(void **state)
{
	close_against(*state, HABIT_SILENT, false);
	close_against(*state, HABIT_SILENT, true);
}

static void other_control_messages_do_not_prolong_the_wait(void **state)
{
	close_against(*state, HABIT_PING, false);
	close_against(*state, HABIT_PING, true);
	close_against(*state, HABIT_FLOOD, false);
}

static void what_it_is_sent_does_not_prolong_the_wait(void **state)
{
	close_against(*state, HABIT_RECEIVE, false);
}

/* ---- in a callback ---- */

struct callback {
	struct ndx_overlapped ov; /* first */
	struct ndx_mr *mr;
	void (*what)(struct ndx_mr *mr);
	uint32_t done;
};

static void on_called(struct ndx_overlapped *ov)
{
	struct callback *c = (struct callback *)(void *)ov;

	c->what(c->mr);
	__atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
}

static void cancel(struct ndx_mr *mr)
{
	(void)ndx_mr_cancel(mr);
}

/* That the peer is silent does not end it here: the callback's own limit has to. */
static void call_against(struct pair *p, enum habit habit, void (*what)(struct ndx_mr *mr),
                         bool other_adapter)
{
	struct callback c = {.ov.callback = on_called, .what = what};
	struct ndx_adapter *adapter;
	struct ndx_overlapped ov = {0};
	struct ndx_mr *trigger;
	struct liar l;

	liar_up(&l, p, habit);
	ofi_qp_of((struct ndx_spi_qp *)(void *)p->b.qp)->adapter->stall_ms = NEVER_MS;
	adapter = other_adapter ? p->a.adapter : p->b.adapter;
	c.mr = l.mr;
	if (what == cancel)
		assert_int_equal(ndx_mr_deregister(l.mr, &ov), NDX_PENDING);
	assert_int_equal(ndx_mr_create(adapter, &trigger), NDX_OK);
	assert_int_equal(ndx_mr_register(trigger, p->a.memory, PART, 0, &c.ov), NDX_PENDING);
	live_until(&l, &c.done);
	if (what == cancel) {
		assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
		ndx_mr_close(l.mr);
	}
	ndx_mr_close(trigger);
	end(&l);
}

static void a_callback_is_not_held_up(void **state)
{
	call_against(*state, HABIT_FLOOD, ndx_mr_close, false);
	call_against(*state, HABIT_PING, cancel, false);
	call_against(*state, HABIT_FLOOD, ndx_mr_close, true);
}

/* ---- never ---- */

static void deregister_never_waits(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped first = {0};
	struct ndx_overlapped again = {0};
	struct ndx_overlapped second = {0};
	struct liar l;

	liar_up(&l, p, HABIT_PING);
	assert_int_equal(ndx_mr_deregister(l.mr, &first), NDX_PENDING);
	assert_int_equal(
		ndx_mr_register(l.mr, p->b.memory, PART, NDX_MR_ALLOW_REMOTE_WRITE, &again),
		NDX_PENDING);
	assert_int_equal(pair_wait(&again), NDX_OK);
	assert_int_equal(ndx_mr_deregister(l.mr, &second), NDX_PENDING);
	/* The call was not kept until the peer of the first one had lost its connection. */
	assert_int_equal(ndx_overlapped_status(&first), NDX_PENDING);
	assert_int_equal(pair_wait(&second), NDX_OK);
	while (ndx_overlapped_status(&first) == NDX_PENDING)
		live(&l);
	assert_int_equal(ndx_overlapped_status(&first), NDX_OK);
	ndx_mr_close(l.mr);
	end(&l);
}

/* ---- too early ---- */

static void await_counter(const struct pair_side *side, const char *name, uint64_t value)
{
	const uint64_t end = pair_now() + PAIR_PATIENCE_MS;

	while (pair_counter(side, false, name) < value && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_true(pair_counter(side, false, name) >= value);
}

/* SYNCED says that what the peer sent before has come. That our answers to its reads have left is
 * known when SYNC itself was delivered: a peer that guesses, and has not read it, ends no wait. */
static void an_answer_ahead_of_the_question_ends_nothing(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped ov = {0};
	struct liar l;
	uint64_t sent;
	uint64_t received;

	liar_up(&l, p, HABIT_SILENT);
	sent = pair_counter(&p->b, false, "control_messages_sent");
	received = pair_counter(&p->b, false, "control_messages_received");
	assert_int_equal(ndx_mr_deregister(l.mr, &ov), NDX_PENDING);
	await_counter(&p->b, "control_messages_sent", ++sent);
	bare_say(&l.bare, bare_control(&l.bare, OFI_CTRL_SYNCED, 0));
	await_counter(&p->b, "control_messages_received", ++received);
	pair_settle(&p->b);
	if (pair_counter(&p->b, false, "control_messages_sent") > sent) {
		bare_say(&l.bare, bare_control(&l.bare, OFI_CTRL_SYNCED, 0));
		await_counter(&p->b, "control_messages_received", ++received);
		pair_settle(&p->b);
	}
	/* Unless the machine is so slow that the peer has lost its connection meanwhile. */
	if (ndx_overlapped_status(&ov) != NDX_PENDING)
		assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	while (ndx_overlapped_status(&ov) == NDX_PENDING)
		live(&l);
	ndx_mr_close(l.mr);
	bare_close(&l.bare);
	pair_drop_side(&p->b);
	bare_bystander_end(p, l.bystander);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(silence_ends_the_wait),
		CASE(other_control_messages_do_not_prolong_the_wait),
		CASE(what_it_is_sent_does_not_prolong_the_wait),
		CASE(a_callback_is_not_held_up),
		CASE(deregister_never_waits),
		CASE(an_answer_ahead_of_the_question_ends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
