/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a client that run in the pool: plugins and callbacks. */
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "many.h"
#include "server.h"

/* The consumer provides the queue pair, and the provider describes it. */
static void open_session(struct client *c)
{
	const struct ndx_negotiation_server_events *e = &c->server->attr.events;
	struct dialogue *d = &c->session.dialogue;
	struct ndx_session_attr *attr = &c->session.attr;
	struct ndx_session_resources r = {.inbound_read_limit = 16, .outbound_read_limit = 16};
	enum ndx_status st = NDX_OK;
	char text[BUDGET_TEXT];

	if (e->open != NULL)
		st = e->open(e->arg, &c->session, &r);
	if (st != NDX_OK) {
		(void)snprintf(text, sizeof(text), "the server's program refuses the session: %s",
		               ndx_status_name(st));
		dialogue_fail(d, NDX_LAYER_FRAMEWORK, st, true, text);
		return;
	}
	c->opened = true;
	if (!budget_resources(c, r.qp != NULL ? 1 : 0, r.memory.length, text)) {
		c->over_budget = true;
		dialogue_fail(d, NDX_LAYER_FRAMEWORK, NDX_E_INSUFFICIENT_RESOURCES, true, text);
		return;
	}
	attr->connector = r.connector;
	attr->qp = r.qp;
	attr->memory = r.memory;
	attr->inbound_read_limit = r.inbound_read_limit;
	attr->outbound_read_limit = r.outbound_read_limit;
	st = describe_own(attr, NDX_ROLE_SERVER, &c->near, &d->own);
	if (st != NDX_OK)
		dialogue_fail(d, NDX_LAYER_PROVIDER, st, true, ndx_last_error());
}

/* The same for several queue pairs. */
static bool open_many(struct client *c)
{
	const struct ndx_negotiation_server_attr *a = &c->server->attr;
	struct ndx_session *s = &c->session;
	const uint32_t count = s->many->count;
	uint32_t queue_pairs = 0;
	uint64_t memory = 0;
	struct ndx_session_resources r = {.inbound_read_limit = 16, .outbound_read_limit = 16};
	struct ndx_session_queue_pair *list = calloc(count, sizeof(*list));
	enum ndx_status st = NDX_E_NO_MEMORY;
	char text[BUDGET_TEXT];

	if (list != NULL)
		st = a->open_many(a->events.arg, s, count, list, &r);
	c->opened = st == NDX_OK;
	for (uint32_t i = 0; c->opened && i < count; i++) {
		many_set(s->many, i, &list[i]);
		if ((list[i].connector == NULL) != (list[i].qp == NULL))
			st = NDX_E_INVALID_PARAMETER;
		queue_pairs += list[i].qp != NULL;
		memory += list[i].memory.length < UINT64_MAX - memory ? list[i].memory.length
		                                                      : UINT64_MAX - memory;
	}
	free(list);
	if (st != NDX_OK) {
		(void)snprintf(text, sizeof(text),
		               "the server's program refuses %u queue pairs: %s", count,
		               ndx_status_name(st));
		dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, st, true, text);
		return false;
	}
	if (!budget_resources(c, queue_pairs, memory, text)) {
		c->over_budget = true;
		dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, NDX_E_INSUFFICIENT_RESOURCES, true,
		              text);
		return false;
	}
	s->attr.inbound_read_limit = r.inbound_read_limit;
	s->attr.outbound_read_limit = r.outbound_read_limit;
	return many_describe(s, &c->near) == NDX_OK;
}

/* On the pool. */
static void work_for_many(struct client *c)
{
	if (c->opened || open_many(c))
		many_work(&c->session);
}

/* Report the stages that have ended since the last report. */
static void tell_stages(struct client *c)
{
	const struct ndx_negotiation_server_events *e = &c->server->attr.events;

	while (c->staged < c->session.dialogue.finished) {
		c->staged++;
		if (e->staged != NULL)
			e->staged(e->arg, &c->session, (enum ndx_stage)c->staged);
	}
}

void client_work(struct ndx_session *s)
{
	struct client *c = client_of(s);
	struct dialogue *d = &s->dialogue;

	tell_stages(c);
	if (s->driver.restart) {
		s->driver.restart = false;
		if (dialogue_restart(d) != NDX_OK)
			dialogue_fail(d, NDX_LAYER_PLUGIN, NDX_E_NOT_SUPPORTED, true,
			              "the plugin cannot begin anew");
		return;
	}
	if (s->many != NULL) {
		work_for_many(c);
		return;
	}
	if (!c->opened && d->next == DIALOGUE_CALL)
		open_session(c);
	if (d->next == DIALOGUE_CALL)
		dialogue_call(d);
}

static void close_task(struct pool_task *task)
{
	struct client *c = client_of(container_of(task, struct ndx_session, driver.task));
	struct ndx_negotiation_server *server = c->server;
	const struct ndx_negotiation_server_events *e = &server->attr.events;

	if (c->opened && e->closed != NULL)
		e->closed(e->arg, &c->session);
	budget_leave(c);
	if (c->talking)
		dialogue_fini(&c->session.dialogue);
	many_end_plugin(&c->session);
	many_free(c->session.many);
	history_fini(&c->session.history);
	(void)pthread_mutex_destroy(&c->session.lock);
	driver_fini(&c->session);
	free(c);
	server_gone(server);
}

void client_close_task(struct client *c)
{
	struct engine *engine = c->session.driver.engine;
	struct driver *d = &c->session.driver;

	d->phase = DRIVER_CLOSING;
	d->task.fn = close_task;
	/* The task frees the client, perhaps before the call returns. */
	engine_push(engine, &d->task);
}
