/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers: create, state, stop, close. */
#include "receiver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "base_loop.h"
#include "base_struct.h"

#define SEQUENCE_WRAP_MAX (1u << 24)
#define SLAB_MAX UINT32_MAX

static const struct base_struct attr_layout =
	BASE_STRUCT(struct ndx_receiver_attr, NDX_RECEIVER_ATTR_SIZE_0_1,
                    "call ndx_receiver_attr_init() first");

static const struct ndx_receiver_attr attr_defaults = {
	.slot_size = 9000,
	.slot_count = 256,
	.sequence_wrap = SEQUENCE_WRAP_MAX,
	.send_depth = 16,
	.no_receive_timeout_ms = 4000,
	.keepalive_ms = 5000,
	.rnr_timer = NDX_RNR_TIMER_DEFAULT,
	.probe_timeout_ms = 2000,
	.spin_us = 50,
	.batch = 16,
};

void ndx_receiver_attr_init_sized(struct ndx_receiver_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status out_of_range(const char *what, uint64_t value, uint64_t least, uint64_t most)
{
	return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_create: %s %llu is not in %llu..%llu",
	            what, (unsigned long long)value, (unsigned long long)least,
	            (unsigned long long)most);
}

static enum ndx_status check_consumers(const struct ndx_receiver_attr *attr)
{
	bool any = attr->pull;

	for (int i = 0; i < NDX_RECEIVER_CONSUMERS && attr->consumers[i].fn != NULL; i++) {
		const int channel = attr->consumers[i].channel;

		any = true;
		if (channel < NDX_CHANNEL_ANY || channel > UINT8_MAX)
			return fail(NDX_E_INVALID_PARAMETER, 0,
			            "ndx_receiver_create: consumer %d wants channel %d, which is "
			            "neither NDX_CHANNEL_ANY nor in 0..255",
			            i, channel);
	}
	if (!any)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_receiver_create: no consumer for the frames: give a consumer, or "
		            "set `pull`");
	return NDX_OK;
}

static enum ndx_status check_attr(const struct ndx_receiver_attr *a)
{
	const uint64_t slab = (uint64_t)a->slot_size * a->slot_count;

	if (a->slot_size == 0)
		return out_of_range("slot_size", a->slot_size, 1, SLAB_MAX);
	if (a->slot_count == 0)
		return out_of_range("slot_count", a->slot_count, 1, SLAB_MAX);
	if (slab > SLAB_MAX)
		return out_of_range("slot_size * slot_count", slab, 1, SLAB_MAX);
	if ((uint64_t)a->slot_size * a->copy_count > SLAB_MAX)
		return out_of_range("slot_size * copy_count",
		                    (uint64_t)a->slot_size * a->copy_count, 0, SLAB_MAX);
	if (a->sequence_wrap == 0 || a->sequence_wrap > SEQUENCE_WRAP_MAX)
		return out_of_range("sequence_wrap", a->sequence_wrap, 1, SEQUENCE_WRAP_MAX);
	if (a->mode == NDX_RECEIVER_WRITE && a->sequence_wrap % a->slot_count != 0)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_receiver_create: sequence_wrap %u is not a multiple of slot_count "
		            "%u: the peer would leave its ring where the sequence begins anew",
		            a->sequence_wrap, a->slot_count);
	if (a->batch == 0 || a->batch > LOOP_BATCH_MAX)
		return out_of_range("batch", a->batch, 1, LOOP_BATCH_MAX);
	if (a->send_depth == 0)
		return out_of_range("send_depth", a->send_depth, 1, UINT32_MAX);
	if ((unsigned)a->mode > NDX_RECEIVER_WRITE)
		return out_of_range("mode", (unsigned)a->mode, NDX_RECEIVER_SEND,
		                    NDX_RECEIVER_WRITE);
	return check_consumers(a);
}

