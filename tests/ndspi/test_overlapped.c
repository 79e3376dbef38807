/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that end later: each is pending and completes once; events, waits, cancelling, releasing.
 */
#include "nd_thread.h"

enum { MANY = 1000, ROUNDS = 25 };

/* ---- events ---- */

static void an_event_is_set_and_reset(void **state)
{
	HANDLE event = CreateEvent(NULL, FALSE, TRUE, NULL);
	HANDLE manual = CreateEventA(NULL, TRUE, FALSE, NULL);

	(void)state;
	assert_int_equal(WaitForSingleObject(event, 0), WAIT_OBJECT_0);
	assert_int_equal(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
	assert_int_equal(WaitForSingleObject(event, 1), WAIT_TIMEOUT);
	assert_true(SetEvent(event));
	assert_true(SetEvent(event));
	assert_int_equal(WaitForSingleObject(event, INFINITE), WAIT_OBJECT_0);
	assert_int_equal(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
	assert_true(SetEvent(manual));
	assert_int_equal(WaitForSingleObject(manual, 0), WAIT_OBJECT_0);
	assert_int_equal(WaitForSingleObject(manual, INFINITE), WAIT_OBJECT_0);
	assert_true(ResetEvent(manual));
	assert_int_equal(WaitForSingleObject(manual, 0), WAIT_TIMEOUT);
	assert_null(CreateEventW(NULL, FALSE, FALSE, L"name"));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(CreateEventA(NULL, FALSE, FALSE, "name"));
	assert_true(CloseHandle(event));
	assert_true(CloseHandle(manual));
}

static void a_call_resets_its_event_and_sets_it_at_the_end(void **state)
{
	struct nd_side s;
	OVERLAPPED ov;

	(void)state;
	nd_make_side(&s);
	memset(&ov, 0, sizeof(ov));
	ov.hEvent = CreateEvent(NULL, TRUE, TRUE, NULL);
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
	assert_int_equal(WaitForSingleObject(ov.hEvent, 0), WAIT_TIMEOUT);
	assert_false(HasOverlappedIoCompleted(&ov));
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	nd_wait_event(ov.hEvent);
	nd_wait_event(ov.hEvent);
	assert_true(HasOverlappedIoCompleted(&ov));
	assert_status(CALL(s.cq, GetOverlappedResult, &ov, TRUE), ND_CANCELED);
	nd_wait_event(ov.hEvent); /* reset by hand only */
	assert_true(CloseHandle(ov.hEvent));
	nd_drop_side(&s);
}

static void wait_for_any_takes_the_first(void **state)
{
	HANDLE event[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		event[i] = CreateEvent(NULL, i == 2, FALSE, NULL);
	assert_int_equal(WaitForMultipleObjects(3, event, FALSE, 0), WAIT_TIMEOUT);
	assert_true(SetEvent(event[1]));
	assert_true(SetEvent(event[2]));
	assert_int_equal(WaitForMultipleObjects(3, event, FALSE, INFINITE), WAIT_OBJECT_0 + 1);
	assert_int_equal(WaitForMultipleObjects(3, event, FALSE, 0), WAIT_OBJECT_0 + 2);
	assert_int_equal(WaitForMultipleObjects(3, event, FALSE, 0), WAIT_OBJECT_0 + 2);
	assert_int_equal(WaitForMultipleObjects(3, event, TRUE, 0), WAIT_TIMEOUT);
	assert_true(SetEvent(event[0]));
	assert_int_equal(WaitForMultipleObjects(3, event, TRUE, 1), WAIT_TIMEOUT);
	nd_wait_event(event[0]); /* the wait for all has left it set */
	assert_true(SetEvent(event[0]));
	assert_true(SetEvent(event[1]));
	assert_int_equal(WaitForMultipleObjects(3, event, TRUE, INFINITE), WAIT_OBJECT_0);
	assert_int_equal(WaitForMultipleObjects(2, event, FALSE, 0), WAIT_TIMEOUT);
	assert_int_equal(WaitForMultipleObjects(0, event, FALSE, 0), WAIT_FAILED);
	assert_int_equal(WaitForMultipleObjects(65, event, FALSE, 0), WAIT_FAILED);
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	for (int i = 0; i < 3; i++)
		assert_true(CloseHandle(event[i]));
	assert_int_equal(WaitForMultipleObjects(3, event, FALSE, 0), WAIT_FAILED);
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void stale_handles_are_told(void **state)
{
	HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);
	HANDLE other;
	struct nd_side s;
	uintptr_t bits = 88172645463325252u;

	(void)state;
	assert_true(CloseHandle(event));
	assert_false(CloseHandle(event));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	other = CreateEvent(NULL, FALSE, FALSE, NULL); /* perhaps the same row of the table */
	assert_ptr_not_equal(other, event);
	assert_false(SetEvent(event));
	assert_false(ResetEvent(event));
	assert_int_equal(WaitForSingleObject(event, 0), WAIT_FAILED);
	assert_true(CloseHandle((HANDLE)((uintptr_t)other | 3))); /* the low bits do not count */
	assert_false(CloseHandle(other));
	assert_false(CloseHandle(NULL));
	assert_false(CloseHandle(INVALID_HANDLE_VALUE));
	for (int i = 0; i < MANY; i++) {
		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		assert_int_equal(WaitForSingleObject((HANDLE)bits, 0), WAIT_FAILED);
		assert_false(SetEvent((HANDLE)bits));
	}
	nd_make_side(&s);
	assert_false(SetEvent(s.file));
	assert_int_equal(WaitForSingleObject(s.file, 0), WAIT_FAILED);
	nd_drop_side(&s);
}

/* The event's handle is closed while a call is to set the event. */
static void an_event_may_be_closed_early(void **state)
{
	struct nd_side s;
	OVERLAPPED ov;

	(void)state;
	nd_make_side(&s);
	nd_ov_make(&ov);
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
	nd_ov_drop(&ov);
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(CALL(s.cq, GetOverlappedResult, &ov, FALSE), ND_CANCELED);
	nd_drop_side(&s);
}

/* ---- each call is pending, and completes once ---- */

struct counter {
	HANDLE port;
	struct nd_pair p;
};

/* Just one packet, of this OVERLAPPED. */
static void expect_one(struct counter *c, OVERLAPPED *ov, HRESULT started, HRESULT status)
{
	DWORD bytes;
	ULONG_PTR key;
	OVERLAPPED *got;

	assert_status(started, ND_PENDING);
	(void)GetQueuedCompletionStatus(c->port, &bytes, &key, &got, ND_WAIT_MS);
	assert_ptr_equal(got, ov);
	assert_status(nd_ov_state(ov), status);
	assert_false(GetQueuedCompletionStatus(c->port, &bytes, &key, &got, 0));
	assert_null(got);
}

static void connect_by_port(struct counter *c, OVERLAPPED *ov)
{
	struct nd_pair *p = &c->p;
	HRESULT connecting;
	HRESULT accepting;

	assert_status(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), &ov[0]),
	              ND_PENDING);
	connecting = CALL(p->a.connector, Connect, UNKNOWN(p->a.qp), (struct sockaddr *)&p->address,
	                  p->address_length, 0, 0, NULL, 0, &ov[1]);
	expect_one(c, &ov[0], connecting, ND_SUCCESS);
	accepting = CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 0, 0, NULL, 0, &ov[2]);
	expect_one(c, &ov[1], accepting, ND_SUCCESS);
}

