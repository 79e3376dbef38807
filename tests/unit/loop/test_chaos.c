/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider under core, mistreated: two threads connect, cancel, reject, close, flush and part
 * at random moments. Nothing may hang, be left in flight, or touch what is gone (the sanitizers
 * look).
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

#include <ndx/ndx.h>

#define ROUNDS 400u
#define DEPTH 4u

struct side {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener; /* passive only */
	struct sockaddr_storage to;
	socklen_t to_len;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_mr *mr;
	unsigned char memory[64];
	struct ndx_overlapped first;  /* connect, or the request */
	struct ndx_overlapped second; /* complete, accept */
	struct ndx_overlapped notify;
	struct ndx_overlapped end;
	unsigned random;
	unsigned came_up; /* connections, over all rounds */
	unsigned posted;
	unsigned taken;
};

static unsigned dice(struct side *s, unsigned faces)
{
	s->random = s->random * 1103515245u + 12345u;
	return (s->random >> 16) % faces;
}

static void linger(struct side *s)
{
	for (unsigned i = dice(s, 20); i > 0; i--)
		(void)sched_yield();
}

static void take_all(struct side *s)
{
	struct ndx_result results[4];
	size_t count;

	do {
		count = ndx_cq_get_results(s->cq, results, 4);
		s->taken += (unsigned)count;
	} while (count > 0);
}

static void post_some(struct side *s)
{
	const struct ndx_sge sge = {s->memory, 8, ndx_mr_get_local_token(s->mr)};

	for (unsigned i = dice(s, DEPTH + 1); i > 0; i--) {
		if (ndx_qp_receive(s->qp, NULL, &sge, 1) == NDX_OK)
			s->posted++;
		if (dice(s, 2) == 0 && ndx_qp_send(s->qp, NULL, &sge, 1, 0) == NDX_OK)
			s->posted++;
		/* now and then a violation */
		if (dice(s, 40) == 0 && ndx_qp_write(s->qp, NULL, &sge, 1, 1, 1, 0) == NDX_OK)
			s->posted++;
	}
	if (dice(s, 2) == 0)
		take_all(s);
}

/* True if `ov` completed well; else it was cancelled or has failed. */
static int came_well(struct side *s, struct ndx_overlapped *ov, enum ndx_status started)
{
	if (started != NDX_PENDING)
		return 0;
	if (dice(s, 8) == 0) {
		linger(s);
		assert_int_equal(ndx_connector_cancel(s->connector), NDX_OK);
		assert_int_not_equal(ndx_overlapped_status(ov), NDX_PENDING);
	}
	/* the other side may never answer: it sees to that itself, or leaves */
	return ndx_overlapped_wait(ov, NDX_INFINITE) == NDX_OK;
}

static int go_active(struct side *s)
{
	if (!came_well(s, &s->first,
	               ndx_connector_connect(
			       s->connector, s->qp, (struct sockaddr *)&s->to, s->to_len,
			       &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                  .private_data = "hi",
	                                                  .private_data_len = 2,
	                                                  .inbound_read_limit = 4,
	                                                  .outbound_read_limit = 4},
			       &s->first)))
		return 0;
	linger(s);
	if (dice(s, 8) == 0) {
		(void)ndx_connector_reject(s->connector, NULL, 0);
		return 0;
	}
	if (dice(s, 8) == 0)
		return 0;
	return came_well(s, &s->second, ndx_connector_complete_connect(s->connector, &s->second));
}

static int go_passive(struct side *s)
{
	if (ndx_listener_get_connection_request(s->listener, s->connector, &s->first) !=
	    NDX_PENDING)
		return 0;
	/* the active side may have failed before it asked */
	if (ndx_overlapped_wait(&s->first, 20) == NDX_PENDING)
		(void)ndx_connector_cancel(s->connector);
	if (ndx_overlapped_status(&s->first) != NDX_OK)
		return 0;
	linger(s);
	if (dice(s, 8) == 0) {
		(void)ndx_connector_reject(s->connector, "no", 2);
		return 0;
	}
	if (dice(s, 8) == 0)
		return 0;
	return came_well(s, &s->second,
	                 ndx_connector_accept(
				 s->connector, s->qp,
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .inbound_read_limit = 4,
	                                                    .outbound_read_limit = 4},
				 &s->second));
}

