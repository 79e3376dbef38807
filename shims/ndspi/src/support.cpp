/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of <ndsupport.h>, and the provider. */
#include "ndsupport.h"

#include "discovery.h"

namespace nd
{

namespace
{

std::uint32_t startups; /* atomic; Windows counts them for the process, too */

bool is_started()
{
	return __atomic_load_n(&startups, __ATOMIC_ACQUIRE) > 0;
}

class Provider final : public Counted<Provider, IND2Provider>
{
      public:
	static bool has(REFIID iid)
	{
		return iid == IID_IND2Provider;
	}
	HRESULT QueryAddressList(SOCKET_ADDRESS_LIST *list, ULONG *size) final
	{
		Addresses addresses;
		HRESULT result;

		if (size == nullptr)
			return ND_INVALID_PARAMETER_2;
		result = find_addresses(0, &addresses);
		return result != ND_SUCCESS ? result : give_list(addresses, list, size);
	}
	HRESULT ResolveAddress(const struct sockaddr *address, ULONG length, UINT64 *id) final
	{
		const HRESULT bad = check_address(address, length, ND_INVALID_ADDRESS);

		if (id == nullptr)
			return ND_INVALID_PARAMETER_3;
		return bad != ND_SUCCESS ? bad : find_id(address, id);
	}
	HRESULT OpenAdapter(REFIID iid, UINT64 id, VOID **out) final
	{
		return open_by_id(id, iid, out);
	}
};

class Factory final : public Counted<Factory, IClassFactory>
{
      public:
	static bool has(REFIID iid)
	{
		return iid == IID_IClassFactory;
	}
	HRESULT CreateInstance(IUnknown *outer, REFIID iid, LPVOID *out) final
	{
		clear(out);
		if (outer != nullptr)
			return CLASS_E_NOAGGREGATION;
		return give(new Provider(), iid, out);
	}
	HRESULT LockServer(BOOL) final
	{
		return S_OK; /* the library is never unloaded */
	}
};

} // namespace

} // namespace nd

using namespace nd;

HRESULT NdStartup(void)
{
	(void)__atomic_add_fetch(&startups, 1, __ATOMIC_ACQ_REL);
	return ND_SUCCESS;
}

HRESULT NdCleanup(void)
{
	std::uint32_t count = __atomic_load_n(&startups, __ATOMIC_ACQUIRE);

	while (count > 0) {
		if (__atomic_compare_exchange_n(&startups, &count, count - 1, false,
		                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return ND_SUCCESS;
	}
	return ND_DEVICE_NOT_READY;
}

VOID NdFlushProviders(void)
{
	/* providers stay loaded */
}

HRESULT NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST *list, SIZE_T *size)
{
	Addresses addresses;
	HRESULT result;

	if (!is_started())
		return ND_DEVICE_NOT_READY;
	if (size == nullptr)
		return ND_INVALID_PARAMETER_3;
	result = find_addresses(flags, &addresses);
	if (result != ND_SUCCESS)
		return result;
	if (addresses.count() == 0) {
		*size = 0;
		return ND_SUCCESS;
	}
	return give_list(addresses, list, size);
}

HRESULT NdResolveAddress(const struct sockaddr *remote, SIZE_T remote_length,
                         struct sockaddr *local, SIZE_T *length)
{
	sockaddr_storage found{};
	char uri[1024];
	std::size_t uri_size = sizeof(uri);
	ndx_status status;
	HRESULT result;
	std::uint64_t id;

	if (!is_started())
		return ND_DEVICE_NOT_READY;
	if (length == nullptr)
		return ND_INVALID_PARAMETER_4;
	result = check_address(remote, remote_length, ND_INVALID_PARAMETER_2);
	if (result != ND_SUCCESS)
		return result;
	/* an own address reaches itself, whatever the routes say */
	if (find_id(remote, &id) == ND_SUCCESS) {
		std::memcpy(&found, remote,
		            remote_length < sizeof(found) ? remote_length : sizeof(found));
		reinterpret_cast<sockaddr_in *>(&found)->sin_port = 0; /* in6 has it there, too */
	} else {
		status = ndx_resolve(remote, static_cast<socklen_t>(remote_length), uri, &uri_size,
		                     &found);
		if (status != NDX_OK)
			return hresult_of(status);
		/* the route may lead to an adapter beside the one that the configuration names */
		result = find_id(reinterpret_cast<const struct sockaddr *>(&found), &id);
		if (result != ND_SUCCESS)
			return result;
	}
	const std::size_t needed =
		found.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
	if (!has_room(local, length, needed))
		return ND_BUFFER_OVERFLOW;
	std::memcpy(local, &found, needed);
	return ND_SUCCESS;
}

HRESULT NdCheckAddress(const struct sockaddr *address, SIZE_T length)
{
	std::uint64_t id;
	HRESULT result;

	if (!is_started())
		return ND_DEVICE_NOT_READY;
	result = check_address(address, length, ND_INVALID_PARAMETER_2);
	return result != ND_SUCCESS ? result : find_id(address, &id);
}

HRESULT NdOpenAdapter(REFIID iid, const struct sockaddr *address, SIZE_T length, VOID **out)
{
	HRESULT result;

	clear(out);
	if (!is_started())
		return ND_DEVICE_NOT_READY;
	result = check_address(address, length, ND_INVALID_PARAMETER_2);
	return result != ND_SUCCESS ? result : open_by_address(address, iid, out);
}

HRESULT NdOpenV1Adapter(const struct sockaddr *, SIZE_T, struct INDAdapter **)
{
	return is_started() ? ND_NOT_SUPPORTED : ND_DEVICE_NOT_READY;
}

STDAPI DllGetClassObject(REFCLSID clsid, REFIID iid, LPVOID *out)
{
	clear(out);
	if (!(clsid == CLSID_NdxProvider))
		return CLASS_E_CLASSNOTAVAILABLE;
	if (iid == IID_IClassFactory)
		return give(new Factory(), iid, out);
	return give(new Provider(), iid, out);
}

STDAPI DllCanUnloadNow(void)
{
	return S_FALSE;
}
