/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving threads: the thread's function. */
#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "base_thread.h"
#include "receiver.h"

#define EVENTS_MAX 16
/* busy rounds between two checks of the timers */
#define BUSY_ROUNDS 1024u
#define POLL_NS 1000000u

static struct ndx_receiver *receiver_of(struct ndxp_list *node)
{
	return container_of(node, struct ndx_receiver, node);
}

static void welcome(struct ndx_receive_loop *loop)
{
	struct ndxp_list *node;

	pthread_mutex_lock(&loop->lock);
	while ((node = ndxp_list_take(&loop->incoming)) != NULL) {
		struct ndx_receiver *r = receiver_of(node);

		ndxp_list_add(&loop->receivers, node);
		r->unwatched = ndxp_poll_add(loop->pollfd, r->cq_fd, POLLIN, false, r) != 0;
		if (r->unwatched)
			log_error(errno,
			          "a receiver cannot be waited for: it is polled every ms instead");
	}
	pthread_mutex_unlock(&loop->lock);
}

/* Handle requests of other threads and expired timers, and remove receivers that have ended.
 * Returns the time of the next check. */
static uint64_t attend(struct ndx_receive_loop *loop)
{
	const uint64_t now = ndxp_now_ns();
	uint64_t next = UINT64_MAX;
	struct ndxp_list *node;
	struct ndxp_list *after;

	if (__atomic_exchange_n(&loop->poked, 0, __ATOMIC_ACQUIRE) != 0)
		welcome(loop);
	for (node = loop->receivers.next; node != &loop->receivers; node = after) {
		struct ndx_receiver *r = receiver_of(node);
		uint64_t due = UINT64_MAX;

		after = node->next;
		if (receiver_attend(r, now, &due)) {
			if (r->unwatched)
				due = now + POLL_NS;
			next = due < next ? due : next;
			continue;
		}
		ndxp_list_remove(node);
		ndxp_poll_remove(loop->pollfd, r->cq_fd);
		receiver_left(r); /* may free it */
	}
	return next;
}

static size_t poll_all(struct ndx_receive_loop *loop)
{
	struct ndxp_list *node;
	size_t n = 0;

	for (node = loop->receivers.next; node != &loop->receivers; node = node->next)
		n += receiver_poll(receiver_of(node));
	return n;
}

static bool arm_all(struct ndx_receive_loop *loop)
{
	struct ndxp_list *node;
	bool armed = true;

	for (node = loop->receivers.next; node != &loop->receivers; node = node->next)
		armed = receiver_arm(receiver_of(node)) && armed;
	return armed;
}

static void sleep_until(struct ndx_receive_loop *loop, uint64_t due)
{
	struct ndxp_poll_event events[EVENTS_MAX];
	int n;

	n = ndxp_poll_wait(loop->pollfd, events, EVENTS_MAX, ndxp_poll_ms_until(due, 1000));
	for (int i = 0; i < n; i++) {
		if (events[i].data != NULL)
			receiver_woken(events[i].data);
		else /* only here: cleared together with `poked`, it could stay set */
			ndxp_eventfd_clear(loop->wake);
	}
}

static bool poked(const struct ndx_receive_loop *loop)
{
	return __atomic_load_n(&loop->poked, __ATOMIC_RELAXED) != 0;
}

/* Poll for spin_us after the last frame. True: results came. */
static bool spin(struct ndx_receive_loop *loop)
{
	const uint64_t until = ndxp_now_ns() + (uint64_t)loop->spin_us * 1000;

	do {
		for (int i = 0; i < 16; i++) {
			if (poll_all(loop) > 0 || poked(loop))
				return true;
		}
	} while (ndxp_now_ns() < until);
	return false;
}

static void serve(struct ndx_receive_loop *loop)
{
	uint64_t due = attend(loop);
	uint32_t busy = 0;

	/* attend() has its turn even if frames keep coming. */
	while (!poked(loop) && busy++ < BUSY_ROUNDS && (poll_all(loop) > 0 || spin(loop)))
		;
	if (poked(loop) || busy > BUSY_ROUNDS)
		return;
	if (!arm_all(loop))
		due = ndxp_now_ns() + POLL_NS;
	/* Results that came before the queues were armed wake no thread. */
	if (poll_all(loop) == 0)
		sleep_until(loop, due);
}

static void *run(void *arg)
{
	struct ndx_receive_loop *loop = arg;

	/* The creator sets `thread` under the lock. */
	pthread_mutex_lock(&loop->lock);
	loop_enter(loop);
	pthread_mutex_unlock(&loop->lock);
	while (__atomic_load_n(&loop->refs, __ATOMIC_ACQUIRE) > 0)
		serve(loop);
	if (loop_is_detached(loop))
		loop_free(loop);
	return NULL;
}

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_receive_loop_attr, NDX_RECEIVE_LOOP_ATTR_SIZE_0_1,
                    "call ndx_receive_loop_attr_init() first");

static const struct ndx_receive_loop_attr attr_defaults = {.spin_us = 50, .batch = 16};

void ndx_receive_loop_attr_init_sized(struct ndx_receive_loop_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status start_thread(struct ndx_receive_loop *loop)
{
	int err;

	pthread_mutex_lock(&loop->lock);
	err = base_thread_start(&loop->thread, "ndx-recv", run, loop);
	pthread_mutex_unlock(&loop->lock);
	if (err != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err, "no thread for receivers: %s",
		            strerror(err));
	return NDX_OK;
}

enum ndx_status ndx_receive_loop_create(const struct ndx_receive_loop_attr *attr,
                                        struct ndx_receive_loop **out)
{
	struct ndx_receive_loop_attr a = attr_defaults;
	struct ndx_receive_loop *loop;
	enum ndx_status st = NDX_OK;

	if (attr != NULL)
		st = base_struct_in(&attr_layout, "ndx_receive_loop_create", &a, attr, attr->size);
	if (st != NDX_OK)
		return st;
	if (out == NULL || a.batch == 0 || a.batch > LOOP_BATCH_MAX)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_receive_loop_create: out is NULL, or batch %u is not in 1..%d",
		            a.batch, LOOP_BATCH_MAX);
	loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_receive_loop_create: out of memory");
	loop->spin_us = a.spin_us;
	loop->batch = a.batch;
	loop->refs = 1;
	ndxp_list_init(&loop->receivers);
	ndxp_list_init(&loop->incoming);
	(void)pthread_mutex_init(&loop->lock, NULL);
	loop->wake = ndxp_eventfd_create();
	loop->pollfd = ndxp_poll_create();
	if (loop->wake < 0 || loop->pollfd < 0 ||
	    ndxp_poll_add(loop->pollfd, loop->wake, POLLIN, false, NULL) != 0) {
		st = fail(NDX_E_INSUFFICIENT_RESOURCES, errno,
		          "ndx_receive_loop_create: no descriptor: %s", strerror(errno));
		goto free_loop;
	}
	st = start_thread(loop);
	if (st != NDX_OK)
		goto free_loop;
	*out = loop;
	return NDX_OK;

free_loop:
	loop_free(loop);
	return st;
}
