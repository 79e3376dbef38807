/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: the consumer's, the native ones below them, and who reads those. */
#ifndef OFI_CQ_H
#define OFI_CQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ndx/spi/provider.h>

#include "base_container_of.h"
#include "base_cq.h"
#include "base_list.h"
#include "base_lock.h"
#include "base_loop.h"

struct fid_cq;
struct ofi_adapter;
struct ofi_link;
struct ofi_ncq;
struct ofi_qp;

struct ofi_cq {
	struct base_cq base;
	struct ofi_adapter *adapter;
	struct base_lock poll_lock;
	struct base_list ties; /* struct ofi_tie.of_cq; poll_lock */
	int fd; /* the consumer's: base's flag, and what is lent; -1 until asked for; poll_lock */
	/* with many native queues: descriptor that tells which of them have something; poll_lock */
	int sweep;
	uint32_t swept;  /* there is one; atomic */
	unsigned ready;  /* polls in a row that asked it; poll_lock */
	uint32_t native; /* queues in ties; poll_lock, and atomic */
	uint32_t lent;   /* the native queues' descriptors are part of fd; poll_lock, and atomic */
	/* control thread: wake-ups in a row that found its consumer reading, since when */
	unsigned sightings;
	uint64_t sighted_ns;
};

/* A consumer's queue gets results from a native one. */
struct ofi_tie {
	struct ofi_cq *cq;
	struct ofi_ncq *ncq;
	unsigned refs; /* control thread */
	struct base_list of_cq;
	struct base_list of_ncq;
};

/* Which links share a native queue with others of the same consumer's queue. */
enum ofi_cq_share {
	OFI_SHARE_NEVER,
	/* Where the stack corrupts a queue when an endpoint goes in the middle of a read: only
	 * links that may not read, so many of them that it matters, and not too many: each look at
	 * such a queue goes through all its endpoints. */
	OFI_SHARE_UNLESS_READS,
	OFI_SHARE_ALWAYS,
};

enum ofi_ncq_mode {
	OFI_NCQ_BUSY,  /* the control thread is at it */
	OFI_NCQ_ARMED, /* the control thread sleeps on its descriptor */
	OFI_NCQ_AWAY,  /* a consumer polls it; looked at every tick */
};

#define OFI_NCQ_BUCKETS 64u
#define OFI_BATCH 16 /* completions of one read */

/* How often consumers polled, and what they took; both wrap. */
struct ofi_use {
	uint32_t polls;
	uint32_t results;
};

struct ofi_ncq {
	struct ofi_adapter *adapter;
	struct fid_cq *cq;
	bool shared;                    /* else it is one link's own */
	const struct ofi_cq *shared_by; /* the receive queue it was made for, while that lives */
	uint32_t mode;                  /* enum ofi_ncq_mode; atomic */
	uint32_t kicked;                /* atomic */
	uint32_t awaited;               /* the control thread needs what comes on it; atomic */
	uint32_t posts;                 /* counts requests handed to the stack; atomic, lossy */
	uint32_t owing;                 /* debtors is not empty; atomic */
	struct base_lock debtors_lock;
	struct base_list debtors; /* struct ofi_qp.debtor: credits to be told at the next poll */
	/* control thread */
	struct base_list node; /* in adapter->ncqs */
	struct base_watch watch;
	bool watched; /* the loop knows of it */
	unsigned refs;
	struct ofi_use seen; /* at the last look */
	uint32_t seen_posts;
	unsigned naps;   /* ticks in a row while a consumer slept on it */
	unsigned missed; /* ticks in a row that found no poll */
	unsigned idle;   /* wake-ups in a row that found nothing, ... */
	uint64_t idle_since;
	uint64_t traffic; /* bytes on its connections when that was last looked at */
	unsigned deaf;    /* links that take no messages any more */
	/* under the lock; written by the control thread alone */
	struct base_lock lock;
	struct base_list ties; /* struct ofi_tie.of_ncq */
	struct ofi_link *buckets[OFI_NCQ_BUCKETS];
};

