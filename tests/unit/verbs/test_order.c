/* SPDX-License-Identifier: BSD-2-Clause */
/* Two threads poll a completion queue, and results keep their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "rig.h"

#define DEPTH 16u
#define REQUESTS 4000u

struct poller {
	struct rig *rig;
	bool stop;
};

/* The fake device is not thread-safe: the queue's poll lock protects each use. */
static void complete_sends(struct rig *rig, unsigned count)
{
	struct verbs_cq *cq = verbs_cq_of(&rig->cq->pub);

	ndxp_lock_acquire(&cq->poll_lock);
	fake_complete_sends(rig_native(rig), count);
	ndxp_lock_release(&cq->poll_lock);
}

/* Poll as the control thread does, which moves completions to the stash; then complete another
 * send. */
static void *poll_until_stopped(void *arg)
{
	struct poller *poller = arg;

	while (!__atomic_load_n(&poller->stop, __ATOMIC_RELAXED)) {
		complete_sends(poller->rig, 1);
		verbs_cq_poll(verbs_cq_of(&poller->rig->cq->pub));
		complete_sends(poller->rig, 1);
		(void)sched_yield();
	}
	return NULL;
}

static void post_sends(struct rig *rig, uint32_t *posted)
{
	struct verbs_cq *cq = verbs_cq_of(&rig->cq->pub);

	ndxp_lock_acquire(&cq->poll_lock);
	while (*posted < REQUESTS && rig_send(rig, *posted, 0) == NDX_OK)
		(*posted)++;
	ndxp_lock_release(&cq->poll_lock);
}

static void nothing_overtakes_what_another_thread_has_read(void **state)
{
	struct poller poller = {NULL, false};
	uint32_t posted = 0;
	uint32_t next = 0;
	bool ordered = true;
	enum ndx_status st;
	pthread_t thread;
	struct rig rig;
	uintptr_t context;

	(void)state;
	rig_open(&rig);
	rig_connect(&rig, DEPTH, NULL);
	poller.rig = &rig;
	assert_int_equal(pthread_create(&thread, NULL, poll_until_stopped, &poller), 0);
	while (ordered && next < REQUESTS) {
		post_sends(&rig, &posted);
		while (ordered && rig_next(&rig, &context, &st))
			ordered = context == next++;
	}
	__atomic_store_n(&poller.stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (!ordered)
		fail_msg("request %u came when it was %u's turn", (unsigned)context, next - 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_overtakes_what_another_thread_has_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
