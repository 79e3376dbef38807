/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: events of an adapter. */
#include <stdio.h>

#include <ndx/ndx.h>

/* Print what happens to the device and its ports, for a minute. */
enum ndx_status example_events(struct ndx_adapter *adapter)
{
	struct ndx_adapter_event event = {.size = sizeof(event)};
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_adapter_get_event(adapter, &event, &ov);

	while (st == NDX_PENDING) {
		st = ndx_overlapped_wait(&ov, 60000);
		if (st == NDX_PENDING) {
			(void)ndx_adapter_cancel(adapter); /* completes it: NDX_E_CANCELED */
			return ndx_overlapped_status(&ov);
		}
		if (st != NDX_OK)
			break;
		printf("%s, port %u: %s\n", ndx_adapter_event_name(event.type), event.port,
		       event.text);
		st = ndx_adapter_get_event(adapter, &event, &ov);
	}
	return st;
}
