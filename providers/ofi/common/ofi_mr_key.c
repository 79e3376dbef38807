/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration in libfabric. */
#include <ndx/spi/system.h>
#include "ofi.h"

#define KEY_TRIES 16

int ofi_mr_reg(struct ofi_adapter *adapter, const void *buffer, size_t length, uint64_t access,
               struct fid_mr **out, uint32_t *key)
{
	int err = FI_ENOKEY;

	if (adapter->backend->native_keys) {
		err = -fi_mr_reg(adapter->domain, buffer, length, access, 0, 0, 0, out, NULL);
		if (err == 0)
			*key = (uint32_t)fi_mr_key(*out);
		return err;
	}
	for (int i = 0; i < KEY_TRIES && err == FI_ENOKEY; i++) {
		if (ndxp_random(key, sizeof(*key)) != NDX_OK)
			return EIO;
		if (*key == 0)
			continue;
		err = -fi_mr_reg(adapter->domain, buffer, length, access, 0, *key, 0, out, NULL);
	}
	return err;
}

uint64_t ofi_mr_access(uint32_t rights)
{
	uint64_t access = 0;

	if (rights & OFI_GRANT_READ)
		access |= FI_REMOTE_READ;
	if (rights & OFI_GRANT_WRITE)
		access |= FI_REMOTE_WRITE;
	return access;
}
