/* SPDX-License-Identifier: BSD-2-Clause */
/* The documented statuses of completion queues and shared receive queues. */
#include "nd_table.h"

enum { TOO_MANY = 0x7fffffff };

/* ---- completion queues ---- */

static HRESULT cq_affinity_nowhere(struct nd_pair *p)
{
	USHORT group;

	return CALL(p->a.cq, GetNotifyAffinity, &group, NULL);
}

static HRESULT cq_affinity(struct nd_pair *p)
{
	USHORT group;
	KAFFINITY affinity;

	return CALL(p->a.cq, GetNotifyAffinity, &group, &affinity);
}

static HRESULT resize_0(struct nd_pair *p)
{
	return CALL(p->a.cq, Resize, 0);
}

static HRESULT resize_max(struct nd_pair *p)
{
	return CALL(p->a.cq, Resize, p->a.info.MaxCompletionQueueDepth + 1);
}

static HRESULT resize_plain(struct nd_pair *p)
{
	return CALL(p->a.cq, Resize, ND_DEPTH);
}

/* Two results are queued. */
static HRESULT resize_below(struct nd_pair *p)
{
	HRESULT status;

	nd_receive(&p->a, 1, 0, 8);
	nd_receive(&p->a, 2, 0, 8);
	assert_status(CALL(p->a.qp, Flush), ND_SUCCESS);
	status = CALL(p->a.cq, Resize, 1);
	nd_expect(&p->a, Nd2RequestTypeReceive, 1, ND_CANCELED);
	nd_expect(&p->a, Nd2RequestTypeReceive, 2, ND_CANCELED);
	return status;
}

static HRESULT notify_type(struct nd_pair *p)
{
	return CALL(p->a.cq, Notify, 3, &p->a.ov);
}

static HRESULT notify_event(struct nd_pair *p)
{
	OVERLAPPED ov;

	memset(&ov, 0, sizeof(ov));
	ov.hEvent = p->a.file;
	return CALL(p->a.cq, Notify, ND_CQ_NOTIFY_ANY, &ov);
}

static HRESULT notify_plain(struct nd_pair *p)
{
	return CALL(p->a.cq, Notify, ND_CQ_NOTIFY_ANY, &p->a.ov);
}

static HRESULT notify_cancelled(struct nd_pair *p)
{
	assert_status(notify_plain(p), ND_PENDING);
	assert_status(CALL(p->a.cq, CancelOverlappedRequests), ND_SUCCESS);
	return nd_ov_end(&p->a.ov);
}

/* A device that fails when the queue is armed tells so at once, or later. */
static HRESULT notify_failed(struct nd_pair *p)
{
	const HRESULT status = notify_plain(p);

	return status == ND_PENDING ? nd_ov_end(&p->a.ov) : status;
}

