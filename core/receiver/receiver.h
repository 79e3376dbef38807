/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the receiver share. */
#ifndef RECEIVER_RECEIVER_H
#define RECEIVER_RECEIVER_H

#include <pthread.h>

#include <ndx/receiver.h>
#include <ndx/stats.h>

#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include "endpoint.h"
#include "loop.h"
#include "slab.h"

/* Events for the receiving thread. */
enum {
	RECEIVER_INDICATED = 1 << 0, /* `notify` completed: the connection has ended */
	RECEIVER_PARTED = 1 << 1,    /* `disconnect` completed: nothing is in flight any more */
	RECEIVER_STOP = 1 << 2,      /* ndx_receiver_stop() was called */
};

/* The frames for ndx_receiver_pull(). Cannot overflow, because there is space for every slot. */
struct pull {
	struct ndxp_lock lock;
	const struct ndx_frame **ring;
	uint32_t room;
	uint32_t first;
	uint32_t count;
	bool ended; /* no frame will follow */
	int flag;   /* an eventfd, set while there are frames, or `ended` */
};

/* Written by the receiving thread, read by any. */
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
	struct ndx_cq *cq;    /* for receives */
	struct ndx_cq *tx_cq; /* for a sender's frames, and for probes */
	struct slab *slab;
	struct pull pull;
	int cq_fd;
	uint32_t receive_psn; /* as returned by get_numbers; endpoint.own has the other numbers */
	bool numbered;
	bool no_oob;            /* the connector was told that the peer has no out-of-band stream */
	uint64_t probe_address; /* where a probe writes a byte */
	uint32_t probe_token;   /* 0: the peer is not probed */

	pthread_mutex_t lock; /* of the following members */
	pthread_cond_t changed;
	enum ndx_receiver_state state; /* atomic for readers without the lock */
	struct ndx_receiver_cause cause;
	struct ndx_receive_loop *loop; /* held from create or the first run until stop */
	bool joining;                  /* a call that connects the receiver is in progress */
	bool resetting;                /* a reset is in progress */
	uint32_t refs;                 /* the handle, the loop, a sender */

	/* Taken to post a sender's frames and probes. Only the queue pair's lock nests inside. */
	struct ndxp_lock tx_lock;
	struct ndx_qp *tx_qp; /* NULL: not connected */
	bool has_sender;
	uint32_t senders; /* how many senders there have been; identifies the owner of a result */

	struct ndx_overlapped notify;
	struct ndx_overlapped disconnect;
	uint32_t events; /* atomic */

	/* For the receiving thread only: */
	struct ndxp_list node;
	bool parting;
	bool probing;   /* a probe is in flight, and its result is awaited */
	bool unwatched; /* the event loop had no space for its queue, so the queue is polled */
	bool told_in_callback; /* stop was called on this thread, so on_end reports the end */
	uint32_t expected;     /* sequence number of the next frame */
	uint32_t batch;
	uint64_t last_ns;  /* when the last frame came, or the run began */
	uint64_t probe_ns; /* when the last probe was sent */
	uint64_t out_of_slots_logged;
	uint64_t out_of_slots_logged_ns;
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
/* Record why the receiver ends; only the first cause counts. Any thread. */
__attribute__((format(printf, 5, 6))) void receiver_because(struct ndx_receiver *r,
                                                            enum ndx_receiver_end end,
                                                            enum ndx_status status, int32_t native,
                                                            const char *fmt, ...);
enum ndx_status receiver_make_qp(struct ndx_receiver *r);
/* Drop a reference; the last one frees the receiver. */
void receiver_drop(struct ndx_receiver *r);
/* Free everything; members that were not created are NULL. */
void receiver_free(struct ndx_receiver *r);
/* Allow or forbid a sender and probes to post on the connection. */
void receiver_set_sending(struct ndx_receiver *r, bool on);

/* delivery.c: the receiving thread's */
void receiver_begin(struct ndx_receiver *r); /* before it is on the thread's list */
size_t receiver_poll(struct ndx_receiver *r);
bool receiver_arm(struct ndx_receiver *r);
void receiver_woken(struct ndx_receiver *r);

/* teardown.c. receiver_attend() returns false when the thread does not serve the receiver any
 * more. */
bool receiver_attend(struct ndx_receiver *r, uint64_t now_ns, uint64_t *due_ns);
void receiver_left(struct ndx_receiver *r);
/* End the connection and take back all slots. The caller makes sure that no other thread uses
 * them. */
void receiver_dismantle(struct ndx_receiver *r);

/* pull.c */
enum ndx_status pull_open(struct pull *p, uint32_t room);
/* Takes a reference of each frame. At least one frame. */
void pull_push(struct pull *p, const struct ndx_frame *const *frames, size_t count);
void pull_end(struct pull *p, bool ended);
void pull_close(struct pull *p);

/* receiver_connect.c: undo ndx_receiver_describe(), back to CREATED. */
void receiver_undescribe(struct ndx_receiver *r);

#endif
