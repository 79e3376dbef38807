/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-frame-instructions COUNT
 * COUNT times: a frame of 64 bytes on loop, taken by a receiver and given back. To be run by
 * frame_instructions.sh, which counts what happens in frames(). The receiver has no thread here, so
 * that nothing depends on which thread is faster.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

#include "receiver.h"

#define SIZE 64u
#define WINDOW 16u /* frames on their way before they are taken */
#define TIMEOUT_MS 10000u

static unsigned long seen;

static bool take_frame(void *context, const struct ndx_frame *frame)
{
	(void)context;
	seen += frame->length == SIZE;
	return true;
}

static void must(const char *what, enum ndx_status st)
{
	if (st == NDX_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, ndx_last_error());
	_Exit(1);
}

struct pair {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct ndx_receiver *receiver;
	struct ndx_sender *sender;
	struct ndx_connector *connector;
};

static void *accept_sender(void *arg)
{
	struct pair *p = arg;

	must("accept", ndx_accept_from(p->adapter, p->listener, ndx_receiver_get_qp(p->receiver),
	                               NULL, 0, TIMEOUT_MS, &p->connector));
	return NULL;
}

static void begin_frames(struct pair *p)
{
	struct ndx_receiver_attr receiver;
	struct ndx_sender_attr sender;
	struct sockaddr_storage at[4];
	socklen_t length = sizeof(struct sockaddr_in);
	size_t count = 4;
	pthread_t thread;

	must("open", ndx_adapter_open("loop", &p->adapter));
	must("addresses", ndx_adapter_query_addresses(p->adapter, at, &count));
	if (at[0].ss_family == AF_INET6)
		length = sizeof(struct sockaddr_in6);
	must("listen",
	     ndx_listen_on(p->adapter, (struct sockaddr *)&at[0], length, 1, &p->listener));
	length = sizeof(at[0]);
	must("address",
	     ndx_listener_get_local_address(p->listener, (struct sockaddr *)&at[0], &length));
	ndx_receiver_attr_init(&receiver);
	receiver.adapter = p->adapter;
	receiver.slot_size = SIZE;
	receiver.slot_count = 2 * WINDOW;
	receiver.consumers[0] = (struct ndx_frame_consumer){take_frame, NULL, NDX_CHANNEL_ANY};
	must("receiver", ndx_receiver_create(&receiver, &p->receiver));
	ndx_sender_attr_init(&sender);
	sender.adapter = p->adapter;
	sender.slot_size = SIZE;
	sender.slot_count = 2 * WINDOW;
	must("sender", ndx_sender_create(&sender, &p->sender));
	must("prepare", ndx_receiver_prepare(p->receiver));
	if (pthread_create(&thread, NULL, accept_sender, p) != 0)
		_Exit(1);
	must("connect",
	     ndx_sender_connect(p->sender, (struct sockaddr *)&at[0], length, NULL, 0, TIMEOUT_MS));
	(void)pthread_join(thread, NULL);
}

static void send_some(struct ndx_sender *sender)
{
	for (unsigned i = 0; i < WINDOW; i++) {
		void *buffer;

		must("acquire", ndx_sender_acquire(sender, TIMEOUT_MS, &buffer));
		must("post", ndx_sender_post(sender, SIZE, 0));
	}
	must("flush", ndx_sender_flush(sender, TIMEOUT_MS));
}

/* All that there is, as the receiving thread does. */
__attribute__((noinline)) void frames(struct ndx_receiver *receiver);

void frames(struct ndx_receiver *receiver)
{
	while (receiver_poll(receiver) > 0)
		;
}

int main(int argc, char **argv)
{
	const unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) / WINDOW : 0;
	struct pair p = {0};

	if (count == 0) {
		(void)fputs("usage: ndx-frame-instructions COUNT\n", stderr);
		return 2;
	}
	begin_frames(&p);
	for (unsigned long i = 0; i < count; i++) {
		send_some(p.sender);
		frames(p.receiver);
	}
	ndx_sender_close(p.sender);
	ndx_connector_close(p.connector);
	ndx_receiver_close(p.receiver);
	ndx_listener_close(p.listener);
	ndx_adapter_close(p.adapter);
	return seen == count * WINDOW ? 0 : 1;
}
