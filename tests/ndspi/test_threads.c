/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads at once: counts of references, and all that creates, connects and releases. */
#include "nd_thread.h"

enum { THREADS = 4, REFERENCES = 20000, COUNTS = 500, ROUNDS = 20, LIVES = 5, SIZE = 64 };

/* ---- references ---- */

struct counting {
	struct nd_thread thread;
	IUnknown *const *objects;
	size_t count;
	unsigned last; /* how many last references this thread has released */
};

static void take_and_give_back(IUnknown *object)
{
	IUnknown *same = NULL;

	assert_true(CALL(object, AddRef) > 1);
	assert_status(CALL(object, QueryInterface, BY_ID(IID_IUnknown), OUT(same)), S_OK);
	assert_ptr_equal(same, object);
	assert_true(CALL(object, Release) > 0);
	assert_true(CALL(same, Release) > 0);
}

static void count_references(void *arg)
{
	struct counting *c = (struct counting *)arg;

	for (int i = 0; i < REFERENCES; i++) {
		for (size_t k = 0; k < c->count; k++)
			take_and_give_back(c->objects[k]);
	}
}

static void references_are_counted_by_many_threads(void **state)
{
	struct counting c[THREADS];
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	{
		IUnknown *const objects[] = {UNKNOWN(p.a.adapter),   UNKNOWN(p.a.cq),
		                             UNKNOWN(p.a.qp),        UNKNOWN(p.a.mr),
		                             UNKNOWN(p.a.connector), UNKNOWN(p.listener)};

		for (int i = 0; i < THREADS; i++) {
			c[i].objects = objects;
			c[i].count = sizeof(objects) / sizeof(objects[0]);
			nd_thread_start(&c[i].thread, count_references, &c[i]);
		}
		for (int i = 0; i < THREADS; i++)
			nd_thread_join(&c[i].thread);
	}
	nd_drop(&p); /* each count is 1 */
}

static void release_all(void *arg)
{
	struct counting *c = (struct counting *)arg;

	for (size_t k = 0; k < c->count; k++)
		c->last += CALL(c->objects[k], Release) == 0;
}

static void one_thread_releases_last(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct counting c[THREADS];
		struct nd_side s;
		unsigned last = 0;

		nd_make_side(&s);
		{
			IUnknown *const objects[] = {UNKNOWN(s.cq), UNKNOWN(s.qp), UNKNOWN(s.mr),
			                             UNKNOWN(s.connector), UNKNOWN(s.adapter)};

			for (int i = 0; i < THREADS; i++) {
				c[i].objects = objects;
				c[i].count = sizeof(objects) / sizeof(objects[0]);
				c[i].last = 0;
				for (size_t k = 0; i > 0 && k < c[i].count; k++)
					(void)CALL(objects[k], AddRef);
			}
			for (int i = 0; i < THREADS; i++)
				nd_thread_start(&c[i].thread, release_all, &c[i]);
			for (int i = 0; i < THREADS; i++) {
				nd_thread_join(&c[i].thread);
				last += c[i].last;
			}
		}
		assert_int_equal(last, 5);
		assert_true(CloseHandle(s.file));
		assert_true(CloseHandle(s.event));
		free(s.memory);
	}
}

/* ---- the control path ---- */

