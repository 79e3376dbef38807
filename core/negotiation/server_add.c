/* SPDX-License-Identifier: BSD-2-Clause */
/* What the role of the server adds when a client adds queue pairs to its session. */
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include "many_add.h"
#include "server.h"

/* ---- loop thread ---- */

static enum ndx_status allow(struct ndx_session *s, uint32_t count, char *why, size_t room)
{
	const struct ndx_negotiation_server_attr *a = &client_of(s)->server->attr;

	if (a->add_many == NULL) {
		(void)snprintf(why, room, "the server's program takes no queue pair later");
		return NDX_E_NOT_SUPPORTED;
	}
	/* `count` is 1024 at most */
	if (s->many->count + count <= a->max_queue_pairs)
		return NDX_OK;
	(void)snprintf(why, room,
	               "the client adds %u queue pairs to %u, this server takes %u at most in a "
	               "session",
	               count, s->many->count, a->max_queue_pairs);
	return NDX_E_INSUFFICIENT_RESOURCES;
}

static void set_timer(struct ndx_session *s)
{
	struct client *c = client_of(s);

	c->idle = false;
	driver_set_timer(s, ndxp_deadline(c->server->attr.stage_timeout_ms));
}

static bool over(struct ndx_session *s, const struct ndx_session_error *outcome, uint32_t first)
{
	(void)s;
	(void)outcome;
	(void)first;
	return true; /* the client's next frame */
}

static bool may_log(struct ndx_session *s)
{
	return server_may_log_batch(client_of(s)->server);
}

/* ---- on the pool ---- */

/* Ask the program; else `why` says what it refuses, or what is wrong. */
static enum ndx_status ask(struct ndx_session *s, struct addition *a, struct given *g,
                           char why[BUDGET_TEXT])
{
	const struct ndx_negotiation_server_attr *attr = &client_of(s)->server->attr;
	struct ndx_session_queue_pair *list = calloc(a->count, sizeof(*list));
	enum ndx_status st;

	if (list == NULL) {
		(void)snprintf(why, BUDGET_TEXT, "the server has no memory for %u more queue pairs",
		               a->count);
		return NDX_E_NO_MEMORY;
	}
	st = attr->add_many(attr->events.arg, s, a->first, a->count, list);
	a->opened = st == NDX_OK;
	if (st != NDX_OK)
		(void)snprintf(why, BUDGET_TEXT,
		               "the server's program refuses %u more queue pairs: %s", a->count,
		               ndx_status_name(st));
	else
		st = client_take_list(a->lanes, a->count, list, g, why);
	free(list);
	return st;
}

static void open(struct ndx_session *s, struct addition *a)
{
	struct client *c = client_of(s);
	struct given g = {.queue_pairs = 0};
	char text[BUDGET_TEXT];
	enum ndx_status st;

	a->near = c->near;
	st = ask(s, a, &g, text);
	if (st != NDX_OK) {
		addition_fault(a, NDX_LAYER_FRAMEWORK, st, text);
		return;
	}
	if (!budget_resources(c, g.queue_pairs, g.memory, text)) {
		addition_fault(a, NDX_LAYER_FRAMEWORK, NDX_E_INSUFFICIENT_RESOURCES, text);
		return;
	}
	for (uint32_t i = 0; i < a->count; i++)
		a->lanes[i]->counted = true;
}

/* The program owns it again, so that its principal may have another one. */
static void give_back(struct client *c, struct lane *lane)
{
	if (lane->counted)
		budget_return(c, lane->s.attr.qp != NULL ? 1 : 0, lane->s.attr.memory.length);
	lane->counted = false;
}

static void told(struct ndx_session *s, struct addition *a, enum ndx_status status)
{
	struct client *c = client_of(s);
	const struct ndx_negotiation_server_attr *attr = &c->server->attr;

	if (attr->added == NULL)
		return; /* the program owns them again when the session is over */
	attr->added(attr->events.arg, s, a->first, a->count, status);
	for (uint32_t i = 0; status != NDX_OK && i < a->count; i++)
		give_back(c, a->lanes[i]);
}

static void removed(struct ndx_session *s, struct lane *lane)
{
	struct client *c = client_of(s);
	const struct ndx_negotiation_server_attr *attr = &c->server->attr;

	if (attr->removed == NULL)
		return;
	attr->removed(attr->events.arg, s, lane_index(lane));
	give_back(c, lane);
}

const struct addition_role addition_server = {.allow = allow,
                                              .timer = set_timer,
                                              .over = over,
                                              .may_log = may_log,
                                              .open = open,
                                              .told = told,
                                              .removed = removed};
