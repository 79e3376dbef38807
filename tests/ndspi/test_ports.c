/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion ports: order, keys, threads that wait, and their descriptor. */
#include "nd_thread.h"

#include <poll.h>

enum { MANY = 1000, BATCH = 64, THREADS = 4, ROUNDS = 25 };

static HANDLE new_port(void)
{
	HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 0);

	assert_non_null(port);
	return port;
}

/* A side whose file is bound to a new port. */
static HANDLE make_bound(struct nd_side *s, ULONG_PTR key)
{
	HANDLE port;

	nd_make_side(s);
	port = CreateIoCompletionPort(s->file, NULL, key, 0);
	assert_non_null(port);
	return port;
}

struct packet {
	BOOL ok;
	DWORD error;
	DWORD bytes;
	ULONG_PTR key;
	OVERLAPPED *ov;
};

static struct packet get(HANDLE port, DWORD milliseconds)
{
	struct packet p = {FALSE, 0, 77, 77, NULL};

	SetLastError(0);
	p.ok = GetQueuedCompletionStatus(port, &p.bytes, &p.key, &p.ov, milliseconds);
	p.error = GetLastError();
	return p;
}

static void expect_none(HANDLE port)
{
	const struct packet p = get(port, 0);

	assert_false(p.ok);
	assert_null(p.ov);
	assert_int_equal(p.error, WAIT_TIMEOUT);
}

static void expect_packet(HANDLE port, const OVERLAPPED *ov, ULONG_PTR key, HRESULT status)
{
	const struct packet p = get(port, ND_WAIT_MS);

	assert_ptr_equal(p.ov, ov);
	assert_int_equal(p.key, key);
	assert_int_equal(p.bytes, 0);
	assert_int_equal(p.ok, SUCCEEDED(status));
	assert_status(nd_ov_state(ov), status);
}

static void a_packet_has_what_was_posted(void **state)
{
	HANDLE port = new_port();
	OVERLAPPED *odd = (OVERLAPPED *)(uintptr_t)0x1234567; /* no function looks at the pointer */
	struct packet p;

	(void)state;
	expect_none(port);
	assert_true(PostQueuedCompletionStatus(port, 5, 6, odd));
	assert_true(PostQueuedCompletionStatus(port, 7, 8, NULL));
	p = get(port, INFINITE);
	assert_true(p.ok);
	assert_int_equal(p.bytes, 5);
	assert_int_equal(p.key, 6);
	assert_ptr_equal(p.ov, odd);
	p = get(port, 0);
	assert_true(p.ok);
	assert_int_equal(p.key, 8);
	assert_null(p.ov);
	expect_none(port);
	assert_true(CloseHandle(port));
}

static void a_file_may_be_bound_late(void **state)
{
	struct nd_side s;
	OVERLAPPED early, late;
	HANDLE port = new_port();

	(void)state;
	nd_make_side(&s);
	memset(&early, 0, sizeof(early));
	memset(&late, 0, sizeof(late));
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &early), ND_PENDING);
	assert_ptr_equal(CreateIoCompletionPort(s.file, port, 42, 0), port);
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &late), ND_PENDING);
	expect_none(port);
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	expect_packet(port, &early, 42, ND_CANCELED);
	expect_packet(port, &late, 42, ND_CANCELED);
	assert_int_equal(get(port, 0).error, WAIT_TIMEOUT);
	nd_drop_side(&s);
	assert_true(CloseHandle(port));
}

static void a_file_is_bound_once(void **state)
{
	struct nd_side s;
	HANDLE port = make_bound(&s, 1);
	HANDLE other = new_port();

	(void)state;
	assert_null(CreateIoCompletionPort(s.file, port, 2, 0));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(CreateIoCompletionPort(s.file, other, 2, 0));
	assert_null(CreateIoCompletionPort(s.file, NULL, 2, 0));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(CreateIoCompletionPort(s.event, other, 2, 0));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	assert_null(CreateIoCompletionPort(s.file, s.event, 2, 0));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	nd_drop_side(&s);
	assert_true(CloseHandle(port));
	assert_true(CloseHandle(other));
}

/* Also with the file's handle closed: its objects keep what they need. */
static void packets_come_in_order(void **state)
{
	struct nd_side s;
	HANDLE port = make_bound(&s, 9);
	OVERLAPPED ov[3];

	(void)state;
	memset(ov, 0, sizeof(ov));
	assert_status(CALL(s.mr, Deregister, &ov[0]), ND_PENDING);
	expect_packet(port, &ov[0], 9, ND_SUCCESS);
	assert_true(CloseHandle(s.file));
	assert_status(CALL(s.mr, Register, s.memory, ND_MEMORY, 0, &ov[1]), ND_PENDING);
	assert_true(PostQueuedCompletionStatus(port, 0, 0, NULL));
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov[2]), ND_PENDING);
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	expect_packet(port, &ov[1], 9, ND_SUCCESS);
	assert_true(get(port, 0).ok);
	expect_packet(port, &ov[2], 9, ND_CANCELED);
	assert_status(CALL(s.adapter, CreateOverlappedFile, &s.file), ND_SUCCESS);
	nd_drop_side(&s);
	assert_true(CloseHandle(port));
}

