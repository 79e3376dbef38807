/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_ov.h"
#include "waiter.h"

void waiter_do_nothing(void *arg)
{
	(void)arg;
}

void waiter_open(struct waiter *w)
{
	rig_open(&w->rig);
	w->rig.adapter.tick = (struct ndxp_timer){.fn = waiter_do_nothing};
	rig_connect(&w->rig, WAITER_DEPTH, NULL);
	w->rig.conn.timer = (struct ndxp_timer){.fn = waiter_do_nothing};
	w->rig.conn.watchdog = (struct ndxp_timer){.fn = waiter_do_nothing};
	w->rig.conn.spi.qp = w->rig.qp;
	for (uintptr_t i = 0; i < WAITER_DEPTH; i++)
		assert_int_equal(rig_receive(&w->rig, i), NDX_OK);
	ndx_overlapped_init(&w->ov);
}

static void cancel_timers(void *arg)
{
	struct rig *rig = arg;

	ndxp_timer_cancel(rig->adapter.spi.loop, &rig->adapter.tick);
	ndxp_timer_cancel(rig->adapter.spi.loop, &rig->conn.timer);
	ndxp_timer_cancel(rig->adapter.spi.loop, &rig->conn.watchdog);
}

void waiter_call(struct waiter *w, ndxp_loop_fn *fn, void *arg)
{
	ndxp_loop_call(w->rig.adapter.spi.loop, fn, arg);
}

void waiter_close(struct waiter *w)
{
	waiter_call(w, cancel_timers, &w->rig);
	rig_close(&w->rig);
}

void waiter_notify_with(struct waiter *w, struct ndx_overlapped *ov, enum ndx_cq_notify_type type)
{
	assert_int_equal(base_ov_begin(ov, w->rig.adapter.spi.loop), NDX_OK);
	assert_int_equal(verbs_cq_notify(w->rig.cq, type, ov), NDX_PENDING);
}

void waiter_notify(struct waiter *w, enum ndx_cq_notify_type type)
{
	waiter_notify_with(w, &w->ov, type);
}

uint32_t waiter_count_watchers(const struct waiter *w)
{
	return verbs_cq_of(&w->rig.cq->pub)->watchers;
}

void waiter_read_events(void *arg)
{
	verbs_cq_on_event(arg, 0);
}

bool waiter_is_notified(struct waiter *w)
{
	waiter_call(w, waiter_read_events, &w->rig.adapter);
	return ndx_overlapped_status(&w->ov) == NDX_OK;
}

void waiter_cancel(struct waiter *w)
{
	ndxp_cq_cancel(w->rig.cq, NDX_E_CANCELED);
	assert_int_equal(ndx_overlapped_wait(&w->ov, 1000), NDX_E_CANCELED);
}
