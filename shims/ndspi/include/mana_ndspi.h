/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Immediate data, by the interfaces that the adapter of Azure (MANA) adds to NetworkDirect: their
 * identifiers, functions and structures. Ask an object by QueryInterface, or name the identifier
 * when it is created. E_NOINTERFACE: the adapter lacks immediate data.
 */
#ifndef NDX_MANA_NDSPI_H
#define NDX_MANA_NDSPI_H

#include "ndspi.h"

typedef enum _ND2_MANA_REQUEST_TYPE {
	Nd2ManaRequestTypeSend = 0,
	Nd2ManaRequestTypeBind = 1,
	Nd2ManaRequestTypeInvalidate = 2,
	Nd2ManaRequestTypeRead = 3,
	Nd2ManaRequestTypeWrite = 4,
	Nd2ManaRequestTypeRecv = 0x80,
	Nd2ManaRequestTypeRecvWithInvalidate = 0x81, /**< never: NDX has no send with invalidate */
	Nd2ManaRequestTypeRecvWithImmediate = 0x82,
	Nd2ManaRequestTypeRecvRdmaWithImmediate = 0x83 /**< the receive of a write with immediate */
} ND2_MANA_REQUEST_TYPE;

/** ND2_RESULT with immediate data. */
typedef struct _ND2_MANA_RESULT {
	HRESULT Status;
	ULONG BytesTransferred;
	VOID *QueuePairContext;
	VOID *RequestContext;
	ND2_MANA_REQUEST_TYPE RequestType;
	UINT32 ImmediateDataOrRKey; /**< in host byte order */
} ND2_MANA_RESULT;

/* clang-format off */

DEFINE_GUID(IID_IND2ManaCompletionQueue, 0x28925856, 0x4FCC, 0x4479,
	    0x91, 0x5C, 0x03, 0x44, 0x26, 0xA5, 0x0B, 0x9E);

#undef INTERFACE
#define INTERFACE IND2ManaCompletionQueue
/** A completion queue that tells immediate data. */
DECLARE_INTERFACE_(IND2ManaCompletionQueue, IND2CompletionQueue)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CancelOverlappedRequests)(THIS) PURE;
	STDMETHOD(GetOverlappedResult)(THIS_ OVERLAPPED *pOverlapped, BOOL wait) PURE;
	STDMETHOD(GetNotifyAffinity)(THIS_ USHORT *pGroup, KAFFINITY *pAffinity) PURE;
	STDMETHOD(Resize)(THIS_ ULONG queueDepth) PURE;
	STDMETHOD(Notify)(THIS_ ULONG type, OVERLAPPED *pOverlapped) PURE;
	STDMETHOD_(ULONG, GetResults)(THIS_ ND2_RESULT results[], ULONG nResults) PURE;
	/** As GetResults; both take from one queue. */
	STDMETHOD_(ULONG, GetManaResults)(THIS_ ND2_MANA_RESULT results[], ULONG nResults) PURE;
};

DEFINE_GUID(IID_IND2ManaQueuePair, 0x8B1811D5, 0x52DD, 0x4084,
	    0x81, 0x19, 0x15, 0xC1, 0x1A, 0xB3, 0x2F, 0xB9);

#undef INTERFACE
#define INTERFACE IND2ManaQueuePair
/** A queue pair that sends immediate data. */
DECLARE_INTERFACE_(IND2ManaQueuePair, IND2QueuePair)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID *ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(Flush)(THIS) PURE;
	STDMETHOD(Send)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		ULONG flags) PURE;
	STDMETHOD(Receive)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge) PURE;
	STDMETHOD(Bind)(THIS_ VOID *requestContext, IUnknown *pMemoryRegion,
		IUnknown *pMemoryWindow, const VOID *pBuffer, SIZE_T cbBuffer, ULONG flags) PURE;
	STDMETHOD(Invalidate)(THIS_ VOID *requestContext, IUnknown *pMemoryWindow,
		ULONG flags) PURE;
	STDMETHOD(Read)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		UINT64 remoteAddress, UINT32 remoteToken, ULONG flags) PURE;
	STDMETHOD(Write)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		UINT64 remoteAddress, UINT32 remoteToken, ULONG flags) PURE;
	/** As Send; the peer's receive has the immediate data. */
	STDMETHOD(SendWithImmediate)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		ULONG flags, UINT32 immediateData) PURE;
	/** As Write, and a receive of the peer completes with the immediate data; its memory is not
	 * used. Also takes SEND_AND_SOLICIT_EVENT. */
	STDMETHOD(WriteWithImmediate)(THIS_ VOID *requestContext, const ND2_SGE sge[], ULONG nSge,
		UINT64 remoteAddress, UINT32 remoteToken, ULONG flags, UINT32 immediateData) PURE;
};
	/* clang-format on */

#endif
