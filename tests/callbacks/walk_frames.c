/* SPDX-License-Identifier: BSD-2-Clause */
/* Receivers and senders. */
#include "walk.h"

#include <stdlib.h>

static enum ndx_status call_receive_loop_attr_init(struct scene *s)
{
	struct ndx_receive_loop_attr attr;

	(void)s;
	ndx_receive_loop_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receive_loop_create(struct scene *s)
{
	struct ndx_receive_loop *loop = NULL;
	enum ndx_status st = ndx_receive_loop_create(NULL, &loop);

	(void)s;
	ndx_receive_loop_close(loop);
	return st;
}

static enum ndx_status call_receive_loop_close(struct scene *s)
{
	ndx_receive_loop_close(s->loop);
	s->loop = NULL;
	return NDX_OK;
}

static enum ndx_status call_receiver_attr_init(struct scene *s)
{
	struct ndx_receiver_attr attr;

	(void)s;
	ndx_receiver_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_create(struct scene *s)
{
	struct ndx_receiver_attr attr;
	struct ndx_receiver *out;

	receiver_attr(s, s->own, &attr);
	return ndx_receiver_create(&attr, &out);
}

static enum ndx_status call_receiver_close(struct scene *s)
{
	ndx_receiver_close(s->receiver);
	s->receiver = NULL;
	return NDX_OK;
}

static enum ndx_status call_receiver_stop(struct scene *s)
{
	return ndx_receiver_stop(s->receiver);
}

static enum ndx_status call_receiver_reset(struct scene *s)
{
	return ndx_receiver_reset(s->receiver);
}

static enum ndx_status call_receiver_accept(struct scene *s)
{
	return ndx_receiver_accept(s->idle_receiver, s->listener, NULL, 0, PATIENCE_MS);
}

static enum ndx_status call_receiver_connect(struct scene *s)
{
	return ndx_receiver_connect(s->idle_receiver, (struct sockaddr *)&s->far_address,
	                            s->far_address_len, NULL, 0, PATIENCE_MS);
}

static enum ndx_status call_receiver_describe(struct scene *s)
{
	struct ndx_peer_description out;

	return ndx_receiver_describe(s->idle_receiver, NDX_ROLE_SERVER, &out);
}

static enum ndx_status call_receiver_connect_peer(struct scene *s)
{
	struct ndx_peer_description peer;
	enum ndx_status st = ndx_receiver_describe(s->idle_receiver, NDX_ROLE_SERVER, &peer);

	if (st != NDX_OK)
		return st;
	return ndx_receiver_connect_peer(s->idle_receiver, &peer, PATIENCE_MS);
}

static enum ndx_status call_receiver_complete_connection(struct scene *s)
{
	const struct ndx_receiver_peer peer = {.qpn = 1};

	return ndx_receiver_complete_connection(s->idle_receiver, &peer, PATIENCE_MS);
}

static enum ndx_status call_receiver_get_numbers(struct scene *s)
{
	struct ndx_receiver_numbers out;

	return ndx_receiver_get_numbers(s->idle_receiver, &out);
}

static enum ndx_status call_receiver_prepare(struct scene *s)
{
	return ndx_receiver_prepare(s->idle_receiver);
}

static enum ndx_status call_receiver_start(struct scene *s)
{
	return ndx_receiver_start(s->idle_receiver, s->connector);
}

static enum ndx_status call_receiver_set_oob_stream(struct scene *s)
{
	return ndx_receiver_set_oob_stream(s->idle_receiver, -1);
}

static enum ndx_status call_receiver_pull(struct scene *s)
{
	const struct ndx_frame *frame;
	size_t got;

