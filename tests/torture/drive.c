/* SPDX-License-Identifier: BSD-2-Clause */
#include "drive.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "end.h"
#include "ledger.h"
#include "model.h"
#include "post.h"
#include "stage.h"

enum { BATCH = 32, LAZY_PERCENT = 3, ASK_AGAIN = 10, BURST = 6, IDLE_TURNS = 30, FORKED_MS = 5 };

struct driver {
	struct stage stage;
	bool acts;   /* callbacks of operations do, too */
	uint32_t at; /* the turns [at, until) are next */
	uint32_t until;
	uint32_t now;
	uint64_t act_random;
	struct end *open; /* one that has something left to do */
	struct round *round;
	uint32_t first; /* sides that it drives: first .. last */
	uint32_t last;
	uint64_t random;
	drive_fate *fate;
	void *fate_arg;
};

/* ---- one turn of an end ---- */

/* Arm a queue, or see whether it has fired. */
static void use_notify(struct side *s, uint64_t *random)
{
	uint32_t which = below(random, s->plan->cqs);
	struct cq *cq = &s->cqs[which];
	enum ndx_status st;

	(void)pthread_mutex_lock(&cq->lock);
	if (op_ended(&cq->notify)) {
		cq->empty = false; /* what fired it fires no other */
		if (cq->notify.status != NDX_OK && (cq->notify.status != NDX_E_CANCELED || cq->due))
			fail(s->round, NULL, "a notification of a queue completed %s",
			     ndx_status_name(cq->notify.status));
	} else if (op_flying(&cq->notify) && chance(random, 20)) {
		st = ndx_cq_cancel(cq->cq);
		if (st != NDX_OK)
			fail(s->round, NULL, "ndx_cq_cancel: %s", ndx_status_name(st));
		if (!op_must_have_ended(&cq->notify, "its queue was cancelled"))
			cq->must_fire = false; /* what comes now is not for it any more */
		cq->due = cq->due && cq->must_fire;
		cq->empty = false; /* it may have fired before */
	} else if (!op_flying(&cq->notify) && cq->cq != NULL) {
		cq->armed = (enum ndx_cq_notify_type)below(random, 3);
		cq->must_fire = cq->empty && !cq->slept;
		cq->due = false;
		(void)op_begin(&cq->notify, s->round, s->mail, "cq notify", below(random, 3));
		st = op_began(&cq->notify, ndx_cq_notify(cq->cq, cq->armed, cq->notify.ov));
		if (st != NDX_PENDING)
			fail(s->round, NULL, "ndx_cq_notify: %s", ndx_status_name(st));
	}
	(void)pthread_mutex_unlock(&cq->lock);
}

static void resize(struct side *s, uint64_t *random)
{
	uint32_t which = below(random, s->plan->cqs);
	struct cq *cq = &s->cqs[which];
	bool can = (s->info.capabilities & NDX_CAP_CQ_RESIZE) != 0;
	enum ndx_status st = NDX_OK;

	(void)pthread_mutex_lock(&cq->lock);
	if (cq->cq != NULL && can)
		st = ndx_cq_resize(cq->cq, 1 + below(random, 64));
	(void)pthread_mutex_unlock(&cq->lock);
	if (st != NDX_OK && st != NDX_E_BUFFER_OVERFLOW)
		fail(s->round, NULL, "ndx_cq_resize: %s", ndx_status_name(st));
}

static void poll_queues(struct end *e)
{
	struct side *s = side_of(e);
	uint32_t limit = 1 + below(&e->random, BATCH);

	if (e->plan->waits && chance(&e->random, 10))
		ledger_wait(s, e->plan->receive_cq);
	(void)ledger_poll(s, e->plan->receive_cq, limit);
	if (e->plan->initiator_cq != e->plan->receive_cq)
		(void)ledger_poll(s, e->plan->initiator_cq, limit);
}

static bool polls(struct end *e)
{
	if (e->plan->polling == POLL_EAGER)
		return true;
	return e->plan->polling == POLL_LAZY && chance(&e->random, LAZY_PERCENT);
}

static void post_receives(struct end *e)
{
	uint32_t count = 1 + below(&e->random, BURST);

	if (e->plan->mute)
		return;
	while (count-- > 0) {
		if (end_has_srq(e) ? !post_shared_receive(side_of(e), &e->random)
		                   : !post_receive(e, &e->random))
			return;
	}
}

static void post_requests(struct end *e)
{
	uint32_t count = 1 + below(&e->random, BURST);

	while (count-- > 0) {
		uint32_t dice = below(&e->random, 100);
		bool posted;

		if (dice < 60)
			posted = post_message(e);
		else if (dice < 94)
			posted = post_access(e);
		else
			posted = post_window(e);
		if (!posted)
			return;
	}
}

