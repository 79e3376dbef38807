/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers in callbacks of adapters: what is refused there, and what goes on behind. */
#include "rig.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A callback of an adapter, that `act` runs in. */
struct visit {
	struct ndx_overlapped ov;
	struct ndx_mr *mr;
	uint8_t memory[64];
	void (*act)(struct visit *v);
	struct rig *r;
	pthread_mutex_t lock; /* of the last two */
	pthread_cond_t changed;
	bool inside;
	bool over;
	pid_t resetter; /* atomic: the thread that resets, ... */
	pid_t stopper;  /* ... and the one that stops */
	enum ndx_status status;
	enum ndx_receiver_state state;
};

static void set(struct visit *v, bool *what)
{
	(void)pthread_mutex_lock(&v->lock);
	*what = true;
	(void)pthread_cond_broadcast(&v->changed);
	(void)pthread_mutex_unlock(&v->lock);
}

static void in_callback(struct ndx_overlapped *ov)
{
	struct visit *v = ov->context;

	set(v, &v->inside);
	v->act(v);
	set(v, &v->over);
}

/* What hangs, hangs for good: nothing can be closed any more. */
static void await(struct visit *v, const bool *what)
{
	struct timespec until;
	int err = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_MS / 1000;
	(void)pthread_mutex_lock(&v->lock);
	while (!*what && err == 0)
		err = pthread_cond_timedwait(&v->changed, &v->lock, &until);
	(void)pthread_mutex_unlock(&v->lock);
	if (err != 0) {
		print_error("the callback does not come back\n");
		abort();
	}
}

static void visit_begin(struct visit *v, struct rig *r, struct ndx_adapter *adapter,
                        void (*act)(struct visit *v))
{
	memset(v, 0, sizeof(*v));
	(void)pthread_mutex_init(&v->lock, NULL);
	(void)pthread_cond_init(&v->changed, NULL);
	v->r = r;
	v->act = act;
	v->ov.callback = in_callback;
	v->ov.context = v;
	assert_int_equal(ndx_mr_create(adapter, &v->mr), NDX_OK);
	assert_int_equal(ndx_mr_register(v->mr, v->memory, sizeof(v->memory), 0, &v->ov),
	                 NDX_PENDING);
}

static void visit_end(struct visit *v)
{
	await(v, &v->over);
	ndx_mr_close(v->mr);
	(void)pthread_cond_destroy(&v->changed);
	(void)pthread_mutex_destroy(&v->lock);
}

/* ---- reset ---- */

/* 'S': it sleeps; '?': its state is unknown, or it is gone. */
static char state_of(pid_t thread)
{
	char path[64];
	char state = '?';
	FILE *file;

	if (thread == 0)
		return state;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "r");
	if (file != NULL) {
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		(void)fclose(file);
	}
	return state;
}

static void await_sleeper(const pid_t *thread)
{
	const uint64_t until = rig_now_ms() + WAIT_MS;

	while (state_of(__atomic_load_n(thread, __ATOMIC_ACQUIRE)) != 'S' && rig_now_ms() < until)
		(void)sched_yield();
}

/* Until the other thread sleeps in its reset, which needs this callback's thread; and then. */
static void ask_for_the_cause(struct visit *v)
{
	struct ndx_receiver_cause cause;
	char *json = NULL;

	await_sleeper(&v->resetter);
	ndx_receiver_get_cause(v->r->receiver, &cause);
	v->state = ndx_receiver_get_state(v->r->receiver);
	v->status = ndx_receiver_snapshot(v->r->receiver, &json);
	free(json);
}

static void *reset(void *arg)
{
	struct visit *v = arg;

	await(v, &v->inside);
	__atomic_store_n(&v->resetter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return ndx_receiver_reset(v->r->receiver) == NDX_OK ? v : NULL;
}

static void a_callback_may_ask_while_another_thread_resets(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	void *done = NULL;
	pthread_t thread;
	struct visit v;

	sink_attach(r, 0, &sink);
	rig_start(r);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	ndx_sender_close(r->sender);
	r->sender = NULL;
	rig_await(r, NDX_RECEIVER_ENDED);
	visit_begin(&v, r, r->adapters[0], ask_for_the_cause);
	assert_int_equal(pthread_create(&thread, NULL, reset, &v), 0);
	visit_end(&v);
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_ptr_equal(done, &v);
	assert_int_equal(v.status, NDX_OK);
	assert_int_equal(v.state, NDX_RECEIVER_ENDED);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_CREATED);
}

