/* SPDX-License-Identifier: BSD-2-Clause */
/* A lane straight over ibverbs, connected by hand. Nothing is kept or checked but what is counted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "lane.h"

#define SLEEP_MS 5000
#define PORT 1
#define GIDS 256

struct verbs_end {
	struct end base;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint8_t gid_index;
	struct verbs_end *peer;
	char *memory; /* what is sent, then what is received */
	uint32_t size;
	uint32_t under_way; /* sends */
	struct ibv_sge out;
	struct ibv_sge in;
	unsigned out_turn;
	unsigned in_turn;
	uint64_t *number;         /* of the last write, at the end of what is sent */
	const uint64_t *arriving; /* ... of the peer's */
};

struct verbs_lane {
	struct lane base;
	struct verbs_end ends[2];
};

static void must(const char *call, int err)
{
	if (err != 0)
		lane_die(call, strerror(err));
}

static struct verbs_end *of(struct end *end)
{
	return (struct verbs_end *)(void *)end;
}

static void end_receive(struct end *base)
{
	struct verbs_end *end = of(base);
	struct ibv_recv_wr wr = {.sg_list = &end->in, .num_sge = 1};
	struct ibv_recv_wr *bad;

	end->in.addr = (uintptr_t)lane_turn(end->memory + end->size + LANE_LINE, &end->in_turn);
	must("ibv_post_recv", ibv_post_recv(end->qp, &wr, &bad));
}

static void end_no_receive(struct end *base)
{
	(void)base;
}