enum ndx_status ofi_cq_create(struct ndx_spi_adapter *adapter, uint32_t depth, uint64_t affinity,
                              struct ndx_spi_cq **out);
void ofi_cq_destroy(struct ndx_spi_cq *spi);
enum ndx_status ofi_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                              struct ndx_overlapped *ov);

/* poll_lock held: a tie was added, or is about to be removed. */
void ofi_cq_tied(struct ofi_cq *cq, struct ofi_ncq *ncq);
void ofi_cq_untied(struct ofi_cq *cq, struct ofi_ncq *ncq);

/* The consumer's descriptor (ofi_cq_fd.c). */
enum ndx_status ofi_cq_get_fd(struct ndx_spi_cq *spi, int *fd);
void ofi_cq_wake(struct ndx_spi_cq *spi, bool up);
/* poll_lock held, the queue was just armed: lend its native queues if it waits by its descriptor
 * for anything; false: the control thread has to do it. */
bool ofi_cq_lend(struct ofi_cq *cq);
/* A poll has found nothing: a descriptor that is lent is readable no more for what has been read.
 * A stack whose descriptor is a queue of events keeps an event until it is armed again. */
void ofi_cq_clear_fd(struct ofi_cq *cq);
/* poll_lock held: its native queues are about to be others, nothing is lent for now. */
void ofi_cq_unlend(struct ofi_cq *cq);
/* Does its consumer sleep on the native queues? */
bool ofi_cq_sleeps_lent(struct ofi_cq *cq);
/* Is it armed, and depends on the control thread? */
bool ofi_cq_needs_thread(struct ofi_cq *cq);
/* Control thread, at a tick: may it be left to the consumers that sleep on it? */
bool ofi_ncq_is_lent(struct ofi_ncq *ncq);

/* Control thread: the ncq for a queue pair that begins to connect, tied to its queues. reads: it
 * may read from the peer. */
enum ndx_status ofi_ncq_get(struct ofi_adapter *adapter, const struct ofi_qp *qp, bool reads,
                            struct ofi_ncq **out);
/* Control thread: undo the tie; the queues may go. */
void ofi_ncq_untie(struct ofi_ncq *ncq, const struct ofi_qp *qp);
/* Control thread: no endpoint of the caller uses it any more. */
void ofi_ncq_put(struct ofi_ncq *ncq);
/* Lock held: one read, of OFI_BATCH at the most, which is handed on (ofi_complete.c). -FI_EAGAIN:
 * it was empty even after the provider had looked at its sockets. */
ssize_t ofi_ncq_read(struct ofi_ncq *ncq);
/* Lock held: read what is there and hand it on; how many there were. */
unsigned ofi_ncq_progress(struct ofi_ncq *ncq);
/* The same for a consumer, whose queue need not hold more than `count` results: who gets as many as
 * he asked for asks again. */
void ofi_ncq_poll(struct ofi_ncq *ncq, struct base_cq *cq, size_t count);
/* Until it is empty, or (one that is shared may never be) all that was there has been read. */
void ofi_ncq_catch_up_locked(struct ofi_ncq *ncq);
void ofi_ncq_catch_up(struct ofi_ncq *ncq); /* takes the lock */

/* Reading by the control thread (ofi_cq_thread.c). Control thread: begin to watch the descriptor.
 */
enum ndx_status ofi_ncq_watch(struct ofi_ncq *ncq);
/* Stop watching it; a later tick may watch again. */
void ofi_ncq_unwatch(struct ofi_ncq *ncq);
/* Any thread: the control thread has to look at it soon. */
void ofi_ncq_kick(struct ofi_ncq *ncq);
/* Any thread: the control thread waits for an answer that comes on it. */
void ofi_ncq_await(struct ofi_ncq *ncq);
void ofi_ncq_on_kick(void *arg);
void ofi_ncq_on_tick(void *arg);

#endif
