/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: the consumer's, the native ones below them, and the choice of the thread that
 * reads. */
#ifndef OFI_CQ_H
#define OFI_CQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/completion_queue.h>
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/table.h>

struct fid_cq;
struct ofi_adapter;
struct ofi_link;
struct ofi_ncq;
struct ofi_qp;

struct ofi_cq {
	struct ndxp_cq base;
	struct ofi_adapter *adapter;
	struct ndxp_lock poll_lock;
	struct ndxp_list ties; /* struct ofi_tie.of_cq; guarded by poll_lock */
	int fd; /* epoll set: base's flag, and lent descriptors; -1: not asked for yet; poll_lock */
	/* with many native queues: an epoll set of those with completions; poll_lock */
	int sweep;
	uint32_t swept;  /* `sweep` exists; atomic */
	unsigned misses; /* polls in a row that read nothing, for another thread reads; poll_lock */
	unsigned ready;  /* polls in a row that asked `sweep`; poll_lock */
	bool owes;       /* native queues have acknowledgements to send; poll_lock */
	uint32_t native; /* count of `ties`; poll_lock, and atomic */
	uint32_t fds_shared; /* fd has the native queues' descriptors; poll_lock, and atomic */
	/* reading on (ofi_cq.c); poll_lock */
	uint64_t rest_ns;    /* time since the queue was armed or a result taken */
	uint32_t rest_vain;  /* balance of waits in vain */
	uint32_t rest_pause; /* parts until polls wait again */
	/* control thread: wake-ups in a row that found the consumer reading, and the time of the
	 * first */
	unsigned sightings;
	uint64_t sighted_ns;
};

/* A consumer's queue gets results from a native queue. */
struct ofi_tie {
	struct ofi_cq *cq;
	struct ofi_ncq *ncq;
	unsigned refs; /* control thread */
	struct ndxp_list of_cq;
	struct ndxp_list of_ncq;
};

/* Which links share a native queue with others of the same consumer's queue. */
enum ofi_cq_share {
	OFI_SHARE_NEVER,
	/* For libfabric versions that corrupt a queue when an endpoint is closed during a read:
	 * share among links that may not read, only if they are many, and not among too many,
	 * because each read of a shared queue goes through all its endpoints. */
	OFI_SHARE_UNLESS_READS,
	OFI_SHARE_ALWAYS,
};

enum ofi_ncq_mode {
	OFI_NCQ_BUSY,   /* the control thread reads the queue */
	OFI_NCQ_ARMED,  /* the control thread sleeps on the descriptor */
	OFI_NCQ_POLLED, /* a consumer polls; the control thread checks at every tick */
};

#define OFI_NCQ_BUCKETS 64u
#define OFI_BATCH 16 /* completions of one read */

/* How often consumers have polled, and how many results they took; both wrap. */
struct ofi_use {
	uint32_t polls;
	uint32_t results;
};

struct ofi_ncq {
	struct ofi_adapter *adapter;
	struct fid_cq *cq;
	bool shared;                    /* otherwise the queue belongs to one link */
	const struct ofi_cq *shared_by; /* the queue it was made for; NULL: destroyed */
	uint32_t mode;                  /* enum ofi_ncq_mode; atomic */
	uint32_t kicked;                /* atomic */
	uint32_t awaited; /* the control thread waits for a completion on it; atomic */
	uint32_t posts;   /* count of requests given to libfabric; atomic, may lose counts */
	uint32_t has_credit_pending; /* credit_pending is not empty; atomic */
	/* for acknowledgements (ofi_ack.c); atomic */
	uint32_t owing;       /* count of queue pairs that owe one, ... */
	uint32_t unasked;     /* ... and of those that have not asked for all of theirs */
	uint32_t asked;       /* a peer asks for one of those that are owed */
	uint32_t empty_polls; /* count of polls that found nothing */
	struct ndxp_lock credit_lock;
	struct ndxp_list
		credit_pending;    /* struct ofi_qp.credit_node: credits that the next poll sends */
	struct ndxp_list ack_list; /* struct ofi_qp.ack_node: all that owe or have to ask, and
	                              others; credit_lock */
	/* control thread */
	struct ndxp_list node; /* in adapter->ncqs */
	struct ndxp_watch watch;
	bool watched; /* the event loop has the watch */
	unsigned refs;
	struct ofi_use seen; /* at the last check */
	uint32_t seen_posts;
	uint32_t seen_polls;    /* at the last acknowledgement by the control thread, ... */
	uint64_t seen_notified; /* ... and the count of notifications */
	unsigned idle_ticks;    /* ticks in a row while a consumer slept on it */
	unsigned missed;        /* ticks in a row without a poll */
	unsigned idle;          /* wake-ups in a row without a completion, ... */
	uint64_t idle_since;
	uint64_t traffic;        /* bytes on its connections at the last check of that */
	unsigned draining_links; /* count of links that take no more messages */
	unsigned empty;          /* polls in a row that found nothing; under the lock */
	/* under the lock; written by the control thread only */
	struct ndxp_lock lock;
	struct ndxp_list ties;   /* struct ofi_tie.of_ncq */
	struct ndxp_table links; /* by id */
	struct ndxp_table_node *buckets[OFI_NCQ_BUCKETS];
};

