/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.manager_*: sessions that a manager keeps: its list, its limit, the backup, the life
 * after a connection, and cancelling. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <ndx/session_manager.h>

#include "cases.h"
#include "house.h"
#include "same_plugin.h"
#include "traffic.h"

enum { LIVES = 3, EVENTS = 64 };

/* A house, and a manager of sessions with it. */
struct office {
	struct house h;
	struct ndx_session_manager *manager;
	struct pair *p[LIVES];
	uint32_t provided;  /* atomic */
	uint32_t reclaimed; /* atomic */
	pthread_mutex_t lock;
	struct ndx_managed_event events[EVENTS]; /* under the lock, as the next */
	uint32_t count;
};

/* A of the next pair. */
static enum ndx_status provide(void *arg, uint64_t id, void *context,
                               struct ndx_session_resources *resources)
{
	struct office *o = arg;
	const uint32_t next = __atomic_load_n(&o->provided, __ATOMIC_SEQ_CST);

	(void)id;
	(void)context;
	if (next == LIVES)
		return NDX_E_INSUFFICIENT_RESOURCES;
	(void)__atomic_add_fetch(&o->provided, 1, __ATOMIC_SEQ_CST);
	resources->connector = o->p[next]->a.conn;
	resources->qp = o->p[next]->a.qp;
	return NDX_OK;
}

/* The fixture closes them. */
static void reclaim(void *arg, uint64_t id, void *context,
                    const struct ndx_session_resources *resources)
{
	struct office *o = arg;

	(void)id;
	(void)context;
	(void)resources;
	(void)__atomic_add_fetch(&o->reclaimed, 1, __ATOMIC_SEQ_CST);
}

static void on_event(void *arg, const struct ndx_managed_event *event)
{
	struct office *o = arg;

	pthread_mutex_lock(&o->lock);
	if (o->count < EVENTS)
		o->events[o->count++] = *event;
	pthread_mutex_unlock(&o->lock);
}

/* The nth event, from 0, is this one. */
static bool happens(struct office *o, uint32_t n, enum ndx_managed_event_kind kind,
                    struct ndx_managed_event *out)
{
	bool there = false;

	*out = (struct ndx_managed_event){.kind = NDX_MANAGED_EVENT_NONE};
	for (int ms = 0; ms < WAIT_MS && !there; ms++) {
		pthread_mutex_lock(&o->lock);
		there = o->count > n;
		if (there)
			*out = o->events[n];
		pthread_mutex_unlock(&o->lock);
		(void)poll(NULL, 0, 1);
	}
	return check_that(o->h.c, out->kind == kind, "event %u is \"%s\", not \"%s\": %s", n,
	                  ndx_managed_event_name(out->kind), ndx_managed_event_name(kind),
	                  out->text);
}

static bool office_open(struct office *o, struct check *c, bool plain, uint32_t most)
{
	struct ndx_session_manager_attr attr;

	memset(o, 0, sizeof(*o));
	(void)pthread_mutex_init(&o->lock, NULL);
	if (!house_open(&o->h, c, &same_plugin) || !pairs_open(c, o->p, LIVES, NULL, NULL) ||
	    !house_serve(&o->h, "127.0.0.1:0"))
		return false;
	for (int i = 0; i < LIVES; i++)
		house_give(&o->h, &o->p[i]->b);
	ndx_session_manager_attr_init(&attr);
	attr.negotiation = o->h.negotiation;
	attr.events = (struct ndx_session_manager_events){.event = on_event, .arg = o};
	if (!plain) {
		attr.events.provide = provide;
		attr.events.reclaim = reclaim;
	}
	attr.max_sessions = most;
	attr.backoff_ms = 10;
	attr.backoff_most_ms = 100;
	attr.stable_ms = 1;
	return check_status(c, ndx_session_manager_create(&attr, &o->manager), NDX_OK, "a manager");
}

static void office_close(struct office *o)
{
	if (o->manager)
		check_status(o->h.c, ndx_session_manager_close(o->manager, WAIT_MS), NDX_OK,
		             "close the manager");
	house_stop(&o->h);
	pair_close_all(o->h.c);
	house_close(&o->h);
	(void)pthread_mutex_destroy(&o->lock);
}

static enum ndx_status add(struct office *o, const char *const *servers, size_t count, uint64_t *id)
{
	struct ndx_session_attr attr;

	ndx_session_attr_init(&attr);
	attr.variant = o->h.variant;
	attr.servers = servers;
	attr.server_count = count;
	return ndx_session_manager_add(o->manager, &attr, o, id);
}

static bool in_state(struct office *o, uint64_t id, enum ndx_managed_state state)
{
	struct ndx_managed_entry list[4];
	enum ndx_managed_state now = NDX_MANAGED_QUEUED;
	size_t count = 0;

	for (int ms = 0; ms < WAIT_MS; ms++) {
		count = 4;
		if (!check_status(o->h.c, ndx_session_manager_list(o->manager, list, &count, NULL),
		                  NDX_OK, "list"))
			return false;
		for (size_t i = 0; i < count; i++)
			if (list[i].id == id)
				now = list[i].state;
		if (now == state)
			return true;
		(void)poll(NULL, 0, 1);
	}
	return check_that(o->h.c, false, "the session is %s, not %s", ndx_managed_state_name(now),
	                  ndx_managed_state_name(state));
}

