/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of a session's frames in case its transport breaks. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* Frames that have no place in a resumed session, and heartbeats, are not counted. ALIVE with a
 * later stage than info says more than that the sender lives. */
static bool is_counted(const uint8_t header[FRAME_HEADER])
{
	switch ((enum frame_type)header[5]) {
	case FRAME_DATA:
	case FRAME_VALIDATE:
	case FRAME_PROOF:
	case FRAME_GOODBYE:
		return true;
	case FRAME_ALIVE:
		return header[6] != NDX_STAGE_INFO;
	case FRAME_HELLO:
	case FRAME_WELCOME:
	case FRAME_ERROR:
	case FRAME_SESSION_END:
	case FRAME_ADD:
	case FRAME_ABANDON:
	case FRAME_REMOVE:
	default:
		return false;
	}
}

static struct replay_frame *slot(struct replay *r, uint32_t number)
{
	return &r->kept[number % REPLAY_KEPT];
}

void replay_begin(struct replay *r, bool on)
{
	replay_clear(r);
	*r = (struct replay){.on = on};
}

void replay_clear(struct replay *r)
{
	for (unsigned i = 0; i < REPLAY_KEPT; i++) {
		free(r->kept[i].bytes);
		r->kept[i] = (struct replay_frame){0};
	}
	frame_reader_clear(&r->in);
	frame_reader_clear(&r->behind);
}

/* When both ends have said that stage ready has ended, no transport is replaced any more. */
static void drop_settled(struct replay *r)
{
	if (!r->settled || !r->said_ready || r->again != r->sent)
		return;
	for (unsigned i = 0; i < REPLAY_KEPT; i++) {
		free(r->kept[i].bytes);
		r->kept[i] = (struct replay_frame){0};
	}
}

void replay_sent(struct replay *r, const uint8_t *bytes, size_t length)
{
	struct replay_frame *f;

	if (!r->on || !is_counted(bytes))
		return;
	r->sent++;
	r->again = r->sent;
	if (r->settled && r->said_ready) {
		drop_settled(r);
		return;
	}
	f = slot(r, r->sent);
	free(f->bytes);
	f->bytes = malloc(length);
	f->length = length;
	if (f->bytes != NULL) /* without memory, the session cannot go on behind this frame */
		memcpy(f->bytes, bytes, length);
}

void replay_received(struct replay *r, const struct frame_reader *reader)
{
	if (!r->on || reader->used < FRAME_HEADER || !is_counted(reader->bytes))
		return;
	r->received++;
	if (reader->bytes[5] == FRAME_ALIVE && reader->bytes[6] == NDX_STAGE_READY) {
		r->settled = true;
		drop_settled(r);
	}
}

static enum ndx_status receive_nothing(void *arg, void *data, size_t room, size_t *got)
{
	(void)arg;
	(void)data;
	(void)room;
	(void)got;
	return NDX_PENDING;
}

/* A frame that has come whole is not sent again. */
static void hold_frame(struct frame_reader *to, struct frame_reader *from)
{
	enum ndx_status st;
	const char *why;
	struct frame f;

	if (from->used > 0 && frame_read(from, FRAME_PAYLOAD_MAX, receive_nothing, NULL, &f, &st,
	                                 &why) == FRAME_WHOLE)
		*to = *from;
	else
		frame_reader_clear(from);
	*from = (struct frame_reader){0};
}

void replay_hold(struct driver *d)
{
	struct replay *r = &d->replay;

	r->paused = true;
	hold_frame(&r->in, &d->in);
	hold_frame(&r->behind, &d->behind);
}

static uint32_t waits(const struct frame_reader *reader)
{
	return reader->used >= FRAME_HEADER && is_counted(reader->bytes);
}

uint32_t replay_count(const struct replay *r)
{
	return r->received + waits(&r->in) + waits(&r->behind);
}

bool replay_resume(struct driver *d, uint32_t peer_received)
{
	struct replay *r = &d->replay;
	const uint32_t missing = r->sent - peer_received;

	if (peer_received > r->sent || missing > REPLAY_KEPT)
		return false;
	for (uint32_t n = peer_received + 1; n <= r->sent; n++)
		if (slot(r, n)->bytes == NULL)
			return false;
	r->again = peer_received;
	frame_reader_clear(&d->in);
	frame_reader_clear(&d->behind);
	d->in = r->in;
	d->behind = r->behind;
	r->in = (struct frame_reader){0};
	r->behind = (struct frame_reader){0};
	r->paused = false;
	return true;
}

const struct replay_frame *replay_next(struct replay *r)
{
	return r->paused || r->again == r->sent ? NULL : slot(r, r->again + 1);
}
