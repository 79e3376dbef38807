/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * The interfaces of NetworkDirect version 2, over NDX. The order of the functions and the
 * identifiers are the binary interface. docs/porting-statuses.md has the statuses of every call,
 * docs/porting-from-windows.md what differs from Windows.
 *
 * Thread safety: any thread may call any function. The Release() of the last reference must not run
 * beside another call on the same object. These calls block: Release() of a connected queue pair,
 * up to the drain time-out (disconnect first), Flush(), and GetOverlappedResult() with `wait`.
 *
 * In C, call through lpVtbl, or define COBJMACROS for macros such as
 * IND2QueuePair_Send(qp, context, sge, 1, 0).
 */
#ifndef NDX_NDSPI_H
#define NDX_NDSPI_H

#include "winsock2.h"
#include "unknwn.h"
#include "ndstatus.h"
#include "nddef.h"

#ifdef __cplusplus
struct INDAdapter; /* version 1, which NDX does not have */
#else
typedef struct INDAdapter INDAdapter;
#endif

/* clang-format off */

DEFINE_GUID(IID_IND2Overlapped, 0xABF72719, 0xB016, 0x4A40,
	    0xA6, 0xF7, 0x62, 0x27, 0x91, 0xA7, 0x04, 0x4C);

#undef INTERFACE
#define INTERFACE IND2Overlapped
/**
 * Objects with calls that end later. Such a call returns ND_PENDING, or fails at once and then
 * completes nothing. Each pending call completes once: the status is in OVERLAPPED::Internal, the
 * event hEvent is set, and the port of the object's overlapped file gets a packet.
 */
DECLARE_INTERFACE_(IND2Overlapped, IUnknown)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	/** All pending calls of the object complete ND_CANCELED before this call returns, in order. */
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	/** How the call on this OVERLAPPED ended, whichever object it was made on. wait: sleep until it
	 * has; else ND_PENDING. */
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
};

DEFINE_GUID(IID_IND2CompletionQueue, 0x20CC445E, 0x64A0, 0x4CBB,
	    0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E);

#undef INTERFACE
#define INTERFACE IND2CompletionQueue
/** A queue of results. */
DECLARE_INTERFACE_(IND2CompletionQueue, IND2Overlapped)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
	/** The processors of the notifications. ND_NOT_SUPPORTED: unknown. */
	STDMETHOD(GetNotifyAffinity)(THIS_ USHORT *pGroup, KAFFINITY *pAffinity) PURE;
	/** ND_BUFFER_OVERFLOW: more results are queued. ND_NOT_SUPPORTED: see AdapterFlags. */
	STDMETHOD(Resize)(THIS_ ULONG queueDepth) PURE;
	/** Pending until a result comes that has fired no notification yet. type: ND_CQ_NOTIFY_... */
	STDMETHOD(Notify)(THIS_ ULONG type, OVERLAPPED *pOverlapped) PURE;
	/** Take up to nResults results; never blocks. Fewer: the queue is empty. */
	STDMETHOD_(ULONG, GetResults)(THIS_ ND2_RESULT results[], ULONG nResults) PURE;
};

DEFINE_GUID(IID_IND2SharedReceiveQueue, 0xAABD67DC, 0x459A, 0x4DB1,
	    0x82, 0x6B, 0x56, 0xCF, 0xCC, 0x27, 0x88, 0x83);

#undef INTERFACE
#define INTERFACE IND2SharedReceiveQueue
/** Receives that several queue pairs share. Optional: MaxSharedReceiveQueueDepth. */
DECLARE_INTERFACE_(IND2SharedReceiveQueue, IND2Overlapped)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
	/** As of a completion queue. */
	STDMETHOD(GetNotifyAffinity)(THIS_ USHORT *pGroup, KAFFINITY *pAffinity) PURE;
	/** 0 leaves a value unchanged. ND_BUFFER_OVERFLOW: more receives are posted. */
	STDMETHOD(Modify)(THIS_ ULONG queueDepth, ULONG notifyThreshold) PURE;
	/** Pending until fewer receives are left than the threshold says. */
	STDMETHOD(Notify)(THIS_ OVERLAPPED *pOverlapped) PURE;
	/** As of a queue pair. */
	STDMETHOD(Receive)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge) PURE;
};