static void do_something(struct end *e)
{
	uint32_t dice = below(&e->random, 100);

	if (dice < 30 && polls(e))
		poll_queues(e);
	else if (dice < 50)
		post_receives(e);
	else if (dice < 88)
		post_requests(e);
	else if (dice < 91)
		use_notify(side_of(e), &e->random);
	else if (dice < 94)
		end_query(e);
	else if (dice < 96)
		post_nonsense(e);
	else if (dice < 97)
		resize(side_of(e), &e->random);
	else if (e->plan->cancels)
		end_cancel(e);
}

static void go_on_finishing(struct end *e, uint32_t now)
{
	if (e->finishing && e->calls && now >= e->call_at && !end_is_over(e))
		end_disconnect(e);
	/* its connector is gone: over when everything has its result */
	if (e->finishing && !e->calls && !end_is_over(e) && ledger_is_even(e))
		__atomic_store_n(&e->over, 1, __ATOMIC_RELEASE);
}

static void turn(struct end *e, uint32_t now)
{
	end_look(e);
	if (end_phase(e) == PHASE_NEVER) {
		post_unconnected(e);
		__atomic_store_n(&e->over, 1, __ATOMIC_RELEASE);
	}
	if (end_is_over(e)) {
		memory_watch(e);
		if (chance(&e->random, 10))
			end_post_mortem(e);
		return;
	}
	if (e->plan->asks && !e->asked && !e->notified && now >= e->plan->ask_at)
		end_ask(e);
	if (e->notified && chance(&e->random, ASK_AGAIN))
		end_ask(e);
	if (now >= e->plan->finish_at && e->plan->finish != FINISH_NOTHING)
		end_finish(e, now);
	go_on_finishing(e, now);
	if (!end_is_over(e))
		do_something(e);
}

/* ---- to the end ---- */

/*
 * An end that was to do nothing: what becomes of it now. Over without a word, if the plan says so;
 * else it disconnects when the peer has gone.
 */
static void wake_idler(struct end *e, uint32_t now)
{
	bool theirs = !side_is_mine(side_of(e->peer));

	if (e->plan->patient && !e->notified) {
		if (!e->asked)
			end_ask(e);
		return;
	}
	if (!e->plan->late_end) {
		__atomic_store_n(&e->over, 1, __ATOMIC_RELEASE);
		return;
	}
	if (theirs || end_is_over(e->peer) || e->peer->plan->finish == FINISH_NOTHING ||
	    e->notified)
		end_finish(e, now);
}

static void finish_turn(struct end *e, uint32_t now)
{
	end_look(e);
	if (end_phase(e) == PHASE_NEVER)
		__atomic_store_n(&e->over, 1, __ATOMIC_RELEASE);
	if (end_is_over(e))
		return;
	if (!e->finishing && e->plan->finish == FINISH_NOTHING)
		wake_idler(e, now);
	else if (!e->finishing)
		end_finish(e, now);
	if (e->plan->polling != POLL_NEVER || !e->calls)
		poll_queues(e);
	if (!e->plan->mute && chance(&e->random, 30))
		post_receives(e);
	go_on_finishing(e, now);
}

static void wait_for(struct end *e)
{
	if (op_flying(&e->part))
		op_wait(&e->part);
	else if (op_flying(&e->notify))
		op_wait(&e->notify);
	else
		ledger_wait(side_of(e), e->plan->receive_cq);
}

static void finish_once(void *arg)
{
	struct driver *d = arg;
	struct round *round = d->round;

	d->open = NULL;
	for (uint32_t i = 0; i < round->plan.conns; i++) {
		for (uint32_t side = d->first; side <= d->last; side++) {
			struct end *e = &round->conns[i].ends[side];

			finish_turn(e, d->now);
			if (!end_is_over(e))
				d->open = e;
		}
	}
	d->now++;
}

static void finish(struct driver *d)
{
	do {
		trace_stop_if_failing(d->round);
		stage_run(&d->stage, finish_once, d);
		if (d->open == NULL || d->now % IDLE_TURNS != 0)
			(void)sched_yield();
		else if (d->stage.cq != NULL) /* the end is the callbacks' own */
			(void)poll(NULL, 0, 1);
		else
			wait_for(d->open);
	} while (d->open != NULL);
}

/* The new process calls nothing of the library, as fork() has it where there are threads. */
static void fork_now(struct round *round)
{
	pid_t pid = fork();

	if (pid < 0)
		fail(round, NULL, "no process to be forked");
	if (pid == 0 && round->plan.forks == FORK_EXECS)
		(void)execl("/proc/self/exe", "ndx-torture", "--bystander", (char *)NULL);
	if (pid == 0) {
		(void)poll(NULL, 0, FORKED_MS);
		_exit(0);
	}
	__atomic_store_n(&round->forked, (int32_t)pid, __ATOMIC_RELEASE);
	note(round, NULL, "a process is forked: %d", (int)pid);
}

