/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of several queue pairs over the transport of one session. Loop thread. */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/byteorder.h>
#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include "connection.h"
#include "many_add.h"

#define WAITING_MOST 16u             /* frames of one lane */
#define WAITING_BYTES (1u << 20)     /* of all lanes; then nothing is read until fewer wait */
#define OUT_MOST ((size_t)256 << 10) /* then a lane waits before it queues another frame */
#define OUT_WHOLE ((size_t)4 << 20)  /* then a frame of the whole session is one too many */
#define OUT_KEPT ((size_t)64 << 10)  /* of an empty queue */

const char many_unread[] = "the peer does not read: more than 4 MiB wait for it";

static struct lane *lane_of(const struct ndx_session *s)
{
	return s->driver.lane;
}

struct lane *many_find(const struct many *m, uint32_t index)
{
	uint32_t from = 0;
	uint32_t to = m->count;

	/* As long as none was removed, an index is a place. */
	if (index < m->count && lane_index(m->lanes[index]) == index)
		return m->lanes[index];
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;

		if (lane_index(m->lanes[middle]) < index)
			from = middle + 1;
		else
			to = middle;
	}
	return from < m->count && lane_index(m->lanes[from]) == index ? m->lanes[from] : NULL;
}

/* ---- in ---- */

static struct lane_frame *copy_frame(const struct frame *f)
{
	struct lane_frame *w = malloc(sizeof(*w) + f->length);

	if (w == NULL)
		return NULL;
	w->next = NULL;
	w->f = *f;
	w->f.numbered = false; /* for the lane it is its only queue pair */
	w->f.payload = w->payload;
	if (f->length > 0)
		memcpy(w->payload, f->payload, f->length);
	return w;
}

/* Stage done, which the client begins when it likes. */
static bool asks_done(const struct ndx_session *s, const struct frame *f)
{
	return f->type == FRAME_DATA && f->stage == NDX_STAGE_DONE &&
	       s->dialogue.finished == NDX_STAGE_READY && s->dialogue.next == DIALOGUE_IDLE;
}

bool many_has_place(const struct ndx_session *s, const struct frame *f, const char **why)
{
	const bool of_one = f->type == FRAME_DATA || f->type == FRAME_VALIDATE ||
	                    f->type == FRAME_GOODBYE || f->type == FRAME_PROOF;

	if (s->many == NULL || f->numbered || !of_one)
		return true;
	*why = "a frame without the number of its queue pair; the session has several";
	return false;
}

bool many_take(struct ndx_session *s, const struct frame *f, const char **why)
{
	struct many *m = s->many;
	struct lane_frame *w;
	struct lane *lane;

	lane = many_find(m, f->queue_pair);
	/* of one that was removed, or whose addition has failed */
	if (lane == NULL && f->queue_pair < m->next_index)
		return true;
	if (lane == NULL) {
		*why = "a frame of a queue pair that the session does not have";
		return false;
	}
	if (m->stopping || m->failed != NULL || lane->s.driver.phase == DRIVER_CLOSING ||
	    (f->type == FRAME_ALIVE && f->stage != NDX_STAGE_VALIDATE))
		return true;
	if (lane->waiting >= WAITING_MOST) {
		*why = "more frames of one queue pair than may wait";
		return false;
	}
	w = copy_frame(f);
	if (w == NULL) {
		*why = "a frame for which there is no memory";
		return false;
	}
	*lane->end = w;
	lane->end = &w->next;
	lane->waiting++;
	m->waiting += f->length;
	if (asks_done(s, f)) {
		m->asks_done = true;
		driver_go_soon(s);
	}
	driver_go(&lane->s);
	return true;
}

bool many_is_full(struct ndx_session *s)
{
	struct many *m = s->many;

	if (m == NULL)
		return false;
	/* What the peer sends behind the last frame of a stage, its end for example, is of what
	 * follows. many_step() ends the stage first; it is on its way. */
	if (m->in_stage && m->left == 0)
		return true;
	if (m->adding != NULL && m->adding->state == ADDITION_STAGE && m->adding->left == 0)
		return true;
	if (m->waiting < WAITING_BYTES)
		return false;
	m->paused = true;
	return true;
}

bool lane_is_open(const struct ndx_session *s)
{
	return lane_of(s)->many->session->driver.fd >= 0;
}

static enum driver_io nothing_yet(const struct ndx_session *s)
{
	return lane_is_open(s) ? IO_WAIT : IO_LOST;
}

enum driver_io lane_read(struct ndx_session *s, struct frame *f)
{
	const struct lane_frame *w = lane_of(s)->first;

	if (w == NULL)
		return nothing_yet(s);
	*f = w->f;
	return IO_DONE;
}

enum driver_io lane_read_behind(struct ndx_session *s, struct frame *f)
{
	const struct lane_frame *w = lane_of(s)->first;

	if (w == NULL || w->next == NULL)
		return nothing_yet(s);
	*f = w->next->f;
	return f->length == 0 ? IO_DONE : IO_BAD;
}

