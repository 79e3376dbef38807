/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider under core, through the public interface: two sides on two threads exchange traffic
 * and part at random. What a sender was told has arrived must have arrived.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include <ndx/ndx.h>

#define ROUNDS 120u
#define DEPTH_MAX 64u
#define MESSAGE 48u
#define PATIENCE_MS 10000u

struct side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_mr *mr;
	unsigned char memory[DEPTH_MAX + 1][MESSAGE];
	unsigned random;
	uint32_t depth;
	unsigned messages;  /* to send before it leaves; UINT32_MAX: it never does */
	unsigned posted;    /* requests that owe a result */
	unsigned completed; /* results */
	unsigned sent;      /* sends that were told to have arrived */
	unsigned received;
	unsigned wrong; /* statuses that must not be */
	enum ndx_status disconnected;
	struct ndx_overlapped end;
};

static unsigned dice(struct side *s, unsigned faces)
{
	s->random = s->random * 1103515245u + 12345u;
	return (s->random >> 16) % faces;
}

static void post_receive(struct side *s, uintptr_t slot)
{
	const struct ndx_sge sge = {s->memory[slot], MESSAGE, ndx_mr_get_local_token(s->mr)};

	if (ndx_qp_receive(s->qp, (void *)slot, &sge, 1) == NDX_OK)
		s->posted++;
	else
		s->wrong++;
}

static void open_side(struct side *s, const char *uri)
{
	assert_int_equal(ndx_adapter_open(uri, &s->adapter), NDX_OK);
	assert_int_equal(ndx_mr_register_new(s->adapter, s->memory, sizeof(s->memory),
	                                     NDX_MR_ALLOW_LOCAL_WRITE, &s->mr),
	                 NDX_OK);
}

static void close_side(struct side *s)
{
	ndx_mr_close(s->mr);
	ndx_adapter_close(s->adapter);
}

static void make_queues(struct side *s)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	assert_int_equal(ndx_cq_create(s->adapter, 2, 0, 0, &s->cq), NDX_OK);
	attr.receive_cq = s->cq;
	attr.initiator_cq = s->cq;
	attr.receive_depth = s->depth;
	attr.initiator_depth = s->depth;
	attr.inline_size = MESSAGE;
	assert_int_equal(ndx_qp_create(s->adapter, &attr, &s->qp), NDX_OK);
	s->posted = s->completed = s->sent = s->received = s->wrong = 0;
	for (uintptr_t i = 0; i < s->depth; i++)
		post_receive(s, i);
}

/* Returns whether the connection still stands, as far as results tell. */
static bool take_results(struct side *s)
{
	struct ndx_result results[8];
	size_t count = ndx_cq_get_results(s->cq, results, 8);
	bool stands = true;

	for (size_t i = 0; i < count; i++) {
		s->completed++;
		if (results[i].status == NDX_E_CANCELED) {
			stands = false;
			continue;
		}
		if (results[i].status != NDX_OK) {
			s->wrong++;
			continue;
		}
		if (results[i].request_type == NDX_REQUEST_RECEIVE) {
			s->received++;
			post_receive(s, (uintptr_t)results[i].request_context);
		} else if (results[i].request_type == NDX_REQUEST_SEND) {
			s->sent++;
		}
	}
	return stands;
}

static void send_one(struct side *s)
{
	const struct ndx_sge sge = {s->memory[DEPTH_MAX], dice(s, MESSAGE),
	                            ndx_mr_get_local_token(s->mr)};
	enum ndx_status st;

	st = ndx_qp_send(s->qp, NULL, &sge, 1, dice(s, 2) ? NDX_OP_INLINE : 0);
	if (st == NDX_OK)
		s->posted++;
	else if (st != NDX_E_NO_MORE_ENTRIES)
		s->wrong++;
	if (dice(s, 4) == 0 && ndx_qp_read(s->qp, NULL, NULL, 0, 0, 0, 0) == NDX_OK)
		s->posted++;
}

static void *run_traffic(void *arg)
{
	struct side *s = arg;
	bool stands = true;

	for (unsigned i = 0; stands && i < s->messages; i++) {
		if (dice(s, 3) != 0)
			send_one(s);
		stands = take_results(s);
	}
	/* Everybody leaves in the end: first, last, or at the same time. Receives go on until the
	 * end, or the peer's last sends would be cancelled. */
	s->disconnected = ndx_connector_disconnect(s->connector, &s->end);
	while (s->disconnected == NDX_PENDING) {
		(void)take_results(s);
		(void)sched_yield();
		s->disconnected = ndx_overlapped_status(&s->end);
	}
	return NULL;
}

static void *accept_one(void *arg)
{
	struct side *s = ((struct side **)arg)[0];
	struct ndx_listener *listener = ((struct ndx_listener **)arg)[1];

	if (ndx_accept_from(s->adapter, listener, s->qp, NULL, 0, PATIENCE_MS, &s->connector) !=
	    NDX_OK)
		s->connector = NULL;
	return NULL;
}

