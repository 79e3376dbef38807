/* SPDX-License-Identifier: BSD-2-Clause */
/* The consumer's completion queues: a poll reads the native queues that are tied to them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "ofi.h"

#define MISSES 32u        /* polls in a row that found a native queue's lock taken, some 3 us */
#define SWEEP_MIN 8u      /* native queues from which on it pays to ask which have completions */
#define SWEEP_BATCH 16    /* native queues asked for at once, ... */
#define SWEEP_ROUNDS 64   /* ... and rounds of that in one poll */
#define SWEEP_TRUST 1024u /* after so many polls that ask, one poll reads all */
/* Of reading on (poll_lent()), in nanoseconds. A read of an empty native queue takes 500. */
#define COPY_NS 2000u       /* a read that takes so long has copied a part of a message */
#define REST_NS 50000u      /* how long a poll waits for the next part, ... */
#define REST_ALL_NS 500000u /* ... and all polls for all parts until the queue is armed again */
#define VAIN_COST 3         /* a wait in vain counts as much as so many with a next part; ... */
#define VAIN_MOST 24        /* ... of so many in vain on balance, ... */
#define PAUSE_PARTS 256u    /* ... the consumer gets so many parts without a wait */

static struct ofi_cq *cq_of(struct ndx_spi_cq *cq)
{
	return (struct ofi_cq *)(void *)cq;
}

static void poll_one(struct ofi_cq *cq, struct ofi_ncq *ncq, size_t count)
{
	/* A thread that holds the lock reads the queue for this consumer, too. But a consumer that
	 * polls all the time may keep just that thread from its processor: then let it run. */
	if (!ndxp_lock_try(&ncq->lock)) {
		if (++cq->misses < MISSES)
			return;
		ndxp_lock_acquire(&ncq->lock);
	}
	cq->misses = 0;
	ofi_ncq_poll(ncq, &cq->base, count);
	cq->owes = cq->owes || ofi_ncq_owes(ncq) || ofi_ncq_has_unasked(ncq);
	ndxp_lock_release(&ncq->lock);
}

static void poll_all(struct ofi_cq *cq, size_t count)
{
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next)
		poll_one(cq, container_of(n, struct ofi_tie, of_cq)->ncq, count);
}

static void acknowledge(struct ofi_ncq *ncq, bool armed)
{
	/* a thread that holds the lock reads the queue, and acknowledges then */
	if (!ndxp_lock_try(&ncq->lock)) {
		ofi_ack_look(ncq);
		return;
	}
	if (armed)
		ofi_ack_armed(ncq);
	else
		ofi_ack_asked(ncq);
	ndxp_lock_release(&ncq->lock);
}

/* No native queue has completions: acknowledge what came by those that are not polled again. */
static void acknowledge_all(struct ofi_cq *cq)
{
	cq->owes = false;
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next)
		acknowledge(container_of(n, struct ofi_tie, of_cq)->ncq, false);
}

/* Read the native queues that have completions. Now and then read all, because not everything makes
 * a descriptor readable. */
static void poll_ready(struct ofi_cq *cq, size_t count)
{
	struct ndxp_poll_event ready[SWEEP_BATCH];
	int n = SWEEP_BATCH;

	if (++cq->ready > SWEEP_TRUST) {
		cq->ready = 0;
		poll_all(cq, count);
		return;
	}
	for (int i = 0; n == SWEEP_BATCH && i < SWEEP_ROUNDS && !ndxp_cq_has(&cq->base, count);
	     i++) {
		n = ndxp_poll_wait(cq->sweep, ready, SWEEP_BATCH, 0);
		for (int k = 0; k < n; k++)
			poll_one(cq, ready[k].data, count);
		if (i == 0 && n == 0 && cq->owes)
			acknowledge_all(cq);
	}
}

static void poll_native(struct ofi_cq *cq, size_t count)
{
	if (cq->sweep >= 0)
		poll_ready(cq, count);
	else
		poll_all(cq, count);
}

/*
 * Whether the next part comes in time depends on the path. Over a slow one a wait only costs
 * processor time. Some parts come in two pieces, one right after the other, so a next part proves
 * little: a path is slow if more than a quarter of the waits are in vain.
 */
static void count_part(struct ofi_cq *cq, bool awaited)
{
	if (awaited)
		cq->rest_vain -= cq->rest_vain > 0;
	else if (cq->rest_pause > 0)
		cq->rest_pause--;
}

static void count_vain(struct ofi_cq *cq)
{
	cq->rest_vain += VAIN_COST;
	if (cq->rest_vain < VAIN_MOST)
		return;
	cq->rest_vain = 0;
	cq->rest_pause = PAUSE_PARTS;
}

static bool may_read_on(const struct ofi_cq *cq, uint64_t waited)
{
	return waited < REST_NS && cq->rest_ns < REST_ALL_NS && cq->rest_pause == 0 &&
	       !ndxp_cq_has(&cq->base, 1) && !ndxp_lock_is_wanted(&cq->poll_lock);
}

/*
 * A poll while the consumer has armed its descriptor and the native descriptors are lent to it.
 * Over TCP they wake the consumer for each part of a large message, mostly 64 to 128 KiB. To sleep
 * until the next part takes the consumer longer than the next part takes to come, and the sender
 * pays for each wake-up, too. So a poll that has copied bytes, but finds no result, reads on for a
 * moment, unless another thread waits for the queue. A consumer that polls in a loop instead of
 * arming the queue again has its own limit of time, so all its polls together have REST_ALL_NS.
 */