static enum ndx_status check_adapter(const struct ndx_receiver_attr *a,
                                     const struct ndx_adapter_info *info)
{
	if (a->slot_count > info->max_receive_queue_depth)
		return out_of_range("slot_count", a->slot_count, 1, info->max_receive_queue_depth);
	if (a->slot_size > info->max_transfer_length)
		return out_of_range("slot_size", a->slot_size, 1, info->max_transfer_length);
	if (a->mode == NDX_RECEIVER_WRITE && !(info->capabilities & NDX_CAP_WRITE_IMMEDIATE))
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_receiver_create: %s has no writes with immediate data; use mode "
		            "SEND",
		            info->uri);
	return NDX_OK;
}

static enum ndx_status build(struct ndx_receiver *r)
{
	const struct ndx_receiver_attr *a = &r->attr;
	struct ndx_adapter_info info;
	enum ndx_status st;

	st = endpoint_open(&r->end, a->adapter, a->uri, &info);
	if (st == NDX_OK)
		st = check_adapter(a, &info);
	if (st == NDX_OK)
		st = slab_create(a->slot_size, a->slot_count, a->copy_count,
		                 a->mode == NDX_RECEIVER_WRITE, &r->slab);
	if (st == NDX_OK)
		st = slab_register(r->slab, r->end.adapter);
	if (st == NDX_OK)
		st = ndx_cq_create_depth(r->end.adapter, a->slot_count, &r->cq);
	if (st == NDX_OK)
		st = ndx_cq_get_fd(r->cq, &r->cq_fd);
	if (st == NDX_OK)
		st = ndx_cq_create_depth(r->end.adapter, a->send_depth + 1, &r->tx_cq);
	if (st == NDX_OK && a->pull)
		st = pull_open(&r->pull, a->slot_count + a->copy_count);
	if (st == NDX_OK)
		st = receiver_make_qp(r);
	return st;
}

enum ndx_status ndx_receiver_create(const struct ndx_receiver_attr *attr, struct ndx_receiver **out)
{
	struct ndx_receiver_attr own = attr_defaults;
	struct ndx_receiver *r;
	enum ndx_status st;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_create: NULL argument");
	st = endpoint_may_block("ndx_receiver_create");
	if (st == NDX_OK)
		st = base_struct_in(&attr_layout, "ndx_receiver_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
	if (st != NDX_OK)
		return st;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_receiver_create: out of memory");
	r->attr = own;
	r->refs = 1;
	r->batch = own.batch;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->changed, NULL);
	if (own.loop != NULL) {
		loop_hold(own.loop);
		r->loop = own.loop;
	}
	st = build(r);
	if (st != NDX_OK) {
		receiver_free(r);
		return st;
	}
	r->attr.uri = NULL; /* the string is the caller's */
	*out = r;
	return NDX_OK;
}

struct ndx_qp *ndx_receiver_get_qp(struct ndx_receiver *r)
{
	return r != NULL ? r->end.qp : NULL;
}

struct ndx_adapter *ndx_receiver_get_adapter(struct ndx_receiver *r)
{
	return r != NULL ? r->end.adapter : NULL;
}

enum ndx_receiver_state ndx_receiver_get_state(const struct ndx_receiver *r)
{
	return r != NULL ? receiver_state(r) : NDX_RECEIVER_STOPPED;
}

void ndx_receiver_get_cause(struct ndx_receiver *r, struct ndx_receiver_cause *out)
{
	if (out == NULL)
		return;
	memset(out, 0, sizeof(*out));
	if (r == NULL)
		return;
	pthread_mutex_lock(&r->lock);
	*out = r->cause;
	pthread_mutex_unlock(&r->lock);
}

/* Lock held. From here on no other thread uses the receiver. */
static enum ndx_status begin_reset(struct ndx_receiver *r)
{
	while (r->resetting)
		pthread_cond_wait(&r->changed, &r->lock);
	if (r->state != NDX_RECEIVER_ENDED && r->state != NDX_RECEIVER_FAILED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_receiver_reset: the receiver is %s, neither ended nor failed",
		            ndx_receiver_state_name(r->state));
	r->resetting = true;
	return NDX_OK;
}

enum ndx_status ndx_receiver_reset(struct ndx_receiver *r)
{
	enum ndx_status st;

