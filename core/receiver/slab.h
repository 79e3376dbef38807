/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of a receiver: memory, states and posting. The slab exists longer than the receiver, as
 * long as a consumer holds a frame. */
#ifndef RECEIVER_SLAB_H
#define RECEIVER_SLAB_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/frame.h>
#include <ndx/receiver.h>

#include <ndx/spi/lock.h>

enum slot_state {
	SLOT_FREE,   /* in the list of free slots */
	SLOT_POSTED, /* at the device */
	SLOT_HELD,   /* at a consumer */
};

struct slot {
	struct ndx_frame frame;
	struct slab *slab;
	uint8_t *memory;
	struct slot *next; /* in a list of free slots */
	uint32_t refs;     /* references to the frame; atomic */
	uint32_t index;    /* from `count` on: the memory of a copy */
	enum slot_state state;
};

struct slab {
	struct ndxp_lock
		lock; /* of everything here that changes; only the queue pair's lock nests inside */
	struct ndx_mr *mr; /* NULL: deregistered */
	struct ndx_qp *qp; /* where free slots are posted; NULL: nowhere */
	uint32_t token;
	bool by_write; /* receives are credits without memory */
	bool orphan;   /* the receiver was closed: the last held frame frees the slab */
	uint32_t size; /* of a slot */
	uint32_t count;
	uint32_t copy_count;
	uint8_t *memory;
	uint8_t *copies;
	struct slot *slots; /* `count` slots, then those for copies */
	struct slot *free;
	struct slot *spare;
	uint32_t unposted; /* length of `free`; atomic for readers without the lock */
	uint32_t posted;
	uint32_t next_posted; /* mode WRITE: where the search for a posted slot continues */
	uint32_t held;
	uint32_t low_water;
	uint64_t out_of_slots;
	uint64_t out_of_slots_ns;
	uint64_t out_of_slots_since_ns; /* 0: a slot is posted */
	uint64_t repost_failed;
};

enum ndx_status slab_create(uint32_t size, uint32_t count, uint32_t copies, bool by_write,
                            struct slab **out);
enum ndx_status slab_register(struct slab *slab, struct ndx_adapter *adapter);
/* Deregister: no device accesses the memory any more. */
void slab_unregister(struct slab *slab);
/* The receiver drops the slab. */
void slab_abandon(struct slab *slab);

/* Post all free slots to `qp`, now and from now on. Returns the first failure. */
enum ndx_status slab_attach(struct slab *slab, struct ndx_qp *qp);
/* Stop posting; on return no thread is posting. */
void slab_detach(struct slab *slab);
/* Post again the slots that could not be posted. */
void slab_retry(struct slab *slab);
/* Free the slots that the device never returned, after their queue pair was destroyed. Returns
 * their number. */
uint32_t slab_reclaim(struct slab *slab);

/* For a batch of results, find the slot of each: HELD with one reference, or NULL if there is no
 * frame to deliver; that slot is free then. Counts *overwritten and *misplaced. */
struct slab_verdicts {
	uint64_t overwritten;
	uint64_t misplaced;
};
void slab_take(struct slab *slab, const struct ndx_result *results, size_t count, uint32_t wrap,
               uint64_t now_ns, struct slot **slots, struct slab_verdicts *verdicts);
/* If fewer slots than `below` are posted, copy the frame and post its slot again. NULL: no copy is
 * needed, or (*missed) no memory for copies is free. */
struct slot *slab_copy(struct slab *slab, struct slot *slot, uint32_t length, uint32_t below,
                       bool *missed);

/* Find an inconsistency, for tests and debug builds; NULL: every slot is in one state, and lists
 * and counts agree with the states. Lock held, or no other thread uses the slab. */
const char *slab_find_fault(const struct slab *slab);

static inline uint32_t frame_sequence(uint32_t immediate)
{
	return immediate >> 8;
}

#endif
