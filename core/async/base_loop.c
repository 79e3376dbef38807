/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include <ndx/spi/system.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/log.h>
#include "base_loop_state.h"
#include "base_ov_deliver.h"
#include "base_thread.h"

#define JOBS_AT_ONCE 64 /* so that timers and descriptors have their turn */

/* Thread-local, so that base_loop_current() needs no lock while the thread starts. */
static _Thread_local struct ndx_loop *t_current;
/* Set while a callback runs on this thread. */
static _Thread_local bool t_in_callback;

bool base_loop_current(const struct ndx_loop *loop)
{
	return t_current == loop;
}

bool ndxp_loop_on_any(void)
{
	return t_current != NULL;
}

bool base_loop_in_callback(void)
{
	return t_in_callback;
}

bool ndxp_loop_is_hurried(void)
{
	return t_in_callback || (t_current != NULL && t_current->hurried);
}

bool base_loop_may_wait(const struct ndx_loop *loop)
{
	return t_current != loop && !ndxp_loop_is_hurried();
}

/* Lock held. A thread that sleeps in a call to another loop checks its queues again. */
static void nudge(struct ndx_loop *loop)
{
	__atomic_store_n(&loop->nudges, loop->nudges + 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&loop->nudges, 1);
}

/* Lock held: whether the caller has to write the eventfd. A thread that is awake needs no wake-up:
 * it checks all queues once more before it sleeps. */
static bool needs_kick(struct ndx_loop *loop)
{
	const bool asleep = loop->asleep;

	loop->asleep = false;
	return asleep;
}

void base_loop_kick(struct ndx_loop *loop)
{
	if (base_loop_current(loop))
		return;
	if (loop->inside)
		nudge(loop);
	if (needs_kick(loop))
		ndxp_eventfd_set(loop->kick);
}

/* Lock held. */
static void append(struct ndx_loop *loop, struct ndxp_job *job)
{
	job->next = NULL;
	*loop->jobs_end = job;
	loop->jobs_end = &job->next;
}

