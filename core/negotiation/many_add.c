/* SPDX-License-Identifier: BSD-2-Clause */
/* A batch of queue pairs that is added to a session of several: its stages, and how it fails. */
#include "many_add.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "connection.h"

/* ---- life ---- */

struct addition *addition_alloc(struct ndx_session *s, uint32_t count)
{
	struct addition *a = calloc(1, sizeof(*a) + count * sizeof(void *));

	if (a == NULL)
		return NULL;
	for (; a->count < count; a->count++) {
		struct lane *lane = lane_alloc(s->many);

		if (lane == NULL) {
			addition_free(a);
			return NULL;
		}
		lane->addition = a;
		a->lanes[a->count] = lane;
	}
	return a;
}

void addition_free(struct addition *a)
{
	if (a == NULL)
		return;
	for (uint32_t i = 0; !a->listed && i < a->count; i++)
		lane_free(a->lanes[i]);
	free(a);
}

/* From now on the batch has a number, and its indices are used. */
static void number_batch(struct many *m, struct addition *a)
{
	a->first = m->next_index;
	a->number = ++m->batches;
	m->next_index += a->count;
}

static void init_lanes(struct addition *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		struct dialogue *x = &a->lanes[i]->s.dialogue;

		lane_init(a->lanes[i], a->first + i);
		a->lanes[i]->batch = a->number;
		x->binding.batch = a->number;
		x->view.first_queue_pair = a->first;
		x->view.queue_pair_count = a->count;
	}
}

/* Give the lanes their indices, and put them into the session's table. */
static bool list_lanes(struct ndx_session *s, struct addition *a)
{
	struct many *m = s->many;
	struct lane **grown;

	/* Programs look for queue pairs in the table, by the indices of the lanes in it. */
	pthread_mutex_lock(&s->lock);
	grown = realloc(m->lanes, (m->count + (size_t)a->count) * sizeof(void *));
	if (grown != NULL) {
		number_batch(m, a);
		init_lanes(a);
		memcpy(grown + m->count, a->lanes, a->count * sizeof(void *));
		m->lanes = grown;
		m->count += a->count;
	}
	pthread_mutex_unlock(&s->lock);
	a->listed = grown != NULL;
	return a->listed;
}

void addition_open(struct ndx_session *s, struct addition *a)
{
	s->many->adding = a;
	a->since_ns = ndxp_now_ns();
	a->state = ADDITION_OPENING;
	s->driver.phase = DRIVER_ACTIVE;
	s->many->role->timer(s);
	if (list_lanes(s, a))
		return;
	/* The client has asked, and hears the refusal. A client has not asked yet. */
	if (s->dialogue.view.role == NDX_ROLE_SERVER)
		number_batch(s->many, a);
	addition_fault(a, NDX_LAYER_FRAMEWORK, NDX_E_NO_MEMORY,
	               "no memory for so many queue pairs");
}

bool many_adds_now(const struct ndx_session *s)
{
	return s->many != NULL && s->many->adding != NULL;
}

void addition_late(struct ndx_session *s)
{
	s->many->adding->late = true;
	driver_go(s);
}

void addition_fault(struct addition *a, enum ndx_error_layer layer, enum ndx_status status,
                    const char *text)
{
	if (a->faulty)
		return;
	a->faulty = true;
	a->error.layer = layer;
	a->error.status = status < 0 ? status : NDX_E_UNSUCCESSFUL;
	(void)snprintf(a->error.text, sizeof(a->error.text), "%s", text);
}

/* ---- the outcome ---- */

bool addition_may_log(struct ndx_session *s)
{
	const struct addition_role *role = s->many->role;

	return role->may_log == NULL || role->may_log(s);
}

void addition_record(struct ndx_session *s, const struct addition *a)
{
	const struct ndx_history_entry entry = {
		.kind = NDX_HISTORY_ADD, .stage = a->stage, .status = a->error.status};
	const char *colon = a->failing ? ": " : "";
	const char *why = a->failing ? a->error.text : "";
	char text[sizeof(entry.text)];

	/* A client that could not begin has neither a number nor indices. */
	if (a->number == 0)
		(void)snprintf(text, sizeof(text), "%u queue pairs%s%.40s", a->count, colon, why);
	else
		(void)snprintf(text, sizeof(text), "batch %u, queue pairs %u to %u%s%.40s",
		               a->number, a->first, a->first + a->count - 1, colon, why);
	history_add(&s->history, &entry, a->since_ns, text);
	if (a->failing && addition_may_log(s))
		log_warn(0, "session %llu: %u queue pairs are not added, stage %s: %s: %s",
		         (unsigned long long)s->id, a->count, frame_stage_name(a->stage),
		         ndx_status_name(a->error.status), a->error.text);
}

