/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_ov.h"

#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_log.h"
#include "base_loop.h"
#include "base_ov_deliver.h"
#include "base_ov_state.h"

static uint32_t state_of(const struct ndx_overlapped *ov)
{
	return __atomic_load_n(&ov->state, __ATOMIC_ACQUIRE);
}

static bool in_flight(uint32_t state)
{
	return state == BASE_OV_PENDING || state == BASE_OV_WAITED || state == BASE_OV_QUEUED;
}

void ndx_overlapped_init(struct ndx_overlapped *ov)
{
	if (ov != NULL)
		memset(ov, 0, sizeof(*ov));
}

enum ndx_status base_ov_begin_call(struct ndx_overlapped *ov, struct ndx_loop *loop,
                                   const char *call)
{
	uint32_t state;

	if (ov == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "the overlapped object is NULL; this call needs one");
	state = state_of(ov);
	if (in_flight(state))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "the overlapped object is still in flight; wait for it or use another");
	if (ov->callback != NULL && ov->port != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "the overlapped object names a callback and a port; choose one");
	/* Two threads may begin an operation with the same object: one of them gets the error. */
	if (!__atomic_compare_exchange_n(&ov->state, &state, BASE_OV_PENDING, false,
	                                 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "the overlapped object is being used by another thread");
	/* Remember the previous outcome, in case this operation fails immediately. */
	ov->reserved[BASE_OV_LOOP_BEFORE] = ov->reserved[BASE_OV_LOOP];
	ov->reserved[BASE_OV_STATE_BEFORE] = (void *)(uintptr_t)state;
	ov->reserved[BASE_OV_LOOP] = loop;
	ov->reserved[BASE_OV_CALL_BEFORE] = ov->reserved[BASE_OV_CALL];
	memcpy(&ov->reserved[BASE_OV_CALL], &call, sizeof(call));
	return NDX_OK;
}

enum ndx_status base_ov_begin(struct ndx_overlapped *ov, struct ndx_loop *loop)
{
	return base_ov_begin_call(ov, loop, NULL);
}

void base_ov_abandon(struct ndx_overlapped *ov)
{
	uint32_t before = (uint32_t)(uintptr_t)ov->reserved[BASE_OV_STATE_BEFORE];

	ov->reserved[BASE_OV_LOOP] = ov->reserved[BASE_OV_LOOP_BEFORE];
	ov->reserved[BASE_OV_CALL] = ov->reserved[BASE_OV_CALL_BEFORE];
	base_ov_forget_before(ov);
	__atomic_store_n(&ov->state, before, __ATOMIC_RELEASE);
}

void base_ov_set_target(struct ndx_overlapped *ov, void *target)
{
	ov->reserved[BASE_OV_TARGET] = target;
}

void *base_ov_get_target(const struct ndx_overlapped *ov)
{
	return ov->reserved[BASE_OV_TARGET];
}

static void set_outcome(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
                        int32_t native)
{
	ov->status = status;
	ov->information = information;
	ov->native = native;
	base_ov_forget_before(ov);
}

static void call_back(struct ndx_overlapped *ov)
{
	__atomic_store_n(&ov->state, BASE_OV_QUEUED, __ATOMIC_RELEASE);
	base_loop_callback(ov->reserved[BASE_OV_LOOP], ov);
}

void base_ov_complete(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
                      int32_t native)
{
	set_outcome(ov, status, information, native);
	if (ov->callback != NULL)
		call_back(ov);
	else
		base_ov_tell(ov);
}

void base_ov_complete_behind(struct ndx_overlapped *ov, uintptr_t of, enum ndx_status status,
                             uint32_t information, int32_t native)
{
	set_outcome(ov, status, information, native);
	if (ov->callback != NULL)
		call_back(ov);
	else
		base_loop_behind(ov->reserved[BASE_OV_LOOP], ov, of);
}

/* The thread that asks for the outcome is not the one in which the operation failed: give this
 * thread the text. No log record, because the failure has one. */
static enum ndx_status report_outcome(const struct ndx_overlapped *ov)
{
	char text[BASE_FAILURE_TEXT];
	const char *call;

	if (ov->status >= 0)
		return ov->status;
	memcpy(&call, &ov->reserved[BASE_OV_CALL], sizeof(call));
	base_text_failure(text, ov->native, "%s: %s: %s", call != NULL ? call : "operation",
	                  ndx_status_name(ov->status), ndx_status_text(ov->status));
	ndxp_set_last_error("%s", text);
	return ov->status;
}

enum ndx_status ndx_overlapped_status(const struct ndx_overlapped *ov)
{
	if (ov == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_overlapped_status: ov is NULL");
	return in_flight(state_of(ov)) ? NDX_PENDING : report_outcome(ov);
}

/* Sleep until the object is complete or the deadline has passed. */
static void sleep_on(struct ndx_overlapped *ov, uint64_t deadline)
{
	uint32_t state = BASE_OV_PENDING;

	(void)__atomic_compare_exchange_n(&ov->state, &state, BASE_OV_WAITED, false,
	                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	ndxp_futex_wait(&ov->state, BASE_OV_WAITED, deadline);
}

enum ndx_status ndx_overlapped_wait(struct ndx_overlapped *ov, uint32_t timeout_ms)
{
	uint64_t deadline = ndxp_deadline(timeout_ms);

	if (ov == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_overlapped_wait: ov is NULL");
	if (ov->callback != NULL || ov->port != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "the overlapped object completes by callback or port; it cannot be "
		            "waited for");
	if (in_flight(state_of(ov)) && timeout_ms != 0 &&
	    !base_loop_may_wait(ov->reserved[BASE_OV_LOOP]))
		return fail(NDX_E_WOULD_BLOCK, 0,
		            "waiting in a callback would stop the adapter; use a callback or port");
	while (in_flight(state_of(ov))) {
		if (ndxp_now_ns() >= deadline)
			return NDX_PENDING;
		sleep_on(ov, deadline);
	}
	return report_outcome(ov);
}

void ndxp_ov_complete_all(struct ndxp_ov_list *list, enum ndx_status status)
{
	for (struct ndx_overlapped *ov = ndxp_ov_pop(list); ov != NULL; ov = ndxp_ov_pop(list))
		base_ov_complete(ov, status, 0, 0);
}