/* Two packets, in whichever order. */
static void expect_two(struct counter *c, OVERLAPPED *one, OVERLAPPED *two)
{
	DWORD bytes;
	ULONG_PTR key;
	OVERLAPPED *got[2] = {NULL, NULL};
	OVERLAPPED *more;

	for (int i = 0; i < 2; i++)
		assert_true(GetQueuedCompletionStatus(c->port, &bytes, &key, &got[i], ND_WAIT_MS));
	assert_true((got[0] == one && got[1] == two) || (got[0] == two && got[1] == one));
	assert_false(GetQueuedCompletionStatus(c->port, &bytes, &key, &more, 0));
	assert_null(more);
}

static void each_call_completes_once(void **state)
{
	struct counter c;
	struct nd_side *a = &c.p.a;
	struct nd_side *b = &c.p.b;
	OVERLAPPED ov[8];

	(void)state;
	memset(ov, 0, sizeof(ov));
	nd_make(&c.p);
	c.port = CreateIoCompletionPort(a->file, NULL, 0, 0);
	assert_ptr_equal(CreateIoCompletionPort(b->file, c.port, 0, 0), c.port);
	expect_one(&c, &ov[0], CALL(a->mr, Deregister, &ov[0]), ND_SUCCESS);
	expect_one(&c, &ov[0], CALL(a->mr, Register, a->memory, ND_MEMORY, 0, &ov[0]), ND_SUCCESS);
	connect_by_port(&c, ov);
	assert_status(CALL(a->connector, CompleteConnect, &ov[3]), ND_PENDING);
	expect_two(&c, &ov[2], &ov[3]);
	assert_status(CALL(b->connector, NotifyDisconnect, &ov[4]), ND_PENDING);
	assert_status(CALL(a->connector, Disconnect, &ov[5]), ND_PENDING);
	expect_two(&c, &ov[4], &ov[5]);
	expect_one(&c, &ov[6], CALL(b->connector, Disconnect, &ov[6]), ND_SUCCESS);
	nd_receive(a, 1, 0, 8);
	/* what is there already completes the call, but later than the call */
	nd_expect(a, Nd2RequestTypeReceive, 1, ND_CANCELED);
	nd_receive(a, 2, 0, 8);
	expect_one(&c, &ov[7], CALL(a->cq, Notify, ND_CQ_NOTIFY_ANY, &ov[7]), ND_SUCCESS);
	nd_drop(&c.p);
	assert_true(CloseHandle(c.port));
}

