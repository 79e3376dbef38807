/* SPDX-License-Identifier: BSD-2-Clause */
/* The lengths of receives, with a peer that calls libfabric directly: what NDX tells, and what it
 * makes of what the peer tells. */
#include "bare.h"

#include <poll.h>
#include <string.h>

#include <ndx/spi/byteorder.h>

enum {
	SIZE = 64,
	RNR_MS = 200,
};

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
	assert_int_equal(pair_next_status(&p->b, 1), NDX_OK);
	assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_DATA);
	ctrl = bare_read_ctrl(&b);
	assert_int_equal(ctrl.type, OFI_CTRL_TOO_LONG);
	assert_int_equal(ofi_ctrl_length(&ctrl), 9);
	/* the bare peer's libfabric confirms when it is read */
	for (int i = 0; i < 20; i++) {
		(void)fi_cq_read(b.cq, NULL, 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(pair_next_status(&p->b, 2), status);
	assert_int_equal(pair_next_status(&p->b, 3), NDX_E_CANCELED);
	ends_in_an_abort(&b, p);
}

static void the_peers_entries_decide(void **state)
{
	tell_and_refuse(*state, 8 + 1, NDX_E_DATA_OVERRUN);
	tell_and_refuse(*state, 0, NDX_E_DATA_OVERRUN);
	tell_and_refuse(*state, OFI_SIZE_BAD, NDX_E_REMOTE_ERROR);
	tell_and_refuse(*state, UINT32_MAX, NDX_E_REMOTE_ERROR);
}

/* A send waits for a receive, which comes and is too short while an earlier send is not
 * acknowledged: the time to wait for a receive is over. */
static void the_rnr_clock_stops_when_a_receive_comes(void **state)
{
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	struct pair *p = *state;
	struct bare b;

	p->attr.no_receive_timeout_ms = RNR_MS;
	bare_connect_to_b(&b, p);
	p->attr = attr;
	bare_send_ready(&b, p);
	bare_credit(&b, 1);
	pair_send(&p->b, 1, 0, SIZE, 0);
	pair_send(&p->b, 2, 0, SIZE, 0);
	assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_DATA);
	bare_tell(&b, 1, SIZE - 1 + 1);
	bare_credit(&b, 1);
	(void)poll(NULL, 0, 2 * RNR_MS);
	bare_write_ctrl(&b, ofi_ctrl_encode(OFI_CTRL_CREDIT, 0, 1, b.peer.id));
	assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_TOO_LONG);
	for (int i = 0; i < 20; i++) {
		(void)fi_cq_read(b.cq, NULL, 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(pair_next_status(&p->b, 1), NDX_OK);
	assert_int_equal(pair_next_status(&p->b, 2), NDX_E_DATA_OVERRUN);
	ends_in_an_abort(&b, p);
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
	assert_int_equal(pair_next_status(&p->b, 1), NDX_E_DATA_OVERRUN);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	pair_drop_side(&p->b);
}

/* ---- what NDX tells ---- */

static uint32_t entry_of(const struct bare *b, uint32_t place)
{
	return ndxp_get_be32(b->memory + OFI_AREA_SIZES + (size_t)place * OFI_SIZE_ENTRY);
}

/* The entry comes before the credits of its receive, but those that were read may be of the round
 * before. */
static void await_entry(struct bare *b, uint32_t place, uint32_t value)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (entry_of(b, place) != value && pair_now() < end)
		(void)fi_cq_read(b->cq, NULL, 0);
	assert_int_equal(entry_of(b, place), value);
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
	await_entry(&b, 1, 129);
	await_entry(&b, 2, 33);
	assert_int_equal(entry_of(&b, 0), 0);
	assert_int_equal(entry_of(&b, 3), 0);
	/* written once: what the peer has is not written again */
	memset(b.memory + OFI_AREA_SIZES, 0xff, 4 * OFI_SIZE_ENTRY);
	a_round(&b, p, 0, other);
	assert_int_equal(entry_of(&b, 1), UINT32_MAX);
	assert_int_equal(entry_of(&b, 2), UINT32_MAX);
	a_round(&b, p, 0, same);
	await_entry(&b, 1, 0);
	await_entry(&b, 2, 0);
	assert_int_equal(entry_of(&b, 0), UINT32_MAX);
	assert_int_equal(entry_of(&b, 3), UINT32_MAX);
	half_a_round(&b, p);
	a_round(&b, p, 2, other);
	await_entry(&b, 3, 129);
	await_entry(&b, 0, 33);
	bare_close(&b);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	pair_drop_side(&p->b);
}

/* The connection data have told of the receives; then their memory goes, before READY. */
static void memory_that_goes_before_the_connection_is_told(void **state)
{
	struct pair *p = *state;
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_overlapped ov = {0};
	enum ndx_status st;
	struct bare b;

	bare_connect_to_b(&b, p);
	st = ndx_mr_deregister(p->b.mr, &ov);
	assert_true(st == NDX_OK || st == NDX_PENDING);
	if (st == NDX_PENDING)
		assert_int_equal(pair_wait(&ov), NDX_OK);
	bare_send_ready(&b, p);
	for (uint32_t i = 0; i < 4; i++) {
		while (entry_of(&b, i) != OFI_SIZE_BAD && pair_now() < end)
			(void)fi_cq_read(b.cq, NULL, 0);
		assert_int_equal(entry_of(&b, i), OFI_SIZE_BAD);
	}
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
		cmocka_unit_test_setup_teardown(the_peers_entries_decide, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_peer_that_dies_beside_it_hides_no_reason, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(the_rnr_clock_stops_when_a_receive_comes, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(only_what_differs_is_told, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(memory_that_goes_before_the_connection_is_told,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_false_word_ends_its_connection_and_no_other,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_false_word_is_no_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(too_long_before_the_connection_is_refused, pair_up,
	                                        pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
