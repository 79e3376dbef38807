/* SPDX-License-Identifier: BSD-2-Clause */
/* The classes of the interfaces. Nothing here waits, polls or keeps state of connections: NDX does
 * that. */
#ifndef NDX_ND_OBJECTS_H
#define NDX_ND_OBJECTS_H

#include "mana_ndspi.h"
#include "object.h"

namespace nd
{

class CompletionQueue final : public Overlapped<CompletionQueue, IND2ManaCompletionQueue>
{
      public:
	CompletionQueue(const ndx_adapter *owner, File *file, ndx_cq *cq, bool immediate)
	    : Overlapped(owner, file), cq_(cq), immediate_(immediate)
	{
	}
	~CompletionQueue()
	{
		ndx_cq_close(cq_);
	}
	bool has(REFIID iid) const;
	HRESULT CancelOverlappedRequests() final;
	HRESULT GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) final;
	HRESULT Resize(ULONG depth) final;
	HRESULT Notify(ULONG type, OVERLAPPED *overlapped) final;
	ULONG GetResults(ND2_RESULT results[], ULONG count) final;
	ULONG GetManaResults(ND2_MANA_RESULT results[], ULONG count) final;

	ndx_cq *handle() const
	{
		return cq_;
	}

      private:
	ndx_cq *cq_;
	bool immediate_;
};

class SharedReceiveQueue final : public Overlapped<SharedReceiveQueue, IND2SharedReceiveQueue>
{
      public:
	SharedReceiveQueue(const ndx_adapter *owner, File *file, ndx_srq *srq)
	    : Overlapped(owner, file), srq_(srq)
	{
	}
	~SharedReceiveQueue()
	{
		ndx_srq_close(srq_);
	}
	bool has(REFIID iid) const;
	HRESULT CancelOverlappedRequests() final;
	HRESULT GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) final;
	HRESULT Modify(ULONG depth, ULONG threshold) final;
	HRESULT Notify(OVERLAPPED *overlapped) final;
	HRESULT Receive(VOID *context, const ND2_SGE sge[], ULONG count) final;

	ndx_srq *handle() const
	{
		return srq_;
	}

      private:
	ndx_srq *srq_;
};

class MemoryRegion final : public Overlapped<MemoryRegion, IND2MemoryRegion>
{
      public:
	MemoryRegion(const ndx_adapter *owner, File *file, ndx_mr *mr)
	    : Overlapped(owner, file), mr_(mr)
	{
	}
	~MemoryRegion()
	{
		ndx_mr_close(mr_);
	}
	bool has(REFIID iid) const;
	HRESULT CancelOverlappedRequests() final;
	HRESULT Register(const VOID *buffer, SIZE_T length, ULONG flags,
	                 OVERLAPPED *overlapped) final;
	HRESULT Deregister(OVERLAPPED *overlapped) final;
	UINT32 GetLocalToken() final;
	UINT32 GetRemoteToken() final;

	ndx_mr *handle() const
	{
		return mr_;
	}

      private:
	ndx_mr *mr_;
};

class MemoryWindow final : public Owned<MemoryWindow, IND2MemoryWindow>
{
      public:
	MemoryWindow(const ndx_adapter *owner, ndx_mw *mw) : Owned(owner), mw_(mw)
	{
	}
	~MemoryWindow()
	{
		ndx_mw_close(mw_);
	}
	bool has(REFIID iid) const;
	UINT32 GetRemoteToken() final;

	ndx_mw *handle() const
	{
		return mw_;
	}

      private:
	ndx_mw *mw_;
};

class QueuePair final : public Owned<QueuePair, IND2ManaQueuePair>
{
      public:
	QueuePair(const ndx_adapter *owner, ndx_qp *qp, bool immediate)
	    : Owned(owner), qp_(qp), immediate_(immediate)
	{
	}
	~QueuePair()
	{
		ndx_qp_close(qp_);
	}
	bool has(REFIID iid) const;
	HRESULT Flush() final;
	HRESULT Send(VOID *context, const ND2_SGE sge[], ULONG count, ULONG flags) final;
	HRESULT Receive(VOID *context, const ND2_SGE sge[], ULONG count) final;
	HRESULT Bind(VOID *context, IUnknown *region, IUnknown *window, const VOID *buffer,
	             SIZE_T length, ULONG flags) final;
	HRESULT Invalidate(VOID *context, IUnknown *window, ULONG flags) final;
	HRESULT Read(VOID *context, const ND2_SGE sge[], ULONG count, UINT64 address, UINT32 token,
	             ULONG flags) final;
	HRESULT Write(VOID *context, const ND2_SGE sge[], ULONG count, UINT64 address, UINT32 token,
	              ULONG flags) final;
	HRESULT SendWithImmediate(VOID *context, const ND2_SGE sge[], ULONG count, ULONG flags,
	                          UINT32 immediate) final;
	HRESULT WriteWithImmediate(VOID *context, const ND2_SGE sge[], ULONG count, UINT64 address,
	                           UINT32 token, ULONG flags, UINT32 immediate) final;

