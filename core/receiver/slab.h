/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slots of a receiver: memory, who has which, and posting. It outlives the receiver for as long
 * as somebody holds a frame.
 */
#ifndef RECEIVER_SLAB_H
#define RECEIVER_SLAB_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/frame.h>
#include <ndx/receiver.h>

#include "base_lock.h"

enum slot_state {
	SLOT_FREE,   /* nobody's; in the list of the free ones */
	SLOT_POSTED, /* the device's */
	SLOT_HELD,   /* a consumer's */
};

struct slot {
	struct ndx_frame frame;
	struct slab *slab;
	uint8_t *memory;
	struct slot *next; /* in a list of free ones */
	uint32_t refs;     /* of the frame; atomic */
	uint32_t index;    /* count and above: room for a copy */
	enum slot_state state;
};

struct slab {
	struct base_lock lock; /* of all that changes here; leaf but for the queue pair's own */
	struct ndx_mr *mr;     /* NULL: not registered any more */
	struct ndx_qp *qp;     /* where free slots go; NULL: nowhere */
	uint32_t token;
	bool by_write; /* receives are credits, without memory */
	bool orphan;   /* the receiver is gone: the last held frame frees it */
	uint32_t size; /* of a slot */
	uint32_t count;
	uint32_t copy_count;
	uint8_t *memory;
	uint8_t *copies;
	struct slot *slots; /* count, then those for copies */
	struct slot *free;
	struct slot *spare;
	uint32_t unposted; /* length of `free`; atomic for those without the lock */
	uint32_t posted;
	uint32_t next_posted; /* mode WRITE: where the search for a posted slot goes on */
	uint32_t held;
	uint32_t low_water;
	uint64_t starved;
	uint64_t starved_ns;
	uint64_t starved_since_ns; /* 0: a slot is posted */
	uint64_t repost_failed;
};

enum ndx_status slab_create(uint32_t size, uint32_t count, uint32_t copies, bool by_write,
                            struct slab **out);
enum ndx_status slab_register(struct slab *slab, struct ndx_adapter *adapter);
/* No device reaches the memory any more. */
void slab_unregister(struct slab *slab);
/* The receiver lets go. */
void slab_abandon(struct slab *slab);

/* From now on free slots are posted to `qp`; those that there are at once. The first failure. */
enum ndx_status slab_attach(struct slab *slab, struct ndx_qp *qp);
/* Slots are posted no more; when it returns nobody is posting. */
void slab_detach(struct slab *slab);
/* Try again what could not be posted. */
void slab_retry(struct slab *slab);
/* What the device never gave back is free: its queue pair is gone. Returns how many. */
uint32_t slab_reclaim(struct slab *slab);

/* A batch of results: the slot of each, HELD with one reference, or NULL where there is no frame
 * to deliver; its slot is free then. *overwritten and *misplaced are counted up. */
struct slab_verdicts {
	uint64_t overwritten;
	uint64_t misplaced;
};
void slab_take(struct slab *slab, const struct ndx_result *results, size_t count, uint32_t wrap,
               uint64_t now_ns, struct slot **slots, struct slab_verdicts *verdicts);
/* With fewer slots posted than `below`: a copy of `slot`, which is the device's again. NULL: there
 * is no need, or (*missed) no room. */
struct slot *slab_copy(struct slab *slab, struct slot *slot, uint32_t length, uint32_t below,
                       bool *missed);

/* What does not fit together, for tests and debug builds; NULL: every slot is in one state, and
 * lists and counts agree with the states. Locked, or nobody else is at it. */
const char *slab_find_fault(const struct slab *slab);

static inline uint32_t frame_sequence(uint32_t immediate)
{
	return immediate >> 8;
}

#endif
