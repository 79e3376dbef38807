/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of several queue pairs: its stages, the calls of the plugin, and how it fails. */
#include "many_add.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "connection.h"

/* ---- life ---- */

struct many *many_alloc(uint32_t count)
{
	struct many *m = calloc(1, sizeof(*m));

	if (m != NULL)
		m->lanes = calloc(count, sizeof(void *));
	if (m == NULL || m->lanes == NULL) {
		free(m);
		return NULL;
	}
	m->due_end = &m->due;
	while (m->count < count) {
		struct lane *lane = lane_alloc(m);

		if (lane == NULL) {
			many_free(m);
			return NULL;
		}
		m->lanes[m->count++] = lane;
	}
	return m;
}

static const struct driver_many many_table = {
	.has_stage = many_has_stage,
	.step = many_step,
	.stop = many_stop,
	.close = many_close,
	.flush = many_flush,
	.is_full = many_is_full,
	.has_place = many_has_place,
	.take = many_take,
	.hear = addition_hear,
	.has_oob = many_has_oob,
	.oob_is_over = many_oob_is_over,
	.oob_lost = many_oob_lost,
	.lane_stopped = many_lane_stopped,
	.is_open = lane_is_open,
	.read = lane_read,
	.read_behind = lane_read_behind,
	.consume = lane_consume,
	.consume_behind = lane_consume_behind,
	.send = lane_send,
};

void many_init(struct ndx_session *s, struct many *m, const struct addition_role *adding)
{
	m->session = s;
	m->role = adding;
	m->next_index = m->count;
	s->many = m;
	s->driver.many = &many_table;
	for (uint32_t i = 0; i < m->count; i++) {
		lane_init(m->lanes[i], i);
		m->lanes[i]->s.dialogue.view.queue_pair_count = m->count;
	}
}

void many_free(struct many *m)
{
	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->count; i++)
		lane_free(m->lanes[i]);
	many_free_removed(m);
	addition_free(m->adding);
	free(m->lanes);
	free(m->out);
	free(m);
}

void many_end_plugin(struct ndx_session *s)
{
	for (uint32_t i = 0; s->many != NULL && i < s->many->count; i++)
		dialogue_fini(&s->many->lanes[i]->s.dialogue);
	for (struct lane *lane = s->many != NULL ? s->many->removed : NULL; lane != NULL;
	     lane = lane->next_due)
		if (!lane->ended)
			dialogue_fini(&lane->s.dialogue);
}

const char many_unknown[] =
	"the server does not know version 2 of the protocol, which several queue pairs in one "
	"session need; ask it for one. It says: ";

/* A server has this status for a first message that is no HELLO to it, and for nothing else before
 * WELCOME. That it has read a well-formed HELLO of version 2 in this way says that it does not know
 * the version. The version in the header of the answer does not tell: ERROR is of the whole
 * session, so that all servers send it with version 1. */
bool many_is_unknown(const struct ndx_session *s, const struct frame_error *refusal)
{
	return s->many != NULL && (enum ndx_status)refusal->status == NDX_E_REMOTE_ERROR;
}

/* ---- on the pool ---- */

enum ndx_status many_describe(struct ndx_session *s, const struct sockaddr_storage *near)
{
	struct many *m = s->many;

	for (uint32_t i = 0; i < m->count; i++) {
		struct ndx_session *lane = &m->lanes[i]->s;
		enum ndx_status st;

		lane->attr.inbound_read_limit = s->attr.inbound_read_limit;
		lane->attr.outbound_read_limit = s->attr.outbound_read_limit;
		st = describe_own(&lane->attr, s->dialogue.view.role, near, &lane->dialogue.own);
		if (st == NDX_OK)
			continue;
		dialogue_fail(&lane->dialogue, NDX_LAYER_PROVIDER, st, true, ndx_last_error());
		return st;
	}
	return NDX_OK;
}

void many_work(struct ndx_session *s)
{
	for (struct lane *lane = s->many->batch; lane != NULL; lane = lane->next_due)
		if (lane->s.dialogue.next == DIALOGUE_CALL)
			dialogue_call(&lane->s.dialogue);
}

