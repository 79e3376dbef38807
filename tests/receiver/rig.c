/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

const char *rig_uris[2] = {"loop", "loop"};
unsigned rig_rounds = 20;
uint64_t rig_seed = 1;
uint32_t rig_hold_ms = 300;

uint64_t rig_now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* To be called while waiting for something. */
static void pause_until(uint64_t deadline_ms)
{
	assert_true(rig_now_ms() < deadline_ms);
	(void)poll(NULL, 0, 1);
}

static void listen_somewhere(struct rig *r)
{
	struct sockaddr_storage at[16];
	socklen_t length = sizeof(r->address);
	size_t count = 16;

	assert_int_equal(ndx_adapter_query_addresses(r->adapters[0], at, &count), NDX_OK);
	assert_true(count > 0);
	assert_int_equal(ndx_listen_on(r->adapters[0], (struct sockaddr *)&at[0],
	                               at[0].ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                                          : sizeof(struct sockaddr_in6),
	                               4, &r->listener),
	                 NDX_OK);
	assert_int_equal(ndx_listener_get_local_address(r->listener, (struct sockaddr *)&r->address,
	                                                &length),
	                 NDX_OK);
}

int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	for (int i = 0; i < 2; i++) {
		if (ndx_adapter_open(rig_uris[i], &r->adapters[i]) != NDX_OK) {
			print_error("%s: %s\n", rig_uris[i], ndx_last_error());
			return -1;
		}
	}
	r->info.size = sizeof(r->info);
	assert_int_equal(ndx_adapter_query(r->adapters[0], &r->info), NDX_OK);
	assert_int_equal(ndx_mr_register_new(r->adapters[1], &r->byte, 1,
	                                     NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_ALLOW_REMOTE_WRITE,
	                                     &r->asked),
	                 NDX_OK);
	listen_somewhere(r);
	ndx_receiver_attr_init(&r->attr);
	r->attr.adapter = r->adapters[0];
	r->attr.slot_size = SLOT_SIZE;
	r->attr.slot_count = SLOTS;
	ndx_sender_attr_init(&r->sender_attr);
	r->sender_attr.adapter = r->adapters[1];
	r->sender_attr.slot_size = SLOT_SIZE;
	r->sender_attr.slot_count = 8;
	*state = r;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *r = *state;

	ndx_sender_close(r->sender);
	ndx_mr_close(r->oversize);
	ndx_receiver_close(r->receiver);
	ndx_listener_close(r->listener);
	ndx_mr_close(r->asked);
	for (int i = 0; i < 2; i++)
		ndx_adapter_close(r->adapters[i]);
	free(r);
	return 0;
}

socklen_t rig_address_length(const struct rig *r)
{
	return r->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                       : sizeof(struct sockaddr_in6);
}

static void *accept_one(void *arg)
{
	struct rig *r = arg;

	return (void *)(intptr_t)ndx_receiver_accept(r->receiver, r->listener, "hi", 2, WAIT_MS);
}

void rig_join(struct rig *r)
{
	pthread_t thread;
	void *accepted;

	assert_int_equal(pthread_create(&thread, NULL, accept_one, r), 0);
	assert_int_equal(ndx_sender_connect(r->sender, (struct sockaddr *)&r->address,
	                                    rig_address_length(r), NULL, 0, WAIT_MS),
	                 NDX_OK);
	assert_int_equal(pthread_join(thread, &accepted), 0);
	assert_int_equal((intptr_t)accepted, NDX_OK);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_RUNNING);
}

static void spoil(struct rig *r)
{
	static const char frame[SLOT_SIZE + 1];

	assert_int_equal(ndx_mr_register_new(r->adapters[1], frame, sizeof(frame), 0, &r->oversize),
	                 NDX_OK);
	r->spoiler.oversize =
		(struct ndx_sge){frame, sizeof(frame), ndx_mr_get_local_token(r->oversize)};
	spoil_qp(&r->spoiler, ndx_sender_get_qp(r->sender));
}

void rig_start(struct rig *r)
{
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	if (r->spoiler.every > 0)
		spoil(r);
	rig_join(r);
}

struct accepting {
	struct rig *rig;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
};

static void *accept_qp(void *arg)
{
	struct accepting *a = arg;

	return (void *)(intptr_t)ndx_accept_from(a->rig->adapters[0], a->rig->listener, a->qp, NULL,
	                                         0, WAIT_MS, &a->connector);
}

void rig_connect_qps(struct rig *r, struct ndx_qp *here, struct ndx_qp *there,
                     struct ndx_connector *connectors[2])
{
	struct accepting a = {.rig = r, .qp = here};
	pthread_t thread;
	void *accepted;

	assert_int_equal(pthread_create(&thread, NULL, accept_qp, &a), 0);
	assert_int_equal(ndx_connect_to(r->adapters[1], there, (struct sockaddr *)&r->address,
	                                rig_address_length(r), NULL, 0, WAIT_MS, &connectors[1]),
	                 NDX_OK);
	assert_int_equal(pthread_join(thread, &accepted), 0);
	assert_int_equal((intptr_t)accepted, NDX_OK);
	connectors[0] = a.connector;
}