static bool end(struct ndx_session *s)
{
	struct addition *a = s->many->adding;
	const struct ndx_session_error outcome = a->error;
	const uint32_t first = a->first;

	s->many->adding = NULL;
	driver_set_timer(s, UINT64_MAX);
	addition_record(s, a);
	addition_free(a);
	return s->many->role->over(s, &outcome, first);
}

/* The queue pairs are of the session from now on. */
static void keep_lanes(struct ndx_session *s)
{
	struct addition *a = s->many->adding;

	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < a->count; i++)
		a->lanes[i]->addition = NULL;
	pthread_mutex_unlock(&s->lock);
	driver_set_timer(s, UINT64_MAX);
}

/* ---- failure ---- */

void addition_tell(struct ndx_session *s, const struct addition *a)
{
	struct frame_abandon w = {.batch = a->number,
	                          .queue_pair = a->error.of_queue_pair != 0 ? a->error.queue_pair
	                                                                    : FRAME_NO_QUEUE_PAIR,
	                          .error = {.layer = (uint8_t)a->error.layer,
	                                    .plugin_error = (uint8_t)a->error.plugin_error,
	                                    .status = a->error.status}};
	uint8_t payload[FRAME_ABANDON_SIZE_MAX];
	struct frame f = {.type = FRAME_ABANDON, .stage = a->stage, .payload = payload};

	(void)snprintf(w.error.text, sizeof(w.error.text), "%.200s", a->error.text);
	f.length = frame_write_abandon(payload, &w);
	many_say(s, &f, "no memory to tell the peer that it is not to add queue pairs");
}

/* `error` is set: give up what is in progress. */
static void stop(struct ndx_session *s, bool tells)
{
	struct many *m = s->many;
	struct addition *a = m->adding;

	a->failing = true;
	a->state = ADDITION_STOPPING;
	a->error.stage = a->stage;
	driver_set_timer(s, UINT64_MAX);
	m->due = NULL; /* none but this batch has calls */
	m->due_end = &m->due;
	/* One more, because a cancel may run jobs of this thread, and the batch must not end in
	 * them.
	 */
	m->connecting = 1;
	for (uint32_t i = 0; a->listed && i < a->count; i++) {
		struct driver *d = &a->lanes[i]->s.driver;

		driver_set_timer(&a->lanes[i]->s, UINT64_MAX);
		m->connecting += d->phase == DRIVER_QP;
		if (d->phase != DRIVER_QP)
			d->phase = DRIVER_CLOSING;
	}
	/* First of all, and now: the peer must not take a connection that ends for the cause. */
	if (tells && a->number > 0) {
		addition_tell(s, a);
		(void)many_flush(s);
	}
	for (uint32_t i = 0; a->listed && i < a->count; i++)
		if (a->lanes[i]->s.driver.phase == DRIVER_CLOSING && a->stage >= NDX_STAGE_VALIDATE)
			lane_hang_up(a->lanes[i]);
	for (uint32_t i = 0; a->listed && i < a->count; i++)
		if (a->lanes[i]->s.driver.phase == DRIVER_QP)
			conn_cancel_attempt(a->lanes[i]->s.attr.connector);
	m->connecting--;
}

static void fail_by(struct ndx_session *s, enum ndx_error_layer layer, enum ndx_status status,
                    const char *text, bool tells)
{
	addition_fault(s->many->adding, layer, status, text);
	stop(s, tells);
}

/* A lane has failed. What the peer has said is the cause of it, if the peer has said so. */
static void fail_by_lane(struct ndx_session *s)
{
	struct addition *a = s->many->adding;
	const struct dialogue *from = &a->failed->s.dialogue;
	char text[sizeof(from->error.text)];

	(void)snprintf(text, sizeof(text), "queue pair %u: %.220s", lane_index(a->failed),
	               from->error.text);
	a->error.plugin_error = from->error.plugin_error;
	a->error.round = from->error.round;
	a->error.of_queue_pair = 1;
	a->error.queue_pair = lane_index(a->failed);
	fail_by(s, from->error.layer, from->error.status, text, true);
}

/* What the peer cannot do will not change. What its device refuses is the verdict on the path, at
 * both ends. */
static enum ndx_status status_of_word(const struct frame_error *e)
{
	if (e->status == NDX_E_NOT_SUPPORTED)
		return NDX_E_NOT_SUPPORTED;
	if (e->status == NDX_E_ACCESS_VIOLATION && e->layer == NDX_LAYER_PROVIDER)
		return NDX_E_ACCESS_VIOLATION;
	return NDX_E_REMOTE_ERROR;
}

