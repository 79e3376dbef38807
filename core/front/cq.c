/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of completion queues. */
#include <ndx/cq.h>

#include <errno.h>
#include <poll.h>

#include "adapter.h"
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_loop.h"
#include "base_ov.h"
#include "base_struct.h"
#include "front.h"
#include "ops.h"

/* How long ndx_cq_wait_results() polls before it sleeps, and how many polls lie between two
 * readings of the clock. */
#define SPIN_NS 30000u
#define SPINS 8

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_cq_attr, NDX_CQ_ATTR_SIZE_0_1, "call ndx_cq_attr_init() first");

static const struct ndx_cq_attr attr_defaults = {.size = sizeof(attr_defaults), .depth = 64};

void ndx_cq_attr_init_sized(struct ndx_cq_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status check_attr(const struct ndx_adapter_info *info,
                                  const struct ndx_cq_attr *attr)
{
	if (attr->depth == 0 || attr->depth > info->max_completion_queue_depth)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_cq_create: depth %u is not in 1..%u of %s", attr->depth,
		            info->max_completion_queue_depth, info->uri);
	if (attr->group != 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_cq_create: group %u; there is only processor group 0",
		            attr->group);
	return NDX_OK;
}

enum ndx_status ndx_cq_create(struct ndx_adapter *adapter, const struct ndx_cq_attr *attr,
                              struct ndx_cq **out)
{
	struct ndx_cq_attr own = attr_defaults;
	struct ndx_spi_cq *cq = NULL;
	enum ndx_status st = NDX_OK;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_cq_create: NULL argument");
	if (attr != NULL)
		st = base_struct_in(&attr_layout, "ndx_cq_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&adapter->info, &own);
	if (st != NDX_OK)
		return st;
	own.size = sizeof(own);
	st = adapter->ops->cq_create(adapter->native, &own, &cq);
	if (st != NDX_OK)
		return st;
	if (!ops_check_cq(cq->pub.ops)) {
		adapter->ops->cq_destroy(cq);
		return fail(
			NDX_E_ABI_MISMATCH, 0,
			"ndx_cq_create: a queue of provider \"%s\" lacks a function of the data "
			"path; report it to the provider's author",
			adapter->info.provider);
	}
	adapter_add_object(adapter, &cq->object, CORE_CQ);
	*out = &cq->pub;
	return NDX_OK;
}

/* Close the handle; the object may stay, but the consumer does not hold it any more. */
static void drop_handle(struct ndx_adapter *adapter)
{
	adapter_lock(adapter);
	adapter->handles--;
	(void)pthread_cond_broadcast(&adapter->changed);
	adapter_unlock(adapter);
}

void ndx_cq_close(struct ndx_cq *cq)
{
	struct ndx_adapter *adapter;

	if (cq == NULL)
		return;
	adapter = spi_cq(cq)->object.adapter;
	(void)ndx_cq_cancel(cq);
	drop_handle(adapter);
	cq_put(spi_cq(cq));
}

enum ndx_status ndx_cq_cancel(struct ndx_cq *cq)
{
	struct ndx_adapter *adapter;

	if (cq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_cq_cancel: cq is NULL");
	adapter = spi_cq(cq)->object.adapter;
	adapter->ops->cq_cancel(spi_cq(cq), NDX_E_CANCELED);
	adapter_flush_callbacks(adapter);
	return NDX_OK;
}

enum ndx_status ndx_cq_resize(struct ndx_cq *cq, uint32_t depth)
{
	struct ndx_adapter *adapter;

	if (cq == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_cq_resize: cq is NULL");
	adapter = spi_cq(cq)->object.adapter;
	if (!(adapter->info.capabilities & NDX_CAP_CQ_RESIZE) || adapter->ops->cq_resize == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0, "ndx_cq_resize: %s cannot resize",
		            adapter->info.uri);
	if (depth == 0 || depth > adapter->info.max_completion_queue_depth)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_cq_resize: depth %u is not in 1..%u of %s", depth,
		            adapter->info.max_completion_queue_depth, adapter->info.uri);
	return adapter->ops->cq_resize(spi_cq(cq), depth);
}

enum ndx_status ndx_cq_notify(struct ndx_cq *cq, enum ndx_cq_notify_type type,
                              struct ndx_overlapped *ov)
{
	struct ndx_adapter *adapter;
	enum ndx_status st;

