/* SPDX-License-Identifier: BSD-2-Clause */
/* A session manager: create, add, list, close. */
#include "manager.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "base_struct.h"
#include "plugins.h"

#define EVENTS_MOST 1048576u

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_session_manager_attr, NDX_SESSION_MANAGER_ATTR_SIZE_0_1,
                    "call ndx_session_manager_attr_init() first");

static const struct ndx_session_manager_attr attr_defaults = {
	.max_sessions = 4096,
	.max_connecting = 32,
	.attempts = 10,
	.backoff_ms = 100,
	.backoff_most_ms = 30000,
	.stable_ms = 1000,
};

void ndx_session_manager_attr_init_sized(struct ndx_session_manager_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

/* ---- the manager ---- */

static bool is_reserved_set(const struct ndx_session_manager_attr *a)
{
	for (size_t i = 0; i < sizeof(a->reserved_bytes) / sizeof(a->reserved_bytes[0]); i++)
		if (a->reserved_bytes[i])
			return true;
	for (size_t i = 0; i < sizeof(a->reserved) / sizeof(a->reserved[0]); i++)
		if (a->reserved[i] != NULL)
			return true;
	return false;
}

static enum ndx_status check_attr(const struct ndx_session_manager_attr *a)
{
	const char *fault = NULL;

	if (a->negotiation == NULL)
		fault = "attr->negotiation is NULL";
	else if (a->max_sessions == 0 || a->max_connecting == 0 || a->attempts == 0)
		fault = "max_sessions, max_connecting and attempts must be 1 or more";
	else if (a->backoff_ms == 0 || a->backoff_ms > a->backoff_most_ms)
		fault = "backoff_ms must be 1 or more, at most backoff_most_ms";
	else if (a->max_events > EVENTS_MOST)
		fault = "max_events is beyond 1048576";
	else if (is_reserved_set(a))
		fault = "a reserved member is set";
	if (fault == NULL)
		return NDX_OK;
	return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_manager_create: %s", fault);
}

static void init_change(struct ndx_session_manager *manager)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&manager->change, &attr);
	(void)pthread_condattr_destroy(&attr);
}

enum ndx_status ndx_session_manager_create(const struct ndx_session_manager_attr *attr,
                                           struct ndx_session_manager **out)
{
	static const char call[] = "ndx_session_manager_create";
	struct ndx_session_manager_attr own = attr_defaults;
	struct ndx_session_manager *manager;
	enum ndx_status st;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	st = base_struct_in(&attr_layout, call, &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
	if (st != NDX_OK)
		return st;
	manager = calloc(1, sizeof(*manager));
	if (manager == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
	manager->attr = own;
	manager->events = calloc(own.max_events > 0 ? own.max_events : 1, sizeof(*manager->events));
	if (manager->events == NULL) {
		st = fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
		goto free_manager;
	}
	st = plugins_engine(own.negotiation, &manager->engine);
	if (st != NDX_OK)
		goto free_events;
	st = engine_need_pool(manager->engine, call);
	if (st != NDX_OK)
		goto put_engine;
	ndxp_list_init(&manager->list);
	ndxp_list_init(&manager->ready);
	manager->pump = (struct ndxp_job){.fn = manager_pump, .arg = manager};
	(void)pthread_mutex_init(&manager->lock, NULL);
	init_change(manager);
	*out = manager;
	return NDX_OK;
put_engine:
	engine_put(manager->engine);
free_events:
	free(manager->events);
free_manager:
	free(manager);
	return st;
}

static void managed_free(struct managed *m)
{
	for (size_t i = 0; m->servers != NULL && i < m->attr->server_count; i++)
		free(m->servers[i]);
	free(m->servers);
	free(m->attr);
	free(m);
}

static void free_on_loop(void *arg)
{
	managed_free(arg);
}

/* A session that is over and in no list any more: jobs of it may still be queued. */
static void let_go(struct managed *m)
{
	variant_put(m->attr->variant);
	m->last = (struct ndxp_job){.fn = free_on_loop, .arg = m};
	ndxp_loop_post(m->manager->engine->loop, &m->last);
}

static void free_manager_on_loop(void *arg)
{
	struct ndx_session_manager *manager = arg;
	struct engine *engine = manager->engine;

	(void)pthread_cond_destroy(&manager->change);
	(void)pthread_mutex_destroy(&manager->lock);
	free(manager->events);
	free(manager);
	engine_put(engine);
}

/* Lock held. */
static void mark_cancelled(struct managed *m)
{
	m->flags |= MANAGED_CANCEL;
	ndxp_loop_post(m->manager->engine->loop, &m->look);
}

/* False: the time is over before the last session is. */
static bool await_end(struct ndx_session_manager *manager, uint32_t timeout_ms)
{
	const uint64_t deadline = ndxp_deadline(timeout_ms);
	const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
	                               .tv_nsec = (long)(deadline % 1000000000u)};
	const bool waits = timeout_ms > 0 && !ndxp_loop_on_any() && !manager_in_work();
	int error = 0;
	bool over;

	pthread_mutex_lock(&manager->lock);
	manager->closing = true;
	for (struct ndxp_list *n = manager->list.next; n != &manager->list; n = n->next)
		mark_cancelled(container_of(n, struct managed, node));
	while (waits && manager->living > 0 && error == 0)
		error = timeout_ms == NDX_INFINITE
		                ? pthread_cond_wait(&manager->change, &manager->lock)
		                : pthread_cond_timedwait(&manager->change, &manager->lock, &until);
	over = manager->living == 0;
	pthread_mutex_unlock(&manager->lock);
	return over;
}

enum ndx_status ndx_session_manager_close(struct ndx_session_manager *manager, uint32_t timeout_ms)
{
	struct ndxp_list *n;

