/* SPDX-License-Identifier: BSD-2-Clause */
/* Creating, connecting, stopping, beginning anew: in any order, by any thread. */
#include "rig.h"

#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		uint32_t slot_size;
		uint32_t slot_count;
		uint32_t wrap;
		uint32_t batch;
		const char *says;
	} cases[] = {
		{0, 16, 16, 16, "slot_size 0"},
		{100, 0, 16, 16, "slot_count 0"},
		{65536, 65536, 65536, 16, "slot_size * slot_count 4294967296"},
		{100, 16, 0, 16, "sequence_wrap 0"},
		{100, 16, (1u << 24) + 1, 16, "sequence_wrap 16777217"},
		{100, 16, 16, 0, "batch 0"},
		{100, 16, 16, 65, "batch 65"},
		{1, UINT32_MAX, 16, 16, "slot_count 4294967295"},
		{UINT32_MAX, 1, 16, 16, "slot_size 4294967295"},
	};
	struct rig *r = *state;
	struct ndx_receiver *out = (struct ndx_receiver *)r;
	struct ndx_receiver_attr attr = r->attr;

	attr.pull = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attr.slot_size = cases[i].slot_size;
		attr.slot_count = cases[i].slot_count;
		attr.sequence_wrap = cases[i].wrap;
		attr.batch = cases[i].batch;
		assert_int_equal(ndx_receiver_create(&attr, &out), NDX_E_INVALID_PARAMETER);
		if (strstr(ndx_last_error(), cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].says, ndx_last_error());
		assert_ptr_equal(out, r);
	}
	attr = r->attr;
	attr.pull = true;
	attr.mode = (enum ndx_receiver_mode)2;
	assert_int_equal(ndx_receiver_create(&attr, &out), NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "mode 2"));
	attr = r->attr;
	assert_int_equal(ndx_receiver_create(&attr, &out), NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "no consumer for the frames"));
	attr.adapter = NULL;
	attr.uri = "nosuch:thing";
	attr.pull = true;
	assert_int_not_equal(ndx_receiver_create(&attr, &out), NDX_OK);
	assert_ptr_equal(out, r);
}

static void what_a_sender_cannot_be_is_refused(void **state)
{
	static const struct {
		uint32_t slot_size;
		uint32_t slot_count;
		uint32_t window;
		uint32_t wrap;
		uint32_t mode;
		const char *says;
	} cases[] = {
		{0, 16, 0, 16, 0, "slot_size 0"},      {100, 0, 0, 16, 0, "slot_count 0"},
		{1, 65535, 0, 16, 0, "1..65534"},      {100, 16, 17, 16, 0, "window 17"},
		{100, 16, 0, 0, 0, "sequence_wrap 0"}, {100, 16, 0, 1 << 25, 0, "1..2^24"},
		{100, 16, 0, 16, 2, "mode 2"},
	};
	struct rig *r = *state;
	struct ndx_sender *out = (struct ndx_sender *)r;
	struct ndx_sender_attr attr = r->sender_attr;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		attr.slot_size = cases[i].slot_size;
		attr.slot_count = cases[i].slot_count;
		attr.window = cases[i].window;
		attr.sequence_wrap = cases[i].wrap;
		attr.mode = (enum ndx_receiver_mode)cases[i].mode;
		assert_int_equal(ndx_sender_create(&attr, &out), NDX_E_INVALID_PARAMETER);
		if (strstr(ndx_last_error(), cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].says, ndx_last_error());
		assert_ptr_equal(out, r);
	}
}

