/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-perf: the command line, and what its parts know of each other. */
#ifndef PERF_H
#define PERF_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "wire.h"

#define PERF_LIST 64u    /* values of one list on the command line */
#define PERF_PORT 18515u /* where the server listens, unless it is told */
#define PERF_ERROR 640u  /* room for a text */

struct perf_list {
	uint32_t values[PERF_LIST];
	unsigned count;
};

/** Processors of the threads, in turn. Without a list: see pin_default(). */
struct perf_cpus {
	struct perf_list list;
	bool free; /* wherever the kernel puts them */
};

struct perf_options {
	const char *adapter; /* NULL: the library's choice */
	bool verbose, quiet;
	struct perf_cpus cpus;
	/* server */
	const char *listen;
	const char *port_file;
	uint32_t max_mib; /* of memory, for one test */
	uint32_t max_qps, max_depth, max_threads;
	uint32_t idle_s; /* a client that begins no test is sent away */
	uint32_t count;  /* of clients; 0: no end */
	/* client */
	const char *server;
	bool op[PERF_OPS], kind[PERF_KINDS];
	struct perf_list sizes, depths, qps, threads;
	bool all_sizes, both, wait;
	double seconds, warm_up;
	double rate; /* requests a second; 0: each as soon as the one before is answered */
	uint32_t timeout_ms;
	const char *json; /* where: see sample_json.h */
	bool csv, histogram;
	const char *plot;
};

/** One line of the results. */
struct perf_row {
	struct perf_test test;
	double rate;
	double seconds;    /* that were measured */
	uint64_t messages; /* of the client; with `both`, also of the server */
	double messages_a_second;
	double client_cpu_us, server_cpu_us; /* for one message; negative: not known */
	const struct histogram *latency;     /* NULL: bandwidth */
	const struct histogram *service;     /* NULL: without a rate */
	unsigned trips;    /* by which a round trip is divided: 1, or 2 for a half */
	const char *error; /* NULL: complete */
};

/** SIGINT or SIGTERM came. */
extern volatile sig_atomic_t perf_stop;

void perf_catch_signals(void);

int perf_server(const struct perf_options *options);
int perf_client(const struct perf_options *options);

/** False: not a number from `least` to `most`. */
bool perf_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);
bool perf_list(const char *text, uint32_t least, uint32_t most, struct perf_list *out);

const char *perf_op_name(enum perf_op op);
const char *perf_kind_name(enum perf_kind kind);

#endif