/* The packets are there before the call returns. */
static void a_thousand_cancels_come_in_order(void **state)
{
	static OVERLAPPED ov[MANY];
	struct nd_side s;
	HANDLE port = make_bound(&s, 3);

	(void)state;
	memset(ov, 0, sizeof(ov));
	for (int i = 0; i < MANY; i++)
		assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov[i]), ND_PENDING);
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	for (int i = 0; i < MANY; i++) {
		const struct packet p = get(port, 0);

		assert_false(p.ok);
		assert_int_equal(p.error, ERROR_OPERATION_ABORTED);
		assert_ptr_equal(p.ov, &ov[i]);
	}
	expect_none(port);
	nd_drop_side(&s);
	assert_true(CloseHandle(port));
}

static void a_batch_takes_what_is_there(void **state)
{
	HANDLE port = new_port();
	OVERLAPPED_ENTRY entry[2 * BATCH];
	ULONG n = 77;
	ULONG_PTR next = 0;

	(void)state;
	assert_false(GetQueuedCompletionStatusEx(port, entry, BATCH, &n, 0, FALSE));
	assert_int_equal(n, 0);
	assert_int_equal(GetLastError(), WAIT_TIMEOUT);
	for (ULONG_PTR i = 0; i < 3 * BATCH; i++)
		assert_true(PostQueuedCompletionStatus(port, (DWORD)i, i, NULL));
	assert_true(GetQueuedCompletionStatusEx(port, entry, 3, &n, INFINITE, FALSE));
	assert_int_equal(n, 3);
	while (next < 3 * BATCH) {
		if (next > 0) {
			assert_true(
				GetQueuedCompletionStatusEx(port, entry, 2 * BATCH, &n, 0, TRUE));
			assert_true(n > 0 && n <= 2 * BATCH);
		}
		for (ULONG i = 0; i < n; i++, next++) {
			assert_int_equal(entry[i].lpCompletionKey, next);
			assert_int_equal(entry[i].dwNumberOfBytesTransferred, next);
			assert_int_equal(entry[i].Internal, 0);
		}
	}
	expect_none(port);
	assert_true(CloseHandle(port));
}

static void the_low_bit_keeps_the_packet_away(void **state)
{
	struct nd_side s;
	HANDLE port = make_bound(&s, 4);
	HANDLE event = CreateEvent(NULL, TRUE, FALSE, NULL);
	OVERLAPPED ov;

	(void)state;
	memset(&ov, 0, sizeof(ov));
	ov.hEvent = (HANDLE)((uintptr_t)event | 1);
	assert_status(CALL(s.mr, Deregister, &ov), ND_PENDING);
	nd_wait_event(ov.hEvent);
	nd_wait_event(event);
	assert_status(nd_ov_state(&ov), ND_SUCCESS);
	expect_none(port);
	ov.hEvent = event;
	assert_status(CALL(s.mr, Register, s.memory, ND_MEMORY, 0, &ov), ND_PENDING);
	expect_packet(port, &ov, 4, ND_SUCCESS);
	nd_wait_event(event);
	nd_drop_side(&s);
	assert_true(CloseHandle(event));
	assert_true(CloseHandle(port));
}

static bool readable(int fd)
{
	struct pollfd in = {fd, POLLIN, 0};

	return poll(&in, 1, 0) == 1;
}

static void the_descriptor_tells_packets(void **state)
{
	struct nd_side s;
	HANDLE port = make_bound(&s, 4);
	const int fd = NdxPortDescriptor(port);
	OVERLAPPED ov[2];

	(void)state;
	memset(ov, 0, sizeof(ov));
	assert_true(fd >= 0);
	assert_int_equal(NdxPortDescriptor(port), fd);
	assert_false(readable(fd));
	for (int i = 0; i < 2; i++)
		assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov[i]), ND_PENDING);
	assert_false(readable(fd));
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_true(readable(fd));
	expect_packet(port, &ov[0], 4, ND_CANCELED);
	assert_true(readable(fd));
	expect_packet(port, &ov[1], 4, ND_CANCELED);
	assert_false(readable(fd));
	expect_none(port);
	assert_false(readable(fd));
	assert_true(PostQueuedCompletionStatus(port, 0, 0, NULL));
	assert_true(readable(fd));
	assert_true(get(port, 0).ok);
	assert_false(readable(fd));
	assert_int_equal(NdxPortDescriptor(s.event), -1);
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	nd_drop_side(&s);
	assert_true(CloseHandle(port));
}

/* ---- threads ---- */

struct waiter {
	struct nd_thread thread;
	HANDLE port;
	struct packet got;
	unsigned packets;
};

static void wait_for_one(void *arg)
{
	struct waiter *w = (struct waiter *)arg;

	w->got = get(w->port, INFINITE);
}

