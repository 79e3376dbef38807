/* SPDX-License-Identifier: BSD-2-Clause */
/* The lengths of receives: what the peer is told of them, and what becomes of a message that its
 * receive cannot take. */
#include "bare.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ndx/spi/byteorder.h>

enum {
	SIZE = 64,
	ROUNDS = 20,
	MIXED_ROUNDS = 30,
	MIXED_MESSAGES = 200,
	LONG = 3 << 20,
};

/* The next result of an initiator request; those of receives come between. */
static enum ndx_status next_status(struct pair_side *side, uintptr_t context)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result;

	while (pair_now() < end) {
		if (ndx_cq_get_results(side->cq, &result, 1) == 0 ||
		    result.request_type == NDX_REQUEST_RECEIVE)
			continue;
		assert_ptr_equal(result.request_context, (void *)context);
		return result.status;
	}
	return NDX_PENDING;
}

/* ---- two ends of NDX ---- */

/* Posted behind the message that is too long; both ends have much on its way. */
static void post_traffic(struct pair *p)
{
	for (uintptr_t i = 10; i < 14; i++) {
		pair_receive(&p->a, i, 0, LONG);
		pair_receive(&p->b, i, 0, LONG);
		pair_send(&p->a, i, 0, LONG, 0);
		pair_send(&p->b, i, 0, LONG, 0);
	}
}

static void messages_that_are_too_long(struct pair *p, uint32_t room, uint32_t length, bool traffic)
{
	pair_make(p);
	pair_connect(p);
	memset(p->b.memory, 0xee, 2 * SIZE);
	pair_fill(p->a.memory, SIZE, 1);
	pair_receive(&p->b, 1, 0, SIZE);
	pair_receive(&p->b, 2, SIZE, room);
	pair_receive(&p->b, 3, 0, SIZE);
	pair_send(&p->a, 1, 0, SIZE, 0);
	pair_send(&p->a, 2, 0, length, 0);
	pair_send(&p->a, 3, 0, 0, 0);
	if (traffic)
		post_traffic(p);
	assert_int_equal(next_status(&p->a, 1), NDX_OK);
	assert_int_equal(next_status(&p->a, 2), NDX_E_DATA_OVERRUN);
	assert_int_equal(next_status(&p->a, 3), NDX_E_CANCELED);
	if (!traffic) {
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_BUFFER_OVERFLOW);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_CANCELED);
		pair_assert_filled(p->b.memory, SIZE, 1);
		for (uint32_t i = SIZE; i < 2 * SIZE; i++)
			assert_int_equal(p->b.memory[i], 0xee);
	}
	pair_drop(p);
}

static void both_ends_get_the_reason(void **state)
{
	for (int i = 0; i < ROUNDS; i++) {
		messages_that_are_too_long(*state, SIZE - 1, SIZE, false);
		messages_that_are_too_long(*state, 0, 1, false);
		messages_that_are_too_long(*state, SIZE - 1, LONG, false);
	}
}

static void traffic_does_not_hide_the_reason(void **state)
{
	for (int i = 0; i < ROUNDS; i++)
		messages_that_are_too_long(*state, SIZE - 1, i % 2 == 0 ? SIZE : LONG, true);
}

/* No side polls before both consumers have lost the connection. */
static void nobody_has_to_poll(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_connector_notify_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	pair_receive(&p->b, 1, 0, SIZE);
	pair_send(&p->a, 1, 0, SIZE + 1, 0);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(p->a.ov.information, NDX_DISCONNECT_ABORTED);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_DATA_OVERRUN);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_BUFFER_OVERFLOW);
	pair_drop(p);
}

