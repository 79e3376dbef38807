/* SPDX-License-Identifier: BSD-2-Clause */
/* The out-of-band stream of a connection that has no connection manager. */
#include "oob_stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_socket.h"
#include "connection.h"
#include "agree.h"
#include "frame_io.h"

#define OUT_MAX (FRAME_HEADER * 3 + FRAME_VALIDATE_SIZE)
#define AT_ONCE 16 /* frames to handle before other descriptors have their turn */

struct oob_stream {
	pthread_mutex_t lock;
	struct ndx_adapter *adapter;
	struct oob_link *link;
	int fd;
	struct frame_reader in;
	struct ndxp_watch watch;
	struct ndxp_job job;
	struct ndxp_job last;
	/* under the lock: */
	bool over;      /* the connection is over */
	bool finished;  /* ... and the control thread has finished */
	bool listening; /* the control thread reads */
	bool goodbye;   /* a goodbye is in `out` */
	uint8_t out[OUT_MAX];
	size_t out_length;
	size_t out_sent;
	struct frame_validate own; /* the queue pairs to which this end is connected */
};

static void on_last(void *arg)
{
	struct oob_stream *os = arg;
	struct ndx_adapter *adapter = os->adapter;

	oob_link_leave(os->link, OOB_CARRIER);
	frame_reader_clear(&os->in);
	(void)pthread_mutex_destroy(&os->lock);
	free(os);
	adapter_put(adapter, false);
}

/* Free the stream after a job that may be queued. */
static void free_stream(struct oob_stream *os)
{
	os->last = (struct ndxp_job){.fn = on_last, .arg = os};
	ndxp_loop_post(os->adapter->loop, &os->last);
}

/* Lock held. */
static void rearm(struct oob_stream *os)
{
	const bool out = os->out_length > 0;
	const uint32_t events = (os->listening ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u);

	if (!os->finished && events != 0)
		ndxp_watch_rearm(os->adapter->loop, &os->watch, events);
}

/* ---- out ---- */

/* Lock held. False: no room. */
static bool queue_frame(struct oob_stream *os, const struct frame *f, const void *payload)
{
	if (os->out_length + FRAME_HEADER + f->length > sizeof(os->out))
		return false; /* the peer does not read, so it will detect the lost link anyway */
	frame_write_header(os->out + os->out_length, f);
	os->out_length += FRAME_HEADER;
	if (f->length > 0)
		memcpy(os->out + os->out_length, payload, f->length);
	os->out_length += f->length;
	ndxp_loop_post(os->adapter->loop, &os->job);
	return true;
}

/* Lock held. True: a goodbye was written completely. */
static bool send_queued(struct oob_stream *os)
{
	const bool sent = os->goodbye;

	if (base_socket_send(os->fd, os->out, os->out_length, &os->out_sent) != NDX_OK)
		return false; /* full: continue later; broken: the reader will find out */
	os->out_length = 0;
	os->out_sent = 0;
	os->goodbye = false;
	return sent;
}

static void on_message(void *arg, enum oob_event message)
{
	struct oob_stream *os = arg;
	const struct frame f = {.type = FRAME_GOODBYE,
	                        .flags = message == OOB_GOODBYE ? 0 : FRAME_ABORTED};

	pthread_mutex_lock(&os->lock);
	if (queue_frame(os, &f, NULL) && message == OOB_GOODBYE)
		os->goodbye = true;
	pthread_mutex_unlock(&os->lock);
}

static void on_connection_end(void *arg)
{
	struct oob_stream *os = arg;

	pthread_mutex_lock(&os->lock);
	os->over = true;
	/* The owner of the stream learns of the end only after this, so the peer must learn of it
	 * now. */
	(void)send_queued(os);
	(void)shutdown(os->fd, SHUT_WR);
	ndxp_loop_post(os->adapter->loop, &os->job);
	pthread_mutex_unlock(&os->lock);
}

static const struct oob_end_ops carrier = {.event = on_message, .lost = on_connection_end};

/* Control thread: the connection does not need the stream any more. */
static void finish_stream(struct oob_stream *os)
{
	ndxp_watch_remove(os->adapter->loop, &os->watch);
	pthread_mutex_lock(&os->lock);
	os->finished = true;
	pthread_mutex_unlock(&os->lock);
	ndxp_fd_close(os->fd);
	free_stream(os);
}

static void on_job(void *arg)
{
	struct oob_stream *os = arg;
	bool sent;
	bool end;

	pthread_mutex_lock(&os->lock);
	sent = !os->finished && send_queued(os);
	end = os->over && !os->finished;
	rearm(os);
	pthread_mutex_unlock(&os->lock);
	if (sent)
		oob_link_tell(os->link, OOB_CARRIER, OOB_SENT);
	if (end)
		finish_stream(os);
}

/* ---- in ---- */

static void stop_listening(struct oob_stream *os)
{
	pthread_mutex_lock(&os->lock);
	os->listening = false;
	pthread_mutex_unlock(&os->lock);
}

