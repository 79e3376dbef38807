/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What programs begin with: finding and opening adapters by their addresses.
 *
 * Which adapters there are: if $NDX_ADAPTER or the INI file names one, that one only; else all
 * usable adapters, those of provider verbs first, then ofi:verbs, then ofi:tcp. Several of them may
 * have one address; NdOpenAdapter() takes the first that opens.
 *
 * Thread safety: any thread. Blocks: while devices are probed, up to about a second.
 */
#ifndef NDX_NDSUPPORT_H
#define NDX_NDSUPPORT_H

#include "ndspi.h"

#define ND_HELPER_API __stdcall

/** Flags of NdQueryAddressList. An adapter of a software device counts as an emulator. */
#define ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES 0x00000001
#define ND_QUERY_EXCLUDE_NDv1_ADDRESSES 0x00000002
#define ND_QUERY_EXCLUDE_NDv2_ADDRESSES 0x00000004

NDX_ND_BEGIN

/** Before all other functions here; counted. They return ND_DEVICE_NOT_READY without it. */
HRESULT ND_HELPER_API NdStartup(void);
/** Once for each NdStartup(); objects that are still there stay usable. */
HRESULT ND_HELPER_API NdCleanup(void);
/** Does nothing: providers stay loaded. */
VOID ND_HELPER_API NdFlushProviders(void);

/**
 * The local addresses of all adapters, with port 0.
 *
 * @param flags           OR of ND_QUERY_EXCLUDE_...
 * @param pcbAddressList  bytes in @p pAddressList; set to what is used or needed; 0: no addresses
 *
 * Returns ND_BUFFER_OVERFLOW if @p pAddressList is NULL or too small.
 */
HRESULT ND_HELPER_API NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST *pAddressList,
                                         SIZE_T *pcbAddressList);

/**
 * The local address, with port 0, that reaches a remote one.
 *
 * Returns ND_INVALID_ADDRESS if no adapter has that address, ND_NETWORK_UNREACHABLE,
 * ND_BUFFER_OVERFLOW, ND_INVALID_PARAMETER_2 (@p cbRemoteAddress is too small).
 */
HRESULT ND_HELPER_API NdResolveAddress(const struct sockaddr *pRemoteAddress,
                                       SIZE_T cbRemoteAddress, struct sockaddr *pLocalAddress,
                                       SIZE_T *pcbLocalAddress);

/** Whether an adapter has this local address; the port is ignored. ND_INVALID_ADDRESS: none. */
HRESULT ND_HELPER_API NdCheckAddress(const struct sockaddr *pAddress, SIZE_T cbAddress);

/** Open the adapter with this local address; the port is ignored. Each call opens a new one. */
HRESULT ND_HELPER_API NdOpenAdapter(REFIID iid, const struct sockaddr *pAddress, SIZE_T cbAddress,
                                    VOID **ppIAdapter);

/** ND_NOT_SUPPORTED: NDX has no version 1. */
HRESULT ND_HELPER_API NdOpenV1Adapter(const struct sockaddr *pAddress, SIZE_T cbAddress,
                                      struct INDAdapter **ppIAdapter);

/**
 * The provider of NDX, or its class factory.
 *
 * @param rclsid  CLSID_NdxProvider, or CLASS_E_CLASSNOTAVAILABLE
 * @param riid    IID_IND2Provider, IID_IClassFactory or IID_IUnknown
 */
STDAPI DllGetClassObject(REFCLSID rclsid, REFIID riid, LPVOID *ppv) NDX_ND_NAMED(DllGetClassObject);
/** S_FALSE: the library stays loaded. */
STDAPI DllCanUnloadNow(void) NDX_ND_NAMED(DllCanUnloadNow);

NDX_ND_END

DEFINE_GUID(CLSID_NdxProvider, 0x2D5C1B0E, 0x6E64, 0x4E44, 0x58, 0x6E, 0x64, 0x78, 0x2D, 0x6E, 0x64,
            0x31);

#endif
