/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_loop.h"
#include "base_ov.h"
#include "rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <time.h>

#include <ndx/spi/sockaddr.h>

/* Upcalls may come from a control thread (time-outs). */
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t written = PTHREAD_COND_INITIALIZER;

static struct rig_book *book_of(struct ndx_spi_conn *conn)
{
	return (struct rig_book *)(void *)conn->front;
}

static void host_request(struct ndx_spi_request *request)
{
	struct rig *rig = (struct rig *)(void *)request->listener->front;
	struct ndx_spi_request **end = &rig->requests;

	while (*end != NULL)
		end = &(*end)->next;
	request->next = NULL;
	*end = request;
}

static void host_connected(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                           const struct ndx_spi_params *params)
{
	struct rig_book *book = book_of(conn);

	(void)native;
	(void)params;
	book->connected++;
	book->connected_status = status;
}

static void host_established(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                             const struct ndx_spi_params *params)
{
	struct rig_book *book = book_of(conn);

	(void)native;
	(void)params;
	book->established++;
	book->established_status = status;
}

static void host_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	struct rig_book *book = book_of(conn);

	(void)native;
	(void)pthread_mutex_lock(&books);
	book->reports |= bits;
	book->aborts += (bits & NDX_REPORT_ABORT) != 0;
	book->peer_discs += (bits & NDX_REPORT_PEER_DISC) != 0;
	book->drained += (bits & NDX_REPORT_DRAINED) != 0;
	book->quiet += (bits & NDX_REPORT_QUIET) != 0;
	if ((bits & NDX_REPORT_ABORT) != 0)
		book->cause = cause;
	(void)pthread_cond_broadcast(&written);
	(void)pthread_mutex_unlock(&books);
}

static const struct ndx_host rig_host = {
	.abi = NDX_SPI_ABI,
	.complete = base_ov_complete,
	.request = host_request,
	.connected = host_connected,
	.established = host_established,
	.report = host_report,
};

struct sockaddr_storage rig_address(const char *text, uint16_t port)
{
	struct sockaddr_storage out = {0};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
		memcpy(&out, &in, sizeof(in));
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
		memcpy(&out, &in6, sizeof(in6));
	}
	return out;
}

/* ---- up and down ---- */

struct ndx_spi_conn *rig_make_conn(struct rig_side *side, struct rig_book *book)
{
	struct ndx_connector *front = (struct ndx_connector *)(void *)book;
	struct ndx_spi_conn *conn = NULL;

	assert_int_equal(rig_ops()->conn_create(side->adapter, front, &conn), NDX_OK);
	conn->front = front;
	conn->native = side->adapter;
	return conn;
}

static void destroy_conn(void *conn)
{
	rig_ops()->conn_destroy(conn);
}

void rig_drop_conn(struct rig_side *side, struct ndx_spi_conn *conn)
{
	ndxp_loop_call(side->loop, destroy_conn, conn);
}

struct ndx_spi_mr *rig_register(struct rig_side *side, void *buffer, size_t length, uint32_t flags)
{
	struct ndx_spi_mr *mr = NULL;

	assert_int_equal(rig_ops()->mr_create(side->adapter, &mr), NDX_OK);
	assert_int_equal(rig_ops()->mr_register(mr, buffer, length, flags), NDX_OK);
	return mr;
}

void rig_drop_mr(struct ndx_spi_mr *mr)
{
	if (mr == NULL)
		return;
	assert_int_equal(rig_ops()->mr_deregister(mr, true), NDX_OK);
	rig_ops()->mr_destroy(mr);
}

static void side_up(struct rig_side *side, const char *device)
{
	const struct ndx_spi_open how = {.device = device};
	struct ndx_spi_adapter head = {.provider = &ndx_provider_loop, .host = &rig_host};

	assert_int_equal(base_loop_create("ndx-test", &side->loop), NDX_OK);
	head.loop = side->loop;
	assert_int_equal(rig_ops()->adapter_open(&head, &how, &side->adapter), NDX_OK);
	assert_int_equal(
		rig_ops()->cq_create(side->adapter, &(struct ndx_cq_attr){.depth = 16}, &side->cq),
		NDX_OK);
	side->memory = calloc(1, RIG_MEMORY);
	assert_non_null(side->memory);
	side->mr = rig_register(side, side->memory, RIG_MEMORY,
	                        NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ);
	side->conn = rig_make_conn(side, &side->book);
}

static void side_down(struct rig_side *side)
{
	if (side->conn != NULL)
		rig_drop_conn(side, side->conn);
	if (side->qp != NULL)
		rig_ops()->qp_destroy(side->qp);
	rig_drop_mr(side->mr);
	rig_ops()->cq_destroy(side->cq);
	rig_ops()->adapter_close(side->adapter);
	base_loop_destroy(side->loop, NULL, NULL);
	free(side->memory);
}

