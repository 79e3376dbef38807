/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx-perf: latency and bandwidth between two processes or hosts. `ndx-perf compare` is a program
 * of its own, because it is linked with what it compares with.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/ndx.h>

#include "perf.h"
#include "pin.h"
#include "sample_options.h"

#define COMPARE "ndx-perf-compare"
#define PATH_TEXT 4096u

static const char about[] =
	"Measures latency, bandwidth, and message rate between two processes or hosts.\n"
	"  server [URI]      serves clients, one after another, until SIGINT or SIGTERM\n"
	"  client HOST:PORT  measures against that server, and prints the figures\n"
	"  compare ...       in one process: what NDX costs above the library below it;\n"
	"                    see ndx-perf compare --help";

static const char details[] =
	"A LIST is separated by commas. In a number k, M, and G are 1000, 10^6, and 10^9, and\n"
	"Ki, Mi, and Gi are 2^10, 2^20, and 2^30. 1 Gbit/s is 10^9 bit/s, as iperf3 has it;\n"
	"1 MiB/s is 2^20 bytes/s, as ib_write_bw has it. A latency is half a round trip, as with\n"
	"ib_send_lat and ucx_perftest; of a read it lasts from the post to the result. A write\n"
	"without immediate is polled for in memory. Processor time is that of a message.\n\n"
	"With --rate each request has a time when it is due, and its latency begins then, however\n"
	"late it was sent: a pause of the server shows in all requests that it delayed (corrected\n"
	"for coordinated omission). The latency is then that of the whole round trip.\n\n"
	"Each thread stays on one processor: the client's on the first, third, and so on of those\n"
	"that the process may use, the server's on the second, fourth, and so on, as the two ends\n"
	"of ndx-perf compare. Where an end has more threads than half the processors, they run\n"
	"anywhere, as with --cpus none.\n\n"
	"A second client is refused while one is served. Without an adapter the client takes the\n"
	"one that reaches the server, and the server $NDX_ADAPTER, the INI file's, or the\n"
	"library's choice. SIGINT ends a client after it has printed what it has.\n\n"
	"Exit status: 0 measured, 1 something failed, 2 command line, 3 the adapter could not be\n"
	"opened.";

static const char examples[] =
	"Two hosts: the first serves, the second measures\n"
	"  ndx-perf server 'ofi:tcp?iface=eth0&trust=lan'\n"
	"  ndx-perf client 10.0.0.1 --adapter 'ofi:tcp?iface=eth0&trust=lan'\n"
	"Latency and bandwidth of writes of all sizes, with a plot\n"
	"  ndx-perf client 10.0.0.1 --op write --all --plot write.svg\n"
	"What the latency is at 100,000 requests a second, as JSON\n"
	"  ndx-perf client 10.0.0.1 --rate 100k --size 64 --json\n"
	"What NDX costs above the library below it\n"
	"  ndx-perf compare 'ofi:tcp?iface=lo'";

/* ---- compare ---- */

/* Run the program beside this one, else the one in $PATH. */
static int compare(char **argv)
{
	char path[PATH_TEXT];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - sizeof(COMPARE) - 1);
	char *slash;

	if (length > 0) {
		path[length] = '\0';
		slash = strrchr(path, '/');
		if (slash != NULL) {
			strcpy(slash + 1, COMPARE); /* NOLINT: there is room for it */
			(void)execv(path, argv);
		}
	}
	(void)execvp(COMPARE, argv);
	fprintf(stderr,
	        "ndx-perf: compare: " COMPARE ": %s\n"
	        "It belongs to the package ndx-test, or to a build with BUILD_TESTING=ON.\n",
	        strerror(errno));
	return SAMPLE_EXIT_FAILED;
}

/* ---- options that are lists, or numbers with a unit ---- */

/** Texts of the command line; NULL: the default. */
struct texts {
	const char *ops, *kinds, *sizes, *depths, *qps, *threads, *seconds, *warm_up, *rate, *cpus;
};

static bool read_words(const char *text, bool *flags, unsigned count, bool kinds)
{
	for (unsigned i = 0; i < count; i++)
		flags[i] = false;
	for (;;) {
		const size_t length = strcspn(text, ",");
		unsigned i = 0;

		for (; i < count; i++) {
			const char *name = kinds ? perf_kind_name((enum perf_kind)i)
			                         : perf_op_name((enum perf_op)i);

			if (strlen(name) == length && strncmp(name, text, length) == 0)
				break;
		}
		if (i == count)
			return false;
		flags[i] = true;
		if (text[length] == '\0')
			return true;
		text += length + 1;
	}
}

static bool read_real(const char *text, double least, double most, double *out)
{
	char *end;
	double value;

	if ((text[0] < '0' || text[0] > '9') && text[0] != '.')
		return false;
	errno = 0;
	value = strtod(text, &end);
	if (errno != 0 || *end != '\0' || !(value >= least && value <= most))
		return false;
	*out = value;
	return true;
}