static void connect_both(struct side *a, struct side *b, struct ndx_listener *listener)
{
	void *arg[2] = {b, listener};
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	pthread_t thread;

	assert_int_equal(ndx_listener_get_local_address(listener, (struct sockaddr *)&to, &len),
	                 NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, accept_one, arg), 0);
	assert_int_equal(ndx_connect_to(a->adapter, a->qp, (struct sockaddr *)&to, len, NULL, 0,
	                                PATIENCE_MS, &a->connector),
	                 NDX_OK);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_non_null(b->connector);
}

static void finish(struct side *s)
{
	assert_int_equal(s->disconnected, NDX_OK);
	while (s->completed < s->posted) {
		unsigned before = s->completed;

		(void)take_results(s);
		/* after a disconnect all is there */
		assert_int_not_equal(before, s->completed);
	}
	assert_int_equal(s->wrong, 0);
	ndx_qp_close(s->qp);
	ndx_connector_close(s->connector);
	ndx_cq_close(s->cq);
}

static void play_round(struct side *a, struct side *b, struct ndx_listener *listener,
                       unsigned round)
{
	static const uint32_t depths[] = {1, 2, 4, 64};
	pthread_t threads[2];

	a->random = round * 2 + 1;
	b->random = round * 2 + 2;
	a->depth = depths[round % 4];
	b->depth = depths[round / 4 % 4];
	a->messages = round % 3 == 0 ? UINT32_MAX : dice(a, 400);
	b->messages = round % 3 == 1 ? UINT32_MAX : dice(b, 400);
	make_queues(a);
	make_queues(b);
	connect_both(a, b, listener);
	assert_int_equal(pthread_create(&threads[0], NULL, run_traffic, a), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, run_traffic, b), 0);
	assert_int_equal(pthread_join(threads[0], NULL), 0);
	assert_int_equal(pthread_join(threads[1], NULL), 0);
	finish(a);
	finish(b);
	assert_int_equal(a->sent, b->received);
	assert_int_equal(b->sent, a->received);
}

static void no_message_is_lost_whoever_leaves_first(void **state)
{
	static struct side sides[2];
	struct side *a = &sides[0];
	struct side *b = &sides[1];
	const struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct ndx_listener *listener = NULL;
	unsigned sends = 0;

	(void)state;
	open_side(a, "loop:a");
	open_side(b, "loop:b");
	assert_int_equal(
		ndx_listen_on(b->adapter, (const struct sockaddr *)&any, sizeof(any), 0, &listener),
		NDX_OK);
	for (unsigned i = 0; i < ROUNDS; i++) {
		play_round(a, b, listener, i);
		sends += a->sent + b->sent;
	}
	print_message("%u sends in %u rounds, none missing\n", sends, ROUNDS);
	assert_true(sends > ROUNDS * 10);
	ndx_listener_close(listener);
	close_side(a);
	close_side(b);
}

static struct ndx_result wait_one(struct ndx_cq *cq)
{
	struct ndx_result result = {0};
	size_t got = 0;

	assert_int_equal(ndx_cq_wait_results(cq, &result, 1, PATIENCE_MS, &got), NDX_OK);
	assert_int_equal(got, 1);
	return result;
}

