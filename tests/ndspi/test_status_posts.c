/* SPDX-License-Identifier: BSD-2-Clause */
/* The documented statuses of queue pairs. */
#include "nd_table.h"

enum { BYTES = 64 };

/* ---- CreateQueuePair ---- */

struct numbers {
	ULONG receives, requests, receive_sge, request_sge, inline_size;
};

static HRESULT created(HRESULT status, void *object)
{
	if (status == ND_SUCCESS)
		assert_int_equal(CALL((IUnknown *)object, Release), 0);
	else
		assert_null(object);
	return status;
}

static HRESULT make(struct nd_pair *p, IUnknown *receive_cq, IUnknown *cq, struct numbers n)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateQueuePair, BY_ID(IID_IND2QueuePair), receive_cq, cq, NULL,
	             n.receives, n.requests, n.receive_sge, n.request_sge, n.inline_size, &out);

	return created(status, out);
}

/* The last value that is legal, and the first that is not. */
static HRESULT make_beyond(struct nd_pair *p, struct numbers limit, struct numbers beyond)
{
	assert_status(make(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), limit), ND_SUCCESS);
	return make(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), beyond);
}

static const struct numbers ones = {1, 1, 1, 1, 0};

static HRESULT qp_plain(struct nd_pair *p)
{
	return make(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), ones);
}

static HRESULT qp_no_receive_cq(struct nd_pair *p)
{
	return make(p, NULL, UNKNOWN(p->a.cq), ones);
}

static HRESULT qp_foreign_receive_cq(struct nd_pair *p)
{
	return make(p, UNKNOWN(p->a.mr), UNKNOWN(p->a.cq), ones);
}

static HRESULT qp_no_initiator_cq(struct nd_pair *p)
{
	return make(p, UNKNOWN(p->a.cq), NULL, ones);
}

static HRESULT qp_foreign_initiator_cq(struct nd_pair *p)
{
	return make(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.adapter), ones);
}

static HRESULT qp_receive_cq_of_other_adapter(struct nd_pair *p)
{
	return make(p, UNKNOWN(p->b.cq), UNKNOWN(p->a.cq), ones);
}

static HRESULT qp_initiator_cq_of_other_adapter(struct nd_pair *p)
{
	return make(p, UNKNOWN(p->a.cq), UNKNOWN(p->b.cq), ones);
}

static HRESULT qp_no_receives(struct nd_pair *p)
{
	const struct numbers beyond = {0, 1, 1, 1, 0};

	return make_beyond(p, ones, beyond);
}

static HRESULT qp_many_receives(struct nd_pair *p)
{
	const struct numbers limit = {p->a.info.MaxReceiveQueueDepth, 1, 1, 1, 0};
	const struct numbers beyond = {p->a.info.MaxReceiveQueueDepth + 1, 1, 1, 1, 0};

	return make_beyond(p, limit, beyond);
}

static HRESULT qp_no_requests(struct nd_pair *p)
{
	const struct numbers beyond = {1, 0, 1, 1, 0};

	return make_beyond(p, ones, beyond);
}

static HRESULT qp_many_requests(struct nd_pair *p)
{
	const struct numbers limit = {1, p->a.info.MaxInitiatorQueueDepth, 1, 1, 0};
	const struct numbers beyond = {1, p->a.info.MaxInitiatorQueueDepth + 1, 1, 1, 0};

	return make_beyond(p, limit, beyond);
}

static HRESULT qp_receive_sge(struct nd_pair *p)
{
	const struct numbers limit = {1, 1, p->a.info.MaxReceiveSge, 0, 0};
	const struct numbers beyond = {1, 1, p->a.info.MaxReceiveSge + 1, 1, 0};

	return make_beyond(p, limit, beyond);
}

static HRESULT qp_request_sge(struct nd_pair *p)
{
	const struct numbers limit = {1, 1, 0, p->a.info.MaxInitiatorSge, 0};
	const struct numbers beyond = {1, 1, 1, p->a.info.MaxInitiatorSge + 1, 0};

	return make_beyond(p, limit, beyond);
}

static HRESULT qp_inline(struct nd_pair *p)
{
	const struct numbers limit = {1, 1, 1, 1, p->a.info.MaxInlineDataSize};
	const struct numbers beyond = {1, 1, 1, 1, p->a.info.MaxInlineDataSize + 1};

	return make_beyond(p, limit, beyond);
}