static bool read_rate(const char *text, double *out)
{
	uint64_t rate;

	if (!perf_number(text, 1, 1000000000, &rate))
		return false;
	*out = (double)rate;
	return true;
}

static bool read_cpus(const char *text, struct perf_cpus *cpus)
{
	cpus->free = strcmp(text, "none") == 0;
	if (cpus->free)
		return true;
	if (!perf_list(text, 0, UINT32_MAX, &cpus->list))
		return false;
	for (unsigned i = 0; i < cpus->list.count; i++) {
		if (!pin_allowed(cpus->list.values[i])) {
			fprintf(stderr, "ndx-perf: this process may not use processor %u\n",
			        cpus->list.values[i]);
			return false;
		}
	}
	return true;
}

/* The option whose value will not do, and what will; NULL: none. */
static const char *read_texts(const struct texts *t, struct perf_options *o)
{
	if (t->ops != NULL && !read_words(t->ops, o->op, PERF_OPS, false))
		return "--op takes a list of send, write, write-imm and read";
	if (t->kinds != NULL && !read_words(t->kinds, o->kind, PERF_KINDS, true))
		return "--test takes latency, bandwidth, or both with a comma";
	if (t->sizes != NULL && !perf_list(t->sizes, 1, 1u << 30, &o->sizes))
		return "--size takes a list of numbers from 1 to 1Gi";
	if (t->depths != NULL && !perf_list(t->depths, 1, 65536, &o->depths))
		return "--depth takes a list of numbers from 1 to 65536";
	if (t->qps != NULL && !perf_list(t->qps, 1, 65536, &o->qps))
		return "--qps takes a list of numbers from 1 to 65536";
	if (t->threads != NULL && !perf_list(t->threads, 1, 1024, &o->threads))
		return "--threads takes a list of numbers from 1 to 1024";
	if (t->seconds != NULL && !read_real(t->seconds, 0.01, 1e6, &o->seconds))
		return "--seconds takes a number from 0.01 to 1000000";
	if (t->warm_up != NULL && !read_real(t->warm_up, 0, 1e3, &o->warm_up))
		return "--warm-up takes a number from 0 to 1000";
	if (t->rate != NULL && !read_rate(t->rate, &o->rate))
		return "--rate takes a number from 1 to 1000000000";
	if (t->cpus != NULL && !read_cpus(t->cpus, &o->cpus))
		return "--cpus takes none, or a list of processors that this process may use";
	return NULL;
}

/* As ib_write_bw -a: the powers of two from 2 bytes to 8 MiB. */
static void all_sizes(struct perf_list *sizes)
{
	sizes->count = 0;
	for (uint32_t size = 2; size <= 8u << 20; size *= 2)
		sizes->values[sizes->count++] = size;
}

/* What the command line says. */
static struct perf_options given = {
	.max_mib = 1024,
	.max_qps = 256,
	.max_depth = 4096,
	.max_threads = 64,
	.idle_s = 60,
	.op = {true},
	.kind = {true, true},
	.sizes = {.values = {64, 4096, 65536, 1048576}, .count = 4},
	.qps = {.values = {1}, .count = 1},
	.threads = {.values = {1}, .count = 1},
	.seconds = 2,
	.warm_up = 0.1,
	.timeout_ms = 10000,
};
static struct texts texts; /* NULL: the default */

static const struct sample_option options[] = {
	{"--test", "latency|bandwidth,...", "client: which (both)", .text = &texts.kinds},
	{"--op", "send|write|write-imm|read,...", "client: which (send)", .text = &texts.ops},
	{"--size", "LIST", "client: of messages, in bytes (64,4Ki,64Ki,1Mi)", .text = &texts.sizes},
	{"--all", NULL, "client: all powers of two from 2 to 8 MiB", .flag = &given.all_sizes},
	{"--depth", "LIST", "client: requests in flight (latency 1; bandwidth, and --rate, 64)",
         .text = &texts.depths},
	{"--qps", "LIST", "client: queue pairs (1)", .text = &texts.qps},
	{"--threads", "LIST", "client: at each end, at most as many as queue pairs (1)",
         .text = &texts.threads},
	{"--cpus", "none|LIST", "processors of the threads of this end, in turn (see below)",
         .text = &texts.cpus},
	{"--both", NULL, "client: bandwidth in both directions", .flag = &given.both},
	{"--wait", NULL, "client: both ends sleep until there is a result", .flag = &given.wait},
	{"--seconds", "N", "client: for each line of the result (2)", .text = &texts.seconds,
         .letter = 't'},
	{"--warm-up", "N", "client: seconds before that, not counted (0.1)",
         .text = &texts.warm_up},
	{"--rate", "N", "client: latency of N requests a second, sent when they are due",
         .text = &texts.rate},
	{"--histogram", NULL, "client: also how often each latency occurred",
         .flag = &given.histogram},
	SAMPLE_ROW_JSON(given.json),
	{"--csv", NULL, "client: comma-separated values on stdout", .flag = &given.csv},
	{"--plot", "FILE", "client: also write a plot over the size, as SVG", .text = &given.plot},
	SAMPLE_ROW_TIMEOUT_MS(given.timeout_ms),
	SAMPLE_ROW_ADAPTER(given.adapter),
	{"--listen", "ADDRESS:PORT", "server: where (the adapter's address, port 18515)",
         .text = &given.listen},
	{"--port-file", "FILE", "server: write the port there once it listens",
         .text = &given.port_file},
	{"--count", "N", "server: end after N clients (0: never)", .number = &given.count,
         .max = UINT32_MAX},
	{"--max-memory", "MIB", "server: for one test (1024)", .number = &given.max_mib, .min = 1,
         .max = 1u << 20},
	{"--max-qps", "N", "server: queue pairs of a test (256)", .number = &given.max_qps,
         .min = 1, .max = 65536},
	{"--max-depth", "N", "server: requests in flight of a queue pair (4096)",
         .number = &given.max_depth, .min = 1, .max = 65536},
	{"--max-threads", "N", "server: of a test (64)", .number = &given.max_threads, .min = 1,
         .max = 1024},
	{"--idle", "SECONDS", "server: end a client that begins no test (60)",
         .number = &given.idle_s, .min = 1, .max = 1000000},
	{"--quiet", NULL, "no line every second, no lines of the server", .flag = &given.quiet,
         .letter = 'q'},
	SAMPLE_ROW_VERBOSE(given.verbose),
};

