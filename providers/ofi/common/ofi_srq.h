/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues, emulated: libfabric gets a receive only when a peer has asked for it.
 *
 * A peer whose message has no credit says how many messages wait (WANT). The queue pair then takes
 * receives out of the shared queue, gives them to its endpoint, and tells the peer by credits, as
 * with receives of its own. A connection that has nothing to send holds no receive. A receive that
 * its connection did not use when the connection ends goes back to the queue, to its old place.
 *
 * Locks, beside those of ofi.h: adapter->srqs_lock before that of a queue pair, ofi_srq.base.lock
 * after it.
 */
#ifndef OFI_OFI_SRQ_H
#define OFI_OFI_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/ndx.h>
#include <ndx/spi/provider.h>

#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/queue_pair.h>
#include <ndx/spi/shared_receive_queue.h>

struct ofi_adapter;
struct ofi_qp;
struct ofi_rx;
struct ofi_srq_block;

/* Receives of a shared queue that one connection may hold. */
#define OFI_SRQ_HELD 64u

/* A receive of a shared queue, while it is posted. */
struct ofi_shared {
	struct ndxp_list node; /* in srq->ready, or in srq->spare */
	void *context;
	uint64_t number; /* in the order of posting */
	uint32_t count;  /* of `sge` */
	struct ndx_sge sge[];
};

struct ofi_srq {
	struct ndxp_srq base;
	struct ofi_adapter *adapter;
	struct ndxp_list node; /* in adapter->srqs */
	uint32_t max_sge;
	/* guarded by base.lock: */
	struct ofi_srq_block *blocks;
	struct ndxp_list spare;     /* records that are not in use */
	struct ndxp_list ready;     /* receives that no queue pair holds, the oldest first */
	struct ndxp_list *returned; /* the one in `ready` that went back last; NULL: it was taken */
	struct ndxp_list waiters; /* struct ofi_taker.node: queue pairs that found `ready` empty */
	uint32_t records;
	uint32_t ready_count;
	uint32_t waiter_count;
	uint32_t users;  /* count of queue pairs */
	uint64_t number; /* of the next receive */
};

/* The queue pair's part. Its `base.receive` is a ring of what it holds: a place is free when the
 * receive is used or has gone back, and results use the slots of `link`. */
struct ofi_taker {
	struct ofi_srq *srq; /* constant; NULL: the queue pair has receives of its own */
	struct ndxp_srq_link *link;
	struct ndxp_list node; /* in srq->waiters; guarded by srq->base.lock */
	/* guarded by the queue pair's lock */
	struct ndxp_queue counts; /* for statistics */
	uint32_t wanted;          /* messages of the peer that wait, and have no receive here yet */
	uint32_t most_held;       /* receives held after the latest grant */
};

/* ---- operations of the provider, and of queue pairs (ofi_srq.c) ---- */

enum ndx_status ofi_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                               struct ndx_spi_srq **out);
void ofi_srq_destroy(struct ndx_spi_srq *spi);
/* A queue pair begins to use the shared queue of its attributes, or ends to. */
enum ndx_status ofi_srq_join(struct ofi_qp *qp);
void ofi_srq_leave(struct ofi_qp *qp);

/* ---- receives that a queue pair holds (ofi_srq_hold.c); its lock is held ---- */

/* Take up to `most` receives out of the queue into the ring. When the queue has no more, the queue
 * pair waits for the rest. its_turn: the queue pair was the first that waits. Returns how many. */
uint32_t ofi_srq_hold(struct ofi_qp *qp, uint32_t most, bool its_turn);
/* A receive has become a result, or, if the status is CANCELED, goes back to the queue. */
void ofi_srq_done(struct ofi_qp *qp, struct ofi_rx *rx, enum ndx_status status, int native);
/* All that the queue pair holds goes back; libfabric has none of it any more. */
void ofi_srq_return_all(struct ofi_qp *qp);

/* ---- giving receives to connections (ofi_srq_grant.c) ---- */

/* The queue pair's lock is held: the peer has so many messages for which it has no credit. NULL, or
 * the peer's violation of the protocol. */
const char *ofi_srq_want(struct ofi_qp *qp, uint32_t count);
/* The queue pair's lock is held: one of the held receives has got its message. */
void ofi_srq_arrived(struct ofi_qp *qp);
/* The queue pair's lock is held: its receives were recalled, and nothing was granted
 * in between. */
void ofi_srq_recalled(struct ofi_qp *qp);
/* The queue pair's lock is held: give libfabric what the queue pair holds, and tell the peer. What
 * fails for want of memory is tried again a moment later. */
void ofi_srq_tell(struct ofi_qp *qp);
/* No lock held: serve the queue pairs that wait. */
void ofi_srq_serve(struct ofi_srq *srq);
/* The same for all shared queues of an adapter; the function of a job. */
void ofi_srq_serve_all(void *arg);

/* ---- the peer's shared queue (ofi_srq_ask.c) ---- */

/* The queue pair's lock is held: has the peer been asked for receives that it has not all given, or
 * that are not all used? */
bool ofi_srq_is_due(const struct ofi_qp *qp);

/* The queue pair's lock is held, and it has no credit: ask the peer for receives, unless it has
 * been asked. False: libfabric has no memory, and the call is repeated a moment later. */
bool ofi_srq_ask(struct ofi_qp *qp);

#endif
