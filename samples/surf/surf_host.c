/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * surf-host: brings up an FPGA with the RoCE engine of the surf library, receives frames from it,
 * sends frames to it over the same connection, and shuts it down. docs/surf.md explains the
 * program.
 *
 * The FPGA does not run NDX: the plugin surf writes its registers, and its queue pair is connected
 * by numbers. For another device that is connected by numbers, start from this program, with
 * another plugin.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <ndx/ndx.h>

#include "sample_frames.h"
#include "sample_negotiation.h"
#include "sample_options.h"
#include "sample_report.h"
#include "sample_stop.h"

#define WHO "surf-host"
#define SLICE_MS 20
#define SEND_MS 10000u
#define FRAME 4096u

static const char about[] =
	"Brings up the FPGA whose register bus is at HOST:PORT (SRPv3 over TCP), takes frames "
	"from\n"
	"it and sends it some; every byte is checked. ndx-surf-fpga is an emulated one.";

static const char details[] =
	"Settings are those of plugin surf, variant gen1: fpga-ip=10.9.0.2 must be there.\n"
	"SIGINT and SIGTERM end it gracefully, also while the FPGA is brought up.\n\n"
	"Exit status: 0 every frame was whole and none was lost, 1 something failed,\n"
	"2 command line, 3 the adapter could not be opened.";

struct options {
	const char *registers;
	const char *adapter;
	const char *address;
	const char *settings;
	const char *plugins;
	uint32_t frames;
	uint32_t send;
	uint32_t timeout_ms;
	bool verbose;
};

struct host {
	const struct options *options;
	struct sample_negotiation negotiation;
	struct ndx_adapter *adapter;
	struct ndx_receiver *receiver;
	struct ndx_connector *connector;
	struct ndx_session *session;
	uint64_t expected; /* number of the next frame; used by the receiving thread only */
	atomic_uint_least64_t good; /* frames */
	atomic_uint_least64_t bad;
	uint32_t sent;
	atomic_bool bring_up_ended; /* the bring-up has ended */
};

static atomic_bool stop_asked;

static void ask_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = true;
}

/* The receiving thread calls this for each frame; the frame is not copied. */
static bool check(void *context, const struct ndx_frame *frame)
{
	struct host *h = context;
	uint64_t number = 0;
	const bool good =
		sample_frame_check(frame->data, frame->length, &number) && number == h->expected;

	h->expected++;
	if (good)
		h->good++;
	else
		h->bad++;
	return good;
}

/*
 * Create a receiver with its slots posted, and a connector at the address that the FPGA can reach.
 */
static int make_receiver(struct host *h)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	struct ndx_receiver_attr attr;
	enum ndx_status st;

	(void)inet_pton(AF_INET, h->options->address, &here.sin_addr);
	ndx_receiver_attr_init(&attr);
	attr.adapter = h->adapter;
	attr.consumers[0] = (struct ndx_frame_consumer){check, h, NDX_CHANNEL_ANY};
	st = ndx_receiver_create(&attr, &h->receiver);
	if (st == NDX_OK)
		st = ndx_receiver_prepare(h->receiver);
	if (st == NDX_OK)
		st = ndx_connector_create(h->adapter, NULL, &h->connector);
	if (st == NDX_OK)
		st = ndx_connector_bind(h->connector, (struct sockaddr *)&here, sizeof(here));
	return st == NDX_OK ? SAMPLE_EXIT_OK : sample_failed(WHO, st, "make a receiver");
}

/* A signal handler must not cancel a session; a separate thread may. */
static void *watch_main(void *arg)
{
	struct host *h = arg;

	while (!h->bring_up_ended && !stop_asked)
		(void)poll(NULL, 0, SLICE_MS);
	if (!h->bring_up_ended)
		ndx_session_cancel(h->session);
	return NULL;
}

static int run_session(struct host *h)
{
	pthread_t thread;
	enum ndx_status st;

	if (pthread_create(&thread, NULL, watch_main, h) != 0)
		return sample_failed(WHO, NDX_E_INSUFFICIENT_RESOURCES, "start a thread");
	(void)pthread_setname_np(thread, "surf-watch");
	st = ndx_session_run(h->session);
	h->bring_up_ended = true;
	(void)pthread_join(thread, NULL);
	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	sample_session_failed(WHO, h->session);
	return SAMPLE_EXIT_FAILED;
}

/*
 * Run the session with the register bus. Then both queue pairs are connected, and the FPGA's
 * dispatcher is on.
 */
static int bring_up(struct host *h)
{
	const char *const servers[] = {h->options->registers};
	struct ndx_peer_description fpga = {0};
	struct ndx_agreement agreed = {0};
	struct ndx_session_attr attr;
	enum ndx_status st;

	ndx_session_attr_init(&attr);
	attr.variant = h->negotiation.variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.attempts = 1;
	attr.stage_timeout_ms = h->options->timeout_ms;
	attr.connector = h->connector;
	attr.qp = ndx_receiver_get_qp(h->receiver);
	/* The FPGA needs the slab's address, although it has no access right in mode SEND. */
	(void)ndx_receiver_get_memory(h->receiver, &attr.memory);
	st = ndx_session_create(&attr, &h->session);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "make a session");
	if (run_session(h) != SAMPLE_EXIT_OK)
		return SAMPLE_EXIT_FAILED;
	st = ndx_receiver_start(h->receiver, h->connector);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "start the receiver");
	h->connector = NULL; /* the receiver owns it now */
	(void)ndx_session_get_agreement(h->session, NULL, &fpga, &agreed);
	printf("up: the FPGA's queue pair 0x%06x, path MTU %u\n", fpga.qpn, agreed.mtu);
	(void)fflush(stdout);
	return SAMPLE_EXIT_OK;
}

