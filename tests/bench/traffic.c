/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "lane.h"

struct traffic {
	unsigned threads; /* of the traffic: the caller's own only waits */
	pthread_t thread[2];
	pthread_barrier_t begin;
	pthread_barrier_t end;
	const struct traffic_block *block; /* NULL: stop */
	uint32_t done;                     /* counts what the second thread has ended; atomic */
	uint64_t ns;
};

uint64_t traffic_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- an end for each thread ---- */

/* Poll until `received` has come, and sleep in between if that is wanted. */
static void expect(struct end *end, uint64_t received, bool wait)
{
	end->ops->poll(end);
	while (end->received < received) {
		if (wait)
			end->ops->wait(end);
		end->ops->poll(end);
	}
}

static void post(struct end *end, bool wait)
{
	while (!end->ops->send(end)) {
		end->ops->poll(end);
		if (!wait)
			continue;
		/* What was taken may have made room. */
		if (end->ops->send(end))
			return;
		end->ops->wait(end);
	}
}

static void ping(struct end *end, uint64_t count, bool wait)
{
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t next = end->received + 1;

		post(end, wait);
		expect(end, next, wait);
		end->ops->receive(end);
	}
}

static void pong(struct end *end, uint64_t count, bool wait)
{
	for (uint64_t i = 0; i < count; i++) {
		expect(end, end->received + 1, wait);
		end->ops->receive(end);
		post(end, wait);
	}
}

/* A stream ends with an answer: not all lanes know otherwise when all of it has come. */
static void pour(struct end *end, uint64_t count, bool wait)
{
	const uint64_t all = end->sent + count;
	const uint64_t answer = end->received + 1;

	for (uint64_t i = 0; i < count; i++)
		post(end, wait);
	for (;;) {
		end->ops->poll(end);
		if (end->sent >= all && end->received >= answer)
			break;
		if (wait)
			end->ops->wait(end);
	}
	end->ops->receive(end);
}

static void drink(struct end *end, uint64_t count, bool wait)
{
	for (uint64_t taken = 0; taken < count;) {
		uint64_t before = end->received;

		expect(end, before + 1, wait);
		for (; before < end->received; before++, taken++)
			end->ops->receive(end);
	}
	post(end, wait);
}

/* Not all lanes go on to send what was posted while nothing polls them. */
static void finish_sends(struct end *end, uint64_t all, bool wait)
{
	while (end->sent < all) {
		end->ops->poll(end);
		if (wait && end->sent < all)
			end->ops->wait(end);
	}
}

static void serve(const struct traffic_block *block, uint64_t count)
{
	struct end *end = block->lane->ends[1];
	const uint64_t answers = block->test != TRAFFIC_STREAM ? count : 1;
	const uint64_t all = end->sent + answers;

	if (block->test != TRAFFIC_STREAM)
		pong(end, count, block->wait);
	else
		drink(end, count, block->wait);
	finish_sends(end, all, block->wait);
}

static void *second_thread(void *arg)
{
	struct traffic *traffic = arg;

	for (;;) {
		const struct traffic_block *block;

		(void)pthread_barrier_wait(&traffic->begin);
		block = traffic->block;
		if (block == NULL)
			return NULL;
		serve(block, block->warm);
		__atomic_add_fetch(&traffic->done, 1, __ATOMIC_RELEASE);
		serve(block, block->count);
		__atomic_add_fetch(&traffic->done, 1, __ATOMIC_RELEASE);
		(void)pthread_barrier_wait(&traffic->end);
	}
}

/* What the peer still sends may need answers of a lane without a thread of its own. */
static void await_peer(struct traffic *traffic, uint32_t done)
{
	struct end *end = traffic->block->lane->ends[0];

	for (unsigned i = 0; __atomic_load_n(&traffic->done, __ATOMIC_ACQUIRE) != done; i++) {
		if (i % 1000 == 999) {
			end->ops->poll(end);
			(void)sched_yield();
		}
	}
}

static void demand(struct traffic *traffic, uint64_t count, uint32_t done)
{
	const struct traffic_block *block = traffic->block;
	struct end *end = block->lane->ends[0];

	if (block->test != TRAFFIC_STREAM)
		ping(end, count, block->wait);
	else
		pour(end, count, block->wait);
	await_peer(traffic, done);
}

