/* SPDX-License-Identifier: BSD-2-Clause */
/* A send completes when the peer has it, and no packet says so that need not. */
#include "bare.h"

#include <poll.h>
#include <pthread.h>

enum {
	SIZE = 64,
	TURNS = 2000,
	DEPTH = 4096, /* of both queues, where more than 255 messages are in flight */
};

static struct ndx_result poll_one(struct pair_side *side)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result = {.status = NDX_PENDING};

	while (ndx_cq_get_results(side->cq, &result, 1) == 0 && pair_now() < end)
		continue;
	return result;
}

/* Take results until a message has come; count the sends that have completed. */
static void poll_message(struct pair_side *side, unsigned *sends)
{
	for (;;) {
		const struct ndx_result result = poll_one(side);

		assert_int_equal(result.status, NDX_OK);
		if (result.request_type == NDX_REQUEST_RECEIVE)
			return;
		(*sends)++;
	}
}

static uint64_t words_of(const struct pair *p)
{
	return pair_counter(&p->a, true, "credit_messages_sent") +
	       pair_counter(&p->b, true, "credit_messages_sent");
}

struct echo {
	struct pair_side *side;
	unsigned sends;
};

static void *answer(void *arg)
{
	struct echo *echo = arg;

	for (uintptr_t i = 0; i < TURNS; i++) {
		poll_message(echo->side, &echo->sends);
		pair_receive(echo->side, i, 0, SIZE);
		pair_send(echo->side, i, SIZE, SIZE, 0);
	}
	while (echo->sends < TURNS) {
		assert_int_equal(poll_one(echo->side).status, NDX_OK);
		echo->sends++;
	}
	return NULL;
}

static void question_and_answer_need_no_other_packet(void **state)
{
	struct pair *p = *state;
	struct echo echo = {.side = &p->b};
	unsigned sends = 0;
	pthread_t thread;
	uint64_t before;

	pair_make(p);
	pair_connect(p);
	for (uintptr_t i = 0; i < 8; i++) {
		pair_receive(&p->a, i, 0, SIZE);
		pair_receive(&p->b, i, 0, SIZE);
	}
	before = words_of(p);
	assert_int_equal(pthread_create(&thread, NULL, answer, &echo), 0);
	for (uintptr_t i = 0; i < TURNS; i++) {
		pair_send(&p->a, i, SIZE, SIZE, 0);
		poll_message(&p->a, &sends);
		pair_receive(&p->a, i, 0, SIZE);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sends, TURNS);
	/* a processor that is taken away from one side makes the other side's tick look */
	assert_in_range(words_of(p) - before, 0, TURNS / 2);
	pair_disconnect(p);
	pair_drop(p);
}

static void connect_with_receives(struct pair *p)
{
	pair_make(p);
	pair_connect(p);
	for (uintptr_t i = 0; i < 8; i++)
		pair_receive(&p->b, i, 0, SIZE);
}

