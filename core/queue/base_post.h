/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entry points of a queue pair for requests that move data, but receives: each hands its
 * parameters to base_qp.post of the provider. (verbs has its own, which the compiler makes anew for
 * each type of request.)
 */
#ifndef BASE_POST_H
#define BASE_POST_H

#include <ndx/qp.h>
#include <ndx/srq.h>

#include "base_qp.h"

/* The flags that a request may have. A write with immediate data is a send in this regard. */
#define BASE_READ_FLAGS (NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE)
#define BASE_WRITE_FLAGS (BASE_READ_FLAGS | NDX_OP_INLINE)
#define BASE_SEND_FLAGS (BASE_WRITE_FLAGS | NDX_OP_SOLICIT_EVENT)
#define BASE_BIND_FLAGS (BASE_READ_FLAGS | NDX_OP_ALLOW_READ | NDX_OP_ALLOW_WRITE)
#define BASE_INVALIDATE_FLAGS BASE_READ_FLAGS

/* The parameters of a send, read or write. */
struct base_post {
	void *context;
	const struct ndx_sge *sge;
	size_t count;
	uint64_t remote_address;
	uint32_t remote_token;
	uint32_t immediate;
	uint32_t flags;
	uint32_t allowed; /* flags */
	uint8_t type;     /* enum ndx_request_type */
	bool with_immediate;
};

enum ndx_status base_post_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags);
enum ndx_status base_post_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags);
enum ndx_status base_post_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags);
enum ndx_status base_post_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags);
enum ndx_status base_post_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags);

/* The entries of a list are `size` bytes apart. */
static inline const struct ndx_request *base_request_at(const struct ndx_request *list, size_t size,
                                                        size_t index)
{
	return (const struct ndx_request *)(const void *)((const char *)list + index * size);
}
static inline const struct ndx_receive *base_receive_at(const struct ndx_receive *list, size_t size,
                                                        size_t index)
{
	return (const struct ndx_receive *)(const void *)((const char *)list + index * size);
}

/* The parameters of a request of a list. False: its type is not one of enum ndx_post. */
bool base_post_of(const struct ndx_request *request, struct base_post *post);

/* Lists for queues that take one request at a time; parameters as those of the functions in
 * ndx_qp_ops and ndx_srq_ops. */
enum ndx_status base_post_singly(struct ndx_qp *qp, const struct ndx_request *list, size_t size,
                                 size_t count, size_t *posted);
enum ndx_status base_receive_singly(struct ndx_qp *qp, const struct ndx_receive *list, size_t size,
                                    size_t count, size_t *posted);
enum ndx_status base_srq_receive_singly(struct ndx_srq *srq, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted);

/* base_admit_initiator() with these parameters. */
static inline enum ndx_status base_post_admit(struct base_qp *qp, const struct base_post *post,
                                              uint32_t *length, struct base_req **out)
{
	return base_admit_initiator(qp, post->type, post->context, post->sge, post->count,
	                            post->flags, post->allowed, qp->spi.attr.max_initiator_sge,
	                            length, out);
}

#endif
