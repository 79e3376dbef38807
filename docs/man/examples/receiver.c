/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: receivers of frames. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

/* A receiver of frames of up to 4096 bytes, for ndx_receiver_pull(). */
enum ndx_status example_receiver(struct ndx_adapter *adapter, struct ndx_receiver **out)
{
	struct ndx_receiver_attr attr;

	ndx_receiver_attr_init(&attr);
	attr.adapter = adapter;
	attr.slot_size = 4096;
	attr.slot_count = 256;
	attr.pull = true;
	return ndx_receiver_create(&attr, out);
}

/* Take the next sender of a listener, and its frames until the connection ends. */
enum ndx_status example_frames(struct ndx_receiver *receiver, struct ndx_listener *listener)
{
	const struct ndx_frame *frames[16];
	struct ndx_receiver_cause cause;
	size_t got;
	enum ndx_status st = ndx_receiver_accept(receiver, listener, NULL, 0, 60000);

	printf("readable when there are frames: %d\n", ndx_receiver_get_fd(receiver));
	while (st == NDX_OK) {
		st = ndx_receiver_pull(receiver, frames, 16, 1000, &got);
		for (size_t i = 0; st == NDX_OK && i < got; i++)
			printf("%u bytes\n", frames[i]->length);
		if (st == NDX_OK)
			ndx_frame_release_list(frames, got);
		else if (ndx_receiver_get_state(receiver) == NDX_RECEIVER_RUNNING)
			st = NDX_OK; /* nothing came in a second */
	}
	ndx_receiver_get_cause(receiver, &cause);
	printf("%s: %s\n", ndx_receiver_end_name(cause.end), cause.text);
	return cause.status;
}

/* Connect to a sender that listens; after the end of a connection connect anew. */
enum ndx_status example_reconnect(struct ndx_receiver *receiver, const struct sockaddr *sender,
                                  socklen_t length)
{
	if (ndx_receiver_get_state(receiver) != NDX_RECEIVER_CREATED) {
		enum ndx_status st = ndx_receiver_reset(receiver); /* frames stay valid */

		if (st != NDX_OK)
			return st;
	}
	return ndx_receiver_connect(receiver, sender, length, NULL, 0, 5000);
}

/* Connect by descriptions; `swap` exchanges them over a stream of the program's own. */
enum ndx_status example_receiver_describe(struct ndx_receiver *receiver, int stream,
                                          bool (*swap)(int stream,
                                                       struct ndx_peer_description *description))
{
	struct ndx_peer_description description;
	enum ndx_status st = ndx_receiver_describe(receiver, NDX_ROLE_SERVER, &description);

	if (st != NDX_OK)
		return st;
	if (!swap(stream, &description))
		return NDX_E_CONNECTION_ABORTED;
	st = ndx_receiver_set_oob_stream(receiver, stream);
	return st == NDX_OK ? ndx_receiver_connect_peer(receiver, &description, 5000) : st;
}

/* Connect to a device that does not run NDX; `swap` exchanges the numbers. */
enum ndx_status example_numbers(struct ndx_receiver *receiver,
                                bool (*swap)(const struct ndx_receiver_numbers *own,
                                             struct ndx_receiver_peer *device))
{
	struct ndx_receiver_numbers own;
	struct ndx_receiver_peer device = {0};
	enum ndx_status st = ndx_receiver_get_numbers(receiver, &own);

	if (st != NDX_OK)
		return st;
	if (!swap(&own, &device))
		return NDX_E_CONNECTION_ABORTED;
	return ndx_receiver_complete_connection(receiver, &device, 5000);
}

/* Connect the receiver's queue pair by any means, here by the helper, and run. */
enum ndx_status example_prepare(struct ndx_receiver *receiver, struct ndx_listener *listener)
{
	struct ndx_connector *connector;
	struct ndx_memory_description slab; /* for the peer's writes, in mode WRITE */
	enum ndx_status st = ndx_receiver_prepare(receiver);

	if (st == NDX_OK)
		st = ndx_receiver_get_memory(receiver, &slab);
	if (st == NDX_OK)
		st = ndx_accept_from(ndx_receiver_get_adapter(receiver), listener,
		                     ndx_receiver_get_qp(receiver), &slab, sizeof(slab), 60000,
		                     &connector);
	return st == NDX_OK ? ndx_receiver_start(receiver, connector) : st;
}

/* Counters; everything as JSON; the state. */
enum ndx_status example_receiver_stats(struct ndx_receiver *receiver)
{
	struct ndx_receiver_stats stats = {.size = sizeof(stats)};
	char *json;
	enum ndx_status st = ndx_receiver_get_stats(receiver, &stats);

	if (st != NDX_OK)
		return st;
	printf("%s: %" PRIu64 " frames, %" PRIu64 " lost\n",
	       ndx_receiver_state_name(ndx_receiver_get_state(receiver)), stats.frames, stats.lost);
	st = ndx_receiver_snapshot(receiver, &json);
	if (st == NDX_OK) {
		puts(json);
		free(json);
	}
	return st;
}

/* Stop, with a goodbye to the sender, and close. Frames that are still held stay valid. */
enum ndx_status example_receiver_end(struct ndx_receiver *receiver)
{
	enum ndx_status st = ndx_receiver_stop(receiver);

	ndx_receiver_close(receiver);
	return st;
}

/* One thread for many receivers: set `loop` of their attributes. Close it after them. */
enum ndx_status example_loop(struct ndx_receiver_attr *receivers)
{
	struct ndx_receive_loop_attr attr;
	enum ndx_status st;

	ndx_receive_loop_attr_init(&attr);
	attr.spin_us = 0; /* sleep at once */
	st = ndx_receive_loop_create(&attr, &receivers->loop);
	if (st == NDX_OK && receivers->slot_count == 0) { /* no receiver will come */
		ndx_receive_loop_close(receivers->loop);
		receivers->loop = NULL;
	}
	return st;
}

/* What a binding for another language calls. */
void example_receiver_sizes(struct ndx_receiver_attr *attr, size_t attr_size,
                            struct ndx_receive_loop_attr *loop, size_t loop_size)
{
	ndx_receiver_attr_init_sized(attr, attr_size);
	ndx_receive_loop_attr_init_sized(loop, loop_size);
}
