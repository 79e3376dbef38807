/* SPDX-License-Identifier: BSD-2-Clause */
#include "connect.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "model.h"

enum { MAGIC = 0x746f7274, READ_LIMIT = 4, NOBODYS_PORT = 1, PATIENCE = 40 };

/* What travels as private data. */
struct greeting {
	uint32_t magic;
	uint32_t conn;
	uint32_t attempt;
};

static socklen_t length_of(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void expect(struct end *e, const char *what, enum ndx_status got, enum ndx_status want)
{
	note(e->round, e, "%s: %s", what, ndx_status_name(got));
	if (got != want)
		fail(e->round, e, "%s: %s, not %s (%s)", what, ndx_status_name(got),
		     ndx_status_name(want), got < 0 ? ndx_last_error() : "");
}

static struct greeting greeting_of(const struct end *e)
{
	const struct greeting g = {MAGIC, e->conn->index, (uint32_t)e->conn->plan->attempt};

	return g;
}

/* The peer's private data are its greeting, and nothing else. */
static void expect_greeting(struct end *e)
{
	struct greeting g = {0, 0, 0};
	size_t length = sizeof(g);

	expect(e, "get_private_data", ndx_connector_get_private_data(e->connector, &g, &length),
	       NDX_OK);
	if (length != sizeof(g) || g.magic != MAGIC || g.conn != e->conn->index)
		fail(e->round, e, "private data of %zu bytes, connection %u", length, g.conn);
}

static void up(struct end *e)
{
	if (e->plan->finish == FINISH_NO_RECEIVE)
		model_abortive_begins(e, FINISH_NO_RECEIVE);
	end_set_phase(e, PHASE_UP);
}

static void never(struct end *e)
{
	note(e->round, e, "never connected");
	end_set_phase(e, PHASE_NEVER);
}

static struct ndx_overlapped *begin_call(struct end *e, const char *name)
{
	return op_begin(&e->op, e->round, side_of(e)->mail, name, below(&e->random, 3));
}

/* ---- the active side ---- */

static void ask(struct end *e)
{
	struct sockaddr_storage to = e->round->address;
	struct greeting g = greeting_of(e);
	struct ndx_overlapped *ov = begin_call(e, "connect");

	if (e->conn->plan->attempt == ATTEMPT_NOBODY && e->tries == 0) {
		if (to.ss_family == AF_INET)
			((struct sockaddr_in *)(void *)&to)->sin_port = htons(NOBODYS_PORT);
		else
			((struct sockaddr_in6 *)(void *)&to)->sin6_port = htons(NOBODYS_PORT);
	}
	expect(e, "connect",
	       op_began(&e->op,
	                ndx_connector_connect(
				e->connector, e->qp, (const struct sockaddr *)(void *)&to,
				length_of(&to),
				&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                   .private_data = &g,
	                                                   .private_data_len = sizeof(g),
	                                                   .inbound_read_limit = READ_LIMIT,
	                                                   .outbound_read_limit = READ_LIMIT},
				ov)),
	       NDX_PENDING);
	e->tries++;
	end_set_phase(e, PHASE_ASKING);
}

static void complete(struct end *e)
{
	struct ndx_overlapped *ov = begin_call(e, "complete_connect");

	expect(e, "complete_connect",
	       op_began(&e->op, ndx_connector_complete_connect(e->connector, ov)), NDX_PENDING);
	end_set_phase(e, PHASE_ANSWERING);
}

/* A cancelled connect; if it was too late for that, the answer is refused. */
static void cancel(struct end *e)
{
	expect(e, "cancel", ndx_connector_cancel(e->connector), NDX_OK);
	op_must_have_ended(&e->op, "its connector was cancelled");
	note(e->round, e, "connect: %s", ndx_status_name(e->op.status));
	if (e->op.status == NDX_OK)
		expect(e, "reject", ndx_connector_reject(e->connector, NULL, 0), NDX_OK);
	else if (e->op.status != NDX_E_CANCELED)
		fail(e->round, e, "a cancelled connect completed %s",
		     ndx_status_name(e->op.status));
	never(e);
}

