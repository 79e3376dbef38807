/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of a receiver, on a queue pair that does as it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <ndx/spi/post.h>
#include "slab.h"

#define COUNT 4u
#define SIZE 100u
#define WRAP 8u

/* What it was given, in order; `refuse` makes the next so many posts fail. */
static struct {
	struct slot *posted[64];
	size_t sges[64];
	unsigned count;
	unsigned accept; /* so many posts before `refuse` */
	unsigned refuse;
	unsigned lists;
} device;

static enum ndx_status receive(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count)
{
	struct slot *slot = context;

	(void)qp;
	if (device.refuse > 0 && device.accept > 0) {
		device.accept--;
	} else if (device.refuse > 0) {
		device.refuse--;
		return NDX_E_NO_MORE_ENTRIES;
	}
	if (count > 0) {
		assert_ptr_equal(sge->buffer, slot->memory);
		assert_int_equal(sge->length, SIZE);
	}
	device.sges[device.count] = count;
	device.posted[device.count++] = slot;
	return NDX_OK;
}

static enum ndx_status receive_list(struct ndx_qp *qp, const struct ndx_receive *list, size_t size,
                                    size_t count, size_t *posted)
{
	device.lists++;
	return ndxp_receive_singly(qp, list, size, count, posted);
}

static const struct ndx_qp_ops ops = {.receive = receive, .receive_list = receive_list};
static struct ndx_qp qp = {.ops = &ops};

static struct slab *make_slab(uint32_t copies, bool by_write)
{
	struct slab *slab;

	memset(&device, 0, sizeof(device));
	assert_int_equal(slab_create(SIZE, COUNT, copies, by_write, &slab), NDX_OK);
	return slab;
}

static struct slot *arrive(struct slab *slab, struct slot *slot, uint32_t sequence,
                           struct slab_verdicts *verdicts)
{
	struct ndx_result result = {
		.request_context = slot, .bytes_transferred = 10, .immediate = sequence << 8};
	struct slot *taken;

	if (slab->by_write)
		result.flags = NDX_RESULT_WRITTEN | NDX_RESULT_IMMEDIATE;
	slab_take(slab, &result, 1, WRAP, 1000, &taken, verdicts);
	return taken;
}

static void slots_are_posted_in_their_order(void **state)
{
	struct slab *slab = make_slab(0, false);

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	assert_int_equal(device.count, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(device.posted[i]->index, i);
		assert_ptr_equal(device.posted[i]->memory, slab->memory + (size_t)i * SIZE);
		assert_int_equal(device.sges[i], 1);
	}
	slab_detach(slab);
	assert_int_equal(slab_reclaim(slab), COUNT);
	slab_abandon(slab);
}

static void a_post_that_fails_is_made_up_for(void **state)
{
	struct slab *slab = make_slab(0, false);
	struct slab_verdicts verdicts = {0};
	struct slot *slot;

	(void)state;
	device.refuse = 1;
	assert_int_equal(slab_attach(slab, &qp), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(slab->unposted, COUNT);
	slab_retry(slab);
	assert_int_equal(slab->unposted, 0);
	slot = arrive(slab, device.posted[0], 0, &verdicts);
	assert_non_null(slot);
	device.refuse = 2;
	ndx_frame_release(&slot->frame);
	assert_int_equal(slab->unposted, 1);
	assert_int_equal(slab->repost_failed, 1);
	assert_int_equal(slab->held, 0);
	slab_retry(slab);
	assert_int_equal(slab->repost_failed, 2);
	slab_retry(slab);
	assert_int_equal(slab->unposted, 0);
	assert_int_equal(slab->posted, COUNT);
	assert_int_equal(device.posted[COUNT]->index, 0);
	slab_abandon(slab);
}

/* One call for all slots that have to be posted, as far as the call takes them. */
static void several_slots_are_posted_with_one_call(void **state)
{
	struct slab *slab = make_slab(0, false);

	(void)state;
	device.accept = 2;
	device.refuse = 1;
	assert_int_equal(slab_attach(slab, &qp), NDX_E_NO_MORE_ENTRIES);
	assert_int_equal(device.lists, 1);
	assert_int_equal(slab->posted, 2);
	assert_int_equal(slab->unposted, COUNT - 2);
	assert_int_equal(slab->free->index, 2);
	assert_null(slab_find_fault(slab));
	slab_retry(slab);
	assert_int_equal(device.lists, 2);
	assert_int_equal(slab->posted, COUNT);
	assert_int_equal(slab->unposted, 0);
	slab_retry(slab);
	assert_int_equal(device.lists, 2);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(device.posted[i]->index, i);
	slab_detach(slab);
	slab_abandon(slab);
	memset(&device, 0, sizeof(device));
	assert_int_equal(slab_create(SIZE, 50, 0, true, &slab), NDX_OK);
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	assert_int_equal(device.lists, 2);
	assert_int_equal(device.count, 50);
	assert_int_equal(slab->posted, 50);
	slab_abandon(slab);
}

static void lack_of_slots_is_timed(void **state)
{
	struct slab *slab = make_slab(0, false);
	struct slab_verdicts verdicts = {0};
	struct slot *slots[COUNT];

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(slab->out_of_slots, 0);
		slots[i] = arrive(slab, device.posted[i], i, &verdicts);
	}
	assert_int_equal(slab->out_of_slots, 1);
	assert_int_equal(slab->out_of_slots_since_ns, 1000);
	assert_int_equal(slab->low_water, 0);
	ndx_frame_release(&slots[2]->frame);
	assert_int_equal(slab->out_of_slots_since_ns, 0);
	assert_true(slab->out_of_slots_ns > 0);
	(void)arrive(slab, slots[2], 2, &verdicts);
	assert_int_equal(slab->out_of_slots, 2);
	slab_detach(slab);
	for (uint32_t i = 0; i < COUNT; i++)
		ndx_frame_release(&slots[i]->frame);
	assert_int_equal(slab->held, 0);
	assert_int_equal(slab->unposted, COUNT);
	slab_abandon(slab);
}