#define CREATE "Adapter.CreateQueuePair"

static const struct nd_row create_rows[] = {
	REAL(CREATE, ND_INVALID_PARAMETER_2, qp_no_receive_cq),
	REAL(CREATE, ND_INVALID_PARAMETER_2, qp_foreign_receive_cq),
	REAL(CREATE, ND_INVALID_PARAMETER_3, qp_no_initiator_cq),
	REAL(CREATE, ND_INVALID_PARAMETER_3, qp_foreign_initiator_cq),
	REAL(CREATE, ND_INVALID_PARAMETER_2, qp_receive_cq_of_other_adapter),
	REAL(CREATE, ND_INVALID_PARAMETER_3, qp_initiator_cq_of_other_adapter),
	REAL(CREATE, ND_INVALID_PARAMETER_5, qp_no_receives),
	REAL(CREATE, ND_INVALID_PARAMETER_5, qp_many_receives),
	REAL(CREATE, ND_INVALID_PARAMETER_6, qp_no_requests),
	REAL(CREATE, ND_INVALID_PARAMETER_6, qp_many_requests),
	REAL(CREATE, ND_INVALID_PARAMETER_7, qp_receive_sge),
	REAL(CREATE, ND_INVALID_PARAMETER_8, qp_request_sge),
	REAL(CREATE, ND_INVALID_PARAMETER_9, qp_inline),
	FAULT(CREATE, ND_INSUFFICIENT_RESOURCES, qp_plain, "qp_create", 2,
              "INSUFFICIENT_RESOURCES"),
	FAULT(CREATE, ND_NO_MEMORY, qp_plain, "qp_create", 2, "NO_MEMORY"),
	FAULT(CREATE, ND_DEVICE_REMOVED, qp_plain, "qp_create", 2, "DEVICE_REMOVED"),
};

/* ---- CreateQueuePairWithSrq ---- */

static IND2SharedReceiveQueue *new_srq(struct nd_side *s)
{
	IND2SharedReceiveQueue *srq = NULL;

	assert_status(CALL(s->adapter, CreateSharedReceiveQueue, BY_ID(IID_IND2SharedReceiveQueue),
	                   s->file, 1, 1, 0, 0, 0, OUT(srq)),
	              ND_SUCCESS);
	return srq;
}

static HRESULT make_shared(struct nd_pair *p, IUnknown *cq, IUnknown *initiator_cq, bool shared,
                           struct numbers n)
{
	IND2SharedReceiveQueue *srq = new_srq(&p->a);
	void *out = NULL;
	HRESULT status;

	status = CALL(p->a.adapter, CreateQueuePairWithSrq, BY_ID(IID_IND2QueuePair), cq,
	              initiator_cq, shared ? UNKNOWN(srq) : UNKNOWN(p->a.cq), NULL, n.requests,
	              n.request_sge, n.inline_size, &out);
	assert_int_equal(CALL(srq, Release), 0);
	return created(status, out);
}

static HRESULT shared_plain(struct nd_pair *p)
{
	return make_shared(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), true, ones);
}

static HRESULT shared_no_cq(struct nd_pair *p)
{
	return make_shared(p, NULL, UNKNOWN(p->a.cq), true, ones);
}

static HRESULT shared_no_initiator_cq(struct nd_pair *p)
{
	return make_shared(p, UNKNOWN(p->a.cq), NULL, true, ones);
}

static HRESULT shared_foreign(struct nd_pair *p)
{
	return make_shared(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), false, ones);
}

static HRESULT shared_of_other_adapter(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(&p->b);
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateQueuePairWithSrq, BY_ID(IID_IND2QueuePair),
	             UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), UNKNOWN(srq), NULL, 1, 1, 0, &out);

	assert_int_equal(CALL(srq, Release), 0);
	return created(status, out);
}

static HRESULT shared_cq_of_other_adapter(struct nd_pair *p)
{
	return make_shared(p, UNKNOWN(p->b.cq), UNKNOWN(p->a.cq), true, ones);
}

static HRESULT shared_initiator_cq_of_other_adapter(struct nd_pair *p)
{
	return make_shared(p, UNKNOWN(p->a.cq), UNKNOWN(p->b.cq), true, ones);
}

static HRESULT shared_no_requests(struct nd_pair *p)
{
	const struct numbers beyond = {0, 0, 0, 1, 0};

	return make_shared(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), true, beyond);
}

