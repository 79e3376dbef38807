/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control thread that is late: its timers have run out, and what its connections were told before
 * that waits for it. What came in time counts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <ndx/log.h>
#include <ndx/ndx.h>
#include <ndx/stats.h>

#define PATIENCE_MS 10000u
#define LIMIT_MS 1500u /* enough to get the thread held before it is over */
#define DRAIN_MS 1000u

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;
	/* the control thread is held in a callback */
	struct ndx_overlapped callback;
	struct ndx_mr *mr;
	sem_t entered;
	sem_t released;
	char memory[64];
};

struct pair {
	struct end a;
	struct end b;
	struct ndx_listener *listener;
	struct sockaddr_in address;
};

static void open_end(struct end *e, const char *uri, uint32_t limit_ms)
{
	struct ndx_connector_attr how;
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_adapter_open(uri, &e->adapter), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(e->adapter, 16, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = e->cq;
	attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(e->adapter, &attr, &e->qp), NDX_OK);
	ndx_connector_attr_init(&how);
	how.connect_timeout_ms = limit_ms;
	how.drain_timeout_ms = DRAIN_MS;
	how.disconnect_timeout_ms = limit_ms;
	assert_int_equal(ndx_connector_create(e->adapter, &how, &e->connector), NDX_OK);
	assert_int_equal(ndx_mr_create(e->adapter, &e->mr), NDX_OK);
	assert_int_equal(sem_init(&e->entered, 0, 0), 0);
	assert_int_equal(sem_init(&e->released, 0, 0), 0);
}

static void close_end(struct end *e)
{
	ndx_mr_close(e->mr);
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
	(void)sem_destroy(&e->entered);
	(void)sem_destroy(&e->released);
}

static int open_pair(void **state, const char *uri, uint32_t limit_ms)
{
	static struct pair p;
	socklen_t len = sizeof(p.address);

	memset(&p, 0, sizeof(p));
	open_end(&p.a, uri, limit_ms);
	open_end(&p.b, uri, limit_ms);
	p.address = (struct sockaddr_in){.sin_family = AF_INET};
	p.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(ndx_listen_on(p.b.adapter, (const struct sockaddr *)&p.address, len, 0,
	                               &p.listener),
	                 NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(p.listener, (struct sockaddr *)&p.address, &len),
		NDX_OK);
	*state = &p;
	return 0;
}

static int up(void **state)
{
	return open_pair(state, "loop", LIMIT_MS);
}

/* What the provider reports comes as late as from a busy device. */
static int up_slowly(void **state)
{
	return open_pair(state, "fault:loop?fault_event_delay=1000", PATIENCE_MS);
}

static int down(void **state)
{
	struct pair *p = *state;

	ndx_listener_close(p->listener);
	close_end(&p->a);
	close_end(&p->b);
	return 0;
}

static void completes(struct ndx_overlapped *ov)
{
	assert_int_equal(ndx_overlapped_wait(ov, PATIENCE_MS), NDX_OK);
}

/* ---- holding a control thread ---- */

static void await(sem_t *sem)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	while (sem_timedwait(sem, &until) != 0)
		assert_int_equal(errno, EINTR);
}

static void stay(struct ndx_overlapped *ov)
{
	struct end *e = ov->context;

	(void)sem_post(&e->entered);
	while (sem_wait(&e->released) != 0)
		continue;
}

static void hold_thread(struct end *e)
{
	e->callback.callback = stay;
	e->callback.context = e;
	assert_int_equal(ndx_mr_register(e->mr, e->memory, sizeof(e->memory), 0, &e->callback),
	                 NDX_PENDING);
	await(&e->entered);
}

static void release(struct end *e)
{
	(void)sem_post(&e->released);
}

/* Until its control thread has done what it was asked for before. */
static void await_jobs(const struct end *e)
{
	struct ndx_mr *mr;

	assert_int_equal(ndx_mr_create(e->adapter, &mr), NDX_OK);
	assert_int_equal(ndx_mr_cancel(mr), NDX_OK);
	ndx_mr_close(mr);
}