	return ndx_receiver_pull(s->receiver, &frame, 1, PATIENCE_MS, &got);
}

static enum ndx_status call_receiver_get_adapter(struct scene *s)
{
	return ndx_receiver_get_adapter(s->receiver) == s->own ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_get_cause(struct scene *s)
{
	struct ndx_receiver_cause cause;

	ndx_receiver_get_cause(s->receiver, &cause);
	return NDX_OK;
}

static enum ndx_status call_receiver_get_fd(struct scene *s)
{
	return ndx_receiver_get_fd(s->receiver) >= 0 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_get_memory(struct scene *s)
{
	struct ndx_memory_description out;

	return ndx_receiver_get_memory(s->receiver, &out);
}

static enum ndx_status call_receiver_get_qp(struct scene *s)
{
	return ndx_receiver_get_qp(s->receiver) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_get_state(struct scene *s)
{
	return ndx_receiver_get_state(s->receiver) == NDX_RECEIVER_RUNNING ? NDX_OK
	                                                                   : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_get_stats(struct scene *s)
{
	struct ndx_receiver_stats stats = {.size = sizeof(stats)};

	return ndx_receiver_get_stats(s->receiver, &stats);
}

static enum ndx_status call_receiver_snapshot(struct scene *s)
{
	char *json = NULL;
	enum ndx_status st = ndx_receiver_snapshot(s->receiver, &json);

	free(json);
	return st;
}

static enum ndx_status call_sender_attr_init(struct scene *s)
{
	struct ndx_sender_attr attr;

	(void)s;
	ndx_sender_attr_init(&attr);
	return attr.size == sizeof(attr) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_sender_create(struct scene *s)
{
	struct ndx_sender_attr attr;
	struct ndx_sender *out;

	sender_attr(s->own, &attr);
	return ndx_sender_create(&attr, &out);
}

static enum ndx_status call_sender_close(struct scene *s)
{
	ndx_sender_close(s->sender);
	s->sender = NULL;
	return NDX_OK;
}

static enum ndx_status call_sender_reset(struct scene *s)
{
	return ndx_sender_reset(s->sender);
}

static enum ndx_status call_sender_accept(struct scene *s)
{
	return ndx_sender_accept(s->idle_sender, s->listener, NULL, 0, PATIENCE_MS);
}

static enum ndx_status call_sender_connect(struct scene *s)
{
	return ndx_sender_connect(s->idle_sender, (struct sockaddr *)&s->far_address,
	                          s->far_address_len, NULL, 0, PATIENCE_MS);
}

static enum ndx_status call_sender_describe(struct scene *s)
{
	struct ndx_peer_description out;

	return ndx_sender_describe(s->idle_sender, NDX_ROLE_SERVER, &out);
}

static enum ndx_status call_sender_connect_peer(struct scene *s)
{
	const struct ndx_peer_description peer = {0};

	return ndx_sender_connect_peer(s->idle_sender, &peer, PATIENCE_MS);
}

static enum ndx_status call_sender_acquire(struct scene *s)
{
	void *buffer;

	return ndx_sender_acquire(s->sender, PATIENCE_MS, &buffer);
}

static enum ndx_status call_sender_post(struct scene *s)
{
	return ndx_sender_post(s->sender, 1, 0);
}

static enum ndx_status call_sender_send(struct scene *s)
{
	enum ndx_status st = NDX_OK;

	/* More than there are slots: the last finds none. */
	for (int i = 0; st == NDX_OK && i < 64; i++)
		st = ndx_sender_send(s->sender, s->memory, 16, 0, PATIENCE_MS);
	return st;
}

static enum ndx_status call_sender_flush(struct scene *s)
{
	(void)ndx_sender_send(s->sender, s->memory, 16, 0, 0);
	return ndx_sender_flush(s->sender, PATIENCE_MS);
}

static enum ndx_status call_sender_get_adapter(struct scene *s)
{
	return ndx_sender_get_adapter(s->sender) == s->own ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_sender_get_connector(struct scene *s)
{
	return ndx_sender_get_connector(s->sender) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_sender_get_qp(struct scene *s)
{
	return ndx_sender_get_qp(s->sender) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_sender_get_stats(struct scene *s)
{
	struct ndx_sender_stats stats = {.size = sizeof(stats)};

	return ndx_sender_get_stats(s->sender, &stats);
}

static enum ndx_status call_sender_set_oob_stream(struct scene *s)
{
	return ndx_sender_set_oob_stream(s->idle_sender, -1);
}

static enum ndx_status call_sender_set_memory(struct scene *s)
{
	const struct ndx_memory_description memory = {.length = BYTES};

	return ndx_sender_set_memory(s->idle_sender, &memory, 512, 8);
}

static enum ndx_status call_sender_start(struct scene *s)
{
	return ndx_sender_start(s->sender, s->connector);
}

static enum ndx_status call_frame_retain(struct scene *s)
{
	(void)s;
	return ndx_frame_retain(NULL) ? NDX_E_UNSUCCESSFUL : NDX_OK;
}

static enum ndx_status call_frame_release(struct scene *s)
{
	(void)s;
	ndx_frame_release(NULL);
	return NDX_OK;
}

static enum ndx_status call_frame_release_list(struct scene *s)
{
	const struct ndx_frame *none = NULL;

	(void)s;
	ndx_frame_release_list(&none, 1);
	return NDX_OK;
}

const struct row frame_rows[] = {
	{"ndx_receive_loop_attr_init_sized", call_receive_loop_attr_init, NDX_OK, NDX_OK},
	{"ndx_receive_loop_create", call_receive_loop_create, NDX_OK, NDX_OK},
	{"ndx_receive_loop_close", call_receive_loop_close, NDX_OK, NDX_OK},
	{"ndx_receiver_attr_init_sized", call_receiver_attr_init, NDX_OK, NDX_OK},
	{"ndx_receiver_create", call_receiver_create, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_receiver_close", call_receiver_close, NDX_OK, NDX_OK},
	{"ndx_receiver_stop", call_receiver_stop, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_receiver_reset", call_receiver_reset, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_receiver_accept", call_receiver_accept, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_receiver_connect", call_receiver_connect, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_receiver_describe", call_receiver_describe, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_receiver_connect_peer", call_receiver_connect_peer, NDX_E_WOULD_BLOCK,
         NDX_E_NOT_SUPPORTED},
	{"ndx_receiver_complete_connection", call_receiver_complete_connection, NDX_E_WOULD_BLOCK,
         NDX_OK},
	{"ndx_receiver_get_numbers", call_receiver_get_numbers, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_receiver_prepare", call_receiver_prepare, NDX_OK, NDX_OK},
	{"ndx_receiver_start", call_receiver_start, NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_receiver_set_oob_stream", call_receiver_set_oob_stream, NDX_E_INVALID_DEVICE_STATE,
         NDX_OK},
	{"ndx_receiver_pull", call_receiver_pull, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_receiver_get_adapter", call_receiver_get_adapter, NDX_OK, NDX_OK},
	{"ndx_receiver_get_cause", call_receiver_get_cause, NDX_OK, NDX_OK},
	{"ndx_receiver_get_fd", call_receiver_get_fd, NDX_OK, NDX_OK},
	{"ndx_receiver_get_memory", call_receiver_get_memory, NDX_OK, NDX_OK},
	{"ndx_receiver_get_qp", call_receiver_get_qp, NDX_OK, NDX_OK},
	{"ndx_receiver_get_state", call_receiver_get_state, NDX_OK, NDX_OK},
	{"ndx_receiver_get_stats", call_receiver_get_stats, NDX_OK, NDX_OK},
	{"ndx_receiver_snapshot", call_receiver_snapshot, NDX_OK, NDX_OK},
	{"ndx_sender_attr_init_sized", call_sender_attr_init, NDX_OK, NDX_OK},
	{"ndx_sender_create", call_sender_create, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_sender_close", call_sender_close, NDX_OK, NDX_OK},
	{"ndx_sender_reset", call_sender_reset, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_sender_accept", call_sender_accept, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_sender_connect", call_sender_connect, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_sender_describe", call_sender_describe, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_sender_connect_peer", call_sender_connect_peer, NDX_E_WOULD_BLOCK, NDX_OK},
	{"ndx_sender_acquire", call_sender_acquire, NDX_OK, NDX_OK},
	{"ndx_sender_post", call_sender_post, NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_sender_send", call_sender_send, NDX_E_WOULD_BLOCK, NDX_E_CANCELED},
	{"ndx_sender_flush", call_sender_flush, NDX_OK, NDX_E_WOULD_BLOCK},
	{"ndx_sender_get_adapter", call_sender_get_adapter, NDX_OK, NDX_OK},
	{"ndx_sender_get_connector", call_sender_get_connector, NDX_OK, NDX_OK},
	{"ndx_sender_get_qp", call_sender_get_qp, NDX_OK, NDX_OK},
	{"ndx_sender_get_stats", call_sender_get_stats, NDX_OK, NDX_OK},
	{"ndx_sender_set_oob_stream", call_sender_set_oob_stream, NDX_E_INVALID_DEVICE_STATE,
         NDX_OK},
	{"ndx_sender_set_memory", call_sender_set_memory, NDX_OK, NDX_E_NOT_SUPPORTED},
	{"ndx_sender_start", call_sender_start, NDX_E_INVALID_DEVICE_STATE, NDX_OK},
	{"ndx_frame_retain", call_frame_retain, NDX_OK, NDX_OK},
	{"ndx_frame_release", call_frame_release, NDX_OK, NDX_OK},
	{"ndx_frame_release_list", call_frame_release_list, NDX_OK, NDX_OK},
};
const size_t frame_row_count = sizeof(frame_rows) / sizeof(frame_rows[0]);
