/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The front door between threads: what one thread closes, cancels or completes while another one is
 * just about to use it. On the in-process provider, some of whose operations are wrapped so that
 * the other thread always comes at the worst moment.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include <ndx/ndx.h>

#include <ndx/spi/completion_queue.h>
#include <ndx/spi/system.h>
#include "connection.h"
#include "pair.h"

#define DRAIN_MS 100u

static void nothing(void *arg)
{
	(void)arg;
}

/* What was asked of the adapter before has been done when this returns. */
static void await_jobs(struct ndx_adapter *adapter)
{
	ndxp_loop_call(adapter->loop, nothing, NULL);
}

/* ---- a request that comes while its listener is being closed ---- */

static struct {
	const struct ndx_provider_ops *ops;
	const struct pair *pair;
	struct end *late;
	enum ndx_status begun;
} crossing;

static void *send_late_request(void *arg)
{
	crossing.begun = pair_connect(crossing.late, &crossing.pair->address);
	await_jobs(crossing.pair->b);
	return arg;
}

static void destroy_behind_a_request(struct ndx_spi_listener *listener)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, send_late_request, NULL), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	crossing.ops->listener_destroy(listener);
}

static void request_that_crosses_the_close_of_its_listener_is_refused(void **state)
{
	struct pair *p = *state;
	struct ndx_provider_ops ops = *p->a->ops;
	struct end late;

	p->listener = pair_listen(p->a, 0, &p->address);
	pair_make_end(p->b, DRAIN_MS, &late);
	crossing.ops = p->a->ops;
	crossing.pair = p;
	crossing.late = &late;
	ops.listener_destroy = destroy_behind_a_request;
	p->a->ops = &ops;
	ndx_listener_close(p->listener);
	p->listener = NULL;
	p->a->ops = crossing.ops;
	assert_int_equal(crossing.begun, NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&late.ov, PATIENCE_MS), NDX_E_CONNECTION_REFUSED);
	pair_drop_end(&late);
}

/* ---- closing in a callback of another adapter ---- */

static void connect_ends(const struct pair *p, struct end *active, struct end *passive)
{
	pair_make_end(p->b, DRAIN_MS, active);
	pair_make_end(p->a, DRAIN_MS, passive);
	assert_int_equal(
		ndx_listener_get_connection_request(p->listener, passive->connector, &passive->ov),
		NDX_PENDING);
	assert_int_equal(pair_connect(active, &p->address), NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&passive->ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_accept(passive->connector, passive->qp, NULL, &passive->ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&active->ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_complete_connect(active->connector, &active->ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&active->ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&passive->ov, PATIENCE_MS), NDX_OK);
}

static struct {
	struct ndx_adapter *adapter;
	struct end *end;
	uint32_t done;
	uint64_t took_ns;
} closing;

/* On A's thread: everything of B goes, and the goodbye needs A's timers to be answered. */
static void close_the_other_adapter(struct ndx_overlapped *ov)
{
	const uint64_t begun = ndxp_now_ns();

	(void)ov;
	pair_drop_end(closing.end);
	ndx_adapter_close(closing.adapter);
	closing.took_ns = ndxp_now_ns() - begun;
	__atomic_store_n(&closing.done, 1, __ATOMIC_RELEASE);
	ndxp_futex_wake(&closing.done, 1);
}

static void await_closing(void)
{
	const uint64_t deadline = ndxp_deadline(PATIENCE_MS);

	while (__atomic_load_n(&closing.done, __ATOMIC_ACQUIRE) == 0 && ndxp_now_ns() < deadline)
		ndxp_futex_wait(&closing.done, 0, deadline);
	assert_int_equal(closing.done, 1);
}

static void adapter_is_closed_in_a_callback_of_its_peer_without_waiting_for_it(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped ask = {.callback = close_the_other_adapter};
	struct end active;
	struct end passive;

	p->listener = pair_listen(p->a, 0, &p->address);
	connect_ends(p, &active, &passive);
	assert_int_equal(ndx_qp_send(passive.qp, NULL, NULL, 0, 0), NDX_OK);
	closing.adapter = p->b;
	closing.end = &active;
	closing.done = 0;
	p->b = NULL;
	assert_int_equal(ndx_cq_notify(passive.cq, NDX_CQ_NOTIFY_ANY, &ask), NDX_PENDING);
	assert_int_equal(ndx_cq_cancel(passive.cq), NDX_OK);
	await_closing();
	assert_true(closing.took_ns < 2000000000u);
	/* the goodbye goes on behind it and arrives */
	assert_int_equal(ndx_connector_notify_disconnect(passive.connector, &passive.ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&passive.ov, PATIENCE_MS), NDX_OK);
	assert_int_equal(passive.ov.information, NDX_DISCONNECT_GRACEFUL);
	pair_drop_end(&passive);
}

/* ---- failures that the control thread decides ---- */

static void the_caller_gets_the_control_threads_error_text(void **state)
{
	struct pair *p = *state;
	struct ndx_connector *connector;

	assert_int_equal(ndx_listener_create(p->a, &p->listener), NDX_OK);
	assert_int_equal(ndx_listener_listen(p->listener, 0), NDX_E_INVALID_DEVICE_STATE);
	assert_non_null(strstr(ndx_last_error(), "ndx_listener_listen"));
	assert_int_equal(ndx_connector_create(p->a, NULL, &connector), NDX_OK);
	assert_int_equal(ndx_connector_reject(connector, NULL, 0), NDX_E_CONNECTION_INVALID);
	assert_non_null(strstr(ndx_last_error(), "ndx_connector_reject"));
	ndx_connector_close(connector);
}

/* ---- a connect that its queue pair leaves ---- */

static void connect_that_was_cancelled_by_its_queue_pair_may_be_tried_again(void **state)
{
	struct pair *p = *state;
	struct ndx_qp_attr attr;
	struct end e;

	p->listener = pair_listen(p->a, 0, &p->address);
	pair_make_end(p->b, DRAIN_MS, &e);
	assert_int_equal(pair_connect(&e, &p->address), NDX_PENDING);
	assert_int_equal(ndx_qp_flush(e.qp), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&e.ov, PATIENCE_MS), NDX_E_CANCELED);
	assert_int_equal(pair_connect(&e, &p->address), NDX_PENDING);
	ndx_qp_close(e.qp);
	assert_int_equal(ndx_overlapped_wait(&e.ov, PATIENCE_MS), NDX_E_CANCELED);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = e.cq;
	attr.initiator_cq = e.cq;
	assert_int_equal(ndx_qp_create(p->b, &attr, &e.qp), NDX_OK);
	assert_int_equal(pair_connect(&e, &p->address), NDX_PENDING);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	assert_int_equal(ndx_overlapped_wait(&e.ov, PATIENCE_MS), NDX_E_CONNECTION_REFUSED);
	pair_drop_end(&e);
}

