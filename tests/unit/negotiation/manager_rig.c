/* SPDX-License-Identifier: BSD-2-Clause */
#include "manager_rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>

#include "same_plugin.h"

/* ---- ends ---- */

static enum ndx_status end_open(struct site *s, struct end **out)
{
	struct end *e = calloc(1, sizeof(*e));
	struct ndx_qp_attr attr;

	assert_non_null(e);
	ndx_qp_attr_init(&attr);
	assert_int_equal(ndx_cq_create_depth(s->adapter, 4, &e->cq), NDX_OK);
	attr.receive_cq = attr.initiator_cq = e->cq;
	attr.receive_depth = attr.initiator_depth = 1;
	assert_int_equal(ndx_qp_create(s->adapter, &attr, &e->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(s->adapter, NULL, &e->connector), NDX_OK);
	*out = e;
	return NDX_OK;
}

static void end_close(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	free(e);
}

/* ---- the server ---- */

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct site *s = arg;
	struct end *e;

	if (s->plain)
		return NDX_OK;
	(void)end_open(s, &e);
	e->session = session;
	resources->connector = e->connector;
	resources->qp = e->qp;
	pthread_mutex_lock(&s->lock);
	e->next = s->ends;
	s->ends = e;
	pthread_mutex_unlock(&s->lock);
	return NDX_OK;
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct site *s = arg;
	struct end **at = &s->ends;
	struct end *e;

	pthread_mutex_lock(&s->lock);
	while (*at != NULL && (*at)->session != session)
		at = &(*at)->next;
	e = *at;
	if (e != NULL)
		*at = e->next;
	pthread_mutex_unlock(&s->lock);
	if (e != NULL)
		end_close(e);
}

