/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-recv: receives frames without a copy over any adapter; verifies them, or writes them to a
 * file. One sender after the other: the slab stays, each sender gets a new queue pair.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#include "sample_frames.h"
#include "sample_json.h"
#include "sample_listen.h"
#include "sample_options.h"
#include "sample_report.h"
#include "sample_stop.h"

#define WHO "ndx-recv"
#define SLICE_MS 200u    /* how often it checks whether to stop */
#define ACCEPT_MS 10000u /* time for a sender to complete its connect */

static const char about[] =
	"Receives frames from ndx-send, one sender after the other, without copying them.\n"
	"Every byte is checked unless --raw is given.";

static const char examples[] =
	"Check the frames of one ndx-send on this host\n"
	"  ndx-recv 127.0.0.1:7000 --adapter 'ofi:tcp?iface=lo'\n"
	"Write the frames of every sender of a network that is trusted to a file\n"
	"  ndx-recv :7000 --adapter 'ofi:tcp?iface=eth0&trust=lan' --senders 0 --raw --file "
	"frames\n"
	"All counters of a run, for programs\n"
	"  ndx-recv :7000 --json=counters.json";

static const char details[] =
	"0.0.0.0:PORT, :PORT and [::]:PORT are all addresses; PORT alone, or nothing, is the\n"
	"adapter's first one.\n\n"
	"Without --adapter the adapter is $NDX_ADAPTER, else the INI file's, else chosen by the\n"
	"library. In numbers k, M and G are powers of 1000, Ki, Mi and Gi of 1024. SIGINT and\n"
	"SIGTERM end it gracefully.\n\n"
	"Exit status: 0 every frame was whole and none was lost, 1 something failed,\n"
	"2 command line, 3 the adapter could not be opened.";

struct options {
	const char *adapter;
	const char *address;
	const char *port_file;
	const char *file;
	uint32_t slots;
	uint32_t slot_size;
	uint32_t senders;
	uint32_t idle_ms;
	uint32_t probe_ms;
	uint32_t copy_below;
	uint32_t spin_us;
	uint32_t rnr_timer;
	bool write_mode;
	bool raw;
	const char *json;
	bool quiet;
	bool verbose;
};

struct run {
	const struct options *options;
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct ndx_receiver *receiver;
	FILE *file;
	json_t *counters;          /* for --json; NULL until the end */
	uint64_t expected;         /* number of the next frame; used by the receiving thread only */
	atomic_uint_least64_t bad; /* frames with a wrong byte or out of order */
	atomic_bool file_failed;
};

static atomic_bool stop_asked;

static void ask_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = true;
}

static bool check(void *context, const struct ndx_frame *frame)
{
	struct run *run = context;
	uint64_t number = 0;
	const bool good =
		sample_frame_check(frame->data, frame->length, &number) && number >= run->expected;

	/* The receiver itself counts missing numbers as lost. */
	if (good)
		run->expected = number + 1;
	else
		run->bad++;
	return good;
}

static bool write_frame(void *context, const struct ndx_frame *frame)
{
	struct run *run = context;

	if (fwrite(frame->data, 1, frame->length, run->file) == frame->length)
		return true;
	run->file_failed = true;
	return false;
}

static struct ndx_receiver_stats stats_of(const struct run *run)
{
	struct ndx_receiver_stats stats = {.size = sizeof(stats)};

	(void)ndx_receiver_get_stats(run->receiver, &stats);
	return stats;
}

/* One status line, overwritten each time. */
static void show(const struct run *run, struct ndx_receiver_stats *before)
{
	const struct ndx_receiver_stats now = stats_of(run);
	const double s = (double)(now.time_ns - before->time_ns) / 1e9;

	if (run->options->quiet || s < 1)
		return;
	fprintf(stderr,
	        "\r%" PRIu64 " frames  %.0f/s  %.1f MB/s  %u of %u slots posted (low %u)  "
	        "lost %" PRIu64 "  bad %" PRIu64 "   ",
	        now.frames, (double)(now.frames - before->frames) / s,
	        (double)(now.bytes - before->bytes) / s / 1e6, now.posted, now.slots, now.low_water,
	        now.lost, (uint64_t)run->bad);
	*before = now;
}

/* Wait for a connection request, without a limit; NDX_E_CANCELED: stop. */
static enum ndx_status next_sender(struct run *run, struct ndx_connector *connector)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	st = ndx_listener_get_connection_request(run->listener, connector, &ov);
	if (st != NDX_PENDING)
		return st;
	do
		st = ndx_overlapped_wait(&ov, SLICE_MS);
	while (st == NDX_PENDING && !stop_asked);
	if (st != NDX_PENDING)
		return st;
	(void)ndx_listener_cancel(run->listener);
	return NDX_E_CANCELED;
}

