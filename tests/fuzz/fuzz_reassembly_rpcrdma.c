/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC-over-RDMA headers with their chunk lists. */
#include "fuzz.h"
#include "rpcrdma.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rpcrdma_header header;

	if (size < 1 || size > 65536)
		return 0;
	(void)rpcrdma_parse(data + 1, (uint32_t)size - 1, (uint32_t)size - 1 + data[0], &header);
	return 0;
}
