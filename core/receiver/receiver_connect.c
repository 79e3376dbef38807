/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects a receiver, by a connector, a listener or a description; each way ends in run(). */
#include <string.h>

#include <ndx/spi/log.h>
#include "receiver.h"

/* CREATED -> CONNECTING. `joining`: the call will block in the connector, and the queue pair must
 * not be destroyed during that time. */
static enum ndx_status begin_connecting(struct ndx_receiver *r, const char *call, bool joining)
{
	enum ndx_status st = NDX_OK;

	if (r == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: receiver is NULL", call);
	pthread_mutex_lock(&r->lock);
	if (r->state != NDX_RECEIVER_CREATED)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0, "%s: the receiver is %s, not created%s",
		          call, ndx_receiver_state_name(r->state),
		          r->state == NDX_RECEIVER_ENDED || r->state == NDX_RECEIVER_FAILED
		                  ? "; call ndx_receiver_reset() first"
		                  : "");
	else {
		receiver_set_state(r, NDX_RECEIVER_CONNECTING);
		r->joining = joining;
		r->no_oob = false;
	}
	pthread_mutex_unlock(&r->lock);
	return st;
}

/* CONNECTING -> CREATED: the queue pair is unchanged, its receives are still posted. */
static void retreat(struct ndx_receiver *r)
{
	slab_detach(r->slab);
	pthread_mutex_lock(&r->lock);
	if (r->state == NDX_RECEIVER_CONNECTING)
		receiver_set_state(r, NDX_RECEIVER_CREATED);
	r->joining = false;
	pthread_mutex_unlock(&r->lock);
}

/* CREATED -> CONNECTING, with all slots posted. */
static enum ndx_status ready(struct ndx_receiver *r, const char *call, bool joining)
{
	enum ndx_status st = begin_connecting(r, call, joining);

	if (st != NDX_OK)
		return st;
	st = slab_attach(r->slab, r->end.qp);
	if (st != NDX_OK)
		retreat(r);
	return st;
}

static enum ndx_status own_loop(struct ndx_receiver *r)
{
	struct ndx_receive_loop_attr attr;

	if (r->loop != NULL)
		return NDX_OK;
	ndx_receive_loop_attr_init(&attr);
	attr.spin_us = r->attr.spin_us;
	attr.batch = r->attr.batch;
	return ndx_receive_loop_create(&attr, &r->loop);
}

/* Connected: CONNECTING -> RUNNING. */
static enum ndx_status run(struct ndx_receiver *r)
{
	enum ndx_status st;

	pthread_mutex_lock(&r->lock);
	st = own_loop(r);
	if (st != NDX_OK)
		goto unlock;
	receiver_begin(r);
	st = ndx_connector_notify_disconnect(r->end.connector, &r->notify);
	if (st != NDX_PENDING)
		goto unlock;
	st = NDX_OK;
	receiver_set_sending(r, true);
	r->refs++;
	r->joining = false;
	receiver_set_state(r, NDX_RECEIVER_RUNNING);
	loop_add(r->loop, r);
unlock:
	pthread_mutex_unlock(&r->lock);
	return st;
}

static enum ndx_status connected(struct ndx_receiver *r, enum ndx_status st)
{
	if (st != NDX_OK) {
		retreat(r);
		return st;
	}
	st = run(r);
	if (st == NDX_OK)
		return st;
	/* No thread can serve the connection: destroy it and make another queue pair. */
	receiver_dismantle(r);
	endpoint_dismantle(&r->end);
	if (receiver_make_qp(r) == NDX_OK)
		retreat(r);
	pthread_mutex_lock(&r->lock);
	r->joining = false;
	pthread_mutex_unlock(&r->lock);
	return st;
}

enum ndx_status ndx_receiver_connect(struct ndx_receiver *r, const struct sockaddr *destination,
                                     socklen_t destination_len, const void *private_data,
                                     size_t private_data_len, uint32_t timeout_ms)
{
	enum ndx_status st = endpoint_may_block("ndx_receiver_connect");

	if (st == NDX_OK)
		st = ready(r, "ndx_receiver_connect", true);
	if (st != NDX_OK)
		return st;
	return connected(r, endpoint_connect(&r->end, destination, destination_len, private_data,
	                                     private_data_len, timeout_ms));
}

