/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads for work that may block: plugins and callbacks. There are few threads, and more while
 * some are stuck, up to a limit: a call that does not return delays only its own session. */
#ifndef NEGOTIATION_POOL_H
#define NEGOTIATION_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct pool_task {
	void (*fn)(struct pool_task *task);
	struct pool_task *next;
	uint64_t queued_ns;
};

#define POOL_MOST 256u

struct pool;

struct pool_thread {
	struct pool *pool;
	pthread_t id;
	uint64_t since_ns; /* when its task began; 0: no task */
	bool used;         /* must be joined */
	bool ended;        /* does not touch the pool any more */
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct pool_task *first;
	struct pool_task **last;
	unsigned least;
	unsigned most;
	unsigned threads;
	unsigned idle;
	unsigned queued;
	uint64_t usual_ns; /* how long a task takes; a moving average */
	bool stop;
	struct pool_thread slots[POOL_MOST];
};

/* Starts `least` threads. False: no thread could be started. */
bool pool_init(struct pool *p, unsigned least, unsigned most);
/* Run the queued tasks, then wait for all threads. */
void pool_fini(struct pool *p);
/* Queue a task. A thread that is awake may begin it at once; for those that sleep pool_wake() must
 * follow. True: the task waits for a thread; call pool_relieve() soon. */
bool pool_push(struct pool *p, struct pool_task *task);
/* Wake threads for the tasks that are queued: one thread if tasks are usually short. True: a task
 * waits for another one to end; call pool_relieve() soon. */
bool pool_wake(struct pool *p);
/* Take back a task that waits for a thread. False: the task is not queued; it runs, or has run. */
bool pool_withdraw(struct pool *p, struct pool_task *task);
/* While tasks wait: wake a thread that sleeps, start a replacement for each thread whose task has
 * run for `stuck_ns`, and one more thread for tasks that have waited for `waited_ns`. True: tasks
 * still wait. */
bool pool_relieve(struct pool *p, uint64_t stuck_ns, uint64_t waited_ns);

#endif