DEFINE_GUID(IID_IND2MemoryWindow, 0x070FE1F5, 0x0AB5, 0x4361,
	    0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9);

#undef INTERFACE
#define INTERFACE IND2MemoryWindow
/** A right to a part of a region, which a queue pair binds. */
DECLARE_INTERFACE_(IND2MemoryWindow, IUnknown)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	/** Valid as soon as IND2QueuePair::Bind has returned. */
	STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

DEFINE_GUID(IID_IND2MemoryRegion, 0x55DFEA2F, 0xBC56, 0x4982,
	    0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13);

#undef INTERFACE
#define INTERFACE IND2MemoryRegion
/** Memory that the adapter may access. */
DECLARE_INTERFACE_(IND2MemoryRegion, IND2Overlapped)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
	/** flags: ND_MR_FLAG_...; DO_NOT_SECURE_VM is accepted and has no effect. */
	STDMETHOD(Register)(THIS_ const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags,
		OVERLAPPED *pOverlapped) PURE;
	/** ND_DEVICE_BUSY: windows are bound. Needed before Release only to learn when it is done. */
	STDMETHOD(Deregister)(THIS_ OVERLAPPED *pOverlapped) PURE;
	/** For ND2_SGE, while registered. */
	STDMETHOD_(UINT32, GetLocalToken)(THIS) PURE;
	/** For the peer: send the four bytes unchanged. */
	STDMETHOD_(UINT32, GetRemoteToken)(THIS) PURE;
};

DEFINE_GUID(IID_IND2QueuePair, 0xEEF2F332, 0xB75D, 0x4063,
	    0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE);

#undef INTERFACE
#define INTERFACE IND2QueuePair
/**
 * Where requests are posted. A post returns ND_SUCCESS, or fails and posts nothing; the queue pair
 * stays usable.
 */
DECLARE_INTERFACE_(IND2QueuePair, IUnknown)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	/** All requests complete ND_CANCELED; the results are in the queue when the call returns. A
	 * connection ends. */
	STDMETHOD(Flush)(THIS) PURE;
	/** flags: SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, INLINE. */
	STDMETHOD(Send)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		ULONG flags) PURE;
	/** Allowed at any time, also before a connection. */
	STDMETHOD(Receive)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge) PURE;
	/** flags: SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE. */
	STDMETHOD(Bind)(THIS_ VOID *requestContext, IUnknown *pMemoryRegion,
		IUnknown *pMemoryWindow, const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags) PURE;
	/** flags: SILENT_SUCCESS, READ_FENCE. */
	STDMETHOD(Invalidate)(THIS_ VOID *requestContext, IUnknown *pMemoryWindow,
		ULONG flags) PURE;
	/** flags: SILENT_SUCCESS, READ_FENCE. remoteAddress is in host byte order. */
	STDMETHOD(Read)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		UINT64 remoteAddress, UINT32 remoteToken, ULONG flags) PURE;
	/** flags: SILENT_SUCCESS, READ_FENCE, INLINE. */
	STDMETHOD(Write)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		UINT64 remoteAddress, UINT32 remoteToken, ULONG flags) PURE;
};

DEFINE_GUID(IID_IND2Connector, 0x7DD615C4, 0x6B4C, 0x4866,
	    0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02);