	if (manager == NULL)
		return NDX_OK;
	if (!await_end(manager, timeout_ms))
		return NDX_PENDING;
	manager_drop_request(manager);
	while ((n = ndxp_list_take(&manager->list)) != NULL)
		let_go(container_of(n, struct managed, node));
	manager->last = (struct ndxp_job){.fn = free_manager_on_loop, .arg = manager};
	ndxp_loop_post(manager->engine->loop, &manager->last);
	return NDX_OK;
}

/* ---- sessions ---- */

/* Attributes of an older program end before these members. */
static bool has_queue_pairs(const struct ndx_session_attr *attr)
{
	const size_t end = offsetof(struct ndx_session_attr, queue_pair_count) +
	                   sizeof(attr->queue_pair_count);

	return attr->size >= end && attr->queue_pair_count > 0;
}

static enum ndx_status check_session(const struct ndx_session_manager *manager,
                                     const struct ndx_session_attr *attr)
{
	static const char call[] = "ndx_session_manager_add";
	struct ndx_session *trial;
	enum ndx_status st;

	/* A session says what is wrong with its attributes, and reads the files of TLS. */
	st = ndx_session_create(attr, &trial);
	if (st != NDX_OK)
		return st;
	ndx_session_close(trial);
	if (attr->connector != NULL || attr->memory.length > 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: connector, queue pair and memory come from the callback `provide`",
		            call);
	if (has_queue_pairs(attr))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: queue_pairs must be unset; a managed session has the queue pair "
		            "that the callback `provide` gives",
		            call);
	if (attr->variant->plugin->negotiation != manager->attr.negotiation)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: the variant is of another framework than the manager", call);
	return NDX_OK;
}

static struct managed *managed_create(struct ndx_session_manager *manager,
                                      const struct ndx_session_attr *attr, void *context)
{
	struct managed *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->manager = manager;
	m->context = context;
	m->attr = calloc(1, attr->size > sizeof(*attr) ? attr->size : sizeof(*attr));
	if (m->attr == NULL)
		goto fail;
	memcpy(m->attr, attr, attr->size);
	m->attr->attempts = 1; /* the pauses between attempts are the manager's */
	m->servers = calloc(attr->server_count, sizeof(*m->servers));
	if (m->servers == NULL)
		goto fail;
	for (size_t i = 0; i < attr->server_count; i++) {
		m->servers[i] = strdup(attr->servers[i]);
		if (m->servers[i] == NULL)
			goto fail;
	}
	m->attr->servers = (const char *const *)m->servers;
	managed_init(m);
	return m;
fail:
	if (m->attr == NULL)
		free(m);
	else
		managed_free(m);
	return NULL;
}

/* Lock held. */
static enum ndx_status put_in_list(struct ndx_session_manager *manager, struct managed *m)
{
	if (manager->closing)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_session_manager_add: the manager is being closed");
	if (manager->stats.sessions >= manager->attr.max_sessions)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, 0,
		            "ndx_session_manager_add: %u sessions are the limit (max_sessions)",
		            manager->attr.max_sessions);
	m->id = ++manager->last_id;
	ndxp_list_add(&manager->list, &m->node);
	manager->living++;
	manager->stats.sessions++;
	manager->stats.added++;
	ndxp_loop_post(manager->engine->loop, &m->look);
	return NDX_OK;
}

