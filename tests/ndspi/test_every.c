/* SPDX-License-Identifier: BSD-2-Clause */
/* Every method of every interface, once at least; compiled as C and as C++. */
#include "nd_pair.h"

enum { SIZE = 256 };

static void check_unknown(IUnknown *object, const IID *own)
{
	IUnknown *same = NULL;
	IUnknown *other = NULL;
	const IID foreign = {1, 2, 3, {4}};

	assert_int_equal(CALL(object, AddRef), 2);
	assert_int_equal(CALL(object, Release), 1);
#ifdef __cplusplus
	assert_status(object->QueryInterface(*own, OUT(same)), S_OK);
	assert_status(object->QueryInterface(foreign, OUT(other)), E_NOINTERFACE);
#else
	assert_status(CALL(object, QueryInterface, own, OUT(same)), S_OK);
	assert_status(CALL(object, QueryInterface, &foreign, OUT(other)), E_NOINTERFACE);
#endif
	assert_null(other);
	assert_ptr_equal(same, object);
	assert_int_equal(CALL(same, Release), 1);
	assert_status(CALL(object, QueryInterface, BY_ID(IID_IUnknown), OUT(same)), S_OK);
	assert_ptr_equal(same, object);
	assert_int_equal(CALL(same, Release), 1);
	assert_status(CALL(object, QueryInterface, BY_ID(IID_IUnknown), NULL), E_POINTER);
}