#undef INTERFACE
#define INTERFACE IND2Connector
/** One end of a connection. */
DECLARE_INTERFACE_(IND2Connector, IND2Overlapped)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
	/** Optional before Connect. Port 0: any. */
	STDMETHOD(Bind)(THIS_ const struct sockaddr *pAddress, ULONG cbAddress) PURE;
	/** Completes when the peer has accepted or refused. After REFUSED, UNREACHABLE and IO_TIMEOUT the
	 * connector may connect again. */
	STDMETHOD(Connect)(THIS_ IUnknown *pQueuePair, const struct sockaddr *pDestAddress,
		ULONG cbDestAddress, ULONG inboundReadLimit, ULONG outboundReadLimit,
		const VOID *pPrivateData, ULONG cbPrivateData, OVERLAPPED *pOverlapped) PURE;
	/** Until this call the peer's Accept is pending. */
	STDMETHOD(CompleteConnect)(THIS_ OVERLAPPED *pOverlapped) PURE;
	/** Completes when the active side has completed or rejected the connection. */
	STDMETHOD(Accept)(THIS_ IUnknown *pQueuePair, ULONG inboundReadLimit,
		ULONG outboundReadLimit, const VOID *pPrivateData, ULONG cbPrivateData,
		OVERLAPPED *pOverlapped) PURE;
	/** On either side. The connector cannot be used again. */
	STDMETHOD(Reject)(THIS_ const VOID *pPrivateData, ULONG cbPrivateData) PURE;
	/** Crossed and limited: *pInboundReadLimit limits the peer's reads. */
	STDMETHOD(GetReadLimits)(THIS_ ULONG *pInboundReadLimit, ULONG *pOutboundReadLimit) PURE;
	/** ND_BUFFER_OVERFLOW copies what fits. The length is exact, without padding. */
	STDMETHOD(GetPrivateData)(THIS_ VOID *pPrivateData, ULONG *pcbPrivateData) PURE;
	/** ND_BUFFER_OVERFLOW copies nothing, as the next. */
	STDMETHOD(GetLocalAddress)(THIS_ struct sockaddr *pAddress, ULONG *pcbAddress) PURE;
	/** Also before Accept. */
	STDMETHOD(GetPeerAddress)(THIS_ struct sockaddr *pAddress, ULONG *pcbAddress) PURE;
	/** Pending until the connection ends. Any number may be pending. */
	STDMETHOD(NotifyDisconnect)(THIS_ OVERLAPPED *pOverlapped) PURE;
	/** Ends gracefully: completes when the peer has said goodbye and all requests have ended. */
	STDMETHOD(Disconnect)(THIS_ OVERLAPPED *pOverlapped) PURE;
};

DEFINE_GUID(IID_IND2Listener, 0x65D23D83, 0x3A57, 0x4E02,
	    0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30);

#undef INTERFACE
#define INTERFACE IND2Listener
/** Takes requests for connections. */
DECLARE_INTERFACE_(IND2Listener, IND2Overlapped)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
	/** The unspecified address means all addresses of the adapter. Port 0: any. */
	STDMETHOD(Bind)(THIS_ const struct sockaddr *pAddress, ULONG cbAddress) PURE;
	/** backlog 0: no limit but that of the provider. */
	STDMETHOD(Listen)(THIS_ ULONG backlog) PURE;
	/** ND_INVALID_DEVICE_STATE: not listening. */
	STDMETHOD(GetLocalAddress)(THIS_ struct sockaddr *pAddress, ULONG *pcbAddress) PURE;
	/** Pending until a request is in the connector, which is new. In order. */
	STDMETHOD(GetConnectionRequest)(THIS_ IUnknown *pConnector, OVERLAPPED *pOverlapped) PURE;
};

DEFINE_GUID(IID_IND2Adapter, 0xD89C798C, 0x4823, 0x4D69,
	    0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3);

