/* SPDX-License-Identifier: BSD-2-Clause */
/* No callback runs in a callback: what follows instead, and what is complete nevertheless. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base_callbacks.h"
#include <ndx/spi/system.h>
#include "base_loop.h"
#include "base_ov.h"
#include "loop_rig.h"

#define PATIENCE_MS 10000

static void begin_ov(struct ndx_overlapped *ov)
{
	assert_int_equal(base_ov_begin(ov, loop), NDX_OK);
}

static void complete(void *arg)
{
	base_ov_complete(arg, NDX_OK, 0, 0);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* ---- each callback ends the next operation ---- */

#define CHAIN 40000

static struct chain {
	struct ndx_overlapped ovs[CHAIN];
	unsigned calls;
	bool inside;
	bool nested;
	bool overtaken;
	uint32_t over;
} chain;

static void end_the_next(struct ndx_overlapped *ov)
{
	const bool outer = chain.inside;

	chain.overtaken = chain.overtaken || ov != &chain.ovs[chain.calls];
	chain.nested = chain.nested || outer;
	chain.inside = true;
	if (++chain.calls < CHAIN && !chain.nested)
		ndxp_loop_call(loop, complete, &chain.ovs[chain.calls]);
	chain.inside = outer;
	if (chain.calls == CHAIN || chain.nested)
		set_word(&chain.over);
}

static void a_chain_of_callbacks_does_not_nest(void **state)
{
	(void)state;
	for (size_t i = 0; i < CHAIN; i++) {
		chain.ovs[i].callback = end_the_next;
		begin_ov(&chain.ovs[i]);
	}
	ndxp_loop_call(loop, complete, &chain.ovs[0]);
	assert_true(await(&chain.over, PATIENCE_MS));
	ndxp_loop_call(loop, nothing, NULL); /* the last has returned */
	assert_false(chain.nested);
	assert_false(chain.overtaken);
	assert_int_equal(chain.calls, CHAIN);
}

/* ---- what has no callback is complete on return ---- */

struct ends {
	struct ndx_overlapped outer;
	struct ndx_overlapped called; /* by callback */
	struct ndx_overlapped earlier;
	struct ndx_overlapped others;
	struct ndx_overlapped own;
	enum ndx_status before; /* of `earlier`, in the callback */
	enum ndx_status after;
	enum ndx_status of_others;
	enum ndx_status of_own;
	enum ndx_status of_called;
	uint32_t over;
};

enum { OTHERS = 0x12, OWN = 0x21, OWN_MASK = 0xf0 };

static void note_called(struct ndx_overlapped *ov)
{
	struct ends *e = ov->context;

	set_word(&e->over);
}

static void end_own(void *arg)
{
	struct ends *e = arg;

	base_loop_hurry(loop, OWN_MASK, OWN & OWN_MASK);
	e->after = ndx_overlapped_status(&e->earlier);
	base_ov_complete_behind(&e->called, OWN, NDX_E_CANCELED, 0, 0);
	base_ov_complete_behind(&e->own, OWN, NDX_E_CANCELED, 0, 0);
}

static void end_in_it(struct ndx_overlapped *ov)
{
	struct ends *e = ov->context;

	e->before = ndx_overlapped_status(&e->earlier);
	ndxp_loop_call(loop, end_own, e);
	e->of_own = ndx_overlapped_status(&e->own);
	e->of_called = ndx_overlapped_status(&e->called);
	e->of_others = ndx_overlapped_status(&e->others);
}

static void end_all(void *arg)
{
	struct ends *e = arg;

	base_ov_complete(&e->outer, NDX_OK, 0, 0);
	base_ov_complete_behind(&e->earlier, OWN, NDX_OK, 0, 0);
	base_ov_complete_behind(&e->others, OTHERS, NDX_OK, 0, 0);
}

static void what_ends_in_a_callback_is_complete_unless_it_has_one(void **state)
{
	struct ends e = {.outer = {.callback = end_in_it, .context = &e},
	                 .called = {.callback = note_called, .context = &e}};

	(void)state;
	begin_ov(&e.outer);
	begin_ov(&e.called);
	begin_ov(&e.earlier);
	begin_ov(&e.others);
	begin_ov(&e.own);
	ndxp_loop_call(loop, end_all, &e);
	assert_true(await(&e.over, PATIENCE_MS));
	assert_int_equal(e.before, NDX_PENDING); /* its order: behind the outer callback */
	assert_int_equal(e.after, NDX_OK);
	assert_int_equal(e.of_own, NDX_E_CANCELED);
	assert_int_equal(e.of_called, NDX_PENDING);
	assert_int_equal(e.of_others, NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&e.others, PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&e.called), NDX_E_CANCELED);
}

/* ---- a thread calls a loop that is in a callback, which waits for another loop ---- */

