/* SPDX-License-Identifier: BSD-2-Clause */
/* What client and server of ndx-reqresp share: options, and one end of a connection. */
#ifndef REQRESP_H
#define REQRESP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/ndx.h>

#include "sample_address.h"

/** Set by SIGINT and SIGTERM, and by `both` when its client has failed. */
extern atomic_bool reqresp_stop;

/** Set by SIGUSR1: whoever waits for something next prints a snapshot first. */
extern atomic_bool reqresp_tell;

/** The command line. */
struct reqresp_options {
	const char *adapter;   /* URI, or NULL for the environment's choice */
	const char *address;   /* server: where to listen; client: whom to call */
	const char *port_file; /* server: where to write the port */
	uint32_t requests;
	uint32_t size; /* client: of every message; server: the largest it takes */
	uint32_t seed;
	uint32_t count;   /* clients to serve, 0: without end */
	uint32_t hang_up; /* server: say goodbye after so many requests, 0: never */
	uint32_t slots;   /* server: requests it takes at once */
	uint32_t timeout_ms;
	uint32_t keepalive_ms;
	const char *variant; /* negotiated: PLUGIN/VARIANT, or NULL for what suits the adapter */
	bool negotiated;     /* connect by a session instead of by the adapter's own means */
	bool wait;           /* sleep for results instead of polling */
	bool progress;
	bool verbose;
	bool stats; /* print a snapshot at the end */
};

/** One end: a connection and all it needs. Members are NULL until made, and closed by end_drop().
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

	struct ndx_result results[16]; /* taken from the queue, not looked at yet */
	size_t have, next;
};

/** Open the adapter. Returns an enum sample_exit, as all these. */
int end_open(struct end *end, const char *who, const struct reqresp_options *options);

/** Print a snapshot if SIGUSR1 has asked for one. */
void end_tell(struct end *end);

/** Make queue, regions for `slots` messages each way, and queue pair. */
int end_make(struct end *end, uint32_t slots, uint32_t size);

/** Close what end_make() and connecting have made, in any state. */
void end_drop(struct end *end);

/** Post the receive of a slot; requests arrive at the server, responses at the client. */
enum ndx_status end_post_receive(struct end *end, struct ndx_mr *mr, uint8_t *base, uint32_t slot);

/** Post the send of a slot. */
enum ndx_status end_post_send(struct end *end, struct ndx_mr *mr, uint8_t *base, uint32_t slot);

/**
 * The next result: polls, or sleeps with --wait.
 *
 * @retval NDX_PENDING nothing came in `timeout_ms`
 */
enum ndx_status end_next_result(struct end *end, uint32_t timeout_ms, struct ndx_result *result);

/**
 * Wait for an operation on the connector that was just started.
 *
 * @param started  what the call returned
 * @return an enum sample_exit; a failure was explained as one of `what`
 */
int end_finish(struct end *end, enum ndx_status started, struct ndx_overlapped *ov,
               const char *what);

/** Ask to be told of the end of the connection. */
int end_watch(struct end *end);

/** Wait for the news that the connection ended, at most `timeout_ms`; NONE if it did not. */
enum ndx_disconnect_reason end_reason(struct end *end, uint32_t timeout_ms);

/** Say goodbye and wait for the peer's. */
int end_disconnect(struct end *end);

/** The receives of a server's end, which is made for it. */
int server_prepare(struct end *end, uint32_t size);

/** Serve a client that is connected, to the goodbye. */
int server_visit(struct end *end, const char *client);

int client_run(const struct reqresp_options *options);

/** Called with the address once the server listens; may be NULL. */
typedef void server_ready_fn(void *arg, const struct sample_address *address);
int server_run(const struct reqresp_options *options, server_ready_fn *ready, void *arg);

#endif
