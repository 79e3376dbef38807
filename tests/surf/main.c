/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-surf-fpga: an FPGA with the RoCE engine of the surf library, as far as its registers and its
 * queue pair show. Registers over TCP (SRPv3), data by a queue pair of the adapter, one host after
 * the other. What a host leaves behind stays until the next soft reset, as in a real one.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine.h"
#include "sample_frames.h"
#include "sample_options.h"
#include "sample_stop.h"
#include "sample_report.h"
#include "serve.h"

#define WHO "ndx-surf-fpga"

static const char about[] =
	"Is an FPGA to be brought up by plugin surf: serves registers, streams frames to its\n"
	"host, and checks those that the host sends. The UDP engine's client is at 0x20000.";

static const char details[] =
	"--fault makes the request --at (0: the first one of a host) go wrong:\n"
	"  refuse  it is not carried out, the answer is no\n"
	"  lie     it is carried out, the answer has another state\n"
	"  type    it is carried out, the answer is of another type\n"
	"  mute    neither carried out nor answered\n"
	"  wedge   the same, and nothing more is until a soft reset\n\n"
	"Exit status: 0 every host got all frames and nothing is left, 1 not so, 2 command line,\n"
	"3 the adapter could not be opened, or connects no queue pairs by their numbers.";

struct options {
	const char *adapter;
	const char *ip;
	const char *host_ip;
	const char *fault;
	uint32_t at;
	uint32_t port;
	uint32_t hosts;
	uint32_t frames;
	uint32_t size;
	bool sweep;
	bool verbose;
};

static int stop_fd = -1;

static void ask_stop(int signal_number)
{
	const uint64_t one = 1;

	(void)signal_number;
	if (write(stop_fd, &one, sizeof(one)) < 0)
		return;
}

static bool fault_named(const char *name, enum surf_fault *fault)
{
	static const char *const names[] = {
		[SURF_FAULT_NONE] = "none", [SURF_FAULT_REFUSE] = "refuse",
		[SURF_FAULT_LIE] = "lie",   [SURF_FAULT_OTHER_TYPE] = "type",
		[SURF_FAULT_MUTE] = "mute", [SURF_FAULT_WEDGE] = "wedge",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name != NULL ? name : "none", names[i]) != 0)
			continue;
		*fault = (enum surf_fault)i;
		return true;
	}
	return false;
}

static unsigned objects(const struct surf_fpga *fpga)
{
	unsigned count = (unsigned)fpga->pd.used + (unsigned)fpga->qp.used;

	for (unsigned i = 0; i < SURF_FPGA_MRS; i++)
		count += fpga->mr[i].used;
	return count;
}

/* What one host did; `before` is how it was. */
static void report(const struct surf_fpga *fpga, struct engine *e)
{
	printf("host gone: %u requests, %u lost, %u resets, %u objects left, %u of %u queue pairs "
	       "gone; %" PRIu64 " frames sent, %" PRIu64 " received, %" PRIu64 " bad%s%s\n",
	       fpga->requests, fpga->lost, fpga->resets, objects(fpga), e->unmade, e->made,
	       (uint64_t)e->sent, (uint64_t)e->received, (uint64_t)e->bad,
	       e->failure[0] != '\0' ? "; " : "", e->failure);
	(void)fflush(stdout);
	e->failure[0] = '\0';
	e->sent = 0;
	e->received = 0;
}

static void struck(void *state, unsigned request)
{
	(void)state;
	printf("request %u goes wrong\n", request);
	(void)fflush(stdout);
}

static int serve(const struct options *o, struct engine *e, enum surf_fault fault)
{
	static struct surf_fpga fpga;
	uint16_t port = (uint16_t)o->port;
	const int listener = serve_listen(&port);
	bool goes_on = listener >= 0;

	if (listener < 0) {
		perror(WHO ": listen");
		return SAMPLE_EXIT_FAILED;
	}
	fpga.engine = &e->ops;
	fpga.faults[o->at] = fault;
	printf("listening on 127.0.0.1:%u\n", port);
	(void)fflush(stdout);
	for (uint32_t i = 0; goes_on && (o->hosts == 0 || i < o->hosts); i++) {
		if (o->sweep) {
			memset(fpga.faults, 0, sizeof(fpga.faults));
			fpga.faults[i % SURF_FPGA_REQUESTS] = SURF_FAULT_REFUSE;
		}
		goes_on = serve_client(listener, stop_fd, &fpga);
		if (goes_on)
			report(&fpga, e);
	}
	(void)close(listener);
	if (objects(&fpga) == 0 && e->made == e->unmade && e->bad == 0)
		return SAMPLE_EXIT_OK;
	/* Power off. */
	(void)surf_fpga_ops.write32(&fpga, SURF_REG_RESET, SURF_RESET_ON);
	return SAMPLE_EXIT_FAILED;
}

static int start(const struct options *o, struct engine *e, enum surf_fault fault)
{
	int rc = sample_open_adapter(WHO, o->adapter, &e->adapter);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	if (!engine_fits(e->adapter)) {
		ndx_adapter_close(e->adapter);
		return SAMPLE_EXIT_NO_ADAPTER;
	}
	stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sample_on_stop(ask_stop);
	engine_init(e);
	e->ops.struck = struck;
	rc = serve(o, e, fault);
	ndx_adapter_close(e->adapter);
	(void)close(stop_fd);
	return rc;
}

int main(int argc, char **argv)
{
	static struct engine engine;
	struct options o = {.frames = 1000, .size = SURF_FPGA_FRAME, .hosts = 1};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. verbs:rxe1", .text = &o.adapter},
		{"--ip", "ADDRESS", "the FPGA's own IPv4 address", .text = &o.ip},
		{"--host-ip", "ADDRESS", "the host's, if the UDP engine is not told",
	         .text = &o.host_ip},
		{"--frames", "N", "to be sent to each host, 0: no end (1000)", .number = &o.frames,
	         .max = UINT32_MAX},
		{"--size", "BYTES", "of a frame (4096)", .number = &o.size,
	         .min = SAMPLE_FRAME_HEADER, .max = SURF_FPGA_FRAME},
		{"--hosts", "N", "end after N hosts, 0: never (1)", .number = &o.hosts,
	         .max = UINT32_MAX},
		{"--port", "N", "of the registers, 0: any (0)", .number = &o.port,
	         .max = UINT16_MAX},
		{"--fault", "KIND", "what goes wrong, see below", .text = &o.fault},
		{"--at", "N", "with which request (0)", .number = &o.at,
	         .max = SURF_FPGA_REQUESTS - 1},
		{"--sweep", NULL, "refuse the n-th host its n-th request", .flag = &o.sweep},
		{"--verbose", NULL, "the library's log on stderr", .flag = &o.verbose},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "--ip ADDRESS [options]",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
	};
	enum surf_fault fault;
	size_t operands;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (o.ip == NULL || inet_pton(AF_INET, o.ip, &engine.ip) != 1)
		return sample_usage(&program, "--ip: which IPv4 address has the FPGA?");
	if (o.host_ip != NULL && inet_pton(AF_INET, o.host_ip, &engine.host_ip) != 1)
		return sample_usage(&program, "--host-ip %s: no IPv4 address", o.host_ip);
	if (!fault_named(o.fault, &fault))
		return sample_usage(&program, "--fault %s: no such fault", o.fault);
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	engine.frames = o.frames;
	engine.size = o.size;
	return start(&o, &engine, fault);
}
