/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the control thread leaves a native queue to a consumer, and when it reads such a queue. The
 * test's native queue is always empty: only the reads count.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>

#undef fail /* cmocka's macro; <ndx/spi/log.h> declares a function of this name */
#include <ndx/spi/system.h>
#include "base_loop.h"
#include "ofi.h"

#define QUEUES 2u
#define WAKEUPS 4u         /* consecutive wake-ups that find a consumer reading ... */
#define WAKEUPS_NS 100000u /* ... and the shortest time that they take */
#define TRIES 10000u

struct native {
	struct fid_cq cq;
	struct ofi_ncq ncq;
	struct ofi_tie tie;
	unsigned reads; /* written by the control thread */
};

struct rig {
	struct ofi_adapter adapter;
	struct fid_fabric fabric;
	struct ofi_cq *cq;
	struct native natives[QUEUES]; /* all tied to one completion queue */
};

static ssize_t read_no_completion(struct fid_cq *cq, void *buffer, size_t count)
{
	(void)buffer;
	(void)count;
	container_of(cq, struct native, cq)->reads++;
	return -FI_EAGAIN;
}

static int allow_wait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric;
	(void)fids;
	(void)count;
	return 0;
}

static struct fi_ops_cq cq_ops = {.size = sizeof(cq_ops), .read = read_no_completion};
static struct fi_ops_fabric fabric_ops = {.size = sizeof(fabric_ops), .trywait = allow_wait};

static void open_native(struct rig *rig, struct native *native)
{
	struct ofi_ncq *ncq = &native->ncq;

	native->cq.ops = &cq_ops;
	ncq->adapter = &rig->adapter;
	ncq->cq = &native->cq;
	ncq->watch.fd = ndxp_eventfd_create();
	assert_true(ncq->watch.fd >= 0);
	ndxp_list_init(&ncq->ties);
	ndxp_list_init(&ncq->credit_pending);
	ndxp_list_init(&ncq->ack_list);
	native->tie = (struct ofi_tie){.cq = rig->cq, .ncq = ncq, .refs = 1};
	ndxp_list_add(&ncq->ties, &native->tie.of_ncq);
	assert_int_equal(ofi_ncq_watch(ncq), NDX_OK);
	ndxp_list_add(&rig->adapter.ncqs, &ncq->node);
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct ofi_adapter *adapter;
	struct ndx_spi_cq *cq;

	assert_non_null(rig);
	adapter = &rig->adapter;
	assert_int_equal(base_loop_create("rig", &adapter->spi.loop), NDX_OK);
	adapter->backend = &ofi_tcp;
	adapter->fabric = &rig->fabric;
	rig->fabric.ops = &fabric_ops;
	ndxp_list_init(&adapter->ncqs);
	/* Prevent ticks, which would read the queues, too. */
	adapter->tick.armed = true;
	adapter->kick = (struct ndxp_job){.fn = ofi_ncq_on_kick, .arg = adapter};
	assert_int_equal(ofi_cq_create(&adapter->spi, &(struct ndx_cq_attr){.depth = 4}, &cq),
	                 NDX_OK);
	rig->cq = (struct ofi_cq *)(void *)cq;
	for (unsigned i = 0; i < QUEUES; i++)
		open_native(rig, &rig->natives[i]);
	*state = rig;
	return 0;
}

static void close_natives(void *arg)
{
	struct rig *rig = arg;

	for (unsigned i = 0; i < QUEUES; i++)
		ofi_ncq_unwatch(&rig->natives[i].ncq);
}

static void nothing(void *arg)
{
	(void)arg;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	ndxp_loop_call(rig->adapter.spi.loop, close_natives, rig);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
	for (unsigned i = 0; i < QUEUES; i++)
		ndxp_fd_close(rig->natives[i].ncq.watch.fd);
	ofi_cq_destroy(&rig->cq->base.spi);
	free(rig);
	return 0;
}

/* ---- wake-ups ---- */

/* The descriptor wakes the control thread. */
static void run_watch(void *arg)
{
	struct native *native = arg;

	native->ncq.watch.fn(&native->ncq, POLLIN);
}

/* Wake the control thread while a consumer reads the queue or is about to read it. */
static enum ofi_ncq_mode wake_with_reader(struct rig *rig, unsigned i)
{
	struct ofi_ncq *ncq = &rig->natives[i].ncq;

	ndxp_lock_acquire(&ncq->lock);
	ndxp_loop_call(rig->adapter.spi.loop, run_watch, &rig->natives[i]);
	ndxp_lock_release(&ncq->lock);
	return ncq->mode;
}

static enum ofi_ncq_mode wake_without_reader(struct rig *rig, unsigned i)
{
	ndxp_loop_call(rig->adapter.spi.loop, run_watch, &rig->natives[i]);
	return rig->natives[i].ncq.mode;
}

