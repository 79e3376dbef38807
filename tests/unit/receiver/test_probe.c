/* SPDX-License-Identifier: BSD-2-Clause */
/* How a receiver asks a silent peer whether it lives, on a queue pair that notes what is posted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <poll.h>

#include "fake_direct.h"
#include "receiver.h"

#define PROBE_MS 100u
#define MS UINT64_C(1000000)
#define BEGIN (1000 * MS)     /* when the last frame came */
#define AFTER (PROBE_MS * MS) /* when the peer is asked */
#define TOKEN 0x1234u         /* of the slab */
#define PATIENCE_MS 10000u

/* What was posted, and what comes of it. */
static struct {
	unsigned writes; /* atomic */
	size_t sges;
	struct ndx_sge sge;
	uint64_t address;
	uint32_t token;
	uint32_t flags;
	enum ndx_status refuses;
	unsigned answers; /* results to be taken */
} device;

static enum ndx_status note_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                  size_t count, uint64_t address, uint32_t token, uint32_t flags)
{
	(void)qp;
	assert_null(context);
	device.sges = count;
	if (count > 0)
		device.sge = *sge;
	device.address = address;
	device.token = token;
	device.flags = flags;
	(void)__atomic_add_fetch(&device.writes, 1, __ATOMIC_RELEASE);
	return device.refuses;
}

static size_t give_answer(struct ndx_cq *cq, struct ndx_result *results, size_t count)
{
	(void)cq;
	if (device.answers == 0 || count == 0)
		return 0;
	device.answers--;
	*results = (struct ndx_result){.status = NDX_OK};
	return 1;
}

static const struct ndx_qp_ops qp_ops = {.write = note_write};
static const struct ndx_cq_ops cq_ops = {.get_results = give_answer};
static struct ndx_qp qp = {.ops = &qp_ops};
static struct ndx_cq cq = {.ops = &cq_ops};

/* A receiver that runs, as far as its thread looks at the peer. */
static int set_up(void **state)
{
	static struct ndx_receiver r;

	memset(&device, 0, sizeof(device));
	memset(&r, 0, sizeof(r));
	if (slab_create(256, 4, 0, false, &r.slab) != NDX_OK)
		return -1;
	r.slab->token = TOKEN;
	r.attr.probe_ms = PROBE_MS;
	r.attr.probe_timeout_ms = 10 * PROBE_MS;
	r.tx_qp = &qp;
	r.tx_cq = &cq;
	r.last_ns = BEGIN;
	*state = &r;
	return 0;
}

static int end(void **state)
{
	struct ndx_receiver *r = *state;

	slab_abandon(r->slab);
	return 0;
}

static uint64_t attend(struct ndx_receiver *r, uint64_t now_ns)
{
	uint64_t due_ns;

	assert_true(receiver_attend(r, now_ns, &due_ns));
	return due_ns;
}

static void a_peer_is_asked_by_a_write_of_nothing(void **state)
{
	struct ndx_receiver *r = *state;

	assert_int_equal(attend(r, BEGIN + AFTER - 1), BEGIN + AFTER);
	assert_int_equal(device.writes, 0);
	assert_true(attend(r, BEGIN + AFTER) < BEGIN + 2 * AFTER);
	assert_int_equal(device.writes, 1);
	assert_int_equal(device.sges, 0);
	assert_int_equal(device.token, 0);
	assert_int_equal(device.flags, 0);
	/* The answer is waited for, and the peer asked again a period later. */
	(void)attend(r, BEGIN + 3 * AFTER);
	assert_int_equal(device.writes, 1);
	device.answers = 1;
	(void)attend(r, BEGIN + 4 * AFTER);
	assert_int_equal(device.writes, 1);
	(void)attend(r, BEGIN + 5 * AFTER);
	assert_int_equal(device.writes, 2);
}

static void a_device_that_granted_a_byte_is_asked_by_it(void **state)
{
	struct ndx_receiver *r = *state;

	r->no_oob = true;
	r->probe_address = 0xabcdef0123u;
	r->probe_token = 0x77;
	(void)attend(r, BEGIN + AFTER);
	assert_int_equal(device.writes, 1);
	assert_int_equal(device.sges, 1);
	assert_ptr_equal(device.sge.buffer, r->slab->memory);
	assert_int_equal(device.sge.length, 1);
	assert_int_equal(device.sge.token, TOKEN);
	assert_int_equal(device.address, 0xabcdef0123u);
	assert_int_equal(device.token, 0x77);
	assert_true(r->probing);
}

