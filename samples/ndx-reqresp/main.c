/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-reqresp: a client and a server that exchange verified requests and responses over any
 * adapter, and disconnect without losing a message. It shows every call of the object model in its
 * usual place.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/** The server thread of `both`, and what it passes to the client. */
struct both {
	const struct reqresp_options *options;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ready, ended;
	struct sample_address address;
	int rc;
};

static void listening(void *arg, const struct sample_address *address)
{
	struct both *both = arg;

	pthread_mutex_lock(&both->lock);
	both->address = *address;
	both->ready = true;
	pthread_cond_signal(&both->changed);
	pthread_mutex_unlock(&both->lock);
}

static void *server_thread(void *arg)
{
	struct both *both = arg;

	both->rc = both->options->negotiated ? negotiated_server_run(both->options, listening, both)
	                                     : server_run(both->options, listening, both);
	pthread_mutex_lock(&both->lock);
	both->ended = true;
	pthread_cond_signal(&both->changed);
	pthread_mutex_unlock(&both->lock);
	return NULL;
}

static int run_both(const struct reqresp_options *options)
{
	struct reqresp_options server = *options, client = *options;
	struct both both = {.options = &server,
	                    .lock = PTHREAD_MUTEX_INITIALIZER,
	                    .changed = PTHREAD_COND_INITIALIZER};
	char address[SAMPLE_ADDRESS_TEXT];
	pthread_t thread;
	int rc;

	server.count = 1;
	if (server.negotiated && server.address == NULL)
		server.address = "127.0.0.1:0";
	rc = pthread_create(&thread, NULL, server_thread, &both);
	if (rc != 0) {
		fprintf(stderr, "ndx-reqresp: no thread: %s\n", strerror(rc));
		return SAMPLE_EXIT_FAILED;
	}
	pthread_mutex_lock(&both.lock);
	while (!both.ready && !both.ended)
		pthread_cond_wait(&both.changed, &both.lock);
	pthread_mutex_unlock(&both.lock);
	if (both.ready) {
		client.address = sample_address_format(&both.address, address, sizeof(address));
		rc = client_run(&client);
		if (rc != SAMPLE_EXIT_OK)
			reqresp_stop = true;
	}
	pthread_join(thread, NULL);
	return rc != SAMPLE_EXIT_OK ? rc : both.rc;
}

static int play(enum sample_role role, const struct reqresp_options *options)
{
	switch (role) {
	case SAMPLE_SERVER:
		return options->negotiated ? negotiated_server_run(options, NULL, NULL)
		                           : server_run(options, NULL, NULL);
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
	o.progress = !quiet;
	if (o.size == 0)
		o.size = role == SAMPLE_SERVER && !o.negotiated ? 1u << 20 : 4096;
	if (o.verbose)
		sample_log_to_stderr(NDX_LOG_DEBUG);
	reqresp_catch_signals();
	return play(role, &o);
}