static bool has_entries(struct office *o, size_t wanted)
{
	struct ndx_managed_entry list[4];
	size_t count = 1;
	size_t total = 0;

	return check_status(o->h.c, ndx_session_manager_list(o->manager, list, &count, &total),
	                    NDX_OK, "list") &&
	       check_that(o->h.c, total == wanted && count == (wanted < 1 ? wanted : 1),
	                  "%zu of %zu entries, not of %zu", count, total, wanted);
}

/* No one listens there, so that the sessions wait for their next attempts. */
void case_negotiated_manager_lists_and_limits(struct check *c)
{
	char gone[32];
	const char *const away = gone;
	const int fd = house_reserve(gone);
	struct office o;
	uint64_t ids[3];

	if (office_open(&o, c, true, 2) && check_that(c, fd >= 0, "no port") &&
	    check_status(c, add(&o, &away, 1, &ids[0]), NDX_OK, "add") &&
	    check_status(c, add(&o, &away, 1, &ids[1]), NDX_OK, "add another") &&
	    check_status(c, add(&o, &away, 1, &ids[2]), NDX_E_INSUFFICIENT_RESOURCES,
	                 "add one too many") &&
	    has_entries(&o, 2) &&
	    check_status(c, ndx_session_manager_remove(o.manager, ids[0]), NDX_E_DEVICE_BUSY,
	                 "remove one that tries") &&
	    check_status(c, ndx_session_manager_cancel(o.manager, ids[0]), NDX_OK, "cancel") &&
	    in_state(&o, ids[0], NDX_MANAGED_OVER) &&
	    check_status(c, add(&o, &away, 1, &ids[2]), NDX_E_INSUFFICIENT_RESOURCES,
	                 "add while it is in the list") &&
	    check_status(c, ndx_session_manager_remove(o.manager, ids[0]), NDX_OK, "remove") &&
	    has_entries(&o, 1) &&
	    check_status(c, ndx_session_manager_cancel(o.manager, ids[0]), NDX_E_NOT_FOUND,
	                 "cancel one that is not there") &&
	    check_status(c, add(&o, &away, 1, &ids[2]), NDX_OK, "add in its place"))
		(void)has_entries(&o, 2);
	office_close(&o);
	if (fd >= 0)
		(void)close(fd);
}

void case_negotiated_manager_goes_to_the_backup(struct check *c)
{
	struct ndx_managed_event e;
	char gone[32];
	const int fd = house_reserve(gone);
	const char *servers[2] = {gone};
	struct office o;
	uint64_t id;

	if (office_open(&o, c, false, 4) && check_that(c, fd >= 0, "no port")) {
		servers[1] = o.h.address;
		if (check_status(c, add(&o, servers, 2, &id), NDX_OK, "add") &&
		    happens(&o, 0, NDX_MANAGED_EVENT_UP, &e) &&
		    check_that(c, strcmp(e.server, o.h.address) == 0, "it is up at %s", e.server) &&
		    check_that(c, e.id == id && e.life == 1 && e.context == &o,
		               "the event is of another session or life"))
			(void)message_passes(&o.p[0]->a, &o.p[0]->b, 100);
	}
	office_close(&o);
	if (fd >= 0)
		(void)close(fd);
}

/* The peer's queue pair dies; the next life has objects of its own. */
void case_negotiated_manager_connects_again(struct check *c)
{
	struct ndx_managed_event e;
	struct office o;
	const char *server = o.h.address;
	uint64_t id;

	if (!office_open(&o, c, false, 4) ||
	    !check_status(c, add(&o, &server, 1, &id), NDX_OK, "add"))
		goto close;
	for (uint32_t life = 0; life < LIVES; life++) {
		if (!happens(&o, 2 * life, NDX_MANAGED_EVENT_UP, &e) ||
		    !check_that(c, e.life == life + 1, "it is life %u", e.life) ||
		    !message_passes(&o.p[life]->a, &o.p[life]->b, 100) || life + 1 == LIVES)
			break;
		check_status(c, ndx_qp_flush(o.p[life]->b.qp), NDX_OK, "flush");
		if (!happens(&o, 2 * life + 1, NDX_MANAGED_EVENT_DOWN, &e) ||
		    !check_that(c, e.status < 0, "it ended with %s", ndx_status_name(e.status)))
			break;
	}
close:
	office_close(&o);
	check_that(c, o.reclaimed == o.provided, "%u provided, %u reclaimed", o.provided,
	           o.reclaimed);
}

void case_negotiated_manager_cancels(struct check *c)
{
	struct ndx_managed_event e;
	struct office o;
	const char *server = o.h.address;
	uint64_t id;

	if (office_open(&o, c, false, 4) &&
	    check_status(c, add(&o, &server, 1, &id), NDX_OK, "add") &&
	    happens(&o, 0, NDX_MANAGED_EVENT_UP, &e) &&
	    check_status(c, ndx_session_manager_cancel(o.manager, id), NDX_OK, "cancel") &&
	    happens(&o, 1, NDX_MANAGED_EVENT_DOWN, &e) &&
	    happens(&o, 2, NDX_MANAGED_EVENT_CANCELED, &e) && in_state(&o, id, NDX_MANAGED_OVER))
		check_that(c, __atomic_load_n(&o.reclaimed, __ATOMIC_SEQ_CST) == 1,
		           "%u objects were given back", o.reclaimed);
	office_close(&o);
}
