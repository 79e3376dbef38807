/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that is not there: a null ibv_context whose operations count, refuse the call that they
 * were told to, hold completions back and hand them out in batches, and keep slots as adapters do.
 * The calls of libibverbs and librdmacm that a queue pair's life needs are defined here, too; a
 * program that has this file uses these, and needs no device, no kernel module and no rights.
 *
 * What software RoCE hides can be seen here: an adapter frees the slots of a send queue only when
 * the completion of a later signalled request is polled. It is on unless `frees_at_once` is set.
 *
 * Not thread-safe; one device at a time.
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
	struct ibv_context context;
	struct ibv_pd pd;
	unsigned long count[FAKE_CALLS];
	/* This call fails with this errno: the next is number 1; 0: none. */
	unsigned long refuse_nth[FAKE_CALLS];
	int refuse_errno;
	bool runs;              /* sends end at once; else fake_run() says when */
	bool frees_at_once;     /* slots, as software RoCE does */
	bool forgets_late;      /* a receive posted after ERR is never flushed, as there */
	unsigned polls_empty;   /* so many polls find nothing */
	unsigned batch;         /* a poll finds nothing until so many are there; 0: 1 */
	bool silent_failures;   /* no event for them on a queue armed for solicited ones only, as
	                           there */
	bool flushes_late;      /* what is outstanding at ERR comes back with fake_break() */
	int vector;             /* of the last queue that was created */
	unsigned queues, pairs; /* that exist */
	unsigned regions;
	unsigned empty;            /* writes without bytes that went out: some networks drop them */
	struct ibv_port_attr port; /* it is active */
	struct fake_cq *telling;   /* queues with events, one at a time */
	/* Something happens, once, before a queue is polled or armed: the next time is number 1. */
	unsigned meanwhile_nth;
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
	struct ibv_async_event events[FAKE_EVENTS];
	unsigned event_count;
};

struct fake_wr {
	uint64_t id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
};

struct fake_wc {
	struct ibv_wc wc;
	struct fake_qp *frees; /* slots of its send queue, up to this one; NULL: none */
	uint32_t up_to;
};

struct fake_cq {
	struct ibv_cq pub;
	struct fake_wc *ring;
	uint32_t head;
	uint32_t tail;
	uint32_t shown; /* what a batch made visible */
	bool overrun;   /* a completion was lost */
	bool armed_all;
	bool armed_solicited;
	bool narrowed; /* was asked for solicited ones when it was armed for all */
	unsigned told; /* events that were not taken yet */
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
	uint32_t send_head; /* oldest that has not ended */
	uint32_t send_tail;
	uint32_t send_freed; /* slots before this one are free */
	struct fake_wr receives[FAKE_WR_MAX];
	uint32_t receive_head;
	uint32_t receive_tail;
	struct ibv_qp_attr asked; /* what a change of state asked for, as far as its mask goes */
	unsigned signalled;       /* sends that asked for a completion, ever */
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

/* The `count` oldest sends that are under way succeed. */
void fake_run(struct ibv_qp *qp, unsigned count);
/* The oldest fails so; everything else is flushed. */
void fake_break(struct ibv_qp *qp, enum ibv_wc_status status);
/* A message of so many bytes comes: it takes the oldest receive. False: there is none. */
bool fake_arrive(struct ibv_qp *qp, uint32_t bytes);
bool fake_arrive_solicited(struct ibv_qp *qp, uint32_t bytes);
/* The device will tell of this. */
void fake_tell(struct fake_device *device, enum ibv_event_type what, void *element);
void fake_tell_port(struct fake_device *device, enum ibv_event_type what, int port);

#endif