static HRESULT pending_result(struct nd_pair *p)
{
	HRESULT status;

	assert_status(notify_plain(p), ND_PENDING);
	status = CALL(p->a.cq, GetOverlappedResult, &p->a.ov, FALSE);
	assert_status(CALL(p->a.cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(CALL(p->a.cq, GetOverlappedResult, &p->a.ov, TRUE), ND_CANCELED);
	return status;
}

static const struct nd_row cq_rows[] = {
	REAL("CompletionQueue.GetNotifyAffinity", ND_INVALID_PARAMETER, cq_affinity_nowhere),
	REAL("CompletionQueue.Resize", ND_INVALID_PARAMETER, resize_0),
	REAL("CompletionQueue.Resize", ND_INVALID_PARAMETER, resize_max),
	REAL("CompletionQueue.Resize", ND_BUFFER_OVERFLOW, resize_below),
	FAULT("CompletionQueue.Resize", ND_INSUFFICIENT_RESOURCES, resize_plain, "cq_resize", 1,
              "INSUFFICIENT_RESOURCES"),
	FAULT("CompletionQueue.Resize", ND_NOT_SUPPORTED, resize_plain, "cq_resize", 1,
              "NOT_SUPPORTED"),
	FAULT("CompletionQueue.Resize", ND_DEVICE_REMOVED, resize_plain, "cq_resize", 1,
              "DEVICE_REMOVED"),
	REAL("CompletionQueue.Notify", ND_INVALID_PARAMETER_1, notify_type),
	REAL("CompletionQueue.Notify", ND_INVALID_HANDLE, notify_event),
	REAL("CompletionQueue.Notify", ND_CANCELED, notify_cancelled),
	FAULT("CompletionQueue.Notify", ND_INTERNAL_ERROR, notify_failed, "cq_notify", 1,
              "INTERNAL_ERROR"),
	FAULT("CompletionQueue.Notify", ND_BUFFER_OVERFLOW, notify_failed, "cq_notify", 1,
              "BUFFER_OVERFLOW"),
	FAULT("CompletionQueue.Notify", ND_INSUFFICIENT_RESOURCES, notify_failed, "cq_notify", 1,
              "INSUFFICIENT_RESOURCES"),
	FAULT("CompletionQueue.Notify", ND_DEVICE_REMOVED, notify_failed, "cq_notify", 1,
              "DEVICE_REMOVED"),
	REAL("Overlapped.GetOverlappedResult", ND_PENDING, pending_result),
	BEYOND("Overlapped.CancelOverlappedRequests", ND_UNSUCCESSFUL, "NDX always cancels"),
};

#define AFFINITY_FAULTS(call, provoke, where)                                                \
	FAULT(call, ND_INSUFFICIENT_RESOURCES, provoke, where, 1, "INSUFFICIENT_RESOURCES"), \
		FAULT(call, ND_NOT_SUPPORTED, provoke, where, 1, "NOT_SUPPORTED"),           \
		FAULT(call, ND_DEVICE_REMOVED, provoke, where, 1, "DEVICE_REMOVED")

static const struct nd_row cq_affinity_rows[] = {
	REAL("CompletionQueue.GetNotifyAffinity", ND_SUCCESS, cq_affinity),
	AFFINITY_FAULTS("CompletionQueue.GetNotifyAffinity", cq_affinity, "cq_affinity"),
};

static const struct nd_row no_cq_affinity_rows[] = {
	REAL("CompletionQueue.GetNotifyAffinity", ND_NOT_SUPPORTED, cq_affinity),
};

/* ---- shared receive queues ---- */

static IND2SharedReceiveQueue *new_srq(struct nd_pair *p, ULONG threshold)
{
	IND2SharedReceiveQueue *srq = NULL;

	assert_status(CALL(p->a.adapter, CreateSharedReceiveQueue,
	                   BY_ID(IID_IND2SharedReceiveQueue), p->a.file, 2, 1, threshold, 0, 0,
	                   OUT(srq)),
	              ND_SUCCESS);
	return srq;
}

/* The status of the last call on the queue, which is released. */
static HRESULT end_srq(IND2SharedReceiveQueue *srq, HRESULT status)
{
	assert_int_equal(CALL(srq, Release), 0);
	return status;
}

static HRESULT srq_affinity_nowhere(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);

	return end_srq(srq, CALL(srq, GetNotifyAffinity, NULL, NULL));
}

static HRESULT srq_affinity(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);
	USHORT group;
	KAFFINITY affinity;

	return end_srq(srq, CALL(srq, GetNotifyAffinity, &group, &affinity));
}

static HRESULT srq_modify(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);

	return end_srq(srq, CALL(srq, Modify, 4, 0));
}

static HRESULT srq_modify_max(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);

	return end_srq(srq, CALL(srq, Modify, TOO_MANY, 0));
}

static HRESULT srq_modify_below(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);

	assert_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
	assert_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
	return end_srq(srq, CALL(srq, Modify, 1, 0));
}

static HRESULT srq_notify_off(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);

	return end_srq(srq, CALL(srq, Notify, &p->a.ov));
}

static HRESULT srq_notify_event(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 1);
	OVERLAPPED ov;

	memset(&ov, 0, sizeof(ov));
	ov.hEvent = p->a.file;
	return end_srq(srq, CALL(srq, Notify, &ov));
}

static HRESULT srq_notify_nowhere(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 1);

	return end_srq(srq, CALL(srq, Notify, NULL));
}

/* The queue is not below its threshold. */
static HRESULT srq_notify_pending(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 1);
	HRESULT status;

	assert_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
	assert_status(CALL(srq, Notify, &p->a.ov), ND_PENDING);
	status = CALL(srq, GetOverlappedResult, &p->a.ov, FALSE);
	(void)end_srq(srq, status);
	assert_status(nd_ov_end(&p->a.ov), ND_CANCELED);
	return status;
}

static HRESULT srq_notify_cancelled(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 1);

	assert_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
	assert_status(CALL(srq, Notify, &p->a.ov), ND_PENDING);
	assert_status(CALL(srq, CancelOverlappedRequests), ND_SUCCESS);
	return end_srq(srq, nd_ov_end(&p->a.ov));
}

static HRESULT srq_notify_failed(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 1);
	const HRESULT status = CALL(srq, Notify, &p->a.ov);

	return end_srq(srq, status == ND_PENDING ? nd_ov_end(&p->a.ov) : status);
}

static HRESULT srq_full(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);

	assert_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
	assert_status(CALL(srq, Receive, NULL, NULL, 0), ND_SUCCESS);
	return end_srq(srq, CALL(srq, Receive, NULL, NULL, 0));
}

