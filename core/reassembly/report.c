/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of events to the consumer. */
#include "rdma.h"

/* Report the connection before its first other event. */
static void introduce(struct rdma *r, struct connection *c, const struct flow *flow, bool report)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_CONNECTION};

	c->pub.id = ++r->connections;
	r->stats.connections++;
	event.packet = r->stats.packets;
	event.time_ns = r->packet_time;
	event.connection = &c->pub;
	event.direction = flow->direction;
	if (report)
		r->attr.on_event(r->attr.context, &event);
}

void rdma_report(struct rdma *r, const struct flow *flow, struct ndx_reassembly_event *event)
{
	if (r->quiet)
		return;
	event->packet = r->stats.packets;
	event->time_ns = r->packet_time;
	if (flow != NULL) {
		if (flow->connection->pub.id == 0)
			introduce(r, flow->connection, flow,
			          event->type != NDX_REASSEMBLY_CONNECTION);
		event->connection = &flow->connection->pub;
		event->direction = flow->direction;
	}
	if (event->type == NDX_REASSEMBLY_ORPHAN)
		r->stats.orphans++;
	else if (event->type == NDX_REASSEMBLY_EVICTION)
		r->stats.evictions++;
	r->attr.on_event(r->attr.context, event);
}

void rdma_report_duplicate(struct rdma *r, const struct flow *flow, uint32_t psn, uint8_t opcode,
                           bool send)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_DUPLICATE};

	r->stats.duplicates++;
	r->stats.duplicate_sends += send;
	event.duplicate.psn = psn;
	event.duplicate.opcode = opcode;
	event.duplicate.send = send;
	rdma_report(r, flow, &event);
}

void rdma_report_hole(struct rdma *r, const struct flow *flow, const struct ndx_hole *hole)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_HOLE};

	r->stats.holes++;
	event.hole = *hole;
	rdma_report(r, flow, &event);
}
