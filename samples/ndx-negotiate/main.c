/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-negotiate: connects two queue pairs with descriptions that a vendor plugin exchanges in a
 * session over TCP, then transfers verified data over them, on any adapter.
 */
#include <string.h>

#include "negotiate.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"

static const char about[] =
	"Negotiates a connection by a plugin, moves data over it and checks every byte.\n"
	"  server   listens for sessions and serves many at once\n"
	"  client   calls HOST:PORT, or the first that answers of HOST:PORT,HOST:PORT,...\n"
	"  both     runs the two in one process, which is all that 'loop' can connect\n"
	"ndx-negotiate plugins lists what can negotiate here, with all parameters for --set; see\n"
	"ndx-negotiate plugins --help.\n"
	"ndx-negotiate sessions FILE shows what the sessions of a server with --control FILE are\n"
	"doing, and its counters; see ndx-negotiate sessions --help.";

static const char examples[] =
	"Both sides in one process\n"
	"  ndx-negotiate both --adapter loop\n"
	"A server, and a client of this host that shows what the session went through\n"
	"  ndx-negotiate server 127.0.0.1:7000 --adapter 'ofi:tcp?iface=lo' --control "
	"/tmp/control\n"
	"  ndx-negotiate client 127.0.0.1:7000 --adapter 'ofi:tcp?iface=lo' --history\n"
	"What its sessions are doing\n"
	"  ndx-negotiate sessions /tmp/control\n"
	"Sessions over TLS between two hosts\n"
	"  ndx-negotiate server :7000 --tls-cert own.pem --tls-key own.key --tls-ca ca.pem";

static const char details[] =
	"HOST:PORT is of the negotiation: an address, [IPV6]:PORT, or a name. Where the queue "
	"pairs\n"
	"meet is what is negotiated. Plugins are looked for in $NDX_PLUGIN_PATH, then where they "
	"were\n"
	"installed. SIGINT and SIGTERM end each role; sessions are cut off. The\n"
	"server listens at the first address of its adapter, where its clients come from.\n\n"
	"A principal is a client as TLS knows it: the names of its certificate, or its pre-shared\n"
	"key. A line of the FILE of --grants is PLUGIN[/VARIANT] name NAME, of a certificate, or\n"
	"PLUGIN[/VARIANT] psk IDENTITY; who has no line may use nothing. Of connections a second\n"
	"those of ten seconds may come at once. A client beyond a limit is refused, the log says "
	"why,\n"
	"and ndx-negotiate sessions counts the refusals.\n\n"
	"Exit status: 0 all data verified and both sides said goodbye, 1 something failed,\n"
	"2 command line, 3 the adapter could not be opened. After a signal client and both end by\n"
	"it (130 and 143 for a shell), the server with 0, or 1 if a session was cut off.";

static int serve(const void *options, sample_ready_fn *ready, void *arg)
{
	return server_run(options, ready, arg);
}

static int call(const void *options, const char *address)
{
	struct negotiate_options client = *(const struct negotiate_options *)options;

	client.address = address;
	return client_run(&client);
}

static int run_both(const struct negotiate_options *options)
{
	struct negotiate_options server = *options;
	const struct sample_both both = {.program = "ndx-negotiate",
	                                 .server = serve,
	                                 .server_options = &server,
	                                 .client = call,
	                                 .client_options = options,
	                                 .stop = stop_now};

	server.count = 1;
	if (server.address == NULL)
		server.address = "127.0.0.1:0";
	return sample_run_both(&both);
}

static int play(enum sample_role role, const struct negotiate_options *options)
{
	switch (role) {
	case SAMPLE_SERVER:
		return server_run(options, NULL, NULL);
	case SAMPLE_CLIENT:
		return client_run(options);
	case SAMPLE_BOTH:
	default:
		return run_both(options);
	}
}

int main(int argc, char **argv)
{
	struct negotiate_options o = {.messages = 100,
	                              .size = 4096,
	                              .timeout_ms = 10000,
	                              .keepalive_ms = 10000,
	                              .attempts = 3,
	                              .limits = LIMITS_INITIALIZER};
	const struct sample_option options[] = {
		SAMPLE_ROW_ADAPTER(o.adapter),
		{"--variant", "PLUGIN/VARIANT", "what negotiates (that of roce for the adapter)",
	         .text = &o.variant},
		{"--set", "NAME=VALUE,...", "parameters of the variant", .text = &o.settings},
		{"--plugins", "DIRECTORY", "where plugins are, absolute", .text = &o.plugins},
		{"--messages", "N", "client: how many each way (100)", .number = &o.messages,
	         .min = 1, .max = UINT32_MAX},
		{"--size", "BYTES", "of a message, the same on both sides (4096)",
	         .number = &o.size, .min = 16, .max = 16u << 20},
		{"--count", "N", "server: end after N sessions (0: never)", .number = &o.count,
	         .min = 0, .max = UINT32_MAX},
		{"--port-file", "FILE", "server: write the port there once it listens",
	         .text = &o.port_file},
		{"--control", "FILE", "server: a Unix socket that tells its sessions and counters",
	         .text = &o.control},
		{"--attempts", "N", "client: how often each server is tried (3)",
	         .number = &o.attempts, .min = 1, .max = 1000},
		{"--timeout", "MS", "of a stage, and for an answer of any kind (10000)",
	         .number = &o.timeout_ms, .min = 1, .max = 1u << 30},
		{"--keepalive", "MS",
	         "idle time after which a silent peer is dead, 0: never (10000)",
	         .number = &o.keepalive_ms, .min = 0, .max = 1u << 30},
		SAMPLE_TLS_OPTIONS(o.tls),
		LIMIT_OPTIONS(o.limits),
		{"--history", NULL, "client: print what the session went through",
	         .flag = &o.history},
		SAMPLE_ROW_JSON(o.json),
		SAMPLE_ROW_VERBOSE(o.verbose),
	};
	const struct sample_program program = {
		.name = "ndx-negotiate",
		.synopsis = "server|client|both [HOST:PORT[,HOST:PORT...]] [options]",
		.about = about,
		.details = details,
		.examples = examples,
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 2,
	};
	struct sample_tls_choice tls;
	enum sample_role role;
	FILE *out;
	int rc;

	if (argc > 1 && strcmp(argv[1], "plugins") == 0)
		return plugins_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "sessions") == 0)
		return sessions_main(argc - 1, argv + 1);
	if (!sample_parse_role(&program, argc, argv, &role, &o.address, &rc))
		return rc;
	rc = sample_tls_choose("ndx-negotiate", &o.tls, role == SAMPLE_SERVER, &tls);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	if (o.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	rc = sample_json_open("ndx-negotiate", o.json, &out);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = stop_begin();
	if (rc == SAMPLE_EXIT_OK)
		rc = play(role, &o);
	if (*stop_flag() && role != SAMPLE_SERVER)
		sample_json_error("ended by a signal");
	rc = sample_end("ndx-negotiate", sample_json_end("ndx-negotiate", out, NULL, rc));
	if (role != SAMPLE_SERVER)
		stop_by_signal();
	return rc;
}
