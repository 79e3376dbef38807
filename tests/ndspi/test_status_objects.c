/* SPDX-License-Identifier: BSD-2-Clause */
/* The documented statuses of providers and adapters. */
#include "nd_table.h"

/* ---- provider and adapter ---- */

static IND2Provider *provider(void)
{
	IND2Provider *found = NULL;

	assert_status(
		DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IND2Provider), OUT(found)),
		S_OK);
	return found;
}

static HRESULT provider_list_small(struct nd_pair *p)
{
	IND2Provider *object = provider();
	ULONG size = 0;
	const HRESULT status = CALL(object, QueryAddressList, NULL, &size);

	(void)p;
	assert_true(size > 0);
	assert_int_equal(CALL(object, Release), 0);
	return status;
}

static HRESULT resolve_foreign(struct nd_pair *p)
{
	IND2Provider *object = provider();
	struct sockaddr_in foreign;
	UINT64 id = 0;
	HRESULT status;

	(void)p;
	memset(&foreign, 0, sizeof(foreign));
	foreign.sin_family = AF_INET;
	foreign.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	status = CALL(object, ResolveAddress, (struct sockaddr *)&foreign, sizeof(foreign), &id);
	assert_int_equal(CALL(object, Release), 0);
	return status;
}

static HRESULT open_unknown(struct nd_pair *p)
{
	IND2Provider *object = provider();
	void *out = NULL;
	const HRESULT status =
		CALL(object, OpenAdapter, BY_ID(IID_IND2Adapter), ~p->a.info.AdapterId, &out);

	assert_null(out);
	assert_int_equal(CALL(object, Release), 0);
	return status;
}

static HRESULT open_other_interface(struct nd_pair *p)
{
	IND2Provider *object = provider();
	void *out = p;
	const HRESULT status =
		CALL(object, OpenAdapter, BY_ID(IID_IND2Listener), p->a.info.AdapterId, &out);

	assert_null(out);
	assert_int_equal(CALL(object, Release), 0);
	return status;
}

static HRESULT file_nowhere(struct nd_pair *p)
{
	return CALL(p->a.adapter, CreateOverlappedFile, NULL);
}

static HRESULT query_small(struct nd_pair *p)
{
	ND2_ADAPTER_INFO info;
	ULONG size = sizeof(info) - 1;
	HRESULT status;

	memset(&info, 0x5a, sizeof(info));
	status = CALL(p->a.adapter, Query, &info, &size);
	assert_int_equal(size, sizeof(info));
	assert_int_equal(info.InfoVersion, 0x5a5a5a5a);
	return status;
}

static HRESULT query_version(struct nd_pair *p)
{
	ND2_ADAPTER_INFO info;
	ULONG size = sizeof(info);

	info.InfoVersion = 2;
	return CALL(p->a.adapter, Query, &info, &size);
}

static HRESULT query_without_size(struct nd_pair *p)
{
	return CALL(p->a.adapter, Query, NULL, NULL);
}

static HRESULT list_small(struct nd_pair *p)
{
	ULONG size = 3;

	return CALL(p->a.adapter, QueryAddressList, NULL, &size);
}

static HRESULT list_without_size(struct nd_pair *p)
{
	return CALL(p->a.adapter, QueryAddressList, NULL, NULL);
}

static const struct nd_row adapter_rows[] = {
	REAL("Provider.QueryAddressList", ND_BUFFER_OVERFLOW, provider_list_small),
	REAL("Provider.ResolveAddress", ND_INVALID_ADDRESS, resolve_foreign),
	BEYOND("Provider.ResolveAddress", ND_NO_MEMORY, "malloc() does not fail here"),
	REAL("Provider.OpenAdapter", ND_INVALID_PARAMETER, open_unknown),
	REAL("Provider.OpenAdapter", E_NOINTERFACE, open_other_interface),
	BEYOND("Provider.OpenAdapter", ND_NO_MEMORY, "malloc() does not fail here"),
	REAL("Adapter.CreateOverlappedFile", ND_INVALID_PARAMETER_1, file_nowhere),
	BEYOND("Adapter.CreateOverlappedFile", ND_NO_MEMORY, "malloc() does not fail here"),
	BEYOND("Adapter.CreateOverlappedFile", ND_DEVICE_REMOVED, "a file needs no device"),
	REAL("Adapter.Query", ND_BUFFER_OVERFLOW, query_small),
	REAL("Adapter.Query", ND_INVALID_PARAMETER_1, query_version),
	REAL("Adapter.Query", ND_INVALID_PARAMETER_2, query_without_size),
	REAL("Adapter.QueryAddressList", ND_BUFFER_OVERFLOW, list_small),
	REAL("Adapter.QueryAddressList", ND_INVALID_PARAMETER_2, list_without_size),
};

