/* SPDX-License-Identifier: BSD-2-Clause */
/* A copy of everything that a snapshot shows, made at one moment. */
#ifndef FRONT_SNAPSHOT_H
#define FRONT_SNAPSHOT_H

#include "connection.h"

#define SNAPSHOT_COUNTERS 16

/* Counters of the provider. */
struct snapshot_counters {
	size_t count;
	const char *names[SNAPSHOT_COUNTERS];
	uint64_t values[SNAPSHOT_COUNTERS];
};

struct snapshot_qp {
	uint32_t id;
	bool counted;
	struct ndx_qp_stats stats;
	struct snapshot_counters own;
};

struct snapshot_cq {
	uint32_t id;
	bool counted;
	struct ndx_cq_stats stats;
};

struct snapshot_connector {
	struct conn_postmortem what;
	const char *state; /* NULL: closed */
	bool closed;       /* the handle is closed; the goodbye goes on */
	enum ndx_disconnect_reason reason;
};

struct snapshot {
	struct ndx_adapter_info info;
	struct ndx_adapter_stats stats;
	struct snapshot_counters own;
	struct snapshot_qp *qps;
	struct snapshot_cq *cqs;
	struct snapshot_connector *connectors;
	struct listener_view *listeners;
	size_t qp_count, cq_count, connector_count, listener_count;
	struct snapshot_connector postmortems[CORE_POSTMORTEMS];
	size_t postmortem_count;
};

/* False, with nothing allocated: out of memory. */
bool snapshot_take(struct ndx_adapter *adapter, struct snapshot *out);
void snapshot_free(struct snapshot *s);
/* The caller frees the text; NULL: out of memory. */
char *snapshot_json(const struct snapshot *s);

#endif
