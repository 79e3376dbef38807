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
	pthread_t caller;
	bool here;              /* the caller is the loop's thread */
	struct ndxp_timer turn; /* armed by a step; runs when the sessions had their turn, ... */
	bool turned;            /* ... and sets this, which the next step needs; under the lock */
	pthread_mutex_t lock;
	pthread_cond_t change;
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
                    struct ndx_history_entry *steps, struct server_view *v)
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
		.queue_pairs = ndx_session_get_queue_pair_count(s),
	};
	v->round = s->driver.phase == DRIVER_POOL ? s->driver.called_round : s->dialogue.view.round;
	v->agreed = ndx_session_get_agreement(s, NULL, NULL, &v->agreement) == NDX_OK;
	history_sum(&s->history, &v->totals);
	(void)snprintf(v->address, sizeof(v->address), "%s", c->address);
	v->proof = c->identity.kind;
	(void)snprintf(v->principal, sizeof(v->principal), "%s",
	               c->server->tls == NULL ? "plaintext" : c->identity.name);
	v->steps = steps;
	v->step_count = SERVER_VIEW_STEPS;
	if (steps != NULL)
		history_copy(&s->history, steps, &v->step_count, NULL);
}

/* Room for the steps of the session that is listed next; NULL: none. */
static struct ndx_history_entry *steps_of(const struct server_views *views)
{
	return views->steps != NULL ? views->steps + views->count * SERVER_VIEW_STEPS : NULL;
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

static void on_turn(void *arg)
{
	struct server_walk *walk = arg;

	pthread_mutex_lock(&walk->lock);
	walk->turned = true;
	(void)pthread_cond_signal(&walk->change);
	pthread_mutex_unlock(&walk->lock);
}

/* Any thread. `wait`: until the sessions had their turn. */
static bool have_turned(struct server_walk *walk, bool wait)
{
	bool turned;

	pthread_mutex_lock(&walk->lock);
	while (wait && !walk->turned)
		(void)pthread_cond_wait(&walk->change, &walk->lock);
	turned = walk->turned;
	pthread_mutex_unlock(&walk->lock);
	return turned;
}

static void begin_on_loop(void *arg)
{
	struct server_walk *walk = arg;
	struct ndx_negotiation_server *server = walk->server;

	walk->turn = (struct ndxp_timer){.fn = on_turn, .arg = walk};
	walk->turned = true;
	walk->here = pthread_equal(walk->caller, pthread_self()) != 0;
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

	/* In a callback of this thread, sessions have no turn before the look returns. */
	if (!walk->here && !have_turned(walk, false))
		return;
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
		if (views->count == walk->room)
			continue;
		look_at(c, waits, since_ns, steps_of(views), &views->list[views->count]);
		views->count++;
	}
	/* The loop's thread runs many jobs before it looks at descriptors, and would run the next
	 * step among them. It runs a timer that is set now after it has looked at descriptors. */
	if (walk->done || walk->here)
		return;
	pthread_mutex_lock(&walk->lock);
	walk->turned = false;
	pthread_mutex_unlock(&walk->lock);
	ndxp_timer_set(walk->server->engine.loop, &walk->turn, 0);
}

enum ndx_status server_look(struct ndx_negotiation_server *server, size_t most,
                            struct server_views *out)
{
	struct server_walk walk = {.server = server, .views = out, .caller = pthread_self()};

	*out = (struct server_views){.count = 0};
	(void)pthread_mutex_init(&walk.lock, NULL);
	(void)pthread_cond_init(&walk.change, NULL);
	ndxp_loop_call(server->engine.loop, begin_on_loop, &walk);
	walk.room = walk.alive < most ? walk.alive : most;
	out->list = calloc(walk.room > 0 ? walk.room : 1, sizeof(*out->list));
	if (out->list == NULL)
		walk.room = 0; /* the walk has to end */
	/* Steps are many bytes, so there are none where sessions are many, or memory is short. */
	if (walk.room > 0 && walk.room <= SERVER_VIEW_STEP)
		out->steps = calloc(walk.room * SERVER_VIEW_STEPS, sizeof(*out->steps));
	while (!walk.done) {
		/* The thread of another loop must run that loop's jobs, which the call does. */
		(void)have_turned(&walk, !ndxp_loop_on_any());
		ndxp_loop_call(server->engine.loop, step_on_loop, &walk);
	}
	(void)pthread_cond_destroy(&walk.change);
	(void)pthread_mutex_destroy(&walk.lock);
	return out->list != NULL ? NDX_OK : NDX_E_NO_MEMORY;
}

void server_forget(struct server_views *views)
{
	free(views->list);
	free(views->steps);
}
