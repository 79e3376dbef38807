/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_post.h"

static enum ndx_status post_request(struct ndx_qp *qp, const struct base_post *post)
{
	const enum ndx_status st = base_qp_of(qp)->post(base_qp_of(qp), post);

	return st == NDX_PENDING ? NDX_OK : st;
}

enum ndx_status base_post_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags)
{
	return post_request(qp, &(struct base_post){.type = NDX_REQUEST_SEND,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .flags = flags,
	                                            .allowed = BASE_SEND_FLAGS});
}

enum ndx_status base_post_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct base_post){.type = NDX_REQUEST_SEND,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .immediate = immediate,
	                                            .with_immediate = true,
	                                            .flags = flags,
	                                            .allowed = BASE_SEND_FLAGS});
}

enum ndx_status base_post_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags)
{
	return post_request(qp, &(struct base_post){.type = NDX_REQUEST_READ,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .remote_address = remote_address,
	                                            .remote_token = remote_token,
	                                            .flags = flags,
	                                            .allowed = BASE_READ_FLAGS});
}

enum ndx_status base_post_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags)
{
	return post_request(qp, &(struct base_post){.type = NDX_REQUEST_WRITE,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .remote_address = remote_address,
	                                            .remote_token = remote_token,
	                                            .flags = flags,
	                                            .allowed = BASE_WRITE_FLAGS});
}

enum ndx_status base_post_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct base_post){.type = NDX_REQUEST_WRITE,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .remote_address = remote_address,
	                                            .remote_token = remote_token,
	                                            .immediate = immediate,
	                                            .with_immediate = true,
	                                            .flags = flags,
	                                            .allowed = BASE_SEND_FLAGS});
}