static HRESULT shared_sge(struct nd_pair *p)
{
	const struct numbers beyond = {0, 1, 0, p->a.info.MaxInitiatorSge + 1, 0};

	return make_shared(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), true, beyond);
}

static HRESULT shared_inline(struct nd_pair *p)
{
	const struct numbers beyond = {0, 1, 0, 1, p->a.info.MaxInlineDataSize + 1};

	return make_shared(p, UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), true, beyond);
}

static HRESULT shared_receive(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(&p->a);
	IND2QueuePair *qp = NULL;
	HRESULT status;

	assert_status(CALL(p->a.adapter, CreateQueuePairWithSrq, BY_ID(IID_IND2QueuePair),
	                   UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), UNKNOWN(srq), NULL, 1, 1, 0,
	                   OUT(qp)),
	              ND_SUCCESS);
	status = CALL(qp, Receive, NULL, NULL, 0);
	assert_int_equal(CALL(qp, Release), 0);
	assert_int_equal(CALL(srq, Release), 0);
	return status;
}

#define CREATE_SHARED "Adapter.CreateQueuePairWithSrq"

static const struct nd_row shared_rows[] = {
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_2, shared_no_cq),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_2, shared_cq_of_other_adapter),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_3, shared_no_initiator_cq),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_3, shared_initiator_cq_of_other_adapter),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_4, shared_foreign),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_4, shared_of_other_adapter),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_6, shared_no_requests),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_7, shared_sge),
	REAL(CREATE_SHARED, ND_INVALID_PARAMETER_8, shared_inline),
	FAULT(CREATE_SHARED, ND_INSUFFICIENT_RESOURCES, shared_plain, "qp_create", 2,
              "INSUFFICIENT_RESOURCES"),
	FAULT(CREATE_SHARED, ND_NO_MEMORY, shared_plain, "qp_create", 2, "NO_MEMORY"),
	FAULT(CREATE_SHARED, ND_DEVICE_REMOVED, shared_plain, "qp_create", 2, "DEVICE_REMOVED"),
	REAL("QueuePair.Receive", ND_INVALID_DEVICE_STATE, shared_receive),
};

/* ---- posts ---- */

enum post { SEND, WRITE, READ, RECEIVE };

static HRESULT post(struct nd_pair *p, enum post kind, const ND2_SGE *sge, ULONG count, ULONG flags)
{
	const UINT64 there = (UINT64)(uintptr_t)p->b.memory;
	const UINT32 token = CALL(p->b.mr, GetRemoteToken);

	switch (kind) {
	case SEND:
		return CALL(p->a.qp, Send, NULL, sge, count, flags);
	case WRITE:
		return CALL(p->a.qp, Write, NULL, sge, count, there, token, flags);
	case READ:
		return CALL(p->a.qp, Read, NULL, sge, count, there, token, flags);
	case RECEIVE:
		break;
	}
	return CALL(p->a.qp, Receive, NULL, sge, count);
}

/* One SGE of one byte more than a request may have. */
static HRESULT too_long(struct nd_pair *p, enum post kind)
{
	const ND2_SGE sge = nd_sge(&p->a, 0, p->a.info.MaxTransferLength + 1);

	nd_connect(p);
	return post(p, kind, &sge, 1, 0);
}

/* The queue holds the results that the test has not taken. */
static HRESULT full(struct nd_pair *p, enum post kind)
{
	nd_connect(p);
	for (int i = 0; i < ND_DEPTH; i++)
		assert_status(post(p, kind, NULL, 0, 0), ND_SUCCESS);
	return post(p, kind, NULL, 0, 0);
}

static HRESULT many_sges(struct nd_pair *p, enum post kind)
{
	ND2_SGE sge[BYTES];

	assert_true(p->a.info.MaxInitiatorSge < BYTES && p->a.info.MaxReceiveSge < BYTES);
	for (ULONG i = 0; i < BYTES; i++)
		sge[i] = nd_sge(&p->a, i, 1);
	nd_connect(p);
	return post(p, kind, sge, BYTES, 0);
}

static HRESULT bad_flags(struct nd_pair *p, enum post kind)
{
	nd_connect(p);
	assert_true(post(p, kind, NULL, 0, 0x40) == post(p, kind, NULL, 0, ND_OP_FLAG_ALLOW_READ));
	return post(p, kind, NULL, 0, ND_OP_FLAG_ALLOW_READ);
}

