/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, queue pairs, and moving data: a request runs when it is posted, or waits for a receive.
 */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/log.h>
#include <ndx/spi/post.h>
#include <ndx/spi/system.h>
#include "null.h"

#define BUCKETS 1024u

/* The pure right, without the local right that the public flag includes. */
#define REMOTE_WRITE (NDX_MR_ALLOW_REMOTE_WRITE & ~NDX_MR_ALLOW_LOCAL_WRITE)

struct region {
	struct ndx_spi_mr spi;
	struct ndxp_table_node node; /* in `regions` while registered; `hash` is the token */
	uintptr_t start;
	size_t length;
	uint32_t flags; /* enum ndx_mr_flag */
};

/* A request, of either queue; the kit's record comes first. */
struct work {
	struct ndxp_req base;
	uint32_t length;
	uint32_t remote_token;
	uint64_t remote_address;
	struct ndx_sge sge[NULL_MAX_SGE];
};

/* Adapters that were opened independently reach each other, so these belong to the process. */
static struct ndxp_lock board;
static struct ndxp_table_node *buckets[BUCKETS];
static struct ndxp_table regions = {.buckets = buckets, .mask = BUCKETS - 1};

void null_lock(void)
{
	ndxp_lock_acquire(&board);
}

void null_unlock(void)
{
	ndxp_lock_release(&board);
}

/* ---- memory ---- */

enum ndx_status null_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out)
{
	struct region *region = calloc(1, sizeof(*region));

	(void)adapter;
	if (region == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "memory region: out of memory");
	*out = &region->spi;
	return NDX_OK;
}

void null_mr_destroy(struct ndx_spi_mr *spi)
{
	free(ndxp_container_of(spi, struct region, spi));
}

/* Lock held. Tokens are random, so that a peer cannot guess one; 0 is never one. */
static enum ndx_status add_region(struct region *region)
{
	uint32_t token = 0;

	while (token == 0 || ndxp_table_first(&regions, token) != NULL) {
		if (ndxp_random(&token, sizeof(token)) != NDX_OK)
			return NDX_E_INSUFFICIENT_RESOURCES;
	}
	ndxp_table_add(&regions, &region->node, token);
	return NDX_OK;
}

enum ndx_status null_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                 uint32_t flags)
{
	struct region *region = ndxp_container_of(spi, struct region, spi);
	const bool write = (flags & (NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK)) != 0;
	const int err = ndxp_memory_probe(buffer, length, write);
	enum ndx_status st;

	if (err != 0)
		return ndxp_fail_here(NDX_E_ACCESS_VIOLATION, err,
		                      "register %zu bytes at %p: not all of it is mapped %s",
		                      length, buffer,
		                      write ? "for reading and writing" : "for reading");
	region->start = (uintptr_t)buffer;
	region->length = length;
	region->flags = flags;
	null_lock();
	st = add_region(region);
	null_unlock();
	if (st != NDX_OK)
		return ndxp_fail_here(st, 0, "register %zu bytes: no random token", length);
	spi->local_token = (uint32_t)region->node.hash;
	spi->remote_token = spi->local_token;
	return NDX_OK;
}

/* Data is copied under the lock: when this returns, no copy uses the region, and none will. */
enum ndx_status null_mr_deregister(struct ndx_spi_mr *spi, bool closing)
{
	(void)closing;
	null_lock();
	ndxp_table_remove(&ndxp_container_of(spi, struct region, spi)->node);
	null_unlock();
	spi->local_token = 0;
	spi->remote_token = 0;
	return NDX_OK;
}

/* Lock held. Does `token` grant one of `rights` on these bytes of the queue pair's side? Rights 0:
 * to read the bytes of a send or write. No bytes need no token. */
static bool admits(const struct null_qp *qp, uint32_t token, uint64_t address, uint32_t length,
                   uint32_t rights)
{
	struct ndxp_table_node *node = ndxp_table_first(&regions, token);
	const struct region *region;

	if (length == 0 || node == NULL)
		return length == 0;
	region = ndxp_container_of(node, struct region, node);
	return region->spi.object.native == qp->base.spi.object.native &&
	       (rights == 0 || (region->flags & rights) != 0) && address >= region->start &&
	       length <= region->length && address - region->start <= region->length - length;
}

/* Lock held. The same for the first `bytes` of a list. */
static bool admits_list(const struct null_qp *qp, const struct ndx_sge *sge, uint32_t bytes,
                        uint32_t rights)
{
	for (; bytes > 0; sge++) {
		const uint32_t len = sge->length < bytes ? sge->length : bytes;

		if (!admits(qp, sge->token, (uintptr_t)sge->buffer, len, rights))
			return false;
		bytes -= len;
	}
	return true;
}

/* Copy the first `bytes` of one list to the other. */
static void copy(const struct ndx_sge *to, const struct ndx_sge *from, uint32_t bytes)
{
	uint32_t put = 0;
	uint32_t got = 0;

	while (bytes > 0) {
		uint32_t len = bytes;

		if (len > to->length - put)
			len = to->length - put;
		if (len > from->length - got)
			len = from->length - got;
		if (len > 0)
			memmove((char *)ndxp_sge_memory(to) + put, (const char *)from->buffer + got,
			        len);
		bytes -= len;
		put += len;
		got += len;
		if (put == to->length) {
			to++;
			put = 0;
		}
		if (got == from->length) {
			from++;
			got = 0;
		}
	}
}

