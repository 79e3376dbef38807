/* SPDX-License-Identifier: BSD-2-Clause */
/* A lane straight over libfabric: what a careful programmer would write without NDX. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_rma.h>

#include "lane.h"
#include "raw.h"

#define SLEEP_MS 5000

/* What a completion belongs to, by its context. */
enum raw_op { RAW_SEND = 1, RAW_RECEIVE, RAW_CREDIT };

struct raw_end {
	struct end base;
	struct raw_node node;
	uint32_t size;
	uint32_t depth;
	uint32_t under_way; /* sends */
	char *memory;       /* what is sent, then what is received */
	struct iovec out;
	struct iovec in;
	unsigned out_turn;
	unsigned in_turn;
	struct fi_context contexts[RAW_CREDIT + 1];
	int fd;
	/* with the same guarantees: */
	bool same;
	struct fid_mr *control; /* credits are written to it */
	uint64_t peer_key;
	uint32_t credits; /* receives of the peer's that may still be used */
	uint32_t posted;
	uint32_t told; /* of those posted, the ones that the peer knows of */
};

struct raw_lane {
	struct lane base;
	struct raw_end ends[2];
};

static struct raw_end *of(struct end *end)
{
	return (struct raw_end *)(void *)end;
}

static void end_receive(struct end *base)
{
	struct raw_end *end = of(base);
	const struct fi_msg msg = {
		.msg_iov = &end->in, .iov_count = 1, .context = &end->contexts[RAW_RECEIVE]};

	end->in.iov_base = lane_turn(end->memory + end->size + LANE_LINE, &end->in_turn);
	raw_must("fi_recvmsg", fi_recvmsg(end->node.ep, &msg, FI_COMPLETION));
	end->posted++;
}

static bool send_same(struct end *base)
{
	struct raw_end *end = of(base);
	const uint32_t fresh = end->posted - end->told;
	const struct fi_msg msg = {.msg_iov = &end->out,
	                           .iov_count = 1,
	                           .context = &end->contexts[RAW_SEND],
	                           .data = fresh};
	ssize_t err;

	if (end->under_way == LANE_WINDOW || end->credits == 0)
		return false;
	end->out.iov_base = lane_turn(end->memory, &end->out_turn);
	err = fi_sendmsg(end->node.ep, &msg,
	                 FI_COMPLETION | FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA);
	if (err == -FI_EAGAIN)
		return false;
	raw_must("fi_sendmsg", err);
	end->told += fresh;
	end->credits--;
	end->under_way++;
	return true;
}

static bool send_plain(struct end *base)
{
	struct raw_end *end = of(base);
	const struct fi_msg msg = {
		.msg_iov = &end->out, .iov_count = 1, .context = &end->contexts[RAW_SEND]};
	ssize_t err;

	if (end->under_way == LANE_WINDOW)
		return false;
	end->out.iov_base = lane_turn(end->memory, &end->out_turn);
	if (end->size <= end->node.inject_size) {
		err = fi_inject(end->node.ep, end->out.iov_base, end->size, 0);
		base->sent += err == 0;
	} else {
		err = fi_sendmsg(end->node.ep, &msg, FI_COMPLETION);
		end->under_way += err == 0;
	}
	if (err == -FI_EAGAIN)
		return false;
	raw_must("fi_send", err);
	return true;
}

/* An end that polls, or sleeps, with nothing to send reports new receives when half of them, or
 * all, are not known to the peer. */
static void tell_credits(struct raw_end *end)
{
	const uint32_t fresh = end->posted - end->told;
	const uint32_t left = end->depth - fresh;
	const struct fi_rma_iov remote = {.key = end->peer_key};
	const struct fi_msg_rma msg = {.rma_iov = &remote,
	                               .rma_iov_count = 1,
	                               .context = &end->contexts[RAW_CREDIT],
	                               .data = fresh};

	if (!end->same || fresh == 0 || (left > 0 && fresh < end->depth / 2))
		return;
	if (fi_writemsg(end->node.ep, &msg, FI_REMOTE_CQ_DATA) == 0)
		end->told += fresh;
}

