/* SPDX-License-Identifier: BSD-2-Clause */
/* Script of a receiver and its sender, from their making to their end. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <ndx/receiver.h>
#include <ndx/sender.h>

#include "sweep.h"

#define FRAMES 6u
#define SLOTS 4u
#define SIZE 64u

struct stream {
	struct run *r;
	struct ndx_receiver *receiver;
	struct ndx_sender *sender;
	enum ndx_status accepted;
	uint64_t wrong; /* frames; the receiving thread's */
	sem_t ended;    /* posted at each end of a connection */
};

static bool take_frame(void *context, const struct ndx_frame *frame)
{
	struct stream *t = context;
	const unsigned char *data = frame->data;

	t->wrong += frame->length != SIZE || data[0] != frame->sequence || data[SIZE - 1] != 7;
	return true;
}

static void on_end(void *context, struct ndx_receiver *receiver, enum ndx_receiver_state state)
{
	struct stream *t = context;

	(void)receiver;
	(void)state;
	(void)sem_post(&t->ended);
}

static bool make_receiver(struct stream *t)
{
	struct ndx_receiver *const untouched = (void *)t;
	struct ndx_receiver_attr attr;
	enum ndx_status st;

	ndx_receiver_attr_init(&attr);
	attr.adapter = t->r->passive->adapter;
	attr.slot_size = SIZE;
	attr.slot_count = SLOTS;
	attr.context = t;
	attr.on_end = on_end;
	attr.consumers[0] = (struct ndx_frame_consumer){take_frame, t, NDX_CHANNEL_ANY};
	do {
		t->receiver = untouched;
		st = ndx_receiver_create(&attr, &t->receiver);
		(void)sweep_check(t->r, st == NDX_OK || t->receiver == untouched,
		                  "receiver_create failed and wrote to its out parameter");
	} while (sweep_again(t->r, "receiver_create", st, NDX_OK));
	t->receiver = st == NDX_OK ? t->receiver : NULL;
	return st == NDX_OK;
}

static bool make_sender(struct stream *t)
{
	struct ndx_sender *const untouched = (void *)t;
	struct ndx_sender_attr attr;
	enum ndx_status st;

	ndx_sender_attr_init(&attr);
	attr.adapter = t->r->active->adapter;
	attr.slot_size = SIZE;
	attr.slot_count = SLOTS;
	do {
		t->sender = untouched;
		st = ndx_sender_create(&attr, &t->sender);
		(void)sweep_check(t->r, st == NDX_OK || t->sender == untouched,
		                  "sender_create failed and wrote to its out parameter");
	} while (sweep_again(t->r, "sender_create", st, NDX_OK));
	t->sender = st == NDX_OK ? t->sender : NULL;
	return st == NDX_OK;
}

/* What failed once is done once more, so that a peer that asks has an answer. */
static void *accept_one(void *arg)
{
	struct stream *t = arg;

	for (int i = 0; i < 2; i++) {
		t->accepted = ndx_receiver_accept(t->receiver, t->r->passive->listener, NULL, 0,
		                                  SWEEP_PATIENCE_MS);
		if (t->accepted == NDX_OK || t->accepted == NDX_E_CANCELED)
			break;
		(void)sweep_check(t->r, ndx_receiver_get_state(t->receiver) == NDX_RECEIVER_CREATED,
		                  "receiver_accept failed and left a receiver that is %s",
		                  ndx_receiver_state_name(ndx_receiver_get_state(t->receiver)));
	}
	return NULL;
}

/* Both, at once. Neither does anything by halves: a call that failed can be repeated. */
static enum ndx_status join(struct stream *t)
{
	struct run *r = t->r;
	pthread_t thread;
	enum ndx_status st;

	if (pthread_create(&thread, NULL, accept_one, t) != 0) {
		sweep_wrong(r, "no thread");
		return NDX_E_NO_MEMORY;
	}
	st = ndx_sender_connect(t->sender, (const struct sockaddr *)&r->where, r->where_len, NULL,
	                        0, SWEEP_PATIENCE_MS);
	sweep_join(r, thread, st != NDX_OK);
	return st != NDX_OK ? st : t->accepted;
}

static enum ndx_receiver_state await_end(struct stream *t)
{
	enum ndx_receiver_state state;
	struct timespec late;

	(void)clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += SWEEP_PATIENCE_MS / 1000;
	(void)sweep_check(t->r, sem_timedwait(&t->ended, &late) == 0, "nobody hears of the end");
	state = ndx_receiver_get_state(t->receiver);
	(void)sweep_check(t->r, state == NDX_RECEIVER_ENDED || state == NDX_RECEIVER_FAILED,
	                  "the receiver does not end, but is %s", ndx_receiver_state_name(state));
	return state;
}

/* What the sender's stack has taken arrives, whatever becomes of a receive that is posted again. */
static void send_and_end(struct stream *t)
{
	struct ndx_receiver_stats stats = {.size = sizeof(stats)};
	unsigned char frame[SIZE];
	enum ndx_status st = NDX_OK;
	enum ndx_receiver_state state;

	memset(frame, 7, sizeof(frame));
	for (unsigned i = 0; i < FRAMES && st == NDX_OK; i++) {
		frame[0] = (unsigned char)i;
		st = ndx_sender_send(t->sender, frame, SIZE, 0, SWEEP_PATIENCE_MS);
	}
	if (st == NDX_OK)
		st = ndx_sender_flush(t->sender, SWEEP_PATIENCE_MS);
	(void)sweep_check(t->r, st == NDX_OK || (st < 0 && faults_struck(t->r)), "a frame: %s: %s",
	                  ndx_status_name(st), ndx_last_error());
	ndx_sender_close(t->sender);
	t->sender = NULL;
	state = await_end(t);
	(void)ndx_receiver_get_stats(t->receiver, &stats);
	(void)sweep_check(t->r, st != NDX_OK || stats.frames == FRAMES,
	                  "%llu of %u frames came (%s)", (unsigned long long)stats.frames, FRAMES,
	                  ndx_receiver_state_name(state));
	(void)sweep_check(t->r, t->wrong == 0, "frames came wrong");
}

static void play(struct stream *t)
{
	struct run *r = t->r;
	enum ndx_status st;

	if (!make_receiver(t) || !make_sender(t) || !step_listen(r->passive))
		return;
	do {
		st = join(t);
		if (st != NDX_OK && t->accepted == NDX_OK) {
			(void)await_end(t);
			(void)ndx_receiver_reset(t->receiver);
		} else if (st == t->accepted && st != NDX_OK) {
			(void)ndx_sender_reset(t->sender);
		}
	} while (sweep_again(r, "connect", st, NDX_OK));
	if (st != NDX_OK)
		return;
	send_and_end(t);
	do {
		st = ndx_receiver_reset(t->receiver);
	} while (sweep_again(r, "receiver_reset", st, NDX_OK));
}

SWEEP_SCRIPT(receiver)
{
	struct stream t = {.r = r};
	enum ndx_status st;

	(void)sem_init(&t.ended, 0, 0);
	play(&t);
	ndx_sender_close(t.sender);
	if (t.receiver != NULL) {
		st = ndx_receiver_stop(t.receiver);
		(void)sweep_check(r, st == NDX_OK, "receiver_stop: %s", ndx_status_name(st));
	}
	ndx_receiver_close(t.receiver);
	(void)sem_destroy(&t.ended);
}
