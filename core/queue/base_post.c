/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/post.h>

static enum ndx_status post_request(struct ndx_qp *qp, const struct ndxp_post *post)
{
	const enum ndx_status st = ndxp_qp_of(qp)->post(ndxp_qp_of(qp), post);

	return st == NDX_PENDING ? NDX_OK : st;
}

enum ndx_status ndxp_post_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags)
{
	return post_request(qp, &(struct ndxp_post){.type = NDX_REQUEST_SEND,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .flags = flags,
	                                            .allowed = NDXP_SEND_FLAGS});
}

enum ndx_status ndxp_post_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct ndxp_post){.type = NDX_REQUEST_SEND,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .immediate = immediate,
	                                            .with_immediate = true,
	                                            .flags = flags,
	                                            .allowed = NDXP_SEND_FLAGS});
}

enum ndx_status ndxp_post_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags)
{
	return post_request(qp, &(struct ndxp_post){.type = NDX_REQUEST_READ,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .remote_address = remote_address,
	                                            .remote_token = remote_token,
	                                            .flags = flags,
	                                            .allowed = NDXP_READ_FLAGS});
}

enum ndx_status ndxp_post_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags)
{
	return post_request(qp, &(struct ndxp_post){.type = NDX_REQUEST_WRITE,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .remote_address = remote_address,
	                                            .remote_token = remote_token,
	                                            .flags = flags,
	                                            .allowed = NDXP_WRITE_FLAGS});
}

enum ndx_status ndxp_post_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags)
{
	return post_request(qp, &(struct ndxp_post){.type = NDX_REQUEST_WRITE,
	                                            .context = context,
	                                            .sge = sge,
	                                            .count = count,
	                                            .remote_address = remote_address,
	                                            .remote_token = remote_token,
	                                            .immediate = immediate,
	                                            .with_immediate = true,
	                                            .flags = flags,
	                                            .allowed = NDXP_SEND_FLAGS});
}

/* ---- lists ---- */

bool ndxp_post_of(const struct ndx_request *request, struct ndxp_post *post)
{
	static const struct {
		uint8_t type;
		uint8_t allowed;
		bool with_immediate;
	} kinds[] = {
		[NDX_POST_SEND] = {NDX_REQUEST_SEND, NDXP_SEND_FLAGS, false},
		[NDX_POST_SEND_IMMEDIATE] = {NDX_REQUEST_SEND, NDXP_SEND_FLAGS, true},
		[NDX_POST_READ] = {NDX_REQUEST_READ, NDXP_READ_FLAGS, false},
		[NDX_POST_WRITE] = {NDX_REQUEST_WRITE, NDXP_WRITE_FLAGS, false},
		[NDX_POST_WRITE_IMMEDIATE] = {NDX_REQUEST_WRITE, NDXP_SEND_FLAGS, true},
	};
	const unsigned type = (unsigned)request->type;

	if (type == 0 || type >= sizeof(kinds) / sizeof(kinds[0]))
		return false;
	*post = (struct ndxp_post){
		.context = request->context,
		.sge = request->sge,
		.count = request->sge_count,
		.remote_address = request->remote_address,
		.remote_token = request->remote_token,
		.immediate = kinds[type].with_immediate ? request->immediate : 0,
		.flags = request->flags,
		.allowed = kinds[type].allowed,
		.type = kinds[type].type,
		.with_immediate = kinds[type].with_immediate,
	};
	return true;
}

static enum ndx_status post_single(struct ndx_qp *qp, const struct ndx_request *r)
{
	switch (r->type) {
	case NDX_POST_SEND:
		return ndx_qp_send(qp, r->context, r->sge, r->sge_count, r->flags);
	case NDX_POST_SEND_IMMEDIATE:
		return ndx_qp_send_immediate(qp, r->context, r->sge, r->sge_count, r->immediate,
		                             r->flags);
	case NDX_POST_READ:
		return ndx_qp_read(qp, r->context, r->sge, r->sge_count, r->remote_address,
		                   r->remote_token, r->flags);
	case NDX_POST_WRITE:
		return ndx_qp_write(qp, r->context, r->sge, r->sge_count, r->remote_address,
		                    r->remote_token, r->flags);
	case NDX_POST_WRITE_IMMEDIATE:
		return ndx_qp_write_immediate(qp, r->context, r->sge, r->sge_count,
		                              r->remote_address, r->remote_token, r->immediate,
		                              r->flags);
	}
	return NDX_E_INVALID_PARAMETER;
}

enum ndx_status ndxp_post_singly(struct ndx_qp *qp, const struct ndx_request *list, size_t size,
                                 size_t count, size_t *posted)
{
	enum ndx_status st = NDX_OK;
	size_t i = 0;

	for (; i < count && st == NDX_OK; i += st == NDX_OK)
		st = post_single(qp, ndxp_request_at(list, size, i));
	*posted = i;
	return st;
}

enum ndx_status ndxp_receive_singly(struct ndx_qp *qp, const struct ndx_receive *list, size_t size,
                                    size_t count, size_t *posted)
{
	enum ndx_status st = NDX_OK;
	size_t i = 0;

	for (; i < count && st == NDX_OK; i += st == NDX_OK) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = ndx_qp_receive(qp, r->context, r->sge, r->sge_count);
	}
	*posted = i;
	return st;
}

enum ndx_status ndxp_srq_receive_singly(struct ndx_srq *srq, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted)
{
	enum ndx_status st = NDX_OK;
	size_t i = 0;

	for (; i < count && st == NDX_OK; i += st == NDX_OK) {
		const struct ndx_receive *r = ndxp_receive_at(list, size, i);

		st = ndx_srq_receive(srq, r->context, r->sge, r->sge_count);
	}
	*posted = i;
	return st;
}
