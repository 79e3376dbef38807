// SPDX-License-Identifier: BSD-2-Clause
// What a program written for NetworkDirect's COM interfaces sees: the types, values and method
// order of the binary interface, declared anew and no more of them than the facade needs.
#ifndef COM_TYPES_HPP
#define COM_TYPES_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/socket.h>

namespace nd
{

using HRESULT = std::int32_t;
using ULONG = std::uint32_t;
using USHORT = std::uint16_t;
using BOOL = std::int32_t;
using SIZE_T = std::size_t;
using KAFFINITY = std::uintptr_t;
using HANDLE = void *;

struct GUID {
	std::uint32_t a;
	std::uint16_t b, c;
	std::uint8_t d[8];
};

inline bool operator==(const GUID &left, const GUID &right)
{
	return std::memcmp(&left, &right, sizeof(left)) == 0;
}

constexpr HRESULT hr(std::uint32_t value)
{
	return static_cast<HRESULT>(value);
}

constexpr HRESULT E_NO_INTERFACE = hr(0x80004002);
constexpr HRESULT ND_SUCCESS = 0;
constexpr HRESULT ND_PENDING = hr(0x00000103);
constexpr HRESULT ND_BUFFER_OVERFLOW = hr(0x80000005);
constexpr HRESULT ND_DEVICE_BUSY = hr(0x80000011);
constexpr HRESULT ND_NO_MORE_ENTRIES = hr(0x8000001A);
constexpr HRESULT ND_UNSUCCESSFUL = hr(0xC0000001);
constexpr HRESULT ND_ACCESS_VIOLATION = hr(0xC0000005);
constexpr HRESULT ND_INVALID_PARAMETER = hr(0xC000000D);
constexpr HRESULT ND_INVALID_DEVICE_REQUEST = hr(0xC0000010);
constexpr HRESULT ND_NO_MEMORY = hr(0xC0000017);
constexpr HRESULT ND_DATA_OVERRUN = hr(0xC000003C);
constexpr HRESULT ND_SHARING_VIOLATION = hr(0xC0000043);
constexpr HRESULT ND_INSUFFICIENT_RESOURCES = hr(0xC000009A);
constexpr HRESULT ND_DEVICE_NOT_READY = hr(0xC00000A3);
constexpr HRESULT ND_IO_TIMEOUT = hr(0xC00000B5);
constexpr HRESULT ND_NOT_SUPPORTED = hr(0xC00000BB);
constexpr HRESULT ND_BAD_NETWORK_NAME = hr(0xC00000CC);
constexpr HRESULT ND_INTERNAL_ERROR = hr(0xC00000E5);
constexpr HRESULT ND_INVALID_PARAMETER_1 = hr(0xC00000EF);
constexpr HRESULT ND_CANCELED = hr(0xC0000120);
constexpr HRESULT ND_REMOTE_ERROR = hr(0xC000013D);
constexpr HRESULT ND_INVALID_ADDRESS = hr(0xC0000141);
constexpr HRESULT ND_INVALID_DEVICE_STATE = hr(0xC0000184);
constexpr HRESULT ND_INVALID_BUFFER_SIZE = hr(0xC0000206);
constexpr HRESULT ND_TOO_MANY_ADDRESSES = hr(0xC0000209);
constexpr HRESULT ND_ADDRESS_ALREADY_EXISTS = hr(0xC000020A);
constexpr HRESULT ND_CONNECTION_REFUSED = hr(0xC0000236);
constexpr HRESULT ND_ADDRESS_ALREADY_ASSOCIATED = hr(0xC0000238);
constexpr HRESULT ND_CONNECTION_INVALID = hr(0xC000023A);
constexpr HRESULT ND_CONNECTION_ACTIVE = hr(0xC000023B);
constexpr HRESULT ND_NETWORK_UNREACHABLE = hr(0xC000023C);
constexpr HRESULT ND_HOST_UNREACHABLE = hr(0xC000023D);
constexpr HRESULT ND_CONNECTION_ABORTED = hr(0xC0000241);
constexpr HRESULT ND_DEVICE_REMOVED = hr(0xC00002B6);

/// The n-th argument is wrong.
constexpr HRESULT invalid_parameter(std::uint32_t n)
{
	return hr(static_cast<std::uint32_t>(ND_INVALID_PARAMETER_1) + n - 1);
}

/// The caller's object for one asynchronous call. Programs derive from it, so it has exactly these
/// members, and the library's state is elsewhere.
struct OVERLAPPED {
	std::uintptr_t Internal; ///< status
	std::uintptr_t InternalHigh;
	void *Pointer;
	HANDLE hEvent;
};
static_assert(sizeof(OVERLAPPED) == 32, "part of the binary interface");

struct ND2_SGE {
	void *Buffer;
	ULONG BufferLength;
	std::uint32_t MemoryRegionToken;
};
static_assert(sizeof(ND2_SGE) == 16, "part of the binary interface");

struct ND2_RESULT {
	HRESULT Status;
	ULONG BytesTransferred;
	void *QueuePairContext;
	void *RequestContext;
	std::uint32_t RequestType;
};
static_assert(sizeof(ND2_RESULT) == 32, "part of the binary interface");

struct ND2_ADAPTER_INFO {
	ULONG InfoVersion;
	std::uint16_t VendorId, DeviceId;
	std::uint64_t AdapterId;
	SIZE_T MaxRegistrationSize, MaxWindowSize;
	ULONG MaxInitiatorSge, MaxReceiveSge, MaxReadSge;
	ULONG MaxTransferLength, MaxInlineDataSize;
	ULONG MaxInboundReadLimit, MaxOutboundReadLimit;
	ULONG MaxReceiveQueueDepth, MaxInitiatorQueueDepth;
	ULONG MaxSharedReceiveQueueDepth, MaxCompletionQueueDepth;
	ULONG InlineRequestThreshold, LargeRequestThreshold;
	ULONG MaxCallerData, MaxCalleeData;
	ULONG AdapterFlags;
};
static_assert(sizeof(ND2_ADAPTER_INFO) == 96, "part of the binary interface");

constexpr ULONG FLAG_IN_ORDER_DMA = 0x1;
constexpr ULONG FLAG_INTERRUPT_MODERATION = 0x4;
constexpr ULONG FLAG_CQ_RESIZE = 0x100;
constexpr ULONG FLAG_LOOPBACK = 0x10000;
constexpr ULONG MR_DO_NOT_SECURE_VM = 0x80000000;

struct SOCKET_ADDRESS {
	sockaddr *lpSockaddr;
	std::int32_t iSockaddrLength;
};

struct SOCKET_ADDRESS_LIST {
	std::int32_t iAddressCount;
	SOCKET_ADDRESS Address[1];
};

// The interfaces; the order of the methods is the order of the slots. COM deletes objects through
// Release() and has no virtual destructors.
struct IUnknown {
	virtual HRESULT QueryInterface(const GUID &iid, void **object) = 0;
	virtual ULONG AddRef() = 0;
	virtual ULONG Release() = 0;