	ndx_qp *handle() const
	{
		return qp_;
	}

      private:
	ndx_qp *qp_;
	bool immediate_;
};

class Connector final : public Overlapped<Connector, IND2Connector>
{
      public:
	Connector(const ndx_adapter *owner, File *file, ndx_connector *connector)
	    : Overlapped(owner, file), connector_(connector)
	{
	}
	~Connector()
	{
		ndx_connector_close(connector_);
	}
	bool has(REFIID iid) const;
	HRESULT CancelOverlappedRequests() final;
	HRESULT Bind(const struct sockaddr *address, ULONG length) final;
	HRESULT Connect(IUnknown *qp, const struct sockaddr *address, ULONG length, ULONG inbound,
	                ULONG outbound, const VOID *data, ULONG data_length,
	                OVERLAPPED *overlapped) final;
	HRESULT CompleteConnect(OVERLAPPED *overlapped) final;
	HRESULT Accept(IUnknown *qp, ULONG inbound, ULONG outbound, const VOID *data,
	               ULONG data_length, OVERLAPPED *overlapped) final;
	HRESULT Reject(const VOID *data, ULONG length) final;
	HRESULT GetReadLimits(ULONG *inbound, ULONG *outbound) final;
	HRESULT GetPrivateData(VOID *data, ULONG *length) final;
	HRESULT GetLocalAddress(struct sockaddr *address, ULONG *length) final;
	HRESULT GetPeerAddress(struct sockaddr *address, ULONG *length) final;
	HRESULT NotifyDisconnect(OVERLAPPED *overlapped) final;
	HRESULT Disconnect(OVERLAPPED *overlapped) final;

	ndx_connector *handle() const
	{
		return connector_;
	}

      private:
	ndx_connector *connector_;
};

class Listener final : public Overlapped<Listener, IND2Listener>
{
      public:
	Listener(const ndx_adapter *owner, File *file, ndx_listener *listener)
	    : Overlapped(owner, file), listener_(listener)
	{
	}
	~Listener()
	{
		ndx_listener_close(listener_);
	}
	bool has(REFIID iid) const;
	HRESULT CancelOverlappedRequests() final;
	HRESULT Bind(const struct sockaddr *address, ULONG length) final;
	HRESULT Listen(ULONG backlog) final;
	HRESULT GetLocalAddress(struct sockaddr *address, ULONG *length) final;
	HRESULT GetConnectionRequest(IUnknown *connector, OVERLAPPED *overlapped) final;

      private:
	ndx_listener *listener_;
};

class Adapter final : public Counted<Adapter, IND2Adapter>
{
      public:
	Adapter(ndx_adapter *adapter, const ndx_adapter_info &info);
	~Adapter()
	{
		ndx_adapter_close(adapter_);
	}
	bool has(REFIID iid) const;
	HRESULT CreateOverlappedFile(HANDLE *file) final;
	HRESULT Query(ND2_ADAPTER_INFO *info, ULONG *size) final;
	HRESULT QueryAddressList(SOCKET_ADDRESS_LIST *list, ULONG *size) final;
	HRESULT CreateCompletionQueue(REFIID iid, HANDLE file, ULONG depth, USHORT group,
	                              KAFFINITY affinity, VOID **out) final;
	HRESULT CreateMemoryRegion(REFIID iid, HANDLE file, VOID **out) final;
	HRESULT CreateMemoryWindow(REFIID iid, VOID **out) final;
	HRESULT CreateSharedReceiveQueue(REFIID iid, HANDLE file, ULONG depth, ULONG max_sge,
	                                 ULONG threshold, USHORT group, KAFFINITY affinity,
	                                 VOID **out) final;
	HRESULT CreateQueuePair(REFIID iid, IUnknown *receive_cq, IUnknown *initiator_cq,
	                        VOID *context, ULONG receive_depth, ULONG initiator_depth,
	                        ULONG receive_sge, ULONG initiator_sge, ULONG inline_size,
	                        VOID **out) final;
	HRESULT CreateQueuePairWithSrq(REFIID iid, IUnknown *receive_cq, IUnknown *initiator_cq,
	                               IUnknown *srq, VOID *context, ULONG initiator_depth,
	                               ULONG initiator_sge, ULONG inline_size, VOID **out) final;
	HRESULT CreateConnector(REFIID iid, HANDLE file, VOID **out) final;
	HRESULT CreateListener(REFIID iid, HANDLE file, VOID **out) final;

      private:
	bool has_immediate() const;

	ndx_adapter *adapter_;
	ND2_ADAPTER_INFO info_;
	std::uint64_t capabilities_;
};

} // namespace nd

#endif
