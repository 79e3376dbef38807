/* SPDX-License-Identifier: BSD-2-Clause */
/* A session whose connection has no connection manager: its transport carries the connection's
 * goodbyes, between the session's own frames, also while the dialogue does not read. Loop thread.
 */
#include <ndx/spi/log.h>
#include "connection.h"
#include "many.h"
#include "session.h"

/* The link's lock is held, on the adapter's control thread. */
static void on_message(void *arg, enum oob_event message)
{
	struct driver *d = &((struct ndx_session *)arg)->driver;

	(void)__atomic_fetch_or(&d->oob_pending, (uint32_t)message, __ATOMIC_RELEASE);
	ndxp_loop_post(d->engine->loop, &d->go);
}

static void on_connection_end(void *arg)
{
	struct driver *d = &((struct ndx_session *)arg)->driver;

	__atomic_store_n(&d->oob_ended, 1, __ATOMIC_RELEASE);
	ndxp_loop_post(d->engine->loop, &d->go);
}

static const struct oob_end_ops carrier = {.event = on_message, .lost = on_connection_end};

enum ndx_status driver_oob_open(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	enum ndx_status st;

	if (s->dialogue.own.kind != NDX_DESCRIPTION_VERBS_RC || s->attr.connector == NULL)
		return NDX_OK;
	if ((s->dialogue.peer.policy & NDX_PEER_NO_GOODBYES) != 0)
		return NDX_OK; /* the connector does without */
	if (d->stream != NULL) /* of a device, which has no goodbye */
		return ndx_connector_set_oob_stream(s->attr.connector, NDX_NO_OOB_STREAM);
	d->oob = oob_link_create(&carrier, s);
	if (d->oob == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for the queue pair's goodbye");
	st = conn_oob_set_link(s->attr.connector, d->oob);
	if (st == NDX_OK && d->lane != NULL)
		d->lane->many->linked = true;
	if (st == NDX_OK)
		return NDX_OK;
	oob_link_leave(d->oob, OOB_CARRIER);
	d->oob = NULL;
	return st;
}

static void record_goodbye(struct ndx_session *s, enum ndx_history_kind kind, uint8_t flags)
{
	const bool aborted = (flags & FRAME_ABORTED) != 0;

	dialogue_record_word(&s->dialogue, kind, FRAME_GOODBYE,
	                     aborted ? NDX_E_CONNECTION_ABORTED : NDX_OK);
}

/* Prepare the next goodbye or abort, if there is one. */
static bool begin_oob_frame(struct driver *d)
{
	static const enum oob_event order[] = {OOB_GOODBYE, OOB_ABORT};
	struct frame f = {.type = FRAME_GOODBYE};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const uint32_t bit = (uint32_t)order[i];

		if ((__atomic_fetch_and(&d->oob_pending, ~bit, __ATOMIC_ACQUIRE) & bit) == 0)
			continue;
		f.flags = order[i] == OOB_ABORT ? FRAME_ABORTED : 0;
		frame_write_header(d->oob_frame, &f);
		d->oob_sending = true;
		return true;
	}
	return false;
}

bool driver_oob_send(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->oob == NULL || !driver_is_open(s) || d->replay.paused)
		return true;
	/* A frame of the session that is being sent comes first; its last frame ends this. */
	while (d->oob_sending ||
	       (d->sent == 0 && d->phase != DRIVER_ENDING && begin_oob_frame(d))) {
		const enum driver_io io = driver_send(s, d->oob_frame, sizeof(d->oob_frame));

		if (io == IO_WAIT)
			return false;
		if (io != IO_DONE) {
			/* The reader will detect the lost transport; another one gets the frame. */
			d->oob_sending = driver_can_resume(s);
			return true;
		}
		d->oob_sending = false;
		replay_sent(&d->replay, d->oob_frame, sizeof(d->oob_frame));
		record_goodbye(s, NDX_HISTORY_SENT, d->oob_frame[FRAME_FLAGS_AT]);
		if (d->oob_frame[FRAME_FLAGS_AT] == 0)
			oob_link_tell(d->oob, OOB_CARRIER, OOB_SENT);
	}
	return true;
}

