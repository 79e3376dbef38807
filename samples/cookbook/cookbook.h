/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the recipes share: both ends of a connection in one process, so that a recipe shows its own
 * subject only. docs/cookbook.md has a section for each recipe.
 */
#ifndef NDX_COOKBOOK_H
#define NDX_COOKBOOK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

#define WAIT_MS 10000u

/** One end of a connection. */
struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
};

/** Two ends of the same adapter, and what connects them. */
struct pair {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct sockaddr_storage address; /* of the listener */
	socklen_t address_len;
	struct end client, server;
};

/** Say what failed and why, and exit, unless `status` is NDX_OK. */
void must(enum ndx_status status, const char *what);
void check(bool good, const char *what);
/** The same for a result: the connector knows why its connection, and the request with it, ended.
 */
void must_result(const struct ndx_result *result, struct ndx_connector *connector);

/** Adapter, listener, and for each end a completion queue and a queue pair. */
void pair_open(struct pair *pair, const char *uri);
/** A queue pair of `end`, with `attr` (NULL: defaults) but the end's queue. */
void end_new_qp(struct end *end, struct ndx_qp_attr *attr);
/** Close all but the adapter. */
void end_close(struct end *end);
/** Connect both ends. The server's answer has `data`. */
void pair_connect(struct pair *pair, const void *data, size_t length);
/** End the connection of the client gracefully, and close everything. */
void pair_close(struct pair *pair);

/** The next result of the end's queue, which has to be NDX_OK. */
struct ndx_result end_result(struct end *end);

#define CLIENT_MESSAGES 200

/** A thread of a pair `arg`: connect to its listener, send CLIENT_MESSAGES messages, disconnect. */
void *be_a_client(void *arg);

/** check() for a file: errno says why. */
static inline void check_file(bool good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

/** The first argument, or TCP over the loopback. */
static inline const char *adapter_of(int argc, char **argv)
{
	return argc > 1 ? argv[1] : "ofi:tcp?iface=lo";
}

#endif