static void run_first(struct traffic *traffic)
{
	const struct traffic_block *block = traffic->block;
	uint64_t start;

	demand(traffic, block->warm, 1);
	start = traffic_now_ns();
	demand(traffic, block->count, 2);
	traffic->ns = traffic_now_ns() - start;
}

/* ---- both ends in one thread ---- */

static void bring(struct end *from, struct end *to)
{
	const uint64_t next = to->received + 1;

	while (!from->ops->send(from))
		from->ops->poll(from);
	to->ops->poll(to);
	while (to->received < next) {
		from->ops->poll(from);
		to->ops->poll(to);
	}
	to->ops->receive(to);
}

static void stream_both(struct end *from, struct end *to, uint64_t count)
{
	const uint64_t all = from->sent + count;
	uint64_t posted = 0;
	uint64_t taken = to->received;
	const uint64_t last = taken + count;

	while (taken < last || from->sent < all) {
		while (posted < count && from->ops->send(from))
			posted++;
		to->ops->poll(to);
		for (; taken < to->received; taken++)
			to->ops->receive(to);
		from->ops->poll(from);
	}
	to->ops->poll(to);
}

static void drive_both(const struct traffic_block *block, uint64_t count)
{
	struct end *const *ends = block->lane->ends;

	if (block->test == TRAFFIC_STREAM) {
		stream_both(ends[0], ends[1], count);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		bring(ends[0], ends[1]);
		bring(ends[1], ends[0]);
	}
}

static void run_both(struct traffic *traffic)
{
	const struct traffic_block *block = traffic->block;
	uint64_t start;

	if (block->wait)
		lane_die("one thread", "cannot sleep for both ends");
	drive_both(block, block->warm);
	start = traffic_now_ns();
	drive_both(block, block->count);
	traffic->ns = traffic_now_ns() - start;
}

static void *first_thread(void *arg)
{
	struct traffic *traffic = arg;

	for (;;) {
		(void)pthread_barrier_wait(&traffic->begin);
		if (traffic->block == NULL)
			return NULL;
		if (traffic->threads > 1)
			run_first(traffic);
		else
			run_both(traffic);
		(void)pthread_barrier_wait(&traffic->end);
	}
}

/* ---- life ---- */

/* Each on a processor of its own, if there are two: where they run is not what is measured. The
 * caller's thread stays free: what it opens has threads, which would inherit its place. */
void traffic_pin(pthread_t thread, unsigned which)
{
	cpu_set_t all;
	cpu_set_t one;
	unsigned seen = 0;

	if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || seen++ != which)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)pthread_setaffinity_np(thread, sizeof(one), &one);
	}
}

static void start_thread(struct traffic *traffic, unsigned which)
{
	void *(*const run)(void *) = which == 0 ? first_thread : second_thread;

	if (pthread_create(&traffic->thread[which], NULL, run, traffic) != 0)
		lane_die("pthread_create", "no thread for the traffic");
	traffic_pin(traffic->thread[which], which);
}

struct traffic *traffic_start(unsigned threads)
{
	struct traffic *traffic = calloc(1, sizeof(*traffic));

	if (traffic == NULL)
		lane_die("no memory", "for the traffic");
	traffic->threads = threads;
	if (pthread_barrier_init(&traffic->begin, NULL, threads + 1) != 0 ||
	    pthread_barrier_init(&traffic->end, NULL, threads + 1) != 0)
		lane_die("pthread_barrier_init", "no room");
	for (unsigned i = 0; i < threads; i++)
		start_thread(traffic, i);
	return traffic;
}

void traffic_stop(struct traffic *traffic)
{
	traffic->block = NULL;
	(void)pthread_barrier_wait(&traffic->begin);
	for (unsigned i = 0; i < traffic->threads; i++)
		(void)pthread_join(traffic->thread[i], NULL);
	(void)pthread_barrier_destroy(&traffic->begin);
	(void)pthread_barrier_destroy(&traffic->end);
	free(traffic);
}

uint64_t traffic_run(struct traffic *traffic, const struct traffic_block *block)
{
	traffic->block = block;
	traffic->done = 0;
	(void)pthread_barrier_wait(&traffic->begin);
	(void)pthread_barrier_wait(&traffic->end);
	return traffic->ns;
}
