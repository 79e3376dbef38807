/* SPDX-License-Identifier: BSD-2-Clause */
/* The control thread's loop beside other threads and other loops. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include <ndx/spi/system.h>
#include <ndx/spi/lock.h>
#include "base_loop.h"
#include "base_ov.h"
#include "loop_rig.h"

/* ---- what wakes the loop may end it: the waker must be through by then ---- */

#define MOMENT_MS 50u

static struct {
	bool on;
	uint32_t ran;
	uint32_t ran_too;
	bool too_early;
	uint32_t count; /* of kicks; atomic */
} slow_kick;

void __real_ndxp_eventfd_set(int fd);
void __wrap_ndxp_eventfd_set(int fd);

/* In place of ndxp_eventfd_set(): a thread that is held up behind the wake-up. */
void __wrap_ndxp_eventfd_set(int fd)
{
	__atomic_fetch_add(&slow_kick.count, 1, __ATOMIC_RELAXED);
	__real_ndxp_eventfd_set(fd);
	if (slow_kick.on)
		slow_kick.too_early = await(&slow_kick.ran, MOMENT_MS);
}

static void begin_slow_kick(void)
{
	slow_kick.on = true;
	slow_kick.ran = 0;
	slow_kick.too_early = false;
}

static void end_slow_kick(void)
{
	slow_kick.on = false;
	assert_true(await(&slow_kick.ran, 10000));
	assert_false(slow_kick.too_early);
}

static void ran(void *arg)
{
	(void)arg;
	set_word(&slow_kick.ran);
}

static void ran_too(void *arg)
{
	(void)arg;
	set_word(&slow_kick.ran_too);
}

static void ran_callback(struct ndx_overlapped *ov)
{
	ran(ov);
}

static void the_loop_may_go_while_the_job_it_was_woken_for_runs(void **state)
{
	struct ndxp_job job = {.fn = ran};
	struct ndxp_timer timer = {.fn = ran};
	struct ndx_overlapped ov = {.callback = ran_callback};

	(void)state;
	begin_slow_kick();
	ndxp_loop_post(loop, &job);
	end_slow_kick();

	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	begin_slow_kick();
	base_ov_complete(&ov, NDX_OK, 0, 0);
	end_slow_kick();

	begin_slow_kick();
	ndxp_timer_set(loop, &timer, 0);
	end_slow_kick();
}

/* ---- woken after the release of a lock ---- */

static uint32_t was_freed;

static void note_freed(void *arg)
{
	(void)arg;
	set_word(&was_freed);
}

static void *destroy_thread(void *arg)
{
	base_loop_destroy(arg, note_freed, NULL);
	return NULL;
}

/* Queue it when the thread sleeps: it has to be woken. */
static unsigned queue_asleep(struct ndx_loop *to, struct ndxp_job *job)
{
	const uint64_t deadline = ndxp_deadline(10000);
	unsigned wakes;

	do {
		slow_kick.ran = 0;
		wakes = base_loop_queue(to, job);
		if (wakes == 0)
			assert_true(await(&slow_kick.ran, 10000));
	} while (wakes == 0 && ndxp_now_ns() < deadline);
	assert_int_equal(wakes, 1);
	return wakes;
}

static void a_loop_stays_until_its_wake_is_done(void **state)
{
	struct ndxp_job job = {.fn = ran};
	struct ndx_loop *victim;
	pthread_t destroyer;

	(void)state;
	assert_int_equal(base_loop_create("ndx-victim", &victim), NDX_OK);
	(void)queue_asleep(victim, &job);
	assert_int_equal(base_loop_queue(victim, &job), 0);
	was_freed = 0;
	assert_int_equal(pthread_create(&destroyer, NULL, destroy_thread, victim), 0);
	/* destroying it wakes it, too: the job runs, but the loop may not go */
	assert_true(await(&slow_kick.ran, 10000));
	assert_false(await(&was_freed, MOMENT_MS));
	base_loop_wake(victim, 1);
	assert_true(await(&was_freed, 10000));
	assert_int_equal(pthread_join(destroyer, NULL), 0);
}

static void a_queued_job_runs_when_the_loop_is_woken(void **state)
{
	struct ndxp_job job = {.fn = ran};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		slow_kick.ran = 0;
		base_loop_wake(loop, base_loop_queue(loop, &job));
		assert_true(await(&slow_kick.ran, 10000));
	}
}

static struct {
	uint32_t runs; /* a job that keeps the thread busy ... */
	uint32_t end;  /* ... until this is set */
} busy;

static void be_busy(void *arg)
{
	(void)arg;
	set_word(&busy.runs);
	(void)await(&busy.end, 10000);
}