#undef INTERFACE
#define INTERFACE IND2Adapter
/** An open adapter. Objects that are used together are of one instance of it. */
DECLARE_INTERFACE_(IND2Adapter, IUnknown)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	/** A file for the completions of objects; release it with CloseHandle(), at any time. */
	STDMETHOD(CreateOverlappedFile)(THIS_ HANDLE *phOverlappedFile) PURE;
	/** ND_BUFFER_OVERFLOW sets *pcbInfo to what is needed. */
	STDMETHOD(Query)(THIS_ ND2_ADAPTER_INFO *pInfo, ULONG *pcbInfo) PURE;
	/** ND_BUFFER_OVERFLOW sets *pcbAddressList to what is needed. */
	STDMETHOD(QueryAddressList)(THIS_ SOCKET_ADDRESS_LIST *pAddressList,
		ULONG *pcbAddressList) PURE;
	/** affinity 0: any processor. */
	STDMETHOD(CreateCompletionQueue)(THIS_ REFIID iid, HANDLE hOverlappedFile,
		ULONG queueDepth, USHORT group, KAFFINITY affinity, VOID **ppCompletionQueue) PURE;
	STDMETHOD(CreateMemoryRegion)(THIS_ REFIID iid, HANDLE hOverlappedFile,
		VOID **ppMemoryRegion) PURE;
	/** ND_NOT_SUPPORTED: MaxWindowSize is 0. */
	STDMETHOD(CreateMemoryWindow)(THIS_ REFIID iid, VOID **ppMemoryWindow) PURE;
	/** notifyThreshold 0: no notifications. */
	STDMETHOD(CreateSharedReceiveQueue)(THIS_ REFIID iid, HANDLE hOverlappedFile,
		ULONG queueDepth, ULONG maxRequestSge, ULONG notifyThreshold, USHORT group,
		KAFFINITY affinity, VOID **ppSharedReceiveQueue) PURE;
	/** context is in each result. The adapter may grant more than asked for. */
	STDMETHOD(CreateQueuePair)(THIS_ REFIID iid, IUnknown *pReceiveCompletionQueue,
		IUnknown *pInitiatorCompletionQueue, VOID *context, ULONG receiveQueueDepth,
		ULONG initiatorQueueDepth, ULONG maxReceiveRequestSge, ULONG maxInitiatorRequestSge,
		ULONG inlineDataSize, VOID **ppQueuePair) PURE;
	STDMETHOD(CreateQueuePairWithSrq)(THIS_ REFIID iid, IUnknown *pReceiveCompletionQueue,
		IUnknown *pInitiatorCompletionQueue, IUnknown *pSharedReceiveQueue, VOID *context,
		ULONG initiatorQueueDepth, ULONG maxInitiatorRequestSge, ULONG inlineDataSize,
		VOID **ppQueuePair) PURE;
	STDMETHOD(CreateConnector)(THIS_ REFIID iid, HANDLE hOverlappedFile,
		VOID **ppConnector) PURE;
	STDMETHOD(CreateListener)(THIS_ REFIID iid, HANDLE hOverlappedFile, VOID **ppListener) PURE;
};

DEFINE_GUID(IID_IND2Provider, 0x49EAE6C1, 0x76C4, 0x46D0,
	    0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E);

#undef INTERFACE
#define INTERFACE IND2Provider
/** All adapters of NDX. NdOpenAdapter() is the shorter way. */
DECLARE_INTERFACE_(IND2Provider, IUnknown)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	/** Addresses of all adapters, port 0. */
	STDMETHOD(QueryAddressList)(THIS_ SOCKET_ADDRESS_LIST *pAddressList,
		ULONG *pcbAddressList) PURE;
	/** The adapter with this local address; ND_INVALID_ADDRESS: none. */
	STDMETHOD(ResolveAddress)(THIS_ const struct sockaddr *pAddress, ULONG cbAddress,
		UINT64 *pAdapterId) PURE;
	/** ND_INVALID_PARAMETER: no such adapter. */
	STDMETHOD(OpenAdapter)(THIS_ REFIID iid, UINT64 adapterId, VOID **ppAdapter) PURE;
};

#if defined(COBJMACROS) && !defined(__cplusplus)
#define NDX_ND_CALL(This, method, ...) ((This)->lpVtbl->method((This), ##__VA_ARGS__))
#define IND2Overlapped_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2Overlapped_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2Overlapped_Release(This) NDX_ND_CALL(This, Release)
#define IND2Overlapped_CancelOverlappedRequests(This) NDX_ND_CALL(This, CancelOverlappedRequests)
#define IND2Overlapped_GetOverlappedResult(This, ...) \
	NDX_ND_CALL(This, GetOverlappedResult, __VA_ARGS__)
#define IND2CompletionQueue_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2CompletionQueue_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2CompletionQueue_Release(This) NDX_ND_CALL(This, Release)
#define IND2CompletionQueue_CancelOverlappedRequests(This) \
	NDX_ND_CALL(This, CancelOverlappedRequests)
#define IND2CompletionQueue_GetOverlappedResult(This, ...) \
	NDX_ND_CALL(This, GetOverlappedResult, __VA_ARGS__)
#define IND2CompletionQueue_GetNotifyAffinity(This, ...) \
	NDX_ND_CALL(This, GetNotifyAffinity, __VA_ARGS__)