static void provider_gives_adapters(void **state)
{
	union {
		SOCKET_ADDRESS_LIST list;
		char bytes[8192];
	} u;
	ULONG size = 0;
	IND2Provider *provider = NULL;
	IND2Adapter *adapter = NULL;
	IClassFactory *factory = NULL;
	ND2_ADAPTER_INFO info;
	UINT64 id = 0;

	(void)state;
	assert_status(
		DllGetClassObject(BY_ID(IID_IND2Adapter), BY_ID(IID_IND2Provider), OUT(provider)),
		CLASS_E_CLASSNOTAVAILABLE);
	assert_status(
		DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IClassFactory), OUT(factory)),
		S_OK);
	assert_status(CALL(factory, CreateInstance, UNKNOWN(factory), BY_ID(IID_IND2Provider),
	                   OUT(provider)),
	              CLASS_E_NOAGGREGATION);
	assert_status(CALL(factory, CreateInstance, NULL, BY_ID(IID_IND2Provider), OUT(provider)),
	              S_OK);
	assert_status(CALL(factory, LockServer, TRUE), S_OK);
	check_unknown(UNKNOWN(factory), &IID_IClassFactory);
	assert_int_equal(CALL(factory, Release), 0);
	assert_int_equal(CALL(provider, Release), 0);
	assert_status(
		DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IND2Provider), OUT(provider)),
		S_OK);
	assert_status(DllCanUnloadNow(), S_FALSE);
	check_unknown(UNKNOWN(provider), &IID_IND2Provider);
	assert_status(CALL(provider, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
	assert_true(size > 0 && size <= sizeof(u));
	size--;
	assert_status(CALL(provider, QueryAddressList, &u.list, &size), ND_BUFFER_OVERFLOW);
	assert_status(CALL(provider, QueryAddressList, &u.list, &size), ND_SUCCESS);
	assert_status(CALL(provider, ResolveAddress, u.list.Address[0].lpSockaddr,
	                   (ULONG)u.list.Address[0].iSockaddrLength, &id),
	              ND_SUCCESS);
	assert_status(CALL(provider, ResolveAddress, u.list.Address[0].lpSockaddr, 3, &id),
	              ND_INVALID_ADDRESS);
	assert_status(CALL(provider, OpenAdapter, BY_ID(IID_IND2Adapter), ~id, OUT(adapter)),
	              ND_INVALID_PARAMETER);
	assert_status(CALL(provider, OpenAdapter, BY_ID(IID_IND2Adapter), id, OUT(adapter)),
	              ND_SUCCESS);
	assert_int_equal(CALL(provider, Release), 0);
	check_unknown(UNKNOWN(adapter), &IID_IND2Adapter);
	info.InfoVersion = ND_VERSION_1;
	size = sizeof(info);
	assert_status(CALL(adapter, Query, &info, &size), ND_SUCCESS);
	assert_true(info.AdapterId == id);
	/* programs that give half of the queue back at a time would lose receives of an even one */
	assert_int_equal(info.MaxReceiveQueueDepth % 2, 1);
	assert_int_equal(info.MaxInitiatorQueueDepth, info.MaxReceiveQueueDepth);
	size = 0;
	assert_status(CALL(adapter, QueryAddressList, NULL, &size), ND_BUFFER_OVERFLOW);
	size = sizeof(u);
	assert_status(CALL(adapter, QueryAddressList, &u.list, &size), ND_SUCCESS);
	assert_true(u.list.iAddressCount > 0);
	assert_int_equal(CALL(adapter, Release), 0);
}

static void completion_queue(struct nd_side *s)
{
	USHORT group = 7;
	KAFFINITY affinity = 0;
	HRESULT status;
	OVERLAPPED armed;

	check_unknown(UNKNOWN(s->cq), &IID_IND2CompletionQueue);
	check_unknown(UNKNOWN(s->cq), &IID_IND2Overlapped);
	status = CALL(s->cq, GetNotifyAffinity, &group, &affinity);
	assert_true(status == ND_SUCCESS || status == ND_NOT_SUPPORTED);
	status = CALL(s->cq, Resize, 2 * ND_DEPTH);
	assert_status(status, s->info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED
	                              ? ND_SUCCESS
	                              : ND_NOT_SUPPORTED);
	memset(&armed, 0, sizeof(armed));
	assert_status(CALL(s->cq, Notify, ND_CQ_NOTIFY_ANY, &armed), ND_PENDING);
	assert_status(CALL(s->cq, GetOverlappedResult, &armed, FALSE), ND_PENDING);
	assert_status(CALL(s->cq, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(CALL(s->cq, GetOverlappedResult, &armed, FALSE), ND_CANCELED);
	assert_status(CALL(s->cq, CancelOverlappedRequests), ND_SUCCESS);
}

static void memory(struct nd_side *s)
{
	IND2MemoryRegion *mr = NULL;

	check_unknown(UNKNOWN(s->mr), &IID_IND2MemoryRegion);
	assert_status(
		CALL(s->adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion), s->file, OUT(mr)),
		ND_SUCCESS);
	assert_status(nd_end(s, CALL(mr, Register, s->memory, ND_MEMORY,
	                             ND_MR_FLAG_DO_NOT_SECURE_VM, &s->ov)),
	              ND_SUCCESS);
	assert_true(CALL(mr, GetLocalToken) != 0);
	assert_true(CALL(mr, GetRemoteToken) != 0);
	assert_status(CALL(mr, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(nd_end(s, CALL(mr, Deregister, &s->ov)), ND_SUCCESS);
	assert_int_equal(CALL(mr, Release), 0);
}

static void shared_receives(struct nd_side *s)
{
	IND2SharedReceiveQueue *srq = NULL;
	IND2QueuePair *qp = NULL;
	ND2_SGE sge = nd_sge(s, 0, SIZE);
	USHORT group;
	KAFFINITY affinity;
	OVERLAPPED armed;
	HRESULT status;

	status = CALL(s->adapter, CreateSharedReceiveQueue, BY_ID(IID_IND2SharedReceiveQueue),
	              s->file, ND_DEPTH, 1, 2, 0, 0, OUT(srq));
	if (s->info.MaxSharedReceiveQueueDepth == 0) {
		assert_status(status, ND_NOT_SUPPORTED);
		return;
	}
	assert_status(status, ND_SUCCESS);
	check_unknown(UNKNOWN(srq), &IID_IND2SharedReceiveQueue);
	status = CALL(srq, GetNotifyAffinity, &group, &affinity);
	assert_true(status == ND_SUCCESS || status == ND_NOT_SUPPORTED);
	assert_status(CALL(srq, Modify, 0, 1), ND_SUCCESS);
	assert_status(CALL(srq, Receive, NULL, &sge, 1), ND_SUCCESS);
	memset(&armed, 0, sizeof(armed));
	assert_status(CALL(srq, Notify, &armed), ND_PENDING);
	assert_status(CALL(srq, GetOverlappedResult, &armed, FALSE), ND_PENDING);
	assert_status(CALL(srq, CancelOverlappedRequests), ND_SUCCESS);
	assert_status(CALL(srq, GetOverlappedResult, &armed, FALSE), ND_CANCELED);
	assert_status(CALL(s->adapter, CreateQueuePairWithSrq, BY_ID(IID_IND2QueuePair),
	                   UNKNOWN(s->cq), UNKNOWN(s->cq), UNKNOWN(srq), s, ND_DEPTH, 1, 0,
	                   OUT(qp)),
	              ND_SUCCESS);
	assert_int_equal(CALL(srq, Release), 0);
	assert_int_equal(CALL(qp, Release), 0);
}

static void window(struct nd_pair *p)
{
	IND2MemoryWindow *mw = NULL;
	const HRESULT status =
		CALL(p->b.adapter, CreateMemoryWindow, BY_ID(IID_IND2MemoryWindow), OUT(mw));
	ND2_SGE sge = nd_sge(&p->a, 0, SIZE);
	UINT32 token;

	if (p->b.info.MaxWindowSize == 0) {
		assert_status(status, ND_NOT_SUPPORTED);
		return;
	}
	assert_status(status, ND_SUCCESS);
	check_unknown(UNKNOWN(mw), &IID_IND2MemoryWindow);
	assert_status(CALL(p->b.qp, Bind, (void *)1, UNKNOWN(p->b.mr), UNKNOWN(mw), p->b.memory,
	                   SIZE, ND_OP_FLAG_ALLOW_WRITE),
	              ND_SUCCESS);
	token = CALL(mw, GetRemoteToken);
	assert_true(token != 0);
	nd_expect(&p->b, Nd2RequestTypeBind, 1, ND_SUCCESS);
	memset(p->a.memory, 0x5a, SIZE);
	assert_status(
		CALL(p->a.qp, Write, (void *)2, &sge, 1, (UINT64)(uintptr_t)p->b.memory, token, 0),
		ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeWrite, 2, ND_SUCCESS);
	assert_memory_equal(p->a.memory, p->b.memory, SIZE);
	assert_status(CALL(p->b.qp, Invalidate, (void *)3, UNKNOWN(mw), 0), ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeInvalidate, 3, ND_SUCCESS);
	assert_int_equal(CALL(mw, Release), 0);
}

static void transfers(struct nd_pair *p)
{
	ND2_SGE sge = nd_sge(&p->a, SIZE, SIZE);
	const UINT64 there = (UINT64)(uintptr_t)p->b.memory;
	const UINT32 token = CALL(p->b.mr, GetRemoteToken);

	check_unknown(UNKNOWN(p->a.qp), &IID_IND2QueuePair);
	nd_receive(&p->b, 1, SIZE, SIZE);
	memset(p->a.memory + SIZE, 0x17, SIZE);
	nd_send(&p->a, 2, SIZE, SIZE, ND_OP_FLAG_SEND_AND_SOLICIT_EVENT);
	nd_expect(&p->a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	assert_memory_equal(p->a.memory + SIZE, p->b.memory + SIZE, SIZE);
	memset(p->b.memory, 0x33, SIZE);
	assert_status(CALL(p->a.qp, Read, (void *)3, &sge, 1, there, token, 0), ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeRead, 3, ND_SUCCESS);
	assert_memory_equal(p->a.memory + SIZE, p->b.memory, SIZE);
	memset(p->a.memory + SIZE, 0x44, SIZE);
	assert_status(CALL(p->a.qp, Write, (void *)4, &sge, 1, there, token, ND_OP_FLAG_READ_FENCE),
	              ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeWrite, 4, ND_SUCCESS);
	assert_memory_equal(p->a.memory + SIZE, p->b.memory, SIZE);
}

static void connection(struct nd_pair *p)
{
	struct sockaddr_storage address;
	ULONG length = sizeof(address);
	ULONG inbound = 99, outbound = 99;
	char data[4];
	ULONG data_length = sizeof(data);

	check_unknown(UNKNOWN(p->a.connector), &IID_IND2Connector);
	assert_status(CALL(p->a.connector, GetReadLimits, &inbound, &outbound), ND_SUCCESS);
	assert_true(inbound <= 4 && outbound <= 4);
	assert_status(CALL(p->a.connector, GetPrivateData, data, &data_length), ND_SUCCESS);
	assert_status(CALL(p->a.connector, GetLocalAddress, (struct sockaddr *)&address, &length),
	              ND_SUCCESS);
	length = sizeof(address);
	assert_status(CALL(p->a.connector, GetPeerAddress, (struct sockaddr *)&address, &length),
	              ND_SUCCESS);
	assert_int_equal(length, p->address_length);
	assert_memory_equal(&address, &p->address, length);
}

/* The other way to end an attempt. */
static void rejection(struct nd_pair *p)
{
	IND2Connector *active = NULL;
	IND2Connector *passive = NULL;
	IND2QueuePair *qp = NULL;
	struct sockaddr_storage address;
	const ULONG length = nd_local_address(&address);

	assert_status(CALL(p->a.adapter, CreateConnector, BY_ID(IID_IND2Connector), p->a.file,
	                   OUT(active)),
	              ND_SUCCESS);
	assert_status(CALL(p->b.adapter, CreateConnector, BY_ID(IID_IND2Connector), p->b.file,
	                   OUT(passive)),
	              ND_SUCCESS);
	assert_status(CALL(p->a.adapter, CreateQueuePair, BY_ID(IID_IND2QueuePair),
	                   UNKNOWN(p->a.cq), UNKNOWN(p->a.cq), NULL, 1, 1, 0, 0, 0, OUT(qp)),
	              ND_SUCCESS);
	assert_status(CALL(active, Bind, (struct sockaddr *)&address, length), ND_SUCCESS);
	assert_status(CALL(p->listener, GetConnectionRequest, UNKNOWN(passive), &p->b.ov),
	              ND_PENDING);
	assert_status(CALL(active, Connect, UNKNOWN(qp), (struct sockaddr *)&p->address,
	                   p->address_length, 0, 0, NULL, 0, &p->a.ov),
	              ND_PENDING);
	assert_status(CALL(passive, GetOverlappedResult, &p->b.ov, TRUE), ND_SUCCESS);
	assert_status(CALL(passive, Reject, "no", 2), ND_SUCCESS);
	assert_status(CALL(active, GetOverlappedResult, &p->a.ov, TRUE), ND_CONNECTION_REFUSED);
	assert_status(CALL(active, CancelOverlappedRequests), ND_SUCCESS);
	assert_int_equal(CALL(active, Release), 0);
	assert_int_equal(CALL(passive, Release), 0);
	assert_int_equal(CALL(qp, Release), 0);
}

static void every_method_works(void **state)
{
	struct nd_pair p;
	OVERLAPPED ended;

	(void)state;
	nd_make(&p);
	completion_queue(&p.a);
	memory(&p.a);
	shared_receives(&p.b);
	check_unknown(UNKNOWN(p.listener), &IID_IND2Listener);
	assert_status(CALL(p.listener, CancelOverlappedRequests), ND_SUCCESS);
	nd_connect(&p);
	connection(&p);
	transfers(&p);
	window(&p);
	rejection(&p);
	memset(&ended, 0, sizeof(ended));
	assert_status(CALL(p.b.connector, NotifyDisconnect, &ended), ND_PENDING);
	nd_receive(&p.b, 9, 0, SIZE);
	assert_status(nd_end(&p.a, CALL(p.a.connector, Disconnect, &p.a.ov)), ND_SUCCESS);
	assert_status(CALL(p.b.connector, GetOverlappedResult, &ended, TRUE), ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 9, ND_CANCELED);
	assert_status(nd_end(&p.b, CALL(p.b.connector, Disconnect, &p.b.ov)), ND_SUCCESS);
	assert_status(CALL(p.b.qp, Flush), ND_SUCCESS);
	nd_drop(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(provider_gives_adapters),
		cmocka_unit_test(every_method_works),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
