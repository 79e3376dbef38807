/* SPDX-License-Identifier: BSD-2-Clause */
/* Two threads read a queue, and results keep their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "rig.h"

#define DEPTH 16u
#define MANY 4000u

struct other {
	struct rig *rig;
	bool stop;
};

/* The device is not made for several threads: the lock of the queue is around all that it does. */
static void run(struct rig *rig, unsigned count)
{
	struct verbs_cq *cq = verbs_cq_of(&rig->cq->pub);

	base_lock_acquire(&cq->poll_lock);
	fake_run(rig_native(rig), count);
	base_lock_release(&cq->poll_lock);
}

/* As the control thread, which moves what is there to the stash; then there is more. */
static void *read_on(void *arg)
{
	struct other *other = arg;

	while (!__atomic_load_n(&other->stop, __ATOMIC_RELAXED)) {
		run(other->rig, 1);
		verbs_cq_poll(verbs_cq_of(&other->rig->cq->pub));
		run(other->rig, 1);
		(void)sched_yield();
	}
	return NULL;
}

static void post(struct rig *rig, uint32_t *posted)
{
	struct verbs_cq *cq = verbs_cq_of(&rig->cq->pub);

	base_lock_acquire(&cq->poll_lock);
	while (*posted < MANY && rig_send(rig, *posted, 0) == NDX_OK)
		(*posted)++;
	base_lock_release(&cq->poll_lock);
}

static void nothing_overtakes_what_another_thread_has_read(void **state)
{
	struct other other = {NULL, false};
	uint32_t posted = 0;
	uint32_t next = 0;
	bool ordered = true;
	enum ndx_status st;
	pthread_t thread;
	struct rig rig;
	uintptr_t who;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	other.rig = &rig;
	assert_int_equal(pthread_create(&thread, NULL, read_on, &other), 0);
	while (ordered && next < MANY) {
		post(&rig, &posted);
		while (ordered && rig_next(&rig, &who, &st))
			ordered = who == next++;
	}
	__atomic_store_n(&other.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (!ordered)
		fail_msg("request %u came when it was %u's turn", (unsigned)who, next - 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_overtakes_what_another_thread_has_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
