/* SPDX-License-Identifier: BSD-2-Clause */
#include "slab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/helpers.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>

#define PAGE 4096u
#define POST_LIST 32u /* receives that are posted with one call */

static struct slot *slot_of(const struct ndx_frame *frame)
{
	return container_of((struct ndx_frame *)(uintptr_t)frame, struct slot, frame);
}

static uint8_t *pages(uint64_t length)
{
	/* Touch the pages now, so that no frame has to wait for a page fault. */
	uint8_t *memory = aligned_alloc(PAGE, (size_t)((length + PAGE - 1) / PAGE * PAGE));

	if (memory != NULL)
		memset(memory, 0, (size_t)length);
	return memory;
}

static void slab_free(struct slab *slab)
{
	free(slab->slots);
	free(slab->copies);
	free(slab->memory);
	free(slab);
}

enum ndx_status slab_create(uint32_t size, uint32_t count, uint32_t copies, bool by_write,
                            struct slab **out)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (slab == NULL)
		goto no_memory;
	slab->size = size;
	slab->count = count;
	slab->copy_count = copies;
	slab->by_write = by_write;
	slab->memory = pages((uint64_t)size * count);
	slab->copies = copies > 0 ? pages((uint64_t)size * copies) : NULL;
	slab->slots = calloc((size_t)count + copies, sizeof(*slab->slots));
	if (slab->memory == NULL || slab->slots == NULL || (copies > 0 && slab->copies == NULL))
		goto no_memory;
	/* Backwards, so that slot 0 is the first of its list. */
	for (uint32_t i = count + copies; i-- > 0;) {
		struct slot *slot = &slab->slots[i];
		struct slot **list = i < count ? &slab->free : &slab->spare;

		slot->slab = slab;
		slot->index = i;
		slot->memory = i < count ? slab->memory + (size_t)i * size
		                         : slab->copies + (size_t)(i - count) * size;
		slot->next = *list;
		*list = slot;
	}
	slab->unposted = count;
	*out = slab;
	return NDX_OK;

no_memory:
	if (slab != NULL)
		slab_free(slab);
	return fail(NDX_E_NO_MEMORY, 0, "no memory for %u slots of %u bytes and %u copies", count,
	            size, copies);
}

enum ndx_status slab_register(struct slab *slab, struct ndx_adapter *adapter)
{
	const uint32_t rights =
		slab->by_write ? NDX_MR_ALLOW_REMOTE_WRITE : NDX_MR_ALLOW_LOCAL_WRITE;
	enum ndx_status st = ndx_mr_register_new(
		adapter, slab->memory, (size_t)slab->size * slab->count, rights, &slab->mr);

	if (st == NDX_OK)
		slab->token = ndx_mr_get_local_token(slab->mr);
	return st;
}

void slab_unregister(struct slab *slab)
{
	ndx_mr_close(slab->mr);
	slab->mr = NULL;
}

void slab_abandon(struct slab *slab)
{
	bool held;

	ndxp_lock_acquire(&slab->lock);
	slab->orphan = true;
	held = slab->held > 0;
	ndxp_lock_release(&slab->lock);
	if (!held)
		slab_free(slab);
}

/* To be called instead of ndxp_lock_release() after a slot has changed. */
static void release_lock(struct slab *slab)
{
	assert(slab_find_fault(slab) == NULL);
	ndxp_lock_release(&slab->lock);
}

/* Lock held, here and in the following functions. */
static void set_free(struct slab *slab, struct slot *slot)
{
	slot->state = SLOT_FREE;
	slot->next = slab->free;
	slab->free = slot;
	__atomic_store_n(&slab->unposted, slab->unposted + 1, __ATOMIC_RELAXED);
}

static void count_posted(struct slab *slab, struct slot *slot)
{
	slot->state = SLOT_POSTED;
	slab->posted++;
	if (slab->out_of_slots_since_ns != 0) {
		slab->out_of_slots_ns += ndxp_now_ns() - slab->out_of_slots_since_ns;
		slab->out_of_slots_since_ns = 0;
	}
}

static struct ndx_sge slot_sge(const struct slab *slab, const struct slot *slot)
{
	return (struct ndx_sge){.buffer = slot->memory, .length = slab->size, .token = slab->token};
}

static enum ndx_status post(struct slab *slab, struct slot *slot)
{
	const struct ndx_sge sge = slot_sge(slab, slot);
	/* In mode WRITE the peer selects the slots, so a receive there has no slot of its own. */
	enum ndx_status st = slab->by_write ? ndx_qp_receive(slab->qp, NULL, NULL, 0)
	                                    : ndx_qp_receive(slab->qp, slot, &sge, 1);

	if (st == NDX_OK)
		count_posted(slab, slot);
	return st;
}

/* Post a slot that has no user, or add it to the free ones. */
static void give_back(struct slab *slab, struct slot *slot)
{
	if (slab->qp != NULL) {
		if (post(slab, slot) == NDX_OK)
			return;
		slab->repost_failed++;
	}
	set_free(slab, slot);
}