int rig_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	const struct sockaddr_storage any = rig_address("127.0.0.1", 0);

	assert_non_null(rig);
	side_up(&rig->a, "a");
	side_up(&rig->b, "");
	assert_int_equal(rig_ops()->listener_create(rig->b.adapter,
	                                            (struct ndx_listener *)(void *)rig,
	                                            &rig->listener),
	                 NDX_OK);
	rig->listener->front = (struct ndx_listener *)(void *)rig;
	rig->listener->native = rig->b.adapter;
	assert_int_equal(rig_ops()->listener_bind(rig->listener, (const struct sockaddr *)&any,
	                                          ndxp_sockaddr_len(&any)),
	                 NDX_OK);
	assert_int_equal(rig_ops()->listener_listen(rig->listener, 0), NDX_OK);
	ndx_qp_attr_init(&rig->attr);
	rig->attr.receive_depth = RIG_DEPTH;
	rig->attr.initiator_depth = RIG_DEPTH;
	rig->attr.max_receive_sge = 4;
	rig->attr.max_initiator_sge = 4;
	rig->attr.inline_size = 64;
	rig->attr.no_receive_timeout_ms = NDX_INFINITE;
	*state = rig;
	return 0;
}

int rig_down(void **state)
{
	struct rig *rig = *state;

	while (rig->requests != NULL)
		rig_ops()->request_refuse(rig_take_request(rig));
	if (rig->listener != NULL)
		rig_ops()->listener_destroy(rig->listener);
	side_down(&rig->a);
	side_down(&rig->b);
	free(rig);
	return 0;
}

struct ndx_spi_qp *rig_make_qp(struct rig *rig, struct rig_side *side, struct ndx_srq *srq)
{
	struct ndx_qp_attr attr = rig->attr;
	struct ndx_spi_qp *qp = NULL;

	attr.receive_cq = &side->cq->pub;
	attr.initiator_cq = &side->cq->pub;
	attr.srq = srq;
	attr.context = side;
	assert_int_equal(rig_ops()->qp_create(side->adapter, &attr, &qp), NDX_OK);
	return qp;
}

void rig_make_qps(struct rig *rig)
{
	rig->a.qp = rig_make_qp(rig, &rig->a, NULL);
	rig->b.qp = rig_make_qp(rig, &rig->b, NULL);
}

/* ---- connecting ---- */

struct ndx_spi_request *rig_take_request(struct rig *rig)
{
	struct ndx_spi_request *request = rig->requests;

	assert_non_null(request);
	rig->requests = request->next;
	return request;
}

static void ask(struct rig *rig, struct ndx_spi_conn *active, struct ndx_spi_conn *passive)
{
	const struct ndx_spi_params params = {
		.inbound_read_limit = 3,
		.outbound_read_limit = 5,
		.private_data_len = 4,
		.private_data = "ask",
	};

	assert_int_equal(rig_ops()->conn_connect(active,
	                                         (const struct sockaddr *)&rig->listener->local,
	                                         ndxp_sockaddr_len(&rig->listener->local), &params),
	                 NDX_OK);
	rig_ops()->conn_take(passive, rig_take_request(rig));
}

static void answer(struct ndx_spi_conn *active, struct ndx_spi_conn *passive)
{
	const struct ndx_spi_params params = {
		.inbound_read_limit = 5,
		.outbound_read_limit = 3,
		.private_data_len = 7,
		.private_data = "answer",
	};

	passive->outbound_read_limit = 3;
	active->outbound_read_limit = 5;
	assert_int_equal(rig_ops()->conn_accept(passive, &params), NDX_OK);
}

void rig_ask(struct rig *rig)
{
	rig->a.conn->qp = rig->a.qp;
	ask(rig, rig->a.conn, rig->b.conn);
}

void rig_answer(struct rig *rig)
{
	rig->b.conn->qp = rig->b.qp;
	answer(rig->a.conn, rig->b.conn);
	assert_int_equal(rig->a.book.connected, 1);
	assert_int_equal(rig->a.book.connected_status, NDX_OK);
	assert_int_equal(rig->b.book.established, 0);
}

void rig_connect(struct rig *rig)
{
	rig_ask(rig);
	rig_answer(rig);
	assert_int_equal(rig_ops()->conn_complete(rig->a.conn), NDX_OK);
	assert_int_equal(rig->a.book.established, 1);
	assert_int_equal(rig->a.book.established_status, NDX_OK);
	assert_int_equal(rig->b.book.established, 1);
	assert_int_equal(rig->b.book.established_status, NDX_OK);
}

void rig_connect_new(struct rig *rig)
{
	rig_make_qps(rig);
	rig_connect(rig);
}

void rig_connect_pair(struct rig *rig, struct rig_pair *pair, struct ndx_spi_qp *from,
                      struct ndx_spi_qp *to)
{
	*pair = (struct rig_pair){0};
	pair->active = rig_make_conn(&rig->a, &pair->active_book);
	pair->passive = rig_make_conn(&rig->b, &pair->passive_book);
	pair->active->qp = from;
	pair->passive->qp = to;
	ask(rig, pair->active, pair->passive);
	answer(pair->active, pair->passive);
	assert_int_equal(rig_ops()->conn_complete(pair->active), NDX_OK);
}