static bool end_send(struct end *base)
{
	struct verbs_end *end = of(base);
	struct ibv_send_wr wr = {.sg_list = &end->out,
	                         .num_sge = 1,
	                         .opcode = IBV_WR_SEND,
	                         .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	if (end->under_way == LANE_WINDOW)
		return false;
	end->out.addr = (uintptr_t)lane_turn(end->memory, &end->out_turn);
	must("ibv_post_send", ibv_post_send(end->qp, &wr, &bad));
	end->under_way++;
	return true;
}

static bool end_write(struct end *base)
{
	struct verbs_end *end = of(base);
	struct ibv_send_wr wr = {.sg_list = &end->out,
	                         .num_sge = 1,
	                         .opcode = IBV_WR_RDMA_WRITE,
	                         .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	(*end->number)++;
	wr.wr.rdma.remote_addr = end->peer->in.addr;
	wr.wr.rdma.rkey = end->peer->mr->rkey;
	must("ibv_post_send", ibv_post_send(end->qp, &wr, &bad));
	end->under_way++;
	return true;
}

static void end_poll(struct end *base)
{
	struct verbs_end *end = of(base);
	struct ibv_wc wcs[LANE_BATCH];
	const int n = ibv_poll_cq(end->cq, LANE_BATCH, wcs);

	for (int i = 0; i < n; i++) {
		if (wcs[i].status != IBV_WC_SUCCESS)
			lane_die("a request failed", ibv_wc_status_str(wcs[i].status));
		if (wcs[i].opcode & IBV_WC_RECV) {
			if (wcs[i].byte_len != end->size)
				lane_die("a message", "has another length than it was sent with");
			base->received++;
		} else {
			base->sent++;
			end->under_way--;
		}
	}
}

static void end_look(struct end *base)
{
	end_poll(base);
	base->received = __atomic_load_n(of(base)->arriving, __ATOMIC_ACQUIRE);
}

static void end_wait(struct end *base)
{
	struct verbs_end *end = of(base);
	struct pollfd p = {.fd = end->channel->fd, .events = POLLIN};
	const uint64_t before = base->sent + base->received;
	struct ibv_cq *cq;
	void *context;

	must("ibv_req_notify_cq", ibv_req_notify_cq(end->cq, 0));
	end_poll(base);
	/* A completion that came since then raises an event that is not needed: it is taken the
	 * next time. */
	if (base->sent + base->received != before)
		return;
	if (poll(&p, 1, SLEEP_MS) == 0)
		lane_die("ibverbs: nothing came for", "five seconds");
	must("ibv_get_cq_event", ibv_get_cq_event(end->channel, &cq, &context) == 0 ? 0 : errno);
	ibv_ack_cq_events(cq, 1);
}

static const struct end_ops ops = {
	.receive = end_receive, .send = end_send, .poll = end_poll, .wait = end_wait};
static const struct end_ops ops_write = {
	.receive = end_no_receive, .send = end_write, .poll = end_look, .wait = end_wait};

/* ---- life ---- */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (size_t i = 0; list != NULL && list[i] != NULL && context == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	if (context == NULL)
		lane_die("ibverbs: cannot open", name);
	return context;
}

/* That of the IPv4 address, by RoCEv2; on InfiniBand the first. */
static void find_gid(struct verbs_end *end)
{
	struct ibv_gid_entry gids[GIDS];
	const ssize_t count = ibv_query_gid_table(end->context, gids, GIDS, 0);

	must("ibv_query_port", ibv_query_port(end->context, PORT, &end->port));
	for (ssize_t i = 0; i < count; i++) {
		/* all 96 bits: a link-local GID may have ff:ff at the same place, too */
		const bool mapped = IN6_IS_ADDR_V4MAPPED(
			(const struct in6_addr *)(const void *)gids[i].gid.raw);

		if (gids[i].port_num != PORT ||
		    (end->port.link_layer == IBV_LINK_LAYER_ETHERNET &&
		     (gids[i].gid_type != IBV_GID_TYPE_ROCE_V2 || !mapped)))
			continue;
		end->gid = gids[i].gid;
		end->gid_index = (uint8_t)gids[i].gid_index;
		return;
	}
	lane_die("ibverbs: no GID of an IPv4 address on",
	         ibv_get_device_name(end->context->device));
}

static void open_qp(struct verbs_end *end, uint32_t depth)
{
	struct ibv_qp_init_attr init = {.send_cq = end->cq,
	                                .recv_cq = end->cq,
	                                .cap = {LANE_WINDOW, depth, 1, 1, 0},
	                                .qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
	                           .port_num = PORT,
	                           .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	end->qp = ibv_create_qp(end->pd, &init);
	if (end->qp == NULL)
		must("ibv_create_qp", errno);
	must("ibv_modify_qp to INIT",
	     ibv_modify_qp(end->qp, &attr,
	                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void open_end(struct verbs_end *end, const struct lane_attr *attr, const char *device)
{
	const size_t size = attr->size + LANE_LINE;

	end->base.ops = attr->write ? &ops_write : &ops;
	end->size = attr->size;
	end->memory = lane_memory(2 * size);
	memset(end->memory, 0, 2 * size);
	end->context = open_device(device);
	find_gid(end);
	end->pd = ibv_alloc_pd(end->context);
	end->channel = ibv_create_comp_channel(end->context);
	if (end->pd == NULL || end->channel == NULL)
		must("ibv_alloc_pd, ibv_create_comp_channel", errno);
	end->cq = ibv_create_cq(end->context, (int)(LANE_WINDOW + attr->depth), NULL, end->channel,
	                        0);
	end->mr = ibv_reg_mr(end->pd, end->memory, 2 * size,
	                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (end->cq == NULL || end->mr == NULL)
		must("ibv_create_cq, ibv_reg_mr", errno);
	end->out = (struct ibv_sge){(uintptr_t)end->memory, attr->size, end->mr->lkey};
	end->in = (struct ibv_sge){(uintptr_t)end->memory + size, attr->size, end->mr->lkey};
	open_qp(end, attr->depth);
	if (attr->write) {
		end->number = (uint64_t *)(void *)(end->memory + attr->size - sizeof(uint64_t));
		end->arriving =
			(uint64_t *)(void *)(end->memory + size + attr->size - sizeof(uint64_t));
		return;
	}
	for (uint32_t i = 0; i < attr->depth; i++)
		end_receive(&end->base);
}

/* The kernel refuses with a number alone: say what it was asked for, and what is there by now. */
_Noreturn static void die_unready(const struct verbs_end *end, int err)
{
	char own[INET6_ADDRSTRLEN] = "none";
	char now[INET6_ADDRSTRLEN] = "none";
	char peer[INET6_ADDRSTRLEN] = "none";
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_UNKNOWN};
	struct ibv_qp_init_attr init;
	union ibv_gid gid;
	char why[400];

	(void)inet_ntop(AF_INET6, end->gid.raw, own, sizeof(own));
	(void)inet_ntop(AF_INET6, end->peer->gid.raw, peer, sizeof(peer));
	if (ibv_query_gid(end->context, PORT, end->gid_index, &gid) == 0)
		(void)inet_ntop(AF_INET6, gid.raw, now, sizeof(now));
	(void)ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init);
	(void)snprintf(why, sizeof(why),
	               "%s: %s, GID %u was %s and is %s; to %s, queue pair %u to %u in state %d, "
	               "port in state %d with MTU code %d",
	               strerror(err), ibv_get_device_name(end->context->device), end->gid_index,
	               own, now, peer, end->qp->qp_num, end->peer->qp->qp_num, (int)attr.qp_state,
	               (int)end->port.state, (int)end->port.active_mtu);
	lane_die("ibv_modify_qp to RTR", why);
}

static void connect_end(struct verbs_end *end)
{
	const struct verbs_end *peer = end->peer;
	struct ibv_qp_attr ready = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->port.active_mtu,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
	                    .port_num = PORT,
	                    .dlid = peer->port.lid,
	                    .grh = {.dgid = peer->gid,
	                            .sgid_index = end->gid_index,
	                            .hop_limit = 64}},
	};
	struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS,
	                           .timeout = 17,
	                           .retry_cnt = 6,
	                           .rnr_retry = 7,
	                           .max_rd_atomic = 1};
	int err;

	err = ibv_modify_qp(end->qp, &ready,
	                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	                            IBV_QP_MIN_RNR_TIMER);
	if (err != 0)
		die_unready(end, err);
	must("ibv_modify_qp to RTS",
	     ibv_modify_qp(end->qp, &send,
	                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void close_lane(struct lane *base)
{
	struct verbs_lane *lane = (struct verbs_lane *)(void *)base;

	for (int i = 0; i < 2; i++) {
		struct verbs_end *end = &lane->ends[i];

		must("ibv_destroy_qp", ibv_destroy_qp(end->qp));
		must("ibv_destroy_cq", ibv_destroy_cq(end->cq));
		must("ibv_destroy_comp_channel", ibv_destroy_comp_channel(end->channel));
		must("ibv_dereg_mr", ibv_dereg_mr(end->mr));
		must("ibv_dealloc_pd", ibv_dealloc_pd(end->pd));
		must("ibv_close_device", ibv_close_device(end->context));
		free(end->memory);
	}
	free(lane);
}

struct lane *lane_open_verbs(const struct lane_attr *attr, const struct lane_below *below)
{
	struct verbs_lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		lane_die("no memory", "for a connection");
	lane->base.name = "verbs";
	lane->base.close = close_lane;
	for (int i = 0; i < 2; i++) {
		lane->base.ends[i] = &lane->ends[i].base;
		lane->ends[i].peer = &lane->ends[1 - i];
		open_end(&lane->ends[i], attr, below->devices[i]);
	}
	for (int i = 0; i < 2; i++)
		connect_end(&lane->ends[i]);
	return &lane->base;
}

bool lane_has_verbs(void)
{
	return true;
}
