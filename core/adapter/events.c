/* SPDX-License-Identifier: BSD-2-Clause */
#include "events.h"

#include <stdio.h>

#include "adapter.h"
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_ov.h"
#include "base_struct.h"

static const struct base_struct layout = BASE_STRUCT(
	struct ndx_adapter_event, NDX_ADAPTER_EVENT_SIZE_0_1, "set `size` to sizeof(*event)");

static enum ndx_log_level level_of(enum ndx_adapter_event_type type)
{
	switch (type) {
	case NDX_ADAPTER_EVENT_PORT_UP:
		return NDX_LOG_INFO;
	case NDX_ADAPTER_EVENT_DEVICE_REMOVED:
		return NDX_LOG_ERROR;
	case NDX_ADAPTER_EVENT_PORT_DOWN:
	case NDX_ADAPTER_EVENT_ADDRESS_CHANGE:
	case NDX_ADAPTER_EVENT_SUBNET_CHANGE:
		break;
	}
	return NDX_LOG_WARN;
}

/* Lock held: the oldest event that is kept and not reported, as the program gets it. False: none.
 */
static bool next_event(struct adapter_events *events, struct ndx_adapter_event *out)
{
	const uint64_t before = events->reported;
	uint64_t number = before + 1;

	if (events->total == before)
		return false;
	if (events->total - before > NDX_ADAPTER_EVENTS_KEPT)
		number = events->total - NDX_ADAPTER_EVENTS_KEPT + 1;
	*out = events->kept[number % NDX_ADAPTER_EVENTS_KEPT];
	out->lost = number - before - 1;
	events->reported = number;
	return true;
}

/* Lock held, so that operations complete in the order of the events. */
static void complete_with(struct ndx_overlapped *ov, const struct ndx_adapter_event *event)
{
	struct ndx_adapter_event *to = base_ov_get_target(ov);
	const enum ndx_status st =
		base_struct_out(&layout, "ndx_adapter_get_event", to, to->size, event);

	base_ov_complete(ov, st, 0, 0);
}

void adapter_event_report(struct ndx_adapter *adapter, enum ndx_adapter_event_type type,
                          uint32_t port, int32_t native, const char *text)
{
	struct adapter_events *events = &adapter->events;
	struct ndx_adapter_event *event;
	struct ndx_adapter_event next;

	if (ndxp_log_enabled(level_of(type)))
		ndxp_log(level_of(type), __func__, native, "%s: %s", adapter->selection.uri, text);
	ndxp_lock_acquire(&events->lock);
	events->total++;
	event = &events->kept[events->total % NDX_ADAPTER_EVENTS_KEPT];
	*event = (struct ndx_adapter_event){
		.type = type,
		.port = port,
		.native = native,
		.time_ns = ndxp_now_ns(),
		.number = events->total,
	};
	(void)snprintf(event->text, sizeof(event->text), "%s", text);
	if (events->waiting.head != NULL && next_event(events, &next))
		complete_with(ndxp_ov_pop(&events->waiting), &next);
	ndxp_lock_release(&events->lock);
}

enum ndx_status adapter_events_get(struct adapter_events *events, struct ndx_adapter_event *event,
                                   struct ndx_overlapped *ov, struct ndx_loop *loop)
{
	struct ndx_adapter_event next;
	bool closed;
	enum ndx_status st = base_struct_check_size(&layout, "ndx_adapter_get_event", event->size);

	if (st != NDX_OK)
		return st;
	st = base_ov_begin_call(ov, loop, "ndx_adapter_get_event");
	if (st != NDX_OK)
		return st;
	base_ov_set_target(ov, event);
	ndxp_lock_acquire(&events->lock);
	closed = events->closed;
	if (!closed && next_event(events, &next))
		complete_with(ov, &next);
	else if (!closed)
		ndxp_ov_push(&events->waiting, ov);
	ndxp_lock_release(&events->lock);
	if (!closed)
		return NDX_PENDING;
	base_ov_abandon(ov);
	return fail(NDX_E_INVALID_DEVICE_STATE, 0,
	            "ndx_adapter_get_event: the adapter is being closed; begin no operation in a "
	            "callback that says CANCELED");
}

void adapter_events_close(struct adapter_events *events)
{
	ndxp_lock_acquire(&events->lock);
	events->closed = true;
	ndxp_lock_release(&events->lock);
	adapter_events_cancel(events);
}

void adapter_events_cancel(struct adapter_events *events)
{
	ndxp_lock_acquire(&events->lock);
	ndxp_ov_complete_all(&events->waiting, NDX_E_CANCELED);
	ndxp_lock_release(&events->lock);
}