static void each_holder_counts(void **state)
{
	struct slab *slab = make_slab(0, false);
	struct slab_verdicts verdicts = {0};
	const struct ndx_frame *frame;

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	frame = &arrive(slab, device.posted[0], 0, &verdicts)->frame;
	assert_ptr_equal(ndx_frame_retain(frame), frame);
	(void)ndx_frame_retain(frame);
	ndx_frame_release(frame);
	ndx_frame_release(frame);
	assert_int_equal(slab->held, 1);
	assert_int_equal(device.count, COUNT);
	ndx_frame_release(frame);
	assert_int_equal(slab->held, 0);
	assert_int_equal(device.count, COUNT + 1);
	ndx_frame_release(NULL);
	assert_null(ndx_frame_retain(NULL));
	slab_abandon(slab);
}

static void a_list_is_posted_again_with_one_call(void **state)
{
	struct slab *slab = make_slab(1, false);
	struct slab *other = make_slab(0, false);
	struct slab_verdicts verdicts = {0};
	const struct ndx_frame *list[6];
	unsigned lists;
	bool missed;

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	assert_int_equal(slab_attach(other, &qp), NDX_OK);
	for (unsigned i = 0; i < 3; i++)
		list[i] = &arrive(slab, device.posted[i], i, &verdicts)->frame;
	list[3] = NULL;
	list[4] = &slab_copy(slab, arrive(slab, device.posted[3], 3, &verdicts), 10, COUNT, &missed)
	                   ->frame;
	list[5] = &arrive(other, device.posted[COUNT], 0, &verdicts)->frame;
	assert_int_equal(slab->held, 4);
	assert_int_equal(other->held, 1);
	/* A frame with another holder stays. */
	(void)ndx_frame_retain(list[1]);
	lists = device.lists;
	ndx_frame_release_list(list, 6);
	assert_int_equal(device.lists, lists + 2); /* one for each slab */
	assert_int_equal(slab->held, 1);
	assert_int_equal(slab->posted, COUNT - 1);
	assert_non_null(slab->spare);
	assert_int_equal(other->held, 0);
	assert_int_equal(other->posted, COUNT);
	ndx_frame_release_list(&list[1], 1);
	assert_int_equal(slab->posted, COUNT);
	ndx_frame_release_list(NULL, 3);
	ndx_frame_release_list(list, 0);
	slab_abandon(other);
	slab_abandon(slab);
}

static void a_list_that_cannot_be_posted_is_made_up_for(void **state)
{
	struct slab *slab = make_slab(0, false);
	struct slab_verdicts verdicts = {0};
	const struct ndx_frame *list[3];

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	for (unsigned i = 0; i < 3; i++)
		list[i] = &arrive(slab, device.posted[i], i, &verdicts)->frame;
	device.accept = 1;
	device.refuse = 1;
	ndx_frame_release_list(list, 3);
	assert_int_equal(slab->held, 0);
	assert_int_equal(slab->unposted, 2);
	assert_int_equal(slab->repost_failed, 1);
	slab_retry(slab);
	assert_int_equal(slab->posted, COUNT);
	slab_abandon(slab);
}

static void the_last_list_takes_an_abandoned_slab_along(void **state)
{
	struct slab *slab = make_slab(0, false);
	struct slab_verdicts verdicts = {0};
	const struct ndx_frame *list[2];

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	for (unsigned i = 0; i < 2; i++)
		list[i] = &arrive(slab, device.posted[i], i, &verdicts)->frame;
	slab_detach(slab);
	(void)slab_reclaim(slab);
	slab_abandon(slab);
	/* Under a sanitizer a slab that is gone too early, or never, is found here. */
	ndx_frame_release_list(list, 2);
}

