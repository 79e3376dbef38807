/* SPDX-License-Identifier: BSD-2-Clause */
/* A message that its receive cannot take: both ends get the reason. */
#include "bare.h"

#include <poll.h>
#include <string.h>

enum {
	SIZE = 64,
	ROUNDS = 20,
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

/* ---- a peer that refuses, or says so ---- */

static void bare_refuse(struct bare *b, uint16_t arrived, uint16_t why)
{
	bare_write_ctrl(b, ofi_ctrl_encode(OFI_CTRL_REFUSED, why, arrived, b->peer.id));
}

static void write_nothing(struct pair *p, uintptr_t context)
{
	const struct ndx_sge sge = pair_sge(&p->b, 0, 0);

	assert_int_equal(ndx_qp_write(p->b.qp, (void *)context, &sge, 1, 0, 0, 0), NDX_OK);
}

static void ends_in_an_abort(struct bare *b, struct pair *p)
{
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	bare_close(b);
	pair_drop_side(&p->b);
}

/* The peer's libfabric has taken all, and acknowledged the writes. Earlier requests have succeeded,
 * later ones are canceled, also where libfabric has completed them. */
static void refuse_the_second_of_four(struct pair *p, uint16_t why, enum ndx_status status)
{
	struct ndx_result result;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	bare_receive(&b, 4);
	for (uintptr_t i = 0; i < 4; i++) {
		pair_send(&p->b, 2 * i, 0, SIZE, 0);
		write_nothing(p, 2 * i + 1);
	}
	bare_read_messages(&b, 4);
	for (int i = 0; i < 20; i++) {
		(void)fi_cq_read(b.cq, NULL, 0);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	bare_refuse(&b, 1, why);
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(next_status(&p->b, i), i < 2    ? NDX_OK
		                                        : i == 2 ? status
		                                                 : NDX_E_CANCELED);
	ends_in_an_abort(&b, p);
}

static void the_sender_gets_the_reason(void **state)
{
	refuse_the_second_of_four(*state, OFI_REFUSAL_LENGTH, NDX_E_DATA_OVERRUN);
	refuse_the_second_of_four(*state, OFI_REFUSAL_MEMORY, NDX_E_REMOTE_ERROR);
}

/* The peer's libfabric acknowledges the write right after the peer has refused the message: this
 * end often finds both in one read. */
static void a_write_that_ends_after_the_refusal_is_canceled(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < ROUNDS; i++) {
		struct bare b;

		bare_connect_to_b(&b, p);
		bare_send_ready(&b, p);
		bare_receive(&b, 1);
		pair_send(&p->b, 0, 0, SIZE, 0);
		write_nothing(p, 1);
		(void)poll(NULL, 0, 10);
		bare_refuse(&b, 0, OFI_REFUSAL_LENGTH);
		(void)fi_cq_read(b.cq, NULL, 0);
		assert_int_equal(next_status(&p->b, 0), NDX_E_DATA_OVERRUN);
		assert_int_equal(next_status(&p->b, 1), NDX_E_CANCELED);
		ends_in_an_abort(&b, p);
	}
}

static void refuse_nothing(struct bare *b)
{
	bare_refuse(b, 0, OFI_REFUSAL_LENGTH);
}

static void refuse_behind_nothing(struct bare *b)
{
	bare_refuse(b, 1, OFI_REFUSAL_LENGTH);
}

static void refuse_without_reason(struct bare *b)
{
	bare_refuse(b, 0, 0);
}

static void a_false_refusal_ends_its_connection_and_no_other(void **state)
{
	bare_violate(*state, refuse_nothing);
	bare_violate(*state, refuse_behind_nothing);
	bare_violate(*state, refuse_without_reason);
}

/* All that was sent is acknowledged, or more than that: no send gets a reason. */
static void a_false_refusal_is_no_reason(void **state)
{
	static const uint16_t arrived[] = {2, 3, UINT16_MAX};
	struct pair *p = *state;

	for (size_t k = 0; k < sizeof(arrived) / sizeof(arrived[0]); k++) {
		const enum ndx_status status = k == 0 ? NDX_OK : NDX_E_CANCELED;
		struct bare b;

		bare_connect_to_b(&b, p);
		bare_send_ready(&b, p);
		bare_receive(&b, 2);
		pair_send(&p->b, 0, 0, SIZE, 0);
		pair_send(&p->b, 1, 0, SIZE, 0);
		bare_read_messages(&b, 2);
		bare_refuse(&b, arrived[k], OFI_REFUSAL_LENGTH);
		assert_int_equal(next_status(&p->b, 0), status);
		assert_int_equal(next_status(&p->b, 1), status);
		ends_in_an_abort(&b, p);
	}
}

/* What the peer sends behind the message that this end has refused is not acknowledged. */
static void the_receiver_says_what_has_arrived_and_why_it_ends(void **state)
{
	struct pair *p = *state;
	uint8_t bytes[65] = {0};
	struct iovec iov = {bytes, 64};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	struct ofi_ctrl ctrl;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	msg.data = ofi_ctrl_encode_data(0, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		iov.iov_len = i == 2 ? 65 : 64;
		assert_int_equal(fi_sendmsg(b.ep, &msg, FI_REMOTE_CQ_DATA), 0);
	}
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_BUFFER_OVERFLOW);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 3, NDX_E_CANCELED);
	/* the connection waits until the peer has it */
	(void)poll(NULL, 0, 50);
	ctrl = bare_read_ctrl(&b);
	assert_int_equal(ctrl.type, OFI_CTRL_REFUSED);
	assert_int_equal(ctrl.count, OFI_REFUSAL_LENGTH);
	assert_int_equal(ctrl.arrived, 2);
	ends_in_an_abort(&b, p);
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
		for (uint32_t i = SIZE + room; i < 2 * SIZE; i++)
			assert_int_equal(p->b.memory[i], 0xee);
	}
	pair_drop(p);
}

/* One byte too long, and much longer than the pages that take the rest. */
static void both_ends_get_the_reason(void **state)
{
	messages_that_are_too_long(*state, SIZE - 1, SIZE, false);
	messages_that_are_too_long(*state, 0, 1, false);
	messages_that_are_too_long(*state, SIZE - 1, LONG, false);
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

/* libfabric takes four SGEs, so one is missing for the rest of the message. */
static void a_receive_of_four_sges_hides_the_reason(void **state)
{
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	struct pair *p = *state;
	struct ndx_sge sge[4];
	enum ndx_status status;

	p->attr.max_receive_sge = 4;
	pair_make(p);
	p->attr = attr;
	pair_connect(p);
	for (size_t i = 0; i < 4; i++)
		sge[i] = pair_sge(&p->b, i * SIZE, 1);
	assert_int_equal(ndx_qp_receive(p->b.qp, (void *)1, sge, 4), NDX_OK);
	pair_send(&p->a, 1, 0, SIZE, 0);
	status = next_status(&p->a, 1);
	assert_true(status == NDX_E_CANCELED || status == NDX_E_DATA_OVERRUN);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_BUFFER_OVERFLOW);
	pair_drop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_sender_gets_the_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_write_that_ends_after_the_refusal_is_canceled,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_false_refusal_ends_its_connection_and_no_other,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_false_refusal_is_no_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(the_receiver_says_what_has_arrived_and_why_it_ends,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(both_ends_get_the_reason, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(traffic_does_not_hide_the_reason, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(nobody_has_to_poll, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_bad_receive_fails_when_a_message_comes, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_receive_of_four_sges_hides_the_reason, pair_up,
	                                        pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
