// SPDX-License-Identifier: BSD-2-Clause
// The facade's objects: each holds one handle of the library and a reference count, no more.
#ifndef COM_OBJECTS_HPP
#define COM_OBJECTS_HPP

#include <memory>
#include <utility>

#include "com_overlapped.hpp"

namespace nd
{

template <auto Close> struct Closer {
	template <class T> void operator()(T *handle) const
	{
		Close(handle);
	}
};
using AdapterHandle = std::unique_ptr<ndx_adapter, Closer<ndx_adapter_close>>;
using CqHandle = std::unique_ptr<ndx_cq, Closer<ndx_cq_close>>;
using SrqHandle = std::unique_ptr<ndx_srq, Closer<ndx_srq_close>>;
using MrHandle = std::unique_ptr<ndx_mr, Closer<ndx_mr_close>>;
using MwHandle = std::unique_ptr<ndx_mw, Closer<ndx_mw_close>>;
using QpHandle = std::unique_ptr<ndx_qp, Closer<ndx_qp_close>>;
using ConnectorHandle = std::unique_ptr<ndx_connector, Closer<ndx_connector_close>>;
using ListenerHandle = std::unique_ptr<ndx_listener, Closer<ndx_listener_close>>;

// The arrays that programs pass to posts are the library's own, bit by bit.
static_assert(sizeof(ND2_SGE) == sizeof(ndx_sge) &&
                      offsetof(ND2_SGE, Buffer) == offsetof(ndx_sge, buffer) &&
                      offsetof(ND2_SGE, BufferLength) == offsetof(ndx_sge, length) &&
                      offsetof(ND2_SGE, MemoryRegionToken) == offsetof(ndx_sge, token),
              "ND2_SGE and ndx_sge differ");

inline const ndx_sge *sges(const ND2_SGE *sge)
{
	return reinterpret_cast<const ndx_sge *>(sge);
}

/// Reference counting and QueryInterface, for a final class that tells its own interface ids.
template <class Derived, class Interface> class Object : public Interface
{
      public:
	HRESULT QueryInterface(const GUID &iid, void **object) final
	{
		if (!(iid == IID_IUnknown) && !Derived::is(iid)) {
			*object = nullptr;
			return E_NO_INTERFACE;
		}
		AddRef();
		*object = static_cast<Interface *>(this);
		return ND_SUCCESS;
	}

	ULONG AddRef() final
	{
		return ++references_;
	}

	/// Programs check that the last one returns 0: no other public reference is held.
	ULONG Release() final
	{
		const ULONG left = --references_;

		if (left == 0)
			delete static_cast<Derived *>(this);
		return left;
	}

      protected:
	~Object() = default;

      private:
	std::atomic<ULONG> references_{1};
};

/// An object with calls in flight. Its handle's close completes or cancels them, and their
/// completions have been delivered when it returns: Release() never leaves an OVERLAPPED behind.
template <class Derived, class Interface> class OverlappedObject : public Object<Derived, Interface>
{
      public:
	explicit OverlappedObject(HANDLE file) : file_(static_cast<OverlappedFile *>(file))
	{
	}

	HRESULT GetOverlappedResult(OVERLAPPED *overlapped, BOOL wait) final
	{
		return result_of(overlapped, wait != 0);
	}

      protected:
	~OverlappedObject() = default;

	template <class Start> HRESULT start(OVERLAPPED *overlapped, Start call)
	{
		return begin(overlapped, file_, call);
	}

      private:
	OverlappedFile *file_;
};

class CompletionQueue final : public OverlappedObject<CompletionQueue, IND2CompletionQueue>
{
      public:
	CompletionQueue(HANDLE file, CqHandle cq) : OverlappedObject(file), cq_(std::move(cq))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2CompletionQueue || iid == IID_IND2Overlapped;
	}
	HRESULT CancelOverlappedRequests() final;
	HRESULT GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) final;
	HRESULT Resize(ULONG depth) final;
	HRESULT Notify(ULONG type, OVERLAPPED *overlapped) final;
	ULONG GetResults(ND2_RESULT results[], ULONG count) final;

	ndx_cq *handle() const
	{
		return cq_.get();
	}

      private:
	CqHandle cq_;
};