static void a_thread_that_is_awake_is_not_woken(void **state)
{
	struct ndxp_job busy_job = {.fn = be_busy};
	struct ndxp_job posted = {.fn = ran};
	struct ndxp_job queued = {.fn = ran_too};
	uint32_t kicks;

	(void)state;
	busy.runs = busy.end = 0;
	slow_kick.ran = slow_kick.ran_too = 0;
	ndxp_loop_post(loop, &busy_job);
	assert_true(await(&busy.runs, 10000));
	kicks = slow_kick.count;
	ndxp_loop_post(loop, &posted);
	assert_int_equal(base_loop_queue(loop, &queued), 0);
	assert_int_equal(slow_kick.count, kicks);
	set_word(&busy.end);
	assert_true(await(&slow_kick.ran, 10000));
	assert_true(await(&slow_kick.ran_too, 10000));
}

/* Two threads queue the same job and are late to wake the loop: nothing of it is left. */
#define LATE_ROUNDS 2000u

static struct {
	struct ndxp_lock lock;
	struct ndxp_job job;
	uint32_t made; /* under the lock */
	uint32_t taken;
	uint32_t all_taken;
} late;

static void take_all(void *arg)
{
	(void)arg;
	ndxp_lock_acquire(&late.lock);
	late.taken += late.made;
	late.made = 0;
	if (late.taken == 2 * LATE_ROUNDS)
		set_word(&late.all_taken);
	ndxp_lock_release(&late.lock);
}

static void *late_thread(void *arg)
{
	const uint32_t step = *(const uint32_t *)arg;

	for (uint32_t i = 0; i < LATE_ROUNDS; i++) {
		unsigned wakes;

		ndxp_lock_acquire(&late.lock);
		late.made++;
		wakes = base_loop_queue(loop, &late.job);
		ndxp_lock_release(&late.lock);
		for (uint32_t n = 0; n < i % step; n++)
			(void)sched_yield();
		base_loop_wake(loop, wakes);
	}
	return NULL;
}