static void a_call_out_of_turn_says_what_is_missing(void **state)
{
	struct rig *r = *state;
	struct ndx_peer_description peer = {0};
	struct ndx_receiver_peer numbers = {0};
	struct ndx_connector *nobody = (struct ndx_connector *)r;

	r->attr.pull = true;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_receiver_connect_peer(r->receiver, &peer, 0),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_non_null(strstr(ndx_last_error(), "ndx_receiver_describe()"));
	assert_int_equal(ndx_receiver_complete_connection(r->receiver, &numbers, 0),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_non_null(strstr(ndx_last_error(), "ndx_receiver_get_numbers()"));
	assert_int_equal(ndx_receiver_start(r->receiver, nobody), NDX_E_INVALID_DEVICE_STATE);
	assert_non_null(strstr(ndx_last_error(), "ndx_receiver_prepare()"));
	assert_int_equal(ndx_receiver_reset(r->receiver), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_receiver_prepare(r->receiver), NDX_OK);
	assert_int_equal(rig_stats(r).posted, SLOTS);
	assert_int_equal(ndx_receiver_prepare(r->receiver), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_STOPPED);
	assert_int_equal(ndx_receiver_prepare(r->receiver), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_STOPPED);
}

static void an_attempt_that_failed_can_be_made_again(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ndx_receiver_accept(r->receiver, r->listener, NULL, 0, 10),
		                 NDX_E_IO_TIMEOUT);
		assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_CREATED);
	}
	rig_join(r);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	sink_await(&sink, 1);
	assert_int_equal(sink.wrong, 0);
	rig_held(r, 0);
	assert_int_equal(rig_stats(r).posted, SLOTS);
}

struct joining {
	struct ndx_sender *sender;
	const struct ndx_peer_description *peer;
};

static void *join_peer(void *arg)
{
	const struct joining *j = arg;

	return (void *)(intptr_t)ndx_sender_connect_peer(j->sender, j->peer, WAIT_MS);
}

static void descriptions_connect_it(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	struct joining joining;
	pthread_t thread;
	void *joined;
	int fd[2];

	sink_attach(r, 0, &sink);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	if (ndx_receiver_describe(r->receiver, NDX_ROLE_SERVER, &own) == NDX_E_NOT_SUPPORTED)
		skip();
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_CONNECTING);
	assert_int_equal(ndx_sender_describe(r->sender, NDX_ROLE_CLIENT, &peer), NDX_OK);
	if (own.kind == NDX_DESCRIPTION_VERBS_RC) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
		assert_int_equal(ndx_receiver_set_oob_stream(r->receiver, fd[0]), NDX_OK);
		assert_int_equal(ndx_sender_set_oob_stream(r->sender, fd[1]), NDX_OK);
	}
	joining = (struct joining){r->sender, &own};
	assert_int_equal(pthread_create(&thread, NULL, join_peer, &joining), 0);
	assert_int_equal(ndx_receiver_connect_peer(r->receiver, &peer, WAIT_MS), NDX_OK);
	assert_int_equal(pthread_join(thread, &joined), 0);
	assert_int_equal((intptr_t)joined, NDX_OK);
	for (uint32_t i = 0; i < 3 * SLOTS; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, 3 * SLOTS);
	assert_int_equal(sink.wrong, 0);
	ndx_sender_close(r->sender);
	r->sender = NULL;
	rig_await(r, NDX_RECEIVER_ENDED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_GOODBYE);
}

static void an_rnr_timer_is_taken_or_refused(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};

	sink_attach(r, 0, &sink);
	r->attr.rnr_timer = 32;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_E_INVALID_PARAMETER);
	r->attr.rnr_timer = 12;
	if (!(r->info.capabilities & NDX_CAP_RNR_TIMER)) {
		assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_E_NOT_SUPPORTED);
		assert_non_null(strstr(ndx_last_error(), "rnr_timer 12"));
		r->attr.rnr_timer = NDX_RNR_TIMER_DEFAULT;
	}
	rig_start(r);
	for (uint32_t i = 0; i < 3 * SLOTS; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	sink_await(&sink, 3 * SLOTS);
	assert_int_equal(sink.wrong, 0);
}

