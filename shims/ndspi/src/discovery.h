/* SPDX-License-Identifier: BSD-2-Clause */
/* Which adapters there are, and which one has an address: by the list of NDX. */
#ifndef NDX_ND_DISCOVERY_H
#define NDX_ND_DISCOVERY_H

#include "addresses.h"

namespace nd
{

/* Open the adapter with this local address, or with this id. */
HRESULT open_by_address(const struct sockaddr *address, REFIID iid, void **out);
HRESULT open_by_id(std::uint64_t id, REFIID iid, void **out);
/* The id of the adapter with this local address. */
HRESULT find_id(const struct sockaddr *address, std::uint64_t *id);
/* The addresses of all adapters; flags: ND_QUERY_EXCLUDE_... */
HRESULT find_addresses(DWORD flags, Addresses *addresses);

} // namespace nd

#endif
