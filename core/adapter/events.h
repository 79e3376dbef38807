/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of an adapter that the program has not taken, and the operations that wait for one. */
#ifndef ADAPTER_EVENTS_H
#define ADAPTER_EVENTS_H

#include <stdbool.h>

#include <ndx/event.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/overlapped_list.h>

struct ndx_loop;

/* Event number n, from 1, is at n % NDX_ADAPTER_EVENTS_KEPT. Zero it. */
struct adapter_events {
	struct ndxp_lock lock;       /* taken below every other lock */
	struct ndxp_ov_list waiting; /* not empty: there is no event */
	bool closed;                 /* no operation may begin any more */
	uint64_t total;              /* events so far, ... */
	uint64_t reported;           /* ... and the number of the latest that the program got */
	struct ndx_adapter_event kept[NDX_ADAPTER_EVENTS_KEPT];
};

/* The upcall adapter_event. Any thread, with any lock held. */
void adapter_event_report(struct ndx_adapter *adapter, enum ndx_adapter_event_type type,
                          uint32_t port, int32_t native, const char *text);

/* As ndx_adapter_get_event(); the arguments are checked. */
enum ndx_status adapter_events_get(struct adapter_events *events, struct ndx_adapter_event *event,
                                   struct ndx_overlapped *ov, struct ndx_loop *loop);

/* Cancel the operations that wait, in order. */
void adapter_events_cancel(struct adapter_events *events);
/* The same, and begin none any more: the callback of a cancelled operation may try. */
void adapter_events_close(struct adapter_events *events);

#endif