class SharedReceiveQueue final : public OverlappedObject<SharedReceiveQueue, IND2SharedReceiveQueue>
{
      public:
	SharedReceiveQueue(HANDLE file, SrqHandle srq)
	    : OverlappedObject(file), srq_(std::move(srq))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2SharedReceiveQueue || iid == IID_IND2Overlapped;
	}
	HRESULT CancelOverlappedRequests() final;
	HRESULT GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) final;
	HRESULT Modify(ULONG depth, ULONG threshold) final;
	HRESULT Notify(OVERLAPPED *overlapped) final;
	HRESULT Receive(void *context, const ND2_SGE sge[], ULONG count) final;

	ndx_srq *handle() const
	{
		return srq_.get();
	}

      private:
	SrqHandle srq_;
};

class MemoryRegion final : public OverlappedObject<MemoryRegion, IND2MemoryRegion>
{
      public:
	MemoryRegion(HANDLE file, MrHandle mr) : OverlappedObject(file), mr_(std::move(mr))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2MemoryRegion || iid == IID_IND2Overlapped;
	}
	HRESULT CancelOverlappedRequests() final;
	HRESULT Register(const void *buffer, SIZE_T length, ULONG flags,
	                 OVERLAPPED *overlapped) final;
	HRESULT Deregister(OVERLAPPED *overlapped) final;
	std::uint32_t GetLocalToken() final;
	std::uint32_t GetRemoteToken() final;

	ndx_mr *handle() const
	{
		return mr_.get();
	}

      private:
	MrHandle mr_;
};

class MemoryWindow final : public Object<MemoryWindow, IND2MemoryWindow>
{
      public:
	explicit MemoryWindow(MwHandle mw) : mw_(std::move(mw))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2MemoryWindow;
	}
	std::uint32_t GetRemoteToken() final;

	ndx_mw *handle() const
	{
		return mw_.get();
	}

      private:
	MwHandle mw_;
};

class QueuePair final : public Object<QueuePair, IND2QueuePair>
{
      public:
	explicit QueuePair(QpHandle qp) : qp_(std::move(qp))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2QueuePair;
	}
	HRESULT Flush() final;
	HRESULT Send(void *context, const ND2_SGE sge[], ULONG count, ULONG flags) final;
	HRESULT Receive(void *context, const ND2_SGE sge[], ULONG count) final;
	HRESULT Bind(void *context, IUnknown *region, IUnknown *window, const void *buffer,
	             SIZE_T length, ULONG flags) final;
	HRESULT Invalidate(void *context, IUnknown *window, ULONG flags) final;
	HRESULT Read(void *context, const ND2_SGE sge[], ULONG count, std::uint64_t address,
	             std::uint32_t token, ULONG flags) final;
	HRESULT Write(void *context, const ND2_SGE sge[], ULONG count, std::uint64_t address,
	              std::uint32_t token, ULONG flags) final;

	ndx_qp *handle() const
	{
		return qp_.get();
	}

      private:
	QpHandle qp_;
};

class Connector final : public OverlappedObject<Connector, IND2Connector>
{
      public:
	Connector(HANDLE file, ConnectorHandle connector)
	    : OverlappedObject(file), connector_(std::move(connector))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2Connector || iid == IID_IND2Overlapped;
	}
	HRESULT CancelOverlappedRequests() final;
	HRESULT Bind(const sockaddr *address, ULONG length) final;
	HRESULT Connect(IUnknown *qp, const sockaddr *address, ULONG length, ULONG inbound,
	                ULONG outbound, const void *data, ULONG data_length,
	                OVERLAPPED *overlapped) final;
	HRESULT CompleteConnect(OVERLAPPED *overlapped) final;
	HRESULT Accept(IUnknown *qp, ULONG inbound, ULONG outbound, const void *data,
	               ULONG data_length, OVERLAPPED *overlapped) final;
	HRESULT Reject(const void *data, ULONG length) final;
	HRESULT GetReadLimits(ULONG *inbound, ULONG *outbound) final;
	HRESULT GetPrivateData(void *data, ULONG *length) final;
	HRESULT GetLocalAddress(sockaddr *address, ULONG *length) final;
	HRESULT GetPeerAddress(sockaddr *address, ULONG *length) final;
	HRESULT NotifyDisconnect(OVERLAPPED *overlapped) final;
	HRESULT Disconnect(OVERLAPPED *overlapped) final;

	ndx_connector *handle() const
	{
		return connector_.get();
	}

      private:
	ConnectorHandle connector_;
};