static HRESULT srq_many_sges(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);
	ND2_SGE sge[64];
	const ULONG count = p->a.info.MaxReceiveSge + 1;

	assert_true(count <= 64);
	for (ULONG i = 0; i < count; i++)
		sge[i] = nd_sge(&p->a, i, 1);
	return end_srq(srq, CALL(srq, Receive, NULL, sge, count));
}

static HRESULT srq_too_long(struct nd_pair *p)
{
	IND2SharedReceiveQueue *srq = new_srq(p, 0);
	const ND2_SGE sge = nd_sge(&p->a, 0, p->a.info.MaxTransferLength + 1);

	return end_srq(srq, CALL(srq, Receive, NULL, &sge, 1));
}

static const struct nd_row srq_rows[] = {
	REAL("SharedReceiveQueue.GetNotifyAffinity", ND_INVALID_PARAMETER, srq_affinity_nowhere),
	REAL("SharedReceiveQueue.Modify", ND_INVALID_PARAMETER, srq_modify_max),
	REAL("SharedReceiveQueue.Modify", ND_BUFFER_OVERFLOW, srq_modify_below),
	FAULT("SharedReceiveQueue.Modify", ND_INSUFFICIENT_RESOURCES, srq_modify, "srq_modify", 1,
              "INSUFFICIENT_RESOURCES"),
	FAULT("SharedReceiveQueue.Modify", ND_DEVICE_REMOVED, srq_modify, "srq_modify", 1,
              "DEVICE_REMOVED"),
	REAL("SharedReceiveQueue.Notify", ND_INVALID_PARAMETER, srq_notify_off),
	REAL("SharedReceiveQueue.Notify", ND_INVALID_PARAMETER, srq_notify_nowhere),
	REAL("SharedReceiveQueue.Notify", ND_INVALID_HANDLE, srq_notify_event),
	REAL("SharedReceiveQueue.Notify", ND_PENDING, srq_notify_pending),
	REAL("SharedReceiveQueue.Notify", ND_CANCELED, srq_notify_cancelled),
	FAULT("SharedReceiveQueue.Notify", ND_INTERNAL_ERROR, srq_notify_failed, "srq_notify", 1,
              "INTERNAL_ERROR"),
	FAULT("SharedReceiveQueue.Notify", ND_INSUFFICIENT_RESOURCES, srq_notify_failed,
              "srq_notify", 1, "INSUFFICIENT_RESOURCES"),
	FAULT("SharedReceiveQueue.Notify", ND_DEVICE_REMOVED, srq_notify_failed, "srq_notify", 1,
              "DEVICE_REMOVED"),
	REAL("SharedReceiveQueue.Receive", ND_NO_MORE_ENTRIES, srq_full),
	REAL("SharedReceiveQueue.Receive", ND_DATA_OVERRUN, srq_many_sges),
	REAL("SharedReceiveQueue.Receive", ND_BUFFER_OVERFLOW, srq_too_long),
};

static const struct nd_row srq_affinity_rows[] = {
	REAL("SharedReceiveQueue.GetNotifyAffinity", ND_SUCCESS, srq_affinity),
	AFFINITY_FAULTS("SharedReceiveQueue.GetNotifyAffinity", srq_affinity, "srq_affinity"),
};

static const struct nd_row no_srq_affinity_rows[] = {
	REAL("SharedReceiveQueue.GetNotifyAffinity", ND_NOT_SUPPORTED, srq_affinity),
};

static void completion_queue(void **state)
{
	(void)state;
	nd_run_rows(ROWS(cq));
}

static void shared_receive_queue(void **state)
{
	(void)state;
	nd_need(NDX_CAP_SRQ);
	nd_run_rows(ROWS(srq));
}

/* An adapter knows the affinity, or says that it does not. */
static void completion_queue_affinity(void **state)
{
	(void)state;
	if (!nd_has(NDX_CAP_NOTIFY_AFFINITY))
		nd_run_rows(ROWS(no_cq_affinity));
	nd_need(NDX_CAP_NOTIFY_AFFINITY);
	nd_run_rows(ROWS(cq_affinity));
}

static void shared_receive_queue_affinity(void **state)
{
	(void)state;
	nd_need(NDX_CAP_SRQ);
	if (!nd_has(NDX_CAP_NOTIFY_AFFINITY))
		nd_run_rows(ROWS(no_srq_affinity));
	nd_need(NDX_CAP_NOTIFY_AFFINITY);
	nd_run_rows(ROWS(srq_affinity));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completion_queue),
		cmocka_unit_test(completion_queue_affinity),
		cmocka_unit_test(shared_receive_queue),
		cmocka_unit_test(shared_receive_queue_affinity),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
