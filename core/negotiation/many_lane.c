/* SPDX-License-Identifier: BSD-2-Clause */
/* One queue pair of a session of several: its role for the driver, its life, its calls. */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "many_add.h"

#define WORD_MS 1000u

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

	struct addition *a = lane->driver.lane->addition;
	uint32_t *left = a != NULL ? &a->left : &m->left;

	lane->driver.phase = DRIVER_ROLE;
	if (--*left == 0)
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

	struct addition *a = lane->driver.lane->addition;
	struct lane **first = a != NULL ? &a->failed : &m->failed;

	if (*first == NULL)
		*first = lane->driver.lane;
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

struct lane *lane_alloc(struct many *m)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		return NULL;
	lane->many = m;
	lane->end = &lane->first;
	return lane;
}

void lane_free(struct lane *lane)
{
	while (lane->first != NULL) {
		struct lane_frame *w = lane->first;

		lane->first = w->next;
		free(w);
	}
	free(lane);
}

void lane_init(struct lane *lane, uint32_t index)
{
	struct ndx_session *s = lane->many->session;
	const enum ndx_role role = s->dialogue.view.role;
	struct ndx_session *own = &lane->s;

	own->id = s->id;
	own->attr.variant = s->attr.variant;
	driver_init(own, role == NDX_ROLE_CLIENT ? &client_lane : &server_lane, s->driver.engine);
	own->driver.lane = lane;
	own->driver.many = s->driver.many;
	dialogue_init(&own->dialogue, s->attr.variant, role, s->id, &s->dialogue.limits,
	              &s->history);
	own->dialogue.one_of_many = true;
	own->dialogue.queue_pair = (uint16_t)index;
	own->dialogue.view.queue_pair = index;
}

void lane_set(struct lane *lane, const struct ndx_session_queue_pair *pair)
{
	struct ndx_session_attr *attr = &lane->s.attr;

	attr->connector = pair->connector;
	attr->qp = pair->qp;
	attr->memory = pair->memory;
}

/* ---- stages ---- */

/* All queue pairs are bound to the session's channel of TLS, each with what was said of itself. */
static void bind_lane(struct dialogue *lane, const struct binding *channel)
{
	lane->binding.bound = channel->bound;
	lane->binding.one_of_many = true;
	lane->binding.queue_pair = lane->queue_pair;
	memcpy(lane->binding.key, channel->key, sizeof(channel->key));
}

void lane_start(struct lane *lane, enum ndx_stage stage)
{
	const struct ndx_session *s = lane->many->session;
	struct dialogue *x = &lane->s.dialogue;
	struct driver *d = &lane->s.driver;

	x->limits = s->dialogue.limits;
	if (stage == NDX_STAGE_INFO)
		bind_lane(x, &s->dialogue.binding);
	d->deadline_ns = s->driver.deadline_ns;
	d->since_ns = 0;
	d->phase = DRIVER_ACTIVE;
	(void)dialogue_start(x, stage);
}

/* The task has returned. */
void many_end_batch(struct many *m)
{
	while (m->batch != NULL) {
		struct lane *lane = m->batch;

		m->batch = lane->next_due;
		lane->s.driver.phase = DRIVER_ACTIVE;
		driver_go(&lane->s);
	}
}

void many_push_due(struct ndx_session *s)
{
	struct many *m = s->many;

	m->batch = m->due;
	m->due = NULL;
	m->due_end = &m->due;
	driver_call(s);
}

/* ---- failure ---- */

/* Whether the peer may have made the lane fail: by giving up its attempt, or by its end. */
static bool may_be_of_peer(const struct lane *lane)
{
	const struct ndx_session_error *e = &lane->s.dialogue.error;

	return e->layer == NDX_LAYER_PROVIDER &&
	       (e->status == NDX_E_CONNECTION_REFUSED || e->status == NDX_E_CONNECTION_ABORTED);
}

bool many_awaits_word(struct ndx_session *s, const struct lane *failed, bool *listening)
{
	struct driver *d = &s->driver;
	const uint64_t latest = ndxp_deadline(WORD_MS);

	if (!driver_is_open(s) || !may_be_of_peer(failed) ||
	    (d->role->cancelled != NULL && d->role->cancelled(s)))
		return false;
	if (!*listening) {
		*listening = true;
		d->drained = false; /* the event may still be on its way */
		driver_set_timer(s, latest < d->deadline_ns ? latest : d->deadline_ns);
	}
	return true;
}