static void live(struct side *s)
{
	s->came_up++;
	if (dice(s, 2) == 0)
		(void)ndx_connector_notify_disconnect(s->connector, &s->notify);
	for (unsigned i = dice(s, 6); i > 0; i--) {
		post_some(s);
		linger(s);
	}
	if (dice(s, 6) == 0)
		assert_int_equal(ndx_qp_flush(s->qp), NDX_OK);
	if (dice(s, 3) != 0 && ndx_connector_disconnect(s->connector, &s->end) == NDX_PENDING &&
	    dice(s, 3) != 0)
		(void)ndx_overlapped_wait(&s->end, NDX_INFINITE);
	post_some(s);
}

static void close_all(struct side *s)
{
	if (dice(s, 2) == 0) {
		ndx_qp_close(s->qp);
		ndx_connector_close(s->connector);
	} else {
		ndx_connector_close(s->connector);
		ndx_qp_close(s->qp);
	}
	/* exactly one result for every request, now that it is closed */
	take_all(s);
	assert_int_equal(s->taken, s->posted);
	assert_int_not_equal(ndx_overlapped_status(&s->first), NDX_PENDING);
	assert_int_not_equal(ndx_overlapped_status(&s->second), NDX_PENDING);
	assert_int_not_equal(ndx_overlapped_status(&s->notify), NDX_PENDING);
	assert_int_not_equal(ndx_overlapped_status(&s->end), NDX_PENDING);
	ndx_cq_close(s->cq);
}

static void make_all(struct side *s)
{
	struct ndx_connector_attr attr;
	struct ndx_qp_attr qp;

	ndx_connector_attr_init(&attr);
	attr.drain_timeout_ms = 1 + dice(s, 10);
	attr.disconnect_timeout_ms = 1000;
	ndx_qp_attr_init(&qp);
	qp.no_receive_timeout_ms = 1 + dice(s, 20);
	qp.receive_depth = DEPTH;
	qp.initiator_depth = DEPTH;
	assert_int_equal(ndx_connector_create(s->adapter, &attr, &s->connector), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(s->adapter, 1, &s->cq), NDX_OK);
	qp.receive_cq = s->cq;
	qp.initiator_cq = s->cq;
	assert_int_equal(ndx_qp_create(s->adapter, &qp, &s->qp), NDX_OK);
	s->posted = s->taken = 0;
	ndx_overlapped_init(&s->first);
	ndx_overlapped_init(&s->second);
	ndx_overlapped_init(&s->notify);
	ndx_overlapped_init(&s->end);
}

static void *play(void *arg)
{
	struct side *s = arg;

	make_all(s);
	if (dice(s, 2) == 0)
		post_some(s);
	if (s->listener != NULL ? go_passive(s) : go_active(s))
		live(s);
	close_all(s);
	return NULL;
}

static void open_side(struct side *s, const char *uri)
{
	assert_int_equal(ndx_adapter_open(uri, &s->adapter), NDX_OK);
	assert_int_equal(ndx_mr_register_new(s->adapter, s->memory, sizeof(s->memory),
	                                     NDX_MR_ALLOW_LOCAL_WRITE, &s->mr),
	                 NDX_OK);
}

static void nothing_hangs_or_is_left_behind(void **state)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	static struct side sides[2];
	struct side *a = &sides[0];
	struct side *b = &sides[1];
	pthread_t thread;

	(void)state;
	open_side(a, "loop:a");
	open_side(b, "loop:b");
	for (unsigned i = 0; i < ROUNDS; i++) {
		/* a listener for each round: requests that were not taken are refused with it */
		a->random = i * 2 + 1;
		b->random = i * 2 + 2;
		assert_int_equal(ndx_listen_on(b->adapter, (const struct sockaddr *)&any,
		                               sizeof(any), 0, &b->listener),
		                 NDX_OK);
		a->to_len = sizeof(a->to);
		assert_int_equal(ndx_listener_get_local_address(
					 b->listener, (struct sockaddr *)&a->to, &a->to_len),
		                 NDX_OK);
		assert_int_equal(pthread_create(&thread, NULL, play, a), 0);
		(void)play(b);
		ndx_listener_close(b->listener);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	print_message("%u and %u of %u connections came up\n", a->came_up, b->came_up, ROUNDS);
	assert_true(a->came_up > ROUNDS / 10);
	ndx_mr_close(a->mr);
	ndx_mr_close(b->mr);
	ndx_adapter_close(a->adapter);
	ndx_adapter_close(b->adapter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_hangs_or_is_left_behind),
	};

	return cmocka_run_group_tests_name("loop: chaos", tests, NULL, NULL);
}