/* Receives that are posted before the connection is there; the first length is the common one. */
static void receives_of_before_the_connection_have_their_lengths(void **state)
{
	static const uint32_t lengths[] = {SIZE, SIZE, 4 * SIZE, 2 * SIZE, SIZE, 8};
	struct pair *p = *state;

	pair_make(p);
	for (uintptr_t i = 0; i < 6; i++)
		pair_receive(&p->b, i, 0, lengths[i]);
	pair_connect(p);
	for (uintptr_t i = 0; i < 6; i++)
		pair_send(&p->a, i, 0, i < 5 ? lengths[i] : 9, 0);
	for (uintptr_t i = 0; i < 6; i++) {
		const enum ndx_status sent = i < 5 ? NDX_OK : NDX_E_DATA_OVERRUN;
		const enum ndx_status received = i < 5 ? NDX_OK : NDX_E_BUFFER_OVERFLOW;

		pair_expect(&p->a, NDX_REQUEST_SEND, i, sent);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, received);
	}
	pair_drop(p);
}

/* Every receive has a length of its own, and some messages fill it to the last byte; the last one
 * has a byte more. */
static void mix_lengths(struct pair *p, unsigned *seed)
{
	const uint32_t depth = 1 + (uint32_t)rand_r(seed) % 9;
	uint32_t rooms[MIXED_MESSAGES];
	uint32_t given = 0;

	p->attr.receive_depth = depth;
	pair_make(p);
	pair_connect(p);
	for (uint32_t i = 0; i < MIXED_MESSAGES; i++)
		rooms[i] = (uint32_t)rand_r(seed) % 4 * SIZE + (uint32_t)rand_r(seed) % 2;
	for (uint32_t i = 0; i < MIXED_MESSAGES; i++) {
		const bool last = i + 1 == MIXED_MESSAGES;
		const bool full = rand_r(seed) % 2 == 0;
		uint32_t length = full ? rooms[i] : rooms[i] / 2;

		for (; given < MIXED_MESSAGES && given < i + depth; given++)
			pair_receive(&p->b, given, 0, rooms[given]);
		if (last)
			length = rooms[i] + 1;
		pair_send(&p->a, i, 0, length, 0);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, last ? NDX_E_DATA_OVERRUN : NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, last ? NDX_E_BUFFER_OVERFLOW : NDX_OK);
	}
	pair_drop(p);
}

static void every_receive_has_its_own_length(void **state)
{
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	unsigned seed = (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	for (int i = 0; i < MIXED_ROUNDS; i++)
		mix_lengths(*state, &seed);
	((struct pair *)*state)->attr = attr;
}

static void post_bad_receive(struct pair *p, uintptr_t context)
{
	struct ndx_sge sge = pair_sge(&p->b, 0, SIZE);

	sge.token ^= 0x5a5a5a5a;
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)context, &sge, 1), NDX_OK);
}

/* Nothing happens before a message comes; a message of no bytes needs no memory. */
static void a_bad_receive_fails_when_a_message_comes(void **state)
{
	struct pair *p = *state;
	struct ndx_result result;

	pair_make(p);
	post_bad_receive(p, 1);
	pair_connect(p);
	pair_receive(&p->b, 2, 0, SIZE);
	post_bad_receive(p, 3);
	pair_receive(&p->b, 4, 0, SIZE);
	memset(p->b.memory, 0xee, SIZE);
	(void)poll(NULL, 0, 20);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	for (uintptr_t i = 1; i < 5; i++)
		pair_send(&p->a, i, SIZE, i < 3 ? 0 : 8, 0);
	for (uintptr_t i = 1; i < 3; i++) {
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	pair_expect(&p->a, NDX_REQUEST_SEND, 3, NDX_E_REMOTE_ERROR);
	pair_expect(&p->a, NDX_REQUEST_SEND, 4, NDX_E_CANCELED);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_ACCESS_VIOLATION);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 4, NDX_E_CANCELED);
	pair_drop(p);
}

