/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at all sessions of a server, for another thread. The loop thread copies some sessions at a
 * time, so that thousands of them do not delay those that have something to do. Between two steps
 * the walk keeps its place in the list of clients: a client that leaves the list moves the walk on.
 */
#include "server_view.h"

#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>

struct server_walk {
	struct ndxp_list node; /* in the server's walks, from the first to the last step */
	struct ndx_negotiation_server *server;
	struct server_views *views;
	size_t room;
	uint64_t last;          /* the youngest session when the walk began */
	size_t alive;           /* sessions then, at most */
	struct ndxp_list *next; /* the client to look at next, or the list's head: the end */
	bool done;
};

const char *server_wait_name(enum server_wait wait)
{
	static const char *const names[SERVER_WAITS] = {"hello", "peer",    "send",  "thread",
	                                                "call",  "connect", "proof", "transport",
	                                                "idle",  "close",   "turn"};

	return wait < SERVER_WAITS ? names[wait] : "?";
}

/* ---- one session; loop thread ---- */

static enum server_wait look_active(const struct client *c, uint64_t *since_ns)
{
	const struct driver *d = &c->session.driver;

	switch (c->session.dialogue.next) {
	case DIALOGUE_SEND:
		*since_ns = d->blocked_ns;
		return SERVER_WAIT_SEND;
	case DIALOGUE_RECEIVE:
		*since_ns = d->since_ns;
		return SERVER_WAIT_PEER;
	case DIALOGUE_IDLE:
		*since_ns = c->rests_ns;
		return c->idle ? SERVER_WAIT_IDLE : SERVER_WAIT_TURN;
	case DIALOGUE_CALL:
	case DIALOGUE_CONNECT:
	case DIALOGUE_PROVE:
	case DIALOGUE_FAILED:
	case DIALOGUE_CLOSED:
	default:
		return SERVER_WAIT_TURN;
	}
}

/* What the session waits for; *since_ns is 0 if it waits for nothing. While the session is in the
 * pool, its dialogue is the pool's. */
static enum server_wait look_waits(const struct client *c, uint64_t *since_ns)
{
	const struct driver *d = &c->session.driver;
	const uint64_t began_ns = __atomic_load_n(&d->began_ns, __ATOMIC_RELAXED);

	*since_ns = 0;
	switch (d->phase) {
	case DRIVER_ROLE:
		*since_ns = c->session.history.began_ns;
		return SERVER_WAIT_HELLO;
	case DRIVER_ACTIVE:
		return look_active(c, since_ns);
	case DRIVER_POOL:
		*since_ns = began_ns != 0 ? began_ns : d->called_ns;
		return began_ns != 0 ? SERVER_WAIT_CALL : SERVER_WAIT_THREAD;
	case DRIVER_QP:
		*since_ns =
			d->proving ? c->session.dialogue.proof_ns : c->session.dialogue.stage_ns;
		return d->proving ? SERVER_WAIT_PROOF : SERVER_WAIT_CONNECT;
	case DRIVER_ORPHAN:
		*since_ns = c->rests_ns;
		return SERVER_WAIT_TRANSPORT;
	case DRIVER_ENDING:
		*since_ns = c->rests_ns;
		return SERVER_WAIT_CLOSE;
	case DRIVER_CLOSING:
	default:
		return SERVER_WAIT_TURN;
	}
}

static void look_at(struct client *c, enum server_wait waits, uint64_t since_ns,
                    struct server_view *v)
{
	struct ndx_session *s = &c->session;
	const uint64_t now = ndxp_now_ns();

	*v = (struct server_view){
		.id = s->id,
		.age_ns = now - s->history.began_ns,
		.waits_ns = since_ns != 0 && since_ns < now ? now - since_ns : 0,
		.waits = waits,
		.variant = s->attr.variant,
		.stage = s->dialogue.view.stage,
		.state = ndx_session_get_state(s),
	};
	v->round = s->driver.phase == DRIVER_POOL ? s->driver.called_round : s->dialogue.view.round;
	v->agreed = ndx_session_get_agreement(s, NULL, NULL, &v->agreement) == NDX_OK;
	history_sum(&s->history, &v->totals);
	(void)snprintf(v->address, sizeof(v->address), "%s", c->address);
}

/* ---- all sessions ---- */

void server_pass(struct client *c)
{
	struct ndxp_list *walks = &c->server->walks;

	c->server->listed--;
	for (struct ndxp_list *n = walks->next; n != walks; n = n->next) {
		struct server_walk *walk = container_of(n, struct server_walk, node);

		if (walk->next == &c->node)
			walk->next = c->node.next;
	}
}

static void begin_on_loop(void *arg)
{
	struct server_walk *walk = arg;
	struct ndx_negotiation_server *server = walk->server;

	walk->last = server->last_session;
	walk->next = server->clients.next;
	ndxp_list_add(&server->walks, &walk->node);
	pthread_mutex_lock(&server->lock);
	walk->alive = server->stats.alive;
	pthread_mutex_unlock(&server->lock);
	walk->views->closing = walk->alive - server->listed;
}

static void step_on_loop(void *arg)
{
	struct server_walk *walk = arg;
	struct server_views *views = walk->views;

	for (unsigned i = 0; i < SERVER_VIEW_STEP && !walk->done; i++) {
		struct client *c = container_of(walk->next, struct client, node);
		enum server_wait waits;
		uint64_t since_ns;

		if (walk->next == &walk->server->clients || c->session.id > walk->last) {
			ndxp_list_remove(&walk->node);
			walk->done = true;
			break;
		}
		walk->next = c->node.next;
		waits = look_waits(c, &since_ns);
		views->waits[waits]++;
		views->total++;
		if (views->count < walk->room)
			look_at(c, waits, since_ns, &views->list[views->count++]);
	}
}

enum ndx_status server_look(struct ndx_negotiation_server *server, size_t most,
                            struct server_views *out)
{
	struct server_walk walk = {.server = server, .views = out};

	*out = (struct server_views){.count = 0};
	ndxp_loop_call(server->engine.loop, begin_on_loop, &walk);
	walk.room = walk.alive < most ? walk.alive : most;
	out->list = calloc(walk.room > 0 ? walk.room : 1, sizeof(*out->list));
	if (out->list == NULL)
		walk.room = 0; /* the walk has to end */
	while (!walk.done)
		ndxp_loop_call(server->engine.loop, step_on_loop, &walk);
	return out->list != NULL ? NDX_OK : NDX_E_NO_MEMORY;
}
