/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all interface objects have: a count of references, QueryInterface, and a handle of NDX. They
 * keep no references to each other: NDX keeps what its objects need, so the last Release() of each
 * returns 0, in any order.
 */
#ifndef NDX_ND_OBJECT_H
#define NDX_ND_OBJECT_H

#include <cstring>

#include <ndx/ndx.h>

#include "ndspi.h"
#include "overlapped.h"

namespace nd
{

/* The arrays that programs pass to posts are those of NDX, bit by bit. */
static_assert(sizeof(ND2_SGE) == sizeof(ndx_sge) &&
                      offsetof(ND2_SGE, Buffer) == offsetof(ndx_sge, buffer) &&
                      offsetof(ND2_SGE, BufferLength) == offsetof(ndx_sge, length) &&
                      offsetof(ND2_SGE, MemoryRegionToken) == offsetof(ndx_sge, token),
              "ND2_SGE and ndx_sge differ");

inline const ndx_sge *sges(const ND2_SGE *sge)
{
	return reinterpret_cast<const ndx_sge *>(sge);
}

/* Whether an object of a program is one of this library, and which: by the address of a constant
 * that is asked for as if it were an identifier. */
template <class T> struct Own {
	static IID iid;
};
template <class T> IID Own<T>::iid = {};

/* Derived has `bool has(REFIID)`: the interfaces that it has beside IUnknown. */
template <class Derived, class Interface> class Counted : public Interface, public Allocated
{
      public:
	HRESULT QueryInterface(REFIID riid, LPVOID *out) final
	{
		auto *self = static_cast<Derived *>(this);

		if (out == nullptr)
			return E_POINTER;
		*out = nullptr;
		if (&riid == &Own<Derived>::iid) {
			*out = self;
		} else if (riid == IID_IUnknown || self->has(riid)) {
			*out = static_cast<Interface *>(this);
		} else {
			return E_NOINTERFACE;
		}
		AddRef();
		return S_OK;
	}
	ULONG AddRef() final
	{
		return __atomic_add_fetch(&references_, 1, __ATOMIC_RELAXED);
	}
	ULONG Release() final
	{
		const ULONG left = __atomic_sub_fetch(&references_, 1, __ATOMIC_ACQ_REL);

		if (left == 0)
			delete static_cast<Derived *>(this);
		return left;
	}

      protected:
	~Counted() = default;

      private:
	ULONG references_ = 1;
};

/* An object that goes with others of its adapter only. */
template <class Derived, class Interface> class Owned : public Counted<Derived, Interface>
{
      public:
	explicit Owned(const ndx_adapter *owner) : adapter(owner)
	{
	}
	/* The program may have closed the adapter; no other one is at the same address, because NDX
	 * keeps the adapter as long as the object. */
	const ndx_adapter *const adapter;
};

/* An object with calls in flight. The close of its handle completes them, so Release() leaves no
 * OVERLAPPED behind. Takes over the reference to the file. */
template <class Derived, class Interface> class Overlapped : public Owned<Derived, Interface>
{
      public:
	Overlapped(const ndx_adapter *owner, File *file)
	    : Owned<Derived, Interface>(owner), file_(file)
	{
	}
	HRESULT GetOverlappedResult(OVERLAPPED *overlapped, BOOL wait) final
	{
		return result_of(overlapped, wait != 0);
	}

      protected:
	~Overlapped()
	{
		release(file_);
	}
	File *file() const
	{
		return file_;
	}

      private:
	File *file_;
};

/* The object of this library and of `adapter` behind an interface that a program passes, with a
 * reference; nullptr if it is none. */
template <class T> class Ours
{
      public:
	Ours(IUnknown *object, const ndx_adapter *adapter)
	{
		void *found = nullptr;

		if (object == nullptr || object->QueryInterface(Own<T>::iid, &found) != S_OK)
			return;
		if (static_cast<T *>(found)->adapter == adapter)
			object_ = static_cast<T *>(found);
		else
			object->Release();
	}
	~Ours()
	{
		if (object_ != nullptr)
			object_->Release();
	}
	Ours(const Ours &) = delete;
	Ours &operator=(const Ours &) = delete;
	explicit operator bool() const
	{
		return object_ != nullptr;
	}
	T *operator->() const
	{
		return object_;
	}

      private:
	T *object_ = nullptr;
};

/* A call that fails gives no object. */
inline void clear(void **out)
{
	if (out != nullptr)
		*out = nullptr;
}

/* Give out the interface that was asked for; `object` has the one reference. */
template <class T> HRESULT give(T *object, REFIID iid, void **out)
{
	HRESULT result;

	clear(out);
	if (object == nullptr)
		return ND_NO_MEMORY;
	result = object->QueryInterface(iid, out);
	(void)object->Release();
	return result;
}

/* Copy `needed` bytes to a buffer whose size the caller says; too small a buffer learns the size.
 */
template <class Size> bool has_room(const void *buffer, Size *size, std::size_t needed)
{
	const bool fits = buffer != nullptr && *size >= needed;

	*size = static_cast<Size>(needed);
	return fits;
}

} // namespace nd

#endif
