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
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <ndx/ndx.h>

#include "base_linux.h"
#include "core.h"

/* Nothing here takes so long; a wait that does is a failure. */
#define PATIENCE_MS 10000u

/* Two adapters of one process; A listens. */
struct pair {
	struct ndx_adapter *a;
	struct ndx_adapter *b;
	struct ndx_listener *listener;
	struct sockaddr_in address;
};

/* One end: what it takes to connect. */
struct end {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;
};

static void listen_a(struct pair *p)
{
	socklen_t len = sizeof(p->address);

	p->address = (struct sockaddr_in){.sin_family = AF_INET};
	p->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(
		ndx_listen_on(p->a, (const struct sockaddr *)&p->address, len, 0, &p->listener),
		NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(p->listener, (struct sockaddr *)&p->address, &len),
		NDX_OK);
}

static int open_pair(void **state)
{
	static struct pair pair;

	memset(&pair, 0, sizeof(pair));
	*state = &pair;
	if (ndx_adapter_open("loop", &pair.a) != NDX_OK)
		return -1;
	return ndx_adapter_open("loop", &pair.b) == NDX_OK ? 0 : -1;
}

static int close_pair(void **state)
{
	struct pair *p = *state;

	ndx_listener_close(p->listener);
	ndx_adapter_close(p->a);
	ndx_adapter_close(p->b);
	return 0;
}

static void make_end(struct ndx_adapter *adapter, struct end *e)
{
	struct ndx_qp_attr attr;

	memset(e, 0, sizeof(*e));
	ndx_qp_attr_init(&attr);
	assert_int_equal(ndx_cq_create(adapter, 16, 0, 0, &e->cq), NDX_OK);
	attr.receive_cq = e->cq;
	attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(adapter, &attr, &e->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(adapter, NULL, &e->connector), NDX_OK);
}

static void drop_end(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
}

static enum ndx_status begin_connect(const struct pair *p, struct end *e)
{
	return ndx_connector_connect(e->connector, e->qp, (const struct sockaddr *)&p->address,
	                             sizeof(p->address), 0, 0, NULL, 0, &e->ov);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* What was asked of the adapter before has been done when this returns. */
static void settle(struct ndx_adapter *adapter)
{
	base_loop_call(adapter->loop, nothing, NULL);
}

/* ---- a request that comes while its listener is being closed ---- */

static struct {
	const struct ndx_provider_ops *ops;
	const struct pair *pair;
	struct end *late;
	enum ndx_status begun;
} crossing;

static void destroy_behind_a_request(struct ndx_spi_listener *listener)
{
	crossing.begun = begin_connect(crossing.pair, crossing.late);
	settle(crossing.pair->b);
	crossing.ops->listener_destroy(listener);
}

static void request_that_crosses_the_close_of_its_listener_is_refused(void **state)
{
	struct pair *p = *state;
	struct ndx_provider_ops ops = *p->a->ops;
	struct end late;

	listen_a(p);
	make_end(p->b, &late);
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
	drop_end(&late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			request_that_crosses_the_close_of_its_listener_is_refused, open_pair,
			close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
