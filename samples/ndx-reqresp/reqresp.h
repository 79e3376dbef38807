/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by client and server of ndx-reqresp: options, and one end of a connection. */
#ifndef REQRESP_H
#define REQRESP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/ndx.h>

#include "sample_address.h"
#include "sample_both.h"
#include "sample_tls.h"

/** Set by SIGINT and SIGTERM, and by `both` when its client has failed. */
extern atomic_bool reqresp_stop;

/** Set by SIGUSR1: the next wait prints a snapshot first. */
extern atomic_bool reqresp_tell;

/** Install the handlers that set the two. */
void reqresp_catch_signals(void);

/** The command line. */
struct reqresp_options {
	const char *adapter;   /* URI, or NULL for the environment's choice */
	const char *address;   /* server: where to listen; client: the server's address */
	const char *port_file; /* server: where to write the port */
	uint32_t requests;
	uint32_t size; /* client: size of every message; server: largest size accepted */
	uint32_t seed;
	uint32_t count;   /* clients to serve, 0: no limit */
	uint32_t hang_up; /* server: disconnect after this many requests, 0: never */
	uint32_t slots;   /* server: requests that it can receive at once */
	uint32_t timeout_ms;
	uint32_t keepalive_ms;
	const char *variant;   /* negotiated: PLUGIN/VARIANT, or NULL for the adapter's default */
	struct sample_tls tls; /* negotiated */
	bool negotiated;       /* connect by a session instead of by the connection manager */
	bool wait;             /* sleep for results instead of polling */
	bool progress;
	bool verbose;
	bool stats; /* print a snapshot at the end */
	const char *json;
	const char *plot; /* client: file for a picture of the latency; NULL: none */
};

/**
 * One end: a connection and everything that it needs. Members are NULL until created; end_drop()
 * closes them.
 */
struct end {
	const char *who;
	const struct reqresp_options *options;
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;

	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *requests_mr, *responses_mr;
	uint8_t *requests, *responses; /* slot i: i * size */
	uint32_t slots, size;
	struct ndx_connector *connector;
	struct ndx_overlapped notify; /* the notify_disconnect of this connection */

	struct ndx_result results[16]; /* taken from the queue, not processed yet */
	size_t have, next;
};

/** Open the adapter. Like all functions below, returns an enum sample_exit. */
int end_open(struct end *end, const char *who, const struct reqresp_options *options);

/** Print a snapshot if SIGUSR1 has requested one. */
void end_tell(struct end *end);

/** Print a snapshot, as --stats says; with --json it is the member @p name of the object. */
void end_stats(struct end *end, const char *name);

/** Create the completion queue, regions for `slots` messages each way, and the queue pair. */
int end_make(struct end *end, uint32_t slots, uint32_t size);

/** Close what end_make() and connecting have created, in any state. */
void end_drop(struct end *end);

/** Post the receive of a slot; requests arrive at the server, responses at the client. */
enum ndx_status end_post_receive(struct end *end, struct ndx_mr *mr, uint8_t *base, uint32_t slot);

/** Post the send of a slot. */
enum ndx_status end_post_send(struct end *end, struct ndx_mr *mr, uint8_t *base, uint32_t slot);

/**
 * The next result: polls, or sleeps with --wait.
 *
 * @retval NDX_PENDING no result in `timeout_ms`
 */
enum ndx_status end_next_result(struct end *end, uint32_t timeout_ms, struct ndx_result *result);

/**
 * Wait for an operation on the connector that was just started.
 *
 * @param started  the status that the call returned
 * @return an enum sample_exit; a failure was printed with the text `what`
 */
int end_finish(struct end *end, enum ndx_status started, struct ndx_overlapped *ov,
               const char *what);

/** Request the disconnect indication. */
int end_watch(struct end *end);

/** Wait for the disconnect indication, at most `timeout_ms`; NONE if it did not come. */
enum ndx_disconnect_reason end_reason(struct end *end, uint32_t timeout_ms);

/** Disconnect, and wait until the disconnect has completed. */
int end_disconnect(struct end *end);

/** Post the receives of a server's end. */
int server_prepare(struct end *end, uint32_t size);

/** Serve a connected client until the disconnect. */
int server_visit(struct end *end, const char *client);

/** What all visits came to, for --json. */
void server_add_totals(const struct end *end);

int client_run(const struct reqresp_options *options);

/** @p ready may be NULL. */
int server_run(const struct reqresp_options *options, sample_ready_fn *ready, void *arg);

#endif