static const struct sample_program program = {
	.name = "ndx-perf",
	.synopsis = "server|client|compare [WHERE] [options]",
	.about = about,
	.details = details,
	.examples = examples,
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.max_operands = 2,
};

/* ---- what the options mean together ---- */

static bool is_of_loop(const char *uri)
{
	return uri != NULL && strncmp(uri, "loop", 4) == 0 && (uri[4] == '\0' || uri[4] == '?');
}

/* No adapter's URI begins so. */
static bool is_address(const char *text)
{
	return text[0] == '[' || text[0] == ':' || (text[0] >= '0' && text[0] <= '9');
}

static int check(const struct perf_options *o)
{
	if (o->json != NULL && o->csv)
		return sample_usage(&program, "--json or --csv, not both");
	if (o->rate > 0 && o->kind[PERF_BANDWIDTH])
		return sample_usage(&program, "--rate is of --test latency");
	if (o->both && o->kind[PERF_LATENCY])
		return sample_usage(&program, "--both is of --test bandwidth");
	if (o->wait && o->op[PERF_WRITE] && o->kind[PERF_LATENCY])
		return sample_usage(&program, "the arrival of a write is not reported, so the "
		                              "latency of writes has to be polled for: no --wait");
	if (is_of_loop(o->adapter))
		return sample_usage(&program, "loop connects within one process only; see "
		                              "ndx-perf compare loop");
	return SAMPLE_EXIT_OK;
}

static int play(char **argv, size_t operands, struct perf_options *o)
{
	const char *role = operands > 0 ? argv[1] : "";
	int rc;

	if (strcmp(role, "server") == 0) {
		if (operands == 2 && is_address(argv[2]))
			return sample_usage(&program, "%s is an address: write --listen %s",
			                    argv[2], argv[2]);
		if (operands == 2)
			o->adapter = argv[2];
		if (o->json != NULL || o->csv || o->plot != NULL)
			return sample_usage(&program, "the client has the results: --json, --csv "
			                              "and --plot are its options");
		rc = is_of_loop(o->adapter) ? check(o) : SAMPLE_EXIT_OK;
		return rc != SAMPLE_EXIT_OK ? rc : perf_server(o);
	}
	if (strcmp(role, "client") != 0)
		return sample_usage(&program,
		                    "say server, client, or compare (ndx-perf URI of earlier "
		                    "versions is ndx-perf compare URI now)");
	if (operands < 2)
		return sample_usage(&program, "client needs the server's address, HOST:PORT");
	o->server = argv[2];
	rc = check(o);
	return rc != SAMPLE_EXIT_OK ? rc : perf_client(o);
}

int main(int argc, char **argv)
{
	const char *wrong;
	size_t operands;
	int rc;

	if (argc > 1 && strcmp(argv[1], "compare") == 0)
		return compare(argv + 1);
	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	wrong = read_texts(&texts, &given);
	if (wrong != NULL)
		return sample_usage(&program, "%s", wrong);
	if (given.all_sizes)
		all_sizes(&given.sizes);
	if (given.rate > 0 && texts.kinds == NULL)
		given.kind[PERF_BANDWIDTH] = false;
	if (given.both && texts.kinds == NULL)
		given.kind[PERF_LATENCY] = false;
	if (given.verbose)
		ndx_log_to_stderr(NDX_LOG_DEBUG);
	perf_catch_signals();
	return play(argv, operands, &given);
}