static void a_receive_of_four_sges_has_the_sum_of_their_lengths(void **state)
{
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	struct pair *p = *state;
	struct ndx_sge sge[4];

	p->attr.max_receive_sge = 4;
	pair_make(p);
	p->attr = attr;
	pair_connect(p);
	for (size_t i = 0; i < 4; i++)
		sge[i] = pair_sge(&p->b, i * SIZE, 3);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, sge, 4), NDX_OK);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)2, sge, 4), NDX_OK);
	pair_send(&p->a, 1, 0, 12, 0);
	pair_send(&p->a, 2, 0, 13, 0);
	pair_expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_DATA_OVERRUN);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_BUFFER_OVERFLOW);
	pair_drop(p);
}

/* A flush while the peer has the message's place, but has not confirmed that. */
static void a_flush_beside_it_loses_no_result(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < ROUNDS; i++) {
		struct ndx_result result;

		pair_make(p);
		pair_connect(p);
		pair_receive(&p->b, 1, 0, SIZE);
		pair_run_jobs(&p->b);
		pair_send(&p->a, 1, 0, SIZE + 1, 0);
		pair_send(&p->a, 2, 0, SIZE, 0);
		assert_int_equal(ndx_qp_flush(p->a.qp), NDX_OK);
		assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 1);
		assert_ptr_equal(result.request_context, (void *)1);
		assert_true(result.status == NDX_E_DATA_OVERRUN || result.status == NDX_E_CANCELED);
		pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_CANCELED);
		pair_drop(p);
	}
}

/* ---- a peer that tells lengths ---- */

static void ends_in_an_abort(struct bare *b, struct pair *p)
{
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(b);
	pair_drop_side(&p->b);
}

static void bare_tell(struct bare *b, uint32_t place, uint32_t entry)
{
	uint8_t bytes[OFI_SIZE_ENTRY];
	const struct iovec iov = {bytes, sizeof(bytes)};
	const struct fi_rma_iov remote = {b->peer.address + OFI_AREA_SIZES +
	                                          (uint64_t)place * OFI_SIZE_ENTRY,
	                                  sizeof(bytes), b->peer.key};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &remote, .rma_iov_count = 1};

	ndxp_put_be32(bytes, entry);
	assert_int_equal(fi_writemsg(b->ep, &msg, FI_INJECT), 0);
}

static void bare_credit(struct bare *b, uint16_t count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(fi_recv(b->ep, b->memory, SIZE, NULL, 0, b), 0);
	bare_write_ctrl(b, bare_encode_ctrl(b, OFI_CTRL_CREDIT, count));
}