/* ---- what an adapter creates ---- */

/* Releases what was created, so that a status of success is seen as such. */
static HRESULT created(HRESULT status, void *object)
{
	if (status == ND_SUCCESS)
		assert_int_equal(CALL((IUnknown *)object, Release), 0);
	else
		assert_null(object);
	return status;
}

static HRESULT make_cq(struct nd_pair *p, HANDLE file, ULONG depth, USHORT group)
{
	void *out = NULL;
	const HRESULT status = CALL(p->a.adapter, CreateCompletionQueue,
	                            BY_ID(IID_IND2CompletionQueue), file, depth, group, 0, &out);

	return created(status, out);
}

static HRESULT cq_plain(struct nd_pair *p)
{
	return make_cq(p, p->a.file, 1, 0);
}

static HRESULT cq_depth_0(struct nd_pair *p)
{
	return make_cq(p, p->a.file, 0, 0);
}

static HRESULT cq_depth_max(struct nd_pair *p)
{
	assert_status(make_cq(p, p->a.file, p->a.info.MaxCompletionQueueDepth, 0), ND_SUCCESS);
	return make_cq(p, p->a.file, p->a.info.MaxCompletionQueueDepth + 1, 0);
}

static HRESULT cq_group(struct nd_pair *p)
{
	return make_cq(p, p->a.file, 1, 1);
}

static HRESULT cq_without_file(struct nd_pair *p)
{
	assert_status(make_cq(p, NULL, 1, 0), ND_INVALID_HANDLE);
	assert_status(make_cq(p, INVALID_HANDLE_VALUE, 1, 0), ND_INVALID_HANDLE);
	return make_cq(p, p->a.event, 1, 0);
}

static HRESULT cq_other_interface(struct nd_pair *p)
{
	void *out = p;
	const HRESULT status = CALL(p->a.adapter, CreateCompletionQueue, BY_ID(IID_IND2Listener),
	                            p->a.file, 1, 0, 0, &out);

	return created(status, out);
}

static HRESULT cq_nowhere(struct nd_pair *p)
{
	return CALL(p->a.adapter, CreateCompletionQueue, BY_ID(IID_IND2CompletionQueue), p->a.file,
	            1, 0, 0, NULL);
}

static HRESULT mr_plain(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status = CALL(p->a.adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion),
	                            p->a.file, &out);

	return created(status, out);
}

static HRESULT mr_without_file(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status = CALL(p->a.adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion),
	                            p->a.event, &out);

	return created(status, out);
}

static HRESULT mw_plain(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateMemoryWindow, BY_ID(IID_IND2MemoryWindow), &out);

	return created(status, out);
}

static HRESULT make_srq(struct nd_pair *p, HANDLE file, ULONG depth, ULONG sge, USHORT group)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateSharedReceiveQueue, BY_ID(IID_IND2SharedReceiveQueue),
	             file, depth, sge, 0, group, 0, &out);

	return created(status, out);
}

static HRESULT srq_plain(struct nd_pair *p)
{
	return make_srq(p, p->a.file, 1, 1, 0);
}

static HRESULT srq_depth_0(struct nd_pair *p)
{
	return make_srq(p, p->a.file, 0, 1, 0);
}

static HRESULT srq_depth_max(struct nd_pair *p)
{
	assert_status(make_srq(p, p->a.file, p->a.info.MaxSharedReceiveQueueDepth, 1, 0),
	              ND_SUCCESS);
	return make_srq(p, p->a.file, p->a.info.MaxSharedReceiveQueueDepth + 1, 1, 0);
}

static HRESULT srq_sge_max(struct nd_pair *p)
{
	assert_status(make_srq(p, p->a.file, 1, p->a.info.MaxReceiveSge, 0), ND_SUCCESS);
	return make_srq(p, p->a.file, 1, p->a.info.MaxReceiveSge + 1, 0);
}

static HRESULT srq_group(struct nd_pair *p)
{
	return make_srq(p, p->a.file, 1, 1, 1);
}

static HRESULT srq_without_file(struct nd_pair *p)
{
	return make_srq(p, NULL, 1, 1, 0);
}

static HRESULT qp_without_srq(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status = CALL(p->a.adapter, CreateQueuePairWithSrq, BY_ID(IID_IND2QueuePair),
	                            UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), NULL, NULL, 1, 1, 0, &out);

	return created(status, out);
}

static HRESULT connector_plain(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateConnector, BY_ID(IID_IND2Connector), p->a.file, &out);

	return created(status, out);
}

static HRESULT connector_without_file(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateConnector, BY_ID(IID_IND2Connector), NULL, &out);

	return created(status, out);
}