/* Post the first `count` free slots with one call. */
static enum ndx_status post_list(struct slab *slab, size_t count)
{
	struct ndx_receive list[POST_LIST];
	struct ndx_sge sges[POST_LIST];
	struct slot *slot = slab->free;
	enum ndx_status st;
	size_t posted;

	for (size_t i = 0; i < count; i++, slot = slot->next) {
		sges[i] = slot_sge(slab, slot);
		list[i] = slab->by_write ? (struct ndx_receive){.context = NULL}
		                         : (struct ndx_receive){slot, &sges[i], 1};
	}
	st = ndx_qp_receive_list(slab->qp, list, count, &posted);
	for (size_t i = 0; i < posted; i++) {
		slot = slab->free;
		slab->free = slot->next;
		count_posted(slab, slot);
	}
	__atomic_store_n(&slab->unposted, slab->unposted - (uint32_t)posted, __ATOMIC_RELAXED);
	return st;
}

static enum ndx_status post_free(struct slab *slab)
{
	enum ndx_status st = NDX_OK;

	while (slab->unposted > 0 && st == NDX_OK)
		st = post_list(slab, slab->unposted < POST_LIST ? slab->unposted : POST_LIST);
	return st;
}

enum ndx_status slab_attach(struct slab *slab, struct ndx_qp *qp)
{
	enum ndx_status st;

	ndxp_lock_acquire(&slab->lock);
	slab->qp = qp;
	st = post_free(slab);
	slab->low_water = slab->posted;
	release_lock(slab);
	return st;
}

void slab_detach(struct slab *slab)
{
	ndxp_lock_acquire(&slab->lock);
	slab->qp = NULL;
	if (slab->out_of_slots_since_ns != 0) {
		slab->out_of_slots_ns += ndxp_now_ns() - slab->out_of_slots_since_ns;
		slab->out_of_slots_since_ns = 0;
	}
	release_lock(slab);
}

void slab_retry(struct slab *slab)
{
	ndxp_lock_acquire(&slab->lock);
	if (slab->qp != NULL && post_free(slab) != NDX_OK)
		slab->repost_failed++;
	release_lock(slab);
}

uint32_t slab_reclaim(struct slab *slab)
{
	uint32_t n = 0;

	ndxp_lock_acquire(&slab->lock);
	for (uint32_t i = 0; i < slab->count; i++) {
		if (slab->slots[i].state != SLOT_POSTED)
			continue;
		set_free(slab, &slab->slots[i]);
		n++;
	}
	slab->posted = 0;
	release_lock(slab);
	return n;
}

/* Mode WRITE: a receive is a credit without a slot of its own, so any posted slot stands for the
 * receive that completed. There is one, because the provider returns no more than was posted. */
static struct slot *some_posted(struct slab *slab)
{
	for (uint32_t i = 0; i < slab->count; i++) {
		struct slot *slot = &slab->slots[slab->next_posted];

		/* Do not advance: a slot that is posted again is then found again immediately. */
		if (slot->state == SLOT_POSTED)
			return slot;
		slab->next_posted = slab->next_posted + 1 < slab->count ? slab->next_posted + 1 : 0;
	}
	return NULL;
}

static void unlink_free(struct slab *slab, struct slot *slot)
{
	struct slot **at = &slab->free;

	while (*at != slot)
		at = &(*at)->next;
	*at = slot->next;
	__atomic_store_n(&slab->unposted, slab->unposted - 1, __ATOMIC_RELAXED);
}

/* The slot that the frame's sequence number selects; NULL: there is no frame to deliver. */
static struct slot *written_slot(const struct slab *slab, const struct ndx_result *result,
                                 uint32_t wrap, struct slab_verdicts *verdicts)
{
	const uint32_t both = NDX_RESULT_WRITTEN | NDX_RESULT_IMMEDIATE;
	struct slot *slot;

	if ((result->flags & both) != both) {
		verdicts->misplaced++;
		return NULL;
	}
	slot = &slab->slots[frame_sequence(result->immediate) % wrap % slab->count];
	if (slot->state == SLOT_HELD) {
		verdicts->overwritten++;
		return NULL;
	}
	return slot;
}

/* Mode WRITE: one posted slot less; remove the written slot, if any, from its list. */
static struct slot *take_written(struct slab *slab, const struct ndx_result *result, uint32_t wrap,
                                 struct slab_verdicts *verdicts)
{
	struct slot *written =
		result->status == NDX_OK ? written_slot(slab, result, wrap, verdicts) : NULL;
	struct slot *credit;

	if (written != NULL && written->state == SLOT_POSTED)
		return written;
	credit = some_posted(slab);
	assert(credit != NULL);
	if (result->status == NDX_OK && written == NULL) {
		give_back(slab, credit);
		return NULL;
	}
	if (written != NULL)
		unlink_free(slab, written); /* written before its turn */
	set_free(slab, credit);
	return written;
}

/* Mode SEND: the posted slot is the filled one. */
static struct slot *take_filled(struct slab *slab, const struct ndx_result *result)
{
	struct slot *slot = result->request_context;

	assert(slot->state == SLOT_POSTED);
	if (result->status == NDX_OK)
		return slot;
	set_free(slab, slot); /* not posted again here, because the connection has ended */
	return NULL;
}

