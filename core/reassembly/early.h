/* SPDX-License-Identifier: BSD-2-Clause */
/* Data that came before what explains them: held for a while, within bounds. */
#ifndef REASSEMBLY_EARLY_H
#define REASSEMBLY_EARLY_H

#include "base_list.h"
#include "flow.h"

enum early_kind {
	EARLY_DATA,     /* address known, segment not */
	EARLY_FRAGMENT, /* Middle or Last of a write, First not seen */
	EARLY_RESPONSE, /* response, request not seen */
};

struct early {
	struct node node;
	struct base_list age; /* oldest first */
	struct flow *flow;    /* that it came on */
	uint64_t packet;      /* its ordinal */
	uint64_t order;       /* DATA, FRAGMENT: unwrapped; RESPONSE: PSN, or place in the stream */
	uint32_t acknowledged; /* iWARP RESPONSE */
	uint32_t losses;       /* likewise: of its stream until then */
	uint64_t address;      /* DATA; iWARP RESPONSE: offset in the sink */
	uint32_t handle;       /* likewise */
	uint32_t length;       /* of data[] */
	uint32_t original;     /* as sent */
	uint8_t kind;
	bool first, last;
	uint8_t data[];
};

/* Hold a packet's data; `e` says what it is, all but list, node and packet. Drops it if it must. */
void early_hold(struct rdma *r, const struct early *e, const uint8_t *data);

/* Begin and go on with those of a kind that came on a flow. Safe against removal of the current. */
struct early *early_first(struct rdma *r, const struct flow *flow, enum early_kind kind);
struct early *early_next(struct early *e);

/* Likewise with DATA for a handle, sent by the flows of that direction of two peers. */
struct early *early_first_data(struct rdma *r, const struct peers *peers, uint8_t direction,
                               uint32_t handle);

void early_remove(struct rdma *r, struct early *e);

/* It is an orphan. */
void early_report(struct rdma *r, const struct early *e);

/* Report and drop those that waited too long, or all. */
void early_expire(struct rdma *r, bool all);

/* Drop the oldest, for want of memory; false if there is none. */
bool early_evict(struct rdma *r);

/* Drop those of doomed flows, or all; report nothing. */
void early_forget(struct rdma *r, bool all);

#endif
