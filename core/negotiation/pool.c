/* SPDX-License-Identifier: BSD-2-Clause */
#include "pool.h"

#include <stddef.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_thread.h"

/* A task that takes longer is better run beside others than in turn with them: waking a thread
 * costs about as much. */
#define SHORT_NS 20000u
#define LONG_NS 1000000u

/* Lock held: how many threads that sleep should take the tasks that are queued. */
static unsigned count_wanted(const struct pool *p)
{
	const unsigned most = p->queued < p->idle ? p->queued : p->idle;

	return most > 1 && p->usual_ns < SHORT_NS ? 1 : most;
}

/* Lock held: a task has ended. */
static void note_end(struct pool *p, struct pool_thread *self)
{
	uint64_t took = ndxp_now_ns() - self->since_ns;

	if (took > LONG_NS)
		took = LONG_NS;
	p->usual_ns = (p->usual_ns * 7 + took) / 8;
	self->since_ns = 0;
}

static struct pool_task *take_task(struct pool *p)
{
	struct pool_task *task = p->first;

	p->queued--;
	p->first = task->next;
	if (p->first == NULL)
		p->last = &p->first;
	return task;
}

static void *worker(void *arg)
{
	struct pool_thread *self = arg;
	struct pool *p = self->pool;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pool_task *task;

		if (p->first == NULL) {
			/* Enough idle threads wait already, even if other threads are stuck. */
			if (p->stop || p->idle >= p->least)
				break;
			p->idle++;
			(void)pthread_cond_wait(&p->work, &p->lock);
			p->idle--;
			continue;
		}
		task = take_task(p);
		self->since_ns = ndxp_now_ns();
		pthread_mutex_unlock(&p->lock);
		task->fn(task);
		pthread_mutex_lock(&p->lock);
		note_end(p, self);
	}
	p->threads--;
	self->ended = true;
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Lock held. */
static bool start(struct pool *p)
{
	struct pool_thread *t = p->slots;
	int error;

	while (t < p->slots + p->most && t->used && !t->ended)
		t++;
	if (t == p->slots + p->most)
		return false;
	/* The thread has released the lock or is about to, so joining it does not block. */
	if (t->used)
		(void)pthread_join(t->id, NULL);
	*t = (struct pool_thread){.pool = p, .used = true};
	error = base_thread_start(&t->id, "ndx-neg-work", worker, t);
	if (error != 0) {
		t->used = false;
		log_warn(error, "no further thread for the plugins of sessions");
		return false;
	}
	p->threads++;
	return true;
}

bool pool_init(struct pool *p, unsigned least, unsigned most)
{
	unsigned started;

	memset(p, 0, sizeof(*p));
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->work, NULL);
	p->last = &p->first;
	p->least = least;
	p->most = most;
	p->usual_ns = LONG_NS;
	pthread_mutex_lock(&p->lock);
	while (p->threads < least && start(p))
		;
	started = p->threads;
	pthread_mutex_unlock(&p->lock);
	if (started > 0)
		return true;
	pool_fini(p);
	return false;
}

void pool_fini(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	(void)pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->most; i++)
		if (p->slots[i].used)
			(void)pthread_join(p->slots[i].id, NULL);
	(void)pthread_cond_destroy(&p->work);
	(void)pthread_mutex_destroy(&p->lock);
}

bool pool_push(struct pool *p, struct pool_task *task)
{
	bool waits;

	task->next = NULL;
	task->queued_ns = ndxp_now_ns();
	pthread_mutex_lock(&p->lock);
	*p->last = task;
	p->last = &task->next;
	p->queued++;
	waits = p->queued > p->idle;
	pthread_mutex_unlock(&p->lock);
	return waits;
}

bool pool_wake(struct pool *p)
{
	unsigned wanted;
	bool waits;

	pthread_mutex_lock(&p->lock);
	wanted = count_wanted(p);
	waits = p->queued > wanted;
	pthread_mutex_unlock(&p->lock);
	/* Without the lock, which a thread that wakes needs. */
	for (; wanted > 0; wanted--)
		(void)pthread_cond_signal(&p->work);
	return waits;
}

bool pool_withdraw(struct pool *p, struct pool_task *task)
{
	struct pool_task **at = &p->first;

	pthread_mutex_lock(&p->lock);
	while (*at != NULL && *at != task)
		at = &(*at)->next;
	if (*at == NULL) {
		pthread_mutex_unlock(&p->lock);
		return false;
	}
	*at = task->next;
	if (*at == NULL)
		p->last = at;
	p->queued--;
	pthread_mutex_unlock(&p->lock);
	return true;
}

/* Lock held. */
static unsigned count_stuck(const struct pool *p, uint64_t now, uint64_t stuck_ns)
{
	unsigned stuck = 0;

	for (const struct pool_thread *t = p->slots; t < p->slots + p->most; t++)
		stuck += t->used && !t->ended && t->since_ns != 0 && now >= t->since_ns + stuck_ns;
	return stuck;
}

bool pool_relieve(struct pool *p, uint64_t stuck_ns, uint64_t waited_ns)
{
	const uint64_t now = ndxp_now_ns();
	unsigned wanted;
	bool waits;

	pthread_mutex_lock(&p->lock);
	wanted = p->least + count_stuck(p, now, stuck_ns);
	if (p->first != NULL && p->idle == 0 && now - p->first->queued_ns >= waited_ns &&
	    wanted <= p->threads)
		wanted = p->threads + 1;
	if (wanted > p->most)
		wanted = p->most;
	while (p->first != NULL && p->threads < wanted && start(p))
		;
	waits = p->first != NULL;
	/* Tasks were expected to be short, and one of them is not. */
	if (waits && p->idle > 0)
		(void)pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
	return waits;
}