/* Send frames to the FPGA over the same connection. */
static int send_frames(struct host *h)
{
	struct ndx_sender_attr attr;
	struct ndx_sender *sender;
	enum ndx_status st;

	ndx_sender_attr_init(&attr);
	attr.receiver = h->receiver;
	attr.slot_size = FRAME;
	st = ndx_sender_create(&attr, &sender);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "create a sender");
	for (uint32_t n = 0; st == NDX_OK && n < h->options->send && !stop_asked; n++) {
		void *buffer;

		st = ndx_sender_acquire(sender, SEND_MS, &buffer);
		if (st != NDX_OK)
			break;
		sample_frame_fill(buffer, FRAME, n);
		st = ndx_sender_post(sender, FRAME, 0);
		h->sent += st == NDX_OK;
	}
	if (st == NDX_OK)
		st = ndx_sender_flush(sender, SEND_MS);
	ndx_sender_close(sender);
	return st == NDX_OK ? SAMPLE_EXIT_OK : sample_failed(WHO, st, "send frames");
}

static void receive_frames(const struct host *h)
{
	while (h->good + h->bad < h->options->frames && !stop_asked &&
	       ndx_receiver_get_state(h->receiver) == NDX_RECEIVER_RUNNING)
		(void)poll(NULL, 0, SLICE_MS);
}

/*
 * End the FPGA first: with its dispatcher off no frame is in flight, and closing the session
 * destroys its queue pair. Then end the host's queue pair.
 */
static int take_down(struct host *h)
{
	enum ndx_status st = NDX_OK;
	int rc = SAMPLE_EXIT_OK;

	if (ndx_session_get_state(h->session) == NDX_SESSION_CONNECTED)
		st = ndx_session_execute(h->session, NDX_STAGE_DONE);
	/* After a signal, closing the session does the rest. */
	if (st != NDX_OK && st != NDX_E_CANCELED) {
		sample_session_failed(WHO, h->session);
		rc = SAMPLE_EXIT_FAILED;
	}
	ndx_session_close(h->session);
	h->session = NULL;
	(void)ndx_receiver_stop(h->receiver);
	return rc;
}

static int report(const struct host *h)
{
	struct ndx_receiver_stats s = {.size = sizeof(s)};
	struct ndx_receiver_cause cause;

	(void)ndx_receiver_get_stats(h->receiver, &s);
	ndx_receiver_get_cause(h->receiver, &cause);
	printf("%" PRIu64 " frames, %" PRIu64 " lost, %" PRIu64 " bad; %u sent; %u of %u slots "
	       "back; end: %s\n",
	       (uint64_t)h->good, s.lost, (uint64_t)h->bad, h->sent, s.slots - s.held, s.slots,
	       ndx_receiver_end_name(cause.end));
	return s.lost == 0 && h->bad == 0 && s.held == 0 &&
	                       (h->good >= h->options->frames || h->options->frames == UINT32_MAX)
	               ? SAMPLE_EXIT_OK
	               : SAMPLE_EXIT_FAILED;
}

static int run(struct host *h)
{
	int rc = make_receiver(h);
	int down;

	if (rc == SAMPLE_EXIT_OK)
		rc = bring_up(h);
	if (rc == SAMPLE_EXIT_OK) {
		rc = send_frames(h);
		if (rc == SAMPLE_EXIT_OK)
			receive_frames(h);
		down = take_down(h);
		rc = rc != SAMPLE_EXIT_OK ? rc : down;
		down = report(h);
		rc = rc != SAMPLE_EXIT_OK ? rc : down;
	}
	/* Also after a failure the FPGA's queue pair ends before the host's. */
	ndx_session_close(h->session);
	ndx_connector_close(h->connector);
	ndx_receiver_close(h->receiver);
	return rc;
}

static int start(const struct options *o)
{
	struct host host = {.options = o};
	int rc = sample_open_adapter(WHO, o->adapter, &host.adapter);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = sample_negotiation_open(&host.negotiation, WHO, "surf/gen1", o->settings, o->plugins,
	                             "--plugins");
	if (rc == SAMPLE_EXIT_OK)
		rc = run(&host);
	sample_negotiation_close(&host.negotiation);
	ndx_adapter_close(host.adapter);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {.frames = 1000, .send = 1000, .timeout_ms = 30000};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. verbs:mlx5_0", .text = &o.adapter},
		{"--address", "IPV4", "the own address that the FPGA can reach",
	         .text = &o.address},
		{"--set", "NAME=VALUE,...", "settings, see below", .text = &o.settings},
		{"--plugins", "DIRECTORY", "where plugins are, absolute", .text = &o.plugins},
		{"--frames", "N", "to be received, 0: until a signal comes (1000)",
	         .number = &o.frames, .max = UINT32_MAX},
		{"--send", "N", "to be sent (1000)", .number = &o.send, .max = UINT32_MAX},
		{"--timeout", "MS", "for the whole bring-up (30000)", .number = &o.timeout_ms,
	         .min = 1, .max = 1u << 30},
		{"--verbose", NULL, "the library's log on stderr", .flag = &o.verbose},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "HOST:PORT --address IPV4 --set fpga-ip=IPV4,... [options]",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	struct in_addr address;
	size_t operands;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (operands == 0)
		return sample_usage(&program, "at which HOST:PORT is the register bus?");
	if (o.address == NULL || inet_pton(AF_INET, o.address, &address) != 1)
		return sample_usage(&program, "--address: which IPv4 address can the FPGA reach?");
	o.registers = argv[1];
	if (o.frames == 0)
		o.frames = UINT32_MAX;
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	sample_on_stop(ask_stop);
	return start(&o);
}
