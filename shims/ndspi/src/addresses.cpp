/* SPDX-License-Identifier: BSD-2-Clause */
#include "addresses.h"

#include <netinet/in.h>

namespace nd
{

namespace
{

std::size_t length_of(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(sockaddr_in);
	case AF_INET6:
		return sizeof(sockaddr_in6);
	default:
		return 0;
	}
}

bool is_same_host(const struct sockaddr *left, const struct sockaddr *right)
{
	if (left->sa_family != right->sa_family)
		return false;
	if (left->sa_family == AF_INET)
		return reinterpret_cast<const sockaddr_in *>(left)->sin_addr.s_addr ==
		       reinterpret_cast<const sockaddr_in *>(right)->sin_addr.s_addr;
	return std::memcmp(&reinterpret_cast<const sockaddr_in6 *>(left)->sin6_addr,
	                   &reinterpret_cast<const sockaddr_in6 *>(right)->sin6_addr,
	                   sizeof(in6_addr)) == 0;
}

const struct sockaddr *generic(const sockaddr_storage *address)
{
	return reinterpret_cast<const struct sockaddr *>(address);
}

} // namespace

Addresses::~Addresses()
{
	std::free(all_);
}

bool Addresses::make_room(std::size_t more)
{
	void *all = std::realloc(all_, (count_ + more) * sizeof(*all_));

	if (all == nullptr)
		return false;
	all_ = static_cast<sockaddr_storage *>(all);
	return true;
}

/* Of the addresses behind the last one keep those that are new: two providers may serve one. */
void Addresses::keep_new(std::size_t more)
{
	const std::size_t end = count_ + more;

	for (std::size_t i = count_; i < end; i++) {
		if (!has(generic(&all_[i])))
			all_[count_++] = all_[i];
	}
}

bool Addresses::add(const sockaddr_storage *more, std::size_t count)
{
	if (count == 0)
		return true;
	if (!make_room(count))
		return false;
	std::memcpy(all_ + count_, more, count * sizeof(*more));
	keep_new(count);
	return true;
}

bool Addresses::add(ndx_adapter *adapter)
{
	std::size_t more = 0;

	/* the number may change between two calls; then the next search sees the change */
	(void)ndx_adapter_query_addresses(adapter, nullptr, &more);
	if (more == 0)
		return true;
	if (!make_room(more))
		return false;
	if (ndx_adapter_query_addresses(adapter, all_ + count_, &more) == NDX_OK)
		keep_new(more);
	return true;
}

bool Addresses::has(const struct sockaddr *address) const
{
	for (std::size_t i = 0; i < count_; i++) {
		if (is_same_host(generic(&all_[i]), address))
			return true;
	}
	return false;
}

std::size_t Addresses::size() const
{
	return offsetof(SOCKET_ADDRESS_LIST, Address) +
	       count_ * (sizeof(SOCKET_ADDRESS) + sizeof(sockaddr_storage));
}

void Addresses::write(SOCKET_ADDRESS_LIST *list) const
{
	char *body = reinterpret_cast<char *>(&list->Address[count_]);

	list->iAddressCount = static_cast<INT>(count_);
	for (std::size_t i = 0; i < count_; i++, body += sizeof(all_[i])) {
		std::memcpy(body, &all_[i], sizeof(all_[i]));
		list->Address[i].lpSockaddr = reinterpret_cast<struct sockaddr *>(body);
		list->Address[i].iSockaddrLength = static_cast<INT>(length_of(generic(&all_[i])));
	}
}

HRESULT check_address(const struct sockaddr *address, std::size_t length, HRESULT otherwise)
{
	std::size_t needed;

	if (address == nullptr || length < sizeof(struct sockaddr))
		return otherwise;
	needed = length_of(address);
	if (needed == 0)
		return ND_INVALID_ADDRESS;
	return length < needed ? otherwise : ND_SUCCESS;
}

} // namespace nd
