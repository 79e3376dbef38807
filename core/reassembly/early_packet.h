/* SPDX-License-Identifier: BSD-2-Clause */
/* Data that came before the packet that explains them: held for a time, within limits. */
#ifndef REASSEMBLY_EARLY_PACKET_H
#define REASSEMBLY_EARLY_PACKET_H

#include <ndx/spi/list.h>
#include "flow.h"

enum early_kind {
	EARLY_DATA,     /* address known, segment not */
	EARLY_FRAGMENT, /* Middle or Last of a write, First not seen */
	EARLY_RESPONSE, /* response, request not seen */
};

struct early {
	struct ndxp_table_node node;
	struct ndxp_list age; /* oldest first */
	struct flow *flow;    /* on which the packet came */
	uint64_t packet;      /* the packet's ordinal */
	uint64_t
		order; /* DATA, FRAGMENT: unwrapped PSN; RESPONSE: PSN, or position in the stream */
	uint32_t acknowledged; /* iWARP RESPONSE */
	uint32_t losses;       /* iWARP RESPONSE: losses of its stream until then */
	uint64_t address;      /* DATA; iWARP RESPONSE: offset in the sink */
	uint32_t handle;       /* DATA; iWARP RESPONSE: steering tag of the sink */
	uint32_t length;       /* of data[] */
	uint32_t original;     /* length as sent */
	uint8_t kind;
	bool first, last;
	uint8_t data[];
};

/* Hold a packet's data; `e` has everything except list, node and packet. Drops data if
 * necessary. */
void early_hold(struct rdma *r, const struct early *e, const uint8_t *data);

/* Iterate over the entries of a kind on a flow. The current entry may be removed. */
struct early *early_first(struct rdma *r, const struct flow *flow, enum early_kind kind);
struct early *early_next(struct early *e);

/* Iterate over DATA for a handle, sent by the flows of that direction of two peers. */
struct early *early_first_data(struct rdma *r, const struct peers *peers, uint8_t direction,
                               uint32_t handle);

void early_remove(struct rdma *r, struct early *e);

/* Report an orphan. */
void early_report(struct rdma *r, const struct early *e);

/* Report and drop entries that are too old, or all. */
void early_expire(struct rdma *r, bool all);

/* Drop the oldest entry to free memory; false if there is none. */
bool early_evict(struct rdma *r);

/* Drop the entries of doomed flows, or all, without a report. */
void early_forget(struct rdma *r, bool all);

#endif
