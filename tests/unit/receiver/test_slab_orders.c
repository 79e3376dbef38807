/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of a receiver, in any order of receives, releases, failures and connections: after each
 * step the slab's books agree with its slots, and with what the device holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <ndx/spi/post.h>
#include "slab.h"

#define COUNT 5u
#define COPIES 2u
#define SIZE 64u
#define WRAP 10u
#define ROUNDS 400
#define STEPS 300

/* Receives that were posted and have not come back. */
static struct {
	void *contexts[COUNT];
	uint32_t count;
	uint32_t refuse; /* one post in so many fails; 0: none */
} device;

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static enum ndx_status receive(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count)
{
	(void)qp;
	(void)sge;
	(void)count;
	if (device.refuse > 0 && chance(device.refuse) == 0)
		return NDX_E_NO_MORE_ENTRIES;
	assert_true(device.count < COUNT);
	device.contexts[device.count++] = context;
	return NDX_OK;
}

static enum ndx_status receive_list(struct ndx_qp *qp, const struct ndx_receive *list, size_t size,
                                    size_t count, size_t *posted)
{
	return ndxp_receive_singly(qp, list, size, count, posted);
}

static const struct ndx_qp_ops ops = {.receive = receive, .receive_list = receive_list};
static struct ndx_qp qp = {.ops = &ops};

struct play {
	struct slab *slab;
	const struct ndx_frame *frames[COUNT + COPIES];
	uint32_t held;
	struct slab_verdicts verdicts;
};

static void sound(const struct play *p)
{
	const char *fault = slab_find_fault(p->slab);

	if (fault != NULL)
		fail_msg("%s", fault);
	assert_int_equal(p->slab->posted, device.count);
	assert_int_equal(p->slab->held, p->held);
}

static void come_back(struct play *p, enum ndx_status status)
{
	struct ndx_result result = {.status = status, .bytes_transferred = 10};
	const uint32_t copies = p->slab->copy_count;
	const uint32_t at = device.count > 0 ? chance(device.count) : 0;
	struct slot *slot;
	struct slot *copy;
	bool missed;

	if (device.count == 0)
		return;
	result.request_context = device.contexts[at];
	device.contexts[at] = device.contexts[--device.count];
	/* Any number of 24 bits, as a hostile peer sends; now and then none. */
	result.flags = chance(8) > 0 ? NDX_RESULT_WRITTEN | NDX_RESULT_IMMEDIATE : 0;
	result.immediate = (chance(2) > 0 ? chance(WRAP) : chance(1u << 24)) << 8;
	slab_take(p->slab, &result, 1, WRAP, 1000, &slot, &p->verdicts);
	if (slot == NULL)
		return;
	copy = slab_copy(p->slab, slot, 10, copies > 0 ? 3 : 0, &missed);
	p->frames[p->held++] = copy != NULL ? &copy->frame : &slot->frame;
}

static void let_go(struct play *p)
{
	const struct ndx_frame *frame;
	uint32_t at;

	if (p->held == 0)
		return;
	at = chance(p->held);
	frame = p->frames[at];
	p->frames[at] = p->frames[--p->held];
	ndx_frame_release(frame);
}

/* Some frames, in any order, by one call. */
static void let_some_go(struct play *p)
{
	const struct ndx_frame *list[COUNT + COPIES + 1];
	uint32_t count = p->held > 0 ? chance(p->held + 1) : 0;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t at = chance(p->held);

		list[i] = p->frames[at];
		p->frames[at] = p->frames[--p->held];
	}
	list[count] = NULL;
	ndx_frame_release_list(list, count + 1);
}

static void end(struct play *p)
{
	uint32_t left;

	slab_detach(p->slab);
	/* Some come back as cancelled, the rest goes with the queue pair. */
	for (left = chance(COUNT + 1); left > 0; left--)
		come_back(p, NDX_E_CANCELED);
	left = device.count;
	device.count = 0;
	assert_int_equal(slab_reclaim(p->slab), left);
}

static void step(struct play *p)
{
	const uint32_t what = chance(20);

	if (what < 10)
		come_back(p, NDX_OK);
	else if (what < 17)
		(chance(3) > 0 ? let_go : let_some_go)(p);
	else if (what == 17)
		slab_retry(p->slab);
	else if (what == 18)
		come_back(p, NDX_E_CANCELED);
	else if (p->slab->qp == NULL)
		(void)slab_attach(p->slab, &qp);
	else
		end(p);
	sound(p);
}

static void play(bool by_write, uint32_t copies, uint32_t refuse)
{
	struct play p = {0};

	memset(&device, 0, sizeof(device));
	device.refuse = refuse;
	assert_int_equal(slab_create(SIZE, COUNT, copies, by_write, &p.slab), NDX_OK);
	(void)slab_attach(p.slab, &qp);
	sound(&p);
	for (int i = 0; i < STEPS; i++)
		step(&p);
	device.refuse = 0;
	if (p.slab->qp != NULL)
		end(&p);
	while (p.held > 0)
		let_go(&p);
	sound(&p);
	/* Nothing was lost: the next connection gets every slot. */
	assert_int_equal(slab_attach(p.slab, &qp), NDX_OK);
	assert_int_equal(device.count, COUNT);
	sound(&p);
	slab_detach(p.slab);
	slab_abandon(p.slab);
}

static void every_order(bool by_write)
{
	print_message("seed %llu\n", (unsigned long long)seed);
	for (uint32_t i = 0; i < ROUNDS; i++)
		play(by_write, i % 2 > 0 ? COPIES : 0, i % 3 > 0 ? 4 : 0);
}

static void sent_frames_in_any_order(void **state)
{
	(void)state;
	every_order(false);
}

static void written_frames_in_any_order(void **state)
{
	(void)state;
	every_order(true);
}

/* The check itself finds what it is there for. */
static void a_fault_is_found(void **state)
{
	struct play p = {0};
	struct slot *slot;

	(void)state;
	memset(&device, 0, sizeof(device));
	assert_int_equal(slab_create(SIZE, COUNT, COPIES, true, &p.slab), NDX_OK);
	assert_null(slab_find_fault(p.slab));
	p.slab->held++;
	assert_string_equal(slab_find_fault(p.slab),
	                    "the count of held slots is not that of slots in state HELD");
	p.slab->held--;
	slot = p.slab->free->next;
	slot->next = p.slab->free;
	assert_string_equal(slab_find_fault(p.slab),
	                    "the list of free slots is not that of slots in state FREE");
	slot->next = slot + 1;
	assert_null(slab_find_fault(p.slab));
	p.slab->spare->state = SLOT_POSTED;
	assert_non_null(slab_find_fault(p.slab));
	p.slab->spare->state = SLOT_FREE;
	assert_int_equal(slab_attach(p.slab, &qp), NDX_OK);
	p.slab->posted--;
	assert_string_equal(slab_find_fault(p.slab),
	                    "the count of posted slots is not that of slots in state POSTED");
	p.slab->posted++;
	sound(&p);
	slab_detach(p.slab);
	slab_abandon(p.slab);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_frames_in_any_order),
		cmocka_unit_test(written_frames_in_any_order),
		cmocka_unit_test(a_fault_is_found),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