/* ---- stages ---- */

bool many_has_stage(const struct ndx_session *s)
{
	const enum dialogue_next next = s->dialogue.next;

	return s->many != NULL && (next != DIALOGUE_IDLE || many_adds_now(s)) &&
	       next != DIALOGUE_FAILED && next != DIALOGUE_CLOSED;
}

static void begin_stage(struct ndx_session *s)
{
	struct many *m = s->many;

	m->in_stage = true;
	m->asks_done = false;
	m->left = m->count;
	s->dialogue.next = DIALOGUE_RECEIVE;
	for (uint32_t i = 0; i < m->count; i++)
		lane_start(m->lanes[i], s->dialogue.view.stage);
	for (uint32_t i = 0; i < m->count; i++)
		driver_go(&m->lanes[i]->s);
}

static void fail_session(struct ndx_session *s)
{
	const struct many *m = s->many;
	const struct dialogue *from = &m->failed->s.dialogue;
	const uint32_t index = lane_index(m->failed);
	struct dialogue *x = &s->dialogue;
	char text[sizeof(from->error.text)];

	(void)snprintf(text, sizeof(text), "queue pair %u: %.200s", index, from->error.text);
	dialogue_fail(x, from->error.layer, from->error.status, from->tell, text);
	x->error.plugin_error = from->error.plugin_error;
	x->error.remote = from->error.remote;
	x->error.round = from->error.round;
	x->error.of_queue_pair = 1;
	x->error.queue_pair = index;
}

/* A peer that fails tells that first, and then gives up its attempts. So what the peer has said is
 * the cause of what happens to the lanes, whichever of both is noticed first. */
static bool hear_error(struct ndx_session *s)
{
	const char *why;
	struct frame f;

	s->driver.drained = false; /* its event may still be on its way */
	if (!driver_is_open(s) ||
	    driver_read_frame(s, s->dialogue.limits.max_message, &f, &why) != IO_DONE ||
	    f.type != FRAME_ERROR)
		return false;
	dialogue_receive(&s->dialogue, &f, ndxp_now_ns());
	driver_consume(s);
	return true;
}

/* All lanes have ended the stage. */
static void end_stage(struct ndx_session *s)
{
	const struct many *m = s->many;
	const struct dialogue *first = m->count > 0 ? &m->lanes[0]->s.dialogue : NULL;
	struct dialogue *x = &s->dialogue;
	const struct ndx_history_entry entry = {.kind = NDX_HISTORY_STAGE, .stage = x->view.stage};

	s->many->in_stage = false;
	if (x->view.stage == NDX_STAGE_INFO && first != NULL) {
		x->own = first->own;
		x->peer = first->peer;
		x->agreed = first->agreed;
		x->agreement_known = first->agreement_known;
	}
	x->finished = (int)x->view.stage;
	x->next = DIALOGUE_IDLE;
	history_add(x->history, &entry, x->stage_ns, frame_stage_name(x->view.stage));
}

bool many_step(struct ndx_session *s)
{
	struct many *m = s->many;

	if (m->adding != NULL)
		return addition_step(s);
	if (!m->in_stage)
		begin_stage(s);
	many_end_batch(m);
	if (m->failed != NULL) {
		if (!m->late && many_awaits_word(s, m->failed, &m->listening))
			return driver_receive(s);
		if (!hear_error(s))
			fail_session(s);
		return true;
	}
	if (m->left == 0) {
		end_stage(s);
		return true;
	}
	if (m->due == NULL)
		return driver_receive(s);
	many_push_due(s);
	return false;
}

bool many_timer(struct ndx_session *s)
{
	struct many *m = s->many;

	if (m == NULL || !m->listening || m->late || s->driver.phase != DRIVER_ACTIVE)
		return false;
	m->late = true;
	driver_go(s);
	return true;
}

/* ---- the end ---- */

/* Nothing is in progress any more. */
static void end_stop(struct many *m, bool (*then)(struct ndx_session *s))
{
	m->then = NULL;
	m->session->driver.phase = m->phase;
	if (then(m->session))
		driver_go(m->session);
}

