/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections come about, or do not: private data, read limits, refusals, abandoned attempts. */
#include "nd_op.h"

enum { LONGEST = 2048 };

/* Exactly these bytes are there, in one piece and in part. */
static void expect_data(IND2Connector *connector, const char *data, ULONG length)
{
	char got[LONGEST];
	ULONG room;

	memset(got, 0x5a, sizeof(got));
	room = LONGEST;
	assert_status(CALL(connector, GetPrivateData, got, &room), ND_SUCCESS);
	assert_int_equal(room, length);
	assert_memory_equal(got, data, length);
	assert_int_equal(got[length], 0x5a);
	room = length;
	assert_status(CALL(connector, GetPrivateData, got, &room), ND_SUCCESS);
	if (length == 0)
		return;
	room = 0;
	assert_status(CALL(connector, GetPrivateData, NULL, &room), ND_BUFFER_OVERFLOW);
	assert_int_equal(room, length);
	memset(got, 0x5a, sizeof(got));
	room = length / 2;
	assert_status(CALL(connector, GetPrivateData, got, &room), ND_BUFFER_OVERFLOW);
	assert_int_equal(room, length);
	assert_memory_equal(got, data, length / 2);
	assert_int_equal(got[length / 2], 0x5a);
}

static void data_of_connect_and_accept(ULONG caller, ULONG callee)
{
	struct nd_pair p;
	char one[LONGEST], two[LONGEST];
	struct nd_offer offer = {1, 1, one, caller};

	nd_fill(one, caller, 3);
	nd_fill(two, callee, 5);
	nd_make(&p);
	nd_ask(&p, &offer);
	memset(one, 0, sizeof(one)); /* the call has copied the data */
	nd_fill(one, caller, 3);
	expect_data(p.b.connector, one, caller);
	offer.data = two;
	offer.length = callee;
	nd_answer(&p, &offer);
	expect_data(p.a.connector, two, callee);
	nd_complete(&p);
	expect_data(p.a.connector, two, callee);
	expect_data(p.b.connector, one, caller);
	nd_disconnect(&p);
	nd_drop(&p);
}

static void private_data_has_its_length(void **state)
{
	struct nd_side s;

	(void)state;
	nd_make_side(&s);
	assert_true(s.info.MaxCallerData < LONGEST && s.info.MaxCalleeData < LONGEST);
	/* what Microsoft's programs need */
	assert_true(s.info.MaxCallerData >= 40 && s.info.MaxCalleeData >= 36);
	data_of_connect_and_accept(0, 0);
	data_of_connect_and_accept(1, 1);
	data_of_connect_and_accept(s.info.MaxCallerData, s.info.MaxCalleeData);
	data_of_connect_and_accept(0, 1);
	nd_drop_side(&s);
}

static void data_of_reject(ULONG length)
{
	struct nd_pair p;
	char data[LONGEST];

	nd_fill(data, length, 11);
	nd_make(&p);
	nd_ask(&p, NULL);
	assert_status(CALL(p.b.connector, Reject, data, length), ND_SUCCESS);
	assert_status(nd_ov_end(&p.a.ov), ND_CONNECTION_REFUSED);
	expect_data(p.a.connector, data, length);
	nd_drop(&p);
}

static void a_reject_has_data(void **state)
{
	struct nd_side s;

	(void)state;
	nd_make_side(&s);
	data_of_reject(0);
	data_of_reject(1);
	data_of_reject(s.info.MaxCalleeData);
	nd_drop_side(&s);
}

/* The connectors and queue pairs are as before. */
static void data_that_is_too_long_changes_nothing(void **state)
{
	struct nd_pair p;
	static char data[LONGEST];

	(void)state;
	nd_make(&p);
	assert_status(CALL(p.a.connector, Connect, UNKNOWN(p.a.qp), (struct sockaddr *)&p.address,
	                   p.address_length, 0, 0, data, p.a.info.MaxCallerData + 1, &p.a.ov),
	              ND_INVALID_BUFFER_SIZE);
	nd_ask(&p, NULL);
	assert_status(CALL(p.b.connector, Accept, UNKNOWN(p.b.qp), 0, 0, data,
	                   p.b.info.MaxCalleeData + 1, &p.b.ov),
	              ND_INVALID_BUFFER_SIZE);
	assert_status(CALL(p.b.connector, Reject, data, p.b.info.MaxCalleeData + 1),
	              ND_INVALID_BUFFER_SIZE);
	nd_answer(&p, NULL);
	nd_complete(&p);
	nd_disconnect(&p);
	nd_drop(&p);
}