static void poll_lent(struct ofi_cq *cq, size_t count)
{
	const uint64_t copy_ns = (uint64_t)COPY_NS * __atomic_load_n(&cq->native, __ATOMIC_RELAXED);
	uint64_t waited = REST_NS; /* since the last part */
	uint64_t last = ndxp_now_ns();
	bool on = false;

	for (;; on = true) {
		uint64_t took;

		poll_native(cq, count);
		took = ndxp_now_ns() - last;
		last += took;
		waited = took >= copy_ns ? 0 : waited + took;
		if (waited == 0)
			count_part(cq, on);
		if (on)
			cq->rest_ns += took;
		if (!may_read_on(cq, waited))
			break;
	}
	if (!on)
		return;
	ofi_count(&cq->adapter->counts.rest_waits);
	if (waited >= REST_NS)
		count_vain(cq);
}

static bool is_lent(const struct ofi_cq *cq)
{
	return cq->adapter->backend->over_tcp &&
	       __atomic_load_n(&cq->fds_shared, __ATOMIC_RELAXED) != 0 &&
	       __atomic_load_n(&cq->base.armed, __ATOMIC_RELAXED);
}

static size_t get_results(struct ndx_cq *handle, struct ndx_result *results, size_t count)
{
	struct ofi_cq *cq = (struct ofi_cq *)(void *)handle;
	const bool alone = ndxp_lock_try(&cq->poll_lock);
	size_t got;

	if (alone) {
		ndxp_cq_poll_into(&cq->base, results, count);
		if (is_lent(cq))
			poll_lent(cq, count);
		else
			poll_native(cq, count);
		got = ndxp_cq_poll_take(&cq->base);
		if (got > 0)
			cq->rest_ns = 0;
		ndxp_cq_poll_end(&cq->base);
		ndxp_lock_release(&cq->poll_lock);
	} else {
		got = ndxp_cq_take(&cq->base, results, count);
	}
	if (got == 0)
		ofi_cq_clear_fd(cq);
	return got;
}

static void end_sweep(struct ofi_cq *cq)
{
	ndxp_fd_close(cq->sweep);
	cq->sweep = -1;
	__atomic_store_n(&cq->swept, 0, __ATOMIC_SEQ_CST);
}

static bool sweep_too(struct ofi_cq *cq, struct ofi_ncq *ncq)
{
	if (ndxp_poll_add(cq->sweep, ncq->watch.fd, POLLIN, false, ncq) == 0)
		return true;
	/* no memory: polls read all native queues */
	end_sweep(cq);
	return false;
}

void ofi_cq_tied(struct ofi_cq *cq, struct ofi_ncq *ncq)
{
	__atomic_store_n(&cq->native, cq->native + 1, __ATOMIC_RELAXED);
	if (cq->sweep >= 0) {
		(void)sweep_too(cq, ncq);
		return;
	}
	if (cq->native != SWEEP_MIN || !cq->adapter->backend->tells_always)
		return;
	cq->sweep = ndxp_poll_create();
	if (cq->sweep < 0)
		return;
	__atomic_store_n(&cq->swept, 1, __ATOMIC_SEQ_CST);
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		if (!sweep_too(cq, container_of(n, struct ofi_tie, of_cq)->ncq))
			return;
	}
}

void ofi_cq_untied(struct ofi_cq *cq, struct ofi_ncq *ncq)
{
	__atomic_store_n(&cq->native, cq->native - 1, __ATOMIC_RELAXED);
	if (cq->sweep >= 0)
		ndxp_poll_remove(cq->sweep, ncq->watch.fd);
	if (cq->sweep >= 0 && cq->native < SWEEP_MIN)
		end_sweep(cq);
}

static const struct ndx_cq_ops cq_ops = {.size = sizeof(cq_ops), .get_results = get_results};

enum ndx_status ofi_cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
                              struct ndx_spi_cq **out)
{
	struct ofi_cq *cq = calloc(1, sizeof(*cq));
	enum ndx_status st;

	/* libfabric has no use for the affinity, which is advice. */
	if (cq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a completion queue");
	st = ndxp_cq_init(&cq->base, &cq_ops, attr->depth);
	if (st != NDX_OK) {
		free(cq);
		return st;
	}
	cq->adapter = ofi_adapter_of(adapter);
	cq->base.fd_tracked = true;
	cq->fd = -1;
	cq->sweep = -1;
	ndxp_list_init(&cq->ties);
	*out = &cq->base.spi;
	return NDX_OK;
}

void ofi_cq_destroy(struct ndx_spi_cq *spi)
{
	struct ofi_cq *cq = cq_of(spi);

	ndxp_fd_close(cq->fd);
	ndxp_fd_close(cq->sweep);
	ndxp_cq_fini(&cq->base);
	free(cq);
}

enum ndx_status ofi_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                              struct ndx_overlapped *ov)
{
	struct ofi_cq *cq = cq_of(spi);
	enum ndx_status st;

	/* where messages do not say whether they are solicited, all of them are */
	if (type == NDX_CQ_NOTIFY_SOLICITED && !cq->adapter->backend->solicited)
		type = NDX_CQ_NOTIFY_ANY;
	st = ndxp_cq_notify(spi, type, ov);
	if (st < 0)
		return st;
	/* The consumer has stopped polling. From now on the control thread reads, whatever the
	 * count of polls is; or the consumer does, when the native queues wake it. */
	ndxp_lock_acquire(&cq->poll_lock);
	cq->rest_ns = 0;
	if (ov == NULL && ofi_cq_share_fds(cq)) {
		ndxp_lock_release(&cq->poll_lock);
		return st;
	}
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_tie, of_cq)->ncq;

		acknowledge(ncq, true);
		if (__atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) == OFI_NCQ_POLLED)
			ofi_ncq_kick(ncq);
	}
	ndxp_lock_release(&cq->poll_lock);
	return st;
}