/* ---- what a stack may not have ---- */

static void an_rnr_timer_needs_a_stack_that_has_one(void **state)
{
	struct pair *p = *state;
	struct ndx_qp_attr attr;
	struct ndx_qp *qp = NULL;
	struct ndx_cq *cq;

	assert_int_equal(ndx_cq_create_depth(p->a, 16, &cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = cq;
	attr.rnr_timer = 31;
	assert_int_equal(ndx_qp_create(p->a, &attr, &qp), NDX_E_NOT_SUPPORTED);
	assert_non_null(strstr(ndx_last_error(), "rnr_timer 31: loop has no such timer"));
	p->a->info.capabilities |= NDX_CAP_RNR_TIMER;
	attr.rnr_timer = 32;
	assert_int_equal(ndx_qp_create(p->a, &attr, &qp), NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "rnr_timer 32"));
	attr.rnr_timer = 0;
	assert_int_equal(ndx_qp_create(p->a, &attr, &qp), NDX_OK);
	ndx_qp_close(qp);
	ndx_cq_close(cq);
}

/* ---- a completion queue that failed ---- */

static void waiting_for_results_of_a_failed_queue_says_so(void **state)
{
	struct pair *p = *state;
	struct ndx_result result;
	struct ndx_cq *cq;
	size_t got = 7;

	assert_int_equal(ndx_cq_create_depth(p->a, 16, &cq), NDX_OK);
	ndxp_cq_fail(ndxp_cq_of(cq), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(ndx_cq_wait_results(cq, &result, 1, 500, &got), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(got, 0);
	ndx_cq_close(cq);
}

/* ---- several threads that wait at one completion queue, for one result each ---- */

#define WAITERS 3u

static struct {
	bool on;
	struct ndx_cq *cq;
	uint32_t asleep;
	uint32_t awake; /* so many may look at the descriptor */
	uint32_t through;
	uint32_t served;
	uint32_t overslept;
} waiting;

static void await_count(const uint32_t *count, uint32_t wanted)
{
	const uint64_t deadline = ndxp_deadline(PATIENCE_MS);

	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < wanted && ndxp_now_ns() < deadline)
		(void)sched_yield();
}

int __real_poll(struct pollfd *fds, nfds_t count, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms);

/* In place of poll(): the sleepers wake one after the other. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int ms)
{
	int n;

	if (waiting.on)
		await_count(&waiting.awake,
		            __atomic_add_fetch(&waiting.asleep, 1, __ATOMIC_ACQ_REL));
	n = __real_poll(fds, count, ms);
	if (waiting.on && n == 0)
		__atomic_fetch_add(&waiting.overslept, 1, __ATOMIC_RELAXED);
	return n;
}

static void *wait_for_one(void *arg)
{
	struct ndx_result result;
	size_t got;

	if (ndx_cq_wait_results(waiting.cq, &result, 1, PATIENCE_MS, &got) == NDX_OK)
		__atomic_fetch_add(&waiting.served, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waiting.through, 1, __ATOMIC_RELEASE);
	return arg;
}

static void every_thread_that_waits_for_a_result_gets_one(void **state)
{
	static const struct ndx_result result = {.request_type = NDX_REQUEST_SEND};
	struct pair *p = *state;
	pthread_t threads[WAITERS];

	assert_int_equal(ndx_cq_create_depth(p->a, 16, &waiting.cq), NDX_OK);
	assert_int_equal(ndxp_cq_attach(ndxp_cq_of(waiting.cq), WAITERS), NDX_OK);
	waiting.on = true;
	for (uint32_t i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_one, NULL), 0);
	await_count(&waiting.asleep, WAITERS);
	for (uint32_t i = 0; i < WAITERS; i++)
		ndxp_cq_push(ndxp_cq_of(waiting.cq), NULL, &result);
	for (uint32_t i = 1; i <= WAITERS; i++) {
		__atomic_store_n(&waiting.awake, i, __ATOMIC_RELEASE);
		await_count(&waiting.through, i);
	}
	for (uint32_t i = 0; i < WAITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	waiting.on = false;
	assert_int_equal(waiting.served, WAITERS);
	assert_int_equal(waiting.overslept, 0);
	ndx_cq_close(waiting.cq);
}

/* ---- a connector whose connection has ended ---- */

static void connector_of_a_connection_that_ended_is_of_no_use_for_connect(void **state)
{
	struct pair *p = *state;
	struct end active;
	struct end passive;
	struct end fresh;

	p->listener = pair_listen(p->a, 0, &p->address);
	connect_ends(p, &active, &passive);
	pair_make_end(p->b, DRAIN_MS, &fresh);
	assert_int_equal(ndx_connector_connect(active.connector, fresh.qp,
	                                       (const struct sockaddr *)&p->address,
	                                       sizeof(p->address), NULL, &active.ov),
	                 NDX_E_CONNECTION_ACTIVE);
	assert_int_equal(ndx_disconnect(active.connector, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_connect(active.connector, fresh.qp,
	                                       (const struct sockaddr *)&p->address,
	                                       sizeof(p->address), NULL, &active.ov),
	                 NDX_E_INVALID_DEVICE_STATE);
	/* Nor is its queue pair, which is told apart from one that is in use. */
	assert_int_equal(ndx_connector_connect(fresh.connector, active.qp,
	                                       (const struct sockaddr *)&p->address,
	                                       sizeof(p->address), NULL, &fresh.ov),
	                 NDX_E_CONNECTION_ACTIVE);
	assert_non_null(
		strstr(ndx_last_error(), "the queue pair was connected before; create a new one"));
	pair_drop_end(&active);
	pair_drop_end(&passive);
	pair_drop_end(&fresh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			request_that_crosses_the_close_of_its_listener_is_refused, pair_open,
			pair_close),
		cmocka_unit_test_setup_teardown(
			adapter_is_closed_in_a_callback_of_its_peer_without_waiting_for_it,
			pair_open, pair_close),
		cmocka_unit_test_setup_teardown(the_caller_gets_the_control_threads_error_text,
	                                        pair_open, pair_close),
		cmocka_unit_test_setup_teardown(an_rnr_timer_needs_a_stack_that_has_one, pair_open,
	                                        pair_close),
		cmocka_unit_test_setup_teardown(
			connect_that_was_cancelled_by_its_queue_pair_may_be_tried_again, pair_open,
			pair_close),
		cmocka_unit_test_setup_teardown(waiting_for_results_of_a_failed_queue_says_so,
	                                        pair_open, pair_close),
		cmocka_unit_test_setup_teardown(every_thread_that_waits_for_a_result_gets_one,
	                                        pair_open, pair_close),
		cmocka_unit_test_setup_teardown(
			connector_of_a_connection_that_ended_is_of_no_use_for_connect, pair_open,
			pair_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
