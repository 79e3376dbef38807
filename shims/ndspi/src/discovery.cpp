/* SPDX-License-Identifier: BSD-2-Clause */
#include "discovery.h"

#include "ndsupport.h"
#include "objects.h"

namespace nd
{

namespace
{

/* An adapter: its entry of the list, or the adapter itself, opened. */
struct Candidate {
	const ndx_adapter_entry *entry = nullptr;
	ndx_adapter *adapter = nullptr;
	ndx_adapter_info info{};

	Candidate() = default;
	Candidate(const Candidate &) = delete;
	Candidate &operator=(const Candidate &) = delete;
	~Candidate()
	{
		ndx_adapter_close(adapter);
	}
	std::uint64_t id() const
	{
		return entry != nullptr ? entry->adapter_id : info.adapter_id;
	}
	bool add_to(Addresses *addresses) const
	{
		return entry != nullptr ? addresses->add(entry->addresses, entry->address_count)
		                        : addresses->add(adapter);
	}
	ndx_status open(const char *uri)
	{
		const ndx_status status = ndx_adapter_open(uri, &adapter);

		info.size = sizeof(info);
		return status == NDX_OK ? ndx_adapter_query(adapter, &info) : status;
	}
	ndx_status open()
	{
		return adapter == nullptr ? open(entry->uri) : NDX_OK;
	}
};

/* What a search does with an adapter. */
struct Visitor {
	/* true: the search is over. The visitor may take the adapter out of the candidate. */
	virtual bool visit(Candidate *candidate) = 0;

      protected:
	~Visitor() = default;
};

/* ndx_adapter_list() */
struct List {
	ndx_adapter_entry *entries = nullptr;
	std::size_t count = 0;
	const ndx_status status = ndx_adapter_list(&entries, &count);

	List() = default;
	List(const List &) = delete;
	List &operator=(const List &) = delete;
	~List()
	{
		ndx_adapter_list_free(entries);
	}
};

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
	const List list;
	bool over = false;

	for (std::size_t place = 0; place < 3; place++) {
		for (std::size_t i = 0; i < list.count && !over; i++) {
			Candidate candidate;

			candidate.entry = &list.entries[i];
			if (is_of(list.entries[i], place))
				over = visitor->visit(&candidate);
		}
	}
	return hresult_of(list.status);
}

bool names(const char *uri, const char *provider)
{
	const std::size_t length = std::strlen(provider);

	return std::strncmp(uri, provider, length) == 0 &&
	       (uri[length] == '\0' || uri[length] == ':' || uri[length] == '?');
}

/* The list has the addresses of an adapter that the user chose if a usable entry has the very URI;
 * other keys may mean other addresses. If neither RDMA stack is chosen, listing would load them for
 * nothing. */
ndx_status visit_chosen(const char *uri, Visitor *visitor)
{
	ndx_status status = NDX_OK;
	Candidate candidate;

	if (names(uri, "verbs") || names(uri, "ofi")) {
		const List list;

		for (std::size_t i = 0; i < list.count; i++) {
			if (list.entries[i].state != NDX_OK ||
			    std::strcmp(list.entries[i].uri, uri) != 0)
				continue;
			candidate.entry = &list.entries[i];
			(void)visitor->visit(&candidate);
			return NDX_OK;
		}
		if (list.status != NDX_OK)
			return list.status;
	}
	status = candidate.open(uri);
	if (status == NDX_OK)
		(void)visitor->visit(&candidate);
	return status;
}

/* Show the adapters to the visitor, one after the other, until the search is over. */
HRESULT visit_all(Visitor *visitor)
{
	char uri[1024];
	std::size_t size = sizeof(uri);
	ndx_status status = ndx_adapter_default(uri, &size);

	if (status == NDX_E_NOT_FOUND)
		return visit_listed(visitor);
	if (status == NDX_OK)
		status = visit_chosen(uri, visitor);
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

	bool visit(Candidate *candidate) override
	{
		if (address != nullptr) {
			Addresses own;

			if (!candidate->add_to(&own) || !own.has(address))
				return false;
		} else if (candidate->id() != id) {
			return false;
		}
		id = candidate->id();
		if (iid == nullptr) {
			result = ND_SUCCESS;
			return true;
		}
		result = hresult_of(candidate->open());
		if (result != ND_SUCCESS)
			return false; /* another one may have the address */
		auto *object = new Adapter(candidate->adapter, candidate->info);
		if (object != nullptr)
			candidate->adapter = nullptr;
		result = give(object, *iid, out);
		return true;
	}
};

struct Collector : Visitor {
	bool without_software = false;
	Addresses *addresses = nullptr;
	HRESULT result = ND_SUCCESS;

	bool visit(Candidate *candidate) override
	{
		/* the list does not say what is software */
		if (without_software &&
		    (candidate->open() != NDX_OK || candidate->info.vendor_id == 0))
			return false;
		if (!candidate->add_to(addresses))
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
