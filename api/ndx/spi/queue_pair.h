/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider-independent half of a queue pair: state, slots, request records, completion in
 * posting order.
 *
 * Each side (initiator, receive) is a ring of request records in posting order. A request gets a
 * slot (ndxp_admit_*), the provider hands the request to the stack, the request is done in any
 * order (ndxp_req_done), and is retired in posting order: its result goes to the completion queue,
 * or is dropped if it succeeded silently. The slot is free again when the consumer takes the
 * result.
 *
 * Every function here except ndxp_queue_give_back() needs the queue pair's lock held.
 */
#ifndef NDX_SPI_QUEUE_PAIR_H
#define NDX_SPI_QUEUE_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/completion_queue.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

enum ndxp_qp_state {
	NDXP_QP_IDLE,    /* never connected: receives only */
	NDXP_QP_UP,      /* posts go out */
	NDXP_QP_CLOSING, /* initiator posts complete CANCELED, after the requests in flight */
	NDXP_QP_DEAD,    /* all posts complete CANCELED at once */
};

/* A request; the first member of the provider's record. */
struct ndxp_req {
	void *context;
	enum ndx_status status;
	uint32_t bytes;
	uint32_t immediate;
	int32_t native;
	uint8_t type;         /* enum ndx_request_type */
	uint8_t op_flags;     /* enum ndx_op_flag */
	uint8_t result_flags; /* enum ndx_result_flag */
	bool done;
};

struct ndxp_qp;

struct ndxp_queue {
	struct ndxp_qp *qp;
	struct ndxp_cq *cq; /* NULL for a receive side with an SRQ */
	char *reqs;
	uint32_t stride; /* size of the provider's record */
	uint32_t depth;
	uint32_t mask;  /* ring size - 1 */
	uint32_t head;  /* position of the next request to retire */
	uint32_t tail;  /* position of the next request to post */
	uint32_t freed; /* slots given back; atomic, never ahead of `head` */
	bool broken;    /* a request failed other than by cancellation: the others are cancelled */
	/* For statistics; the other counters follow from the positions above. */
	uint32_t laps;                       /* how often `tail` has wrapped */
	uint64_t silent;                     /* requests retired without a result */
	uint32_t failed[NDX_STATS_STATUSES]; /* 32 bits suffice: failures are rare */
};

struct ndxp_post;

struct ndxp_qp {
	struct ndx_spi_qp spi;
	struct ndxp_lock lock;
	enum ndxp_qp_state state;
	uint32_t max_transfer; /* bytes */
	struct ndxp_queue initiator;
	struct ndxp_queue receive;
	uint64_t rnr_waits;   /* RNR waits: how often a send began to wait for the peer's receive */
	uint64_t rnr_wait_ns; /* time of the RNR waits that have ended */
	uint64_t rnr_since;   /* when the current RNR wait began; 0: none */
	/* Position of the initiator request that receives do not wait for (<ndx/spi/reorder.h>);
	 * -1: none. For the thread that reads the native queue. */
	int64_t reorder_exempt;
	/* The provider's, for ndxp_post_*() if its table has those. NDX_PENDING: the request was
	 * taken and canceled. */
	enum ndx_status (*post)(struct ndxp_qp *qp, const struct ndxp_post *post);
};

/* Initialise with `attr` as granted and attach to the completion queues. The strides are the sizes
 * of the provider's records. The caller has zeroed the queue pair. */
enum ndx_status ndxp_qp_init(struct ndxp_qp *qp, const struct ndx_qp_ops *ops,
                             const struct ndx_qp_attr *attr, uint32_t max_transfer,
                             size_t initiator_stride, size_t receive_stride);
/* Detach; results stay in the completion queues. */
void ndxp_qp_fini(struct ndxp_qp *qp);

static inline struct ndxp_qp *ndxp_qp_of(struct ndx_qp *qp)
{
	return (struct ndxp_qp *)(void *)qp;
}

static inline struct ndxp_req *ndxp_queue_at(const struct ndxp_queue *q, uint32_t index)
{
	return (struct ndxp_req *)(void *)(q->reqs + (size_t)(index & q->mask) * q->stride);
}

/* The number of requests that are posted and not retired. */
static inline uint32_t ndxp_queue_outstanding(const struct ndxp_queue *q)
{
	return q->tail - q->head;
}

/* Retire the requests that are done, beginning at the head. */
void ndxp_queue_retire(struct ndxp_queue *q);

/* End every request that is not done with `status`, and retire. */
void ndxp_queue_cancel(struct ndxp_queue *q, enum ndx_status status);

/* The implementation of the provider operation of the same name; the caller holds the lock. */
void ndxp_qp_get_stats(const struct ndxp_qp *qp, struct ndx_qp_stats *stats);
/* The counters of one side, for a provider's own queues. */
void ndxp_queue_get_stats(const struct ndxp_queue *q, struct ndx_work_stats *stats);

/* An RNR wait begins: a send waits for the peer to post a receive. Does nothing during a wait. */
void ndxp_qp_rnr_begin(struct ndxp_qp *qp);
void ndxp_qp_rnr_record(struct ndxp_qp *qp);

/* How many milliseconds of no_receive_timeout_ms are left to a send that waits since `since_ns`. 0:
 * the time is over; NDX_INFINITE: there is no limit. */
uint32_t ndxp_qp_rnr_left_ms(const struct ndxp_qp *qp, uint64_t since_ns);

/* The RNR wait is over, if there is one. */
static inline void ndxp_qp_rnr_end(struct ndxp_qp *qp)
{
	if (__builtin_expect(qp->rnr_since != 0, 0))
		ndxp_qp_rnr_record(qp);
}