static void a_thread_waits_without_limit(void **state)
{
	struct waiter w;
	struct nd_side s;
	OVERLAPPED ov;

	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&ov, 0, sizeof(ov));
	w.port = make_bound(&s, 11);
	nd_thread_start(&w.thread, wait_for_one, &w);
	nd_thread_await_sleep(&w.thread);
	assert_status(CALL(s.mr, Deregister, &ov), ND_PENDING);
	nd_thread_join(&w.thread);
	assert_true(w.got.ok);
	assert_ptr_equal(w.got.ov, &ov);
	assert_int_equal(w.got.key, 11);
	nd_drop_side(&s);
	assert_true(CloseHandle(w.port));
}

/* A program that ends posts a packet for each thread, and then takes those of its own calls. */
static void a_packet_belongs_to_the_thread_that_waits(void **state)
{
	struct waiter w;
	HANDLE port = new_port();

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct packet own;

		memset(&w, 0, sizeof(w));
		w.port = port;
		nd_thread_start(&w.thread, wait_for_one, &w);
		nd_thread_await_sleep(&w.thread);
		assert_true(PostQueuedCompletionStatus(port, 0, 1, NULL));
		assert_true(PostQueuedCompletionStatus(port, 0, 2, NULL));
		own = get(port, 0);
		assert_true(own.ok);
		assert_int_equal(own.key, 2);
		nd_thread_join(&w.thread);
		assert_true(w.got.ok);
		assert_int_equal(w.got.key, 1);
	}
	assert_true(CloseHandle(port));
}

static void closing_ends_all_waits(void **state)
{
	struct waiter w[THREADS];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		HANDLE port = new_port();

		memset(w, 0, sizeof(w));
		for (int i = 0; i < THREADS; i++) {
			w[i].port = port;
			nd_thread_start(&w[i].thread, wait_for_one, &w[i]);
		}
		for (int i = 0; i < THREADS; i++)
			nd_thread_await_sleep(&w[i].thread);
		assert_true(CloseHandle(port));
		for (int i = 0; i < THREADS; i++) {
			nd_thread_join(&w[i].thread);
			assert_false(w[i].got.ok);
			assert_null(w[i].got.ov);
			assert_int_equal(w[i].got.error, ERROR_ABANDONED_WAIT_0);
		}
	}
}

/* Until the packet with key 0. */
static void take_all(void *arg)
{
	struct waiter *w = (struct waiter *)arg;
	struct packet p;

	while ((p = get(w->port, ND_WAIT_MS)).ok && p.key != 0)
		w->packets += (unsigned)p.key;
	w->got = p;
}

static void each_packet_goes_to_one_thread(void **state)
{
	struct waiter w[THREADS];
	HANDLE port = new_port();
	unsigned sum = 0;

	(void)state;
	memset(w, 0, sizeof(w));
	for (int i = 0; i < THREADS; i++) {
		w[i].port = port;
		nd_thread_start(&w[i].thread, take_all, &w[i]);
	}
	for (int i = 0; i < MANY; i++)
		assert_true(PostQueuedCompletionStatus(port, 0, 1, NULL));
	for (int i = 0; i < THREADS; i++)
		assert_true(PostQueuedCompletionStatus(port, 0, 0, NULL));
	for (int i = 0; i < THREADS; i++) {
		nd_thread_join(&w[i].thread);
		assert_true(w[i].got.ok);
		sum += w[i].packets;
	}
	assert_int_equal(sum, MANY);
	expect_none(port);
	assert_true(CloseHandle(port));
}

/* The calls of a bound file complete into nothing once the port is closed. */
static void a_closed_port_drops_packets(void **state)
{
	struct nd_side s;
	HANDLE port = make_bound(&s, 4);
	OVERLAPPED ov;

	(void)state;
	nd_ov_make(&ov);
	assert_true(PostQueuedCompletionStatus(port, 0, 0, NULL));
	assert_status(CALL(s.cq, Notify, ND_CQ_NOTIFY_ANY, &ov), ND_PENDING);
	assert_true(CloseHandle(port));
	assert_status(CALL(s.cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(nd_ov_end(&ov), ND_CANCELED);
	assert_ends(CALL(s.mr, Deregister, &ov), &ov, ND_SUCCESS);
	assert_int_equal(get(port, 0).error, ERROR_INVALID_HANDLE);
	assert_false(PostQueuedCompletionStatus(port, 0, 0, NULL));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	nd_drop_side(&s);
	nd_ov_drop(&ov);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_has_what_was_posted),
		cmocka_unit_test(a_file_may_be_bound_late),
		cmocka_unit_test(a_file_is_bound_once),
		cmocka_unit_test(packets_come_in_order),
		cmocka_unit_test(a_thousand_cancels_come_in_order),
		cmocka_unit_test(a_batch_takes_what_is_there),
		cmocka_unit_test(the_low_bit_keeps_the_packet_away),
		cmocka_unit_test(the_descriptor_tells_packets),
		cmocka_unit_test(a_thread_waits_without_limit),
		cmocka_unit_test(a_packet_belongs_to_the_thread_that_waits),
		cmocka_unit_test(closing_ends_all_waits),
		cmocka_unit_test(each_packet_goes_to_one_thread),
		cmocka_unit_test(a_closed_port_drops_packets),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
