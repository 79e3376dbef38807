/* SPDX-License-Identifier: BSD-2-Clause */
/* A NetworkDirect program and an NDX program talk to each other: same wire, same meaning. */
#include "nd_op.h"

#include <ndx/ndx.h>

enum { SIZE = 512, AWAY = 8192, DATA = 32 };

#define assert_ok(status) assert_string_equal(ndx_status_name(status), ndx_status_name(NDX_OK))

/* The end that uses the C API of NDX. */
struct plain {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connector;
	struct ndx_listener *listener;
	struct ndx_overlapped ov;
	char *memory;
};

/* The two ends. */
struct scene {
	struct nd_side side;
	struct plain plain;
};

/* ---- NDX ---- */

static enum ndx_status finish(struct ndx_overlapped *ov, enum ndx_status started)
{
	return started == NDX_PENDING ? ndx_overlapped_wait(ov, ND_WAIT_MS) : started;
}

static void plain_make(struct plain *n)
{
	struct ndx_qp_attr attr;

	memset(n, 0, sizeof(*n));
	assert_ok(ndx_adapter_open(nd_adapter(), &n->adapter));
	assert_ok(ndx_cq_create_depth(n->adapter, 4 * ND_DEPTH, &n->cq));
	ndx_qp_attr_init(&attr);
	attr.receive_cq = n->cq;
	attr.initiator_cq = n->cq;
	attr.context = n;
	assert_ok(ndx_qp_create(n->adapter, &attr, &n->qp));
	n->memory = (char *)calloc(1, ND_MEMORY);
	assert_non_null(n->memory);
	assert_ok(ndx_mr_create(n->adapter, &n->mr));
	assert_ok(finish(&n->ov,
	                 ndx_mr_register(n->mr, n->memory, ND_MEMORY,
	                                 NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ |
	                                         NDX_MR_RDMA_READ_SINK,
	                                 &n->ov)));
	assert_ok(ndx_connector_create(n->adapter, NULL, &n->connector));
}

static void plain_drop(struct plain *n)
{
	ndx_connector_close(n->connector);
	ndx_listener_close(n->listener);
	ndx_qp_close(n->qp);
	ndx_mr_close(n->mr);
	ndx_cq_close(n->cq);
	ndx_adapter_close(n->adapter);
	free(n->memory);
}

static struct ndx_sge plain_sge(struct plain *n, size_t offset, uint32_t length)
{
	struct ndx_sge sge;

	memset(&sge, 0, sizeof(sge));
	sge.buffer = n->memory + offset;
	sge.length = length;
	sge.token = ndx_mr_get_local_token(n->mr);
	return sge;
}

static struct ndx_result plain_result(struct plain *n)
{
	struct ndx_result result;
	size_t got = 0;

	assert_ok(ndx_cq_wait_results(n->cq, &result, 1, ND_WAIT_MS, &got));
	assert_int_equal(got, 1);
	return result;
}

static void plain_expect(struct plain *n, enum ndx_request_type type, uintptr_t context)
{
	const struct ndx_result result = plain_result(n);

	assert_ok(result.status);
	assert_int_equal(result.request_type, type);
	assert_ptr_equal(result.request_context, (void *)context);
	assert_ptr_equal(result.queue_pair_context, n);
}

static void plain_receive(struct plain *n, uintptr_t context, size_t offset)
{
	const struct ndx_sge sge = plain_sge(n, offset, SIZE);

	assert_ok(ndx_qp_receive(n->qp, (void *)context, &sge, 1));
}

static struct ndx_connect_attr plain_offer(const char *data)
{
	struct ndx_connect_attr attr;

	ndx_connect_attr_init(&attr);
	attr.inbound_read_limit = 3;
	attr.outbound_read_limit = 2;
	attr.private_data = data;
	attr.private_data_len = DATA;
	return attr;
}

static void plain_expect_data(struct plain *n, const char *data)
{
	char got[4 * DATA];
	size_t length = sizeof(got);

	assert_ok(ndx_connector_get_private_data(n->connector, got, &length));
	assert_int_equal(length, DATA);
	assert_memory_equal(got, data, DATA);
}

