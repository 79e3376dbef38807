/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a managed session that run in the pool: the program's callbacks, and what may block.
 */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "manager.h"

static _Thread_local bool t_in_work;

bool manager_in_work(void)
{
	return t_in_work;
}

void managed_work(struct managed *m)
{
	t_in_work = true;
	m->work(m);
	t_in_work = false;
}

static void note(struct managed *m, enum ndx_status st, enum ndx_error_layer layer,
                 const char *text)
{
	m->status = st;
	m->layer = layer;
	(void)snprintf(m->text, sizeof(m->text), "%s", text);
}

static enum ndx_status get_resources(struct managed *m)
{
	const struct ndx_session_manager_events *e = &m->manager->attr.events;
	const struct ndx_memory_description *memory = &m->resources.memory;
	enum ndx_status st;

	m->resources =
		(struct ndx_session_resources){.inbound_read_limit = 16, .outbound_read_limit = 16};
	if (e->provide == NULL)
		return NDX_OK;
	st = e->provide(e->arg, m->id, m->context, &m->resources);
	if (st != NDX_OK)
		return fail(st < 0 ? st : NDX_E_UNSUCCESSFUL, 0,
		            "managed session %llu: the program provides nothing for an attempt: %s",
		            (unsigned long long)m->id, ndx_status_name(st));
	m->provided = true;
	if (m->had_memory && memory->length > 0 && memory->token == m->former_token)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "managed session %llu: the memory has the token of the attempt before; "
		            "register it anew",
		            (unsigned long long)m->id);
	m->had_memory = memory->length > 0;
	m->former_token = memory->token;
	return NDX_OK;
}

void managed_provide(struct managed *m)
{
	struct ndx_session_attr *attr = m->attr;
	enum ndx_status st = get_resources(m);

	if (st == NDX_OK) {
		attr->connector = m->resources.connector;
		attr->qp = m->resources.qp;
		attr->memory = m->resources.memory;
		attr->inbound_read_limit = m->resources.inbound_read_limit;
		attr->outbound_read_limit = m->resources.outbound_read_limit;
		st = ndx_session_create(attr, &m->session);
	}
	note(m, st, NDX_LAYER_NONE, st != NDX_OK ? ndx_last_error() : "");
}

/* An event about the session as it is now. */
static struct ndx_managed_event event_of(struct managed *m, enum ndx_managed_event_kind kind)
{
	struct ndx_managed_event e = {.kind = kind,
	                              .id = m->id,
	                              .context = m->context,
	                              .status = m->status,
	                              .layer = m->layer};

	pthread_mutex_lock(&m->manager->lock);
	e.life = m->life;
	e.failures = m->failures;
	memcpy(e.server, m->server, sizeof(e.server));
	pthread_mutex_unlock(&m->manager->lock);
	memcpy(e.text, m->text, sizeof(e.text));
	return e;
}

void managed_tell_up(struct managed *m)
{
	struct ndx_managed_event e = event_of(m, NDX_MANAGED_EVENT_UP);

	e.session = m->session;
	manager_tell(m, &e);
}

/* Close what the attempt had. The connector's indication has its outcome afterwards, and the job
 * that its callback has posted runs before the task's own. */
static void take_down(struct managed *m)
{
	const struct ndx_session_manager_events *e = &m->manager->attr.events;

	bool told;

	ndx_session_close(m->session);
	m->session = NULL;
	pthread_mutex_lock(&m->manager->lock);
	told = m->told_gone;
	pthread_mutex_unlock(&m->manager->lock);
	if (m->watches && !told)
		(void)ndx_connector_cancel(m->resources.connector);
	m->watches = false;
	if (m->provided && e->reclaim != NULL)
		e->reclaim(e->arg, m->id, m->context, &m->resources);
	m->provided = false;
	m->attr->connector = NULL;
	m->attr->qp = NULL;
}

/* The end of a life, of an attempt, or of everything, as `lived`, `session` and `verdict` say. */
void managed_end(struct managed *m)
{
	const bool attempted = !m->lived && m->text[0] != '\0';
	struct ndx_managed_event e;

	if (m->lived) {
		e = event_of(m, NDX_MANAGED_EVENT_DOWN);
		e.pause_ms = m->pause_ms;
		e.session = m->session;
		manager_tell(m, &e);
	}
	take_down(m);
	if (attempted && m->verdict != NDX_MANAGED_EVENT_CANCELED) {
		e = event_of(m, NDX_MANAGED_EVENT_FAILED);
		e.pause_ms = m->pause_ms;
		manager_tell(m, &e);
	}
	m->lived = false;
	if (m->verdict == NDX_MANAGED_EVENT_NONE)
		return;
	e = event_of(m, m->verdict);
	if (m->verdict == NDX_MANAGED_EVENT_CANCELED)
		e.status = NDX_E_CANCELED;
	manager_tell(m, &e);
}