class Listener final : public OverlappedObject<Listener, IND2Listener>
{
      public:
	Listener(HANDLE file, ListenerHandle listener)
	    : OverlappedObject(file), listener_(std::move(listener))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2Listener || iid == IID_IND2Overlapped;
	}
	HRESULT CancelOverlappedRequests() final;
	HRESULT Bind(const sockaddr *address, ULONG length) final;
	HRESULT Listen(ULONG backlog) final;
	HRESULT GetLocalAddress(sockaddr *address, ULONG *length) final;
	HRESULT GetConnectionRequest(IUnknown *connector, OVERLAPPED *overlapped) final;

      private:
	ListenerHandle listener_;
};

class Adapter final : public Object<Adapter, IND2Adapter>
{
      public:
	explicit Adapter(AdapterHandle adapter) : adapter_(std::move(adapter))
	{
	}
	static bool is(const GUID &iid)
	{
		return iid == IID_IND2Adapter;
	}
	HRESULT CreateOverlappedFile(HANDLE *file) final;
	HRESULT Query(ND2_ADAPTER_INFO *out, ULONG *length) final;
	HRESULT QueryAddressList(SOCKET_ADDRESS_LIST *list, ULONG *length) final;
	HRESULT CreateCompletionQueue(const GUID &iid, HANDLE file, ULONG depth, USHORT group,
	                              KAFFINITY affinity, void **out) final;
	HRESULT CreateMemoryRegion(const GUID &iid, HANDLE file, void **out) final;
	HRESULT CreateMemoryWindow(const GUID &iid, void **out) final;
	HRESULT CreateSharedReceiveQueue(const GUID &iid, HANDLE file, ULONG depth, ULONG max_sge,
	                                 ULONG threshold, USHORT group, KAFFINITY affinity,
	                                 void **out) final;
	HRESULT CreateQueuePair(const GUID &iid, IUnknown *receive_cq, IUnknown *initiator_cq,
	                        void *context, ULONG receive_depth, ULONG initiator_depth,
	                        ULONG receive_sge, ULONG initiator_sge, ULONG inline_size,
	                        void **out) final;
	HRESULT CreateQueuePairWithSrq(const GUID &iid, IUnknown *receive_cq,
	                               IUnknown *initiator_cq, IUnknown *srq, void *context,
	                               ULONG initiator_depth, ULONG initiator_sge,
	                               ULONG inline_size, void **out) final;
	HRESULT CreateConnector(const GUID &iid, HANDLE file, void **out) final;
	HRESULT CreateListener(const GUID &iid, HANDLE file, void **out) final;

      private:
	AdapterHandle adapter_;
};

/// Make the object of a handle and give out the interface that was asked for.
template <class T, class... Arguments>
HRESULT give(const GUID &iid, void **out, Arguments &&...arguments)
{
	T *object = new (std::nothrow) T(std::forward<Arguments>(arguments)...);
	HRESULT result;

	if (object == nullptr)
		return ND_NO_MEMORY;
	result = object->QueryInterface(iid, out);
	object->Release();
	return result;
}

/// The facade's object behind an interface that a program hands in; nullptr if it is not ours.
template <class T> T *ours(IUnknown *object)
{
	return dynamic_cast<T *>(object);
}

/// The helper functions that programs begin with.
HRESULT NdOpenAdapter(const GUID &iid, const sockaddr *address, SIZE_T length, void **out);
HRESULT NdCheckAddress(const sockaddr *address, SIZE_T length);
HRESULT NdResolveAddress(const sockaddr *remote, SIZE_T remote_length, sockaddr *local,
                         SIZE_T *length);
HRESULT NdQueryAddressList(SOCKET_ADDRESS_LIST *list, SIZE_T *length);

} // namespace nd

#endif
