/* SPDX-License-Identifier: BSD-2-Clause */
/* The C++ part: classes that implement interfaces, and calls through interfaces. */
#include "both.h"

namespace
{

/* Interface is what the class implements. */
template <class Interface> class Counted : public Interface
{
      public:
	explicit Counted(int *alive) : alive_(alive)
	{
		++*alive_;
	}
	virtual ~Counted()
	{
		--*alive_;
	}
	ULONG STDMETHODCALLTYPE AddRef() override
	{
		return ++references_;
	}
	ULONG STDMETHODCALLTYPE Release() override
	{
		const ULONG left = --references_;

		if (left == 0)
			delete this;
		return left;
	}

      private:
	int *alive_;
	ULONG references_ = 1;
};

class Object final : public Counted<IND2Overlapped>
{
      public:
	using Counted::Counted;
	HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, LPVOID *out) override
	{
		*out = nullptr;
		if (!(iid == IID_IUnknown) && !(iid == IID_IND2Overlapped))
			return E_NOINTERFACE;
		*out = this;
		AddRef();
		return S_OK;
	}
	HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override
	{
		return ND_UNSUCCESSFUL;
	}
	HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED *overlapped, BOOL wait) override
	{
		return wait ? ND_IO_TIMEOUT : static_cast<HRESULT>(overlapped->Internal);
	}
};

class Wrapper final : public Counted<IND2CompletionQueue>
{
      public:
	Wrapper(IND2CompletionQueue *inner, int *alive) : Counted(alive), inner_(inner)
	{
	}
	HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, LPVOID *out) override
	{
		return inner_->QueryInterface(iid, out);
	}
	HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override
	{
		return inner_->CancelOverlappedRequests();
	}
	HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED *overlapped, BOOL wait) override
	{
		return inner_->GetOverlappedResult(overlapped, wait);
	}
	HRESULT STDMETHODCALLTYPE GetNotifyAffinity(USHORT *group, KAFFINITY *affinity) override
	{
		return inner_->GetNotifyAffinity(group, affinity);
	}
	HRESULT STDMETHODCALLTYPE Resize(ULONG depth) override
	{
		return inner_->Resize(depth);
	}
	HRESULT STDMETHODCALLTYPE Notify(ULONG type, OVERLAPPED *overlapped) override
	{
		return inner_->Notify(type, overlapped);
	}
	ULONG STDMETHODCALLTYPE GetResults(ND2_RESULT results[], ULONG count) override
	{
		return inner_->GetResults(results, count);
	}

      private:
	IND2CompletionQueue *inner_;
};

} // namespace

IND2Overlapped *both_new_object(int *alive)
{
	return new Object(alive);
}

IND2CompletionQueue *both_new_wrapper(IND2CompletionQueue *inner, int *alive)
{
	return new Wrapper(inner, alive);
}

void both_use_in_cxx(IND2Overlapped *object, HRESULT cancelled, HRESULT result)
{
	OVERLAPPED ov = {};
	IUnknown *same = nullptr;
	IND2Overlapped *again = nullptr;

	ov.Internal = static_cast<ULONG_PTR>(static_cast<ULONG>(result));
	assert_int_equal(object->AddRef(), 2);
	assert_int_equal(object->Release(), 1);
	assert_status(object->QueryInterface(IID_IUnknown, OUT(same)), S_OK);
	assert_status(same->QueryInterface(IID_IND2Overlapped, OUT(again)), S_OK);
	assert_ptr_equal(again, object);
	assert_int_equal(same->Release(), 2);
	assert_int_equal(again->Release(), 1);
	assert_status(object->CancelOverlappedRequests(), cancelled);
	assert_status(object->GetOverlappedResult(&ov, FALSE), result);
}

void both_pass_in_cxx(struct nd_pair *p)
{
	const ND2_SGE from = nd_sge(&p->a, 0, 64);
	const ND2_SGE to = nd_sge(&p->b, 64, 64);

	assert_status(p->b.qp->Receive(reinterpret_cast<void *>(1), &to, 1), ND_SUCCESS);
	assert_status(p->a.qp->Send(reinterpret_cast<void *>(2), &from, 1, 0), ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(&p->b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
}