#define POSTS(name, kind)                                    \
	static HRESULT name##_unconnected(struct nd_pair *p) \
	{                                                    \
		return post(p, kind, NULL, 0, 0);            \
	}                                                    \
	static HRESULT name##_too_long(struct nd_pair *p)    \
	{                                                    \
		return too_long(p, kind);                    \
	}                                                    \
	static HRESULT name##_full(struct nd_pair *p)        \
	{                                                    \
		return full(p, kind);                        \
	}                                                    \
	static HRESULT name##_many_sges(struct nd_pair *p)   \
	{                                                    \
		return many_sges(p, kind);                   \
	}                                                    \
	static HRESULT name##_bad_flags(struct nd_pair *p)   \
	{                                                    \
		return bad_flags(p, kind);                   \
	}

POSTS(send, SEND)
POSTS(write, WRITE)
POSTS(read, READ)

static HRESULT receive_too_long(struct nd_pair *p)
{
	return too_long(p, RECEIVE);
}

static HRESULT receive_full(struct nd_pair *p)
{
	return full(p, RECEIVE);
}

static HRESULT receive_many_sges(struct nd_pair *p)
{
	return many_sges(p, RECEIVE);
}

static HRESULT send_long_inline(struct nd_pair *p)
{
	ND2_SGE sge = nd_sge(&p->a, 0, 1);

	nd_connect(p); /* the queue pair has no inline data */
	sge.MemoryRegionToken = 0;
	return post(p, SEND, &sge, 1, ND_OP_FLAG_INLINE);
}

static HRESULT read_without_limit(struct nd_pair *p)
{
	const struct nd_offer none = {0, 0, NULL, 0};

	nd_ask(p, &none);
	nd_answer(p, &none);
	nd_complete(p);
	return post(p, READ, NULL, 0, 0);
}

static const struct nd_row post_rows[] = {
	REAL("QueuePair.Send", ND_CONNECTION_INVALID, send_unconnected),
	REAL("QueuePair.Send", ND_BUFFER_OVERFLOW, send_too_long),
	REAL("QueuePair.Send", ND_BUFFER_OVERFLOW, send_long_inline),
	REAL("QueuePair.Send", ND_NO_MORE_ENTRIES, send_full),
	REAL("QueuePair.Send", ND_DATA_OVERRUN, send_many_sges),
	REAL("QueuePair.Send", ND_INVALID_PARAMETER_4, send_bad_flags),
	REAL("QueuePair.Write", ND_CONNECTION_INVALID, write_unconnected),
	REAL("QueuePair.Write", ND_BUFFER_OVERFLOW, write_too_long),
	REAL("QueuePair.Write", ND_NO_MORE_ENTRIES, write_full),
	REAL("QueuePair.Write", ND_DATA_OVERRUN, write_many_sges),
	REAL("QueuePair.Write", ND_INVALID_PARAMETER_6, write_bad_flags),
	REAL("QueuePair.Read", ND_CONNECTION_INVALID, read_unconnected),
	REAL("QueuePair.Read", ND_BUFFER_OVERFLOW, read_too_long),
	REAL("QueuePair.Read", ND_NO_MORE_ENTRIES, read_full),
	REAL("QueuePair.Read", ND_DATA_OVERRUN, read_many_sges),
	REAL("QueuePair.Read", ND_INVALID_PARAMETER_6, read_bad_flags),
	REAL("QueuePair.Read", ND_INVALID_DEVICE_REQUEST, read_without_limit),
	BEYOND("QueuePair.Read", ND_REMOTE_ERROR,
               "no peer has answered when the call returns; the result has it"),
	REAL("QueuePair.Receive", ND_BUFFER_OVERFLOW, receive_too_long),
	REAL("QueuePair.Receive", ND_NO_MORE_ENTRIES, receive_full),
	REAL("QueuePair.Receive", ND_DATA_OVERRUN, receive_many_sges),
};

static void creation(void **state)
{
	(void)state;
	nd_run_rows(ROWS(create));
}

static void creation_with_shared_receives(void **state)
{
	(void)state;
	nd_need(NDX_CAP_SRQ);
	nd_run_rows(ROWS(shared));
}

static void posting(void **state)
{
	(void)state;
	nd_run_rows(ROWS(post));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation),
		cmocka_unit_test(creation_with_shared_receives),
		cmocka_unit_test(posting),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