/* ---- moving data: requests run in posting order, with the lock held ---- */

void null_report(struct null_conn *conn, uint32_t bits, const char *cause)
{
	conn->spi.native->host->report(&conn->spi, bits, 0, cause);
}

/* No data moves any more; posts wait in order until the core calls conn_abort. */
static void stop(struct null_conn *conn, const char *cause)
{
	conn->state = NULL_ENDED;
	conn->peer = NULL;
	conn->draining = false;
	if (conn->qp != NULL) {
		ndxp_qp_rnr_end(&conn->qp->base);
		conn->qp->base.state = NDXP_QP_CLOSING;
	}
	if (cause != NULL)
		null_report(conn, NDX_REPORT_ABORT, cause);
}

void null_disrupt(struct null_conn *conn, const char *own_cause, const char *peers_cause)
{
	struct null_conn *peer = conn->peer;

	if (conn->state != NULL_UP)
		return;
	stop(conn, own_cause);
	if (peer != NULL)
		stop(peer, peers_cause);
}

void null_check_drained(struct null_conn *conn)
{
	if (!conn->draining ||
	    (conn->qp != NULL && ndxp_queue_outstanding(&conn->qp->base.initiator) > 0))
		return;
	conn->draining = false;
	null_report(conn, NDX_REPORT_DRAINED, NULL);
}

static struct work *oldest(const struct ndxp_queue *q)
{
	return ndxp_queue_outstanding(q) > 0 ? (struct work *)(void *)ndxp_queue_at(q, q->head)
	                                     : NULL;
}

/* The failure of a request ends the connection: ABORT comes before any result. */
static void fail_work(struct null_conn *conn, struct work *work, enum ndx_status status)
{
	struct ndxp_queue *q = &conn->qp->base.initiator;

	null_disrupt(conn, "a request failed", "a request of the peer failed");
	ndxp_req_done(q, &work->base, status, 0);
}

static enum ndx_status wait_for_receive(struct null_conn *conn)
{
	struct ndxp_qp *qp = &conn->qp->base;
	const uint32_t limit = qp->spi.attr.no_receive_timeout_ms;
	const bool waits = qp->rnr_since != 0;

	ndxp_qp_rnr_begin(qp);
	if (!waits && limit != NDX_INFINITE)
		ndxp_timer_set(conn->spi.native->loop, &conn->timer, limit);
	return NDX_PENDING;
}

/* The send for which the timer was set may have found its receive. */
void null_no_receive(void *arg)
{
	struct null_conn *conn = arg;
	const struct ndxp_qp *qp;

	null_lock();
	qp = conn->qp != NULL ? &conn->qp->base : NULL;
	if (conn->state == NULL_UP && qp != NULL && qp->rnr_since != 0 &&
	    ndxp_qp_rnr_left_ms(qp, qp->rnr_since) == 0)
		fail_work(conn, oldest(&qp->initiator), NDX_E_IO_TIMEOUT);
	null_unlock();
}

static enum ndx_status run_send(struct null_conn *conn, const struct work *send,
                                struct null_qp *target)
{
	struct work *receive = oldest(&target->base.receive);
	enum ndx_status theirs = NDX_OK;
	enum ndx_status st = NDX_OK;

	if (!admits_list(conn->qp, send->sge, send->length, 0))
		return NDX_E_ACCESS_VIOLATION;
	if (receive == NULL)
		return wait_for_receive(conn);
	if (send->length > receive->length) {
		st = NDX_E_DATA_OVERRUN;
		theirs = NDX_E_BUFFER_OVERFLOW;
	} else if (!admits_list(target, receive->sge, send->length, NDX_MR_ALLOW_LOCAL_WRITE)) {
		st = NDX_E_REMOTE_ERROR;
		theirs = NDX_E_ACCESS_VIOLATION;
	}
	if (st == NDX_OK)
		copy(receive->sge, send->sge, send->length);
	else
		null_disrupt(conn, "a message did not fit the peer's receive",
		             "a message did not fit the receive");
	receive->base.bytes = send->length;
	if ((send->base.op_flags & NDX_OP_SOLICIT_EVENT) != 0)
		receive->base.result_flags = NDX_RESULT_SOLICITED;
	ndxp_req_done(&target->base.receive, &receive->base, theirs, 0);
	return st;
}

/* NDX_PENDING: the request cannot run yet. A read fence needs no code: the reads before have ended.
 */
static enum ndx_status run(struct null_conn *conn, struct work *work)
{
	const bool read = work->base.type == NDX_REQUEST_READ;
	const uint32_t own = read ? NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK : 0;
	const uint32_t theirs = read ? NDX_MR_ALLOW_REMOTE_READ : REMOTE_WRITE;
	const struct ndx_sge remote = {
		.buffer = (const void *)(uintptr_t)work->remote_address,
		.length = work->length,
	};
	struct null_qp *target = conn->peer != NULL ? conn->peer->qp : NULL;