/* The peer's word counts, whatever its receive is; the sender says TOO_LONG, and nothing behind. */
static void tell_and_refuse(struct pair *p, uint32_t entry, enum ndx_status status)
{
	struct ofi_ctrl ctrl;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	bare_tell(&b, 1, entry);
	bare_write_ctrl(&b, ofi_ctrl_encode_length(OFI_CTRL_SIZE, 5, b.peer.id));
	bare_credit(&b, 3);
	pair_send(&p->b, 1, 0, 5, 0);
	pair_send(&p->b, 2, 0, 9, 0);
	pair_send(&p->b, 3, 0, 0, 0);
	/* the first one is acknowledged first */
	for (int i = 0; i < 20; i++) {
		(void)fi_cq_read(b.cq, NULL, 0);
		(void)poll(NULL, 0, 1);
	}
	bare_write_ctrl(&b, ofi_ctrl_encode(OFI_CTRL_CREDIT, 0, 1, b.peer.id));
	assert_int_equal(next_status(&p->b, 1), NDX_OK);
	assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_DATA);
	ctrl = bare_read_ctrl(&b);
	assert_int_equal(ctrl.type, OFI_CTRL_TOO_LONG);
	assert_int_equal(ofi_ctrl_length(&ctrl), 9);
	/* the bare peer's libfabric confirms when it is read */
	for (int i = 0; i < 20; i++) {
		(void)fi_cq_read(b.cq, NULL, 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(next_status(&p->b, 2), status);
	assert_int_equal(next_status(&p->b, 3), NDX_E_CANCELED);
	ends_in_an_abort(&b, p);
}

static void the_peers_entries_decide(void **state)
{
	tell_and_refuse(*state, 8 + 1, NDX_E_DATA_OVERRUN);
	tell_and_refuse(*state, 0, NDX_E_DATA_OVERRUN);
	tell_and_refuse(*state, OFI_SIZE_BAD, NDX_E_REMOTE_ERROR);
	tell_and_refuse(*state, UINT32_MAX, NDX_E_REMOTE_ERROR);
}

/* The peer is gone before it has confirmed: the reason is known all the same. */
static void a_peer_that_dies_beside_it_hides_no_reason(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	bare_write_ctrl(&b, ofi_ctrl_encode_length(OFI_CTRL_SIZE, 5, b.peer.id));
	bare_credit(&b, 1);
	pair_send(&p->b, 1, 0, 6, 0);
	(void)poll(NULL, 0, 10);
	bare_close(&b);
	assert_int_equal(next_status(&p->b, 1), NDX_E_DATA_OVERRUN);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	pair_drop_side(&p->b);
}

/* ---- what NDX tells ---- */

static uint32_t entry_of(const struct bare *b, uint32_t place)
{
	return ndxp_get_be32(b->memory + OFI_AREA_SIZES + (size_t)place * OFI_SIZE_ENTRY);
}

/* Read until the peer has given so many credits. */
static void read_credits(struct bare *b, unsigned wanted)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;
	unsigned count = 0;

	while (count < wanted) {
		struct ofi_ctrl ctrl;

		assert_true(pair_now() < end);
		if (fi_cq_read(b->cq, &entry, 1) != 1 || !(entry.flags & FI_REMOTE_CQ_DATA))
			continue;
		ctrl = ofi_ctrl_split(entry.data);
		assert_int_not_equal(ctrl.type, OFI_CTRL_SIZE);
		if (ctrl.type == OFI_CTRL_CREDIT)
			count += ctrl.count;
	}
}

/* Messages for the four receives, the oldest of which is at `first`, and new ones of other lengths.
 * The last one makes no half of the queue, so its credit may wait for a message; its length is
 * always the common one. */
static void a_round(struct bare *b, struct pair *p, uintptr_t first, const uint32_t lengths[4])
{
	for (unsigned i = 0; i < 4; i++)
		bare_send(b, ofi_ctrl_encode_data(0, 0, 0, 0), FI_REMOTE_CQ_DATA);
	for (uintptr_t i = 0; i < 4; i++)
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, (first + i) % 4, NDX_OK);
	for (uintptr_t i = 0; i < 4; i++)
		pair_receive(&p->b, (first + i) % 4, 0, lengths[i]);
	read_credits(b, 3);
}

/* Two messages, and two new receives: from then on the round begins in the middle. */
static void half_a_round(struct bare *b, struct pair *p)
{
	for (unsigned i = 0; i < 2; i++)
		bare_send(b, ofi_ctrl_encode_data(0, 0, 0, 0), FI_REMOTE_CQ_DATA);
	for (uintptr_t i = 0; i < 2; i++)
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	for (uintptr_t i = 0; i < 2; i++)
		pair_receive(&p->b, i, 0, SIZE);
}

