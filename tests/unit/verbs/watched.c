/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watched.h"

void watched_nothing(void *arg)
{
	(void)arg;
}

void watched_open(struct watched *w)
{
	rig_open(&w->rig);
	w->rig.adapter.tick = (struct base_timer){.fn = watched_nothing};
	rig_connect(&w->rig, WATCHED_DEPTH, NULL);
	w->rig.conn.timer = (struct base_timer){.fn = watched_nothing};
	w->rig.conn.watchdog = (struct base_timer){.fn = watched_nothing};
	w->rig.conn.spi.qp = w->rig.qp;
	for (uintptr_t i = 0; i < WATCHED_DEPTH; i++)
		assert_int_equal(rig_receive(&w->rig, i), NDX_OK);
	ndx_overlapped_init(&w->ov);
}

static void cancel_timers(void *arg)
{
	struct rig *rig = arg;

	base_timer_cancel(rig->adapter.spi.loop, &rig->adapter.tick);
	base_timer_cancel(rig->adapter.spi.loop, &rig->conn.timer);
	base_timer_cancel(rig->adapter.spi.loop, &rig->conn.watchdog);
}

void watched_call(struct watched *w, base_loop_fn *fn, void *arg)
{
	base_loop_call(w->rig.adapter.spi.loop, fn, arg);
}

void watched_close(struct watched *w)
{
	watched_call(w, cancel_timers, &w->rig);
	rig_close(&w->rig);
}

void watched_begin(struct watched *w, struct ndx_overlapped *ov, enum ndx_cq_notify_type type)
{
	assert_int_equal(base_ov_begin(ov, w->rig.adapter.spi.loop), NDX_OK);
	assert_int_equal(verbs_cq_notify(w->rig.cq, type, ov), NDX_PENDING);
}

void watched_ask(struct watched *w, enum ndx_cq_notify_type type)
{
	watched_begin(w, &w->ov, type);
}

uint32_t watched_watchers(const struct watched *w)
{
	return verbs_cq_of(&w->rig.cq->pub)->watchers;
}

void watched_events(void *arg)
{
	verbs_cq_on_event(arg, 0);
}

bool watched_told(struct watched *w)
{
	watched_call(w, watched_events, &w->rig.adapter);
	return ndx_overlapped_status(&w->ov) == NDX_OK;
}

void watched_give_up(struct watched *w)
{
	base_cq_cancel(w->rig.cq, NDX_E_CANCELED);
	assert_int_equal(ndx_overlapped_wait(&w->ov, 1000), NDX_E_CANCELED);
}
