/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: a manager of sessions. */
#include <inttypes.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* A manager that keeps a session up; `events` makes the queue pairs of each attempt. */
enum ndx_status example_manager(struct ndx_negotiation *framework,
                                const struct ndx_session_manager_events *events,
                                const struct ndx_session_attr *session,
                                struct ndx_session_manager **out, uint64_t *id)
{
	struct ndx_session_manager_attr attr;
	enum ndx_status st;

	ndx_session_manager_attr_init(&attr);
	attr.negotiation = framework;
	attr.events = *events;
	attr.max_events = 64;
	st = ndx_session_manager_create(&attr, out);
	if (st != NDX_OK)
		return st;
	st = ndx_session_manager_add(*out, session, NULL, id);
	if (st != NDX_OK)
		(void)ndx_session_manager_close(*out, 5000);
	return st;
}

/* Wait a minute for an event. */
enum ndx_status example_managed_event(struct ndx_session_manager *manager)
{
	struct ndx_managed_event event;
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_session_manager_get_event(manager, &event, &ov);

	if (st == NDX_PENDING && ndx_overlapped_wait(&ov, 60000) == NDX_PENDING)
		ndx_session_manager_cancel_event(manager);
	if (st == NDX_PENDING)
		st = ndx_overlapped_status(&ov);
	if (st == NDX_OK)
		printf("session %" PRIu64 ": %s %s\n", event.id, ndx_managed_event_name(event.kind),
		       event.text);
	return st;
}

/* Tell the manager that the connection of a life is dead, before its transport notices. */
enum ndx_status example_report(struct ndx_session_manager *manager,
                               const struct ndx_managed_event *up)
{
	return ndx_session_manager_report(manager, up->id, up->life, NDX_E_CONNECTION_ABORTED);
}

/* What the sessions are doing. */
enum ndx_status example_managed(struct ndx_session_manager *manager)
{
	struct ndx_session_manager_stats stats = {.size = sizeof(stats)};
	struct ndx_managed_entry list[32];
	size_t count = 32, total;
	enum ndx_status st = ndx_session_manager_list(manager, list, &count, &total);

	if (st != NDX_OK && st != NDX_E_BUFFER_OVERFLOW)
		return st;
	for (size_t i = 0; st == NDX_OK && i < count; i++)
		printf("%" PRIu64 ": %s\n", list[i].id, ndx_managed_state_name(list[i].state));
	st = ndx_session_manager_get_stats(manager, &stats);
	if (st == NDX_OK)
		printf("%u up, %u waiting\n", stats.up, stats.waiting);
	return st;
}

/* End a session, forget it, and end the manager. */
enum ndx_status example_manager_end(struct ndx_session_manager *manager, uint64_t id)
{
	enum ndx_status st = ndx_session_manager_cancel(manager, id);

	if (st == NDX_OK)
		st = ndx_session_manager_remove(manager, id);
	if (st != NDX_OK)
		fprintf(stderr, "%s\n", ndx_last_error());
	return ndx_session_manager_close(manager, 5000);
}

/* What a binding for another language calls. */
void example_manager_sizes(struct ndx_session_manager_attr *attr, size_t size)
{
	ndx_session_manager_attr_init_sized(attr, size);
}