static void windows_and_shared_queues_work_through_the_front_door(void **state)
{
	static struct side sides[2];
	struct side *a = &sides[0];
	struct side *b = &sides[1];
	const struct sockaddr_in6 any = {
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	struct ndx_listener *listener = NULL;
	struct ndx_srq *srq = NULL;
	struct ndx_mw *mw = NULL;
	struct ndx_overlapped ov = {0};
	struct ndx_qp_attr attr;
	struct ndx_sge sge;

	(void)state;
	open_side(a, "loop");
	open_side(b, "loop");
	a->depth = 4;
	make_queues(a);
	assert_int_equal(ndx_cq_create(b->adapter, 8, 0, 0, &b->cq), NDX_OK);
	assert_int_equal(ndx_srq_create(b->adapter, 4, 1, 1, 0, 0, &srq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = b->cq;
	attr.initiator_cq = b->cq;
	attr.srq = srq;
	attr.context = b;
	assert_int_equal(ndx_qp_create(b->adapter, &attr, &b->qp), NDX_OK);
	assert_int_equal(
		ndx_listen_on(b->adapter, (const struct sockaddr *)&any, sizeof(any), 0, &listener),
		NDX_OK);
	connect_both(a, b, listener);
	sge = (struct ndx_sge){b->memory[0], MESSAGE, ndx_mr_get_local_token(b->mr)};
	assert_int_equal(ndx_srq_receive(srq, srq, &sge, 1), NDX_OK);
	assert_int_equal(ndx_srq_notify(srq, &ov), NDX_PENDING);
	sge = (struct ndx_sge){a->memory[0], 5, ndx_mr_get_local_token(a->mr)};
	assert_int_equal(ndx_qp_send_immediate(a->qp, NULL, &sge, 1, 99, 0), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(wait_one(b->cq).immediate, 99);
	(void)wait_one(a->cq);
	/* the queue pair keeps the queue */
	ndx_srq_close(srq);

	assert_int_equal(ndx_mw_create(b->adapter, &mw), NDX_OK);
	assert_int_equal(
		ndx_qp_bind(b->qp, NULL, b->mr, mw, b->memory[1], MESSAGE, NDX_OP_ALLOW_WRITE),
		NDX_OK);
	assert_int_equal(wait_one(b->cq).request_type, NDX_REQUEST_BIND);
	memset(a->memory[0], 7, 5);
	assert_int_equal(ndx_qp_write(a->qp, NULL, &sge, 1, (uintptr_t)b->memory[1],
	                              ndx_mw_get_remote_token(mw), 0),
	                 NDX_OK);
	assert_int_equal(wait_one(a->cq).status, NDX_OK);
	assert_memory_equal(b->memory[1], a->memory[0], 5);
	assert_int_equal(ndx_mr_deregister(b->mr, &ov), NDX_E_DEVICE_BUSY);
	/* the region goes first, its window is dead */
	ndx_mr_close(b->mr);
	ndx_mw_close(mw);
	/* leave without a word: both sides still part well */
	ndx_qp_close(b->qp);
	ndx_connector_close(b->connector);
	assert_int_equal(ndx_disconnect(a->connector, PATIENCE_MS), NDX_OK);
	ndx_connector_close(a->connector);
	ndx_qp_close(a->qp);
	ndx_cq_close(a->cq);
	ndx_cq_close(b->cq);
	ndx_listener_close(listener);
	ndx_mr_close(a->mr);
	ndx_adapter_close(b->adapter);
	ndx_adapter_close(a->adapter);
}

static void a_send_nobody_receives_ends_both_sides_in_time(void **state)
{
	static struct side sides[2];
	struct side *a = &sides[0];
	struct side *b = &sides[1];
	const struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct ndx_listener *listener = NULL;
	struct ndx_overlapped notify = {0};
	struct ndx_qp_attr attr;

	(void)state;
	open_side(a, "loop");
	open_side(b, "loop");
	ndx_qp_attr_init(&attr);
	attr.no_receive_timeout_ms = 50;
	assert_int_equal(ndx_cq_create(a->adapter, 8, 0, 0, &a->cq), NDX_OK);
	assert_int_equal(ndx_cq_create(b->adapter, 8, 0, 0, &b->cq), NDX_OK);
	attr.receive_cq = attr.initiator_cq = a->cq;
	assert_int_equal(ndx_qp_create(a->adapter, &attr, &a->qp), NDX_OK);
	attr.receive_cq = attr.initiator_cq = b->cq;
	assert_int_equal(ndx_qp_create(b->adapter, &attr, &b->qp), NDX_OK);
	assert_int_equal(
		ndx_listen_on(b->adapter, (const struct sockaddr *)&any, sizeof(any), 0, &listener),
		NDX_OK);
	connect_both(a, b, listener);
	assert_int_equal(ndx_connector_notify_disconnect(b->connector, &notify), NDX_PENDING);
	assert_int_equal(ndx_qp_send(a->qp, NULL, NULL, 0, 0), NDX_OK);
	assert_int_equal(ndx_qp_send(a->qp, NULL, NULL, 0, 0), NDX_OK);
	assert_int_equal(wait_one(a->cq).status, NDX_E_IO_TIMEOUT);
	assert_int_equal(wait_one(a->cq).status, NDX_E_CANCELED);
	assert_int_equal(ndx_overlapped_wait(&notify, PATIENCE_MS), NDX_OK);
	assert_int_equal(notify.information, NDX_DISCONNECT_ABORTED);
	assert_int_equal(ndx_disconnect(a->connector, PATIENCE_MS), NDX_E_CONNECTION_ABORTED);
	ndx_listener_close(listener);
	ndx_connector_close(a->connector);
	ndx_connector_close(b->connector);
	ndx_qp_close(a->qp);
	ndx_qp_close(b->qp);
	ndx_cq_close(a->cq);
	ndx_cq_close(b->cq);
	close_side(a);
	close_side(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_message_is_lost_whoever_leaves_first),
		cmocka_unit_test(windows_and_shared_queues_work_through_the_front_door),
		cmocka_unit_test(a_send_nobody_receives_ends_both_sides_in_time),
	};

	return cmocka_run_group_tests_name("loop: under core", tests, NULL, NULL);
}
