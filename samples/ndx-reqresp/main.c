/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-reqresp: a client and a server that exchange verified requests and responses over any
 * adapter, and disconnect without losing a message. It shows every call of the object model in its
 * usual place.
 */
#include "negotiated.h"
#include "reqresp.h"
#include "sample_options.h"
#include "sample_report.h"
#include "wire.h"

static const char about[] =
	"Exchanges N requests and responses between two processes and checks every byte.\n"
	"  server   listens and answers clients, one after the other\n"
	"  client   connects to ADDRESS:PORT and sends the requests\n"
	"  both     runs the two in one process, which is all that 'loop' can connect";

static const char details[] =
	"Without --adapter the adapter is $NDX_ADAPTER, else the INI file's, else chosen by the\n"
	"library. Numbers may end in k, M or G. SIGINT and SIGTERM end both sides gracefully;\n"
	"SIGUSR1 prints counters and histories, as --stats does at the end.\n\n"
	"Exit status: 0 all requests verified and both sides said goodbye, 1 something failed,\n"
	"2 command line, 3 the adapter could not be opened.";

static int serve(const void *options, sample_ready_fn *ready, void *arg)
{
	const struct reqresp_options *server = options;

	return server->negotiated ? negotiated_server_run(server, ready, arg)
	                          : server_run(server, ready, arg);
}

static int call(const void *options, const char *address)
{
	struct reqresp_options client = *(const struct reqresp_options *)options;

	client.address = address;
	return client_run(&client);
}

static void stop_server(void)
{
	reqresp_stop = true;
}

static int run_both(const struct reqresp_options *options)
{
	struct reqresp_options server = *options;
	const struct sample_both both = {.program = "ndx-reqresp",
	                                 .server = serve,
	                                 .server_options = &server,
	                                 .client = call,
	                                 .client_options = options,
	                                 .stop = stop_server};

	server.count = 1;
	if (server.negotiated && server.address == NULL)
		server.address = "127.0.0.1:0";
	return sample_run_both(&both);
}

static int play(enum sample_role role, const struct reqresp_options *options)
{
	switch (role) {
	case SAMPLE_SERVER:
		return serve(options, NULL, NULL);
	case SAMPLE_CLIENT:
		return client_run(options);
	case SAMPLE_BOTH:
	default:
		return run_both(options);
	}
}

int main(int argc, char **argv)
{
	struct reqresp_options o = {.requests = 1000,
	                            .seed = 1,
	                            .slots = 4,
	                            .timeout_ms = 10000,
	                            .keepalive_ms = 10000};
	bool quiet = false;
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. ofi:tcp?iface=lo", .text = &o.adapter},
		{"--requests", "N", "client: how many (1000)", .number = &o.requests, .min = 1,
	         .max = UINT32_MAX},
		{"--size", "BYTES", "of a message; server: the largest it takes (4096; 1M)",
	         .number = &o.size, .min = WIRE_HEADER, .max = 64u << 20},
		{"--seed", "N", "client: of the pattern (1)", .number = &o.seed, .min = 0,
	         .max = UINT32_MAX},
		{"--count", "N", "server: end after N clients (0: never)", .number = &o.count,
	         .min = 0, .max = UINT32_MAX},
		{"--hang-up", "N", "server: disconnect after N requests (0: never)",
	         .number = &o.hang_up, .min = 0, .max = UINT32_MAX},
		{"--slots", "N", "server: receives it keeps posted (4)", .number = &o.slots,
	         .min = 1, .max = 1024},
		{"--port-file", "FILE", "server: write the port there once it listens",
	         .text = &o.port_file},
		{"--negotiated", NULL,
	         "be told of the peer over TCP; both sides need the same --size (4096)",
	         .flag = &o.negotiated},
		{"--variant", "PLUGIN/VARIANT", "of --negotiated (that of roce for the adapter)",
	         .text = &o.variant},
		SAMPLE_TLS_OPTIONS(o.tls),
		{"--wait", NULL, "sleep until there is a result instead of polling",
	         .flag = &o.wait},
		{"--timeout", "MS", "for an answer of any kind (10000)", .number = &o.timeout_ms,
	         .min = 1, .max = 1u << 30},
		{"--keepalive", "MS",
	         "idle time after which a silent peer is dead, 0: never (10000)",
	         .number = &o.keepalive_ms, .min = 0, .max = 1u << 30},
		{"--stats", NULL, "print counters and histories as JSON at the end",
	         .flag = &o.stats},
		{"--quiet", NULL, "no progress line", .flag = &quiet},
		{"--verbose", NULL, "the library's log on stderr", .flag = &o.verbose},
	};
	const struct sample_program program = {
		.name = "ndx-reqresp",
		.synopsis = "server|client|both [ADDRESS:PORT] [options]",
		.about = about,
		.details = details,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	enum sample_role role;
	int rc;

	if (!sample_parse_role(&program, argc, argv, &role, &o.address, &rc))
		return rc;
	if (!o.negotiated && sample_tls_given(&o.tls))
		return sample_usage(&program, "--tls-... and --allow-plaintext need --negotiated");
	o.progress = !quiet;
	if (o.size == 0)
		o.size = role == SAMPLE_SERVER && !o.negotiated ? 1u << 20 : 4096;
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	reqresp_catch_signals();
	return play(role, &o);
}
