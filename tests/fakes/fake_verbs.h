/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fake device: a null ibv_context whose operations count calls, fail the call that a test chose,
 * hold completions back, deliver them in batches, and free send slots as adapters do. This file
 * also defines the calls of libibverbs and librdmacm that a queue pair needs. A program that links
 * this file therefore needs no device, no kernel module and no privilege. Software RoCE hides one
 * property of adapters: an adapter frees the slots of a send queue only when a consumer polls the
 * completion of a later signaled request. The fake device does so unless `frees_at_once` is set.
 * The fake device is not thread-safe, and a program has one at a time.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define FAKE_WR_MAX 256u
#define FAKE_EVENTS 8u

enum fake_call {
	FAKE_POST_SEND,
	FAKE_POST_RECV,
	FAKE_POST_SRQ_RECV,
	FAKE_POLL_CQ,
	FAKE_ARM_CQ,
	FAKE_CREATE_CQ,
	FAKE_RESIZE_CQ,
	FAKE_CREATE_SRQ,
	FAKE_MODIFY_SRQ,
	FAKE_CREATE_QP,
	FAKE_MODIFY_QP,
	FAKE_REG_MR,
	FAKE_INIT_QP_ATTR,
	FAKE_DISCONNECT,
	FAKE_CALLS
};

struct fake_device {
	struct ibv_context context; /* first */
	struct ibv_pd pd;
	unsigned long count[FAKE_CALLS];
	/* The call with this number fails with refuse_errno. The next call is number 1; 0: no call
	 * fails. */
	unsigned long refuse_nth[FAKE_CALLS];
	int refuse_errno;
	/* The posted request with this number fails with refuse_errno, and the device takes none of
	 * its native list from there on. The next request is number 1; 0: none fails. */
	unsigned refuse_entry;
	/* sends complete at once; else fake_complete_sends() completes them */
	bool runs;
	bool frees_at_once; /* frees send slots before the poll, as software RoCE does */
	/* never flushes a receive posted in ERR, as software RoCE does */
	bool drops_late_receives;
	unsigned empty_polls; /* this number of polls finds no completion */
	unsigned batch;       /* the number of completions that a poll waits for; 0: 1 */
	/* A failure raises no event on a queue that is armed for solicited completions, as software
	 * RoCE does. */
	bool silent_failures;
	bool has_dmabuf;
	/* fake_break() flushes the outstanding requests; the change to ERR does not */
	bool flushes_late;
	int vector;             /* completion vector of the latest completion queue */
	unsigned queues, pairs; /* existing completion queues and queue pairs */
	unsigned regions;
	unsigned zero_byte_writes;      /* RDMA writes of no bytes: some networks drop them */
	struct ibv_port_attr port;      /* the state is ACTIVE */
	struct fake_cq *cq_with_events; /* a queue with pending events; one at a time */
	/* Called once, before a queue is polled or armed. The next poll or arming is number 1. */
	unsigned hook_nth;
	void (*hook)(void *arg);
	void *hook_arg;
	struct ibv_async_event events[FAKE_EVENTS];
	unsigned event_count;
};

struct fake_wr {
	uint64_t id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint32_t bytes;
};

struct fake_wc {
	struct ibv_wc wc;
	struct fake_qp *frees; /* the poll frees this send queue's slots up to up_to; or NULL */
	uint32_t up_to;
};

struct fake_cq {
	struct ibv_cq pub;
	struct fake_wc *ring;
	uint32_t head;
	uint32_t tail;
	uint32_t visible; /* end of the completions that a batch has made visible */
	bool overrun;     /* a completion was lost */
	bool armed_any;
	bool armed_solicited;
	bool narrowed;           /* was armed for solicited completions while armed for all */
	unsigned events_pending; /* events that ibv_get_cq_event() has not returned yet */
};

struct fake_srq {
	struct ibv_srq pub;
	uint32_t room;
	struct fake_wr ring[FAKE_WR_MAX];
	uint32_t head;
	uint32_t tail;
};

struct fake_qp {
	struct ibv_qp pub;
	struct ibv_qp_cap cap;
	struct fake_wr sends[FAKE_WR_MAX];
	uint32_t send_head; /* the oldest incomplete send */
	uint32_t send_tail;
	uint32_t send_freed; /* slots before this one are free */
	struct fake_wr receives[FAKE_WR_MAX];
	uint32_t receive_head;
	uint32_t receive_tail;
	/* the attributes that ibv_modify_qp() has set, by its mask */
	struct ibv_qp_attr modify_attr;
	unsigned signalled; /* number of signaled sends ever posted */
};

void fake_open(struct fake_device *device);

static inline struct fake_qp *fake_qp_of(struct ibv_qp *qp)
{
	return (struct fake_qp *)(void *)qp;
}
static inline struct fake_cq *fake_cq_of(struct ibv_cq *cq)
{
	return (struct fake_cq *)(void *)cq;
}

/* The `count` oldest outstanding sends complete with success. */
void fake_complete_sends(struct ibv_qp *qp, unsigned count);
/* The oldest outstanding send fails with `status`; the device flushes all other requests. */
void fake_break(struct ibv_qp *qp, enum ibv_wc_status status);
/* A message of `bytes` bytes arrives and consumes the oldest receive. False: no receive is
 * posted. */
bool fake_arrive(struct ibv_qp *qp, uint32_t bytes);
bool fake_arrive_solicited(struct ibv_qp *qp, uint32_t bytes);
/* The device raises this asynchronous event. */
void fake_raise_event(struct fake_device *device, enum ibv_event_type what, void *element);
void fake_raise_port_event(struct fake_device *device, enum ibv_event_type what, int port);

#endif