static void count(struct raw_end *end, const struct fi_cq_data_entry *entry)
{
	if (entry->flags & FI_REMOTE_CQ_DATA)
		end->credits += (uint32_t)entry->data;
	if (entry->op_context == &end->contexts[RAW_RECEIVE]) {
		if (entry->len != end->size)
			lane_die("a message", "has another length than it was sent with");
		end->base.received++;
	} else if (entry->op_context == &end->contexts[RAW_SEND]) {
		end->base.sent++;
		end->under_way--;
	}
}

static void end_poll(struct end *base)
{
	struct raw_end *end = of(base);
	struct fi_cq_data_entry entries[LANE_BATCH];
	ssize_t n;

	tell_credits(end);
	n = fi_cq_read(end->node.cq, entries, LANE_BATCH);
	if (n < 0 && n != -FI_EAGAIN)
		raw_must("fi_cq_read", n);
	for (ssize_t i = 0; i < n; i++)
		count(end, &entries[i]);
}

static void end_wait(struct end *base)
{
	struct raw_end *end = of(base);
	struct fid *fids[1] = {&end->node.cq->fid};
	struct pollfd p = {.fd = end->fd, .events = POLLIN};

	tell_credits(end);
	if (fi_trywait(end->node.fabric, fids, 1) == 0 && poll(&p, 1, SLEEP_MS) == 0)
		lane_die("raw: nothing came for", "five seconds");
}

static const struct end_ops ops_same = {
	.receive = end_receive, .send = send_same, .poll = end_poll, .wait = end_wait};
static const struct end_ops ops_plain = {
	.receive = end_receive, .send = send_plain, .poll = end_poll, .wait = end_wait};

static void open_end(struct raw_end *end, const struct lane_attr *attr, bool same)
{
	const size_t size = attr->size + LANE_LINE;

	end->base.ops = same ? &ops_same : &ops_plain;
	end->same = same;
	end->size = attr->size;
	end->depth = attr->depth;
	end->memory = lane_memory(2 * size);
	end->out = (struct iovec){end->memory, attr->size};
	end->in = (struct iovec){end->memory + size, attr->size};
	raw_must("fi_mr_reg", fi_mr_reg(end->node.domain, end->memory, 1, FI_REMOTE_WRITE, 0, 1, 0,
	                                &end->control, NULL));
	raw_must("fi_control(FI_GETWAIT)", fi_control(&end->node.cq->fid, FI_GETWAIT, &end->fd));
	for (uint32_t i = 0; i < attr->depth; i++)
		end_receive(&end->base);
}

static void close_lane(struct lane *base)
{
	struct raw_lane *lane = (struct raw_lane *)(void *)base;

	for (int i = 0; i < 2; i++) {
		raw_must("fi_close of a region", fi_close(&lane->ends[i].control->fid));
		raw_close(&lane->ends[i].node);
		free(lane->ends[i].memory);
	}
	free(lane);
}

struct lane *lane_open_raw(const struct lane_attr *attr, const char *device,
                           const struct sockaddr *address, socklen_t len, bool same)
{
	struct raw_lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		lane_die("no memory", "for a connection");
	lane->base.name = same ? "raw_same" : "raw_plain";
	lane->base.close = close_lane;
	raw_connect(&lane->ends[0].node, &lane->ends[1].node, device, address, len);
	for (int i = 0; i < 2; i++) {
		lane->base.ends[i] = &lane->ends[i].base;
		open_end(&lane->ends[i], attr, same);
	}
	for (int i = 0; i < 2; i++) {
		struct raw_end *end = &lane->ends[i];

		/* As if told while connecting. */
		end->credits = attr->depth;
		end->told = attr->depth;
		end->peer_key = fi_mr_key(lane->ends[1 - i].control);
	}
	return &lane->base;
}

bool lane_has_raw(void)
{
	return true;
}
