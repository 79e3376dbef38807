/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-reqresp: a client and a server that exchange verified requests and responses over any
 * adapter, and disconnect without losing a message. It shows every call of the object model in its
 * usual place.
 */
#include <stdio.h>
#include <string.h>

#include "negotiated.h"
#include "reqresp.h"
#include "sample_address.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"
#include "wire.h"

static const char about[] =
	"Exchanges N requests and responses between two processes and checks every byte.\n"
	"  server   listens and answers clients, one after the other; 0.0.0.0:PORT, :PORT and\n"
	"           [::]:PORT are all addresses, PORT alone is the adapter's first one\n"
	"  client   connects to ADDRESS:PORT and sends the requests\n"
	"  both     runs the two in one process, which is all that 'loop' can connect";

static const char examples[] =
	"Both sides in one process\n"
	"  ndx-reqresp both --adapter loop\n"
	"Two processes of this host\n"
	"  ndx-reqresp server 127.0.0.1:7000 --adapter 'ofi:tcp?iface=lo'\n"
	"  ndx-reqresp client 127.0.0.1:7000 --adapter 'ofi:tcp?iface=lo' --requests 100k\n"
	"Two hosts of a network that is trusted; the second line on the other one\n"
	"  ndx-reqresp server :7000 --adapter 'ofi:tcp?iface=eth0&trust=lan'\n"
	"  ndx-reqresp client 10.0.0.2:7000 --adapter 'ofi:tcp?iface=eth0&trust=lan' --json";

static const char details[] =
	"Without --adapter the adapter is $NDX_ADAPTER, else the INI file's, else chosen by the\n"
	"library. In numbers k, M and G are powers of 1000, Ki, Mi and Gi of 1024. SIGINT and\n"
	"SIGTERM end both sides gracefully; SIGUSR1 prints counters and histories, as --stats\n"
	"does at the end.\n\n"
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
	struct sample_address address;
	const char *why;
	char port[8];

	server.count = 1;
	if (server.negotiated && server.address == NULL)
		server.address = "127.0.0.1:0";
	if (!server.negotiated && server.address != NULL &&
	    sample_address_parse(server.address, &address, &why) &&
	    sample_address_is_any(&address)) {
		/* the client cannot connect to all addresses: the adapter's first one */
		snprintf(port, sizeof(port), "%u", sample_address_port(&address));
		server.address = port;
	}
	return sample_run_both(&both);
}

static bool is_of_loop(const char *uri)
{
	return uri != NULL && strncmp(uri, "loop", 4) == 0 && (uri[4] == '\0' || uri[4] == '?');
}

static int play(enum sample_role role, const struct reqresp_options *options)
{
	switch (role) {
	case SAMPLE_SERVER:
		if (is_of_loop(options->adapter)) {
			fprintf(stderr,
			        "ndx-reqresp server: loop connects within one process only; "
			        "say ndx-reqresp both\n");
			return SAMPLE_EXIT_USAGE;
		}
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
		SAMPLE_ROW_ADAPTER(o.adapter),
		{"--requests", "N", "client: how many (1000)", .number = &o.requests, .min = 1,
	         .max = UINT32_MAX},
		{"--size", "BYTES", "of a message; server: the largest it takes (4096; 1Mi)",
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
		SAMPLE_ROW_TIMEOUT_MS(o.timeout_ms),
		{"--keepalive", "MS",
	         "idle time after which a silent peer is dead, 0: never (10000)",
	         .number = &o.keepalive_ms, .min = 0, .max = 1u << 30},
		{"--stats", NULL, "print counters and histories as JSON at the end",
	         .flag = &o.stats},
		{"--plot", "FILE", "client: an SVG of the latency", .text = &o.plot},
		SAMPLE_ROW_JSON(o.json),
		SAMPLE_ROW_QUIET(quiet),
		SAMPLE_ROW_VERBOSE(o.verbose),
	};
	const struct sample_program program = {
		.name = "ndx-reqresp",
		.synopsis = "server|client|both [ADDRESS:PORT] [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	enum sample_role role;
	FILE *out;
	int rc;

	if (!sample_parse_role(&program, argc, argv, &role, &o.address, &rc))
		return rc;
	if (!o.negotiated && sample_tls_given(&o.tls))
		return sample_usage(&program, "--tls-... and --allow-plaintext need --negotiated");
	if (o.plot != NULL && role == SAMPLE_SERVER)
		return sample_usage(&program, "--plot is for the client, which measures");
	if (o.plot != NULL && strcmp(o.plot, "-") == 0)
		return sample_usage(&program, "--plot needs a FILE; other text goes to stdout");
	o.progress = !quiet;
	if (o.size == 0)
		o.size = role == SAMPLE_SERVER && !o.negotiated ? 1u << 20 : 4096;
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	rc = sample_json_open("ndx-reqresp", o.json, &out);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	reqresp_catch_signals();
	rc = play(role, &o);
	return sample_end("ndx-reqresp", sample_json_end("ndx-reqresp", out, NULL, rc));
}
