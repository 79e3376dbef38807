/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A zero-copy receive loop on the public API, to see that the API carries one: a registered slab of
 * slots; a frame is a counted view of a slot; dropping the last reference posts the slot again,
 * from any thread and in any order; the loop takes results in batches, spins for a while, arms,
 * looks once more, and sleeps on two descriptors; the flush of the queue pair ends it.
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ndx/ndx.h>

#include "receive_loop.h"

#define BATCH 16u
#define SPINS 2000u /* empty polls before the loop arms and sleeps */

/** Where a slot is. It changes under the receiver's lock, but for the count of its references. */
enum slot_state { SLOT_FREE, SLOT_POSTED, SLOT_HELD };

struct frame {
	struct receiver *receiver;
	enum slot_state state;
	unsigned refs; /* atomic */
	uint8_t *data;
	uint32_t length;
	uint32_t channel;
	uint32_t ring; /* the sender's counter, 24 bits */
};

struct receiver {
	pthread_mutex_t lock; /* slot states, running, posting against closing */
	bool running;
	unsigned refs; /* atomic: the owner, and every frame that is held */

	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	int cq_fd, stop_fd;
	pthread_t thread;

	uint8_t *slab;
	struct frame *frames;
	uint32_t slots, slot_size;
	receiver_fn *deliver;
	void *arg;
	struct receiver_counters counters;
	uint32_t next_ring;
	enum receiver_end end;
};

static void receiver_put(struct receiver *r)
{
	if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	/* The slab outlives the queue pair: frames may be held for any time. */
	ndx_mr_close(r->mr);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->slab);
	free(r->frames);
	free(r);
}

/* Post one slot. With the lock held, so that it cannot run into the closing of the queue pair. */
static void post_locked(struct receiver *r, struct frame *frame)
{
	struct ndx_sge sge = {frame->data, r->slot_size, ndx_mr_get_local_token(r->mr)};

	frame->state = SLOT_FREE;
	if (!r->running)
		return;
	if (ndx_qp_receive(r->qp, frame, &sge, 1) == NDX_OK) {
		frame->state = SLOT_POSTED;
		r->counters.posted++;
	} else {
		r->counters.post_failures++; /* stays free: tried again with the next batch */
	}
}

void frame_hold(struct frame *frame)
{
	(void)__atomic_add_fetch(&frame->refs, 1, __ATOMIC_RELAXED);
}

