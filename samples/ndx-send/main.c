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
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"
#include "sample_stop.h"

#define WHO "ndx-send"
#define SLICE_MS 200u /* a wait looks for a stop so often */

static const char about[] = "Streams N frames to the ndx-recv that listens at ADDRESS:PORT.";

static const char examples[] = "A thousand frames to the ndx-recv of this host\n"
			       "  ndx-send 127.0.0.1:7000 --adapter 'ofi:tcp?iface=lo'\n"
			       "A million frames of 64 KiB to another host, 5000 a second\n"
			       "  ndx-send 10.0.0.2:7000 --frames 1M --size 64Ki --rate 5k";

static const char details[] =
	"Without --adapter the adapter is $NDX_ADAPTER, else the INI file's, else chosen by the\n"
	"library. In numbers k, M and G are powers of 1000, Ki, Mi and Gi of 1024. SIGINT and\n"
	"SIGTERM end it gracefully.\n\n"
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
	const char *json;
	bool verbose;
};

/** What a run came to. */
struct outcome {
	struct ndx_sender_stats stats;
	uint64_t sent;
	double seconds;
};

static atomic_bool stop_asked;

static void ask_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = true;
}

/*
 * Waits are cut into slices, so that a stop ends them: sending goes on for the whole time-out, and
 * the frames under way have a slice to arrive in after a stop.
 */
static enum ndx_status acquire_slot(struct ndx_sender *sender, const struct options *o,
                                    void **buffer)
{
	enum ndx_status st = NDX_PENDING;

	for (uint32_t at = 0; at < o->timeout_ms && st == NDX_PENDING && !stop_asked;
	     at += SLICE_MS)
		st = ndx_sender_acquire(sender, SLICE_MS, buffer);
	return st;
}

static enum ndx_status flush_all(struct ndx_sender *sender, const struct options *o)
{
	enum ndx_status st = NDX_PENDING;
	bool last = false;

	for (uint32_t at = 0; at < o->timeout_ms && st == NDX_PENDING && !last; at += SLICE_MS) {
		last = stop_asked;
		st = ndx_sender_flush(sender, SLICE_MS);
	}
	return st;
}

static int stream(struct ndx_sender *sender, const struct options *o, uint64_t *sent)
{
	enum ndx_status st = NDX_OK;

	for (uint64_t n = 0; n < o->frames && !stop_asked && st == NDX_OK; n++) {
		void *buffer;

		st = acquire_slot(sender, o, &buffer);
		if (st != NDX_OK)
			break;
		sample_frame_fill(buffer, o->size, n);
		st = ndx_sender_post(sender, o->size, o->channel);
		if (st == NDX_OK)
			*sent = n + 1;
	}
	if (st == NDX_OK || (st == NDX_PENDING && stop_asked))
		st = flush_all(sender, o);
	if (st == NDX_PENDING && stop_asked) {
		fprintf(stderr, WHO ": stopped before the receiver had all frames\n");
		return SAMPLE_EXIT_FAILED;
	}
	if (st == NDX_PENDING) {
		fprintf(stderr, WHO ": the receiver took nothing for %u ms\n", o->timeout_ms);
		return SAMPLE_EXIT_FAILED;
	}
	if (st != NDX_OK) {
		(void)sample_failed(WHO, st, "send frame %" PRIu64, *sent);
		(void)sample_show_cause(ndx_sender_get_connector(sender));
		return SAMPLE_EXIT_FAILED;
	}
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

static void print_outcome(const struct options *o, const struct outcome *out)
{
	const struct ndx_sender_stats *stats = &out->stats;

	printf("%" PRIu64 " frames of %u bytes sent, %" PRIu64
	       " delivered; %.3f s, %.0f frames/s, %.1f MB/s; %" PRIu64 " waits for the receiver\n",
	       out->sent, o->size, stats->frames, out->seconds,
	       (double)stats->frames / out->seconds, (double)stats->bytes / out->seconds / 1e6,
	       stats->waits);
	(void)fflush(stdout);
}

static json_t *outcome_json(const struct options *o, const struct outcome *out)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:b}", "frame_bytes", (json_int_t)o->size,
	                 "sent", (json_int_t)out->sent, "delivered", (json_int_t)out->stats.frames,
	                 "bytes", (json_int_t)out->stats.bytes, "seconds", out->seconds, "waits",
	                 (json_int_t)out->stats.waits, "stopped", stop_asked ? 1 : 0);
}

static int send_all(struct ndx_sender *sender, const struct options *o,
                    const struct sample_address *to, struct outcome *out)
{
	struct timespec begin;
	enum ndx_status st;
	int rc;

	st = ndx_sender_connect(sender, (const struct sockaddr *)&to->storage, to->length, NULL, 0,
	                        o->timeout_ms);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "connect to %s", o->address);
	sample_on_stop(ask_stop); /* before this, there is nothing to end gracefully */
	rc = agree(sender, o);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	rc = stream(sender, o, &out->sent);
	out->seconds = seconds_since(&begin);
	(void)ndx_sender_get_stats(sender, &out->stats);
	print_outcome(o, out);
	return rc;
}

static int run(const struct options *o, const struct sample_address *to, struct outcome *out)
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
	rc = send_all(sender, o, to, out);
	ndx_sender_close(sender);
	return rc;
}

static int start(const struct options *o, const struct sample_address *to)
{
	struct outcome outcome = {.stats.size = sizeof(outcome.stats)};
	FILE *out;
	int rc = sample_json_open(WHO, o->json, &out);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = run(o, to, &outcome);
	return sample_end(WHO, sample_json_end(WHO, out, outcome_json(o, &outcome), rc));
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
		SAMPLE_ROW_ADAPTER(o.adapter),
		{"--frames", "N", "how many (1000)", .number = &o.frames, .max = UINT32_MAX},
		{"--size", "BYTES", "of a frame (4096)", .number = &o.size,
	         .min = SAMPLE_FRAME_HEADER, .max = 16u << 20},
		{"--slots", "N", "frames under way (16)", .number = &o.slots, .min = 1,
	         .max = 4096},
		{"--rate", "N", "frames per second at most, 0: no limit (0)", .number = &o.rate,
	         .max = UINT32_MAX},
		{"--channel", "N", "channel number (1)", .number = &o.channel, .max = UINT8_MAX},
		SAMPLE_ROW_TIMEOUT_MS(o.timeout_ms),
		{"--no-receive", "MS",
	         "how long the receiver may be without a slot, 0: for ever "
	         "(4000)",
	         .number = &o.no_receive_ms, .max = 1u << 30},
		{"--spin", "US", "poll for so long before sleeping (50)", .number = &o.spin_us,
	         .max = 1u << 20},
		SAMPLE_ROW_JSON(o.json),
		SAMPLE_ROW_VERBOSE(o.verbose),
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "ADDRESS:PORT [options]",
		.about = about,
		.details = details,
		.examples = examples,
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
	if (!sample_address_parse_peer(o.address, &to, &why))
		return sample_usage(&program, "%s: %s", o.address, why);
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	return start(&o, &to);
}
