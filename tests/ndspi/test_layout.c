/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary interface: identifiers, the slot of each function, sizes and values. They are those of
 * Windows, so no change here is right. */
#include "nd_pair.h"

#include <stdio.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif

CHECK(sizeof(OVERLAPPED) == 32 && offsetof(OVERLAPPED, hEvent) == 24);
CHECK(offsetof(OVERLAPPED, InternalHigh) == 8 && offsetof(OVERLAPPED, Pointer) == 16);
CHECK(sizeof(ND2_SGE) == 16 && offsetof(ND2_SGE, BufferLength) == 8);
CHECK(offsetof(ND2_SGE, MemoryRegionToken) == 12);
CHECK(sizeof(ND2_RESULT) == 32 && offsetof(ND2_RESULT, BytesTransferred) == 4);
CHECK(offsetof(ND2_RESULT, QueuePairContext) == 8 && offsetof(ND2_RESULT, RequestContext) == 16);
CHECK(offsetof(ND2_RESULT, RequestType) == 24);
CHECK(sizeof(ND2_MANA_RESULT) == 32 && offsetof(ND2_MANA_RESULT, ImmediateDataOrRKey) == 28);
CHECK(sizeof(ND2_ADAPTER_INFO) == 96 && offsetof(ND2_ADAPTER_INFO, AdapterId) == 8);
CHECK(offsetof(ND2_ADAPTER_INFO, MaxRegistrationSize) == 16);
CHECK(offsetof(ND2_ADAPTER_INFO, MaxInitiatorSge) == 32);
CHECK(offsetof(ND2_ADAPTER_INFO, AdapterFlags) == 92);
CHECK(sizeof(SOCKET_ADDRESS) == 16 && offsetof(SOCKET_ADDRESS_LIST, Address) == 8);
CHECK(sizeof(GUID) == 16 && sizeof(ULONG) == 4 && sizeof(LONG) == 4 && sizeof(HANDLE) == 8);
CHECK(sizeof(SIZE_T) == 8 && sizeof(KAFFINITY) == 8 && sizeof(ND2_REQUEST_TYPE) == 4);
CHECK(Nd2RequestTypeReceive == 0 && Nd2RequestTypeSend == 1 && Nd2RequestTypeBind == 2);
CHECK(Nd2RequestTypeInvalidate == 3 && Nd2RequestTypeRead == 4 && Nd2RequestTypeWrite == 5);
CHECK(Nd2ManaRequestTypeSend == 0 && Nd2ManaRequestTypeWrite == 4 && Nd2ManaRequestTypeRecv == 128);
CHECK(Nd2ManaRequestTypeRecvRdmaWithImmediate == 131);
CHECK(ND_MR_FLAG_ALLOW_REMOTE_WRITE == 5 && ND_MR_FLAG_RDMA_READ_SINK == 8);
CHECK(ND_OP_FLAG_SEND_AND_SOLICIT_EVENT == 4 && ND_OP_FLAG_INLINE == 0x20);
CHECK(ND_CQ_NOTIFY_ERRORS == 0 && ND_CQ_NOTIFY_ANY == 1 && ND_CQ_NOTIFY_SOLICITED == 2);

