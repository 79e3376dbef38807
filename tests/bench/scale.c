/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-scale [--json] [--reads] [--messages N] [--counts LIST] [URI]
 * What many connections on an adapter cost: time for a message, for one that comes and goes,
 * memory, and the control thread.
 */
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lane.h"
#include "own_memory.h"
#include "sample_options.h"
#include "scale.h"
#include "traffic.h"

#define COUNTS 16u
#define ROUNDS 9u
#define IDLE_MS 1000
#define READS 16u
#define CHURN 32u /* connections that come and go */

void lane_die(const char *what, const char *why)
{
	(void)fflush(stdout);
	(void)fprintf(stderr, "ndx-scale: %s: %s\n", what, why);
	_Exit(1);
}

struct row {
	unsigned connections;
	double all_us;     /* for a message, all connections in turn */
	double one_us;     /* ... on one of them, the others idle */
	double connect_us; /* one more, after the consumers have polled, ... */
	double leave_us;   /* ... and one less */
	double kib;        /* of the process for each end; NAN if it did not grow */
	double own;        /* ... of it the library's */
	double idle;       /* of a processor, all control threads together */
	double busy;
};

/* ---- what the system tells ---- */

/* The first line of a file; "" if there is none. */
static void read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");

	line[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(line, size, file) == NULL)
		line[0] = '\0';
	(void)fclose(file);
}

static double resident_kib(void)
{
	char line[128];
	char *second;

	read_line("/proc/self/statm", line, sizeof(line));
	second = strchr(line, ' ');
	if (second == NULL)
		lane_die("/proc/self/statm", "cannot be read");
	return (double)strtoul(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / 1024.0;
}

static bool is_control_thread(const char *id)
{
	char path[64];
	char name[32];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", id);
	read_line(path, name, sizeof(name));
	return strncmp(name, "ndx-ctl", 7) == 0;
}

/* Nanoseconds that all control threads have run. */
static double control_ns(void)
{
	DIR *dir = opendir("/proc/self/task");
	double sum = 0;

	if (dir == NULL)
		lane_die("/proc/self/task", "cannot be read");
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		char path[64];
		char line[128];

		if (e->d_name[0] == '.' || !is_control_thread(e->d_name))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/task/%.16s/schedstat", e->d_name);
		read_line(path, line, sizeof(line));
		sum += (double)strtoull(line, NULL, 10);
	}
	(void)closedir(dir);
	return sum;
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		(void)fprintf(stderr, "the limit of descriptors cannot be raised\n");
}

/* ---- measuring ---- */

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_echo(struct scale_net *net, unsigned first, unsigned width, unsigned messages)
{
	double values[ROUNDS];

	(void)scale_echo(net, first, width, messages / 4 + 1);
	for (unsigned i = 0; i < ROUNDS; i++)
		values[i] = scale_echo(net, first, width, messages);
	qsort(values, ROUNDS, sizeof(values[0]), compare);
	return values[ROUNDS / 2] / 1e3;
}

static double idle_share(void)
{
	const double before = control_ns();
	const uint64_t start = traffic_now_ns();

	(void)poll(NULL, 0, IDLE_MS);
	return (control_ns() - before) / (double)(traffic_now_ns() - start);
}

static void measure(struct scale_net *net, unsigned messages, struct row *row)
{
	double before;
	uint64_t start;

	/* What was under way when the last connection came up comes to rest. */
	(void)idle_share();
	row->idle = idle_share();
	before = control_ns();
	start = traffic_now_ns();
	row->all_us = median_echo(net, 0, net->count, messages);
	row->busy = (control_ns() - before) / (double)(traffic_now_ns() - start);
	row->one_us = median_echo(net, net->count / 2, 1, messages);
	if (!scale_churn(net, CHURN, &row->connect_us, &row->leave_us))
		lane_die("no room for a connection more", ndx_last_error());
}

/* Memory for each end, or `none` where there was nothing to divide by. */
static const char *growth_text(double kib, char *text, size_t size, const char *none)
{
	if (isnan(kib))
		(void)snprintf(text, size, "%s", none);
	else
		(void)snprintf(text, size, "%.1f", kib);
	return text;
}