void site_serve(struct site *s, uint16_t port)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	(void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", port);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = s->address;
	attr.variants = &s->variant;
	attr.variant_count = 1;
	attr.max_sessions = 10000;
	attr.max_history = 4;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .closed = on_closed, .arg = s};
	assert_int_equal(ndx_negotiation_server_create(&attr, &s->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(s->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

void site_unserve(struct site *s)
{
	ndx_negotiation_server_close(s->server);
	s->server = NULL;
	assert_null(s->ends);
}

uint16_t site_port(const struct site *s)
{
	return (uint16_t)strtoul(strchr(s->address, ':') + 1, NULL, 10);
}

void site_abort(struct site *s)
{
	pthread_mutex_lock(&s->lock);
	for (struct end *e = s->ends; e != NULL; e = e->next)
		(void)ndx_qp_flush(e->qp);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the manager ---- */

static enum ndx_status provide(void *arg, uint64_t id, void *context,
                               struct ndx_session_resources *resources)
{
	struct site *s = arg;
	const struct ndx_session_manager_stats stats = site_stats(s);
	struct end *e = NULL;
	enum ndx_status st;

	(void)id;
	(void)context;
	pthread_mutex_lock(&s->lock);
	st = s->refuse;
	if (st == NDX_OK) {
		s->provided++;
		if (stats.connecting > s->connecting_most)
			s->connecting_most = stats.connecting;
		if (s->token != 0)
			resources->memory = (struct ndx_memory_description){
				.address = 4096, .length = 64, .token = s->token};
		s->token += s->token != 0 && !s->same_token;
	}
	pthread_mutex_unlock(&s->lock);
	if (st != NDX_OK || s->plain)
		return st;
	(void)end_open(s, &e);
	resources->connector = e->connector;
	resources->qp = e->qp;
	e->connector = NULL; /* what is reclaimed has them */
	e->qp = NULL;
	ndx_cq_close(e->cq); /* the queue pair keeps what it needs */
	free(e);
	return NDX_OK;
}

static void reclaim(void *arg, uint64_t id, void *context,
                    const struct ndx_session_resources *resources)
{
	struct site *s = arg;

	(void)id;
	(void)context;
	ndx_connector_close(resources->connector);
	ndx_qp_close(resources->qp);
	pthread_mutex_lock(&s->lock);
	s->reclaimed++;
	pthread_mutex_unlock(&s->lock);
}

static void on_event(void *arg, const struct ndx_managed_event *event)
{
	struct site *s = arg;

	pthread_mutex_lock(&s->lock);
	assert_true(s->count < EVENTS);
	s->events[s->count] = *event;
	s->events[s->count++].session = NULL;
	pthread_mutex_unlock(&s->lock);
	if (s->closes && event->kind == NDX_MANAGED_EVENT_UP)
		assert_int_equal(ndx_session_manager_close(s->manager, NDX_INFINITE), NDX_PENDING);
	if (s->cancels && event->kind == NDX_MANAGED_EVENT_UP)
		assert_int_equal(ndx_session_manager_cancel(s->manager, event->id), NDX_OK);
	while (__atomic_load_n(&s->hold, __ATOMIC_SEQ_CST) != 0)
		(void)poll(NULL, 0, 1);
}

void site_manager_attr(struct site *s, struct ndx_session_manager_attr *attr)
{
	ndx_session_manager_attr_init(attr);
	attr->negotiation = s->negotiation;
	attr->events = (struct ndx_session_manager_events){
		.provide = provide, .reclaim = reclaim, .event = on_event, .arg = s};
	attr->backoff_ms = 10;
	attr->backoff_most_ms = 100;
	attr->stable_ms = 1;
}

void site_manage(struct site *s, const struct ndx_session_manager_attr *attr)
{
	assert_int_equal(ndx_session_manager_create(attr, &s->manager), NDX_OK);
}

uint64_t site_add(struct site *s, const char *const *servers, size_t count)
{
	struct ndx_session_attr attr;
	uint64_t id = 0;

	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	attr.servers = servers;
	attr.server_count = count;
	attr.max_history = 4;
	attr.connect_timeout_ms = WAIT_MS;
	if (ndx_session_manager_add(s->manager, &attr, s, &id) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	return id;
}

struct ndx_session_manager_stats site_stats(struct site *s)
{
	struct ndx_session_manager_stats stats = {.size = sizeof(stats)};

	assert_int_equal(ndx_session_manager_get_stats(s->manager, &stats), NDX_OK);
	return stats;
}

static uint32_t in_state(const struct ndx_session_manager_stats *stats,
                         enum ndx_managed_state state)
{
	const uint32_t counts[] = {stats->queued, stats->connecting, stats->up, stats->waiting,
	                           stats->over};

	return counts[state];
}

void site_await(struct site *s, enum ndx_managed_state state, unsigned count)
{
	struct ndx_session_manager_stats stats = {0};

	for (int ms = 0; ms < WAIT_MS; ms++) {
		stats = site_stats(s);
		if (in_state(&stats, state) == count)
			return;
		(void)poll(NULL, 0, 1);
	}
	fail_msg("%u sessions are %s, not %u", in_state(&stats, state),
	         ndx_managed_state_name(state), count);
}

unsigned site_count(struct site *s, enum ndx_managed_event_kind kind)
{
	unsigned count = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->count; i++)
		count += s->events[i].kind == kind;
	pthread_mutex_unlock(&s->lock);
	return count;
}

struct ndx_managed_event site_event(struct site *s, uint64_t id, unsigned n)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		unsigned seen = 0;

		pthread_mutex_lock(&s->lock);
		for (unsigned i = 0; i < s->count; i++) {
			const struct ndx_managed_event e = s->events[i];

			if (e.id != id || seen++ != n)
				continue;
			pthread_mutex_unlock(&s->lock);
			return e;
		}
		pthread_mutex_unlock(&s->lock);
		(void)poll(NULL, 0, 1);
	}
	fail_msg("session %u has no event %u", (unsigned)id, n);
	return (struct ndx_managed_event){0};
}

/* ---- sites ---- */

void site_open(struct site *s, bool plain)
{
	memset(s, 0, sizeof(*s));
	s->plain = plain;
	s->events = calloc(EVENTS, sizeof(*s->events));
	assert_non_null(s->events);
	(void)pthread_mutex_init(&s->lock, NULL);
	assert_int_equal(ndx_adapter_open("loop", &s->adapter), NDX_OK);
	assert_int_equal(ndx_negotiation_create(&s->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(s->negotiation, &same_plugin), NDX_OK);
	assert_int_equal(ndx_negotiation_get_variant(s->negotiation, "same", "as-it-is", NULL, 0,
	                                             &s->variant),
	                 NDX_OK);
}

/* What was provided was reclaimed, and nothing is left. */
void site_close(struct site *s)
{
	assert_int_equal(ndx_session_manager_close(s->manager, WAIT_MS), NDX_OK);
	assert_int_equal(s->provided, s->reclaimed);
	if (s->server != NULL)
		site_unserve(s);
	ndx_variant_close(s->variant);
	assert_int_equal(ndx_negotiation_close(s->negotiation), NDX_OK);
	ndx_adapter_close(s->adapter);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->events);
}