/* The consumer has taken `count` results. */
static inline void ndxp_queue_give_back(struct ndxp_queue *q, uint32_t count)
{
	__atomic_fetch_add(&q->freed, count, __ATOMIC_RELEASE);
}

/* The request has ended; retires as many requests as possible. */
static inline void ndxp_req_done(struct ndxp_queue *q, struct ndxp_req *req, enum ndx_status status,
                                 int32_t native)
{
	req->status = status;
	req->native = native;
	req->done = true;
	/* Usually the request is the oldest. */
	ndxp_queue_retire(q);
}

/* Retire the oldest request, which is `req` and has succeeded, directly into a consumer's
 * result. False: no result, because the request was silent. The caller then retires the requests
 * behind it. */
static inline bool ndxp_queue_pop_result(struct ndxp_queue *q, const struct ndxp_req *req,
                                         struct ndx_result *result)
{
	q->head++;
	ndxp_queue_give_back(q, 1);
	if (req->op_flags & NDX_OP_SILENT_SUCCESS) {
		q->silent++;
		return false;
	}
	result->status = NDX_OK;
	result->bytes_transferred = req->bytes;
	result->queue_pair_context = q->qp->spi.attr.context;
	result->request_context = req->context;
	result->request_type = (enum ndx_request_type)req->type;
	result->flags = req->result_flags;
	result->immediate = req->immediate;
	result->native = 0;
	return true;
}

/* Add the lengths into *total; false if the sum exceeds `max`. */
static inline bool ndxp_sge_sum(const struct ndx_sge *sge, size_t count, uint32_t max,
                                uint32_t *total)
{
	uint64_t sum = 0;

	if (count == 1) { /* the usual case */
		*total = sge->length;
		return sge->length <= max;
	}
	for (size_t i = 0; i < count; i++)
		sum += sge[i].length;
	*total = (uint32_t)sum;
	return sum <= max;
}

static inline void ndxp_req_begin(struct ndxp_req *req, void *context, uint8_t type, uint32_t flags)
{
	req->context = context;
	req->bytes = 0;
	req->immediate = 0;
	req->type = type;
	req->op_flags = (uint8_t)flags;
	req->result_flags = 0;
	req->done = false;
}

/* Take a free slot; NULL if the queue is full. */
static inline struct ndxp_req *ndxp_queue_take(struct ndxp_queue *q, void *context, uint8_t type,
                                               uint32_t flags)
{
	struct ndxp_req *req;

	if (q->tail - __atomic_load_n(&q->freed, __ATOMIC_ACQUIRE) >= q->depth)
		return NULL;
	req = ndxp_queue_at(q, q->tail);
	if (__builtin_expect(++q->tail == 0, 0))
		q->laps++;
	ndxp_req_begin(req, context, type, flags);
	return req;
}

/*
 * Admit an initiator request: check state, flags, SGEs and length, take a slot.
 *
 * NDX_OK: *out is a slot; the provider hands it to the stack and ends it by ndxp_req_done().
 * NDX_PENDING: the request was taken and cancelled, because the connection has ended; the consumer
 * gets NDX_OK. Otherwise nothing was taken, and the consumer gets the status.
 */
static inline enum ndx_status ndxp_admit_initiator(struct ndxp_qp *qp, uint8_t type, void *context,
                                                   const struct ndx_sge *sge, size_t count,
                                                   uint32_t flags, uint32_t allowed,
                                                   uint32_t max_sge, uint32_t *length,
                                                   struct ndxp_req **out)
{
	bool is_inline = (flags & NDX_OP_INLINE) != 0;
	struct ndxp_req *req;

	if (qp->state == NDXP_QP_IDLE)
		return NDX_E_CONNECTION_INVALID;
	if (flags & ~allowed)
		return NDX_E_INVALID_PARAMETER;
	if (count > max_sge && !is_inline)
		return NDX_E_DATA_OVERRUN;
	if (!ndxp_sge_sum(sge, count, is_inline ? qp->spi.attr.inline_size : qp->max_transfer,
	                  length))
		return NDX_E_BUFFER_OVERFLOW;
	req = ndxp_queue_take(&qp->initiator, context, type, flags);
	if (req == NULL)
		return NDX_E_NO_MORE_ENTRIES;
	if (qp->state != NDXP_QP_UP) {
		ndxp_req_done(&qp->initiator, req, NDX_E_CANCELED, 0);
		return NDX_PENDING;
	}
	*out = req;
	return NDX_OK;
}

/* The memory of an SGE for a function that takes no const pointer. The rights of the region decide
 * whether the memory is written. */
static inline void *ndxp_sge_memory(const struct ndx_sge *sge)
{
	return (void *)(uintptr_t)sge->buffer;
}

/* Like ndxp_admit_initiator(), for a receive; *length is the size of its memory. */
static inline enum ndx_status ndxp_admit_receive(struct ndxp_qp *qp, void *context,
                                                 const struct ndx_sge *sge, size_t count,
                                                 uint32_t *length, struct ndxp_req **out)
{
	struct ndxp_req *req;

	if (qp->receive.cq == NULL)
		return NDX_E_INVALID_DEVICE_STATE;
	if (count > qp->spi.attr.max_receive_sge)
		return NDX_E_DATA_OVERRUN;
	if (!ndxp_sge_sum(sge, count, qp->max_transfer, length))
		return NDX_E_BUFFER_OVERFLOW;
	req = ndxp_queue_take(&qp->receive, context, NDX_REQUEST_RECEIVE, 0);
	if (req == NULL)
		return NDX_E_NO_MORE_ENTRIES;
	if (qp->state == NDXP_QP_DEAD) {
		ndxp_req_done(&qp->receive, req, NDX_E_CANCELED, 0);
		return NDX_PENDING;
	}
	*out = req;
	return NDX_OK;
}

NDXP_DECLS_END

#endif