static void answered(struct end *e)
{
	enum attempt attempt = e->conn->plan->attempt;

	if (attempt == ATTEMPT_NOBODY && e->tries == 1) {
		expect(e, "connect to nobody", e->op.status, NDX_E_CONNECTION_REFUSED);
		end_set_phase(e, PHASE_IDLE);
		return;
	}
	if (attempt == ATTEMPT_REJECT) {
		expect(e, "connect, rejected", e->op.status, NDX_E_CONNECTION_REFUSED);
		expect_greeting(e);
		never(e);
		return;
	}
	expect(e, "connect", e->op.status, NDX_OK);
	expect_greeting(e);
	if (attempt == ATTEMPT_TURN_DOWN || attempt == ATTEMPT_CANCEL) {
		expect(e, "reject", ndx_connector_reject(e->connector, NULL, 0), NDX_OK);
		never(e);
	} else if (attempt == ATTEMPT_CLOSE_LATE) {
		ndx_connector_close(e->connector);
		e->connector = NULL;
		never(e);
	} else {
		complete(e);
	}
}

static void step_active(struct end *e)
{
	switch (end_phase(e)) {
	case PHASE_IDLE:
		ask(e);
		break;
	case PHASE_ASKING:
		if (op_ended(&e->op))
			answered(e);
		else if (e->conn->plan->attempt == ATTEMPT_CANCEL &&
		         below(&e->random, PATIENCE) == 0)
			cancel(e);
		break;
	case PHASE_ANSWERING:
		if (!op_ended(&e->op))
			break;
		expect(e, "complete_connect", e->op.status, NDX_OK);
		up(e);
		break;
	case PHASE_UP:
	case PHASE_NEVER:
		break;
	}
}

/* ---- the passive side ---- */

static void wish(struct side *s, struct listen_slot *slot)
{
	struct ndx_connector_attr attr;
	enum ndx_status st;
	struct ndx_overlapped *ov;

	ndx_connector_attr_init(&attr);
	attr.drain_timeout_ms = s->round->plan.drain_ms;
	attr.disconnect_timeout_ms = s->round->plan.disconnect_ms;
	st = ndx_connector_create(s->adapter, &attr, &slot->connector);
	if (st != NDX_OK)
		fail(s->round, NULL, "ndx_connector_create: %s", ndx_last_error());
	ov = op_begin(&slot->op, s->round, s->mail, "get_connection_request",
	              (uint32_t)s->round->number);
	st = op_began(&slot->op,
	              ndx_listener_get_connection_request(s->listener, slot->connector, ov));
	if (st != NDX_PENDING)
		fail(s->round, NULL, "get_connection_request: %s", ndx_last_error());
	slot->pending = true;
}

/* Whose request is it? */
static struct end *find(struct side *s, struct ndx_connector *connector)
{
	struct greeting g = {0, 0, 0};
	size_t length = sizeof(g);
	enum ndx_status st = ndx_connector_get_private_data(connector, &g, &length);

	if (st != NDX_OK || length != sizeof(g) || g.magic != MAGIC ||
	    g.conn >= s->round->plan.conns)
		fail(s->round, NULL, "a request with strange private data: %s, %zu bytes",
		     ndx_status_name(st), length);
	return &s->round->conns[g.conn].ends[SIDE_B];
}

static void answer(struct end *e, struct ndx_connector *connector)
{
	struct greeting g = greeting_of(e);
	struct ndx_overlapped *ov;
	enum ndx_status st;

	if (e->conn->plan->attempt == ATTEMPT_CANCEL && end_phase(e) == PHASE_NEVER) {
		ndx_connector_close(connector);
		return;
	}
	if (e->connector != NULL || end_phase(e) != PHASE_IDLE)
		fail(e->round, e, "a second request of the same connection");
	e->connector = connector;
	expect_greeting(e);
	if (e->conn->plan->attempt == ATTEMPT_REJECT) {
		expect(e, "reject", ndx_connector_reject(e->connector, &g, sizeof(g)), NDX_OK);
		never(e);
		return;
	}
	ov = begin_call(e, "accept");
	st = op_began(&e->op, ndx_connector_accept(connector, e->qp,
	                                           &(struct ndx_connect_attr){
							   .size = sizeof(struct ndx_connect_attr),
							   .private_data = &g,
							   .private_data_len = sizeof(g),
							   .inbound_read_limit = READ_LIMIT,
							   .outbound_read_limit = READ_LIMIT},
	                                           ov));
	if (st == NDX_E_CONNECTION_ABORTED && e->conn->plan->attempt == ATTEMPT_CANCEL) {
		never(e); /* "the active side gave up before our answer" */
		return;
	}
	expect(e, "accept", st, NDX_PENDING);
	end_set_phase(e, PHASE_ANSWERING);
}