      protected:
	~IUnknown() = default;
};

struct IND2Overlapped : IUnknown {
	virtual HRESULT CancelOverlappedRequests() = 0;
	virtual HRESULT GetOverlappedResult(OVERLAPPED *overlapped, BOOL wait) = 0;

      protected:
	~IND2Overlapped() = default;
};

struct IND2CompletionQueue : IND2Overlapped {
	virtual HRESULT GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) = 0;
	virtual HRESULT Resize(ULONG depth) = 0;
	virtual HRESULT Notify(ULONG type, OVERLAPPED *overlapped) = 0;
	virtual ULONG GetResults(ND2_RESULT results[], ULONG count) = 0;

      protected:
	~IND2CompletionQueue() = default;
};

struct IND2SharedReceiveQueue : IND2Overlapped {
	virtual HRESULT GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) = 0;
	virtual HRESULT Modify(ULONG depth, ULONG threshold) = 0;
	virtual HRESULT Notify(OVERLAPPED *overlapped) = 0;
	virtual HRESULT Receive(void *context, const ND2_SGE sge[], ULONG count) = 0;

      protected:
	~IND2SharedReceiveQueue() = default;
};

struct IND2MemoryWindow : IUnknown {
	virtual std::uint32_t GetRemoteToken() = 0;

      protected:
	~IND2MemoryWindow() = default;
};

struct IND2MemoryRegion : IND2Overlapped {
	virtual HRESULT Register(const void *buffer, SIZE_T length, ULONG flags,
	                         OVERLAPPED *overlapped) = 0;
	virtual HRESULT Deregister(OVERLAPPED *overlapped) = 0;
	virtual std::uint32_t GetLocalToken() = 0;
	virtual std::uint32_t GetRemoteToken() = 0;

      protected:
	~IND2MemoryRegion() = default;
};

struct IND2QueuePair : IUnknown {
	virtual HRESULT Flush() = 0;
	virtual HRESULT Send(void *context, const ND2_SGE sge[], ULONG count, ULONG flags) = 0;
	virtual HRESULT Receive(void *context, const ND2_SGE sge[], ULONG count) = 0;
	virtual HRESULT Bind(void *context, IUnknown *region, IUnknown *window, const void *buffer,
	                     SIZE_T length, ULONG flags) = 0;
	virtual HRESULT Invalidate(void *context, IUnknown *window, ULONG flags) = 0;
	virtual HRESULT Read(void *context, const ND2_SGE sge[], ULONG count, std::uint64_t address,
	                     std::uint32_t token, ULONG flags) = 0;
	virtual HRESULT Write(void *context, const ND2_SGE sge[], ULONG count,
	                      std::uint64_t address, std::uint32_t token, ULONG flags) = 0;

      protected:
	~IND2QueuePair() = default;
};