/* Accept the sender, with the greeting as private data. */
static enum ndx_status welcome(struct run *run, struct ndx_connector *connector)
{
	struct ndx_connect_attr attr;
	struct sample_greeting greeting = {.by_write = run->options->write_mode,
	                                   .slot_size = run->options->slot_size,
	                                   .slot_count = run->options->slots};
	struct ndx_memory_description memory;
	uint8_t bytes[SAMPLE_GREETING_BYTES];
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	(void)ndx_receiver_get_memory(run->receiver, &memory);
	greeting.address = greeting.by_write ? memory.address : 0;
	greeting.token = memory.token;
	sample_greeting_write(&greeting, bytes);
	ndx_connect_attr_init(&attr);
	attr.private_data = bytes;
	attr.private_data_len = sizeof(bytes);
	st = ndx_connector_accept(connector, ndx_receiver_get_qp(run->receiver), &attr, &ov);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, ACCEPT_MS);
	if (st != NDX_PENDING)
		return st;
	(void)ndx_connector_cancel(connector);
	return NDX_E_IO_TIMEOUT;
}

/*
 * The receiver runs when this returns NDX_OK. A sender that gives up while it connects is ignored.
 */
static enum ndx_status await_sender(struct run *run)
{
	struct ndx_connector *connector = NULL;
	enum ndx_status st = ndx_receiver_prepare(run->receiver);

	while (st == NDX_OK) {
		st = ndx_connector_create(run->adapter, NULL, &connector);
		if (st != NDX_OK)
			break;
		st = next_sender(run, connector);
		if (st == NDX_OK && welcome(run, connector) == NDX_OK)
			return ndx_receiver_start(run->receiver, connector);
		ndx_connector_close(connector);
	}
	return st;
}

/* Serve one sender, from its connect to its end. */
static int serve(struct run *run)
{
	struct ndx_receiver_stats before;
	struct ndx_receiver_cause cause;
	enum ndx_status st = await_sender(run);
	const char *how;

	if (st != NDX_OK)
		return stop_asked ? SAMPLE_EXIT_OK : sample_failed(WHO, st, "wait for a sender");
	before = stats_of(run);
	while (ndx_receiver_get_state(run->receiver) == NDX_RECEIVER_RUNNING && !stop_asked) {
		(void)poll(NULL, 0, (int)SLICE_MS);
		show(run, &before);
	}
	if (stop_asked)
		(void)ndx_receiver_stop(run->receiver);
	ndx_receiver_get_cause(run->receiver, &cause);
	if (!run->options->quiet)
		fputc('\n', stderr);
	how = ndx_receiver_end_name(cause.end);
	if (strcmp(how, cause.text) == 0)
		cause.text[0] = '\0'; /* "stopped" needs no other word */
	printf("sender gone: %s%s%s\n", how, cause.text[0] != '\0' ? ": " : "", cause.text);
	(void)fflush(stdout);
	return cause.status == NDX_OK ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED;
}

static int serve_all(struct run *run)
{
	const uint32_t senders = run->options->senders;
	int rc = SAMPLE_EXIT_OK;

	for (uint32_t i = 0; (senders == 0 || i < senders) && !stop_asked; i++) {
		enum ndx_status st = i > 0 ? ndx_receiver_reset(run->receiver) : NDX_OK;

		if (st != NDX_OK)
			return sample_failed(WHO, st, "begin anew");
		run->expected = 0;
		if (serve(run) != SAMPLE_EXIT_OK)
			rc = SAMPLE_EXIT_FAILED;
	}
	return rc;
}

static int report(struct run *run)
{
	const struct ndx_receiver_stats s = stats_of(run);
	char *json = NULL;
	enum ndx_status st;

	printf("%" PRIu64 " frames, %" PRIu64 " bytes, %" PRIu64 " lost, %" PRIu64
	       " bad; %u of %u slots back; slots ran out %" PRIu64 " times, for %.3f s\n",
	       s.frames, s.bytes, s.lost, (uint64_t)run->bad, s.slots - s.held, s.slots,
	       s.out_of_slots, (double)s.out_of_slots_ns / 1e9);
	if (run->options->json != NULL) {
		st = ndx_receiver_snapshot(run->receiver, &json);
		if (st != NDX_OK)
			return sample_failed(WHO, st, "make a snapshot");
		run->counters = json_loads(json, 0, NULL);
		free(json);
	}
	if (run->file_failed || (run->file != NULL && fflush(run->file) != 0)) {
		fprintf(stderr, WHO ": %s: not all could be written\n", run->options->file);
		return SAMPLE_EXIT_FAILED;
	}
	return s.lost == 0 && run->bad == 0 && s.held == 0 ? SAMPLE_EXIT_OK : SAMPLE_EXIT_FAILED;
}