/* A peer with a queue pair and nothing else: it is told our numbers and gives its own. */
static void numbers_connect_a_device(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	struct ndx_receiver_numbers numbers;
	struct ndx_receiver_peer peer;

	sink_attach(r, 0, &sink);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	if (ndx_receiver_get_numbers(r->receiver, &numbers) == NDX_E_NOT_SUPPORTED) {
		assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_CREATED);
		skip();
	}
	assert_int_equal(strlen(numbers.gid_text), 39);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	peer = rig_describe_sender(r, &numbers);
	peer.mtu = 5;
	assert_int_equal(ndx_receiver_complete_connection(r->receiver, &peer, WAIT_MS),
	                 NDX_E_INVALID_PARAMETER);
	if (numbers.mtu < 4096) {
		peer.mtu = 4096;
		assert_int_equal(ndx_receiver_complete_connection(r->receiver, &peer, WAIT_MS),
		                 NDX_E_INVALID_PARAMETER);
		assert_non_null(strstr(ndx_last_error(), "mtu 4096 is beyond the port's"));
	}
	peer.mtu = 512;
	peer.rq_psn ^= 1;
	assert_int_equal(ndx_receiver_complete_connection(r->receiver, &peer, WAIT_MS),
	                 NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "rq_psn"));
	peer.rq_psn ^= 1;
	assert_int_equal(ndx_receiver_complete_connection(r->receiver, &peer, WAIT_MS), NDX_OK);
	rig_meet_numbers(r, &numbers);
	for (uint32_t i = 0; i < 3 * SLOTS; i++)
		assert_int_equal(rig_send(r, i, SLOT_SIZE), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	sink_await(&sink, 3 * SLOTS);
	assert_int_equal(sink.wrong, 0);
	assert_int_equal(rig_stats(r).lost, 0);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_STOPPED);
}

static void the_peers_goodbye_ends_it(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = 3};
	char *json = NULL;

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(rig_send(r, i, 64), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	ndx_sender_close(r->sender);
	r->sender = NULL;
	rig_await(r, NDX_RECEIVER_ENDED);
	assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_GOODBYE);
	assert_int_equal(rig_stats(r).frames, 10);
	assert_int_equal(ndx_receiver_snapshot(r->receiver, &json), NDX_OK);
	assert_non_null(strstr(json, "\"state\": \"ended\""));
	assert_non_null(strstr(json, "\"end\": \"goodbye\""));
	assert_non_null(strstr(json, "\"delivered\": 10"));
	free(json);
	assert_true(rig_check(sink.frame[2]->data, 64, 2));
	sink_release(&sink);
}

static void it_begins_anew_and_held_frames_stay(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = 4};

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (unsigned round = 0; round < 10; round++) {
		const uint64_t before = (uint64_t)round * 20;

		if (round > 0) {
			assert_int_equal(ndx_sender_reset(r->sender), NDX_OK);
			rig_await(r, NDX_RECEIVER_ENDED);
			assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
			assert_int_equal(rig_cause(r).end, NDX_RECEIVER_END_NONE);
			sink.next = 0;
			rig_join(r);
		}
		for (uint32_t i = 0; i < 20; i++)
			assert_int_equal(rig_send(r, i, 64), NDX_OK);
		sink_await(&sink, before + 20);
		assert_int_equal(sink.wrong, 0);
		for (uint32_t i = 0; i < 4; i++)
			assert_true(rig_check(sink.frame[i]->data, 64, i));
		rig_held(r, 4);
		assert_int_equal(rig_stats(r).lost, 0);
		assert_int_equal(rig_stats(r).connections, round + 1);
	}
	sink_release(&sink);
}

