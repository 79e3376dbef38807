/* SPDX-License-Identifier: BSD-2-Clause */
#include "region.h"

#include <limits.h>

#include "adapter.h"
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_ov.h"

/* Values of ndx_spi_mr.busy; 0: idle. */
enum {
	REGION_BUSY = 1 << 0, /* an operation is in flight */
	REGION_ENDING =
		1 << 1, /* it has its outcome; a thread completes it, which does not block */
	REGION_WAITED = 1 << 2, /* a thread sleeps until the region is idle */
};

static uint32_t busy_of(const struct ndx_spi_mr *mr)
{
	return __atomic_load_n(&mr->busy, __ATOMIC_ACQUIRE);
}

static bool registered_of(const struct ndx_spi_mr *mr)
{
	return __atomic_load_n(&mr->registered, __ATOMIC_ACQUIRE);
}

/* Another thread may free the region at once: the futex needs only the address. */
static void become_idle(struct ndx_spi_mr *mr)
{
	if (__atomic_exchange_n(&mr->busy, 0, __ATOMIC_ACQ_REL) & REGION_WAITED)
		ndxp_futex_wake(&mr->busy, INT_MAX);
}

/* Sleep until the region may have become idle. */
static void sleep_on(struct ndx_spi_mr *mr, uint32_t busy, uint64_t deadline)
{
	const uint32_t waited = busy | REGION_WAITED;

	if (busy == waited || __atomic_compare_exchange_n(&mr->busy, &busy, waited, false,
	                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		ndxp_futex_wait(&mr->busy, waited, deadline);
}

/* A thread that sees the completion of an operation may be faster than the thread that completes
 * it, and waits for that one. It does not wait for an operation. */
static bool claim(struct ndx_spi_mr *mr)
{
	for (;;) {
		uint32_t busy = 0;

		if (__atomic_compare_exchange_n(&mr->busy, &busy, REGION_BUSY, false,
		                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
		if (busy & REGION_BUSY)
			return false;
		sleep_on(mr, busy, UINT64_MAX);
	}
}

enum ndx_status region_begin(struct ndx_spi_mr *mr, bool registered, struct ndx_overlapped *ov,
                             const char *call)
{
	enum ndx_status st = base_ov_begin_call(ov, mr->object.adapter->loop, call);

	if (st != NDX_OK)
		return st;
	if (!claim(mr)) {
		st = fail(NDX_E_DEVICE_BUSY, 0,
		          "%s: a registration or deregistration of the region is in flight; wait "
		          "for its completion",
		          call);
		goto abandon_ov;
	}
	if (registered_of(mr) != registered) {
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0, "%s: the region is %s", call,
		          registered ? "not registered" : "registered already");
		goto unclaim;
	}
	__atomic_store_n(&mr->ov, ov, __ATOMIC_RELEASE);
	return NDX_OK;

unclaim:
	become_idle(mr);
abandon_ov:
	base_ov_abandon(ov);
	return st;
}

static struct ndx_overlapped *take_ov(struct ndx_spi_mr *mr)
{
	return __atomic_exchange_n(&mr->ov, NULL, __ATOMIC_ACQ_REL);
}

void region_abandon(struct ndx_spi_mr *mr)
{
	struct ndx_overlapped *ov = take_ov(mr);

	become_idle(mr);
	if (ov != NULL)
		base_ov_abandon(ov);
}

/* The region is registered, or is no longer. */
static void toggle(struct ndx_spi_mr *mr)
{
	const bool registered = !registered_of(mr);
	const uint64_t now = ndxp_now_ns();

	if (registered)
		__atomic_store_n(&mr->registered_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&mr->ended_ns, registered ? 0 : now, __ATOMIC_RELAXED);
	__atomic_store_n(&mr->registered, registered, __ATOMIC_RELEASE);
}

void region_ended(struct ndx_spi_mr *mr, enum ndx_status status, int32_t native)
{
	struct ndx_overlapped *ov;

	if (status == NDX_OK)
		toggle(mr);
	__atomic_store_n(&mr->outcome, status, __ATOMIC_RELAXED);
	(void)__atomic_fetch_xor(&mr->busy, REGION_BUSY | REGION_ENDING, __ATOMIC_ACQ_REL);
	/* A thread that sees the completion finds the region in its new state. The region is idle
	 * after that, so that a close does not return before. */
	ov = take_ov(mr);
	if (ov != NULL)
		base_ov_complete(ov, status, 0, native);
	become_idle(mr);
}

bool region_is_busy(const struct ndx_spi_mr *mr)
{
	return (busy_of(mr) & REGION_BUSY) != 0;
}

bool region_has_tokens(const struct ndx_spi_mr *mr)
{
	return registered_of(mr) && !region_is_busy(mr);
}

void region_set_memory(struct ndx_spi_mr *mr, const void *buffer, size_t length, uint32_t flags)
{
	mr->buffer = buffer;
	mr->length = length;
	mr->flags = flags;
}

void region_query(const struct ndx_spi_mr *mr, struct ndx_mr_info *info)
{
	const bool registered = registered_of(mr);

	*info = (struct ndx_mr_info){
		.state = registered ? NDX_MR_REGISTERED : NDX_MR_NOT_REGISTERED,
		.buffer = mr->buffer,
		.length = mr->length,
		.flags = mr->flags,
		.outcome = (enum ndx_status)__atomic_load_n(&mr->outcome, __ATOMIC_RELAXED),
		.registered_ns = __atomic_load_n(&mr->registered_ns, __ATOMIC_RELAXED),
		.ended_ns = __atomic_load_n(&mr->ended_ns, __ATOMIC_RELAXED),
	};
	if (region_is_busy(mr))
		info->state = registered ? NDX_MR_DEREGISTERING : NDX_MR_REGISTERING;
}

bool region_await_end(struct ndx_spi_mr *mr, uint32_t ms)
{
	uint64_t deadline = ndxp_deadline(ms);
	uint32_t busy;

	while ((busy = busy_of(mr)) != 0) {
		struct ndx_overlapped *ov = NULL;

		if (ndxp_now_ns() >= deadline) {
			/* an end that has begun does not block */
			deadline = UINT64_MAX;
			ov = busy & REGION_BUSY ? take_ov(mr) : NULL;
		}
		if (ov != NULL) {
			base_ov_complete(ov, NDX_E_INTERNAL_ERROR, 0, 0);
			return false;
		}
		sleep_on(mr, busy, deadline);
	}
	return true;
}
