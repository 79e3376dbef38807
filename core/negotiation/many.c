/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of several queue pairs: its stages, the calls of the plugin, and how it fails. */
#include "many.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "connection.h"

/* ---- the role of a lane ---- */

static bool step(struct ndx_session *lane)
{
	struct many *m = lane->driver.lane->many;

	driver_oob_receive(lane);
	/* the last connection that ends may end the session */
	if (lane->driver.oob != NULL && driver_oob_is_over(lane))
		driver_go_soon(m->session);
	return false;
}

/* The lane has ended the stage. */
static bool idle(struct ndx_session *lane)
{
	struct many *m = lane->driver.lane->many;

	lane->driver.phase = DRIVER_ROLE;
	if (--m->left == 0)
		driver_go_soon(m->session);
	return true;
}

static void push(struct ndx_session *s)
{
	struct lane *lane = s->driver.lane;
	struct many *m = lane->many;

	lane->next_due = NULL;
	*m->due_end = lane;
	m->due_end = &lane->next_due;
	driver_go_soon(m->session);
}

static bool failed(struct ndx_session *lane)
{
	struct many *m = lane->driver.lane->many;

	if (m->failed == NULL)
		m->failed = lane->driver.lane;
	lane->driver.phase = DRIVER_CLOSING;
	driver_go_soon(m->session);
	return false;
}

/* The session's driver finds out what its lanes do, and acts for all. */
static bool leave_it(struct ndx_session *lane)
{
	(void)lane;
	return false;
}

static bool leave_bad(struct ndx_session *lane, const char *why)
{
	(void)lane;
	(void)why;
	return false;
}

static bool go_on(struct ndx_session *lane)
{
	(void)lane;
	return true;
}

static void do_nothing(struct ndx_session *lane)
{
	(void)lane;
}

/* As the role of the session, what a queue pair is called that connects too late. */
static const struct driver_role client_lane = {
	.step = step,
	.idle = idle,
	.work = do_nothing,
	.returned = go_on,
	.lost = leave_it,
	.bad = leave_bad,
	.failed = failed,
	.closed = do_nothing,
	.ended = do_nothing,
	.push = push,
	.timer = do_nothing,
	.takes_late = true,
	.late = "the peer's queue pair does not connect in time",
};
static const struct driver_role server_lane = {
	.step = step,
	.idle = idle,
	.work = do_nothing,
	.returned = go_on,
	.lost = leave_it,
	.bad = leave_bad,
	.failed = failed,
	.closed = do_nothing,
	.ended = do_nothing,
	.push = push,
	.timer = do_nothing,
	.late = "the queue pair did not connect in time",
};

/* ---- life ---- */

struct many *many_alloc(uint32_t count)
{
	struct many *m = calloc(1, sizeof(*m) + count * sizeof(m->lanes[0]));

