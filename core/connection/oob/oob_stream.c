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
#include "connection.h"
#include "agree.h"

#define AT_ONCE 16 /* frames to handle before other descriptors have their turn */

struct oob_stream {
	pthread_mutex_t lock;
	struct ndx_adapter *adapter;
	struct oob_link *link;
	int fd;
	bool by_hand;
	struct ndxp_watch watch;
	struct ndxp_job job;
	struct ndxp_job last;
	/* under the lock: */
	bool session;   /* a session shares the stream; the descriptor is a duplicate */
	bool over;      /* the connection is over */
	bool finished;  /* ... and the control thread has finished */
	bool listening; /* the control thread reads */
	bool held;      /* the session writes */
	bool watched;
	bool goodbye; /* a goodbye is in `out` */
	uint8_t out[OOB_STREAM_OUT];
	size_t out_length;
	size_t out_sent;
	uint8_t in[OOB_STREAM_REST];
	size_t in_used;
	struct frame_validate own; /* by_hand: the queue pairs to which this end is connected */
};

static void on_last(void *arg)
{
	struct oob_stream *os = arg;
	struct ndx_adapter *adapter = os->adapter;

	oob_link_leave(os->link);
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
	const bool out = os->out_length > 0 && !os->held;
	const uint32_t events = (os->listening ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u);

	if (os->watched && events != 0)
		ndxp_watch_rearm(os->adapter->loop, &os->watch, events);
}

/* ---- out ---- */

/* Lock held. */
static void queue_frame(struct oob_stream *os, const struct frame *f, const void *payload)
{
	if (os->out_length + FRAME_HEADER + f->length > sizeof(os->out))
		return; /* the peer does not read, so it will detect the lost link anyway */
	frame_write_header(os->out + os->out_length, f);
	os->out_length += FRAME_HEADER;
	if (f->length > 0)
		memcpy(os->out + os->out_length, payload, f->length);
	os->out_length += f->length;
	ndxp_loop_post(os->adapter->loop, &os->job);
}