void frame_drop(struct frame *frame)
{
	struct receiver *r = frame->receiver;

	if (__atomic_sub_fetch(&frame->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_lock(&r->lock);
	post_locked(r, frame);
	pthread_mutex_unlock(&r->lock);
	receiver_put(r);
}

const void *frame_data(const struct frame *frame, uint32_t *length, uint32_t *channel)
{
	*length = frame->length;
	*channel = frame->channel;
	return frame->data;
}

/* The immediate says which channel, and which place in the sender's ring: gaps are losses. */
static void read_immediate(struct receiver *r, struct frame *frame, const struct ndx_result *result)
{
	frame->channel = result->immediate & 0xff;
	frame->ring = result->immediate >> 8;
	if (r->counters.frames > 0 && frame->ring != r->next_ring)
		r->counters.gaps++;
	r->next_ring = (frame->ring + 1) & 0xffffff;
}

static void deliver(struct receiver *r, const struct ndx_result *result)
{
	struct frame *frame = result->request_context;

	frame->length = result->bytes_transferred;
	frame->refs = 1; /* no other thread knows of it yet */
	(void)__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
	read_immediate(r, frame, result);
	pthread_mutex_lock(&r->lock);
	frame->state = SLOT_HELD;
	r->counters.frames++;
	pthread_mutex_unlock(&r->lock);
	r->deliver(r->arg, frame);
	frame_drop(frame);
}

/* One result; false if the queue pair is dead. */
static bool handle(struct receiver *r, const struct ndx_result *result)
{
	struct frame *frame = result->request_context;
	/* A frame is a send with immediate; the data of a write would be elsewhere. */
	bool unwanted = (result->flags & NDX_RESULT_IMMEDIATE) == 0 ||
	                (result->flags & NDX_RESULT_WRITTEN) != 0 || result->bytes_transferred == 0;

	if (result->status == NDX_OK && !unwanted) {
		deliver(r, result);
		return true;
	}
	pthread_mutex_lock(&r->lock);
	frame->state = SLOT_FREE;
	r->counters.unwanted += result->status == NDX_OK;
	if (result->status == NDX_OK)
		post_locked(r, frame);
	else if (result->status != NDX_E_CANCELED)
		r->end = RECEIVER_FAILED; /* the cause; the flush behind it follows */
	pthread_mutex_unlock(&r->lock);
	return result->status == NDX_OK;
}

static bool take_results(struct receiver *r, size_t *got)
{
	struct ndx_result batch[BATCH];
	bool alive = true;

	*got = ndx_cq_get_results(r->cq, batch, BATCH);
	for (size_t i = 0; i < *got; i++)
		alive &= handle(r, &batch[i]);
	return alive;
}

/* Nothing for a while: sleep until there is, or until we are stopped. */
static bool rest(struct receiver *r)
{
	struct pollfd fds[2] = {{.fd = r->cq_fd, .events = POLLIN},
	                        {.fd = r->stop_fd, .events = POLLIN}};
	size_t got;

	if (ndx_cq_notify(r->cq, NDX_CQ_NOTIFY_ANY, NULL) != NDX_OK) {
		r->end = RECEIVER_FAILED;
		return false;
	}
	/* What came between the last look and the arming has fired; looking is cheaper. */
	if (!take_results(r, &got))
		return false;
	if (got > 0)
		return true;
	r->counters.sleeps++;
	if (poll(fds, 2, -1) < 0 || (fds[1].revents & POLLIN) == 0)
		return true; /* a signal, or results */
	r->end = RECEIVER_STOPPED;
	return false;
}

static void repost_free(struct receiver *r)
{
	pthread_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < r->slots; i++) {
		if (r->frames[i].state == SLOT_FREE)
			post_locked(r, &r->frames[i]);
	}
	pthread_mutex_unlock(&r->lock);
}

static void *receive(void *arg)
{
	struct receiver *r = arg;
	unsigned idle = 0;
	size_t got;

	for (;;) {
		if (!take_results(r, &got))
			break;
		if (got > 0) {
			idle = 0;
		} else if (++idle >= SPINS) {
			repost_free(r);
			if (!rest(r))
				break;
			idle = 0;
		}
	}
	return NULL;
}

static enum ndx_status make_slab(struct receiver *r, struct ndx_adapter *adapter)
{
	size_t length = (size_t)r->slots * r->slot_size;

	if (posix_memalign((void **)&r->slab, 4096, length) != 0)
		return NDX_E_NO_MEMORY;
	for (uint32_t i = 0; i < r->slots; i++) {
		r->frames[i].receiver = r;
		r->frames[i].data = r->slab + (size_t)i * r->slot_size;
	}
	/* The peer sends: it needs no right to our memory. */
	return ndx_mr_register_new(adapter, r->slab, length, NDX_MR_ALLOW_LOCAL_WRITE, &r->mr);
}

enum ndx_status receiver_create(struct ndx_adapter *adapter, struct ndx_cq *cq, struct ndx_qp *qp,
                                uint32_t slots, uint32_t slot_size, receiver_fn *fn, void *arg,
                                struct receiver **out)
{
	struct receiver *r = calloc(1, sizeof(*r));
	enum ndx_status st = NDX_E_NO_MEMORY;

	if (r == NULL)
		return st;
	(void)pthread_mutex_init(&r->lock, NULL);
	r->refs = 1;
	r->cq = cq;
	r->qp = qp;
	r->slots = slots;
	r->slot_size = slot_size;
	r->deliver = fn;
	r->arg = arg;
	r->end = RECEIVER_PEER_ENDED;
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	r->frames = calloc(slots, sizeof(*r->frames));
	if (r->stop_fd < 0 || r->frames == NULL)
		goto drop;
	st = make_slab(r, adapter);
	if (st == NDX_OK)
		st = ndx_cq_get_fd(cq, &r->cq_fd);
	if (st != NDX_OK)
		goto drop;
	r->running = true;
	repost_free(r); /* before connecting: the first frame finds its slot */
	*out = r;
	return NDX_OK;
drop:
	if (r->stop_fd >= 0)
		(void)close(r->stop_fd);
	receiver_put(r);
	return st;
}

enum ndx_status receiver_start(struct receiver *r)
{
	return pthread_create(&r->thread, NULL, receive, r) == 0 ? NDX_OK
	                                                         : NDX_E_INSUFFICIENT_RESOURCES;
}

enum receiver_end receiver_stop(struct receiver *r, struct receiver_counters *counters)
{
	uint64_t one = 1;
	enum receiver_end end;

	if (write(r->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		(void)pthread_join(r->thread, NULL);
	pthread_mutex_lock(&r->lock);
	r->running = false;
	end = r->end;
	*counters = r->counters;
	pthread_mutex_unlock(&r->lock);
	/* Nothing is posted from here on. Closing cancels what is: no slot is touched after it. */
	ndx_qp_close(r->qp);
	ndx_cq_close(r->cq);
	(void)close(r->stop_fd);
	receiver_put(r);
	return end;
}
