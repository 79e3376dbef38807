/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the capability bits. */
#include <ndx/adapter.h>

#include <stddef.h>

const char *ndx_capability_name(enum ndx_capability bit)
{
	/* No default: -Wswitch-enum points here when a bit is added. */
	switch (bit) {
	case NDX_CAP_IN_ORDER_DMA:
		return "IN_ORDER_DMA";
	case NDX_CAP_LOOPBACK:
		return "LOOPBACK";
	case NDX_CAP_CQ_RESIZE:
		return "CQ_RESIZE";
	case NDX_CAP_NOTIFY_SOLICITED:
		return "NOTIFY_SOLICITED";
	case NDX_CAP_NOTIFY_AFFINITY:
		return "NOTIFY_AFFINITY";
	case NDX_CAP_INTERRUPT_MODERATION:
		return "INTERRUPT_MODERATION";
	case NDX_CAP_MEMORY_WINDOW:
		return "MEMORY_WINDOW";
	case NDX_CAP_SRQ:
		return "SRQ";
	case NDX_CAP_SEND_IMMEDIATE:
		return "SEND_IMMEDIATE";
	case NDX_CAP_WRITE_IMMEDIATE:
		return "WRITE_IMMEDIATE";
	case NDX_CAP_REMOTE_ACCESS_STATUS:
		return "REMOTE_ACCESS_STATUS";
	case NDX_CAP_DISCONNECT_REASON:
		return "DISCONNECT_REASON";
	case NDX_CAP_RNR_TIMER:
		return "RNR_TIMER";
	case NDX_CAP_EVENTS:
		return "EVENTS";
	case NDX_CAP_DMABUF:
		return "DMABUF";
	}
	return NULL;
}
