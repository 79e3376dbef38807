/* SPDX-License-Identifier: BSD-2-Clause */
/* Where sessions run: a loop for what happens, and a pool for what may block. */
#ifndef NEGOTIATION_ENGINE_H
#define NEGOTIATION_ENGINE_H

#include <ndx/spi/loop.h>

#include "pool.h"

struct engine {
	struct ndx_loop *loop;
	struct pool pool;
	struct ndxp_timer relief; /* short timer, set while tasks wait for a thread */
	bool relieving;           /* `relief` is set */
	struct ndxp_job wake;     /* queued while pushed tasks may wait for threads that sleep */
	unsigned pushed;          /* tasks since the latest wake-up */
	bool rests;               /* engine_rest() was called */
	unsigned refs;            /* atomic; of engine_get() */
	pthread_mutex_t lock;     /* of an engine with references: protects `pooled` */
	bool pooled;              /* `pool` has been started */
};

/* Tasks wait this long for a thread before the pool gets one more. */
#define ENGINE_PATIENCE_MS 50u

/* Start `workers` threads of the pool, and the loop. `call` names the caller in a failure. */
enum ndx_status engine_start(struct engine *e, const char *call, unsigned workers,
                             unsigned workers_most);
/* Loop thread: give the task to the pool. The task may have ended before the call returns. */
void engine_push(struct engine *e, struct pool_task *task);
/* Loop thread, before engine_stop(): no timer any more. */
void engine_rest(struct engine *e);
/* Run the queued tasks and jobs, stop; `last` then runs, and may free the engine. */
void engine_stop(struct engine *e, ndxp_loop_fn *last, void *arg);

/* An engine without a pool, on the heap, with one reference. */
enum ndx_status engine_create(struct engine **out);
void engine_get(struct engine *e);
/* Any thread: start the pool, unless it is started. */
enum ndx_status engine_need_pool(struct engine *e, const char *call);
/* Any thread. The last reference stops the engine. */
void engine_put(struct engine *e);

#endif