void rig_drop_pair(struct rig *rig, struct rig_pair *pair)
{
	rig_abort(pair->active, &pair->active_book);
	rig_abort(pair->passive, &pair->passive_book);
	rig_drop_conn(&rig->a, pair->active);
	rig_drop_conn(&rig->b, pair->passive);
}

/* ---- data ---- */

struct ndx_sge rig_sge(const struct rig_side *side, size_t offset, uint32_t length)
{
	return (struct ndx_sge){
		.buffer = side->memory + offset,
		.length = length,
		.token = side->mr->local_token,
	};
}

uint64_t rig_remote(const struct rig_side *side, size_t offset)
{
	return (uintptr_t)(side->memory + offset);
}

static unsigned char paint_of(size_t i, unsigned seed)
{
	return (unsigned char)(i * 7 + (i >> 8) + seed + 1);
}

void rig_paint(unsigned char *to, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		to[i] = paint_of(i, seed);
}

void rig_assert_painted(const unsigned char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		assert_int_equal(at[i], paint_of(i, seed));
}

static void *tag(uintptr_t context)
{
	return (void *)context; /* a number, never followed */
}

enum ndx_status rig_send(struct rig_side *side, uintptr_t context, size_t offset, uint32_t length,
                         uint32_t flags)
{
	const struct ndx_sge sge = rig_sge(side, offset, length);

	return ndx_qp_send(&side->qp->pub, tag(context), &sge, length > 0 ? 1 : 0, flags);
}

enum ndx_status rig_receive(struct rig_side *side, uintptr_t context, size_t offset,
                            uint32_t length)
{
	const struct ndx_sge sge = rig_sge(side, offset, length);

	return ndx_qp_receive(&side->qp->pub, tag(context), &sge, length > 0 ? 1 : 0);
}

enum ndx_status rig_write(struct rig_side *side, uintptr_t context, size_t offset, uint32_t length,
                          const struct rig_side *to, size_t to_offset)
{
	const struct ndx_sge sge = rig_sge(side, offset, length);

	return ndx_qp_write(&side->qp->pub, tag(context), &sge, 1, rig_remote(to, to_offset),
	                    to->mr->remote_token, 0);
}

enum ndx_status rig_read(struct rig_side *side, uintptr_t context, size_t offset, uint32_t length,
                         const struct rig_side *from, size_t from_offset)
{
	const struct ndx_sge sge = rig_sge(side, offset, length);

	return ndx_qp_read(&side->qp->pub, tag(context), &sge, 1, rig_remote(from, from_offset),
	                   from->mr->remote_token, 0);
}

struct ndx_result rig_expect(struct rig_side *side, enum ndx_request_type type, uintptr_t context,
                             enum ndx_status status)
{
	struct ndx_result result = {0};

	assert_int_equal(ndx_cq_get_results(&side->cq->pub, &result, 1), 1);
	assert_int_equal(result.request_type, type);
	assert_int_equal((uintptr_t)result.request_context, context);
	assert_string_equal(ndx_status_name(result.status), ndx_status_name(status));
	assert_ptr_equal(result.queue_pair_context, side);
	return result;
}

void rig_expect_none(struct rig_side *side)
{
	struct ndx_result result;

	assert_int_equal(ndx_cq_get_results(&side->cq->pub, &result, 1), 0);
}

/* ---- the end ---- */

void rig_wait_report(struct rig_book *book, uint32_t bits)
{
	struct timespec until;
	int err = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RIG_PATIENCE_MS / 1000;
	(void)pthread_mutex_lock(&books);
	while ((book->reports & bits) != bits && err == 0)
		err = pthread_cond_timedwait(&written, &books, &until);
	(void)pthread_mutex_unlock(&books);
	assert_int_equal(err, 0);
}

void rig_abort(struct ndx_spi_conn *conn, struct rig_book *book)
{
	rig_ops()->conn_abort(conn);
	assert_int_equal(book->quiet, 1);
}

void rig_assert_broken(struct rig *rig)
{
	rig_wait_report(&rig->a.book, NDX_REPORT_ABORT);
	rig_wait_report(&rig->b.book, NDX_REPORT_ABORT);
	assert_int_equal(rig->a.book.aborts, 1);
	assert_int_equal(rig->b.book.aborts, 1);
	assert_non_null(rig->a.book.cause);
	assert_non_null(rig->b.book.cause);
	rig_abort(rig->a.conn, &rig->a.book);
	rig_abort(rig->b.conn, &rig->b.book);
	assert_int_equal(rig->a.book.aborts, 1);
	assert_int_equal(rig->b.book.aborts, 1);
}
