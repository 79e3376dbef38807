/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that are let go in any order, and a peer that numbers its frames as it likes: no slot is
 * lost by that, over many connections. */
#include "rig.h"

#define STEPS 60u
#define CONNECTIONS 6u
#define LENGTH 64u

static uint64_t luck; /* begins as rig_seed, which main() prints */

static uint32_t chance(uint32_t below)
{
	luck = luck * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(luck >> 33) % below;
}

/* Frames that the test holds. */
struct hand {
	const struct ndx_frame *frames[SLOTS];
	uint32_t numbers[SLOTS]; /* what each was sent as */
	uint32_t count;
};

static void let_go(struct hand *h, uint32_t at)
{
	const struct ndx_frame *frame = h->frames[at];

	/* Whichever frames came since, this one is as it was. */
	assert_true(rig_check(frame->data, LENGTH, h->numbers[at]));
	h->count--;
	h->frames[at] = h->frames[h->count];
	h->numbers[at] = h->numbers[h->count];
	ndx_frame_release(frame);
}

/* Mode WRITE: frame number n goes into slot n % SLOTS, which has to be the peer's then. */
static void make_room(const struct rig *r, struct hand *h, uint32_t n)
{
	if (h->count == SLOTS)
		let_go(h, chance(SLOTS));
	for (uint32_t i = 0; r->attr.mode == NDX_RECEIVER_WRITE && i < h->count; i++)
		if (h->frames[i]->slot == n % SLOTS) {
			let_go(h, i);
			break;
		}
}

static void one_more(struct rig *r, struct hand *h, uint32_t n)
{
	const struct ndx_frame *frame;
	size_t got;

	make_room(r, h, n);
	assert_int_equal(rig_send(r, n, LENGTH), NDX_OK);
	assert_int_equal(ndx_receiver_pull(r->receiver, &frame, 1, WAIT_MS, &got), NDX_OK);
	assert_int_equal(got, 1);
	assert_true(rig_check(frame->data, LENGTH, n));
	if (r->attr.mode == NDX_RECEIVER_WRITE)
		assert_int_equal(frame->slot, n % SLOTS);
	h->frames[h->count] = frame;
	h->numbers[h->count++] = n;
}

static void set_memory(struct rig *r)
{
	struct ndx_memory_description memory;

	if (r->attr.mode != NDX_RECEIVER_WRITE)
		return;
	assert_int_equal(ndx_receiver_get_memory(r->receiver, &memory), NDX_OK);
	assert_int_equal(ndx_sender_set_memory(r->sender, &memory, SLOT_SIZE, SLOTS), NDX_OK);
}

static void one_connection(struct rig *r, struct hand *h)
{
	rig_join(r);
	set_memory(r);
	rig_held(r, h->count);
	assert_int_equal(rig_stats(r).posted, SLOTS - h->count);
	for (uint32_t n = 0, i = 0; i < STEPS; i++) {
		if (h->count == 0 || chance(3) > 0)
			one_more(r, h, n++);
		else
			let_go(h, chance(h->count));
	}
	assert_int_equal(ndx_sender_reset(r->sender), NDX_OK);
	rig_await(r, NDX_RECEIVER_ENDED);
	while (h->count > 0 && chance(4) > 0)
		let_go(h, chance(h->count));
	assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
	rig_held(r, h->count);
}

static void in_any_order(struct rig *r, enum ndx_receiver_mode mode)
{
	struct hand h = {.count = 0};

	if (mode == NDX_RECEIVER_WRITE && !(r->info.capabilities & NDX_CAP_WRITE_IMMEDIATE))
		skip();
	luck = rig_seed;
	r->attr.mode = mode;
	r->attr.pull = true;
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		one_connection(r, &h);
	while (h.count > 0)
		let_go(&h, 0);
	rig_join(r);
	assert_int_equal(rig_stats(r).posted, SLOTS);
}

static void sent_frames_are_let_go_in_any_order(void **state)
{
	in_any_order(*state, NDX_RECEIVER_SEND);
}

static void written_frames_are_let_go_in_any_order(void **state)
{
	in_any_order(*state, NDX_RECEIVER_WRITE);
}

/* What a hostile peer has. */
struct raw_peer {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connectors[2];
	uint8_t bytes[LENGTH];
};

static void raw_connect(struct rig *r, struct raw_peer *s)
{
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_cq_create_depth(r->adapters[1], 4, &s->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.initiator_cq = s->cq;
	attr.receive_cq = s->cq;
	attr.initiator_depth = 2;
	attr.receive_depth = 1;
	assert_int_equal(ndx_qp_create(r->adapters[1], &attr, &s->qp), NDX_OK);
	assert_int_equal(ndx_mr_register_new(r->adapters[1], s->bytes, sizeof(s->bytes), 0, &s->mr),
	                 NDX_OK);
	assert_int_equal(ndx_receiver_prepare(r->receiver), NDX_OK);
	rig_connect_qps(r, ndx_receiver_get_qp(r->receiver), s->qp, s->connectors);
	assert_int_equal(ndx_receiver_start(r->receiver, s->connectors[0]), NDX_OK);
}

static void raw_close(struct raw_peer *s)
{
	ndx_qp_close(s->qp);
	ndx_connector_close(s->connectors[1]);
	ndx_mr_close(s->mr);
	ndx_cq_close(s->cq);
}

/* A frame into the first slot, and a number that says whatever. */
static void write_some(const struct rig *r, struct raw_peer *s)
{
	const struct ndx_sge sge = {s->bytes, LENGTH, ndx_mr_get_local_token(s->mr)};
	struct ndx_memory_description memory;
	struct ndx_result result;
	size_t got;

	assert_int_equal(ndx_receiver_get_memory(r->receiver, &memory), NDX_OK);
	assert_int_equal(ndx_qp_write_immediate(s->qp, NULL, &sge, 1, memory.address, memory.token,
	                                        chance(1u << 24) << 8, 0),
	                 NDX_OK);
	assert_int_equal(ndx_cq_wait_results(s->cq, &result, 1, WAIT_MS, &got), NDX_OK);
	assert_int_equal(result.status, NDX_OK);
}

static void numbers_out_of_the_ring_cost_no_slot(void **state)
{
	struct rig *r = *state;
	struct sink kept = {.keep = SLOTS / 2, .unread = true};

	if (!(r->info.capabilities & NDX_CAP_WRITE_IMMEDIATE))
		skip();
	luck = rig_seed;
	r->attr.mode = NDX_RECEIVER_WRITE;
	sink_attach(r, 0, &kept);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		struct raw_peer s = {.cq = NULL};
		struct ndx_receiver_stats stats;

		raw_connect(r, &s);
		for (uint32_t n = 0; n < STEPS; n++)
			write_some(r, &s);
		raw_close(&s);
		rig_await(r, NDX_RECEIVER_ENDED);
		stats = rig_stats(r);
		assert_int_equal(stats.frames + stats.overwritten, (i + 1) * STEPS);
		assert_true(stats.overwritten > 0);
		assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
		rig_held(r, SLOTS / 2);
	}
	sink_release(&kept);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	rig_join(r);
	assert_int_equal(rig_stats(r).posted, SLOTS);
	assert_int_equal(rig_stats(r).held, 0);
}

const struct CMUnitTest order_cases[] = {
	CASE(sent_frames_are_let_go_in_any_order),
	CASE(written_frames_are_let_go_in_any_order),
	CASE(numbers_out_of_the_ring_cost_no_slot),
};
const size_t order_case_count = sizeof(order_cases) / sizeof(order_cases[0]);