static struct slot *take_slot(struct slab *slab, const struct ndx_result *result, uint32_t wrap,
                              struct slab_verdicts *verdicts)
{
	struct slot *slot;

	slab->posted--;
	slot = slab->by_write ? take_written(slab, result, wrap, verdicts)
	                      : take_filled(slab, result);
	if (slot == NULL)
		return NULL;
	slot->state = SLOT_HELD;
	slab->held++;
	/* No other thread has the slot yet. */
	__atomic_store_n(&slot->refs, 1, __ATOMIC_RELAXED);
	return slot;
}

void slab_take(struct slab *slab, const struct ndx_result *results, size_t count, uint32_t wrap,
               uint64_t now_ns, struct slot **slots, struct slab_verdicts *verdicts)
{
	/* Receives flushed by a disconnect come last in a batch; do not count them as a
	 * lack of slots. */
	const bool in_use = count > 0 && results[count - 1].status == NDX_OK;

	ndxp_lock_acquire(&slab->lock);
	for (size_t i = 0; i < count; i++)
		slots[i] = take_slot(slab, &results[i], wrap, verdicts);
	if (in_use && slab->qp != NULL && slab->posted < slab->low_water)
		slab->low_water = slab->posted;
	if (in_use && slab->qp != NULL && slab->posted == 0 && slab->out_of_slots_since_ns == 0) {
		slab->out_of_slots++;
		slab->out_of_slots_since_ns = now_ns;
	}
	release_lock(slab);
}

struct slot *slab_copy(struct slab *slab, struct slot *slot, uint32_t length, uint32_t below,
                       bool *missed)
{
	struct slot *copy = NULL;

	*missed = false;
	ndxp_lock_acquire(&slab->lock);
	if (slab->posted < below) {
		copy = slab->spare;
		*missed = copy == NULL;
	}
	if (copy != NULL) {
		slab->spare = copy->next;
		copy->state = SLOT_HELD;
		slab->held++;
	}
	release_lock(slab);
	if (copy == NULL)
		return NULL;
	memcpy(copy->memory, slot->memory, length);
	__atomic_store_n(&copy->refs, 1, __ATOMIC_RELAXED);
	ndxp_lock_acquire(&slab->lock);
	slab->held--;
	give_back(slab, slot);
	release_lock(slab);
	return copy;
}

const struct ndx_frame *ndx_frame_retain(const struct ndx_frame *frame)
{
	if (frame != NULL)
		(void)__atomic_add_fetch(&slot_of(frame)->refs, 1, __ATOMIC_RELAXED);
	return frame;
}

/* Lock held; the last reference of the frame is gone. True: its slot can be posted again. */
static bool take_back(struct slab *slab, struct slot *slot)
{
	slab->held--;
	if (slot->index < slab->count)
		return true;
	slot->state = SLOT_FREE;
	slot->next = slab->spare;
	slab->spare = slot;
	return false;
}

void ndx_frame_release(const struct ndx_frame *frame)
{
	struct slot *slot;
	struct slab *slab;
	bool last;

	if (frame == NULL)
		return;
	slot = slot_of(frame);
	/* Release order, so that all reads of the holders happen before the device writes again. */
	if (__atomic_sub_fetch(&slot->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	slab = slot->slab;
	ndxp_lock_acquire(&slab->lock);
	if (take_back(slab, slot))
		give_back(slab, slot);
	last = slab->orphan && slab->held == 0;
	release_lock(slab);
	if (last)
		slab_free(slab);
}

/* Post the first `count` free slots. The rest of the list has its time in slab_retry(). */
static void post_first(struct slab *slab, size_t count)
{
	while (count > 0) {
		const size_t some = count < POST_LIST ? count : POST_LIST;

		if (post_list(slab, some) != NDX_OK) {
			slab->repost_failed++;
			return;
		}
		count -= some;
	}
}

/* Free slots of one slab: those of the list's frames up to the first frame of another slab. Returns
 * the number of frames. */
static size_t release_some(const struct ndx_frame *const *frames, size_t count, struct slab *slab)
{
	size_t freed = 0;
	size_t n = 0;
	bool last;

	ndxp_lock_acquire(&slab->lock);
	for (; n < count; n++) {
		struct slot *slot = frames[n] != NULL ? slot_of(frames[n]) : NULL;

		if (slot == NULL)
			continue;
		if (slot->slab != slab)
			break;
		if (__atomic_sub_fetch(&slot->refs, 1, __ATOMIC_ACQ_REL) > 0)
			continue;
		if (take_back(slab, slot)) {
			set_free(slab, slot);
			freed++;
		}
	}
	if (slab->qp != NULL)
		post_first(slab, freed);
	last = slab->orphan && slab->held == 0;
	release_lock(slab);
	if (last)
		slab_free(slab);
	return n;
}

void ndx_frame_release_list(const struct ndx_frame *const *frames, size_t count)
{
	if (frames == NULL)
		return;
	for (size_t i = 0; i < count;) {
		if (frames[i] == NULL)
			i++;
		else
			i += release_some(frames + i, count - i, slot_of(frames[i])->slab);
	}
}