static void remove_frame(struct lane *lane, struct lane_frame **at)
{
	struct many *m = lane->many;
	struct lane_frame *w = *at;

	*at = w->next;
	if (lane->end == &w->next)
		lane->end = at;
	lane->waiting--;
	m->waiting -= w->f.length;
	free(w);
	if (!m->paused || m->waiting >= WAITING_BYTES / 2)
		return;
	m->paused = false;
	driver_go_soon(m->session);
}

void lane_consume(struct ndx_session *s)
{
	if (lane_of(s)->first != NULL)
		remove_frame(lane_of(s), &lane_of(s)->first);
}

void lane_consume_behind(struct ndx_session *s)
{
	remove_frame(lane_of(s), &lane_of(s)->first->next);
}

/* ---- out ---- */

static bool make_room(struct many *m, size_t length)
{
	const size_t wanted = m->out_length + length;
	uint8_t *grown;

	if (wanted <= m->out_room)
		return true;
	grown = realloc(m->out, wanted * 2);
	if (grown == NULL)
		return false;
	m->out = grown;
	m->out_room = wanted * 2;
	return true;
}

/* Whether the session's own last frame ends the stream. */
static bool is_ending(const struct ndx_session *s)
{
	return s->driver.phase == DRIVER_ENDING || s->driver.phase == DRIVER_CLOSING;
}

enum driver_io lane_send(struct ndx_session *s, const uint8_t *bytes, size_t length)
{
	struct lane *lane = lane_of(s);
	struct many *m = lane->many;
	uint8_t *at;

	if (!lane_is_open(s) || is_ending(m->session))
		return IO_LOST;
	if (m->out_length - m->out_sent > OUT_MOST || !make_room(m, length)) {
		lane->blocked = true;
		return IO_WAIT;
	}
	at = m->out + m->out_length;
	memcpy(at, bytes, length);
	at[4] = FRAME_VERSION_NUMBERED;
	ndxp_put_be16(at + 12, (uint16_t)lane_index(lane));
	m->out_length += length;
	driver_go_soon(m->session);
	return IO_DONE;
}

enum ndx_status many_queue(struct ndx_session *s, const struct frame *f)
{
	const struct ndx_history_entry entry = {
		.kind = NDX_HISTORY_SENT, .stage = f->stage, .bytes = f->length};
	struct many *m = s->many;

	if (s->driver.fd < 0)
		return NDX_OK; /* the reader finds out */
	/* a peer that does not read its answers could ask again and again */
	if (m->out_length - m->out_sent > OUT_WHOLE)
		return NDX_E_REMOTE_ERROR;
	if (!make_room(m, FRAME_HEADER + (size_t)f->length))
		return NDX_E_NO_MEMORY;
	frame_write_header(m->out + m->out_length, f);
	memcpy(m->out + m->out_length + FRAME_HEADER, f->payload, f->length);
	m->out_length += FRAME_HEADER + (size_t)f->length;
	history_add(&s->history, &entry, ndxp_now_ns(), frame_type_name(f->type));
	driver_go_soon(s);
	return NDX_OK;
}

void many_say(struct ndx_session *s, const struct frame *f, const char *no_memory)
{
	const enum ndx_status st = many_queue(s, f);

	if (st != NDX_OK)
		dialogue_fail(&s->dialogue, NDX_LAYER_FRAMEWORK, st, true,
		              st == NDX_E_NO_MEMORY ? no_memory : many_unread);
}

static void drop_out(struct many *m)
{
	m->out_length = 0;
	m->out_sent = 0;
	if (m->out_room <= OUT_KEPT)
		return;
	free(m->out);
	m->out = NULL;
	m->out_room = 0;
}

static void unblock(struct many *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		if (!m->lanes[i]->blocked)
			continue;
		m->lanes[i]->blocked = false;
		driver_go(&m->lanes[i]->s);
	}
}

bool many_flush(struct ndx_session *s)
{
	struct many *m = s->many;

	if (m == NULL || s->driver.sent != 0)
		return true;
	if (m->out_length > 0 && s->driver.fd >= 0 &&
	    driver_send_from(s, m->out, m->out_length, &m->out_sent) == IO_WAIT)
		return false;
	/* also if the transport is lost: the reader will find out */
	drop_out(m);
	unblock(m);
	return m->out_length == 0;
}

/* ---- goodbyes of the connections ---- */

bool many_has_oob(const struct ndx_session *s)
{
	return s->many != NULL && s->many->linked;
}

bool many_oob_is_over(const struct ndx_session *s)
{
	const struct many *m = s->many;

	for (uint32_t i = 0; i < m->count; i++)
		if (m->lanes[i]->s.driver.oob != NULL &&
		    (m->lanes[i]->s.driver.oob_sending || !driver_oob_is_over(&m->lanes[i]->s)))
			return false;
	return m->out_length == 0;
}

void many_oob_lost(struct ndx_session *s)
{
	struct many *m = s->many;

	for (uint32_t i = 0; m != NULL && i < m->count; i++)
		if (m->lanes[i]->s.driver.oob != NULL)
			oob_link_tell(m->lanes[i]->s.driver.oob, OOB_CARRIER, OOB_LOST);
}