	if (cq == NULL || (unsigned)type > NDX_CQ_NOTIFY_SOLICITED)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_cq_notify: cq is NULL, or type %d is none", (int)type);
	adapter = spi_cq(cq)->object.adapter;
	if (type == NDX_CQ_NOTIFY_SOLICITED &&
	    !(adapter->info.capabilities & NDX_CAP_NOTIFY_SOLICITED))
		type = NDX_CQ_NOTIFY_ANY;
	if (ov == NULL) {
		st = adapter->ops->cq_notify(spi_cq(cq), type, NULL);
		return st == NDX_PENDING ? NDX_OK : st;
	}
	st = base_ov_begin_call(ov, adapter->loop, "ndx_cq_notify");
	if (st != NDX_OK)
		return st;
	st = adapter->ops->cq_notify(spi_cq(cq), type, ov);
	if (st != NDX_PENDING)
		base_ov_abandon(ov);
	return st;
}

enum ndx_status ndx_cq_get_fd(struct ndx_cq *cq, int *fd)
{
	int found = -1;
	enum ndx_status st;

	if (cq == NULL || fd == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_cq_get_fd: NULL argument");
	st = spi_cq(cq)->object.adapter->ops->cq_get_fd(spi_cq(cq), &found);
	if (st == NDX_OK)
		*fd = found;
	return st;
}

enum ndx_status ndx_cq_get_notify_affinity(struct ndx_cq *cq, uint16_t *group, uint64_t *affinity)
{
	struct ndx_adapter *adapter;
	struct affinity found = {0};
	enum ndx_status st;

	if (cq == NULL || group == NULL || affinity == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_cq_get_notify_affinity: NULL argument");
	adapter = spi_cq(cq)->object.adapter;
	if (!(adapter->info.capabilities & NDX_CAP_NOTIFY_AFFINITY) ||
	    adapter->ops->cq_affinity == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0, "ndx_cq_get_notify_affinity: %s does not know",
		            adapter->info.uri);
	st = adapter->ops->cq_affinity(spi_cq(cq), &found.group, &found.mask);
	if (st == NDX_OK) {
		*group = found.group;
		*affinity = found.mask;
	}
	return st;
}

/* Sleep until the descriptor is readable or the deadline has passed. */
static void sleep_on(int fd, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	(void)poll(&p, 1, ndxp_poll_ms_until(deadline, 1000000));
}

static size_t spin(struct ndx_cq *cq, struct ndx_result *results, size_t count, uint32_t timeout_ms)
{
	const uint64_t until = ndxp_now_ns() + SPIN_NS;
	size_t got;

	do {
		got = ndx_cq_get_results(cq, results, count);
		for (int i = 1; got == 0 && timeout_ms != 0 && i < SPINS; i++)
			got = ndx_cq_get_results(cq, results, count);
	} while (got == 0 && timeout_ms != 0 && ndxp_now_ns() < until);
	return got;
}

static void wake_others(struct ndx_cq *cq, int fd)
{
	const struct ndx_provider_ops *ops = spi_cq(cq)->object.adapter->ops;

	if (ops->cq_wake != NULL)
		ops->cq_wake(spi_cq(cq), true);
	else
		ndxp_eventfd_set(fd);
}

enum ndx_status ndx_cq_wait_results(struct ndx_cq *cq, struct ndx_result *results, size_t count,
                                    uint32_t timeout_ms, size_t *got)
{
	uint64_t deadline = ndxp_deadline(timeout_ms);
	enum ndx_status st;
	int fd;

	if (cq == NULL || results == NULL || count == 0 || got == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_cq_wait_results: NULL argument");
	*got = spin(cq, results, count, timeout_ms);
	if (*got > 0 || timeout_ms == 0)
		return *got > 0 ? NDX_OK : NDX_PENDING;
	if (!base_loop_may_wait(spi_cq(cq)->object.adapter->loop))
		return fail(NDX_E_WOULD_BLOCK, 0,
		            "ndx_cq_wait_results: in a callback; use ndx_cq_notify()");
	st = ndx_cq_get_fd(cq, &fd);
	while (st == NDX_OK) {
		st = ndx_cq_notify(cq, NDX_CQ_NOTIFY_ANY, NULL);
		*got = ndx_cq_get_results(cq, results, count);
		/* Arming cleared the descriptor for the other threads that wait here, too. */
		if (*got == count)
			wake_others(cq, fd);
		if (*got > 0)
			return NDX_OK;
		if (st == NDX_OK && ndxp_now_ns() >= deadline)
			return NDX_PENDING;
		if (st == NDX_OK)
			sleep_on(fd, deadline);
		/* Poll before arming again: a queue that stays armed would turn later notifications
		 * into notifications of any result. */
		*got = ndx_cq_get_results(cq, results, count);
		if (*got > 0)
			return NDX_OK;
	}
	return st;
}