#define IND2CompletionQueue_Resize(This, ...) NDX_ND_CALL(This, Resize, __VA_ARGS__)
#define IND2CompletionQueue_Notify(This, ...) NDX_ND_CALL(This, Notify, __VA_ARGS__)
#define IND2CompletionQueue_GetResults(This, ...) NDX_ND_CALL(This, GetResults, __VA_ARGS__)
#define IND2SharedReceiveQueue_QueryInterface(This, ...) \
	NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2SharedReceiveQueue_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2SharedReceiveQueue_Release(This) NDX_ND_CALL(This, Release)
#define IND2SharedReceiveQueue_CancelOverlappedRequests(This) \
	NDX_ND_CALL(This, CancelOverlappedRequests)
#define IND2SharedReceiveQueue_GetOverlappedResult(This, ...) \
	NDX_ND_CALL(This, GetOverlappedResult, __VA_ARGS__)
#define IND2SharedReceiveQueue_GetNotifyAffinity(This, ...) \
	NDX_ND_CALL(This, GetNotifyAffinity, __VA_ARGS__)
#define IND2SharedReceiveQueue_Modify(This, ...) NDX_ND_CALL(This, Modify, __VA_ARGS__)
#define IND2SharedReceiveQueue_Notify(This, ...) NDX_ND_CALL(This, Notify, __VA_ARGS__)
#define IND2SharedReceiveQueue_Receive(This, ...) NDX_ND_CALL(This, Receive, __VA_ARGS__)
#define IND2MemoryWindow_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2MemoryWindow_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2MemoryWindow_Release(This) NDX_ND_CALL(This, Release)
#define IND2MemoryWindow_GetRemoteToken(This) NDX_ND_CALL(This, GetRemoteToken)
#define IND2MemoryRegion_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2MemoryRegion_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2MemoryRegion_Release(This) NDX_ND_CALL(This, Release)
#define IND2MemoryRegion_CancelOverlappedRequests(This) NDX_ND_CALL(This, CancelOverlappedRequests)
#define IND2MemoryRegion_GetOverlappedResult(This, ...) \
	NDX_ND_CALL(This, GetOverlappedResult, __VA_ARGS__)
#define IND2MemoryRegion_Register(This, ...) NDX_ND_CALL(This, Register, __VA_ARGS__)
#define IND2MemoryRegion_Deregister(This, ...) NDX_ND_CALL(This, Deregister, __VA_ARGS__)
#define IND2MemoryRegion_GetLocalToken(This) NDX_ND_CALL(This, GetLocalToken)
#define IND2MemoryRegion_GetRemoteToken(This) NDX_ND_CALL(This, GetRemoteToken)
#define IND2QueuePair_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2QueuePair_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2QueuePair_Release(This) NDX_ND_CALL(This, Release)
#define IND2QueuePair_Flush(This) NDX_ND_CALL(This, Flush)
#define IND2QueuePair_Send(This, ...) NDX_ND_CALL(This, Send, __VA_ARGS__)
#define IND2QueuePair_Receive(This, ...) NDX_ND_CALL(This, Receive, __VA_ARGS__)
#define IND2QueuePair_Bind(This, ...) NDX_ND_CALL(This, Bind, __VA_ARGS__)
#define IND2QueuePair_Invalidate(This, ...) NDX_ND_CALL(This, Invalidate, __VA_ARGS__)
#define IND2QueuePair_Read(This, ...) NDX_ND_CALL(This, Read, __VA_ARGS__)
#define IND2QueuePair_Write(This, ...) NDX_ND_CALL(This, Write, __VA_ARGS__)
#define IND2Connector_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2Connector_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2Connector_Release(This) NDX_ND_CALL(This, Release)
#define IND2Connector_CancelOverlappedRequests(This) NDX_ND_CALL(This, CancelOverlappedRequests)
#define IND2Connector_GetOverlappedResult(This, ...) \
	NDX_ND_CALL(This, GetOverlappedResult, __VA_ARGS__)