/* As the teardown of Microsoft's programs does. */
static void two_calls_on_one_overlapped(void **state)
{
	struct nd_side s;
	HANDLE port;
	DWORD bytes;
	ULONG_PTR key;
	OVERLAPPED *got;
	OVERLAPPED ov;

	(void)state;
	nd_make_side(&s);
	memset(&ov, 0, sizeof(ov));
	port = CreateIoCompletionPort(s.file, NULL, 0, 0);
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
	assert_status(CALL(s.mr, Deregister, &ov), ND_PENDING);
	assert_true(GetQueuedCompletionStatus(port, &bytes, &key, &got, ND_WAIT_MS));
	assert_ptr_equal(got, &ov);
	assert_false(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
	assert_null(got);
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_false(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
	assert_ptr_equal(got, &ov);
	assert_status(nd_ov_state(&ov), ND_CANCELED);
	nd_drop_side(&s);
	assert_true(CloseHandle(port));
}

/* A call that fails at once completes nothing and leaves the OVERLAPPED as it was. */
static void a_failed_call_completes_nothing(void **state)
{
	struct nd_side s;
	HANDLE port;
	DWORD bytes;
	ULONG_PTR key;
	OVERLAPPED *got;
	OVERLAPPED ov;

	(void)state;
	nd_make_side(&s);
	nd_ov_make(&ov);
	ov.Internal = 4711;
	ov.InternalHigh = 4712;
	port = CreateIoCompletionPort(s.file, NULL, 0, 0);
	assert_status(CALL(s.connector, Disconnect, &ov), ND_CONNECTION_INVALID);
	assert_status(CALL(s.mr, Register, s.memory, 8, 0, &ov), ND_INVALID_DEVICE_STATE);
	assert_int_equal(ov.Internal, 4711);
	assert_int_equal(ov.InternalHigh, 4712);
	assert_int_equal(WaitForSingleObject(ov.hEvent, 0), WAIT_TIMEOUT);
	assert_false(GetQueuedCompletionStatus(port, &bytes, &key, &got, 0));
	assert_null(got);
	nd_drop_side(&s);
	nd_ov_drop(&ov);
	assert_true(CloseHandle(port));
}

/* ---- results ---- */

static void the_result_belongs_to_the_overlapped(void **state)
{
	struct nd_pair p;
	OVERLAPPED ov;
	DWORD bytes = 77;

	(void)state;
	nd_make(&p);
	memset(&ov, 0, sizeof(ov));
	assert_status(CALL(p.a.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
	assert_status(CALL(p.b.connector, GetOverlappedResult, &ov, FALSE), ND_PENDING);
	assert_status(CALL(p.listener, GetOverlappedResult, &ov, FALSE), ND_PENDING);
	assert_false(GetOverlappedResult(p.b.file, &ov, &bytes, FALSE));
	assert_int_equal(GetLastError(), ERROR_IO_INCOMPLETE);
	assert_status(CALL(p.a.cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(CALL(p.b.mr, GetOverlappedResult, &ov, TRUE), ND_CANCELED);
	assert_status(CALL(p.b.cq, GetOverlappedResult, &ov, TRUE), ND_CANCELED);
	assert_false(GetOverlappedResult(p.a.file, &ov, &bytes, TRUE));
	assert_int_equal(GetLastError(), ERROR_OPERATION_ABORTED);
	assert_status(CALL(p.a.mr, Deregister, &ov), ND_PENDING);
	assert_true(GetOverlappedResult(NULL, &ov, &bytes, TRUE));
	assert_int_equal(bytes, 0);
	nd_drop(&p);
}

struct sleeper {
	struct nd_thread thread;
	IND2CompletionQueue *object;
	OVERLAPPED *ov;
	HRESULT got;
};

static void wait_for_result(void *arg)
{
	struct sleeper *w = (struct sleeper *)arg;

	w->got = CALL(w->object, GetOverlappedResult, w->ov, TRUE);
}

/* With and without an event; the waiting thread may reuse the OVERLAPPED at once. */
static void a_thread_waits_for_a_result(void **state)
{
	struct nd_side s;
	OVERLAPPED bare;

	(void)state;
	nd_make_side(&s);
	memset(&bare, 0, sizeof(bare));
	for (int i = 0; i < 2 * ROUNDS; i++) {
		struct sleeper w;

		memset(&w, 0, sizeof(w));
		w.object = s.cq;
		w.ov = i % 2 ? &bare : &s.ov;
		assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, w.ov), ND_PENDING);
		nd_thread_start(&w.thread, wait_for_result, &w);
		if (i < ROUNDS)
			nd_thread_await_sleep(&w.thread);
		assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
		nd_thread_join(&w.thread);
		assert_status(w.got, ND_CANCELED);
		/* a thread that slept for the result has taken the event */
		if (i < ROUNDS)
			assert_int_equal(WaitForSingleObject(s.event, 0), WAIT_TIMEOUT);
	}
	nd_drop_side(&s);
}

/* ---- releasing ---- */

/* Address sanitizer sees a late access. */
static void release_completes_all_calls(void **state)
{
	struct nd_pair p;
	OVERLAPPED *ov[4];

	(void)state;
	nd_make(&p);
	for (int i = 0; i < 4; i++) {
		ov[i] = (OVERLAPPED *)calloc(1, sizeof(*ov[i]));
		assert_non_null(ov[i]);
	}
	assert_status(CALL(p.a.cq, Notify, ND_CQ_NOTIFY_ANY, ov[0]), ND_PENDING);
	assert_status(CALL(p.listener, GetConnectionRequest, UNKNOWN(p.b.connector), ov[1]),
	              ND_PENDING);
	assert_status(CALL(p.a.mr, Deregister, ov[2]), ND_PENDING);
	assert_int_equal(CALL(p.a.cq, Release), 0);
	assert_status(nd_ov_state(ov[0]), ND_CANCELED);
	assert_int_equal(CALL(p.listener, Release), 0);
	assert_status(nd_ov_state(ov[1]), ND_CANCELED);
	assert_int_equal(CALL(p.a.mr, Release), 0);
	assert_status(nd_ov_state(ov[2]), ND_SUCCESS);
	p.a.cq = NULL;
	p.a.mr = NULL;
	nd_listen(&p);
	assert_status(CALL(p.a.connector, Connect, UNKNOWN(p.a.qp), (struct sockaddr *)&p.address,
	                   p.address_length, 0, 0, NULL, 0, ov[3]),
	              ND_PENDING);
	assert_int_equal(CALL(p.a.connector, Release), 0);
	assert_status(nd_ov_state(ov[3]), ND_CANCELED);
	p.a.connector = NULL;
	for (int i = 0; i < 4; i++)
		free(ov[i]);
	nd_drop(&p);
}

/* The queue pair goes with the calls of its connector in flight. */
static void release_of_a_connected_end_completes_all_calls(void **state)
{
	struct nd_pair p;
	OVERLAPPED *ov = (OVERLAPPED *)calloc(2, sizeof(*ov));

	(void)state;
	assert_non_null(ov);
	nd_make(&p);
	nd_connect(&p);
	assert_status(CALL(p.a.connector, NotifyDisconnect, &ov[0]), ND_PENDING);
	assert_status(CALL(p.a.connector, Disconnect, &ov[1]), ND_PENDING);
	assert_int_equal(CALL(p.a.connector, Release), 0);
	assert_true(HasOverlappedIoCompleted(&ov[0]));
	assert_true(HasOverlappedIoCompleted(&ov[1]));
	p.a.connector = NULL;
	free(ov);
	nd_drop(&p);
}

struct set_waiter {
	struct nd_thread thread;
	HANDLE event;
	DWORD found;
};

static void wait_once(void *arg)
{
	struct set_waiter *w = (struct set_waiter *)arg;

	w->found = WaitForSingleObject(w->event, ND_WAIT_MS);
}

static void start_both(struct set_waiter *sleepers, HANDLE event)
{
	for (int i = 0; i < 2; i++) {
		sleepers[i].event = event;
		sleepers[i].found = WAIT_FAILED;
		nd_thread_start(&sleepers[i].thread, wait_once, &sleepers[i]);
		nd_thread_await_sleep(&sleepers[i].thread);
	}
}

static void expect_both(struct set_waiter *sleepers)
{
	for (int i = 0; i < 2; i++) {
		nd_thread_join(&sleepers[i].thread);
		assert_int_equal(sleepers[i].found, WAIT_OBJECT_0);
	}
}

/* A set event is given to a waiter in that moment, so nothing that follows takes it away. */
static void each_set_releases_a_waiter(void **state)
{
	struct set_waiter sleepers[2];
	HANDLE event = CreateEvent(NULL, FALSE, FALSE, NULL);

	(void)state;
	start_both(sleepers, event);
	assert_true(SetEvent(event));
	assert_true(SetEvent(event));
	expect_both(sleepers);
	assert_int_equal(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
	assert_true(CloseHandle(event));
	event = CreateEvent(NULL, TRUE, FALSE, NULL);
	start_both(sleepers, event);
	assert_true(SetEvent(event));
	assert_true(ResetEvent(event));
	expect_both(sleepers);
	assert_int_equal(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
	assert_true(CloseHandle(event));
}

/* The second call on one OVERLAPPED fails at once: status and event of the first one stay. */
static void a_failed_call_leaves_the_result_of_another(void **state)
{
	struct nd_side s;

	(void)state;
	nd_make_side(&s);
	assert_status(CALL(s.mr, Deregister, &s.ov), ND_PENDING);
	assert_status(CALL(s.cq, GetOverlappedResult, &s.ov, FALSE), ND_SUCCESS);
	assert_status(CALL(s.connector, Disconnect, &s.ov), ND_CONNECTION_INVALID);
	assert_status(CALL(s.cq, GetOverlappedResult, &s.ov, FALSE), ND_SUCCESS);
	assert_int_equal(WaitForSingleObject(s.event, 0), WAIT_OBJECT_0);
	nd_drop_side(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_set_and_reset),
		cmocka_unit_test(a_call_resets_its_event_and_sets_it_at_the_end),
		cmocka_unit_test(wait_for_any_takes_the_first),
		cmocka_unit_test(each_set_releases_a_waiter),
		cmocka_unit_test(a_failed_call_leaves_the_result_of_another),
		cmocka_unit_test(stale_handles_are_told),
		cmocka_unit_test(an_event_may_be_closed_early),
		cmocka_unit_test(each_call_completes_once),
		cmocka_unit_test(two_calls_on_one_overlapped),
		cmocka_unit_test(a_failed_call_completes_nothing),
		cmocka_unit_test(the_result_belongs_to_the_overlapped),
		cmocka_unit_test(a_thread_waits_for_a_result),
		cmocka_unit_test(release_completes_all_calls),
		cmocka_unit_test(release_of_a_connected_end_completes_all_calls),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
