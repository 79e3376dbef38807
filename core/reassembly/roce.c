/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of InfiniBand, native or over Ethernet. */
#include <string.h>

#include "rdma.h"

/* An acknowledgement that is farther from the newest request is a coincidence. */
#define ACKNOWLEDGED_MAX 512
#define QPN_CM 1

static struct flow *flow_to(struct rdma *r, const struct frame *frame, bool back, uint32_t qpn)
{
	struct frame f = *frame;

	if (back) {
		memcpy(f.address.source, frame->address.destination, 16);
		memcpy(f.address.destination, frame->address.source, 16);
	}
	return flow_of(r, &f, qpn);
}

/* A queue pair begins to send at `psn`: a new one, or one whose packets were seen already. If it
 * belonged to another connection before, it has been reused. */
static void begin_flow(struct rdma *r, struct flow *flow, uint32_t psn, uint64_t manager)
{
	bool again = flow->manager != 0 && flow->manager != manager;
	uint64_t order;

	flow->manager = manager;
	if (!flow->begun) {
		flow->seen.top = ((UINT64_C(1) << 32) | psn) - 1;
		flow->begun = true;
		return;
	}
	order = flow_order(flow, psn);
	if (again || order + FLOW_WINDOW < flow->seen.top || order > flow->seen.top + FLOW_WINDOW)
		flow_restart(r, flow, psn);
}

/* Make the two flows of a connection a pair, from the messages of the connection manager. */
static void connected(struct rdma *r, const struct frame *frame, const struct rdma_request *asked,
                      const struct cm_message *reply)
{
	struct flow *there = flow_to(r, frame, true, reply->qpn); /* to the replier */
	uint64_t manager = (uint64_t)reply->remote_id << 32 | reply->local_id;
	struct flow *here;

	if (there == NULL)
		return;
	begin_flow(r, there, reply->psn, manager);
	/* Creating the second flow may evict the first. */
	here = flow_to(r, frame, false, asked->message.qpn);
	there = flow_to(r, frame, true, reply->qpn);
	if (here == NULL || there == NULL || here == there)
		return;
	begin_flow(r, here, asked->message.psn, manager);
	flow_pair(r, there, here);
}

static bool answers(const struct rdma_request *asked, const struct frame *frame,
                    const struct cm_message *reply)
{
	return asked->message.kind == CM_REQUEST && asked->message.local_id == reply->remote_id &&
	       memcmp(asked->frame.address.source, frame->address.destination, 16) == 0 &&
	       memcmp(asked->frame.address.destination, frame->address.source, 16) == 0;
}

static void manage(struct rdma *r, const struct frame *frame, const struct bth *packet)
{
	struct rdma_request *slot;
	struct cm_message message;

	if (packet->qpn != QPN_CM || packet->captured < packet->length ||
	    !cm_parse(packet->data, packet->captured, &message))
		return;
	if (message.kind == CM_REQUEST) {
		/* The requester's reply may have overtaken its request. */
		for (uint32_t i = 0; i < RDMA_CM_PENDING; i++) {
			slot = &r->cm[i];
			if (slot->message.kind == CM_REPLY &&
			    slot->message.remote_id == message.local_id &&
			    memcmp(slot->frame.address.source, frame->address.destination, 16) ==
			            0) {
				struct rdma_request asked = {*frame, message};
				struct rdma_request reply = *slot;

				slot->message.kind = 0;
				connected(r, &reply.frame, &asked, &reply.message);
				return;
			}
		}
	} else if (message.kind == CM_REPLY) {
		for (uint32_t i = 0; i < RDMA_CM_PENDING; i++) {
			if (answers(&r->cm[i], frame, &message)) {
				connected(r, frame, &r->cm[i], &message);
				return;
			}
		}
	} else {
		return;
	}
	slot = &r->cm[r->cm_next++ % RDMA_CM_PENDING];
	slot->frame = *frame;
	slot->message = message;
}

/* The flow with the requests that this packet answers, if the pair is unknown: the only
 * candidate. */
