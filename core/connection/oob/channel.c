/* SPDX-License-Identifier: BSD-2-Clause */
/* The out-of-band stream of a connection that has no connection manager. */
#include "channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base_linux.h"
#include "base_log.h"
#include "connection.h"
#include "settle.h"

#define AT_ONCE 16 /* frames to handle before other descriptors have their turn */

struct channel {
	pthread_mutex_t lock;
	struct ndx_adapter *adapter;
	struct wire *wire;
	int fd;
	bool by_hand;
	struct base_watch watch;
	struct base_job job;
	struct base_job last;
	/* under the lock: */
	bool session;   /* a session shares the stream; the descriptor is a duplicate */
	bool over;      /* the connection is over */
	bool finished;  /* ... and the control thread has finished */
	bool listening; /* the control thread reads */
	bool held;      /* the session writes */
	bool watched;
	bool goodbye; /* a goodbye is in `out` */
	uint8_t out[CHANNEL_OUT];
	size_t out_length;
	size_t out_sent;
	uint8_t in[CHANNEL_REST];
	size_t in_used;
	struct frame_validate own; /* by_hand: the queue pairs to which this end is connected */
};

static void on_last(void *arg)
{
	struct channel *ch = arg;
	struct ndx_adapter *adapter = ch->adapter;

	wire_leave(ch->wire);
	(void)pthread_mutex_destroy(&ch->lock);
	free(ch);
	adapter_put(adapter, false);
}

/* Free the channel after a job that may be queued. */
static void free_channel(struct channel *ch)
{
	ch->last = (struct base_job){.fn = on_last, .arg = ch};
	base_loop_post(ch->adapter->loop, &ch->last);
}

/* Lock held. */
static void rearm(struct channel *ch)
{
	const bool out = ch->out_length > 0 && !ch->held;
	const uint32_t events = (ch->listening ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u);

	if (ch->watched && events != 0)
		base_watch_rearm(ch->adapter->loop, &ch->watch, events);
}

/* ---- out ---- */

/* Lock held. */
static void put(struct channel *ch, const struct frame *f, const void *payload)
{
	if (ch->out_length + FRAME_HEADER + f->length > sizeof(ch->out))
		return; /* the peer does not read, so it will detect the lost link anyway */
	frame_write_header(ch->out + ch->out_length, f);
	ch->out_length += FRAME_HEADER;
	if (f->length > 0)
		memcpy(ch->out + ch->out_length, payload, f->length);
	ch->out_length += f->length;
	base_loop_post(ch->adapter->loop, &ch->job);
}

