/* SPDX-License-Identifier: BSD-2-Clause */
/* What the receiver's files share. */
#ifndef RECEIVER_RECEIVER_H
#define RECEIVER_RECEIVER_H

#include <pthread.h>

#include <ndx/receiver.h>
#include <ndx/stats.h>

#include "base_list.h"
#include "base_lock.h"
#include "endpoint.h"
#include "loop.h"
#include "slab.h"

/* Events for the receiving thread. */
enum {
	RECEIVER_INDICATED = 1 << 0, /* `notify` completed: the connection is over */
	RECEIVER_PARTED = 1 << 1,    /* `disconnect` completed: nothing is under way any more */
	RECEIVER_STOP = 1 << 2,      /* somebody called stop */
};

/* Frames for ndx_receiver_pull(). It cannot overflow: it has room for every slot. */
struct pull {
	struct base_lock lock;
	const struct ndx_frame **ring;
	uint32_t room;
	uint32_t first;
	uint32_t count;
	bool ended; /* no more will come */
	int flag;   /* up while there is something to be taken, or `ended` */
};

/* Written by the receiving thread only, read by any. */
struct receiver_counters {
	uint64_t frames;
	uint64_t bytes;
	uint64_t copied;
	uint64_t copies_missed;
	uint64_t empty;
	uint64_t no_immediate;
	uint64_t lost;
	uint64_t repeated;
	uint64_t overwritten;
	uint64_t misplaced;
	uint64_t oversize;
	uint64_t connections;
	uint64_t sleeps;
	uint64_t wakeups;
	uint64_t consumer_errors[NDX_RECEIVER_CONSUMERS];
	uint64_t errors[NDX_STATS_STATUSES];
	uint64_t sizes[NDX_STATS_BUCKETS];
	uint64_t gaps[NDX_STATS_BUCKETS];
};

struct ndx_receiver {
	struct ndx_receiver_attr attr;
	struct endpoint end;
	struct ndx_cq *cq;    /* of receives */
	struct ndx_cq *tx_cq; /* of what a sender sends, and of probes */
	struct slab *slab;
	struct pull pull;
	int cq_fd;
	uint32_t receive_psn; /* as get_numbers told; endpoint.own has the rest */
	bool numbered;
	bool mute;              /* its connector knows that the peer has no channel, ... */
	uint64_t probe_address; /* ... and it is asked by a byte there */
	uint32_t probe_token;   /* 0: it is not asked */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	enum ndx_receiver_state state; /* atomic for those without the lock */
	struct ndx_receiver_cause cause;
	struct ndx_receive_loop *loop; /* held from the first run, or from create, to stop */
	bool joining;                  /* a call that connects it is at work */
	bool resetting;                /* a reset is */
	uint32_t refs;                 /* the handle, the loop, a sender */

	/* posting of a sender on this connection, and of probes; leaf but for the queue pair's */
	struct base_lock tx_lock;
	struct ndx_qp *tx_qp; /* NULL: no connection */
	bool has_sender;
	uint32_t senders; /* that there ever were: whose results are whose */

	struct ndx_overlapped notify;
	struct ndx_overlapped disconnect;
	uint32_t events; /* atomic */

	/* the receiving thread's */
	struct base_list node;
	bool parting;
	bool probing;          /* a probe is under way, and its answer is waited for */
	bool unwatched;        /* there was no room to wait for its queue: it is polled */
	bool told_in_callback; /* stop was called on this thread: on_end tells when it is done */
	uint32_t expected;     /* sequence number of the next frame */
	uint32_t batch;
	uint64_t last_ns;  /* when the last frame came, or it began to run */
	uint64_t probe_ns; /* when the probe went out */
	uint64_t starved_logged;
	uint64_t starved_logged_ns;
	struct receiver_counters counters;
};

static inline void count_up(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline enum ndx_receiver_state receiver_state(const struct ndx_receiver *r)
{
	return __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
}

/* receiver_state.c */
void receiver_set_state(struct ndx_receiver *r, enum ndx_receiver_state state); /* locked */
/* Why it ends; the first one counts. Any thread. */
__attribute__((format(printf, 5, 6))) void receiver_because(struct ndx_receiver *r,
                                                            enum ndx_receiver_end end,
                                                            enum ndx_status status, int32_t native,
                                                            const char *fmt, ...);
enum ndx_status receiver_make_qp(struct ndx_receiver *r);
/* One reference less; frees it with the last. */
void receiver_drop(struct ndx_receiver *r);
/* All that there is to free; what was never made is NULL. */
void receiver_free(struct ndx_receiver *r);
/* Let a sender and probes post on the connection, or no more. */
void receiver_lend(struct ndx_receiver *r, bool lent);

/* run.c: the receiving thread's */
void receiver_begin(struct ndx_receiver *r); /* before it is on the thread's list */
size_t receiver_poll(struct ndx_receiver *r);
bool receiver_arm(struct ndx_receiver *r);
void receiver_woken(struct ndx_receiver *r);

/* teardown.c. attend: false when the receiver has nothing more to do with the thread. */
bool receiver_attend(struct ndx_receiver *r, uint64_t now_ns, uint64_t *due_ns);
void receiver_left(struct ndx_receiver *r);
/* Take the connection apart and take back all slots. Nobody else is at it. */
void receiver_dismantle(struct ndx_receiver *r);

/* pull.c */
enum ndx_status pull_open(struct pull *p, uint32_t room);
void pull_push(struct pull *p, const struct ndx_frame *frame);
void pull_end(struct pull *p, bool ended);
void pull_close(struct pull *p);

/* ways.c. Undo ndx_receiver_describe(): CREATED again. */
void receiver_undescribe(struct ndx_receiver *r);

#endif