static void expect_limits(IND2Connector *connector, ULONG inbound, ULONG outbound)
{
	ULONG in = 77, out = 77;

	assert_status(CALL(connector, GetReadLimits, &in, &out), ND_SUCCESS);
	assert_int_equal(in, inbound);
	assert_int_equal(out, outbound);
	assert_status(CALL(connector, GetReadLimits, NULL, &out), ND_SUCCESS);
	assert_status(CALL(connector, GetReadLimits, &in, NULL), ND_SUCCESS);
}

/* Inbound of one side meets outbound of the other. */
static void read_limits_are_crossed(void **state)
{
	struct nd_pair p;
	const struct nd_offer offer = {3, 2, NULL, 0};
	const struct nd_offer answer = {5, 1, NULL, 0};

	(void)state;
	nd_make(&p);
	nd_ask(&p, &offer);
	expect_limits(p.b.connector, 2, 3);
	nd_answer(&p, &answer);
	expect_limits(p.a.connector, 1, 2);
	nd_complete(&p);
	expect_limits(p.a.connector, 1, 2);
	expect_limits(p.b.connector, 2, 1);
	nd_disconnect(&p);
	nd_drop(&p);
}

static void read_limits_are_lowered(void **state)
{
	struct nd_pair p;
	const struct nd_offer all = {0xffffffff, 0xffffffff, NULL, 0};
	ULONG in, out, most;

	(void)state;
	nd_make(&p);
	in = p.a.info.MaxInboundReadLimit;
	out = p.a.info.MaxOutboundReadLimit;
	most = in < out ? in : out;
	nd_ask(&p, &all);
	expect_limits(p.b.connector, most, most);
	nd_answer(&p, &all);
	nd_complete(&p);
	expect_limits(p.a.connector, most, most);
	expect_limits(p.b.connector, most, most);
	nd_disconnect(&p);
	nd_drop(&p);
}

static void addresses_are_those_of_the_ends(void **state)
{
	struct nd_pair p;
	struct sockaddr_storage local, peer;
	ULONG local_length = sizeof(local);
	ULONG peer_length = sizeof(peer);

	(void)state;
	nd_make(&p);
	nd_ask(&p, NULL);
	/* the passive end knows both before it answers */
	assert_status(
		CALL(p.b.connector, GetLocalAddress, (struct sockaddr *)&local, &local_length),
		ND_SUCCESS);
	assert_memory_equal(&local, &p.address, p.address_length);
	assert_status(CALL(p.b.connector, GetPeerAddress, (struct sockaddr *)&peer, &peer_length),
	              ND_SUCCESS);
	nd_answer(&p, NULL);
	local_length = sizeof(local);
	assert_status(
		CALL(p.a.connector, GetLocalAddress, (struct sockaddr *)&local, &local_length),
		ND_SUCCESS);
	assert_int_equal(local_length, peer_length);
	assert_memory_equal(&local, &peer, peer_length);
	peer_length = sizeof(peer);
	assert_status(CALL(p.a.connector, GetPeerAddress, (struct sockaddr *)&peer, &peer_length),
	              ND_SUCCESS);
	assert_memory_equal(&peer, &p.address, p.address_length);
	nd_complete(&p);
	nd_disconnect(&p);
	nd_drop(&p);
}

/* ---- refusals ---- */