/* Does a queue pair owe its peer an acknowledgement? */
static inline bool ofi_ncq_owes(const struct ofi_ncq *ncq)
{
	return __atomic_load_n(&ncq->owing, __ATOMIC_SEQ_CST) != 0;
}

static inline bool ofi_ncq_has_unasked(const struct ofi_ncq *ncq)
{
	return __atomic_load_n(&ncq->unasked, __ATOMIC_RELAXED) != 0;
}

enum ndx_status ofi_cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
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
/* poll_lock held, just after arming: lend the native queues' descriptors if the consumer waits by
 * its descriptor for any result. False: the control thread has to read. */
bool ofi_cq_share_fds(struct ofi_cq *cq);
/* A poll has found nothing: make sure that a lent descriptor is not readable for what was read
 * already. A descriptor that is a queue of events keeps an event until the queue is armed again. */
void ofi_cq_clear_fd(struct ofi_cq *cq);
/* poll_lock held: the native queues are about to change; stop lending. */
void ofi_cq_unshare_fds(struct ofi_cq *cq);
/* Does the consumer sleep on the native queues' descriptors? */
bool ofi_cq_sleeps_on_native(struct ofi_cq *cq);
/* Is the queue armed, and does it depend on the control thread? */
bool ofi_cq_needs_thread(struct ofi_cq *cq);
/* Control thread, at a tick: may the queue be left to consumers that sleep on it? */
bool ofi_ncq_is_left_alone(struct ofi_ncq *ncq);

/* Control thread: the native queue for a queue pair that begins to connect, tied to its completion
 * queues. reads: the queue pair may read from the peer. */
enum ndx_status ofi_ncq_get(struct ofi_adapter *adapter, const struct ofi_qp *qp, bool reads,
                            struct ofi_ncq **out);
/* Control thread: undo the tie; the completion queues may be destroyed. */
void ofi_ncq_untie(struct ofi_ncq *ncq, const struct ofi_qp *qp);
/* Control thread: no endpoint of the caller uses the queue any more. */
void ofi_ncq_put(struct ofi_ncq *ncq);
/* Lock held: one read, of at most OFI_BATCH completions, which are passed on (ofi_complete.c).
 * -FI_EAGAIN: empty, even after libfabric has read its sockets. */
ssize_t ofi_ncq_read(struct ofi_ncq *ncq);
/* Lock held: read all that is there and pass it on; returns how many there were. */
unsigned ofi_ncq_progress(struct ofi_ncq *ncq);
/* The same for a consumer, up to `count` results: a consumer that gets as many as it asked for
 * polls again. */
void ofi_ncq_poll(struct ofi_ncq *ncq, struct ndxp_cq *cq, size_t count);
/* Read until the queue is empty, or, if it is shared, until all has been read that was there. */
void ofi_ncq_catch_up_locked(struct ofi_ncq *ncq);
void ofi_ncq_catch_up(struct ofi_ncq *ncq); /* takes the lock */

/* Reading by the control thread (ofi_cq_thread.c). Control thread: begin to watch the
 * descriptor. */
enum ndx_status ofi_ncq_watch(struct ofi_ncq *ncq);
/* Stop watching; a later tick may watch again. */
void ofi_ncq_unwatch(struct ofi_ncq *ncq);
/* Any thread: the control thread has to read the queue soon. */
void ofi_ncq_kick(struct ofi_ncq *ncq);
/* Any thread: the control thread waits for an answer on this queue. */
void ofi_ncq_await(struct ofi_ncq *ncq);
void ofi_ncq_on_kick(void *arg);
void ofi_ncq_on_tick(void *arg);
/* Control thread: send what all queue pairs of the adapter owe. */
void ofi_ncqs_acknowledge(struct ofi_adapter *adapter);
/* Set the tick, for a look at what is owed to peers. */
void ofi_ncq_on_look(void *arg);

#endif
