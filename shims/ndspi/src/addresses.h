/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_ND_ADDRESSES_H
#define NDX_ND_ADDRESSES_H

#include "object.h"

namespace nd
{

/* The addresses of one adapter, or of several. */
class Addresses
{
      public:
	Addresses() = default;
	~Addresses();
	Addresses(const Addresses &) = delete;
	Addresses &operator=(const Addresses &) = delete;

	/* false: no memory */
	bool add(const sockaddr_storage *more, std::size_t count);
	bool add(ndx_adapter *adapter);
	bool has(const struct sockaddr *address) const;
	std::size_t count() const
	{
		return count_;
	}
	/* Bytes of the list that write() makes: its pointers first, the addresses behind them. */
	std::size_t size() const;
	void write(SOCKET_ADDRESS_LIST *list) const;

      private:
	bool make_room(std::size_t more);
	void keep_new(std::size_t more);

	sockaddr_storage *all_ = nullptr;
	std::size_t count_ = 0;
};

/* ND_SUCCESS, or ND_BUFFER_OVERFLOW with the needed size. */
template <class Size>
HRESULT give_list(const Addresses &addresses, SOCKET_ADDRESS_LIST *list, Size *size)
{
	if (!has_room(list, size, addresses.size()))
		return ND_BUFFER_OVERFLOW;
	addresses.write(list);
	return ND_SUCCESS;
}

/* IPv4 or IPv6, of its full length; else `otherwise`. */
HRESULT check_address(const struct sockaddr *address, std::size_t length, HRESULT otherwise);

} // namespace nd

#endif
