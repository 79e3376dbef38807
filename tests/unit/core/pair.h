/* SPDX-License-Identifier: BSD-2-Clause */
/* Two adapters of the in-process provider in one process, and the ends of connections. */
#ifndef TESTS_CORE_PAIR_H
#define TESTS_CORE_PAIR_H

#include <netinet/in.h>
#include <stdint.h>

#include <ndx/ndx.h>

/* Nothing takes so long; a wait that does is a failure. */
#define PATIENCE_MS 10000u

/* A listens. */
struct pair {
	struct ndx_adapter *a;
	struct ndx_adapter *b;
	struct ndx_listener *listener;
	struct sockaddr_in address;
};

/* One end: what it takes to connect. */
struct end {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;
	char name[32]; /* as in the log: "connector#3 " */
};

/* Set-up and teardown of a test. */
int pair_open(void **state);
int pair_close(void **state);

/* A listener of the adapter on the loopback; writes its address. */
struct ndx_listener *pair_listen(struct ndx_adapter *adapter, uint32_t backlog,
                                 struct sockaddr_in *address);

/* `drain_ms` 0: the default. */
void pair_make_end(struct ndx_adapter *adapter, uint32_t drain_ms, struct end *e);
void pair_drop_end(struct end *e);
enum ndx_status pair_connect(struct end *e, const struct sockaddr_in *address);

#endif