static HRESULT listener_plain(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->b.adapter, CreateListener, BY_ID(IID_IND2Listener), p->b.file, &out);

	return created(status, out);
}

static HRESULT listener_without_file(struct nd_pair *p)
{
	void *out = NULL;
	const HRESULT status =
		CALL(p->a.adapter, CreateListener, BY_ID(IID_IND2Listener), NULL, &out);

	return created(status, out);
}

#define CREATE_FAULTS(call, provoke, where, nth)                                               \
	FAULT(call, ND_INSUFFICIENT_RESOURCES, provoke, where, nth, "INSUFFICIENT_RESOURCES"), \
		FAULT(call, ND_NO_MEMORY, provoke, where, nth, "NO_MEMORY"),                   \
		FAULT(call, ND_DEVICE_REMOVED, provoke, where, nth, "DEVICE_REMOVED")

static const struct nd_row create_rows[] = {
	REAL("Adapter.CreateCompletionQueue", ND_INVALID_PARAMETER_3, cq_depth_0),
	REAL("Adapter.CreateCompletionQueue", ND_INVALID_PARAMETER_3, cq_depth_max),
	REAL("Adapter.CreateCompletionQueue", ND_INVALID_PARAMETER_4, cq_group),
	REAL("Adapter.CreateCompletionQueue", ND_INVALID_HANDLE, cq_without_file),
	REAL("Adapter.CreateCompletionQueue", E_NOINTERFACE, cq_other_interface),
	REAL("Adapter.CreateCompletionQueue", E_POINTER, cq_nowhere),
	CREATE_FAULTS("Adapter.CreateCompletionQueue", cq_plain, "cq_create", 2),
	REAL("Adapter.CreateMemoryRegion", ND_INVALID_HANDLE, mr_without_file),
	CREATE_FAULTS("Adapter.CreateMemoryRegion", mr_plain, "mr_create", 2),
	REAL("Adapter.CreateConnector", ND_INVALID_HANDLE, connector_without_file),
	CREATE_FAULTS("Adapter.CreateConnector", connector_plain, "conn_create", 2),
	REAL("Adapter.CreateListener", ND_INVALID_HANDLE, listener_without_file),
	CREATE_FAULTS("Adapter.CreateListener", listener_plain, "listener_create", 2),
};

static const struct nd_row window_rows[] = {
	CREATE_FAULTS("Adapter.CreateMemoryWindow", mw_plain, "mw_create", 1),
	FAULT("Adapter.CreateMemoryWindow", ND_NOT_SUPPORTED, mw_plain, "mw_create", 1,
              "NOT_SUPPORTED"),
};

static const struct nd_row no_window_rows[] = {
	REAL("Adapter.CreateMemoryWindow", ND_NOT_SUPPORTED, mw_plain),
};

static const struct nd_row srq_rows[] = {
	REAL("Adapter.CreateSharedReceiveQueue", ND_INVALID_PARAMETER_3, srq_depth_0),
	REAL("Adapter.CreateSharedReceiveQueue", ND_INVALID_PARAMETER_3, srq_depth_max),
	REAL("Adapter.CreateSharedReceiveQueue", ND_INVALID_PARAMETER_4, srq_sge_max),
	REAL("Adapter.CreateSharedReceiveQueue", ND_INVALID_PARAMETER_6, srq_group),
	REAL("Adapter.CreateSharedReceiveQueue", ND_INVALID_HANDLE, srq_without_file),
	CREATE_FAULTS("Adapter.CreateSharedReceiveQueue", srq_plain, "srq_create", 1),
};

static const struct nd_row no_srq_rows[] = {
	REAL("Adapter.CreateSharedReceiveQueue", ND_NOT_SUPPORTED, srq_plain),
	REAL("Adapter.CreateQueuePairWithSrq", ND_NOT_SUPPORTED, qp_without_srq),
};

static void adapter(void **state)
{
	(void)state;
	nd_run_rows(ROWS(adapter));
}

static void creation(void **state)
{
	(void)state;
	nd_run_rows(ROWS(create));
}

/* An adapter has windows, or says that it has none. */
static void window(void **state)
{
	(void)state;
	if (!nd_has(NDX_CAP_MEMORY_WINDOW))
		nd_run_rows(ROWS(no_window));
	nd_need(NDX_CAP_MEMORY_WINDOW);
	nd_run_rows(ROWS(window));
}

/* The same of shared receive queues. */
static void shared_receive_queue(void **state)
{
	(void)state;
	if (!nd_has(NDX_CAP_SRQ))
		nd_run_rows(ROWS(no_srq));
	nd_need(NDX_CAP_SRQ);
	nd_run_rows(ROWS(srq));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adapter),
		cmocka_unit_test(creation),
		cmocka_unit_test(window),
		cmocka_unit_test(shared_receive_queue),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
