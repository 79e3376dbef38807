/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points for the events of an adapter. */
#include <ndx/event.h>

#include "adapter.h"
#include <ndx/spi/log.h>

const char *ndx_adapter_event_name(enum ndx_adapter_event_type type)
{
	switch (type) {
	case NDX_ADAPTER_EVENT_PORT_DOWN:
		return "port down";
	case NDX_ADAPTER_EVENT_PORT_UP:
		return "port up";
	case NDX_ADAPTER_EVENT_ADDRESS_CHANGE:
		return "address change";
	case NDX_ADAPTER_EVENT_SUBNET_CHANGE:
		return "subnet change";
	case NDX_ADAPTER_EVENT_DEVICE_REMOVED:
		return "device removed";
	}
	return "?";
}

enum ndx_status ndx_adapter_get_event(struct ndx_adapter *adapter, struct ndx_adapter_event *event,
                                      struct ndx_overlapped *ov)
{
	if (adapter == NULL || event == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_adapter_get_event: NULL argument");
	if (!(adapter->info.capabilities & NDX_CAP_EVENTS))
		return fail(NDX_E_NOT_SUPPORTED, 0, "ndx_adapter_get_event: %s reports no events",
		            adapter->info.uri);
	return adapter_events_get(&adapter->events, event, ov, adapter->loop);
}

enum ndx_status ndx_adapter_cancel(struct ndx_adapter *adapter)
{
	if (adapter == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_adapter_cancel: adapter is NULL");
	adapter_events_cancel(&adapter->events);
	adapter_flush_callbacks(adapter);
	return NDX_OK;
}
