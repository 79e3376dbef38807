/* SPDX-License-Identifier: BSD-2-Clause */
#include "side.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "pin.h"
#include "sample_clock.h"

#define LINE ((size_t)64)      /* messages begin at each multiple of 8 of a cache line in turn */
#define PAGE ((size_t)2 << 20) /* huge */

static size_t half_of(uint32_t size)
{
	return ((size_t)size + 2 * LINE - 1) / LINE * LINE;
}

uint64_t side_bytes(const struct perf_test *test)
{
	return (uint64_t)2 * half_of(test->size) * test->qps;
}

static enum ndx_status make_memory(struct side *side)
{
	const size_t bytes = (side_bytes(&side->test) + PAGE - 1) / PAGE * PAGE;

	side->half = half_of(side->test.size);
	side->memory = aligned_alloc(PAGE, bytes);
	if (side->memory == NULL)
		return NDX_E_NO_MEMORY;
	/* Small pages do as well. */
	(void)madvise(side->memory, bytes, MADV_HUGEPAGE);
	memset(side->memory, 0, bytes);
	return ndx_mr_register_new(side->adapter, side->memory, side_bytes(&side->test),
	                           NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_ALLOW_REMOTE_READ |
	                                   NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_RDMA_READ_SINK,
	                           &side->mr);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Receives of a link: twice the depth, because the peer may see a result before this side does. */
static uint32_t receives_of(const struct side *side)
{
	if (!traffic_needs_receives(side))
		return 1;
	return least(2 * side->test.depth, side->info->max_receive_queue_depth);
}

static uint32_t requests_of(const struct side *side)
{
	const uint32_t wanted = 2 * side->test.depth;

	return least(wanted < 16 ? 16 : wanted, side->info->max_initiator_queue_depth);
}

/* The links are dealt out to the threads; both ends have checked that there is one. */
static struct worker *worker_of(const struct side *side, uint32_t link)
{
	const uint32_t threads = side->test.threads;

	return &side->workers[threads > 0 ? link % threads : 0];
}

static enum ndx_status make_link(struct side *side, uint32_t index)
{
	struct link *link = &side->links[index];
	struct worker *worker = worker_of(side, index);
	struct ndx_qp_attr attr;
	enum ndx_status st;

	link->tx = side->memory + (size_t)index * 2 * side->half;
	link->rx = link->tx + side->half;
	link->times = calloc(side->test.depth, sizeof(*link->times));
	if (link->times == NULL)
		return NDX_E_NO_MEMORY;
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = worker->cq;
	attr.context = link;
	attr.receive_depth = receives_of(side);
	attr.initiator_depth = requests_of(side);
	attr.keepalive_ms = side->keepalive_ms;
	st = ndx_qp_create(side->adapter, &attr, &link->qp);
	if (st != NDX_OK || !traffic_needs_receives(side))
		return st;
	for (uint32_t i = 0; i < attr.receive_depth && st == NDX_OK; i++)
		st = traffic_receive(side, link);
	return st;
}

static enum ndx_status make_worker(struct side *side, uint32_t index)
{
	struct worker *worker = &side->workers[index];
	const uint64_t links = side->test.qps / side->test.threads + 1;
	uint64_t depth = links * (receives_of(side) + requests_of(side));

	worker->side = side;
	worker->index = index;
	if (side->client && side->test.kind == PERF_LATENCY) {
		worker->latency = calloc(1, sizeof(*worker->latency));
		worker->service = calloc(1, sizeof(*worker->service));
		if (worker->latency == NULL || worker->service == NULL)
			return NDX_E_NO_MEMORY;
	}
	if (depth > side->info->max_completion_queue_depth)
		depth = side->info->max_completion_queue_depth;
	return ndx_cq_create_depth(side->adapter, (uint32_t)depth, &worker->cq);
}

enum ndx_status side_make(struct side *side)
{
	enum ndx_status st;