/* While the dialogue does not read, a heartbeat means nothing, and must not keep a goodbye from
 * being read. */
static bool is_heartbeat(const struct ndx_session *s, const struct frame *f)
{
	return driver_has_oob(s) && f->type == FRAME_ALIVE;
}

/* Pass a goodbye or an abort on; false if the frame is none. */
static bool pass_on(struct ndx_session *s, const struct frame *f)
{
	struct driver *d = &s->driver;

	if (d->oob == NULL || f->type != FRAME_GOODBYE || f->length > 0)
		return false;
	record_goodbye(s, NDX_HISTORY_RECEIVED, f->flags);
	oob_link_tell(d->oob, OOB_CARRIER, f->flags & FRAME_ABORTED ? OOB_ABORT : OOB_GOODBYE);
	return true;
}

bool driver_oob_handle(struct ndx_session *s, const struct frame *f)
{
	const struct driver *d = &s->driver;
	const bool heard = d->lane == NULL && d->many != NULL && d->many->hear(s, f);

	if (!heard && !pass_on(s, f))
		return false;
	driver_consume(s);
	return true;
}

/* A frame of the session waits: handle goodbyes and aborts behind it, leave any other frame. */
static void receive_behind(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	struct frame f;
	enum driver_io io;

	for (;;) {
		io = driver_read_behind(s, &f);
		if (io != IO_DONE || !(is_heartbeat(s, &f) || pass_on(s, &f)))
			break;
		driver_consume_behind(s);
	}
	if (io == IO_LOST && !driver_drop_lost(s))
		oob_link_tell(d->oob, OOB_CARRIER, OOB_LOST);
}

/* The peer's session ends, and the connection with it. The frame stays for the dialogue, which may
 * not read any more. */
static void hear_last_word(struct ndx_session *s, const struct frame *f)
{
	driver_oob_lost(s);
	if (f->type != FRAME_SESSION_END || s->dialogue.heard_end)
		return;
	s->dialogue.heard_end = true;
	dialogue_record_word(&s->dialogue, NDX_HISTORY_RECEIVED, f->type, NDX_OK);
}

void driver_oob_receive(struct ndx_session *s)
{
	struct driver *d = &s->driver;
	const char *why;
	struct frame f;

	while (driver_has_oob(s) && driver_is_open(s)) {
		switch (driver_read_frame(s, s->dialogue.limits.max_message, &f, &why)) {
		case IO_DONE:
			if (driver_oob_handle(s, &f))
				continue;
			if (is_heartbeat(s, &f)) {
				driver_consume(s);
				continue;
			}
			if (f.type == FRAME_SESSION_END || f.type == FRAME_ERROR)
				hear_last_word(s, &f);
			if (d->oob != NULL)
				receive_behind(s);
			return;
		case IO_LOST:
			if (!driver_drop_lost(s))
				driver_oob_lost(s);
			return;
		case IO_BAD:
			driver_oob_lost(s);
			return;
		case IO_WAIT:
		default:
			return;
		}
	}
}

bool driver_has_oob(const struct ndx_session *s)
{
	const struct driver *d = &s->driver;

	return d->oob != NULL || (d->many != NULL && d->many->has_oob(s));
}

void driver_oob_lost(struct ndx_session *s)
{
	if (s->driver.oob != NULL)
		oob_link_tell(s->driver.oob, OOB_CARRIER, OOB_LOST);
	if (s->driver.many != NULL)
		s->driver.many->oob_lost(s);
}

bool driver_oob_is_over(const struct ndx_session *s)
{
	if (s->many != NULL)
		return s->driver.many->oob_is_over(s);
	/* In this order: the connection says its last word before it ends. */
	return __atomic_load_n(&s->driver.oob_ended, __ATOMIC_ACQUIRE) != 0 &&
	       __atomic_load_n(&s->driver.oob_pending, __ATOMIC_ACQUIRE) == 0;
}

void driver_oob_close(struct ndx_session *s)
{
	struct driver *d = &s->driver;

	if (d->oob != NULL)
		oob_link_leave(d->oob, OOB_CARRIER);
	d->oob = NULL;
}
