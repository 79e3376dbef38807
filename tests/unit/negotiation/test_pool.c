/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool's threads, without a session. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include "pool.h"

enum { SHORT_TASKS = 64, LIMIT_MS = 10000, STEP_MS = 5 };

struct job {
	struct pool_task task;
	uint32_t go;  /* futex: 0: wait */
	uint32_t ran; /* futex */
};

static void run(struct pool_task *task)
{
	struct job *job = container_of(task, struct job, task);

	while (__atomic_load_n(&job->go, __ATOMIC_ACQUIRE) == 0)
		ndxp_futex_wait(&job->go, 0, ndxp_deadline(LIMIT_MS));
	__atomic_store_n(&job->ran, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&job->ran, 1);
}

static void has_run(struct job *job)
{
	const uint64_t end = ndxp_deadline(LIMIT_MS);

	while (__atomic_load_n(&job->ran, __ATOMIC_ACQUIRE) == 0 && ndxp_now_ns() < end)
		ndxp_futex_wait(&job->ran, 0, end);
	assert_int_equal(job->ran, 1);
}

static void all_sleep(struct pool *p)
{
	const uint64_t end = ndxp_deadline(LIMIT_MS);
	unsigned idle = 0;

	while (idle < p->least && ndxp_now_ns() < end) {
		pthread_mutex_lock(&p->lock);
		idle = p->idle;
		pthread_mutex_unlock(&p->lock);
	}
	assert_int_equal(idle, p->least);
}

/* The pool wakes one thread for two tasks, because tasks were short; the first one does not return,
 * and the second one has a thread that sleeps. */
static void a_task_behind_a_stuck_one_gets_a_thread(void **state)
{
	struct job one = {.task = {.fn = run}, .go = 1};
	struct job stuck = {.task = {.fn = run}};
	struct job behind = {.task = {.fn = run}, .go = 1};
	struct pool p;

	(void)state;
	assert_true(pool_init(&p, 2, 2));
	for (int i = 0; i < SHORT_TASKS; i++) {
		one.ran = 0;
		(void)pool_push(&p, &one.task);
		(void)pool_wake(&p);
		has_run(&one);
	}
	all_sleep(&p);
	pthread_mutex_lock(&p.lock);
	p.usual_ns = 1; /* a slow machine has no short tasks */
	pthread_mutex_unlock(&p.lock);
	(void)pool_push(&p, &stuck.task);
	(void)pool_push(&p, &behind.task);
	assert_true(pool_wake(&p)); /* so the engine calls this: */
	while (pool_relieve(&p, UINT64_C(1000000) * STEP_MS, UINT64_C(1000000) * STEP_MS))
		ndxp_futex_wait(&behind.ran, 0, ndxp_deadline(STEP_MS));
	has_run(&behind);
	__atomic_store_n(&stuck.go, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&stuck.go, 1);
	has_run(&stuck);
	pool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_behind_a_stuck_one_gets_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
