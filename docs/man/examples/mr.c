/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: memory regions and windows. */
#include <stdio.h>

#include <ndx/ndx.h>

/* Register memory without waiting longer than a second. */
enum ndx_status example_region(struct ndx_adapter *adapter, void *buffer, size_t length,
                               struct ndx_mr **out)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_mr_create(adapter, out);

	if (st != NDX_OK)
		return st;
	st = ndx_mr_register(*out, buffer, length, NDX_MR_ALLOW_REMOTE_READ, &ov);
	if (st == NDX_PENDING && ndx_overlapped_wait(&ov, 1000) == NDX_PENDING)
		(void)ndx_mr_cancel(*out);
	if (st == NDX_PENDING)
		st = ndx_overlapped_status(&ov);
	if (st != NDX_OK)
		ndx_mr_close(*out);
	return st;
}

/* Register memory of another device, of which there is a dma-buf. */
enum ndx_status example_dmabuf(struct ndx_mr *mr, int dmabuf, size_t length)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st =
		ndx_mr_register_dmabuf(mr, dmabuf, 0, length, 0, NDX_MR_ALLOW_LOCAL_WRITE, &ov);

	return st == NDX_PENDING ? ndx_overlapped_wait(&ov, NDX_INFINITE) : st;
}

/* Tokens: the local one for own requests, the remote one for the peer. */
void example_tokens(const struct ndx_mr *mr, void *buffer, uint32_t length, struct ndx_sge *own,
                    struct ndx_memory_description *for_peer)
{
	*own = (struct ndx_sge){buffer, length, ndx_mr_get_local_token(mr)};
	*for_peer = (struct ndx_memory_description){.address = (uintptr_t)buffer,
	                                            .length = length,
	                                            .token = ndx_mr_get_remote_token(mr)};
}

/* Take the peer's rights away; from then on it can neither read nor write the memory. */
enum ndx_status example_revoke(struct ndx_mr *mr)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_mr_deregister(mr, &ov);

	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, NDX_INFINITE);
	if (st == NDX_E_DEVICE_BUSY)
		fprintf(stderr, "a window is bound to the region; invalidate it first\n");
	return st;
}

/* Let the peer of a queue pair read a part of a region, with a token of its own. */
enum ndx_status example_window(struct ndx_adapter *adapter, struct ndx_qp *qp, struct ndx_mr *mr,
                               void *part, size_t length, struct ndx_mw **out, uint32_t *token)
{
	enum ndx_status st = ndx_mw_create(adapter, out);

	if (st != NDX_OK)
		return st;
	st = ndx_qp_bind(qp, NULL, mr, *out, part, length, NDX_OP_ALLOW_READ);
	if (st == NDX_OK)
		*token = ndx_mw_get_remote_token(*out);
	else
		ndx_mw_close(*out);
	return st;
}
