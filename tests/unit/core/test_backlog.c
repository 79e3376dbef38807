/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners whose backlog is full: what an arrival costs, and what leaves in which order. On the
 * in-process provider, whose answers are counted. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <stdbool.h>
#include <string.h>

#include <ndx/ndx.h>

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

/* ---- what an arrival costs ---- */

#define BACKLOG 200
#define LOOKS 16 /* what listener.h promises */

static struct {
	const struct ndx_provider_ops *ops;
	unsigned looks;
} backlog;

static bool count_looks(const struct ndx_spi_request *request)
{
	backlog.looks++;
	return backlog.ops->request_is_stale(request);
}

/* How many it takes until one is let in: `end`'s connector asks again and again. */
static unsigned ask_until_let_in(const struct pair *p, struct end *e)
{
	for (unsigned asked = 1; asked <= BACKLOG; asked++) {
		assert_int_equal(pair_connect(e, &p->address), NDX_PENDING);
		await_jobs(p->b);
		await_jobs(p->a);
		await_jobs(p->b);
		if (ndx_overlapped_status(&e->ov) == NDX_PENDING)
			return asked;
		assert_int_equal(ndx_overlapped_wait(&e->ov, 0), NDX_E_CONNECTION_REFUSED);
	}
	return UINT32_MAX;
}

static void an_arrival_at_a_full_backlog_costs_the_same_however_many_wait(void **state)
{
	struct pair *p = *state;
	static struct ndx_provider_ops ops;
	static struct end ends[BACKLOG];
	static struct end late;

	backlog.ops = p->a->ops;
	ops = *p->a->ops;
	ops.request_is_stale = count_looks;
	p->a->ops = &ops;
	p->listener = pair_listen(p->a, BACKLOG, &p->address);
	for (unsigned i = 0; i < BACKLOG; i++) {
		pair_make_end(p->b, DRAIN_MS, &ends[i]);
		assert_int_equal(pair_connect(&ends[i], &p->address), NDX_PENDING);
	}
	await_jobs(p->b);
	await_jobs(p->a);
	pair_make_end(p->b, DRAIN_MS, &late);
	backlog.looks = 0;
	assert_int_equal(pair_connect(&late, &p->address), NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&late.ov, PATIENCE_MS), NDX_E_CONNECTION_REFUSED);
	assert_in_range(backlog.looks, 1, LOOKS);
	/* Wherever the one waits that has given up, it is found in as many steps as that takes. */
	assert_int_equal(ndx_connector_cancel(ends[BACKLOG - 3].connector), NDX_OK);
	backlog.looks = 0;
	assert_in_range(ask_until_let_in(p, &late), BACKLOG / LOOKS - 2, BACKLOG / LOOKS + 1);
	assert_in_range(backlog.looks, 1, BACKLOG);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	p->a->ops = backlog.ops;
	for (unsigned i = 0; i < BACKLOG; i++)
		pair_drop_end(&ends[i]);
	pair_drop_end(&late);
}

/* ---- what leaves a full backlog, in which order ---- */

#define MANY 48
#define FEW 24 /* of them fit into the backlog */
#define STEPS 3000

struct asker {
	struct end end;
	uint32_t serial; /* of its latest request */
	bool asks;
};

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void ask_as(const struct pair *p, struct asker *a, uint32_t serial)
{
	a->serial = serial;
	a->asks = true;
	assert_int_equal(ndx_connector_connect(
				 a->end.connector, a->end.qp, (const struct sockaddr *)&p->address,
				 sizeof(p->address),
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .private_data = &serial,
	                                                    .private_data_len = sizeof(serial),
	                                                    .inbound_read_limit = 0,
	                                                    .outbound_read_limit = 0},
				 &a->end.ov),
	                 NDX_PENDING);
	await_jobs(p->b);
	await_jobs(p->a);
	await_jobs(p->b);
	if (ndx_overlapped_status(&a->end.ov) != NDX_PENDING) {
		assert_int_equal(ndx_overlapped_wait(&a->end.ov, 0), NDX_E_CONNECTION_REFUSED);
		a->asks = false;
	}
}

static void give_up_as(struct asker *a)
{
	assert_int_equal(ndx_connector_cancel(a->end.connector), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&a->end.ov, PATIENCE_MS), NDX_E_CANCELED);
	a->asks = false;
}

/* The oldest that waits, which may have given up; no attempt that still waits was passed over. */
static void take_one(const struct pair *p, struct asker *askers, uint32_t *last)
{
	struct ndx_overlapped ov = {0};
	struct ndx_connector *taker;
	uint32_t serial = 0;
	size_t len = sizeof(serial);

	assert_int_equal(ndx_connector_create(p->a, NULL, &taker), NDX_OK);
	assert_int_equal(ndx_listener_get_connection_request(p->listener, taker, &ov), NDX_PENDING);
	await_jobs(p->a);
	if (ndx_overlapped_status(&ov) == NDX_OK &&
	    ndx_connector_get_private_data(taker, &serial, &len) == NDX_OK) {
		assert_true(serial > *last);
		for (unsigned i = 0; i < MANY; i++)
			assert_false(askers[i].asks && askers[i].serial < serial);
		*last = serial;
		(void)ndx_connector_reject(taker, NULL, 0);
	}
	ndx_connector_close(taker);
	await_jobs(p->b);
	for (unsigned i = 0; i < MANY; i++) {
		if (askers[i].asks && ndx_overlapped_status(&askers[i].end.ov) != NDX_PENDING)
			askers[i].asks = false;
	}
}

static void requests_leave_a_full_backlog_in_order(void **state)
{
	static struct asker askers[MANY];
	struct pair *p = *state;
	uint32_t seed = (uint32_t)ndxp_now_ns();
	uint32_t serial = 0;
	uint32_t last = 0;

	print_message("seed %u\n", seed);
	p->listener = pair_listen(p->a, FEW, &p->address);
	for (unsigned i = 0; i < MANY; i++)
		pair_make_end(p->b, DRAIN_MS, &askers[i].end);
	for (unsigned step = 0; step < STEPS; step++) {
		struct asker *a = &askers[next_random(&seed) % MANY];
		const uint32_t what = next_random(&seed) % 8;

		if (what == 0)
			take_one(p, askers, &last);
		else if (!a->asks)
			ask_as(p, a, ++serial);
		else if (what < 5)
			give_up_as(a);
	}
	ndx_listener_close(p->listener);
	p->listener = NULL;
	for (unsigned i = 0; i < MANY; i++)
		pair_drop_end(&askers[i].end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_arrival_at_a_full_backlog_costs_the_same_however_many_wait, pair_open,
			pair_close),
		cmocka_unit_test_setup_teardown(requests_leave_a_full_backlog_in_order, pair_open,
	                                        pair_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
