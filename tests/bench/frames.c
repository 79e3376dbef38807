/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-frames [URI [URI]] [--blocks N] [--frames N] [--size BYTES] [--wait]
 * Frames through ndx_sender and ndx_receiver beside the same messages over plain queue pairs
 * (the traffic of ndx-perf), block by block in turn: how many frames a second, as a ratio. Both
 * have a thread for each end, on the same processors, that only polls; with --wait one that arms
 * its queue and sleeps whenever it finds nothing.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <ndx/ndx.h>

#include "lane.h"
#include "sample_options.h"
#include "traffic.h"

#define TIMEOUT_MS 20000u
#define SLOTS 64u
#define BLOCKS_MAX 1000u
#define SPIN_US 1000000u /* as ndx-perf's consumers, which only poll */

struct stage {
	const char *uris[2];
	unsigned blocks;
	uint64_t frames; /* of a block */
	uint32_t size;
	bool wait;
	struct ndx_adapter *adapters[2];
	struct ndx_listener *listener;
	struct ndx_receive_loop *loop;
	struct ndx_receiver *receiver;
	struct ndx_sender *sender;
	uint64_t received; /* atomic */
	uint64_t ns;       /* of the last block of frames */
};

/* What all blocks of a kind cost the process, their warm-up included. */
struct cost {
	double switches;
	double cpu_us;
	double frames;
};

void lane_die(const char *what, const char *why)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-frames: %s: %s\n", what, why);
	/* Not exit(): other threads are still at work. */
	_Exit(1);
}

static void must(const char *what, enum ndx_status st)
{
	if (st != NDX_OK)
		lane_die(what,
		         ndx_last_error()[0] != '\0' ? ndx_last_error() : ndx_status_name(st));
}

static bool take_frame(void *context, const struct ndx_frame *frame)
{
	struct stage *s = context;

	__atomic_store_n(&s->received, s->received + 1, __ATOMIC_RELEASE);
	return frame->length == s->size;
}

static void *accept_sender(void *arg)
{
	struct stage *s = arg;

	must("accept", ndx_receiver_accept(s->receiver, s->listener, NULL, 0, TIMEOUT_MS));
	return NULL;
}

/* Only the loop's thread gets this thread's processors. */
static void *make_loop(void *arg)
{
	struct stage *s = arg;
	struct ndx_receive_loop_attr attr;

	ndx_receive_loop_attr_init(&attr);
	attr.spin_us = s->wait ? 0 : SPIN_US;
	traffic_pin(pthread_self(), 1);
	must("create a loop", ndx_receive_loop_create(&attr, &s->loop));
	return NULL;
}

static void in_thread(void *(*fn)(void *), struct stage *s)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, s) != 0)
		lane_die("thread", "none left");
	(void)pthread_join(thread, NULL);
}

static void create(struct stage *s)
{
	struct ndx_receiver_attr receiver;
	struct ndx_sender_attr sender;

	for (int i = 0; i < 2; i++)
		must(s->uris[i], ndx_adapter_open(s->uris[i], &s->adapters[i]));
	in_thread(make_loop, s);
	ndx_receiver_attr_init(&receiver);
	receiver.adapter = s->adapters[0];
	receiver.slot_size = s->size;
	receiver.slot_count = SLOTS;
	receiver.loop = s->loop;
	receiver.keepalive_ms = 0;
	receiver.consumers[0] = (struct ndx_frame_consumer){take_frame, s, NDX_CHANNEL_ANY};
	must("create a receiver", ndx_receiver_create(&receiver, &s->receiver));
	ndx_sender_attr_init(&sender);
	sender.adapter = s->adapters[1];
	sender.slot_size = s->size;
	sender.slot_count = SLOTS;
	sender.spin_us = s->wait ? 0 : SPIN_US;
	sender.keepalive_ms = 0;
	must("create a sender", ndx_sender_create(&sender, &s->sender));
}

static void connect_both(struct stage *s)
{
	struct sockaddr_storage at[16];
	socklen_t length = sizeof(at[0]);
	size_t count = 16;
	pthread_t thread;

	must("addresses", ndx_adapter_query_addresses(s->adapters[0], at, &count));
	length = at[0].ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                    : sizeof(struct sockaddr_in6);
	must("listen",
	     ndx_listen_on(s->adapters[0], (struct sockaddr *)&at[0], length, 1, &s->listener));
	length = sizeof(at[0]);
	must("address",
	     ndx_listener_get_local_address(s->listener, (struct sockaddr *)&at[0], &length));
	if (pthread_create(&thread, NULL, accept_sender, s) != 0)
		lane_die("thread", "none left");
	must("connect",
	     ndx_sender_connect(s->sender, (struct sockaddr *)&at[0], length, NULL, 0, TIMEOUT_MS));
	(void)pthread_join(thread, NULL);
}

/* As the traffic warms up. */
static uint64_t warm_count(const struct stage *s)
{
	return s->frames / 16 + 8;
}

