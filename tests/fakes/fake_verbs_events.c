/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events of the fake device. */
#include <errno.h>
#include <string.h>

#include "fake_verbs.h"

void fake_raise_event(struct fake_device *device, enum ibv_event_type what, void *element)
{
	struct ibv_async_event *event;

	if (device->event_count == FAKE_EVENTS)
		return;
	event = &device->events[device->event_count++];
	*event = (struct ibv_async_event){.event_type = what};
	event->element.qp = element;
}

void fake_raise_port_event(struct fake_device *device, enum ibv_event_type what, int port)
{
	fake_raise_event(device, what, NULL);
	device->events[device->event_count - 1].element.port_num = port;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct fake_device *device = (struct fake_device *)(void *)context;

	if (device->event_count == 0) {
		errno = EAGAIN;
		return -1;
	}
	*event = device->events[0];
	memmove(device->events, device->events + 1, --device->event_count * sizeof(*event));
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}
