/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-send: streams frames to ndx-recv over any adapter, as a device would: from a ring of slots,
 * each kept until the receiver has its frame. The receiver can verify each frame.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <ndx/ndx.h>

#include "sample_address.h"
#include "sample_frames.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "ndx-send"

static const char about[] = "Streams N frames to the ndx-recv that listens at ADDRESS:PORT.";

static const char details[] =
	"Without --adapter the adapter is $NDX_ADAPTER, else the INI file's, else chosen by the\n"
	"library. Numbers may end in k, M or G. SIGINT and SIGTERM end it gracefully.\n\n"
	"Exit status: 0 the receiver has every frame, 1 something failed, 2 command line,\n"
	"3 the adapter could not be opened.";

struct options {
	const char *adapter;
	const char *address;
	uint32_t frames;
	uint32_t size;
	uint32_t slots;
	uint32_t rate;
	uint32_t channel;
	uint32_t timeout_ms;
	uint32_t no_receive_ms;
	uint32_t spin_us;
	bool verbose;
};

static atomic_bool stop_asked;

static void ask_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = true;
}

static int stream(struct ndx_sender *sender, const struct options *o, uint64_t *sent)
{
	enum ndx_status st = NDX_OK;

	for (uint64_t n = 0; n < o->frames && !stop_asked && st == NDX_OK; n++) {
		void *buffer;

		st = ndx_sender_acquire(sender, o->timeout_ms, &buffer);
		if (st != NDX_OK)
			break;
		sample_frame_fill(buffer, o->size, n);
		st = ndx_sender_post(sender, o->size, o->channel);
		if (st == NDX_OK)
			*sent = n + 1;
	}
	if (st == NDX_OK)
		st = ndx_sender_flush(sender, o->timeout_ms);
	if (st == NDX_PENDING) {
		fprintf(stderr, WHO ": the receiver took nothing for %u ms\n", o->timeout_ms);
		return SAMPLE_EXIT_FAILED;
	}
	if (st != NDX_OK)
		return sample_failed(WHO, st, "send frame %" PRIu64, *sent);
	return SAMPLE_EXIT_OK;
}

static int agree(struct ndx_sender *sender, const struct options *o)
{
	uint8_t bytes[256];
	size_t length = sizeof(bytes);
	struct ndx_memory_description memory = {0};
	struct sample_greeting greeting;
	enum ndx_status st;

	if (ndx_connector_get_private_data(ndx_sender_get_connector(sender), bytes, &length) !=
	            NDX_OK ||
	    !sample_greeting_read(&greeting, bytes, length)) {
		fprintf(stderr, WHO ": who listens there is not ndx-recv\n");
		return SAMPLE_EXIT_FAILED;
	}
	if (greeting.slot_size < o->size) {
		fprintf(stderr, WHO ": frames of %u bytes do not fit the receiver's slots of %u\n",
		        o->size, greeting.slot_size);
		return SAMPLE_EXIT_FAILED;
	}
	if (!greeting.by_write)
		return SAMPLE_EXIT_OK;
	memory.address = greeting.address;
	memory.length = (uint64_t)greeting.slot_size * greeting.slot_count;
	memory.token = greeting.token;
	st = ndx_sender_set_memory(sender, &memory, greeting.slot_size, greeting.slot_count);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "write into the receiver's slab");
	return SAMPLE_EXIT_OK;
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static int send_all(struct ndx_sender *sender, const struct options *o,
                    const struct sample_address *to)
{
	struct ndx_sender_stats stats = {.size = sizeof(stats)};
	struct timespec begin;
	uint64_t sent = 0;
	enum ndx_status st;
	double s;
	int rc;

	st = ndx_sender_connect(sender, (const struct sockaddr *)&to->storage, to->length, NULL, 0,
	                        o->timeout_ms);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "connect to %s", o->address);
	rc = agree(sender, o);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	rc = stream(sender, o, &sent);
	s = seconds_since(&begin);
	(void)ndx_sender_get_stats(sender, &stats);
	printf("%" PRIu64 " frames of %u bytes sent, %" PRIu64
	       " delivered; %.3f s, %.0f frames/s, %.1f MB/s; %" PRIu64 " waits for the receiver\n",
	       sent, o->size, stats.frames, s, (double)stats.frames / s,
	       (double)stats.bytes / s / 1e6, stats.waits);
	return rc;
}

static int start(const struct options *o, const struct sample_address *to)
{
	struct ndx_sender_attr attr;
	struct ndx_sender *sender;
	enum ndx_status st;
	int rc;

	ndx_sender_attr_init(&attr);
	attr.uri = o->adapter;
	attr.slot_size = o->size;
	attr.slot_count = o->slots;
	attr.rate = o->rate;
	attr.spin_us = o->spin_us;
	attr.no_receive_timeout_ms = o->no_receive_ms > 0 ? o->no_receive_ms : NDX_INFINITE;
	st = ndx_sender_create(&attr, &sender);
	if (st != NDX_OK) {
		(void)sample_failed(WHO, st, "create a sender on %s",
		                    o->adapter != NULL ? o->adapter : "(default)");
		return SAMPLE_EXIT_NO_ADAPTER;
	}
	rc = send_all(sender, o, to);
	ndx_sender_close(sender);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {.frames = 1000,
	                    .size = 4096,
	                    .slots = 16,
	                    .channel = 1,
	                    .timeout_ms = 10000,
	                    .no_receive_ms = 4000,
	                    .spin_us = 50};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. ofi:tcp?iface=lo", .text = &o.adapter},
		{"--frames", "N", "how many (1000)", .number = &o.frames, .max = UINT32_MAX},
		{"--size", "BYTES", "of a frame (4096)", .number = &o.size,
	         .min = SAMPLE_FRAME_HEADER, .max = 16u << 20},
		{"--slots", "N", "frames under way (16)", .number = &o.slots, .min = 1,
	         .max = 4096},
		{"--rate", "N", "frames per second at most, 0: no limit (0)", .number = &o.rate,
	         .max = UINT32_MAX},
		{"--channel", "N", "channel number (1)", .number = &o.channel, .max = UINT8_MAX},
		{"--timeout", "MS", "for an answer of any kind (10000)", .number = &o.timeout_ms,
	         .min = 1, .max = 1u << 30},
		{"--no-receive", "MS",
	         "how long the receiver may be without a slot, 0: for ever "
	         "(4000)",
	         .number = &o.no_receive_ms, .max = 1u << 30},
		{"--spin", "US", "poll for so long before sleeping (50)", .number = &o.spin_us,
	         .max = 1u << 20},
		{"--verbose", NULL, "the library's log on stderr", .flag = &o.verbose},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "ADDRESS:PORT [options]",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	struct sample_address to;
	size_t operands;
	const char *why;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (operands == 0)
		return sample_usage(&program, "to which ADDRESS:PORT?");
	o.address = argv[1];
	if (!sample_address_parse(o.address, &to, &why))
		return sample_usage(&program, "%s: %s", o.address, why);
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	sample_on_stop(ask_stop);
	return start(&o, &to);
}