/* The peer's consumer makes no call at all. */
static void sends_complete_without_the_peers_consumer(void **state)
{
	struct pair *p = *state;

	connect_with_receives(p);
	for (uintptr_t i = 0; i < 8; i++) {
		pair_send(&p->a, i, SIZE, SIZE, 0);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
	}
	for (uintptr_t i = 0; i < 8; i++)
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

/* The peer's consumer polls until the message is there, and then is busy with other things. */
static void sends_complete_when_the_peers_consumer_stops_polling(void **state)
{
	struct pair *p = *state;

	connect_with_receives(p);
	for (uintptr_t i = 0; i < 8; i++) {
		const struct ndx_sge sge = pair_sge(&p->a, SIZE, SIZE);

		if (i % 2 == 0)
			pair_send(&p->a, i, SIZE, SIZE, 0);
		else
			assert_int_equal(ndx_qp_send_immediate(p->a.qp, (void *)i, &sge, 1, 5, 0),
			                 NDX_OK);
		assert_int_equal(poll_one(&p->b).status, NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

/* The peer's consumer has got the message, and ends the connection at once. */
static void what_the_peer_has_got_is_complete_when_the_peer_aborts(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 50; i++) {
		pair_make(p);
		pair_connect(p);
		pair_receive(&p->b, 1, 0, SIZE);
		pair_send(&p->a, 2, SIZE, SIZE, 0);
		assert_int_equal(poll_one(&p->b).status, NDX_OK);
		assert_int_equal(ndx_qp_flush(p->b.qp), NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
		pair_drop(p);
	}
}

/* The control message beside immediate data has room for 8 bits of the count. The result of a send
 * comes before the answer to it, also where more are to be acknowledged. */
static void immediate_data_leave_room_for_acknowledgements(void **state)
{
	static const unsigned counts[] = {1, 2, 255, 256, 257, 600};
	const struct ndx_qp_attr attr = ((struct pair *)*state)->attr;
	struct pair *p = *state;

	p->attr.receive_depth = DEPTH;
	p->attr.initiator_depth = DEPTH;
	pair_make(p);
	p->attr = attr;
	pair_connect(p);
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		const struct ndx_sge sge = pair_sge(&p->b, SIZE, SIZE);

		pair_receive(&p->a, k, 0, SIZE);
		for (uintptr_t i = 0; i < counts[k]; i++) {
			pair_receive(&p->b, i, 0, SIZE);
			pair_send(&p->a, i, SIZE, SIZE, 0);
		}
		for (uintptr_t i = 0; i < counts[k]; i++)
			pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
		assert_int_equal(ndx_qp_send_immediate(p->b.qp, (void *)k, &sge, 1, 5, 0), NDX_OK);
		for (uintptr_t i = 0; i < counts[k]; i++)
			pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		pair_expect(&p->a, NDX_REQUEST_RECEIVE, k, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_SEND, k, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

/* ---- writes ---- */

static void post_write(struct pair *p, uintptr_t context, uint32_t flags)
{
	const struct ndx_sge sge = pair_sge(&p->a, context * SIZE, SIZE);

	assert_int_equal(ndx_qp_write(p->a.qp, (void *)context, &sge, 1,
	                              (uintptr_t)p->b.memory + context * SIZE,
	                              ndx_mr_get_remote_token(p->b.mr), flags),
	                 NDX_OK);
}

/* Whatever their number is, and whichever of them asks libfabric. */
static void writes_complete_when_the_bytes_are_there(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	for (uintptr_t count = 1; count <= 40; count++) {
		pair_fill(p->a.memory, count * SIZE, (unsigned)count);
		for (uintptr_t i = 0; i < count; i++)
			post_write(p, i, 0);
		for (uintptr_t i = 0; i < count; i++) {
			pair_expect(&p->a, NDX_REQUEST_WRITE, i, NDX_OK);
			assert_memory_equal(p->a.memory + i * SIZE, p->b.memory + i * SIZE, SIZE);
		}
	}
	pair_disconnect(p);
	pair_drop(p);
}

static void a_message_acknowledges_the_writes_before_it(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	for (uintptr_t count = 1; count < 20; count++) {
		pair_receive(&p->b, 0, 4096, SIZE);
		for (uintptr_t i = 0; i < count; i++)
			post_write(p, i, 0);
		pair_send(&p->a, count, 0, SIZE, 0);
		post_write(p, count + 1, 0);
		for (uintptr_t i = 0; i < count + 2; i++)
			pair_expect(&p->a, i == count ? NDX_REQUEST_SEND : NDX_REQUEST_WRITE, i,
			            NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_OK);
	}
	pair_disconnect(p);
	pair_drop(p);
}

/* No side polls: the drain of the disconnect asks for the last ones. */
static void a_disconnect_waits_for_silent_writes(void **state)
{
	struct pair *p = *state;

	for (uintptr_t count = 1; count < 20; count++) {
		pair_make(p);
		pair_connect(p);
		pair_fill(p->a.memory, count * SIZE, (unsigned)count);
		for (uintptr_t i = 0; i < count; i++)
			post_write(p, i, NDX_OP_SILENT_SUCCESS);
		pair_disconnect(p);
		assert_memory_equal(p->a.memory, p->b.memory, count * SIZE);
		pair_drop(p);
	}
}

/* ---- a peer that does not acknowledge ---- */

static void bare_receive(struct bare *b, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(fi_recv(b->ep, b->memory, SIZE, NULL, 0, b), 0);
	bare_write_ctrl(b, bare_encode_ctrl(b, OFI_CTRL_CREDIT, (uint16_t)count));
}

static void bare_read_messages(struct bare *b, unsigned count)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;

	while (count > 0 && pair_now() < end)
		count -= fi_cq_read(b->cq, &entry, 1) == 1 && entry.op_context == b;
	assert_int_equal(count, 0);
}

static void bare_acknowledge(struct bare *b, uint16_t arrived)
{
	bare_write_ctrl(b, ofi_ctrl_encode(OFI_CTRL_CREDIT, 0, arrived, b->peer.id));
}

static void what_is_not_acknowledged_is_not_complete(void **state)
{
	struct pair *p = *state;
	struct ndx_result result;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	bare_receive(&b, 5);
	for (uintptr_t i = 0; i < 5; i++)
		pair_send(&p->b, i, 0, SIZE, 0);
	bare_read_messages(&b, 5);
	/* all of them are in the peer's memory, and it has not said so */
	(void)poll(NULL, 0, 50);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	bare_acknowledge(&b, 2);
	pair_expect(&p->b, NDX_REQUEST_SEND, 0, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_SEND, 1, NDX_OK);
	(void)poll(NULL, 0, 20);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	/* with a message of the peer's */
	bare_send(&b, ofi_ctrl_encode_data(0, 0, 3, 0), FI_REMOTE_CQ_DATA);
	pair_expect(&p->b, NDX_REQUEST_SEND, 2, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 0, NDX_OK);
	assert_int_equal(pair_counter(&p->b, true, "sends_unacknowledged"), 2);
	/* backwards: the connection ends, and the rest is not known to have arrived */
	bare_acknowledge(&b, 1);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	for (uintptr_t i = 1; i < 4; i++)
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_E_CANCELED);
	pair_expect(&p->b, NDX_REQUEST_SEND, 3, NDX_E_CANCELED);
	pair_expect(&p->b, NDX_REQUEST_SEND, 4, NDX_E_CANCELED);
	bare_close(&b);
	pair_drop_side(&p->b);
}

static void send_with_false_acknowledgement(struct bare *b)
{
	bare_send(b, ofi_ctrl_encode_data(0, 0, 1, 0), FI_REMOTE_CQ_DATA);
}

static void send_immediate_with_false_acknowledgement(struct bare *b)
{
	bare_send(b, ofi_ctrl_encode_data(OFI_CTRL_IMMEDIATE, 0, 1, 0), FI_REMOTE_CQ_DATA);
}

static void write_false_acknowledgement(struct bare *b)
{
	bare_write_ctrl(b, ofi_ctrl_encode(OFI_CTRL_CREDIT, 0, 1, b->peer.id));
}

static void write_nothing_new(struct bare *b)
{
	bare_write_ctrl(b, ofi_ctrl_encode(OFI_CTRL_CREDIT, 0, 0, b->peer.id));
}

static void a_false_acknowledgement_ends_its_connection_and_no_other(void **state)
{
	bare_violate(*state, send_with_false_acknowledgement);
	bare_violate(*state, send_immediate_with_false_acknowledgement);
	bare_violate(*state, write_false_acknowledgement);
	bare_violate(*state, write_nothing_new);
}

/* The connection ends without a goodbye. */
static void end_bare(struct bare *b, struct pair *p)
{
	bare_close(b);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(p->b.ov.information, NDX_DISCONNECT_ABORTED);
	pair_drop_side(&p->b);
}

/* libfabric acknowledges a write behind two messages that the peer has not acknowledged: they have
 * arrived, whatever becomes of the connection. The peer's count comes later, and once more is no
 * violation. */
static void a_write_proves_the_messages_before_it(void **state)
{
	struct pair *p = *state;
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result;
	struct ndx_sge sge;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	bare_receive(&b, 4);
	sge = pair_sge(&p->b, 0, 0);
	for (uintptr_t i = 0; i < 2; i++)
		pair_send(&p->b, i, 0, SIZE, 0);
	bare_read_messages(&b, 2);
	assert_int_equal(ndx_qp_write(p->b.qp, (void *)2, &sge, 1, 0, 0, 0), NDX_OK);
	for (uintptr_t i = 0; i < 3; i++) {
		/* the bare peer's libfabric acknowledges when it is read */
		result.status = NDX_PENDING;
		while (ndx_cq_get_results(p->b.cq, &result, 1) == 0 && pair_now() < end)
			(void)fi_cq_read(b.cq, NULL, 0);
		assert_int_equal(result.status, NDX_OK);
		assert_ptr_equal(result.request_context, (void *)i);
	}
	assert_int_equal(pair_counter(&p->b, true, "sends_unacknowledged"), 2);
	pair_send(&p->b, 3, 0, SIZE, 0);
	bare_read_messages(&b, 1);
	bare_acknowledge(&b, 1);
	(void)poll(NULL, 0, 20);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &result, 1), 0);
	bare_acknowledge(&b, 3);
	pair_expect(&p->b, NDX_REQUEST_SEND, 3, NDX_OK);
	assert_int_equal(pair_counter(&p->b, true, "sends_unacknowledged"), 0);
	end_bare(&b, p);
}

static struct ofi_ctrl bare_read_credit(struct bare *b)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct fi_cq_data_entry entry;
	struct ofi_ctrl ctrl = {0};

	while (ctrl.type != OFI_CTRL_CREDIT && pair_now() < end) {
		if (fi_cq_read(b->cq, &entry, 1) == 1 && (entry.flags & FI_REMOTE_CQ_DATA))
			ctrl = ofi_ctrl_split(entry.data);
	}
	return ctrl;
}

/* A control message that asks is answered, though this end's consumer does nothing; also one for
 * which nothing new is to be told is no violation. */
static void a_peer_may_ask_at_any_time(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	for (uint16_t i = 1; i <= 3; i++) {
		bare_send(&b, ofi_ctrl_encode_data(0, 0, 0, 0), FI_REMOTE_CQ_DATA);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i - 1u, NDX_OK);
		bare_write_ctrl(&b, bare_encode_ctrl(&b, OFI_CTRL_CREDIT, 0) | OFI_CTRL_ASKS);
		assert_int_equal(bare_read_credit(&b).arrived, i);
		bare_write_ctrl(&b, bare_encode_ctrl(&b, OFI_CTRL_CREDIT, 0) | OFI_CTRL_ASKS);
	}
	end_bare(&b, p);
}