static void nd_expect_data(struct nd_side *s, const char *data)
{
	char got[4 * DATA];
	ULONG length = sizeof(got);

	assert_status(CALL(s->connector, GetPrivateData, got, &length), ND_SUCCESS);
	assert_int_equal(length, DATA);
	assert_memory_equal(got, data, DATA);
}

/* ---- connecting ---- */

static const char caller[DATA] = "what the active side says";
static const char callee[DATA] = "what the passive side says";

/* NetworkDirect is the active side. The read limits are crossed. */
static void connect_actively(struct scene *s)
{
	struct nd_side *side = &s->side;
	struct plain *n = &s->plain;
	struct sockaddr_storage address;
	socklen_t length = nd_local_address(&address);
	const struct ndx_connect_attr offer = plain_offer(callee);
	ULONG inbound, outbound;

	assert_ok(ndx_listener_create(n->adapter, &n->listener));
	assert_ok(ndx_listener_bind(n->listener, (struct sockaddr *)&address, length));
	assert_ok(ndx_listener_listen(n->listener, 0));
	assert_ok(
		ndx_listener_get_local_address(n->listener, (struct sockaddr *)&address, &length));
	assert_status(CALL(side->connector, Connect, UNKNOWN(side->qp), (struct sockaddr *)&address,
	                   length, 4, 4, caller, DATA, &side->ov),
	              ND_PENDING);
	assert_ok(finish(&n->ov,
	                 ndx_listener_get_connection_request(n->listener, n->connector, &n->ov)));
	plain_expect_data(n, caller);
	assert_int_equal(ndx_connector_accept(n->connector, n->qp, &offer, &n->ov), NDX_PENDING);
	assert_status(nd_ov_end(&side->ov), ND_SUCCESS);
	nd_expect_data(side, callee);
	assert_status(CALL(side->connector, GetReadLimits, &inbound, &outbound), ND_SUCCESS);
	assert_int_equal(inbound, 2);
	assert_int_equal(outbound, 3);
	assert_ends(CALL(side->connector, CompleteConnect, &side->ov), &side->ov, ND_SUCCESS);
	assert_ok(ndx_overlapped_wait(&n->ov, ND_WAIT_MS));
}

/* The listener of NetworkDirect, for the other role. */
static IND2Listener *nd_listener(struct nd_side *side, struct sockaddr_storage *address,
                                 ULONG *length)
{
	IND2Listener *listener = NULL;

	*length = nd_local_address(address);
	assert_status(CALL(side->adapter, CreateListener, BY_ID(IID_IND2Listener), side->file,
	                   OUT(listener)),
	              ND_SUCCESS);
	assert_status(CALL(listener, Bind, (struct sockaddr *)address, *length), ND_SUCCESS);
	assert_status(CALL(listener, Listen, 0), ND_SUCCESS);
	assert_status(CALL(listener, GetLocalAddress, (struct sockaddr *)address, length),
	              ND_SUCCESS);
	return listener;
}

static void connect_passively(struct scene *s)
{
	struct nd_side *side = &s->side;
	struct plain *n = &s->plain;
	struct sockaddr_storage address;
	ULONG length;
	IND2Listener *listener = nd_listener(side, &address, &length);
	const struct ndx_connect_attr offer = plain_offer(caller);
	uint32_t inbound, outbound;

	assert_int_equal(ndx_connector_connect(n->connector, n->qp, (struct sockaddr *)&address,
	                                       length, &offer, &n->ov),
	                 NDX_PENDING);
	assert_ends(CALL(listener, GetConnectionRequest, UNKNOWN(side->connector), &side->ov),
	            &side->ov, ND_SUCCESS);
	nd_expect_data(side, caller);
	assert_status(
		CALL(side->connector, Accept, UNKNOWN(side->qp), 4, 4, callee, DATA, &side->ov),
		ND_PENDING);
	assert_ok(ndx_overlapped_wait(&n->ov, ND_WAIT_MS));
	plain_expect_data(n, callee);
	assert_ok(ndx_connector_get_read_limits(n->connector, &inbound, &outbound));
	assert_int_equal(inbound, 3);
	assert_int_equal(outbound, 2);
	assert_ok(finish(&n->ov, ndx_connector_complete_connect(n->connector, &n->ov)));
	assert_status(nd_ov_end(&side->ov), ND_SUCCESS);
	assert_int_equal(CALL(listener, Release), 0);
}

