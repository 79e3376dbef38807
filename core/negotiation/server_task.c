/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a client that run in the pool: plugins and callbacks. */
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "many_add.h"
#include "server.h"

static void fail_over_budget(struct client *c, const char *text)
{
	server_count(c->server, &c->server->stats.refused);
	server_count(c->server, &c->server->stats.refused_principals);
	c->over_budget = true;
	dialogue_fail(&c->session.dialogue, NDX_LAYER_FRAMEWORK, NDX_E_INSUFFICIENT_RESOURCES, true,
	              text);
}

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
		server_count(c->server, &c->server->stats.refused);
		dialogue_fail(d, NDX_LAYER_FRAMEWORK, st, true, text);
		return;
	}
	c->opened = true;
	if ((r.connector == NULL) != (r.qp == NULL)) {
		(void)snprintf(text, sizeof(text), "the server's program gave no %s",
		               r.qp == NULL ? "queue pair beside its connector"
		                            : "connector beside its queue pair");
		dialogue_fail(d, NDX_LAYER_FRAMEWORK, NDX_E_INVALID_PARAMETER, true, text);
		return;
	}
	if (!budget_resources(c, r.qp != NULL ? 1 : 0, r.memory.length, text)) {
		fail_over_budget(c, text);
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

enum ndx_status client_take_list(struct lane *const *lanes, uint32_t count,
                                 const struct ndx_session_queue_pair *list, struct given *g,
                                 char why[BUDGET_TEXT])
{
	enum ndx_status st = NDX_OK;

	for (uint32_t i = 0; i < count; i++) {
		const uint64_t length = list[i].memory.length;

		lane_set(lanes[i], &list[i]);
		g->queue_pairs += list[i].qp != NULL;
		g->memory += length < UINT64_MAX - g->memory ? length : UINT64_MAX - g->memory;
		if (st != NDX_OK || (list[i].connector == NULL) == (list[i].qp == NULL))
			continue;
		st = NDX_E_INVALID_PARAMETER;
		(void)snprintf(why, BUDGET_TEXT, "the server's program gave queue pair %u no %s",
		               lane_index(lanes[i]),
		               list[i].qp == NULL ? "queue pair beside its connector"
		                                  : "connector beside its queue pair");
	}
	return st;
}

/* Ask the consumer; else `why` says what it refuses, or what is wrong. */
static enum ndx_status ask_for_many(struct client *c, struct ndx_session_resources *r,
                                    struct given *g, char why[BUDGET_TEXT])
{
	const struct ndx_negotiation_server_attr *a = &c->server->attr;
	struct many *m = c->session.many;
	struct ndx_session_queue_pair *list = calloc(m->count, sizeof(*list));
	enum ndx_status st;

	if (list == NULL) {
		(void)snprintf(why, BUDGET_TEXT, "the server has no memory for %u queue pairs",
		               m->count);
		return NDX_E_NO_MEMORY;
	}
	st = a->open_many(a->events.arg, &c->session, m->count, list, r);
	c->opened = st == NDX_OK;
	if (c->opened) {
		st = client_take_list(m->lanes, m->count, list, g, why);
	} else {
		server_count(c->server, &c->server->stats.refused);
		(void)snprintf(why, BUDGET_TEXT, "the server's program refuses %u queue pairs: %s",
		               m->count, ndx_status_name(st));
	}
	free(list);
	return st;
}

/* The same for several queue pairs. */
static bool open_many(struct client *c)
{
	struct ndx_session *s = &c->session;
	struct ndx_session_resources r = {.inbound_read_limit = 16, .outbound_read_limit = 16};
	struct given g = {0};
	char text[BUDGET_TEXT];
	const enum ndx_status st = ask_for_many(c, &r, &g, text);

	if (st != NDX_OK) {
		dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, st, true, text);
		return false;
	}
	if (!budget_resources(c, g.queue_pairs, g.memory, text)) {
		fail_over_budget(c, text);
		return false;
	}
	for (uint32_t i = 0; i < s->many->count; i++)
		s->many->lanes[i]->counted = true;
	s->attr.inbound_read_limit = r.inbound_read_limit;
	s->attr.outbound_read_limit = r.outbound_read_limit;
	return many_describe(s, &c->near) == NDX_OK;
}

/* On the pool. */
static void work_for_many(struct client *c)
{
	if (!c->opened && !open_many(c))
		return;
	many_work(&c->session);
	addition_work(&c->session);
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

/* The program's callbacks may block. */
bool client_is_prompt(struct ndx_session *s)
{
	const struct client *c = client_of(s);
	const struct ndx_negotiation_server_events *e = &c->server->attr.events;

	return s->many == NULL && !s->driver.restart && (c->opened || e->open == NULL) &&
	       (e->staged == NULL || c->staged == s->dialogue.finished) &&
	       plugin_is_prompt(s->attr.variant->plugin);
}

static void close_task(struct pool_task *task)
{
	struct client *c = client_of(container_of(task, struct ndx_session, driver.task));
	struct ndx_negotiation_server *server = c->server;
	const struct ndx_negotiation_server_events *e = &server->attr.events;

	addition_end(&c->session);
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
	if (c->session.many == NULL && (!c->opened || c->server->attr.events.closed == NULL) &&
	    (!c->talking || plugin_is_prompt(c->session.attr.variant->plugin))) {
		close_task(&d->task);
		return;
	}
	/* The task frees the client, perhaps before the call returns. */
	engine_push(engine, &d->task);
}
