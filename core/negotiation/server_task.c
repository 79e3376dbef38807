/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a client that run in the pool: plugins and callbacks. */
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "server.h"

#define RELIEF_MS 5u

static struct client *client_of(struct pool_task *task)
{
	return container_of(task, struct client, task);
}

/* A task waits for a thread of the pool. */
static void relieve(struct ndx_negotiation_server *server)
{
	if (server->relieving)
		return;
	server->relieving = true;
	ndxp_timer_set(server->loop, &server->relief, RELIEF_MS);
}

void server_on_relief(void *arg)
{
	struct ndx_negotiation_server *server = arg;

	server->relieving = false;
	if (pool_relieve(&server->pool, (uint64_t)RELIEF_MS * 1000000,
	                 (uint64_t)SERVER_TICK_MS * 1000000))
		relieve(server);
}

/* The consumer provides the queue pair, and the provider describes it. */
static void open_session(struct client *c)
{
	const struct ndx_negotiation_server_events *e = &c->server->attr.events;
	struct dialogue *d = &c->session.dialogue;
	struct ndx_session_attr attr;
	enum ndx_status st = NDX_OK;

	c->resources.inbound_read_limit = 16;
	c->resources.outbound_read_limit = 16;
	if (e->open != NULL)
		st = e->open(e->arg, &c->session, &c->resources);
	if (st != NDX_OK) {
		dialogue_fail(d, NDX_LAYER_FRAMEWORK, st, true, "the server has no room for it");
		return;
	}
	c->opened = true;
	ndx_session_attr_init(&attr);
	attr.connector = c->resources.connector;
	attr.qp = c->resources.qp;
	attr.memory = c->resources.memory;
	attr.inbound_read_limit = c->resources.inbound_read_limit;
	attr.outbound_read_limit = c->resources.outbound_read_limit;
	st = describe_own(&attr, NDX_ROLE_SERVER, &c->near, &d->own);
	if (st != NDX_OK)
		dialogue_fail(d, NDX_LAYER_PROVIDER, st, true, ndx_last_error());
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

static void call_task(struct pool_task *task)
{
	struct client *c = client_of(task);
	struct dialogue *d = &c->session.dialogue;

	tell_stages(c);
	if (c->restart) {
		c->restart = false;
		if (dialogue_restart(d) != NDX_OK)
			dialogue_fail(d, NDX_LAYER_PLUGIN, NDX_E_NOT_SUPPORTED, true,
			              "the plugin cannot begin anew");
		ndxp_loop_post(c->server->loop, &c->returned);
		return;
	}
	if (!c->opened && d->next == DIALOGUE_CALL)
		open_session(c);
	if (d->next == DIALOGUE_CALL)
		dialogue_call(d);
	ndxp_loop_post(c->server->loop, &c->returned);
}

void client_call(struct client *c)
{
	c->state = CLIENT_POOL;
	c->called_ns = ndxp_now_ns();
	c->slow = false;
	c->task.fn = call_task;
	if (pool_push(&c->server->pool, &c->task))
		relieve(c->server);
	client_oob_receive(c);
}

static void close_task(struct pool_task *task)
{
	struct client *c = client_of(task);
	struct ndx_negotiation_server *server = c->server;
	const struct ndx_negotiation_server_events *e = &server->attr.events;

	if (c->opened && e->closed != NULL)
		e->closed(e->arg, &c->session);
	if (c->talking)
		dialogue_fini(&c->session.dialogue);
	history_fini(&c->session.history);
	(void)pthread_mutex_destroy(&c->session.lock);
	free(c->session.inbox);
	free(c);
	server_gone(server);
}

void client_close_task(struct client *c)
{
	struct ndx_negotiation_server *server = c->server;

	c->state = CLIENT_CLOSING;
	c->task.fn = close_task;
	/* The task frees the client, perhaps before pool_push() returns. */
	if (pool_push(&server->pool, &c->task))
		relieve(server);
}