static void make(struct scene *s, bool nd_is_active)
{
	nd_make_side(&s->side);
	plain_make(&s->plain);
	if (nd_is_active)
		connect_actively(s);
	else
		connect_passively(s);
}

static void drop(struct scene *s)
{
	nd_drop_side(&s->side);
	plain_drop(&s->plain);
}

/* ---- data ---- */

static void messages_pass(struct scene *s)
{
	struct nd_side *side = &s->side;
	struct plain *n = &s->plain;
	const struct ndx_sge sge = plain_sge(n, AWAY, SIZE);

	plain_receive(n, 1, 0);
	memset(side->memory + AWAY, 0x5a, SIZE);
	nd_send(side, 2, AWAY, SIZE, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
	plain_expect(n, NDX_REQUEST_RECEIVE, 1);
	nd_expect(side, Nd2RequestTypeSend, 2, ND_SUCCESS);
	assert_memory_equal(n->memory, side->memory + AWAY, SIZE);
	nd_receive(side, 3, 0, SIZE);
	memset(n->memory + AWAY, 0x17, SIZE);
	assert_ok(ndx_qp_send(n->qp, (void *)4, &sge, 1, 0));
	nd_expect(side, Nd2RequestTypeReceive, 3, ND_SUCCESS);
	plain_expect(n, NDX_REQUEST_SEND, 4);
	assert_memory_equal(side->memory, n->memory + AWAY, SIZE);
}

/* The tokens of one side are good for the other. */
static void memory_is_read_and_written(struct scene *s)
{
	struct nd_side *side = &s->side;
	struct plain *n = &s->plain;
	const ND2_SGE from = nd_sge(side, 0, SIZE);
	const struct ndx_sge to = plain_sge(n, 0, SIZE);
	const uint64_t nd_memory = (uintptr_t)side->memory + AWAY;
	const uint64_t ndx_memory = (uintptr_t)n->memory + AWAY;
	const UINT32 nd_token = CALL(side->mr, GetRemoteToken);
	const uint32_t ndx_token = ndx_mr_get_remote_token(n->mr);

	memset(side->memory, 0x21, SIZE);
	assert_status(CALL(side->qp, Write, (void *)1, &from, 1, ndx_memory, ndx_token, 0),
	              ND_SUCCESS);
	nd_expect(side, Nd2RequestTypeWrite, 1, ND_SUCCESS);
	assert_memory_equal(n->memory + AWAY, side->memory, SIZE);
	memset(n->memory + AWAY, 0x22, SIZE);
	assert_status(CALL(side->qp, Read, (void *)2, &from, 1, ndx_memory, ndx_token, 0),
	              ND_SUCCESS);
	nd_expect(side, Nd2RequestTypeRead, 2, ND_SUCCESS);
	assert_memory_equal(n->memory + AWAY, side->memory, SIZE);
	memset(n->memory, 0x23, SIZE);
	assert_ok(ndx_qp_write(n->qp, (void *)3, &to, 1, nd_memory, nd_token, 0));
	plain_expect(n, NDX_REQUEST_WRITE, 3);
	assert_memory_equal(side->memory + AWAY, n->memory, SIZE);
	memset(side->memory + AWAY, 0x24, SIZE);
	assert_ok(ndx_qp_read(n->qp, (void *)4, &to, 1, nd_memory, nd_token, 0));
	plain_expect(n, NDX_REQUEST_READ, 4);
	assert_memory_equal(side->memory + AWAY, n->memory, SIZE);
}

/* ---- the end ---- */

static void expect_reason(struct scene *s, enum ndx_disconnect_reason reason)
{
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	assert_ok(finish(&ov, ndx_connector_notify_disconnect(s->plain.connector, &ov)));
	assert_string_equal(ndx_disconnect_reason_name((enum ndx_disconnect_reason)ov.information),
	                    ndx_disconnect_reason_name(reason));
	assert_string_equal(
		ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(s->plain.connector)),
		ndx_disconnect_reason_name(reason));
}

static void nd_disconnects(struct scene *s)
{
	assert_ends(CALL(s->side.connector, Disconnect, &s->side.ov), &s->side.ov, ND_SUCCESS);
	expect_reason(s, NDX_DISCONNECT_GRACEFUL);
	assert_ok(ndx_disconnect(s->plain.connector, ND_WAIT_MS));
}