void ndxp_loop_post(struct ndx_loop *loop, struct ndxp_job *job)
{
	if (__atomic_exchange_n(&job->queued, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	ndxp_lock_acquire(&loop->lock);
	append(loop, job);
	base_loop_kick(loop);
	ndxp_lock_release(&loop->lock);
}

unsigned base_loop_queue(struct ndx_loop *loop, struct ndxp_job *job)
{
	const bool current = base_loop_current(loop);
	bool wake;

	if (__atomic_exchange_n(&job->queued, 1, __ATOMIC_ACQ_REL) != 0)
		return 0;
	ndxp_lock_acquire(&loop->lock);
	append(loop, job);
	if (loop->inside && !current)
		nudge(loop);
	/* Other posters still see the thread as asleep and wake it: our wake-up may come late. */
	wake = !current && loop->asleep;
	loop->wakers += wake;
	ndxp_lock_release(&loop->lock);
	return wake;
}

void base_loop_wake(struct ndx_loop *loop, unsigned count)
{
	bool wake;
	bool last;

	if (count == 0)
		return;
	ndxp_lock_acquire(&loop->lock);
	wake = needs_kick(loop);
	ndxp_lock_release(&loop->lock);
	if (wake)
		ndxp_eventfd_set(loop->kick); /* the loop is not freed while `wakers` counts us */
	ndxp_lock_acquire(&loop->lock);
	loop->wakers -= count;
	last = loop->stop && loop->wakers == 0;
	ndxp_lock_release(&loop->lock);
	/* The loop may be freed by now: the futex needs only the address. */
	if (last)
		ndxp_futex_wake(&loop->wakers, 1);
}

void base_loop_callback(struct ndx_loop *loop, struct ndx_overlapped *ov)
{
	ndxp_lock_acquire(&loop->lock);
	base_callbacks_add(&loop->callbacks, ov);
	base_loop_kick(loop);
	ndxp_lock_release(&loop->lock);
}

void base_loop_behind(struct ndx_loop *loop, struct ndx_overlapped *ov, uintptr_t of)
{
	ndxp_lock_acquire(&loop->lock);
	base_callbacks_add_behind(&loop->callbacks, ov, of);
	base_loop_kick(loop);
	ndxp_lock_release(&loop->lock);
}

/* How many objects were ever queued. */
static uintptr_t get_places(struct ndx_loop *loop)
{
	uintptr_t places;

	ndxp_lock_acquire(&loop->lock);
	places = loop->callbacks.places;
	ndxp_lock_release(&loop->lock);
	return places;
}

/* Run the callbacks that are queued now, not those that they queue: a callback that posts the next
 * operation could keep the thread here without end. Not in a callback. */
static void run_callbacks(struct ndx_loop *loop)
{
	const uintptr_t end = get_places(loop);

	for (;;) {
		struct ndx_overlapped *ov;

		ndxp_lock_acquire(&loop->lock);
		ov = base_callbacks_take(&loop->callbacks, end);
		ndxp_lock_release(&loop->lock);
		if (ov == NULL)
			return;
		t_in_callback = true;
		base_ov_deliver(ov);
		t_in_callback = false;
	}
}

/* Complete these objects before callbacks that were queued earlier. */
static void tell_now(struct ndx_loop *loop, const struct base_callbacks_which *which)
{
	struct ndxp_ov_list list = {0};
	struct ndx_overlapped *ov;

	ndxp_lock_acquire(&loop->lock);
	base_callbacks_pick(&loop->callbacks, which, &list);
	ndxp_lock_release(&loop->lock);
	while ((ov = ndxp_ov_pop(&list)) != NULL)
		base_ov_deliver(ov);
}

void base_loop_hurry(struct ndx_loop *loop, uintptr_t mask, uintptr_t of)
{
	const struct base_callbacks_which which = {.mask = mask, .of = of};

	if (loop->hurried)
		tell_now(loop, &which);
}

/* For a callback: the objects without a callback that fn completes are complete on return. */
static void call_hurried(struct ndx_loop *loop, ndxp_loop_fn *fn, void *arg)
{
	const bool outer = loop->hurried;
	const struct base_callbacks_which late = {.late = true, .since = get_places(loop)};

	loop->hurried = true;
	fn(arg);
	loop->hurried = outer;
	tell_now(loop, &late);
}

static bool run_one_job(struct ndx_loop *loop)
{
	struct ndxp_job *job;

	ndxp_lock_acquire(&loop->lock);
	job = loop->jobs;
	if (job != NULL) {
		loop->jobs = job->next;
		if (loop->jobs == NULL)
			loop->jobs_end = &loop->jobs;
	}
	ndxp_lock_release(&loop->lock);
	if (job == NULL)
		return false;
	/* From here on another thread may post the job again, and fn may free it. */
	__atomic_store_n(&job->queued, 0, __ATOMIC_RELEASE);
	job->fn(job->arg);
	return true;
}

static bool run_one_timer(struct ndx_loop *loop, uint64_t now)
{
	struct ndxp_timer *timer;

	ndxp_lock_acquire(&loop->lock);
	timer = loop->timers.first;
	if (timer != NULL && timer->deadline_ns > now)
		timer = NULL;
	if (timer != NULL) {
		base_timers_remove(&loop->timers, timer);
		timer->armed = false;
	}
	ndxp_lock_release(&loop->lock);
	if (timer == NULL)
		return false;
	timer->fn(timer->arg);
	return true;
}

/* Milliseconds until the next timer, 0 if there is work, -1 without limit. Unless the result is 0,
 * the thread must be woken from now on. */
static int idle_time(struct ndx_loop *loop)
{
	int ms = -1;

	ndxp_lock_acquire(&loop->lock);
	if (loop->jobs != NULL || !base_callbacks_empty(&loop->callbacks) || loop->stop) {
		ms = 0;
	} else if (loop->timers.first != NULL) {
		ms = ndxp_poll_ms_until(loop->timers.first->deadline_ns, INT_MAX);
	}
	loop->asleep = ms != 0;
	ndxp_lock_release(&loop->lock);
	return ms;
}

static int sleep_on(struct ndx_loop *loop)
{
	const int n = ndxp_poll_wait(loop->poll, loop->batch, BATCH, idle_time(loop));

	ndxp_lock_acquire(&loop->lock);
	loop->asleep = false;
	ndxp_lock_release(&loop->lock);
	return n;
}

static void run_queued(struct ndx_loop *loop)
{
	uint64_t now = ndxp_now_ns();

	while (run_one_timer(loop, now))
		run_callbacks(loop);
	for (int i = 0; i < JOBS_AT_ONCE && run_one_job(loop); i++)
		run_callbacks(loop);
	run_callbacks(loop);
}

static void dispatch(struct ndx_loop *loop, int count)
{
	loop->batch_count = count;
	for (int i = 0; i < count; i++) {
		struct ndxp_watch *watch = loop->batch[i].data;

		/* ndxp_watch_remove() also removes the watch from the rest of the batch. */
		loop->batch_left = count - i - 1;
		if (watch == NULL || loop->batch[i].data == loop)
			continue; /* removed in this batch, or the loop's own eventfd */
		watch->fn(watch->arg, loop->batch[i].events);
		run_callbacks(loop);
	}
	loop->batch_left = 0;
}

static bool stopping(struct ndx_loop *loop)
{
	bool stop;

	ndxp_lock_acquire(&loop->lock);
	stop = loop->stop && loop->jobs == NULL && base_callbacks_empty(&loop->callbacks);
	ndxp_lock_release(&loop->lock);
	return stop;
}

/* A thread between base_loop_queue() and base_loop_wake() does not block, so this wait is short. */
static void await_wakers(struct ndx_loop *loop)
{
	uint32_t wakers;

	for (;;) {
		ndxp_lock_acquire(&loop->lock);
		wakers = loop->wakers;
		ndxp_lock_release(&loop->lock);
		if (wakers == 0)
			return;
		ndxp_futex_wait(&loop->wakers, wakers, UINT64_MAX);
	}
}

static void loop_free(struct ndx_loop *loop)
{
	await_wakers(loop);
	if (loop->last != NULL)
		loop->last(loop->last_arg);
	ndxp_poll_remove(loop->poll, loop->kick);
	ndxp_fd_close(loop->kick);
	ndxp_fd_close(loop->poll);
	free(loop);
}

static void *thread_main(void *arg)
{
	struct ndx_loop *loop = arg;

	t_current = loop;
	while (!stopping(loop)) {
		dispatch(loop, sleep_on(loop));
		run_queued(loop);
	}
	if (loop->self)
		loop_free(loop);
	return NULL;
}

static enum ndx_status start_thread(struct ndx_loop *loop, const char *name, const cpu_set_t *cpus,
                                    cpu_set_t *given)
{
	const int err = cpus != NULL ? base_thread_start_bound(&loop->thread, name, cpus, given,
	                                                       thread_main, loop)
	                             : base_thread_start(&loop->thread, name, thread_main, loop);

	if (err == EINVAL && cpus != NULL)
		return NDX_E_INVALID_PARAMETER;
	if (err != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err,
		            "cannot start the control thread %s; see ulimit -u", name);
	return NDX_OK;
}

static enum ndx_status create(const char *name, const cpu_set_t *cpus, cpu_set_t *given,
                              struct ndx_loop **out)
{
	struct ndx_loop *loop = calloc(1, sizeof(*loop));
	enum ndx_status st;

	if (loop == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for the control thread %s", name);
	loop->jobs_end = &loop->jobs;
	loop->poll = ndxp_poll_create();
	if (loop->poll < 0) {
		st = fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		          "no descriptor for the control thread %s; see ulimit -n", name);
		goto free_loop;
	}
	loop->kick = ndxp_eventfd_create();
	if (loop->kick < 0 ||
	    ndxp_poll_add(loop->poll, loop->kick, EPOLLIN | (uint32_t)EPOLLET, false, loop) != 0) {
		st = fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		          "no descriptor for the control thread %s; see ulimit -n", name);
		goto close_fds;
	}
	st = start_thread(loop, name, cpus, given);
	if (st != NDX_OK)
		goto close_fds;
	*out = loop;
	return NDX_OK;

close_fds:
	ndxp_fd_close(loop->kick);
	ndxp_fd_close(loop->poll);
free_loop:
	free(loop);
	return st;
}

enum ndx_status base_loop_create(const char *name, struct ndx_loop **out)
{
	return create(name, NULL, NULL, out);
}

enum ndx_status base_loop_create_bound(const char *name, const cpu_set_t *cpus, cpu_set_t *given,
                                       struct ndx_loop **out)
{
	return create(name, cpus, given, out);
}

void base_loop_destroy(struct ndx_loop *loop, ndxp_loop_fn *last, void *arg)
{
	/* The loop's thread may be waiting for a call to the loop of this thread: do not join
	 * it. */
	bool on_loop = ndxp_loop_on_any();
	pthread_t thread = loop->thread;

	ndxp_lock_acquire(&loop->lock);
	loop->stop = true;
	loop->self = on_loop;
	loop->last = last;
	loop->last_arg = arg;
	if (on_loop)
		(void)pthread_detach(thread);
	base_loop_kick(loop);
	ndxp_lock_release(&loop->lock);
	if (on_loop)
		return;
	(void)pthread_join(thread, NULL);
	loop_free(loop);
}

/* A call from another thread: a job that reports its end. */
struct call {
	struct ndxp_job job;
	ndxp_loop_fn *fn;
	void *arg;
	struct ndx_loop *loop;
	struct ndx_loop *caller;        /* the loop whose thread waits; NULL: another thread */
	bool from_callback;             /* a callback waits for this call */
	struct ndx_overlapped returned; /* queued after the callbacks that the call waits for */
	uint32_t done;
};

static void say_done(struct call *call)
{
	struct ndx_loop *caller = call->caller;

	if (caller != NULL) {
		ndxp_lock_acquire(&caller->lock);
		__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
		nudge(caller);
		ndxp_lock_release(&caller->lock);
		return;
	}
	__atomic_store_n(&call->done, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&call->done, 1);
}

static void on_returned(struct ndx_overlapped *ov)
{
	say_done(container_of(ov, struct call, returned));
}

static void run_call(void *arg)
{
	struct call *call = arg;

	if (call->from_callback) {
		call_hurried(call->loop, call->fn, call->arg);
		say_done(call);
		return;
	}
	call->fn(call->arg);
	/* This thread may itself be in a callback that waits for another loop, so queue the
	 * report. */
	call->returned.callback = on_returned;
	base_loop_callback(call->loop, &call->returned);
}

/* Wait on the thread of `own`, usually in one of its callbacks. Run jobs during the wait: the other
 * loop may be waiting for one of them. */
static void wait_inside(struct ndx_loop *own, const struct call *call)
{
	bool outer;
	bool done = false;

	ndxp_lock_acquire(&own->lock);
	outer = own->inside;
	own->inside = true;
	ndxp_lock_release(&own->lock);
	while (!done) {
		uint32_t seen = __atomic_load_n(&own->nudges, __ATOMIC_ACQUIRE);
		bool ran;

		ndxp_lock_acquire(&own->lock);
		done = call->done != 0;
		own->inside = done ? outer : true;
		ndxp_lock_release(&own->lock);
		if (done)
			return;
		ran = run_one_job(own);
		if (!t_in_callback)
			run_callbacks(own);
		if (!ran)
			ndxp_futex_wait(&own->nudges, seen, UINT64_MAX);
	}
}

static void call_current(struct ndx_loop *loop, ndxp_loop_fn *fn, void *arg)
{
	if (ndxp_loop_is_hurried()) {
		call_hurried(loop, fn, arg);
		return;
	}
	fn(arg);
	run_callbacks(loop);
}

void ndxp_loop_call(struct ndx_loop *loop, ndxp_loop_fn *fn, void *arg)
{
	struct call call = {.fn = fn,
	                    .arg = arg,
	                    .loop = loop,
	                    .caller = t_current,
	                    .from_callback = ndxp_loop_is_hurried()};

	if (base_loop_current(loop)) {
		call_current(loop, fn, arg);
		return;
	}
	call.job.fn = run_call;
	call.job.arg = &call;
	ndxp_loop_post(loop, &call.job);
	if (call.caller != NULL) {
		wait_inside(call.caller, &call);
		return;
	}
	while (__atomic_load_n(&call.done, __ATOMIC_ACQUIRE) == 0)
		ndxp_futex_wait(&call.done, 0, UINT64_MAX);
}