	side->links = calloc(side->test.qps, sizeof(*side->links));
	side->workers = calloc(side->test.threads, sizeof(*side->workers));
	if (side->links == NULL || side->workers == NULL)
		return NDX_E_NO_MEMORY;
	st = make_memory(side);
	for (uint32_t i = 0; i < side->test.threads && st == NDX_OK; i++)
		st = make_worker(side, i);
	for (uint32_t i = 0; i < side->test.qps && st == NDX_OK; i++)
		st = make_link(side, i);
	return st;
}

static void drop_link(struct link *link)
{
	ndx_connector_close(link->connector);
	ndx_qp_close(link->qp);
	free(link->times);
}

/* All at once: a peer that is gone costs the time-out once. */
static void disconnect_links(struct side *side, uint32_t timeout_ms)
{
	const uint64_t end = sample_now_ns() + timeout_ms * UINT64_C(1000000);

	for (uint32_t i = 0; i < side->test.qps; i++) {
		struct link *link = &side->links[i];
		const uint64_t now = sample_now_ns();

		if (link->connected)
			(void)ndx_disconnect(link->connector,
			                     now < end ? (uint32_t)((end - now) / 1000000) : 0);
	}
}

void side_drop(struct side *side, uint32_t timeout_ms)
{
	side_stop(side);
	if (side->links != NULL) {
		disconnect_links(side, timeout_ms);
		for (uint32_t i = 0; i < side->test.qps; i++)
			drop_link(&side->links[i]);
	}
	ndx_mr_close(side->mr);
	for (uint32_t i = 0; side->workers != NULL && i < side->test.threads; i++) {
		ndx_cq_close(side->workers[i].cq);
		free(side->workers[i].latency);
		free(side->workers[i].service);
	}
	free(side->links);
	free(side->workers);
	free(side->memory);
	side->links = NULL;
	side->workers = NULL;
	side->memory = NULL;
	side->mr = NULL;
}

struct perf_target side_target(const struct side *side)
{
	struct perf_target target = {
		.address = (uintptr_t)side->memory,
		.token = ndx_mr_get_remote_token(side->mr),
	};

	return target;
}

bool side_start(struct side *side)
{
	const bool reads = side->test.op == PERF_READ;

	for (uint32_t i = 0; i < side->test.qps; i++)
		side->links[i].remote = side->peer.address + (uint64_t)i * 2 * side->half +
		                        (reads ? 0 : side->half);
	for (uint32_t i = 0; i < side->test.threads; i++) {
		struct worker *worker = &side->workers[i];

		worker->started = pthread_create(&worker->thread, NULL, traffic_run, worker) == 0;
		if (!worker->started)
			return false;
		pin_thread(worker->thread, side->cpus, side->client, side->test.threads, i);
	}
	return true;
}

void side_drain(struct side *side)
{
	side->stop = true;
}

bool side_is_drained(const struct side *side)
{
	for (uint32_t i = 0; i < side->test.threads; i++) {
		if (!side->workers[i].drained && !side->workers[i].failed)
			return false;
	}
	return true;
}

void side_stop(struct side *side)
{
	side->stop = side->quit = true;
	for (uint32_t i = 0; side->workers != NULL && i < side->test.threads; i++) {
		if (side->workers[i].started)
			(void)pthread_join(side->workers[i].thread, NULL);
		side->workers[i].started = false;
	}
}

const struct worker *side_failure(const struct side *side)
{
	for (uint32_t i = 0; i < side->test.threads; i++) {
		if (side->workers[i].failed)
			return &side->workers[i];
	}
	return NULL;
}

uint64_t side_sent(const struct side *side)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < side->test.threads; i++)
		sum += atomic_load_explicit(&side->workers[i].sent, memory_order_relaxed);
	return sum;
}

uint64_t side_received(const struct side *side)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < side->test.threads; i++)
		sum += atomic_load_explicit(&side->workers[i].received, memory_order_relaxed);
	return sum;
}

uint64_t side_measured(const struct side *side)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < side->test.threads; i++)
		sum += atomic_load_explicit(&side->workers[i].measured, memory_order_relaxed);
	return sum;
}

static uint64_t nanoseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

uint64_t side_cpu_ns(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return nanoseconds(&usage.ru_utime) + nanoseconds(&usage.ru_stime);
}