/* The drain of a disconnect waits for acknowledgements, and ends by them. */
static void a_disconnect_waits_for_acknowledgements(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	bare_send_ready(&b, p);
	bare_receive(&b, 2);
	pair_send(&p->b, 1, 0, SIZE, 0);
	pair_send(&p->b, 2, 0, SIZE, NDX_OP_SILENT_SUCCESS);
	bare_read_messages(&b, 2);
	assert_int_equal(ndx_cq_get_results(p->b.cq, &(struct ndx_result){0}, 1), 0);
	bare_write_ctrl(&b, bare_encode_ctrl(&b, OFI_CTRL_DISC, 0));
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	assert_int_equal(ndx_connector_disconnect(p->b.connector, &p->b.ov), NDX_PENDING);
	(void)poll(NULL, 0, 50);
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_PENDING);
	bare_acknowledge(&b, 1);
	pair_expect(&p->b, NDX_REQUEST_SEND, 1, NDX_OK);
	(void)poll(NULL, 0, 50);
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_PENDING);
	bare_acknowledge(&b, 2);
	assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_DISC);
	assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	bare_close(&b);
	pair_drop_side(&p->b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(question_and_answer_need_no_other_packet, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(sends_complete_without_the_peers_consumer, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(
			sends_complete_when_the_peers_consumer_stops_polling, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			what_the_peer_has_got_is_complete_when_the_peer_aborts, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(immediate_data_leave_room_for_acknowledgements,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(writes_complete_when_the_bytes_are_there, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_message_acknowledges_the_writes_before_it,
	                                        pair_up, pair_down),
		cmocka_unit_test_setup_teardown(a_disconnect_waits_for_silent_writes, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_write_proves_the_messages_before_it, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_peer_may_ask_at_any_time, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(
			a_false_acknowledgement_ends_its_connection_and_no_other, pair_up,
			pair_down),
		cmocka_unit_test_setup_teardown(what_is_not_acknowledged_is_not_complete, pair_up,
	                                        pair_down),
		cmocka_unit_test_setup_teardown(a_disconnect_waits_for_acknowledgements, pair_up,
	                                        pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
