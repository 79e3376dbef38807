/* SPDX-License-Identifier: BSD-2-Clause */
/** @file Flags and structures of NetworkDirect, with their binary sizes. */
#ifndef NDX_NDDEF_H
#define NDX_NDDEF_H

#include "ndx_win32_types.h"

#define ND_VERSION_1 0x1
#define ND_VERSION_2 0x20000
#ifndef NDVER
#define NDVER ND_VERSION_2
#endif

#define ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED 0x00000001
#define ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED 0x00000004
#define ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED 0x00000008
#define ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED 0x00000100
#define ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED 0x00010000

#define ND_CQ_NOTIFY_ERRORS 0
#define ND_CQ_NOTIFY_ANY 1
#define ND_CQ_NOTIFY_SOLICITED 2

#define ND_MR_FLAG_ALLOW_LOCAL_WRITE 0x00000001
#define ND_MR_FLAG_ALLOW_REMOTE_READ 0x00000002
#define ND_MR_FLAG_ALLOW_REMOTE_WRITE 0x00000005
#define ND_MR_FLAG_RDMA_READ_SINK 0x00000008
#define ND_MR_FLAG_DO_NOT_SECURE_VM 0x80000000

#define ND_OP_FLAG_SILENT_SUCCESS 0x00000001
#define ND_OP_FLAG_READ_FENCE 0x00000002
#define ND_OP_FLAG_SEND_AND_SOLICIT_EVENT 0x00000004
#define ND_OP_FLAG_ALLOW_READ 0x00000008
#define ND_OP_FLAG_ALLOW_WRITE 0x00000010
#define ND_OP_FLAG_INLINE 0x00000020

/**
 * Limits of an adapter; all of them may be used at the same time. Fields without an equal in NDX
 * have the values that their comments say.
 */
typedef struct _ND2_ADAPTER_INFO {
	ULONG InfoVersion; /**< 1 or ND_VERSION_2 before the call, and unchanged by it */
	UINT16 VendorId;   /**< lower 16 bits of the PCI vendor; 0: a software device */
	UINT16 DeviceId;   /**< lower 16 bits of the PCI device */
	UINT64 AdapterId;
	SIZE_T MaxRegistrationSize; /**< bytes, as all sizes and lengths here */
	SIZE_T MaxWindowSize;       /**< 0: the adapter has no windows */
	ULONG MaxInitiatorSge;
	ULONG MaxReceiveSge;
	ULONG MaxReadSge;
	ULONG MaxTransferLength;
	ULONG MaxInlineDataSize;
	ULONG MaxInboundReadLimit;
	ULONG MaxOutboundReadLimit;
	/** An odd number, at most one less than NDX offers: programs that give half of the queue
	 * back at a time lose a receive with each half of an even one. */
	ULONG MaxReceiveQueueDepth;
	ULONG MaxInitiatorQueueDepth;     /**< the same as MaxReceiveQueueDepth */
	ULONG MaxSharedReceiveQueueDepth; /**< 0: the adapter has no shared receive queues */
	ULONG MaxCompletionQueueDepth;
	/** Inline requests are faster below this length; 0: never. At most MaxInlineDataSize. */
	ULONG InlineRequestThreshold;
	/** Reads and writes are faster than sends above this length. NDX's value for the provider,
	 * measured on software devices: a hint. */
	ULONG LargeRequestThreshold;
	ULONG MaxCallerData;
	ULONG MaxCalleeData;
	/** MULTI_ENGINE is never set: NDX does not know the engines of a device. */
	ULONG AdapterFlags;
} ND2_ADAPTER_INFO;

typedef enum _ND2_REQUEST_TYPE {
	Nd2RequestTypeReceive,
	Nd2RequestTypeSend,
	Nd2RequestTypeBind,
	Nd2RequestTypeInvalidate,
	Nd2RequestTypeRead,
	Nd2RequestTypeWrite
} ND2_REQUEST_TYPE;

/** How a request ended. BytesTransferred is defined for receives only. */
typedef struct _ND2_RESULT {
	HRESULT Status;
	ULONG BytesTransferred;
	VOID *QueuePairContext;
	VOID *RequestContext;
	ND2_REQUEST_TYPE RequestType;
} ND2_RESULT;

/** A piece of local memory, with IND2MemoryRegion::GetLocalToken(). */
typedef struct _ND2_SGE {
	VOID *Buffer;
	ULONG BufferLength;
	UINT32 MemoryRegionToken;
} ND2_SGE;

#endif
