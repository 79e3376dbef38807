/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * COM as far as NetworkDirect uses it: how an interface is declared, and the interface that every
 * other one derives from. There is no registry, no marshalling and no apartment.
 *
 * An interface is a pointer to a structure that begins with a pointer to a table of functions. In
 * C++ it is a class with pure virtual functions, of which g++ and clang++ make just that. In C it
 * is a structure with the member `lpVtbl`. Both are one binary form: a C program may pass its
 * object to a C++ program and back.
 */
#ifndef NDX_UNKNWN_H
#define NDX_UNKNWN_H

#include "guiddef.h"
#include "ndx_win32_types.h"

#define STDMETHODIMP HRESULT STDMETHODCALLTYPE
#define STDMETHODIMP_(type) type STDMETHODCALLTYPE
#define STDAPI EXTERN_C HRESULT STDAPICALLTYPE
#define STDAPI_(type) EXTERN_C type STDAPICALLTYPE
#define interface struct

#ifdef __cplusplus
#define STDMETHOD(method) virtual HRESULT STDMETHODCALLTYPE method
#define STDMETHOD_(type, method) virtual type STDMETHODCALLTYPE method
#define PURE = 0
#define THIS_
#define THIS void
#define DECLARE_INTERFACE(name) struct name
#define DECLARE_INTERFACE_(name, base) struct name : public base
#else
#define STDMETHOD(method) HRESULT(STDMETHODCALLTYPE *method)
#define STDMETHOD_(type, method) type(STDMETHODCALLTYPE *method)
#define PURE
/* INTERFACE is the name of the interface that is being declared. */
#define THIS_ INTERFACE *This,
#define THIS INTERFACE *This
#define DECLARE_INTERFACE(name)                  \
	typedef struct name {                    \
		const struct name##Vtbl *lpVtbl; \
	} name;                                  \
	typedef struct name##Vtbl name##Vtbl;    \
	struct name##Vtbl
#define DECLARE_INTERFACE_(name, base) DECLARE_INTERFACE(name)
#endif
#define DECLARE_INTERFACE_IID(name, iid) DECLARE_INTERFACE(name)
#define DECLARE_INTERFACE_IID_(name, base, iid) DECLARE_INTERFACE_(name, base)
#define IFACEMETHOD(method) STDMETHOD(method)
#define IFACEMETHOD_(type, method) STDMETHOD_(type, method)
#define IFACEMETHODV(method) STDMETHOD(method)
#define IFACEMETHODIMP STDMETHODIMP
#define IFACEMETHODIMP_(type) STDMETHODIMP_(type)

DEFINE_GUID(IID_IUnknown, 0x00000000, 0x0000, 0x0000, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x46);
DEFINE_GUID(IID_IClassFactory, 0x00000001, 0x0000, 0x0000, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x46);

#undef INTERFACE
#define INTERFACE IUnknown
/** What every object has: its other interfaces, and a count of references. */
DECLARE_INTERFACE(IUnknown)
{
	/** Another interface of the object, with a reference more; E_NOINTERFACE: it has none. */
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID * ppvObj) PURE;
	/** One reference more. Returns the new count, which is of use in tests only. */
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	/** One reference less. The last one destroys the object, and returns 0. */
	STDMETHOD_(ULONG, Release)(THIS) PURE;
};
typedef IUnknown *LPUNKNOWN;

#undef INTERFACE
#define INTERFACE IClassFactory
/** Creates objects of a class. */
DECLARE_INTERFACE_(IClassFactory, IUnknown)
{
	STDMETHOD(QueryInterface)(THIS_ REFIID riid, LPVOID * ppvObj) PURE;
	STDMETHOD_(ULONG, AddRef)(THIS) PURE;
	STDMETHOD_(ULONG, Release)(THIS) PURE;
	STDMETHOD(CreateInstance)(THIS_ IUnknown * pUnkOuter, REFIID riid, LPVOID * ppvObj) PURE;
	STDMETHOD(LockServer)(THIS_ BOOL fLock) PURE;
};

#ifdef COBJMACROS
#define IUnknown_QueryInterface(This, ...) ((This)->lpVtbl->QueryInterface((This), __VA_ARGS__))
#define IUnknown_AddRef(This) ((This)->lpVtbl->AddRef(This))
#define IUnknown_Release(This) ((This)->lpVtbl->Release(This))
#endif

#endif
