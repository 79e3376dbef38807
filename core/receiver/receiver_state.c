/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers: the basic steps that the other files use. */
#include "receiver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/log.h>

void receiver_set_state(struct ndx_receiver *r, enum ndx_receiver_state state)
{
	log_debug("receiver: %s -> %s", ndx_receiver_state_name(r->state),
	          ndx_receiver_state_name(state));
	__atomic_store_n(&r->state, state, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&r->changed);
}

void receiver_because(struct ndx_receiver *r, enum ndx_receiver_end end, enum ndx_status status,
                      int32_t native, const char *fmt, ...)
{
	bool first;
	va_list args;

	pthread_mutex_lock(&r->lock);
	first = r->cause.end == NDX_RECEIVER_END_NONE;
	if (first) {
		r->cause.end = end;
		r->cause.status = status;
		r->cause.native = native;
		va_start(args, fmt);
		(void)vsnprintf(r->cause.text, sizeof(r->cause.text), fmt, args);
		va_end(args);
	}
	pthread_mutex_unlock(&r->lock);
	if (first && status != NDX_OK)
		log_warn(native, "receiver ends: %s: %s", ndx_receiver_end_name(end),
		         r->cause.text);
	else if (first)
		log_info("receiver ends: %s", ndx_receiver_end_name(end));
}

enum ndx_status receiver_make_qp(struct ndx_receiver *r)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = r->cq;
	attr.initiator_cq = r->tx_cq;
	attr.receive_depth = r->attr.slot_count;
	attr.initiator_depth = r->attr.send_depth + 1; /* ... and one for a probe */
	attr.max_receive_sge = 1;
	attr.max_initiator_sge = 1;
	attr.no_receive_timeout_ms = r->attr.no_receive_timeout_ms;
	attr.keepalive_ms = r->attr.keepalive_ms;
	attr.rnr_timer = r->attr.rnr_timer;
	attr.context = r;
	return ndx_qp_create(r->end.adapter, &attr, &r->end.qp);
}

/* Free everything; members that were not created are NULL. */
void receiver_free(struct ndx_receiver *r)
{
	pull_close(&r->pull);
	endpoint_dismantle(&r->end);
	ndx_cq_close(r->cq);
	ndx_cq_close(r->tx_cq);
	if (r->slab != NULL) {
		slab_unregister(r->slab);
		slab_abandon(r->slab);
	}
	endpoint_close(&r->end);
	ndx_receive_loop_close(r->loop);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

void receiver_drop(struct ndx_receiver *r)
{
	bool last;

	pthread_mutex_lock(&r->lock);
	last = --r->refs == 0;
	pthread_mutex_unlock(&r->lock);
	if (last)
		receiver_free(r);
}

void receiver_set_sending(struct ndx_receiver *r, bool on)
{
	ndxp_lock_acquire(&r->tx_lock);
	r->tx_qp = on ? r->end.qp : NULL;
	ndxp_lock_release(&r->tx_lock);
}