/* Once before a block with -1, once after it with 1. */
static void charge(struct cost *cost, int sign, const struct stage *s)
{
	struct rusage u;
	double us;

	(void)getrusage(RUSAGE_SELF, &u);
	us = 1e6 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	     (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
	cost->switches += sign * (double)(u.ru_nvcsw + u.ru_nivcsw);
	cost->cpu_us += sign * us;
	if (sign > 0)
		cost->frames += (double)(s->frames + warm_count(s));
}

static void pour(struct stage *s, uint64_t frames)
{
	const uint64_t all = s->received + frames;

	for (uint64_t i = 0; i < frames; i++) {
		void *buffer;

		must("acquire", ndx_sender_acquire(s->sender, TIMEOUT_MS, &buffer));
		must("post", ndx_sender_post(s->sender, s->size, 0));
	}
	must("flush", ndx_sender_flush(s->sender, TIMEOUT_MS));
	for (unsigned i = 0; __atomic_load_n(&s->received, __ATOMIC_ACQUIRE) < all; i++) {
		if (i % 1000 == 999)
			(void)sched_yield();
	}
}

static void *pour_block(void *arg)
{
	struct stage *s = arg;
	uint64_t begin;

	traffic_pin(pthread_self(), 0);
	pour(s, warm_count(s));
	begin = traffic_now_ns();
	pour(s, s->frames);
	s->ns = traffic_now_ns() - begin;
	return NULL;
}

static double frames_block(struct stage *s, struct cost *cost)
{
	/* One that spins would take a processor from the other lane. */
	create(s);
	connect_both(s);
	charge(cost, -1, s);
	in_thread(pour_block, s);
	charge(cost, 1, s);
	ndx_sender_close(s->sender);
	ndx_receiver_close(s->receiver);
	ndx_receive_loop_close(s->loop);
	ndx_listener_close(s->listener);
	for (int i = 0; i < 2; i++)
		ndx_adapter_close(s->adapters[i]);
	return (double)s->frames * 1e9 / (double)s->ns;
}

static double plain_block(const struct stage *s, struct traffic *traffic, struct cost *cost)
{
	const struct lane_attr attr = {
		.uris = {s->uris[0], s->uris[1]}, .size = s->size, .depth = SLOTS};
	struct lane *lane = lane_open_ndx(&attr);
	const struct traffic_block block = {lane, TRAFFIC_STREAM, s->wait, s->frames,
	                                    s->frames / 16 + 8};
	uint64_t ns;

	charge(cost, -1, s);
	ns = traffic_run(traffic, &block);
	charge(cost, 1, s);
	lane->close(lane);
	return (double)s->frames * 1e9 / (double)ns;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(double *values, unsigned count, double q)
{
	qsort(values, count, sizeof(*values), by_size);
	return values[(unsigned)(q * (count - 1) + 0.5)];
}

static void compare(struct stage *s)
{
	static double ratio[BLOCKS_MAX];
	static double same[BLOCKS_MAX];
	static double speed[BLOCKS_MAX];
	struct cost costs[2] = {0};
	struct traffic *traffic = traffic_start(2);

	for (unsigned i = 0; i < s->blocks; i++) {
		const double before = plain_block(s, traffic, &costs[1]);
		const double frames = frames_block(s, &costs[0]);
		const double after = plain_block(s, traffic, &costs[1]);

		speed[i] = frames;
		ratio[i] = frames / ((before + after) / 2);
		same[i] = after / before;
	}
	traffic_stop(traffic);
	printf("%s, %u bytes, %u blocks of %" PRIu64
	       " frames: %.0f frames/s; ratio %.3f (%.3f .. %.3f), "
	       "A/A %.3f\n",
	       s->wait ? "wait" : "poll", s->size, s->blocks, s->frames,
	       quantile(speed, s->blocks, 0.5), quantile(ratio, s->blocks, 0.5),
	       quantile(ratio, s->blocks, 0.25), quantile(ratio, s->blocks, 0.75),
	       quantile(same, s->blocks, 0.5));
	for (int i = 0; i < 2; i++)
		printf("%s: %.2f us of processor time, %.3f context switches for each\n",
		       i == 0 ? "frames" : "plain", costs[i].cpu_us / costs[i].frames,
		       costs[i].switches / costs[i].frames);
}

int main(int argc, char **argv)
{
	struct stage s = {.uris = {"loop", "loop"}, .blocks = 40, .frames = 2000, .size = 64};
	const struct sample_option options[] = {
		{"--blocks", "N", "of each kind in turn (40)", .number = &s.blocks, .min = 1,
	         .max = BLOCKS_MAX},
		{"--frames", "N", "in a block (2000)", .wide_number = &s.frames, .min = 1},
		{"--size", "BYTES", "of a frame (64)", .number = &s.size, .min = 1,
	         .max = UINT32_MAX},
		{"--wait", NULL, "sleep when there is nothing", .flag = &s.wait},
	};
	const struct sample_program program = {
		.name = "ndx-frames",
		.synopsis = "[URI [URI]] [options]",
		.about = "Frames through a sender and a receiver beside the same messages over "
			 "plain queue\npairs.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	size_t operands;
	int code;

	if (!sample_parse(&program, argc, argv, &operands, &code))
		return code;
	if (operands > 0) {
		s.uris[0] = argv[1];
		s.uris[1] = argv[operands];
	}
	compare(&s);
	return 0;
}