static void print_row(const struct row *row, bool json, bool first)
{
	if (!json) {
		char kib[32];
		char own[32];

		(void)printf("%11u %10.2f %10.2f %10.0f %10.0f %10s %10s %9.2f %% %9.2f %%\n",
		             row->connections, row->all_us, row->one_us, row->connect_us / 1e3,
		             row->leave_us / 1e3, growth_text(row->kib, kib, sizeof(kib), "-"),
		             growth_text(row->own, own, sizeof(own), "-"), 100 * row->idle,
		             100 * row->busy);
	} else {
		char kib[32];
		char own[32];

		(void)printf("%s{\"connections\": %u, \"all_us\": %.3f, \"one_us\": %.3f, "
		             "\"connect_us\": %.1f, \"leave_us\": %.1f, "
		             "\"kib_per_end\": %s, \"own_kib_per_end\": %s, \"control_idle\": "
		             "%.5f, \"control_busy\": "
		             "%.5f}",
		             first ? "" : ",\n", row->connections, row->all_us, row->one_us,
		             row->connect_us / 1e3, row->leave_us / 1e3,
		             growth_text(row->kib, kib, sizeof(kib), "null"),
		             growth_text(row->own, own, sizeof(own), "null"), row->idle, row->busy);
	}
	(void)fflush(stdout);
}

struct options {
	const char *uri;
	bool json;
	uint32_t reads; /* that a connection may have under way */
	unsigned messages;
	unsigned counts[COUNTS];
	unsigned count;
};

static void run(const struct options *options)
{
	struct scale_net net;
	double kib;
	double own;

	scale_open(&net, options->uri, options->counts[options->count - 1] + CHURN + 1,
	           options->reads);
	for (unsigned i = 0; i < options->count; i++) {
		const unsigned before = net.count;
		struct row row = {.connections = options->counts[i], .kib = NAN, .own = NAN};

		kib = resident_kib();
		own = own_memory_kib();
		if (!scale_grow(&net, row.connections)) {
			(void)fprintf(stderr,
			              "ndx-scale: no more than %u connections: %s; see ulimit -n\n",
			              net.count, ndx_last_error());
			break;
		}
		if (net.count - before > 1) {
			row.kib = (resident_kib() - kib) / (2.0 * (net.count - before));
			row.own = (own_memory_kib() - own) / (2.0 * (net.count - before));
		}
		measure(&net, options->messages, &row);
		print_row(&row, options->json, i == 0);
	}
	scale_close(&net);
}

static bool read_counts(struct options *options, char *text)
{
	char *rest = NULL;
	unsigned before = 0;

	options->count = 0;
	for (const char *word = strtok_r(text, ",", &rest); word != NULL;
	     word = strtok_r(NULL, ",", &rest)) {
		const unsigned long n = strtoul(word, NULL, 10);

		if (options->count == COUNTS || n <= before || n > 100000)
			return false;
		before = (unsigned)n;
		options->counts[options->count++] = before;
	}
	return options->count > 0;
}

/* False: the program ends with `code`. */
static bool read_options(struct options *o, int argc, char **argv, int *code)
{
	const char *counts = NULL;
	bool reads = false;
	char text[128];
	const struct sample_option options[] = {
		{"--json", NULL, "rows as JSON", .flag = &o->json},
		{"--reads", NULL, "with reads", .flag = &reads},
		{"--messages", "N", "of each measurement (5000)", .number = &o->messages, .min = 1,
	         .max = UINT32_MAX},
		{"--counts", "LIST", "connections, rising, separated by commas (1,16,128,1000)",
	         .text = &counts},
	};
	const struct sample_program program = {
		.name = "ndx-scale",
		.synopsis = "[URI] [options]",
		.about = "What one connection costs beside many others.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	size_t operands;

	if (!sample_parse(&program, argc, argv, &operands, code))
		return false;
	if (operands > 0)
		o->uri = argv[1];
	if (reads)
		o->reads = READS;
	if (counts == NULL)
		return true;
	(void)snprintf(text, sizeof(text), "%s", counts);
	if (strlen(counts) < sizeof(text) && read_counts(o, text))
		return true;
	*code = sample_usage(&program, "--counts %s: give rising numbers up to 100000", counts);
	return false;
}

int main(int argc, char **argv)
{
	struct options options = {.uri = "ofi:tcp?iface=lo",
	                          .messages = 5000,
	                          .counts = {1, 16, 128, 1000},
	                          .count = 4};
	int code;

	if (!read_options(&options, argc, argv, &code))
		return code;
	raise_limit();
	if (options.json)
		(void)puts("[");
	else
		(void)puts("connections  us, all    us, one connect us   leave us    KiB/end    "
		           "its own  ctl idle     "
		           "ctl busy");
	run(&options);
	if (options.json)
		(void)puts("\n]");
	return 0;
}