enum ndx_status ndx_session_manager_add(struct ndx_session_manager *manager,
                                        const struct ndx_session_attr *attr, void *context,
                                        uint64_t *id)
{
	struct managed *m;
	enum ndx_status st;

	if (manager == NULL || attr == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_manager_add: NULL argument");
	st = check_session(manager, attr);
	if (st != NDX_OK)
		return st;
	m = managed_create(manager, attr, context);
	if (m == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_session_manager_add: out of memory");
	variant_get(attr->variant);
	pthread_mutex_lock(&manager->lock);
	st = put_in_list(manager, m);
	if (st == NDX_OK && id != NULL)
		*id = m->id;
	pthread_mutex_unlock(&manager->lock);
	if (st != NDX_OK) {
		variant_put(attr->variant);
		managed_free(m);
	}
	return st;
}

/* Lock held. */
static struct managed *find(struct ndx_session_manager *manager, uint64_t id)
{
	for (struct ndxp_list *n = manager->list.next; n != &manager->list; n = n->next) {
		struct managed *m = container_of(n, struct managed, node);

		if (m->id == id)
			return m;
	}
	return NULL;
}

static enum ndx_status say_unknown(const char *call, uint64_t id)
{
	return fail(NDX_E_NOT_FOUND, 0, "%s: there is no session %llu", call,
	            (unsigned long long)id);
}

enum ndx_status ndx_session_manager_cancel(struct ndx_session_manager *manager, uint64_t id)
{
	struct managed *m;

	if (manager == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_session_manager_cancel: NULL argument");
	pthread_mutex_lock(&manager->lock);
	m = find(manager, id);
	if (m != NULL)
		mark_cancelled(m);
	pthread_mutex_unlock(&manager->lock);
	return m != NULL ? NDX_OK : say_unknown("ndx_session_manager_cancel", id);
}

enum ndx_status ndx_session_manager_remove(struct ndx_session_manager *manager, uint64_t id)
{
	static const char call[] = "ndx_session_manager_remove";
	struct managed *m;
	bool over = false;

	if (manager == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	pthread_mutex_lock(&manager->lock);
	m = find(manager, id);
	if (m != NULL && m->state == NDX_MANAGED_OVER) {
		over = true;
		ndxp_list_remove(&m->node);
		manager->stats.sessions--;
	}
	pthread_mutex_unlock(&manager->lock);
	if (m == NULL)
		return say_unknown(call, id);
	if (!over)
		return fail(NDX_E_DEVICE_BUSY, 0, "%s: session %llu is not over; cancel it", call,
		            (unsigned long long)id);
	let_go(m);
	return NDX_OK;
}

enum ndx_status ndx_session_manager_report(struct ndx_session_manager *manager, uint64_t id,
                                           uint32_t life, enum ndx_status status)
{
	static const char call[] = "ndx_session_manager_report";
	struct managed *m;
	bool up = false;

	if (manager == NULL || status >= 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: NULL argument, or the status is no failure", call);
	pthread_mutex_lock(&manager->lock);
	m = find(manager, id);
	if (m != NULL && m->state == NDX_MANAGED_UP && m->life == life) {
		up = true;
		m->flags |= MANAGED_REPORTED;
		m->reported = status;
		ndxp_loop_post(manager->engine->loop, &m->look);
	}
	pthread_mutex_unlock(&manager->lock);
	if (m == NULL)
		return say_unknown(call, id);
	return up ? NDX_OK
	          : fail(NDX_E_INVALID_DEVICE_STATE, 0, "%s: life %u of session %llu is not up",
	                 call, life, (unsigned long long)id);
}

/* Lock held. */
static void describe(const struct managed *m, struct ndx_managed_entry *e)
{
	*e = (struct ndx_managed_entry){.id = m->id,
	                                .context = m->context,
	                                .state = m->state,
	                                .life = m->life,
	                                .attempts = m->attempts,
	                                .failures = m->failures,
	                                .status = m->shown_status,
	                                .layer = m->shown_layer};
	memcpy(e->server, m->server, sizeof(e->server));
	memcpy(e->text, m->shown_text, sizeof(e->text));
}

enum ndx_status ndx_session_manager_list(struct ndx_session_manager *manager,
                                         struct ndx_managed_entry *list, size_t *count,
                                         size_t *total)
{
	size_t filled = 0;

	if (manager == NULL || count == NULL || (list == NULL && *count > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_manager_list: NULL argument");
	pthread_mutex_lock(&manager->lock);
	for (struct ndxp_list *n = manager->list.next; n != &manager->list && filled < *count;
	     n = n->next)
		describe(container_of(n, struct managed, node), &list[filled++]);
	if (total != NULL)
		*total = manager->stats.sessions;
	pthread_mutex_unlock(&manager->lock);
	*count = filled;
	return NDX_OK;
}

/* Lock held. */
static void count_states(struct ndx_session_manager *manager,
                         struct ndx_session_manager_stats *stats)
{
	uint32_t *const counts[] = {[NDX_MANAGED_QUEUED] = &stats->queued,
	                            [NDX_MANAGED_CONNECTING] = &stats->connecting,
	                            [NDX_MANAGED_UP] = &stats->up,
	                            [NDX_MANAGED_WAITING] = &stats->waiting,
	                            [NDX_MANAGED_OVER] = &stats->over};

	for (struct ndxp_list *n = manager->list.next; n != &manager->list; n = n->next)
		(*counts[container_of(n, struct managed, node)->state])++;
}

enum ndx_status ndx_session_manager_get_stats(struct ndx_session_manager *manager,
                                              struct ndx_session_manager_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_session_manager_stats, NDX_SESSION_MANAGER_STATS_SIZE_0_1,
	                    "set `size` to sizeof(*stats)");
	static const char call[] = "ndx_session_manager_get_stats";
	struct ndx_session_manager_stats now;

	if (manager == NULL || stats == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	pthread_mutex_lock(&manager->lock);
	now = manager->stats;
	count_states(manager, &now);
	pthread_mutex_unlock(&manager->lock);
	return base_struct_out(&layout, call, stats, stats->size, &now);
}