struct crossing {
	struct ndx_loop *other;
	struct ndx_overlapped outer;
	struct ndx_overlapped inner;
	uint32_t outer_waits; /* for the other loop */
	uint32_t served;
	bool outer_returned;
	bool nested;
	unsigned calls; /* of the inner callback */
	unsigned back;  /* calls to this loop by the other one */
};

static void come_back(void *arg)
{
	struct crossing *x = arg;

	x->back++;
}

/* The other loop: until this one has done what a thread asked for. */
static void await_served(void *arg)
{
	struct crossing *x = arg;

	set_word(&x->outer_waits);
	(void)await(&x->served, PATIENCE_MS);
	/* The waiting thread is in a callback: nothing may wait until that returns. */
	ndxp_loop_call(loop, come_back, x);
}

static void wait_for_the_other(struct ndx_overlapped *ov)
{
	struct crossing *x = ov->context;

	ndxp_loop_call(x->other, await_served, x);
	x->outer_returned = true;
}

static void be_called(struct ndx_overlapped *ov)
{
	struct crossing *x = ov->context;

	x->nested = !x->outer_returned;
	x->calls++;
}

static void serve(void *arg)
{
	struct crossing *x = arg;

	base_ov_complete(&x->inner, NDX_OK, 0, 0);
	set_word(&x->served);
}

static void a_call_waits_for_its_callbacks_while_the_loop_is_in_one(void **state)
{
	struct crossing x = {.outer = {.callback = wait_for_the_other, .context = &x},
	                     .inner = {.callback = be_called, .context = &x}};

	(void)state;
	assert_int_equal(base_loop_create("ndx-test2", &x.other), NDX_OK);
	begin_ov(&x.outer);
	begin_ov(&x.inner);
	base_ov_complete(&x.outer, NDX_OK, 0, 0);
	assert_true(await(&x.outer_waits, PATIENCE_MS));
	ndxp_loop_call(loop, serve, &x);
	assert_int_equal(x.calls, 1);
	assert_false(x.nested);
	assert_int_equal(x.back, 1);
	base_loop_destroy(x.other, NULL, NULL);
}

/* ---- the queue ---- */

static struct ndx_overlapped *take_next(struct base_callbacks *q)
{
	return base_callbacks_take(q, q->places);
}

static void places_may_wrap(void **state)
{
	struct base_callbacks q = {.places = UINTPTR_MAX - 1};
	struct ndx_overlapped ovs[6];

	(void)state;
	memset(ovs, 0, sizeof(ovs));
	for (size_t i = 0; i < 5; i++) {
		if (i % 2 == 0)
			base_callbacks_add(&q, &ovs[i]);
		else
			base_callbacks_add_behind(&q, &ovs[i], 1);
	}
	assert_ptr_equal(base_callbacks_take(&q, UINTPTR_MAX), &ovs[0]);
	assert_null(base_callbacks_take(&q, UINTPTR_MAX));
	for (size_t i = 1; i < 5; i++)
		assert_ptr_equal(take_next(&q), &ovs[i]);
	assert_true(base_callbacks_empty(&q));
	assert_null(take_next(&q));
}

static void some_leave_the_queue_in_order(void **state)
{
	const struct base_callbacks_which odd = {.mask = 1, .of = 1};
	struct base_callbacks_which late = {.late = true};
	struct ndx_overlapped ovs[8];
	struct base_callbacks q = {0};
	struct ndxp_ov_list out = {0};

	(void)state;
	memset(ovs, 0, sizeof(ovs));
	base_callbacks_add(&q, &ovs[0]);
	for (uintptr_t i = 1; i < 7; i++)
		base_callbacks_add_behind(&q, &ovs[i], i);
	base_callbacks_add(&q, &ovs[7]);
	base_callbacks_pick(&q, &odd, &out);
	for (size_t i = 1; i < 7; i += 2)
		assert_ptr_equal(ndxp_ov_pop(&out), &ovs[i]);
	assert_null(ndxp_ov_pop(&out));
	late.since = 5;
	base_callbacks_pick(&q, &late, &out);
	assert_ptr_equal(ndxp_ov_pop(&out), &ovs[6]);
	assert_null(ndxp_ov_pop(&out));
	assert_ptr_equal(take_next(&q), &ovs[0]);
	assert_ptr_equal(take_next(&q), &ovs[2]);
	assert_ptr_equal(take_next(&q), &ovs[4]);
	assert_ptr_equal(take_next(&q), &ovs[7]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_of_callbacks_does_not_nest),
		cmocka_unit_test(what_ends_in_a_callback_is_complete_unless_it_has_one),
		cmocka_unit_test(a_call_waits_for_its_callbacks_while_the_loop_is_in_one),
		cmocka_unit_test(places_may_wrap),
		cmocka_unit_test(some_leave_the_queue_in_order),
	};

	return cmocka_run_group_tests(tests, make_loop, drop_loop);
}
