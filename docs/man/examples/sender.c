/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: senders of frames. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ndx/ndx.h>

/* A sender for a receiver with slots of 4096 bytes. */
enum ndx_status example_sender(struct ndx_adapter *adapter, const struct sockaddr *receiver,
                               socklen_t length, struct ndx_sender **out)
{
	struct ndx_sender_attr attr;
	enum ndx_status st;

	ndx_sender_attr_init(&attr);
	attr.adapter = adapter;
	attr.slot_size = 4096;
	attr.slot_count = 64;
	st = ndx_sender_create(&attr, out);
	if (st != NDX_OK)
		return st;
	st = ndx_sender_connect(*out, receiver, length, NULL, 0, 5000);
	if (st != NDX_OK)
		ndx_sender_close(*out);
	return st;
}

/* Send a copy of some data on channel 0; then make a frame in place; then wait for both. */
enum ndx_status example_send_frames(struct ndx_sender *sender, const char *text)
{
	const uint32_t length = (uint32_t)strlen(text) + 1;
	void *buffer;
	enum ndx_status st = ndx_sender_send(sender, text, length, 0, 1000);

	if (st == NDX_OK)
		st = ndx_sender_acquire(sender, 1000, &buffer);
	if (st != NDX_OK)
		return st; /* NDX_PENDING: all slots are under way for a second */
	memcpy(buffer, text, length);
	st = ndx_sender_post(sender, length, 0);
	return st == NDX_OK ? ndx_sender_flush(sender, 5000) : st;
}

/* Wait for a receiver that connects, instead; after the end of a connection anew. */
enum ndx_status example_sender_accept(struct ndx_sender *sender, struct ndx_listener *listener,
                                      bool again)
{
	enum ndx_status st = again ? ndx_sender_reset(sender) : NDX_OK;

	return st == NDX_OK ? ndx_sender_accept(sender, listener, NULL, 0, 60000) : st;
}

/* Connect by descriptions; `swap` exchanges them over a stream of the program's own. */
enum ndx_status example_sender_describe(struct ndx_sender *sender, int stream,
                                        bool (*swap)(int stream,
                                                     struct ndx_peer_description *description))
{
	struct ndx_peer_description description;
	enum ndx_status st = ndx_sender_describe(sender, NDX_ROLE_CLIENT, &description);

	if (st != NDX_OK)
		return st;
	if (!swap(stream, &description))
		return NDX_E_CONNECTION_ABORTED;
	st = ndx_sender_set_oob_stream(sender, stream);
	return st == NDX_OK ? ndx_sender_connect_peer(sender, &description, 5000) : st;
}

/* Connect the sender's queue pair by any means, here by the helper, and send by writes. */
enum ndx_status example_sender_start(struct ndx_sender *sender, struct ndx_listener *listener,
                                     const struct ndx_memory_description *slab)
{
	struct ndx_connector *connector;
	enum ndx_status st = ndx_accept_from(ndx_sender_get_adapter(sender), listener,
	                                     ndx_sender_get_qp(sender), NULL, 0, 60000, &connector);

	if (st == NDX_OK)
		st = ndx_sender_set_memory(sender, slab, 4096, 256);
	return st == NDX_OK ? ndx_sender_start(sender, connector) : st;
}

/* Counters, and how the connection ended. */
enum ndx_status example_sender_stats(struct ndx_sender *sender)
{
	struct ndx_sender_stats stats = {.size = sizeof(stats)};
	enum ndx_status st = ndx_sender_get_stats(sender, &stats);

	if (st == NDX_OK)
		printf("%" PRIu64 " frames; %s\n", stats.frames,
		       ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(
			       ndx_sender_get_connector(sender))));
	return st;
}

/* What a binding for another language calls. */
void example_sender_sizes(struct ndx_sender_attr *attr, size_t size)
{
	ndx_sender_attr_init_sized(attr, size);
}