	if (r == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_reset: receiver is NULL");
	st = endpoint_may_block("ndx_receiver_reset");
	if (st != NDX_OK)
		return st;
	pthread_mutex_lock(&r->lock);
	st = begin_reset(r);
	pthread_mutex_unlock(&r->lock);
	if (st != NDX_OK)
		return st;
	/* Without the lock: the close waits for callbacks, and these may read the cause. */
	endpoint_dismantle(&r->end);
	st = receiver_make_qp(r);
	pthread_mutex_lock(&r->lock);
	r->resetting = false;
	if (st == NDX_OK) {
		memset(&r->cause, 0, sizeof(r->cause));
		r->numbered = false;
		pull_end(&r->pull, false);
		receiver_set_state(r, NDX_RECEIVER_CREATED);
	}
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return st;
}

/* Stop a receiver that does not run, so no other thread uses it. Lock held; released for the
 * work. */
static void stop_quiet(struct ndx_receiver *r)
{
	const bool connected =
		r->state == NDX_RECEIVER_CREATED || r->state == NDX_RECEIVER_CONNECTING;

	receiver_set_state(r, NDX_RECEIVER_STOPPING);
	pthread_mutex_unlock(&r->lock);
	if (connected)
		receiver_dismantle(r);
	endpoint_dismantle(&r->end);
	slab_unregister(r->slab);
	pull_end(&r->pull, true);
	receiver_because(r, NDX_RECEIVER_END_STOPPED, NDX_OK, 0, "stopped");
	pthread_mutex_lock(&r->lock);
	receiver_set_state(r, NDX_RECEIVER_STOPPED);
}

/* Lock held: a running receiver stops by itself from here on; any other is stopped here. */
static enum ndx_status begin_stop(struct ndx_receiver *r)
{
	while (r->resetting)
		pthread_cond_wait(&r->changed, &r->lock);
	if (r->joining)
		return fail(
			NDX_E_DEVICE_BUSY, 0,
			"ndx_receiver_stop: a call that connects the receiver is at work: let it "
			"run out of time, or cancel its listener");
	if (r->state == NDX_RECEIVER_RUNNING) {
		receiver_set_state(r, NDX_RECEIVER_STOPPING);
		r->told_in_callback = loop_current(r->loop) || base_loop_in_callback();
		(void)__atomic_or_fetch(&r->events, RECEIVER_STOP, __ATOMIC_RELEASE);
		loop_poke(r->loop);
	} else if (r->state != NDX_RECEIVER_STOPPING && r->state != NDX_RECEIVER_STOPPED) {
		stop_quiet(r);
	}
	return NDX_OK;
}

enum ndx_status ndx_receiver_stop(struct ndx_receiver *r)
{
	struct ndx_receive_loop *loop = NULL;
	enum ndx_status st;

	if (r == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_stop: receiver is NULL");
	st = endpoint_may_block("ndx_receiver_stop");
	if (st != NDX_OK)
		return st;
	pthread_mutex_lock(&r->lock);
	st = begin_stop(r);
	if (st != NDX_OK)
		goto unlock;
	if (loop_current(r->loop)) {
		st = r->state == NDX_RECEIVER_STOPPED ? NDX_OK : NDX_PENDING;
		goto unlock;
	}
	while (r->state != NDX_RECEIVER_STOPPED)
		pthread_cond_wait(&r->changed, &r->lock);
	loop = r->loop;
	r->loop = NULL;
unlock:
	pthread_mutex_unlock(&r->lock);
	ndx_receive_loop_close(loop);
	return st;
}

void ndx_receiver_close(struct ndx_receiver *r)
{
	if (r == NULL)
		return;
	if (base_loop_in_callback()) {
		/* The receiving thread frees the receiver, now or earlier. */
		pthread_mutex_lock(&r->lock);
		(void)begin_stop(r);
		pthread_mutex_unlock(&r->lock);
	} else {
		(void)ndx_receiver_stop(r);
	}
	receiver_drop(r);
}
