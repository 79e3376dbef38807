/* SPDX-License-Identifier: BSD-2-Clause */
/* One side of a test: memory, queue pairs, and the threads that drive them. */
#ifndef PERF_SIDE_H
#define PERF_SIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include <ndx/ndx.h>

#include "histogram.h"
#include "perf.h"
#include "wire.h"

/** When a request was due, and when it was posted; nanoseconds. */
struct moment {
	uint64_t due, posted;
};

/** One queue pair. */
struct link {
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped accept; /* server: in flight until the client has completed */
	bool accepting, connected;
	uint8_t *tx, *rx;
	uint64_t remote; /* address at the peer: for writes, and for reads */
	unsigned tx_turn, rx_turn;
	uint32_t in_flight;   /* own requests without a result */
	uint32_t owed;        /* server: answers that could not be posted yet */
	uint8_t number;       /* of the last write, as the last byte of the message */
	struct moment *times; /* client, latency: of the requests without an answer, a ring */
	uint32_t first, pending;
};

/** One thread with its completion queue, and every n-th link. */
struct worker {
	struct side *side;
	struct ndx_cq *cq;
	pthread_t thread;
	bool started;
	uint32_t index;
	unsigned empty;                  /* polls without a result */
	uint64_t quiet_since;            /* 0: not quiet */
	_Atomic uint64_t sent, received; /* messages */
	_Atomic uint64_t measured;       /* those of which `latency` has the time */
	struct histogram *latency;       /* from the moment when a request was due */
	struct histogram *service; /* from the moment when it was posted; NULL without a rate */
	/* of a failure; written before `failed` */
	const char *what;
	enum ndx_status status;
	int32_t native;
	uint64_t failed_ns;
	uint32_t waited_ms; /* status NDX_PENDING: for nothing */
	atomic_bool failed;
	atomic_bool drained; /* stopped, and no own request is left */
};

struct side {
	struct ndx_adapter *adapter;
	const struct ndx_adapter_info *info;
	struct perf_test test;
	bool client;
	const struct perf_cpus *cpus; /* where the threads run */
	uint32_t keepalive_ms;
	uint32_t timeout_ms;  /* without any result, while one is due; 0: no limit */
	uint64_t interval_ns; /* client: between two requests of a worker; 0: no rate */
	struct perf_target peer;
	uint8_t *memory;
	size_t half; /* of the memory of a link: what is sent, then what is received */
	struct ndx_mr *mr;
	struct link *links;
	struct worker *workers;
	atomic_bool stop;  /* begin no further request */
	atomic_bool quit;  /* and take no further results */
	atomic_bool hurry; /* client: the program was told to end */
	atomic_bool measuring;
};

/**
 * Create everything that `test` needs, and post receives. The other members are set before. On
 * failure side_drop() releases what there is.
 */
enum ndx_status side_make(struct side *side);

/** Disconnect all links, for at most `timeout_ms`, and release everything. */
void side_drop(struct side *side, uint32_t timeout_ms);

/** The memory that the peer may access. */
struct perf_target side_target(const struct side *side);

/** Bytes of memory that one side of a test takes. */
uint64_t side_bytes(const struct perf_test *test);

/** Start the threads. */
bool side_start(struct side *side);

/** Begin no further requests. */
void side_drain(struct side *side);

/** After side_drain(): whether each thread has no own request left, or has failed. */
bool side_is_drained(const struct side *side);

/** Stop the threads; each ends when its own requests have, or after two seconds. */
void side_stop(struct side *side);

/** The first failure of a thread; NULL: none. */
const struct worker *side_failure(const struct side *side);

/** Messages so far, of all threads. */
uint64_t side_sent(const struct side *side);
uint64_t side_received(const struct side *side);
uint64_t side_measured(const struct side *side);

/** Processor time of this process, in nanoseconds. */
uint64_t side_cpu_ns(void);

/** Main function of a worker (traffic.c). */
void *traffic_run(void *arg);

/** Whether the receives of a side are used. */
bool traffic_needs_receives(const struct side *side);

/** Post one receive (traffic.c). */
enum ndx_status traffic_receive(const struct side *side, struct link *link);

#endif