struct ndx_receiver_peer rig_describe_sender(struct rig *r,
                                             const struct ndx_receiver_numbers *numbers)
{
	struct ndx_receiver_peer peer = {
		.rq_psn = numbers->send_psn,
		.mtu = 512,
		.probe_address = (uintptr_t)&r->byte,
		.probe_rkey = ndx_rkey_of_token(ndx_mr_get_remote_token(r->asked)),
	};
	struct ndx_peer_description device;

	assert_int_equal(ndx_sender_describe(r->sender, NDX_ROLE_CLIENT, &device), NDX_OK);
	peer.qpn = device.qpn;
	peer.sq_psn = device.psn;
	memcpy(peer.gid, device.gid, sizeof(peer.gid));
	return peer;
}

void rig_meet_numbers(struct rig *r, const struct ndx_receiver_numbers *numbers)
{
	struct ndx_peer_description us = {.kind = NDX_DESCRIPTION_VERBS_RC,
	                                  .qpn = numbers->qpn,
	                                  .psn = numbers->send_psn,
	                                  .mtu = 512,
	                                  .lid = numbers->lid,
	                                  .inbound_read_limit = 1,
	                                  .outbound_read_limit = 1};

	memcpy(us.gid, numbers->gid, sizeof(us.gid));
	assert_int_equal(ndx_sender_set_oob_stream(r->sender, NDX_NO_OOB_STREAM), NDX_OK);
	assert_int_equal(ndx_sender_connect_peer(r->sender, &us, WAIT_MS), NDX_OK);
}

bool rig_join_by_numbers(struct rig *r)
{
	struct ndx_receiver_numbers numbers;
	struct ndx_receiver_peer peer;

	if (ndx_receiver_get_numbers(r->receiver, &numbers) == NDX_E_NOT_SUPPORTED)
		return false;
	peer = rig_describe_sender(r, &numbers);
	assert_int_equal(ndx_receiver_complete_connection(r->receiver, &peer, WAIT_MS), NDX_OK);
	rig_meet_numbers(r, &numbers);
	return true;
}

void rig_await(struct rig *r, enum ndx_receiver_state state)
{
	const uint64_t deadline = rig_now_ms() + WAIT_MS;

	while (ndx_receiver_get_state(r->receiver) != state)
		pause_until(deadline);
}

struct ndx_receiver_stats rig_stats(struct rig *r)
{
	struct ndx_receiver_stats stats = {.size = sizeof(stats)};

	assert_int_equal(ndx_receiver_get_stats(r->receiver, &stats), NDX_OK);
	return stats;
}

struct ndx_receiver_cause rig_cause(struct rig *r)
{
	struct ndx_receiver_cause cause;

	ndx_receiver_get_cause(r->receiver, &cause);
	return cause;
}

void rig_counted(struct rig *r, uint64_t frames)
{
	const uint64_t deadline = rig_now_ms() + WAIT_MS;

	while (rig_stats(r).frames < frames)
		pause_until(deadline);
}

void rig_held(struct rig *r, uint32_t slots)
{
	const uint64_t deadline = rig_now_ms() + WAIT_MS;

	while (rig_stats(r).held != slots)
		pause_until(deadline);
}

void rig_fill(uint8_t *data, uint32_t length, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + length;

	for (uint32_t i = 0; i < length; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (uint8_t)(x >> 24);
	}
}

bool rig_check(const void *data, uint32_t length, uint32_t seed)
{
	const uint8_t *bytes = data;
	uint32_t x = seed * 2654435761u + length;

	for (uint32_t i = 0; i < length; i++) {
		x = x * 1664525u + 1013904223u;
		if (bytes[i] != (uint8_t)(x >> 24))
			return false;
	}
	return true;
}

enum ndx_status rig_send(struct rig *r, uint32_t n, uint32_t length)
{
	void *buffer;
	enum ndx_status st = ndx_sender_acquire(r->sender, WAIT_MS, &buffer);

	if (st != NDX_OK)
		return st;
	rig_fill(buffer, length, n);
	return ndx_sender_post(r->sender, length, n % 256);
}

bool sink_take(void *context, const struct ndx_frame *frame)
{
	struct sink *sink = context;
	const uint32_t kept = __atomic_load_n(&sink->kept, __ATOMIC_RELAXED);
	const uint32_t n = sink->any_order && (frame->flags & NDX_FRAME_IMMEDIATE) ? frame->sequence
	                                                                           : sink->next;

	sink->next = n + 1;
	if ((!sink->unread && !rig_check(frame->data, frame->length, n)) ||
	    (sink->length != 0 && frame->length != sink->length))
		(void)__atomic_add_fetch(&sink->wrong, 1, __ATOMIC_RELAXED);
	if (kept < __atomic_load_n(&sink->keep, __ATOMIC_RELAXED)) {
		sink->frame[kept] = ndx_frame_retain(frame);
		__atomic_store_n(&sink->kept, kept + 1, __ATOMIC_RELEASE);
	}
	(void)__atomic_add_fetch(&sink->frames, 1, __ATOMIC_RELEASE);
	return true;
}

void sink_attach(struct rig *r, int at, struct sink *sink)
{
	r->attr.consumers[at] = (struct ndx_frame_consumer){sink_take, sink, NDX_CHANNEL_ANY};
}

void sink_release(struct sink *sink)
{
	const uint32_t kept = __atomic_load_n(&sink->kept, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < kept; i++)
		ndx_frame_release(sink->frame[i]);
	__atomic_store_n(&sink->kept, 0, __ATOMIC_RELEASE);
}

void sink_await(struct sink *sink, uint64_t frames)
{
	const uint64_t deadline = rig_now_ms() + WAIT_MS;

	while (__atomic_load_n(&sink->frames, __ATOMIC_ACQUIRE) < frames)
		pause_until(deadline);
}