enum ndx_status ndx_receiver_accept(struct ndx_receiver *r, struct ndx_listener *listener,
                                    const void *private_data, size_t private_data_len,
                                    uint32_t timeout_ms)
{
	enum ndx_status st = endpoint_may_block("ndx_receiver_accept");

	if (st == NDX_OK)
		st = ready(r, "ndx_receiver_accept", true);
	if (st != NDX_OK)
		return st;
	return connected(
		r, endpoint_accept(&r->end, listener, private_data, private_data_len, timeout_ms));
}

enum ndx_status ndx_receiver_get_memory(struct ndx_receiver *r, struct ndx_memory_description *out)
{
	if (r == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_get_memory: NULL argument");
	*out = (struct ndx_memory_description){
		.address = (uint64_t)(uintptr_t)r->slab->memory,
		.length = (uint64_t)r->slab->size * r->slab->count,
		.token = r->slab->by_write ? ndx_mr_get_remote_token(r->slab->mr) : 0,
	};
	out->rkey = ndx_rkey_of_token(out->token);
	return NDX_OK;
}

enum ndx_status ndx_receiver_describe(struct ndx_receiver *r, enum ndx_role role,
                                      struct ndx_peer_description *out)
{
	enum ndx_status st;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_describe: out is NULL");
	st = ready(r, "ndx_receiver_describe", false);
	if (st != NDX_OK)
		return st;
	st = endpoint_describe(&r->end, role);
	if (st != NDX_OK) {
		retreat(r);
		return st;
	}
	if (r->attr.mode == NDX_RECEIVER_WRITE)
		(void)ndx_receiver_get_memory(r, &r->end.own.memory);
	*out = r->end.own;
	return NDX_OK;
}

void receiver_undescribe(struct ndx_receiver *r)
{
	endpoint_forget(&r->end);
	r->numbered = false;
	retreat(r);
}

enum ndx_status ndx_receiver_set_oob_stream(struct ndx_receiver *r, int fd)
{
	if (r == NULL || receiver_state(r) != NDX_RECEIVER_CONNECTING || !r->end.described)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_receiver_set_oob_stream: call ndx_receiver_describe() first");
	return ndx_connector_set_oob_stream(r->end.connector, fd);
}

enum ndx_status ndx_receiver_connect_peer(struct ndx_receiver *r,
                                          const struct ndx_peer_description *peer,
                                          uint32_t timeout_ms)
{
	enum ndx_status st;

	if (r == NULL || peer == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_connect_peer: NULL argument");
	st = endpoint_may_block("ndx_receiver_connect_peer");
	if (st != NDX_OK)
		return st;
	pthread_mutex_lock(&r->lock);
	if (r->joining)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		          "ndx_receiver_connect_peer: another call connects the receiver; wait for "
		          "its end");
	else if (r->state != NDX_RECEIVER_CONNECTING || !r->end.described)
		st = fail(NDX_E_INVALID_DEVICE_STATE, 0,
		          "ndx_receiver_connect_peer: the receiver is %s%s: call "
		          "ndx_receiver_describe() first",
		          ndx_receiver_state_name(r->state),
		          r->end.described ? "" : ", and was not described");
	else
		r->joining = true;
	pthread_mutex_unlock(&r->lock);
	if (st != NDX_OK)
		return st;
	r->numbered = false;
	return connected(r, endpoint_connect_peer(&r->end, peer, timeout_ms));
}

enum ndx_status ndx_receiver_prepare(struct ndx_receiver *r)
{
	return ready(r, "ndx_receiver_prepare", false);
}

enum ndx_status ndx_receiver_start(struct ndx_receiver *r, struct ndx_connector *connector)
{
	enum ndx_status st;

	if (r == NULL || connector == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_start: NULL argument");
	if (receiver_state(r) != NDX_RECEIVER_CONNECTING || r->end.connector != NULL)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_receiver_start: the receiver is %s: call ndx_receiver_prepare() "
		            "first",
		            ndx_receiver_state_name(receiver_state(r)));
	r->end.connector = connector;
	st = run(r);
	if (st != NDX_OK)
		r->end.connector = NULL;
	return st;
}
