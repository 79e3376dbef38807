/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads for what may block: plugins and callbacks. They are few, and more while some are stuck,
 * up to a limit: a call that does not return holds up its own session only.
 */
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
	uint64_t since_ns; /* when its task began; 0: it has none */
	bool used;         /* to be joined */
	bool ended;        /* it has nothing to do with the pool any more */
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
	bool stop;
	struct pool_thread slots[POOL_MOST];
};

/* `least` threads are started. false: not even one could be. */
bool pool_init(struct pool *p, unsigned least, unsigned most);
/* What is queued is done first; waits for all threads. */
void pool_fini(struct pool *p);
/* True: it has to wait for a thread; call pool_relieve() soon. */
bool pool_push(struct pool *p, struct pool_task *task);
/*
 * While tasks wait: threads whose task has been running for `stuck_ns` are made up for, and there
 * is one more for tasks that have waited for `waited_ns`. True: some still wait.
 */
bool pool_relieve(struct pool *p, uint64_t stuck_ns, uint64_t waited_ns);

#endif