/* A cancel may run jobs of this thread, and lanes end in them; the session must not. */
static void cancel_lanes(struct many *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (m->lanes[i]->s.driver.phase == DRIVER_QP)
			conn_cancel_attempt(m->lanes[i]->s.attr.connector);
}

void many_cancel_attempts(struct ndx_session *s)
{
	struct many *m = s->many;
	bool (*then)(struct ndx_session * s);

	if (m == NULL) {
		conn_cancel_attempt(s->attr.connector);
		return;
	}
	then = m->then;
	m->then = NULL;
	cancel_lanes(m);
	m->then = then;
	if (then != NULL && m->connecting == 0)
		end_stop(m, then);
}

/* The session has failed before all of its queue pairs are ready, or a batch has: none stays
 * connected. */
static void hang_up(struct lane *lane)
{
	const struct dialogue *x = &lane->many->session->dialogue;
	const struct addition *a = lane->addition;

	if (a != NULL ? a->stage >= NDX_STAGE_VALIDATE
	              : x->view.stage >= NDX_STAGE_VALIDATE && x->finished < NDX_STAGE_READY)
		lane_hang_up(lane);
}

static void stop_lanes(struct many *m)
{
	m->stopping = true;
	m->connecting = 0; /* a batch may have been given up already */
	for (uint32_t i = 0; i < m->count; i++) {
		struct driver *d = &m->lanes[i]->s.driver;

		driver_set_timer(&m->lanes[i]->s, UINT64_MAX);
		m->connecting += d->phase == DRIVER_QP;
		if (d->phase == DRIVER_QP)
			continue;
		d->phase = DRIVER_CLOSING;
		hang_up(m->lanes[i]);
	}
	cancel_lanes(m);
}

bool many_stop(struct ndx_session *s, bool (*then)(struct ndx_session *s))
{
	struct many *m = s->many;

	if (m == NULL || (m->stopping && m->connecting == 0))
		return true;
	if (s->driver.phase != DRIVER_QP)
		m->phase = s->driver.phase;
	s->driver.phase = DRIVER_QP;
	if (!m->stopping)
		stop_lanes(m);
	m->then = then;
	if (m->connecting > 0)
		return false;
	s->driver.phase = m->phase;
	return true;
}

bool many_lane_stopped(struct ndx_session *s)
{
	struct lane *lane = s->driver.lane;
	struct many *m = lane->many;

	if (!m->stopping && (lane->addition == NULL || !lane->addition->failing))
		return false;
	s->driver.phase = DRIVER_CLOSING;
	hang_up(lane);
	if (--m->connecting > 0)
		return true;
	if (m->then != NULL)
		end_stop(m, m->then);
	else if (!m->stopping)
		driver_go_soon(m->session);
	return true;
}

void many_set_phase(struct ndx_session *s, enum driver_phase phase)
{
	for (uint32_t i = 0; s->many != NULL && i < s->many->count; i++)
		s->many->lanes[i]->s.driver.phase = phase;
}

void many_close(struct ndx_session *s)
{
	for (uint32_t i = 0; s->many != NULL && i < s->many->count; i++) {
		struct ndx_session *lane = &s->many->lanes[i]->s;

		driver_set_timer(lane, UINT64_MAX);
		lane->driver.phase = DRIVER_CLOSING;
		driver_oob_close(lane);
	}
}

const char *many_late(const struct ndx_session *s, char *text, size_t room)
{
	const struct many *m = s->many;
	uint32_t connecting = 0;
	uint32_t first = 0;

	for (uint32_t i = m != NULL ? m->count : 0; i-- > 0;) {
		if (m->lanes[i]->s.dialogue.finished >= (int)s->dialogue.view.stage)
			continue;
		first = lane_index(m->lanes[i]);
		connecting += m->lanes[i]->s.driver.phase == DRIVER_QP;
	}
	if (m == NULL)
		return NULL;
	(void)snprintf(text, room,
	               "%u of %u queue pairs have not ended the stage, the first is queue pair %u; "
	               "%u of them connect",
	               m->left, m->count, first, connecting);
	return text;
}