/* Then the same connector and queue pair connect; the receive of before is still there. */
static void connector_and_queue_pair_survive_a_refusal(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_receive(&p.a, 9, 0, 8);
	for (int i = 0; i < 3; i++) {
		nd_ask(&p, NULL);
		assert_status(CALL(p.b.connector, Reject, "no", 2), ND_SUCCESS);
		assert_status(nd_ov_end(&p.a.ov), ND_CONNECTION_REFUSED);
		assert_status(CALL(p.b.connector, Accept, UNKNOWN(p.b.qp), 0, 0, NULL, 0, &p.b.ov),
		              ND_CONNECTION_INVALID);
		nd_replace_connector(&p.b);
	}
	nd_connect(&p);
	nd_send(&p.b, 1, 0, 8, 0);
	nd_expect(&p.b, Nd2RequestTypeSend, 1, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeReceive, 9, ND_SUCCESS);
	nd_disconnect(&p);
	nd_drop(&p);
}

static void the_active_side_refuses(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_ask(&p, NULL);
	nd_answer(&p, NULL);
	assert_status(CALL(p.a.connector, Reject, "no", 2), ND_SUCCESS);
	assert_status(nd_ov_end(&p.b.ov), ND_CONNECTION_REFUSED);
	assert_status(CALL(p.a.connector, CompleteConnect, &p.a.ov), ND_CONNECTION_INVALID);
	assert_status(CALL(p.a.connector, Reject, "no", 2), ND_CONNECTION_INVALID);
	assert_status(CALL(p.b.connector, Accept, UNKNOWN(p.b.qp), 0, 0, NULL, 0, &p.b.ov),
	              ND_CONNECTION_INVALID);
	/* the queue pairs are as before */
	nd_replace_connector(&p.a);
	nd_replace_connector(&p.b);
	nd_connect(&p);
	nd_disconnect(&p);
	nd_drop(&p);
}

/* Gives up after the answer. */
static void release_after_the_answer_refuses(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_ask(&p, NULL);
	nd_answer(&p, NULL);
	nd_replace_connector(&p.a);
	assert_status(nd_ov_end(&p.b.ov), ND_CONNECTION_REFUSED);
	nd_drop(&p);
}

/* Gives up before the answer. */
static void release_before_the_answer_aborts(void **state)
{
	struct nd_pair p;
	HRESULT status;

	(void)state;
	nd_make(&p);
	nd_ask(&p, NULL);
	nd_replace_connector(&p.a);
	assert_status(nd_ov_end(&p.a.ov), ND_CANCELED);
	/* at once, if the news is here already */
	status = CALL(p.b.connector, Accept, UNKNOWN(p.b.qp), 0, 0, NULL, 0, &p.b.ov);
	assert_status(status == ND_PENDING ? nd_ov_end(&p.b.ov) : status, ND_CONNECTION_ABORTED);
	nd_drop(&p);
}

static void release_of_the_passive_end_refuses(void **state)
{
	struct nd_pair p;
	HRESULT status;

	(void)state;
	nd_make(&p);
	nd_ask(&p, NULL);
	nd_replace_connector(&p.b);
	status = nd_ov_end(&p.a.ov);
	assert_true(status == ND_CONNECTION_REFUSED || status == ND_CONNECTION_ABORTED);
	nd_drop(&p);
}

static void a_cancelled_connect_may_be_repeated(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	for (int i = 0; i < 3; i++) {
		nd_ask(&p, NULL);
		assert_status(CALL(p.a.connector, CancelOverlappedRequests), ND_SUCCESS);
		assert_status(nd_ov_state(&p.a.ov), ND_CANCELED);
		nd_replace_connector(&p.b);
	}
	nd_connect(&p);
	nd_disconnect(&p);
	nd_drop(&p);
}

static void a_connect_to_nobody_may_be_repeated(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	assert_int_equal(CALL(p.listener, Release), 0);
	assert_ends(CALL(p.a.connector, Connect, UNKNOWN(p.a.qp), (struct sockaddr *)&p.address,
	                 p.address_length, 0, 0, NULL, 0, &p.a.ov),
	            &p.a.ov, ND_CONNECTION_REFUSED);
	nd_listen(&p);
	nd_connect(&p);
	nd_disconnect(&p);
	nd_drop(&p);
}