/* Lock held. True: a goodbye was written completely. */
static bool flush(struct channel *ch)
{
	const bool said = ch->goodbye;

	if (ch->held)
		return false; /* the session sends the rest of a frame first */
	while (ch->out_sent < ch->out_length) {
		const ssize_t n = send(ch->fd, ch->out + ch->out_sent,
		                       ch->out_length - ch->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			ch->out_sent += (size_t)n;
		else if (n < 0 && errno != EINTR)
			break; /* full: continue later; broken: the reader will find out */
	}
	if (ch->out_sent < ch->out_length)
		return false;
	ch->out_length = 0;
	ch->out_sent = 0;
	ch->goodbye = false;
	return said;
}

static void say(void *arg, enum ndx_spi_oob_message message)
{
	struct channel *ch = arg;
	const struct frame f = {.type = FRAME_GOODBYE,
	                        .flags = message == NDX_OOB_GOODBYE ? 0 : FRAME_ABORTED};

	pthread_mutex_lock(&ch->lock);
	ch->goodbye = ch->goodbye || message == NDX_OOB_GOODBYE;
	put(ch, &f, NULL);
	pthread_mutex_unlock(&ch->lock);
}

static void over(void *arg)
{
	struct channel *ch = arg;

	pthread_mutex_lock(&ch->lock);
	ch->over = true;
	/* The owner of the stream learns of the end only after this, so the peer must learn of it
	 * now. */
	if (ch->by_hand) {
		(void)flush(ch);
		(void)shutdown(ch->fd, SHUT_WR);
	}
	base_loop_post(ch->adapter->loop, &ch->job);
	pthread_mutex_unlock(&ch->lock);
}

static const struct wire_carrier carrier = {.say = say, .over = over};

/* Control thread: the connection does not need the channel any more; a session may. */
static void finish(struct channel *ch)
{
	static const struct frame bye = {.type = FRAME_BYE};
	bool session;

	base_watch_remove(ch->adapter->loop, &ch->watch);
	pthread_mutex_lock(&ch->lock);
	ch->watched = false;
	ch->finished = true;
	session = ch->session;
	if (!session && !ch->by_hand) {
		put(ch, &bye, NULL);
		(void)flush(ch);
	}
	pthread_mutex_unlock(&ch->lock);
	if (session)
		return;
	base_fd_close(ch->fd);
	free_channel(ch);
}

static void on_job(void *arg)
{
	struct channel *ch = arg;
	bool said;
	bool end;

	pthread_mutex_lock(&ch->lock);
	said = !ch->finished && flush(ch);
	end = ch->over && !ch->finished && !ch->held;
	rearm(ch);
	pthread_mutex_unlock(&ch->lock);
	if (said)
		wire_said(ch->wire);
	if (end)
		finish(ch);
}

/* ---- in ---- */

static void stop_listening(struct channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	ch->listening = false;
	pthread_mutex_unlock(&ch->lock);
}

static enum wire_news judge(const struct channel *ch, const struct frame *f)
{
	struct frame_validate v;
	const char *why;

	if (!frame_parse_validate(f, &v, &why) || memcmp(v.own, ch->own.peer, 16) != 0 ||
	    memcmp(v.peer, ch->own.own, 16) != 0 ||
	    settle_difference(&ch->own.agreed, &v.agreed) != NULL)
		return WIRE_WRONG;
	return WIRE_RIGHT;
}

/* Handle a frame; payloads of the session's frames are not read. False: the frame is the
 * session's. */
static bool take(struct channel *ch, const struct frame *f)
{
	switch (f->type) {
	case FRAME_GOODBYE:
		wire_heard(ch->wire, f->length > 0              ? WIRE_LOST
		                     : f->flags & FRAME_ABORTED ? WIRE_ABORT
		                                                : WIRE_GOODBYE);
		return true;
	case FRAME_ALIVE:
		return true;
	case FRAME_VALIDATE:
		if (ch->by_hand)
			wire_heard(ch->wire, judge(ch, f));
		return ch->by_hand;
	case FRAME_BYE:
	case FRAME_ERROR:
		wire_heard(ch->wire, WIRE_LOST);
		return false;
	case FRAME_HELLO:
	case FRAME_WELCOME:
	case FRAME_DATA:
	default:
		if (ch->by_hand)
			wire_heard(ch->wire, WIRE_LOST);
		return false;
	}
}

/* Read the available part of a frame. True: a frame was handled, and more may be available. */
static bool read_one(struct channel *ch)
{
	struct frame f;
	const char *why;
	size_t used;
	ssize_t n;

	for (;;) {
		const enum frame_verdict v =
			frame_parse(ch->in, ch->in_used, FRAME_PAYLOAD_MAX, &f, &used, &why);

		if (v == FRAME_WHOLE)
			break;
		if (v == FRAME_BAD || used > sizeof(ch->in)) {
			/* A longer frame is an error report, or the session's next message. */
			if (v == FRAME_BAD || ch->by_hand || ch->in[5] == FRAME_ERROR)
				wire_heard(ch->wire, WIRE_LOST);
			stop_listening(ch);
			return false;
		}
		n = recv(ch->fd, ch->in + ch->in_used, used - ch->in_used, MSG_DONTWAIT);
		if (n > 0) {
			ch->in_used += (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			wire_heard(ch->wire, WIRE_LOST);
			stop_listening(ch);
			return false;
		} else if (errno == EAGAIN) {
			return false;
		}
	}
	if (take(ch, &f)) {
		ch->in_used = 0;
		return true;
	}
	stop_listening(ch);
	return false;
}

static void on_event(void *arg, uint32_t events)
{
	struct channel *ch = arg;
	bool listening;
	bool said;

	pthread_mutex_lock(&ch->lock);
	listening = ch->listening;
	said = flush(ch);
	pthread_mutex_unlock(&ch->lock);
	if (said)
		wire_said(ch->wire);
	if (listening && (events & ~(uint32_t)EPOLLOUT) != 0)
		for (int i = 0; i < AT_ONCE && read_one(ch); i++)
			;
	pthread_mutex_lock(&ch->lock);
	rearm(ch);
	pthread_mutex_unlock(&ch->lock);
}

/* ---- life ---- */

enum ndx_status channel_create(struct ndx_adapter *adapter, int fd, bool by_hand,
                               struct channel **out, struct wire **wire)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	enum ndx_status st = NDX_E_NO_MEMORY;

	if (ch == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a channel");
	ch->wire = wire_create(&carrier, ch);
	if (ch->wire == NULL)
		goto fail_wire;
	(void)pthread_mutex_init(&ch->lock, NULL);
	ch->adapter = adapter;
	ch->fd = fd;
	ch->by_hand = by_hand;
	ch->session = !by_hand;
	ch->watched = true;
	ch->watch = (struct base_watch){.fd = fd, .fn = on_event, .arg = ch};
	ch->job = (struct base_job){.fn = on_job, .arg = ch};
	st = base_watch_add(adapter->loop, &ch->watch, 0, true);
	if (st != NDX_OK)
		goto fail_watch;
	adapter_get(adapter, false);
	if (!by_hand)
		adapter_get(adapter, true); /* a session may outlive the connector */
	*wire = ch->wire;
	*out = ch;
	return NDX_OK;
fail_watch:
	(void)pthread_mutex_destroy(&ch->lock);
	wire_leave(ch->wire);
fail_wire:
	free(ch);
	return fail(st, 0, "a channel cannot be made: %s", ndx_status_text(st));
}

static void drop_on_loop(void *arg)
{
	struct channel *ch = arg;

	base_watch_remove(ch->adapter->loop, &ch->watch);
	if (ch->session)
		adapter_put(ch->adapter, true);
	free_channel(ch);
}

void channel_drop(struct channel *ch)
{
	base_loop_call(ch->adapter->loop, drop_on_loop, ch);
}

void channel_validate(struct channel *ch, const struct frame_validate *v)
{
	uint8_t payload[FRAME_VALIDATE_SIZE];
	const struct frame f = {.type = FRAME_VALIDATE,
	                        .stage = NDX_STAGE_VALIDATE,
	                        .length = frame_write_validate(payload, v)};

	pthread_mutex_lock(&ch->lock);
	ch->own = *v;
	put(ch, &f, payload);
	ch->listening = true;
	rearm(ch);
	pthread_mutex_unlock(&ch->lock);
}

/* ---- what a session does ---- */

void channel_listen(struct channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	ch->listening = !ch->finished;
	rearm(ch);
	pthread_mutex_unlock(&ch->lock);
}

struct pause_call {
	struct channel *ch;
	uint8_t *rest;
	size_t length;
};

static void pause_on_loop(void *arg)
{
	struct pause_call *call = arg;

	stop_listening(call->ch);
	call->length = call->ch->in_used;
	memcpy(call->rest, call->ch->in, call->length);
	call->ch->in_used = 0;
}

size_t channel_pause(struct channel *ch, uint8_t rest[CHANNEL_REST])
{
	struct pause_call call = {.ch = ch, .rest = rest};

	base_loop_call(ch->adapter->loop, pause_on_loop, &call);
	return call.length;
}

size_t channel_hold(struct channel *ch, uint8_t first[CHANNEL_OUT])
{
	size_t length;

	pthread_mutex_lock(&ch->lock);
	ch->held = true;
	/* Only the rest of a frame whose beginning was sent: a whole frame can wait. */
	length = ch->out_sent == 0 ? 0 : ch->out_length - ch->out_sent;
	memcpy(first, ch->out + ch->out_sent, length);
	if (length > 0)
		ch->out_sent = ch->out_length;
	pthread_mutex_unlock(&ch->lock);
	return length;
}

void channel_release(struct channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	ch->held = false;
	base_loop_post(ch->adapter->loop, &ch->job);
	pthread_mutex_unlock(&ch->lock);
}

void channel_heard(struct channel *ch, enum wire_news news)
{
	wire_heard(ch->wire, news);
}

struct leave_call {
	struct channel *ch;
	bool broken;
	bool taken;
};

static void leave_on_loop(void *arg)
{
	struct leave_call *call = arg;
	struct channel *ch = call->ch;

	/* The session's failure also breaks the channel: the peer detects that at once. */
	if (call->broken)
		wire_heard(ch->wire, WIRE_LOST);
	pthread_mutex_lock(&ch->lock);
	call->taken = !ch->finished;
	if (call->taken && call->broken)
		(void)shutdown(ch->fd, SHUT_RDWR);
	ch->session = false;
	ch->listening = call->taken && !call->broken;
	rearm(ch);
	pthread_mutex_unlock(&ch->lock);
	if (!call->taken)
		free_channel(ch);
}

bool channel_leave(struct channel *ch, bool broken)
{
	struct leave_call call = {.ch = ch, .broken = broken};
	struct ndx_adapter *adapter = ch->adapter;

	base_loop_call(adapter->loop, leave_on_loop, &call);
	adapter_put(adapter, true);
	return call.taken;
}