static enum oob_event compare_ends(const struct oob_stream *os, const struct frame *f)
{
	struct frame_validate v;
	const char *why;

	if (!frame_parse_validate(f, &v, &why) || memcmp(v.own, os->own.peer, 16) != 0 ||
	    memcmp(v.peer, os->own.own, 16) != 0 ||
	    agree_difference(&os->own.agreed, &v.agreed) != NULL)
		return OOB_PEER_DIFFERS;
	return OOB_PEER_MATCHES;
}

/* False: a frame that has no place here. */
static bool handle_frame(struct oob_stream *os, const struct frame *f)
{
	switch (f->type) {
	case FRAME_GOODBYE:
		oob_link_tell(os->link, OOB_CARRIER,
		              f->length > 0              ? OOB_LOST
		              : f->flags & FRAME_ABORTED ? OOB_ABORT
		                                         : OOB_GOODBYE);
		return true;
	case FRAME_ALIVE:
		return true;
	case FRAME_VALIDATE:
		oob_link_tell(os->link, OOB_CARRIER, compare_ends(os, f));
		return true;
	case FRAME_SESSION_END:
	case FRAME_ERROR:
	case FRAME_HELLO:
	case FRAME_WELCOME:
	case FRAME_DATA:
	case FRAME_PROOF:
	case FRAME_ADD:
	case FRAME_ABANDON:
	case FRAME_REMOVE:
	default:
		return false;
	}
}

static enum ndx_status receive_now(void *arg, void *data, size_t room, size_t *got)
{
	const struct oob_stream *os = arg;

	return base_socket_receive(os->fd, data, room, got);
}

/* Read the available part of a frame. True: a frame was handled, and more may be available. */
static bool read_one(struct oob_stream *os)
{
	enum ndx_status st = NDX_OK;
	struct frame f;
	const char *why;
	const enum frame_verdict v =
		frame_read(&os->in, FRAME_VALIDATE_SIZE, receive_now, os, &f, &st, &why);

	if (v == FRAME_MORE && st == NDX_PENDING)
		return false;
	if (v == FRAME_WHOLE && handle_frame(os, &f)) {
		frame_reader_consume(&os->in);
		return true;
	}
	oob_link_tell(os->link, OOB_CARRIER, OOB_LOST);
	stop_listening(os);
	return false;
}

static void on_event(void *arg, uint32_t events)
{
	struct oob_stream *os = arg;
	bool listening;
	bool sent;

	pthread_mutex_lock(&os->lock);
	listening = os->listening;
	sent = send_queued(os);
	pthread_mutex_unlock(&os->lock);
	if (sent)
		oob_link_tell(os->link, OOB_CARRIER, OOB_SENT);
	if (listening && (events & ~(uint32_t)EPOLLOUT) != 0)
		for (int i = 0; i < AT_ONCE && read_one(os); i++)
			;
	pthread_mutex_lock(&os->lock);
	rearm(os);
	pthread_mutex_unlock(&os->lock);
}

/* ---- life ---- */

enum ndx_status oob_stream_create(struct ndx_adapter *adapter, int fd, struct oob_stream **out,
                                  struct oob_link **link)
{
	struct oob_stream *os = calloc(1, sizeof(*os));
	enum ndx_status st = NDX_E_NO_MEMORY;

	if (os == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for an out-of-band stream");
	os->link = oob_link_create(&carrier, os);
	if (os->link == NULL)
		goto fail_wire;
	(void)pthread_mutex_init(&os->lock, NULL);
	os->adapter = adapter;
	os->fd = fd;
	os->watch = (struct ndxp_watch){.fd = fd, .fn = on_event, .arg = os};
	os->job = (struct ndxp_job){.fn = on_job, .arg = os};
	st = ndxp_watch_add(adapter->loop, &os->watch, 0, true);
	if (st != NDX_OK)
		goto fail_watch;
	adapter_get(adapter, false);
	*link = os->link;
	*out = os;
	return NDX_OK;
fail_watch:
	(void)pthread_mutex_destroy(&os->lock);
	oob_link_leave(os->link, OOB_CARRIER);
fail_wire:
	free(os);
	return fail(st, 0, "the out-of-band stream cannot be used: %s", ndx_status_text(st));
}

static void drop_on_loop(void *arg)
{
	struct oob_stream *os = arg;

	ndxp_watch_remove(os->adapter->loop, &os->watch);
	free_stream(os);
}

void oob_stream_drop(struct oob_stream *os)
{
	ndxp_loop_call(os->adapter->loop, drop_on_loop, os);
}

void oob_stream_validate(struct oob_stream *os, const struct frame_validate *v)
{
	uint8_t payload[FRAME_VALIDATE_SIZE];
	const struct frame f = {.type = FRAME_VALIDATE,
	                        .stage = NDX_STAGE_VALIDATE,
	                        .length = frame_write_validate(payload, v)};

	pthread_mutex_lock(&os->lock);
	os->own = *v;
	(void)queue_frame(os, &f, payload);
	os->listening = true;
	rearm(os);
	pthread_mutex_unlock(&os->lock);
}
