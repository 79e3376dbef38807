/* SPDX-License-Identifier: BSD-2-Clause */
#include "stage.h"

#include <string.h>

static _Thread_local const char *t_inside; /* name of the callback */
static _Thread_local struct {
	void (*act)(void *arg);
	void *arg;
} t_act;

bool stage_inside(void)
{
	return t_inside != NULL;
}

void stage_enter(struct round *round, const char *name)
{
	if (t_inside != NULL)
		fail(round, NULL, "the callback of %s began inside that of %s", name, t_inside);
	t_inside = name;
}

void stage_leave(void)
{
	t_inside = NULL;
}

void stage_set_act(void (*act)(void *arg), void *arg)
{
	t_act.act = act;
	t_act.arg = arg;
}

void stage_act(void)
{
	if (t_act.act != NULL)
		t_act.act(t_act.arg);
}

static void on_stage(struct ndx_overlapped *ov)
{
	struct stage *stage = ov->context;

	stage_enter(stage->round, "the stage");
	stage->act(stage->arg);
	stage_leave();
}

static struct ndx_adapter *adapter_for(const struct round *round, uint32_t first)
{
	switch (round->plan.caller) {
	case CALLER_CALLBACK:
		return round->sides[first].adapter;
	case CALLER_CROSSED:
		return round->sides[1 - first].adapter;
	case CALLER_OTHER:
		return round->other_adapter;
	case CALLER_THREAD:
	case CALLERS:
		break;
	}
	return NULL;
}

void stage_open(struct stage *stage, struct round *round, uint32_t first)
{
	struct ndx_adapter *adapter = adapter_for(round, first);
	enum ndx_status st = NDX_OK;

	memset(stage, 0, sizeof(*stage));
	stage->round = round;
	if (adapter != NULL)
		st = ndx_cq_create_depth(adapter, 1, &stage->cq);
	if (st != NDX_OK)
		fail(round, NULL, "ndx_cq_create: %s: %s", ndx_status_name(st), ndx_last_error());
}

void stage_close(struct stage *stage)
{
	ndx_cq_close(stage->cq);
	stage->cq = NULL;
}

void stage_run(struct stage *stage, void (*act)(void *arg), void *arg)
{
	enum ndx_status st;

	if (stage->cq == NULL) {
		act(arg);
		return;
	}
	stage->act = act;
	stage->arg = arg;
	ndx_overlapped_init(&stage->ov);
	stage->ov.callback = on_stage;
	stage->ov.context = stage;
	st = ndx_cq_notify(stage->cq, NDX_CQ_NOTIFY_ANY, &stage->ov);
	if (st == NDX_PENDING)
		st = ndx_cq_cancel(stage->cq); /* its callback has returned by then */
	if (st != NDX_OK)
		fail(stage->round, NULL, "the stage: %s", ndx_status_name(st));
}