static void pass(struct nd_side *from, struct nd_side *to)
{
	nd_receive(to, 1, 0, SIZE);
	nd_send(from, 2, SIZE, SIZE, 0);
	nd_expect(from, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(to, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	assert_memory_equal(from->memory + SIZE, to->memory, SIZE);
}

/* All of a connection's life, with adapters of the thread's own. */
static void live_alone(void *arg)
{
	(void)arg;
	for (int i = 0; i < LIVES; i++) {
		struct nd_pair p;

		nd_make(&p);
		nd_connect(&p);
		pass(&p.a, &p.b);
		pass(&p.b, &p.a);
		nd_disconnect(&p);
		nd_drop(&p);
	}
}

static void threads_with_own_adapters(void **state)
{
	struct nd_thread threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		nd_thread_start(&threads[i], live_alone, NULL);
	for (int i = 0; i < THREADS; i++)
		nd_thread_join(&threads[i]);
}

/* What the threads share: two adapters, and one overlapped file of each. */
struct shared {
	struct nd_thread threads[THREADS];
	struct nd_side a, b;
};

/* The parts of a side, on an adapter and a file that others use, too. */
static void join_side(struct nd_side *s, const struct nd_side *with)
{
	memset(s, 0, sizeof(*s));
	s->adapter = with->adapter;
	s->file = with->file;
	nd_ov_make(&s->ov);
	s->event = s->ov.hEvent;
	s->cq = nd_new_cq(s, 4 * ND_DEPTH);
	s->qp = nd_new_qp(s, ND_DEPTH, 1, 0);
	s->connector = nd_new_connector(s);
	s->memory = (char *)calloc(1, ND_MEMORY);
	assert_non_null(s->memory);
	assert_status(CALL(s->adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion), s->file,
	                   OUT(s->mr)),
	              ND_SUCCESS);
	for (int i = 0; i < 3; i++) {
		assert_ends(CALL(s->mr, Register, s->memory, ND_MEMORY,
		                 ND_MR_FLAG_ALLOW_LOCAL_WRITE, &s->ov),
		            &s->ov, ND_SUCCESS);
		if (i < 2)
			assert_ends(CALL(s->mr, Deregister, &s->ov), &s->ov, ND_SUCCESS);
	}
}

static void leave_side(struct nd_side *s)
{
	assert_int_equal(CALL(s->connector, Release), 0);
	assert_int_equal(CALL(s->qp, Release), 0);
	assert_int_equal(CALL(s->cq, Release), 0);
	assert_int_equal(CALL(s->mr, Release), 0);
	nd_ov_drop(&s->ov);
	free(s->memory);
}

static void live_together(void *arg)
{
	struct shared *all = (struct shared *)arg;

	for (int i = 0; i < 2 * LIVES; i++) {
		struct nd_pair p;

		join_side(&p.a, &all->a);
		join_side(&p.b, &all->b);
		nd_listen(&p);
		nd_connect(&p);
		pass(&p.a, &p.b);
		pass(&p.b, &p.a);
		nd_disconnect(&p);
		assert_int_equal(CALL(p.listener, Release), 0);
		leave_side(&p.a);
		leave_side(&p.b);
	}
}

static void threads_with_the_same_adapters(void **state)
{
	struct shared all;

	(void)state;
	nd_make_side(&all.a);
	nd_make_side(&all.b);
	for (int i = 0; i < THREADS; i++)
		nd_thread_start(&all.threads[i], live_together, &all);
	for (int i = 0; i < THREADS; i++)
		nd_thread_join(&all.threads[i]);
	nd_drop_side(&all.a);
	nd_drop_side(&all.b);
}

/* ---- one queue, several threads ---- */

/* Notifications are armed by some threads and cancelled by another one. */
struct notifying {
	struct nd_thread thread;
	struct nd_side *side;
	unsigned fired, cancelled;
};

static void arm_and_wait(void *arg)
{
	struct notifying *n = (struct notifying *)arg;
	OVERLAPPED ov;

	nd_ov_make(&ov);
	for (int i = 0; i < COUNTS; i++) {
		HRESULT status;

		assert_status(CALL(n->side->cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
		assert_status(CALL(n->side->cq, CancelOverlappedRequests), ND_SUCCESS);
		status = CALL(n->side->cq, GetOverlappedResult, &ov, TRUE);
		assert_true(status == ND_CANCELED || status == ND_SUCCESS);
		n->cancelled += status == ND_CANCELED;
		n->fired += status == ND_SUCCESS;
	}
	nd_ov_drop(&ov);
}

static void flush_again_and_again(void *arg)
{
	struct notifying *n = (struct notifying *)arg;

	for (uintptr_t i = 0; i < COUNTS; i++) {
		nd_receive(n->side, i, 0, SIZE);
		assert_status(CALL(n->side->qp, Flush), ND_SUCCESS);
		nd_expect(n->side, Nd2RequestTypeReceive, i, ND_CANCELED);
	}
}

static void each_notification_completes_once(void **state)
{
	struct notifying n[THREADS];
	struct nd_side s;

	(void)state;
	nd_make_side(&s);
	memset(n, 0, sizeof(n));
	for (int i = 0; i < THREADS; i++) {
		n[i].side = &s;
		nd_thread_start(&n[i].thread, i > 0 ? arm_and_wait : flush_again_and_again, &n[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		nd_thread_join(&n[i].thread);
		if (i > 0)
			assert_int_equal(n[i].fired + n[i].cancelled, COUNTS);
	}
	nd_drop_side(&s);
}

/* ---- handles ---- */

static void make_and_close_events(void *arg)
{
	(void)arg;
	for (int i = 0; i < COUNTS; i++) {
		HANDLE events[3];

		for (int k = 0; k < 3; k++) {
			events[k] = CreateEvent(NULL, FALSE, FALSE, NULL);
			assert_non_null(events[k]);
		}
		assert_true(SetEvent(events[1]));
		assert_int_equal(WaitForMultipleObjects(3, events, FALSE, 0), WAIT_OBJECT_0 + 1);
		for (int k = 0; k < 3; k++)
			assert_true(CloseHandle(events[k]));
		assert_false(CloseHandle(events[0]));
	}
}

static void handles_are_made_by_many_threads(void **state)
{
	struct nd_thread threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		nd_thread_start(&threads[i], make_and_close_events, NULL);
	for (int i = 0; i < THREADS; i++)
		nd_thread_join(&threads[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(references_are_counted_by_many_threads),
		cmocka_unit_test(one_thread_releases_last),
		cmocka_unit_test(threads_with_own_adapters),
		cmocka_unit_test(threads_with_the_same_adapters),
		cmocka_unit_test(each_notification_completes_once),
		cmocka_unit_test(handles_are_made_by_many_threads),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