struct IND2Connector : IND2Overlapped {
	virtual HRESULT Bind(const sockaddr *address, ULONG length) = 0;
	virtual HRESULT Connect(IUnknown *qp, const sockaddr *address, ULONG length, ULONG inbound,
	                        ULONG outbound, const void *data, ULONG data_length,
	                        OVERLAPPED *overlapped) = 0;
	virtual HRESULT CompleteConnect(OVERLAPPED *overlapped) = 0;
	virtual HRESULT Accept(IUnknown *qp, ULONG inbound, ULONG outbound, const void *data,
	                       ULONG data_length, OVERLAPPED *overlapped) = 0;
	virtual HRESULT Reject(const void *data, ULONG length) = 0;
	virtual HRESULT GetReadLimits(ULONG *inbound, ULONG *outbound) = 0;
	virtual HRESULT GetPrivateData(void *data, ULONG *length) = 0;
	virtual HRESULT GetLocalAddress(sockaddr *address, ULONG *length) = 0;
	virtual HRESULT GetPeerAddress(sockaddr *address, ULONG *length) = 0;
	virtual HRESULT NotifyDisconnect(OVERLAPPED *overlapped) = 0;
	virtual HRESULT Disconnect(OVERLAPPED *overlapped) = 0;

      protected:
	~IND2Connector() = default;
};

struct IND2Listener : IND2Overlapped {
	virtual HRESULT Bind(const sockaddr *address, ULONG length) = 0;
	virtual HRESULT Listen(ULONG backlog) = 0;
	virtual HRESULT GetLocalAddress(sockaddr *address, ULONG *length) = 0;
	virtual HRESULT GetConnectionRequest(IUnknown *connector, OVERLAPPED *overlapped) = 0;

      protected:
	~IND2Listener() = default;
};

struct IND2Adapter : IUnknown {
	virtual HRESULT CreateOverlappedFile(HANDLE *file) = 0;
	virtual HRESULT Query(ND2_ADAPTER_INFO *info, ULONG *length) = 0;
	virtual HRESULT QueryAddressList(SOCKET_ADDRESS_LIST *list, ULONG *length) = 0;
	virtual HRESULT CreateCompletionQueue(const GUID &iid, HANDLE file, ULONG depth,
	                                      USHORT group, KAFFINITY affinity, void **out) = 0;
	virtual HRESULT CreateMemoryRegion(const GUID &iid, HANDLE file, void **out) = 0;
	virtual HRESULT CreateMemoryWindow(const GUID &iid, void **out) = 0;
	virtual HRESULT CreateSharedReceiveQueue(const GUID &iid, HANDLE file, ULONG depth,
	                                         ULONG max_sge, ULONG threshold, USHORT group,
	                                         KAFFINITY affinity, void **out) = 0;
	virtual HRESULT CreateQueuePair(const GUID &iid, IUnknown *receive_cq,
	                                IUnknown *initiator_cq, void *context, ULONG receive_depth,
	                                ULONG initiator_depth, ULONG receive_sge,
	                                ULONG initiator_sge, ULONG inline_size, void **out) = 0;
	virtual HRESULT CreateQueuePairWithSrq(const GUID &iid, IUnknown *receive_cq,
	                                       IUnknown *initiator_cq, IUnknown *srq, void *context,
	                                       ULONG initiator_depth, ULONG initiator_sge,
	                                       ULONG inline_size, void **out) = 0;
	virtual HRESULT CreateConnector(const GUID &iid, HANDLE file, void **out) = 0;
	virtual HRESULT CreateListener(const GUID &iid, HANDLE file, void **out) = 0;

      protected:
	~IND2Adapter() = default;
};

constexpr GUID IID_IUnknown{0, 0, 0, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
constexpr GUID IID_IND2Overlapped{
	0xABF72719, 0xB016, 0x4A40, {0xA6, 0xF7, 0x62, 0x27, 0x91, 0xA7, 0x04, 0x4C}};
constexpr GUID IID_IND2CompletionQueue{
	0x20CC445E, 0x64A0, 0x4CBB, {0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E}};
constexpr GUID IID_IND2SharedReceiveQueue{
	0xAABD67DC, 0x459A, 0x4DB1, {0x82, 0x6B, 0x56, 0xCF, 0xCC, 0x27, 0x88, 0x83}};
constexpr GUID IID_IND2MemoryWindow{
	0x070FE1F5, 0x0AB5, 0x4361, {0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9}};
constexpr GUID IID_IND2MemoryRegion{
	0x55DFEA2F, 0xBC56, 0x4982, {0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13}};
constexpr GUID IID_IND2QueuePair{
	0xEEF2F332, 0xB75D, 0x4063, {0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE}};
constexpr GUID IID_IND2Connector{
	0x7DD615C4, 0x6B4C, 0x4866, {0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02}};
constexpr GUID IID_IND2Listener{
	0x65D23D83, 0x3A57, 0x4E02, {0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30}};
constexpr GUID IID_IND2Adapter{
	0xD89C798C, 0x4823, 0x4D69, {0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3}};

} // namespace nd

#endif