static int make_receiver(struct run *run)
{
	const struct options *o = run->options;
	struct ndx_receiver_attr attr;
	enum ndx_status st;
	int consumers = 0;

	ndx_receiver_attr_init(&attr);
	attr.adapter = run->adapter;
	attr.mode = o->write_mode ? NDX_RECEIVER_WRITE : NDX_RECEIVER_SEND;
	attr.slot_size = o->slot_size;
	attr.slot_count = o->slots;
	if (o->write_mode) /* as ndx_sender_set_memory() chooses it */
		attr.sequence_wrap = attr.sequence_wrap / o->slots * o->slots;
	attr.idle_timeout_ms = o->idle_ms;
	attr.probe_ms = o->probe_ms;
	attr.copy_below = o->copy_below;
	attr.copy_count = o->copy_below > 0 ? o->slots : 0;
	attr.spin_us = o->spin_us;
	attr.rnr_timer = o->rnr_timer;
	if (!o->raw)
		attr.consumers[consumers++] =
			(struct ndx_frame_consumer){check, run, NDX_CHANNEL_ANY};
	if (run->file != NULL)
		attr.consumers[consumers++] =
			(struct ndx_frame_consumer){write_frame, run, NDX_CHANNEL_ANY};
	st = ndx_receiver_create(&attr, &run->receiver);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "create a receiver");
	return SAMPLE_EXIT_OK;
}

static int receive(struct run *run)
{
	char text[SAMPLE_ADDRESS_TEXT];
	struct sample_address address;
	int rc = sample_listen(WHO, run->adapter, run->options->address, &run->listener, &address);
	int reported;

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = make_receiver(run);
	if (rc != SAMPLE_EXIT_OK)
		goto close_listener;
	if (run->options->port_file != NULL) {
		rc = sample_write_port(run->options->port_file, &address);
		if (rc != SAMPLE_EXIT_OK)
			goto close_receiver;
	}
	printf("listening on %s\n", sample_address_format(&address, text, sizeof(text)));
	(void)fflush(stdout);
	rc = serve_all(run);
	(void)ndx_receiver_stop(run->receiver);
	reported = report(run);
	rc = rc != SAMPLE_EXIT_OK ? rc : reported;
close_receiver:
	ndx_receiver_close(run->receiver);
close_listener:
	ndx_listener_close(run->listener);
	return rc;
}

static int receive_into_file(struct run *run)
{
	const char *name = run->options->file;
	int rc;

	if (name == NULL)
		return receive(run);
	run->file = fopen(name, "wb");
	if (run->file == NULL) {
		perror(name);
		return SAMPLE_EXIT_FAILED;
	}
	rc = receive(run);
	if (fclose(run->file) != 0 && rc == SAMPLE_EXIT_OK) {
		perror(name);
		rc = SAMPLE_EXIT_FAILED;
	}
	return rc;
}

static int start(const struct options *o)
{
	struct run run = {.options = o};
	FILE *out;
	int rc = sample_json_open(WHO, o->json, &out);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = sample_open_adapter(WHO, o->adapter, &run.adapter);
	if (rc == SAMPLE_EXIT_OK) {
		rc = receive_into_file(&run);
		ndx_adapter_close(run.adapter);
	}
	return sample_end(WHO, sample_json_end(WHO, out, run.counters, rc));
}

int main(int argc, char **argv)
{
	struct options o = {.slots = 256,
	                    .slot_size = 9000,
	                    .senders = 1,
	                    .spin_us = 50,
	                    .rnr_timer = NDX_RNR_TIMER_DEFAULT};
	const struct sample_option options[] = {
		SAMPLE_ROW_ADAPTER(o.adapter),
		{"--slots", "N", "slots of the slab (256)", .number = &o.slots, .min = 1,
	         .max = 65536},
		{"--slot-size", "BYTES", "longest frame (9000)", .number = &o.slot_size,
	         .min = SAMPLE_FRAME_HEADER, .max = 16u << 20},
		{"--senders", "N", "end after N senders, 0: never (1)", .number = &o.senders,
	         .max = UINT32_MAX},
		{"--file", "FILE", "write the frames there, one behind the other", .text = &o.file},
		{"--raw", NULL, "do not check the frames", .flag = &o.raw},
		{"--write", NULL, "let senders write into the slab", .flag = &o.write_mode},
		{"--copy-below", "N", "copy frames out with fewer slots posted (0: never)",
	         .number = &o.copy_below, .max = 65536},
		{"--idle", "MS", "give up on a sender that sends nothing, 0: never (0)",
	         .number = &o.idle_ms, .max = 1u << 30},
		{"--probe", "MS", "ask a silent sender for a sign of life, 0: never (0)",
	         .number = &o.probe_ms, .max = 1u << 30},
		{"--spin", "US", "poll for so long before sleeping (50)", .number = &o.spin_us,
	         .max = 1u << 20},
		{"--rnr-timer", "CODE",
	         "how long senders wait that found no slot, 0 .. 31: 655 ms, 0.01 .. 491 ms",
	         .number = &o.rnr_timer, .max = 31},
		{"--port-file", "FILE", "write the port there once it listens",
	         .text = &o.port_file},
		SAMPLE_ROW_JSON(o.json),
		SAMPLE_ROW_QUIET(o.quiet),
		SAMPLE_ROW_VERBOSE(o.verbose),
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "[ADDRESS:PORT] [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	size_t operands;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (o.raw && o.file == NULL)
		return sample_usage(&program, "--raw without --file: no consumer for the frames");
	o.address = operands == 1 ? argv[1] : NULL;
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	sample_on_stop(ask_stop);
	return start(&o);
}