static void hold_up_both(struct visit *v)
{
	await_sleeper(&v->resetter);
	await_sleeper(&v->stopper);
}

static void *stop_behind(void *arg)
{
	struct visit *v = arg;

	await_sleeper(&v->resetter);
	__atomic_store_n(&v->stopper, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return ndx_receiver_stop(v->r->receiver) == NDX_OK ? v : NULL;
}

/* Reset needs a thread that a callback has; a stop during the reset leaves the work to the reset,
 * and comes behind.
 */
static void a_stop_waits_for_a_reset(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	pthread_t threads[2];
	struct visit v;

	sink_attach(r, 0, &sink);
	rig_start(r);
	ndx_sender_close(r->sender);
	r->sender = NULL;
	rig_await(r, NDX_RECEIVER_ENDED);
	visit_begin(&v, r, r->adapters[0], hold_up_both);
	assert_int_equal(pthread_create(&threads[0], NULL, reset, &v), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, stop_behind, &v), 0);
	for (int i = 0; i < 2; i++) {
		void *done = NULL;

		assert_int_equal(pthread_join(threads[i], &done), 0);
		assert_ptr_equal(done, &v);
	}
	visit_end(&v);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_STOPPED);
}

/* ---- stop and close ---- */

static void stop(struct visit *v)
{
	v->status = ndx_receiver_stop(v->r->receiver);
	v->state = ndx_receiver_get_state(v->r->receiver);
}

static void stop_in_a_callback_is_refused(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (int i = 0; i < 2; i++) {
		struct visit v;

		visit_begin(&v, r, r->adapters[i], stop);
		visit_end(&v);
		assert_int_equal(v.status, NDX_E_WOULD_BLOCK);
		assert_int_equal(v.state, NDX_RECEIVER_RUNNING);
		assert_int_equal(rig_send(r, (uint32_t)i, 64), NDX_OK);
		sink_await(&sink, (uint64_t)i + 1);
	}
	assert_int_equal(sink.wrong, 0);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
}

static void note_end(void *context, struct ndx_receiver *receiver, enum ndx_receiver_state state)
{
	struct visit *v = context;

	(void)receiver;
	v->state = state;
	set(v, &v->inside);
}

static void close_it(struct visit *v)
{
	ndx_receiver_close(v->r->receiver);
	v->r->receiver = NULL;
}

/* The receiving thread does what there is to do, and says when. */
static void close_in_a_callback_goes_on_behind(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = 2};
	struct visit end = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	struct visit v;

	sink_attach(r, 0, &sink);
	r->attr.on_end = note_end;
	r->attr.context = &end;
	rig_start(r);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	assert_int_equal(rig_send(r, 1, 64), NDX_OK);
	sink_await(&sink, 2);
	visit_begin(&v, r, r->adapters[0], close_it);
	visit_end(&v);
	await(&end, &end.inside);
	assert_int_equal(end.state, NDX_RECEIVER_STOPPED);
	assert_true(rig_check(sink.frame[1]->data, 64, 1));
	sink_release(&sink);
}

static void close_in_a_callback_of_what_never_ran(void **state)
{
	struct rig *r = *state;
	struct visit v;

	r->attr.pull = true;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	visit_begin(&v, r, r->adapters[1], close_it);
	visit_end(&v);
}

const struct CMUnitTest callback_cases[] = {
	CASE(a_callback_may_ask_while_another_thread_resets),
	CASE(a_stop_waits_for_a_reset),
	CASE(stop_in_a_callback_is_refused),
	CASE(close_in_a_callback_goes_on_behind),
	CASE(close_in_a_callback_of_what_never_ran),
};
const size_t callback_case_count = sizeof(callback_cases) / sizeof(callback_cases[0]);