static void only_what_differs_is_told(void **state)
{
	static const uint32_t same[4] = {64, 64, 64, 64};
	static const uint32_t other[4] = {64, 128, 32, 64};
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	struct pair *p = *state;
	struct bare b;

	p->attr.receive_depth = 4;
	bare_connect_to_b(&b, p);
	p->attr = attr;
	assert_int_equal(b.peer.receive_size, 64);
	assert_int_equal(b.peer.depth, 4);
	bare_send_ready(&b, p);
	a_round(&b, p, 0, same);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(entry_of(&b, i), 0);
	a_round(&b, p, 0, other);
	assert_int_equal(entry_of(&b, 0), 0);
	assert_int_equal(entry_of(&b, 1), 129);
	assert_int_equal(entry_of(&b, 2), 33);
	assert_int_equal(entry_of(&b, 3), 0);
	/* written once: what the peer has is not written again */
	memset(b.memory + OFI_AREA_SIZES, 0xff, 4 * OFI_SIZE_ENTRY);
	a_round(&b, p, 0, other);
	assert_int_equal(entry_of(&b, 1), UINT32_MAX);
	assert_int_equal(entry_of(&b, 2), UINT32_MAX);
	a_round(&b, p, 0, same);
	assert_int_equal(entry_of(&b, 0), UINT32_MAX);
	assert_int_equal(entry_of(&b, 1), 0);
	assert_int_equal(entry_of(&b, 2), 0);
	assert_int_equal(entry_of(&b, 3), UINT32_MAX);
	half_a_round(&b, p);
	a_round(&b, p, 2, other);
	assert_int_equal(entry_of(&b, 3), 129);
	assert_int_equal(entry_of(&b, 0), 33);
	bare_close(&b);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_drop_side(&p->b);
}

/* ---- violations ---- */

static void length_twice(struct bare *b)
{
	bare_write_ctrl(b, ofi_ctrl_encode_length(OFI_CTRL_SIZE, 64, b->peer.id));
	bare_write_ctrl(b, ofi_ctrl_encode_length(OFI_CTRL_SIZE, 64, b->peer.id));
}

static void too_long_that_fits(struct bare *b)
{
	bare_write_ctrl(b, ofi_ctrl_encode_length(OFI_CTRL_TOO_LONG, 64, b->peer.id));
}

/* The four receives have messages. */
static void too_long_without_a_receive(struct bare *b)
{
	for (unsigned i = 0; i < 4; i++)
		bare_send(b, ofi_ctrl_encode_data(0, 0, 0, 0), FI_REMOTE_CQ_DATA);
	bare_write_ctrl(b, ofi_ctrl_encode_length(OFI_CTRL_TOO_LONG, 65, b->peer.id));
}

static void too_long_that_asks(struct bare *b)
{
	bare_write_ctrl(b,
	                ofi_ctrl_encode_length(OFI_CTRL_TOO_LONG, 65, b->peer.id) | OFI_CTRL_ASKS);
}

static void a_false_word_ends_its_connection_and_no_other(void **state)
{
	bare_violate(*state, length_twice);
	bare_violate(*state, too_long_that_fits);
	bare_violate(*state, too_long_without_a_receive);
	bare_violate(*state, too_long_that_asks);
}

/* The receive is not blamed. */
static void a_false_word_is_no_reason(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	too_long_that_fits(&b);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_E_CANCELED);
	ends_in_an_abort(&b, p);
}

/* Before READY there is no message. */
static void too_long_before_the_connection_is_refused(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_write_ctrl(&b, ofi_ctrl_encode_length(OFI_CTRL_TOO_LONG, 65, b.peer.id));
	assert_int_equal(pair_wait(&p->b.ov), NDX_E_CONNECTION_ABORTED);
	bare_close(&b);
	pair_drop_side(&p->b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_ends_get_the_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(traffic_does_not_hide_the_reason, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(nobody_has_to_poll, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			receives_of_before_the_connection_have_their_lengths, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(every_receive_has_its_own_length, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_bad_receive_fails_when_a_message_comes, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_receive_of_four_sges_has_the_sum_of_their_lengths,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_flush_beside_it_loses_no_result, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(the_peers_entries_decide, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_peer_that_dies_beside_it_hides_no_reason, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(only_what_differs_is_told, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_false_word_ends_its_connection_and_no_other,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_false_word_is_no_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(too_long_before_the_connection_is_refused, pair_up,
	                                        pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
