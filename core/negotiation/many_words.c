/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two ends say to each other about queue pairs that are added and removed. */
#include "many_add.h"

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>

void addition_begin(struct ndx_session *s, struct addition *a)
{
	struct frame_add add;
	uint8_t payload[FRAME_ADD_SIZE];
	struct frame f = {.type = FRAME_ADD, .payload = payload};

	describe_near(s->driver.fd, &a->near);
	addition_open(s, a);
	if (a->faulty)
		return;
	add = (struct frame_add){a->number, a->first, a->count};
	f.length = frame_write_add(payload, &add);
	many_say(s, &f, "no memory to ask for more queue pairs");
}

/* The peer breaks the protocol. The frame is consumed.
 *
 * A goodbye's turn to be read may come in phase POOL, so that a task runs then. The task has the
 * dialogues of the lanes. It writes the session's own only to refuse the session, when the server's
 * program opens no queue pairs; no connection uses the transport before that, and nothing is heard.
 * Of the own one it reads the role and what has finished, which a failure does not change. */
static bool bad(struct ndx_session *s, const char *why)
{
	const struct addition_role *role = s->many->role;

	/* between two calls of a client */
	if (s->driver.phase == DRIVER_ROLE && !s->closed && role->broken != NULL) {
		role->broken(s, why);
		return true;
	}
	dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true, why);
	if (s->driver.phase == DRIVER_ROLE) /* goodbyes alone pass: the connections end */
		driver_oob_lost(s);
	return true;
}

/* Nothing of the client's later words is to be handled before all earlier ones are. */
static bool is_between(const struct ndx_session *s)
{
	return s->driver.phase == DRIVER_ACTIVE && s->dialogue.next == DIALOGUE_IDLE &&
	       s->dialogue.finished >= NDX_STAGE_READY && s->many->adding == NULL;
}

/* The server does not take so many: say so, and have nothing of them. */
static void refuse(struct ndx_session *s, const struct frame_add *add, enum ndx_status st,
                   const char *why)
{
	struct addition a = {.number = add->batch,
	                     .first = add->first,
	                     .count = add->count,
	                     .failing = true,
	                     .since_ns = ndxp_now_ns()};

	s->many->batches = add->batch;
	s->many->next_index += add->count;
	addition_fault(&a, NDX_LAYER_FRAMEWORK, st, why);
	addition_tell(s, &a);
	addition_record(s, &a);
}

/* At a server: the client adds queue pairs. */
static bool hear_ask(struct ndx_session *s, const struct frame *f)
{
	struct many *m = s->many;
	struct addition *a;
	struct frame_add add;
	enum ndx_status st;
	const char *why;
	char text[240];

	if (!is_between(s))
		return false;
	if (!frame_parse_add(f, &add, &why))
		return bad(s, why);
	/* Frames of stage done may have come, and not have been handled. */
	if (add.batch != m->batches + 1 || add.first != m->next_index || m->asks_done ||
	    s->dialogue.finished != NDX_STAGE_READY)
		return bad(s, "the client adds queue pairs at the wrong time, or wrong ones");
	st = s->many->role->allow(s, add.count, text, sizeof(text));
	a = st == NDX_OK ? addition_alloc(s, add.count) : NULL;
	if (a == NULL) {
		refuse(s, &add, st != NDX_OK ? st : NDX_E_NO_MEMORY,
		       st != NDX_OK ? text : "no memory for so many queue pairs");
		return true;
	}
	addition_open(s, a);
	return true;
}

/* At a client: the server says that it has connected them. */
static bool hear_answer(struct ndx_session *s, const struct frame *f)
{
	struct addition *a = s->many->adding;
	struct frame_add add;
	const char *why;

	if (!frame_parse_add(f, &add, &why))
		return bad(s, why);
	if (add.batch > s->many->batches)
		return bad(s, "the server has added queue pairs that were not asked for");
	if (a == NULL || a->number != add.batch)
		return true; /* of a batch that is over */
	if (add.first != a->first || add.count != a->count)
		return bad(s, "the server has added other queue pairs than it was asked for");
	a->answered = true;
	return true;
}

/* At a server: the client gave up a batch that has ended here, and may have removed some of it. */
static bool drop(struct ndx_session *s, uint32_t batch)
{
	const struct many *m = s->many;
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->count; i++)
		count += m->lanes[i]->batch == batch;
	if (count == 0)
		return true;
	if (!is_between(s))
		return false;
	for (uint32_t i = 0; i < m->count; i++)
		if (m->lanes[i]->batch == batch)
			lane_hang_up(m->lanes[i]);
	if (addition_may_log(s))
		log_warn(0, "session %llu: the client gave up %u queue pairs that it had added",
		         (unsigned long long)s->id, count);
	for (uint32_t i = m->count; i-- > 0;)
		if (m->lanes[i]->batch == batch)
			(void)many_remove(s, lane_index(m->lanes[i]), 1);
	return true;
}

static bool hear_abandon(struct ndx_session *s, const struct frame *f)
{
	struct addition *a = s->many->adding;
	struct frame_abandon w;
	const char *why;

	if (!frame_parse_abandon(f, &w, &why))
		return bad(s, why);
	if (w.batch > s->many->batches)
		return bad(s, "the peer gives up queue pairs that were not asked for");
	if (a != NULL && a->number == w.batch && a->state != ADDITION_REPORT) {
		a->abandoned = true;
		a->word = w;
		return true;
	}
	if (s->dialogue.view.role == NDX_ROLE_CLIENT || w.batch != s->many->batches)
		return true; /* of a batch that is over */
	return drop(s, w.batch);
}

static bool hear_remove(struct ndx_session *s, const struct frame *f)
{
	struct frame_remove r;
	const char *why;

	if (!is_between(s))
		return false;
	if (!frame_parse_remove(f, &r, &why))
		return bad(s, why);
	why = many_remove(s, r.first, r.count);
	return why == NULL || bad(s, why);
}

bool addition_hear(struct ndx_session *s, const struct frame *f)
{
	const bool client = s->dialogue.view.role == NDX_ROLE_CLIENT;

	if (s->many == NULL || !s->many->adds || s->dialogue.next == DIALOGUE_FAILED)
		return false;
	if (f->type == FRAME_ADD)
		return client ? hear_answer(s, f) : hear_ask(s, f);
	if (f->type == FRAME_ABANDON)
		return hear_abandon(s, f);
	return f->type == FRAME_REMOVE && !client && hear_remove(s, f);
}