static void busy_wait(void)
{
	const uint64_t end = ndxp_now_ns() + WAKEUPS_NS;

	while (ndxp_now_ns() <= end)
		;
}

static void a_reader_is_left_alone_after_some_wakeups(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 1; i < WAKEUPS; i++) {
		assert_int_equal(wake_with_reader(rig, 0), OFI_NCQ_ARMED);
		busy_wait();
	}
	assert_int_equal(wake_with_reader(rig, 0), OFI_NCQ_POLLED);
}

static void a_wakeup_without_a_reader_resets_the_count(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 1; i < WAKEUPS; i++)
		assert_int_equal(wake_with_reader(rig, 0), OFI_NCQ_ARMED);
	busy_wait();
	assert_int_equal(wake_without_reader(rig, 0), OFI_NCQ_ARMED);
	for (unsigned i = 1; i < WAKEUPS; i++) {
		assert_int_equal(wake_with_reader(rig, 0), OFI_NCQ_ARMED);
		busy_wait();
	}
	assert_int_equal(wake_with_reader(rig, 0), OFI_NCQ_POLLED);
}

static void all_queues_of_a_reader_count_together(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 1; i < WAKEUPS; i++)
		assert_int_equal(wake_with_reader(rig, i % QUEUES), OFI_NCQ_ARMED);
	busy_wait();
	assert_int_equal(wake_with_reader(rig, 0), OFI_NCQ_POLLED);
	assert_int_equal(wake_with_reader(rig, 1), OFI_NCQ_POLLED);
}

struct burst {
	struct native *native;
	uint64_t ns; /* duration of the burst */
};

static void wake_in_burst(void *arg)
{
	struct burst *burst = arg;
	const uint64_t begin = ndxp_now_ns();

	for (unsigned i = 0; i < WAKEUPS; i++)
		run_watch(burst->native);
	burst->ns = ndxp_now_ns() - begin;
}

/* One message may cause all of them. */
static void wakeups_in_a_burst_do_not_suffice(void **state)
{
	struct rig *rig = *state;
	struct ofi_ncq *ncq = &rig->natives[0].ncq;
	struct burst burst = {.native = &rig->natives[0], .ns = WAKEUPS_NS};

	for (unsigned i = 0; i < TRIES && burst.ns >= WAKEUPS_NS; i++) {
		assert_int_equal(wake_without_reader(rig, 0), OFI_NCQ_ARMED);
		ndxp_lock_acquire(&ncq->lock);
		ndxp_loop_call(rig->adapter.spi.loop, wake_in_burst, &burst);
		ndxp_lock_release(&ncq->lock);
	}
	assert_in_range(burst.ns, 0, WAKEUPS_NS - 1);
	assert_int_equal(ncq->mode, OFI_NCQ_ARMED);
}

/* ---- completions that the provider itself waits for ---- */

/* The number of reads of a queue, after the control thread has done all its jobs. */
static unsigned count_reads(struct rig *rig, unsigned i)
{
	ndxp_loop_call(rig->adapter.spi.loop, nothing, NULL);
	return rig->natives[i].reads;
}

static void an_awaited_queue_is_read_at_once(void **state)
{
	struct rig *rig = *state;
	const unsigned before[QUEUES] = {count_reads(rig, 0), count_reads(rig, 1)};

	for (unsigned i = 0; i < QUEUES; i++)
		__atomic_store_n(&rig->natives[i].ncq.mode, OFI_NCQ_POLLED, __ATOMIC_SEQ_CST);
	ofi_ncq_await(&rig->natives[0].ncq);
	assert_true(count_reads(rig, 0) > before[0]);
	assert_int_equal(rig->natives[0].ncq.mode, OFI_NCQ_ARMED);
	assert_int_equal(count_reads(rig, 1), before[1]);
	assert_int_equal(rig->natives[1].ncq.mode, OFI_NCQ_POLLED);
}

/* The descriptor wakes the control thread. */
static void an_awaited_queue_that_is_armed_is_not_read(void **state)
{
	struct rig *rig = *state;
	const unsigned before = count_reads(rig, 0);

	ofi_ncq_await(&rig->natives[0].ncq);
	assert_int_equal(count_reads(rig, 0), before);
	assert_int_equal(rig->natives[0].ncq.mode, OFI_NCQ_ARMED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_reader_is_left_alone_after_some_wakeups),
		CASE(a_wakeup_without_a_reader_resets_the_count),
		CASE(all_queues_of_a_reader_count_together),
		CASE(wakeups_in_a_burst_do_not_suffice),
		CASE(an_awaited_queue_is_read_at_once),
		CASE(an_awaited_queue_that_is_armed_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
