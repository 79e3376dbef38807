/* SPDX-License-Identifier: BSD-2-Clause */
/* Where sessions run. */
#include "engine.h"

#include <stdlib.h>

#include <ndx/spi/log.h>
#include "base_loop.h"

#define RELIEF_MS 5u
#define PUSHES_AT_ONCE 16u

/* A task waits for a thread of the pool. */
static void relieve(struct engine *e)
{
	if (e->relieving)
		return;
	e->relieving = true;
	ndxp_timer_set(e->loop, &e->relief, RELIEF_MS);
}

static void on_relief(void *arg)
{
	struct engine *e = arg;

	e->relieving = false;
	if (pool_relieve(&e->pool, (uint64_t)RELIEF_MS * 1000000,
	                 (uint64_t)ENGINE_PATIENCE_MS * 1000000))
		relieve(e);
}

static void wake_now(struct engine *e)
{
	e->pushed = 0;
	if (pool_wake(&e->pool))
		relieve(e);
}

static void on_wake(void *arg)
{
	struct engine *e = arg;

	/* The pool may be gone after engine_rest(). */
	if (!e->rests && e->pushed > 0)
		wake_now(e);
}

enum ndx_status engine_start(struct engine *e, const char *call, unsigned workers,
                             unsigned workers_most)
{
	enum ndx_status st;

	*e = (struct engine){.relief = {.fn = on_relief, .arg = e},
	                     .wake = {.fn = on_wake, .arg = e}};
	if (!pool_init(&e->pool, workers, workers_most))
		return fail(NDX_E_INSUFFICIENT_RESOURCES, 0, "%s: no thread", call);
	st = base_loop_create("ndx-neg", &e->loop);
	if (st != NDX_OK)
		pool_fini(&e->pool);
	return st;
}

void engine_push(struct engine *e, struct pool_task *task)
{
	if (pool_push(&e->pool, task))
		relieve(e);
	/* Waking a thread costs more than most tasks, so one wake-up serves all the tasks that the
	 * loop's thread pushes before the job runs. The task is not touched any more. */
	if (++e->pushed >= PUSHES_AT_ONCE)
		wake_now(e);
	else if (e->pushed == 1)
		ndxp_loop_post(e->loop, &e->wake);
}

void engine_rest(struct engine *e)
{
	e->rests = true;
	ndxp_timer_cancel(e->loop, &e->relief);
}

void engine_stop(struct engine *e, ndxp_loop_fn *last, void *arg)
{
	pool_fini(&e->pool);
	base_loop_destroy(e->loop, last, arg);
}

static void engine_free(void *arg)
{
	struct engine *e = arg;

	(void)pthread_mutex_destroy(&e->lock);
	free(e);
}

enum ndx_status engine_create(struct engine **out)
{
	struct engine *e = calloc(1, sizeof(*e));
	enum ndx_status st;

	if (e == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for the thread of sessions");
	e->refs = 1;
	e->relief = (struct ndxp_timer){.fn = on_relief, .arg = e};
	e->wake = (struct ndxp_job){.fn = on_wake, .arg = e};
	(void)pthread_mutex_init(&e->lock, NULL);
	st = base_loop_create("ndx-neg", &e->loop);
	if (st == NDX_OK)
		*out = e;
	else
		engine_free(e);
	return st;
}

enum ndx_status engine_need_pool(struct engine *e, const char *call)
{
	bool pooled;

	pthread_mutex_lock(&e->lock);
	if (!e->pooled)
		e->pooled = pool_init(&e->pool, 1, POOL_MOST);
	pooled = e->pooled;
	pthread_mutex_unlock(&e->lock);
	return pooled ? NDX_OK : fail(NDX_E_INSUFFICIENT_RESOURCES, 0, "%s: no thread", call);
}

void engine_get(struct engine *e)
{
	(void)__atomic_add_fetch(&e->refs, 1, __ATOMIC_RELAXED);
}

static void rest_on_loop(void *arg)
{
	engine_rest(arg);
}

void engine_put(struct engine *e)
{
	if (__atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	ndxp_loop_call(e->loop, rest_on_loop, e);
	if (e->pooled)
		pool_fini(&e->pool);
	base_loop_destroy(e->loop, engine_free, e);
}