/* Lock held. True: a goodbye was written completely. */
static bool send_queued(struct oob_stream *os)
{
	const bool sent = os->goodbye;

	if (os->held)
		return false; /* the session sends the rest of a frame first */
	while (os->out_sent < os->out_length) {
		const ssize_t n = send(os->fd, os->out + os->out_sent,
		                       os->out_length - os->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			os->out_sent += (size_t)n;
		else if (n < 0 && errno != EINTR)
			break; /* full: continue later; broken: the reader will find out */
	}
	if (os->out_sent < os->out_length)
		return false;
	os->out_length = 0;
	os->out_sent = 0;
	os->goodbye = false;
	return sent;
}

static void send_message(void *arg, enum ndx_spi_oob_message message)
{
	struct oob_stream *os = arg;
	const struct frame f = {.type = FRAME_GOODBYE,
	                        .flags = message == NDX_OOB_GOODBYE ? 0 : FRAME_ABORTED};

	pthread_mutex_lock(&os->lock);
	os->goodbye = os->goodbye || message == NDX_OOB_GOODBYE;
	queue_frame(os, &f, NULL);
	pthread_mutex_unlock(&os->lock);
}

static void on_connection_end(void *arg)
{
	struct oob_stream *os = arg;

	pthread_mutex_lock(&os->lock);
	os->over = true;
	/* The owner of the stream learns of the end only after this, so the peer must learn of it
	 * now. */
	if (os->by_hand) {
		(void)send_queued(os);
		(void)shutdown(os->fd, SHUT_WR);
	}
	ndxp_loop_post(os->adapter->loop, &os->job);
	pthread_mutex_unlock(&os->lock);
}

static const struct oob_carrier carrier = {.send = send_message, .end = on_connection_end};

/* Control thread: the connection does not need the stream any more; a session may. */
static void finish_stream(struct oob_stream *os)
{
	static const struct frame bye = {.type = FRAME_SESSION_END};
	bool session;

	ndxp_watch_remove(os->adapter->loop, &os->watch);
	pthread_mutex_lock(&os->lock);
	os->watched = false;
	os->finished = true;
	session = os->session;
	if (!session && !os->by_hand) {
		queue_frame(os, &bye, NULL);
		(void)send_queued(os);
	}
	pthread_mutex_unlock(&os->lock);
	if (session)
		return;
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
	end = os->over && !os->finished && !os->held;
	rearm(os);
	pthread_mutex_unlock(&os->lock);
	if (sent)
		oob_link_sent(os->link);
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

/* Handle a frame; payloads of the session's frames are not read. False: the frame is the
 * session's. */
static bool handle_frame(struct oob_stream *os, const struct frame *f)
{
	switch (f->type) {
	case FRAME_GOODBYE:
		oob_link_received(os->link, f->length > 0              ? OOB_LOST
		                            : f->flags & FRAME_ABORTED ? OOB_ABORT
		                                                       : OOB_GOODBYE);
		return true;
	case FRAME_ALIVE:
		return true;
	case FRAME_VALIDATE:
		if (os->by_hand)
			oob_link_received(os->link, compare_ends(os, f));
		return os->by_hand;
	case FRAME_SESSION_END:
	case FRAME_ERROR:
		oob_link_received(os->link, OOB_LOST);
		return false;
	case FRAME_HELLO:
	case FRAME_WELCOME:
	case FRAME_DATA:
	default:
		if (os->by_hand)
			oob_link_received(os->link, OOB_LOST);
		return false;
	}
}

/* Read the available part of a frame. True: a frame was handled, and more may be available. */
static bool read_one(struct oob_stream *os)
{
	struct frame f;
	const char *why;
	size_t used;
	ssize_t n;

	for (;;) {
		const enum frame_verdict v =
			frame_parse(os->in, os->in_used, FRAME_PAYLOAD_MAX, &f, &used, &why);

		if (v == FRAME_WHOLE)
			break;
		if (v == FRAME_BAD || used > sizeof(os->in)) {
			/* A longer frame is an error report, or the session's next message. */
			if (v == FRAME_BAD || os->by_hand || os->in[5] == FRAME_ERROR)
				oob_link_received(os->link, OOB_LOST);
			stop_listening(os);
			return false;
		}
		n = recv(os->fd, os->in + os->in_used, used - os->in_used, MSG_DONTWAIT);
		if (n > 0) {
			os->in_used += (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			oob_link_received(os->link, OOB_LOST);
			stop_listening(os);
			return false;
		} else if (errno == EAGAIN) {
			return false;
		}
	}
	if (handle_frame(os, &f)) {
		os->in_used = 0;
		return true;
	}
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
		oob_link_sent(os->link);
	if (listening && (events & ~(uint32_t)EPOLLOUT) != 0)
		for (int i = 0; i < AT_ONCE && read_one(os); i++)
			;
	pthread_mutex_lock(&os->lock);
	rearm(os);
	pthread_mutex_unlock(&os->lock);
}

/* ---- life ---- */

enum ndx_status oob_stream_create(struct ndx_adapter *adapter, int fd, bool by_hand,
                                  struct oob_stream **out, struct oob_link **link)
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
	os->by_hand = by_hand;
	os->session = !by_hand;
	os->watched = true;
	os->watch = (struct ndxp_watch){.fd = fd, .fn = on_event, .arg = os};
	os->job = (struct ndxp_job){.fn = on_job, .arg = os};
	st = ndxp_watch_add(adapter->loop, &os->watch, 0, true);
	if (st != NDX_OK)
		goto fail_watch;
	adapter_get(adapter, false);
	if (!by_hand)
		adapter_get(adapter, true); /* a session may outlive the connector */
	*link = os->link;
	*out = os;
	return NDX_OK;
fail_watch:
	(void)pthread_mutex_destroy(&os->lock);
	oob_link_leave(os->link);
fail_wire:
	free(os);
	return fail(st, 0, "the out-of-band stream cannot be used: %s", ndx_status_text(st));
}

static void drop_on_loop(void *arg)
{
	struct oob_stream *os = arg;

	ndxp_watch_remove(os->adapter->loop, &os->watch);
	if (os->session)
		adapter_put(os->adapter, true);
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
	queue_frame(os, &f, payload);
	os->listening = true;
	rearm(os);
	pthread_mutex_unlock(&os->lock);
}

/* ---- what a session does ---- */

void oob_stream_listen(struct oob_stream *os)
{
	pthread_mutex_lock(&os->lock);
	os->listening = !os->finished;
	rearm(os);
	pthread_mutex_unlock(&os->lock);
}

struct pause_call {
	struct oob_stream *os;
	uint8_t *rest;
	size_t length;
};

static void pause_on_loop(void *arg)
{
	struct pause_call *call = arg;

	stop_listening(call->os);
	call->length = call->os->in_used;
	memcpy(call->rest, call->os->in, call->length);
	call->os->in_used = 0;
}

size_t oob_stream_pause(struct oob_stream *os, uint8_t rest[OOB_STREAM_REST])
{
	struct pause_call call = {.os = os, .rest = rest};

	ndxp_loop_call(os->adapter->loop, pause_on_loop, &call);
	return call.length;
}

size_t oob_stream_hold(struct oob_stream *os, uint8_t first[OOB_STREAM_OUT])
{
	size_t length;

	pthread_mutex_lock(&os->lock);
	os->held = true;
	/* Only the rest of a frame whose beginning was sent: a whole frame can wait. */
	length = os->out_sent == 0 ? 0 : os->out_length - os->out_sent;
	memcpy(first, os->out + os->out_sent, length);
	if (length > 0)
		os->out_sent = os->out_length;
	pthread_mutex_unlock(&os->lock);
	return length;
}

void oob_stream_release(struct oob_stream *os)
{
	pthread_mutex_lock(&os->lock);
	os->held = false;
	ndxp_loop_post(os->adapter->loop, &os->job);
	pthread_mutex_unlock(&os->lock);
}

void oob_stream_received(struct oob_stream *os, enum oob_event event)
{
	oob_link_received(os->link, event);
}

struct leave_call {
	struct oob_stream *os;
	bool broken;
	bool taken;
};

static void leave_on_loop(void *arg)
{
	struct leave_call *call = arg;
	struct oob_stream *os = call->os;

	/* The session's failure also breaks the stream: the peer detects that at once. */
	if (call->broken)
		oob_link_received(os->link, OOB_LOST);
	pthread_mutex_lock(&os->lock);
	call->taken = !os->finished;
	if (call->taken && call->broken)
		(void)shutdown(os->fd, SHUT_RDWR);
	os->session = false;
	os->listening = call->taken && !call->broken;
	rearm(os);
	pthread_mutex_unlock(&os->lock);
	if (!call->taken)
		free_stream(os);
}

bool oob_stream_leave(struct oob_stream *os, bool broken)
{
	struct leave_call call = {.os = os, .broken = broken};
	struct ndx_adapter *adapter = os->adapter;

	ndxp_loop_call(adapter->loop, leave_on_loop, &call);
	adapter_put(adapter, true);
	return call.taken;
}