	if (m == NULL)
		return NULL;
	m->count = count;
	m->due_end = &m->due;
	for (uint32_t i = 0; i < count; i++) {
		m->lanes[i].many = m;
		m->lanes[i].end = &m->lanes[i].first;
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

void many_init(struct ndx_session *s, struct many *m)
{
	const enum ndx_role role = s->dialogue.view.role;

	m->session = s;
	s->many = m;
	s->driver.many = &many_table;
	for (uint32_t i = 0; i < m->count; i++) {
		struct ndx_session *lane = &m->lanes[i].s;

		lane->id = s->id;
		lane->attr.variant = s->attr.variant;
		driver_init(lane, role == NDX_ROLE_CLIENT ? &client_lane : &server_lane,
		            s->driver.engine);
		lane->driver.lane = &m->lanes[i];
		lane->driver.many = &many_table;
		dialogue_init(&lane->dialogue, s->attr.variant, role, s->id, &s->dialogue.limits,
		              &s->history);
		lane->dialogue.one_of_many = true;
		lane->dialogue.queue_pair = (uint16_t)i;
	}
}

void many_set(struct many *m, uint32_t index, const struct ndx_session_queue_pair *pair)
{
	struct ndx_session_attr *attr = &m->lanes[index].s.attr;

	attr->connector = pair->connector;
	attr->qp = pair->qp;
	attr->memory = pair->memory;
}

void many_free(struct many *m)
{
	if (m == NULL)
		return;
	many_free_frames(m);
	free(m);
}

void many_end_plugin(struct ndx_session *s)
{
	for (uint32_t i = 0; s->many != NULL && i < s->many->count; i++)
		dialogue_fini(&s->many->lanes[i].s.dialogue);
}

const char many_unknown[] =
	"the server speaks version 1 of the protocol, and several queue pairs in one session need "
	"version 2; ask it for one";

bool many_is_unknown(const struct ndx_session *s, const char *refusal)
{
	return s->many != NULL && strcmp(refusal, "another version of the protocol") == 0;
}

/* ---- on the pool ---- */

enum ndx_status many_describe(struct ndx_session *s, const struct sockaddr_storage *near)
{
	struct many *m = s->many;

	for (uint32_t i = 0; i < m->count; i++) {
		struct ndx_session *lane = &m->lanes[i].s;
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

	return s->many != NULL && next != DIALOGUE_IDLE && next != DIALOGUE_FAILED &&
	       next != DIALOGUE_CLOSED;
}

/* All queue pairs are bound to the session's channel of TLS, each with what was said of itself. */
static void bind_lane(struct dialogue *lane, const struct binding *channel)
{
	lane->binding.bound = channel->bound;
	lane->binding.one_of_many = true;
	lane->binding.queue_pair = lane->queue_pair;
	memcpy(lane->binding.key, channel->key, sizeof(channel->key));
}

static void begin_stage(struct ndx_session *s)
{
	struct many *m = s->many;

	m->in_stage = true;
	m->asks_done = false;
	m->left = m->count;
	s->dialogue.next = DIALOGUE_RECEIVE;
	for (uint32_t i = 0; i < m->count; i++) {
		struct ndx_session *lane = &m->lanes[i].s;

		lane->dialogue.limits = s->dialogue.limits;
		if (s->dialogue.view.stage == NDX_STAGE_INFO)
			bind_lane(&lane->dialogue, &s->dialogue.binding);
		lane->driver.deadline_ns = s->driver.deadline_ns;
		lane->driver.since_ns = 0;
		lane->driver.phase = DRIVER_ACTIVE;
		(void)dialogue_start(&lane->dialogue, s->dialogue.view.stage);
	}
	for (uint32_t i = 0; i < m->count; i++)
		driver_go(&m->lanes[i].s);
}

/* The task has returned. */
static void end_batch(struct many *m)
{
	while (m->batch != NULL) {
		struct lane *lane = m->batch;

		m->batch = lane->next_due;
		lane->s.driver.phase = DRIVER_ACTIVE;
		driver_go(&lane->s);
	}
}

static void fail_session(struct ndx_session *s)
{
	const struct many *m = s->many;
	const struct dialogue *from = &m->failed->s.dialogue;
	const uint32_t index = (uint32_t)(m->failed - m->lanes);
	struct dialogue *x = &s->dialogue;
	char text[sizeof(from->error.text)];

	(void)snprintf(text, sizeof(text), "queue pair %u of %u: %.200s", index, m->count,
	               from->error.text);
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
	const struct dialogue *first = &s->many->lanes[0].s.dialogue;
	struct dialogue *x = &s->dialogue;
	const struct ndx_history_entry entry = {.kind = NDX_HISTORY_STAGE, .stage = x->view.stage};

	s->many->in_stage = false;
	x->own = first->own;
	x->peer = first->peer;
	x->agreed = first->agreed;
	x->agreement_known = first->agreement_known;
	x->finished = (int)x->view.stage;
	x->next = DIALOGUE_IDLE;
	history_add(x->history, &entry, x->stage_ns, frame_stage_name(x->view.stage));
}

bool many_step(struct ndx_session *s)
{
	struct many *m = s->many;

	if (!m->in_stage)
		begin_stage(s);
	end_batch(m);
	if (m->failed != NULL) {
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
	m->batch = m->due;
	m->due = NULL;
	m->due_end = &m->due;
	driver_call(s);
	return false;
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
		if (m->lanes[i].s.driver.phase == DRIVER_QP)
			conn_cancel_attempt(m->lanes[i].s.attr.connector);
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

/* Its own overlapped object: nothing waits for it. */
static void on_hung_up(struct ndx_overlapped *ov)
{
	free(ov);
}

/* The session has failed before all of its queue pairs are ready: none stays connected. */
static void hang_up(const struct ndx_session *lane)
{
	const struct ndx_session *s = lane->driver.lane->many->session;
	struct ndx_overlapped *ov;

	if (s->dialogue.view.stage < NDX_STAGE_VALIDATE ||
	    s->dialogue.finished >= NDX_STAGE_READY || lane->attr.connector == NULL)
		return;
	ov = calloc(1, sizeof(*ov));
	if (ov == NULL)
		return; /* the program closes it, as it does all of them */
	ov->callback = on_hung_up;
	if (ndx_connector_disconnect(lane->attr.connector, ov) != NDX_PENDING)
		free(ov);
}

static void stop_lanes(struct many *m)
{
	m->stopping = true;
	for (uint32_t i = 0; i < m->count; i++) {
		struct driver *d = &m->lanes[i].s.driver;

		driver_set_timer(&m->lanes[i].s, UINT64_MAX);
		m->connecting += d->phase == DRIVER_QP;
		if (d->phase == DRIVER_QP)
			continue;
		d->phase = DRIVER_CLOSING;
		hang_up(&m->lanes[i].s);
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

bool many_lane_stopped(struct ndx_session *lane)
{
	struct many *m = lane->driver.lane->many;

	if (!m->stopping)
		return false;
	lane->driver.phase = DRIVER_CLOSING;
	hang_up(lane);
	if (--m->connecting == 0 && m->then != NULL)
		end_stop(m, m->then);
	return true;
}

void many_set_phase(struct ndx_session *s, enum driver_phase phase)
{
	for (uint32_t i = 0; s->many != NULL && i < s->many->count; i++)
		s->many->lanes[i].s.driver.phase = phase;
}

void many_close(struct ndx_session *s)
{
	for (uint32_t i = 0; s->many != NULL && i < s->many->count; i++) {
		struct ndx_session *lane = &s->many->lanes[i].s;

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
		if (m->lanes[i].s.dialogue.finished >= (int)s->dialogue.view.stage)
			continue;
		first = i;
		connecting += m->lanes[i].s.driver.phase == DRIVER_QP;
	}
	if (m == NULL)
		return NULL;
	(void)snprintf(text, room,
	               "%u of %u queue pairs have not ended the stage, the first is queue pair %u; "
	               "%u of them connect",
	               m->left, m->count, first, connecting);
	return text;
}
