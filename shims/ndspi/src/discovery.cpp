/* SPDX-License-Identifier: BSD-2-Clause */
#include "discovery.h"

#include "ndsupport.h"
#include "objects.h"

namespace nd
{

namespace
{

/* What a search does with an adapter that has been opened. */
struct Visitor {
	/* true: the search is over, and the adapter, too, is the visitor's */
	virtual bool visit(ndx_adapter *adapter, const ndx_adapter_info &info) = 0;

      protected:
	~Visitor() = default;
};

/* *over: the visitor has what it wants. */
ndx_status visit_uri(const char *uri, Visitor *visitor, bool *over)
{
	ndx_adapter_info info{};
	ndx_adapter *adapter;
	ndx_status status = ndx_adapter_open(uri, &adapter);

	if (status != NDX_OK)
		return status;
	info.size = sizeof(info);
	status = ndx_adapter_query(adapter, &info);
	*over = status == NDX_OK && visitor->visit(adapter, info);
	if (!*over)
		ndx_adapter_close(adapter);
	return status;
}

/* The order of the automatic choice of NDX. loop is for programs that name it. */
const char *const preferred[] = {"verbs", "ofi:verbs", "ofi"};

bool is_of(const ndx_adapter_entry &entry, std::size_t place)
{
	const char *name = preferred[place];
	const bool to_verbs = std::strncmp(entry.uri, "ofi:verbs", 9) == 0;

	if (entry.state != NDX_OK)
		return false;
	if (place == 1)
		return to_verbs;
	return std::strcmp(entry.provider, name) == 0 && !to_verbs;
}

HRESULT visit_listed(Visitor *visitor)
{
	ndx_adapter_entry *entries;
	bool over = false;
	std::size_t count;
	const ndx_status status = ndx_adapter_list(&entries, &count);

	if (status != NDX_OK)
		return hresult_of(status);
	for (std::size_t place = 0; place < 3; place++) {
		for (std::size_t i = 0; i < count && !over; i++) {
			/* one that does not open is in the log; another one may have the address */
			if (is_of(entries[i], place))
				(void)visit_uri(entries[i].uri, visitor, &over);
		}
	}
	ndx_adapter_list_free(entries);
	return ND_SUCCESS;
}

/* Open the adapters one after the other until the visitor has what it wants. */
HRESULT visit_all(Visitor *visitor)
{
	char uri[1024];
	std::size_t size = sizeof(uri);
	ndx_status status = ndx_adapter_default(uri, &size);
	bool over = false;

	if (status == NDX_E_NOT_FOUND)
		return visit_listed(visitor);
	if (status == NDX_OK)
		status = visit_uri(uri, visitor, &over);
	/* the adapter that the configuration names is not there */
	if (status == NDX_E_NOT_FOUND || status == NDX_E_BUFFER_OVERFLOW)
		return ND_DEVICE_NOT_READY;
	return hresult_of(status);
}

/* Gives out the adapter with an address or an id, or only the id. */
struct Finder : Visitor {
	const struct sockaddr *address = nullptr;
	std::uint64_t id = 0;
	const IID *iid = nullptr; /* nullptr: only the id is wanted */
	void **out = nullptr;
	HRESULT result = ND_INVALID_ADDRESS;

	bool visit(ndx_adapter *adapter, const ndx_adapter_info &info) override
	{
		if (address != nullptr) {
			Addresses own;

			if (!own.add(adapter) || !own.has(address))
				return false;
		} else if (info.adapter_id != id) {
			return false;
		}
		id = info.adapter_id;
		result = ND_SUCCESS;
		if (iid == nullptr) {
			ndx_adapter_close(adapter);
			return true;
		}
		auto *object = new Adapter(adapter, info);
		if (object == nullptr)
			ndx_adapter_close(adapter);
		result = give(object, *iid, out);
		return true;
	}
};

struct Collector : Visitor {
	bool without_software = false;
	Addresses *addresses = nullptr;
	HRESULT result = ND_SUCCESS;

	bool visit(ndx_adapter *adapter, const ndx_adapter_info &info) override
	{
		if (!(without_software && info.vendor_id == 0) && !addresses->add(adapter))
			result = ND_NO_MEMORY;
		return false;
	}
};

} // namespace

/* What the finder has found, or why the search failed. */
static HRESULT find_by(Finder *finder)
{
	const HRESULT result = visit_all(finder);

	return result != ND_SUCCESS ? result : finder->result;
}

HRESULT open_by_address(const struct sockaddr *address, REFIID iid, void **out)
{
	Finder finder;

	finder.address = address;
	finder.iid = &iid;
	finder.out = out;
	return find_by(&finder);
}

HRESULT open_by_id(std::uint64_t id, REFIID iid, void **out)
{
	Finder finder;

	finder.id = id;
	finder.iid = &iid;
	finder.out = out;
	finder.result = ND_INVALID_PARAMETER;
	return find_by(&finder);
}

HRESULT find_id(const struct sockaddr *address, std::uint64_t *id)
{
	Finder finder;
	HRESULT result;

	finder.address = address;
	result = find_by(&finder);
	if (result == ND_SUCCESS)
		*id = finder.id;
	return result;
}

HRESULT find_addresses(DWORD flags, Addresses *addresses)
{
	Collector collector;
	HRESULT result;

	if (flags & ND_QUERY_EXCLUDE_NDv2_ADDRESSES)
		return ND_SUCCESS;
	collector.without_software = (flags & ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES) != 0;
	collector.addresses = addresses;
	result = visit_all(&collector);
	return result != ND_SUCCESS ? result : collector.result;
}

} // namespace nd
