/* SPDX-License-Identifier: BSD-2-Clause */
/* A session whose transport broke goes on over another one: each end says how many frames it has
 * received, and the other end sends the later ones again. So the dialogue, the plugin and the queue
 * pair do not notice. Loop thread. */
#include <ndx/spi/system.h>
#include "session.h"

bool driver_replay_send(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const struct replay_frame *f;

	while (d->fd >= 0 && (f = replay_next(&d->replay)) != NULL) {
		switch (driver_send(s, f->bytes, f->length)) {
		case IO_DONE:
			d->replay.again++;
			break;
		case IO_WAIT:
			return false;
		case IO_LOST:
		case IO_BAD:
		default:
			return true; /* the reader will detect the lost transport */
		}
	}
	return true;
}

bool driver_can_resume(const struct ndx_session *s)
{
	const struct dialogue *x = &s->dialogue;
	/* Then the dialogue is the pool's, and a failure shows when the task returns. */
	const bool pooled = s->driver.phase == DRIVER_POOL;

	return s->driver.replay.on && !s->closed && (pooled || x->next != DIALOGUE_FAILED) &&
	       s->attr.variant->table->ops->reset != NULL &&
	       (x->finished < NDX_STAGE_READY || !s->driver.replay.settled);
}

bool driver_drop_lost(struct ndx_session *s)
{
	if (!driver_can_resume(s))
		return false;
	driver_detach(s);
	return true;
}

enum driver_io driver_say_ready(struct ndx_session *s)
{
	struct replay *r = &s->driver.replay;
	const struct frame f = {.type = FRAME_ALIVE, .stage = NDX_STAGE_READY};
	const struct ndx_history_entry entry = {.kind = NDX_HISTORY_SENT, .stage = NDX_STAGE_READY};
	enum driver_io io;

	if (!r->on || r->said_ready)
		return IO_DONE;
	frame_write_header(r->ready, &f);
	io = driver_send_soon(s, r->ready, sizeof(r->ready));
	if (io != IO_DONE)
		return io;
	r->said_ready = true;
	replay_sent(r, r->ready, sizeof(r->ready));
	history_add(&s->history, &entry, ndxp_now_ns(), frame_type_name(f.type));
	return IO_DONE;
}

bool driver_can_replace(const struct ndx_session *s)
{
	if (s->driver.replay.on)
		return driver_can_resume(s);
	return s->many == NULL && s->driver.oob == NULL &&
	       s->attr.variant->table->ops->reset != NULL &&
	       s->dialogue.view.stage != NDX_STAGE_VALIDATE;
}