static void ndx_disconnects(struct scene *s)
{
	assert_status(CALL(s->side.connector, NotifyDisconnect, &s->side.ov), ND_PENDING);
	assert_ok(ndx_disconnect(s->plain.connector, ND_WAIT_MS));
	assert_status(nd_ov_end(&s->side.ov), ND_SUCCESS);
	assert_int_equal(ndx_connector_get_disconnect_reason(s->plain.connector),
	                 NDX_DISCONNECT_GRACEFUL);
	assert_ends(CALL(s->side.connector, Disconnect, &s->side.ov), &s->side.ov, ND_SUCCESS);
}

static void live(bool nd_is_active, void (*end)(struct scene *s))
{
	struct scene s;

	make(&s, nd_is_active);
	for (int i = 0; i < 2 * ND_DEPTH; i++)
		messages_pass(&s);
	memory_is_read_and_written(&s);
	end(&s);
	drop(&s);
}

static void nd_connects_and_disconnects(void **state)
{
	(void)state;
	live(true, nd_disconnects);
}

static void nd_connects_and_ndx_disconnects(void **state)
{
	(void)state;
	live(true, ndx_disconnects);
}

static void ndx_connects_and_nd_disconnects(void **state)
{
	(void)state;
	live(false, nd_disconnects);
}

static void ndx_connects_and_disconnects(void **state)
{
	(void)state;
	live(false, ndx_disconnects);
}

/* A flush of NetworkDirect is an abort at NDX, and the other way round. */
static void an_abort_is_told(void **state)
{
	struct scene s;

	(void)state;
	make(&s, true);
	assert_status(CALL(s.side.qp, Flush), ND_SUCCESS);
	expect_reason(&s, NDX_DISCONNECT_ABORTED);
	assert_ends(CALL(s.side.connector, Disconnect, &s.side.ov), &s.side.ov, ND_SUCCESS);
	drop(&s);
	make(&s, false);
	nd_receive(&s.side, 1, 0, SIZE);
	assert_ok(ndx_qp_flush(s.plain.qp));
	nd_expect(&s.side, Nd2RequestTypeReceive, 1, ND_CANCELED);
	assert_ends(CALL(s.side.connector, Disconnect, &s.side.ov), &s.side.ov, ND_SUCCESS);
	drop(&s);
}

/* Without a Disconnect, the release of NetworkDirect's objects says goodbye. */
static void a_release_is_graceful(void **state)
{
	struct scene s;

	(void)state;
	make(&s, true);
	assert_int_equal(CALL(s.side.qp, Release), 0);
	s.side.qp = NULL;
	expect_reason(&s, NDX_DISCONNECT_GRACEFUL);
	drop(&s);
}

static void a_rejection_has_its_data(void **state)
{
	struct scene s;
	struct sockaddr_storage address;
	ULONG length;
	IND2Listener *listener;
	const struct ndx_connect_attr offer = plain_offer(caller);

	(void)state;
	nd_make_side(&s.side);
	plain_make(&s.plain);
	listener = nd_listener(&s.side, &address, &length);
	assert_int_equal(ndx_connector_connect(s.plain.connector, s.plain.qp,
	                                       (struct sockaddr *)&address, length, &offer,
	                                       &s.plain.ov),
	                 NDX_PENDING);
	assert_ends(CALL(listener, GetConnectionRequest, UNKNOWN(s.side.connector), &s.side.ov),
	            &s.side.ov, ND_SUCCESS);
	assert_status(CALL(s.side.connector, Reject, callee, DATA), ND_SUCCESS);
	assert_int_equal(ndx_overlapped_wait(&s.plain.ov, ND_WAIT_MS), NDX_E_CONNECTION_REFUSED);
	plain_expect_data(&s.plain, callee);
	assert_int_equal(CALL(listener, Release), 0);
	drop(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nd_connects_and_disconnects),
		cmocka_unit_test(nd_connects_and_ndx_disconnects),
		cmocka_unit_test(ndx_connects_and_nd_disconnects),
		cmocka_unit_test(ndx_connects_and_disconnects),
		cmocka_unit_test(an_abort_is_told),
		cmocka_unit_test(a_release_is_graceful),
		cmocka_unit_test(a_rejection_has_its_data),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