static void fail_by_word(struct ndx_session *s)
{
	struct addition *a = s->many->adding;
	const struct frame_abandon *w = &a->word;
	const struct frame_error *e = &w->error;
	char text[sizeof(a->error.text)];

	(void)snprintf(text, sizeof(text), "the peer gave up: %.200s", e->text);
	a->error.remote = true;
	a->error.of_queue_pair = w->queue_pair != FRAME_NO_QUEUE_PAIR;
	a->error.queue_pair = a->error.of_queue_pair != 0 ? w->queue_pair : 0;
	if (e->plugin_error <= NDX_PLUGIN_CONFIGURATION)
		a->error.plugin_error = (enum ndx_plugin_error)e->plugin_error;
	fail_by(s,
	        e->layer <= NDX_LAYER_PROVIDER && e->layer != NDX_LAYER_NONE
	                ? (enum ndx_error_layer)e->layer
	                : NDX_LAYER_FRAMEWORK,
	        status_of_word(e), text, false);
}

static void fail_late(struct ndx_session *s)
{
	const struct addition *a = s->many->adding;
	uint32_t first = a->first;
	char text[200];

	for (uint32_t i = a->count; a->listed && i-- > 0;)
		if (a->lanes[i]->s.dialogue.finished < (int)a->stage)
			first = a->first + i;
	if (a->state == ADDITION_STAGE)
		(void)snprintf(text, sizeof(text),
		               "time is over: %u of %u queue pairs have not ended the stage, the "
		               "first is queue pair %u",
		               a->left, a->count, first);
	else
		(void)snprintf(text, sizeof(text), "time is over: %s",
		               a->state == ADDITION_ANSWER
		                       ? "the server has not said that the stages have ended"
		                       : "the queue pairs are not described");
	fail_by(s, NDX_LAYER_FRAMEWORK, NDX_E_IO_TIMEOUT, text, true);
}

/* A peer that fails tells that first, and then gives up its attempts; so its word may be here. */
static void hear_word(struct ndx_session *s)
{
	const char *why;
	struct frame f;

	s->driver.drained = false;
	if (!driver_is_open(s) || s->many->adding->abandoned ||
	    driver_read_frame(s, s->dialogue.limits.max_message, &f, &why) != IO_DONE ||
	    f.type != FRAME_ABANDON || !s->driver.many->hear(s, &f))
		return;
	driver_consume(s);
}

static bool awaits_word(struct ndx_session *s)
{
	struct addition *a = s->many->adding;

	return !a->failing && !a->abandoned && !a->faulty && !a->late && a->failed != NULL &&
	       a->state != ADDITION_REPORT && many_awaits_word(s, a->failed, &a->listening);
}

/* Whether the batch, which is not failing yet, fails now. */
static bool has_failed(struct ndx_session *s)
{
	struct addition *a = s->many->adding;

	if (a->failing || a->state == ADDITION_REPORT)
		return false;
	if (a->failed != NULL && !a->faulty)
		hear_word(s);
	if (a->abandoned)
		fail_by_word(s);
	else if (s->driver.role->cancelled != NULL && s->driver.role->cancelled(s))
		fail_by(s, NDX_LAYER_TRANSPORT, NDX_E_CANCELED, "cancelled", true);
	else if (a->faulty)
		stop(s, true);
	else if (a->failed != NULL)
		fail_by_lane(s);
	else if (a->late)
		fail_late(s);
	return a->failing;
}

/* ---- steps ---- */

/* Let the task of this state run, once. False: it has. */
static bool give_task(struct ndx_session *s)
{
	if (s->many->adding->worked)
		return false;
	driver_call(s);
	return true;
}

static void enter(struct addition *a, enum addition_state state)
{
	a->state = state;
	a->worked = false;
}

static void begin_stage(struct ndx_session *s, enum ndx_stage stage)
{
	struct addition *a = s->many->adding;

	enter(a, ADDITION_STAGE);
	a->stage = stage;
	a->left = a->count;
	s->many->role->timer(s);
	for (uint32_t i = 0; i < a->count; i++)
		lane_start(a->lanes[i], stage);
	for (uint32_t i = 0; i < a->count; i++)
		driver_go(&a->lanes[i]->s);
}

/* The stages have ended at this server: that counts, whatever comes now. */
static void commit(struct ndx_session *s)
{
	struct addition *a = s->many->adding;
	const struct frame_add add = {a->number, a->first, a->count};
	uint8_t payload[FRAME_ADD_SIZE];
	const struct frame f = {.type = FRAME_ADD,
	                        .stage = NDX_STAGE_READY,
	                        .payload = payload,
	                        .length = frame_write_add(payload, &add)};

	keep_lanes(s);
	enter(a, ADDITION_REPORT);
	many_say(s, &f, "no memory to tell the client that its queue pairs are connected");
}