static void nothing_is_lost_when_the_loop_is_woken_late(void **state)
{
	uint32_t steps[] = {2, 5};
	pthread_t threads[2];

	(void)state;
	late.job = (struct ndxp_job){.fn = take_all};
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, late_thread, &steps[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	/* no other thread wakes the loop any more */
	assert_true(await(&late.all_taken, 10000));
}

static void what_is_queued_runs_also_when_another_wakes_the_loop(void **state)
{
	struct ndxp_job job = {.fn = ran};
	struct ndxp_job other = {.fn = take_all};
	unsigned wakes;

	(void)state;
	wakes = queue_asleep(loop, &job);
	ndxp_loop_post(loop, &other);
	assert_true(await(&slow_kick.ran, 10000));
	/* it has run; another wake for it does no harm, and it can be queued again */
	base_loop_wake(loop, wakes);
	slow_kick.ran = 0;
	base_loop_wake(loop, base_loop_queue(loop, &job));
	assert_true(await(&slow_kick.ran, 10000));
}

/* ---- loops that call each other ---- */

struct caller {
	struct ndx_loop *own;
	struct ndx_loop *other;
	struct ndxp_job job;
	uint32_t inside;
	struct caller *peer;
	uint32_t done;
	uint32_t asked; /* by the other one */
	uint32_t callbacks;
	struct ndx_overlapped ov;
};

static void count_callback(struct ndx_overlapped *ov)
{
	struct caller *c = ov->context;

	__atomic_fetch_add(&c->callbacks, 1, __ATOMIC_RELAXED);
}

static void be_asked(void *arg)
{
	struct caller *c = arg;

	c->asked++;
	if (ndx_overlapped_status(&c->ov) == NDX_PENDING)
		return;
	(void)base_ov_begin(&c->ov, c->own);
	base_ov_complete(&c->ov, NDX_OK, 0, 0);
}

static void call_the_other(void *arg)
{
	struct caller *c = arg;

	set_word(&c->inside);
	(void)await(&c->peer->inside, 10000);
	for (int i = 0; i < 200; i++)
		ndxp_loop_call(c->other, be_asked, c->peer);
	set_word(&c->done);
}

static void two_loops_may_call_each_other_at_the_same_time(void **state)
{
	struct caller a = {.own = loop, .job = {.fn = call_the_other}};
	struct caller b = {.other = loop, .job = {.fn = call_the_other}};

	(void)state;
	a.ov = (struct ndx_overlapped){.callback = count_callback, .context = &a};
	b.ov = (struct ndx_overlapped){.callback = count_callback, .context = &b};
	assert_int_equal(base_loop_create("ndx-test2", &b.own), NDX_OK);
	a.other = b.own;
	a.job.arg = &a;
	b.job.arg = &b;
	a.peer = &b;
	b.peer = &a;
	ndxp_loop_post(a.own, &a.job);
	ndxp_loop_post(b.own, &b.job);
	assert_true(await(&a.done, 10000));
	assert_true(await(&b.done, 10000));
	base_loop_destroy(b.own, NULL, NULL);
	assert_int_equal(a.asked, 200);
	assert_int_equal(b.asked, 200);
	assert_int_equal(a.callbacks, 200);
	assert_int_equal(b.callbacks, 200);
}

/* ---- a loop that is destroyed from another loop's thread ---- */

struct destroyer {
	struct ndxp_job job;
	struct ndx_loop *victim;
	struct ndxp_job last_call; /* the victim's, which calls the destroyer's loop */
	uint32_t gone;
	uint32_t called;
};

static void note_called(void *arg)
{
	struct destroyer *d = arg;

	d->called++;
}

static void call_the_destroyer(void *arg)
{
	ndxp_loop_call(loop, note_called, arg);
}

static void note_gone(void *arg)
{
	struct destroyer *d = arg;

	set_word(&d->gone);
}

static void destroy_it(void *arg)
{
	struct destroyer *d = arg;

	ndxp_loop_post(d->victim, &d->last_call);
	base_loop_destroy(d->victim, note_gone, d);
}

static void loop_is_destroyed_from_a_loop_that_it_is_calling(void **state)
{
	struct destroyer d = {.job = {.fn = destroy_it, .arg = &d},
	                      .last_call = {.fn = call_the_destroyer, .arg = &d}};

	(void)state;
	assert_int_equal(base_loop_create("ndx-test2", &d.victim), NDX_OK);
	ndxp_loop_post(loop, &d.job);
	assert_true(await(&d.gone, 10000));
	assert_int_equal(d.called, 1);
}

/* ---- a job that always comes again ---- */

#define REPEATS_MAX 1000000u

struct eager {
	struct ndxp_job job;
	struct ndxp_timer timer;
	uint32_t runs;
	bool timed;
	uint32_t over;
};

static void nothing(void *arg)
{
	(void)arg;
}

static void come_again(void *arg)
{
	struct eager *e = arg;

	if (e->timed || ++e->runs == REPEATS_MAX)
		set_word(&e->over);
	else
		ndxp_loop_post(loop, &e->job);
}

static void note_time(void *arg)
{
	struct eager *e = arg;

	e->timed = true;
}

static void job_that_comes_again_keeps_no_timer_from_firing(void **state)
{
	struct eager e = {.job = {.fn = come_again, .arg = &e},
	                  .timer = {.fn = note_time, .arg = &e}};

	(void)state;
	ndxp_timer_set(loop, &e.timer, 1);
	ndxp_loop_post(loop, &e.job);
	assert_true(await(&e.over, 10000));
	assert_true(e.timed);
}

/* ---- a callback that always comes again ---- */

static void call_again(struct ndx_overlapped *ov)
{
	struct eager *e = ov->context;

	if (e->timed || ++e->runs == REPEATS_MAX) {
		set_word(&e->over);
		return;
	}
	(void)base_ov_begin(ov, loop);
	base_ov_complete(ov, NDX_OK, 0, 0);
}

static void callback_that_comes_again_keeps_no_timer_from_firing(void **state)
{
	struct eager e = {.timer = {.fn = note_time, .arg = &e}};
	struct ndx_overlapped ov = {.callback = call_again, .context = &e};

	(void)state;
	ndxp_timer_set(loop, &e.timer, 1);
	assert_int_equal(base_ov_begin(&ov, loop), NDX_OK);
	base_ov_complete(&ov, NDX_OK, 0, 0);
	assert_true(await(&e.over, 10000));
	assert_true(e.timed);
	ndxp_loop_call(loop, nothing, NULL); /* the last callback has returned */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_loop_may_go_while_the_job_it_was_woken_for_runs),
		cmocka_unit_test(two_loops_may_call_each_other_at_the_same_time),
		cmocka_unit_test(loop_is_destroyed_from_a_loop_that_it_is_calling),
		cmocka_unit_test(a_loop_stays_until_its_wake_is_done),
		cmocka_unit_test(a_queued_job_runs_when_the_loop_is_woken),
		cmocka_unit_test(a_thread_that_is_awake_is_not_woken),
		cmocka_unit_test(what_is_queued_runs_also_when_another_wakes_the_loop),
		cmocka_unit_test(nothing_is_lost_when_the_loop_is_woken_late),
		cmocka_unit_test(job_that_comes_again_keeps_no_timer_from_firing),
		cmocka_unit_test(callback_that_comes_again_keeps_no_timer_from_firing),
	};

	return cmocka_run_group_tests(tests, make_loop, drop_loop);
}
