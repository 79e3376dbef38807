/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a session manager: the callback, and the queue. */
#include <stdlib.h>

#include <ndx/spi/log.h>
#include "base_ov.h"
#include "manager.h"

/* Lock held. */
static void keep_event(struct ndx_session_manager *manager, const struct ndx_managed_event *e)
{
	const uint32_t room = manager->attr.max_events;
	struct ndx_overlapped *ov = manager->wanted_ov;

	if (room == 0)
		return;
	if (ov != NULL) {
		*manager->wanted = *e;
		manager->wanted_ov = NULL;
		base_ov_complete(ov, NDX_OK, 0, 0);
		return;
	}
	if (manager->end_event - manager->first_event == room) {
		manager->first_event++;
		manager->stats.events_lost++;
	}
	manager->events[manager->end_event++ % room] = *e;
}

void manager_tell(struct managed *m, struct ndx_managed_event *e)
{
	struct ndx_session_manager *manager = m->manager;
	const struct ndx_session *session = e->session;

	e->session = NULL; /* not for the queue: it may be gone before the event is taken */
	pthread_mutex_lock(&manager->lock);
	keep_event(manager, e);
	pthread_mutex_unlock(&manager->lock);
	e->session = session;
	if (manager->attr.events.event != NULL)
		manager->attr.events.event(manager->attr.events.arg, e);
}

enum ndx_status ndx_session_manager_get_event(struct ndx_session_manager *manager,
                                              struct ndx_managed_event *event,
                                              struct ndx_overlapped *ov)
{
	static const char call[] = "ndx_session_manager_get_event";
	enum ndx_status st;

	if (manager == NULL || event == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	if (manager->attr.max_events == 0)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: the manager keeps no events; set max_events", call);
	st = base_ov_begin_call(ov, manager->engine->loop, call);
	if (st != NDX_OK)
		return st;
	pthread_mutex_lock(&manager->lock);
	if (manager->first_event < manager->end_event) {
		*event = manager->events[manager->first_event++ % manager->attr.max_events];
	} else if (manager->wanted_ov != NULL || manager->closing) {
		st = NDX_E_INVALID_DEVICE_STATE;
	} else {
		manager->wanted = event;
		manager->wanted_ov = ov;
		st = NDX_PENDING;
	}
	if (st != NDX_PENDING)
		base_ov_abandon(ov);
	pthread_mutex_unlock(&manager->lock);
	if (st == NDX_E_INVALID_DEVICE_STATE)
		return fail(st, 0, "%s: another request is in flight, or the manager is closing",
		            call);
	return st;
}

void manager_drop_request(struct ndx_session_manager *manager)
{
	struct ndx_overlapped *ov;

	pthread_mutex_lock(&manager->lock);
	ov = manager->wanted_ov;
	manager->wanted_ov = NULL;
	if (ov != NULL)
		base_ov_complete(ov, NDX_E_CANCELED, 0, 0);
	pthread_mutex_unlock(&manager->lock);
}

void ndx_session_manager_cancel_event(struct ndx_session_manager *manager)
{
	if (manager != NULL)
		manager_drop_request(manager);
}