#ifndef __cplusplus
#define SLOT(interface, number, method) \
	CHECK(offsetof(interface##Vtbl, method) == (number) * sizeof(void *))
SLOT(IND2Overlapped, 0, QueryInterface);
SLOT(IND2Overlapped, 1, AddRef);
SLOT(IND2Overlapped, 2, Release);
SLOT(IND2Overlapped, 3, CancelOverlappedRequests);
SLOT(IND2Overlapped, 4, GetOverlappedResult);
SLOT(IND2CompletionQueue, 0, QueryInterface);
SLOT(IND2CompletionQueue, 1, AddRef);
SLOT(IND2CompletionQueue, 2, Release);
SLOT(IND2CompletionQueue, 3, CancelOverlappedRequests);
SLOT(IND2CompletionQueue, 4, GetOverlappedResult);
SLOT(IND2CompletionQueue, 5, GetNotifyAffinity);
SLOT(IND2CompletionQueue, 6, Resize);
SLOT(IND2CompletionQueue, 7, Notify);
SLOT(IND2CompletionQueue, 8, GetResults);
SLOT(IND2SharedReceiveQueue, 0, QueryInterface);
SLOT(IND2SharedReceiveQueue, 1, AddRef);
SLOT(IND2SharedReceiveQueue, 2, Release);
SLOT(IND2SharedReceiveQueue, 3, CancelOverlappedRequests);
SLOT(IND2SharedReceiveQueue, 4, GetOverlappedResult);
SLOT(IND2SharedReceiveQueue, 5, GetNotifyAffinity);
SLOT(IND2SharedReceiveQueue, 6, Modify);
SLOT(IND2SharedReceiveQueue, 7, Notify);
SLOT(IND2SharedReceiveQueue, 8, Receive);
SLOT(IND2MemoryWindow, 0, QueryInterface);
SLOT(IND2MemoryWindow, 1, AddRef);
SLOT(IND2MemoryWindow, 2, Release);
SLOT(IND2MemoryWindow, 3, GetRemoteToken);
SLOT(IND2MemoryRegion, 0, QueryInterface);
SLOT(IND2MemoryRegion, 1, AddRef);
SLOT(IND2MemoryRegion, 2, Release);
SLOT(IND2MemoryRegion, 3, CancelOverlappedRequests);
SLOT(IND2MemoryRegion, 4, GetOverlappedResult);
SLOT(IND2MemoryRegion, 5, Register);
SLOT(IND2MemoryRegion, 6, Deregister);
SLOT(IND2MemoryRegion, 7, GetLocalToken);
SLOT(IND2MemoryRegion, 8, GetRemoteToken);
SLOT(IND2QueuePair, 0, QueryInterface);
SLOT(IND2QueuePair, 1, AddRef);
SLOT(IND2QueuePair, 2, Release);
SLOT(IND2QueuePair, 3, Flush);
SLOT(IND2QueuePair, 4, Send);
SLOT(IND2QueuePair, 5, Receive);
SLOT(IND2QueuePair, 6, Bind);
SLOT(IND2QueuePair, 7, Invalidate);
SLOT(IND2QueuePair, 8, Read);
SLOT(IND2QueuePair, 9, Write);
SLOT(IND2Connector, 0, QueryInterface);
SLOT(IND2Connector, 1, AddRef);
SLOT(IND2Connector, 2, Release);
SLOT(IND2Connector, 3, CancelOverlappedRequests);
SLOT(IND2Connector, 4, GetOverlappedResult);
SLOT(IND2Connector, 5, Bind);
SLOT(IND2Connector, 6, Connect);
SLOT(IND2Connector, 7, CompleteConnect);
SLOT(IND2Connector, 8, Accept);
SLOT(IND2Connector, 9, Reject);
SLOT(IND2Connector, 10, GetReadLimits);
SLOT(IND2Connector, 11, GetPrivateData);
SLOT(IND2Connector, 12, GetLocalAddress);
SLOT(IND2Connector, 13, GetPeerAddress);
SLOT(IND2Connector, 14, NotifyDisconnect);
SLOT(IND2Connector, 15, Disconnect);
SLOT(IND2Listener, 0, QueryInterface);
SLOT(IND2Listener, 1, AddRef);
SLOT(IND2Listener, 2, Release);
SLOT(IND2Listener, 3, CancelOverlappedRequests);
SLOT(IND2Listener, 4, GetOverlappedResult);
SLOT(IND2Listener, 5, Bind);
SLOT(IND2Listener, 6, Listen);
SLOT(IND2Listener, 7, GetLocalAddress);
SLOT(IND2Listener, 8, GetConnectionRequest);
SLOT(IND2Adapter, 0, QueryInterface);
SLOT(IND2Adapter, 1, AddRef);
SLOT(IND2Adapter, 2, Release);
SLOT(IND2Adapter, 3, CreateOverlappedFile);
SLOT(IND2Adapter, 4, Query);
SLOT(IND2Adapter, 5, QueryAddressList);
SLOT(IND2Adapter, 6, CreateCompletionQueue);
SLOT(IND2Adapter, 7, CreateMemoryRegion);
SLOT(IND2Adapter, 8, CreateMemoryWindow);
SLOT(IND2Adapter, 9, CreateSharedReceiveQueue);
SLOT(IND2Adapter, 10, CreateQueuePair);
SLOT(IND2Adapter, 11, CreateQueuePairWithSrq);
SLOT(IND2Adapter, 12, CreateConnector);
SLOT(IND2Adapter, 13, CreateListener);
SLOT(IND2Provider, 0, QueryInterface);
SLOT(IND2Provider, 1, AddRef);
SLOT(IND2Provider, 2, Release);
SLOT(IND2Provider, 3, QueryAddressList);
SLOT(IND2Provider, 4, ResolveAddress);
SLOT(IND2Provider, 5, OpenAdapter);
SLOT(IND2ManaCompletionQueue, 9, GetManaResults);
SLOT(IND2ManaQueuePair, 10, SendWithImmediate);
SLOT(IND2ManaQueuePair, 11, WriteWithImmediate);
#endif

static void the_identifiers_are_those_of_windows(void **state)
{
	static const struct {
		const IID *iid;
		const char *text;
	} all[] = {
		{&IID_IUnknown, "00000000-0000-0000-C000-000000000046"},
		{&IID_IND2Overlapped, "ABF72719-B016-4A40-A6F7-622791A7044C"},
		{&IID_IND2CompletionQueue, "20CC445E-64A0-4CBB-AA75-F6A7251FDA9E"},
		{&IID_IND2SharedReceiveQueue, "AABD67DC-459A-4DB1-826B-56CFCC278883"},
		{&IID_IND2MemoryWindow, "070FE1F5-0AB5-4361-88DB-974BA704D4B9"},
		{&IID_IND2MemoryRegion, "55DFEA2F-BC56-4982-8A45-0301BE46C413"},
		{&IID_IND2QueuePair, "EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE"},
		{&IID_IND2Connector, "7DD615C4-6B4C-4866-950C-F3B1D25A5302"},
		{&IID_IND2Listener, "65D23D83-3A57-4E02-86A4-350165C2D130"},
		{&IID_IND2Adapter, "D89C798C-4823-4D69-846C-DFDCCFF9E5F3"},
		{&IID_IND2Provider, "49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E"},
		{&IID_IND2ManaCompletionQueue, "28925856-4FCC-4479-915C-034426A50B9E"},
		{&IID_IND2ManaQueuePair, "8B1811D5-52DD-4084-8119-15C11AB32FB9"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const uint8_t *d = all[i].iid->Data4;
		char text[40];

		(void)snprintf(text, sizeof(text),
		               "%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X",
		               (unsigned)all[i].iid->Data1, all[i].iid->Data2, all[i].iid->Data3,
		               d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
		assert_string_equal(text, all[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_identifiers_are_those_of_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
