/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: descriptions of peers. */
#include <stdio.h>

#include <ndx/ndx.h>

/* The key of a region for a device that does not run NDX, and the token of such a device's key. */
void example_keys(const struct ndx_mr *mr, uint32_t device_key)
{
	printf("rkey for the device: %u\n", ndx_rkey_of_token(ndx_mr_get_remote_token(mr)));
	printf("token for ndx_qp_write(): %u\n", ndx_token_of_rkey(device_key));
}