#define IND2Connector_Bind(This, ...) NDX_ND_CALL(This, Bind, __VA_ARGS__)
#define IND2Connector_Connect(This, ...) NDX_ND_CALL(This, Connect, __VA_ARGS__)
#define IND2Connector_CompleteConnect(This, ...) NDX_ND_CALL(This, CompleteConnect, __VA_ARGS__)
#define IND2Connector_Accept(This, ...) NDX_ND_CALL(This, Accept, __VA_ARGS__)
#define IND2Connector_Reject(This, ...) NDX_ND_CALL(This, Reject, __VA_ARGS__)
#define IND2Connector_GetReadLimits(This, ...) NDX_ND_CALL(This, GetReadLimits, __VA_ARGS__)
#define IND2Connector_GetPrivateData(This, ...) NDX_ND_CALL(This, GetPrivateData, __VA_ARGS__)
#define IND2Connector_GetLocalAddress(This, ...) NDX_ND_CALL(This, GetLocalAddress, __VA_ARGS__)
#define IND2Connector_GetPeerAddress(This, ...) NDX_ND_CALL(This, GetPeerAddress, __VA_ARGS__)
#define IND2Connector_NotifyDisconnect(This, ...) NDX_ND_CALL(This, NotifyDisconnect, __VA_ARGS__)
#define IND2Connector_Disconnect(This, ...) NDX_ND_CALL(This, Disconnect, __VA_ARGS__)
#define IND2Listener_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2Listener_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2Listener_Release(This) NDX_ND_CALL(This, Release)
#define IND2Listener_CancelOverlappedRequests(This) NDX_ND_CALL(This, CancelOverlappedRequests)
#define IND2Listener_GetOverlappedResult(This, ...) \
	NDX_ND_CALL(This, GetOverlappedResult, __VA_ARGS__)
#define IND2Listener_Bind(This, ...) NDX_ND_CALL(This, Bind, __VA_ARGS__)
#define IND2Listener_Listen(This, ...) NDX_ND_CALL(This, Listen, __VA_ARGS__)
#define IND2Listener_GetLocalAddress(This, ...) NDX_ND_CALL(This, GetLocalAddress, __VA_ARGS__)
#define IND2Listener_GetConnectionRequest(This, ...) \
	NDX_ND_CALL(This, GetConnectionRequest, __VA_ARGS__)
#define IND2Adapter_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2Adapter_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2Adapter_Release(This) NDX_ND_CALL(This, Release)
#define IND2Adapter_CreateOverlappedFile(This, ...) \
	NDX_ND_CALL(This, CreateOverlappedFile, __VA_ARGS__)
#define IND2Adapter_Query(This, ...) NDX_ND_CALL(This, Query, __VA_ARGS__)
#define IND2Adapter_QueryAddressList(This, ...) NDX_ND_CALL(This, QueryAddressList, __VA_ARGS__)
#define IND2Adapter_CreateCompletionQueue(This, ...) \
	NDX_ND_CALL(This, CreateCompletionQueue, __VA_ARGS__)
#define IND2Adapter_CreateMemoryRegion(This, ...) NDX_ND_CALL(This, CreateMemoryRegion, __VA_ARGS__)
#define IND2Adapter_CreateMemoryWindow(This, ...) NDX_ND_CALL(This, CreateMemoryWindow, __VA_ARGS__)
#define IND2Adapter_CreateSharedReceiveQueue(This, ...) \
	NDX_ND_CALL(This, CreateSharedReceiveQueue, __VA_ARGS__)
#define IND2Adapter_CreateQueuePair(This, ...) NDX_ND_CALL(This, CreateQueuePair, __VA_ARGS__)
#define IND2Adapter_CreateQueuePairWithSrq(This, ...) \
	NDX_ND_CALL(This, CreateQueuePairWithSrq, __VA_ARGS__)
#define IND2Adapter_CreateConnector(This, ...) NDX_ND_CALL(This, CreateConnector, __VA_ARGS__)
#define IND2Adapter_CreateListener(This, ...) NDX_ND_CALL(This, CreateListener, __VA_ARGS__)
#define IND2Provider_QueryInterface(This, ...) NDX_ND_CALL(This, QueryInterface, __VA_ARGS__)
#define IND2Provider_AddRef(This) NDX_ND_CALL(This, AddRef)
#define IND2Provider_Release(This) NDX_ND_CALL(This, Release)
#define IND2Provider_QueryAddressList(This, ...) NDX_ND_CALL(This, QueryAddressList, __VA_ARGS__)
#define IND2Provider_ResolveAddress(This, ...) NDX_ND_CALL(This, ResolveAddress, __VA_ARGS__)
#define IND2Provider_OpenAdapter(This, ...) NDX_ND_CALL(This, OpenAdapter, __VA_ARGS__)
#endif

#endif