static void the_last_frame_takes_an_abandoned_slab_along(void **state)
{
	struct slab *slab = make_slab(2, false);
	struct slab_verdicts verdicts = {0};
	struct slot *slot;
	struct slot *copy;
	bool missed;

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	slot = arrive(slab, device.posted[0], 0, &verdicts);
	copy = slab_copy(slab, arrive(slab, device.posted[1], 1, &verdicts), 10, COUNT, &missed);
	assert_non_null(copy);
	assert_int_equal(slab->held, 2);
	slab_detach(slab);
	(void)slab_reclaim(slab);
	slab_abandon(slab);
	/* Under a sanitizer a slab that is gone too early, or never, is found here. */
	slot->memory[0] = 1;
	ndx_frame_release(&slot->frame);
	copy->memory[0] = 1;
	ndx_frame_release(&copy->frame);
}

static void a_failed_receive_frees_its_slot(void **state)
{
	struct slab *slab = make_slab(0, false);
	struct ndx_result result = {.status = NDX_E_CANCELED};
	struct slab_verdicts verdicts = {0};
	struct slot *taken;

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	result.request_context = device.posted[3];
	slab_take(slab, &result, 1, WRAP, 1000, &taken, &verdicts);
	assert_null(taken);
	assert_int_equal(slab->posted, COUNT - 1);
	assert_int_equal(slab->unposted, 1);
	assert_int_equal(slab->held, 0);
	slab_abandon(slab);
}

/* Mode WRITE: a receive is a credit, and the number says which slot was written. */
static void written_frames_are_found_by_their_number(void **state)
{
	static const uint32_t numbers[] = {2, 0, 7, 5};
	struct slab *slab = make_slab(0, true);
	struct slab_verdicts verdicts = {0};
	struct slot *slots[COUNT];

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	assert_int_equal(device.sges[0], 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		slots[i] = arrive(slab, device.posted[i], numbers[i], &verdicts);
		assert_int_equal(slots[i]->index, numbers[i] % COUNT);
	}
	assert_int_equal(slab->posted, 0);
	assert_int_equal(slab->held, COUNT);
	ndx_frame_release(&slots[0]->frame);
	/* Slot 1 is held, so that what was written into it is not what its holder has. */
	assert_null(arrive(slab, device.posted[COUNT], 5, &verdicts));
	assert_int_equal(verdicts.overwritten, 1);
	assert_int_equal(slab->posted, 1);
	for (uint32_t i = 1; i < COUNT; i++)
		ndx_frame_release(&slots[i]->frame);
	assert_int_equal(slab->posted, COUNT);
	assert_int_equal(slab->held, 0);
	slab_detach(slab);
	assert_int_equal(slab_reclaim(slab), COUNT);
	slab_abandon(slab);
}

static void a_frame_in_a_slot_that_is_not_posted_is_found_too(void **state)
{
	struct slab *slab = make_slab(0, true);
	struct slab_verdicts verdicts = {0};
	struct slot *slot;

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	slot = arrive(slab, device.posted[0], 0, &verdicts);
	device.refuse = 1;
	ndx_frame_release(&slot->frame);
	assert_int_equal(slab->unposted, 1);
	slot = arrive(slab, device.posted[1], 0, &verdicts);
	assert_int_equal(slot->index, 0);
	/* The credit of slot 1 was used, so that slot 1 is what is free now. */
	assert_int_equal(slab->unposted, 1);
	assert_int_equal(slab->free->index, 1);
	slab_retry(slab);
	ndx_frame_release(&slot->frame);
	assert_int_equal(slab->posted, COUNT);
	slab_abandon(slab);
}

static void what_was_not_written_is_misplaced(void **state)
{
	struct slab *slab = make_slab(0, true);
	struct ndx_result result = {.bytes_transferred = 10, .flags = NDX_RESULT_IMMEDIATE};
	struct slab_verdicts verdicts = {0};
	struct slot *taken;

	(void)state;
	assert_int_equal(slab_attach(slab, &qp), NDX_OK);
	result.request_context = device.posted[0];
	slab_take(slab, &result, 1, WRAP, 1000, &taken, &verdicts);
	assert_null(taken);
	assert_int_equal(verdicts.misplaced, 1);
	assert_int_equal(slab->posted, COUNT);
	slab_abandon(slab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_posted_in_their_order),
		cmocka_unit_test(a_post_that_fails_is_made_up_for),
		cmocka_unit_test(several_slots_are_posted_with_one_call),
		cmocka_unit_test(lack_of_slots_is_timed),
		cmocka_unit_test(each_holder_counts),
		cmocka_unit_test(a_list_is_posted_again_with_one_call),
		cmocka_unit_test(a_list_that_cannot_be_posted_is_made_up_for),
		cmocka_unit_test(the_last_list_takes_an_abandoned_slab_along),
		cmocka_unit_test(the_last_frame_takes_an_abandoned_slab_along),
		cmocka_unit_test(a_failed_receive_frees_its_slot),
		cmocka_unit_test(written_frames_are_found_by_their_number),
		cmocka_unit_test(a_frame_in_a_slot_that_is_not_posted_is_found_too),
		cmocka_unit_test(what_was_not_written_is_misplaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