static void learn_pair(struct rdma *r, struct flow *flow, uint32_t psn)
{
	struct ndxp_list *list = flow_opposites(flow), *at;
	struct flow *found = NULL;

	for (at = list->next; at != list; at = at->next) {
		struct flow *other = container_of(at, struct flow, in_peers);
		uint64_t order = flow_order(other, psn);

		if (other == flow || other->pair != NULL || !other->begun ||
		    !window_has(&other->seen, order) || other->seen.top - order > ACKNOWLEDGED_MAX)
			continue;
		if (found != NULL)
			return;
		found = other;
	}
	if (found != NULL)
		flow_pair(r, found, flow);
}

/* Handle a duplicate request. Its addresses may be needed for packets that were not placed. */
static void again(struct rdma *r, struct flow *flow, const struct bth *p, uint64_t order)
{
	struct early *e;

	rdma_report_duplicate(r, flow, p->psn, p->opcode, p->kind == BTH_SEND && p->last);
	if (p->kind != BTH_WRITE || !p->has_reth)
		return;
	for (e = early_first(r, flow, EARLY_FRAGMENT); e != NULL; e = early_next(e)) {
		if (e->kind == EARLY_FRAGMENT && e->flow == flow && e->order == order) {
			early_remove(r, e);
			rdma_add_rdma_data(r, flow, p, order);
			return;
		}
	}
}

static void request(struct rdma *r, struct flow *flow, const struct bth *p)
{
	uint64_t order = flow_order(flow, p->psn);
	enum window_verdict verdict;

	if (!flow->begun) {
		flow->seen.top = order;
		flow->begun = true;
	}
	verdict = window_mark(&flow->seen, &r->mem, order);
	if (verdict == WINDOW_OLD) {
		flow_restart(r, flow, p->psn);
		order = flow_order(flow, p->psn);
		verdict = window_mark(&flow->seen, &r->mem, order);
	}
	if (verdict == WINDOW_SEEN) {
		again(r, flow, p, order);
		return;
	}
	if (p->kind == BTH_SEND)
		send_packet(r, flow, p, order);
	else if (p->kind != BTH_ATOMIC)
		rdma_add_rdma_data(r, flow, p, order);
}

static void bad_crc(struct rdma *r)
{
	struct ndx_reassembly_event event = {.type = NDX_REASSEMBLY_BAD_CRC};

	r->stats.bad_crc++;
	rdma_report(r, NULL, &event);
}

static bool crc_good(struct rdma *r, const struct frame *frame)
{
	if (r->crc == NULL || frame->network == NULL)
		return true;
	r->stats.crc_checked++;
	return crc_icrc_good(r->crc, frame);
}

void roce_packet(struct rdma *r, const struct frame *frame)
{
	struct flow *flow;
	struct bth p;

	if (!crc_good(r, frame)) {
		bad_crc(r);
		return;
	}
	if (!bth_parse(frame->payload, frame->captured, frame->length, &p)) {
		r->stats.malformed++;
		return;
	}
	r->stats.opcodes[p.opcode]++;
	if (p.service == BTH_UD)
		manage(r, frame, &p);
	if (p.service != BTH_RC && p.service != BTH_UC && p.service != BTH_XRC)
		return;
	flow = flow_of(r, frame, p.qpn);
	if (flow == NULL)
		return;
	switch ((enum bth_kind)p.kind) {
	case BTH_SEND:
	case BTH_WRITE:
	case BTH_READ_REQUEST:
	case BTH_ATOMIC:
		request(r, flow, &p);
		break;
	case BTH_READ_RESPONSE:
		rdma_add_rdma_response(r, flow, &p);
		break;
	case BTH_ACKNOWLEDGE:
	case BTH_ATOMIC_ACKNOWLEDGE:
		if (flow->pair == NULL)
			learn_pair(r, flow, p.psn);
		break;
	case BTH_NONE:
	case BTH_OTHER:
		break;
	}
}