static void frames_outlive_the_receiver(void **state)
{
	struct rig *r = *state;
	struct sink sink = {.keep = 5};

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(rig_send(r, i, SLOT_SIZE), NDX_OK);
	sink_await(&sink, 5);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
	assert_int_equal(rig_stats(r).held, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(rig_check(sink.frame[i]->data, SLOT_SIZE, i));
	ndx_frame_release(sink.frame[0]);
	ndx_receiver_close(r->receiver);
	r->receiver = NULL;
	for (uint32_t i = 1; i < 5; i++) {
		assert_true(rig_check(sink.frame[i]->data, SLOT_SIZE, i));
		(void)ndx_frame_retain(sink.frame[i]);
		ndx_frame_release(sink.frame[i]);
		ndx_frame_release(sink.frame[i]);
	}
}

struct stopper {
	struct ndx_receiver *receiver;
	uint32_t after;
	uint32_t count;
	enum ndx_status status;
	uint32_t ended; /* atomic */
	bool close;
};

static bool stop_inside(void *context, const struct ndx_frame *frame)
{
	struct stopper *s = context;

	(void)frame;
	if (++s->count == s->after)
		s->status = ndx_receiver_stop(s->receiver);
	return true;
}

static void on_end(void *context, struct ndx_receiver *receiver, enum ndx_receiver_state state)
{
	struct stopper *s = context;

	if (s->close)
		ndx_receiver_close(receiver);
	__atomic_store_n(&s->ended, 1 + (uint32_t)state, __ATOMIC_RELEASE);
}

static void await_end(struct stopper *s)
{
	while (__atomic_load_n(&s->ended, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
}

static void it_can_be_stopped_by_its_consumer(void **state)
{
	struct rig *r = *state;
	struct stopper stopper = {.after = 3};

	r->attr.consumers[0] = (struct ndx_frame_consumer){stop_inside, &stopper, NDX_CHANNEL_ANY};
	r->attr.on_end = on_end;
	r->attr.context = &stopper;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	stopper.receiver = r->receiver;
	rig_join(r);
	for (uint32_t i = 0; i < 4; i++)
		(void)rig_send(r, i, 64);
	await_end(&stopper);
	assert_int_equal(stopper.status, NDX_PENDING);
	assert_int_equal(stopper.ended, 1 + NDX_RECEIVER_STOPPED);
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
}

static void it_can_be_closed_when_it_is_told_of_its_end(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	struct stopper stopper = {.close = true};

	sink_attach(r, 0, &sink);
	r->attr.on_end = on_end;
	r->attr.context = &stopper;
	rig_start(r);
	assert_int_equal(rig_send(r, 0, 64), NDX_OK);
	sink_await(&sink, 1);
	ndx_sender_close(r->sender);
	r->sender = NULL;
	await_end(&stopper);
	assert_int_equal(stopper.ended, 1 + NDX_RECEIVER_ENDED);
	r->receiver = NULL;
}

static void *stop_it(void *receiver)
{
	return (void *)(intptr_t)ndx_receiver_stop(receiver);
}

static void *accept_nobody(void *arg)
{
	struct rig *r = arg;

	return (void *)(intptr_t)ndx_receiver_accept(r->receiver, r->listener, NULL, 0, WAIT_MS);
}

static void stop_does_not_break_into_an_accept(void **state)
{
	const struct ndx_peer_description peer = {0};
	struct rig *r = *state;
	struct sink sink = {0};
	pthread_t thread;
	void *accepted;

	sink_attach(r, 0, &sink);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, accept_nobody, r), 0);
	while (ndx_receiver_get_state(r->receiver) != NDX_RECEIVER_CONNECTING)
		sched_yield();
	assert_int_equal(ndx_receiver_stop(r->receiver), NDX_E_DEVICE_BUSY);
	assert_non_null(strstr(ndx_last_error(), "cancel its listener"));
	assert_int_equal(ndx_receiver_connect_peer(r->receiver, &peer, 0),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_non_null(strstr(ndx_last_error(), "another call connects"));
	/* The accept may not have reached the listener yet. */
	while (ndx_receiver_stop(r->receiver) == NDX_E_DEVICE_BUSY)
		(void)ndx_listener_cancel(r->listener);
	assert_int_equal(pthread_join(thread, &accepted), 0);
	assert_int_not_equal((intptr_t)accepted, NDX_OK);
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_STOPPED);
}

static void two_threads_can_stop_it(void **state)
{
	struct rig *r = *state;
	struct sink sink = {0};
	pthread_t threads[2];

	sink_attach(r, 0, &sink);
	rig_start(r);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, stop_it, r->receiver), 0);
	for (int i = 0; i < 2; i++) {
		void *status;

		assert_int_equal(pthread_join(threads[i], &status), 0);
		assert_int_equal((intptr_t)status, NDX_OK);
	}
	assert_int_equal(ndx_receiver_get_state(r->receiver), NDX_RECEIVER_STOPPED);
}

