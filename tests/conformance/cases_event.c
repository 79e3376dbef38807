/* SPDX-License-Identifier: BSD-2-Clause */
/* event.*: the operations that wait for events of the adapter. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { GETS = 3, FILL = 0xee };

struct get {
	struct ndx_adapter_event event;
	struct ndx_overlapped ov;
};

static void start_get(struct check *c, struct ndx_adapter *adapter, struct get *get)
{
	memset(&get->event, FILL, sizeof(get->event));
	get->event.size = sizeof(get->event);
	memset(&get->ov, 0, sizeof(get->ov));
	if (!check_over(c))
		check_status(c, ndx_adapter_get_event(adapter, &get->event, &get->ov), NDX_PENDING,
		             "get_event");
}

static void is_canceled(struct check *c, struct get *get)
{
	check_that(c, ndx_overlapped_status(&get->ov) == NDX_E_CANCELED, "get_event completed %s",
	           ndx_status_name(ndx_overlapped_status(&get->ov)));
	bytes_are(c, (const uint8_t *)&get->event + sizeof(size_t),
	          sizeof(get->event) - sizeof(size_t), FILL, "event of a cancelled operation");
}

/* An adapter of its own: nothing has happened to it yet. */
static struct ndx_adapter *open_own(struct check *c)
{
	struct ndx_adapter *adapter = NULL;

	check_status(c, ndx_adapter_open(c->world->places[0].uri, &adapter), NDX_OK, "open");
	return adapter;
}

static struct {
	unsigned order[GETS];
	unsigned count;
} canceled;

static void note_cancel(struct ndx_overlapped *ov)
{
	if (canceled.count < GETS)
		canceled.order[canceled.count] = (unsigned)(uintptr_t)ov->context;
	canceled.count++;
}

void case_event_cancel_ends_all_in_order(struct check *c)
{
	struct ndx_adapter *adapter = open_own(c);
	struct get gets[GETS];

	memset(&canceled, 0, sizeof(canceled));
	for (unsigned i = 0; i < GETS && !check_over(c); i++) {
		memset(&gets[i], 0, sizeof(gets[i]));
		gets[i].event.size = sizeof(gets[i].event);
		gets[i].ov.callback = note_cancel;
		gets[i].ov.context = (void *)(uintptr_t)i;
		check_status(c, ndx_adapter_get_event(adapter, &gets[i].event, &gets[i].ov),
		             NDX_PENDING, "get_event");
	}
	if (!check_over(c)) {
		check_that(c, canceled.count == 0, "%u completed before the cancel",
		           canceled.count);
		check_status(c, ndx_adapter_cancel(adapter), NDX_OK, "cancel");
		check_that(c, canceled.count == GETS, "%u of %u callbacks", canceled.count,
		           (unsigned)GETS);
		for (unsigned i = 0; i < GETS; i++)
			check_that(c, canceled.order[i] == i, "operation %u completed as number %u",
			           canceled.order[i], i);
		check_status(c, ndx_adapter_cancel(adapter), NDX_OK, "cancel of nothing");
	}
	ndx_adapter_close(adapter);
}

void case_event_close_cancels(struct check *c)
{
	struct ndx_adapter *adapter = open_own(c);
	struct get get;

	if (check_over(c))
		return;
	start_get(c, adapter, &get);
	check_pending(c, &get.ov, "get_event");
	ndx_adapter_close(adapter);
	is_canceled(c, &get);
}

void case_event_can_be_waited_for_again(struct check *c)
{
	struct ndx_adapter *adapter = open_own(c);
	struct get get;

	for (int i = 0; i < GETS && !check_over(c); i++) {
		start_get(c, adapter, &get);
		check_status(c, ndx_adapter_cancel(adapter), NDX_OK, "cancel");
		is_canceled(c, &get);
	}
	ndx_adapter_close(adapter);
}

void case_event_arguments_are_checked(struct check *c)
{
	struct ndx_adapter *adapter = open_own(c);
	struct ndx_overlapped ov = {0};
	struct ndx_adapter_event event;
	struct get get;

	if (check_over(c))
		return;
	start_get(c, adapter, &get);
	event.size = NDX_ADAPTER_EVENT_SIZE_0_1 - 1;
	check_status(c, ndx_adapter_get_event(adapter, &event, &ov), NDX_E_INVALID_PARAMETER,
	             "with a size below the first");
	event.size = sizeof(event);
	check_status(c, ndx_adapter_get_event(adapter, NULL, &ov), NDX_E_INVALID_PARAMETER,
	             "without an event");
	check_status(c, ndx_adapter_get_event(NULL, &event, &ov), NDX_E_INVALID_PARAMETER,
	             "without an adapter");
	check_status(c, ndx_adapter_get_event(adapter, &event, NULL), NDX_E_INVALID_PARAMETER,
	             "without an overlapped object");
	check_status(c, ndx_adapter_get_event(adapter, &event, &get.ov), NDX_E_INVALID_PARAMETER,
	             "with an overlapped object in flight");
	check_that(c, ndx_overlapped_status(&ov) == NDX_OK, "a refused operation is in flight");
	ndx_adapter_close(adapter);
	is_canceled(c, &get);
}

void case_event_needs_its_capability(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_adapter_event event = {.size = sizeof(event)};
	struct ndx_overlapped ov = {0};

	if (place->info.capabilities & NDX_CAP_EVENTS) {
		check_skip(c, "the adapter has NDX_CAP_EVENTS");
		return;
	}
	check_status(c, ndx_adapter_get_event(place->adapter, &event, &ov), NDX_E_NOT_SUPPORTED,
	             "get_event");
	check_that(c, ndx_overlapped_status(&ov) == NDX_OK, "a refused operation is in flight");
	check_status(c, ndx_adapter_cancel(place->adapter), NDX_OK, "cancel of nothing");
}