/* Of two processes the one forks that may die of it; of two threads the first. */
static bool forks(const struct driver *d)
{
	const struct plan *plan = &d->round->plan;

	return plan->forks != FORK_NONE && d->first == (plan->process ? plan->child : 0);
}

static void turn_somewhere(struct driver *d, uint64_t *random)
{
	uint32_t conn = below(random, d->round->plan.conns);
	uint32_t side = d->first + below(random, d->last - d->first + 1);

	turn(&d->round->conns[conn].ends[side], d->now);
}

static void some_turns(void *arg)
{
	struct driver *d = arg;
	uint32_t ends = d->round->plan.conns * (d->last - d->first + 1);

	for (; d->at < d->until; d->at++) {
		d->now = d->at / ends;
		turn_somewhere(d, &d->random);
	}
}

/* In the callback of an operation. */
static void act(void *arg)
{
	struct driver *d = arg;

	if (chance(&d->act_random, d->round->plan.busy))
		turn_somewhere(d, &d->act_random);
}

/* On the control thread whose callbacks act: those of one adapter. */
static void set_act(void *arg)
{
	struct driver *d = arg;

	stage_set_act(d->acts ? NULL : act, d);
	d->acts = !d->acts;
}

static void run(struct driver *d)
{
	struct round *round = d->round;
	uint32_t ends = round->plan.conns * (d->last - d->first + 1);
	uint32_t turns = round->plan.turns * ends;
	uint64_t random = ~d->random;
	bool may_fork = forks(d);

	stage_open(&d->stage, round, d->first);
	if (round->plan.busy > 0)
		stage_run(&d->stage, set_act, d);
	while (d->at < turns) {
		uint32_t now = d->at / ends;

		if (may_fork && now >= round->plan.fork_at) {
			fork_now(round);
			may_fork = false;
		}
		if (d->fate != NULL && now >= round->plan.fate_at) {
			d->fate(round, d->fate_arg);
			d->fate = NULL;
		}
		d->until = d->at + 1;
		if (d->stage.cq != NULL) /* several in each callback */
			d->until += below(&random, turns - d->at < 8 ? turns - d->at : 8);
		stage_run(&d->stage, some_turns, d);
	}
	if (d->fate != NULL)
		d->fate(round, d->fate_arg);
	finish(d);
	if (round->plan.busy > 0)
		stage_run(&d->stage, set_act, d);
	stage_close(&d->stage);
}

static void *run_thread(void *arg)
{
	run(arg);
	return NULL;
}

/* ---- a third thread, that gets in the way of the others ---- */

struct busybody {
	struct round *round;
	uint64_t random;
	uint32_t stop; /* atomic */
};

static void *be_busy(void *arg)
{
	struct busybody *b = arg;
	struct round *round = b->round;

	while (__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE) == 0) {
		struct side *s = &round->sides[below(&b->random, SIDES)];
		struct end *e = &round->conns[below(&b->random, round->plan.conns)].ends[s->index];

		if (chance(&b->random, 40))
			(void)ledger_poll(s, below(&b->random, s->plan->cqs), BATCH);
		else if (chance(&b->random, 30))
			memory_watch(e);
		else if (chance(&b->random, 40))
			use_notify(s, &b->random);
		else if (!e->plan->mute && !end_has_srq(e))
			(void)post_receive(e, &b->random);
		(void)sched_yield();
	}
	return NULL;
}

static void start(struct round *round, pthread_t *thread, void *(*run_it)(void *), void *arg)
{
	if (pthread_create(thread, NULL, run_it, arg) != 0)
		fail(round, NULL, "no thread");
}

void drive(struct round *round, drive_fate *fate, void *arg)
{
	struct driver drivers[SIDES];
	struct busybody busybody = {.round = round, .random = ~round->plan.seed};
	bool both = side_is_mine(&round->sides[0]) && side_is_mine(&round->sides[1]);
	bool threads = both && round->plan.threads > 1;
	pthread_t other;
	pthread_t third = 0;

	for (uint32_t i = 0; i < SIDES; i++)
		drivers[i] = (struct driver){.round = round,
		                             .first = i,
		                             .last = i,
		                             .random = round->plan.seed + i,
		                             .act_random = ~(round->plan.seed + i),
		                             .fate = fate,
		                             .fate_arg = arg};
	if (!threads && both) {
		drivers[0].last = 1;
		run(&drivers[0]);
		return;
	}
	if (!threads) {
		run(&drivers[side_is_mine(&round->sides[0]) ? 0 : 1]);
		return;
	}
	if (round->plan.threads > 2)
		start(round, &third, be_busy, &busybody);
	start(round, &other, run_thread, &drivers[1]);
	run(&drivers[0]);
	(void)pthread_join(other, NULL);
	__atomic_store_n(&busybody.stop, 1, __ATOMIC_RELEASE);
	if (round->plan.threads > 2)
		(void)pthread_join(third, NULL);
}
