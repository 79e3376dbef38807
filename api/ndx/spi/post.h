/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entry points of a queue pair for requests that move data, but receives: each hands its
 * parameters to ndxp_qp.post of the provider. (verbs has its own, which the compiler makes anew for
 * each type of request.)
 */
#ifndef NDX_SPI_POST_H
#define NDX_SPI_POST_H

#include <ndx/qp.h>
#include <ndx/srq.h>

#include <ndx/spi/queue_pair.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/* The flags that a request may have. A write with immediate data is a send in this regard. */
#define NDXP_READ_FLAGS (NDX_OP_SILENT_SUCCESS | NDX_OP_READ_FENCE)
#define NDXP_WRITE_FLAGS (NDXP_READ_FLAGS | NDX_OP_INLINE)
#define NDXP_SEND_FLAGS (NDXP_WRITE_FLAGS | NDX_OP_SOLICIT_EVENT)
#define NDXP_BIND_FLAGS (NDXP_READ_FLAGS | NDX_OP_ALLOW_READ | NDX_OP_ALLOW_WRITE)
#define NDXP_INVALIDATE_FLAGS NDXP_READ_FLAGS

/* The parameters of a send, read or write. */
struct ndxp_post {
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

enum ndx_status ndxp_post_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint32_t flags);
enum ndx_status ndxp_post_send_immediate(struct ndx_qp *qp, void *context,
                                         const struct ndx_sge *sge, size_t count,
                                         uint32_t immediate, uint32_t flags);
enum ndx_status ndxp_post_read(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                               size_t count, uint64_t remote_address, uint32_t remote_token,
                               uint32_t flags);
enum ndx_status ndxp_post_write(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                size_t count, uint64_t remote_address, uint32_t remote_token,
                                uint32_t flags);
enum ndx_status ndxp_post_write_immediate(struct ndx_qp *qp, void *context,
                                          const struct ndx_sge *sge, size_t count,
                                          uint64_t remote_address, uint32_t remote_token,
                                          uint32_t immediate, uint32_t flags);

/* The entries of a list are `size` bytes apart. */
static inline const struct ndx_request *ndxp_request_at(const struct ndx_request *list, size_t size,
                                                        size_t index)
{
	return (const struct ndx_request *)(const void *)((const char *)list + index * size);
}
static inline const struct ndx_receive *ndxp_receive_at(const struct ndx_receive *list, size_t size,
                                                        size_t index)
{
	return (const struct ndx_receive *)(const void *)((const char *)list + index * size);
}

/* The parameters of a request of a list. False: its type is not one of enum ndx_post. */
bool ndxp_post_of(const struct ndx_request *request, struct ndxp_post *post);

/* Lists for queues that take one request at a time; parameters as those of the functions in
 * ndx_qp_ops and ndx_srq_ops. */
enum ndx_status ndxp_post_singly(struct ndx_qp *qp, const struct ndx_request *list, size_t size,
                                 size_t count, size_t *posted);
enum ndx_status ndxp_receive_singly(struct ndx_qp *qp, const struct ndx_receive *list, size_t size,
                                    size_t count, size_t *posted);
enum ndx_status ndxp_srq_receive_singly(struct ndx_srq *srq, const struct ndx_receive *list,
                                        size_t size, size_t count, size_t *posted);

/* ndxp_admit_initiator() with these parameters. */
static inline enum ndx_status ndxp_post_admit(struct ndxp_qp *qp, const struct ndxp_post *post,
                                              uint32_t *length, struct ndxp_req **out)
{
	return ndxp_admit_initiator(qp, post->type, post->context, post->sge, post->count,
	                            post->flags, post->allowed, qp->spi.attr.max_initiator_sge,
	                            length, out);
}

NDXP_DECLS_END

#endif