static void accepted(struct end *e)
{
	enum attempt attempt = e->conn->plan->attempt;

	if (attempt == ATTEMPT_NORMAL || attempt == ATTEMPT_NOBODY) {
		expect(e, "accept", e->op.status, NDX_OK);
		up(e);
		return;
	}
	/* "The active side gave up before our answer", which may be on its way already */
	if (attempt == ATTEMPT_CANCEL && e->op.status == NDX_E_CONNECTION_ABORTED)
		note(e->round, e, "accept: aborted");
	else
		expect(e, "accept", e->op.status, NDX_E_CONNECTION_REFUSED);
	never(e);
}

static bool final(const struct end *e)
{
	return end_phase(e) == PHASE_UP || end_phase(e) == PHASE_NEVER;
}

static void step_passive(struct side *s)
{
	for (uint32_t i = 0; i < s->round->plan.conns; i++) {
		struct listen_slot *slot = &s->slots[i];
		struct end *e = &s->round->conns[i].ends[SIDE_B];

		if (slot->pending && op_ended(&slot->op)) {
			slot->pending = false;
			if (slot->op.status != NDX_OK)
				fail(s->round, NULL, "get_connection_request completed %s",
				     ndx_status_name(slot->op.status));
			answer(find(s, slot->connector), slot->connector);
			slot->connector = NULL;
		}
		if (end_phase(e) == PHASE_ANSWERING && op_ended(&e->op))
			accepted(e);
		/* the request of a connect that was cancelled may never have been sent */
		if (end_phase(e) == PHASE_IDLE && e->conn->plan->attempt == ATTEMPT_CANCEL &&
		    end_phase(e->peer) == PHASE_NEVER)
			never(e);
	}
}

/* ---- all ---- */

static bool all_final(const struct round *round, uint32_t side)
{
	for (uint32_t i = 0; i < round->plan.conns; i++) {
		if (!final(&round->conns[i].ends[side]))
			return false;
	}
	return true;
}

static void step(struct round *round, uint32_t side)
{
	if (side == SIDE_B) {
		step_passive(&round->sides[SIDE_B]);
		return;
	}
	for (uint32_t i = 0; i < round->plan.conns; i++)
		step_active(&round->conns[i].ends[SIDE_A]);
}

/* Requests that were never sent, or came too late to be wanted. */
static void give_up_slots(struct side *s)
{
	for (uint32_t i = 0; i < s->round->plan.conns; i++) {
		struct listen_slot *slot = &s->slots[i];

		if (slot->connector == NULL)
			continue;
		ndx_connector_close(slot->connector);
		slot->connector = NULL;
		op_must_have_ended(&slot->op, "its connector was closed");
		slot->pending = false;
		if (slot->op.status != NDX_OK && slot->op.status != NDX_E_CANCELED)
			fail(s->round, NULL, "get_connection_request completed %s",
			     ndx_status_name(slot->op.status));
	}
}

static void wait_for_something(struct round *round, uint32_t side)
{
	for (uint32_t i = 0; i < round->plan.conns; i++) {
		struct end *e = &round->conns[i].ends[side];

		if (op_flying(&e->op)) {
			op_wait(&e->op);
			return;
		}
	}
}

void connect_all(struct round *round)
{
	uint32_t spins = 0;
	bool done;

	for (uint32_t i = 0; i < round->plan.conns; i++) {
		if (side_is_mine(&round->sides[SIDE_B]))
			wish(&round->sides[SIDE_B], &round->sides[SIDE_B].slots[i]);
	}
	do {
		done = true;
		trace_stop_if_failing(round);
		for (uint32_t side = 0; side < SIDES; side++) {
			if (!side_is_mine(&round->sides[side]))
				continue;
			step(round, side);
			done = done && all_final(round, side);
			if (!done && spins++ % PATIENCE == PATIENCE - 1)
				wait_for_something(round, side);
		}
	} while (!done);
	if (side_is_mine(&round->sides[SIDE_B]))
		give_up_slots(&round->sides[SIDE_B]);
}