static void *release_all(void *arg)
{
	sink_release(arg);
	return NULL;
}

static void stop_races_with_threads_that_release(void **state)
{
	struct rig *r = *state;
	uint64_t x = rig_seed;

	for (unsigned round = 0; round < rig_rounds; round++) {
		struct sink sinks[2] = {{.keep = 7}, {.keep = 7}};
		pthread_t threads[2];
		uint32_t frames;

		x = x * 6364136223846793005u + 1442695040888963407u;
		frames = 1 + (uint32_t)(x >> 33) % 14;
		sink_attach(r, 0, &sinks[0]);
		sink_attach(r, 1, &sinks[1]);
		rig_start(r);
		for (uint32_t i = 0; i < frames; i++)
			assert_int_equal(rig_send(r, i, 64), NDX_OK);
		sink_await(&sinks[1], frames);
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, release_all, &sinks[i]),
			                 0);
		if (x >> 63) {
			assert_int_equal(ndx_receiver_stop(r->receiver), NDX_OK);
		} else {
			ndx_receiver_close(r->receiver);
			r->receiver = NULL;
		}
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(sinks[0].wrong + sinks[1].wrong, 0);
		ndx_sender_close(r->sender);
		r->sender = NULL;
		ndx_receiver_close(r->receiver);
		r->receiver = NULL;
	}
}

static void many_share_a_loop(void **state)
{
	enum { RECEIVERS = 5 };
	struct rig *r = *state;
	struct ndx_receive_loop *loop;
	struct ndx_receiver *receivers[RECEIVERS];
	struct ndx_sender *senders[RECEIVERS];
	struct sink sinks[RECEIVERS] = {{0}};

	assert_int_equal(ndx_receive_loop_create(NULL, &loop), NDX_OK);
	r->attr.loop = loop;
	for (int i = 0; i < RECEIVERS; i++) {
		sink_attach(r, 0, &sinks[i]);
		rig_start(r);
		receivers[i] = r->receiver;
		senders[i] = r->sender;
	}
	ndx_receive_loop_close(loop);
	for (uint32_t n = 0; n < 100; n++) {
		for (int i = 0; i < RECEIVERS; i++) {
			r->sender = senders[i];
			assert_int_equal(rig_send(r, n, 64 + (uint32_t)i), NDX_OK);
		}
	}
	for (int i = 0; i < RECEIVERS; i++) {
		sink_await(&sinks[i], 100);
		assert_int_equal(sinks[i].wrong, 0);
		ndx_sender_close(senders[i]);
		ndx_receiver_close(receivers[i]);
	}
	r->receiver = NULL;
	r->sender = NULL;
}

const struct CMUnitTest life_cases[] = {
	CASE(what_cannot_be_is_refused),
	CASE(what_a_sender_cannot_be_is_refused),
	CASE(a_call_out_of_turn_says_what_is_missing),
	CASE(an_attempt_that_failed_can_be_made_again),
	CASE(descriptions_connect_it),
	CASE(an_rnr_timer_is_taken_or_refused),
	CASE(numbers_connect_a_device),
	CASE(the_peers_goodbye_ends_it),
	CASE(it_begins_anew_and_held_frames_stay),
	CASE(frames_outlive_the_receiver),
	CASE(it_can_be_stopped_by_its_consumer),
	CASE(it_can_be_closed_when_it_is_told_of_its_end),
	CASE(stop_does_not_break_into_an_accept),
	CASE(two_threads_can_stop_it),
	CASE(stop_races_with_threads_that_release),
	CASE(many_share_a_loop),
};
const size_t life_case_count = sizeof(life_cases) / sizeof(life_cases[0]);