static bool step_stage(struct ndx_session *s)
{
	struct many *m = s->many;
	struct addition *a = m->adding;

	if (a->left == 0) {
		if (a->stage != NDX_STAGE_READY)
			begin_stage(s, (enum ndx_stage)(a->stage + 1));
		else if (s->dialogue.view.role == NDX_ROLE_CLIENT)
			enter(a, ADDITION_ANSWER);
		else
			commit(s);
		return true;
	}
	if (m->due == NULL)
		return driver_receive(s);
	many_push_due(s);
	return false;
}

static bool step_answer(struct ndx_session *s)
{
	if (!s->many->adding->answered)
		return driver_receive(s);
	keep_lanes(s);
	return end(s);
}

static bool step_stopping(struct ndx_session *s)
{
	struct addition *a = s->many->adding;

	if (s->many->connecting > 0)
		return false;
	if (a->listed)
		(void)many_remove(s, a->first, a->count);
	enter(a, ADDITION_RELEASE);
	return true;
}

bool addition_step(struct ndx_session *s)
{
	struct addition *a = s->many->adding;

	many_end_batch(s->many);
	if (awaits_word(s))
		return driver_receive(s);
	if (has_failed(s))
		return true;
	switch (a->state) {
	case ADDITION_OPENING:
		if (give_task(s))
			return false;
		if (!a->faulty)
			begin_stage(s, NDX_STAGE_INFO);
		return true;
	case ADDITION_STAGE:
		return step_stage(s);
	case ADDITION_ANSWER:
		return step_answer(s);
	case ADDITION_REPORT:
		return !give_task(s) && end(s);
	case ADDITION_STOPPING:
		return step_stopping(s);
	case ADDITION_RELEASE:
	default:
		if (give_task(s))
			return false;
		(void)many_sweep(s);
		return end(s);
	}
}

/* ---- on the pool ---- */

static void describe(struct ndx_session *s, struct addition *a)
{
	for (uint32_t i = 0; i < a->count && !a->faulty; i++) {
		struct ndx_session *lane = &a->lanes[i]->s;
		enum ndx_status st;

		lane->attr.inbound_read_limit = s->attr.inbound_read_limit;
		lane->attr.outbound_read_limit = s->attr.outbound_read_limit;
		st = describe_own(&lane->attr, s->dialogue.view.role, &a->near,
		                  &lane->dialogue.own);
		if (st == NDX_OK)
			continue;
		a->error.of_queue_pair = 1;
		a->error.queue_pair = a->first + i;
		addition_fault(a, NDX_LAYER_PROVIDER, st, ndx_last_error());
	}
}

static void tell_program(struct ndx_session *s, struct addition *a, enum ndx_status status)
{
	const struct addition_role *role = s->many->role;

	if (a->opened && role->told != NULL)
		role->told(s, a, status);
	a->opened = false;
}

static void end_removed(struct ndx_session *s)
{
	const struct addition_role *role = s->many->role;

	for (struct lane *lane = s->many->removed; lane != NULL; lane = lane->next_due) {
		if (lane->ended)
			continue;
		dialogue_fini(&lane->s.dialogue);
		if (lane->addition == NULL && role->removed != NULL)
			role->removed(s, lane);
		lane->ended = true;
	}
}

void addition_work(struct ndx_session *s)
{
	struct addition *a = s->many->adding;

	end_removed(s);
	if (a == NULL || a->worked)
		return;
	switch (a->state) {
	case ADDITION_OPENING:
		if (!a->faulty && s->many->role->open != NULL)
			s->many->role->open(s, a);
		describe(s, a);
		break;
	case ADDITION_REPORT:
		tell_program(s, a, NDX_OK);
		break;
	case ADDITION_RELEASE:
		tell_program(s, a, a->error.status);
		break;
	case ADDITION_STAGE:
	case ADDITION_ANSWER:
	case ADDITION_STOPPING:
	default:
		return;
	}
	a->worked = true;
}

void addition_end(struct ndx_session *s)
{
	if (!many_adds_now(s))
		return;
	if (s->many->adding->state == ADDITION_REPORT)
		tell_program(s, s->many->adding, NDX_OK);
	else
		tell_program(s, s->many->adding,
		             s->many->adding->failing ? s->many->adding->error.status
		                                      : NDX_E_CONNECTION_ABORTED);
}