/* However long it is silent; nor is an answer missed. */
static void a_device_that_granted_none_is_not_asked(void **state)
{
	struct ndx_receiver *r = *state;

	r->no_oob = true;
	for (uint64_t now = BEGIN; now < BEGIN + 100 * AFTER; now += AFTER / 4) {
		(void)attend(r, now);
		assert_int_equal(device.writes, 0);
	}
	assert_false(r->parting);
}

/* The sender takes the results. */
static void an_answer_is_not_waited_for_where_a_sender_is(void **state)
{
	struct ndx_receiver *r = *state;

	r->has_sender = true;
	for (uint64_t now = BEGIN; now < BEGIN + 20 * AFTER; now += AFTER / 4)
		(void)attend(r, now);
	assert_in_range(device.writes, 18, 20);
	assert_int_equal(device.flags, NDX_OP_SILENT_SUCCESS);
	assert_false(r->parting);
}

static void a_probe_that_was_not_posted_has_no_answer(void **state)
{
	struct ndx_receiver *r = *state;

	device.refuses = NDX_E_NO_MORE_ENTRIES;
	for (uint64_t now = BEGIN; now < BEGIN + 20 * AFTER; now += AFTER / 4)
		(void)attend(r, now);
	assert_true(device.writes > 1);
	assert_false(r->parting);
}

/* ---- which byte that is ---- */

static void the_byte_is_the_one_of_the_numbers(void **state)
{
	struct ndx_receiver_peer peer = {
		.gid = {0xfe, 0x80}, .qpn = 9, .probe_address = 0x5000, .probe_rkey = 0x11223344};
	struct ndx_receiver_numbers numbers;
	struct ndx_receiver_attr attr;
	struct ndx_adapter *adapter;
	struct ndx_receiver *r;
	struct ndx_qp_ops ops;

	(void)state;
	memset(&device, 0, sizeof(device));
	assert_int_equal(ndx_adapter_open("loop", &adapter), NDX_OK);
	fake_direct(adapter);
	ndx_receiver_attr_init(&attr);
	attr.adapter = adapter;
	attr.slot_size = 256;
	attr.slot_count = 4;
	attr.pull = true;
	attr.probe_ms = 1;
	attr.probe_timeout_ms = PATIENCE_MS;
	assert_int_equal(ndx_receiver_create(&attr, &r), NDX_OK);
	assert_int_equal(ndx_receiver_get_numbers(r, &numbers), NDX_OK);
	peer.rq_psn = numbers.send_psn;
	peer.sq_psn = numbers.receive_psn;
	ops = *r->end.qp->ops;
	ops.write = note_write;
	r->end.qp->ops = &ops;
	if (ndx_receiver_complete_connection(r, &peer, PATIENCE_MS) != NDX_OK)
		print_error("%s\n", ndx_last_error());
	assert_int_equal(ndx_receiver_get_state(r), NDX_RECEIVER_RUNNING);
	assert_int_equal(fake_direct_peer.policy, NDX_PEER_DEVICE);
	for (unsigned ms = 0; ms < PATIENCE_MS; ms++) {
		if (__atomic_load_n(&device.writes, __ATOMIC_ACQUIRE) > 0)
			break;
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(__atomic_load_n(&device.writes, __ATOMIC_ACQUIRE), 1);
	assert_int_equal(device.sges, 1);
	assert_int_equal(device.address, 0x5000);
	assert_int_equal(device.token, ndx_token_of_rkey(0x11223344));
	ndx_receiver_close(r);
	ndx_adapter_close(adapter);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, end)
	const struct CMUnitTest tests[] = {
		T(a_peer_is_asked_by_a_write_of_nothing),
		T(a_device_that_granted_a_byte_is_asked_by_it),
		T(a_device_that_granted_none_is_not_asked),
		T(an_answer_is_not_waited_for_where_a_sender_is),
		T(a_probe_that_was_not_posted_has_no_answer),
		cmocka_unit_test(the_byte_is_the_one_of_the_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