	if (target == NULL) { /* detached: the own disconnect cancels the request */
		ndxp_qp_rnr_end(&conn->qp->base);
		return NDX_PENDING;
	}
	if (work->base.type == NDX_REQUEST_SEND)
		return run_send(conn, work, target);
	if (!admits_list(conn->qp, work->sge, work->length, own) ||
	    !admits(target, work->remote_token, work->remote_address, work->length, theirs))
		return NDX_E_ACCESS_VIOLATION;
	if (read)
		copy(work->sge, &remote, work->length);
	else
		copy(&remote, work->sge, work->length);
	return NDX_OK;
}

void null_pump(struct null_conn *conn)
{
	enum ndx_status st = NDX_OK;
	struct work *work;

	while (st == NDX_OK && conn->state == NULL_UP && conn->qp != NULL &&
	       (work = oldest(&conn->qp->base.initiator)) != NULL) {
		st = run(conn, work);
		if (st == NDX_OK) {
			ndxp_qp_rnr_end(&conn->qp->base);
			ndxp_req_done(&conn->qp->base.initiator, &work->base, NDX_OK, 0);
		} else if (st != NDX_PENDING) {
			fail_work(conn, work, st);
		}
	}
	null_check_drained(conn);
}

/* ---- queue pairs ---- */

static void fill_work(struct work *work, uint32_t length, const struct ndx_sge *sge, size_t count)
{
	work->length = length;
	if (length > 0)
		memcpy(work->sge, sge, count * sizeof(*sge));
}

/* Lock held. NDX_PENDING: taken and canceled. */
static enum ndx_status post_one(struct null_qp *qp, const struct ndxp_post *post)
{
	struct ndxp_req *req;
	struct work *work;
	uint32_t length;
	enum ndx_status st;

	if (post->type == NDX_REQUEST_READ && qp->base.state != NDXP_QP_IDLE && qp->reads == 0)
		return NDX_E_INVALID_DEVICE_REQUEST;
	st = ndxp_post_admit(&qp->base, post, &length, &req);
	if (st != NDX_OK)
		return st;
	work = ndxp_container_of(req, struct work, base);
	fill_work(work, length, post->sge, post->count);
	work->remote_token = post->remote_token;
	work->remote_address = post->remote_address;
	if (qp->conn != NULL)
		null_pump(qp->conn);
	return NDX_OK;
}

static enum ndx_status qp_post(struct ndxp_qp *base, const struct ndxp_post *post)
{
	enum ndx_status st;

	null_lock();
	st = post_one(ndxp_container_of(base, struct null_qp, base), post);
	null_unlock();
	return st;
}

static enum ndx_status qp_receive(struct ndx_qp *pub, void *context, const struct ndx_sge *sge,
                                  size_t count)
{
	struct null_qp *qp = ndxp_container_of(ndxp_qp_of(pub), struct null_qp, base);
	struct ndxp_req *req;
	uint32_t length;
	enum ndx_status st;

	null_lock();
	st = ndxp_admit_receive(&qp->base, context, sge, count, &length, &req);
	if (st == NDX_OK) {
		fill_work(ndxp_container_of(req, struct work, base), length, sge, count);
		if (qp->conn != NULL && qp->conn->peer != NULL)
			null_pump(qp->conn->peer);
	}
	null_unlock();
	return st == NDX_PENDING ? NDX_OK : st;
}

static const struct ndx_qp_ops qp_ops = {
	.size = sizeof(qp_ops),
	.send = ndxp_post_send,
	.receive = qp_receive,
	.read = ndxp_post_read,
	.write = ndxp_post_write,
};

enum ndx_status null_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                               struct ndx_spi_qp **out)
{
	struct null_qp *qp = calloc(1, sizeof(*qp));
	enum ndx_status st;

	(void)adapter;
	if (qp == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "queue pair: out of memory");
	qp->base.post = qp_post;
	st = ndxp_qp_init(&qp->base, &qp_ops, attr, NULL_MAX_TRANSFER, sizeof(struct work),
	                  sizeof(struct work));
	if (st == NDX_OK)
		*out = &qp->base.spi;
	else
		free(qp);
	return st;
}

void null_cancel_initiator(struct null_qp *qp)
{
	ndxp_queue_cancel(&qp->base.initiator, NDX_E_CANCELED);
	ndxp_qp_rnr_end(&qp->base);
}

void null_qp_cancel(struct ndx_spi_qp *spi)
{
	struct null_qp *qp = null_qp_of(spi);

	null_lock();
	null_cancel_initiator(qp);
	ndxp_queue_cancel(&qp->base.receive, NDX_E_CANCELED);
	null_unlock();
}

void null_qp_destroy(struct ndx_spi_qp *spi)
{
	struct null_qp *qp = null_qp_of(spi);

	null_qp_cancel(spi);
	ndxp_qp_fini(&qp->base);
	free(qp);
}

void null_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats)
{
	null_lock();
	ndxp_qp_get_stats(&null_qp_of(spi)->base, stats);
	null_unlock();
}