/* Requests wait until a connector takes them, and go in order. */
static void requests_are_queued(void **state)
{
	struct nd_pair p;
	IND2Connector *taker[3];
	IND2Connector *asker[3];
	IND2QueuePair *qp[3];
	OVERLAPPED ov[3];
	OVERLAPPED taken[3];

	(void)state;
	nd_make(&p);
	for (int i = 0; i < 3; i++) {
		const char id = (char)i;

		nd_ov_make(&ov[i]);
		nd_ov_make(&taken[i]);
		asker[i] = nd_new_connector(&p.a);
		taker[i] = nd_new_connector(&p.b);
		qp[i] = nd_new_qp(&p.a, 1, 1, 0);
		assert_status(CALL(asker[i], Connect, UNKNOWN(qp[i]), (struct sockaddr *)&p.address,
		                   p.address_length, 0, 0, &id, 1, &ov[i]),
		              ND_PENDING);
	}
	for (int i = 0; i < 3; i++)
		assert_status(CALL(p.listener, GetConnectionRequest, UNKNOWN(taker[i]), &taken[i]),
		              ND_PENDING);
	for (int i = 0, seen = 0; i < 3; i++) {
		char id = 9;
		ULONG length = 1;

		assert_status(nd_ov_end(&taken[i]), ND_SUCCESS);
		assert_status(CALL(taker[i], GetPrivateData, &id, &length), ND_SUCCESS);
		assert_true(id >= 0 && id < 3 && (seen & 1 << id) == 0);
		seen |= 1 << id;
		assert_status(CALL(taker[i], Reject, NULL, 0), ND_SUCCESS);
		assert_status(nd_ov_end(&ov[(int)id]), ND_CONNECTION_REFUSED);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(CALL(asker[i], Release), 0);
		assert_int_equal(CALL(taker[i], Release), 0);
		assert_int_equal(CALL(qp[i], Release), 0);
		nd_ov_drop(&ov[i]);
		nd_ov_drop(&taken[i]);
	}
	nd_drop(&p);
}

/* Requests that no connector took are refused with the listener; those that were taken stay. */
static void a_listener_goes_with_its_requests(void **state)
{
	struct nd_pair p;
	IND2Connector *late;
	IND2QueuePair *qp;
	OVERLAPPED ov;
	HRESULT status;

	(void)state;
	nd_make(&p);
	nd_ov_make(&ov);
	late = nd_new_connector(&p.a);
	qp = nd_new_qp(&p.a, 1, 1, 0);
	nd_ask(&p, NULL);
	assert_status(CALL(late, Connect, UNKNOWN(qp), (struct sockaddr *)&p.address,
	                   p.address_length, 0, 0, NULL, 0, &ov),
	              ND_PENDING);
	assert_int_equal(CALL(p.listener, Release), 0);
	p.listener = NULL;
	status = nd_ov_end(&ov);
	assert_true(status == ND_CONNECTION_REFUSED || status == ND_CONNECTION_ABORTED);
	nd_answer(&p, NULL);
	nd_complete(&p);
	nd_disconnect(&p);
	assert_int_equal(CALL(late, Release), 0);
	assert_int_equal(CALL(qp, Release), 0);
	nd_ov_drop(&ov);
	nd_drop(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_data_has_its_length),
		cmocka_unit_test(a_reject_has_data),
		cmocka_unit_test(data_that_is_too_long_changes_nothing),
		cmocka_unit_test(read_limits_are_crossed),
		cmocka_unit_test(read_limits_are_lowered),
		cmocka_unit_test(addresses_are_those_of_the_ends),
		cmocka_unit_test(connector_and_queue_pair_survive_a_refusal),
		cmocka_unit_test(the_active_side_refuses),
		cmocka_unit_test(release_after_the_answer_refuses),
		cmocka_unit_test(release_before_the_answer_aborts),
		cmocka_unit_test(release_of_the_passive_end_refuses),
		cmocka_unit_test(a_cancelled_connect_may_be_repeated),
		cmocka_unit_test(a_connect_to_nobody_may_be_repeated),
		cmocka_unit_test(requests_are_queued),
		cmocka_unit_test(a_listener_goes_with_its_requests),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