/* The timer that was set before has run out. */
static void let_time_pass(void)
{
	(void)poll(NULL, 0, LIMIT_MS + 50);
}

/* ---- cases ---- */

static void ask(struct pair *p)
{
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp,
	                                       (const struct sockaddr *)&p->address,
	                                       sizeof(p->address), NULL, &p->a.ov),
	                 NDX_PENDING);
	completes(&p->b.ov);
}

static void accept_it(struct pair *p)
{
	assert_int_equal(ndx_connector_accept(p->b.connector, p->b.qp, NULL, &p->b.ov),
	                 NDX_PENDING);
}

static void complete(struct pair *p)
{
	completes(&p->a.ov);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	completes(&p->a.ov);
	completes(&p->b.ov);
}

static void an_answer_that_came_in_time_counts(void **state)
{
	struct pair *p = *state;

	ask(p);
	hold_thread(&p->a);
	accept_it(p);
	await_jobs(&p->b);
	let_time_pass();
	release(&p->a);
	complete(p);
}

static bool has_entered(const struct end *e, const char *name)
{
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;

	assert_int_equal(ndx_connector_get_history(e->connector, list, &count, NULL), NDX_OK);
	return count > 0 && strncmp(list[count - 1].to, name, strlen(name)) == 0;
}

static void a_goodbye_that_came_in_time_counts(void **state)
{
	struct pair *p = *state;

	ask(p);
	accept_it(p);
	complete(p);
	hold_thread(&p->b);
	assert_int_equal(ndx_connector_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	for (unsigned ms = 0; !has_entered(&p->a, "WAIT") && ms < PATIENCE_MS; ms++)
		(void)poll(NULL, 0, 1);
	hold_thread(&p->a);
	release(&p->b);
	await_jobs(&p->b);
	assert_int_equal(ndx_connector_get_disconnect_reason(p->b.connector),
	                 NDX_DISCONNECT_GRACEFUL);
	let_time_pass();
	release(&p->a);
	completes(&p->a.ov);
	assert_int_equal(ndx_connector_get_disconnect_reason(p->a.connector),
	                 NDX_DISCONNECT_GRACEFUL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

static void count_leaks(void *arg, const struct ndx_log_record *record)
{
	if (strstr(record->text, "leaked") != NULL)
		(void)__atomic_add_fetch((uint32_t *)arg, 1, __ATOMIC_RELAXED);
}

static void close_qp(struct ndx_overlapped *ov)
{
	struct end *e = ov->context;

	ndx_qp_close(e->qp);
	e->qp = NULL;
	(void)sem_post(&e->entered);
}

/* Both goodbyes have been said, and the provider waits for the device when a callback closes. */
static void a_close_in_a_callback_ends_what_the_device_holds(void **state)
{
	struct pair *p = *state;
	struct ndx_result result;
	uint32_t leaks = 0;

	ask(p);
	accept_it(p);
	complete(p);
	assert_int_equal(ndx_qp_receive(p->a.qp, NULL, NULL, 0), NDX_OK);
	ndx_log_set_sink(count_leaks, &leaks, NDX_LOG_ERROR);
	assert_int_equal(ndx_connector_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(ndx_connector_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
	while (!has_entered(&p->a, "FINISH"))
		assert_int_equal(ndx_overlapped_status(&p->a.ov), NDX_PENDING);
	p->a.callback.callback = close_qp;
	p->a.callback.context = &p->a;
	assert_int_equal(
		ndx_mr_register(p->a.mr, p->a.memory, sizeof(p->a.memory), 0, &p->a.callback),
		NDX_PENDING);
	await(&p->a.entered);
	assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 1);
	assert_int_equal(result.status, NDX_E_CANCELED);
	completes(&p->a.ov);
	completes(&p->b.ov);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_int_equal(leaks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_answer_that_came_in_time_counts),
		CASE(a_goodbye_that_came_in_time_counts),
		cmocka_unit_test_setup_teardown(a_close_in_a_callback_ends_what_the_device_holds,
	                                        up_slowly, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
