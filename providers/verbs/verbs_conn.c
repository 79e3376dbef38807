/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting. rdma_cm does not know the queue pair, only its number in the request. So rdma_cm
 * reports the peer's answer (CONNECT_RESPONSE) and waits for rdma_establish(): that is the
 * two-phase connect.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "verbs_mailbox.h"
#include "verbs_ofi.h"
#include "verbs_ofi_end.h"

#define RESOLVE_MS 2000
#define REJ_CONSUMER 28 /* IBA: refused by the consumer; by software, or its id was closed */
#define RETRIES 6
#define HELLO_MS 10000u /* for the first message of a passive side on ofi:verbs */
#define RNR_FOR_EVER 7

/* ---- create and destroy ---- */

static void on_work(void *arg);

enum ndx_status verbs_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                  struct ndx_spi_conn **out)
{
	struct verbs_conn *conn = calloc(1, sizeof(*conn));

	(void)front;
	if (conn == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a connector");
	conn->owner = VERBS_CONN;
	conn->adapter = verbs_adapter_of(adapter);
	ndxp_list_init(&conn->node);
	conn->work = (struct ndxp_job){.fn = on_work, .arg = conn};
	conn->timer = (struct ndxp_timer){.fn = verbs_end_on_timer, .arg = conn};
	conn->watchdog = (struct ndxp_timer){.fn = verbs_watch_on_timer, .arg = conn};
	*out = &conn->spi;
	return NDX_OK;
}

static void close_id(struct verbs_conn *conn)
{
	ndxp_list_remove(&conn->node);
	if (conn->id != NULL)
		(void)rdma_destroy_id(conn->id);
	conn->id = NULL;
}

void verbs_conn_tie(struct verbs_conn *conn)
{
	conn->qp = verbs_qp_of(conn->spi.qp);
	ndxp_lock_acquire(&conn->qp->base.lock);
	conn->qp->conn = conn;
	ndxp_lock_release(&conn->qp->base.lock);
}

/* The queue pair returns to its state before the attempt. */
static void untie_qp(struct verbs_conn *conn)
{
	struct verbs_qp *qp = conn->qp;

	conn->qp = NULL;
	if (qp == NULL)
		return;
	ndxp_lock_acquire(&qp->base.lock);
	qp->conn = NULL;
	ndxp_lock_release(&qp->base.lock);
	verbs_flush_watch(qp, false);
	verbs_qp_bring_down(qp);
	ndxp_lock_acquire(&qp->base.lock);
	verbs_qp_cancel_initiator(qp);
	qp->base.state = NDXP_QP_IDLE;
	ndxp_lock_release(&qp->base.lock);
}

static void give_up_conn(struct verbs_conn *conn)
{
	ndxp_timer_cancel(conn->adapter->spi.loop, &conn->timer);
	verbs_watch_end(conn);
	conn->wait = VERBS_WAIT_NONE;
	untie_qp(conn);
	/* ofi:verbs would take a refusal without data for that of a foreign program */
	if (conn->peer.is_ofi && conn->id != NULL &&
	    (conn->state == VERBS_CONN_ANSWERED || conn->state == VERBS_CONN_REQUESTED))
		(void)verbs_cm_reject(conn->id, &conn->peer, NULL, 0);
	close_id(conn); /* rdma_cm tells the peer, whatever the state is */
	verbs_mailbox_close(conn);
	verbs_ofi_close(conn);
	conn->oob.on = false;
	conn->peer = (struct verbs_cm_peer){.is_ndx = false};
	if (conn->state != VERBS_CONN_OVER)
		conn->state = VERBS_CONN_IDLE;
	conn->spi.local = conn->bound;
}

void verbs_conn_abandon(struct ndx_spi_conn *spi)
{
	give_up_conn(verbs_conn_of(spi));
}

static void free_conn(void *arg)
{
	free(arg);
}

void verbs_conn_destroy(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);

	give_up_conn(conn);
	conn->dead = true;
	/* behind a work job that may be queued already */
	conn->last = (struct ndxp_job){.fn = free_conn, .arg = conn};
	ndxp_loop_post(conn->adapter->spi.loop, &conn->last);
}

/* ---- the active side ---- */

enum ndx_status verbs_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                   socklen_t len, const struct ndx_spi_params *params)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	char text[NDXP_SOCKADDR_TEXT];
	struct sockaddr_storage to;
	enum ndx_status st;

	ndxp_sockaddr_copy(&to, destination, len);
	st = verbs_is_there(conn->adapter, "connect");
	if (st != NDX_OK)
		return st;
	if (ndxp_sockaddr_is_loopback(&to))
		return fail(NDX_E_NETWORK_UNREACHABLE, 0,
		            "connect to %s: no RDMA device serves loopback addresses; use one of "
		            "the adapter's own",
		            ndxp_sockaddr_text(&to, text));
	st = verbs_address_make_id(conn, &to);
	if (st == NDX_OK)
		st = verbs_mailbox_open(conn);
	if (st != NDX_OK)
		return st;
	ndxp_list_add(&conn->adapter->conns, &conn->node);
	verbs_conn_tie(conn);
	conn->request_data.inbound_read_limit = (uint8_t)params->inbound_read_limit;
	conn->request_data.outbound_read_limit = (uint8_t)params->outbound_read_limit;
	conn->request_data.private_len = (uint8_t)params->private_data_len;
	verbs_cm_encode(conn->request_data.data, sizeof(conn->request_data.data),
	                params->private_data, params->private_data_len, conn->mailbox_mr->rkey);
	spi->peer = to;
	verbs_address_of_id(conn->id, &spi->local);
	if (rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)&to, RESOLVE_MS) == 0) {
		conn->state = VERBS_CONN_RESOLVING;
		return NDX_OK;
	}
	st = verbs_status_of(errno);
	if (st == NDX_E_INVALID_ADDRESS || st == NDX_E_UNSUCCESSFUL)
		st = NDX_E_NETWORK_UNREACHABLE;
	st = fail(st, errno, "connect to %s: rdma_resolve_addr: %s", ndxp_sockaddr_text(&to, text),
	          strerror(errno));
	give_up_conn(conn);
	return st;
}

/* The parameters that both sides send. */
static struct rdma_conn_param conn_param(const struct verbs_conn *conn, const uint8_t *data,
                                         size_t length)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)length,
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_FOR_EVER,
		.srq = conn->qp->base.spi.attr.srq != NULL,
		.qp_num = conn->qp->native->qp_num,
	};
}

/* A peer on ofi:verbs reads the number of receives, whatever the programs' limits are. */
static uint8_t responder_resources(const struct verbs_conn *conn, uint32_t limit)
{
	return conn->ofi != NULL && limit == 0 ? 1 : (uint8_t)limit;
}

static void report_connected(struct verbs_conn *conn, enum ndx_status status, int native,
                             const struct ndx_spi_params *params)
{
	if (status != NDX_OK)
		conn->state = VERBS_CONN_IDLE;
	verbs_host(conn->adapter)->connected(&conn->spi, status, native, params);
}

static void report_established(struct verbs_conn *conn, enum ndx_status status, int native,
                               const struct ndx_spi_params *params)
{
	if (status != NDX_OK)
		conn->state = VERBS_CONN_IDLE;
	verbs_host(conn->adapter)->established(&conn->spi, status, native, params);
}

static void go_up(struct verbs_conn *conn)
{
	conn->state = VERBS_CONN_UP;
	ndxp_lock_acquire(&conn->qp->base.lock);
	conn->qp->base.state = NDXP_QP_UP;
	if (conn->ofi == NULL)
		conn->qp->noop_write = verbs_mailbox_noop(conn);
	else
		verbs_ofi_tell_credits(conn->qp); /* for receives behind the first message */
	ndxp_lock_release(&conn->qp->base.lock);
	verbs_watch_begin(conn);
	if (conn->ofi != NULL)
		verbs_ofi_end_look(conn);
	report_established(conn, NDX_OK, 0, NULL);
}

/* The peer's rejections and time-outs come as events; a call behind such an event fails like
 * this. */
static enum ndx_status fail_gone(const char *call, int err)
{
	return fail(NDX_E_CONNECTION_ABORTED, err, "%s: the peer gave up the attempt (%s)", call,
	            err != 0 ? strerror(err) : "rdma_cm has reported it");
}

static enum ndx_status bring_up(const struct verbs_conn *conn, const char *call)
{
	const int err = verbs_qp_bring_up(conn->qp, conn);

	if (err == 0)
		return NDX_OK;
	if (err == ECONNABORTED)
		return fail_gone(call, err);
	return fail(NDX_E_INTERNAL_ERROR, err, "%s: the queue pair does not get ready: %s", call,
	            strerror(err));
}

static void on_no_hello(void *arg)
{
	struct verbs_conn *conn = arg;

	if (conn->state != VERBS_CONN_ANSWERED)
		return;
	verbs_conn_report(conn, 0, ETIMEDOUT,
	                  "the peer on ofi:verbs has sent no first message in time");
	report_established(conn, NDX_E_CONNECTION_ABORTED, ETIMEDOUT, NULL);
}

enum ndx_status verbs_conn_complete(struct ndx_spi_conn *spi)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	enum ndx_status st;
	int err = 0;

	if (conn->state != VERBS_CONN_ANSWERED)
		return fail_gone("complete connect", 0);
	if (conn->oob.on) {
		go_up(conn);
		return NDX_OK;
	}
	st = bring_up(conn, "complete connect");
	if (st != NDX_OK)
		return st;
	if (conn->ofi != NULL) {
		verbs_flush_watch(conn->qp, true);
		err = verbs_ofi_introduce(conn, NDXP_RC_FIRST_READY);
	}
	if (err != 0)
		return fail_gone("complete connect", err);
	if (rdma_establish(conn->id) != 0)
		return fail_gone("complete connect", errno);
	if (conn->ofi == NULL) {
		go_up(conn);
		return NDX_OK;
	}
	/* before HELLO this end knows no memory of the peer for a probe or a goodbye */
	conn->ofi->look = (struct ndxp_timer){.fn = on_no_hello, .arg = conn};
	ndxp_timer_set(conn->adapter->spi.loop, &conn->ofi->look, HELLO_MS);
	return NDX_OK;
}

/* ---- the passive side ---- */

void verbs_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *spi_request)
{
	struct verbs_request *request = container_of(spi_request, struct verbs_request, spi);
	struct verbs_conn *conn = verbs_conn_of(spi);

	conn->id = request->id;
	conn->id->context = &conn->owner;
	ndxp_list_add(&conn->adapter->conns, &conn->node);
	conn->peer = request->peer;
	conn->state = VERBS_CONN_REQUESTED;
	spi->local = request->spi.local;
	spi->peer = request->spi.peer;
	free(request);
}

enum ndx_status verbs_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	uint8_t data[VERBS_ACCEPT_ROOM];
	size_t len = sizeof(data);
	struct rdma_conn_param param;
	enum ndx_status st;

	if (conn->state != VERBS_CONN_REQUESTED)
		return fail_gone("accept", 0);
	st = conn->peer.is_ofi ? verbs_ofi_open(conn) : verbs_mailbox_open(conn);
	if (st != NDX_OK)
		return st;
	verbs_conn_tie(conn);
	st = bring_up(conn, "accept");
	if (st != NDX_OK)
		return st;
	if (conn->ofi != NULL) {
		verbs_flush_watch(conn->qp, true);
		len = verbs_cm_encode_ofi(data, NDXP_RC_ACCEPT, params->private_data,
		                          params->private_data_len, params->inbound_read_limit,
		                          params->outbound_read_limit);
	} else {
		verbs_cm_encode(data, sizeof(data), params->private_data, params->private_data_len,
		                conn->mailbox_mr->rkey);
	}
	param = conn_param(conn, data, len);
	param.responder_resources = responder_resources(conn, params->inbound_read_limit);
	param.initiator_depth = (uint8_t)params->outbound_read_limit;
	if (rdma_accept(conn->id, &param) != 0)
		return fail_gone("accept", errno);
	conn->state = VERBS_CONN_ACCEPTED;
	return NDX_OK;
}

/* ---- both ---- */

enum ndx_status verbs_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len)
{
	struct verbs_conn *conn = verbs_conn_of(spi);
	enum ndx_status st = NDX_OK;

	if (conn->state != VERBS_CONN_REQUESTED && conn->state != VERBS_CONN_ANSWERED)
		st = fail_gone("reject", 0);
	else if (verbs_cm_reject(conn->id, &conn->peer, private_data, len) != 0)
		st = fail_gone("reject", errno);
	give_up_conn(conn);
	return st;
}

/* ---- the first message of a peer on ofi:verbs ---- */

static const char *take_first(struct verbs_conn *conn)
{
	struct ndx_spi_params params = {.private_data_len = 0};
	const bool passive = conn->state == VERBS_CONN_ACCEPTED;
	struct ndxp_rc_record record;
	const char *wrong = verbs_ofi_read_first(conn, &record);

	if (wrong != NULL)
		return wrong;
	if (passive && record.type == NDXP_RC_FIRST_REJECT) {
		params.private_data_len = record.private_len;
		memcpy(params.private_data, record.private_data, record.private_len);
		report_established(conn, NDX_E_CONNECTION_REFUSED, 0, &params);
		return NULL;
	}
	if (record.type != (passive ? NDXP_RC_FIRST_READY : NDXP_RC_FIRST_HELLO))
		return "a first message of the wrong type";
	if (!passive) {
		go_up(conn);
		return NULL;
	}
	if (verbs_ofi_introduce(conn, NDXP_RC_FIRST_HELLO) != 0)
		return "the first message could not be sent";
	conn->ofi->ready = true;
	if (conn->ofi->established)
		go_up(conn);
	return NULL;
}

/* Does this end wait for the first message? */
static bool is_introducing(const struct verbs_conn *conn)
{
	return conn->ofi != NULL && conn->qp != NULL &&
	       (conn->state == VERBS_CONN_ACCEPTED || conn->state == VERBS_CONN_ANSWERED);
}

/* Handle what completions report. */
static void on_work(void *arg)
{
	struct verbs_conn *conn = arg;
	const char *wrong = NULL;

	if (!conn->dead && is_introducing(conn) && verbs_ofi_first_came(conn))
		wrong = take_first(conn);
	if (wrong != NULL) {
		verbs_conn_report(conn, 0, 0, wrong);
		report_established(conn, NDX_E_CONNECTION_ABORTED, 0, NULL);
	}
	verbs_end_on_work(conn);
}

/* ---- events ---- */

static void on_address(struct verbs_conn *conn)
{
	if (!verbs_serves(conn->adapter, conn->id)) {
		report_connected(conn, NDX_E_NETWORK_UNREACHABLE, 0, NULL);
		return;
	}
	if (rdma_resolve_route(conn->id, RESOLVE_MS) != 0)
		report_connected(conn, NDX_E_NETWORK_UNREACHABLE, errno, NULL);
}

static void on_route(struct verbs_conn *conn)
{
	const struct verbs_request_data *request_data = &conn->request_data;
	uint8_t data[VERBS_REJECT_ROOM];
	struct rdma_conn_param param =
		conn_param(conn, request_data->data, sizeof(request_data->data));

	if (conn->ofi != NULL) {
		param.private_data = data;
		param.private_data_len = (uint8_t)verbs_cm_encode_ofi(
			data, NDXP_RC_CONNECT, request_data->data, request_data->private_len,
			request_data->inbound_read_limit, request_data->outbound_read_limit);
	}
	param.responder_resources = responder_resources(conn, request_data->inbound_read_limit);
	param.initiator_depth = request_data->outbound_read_limit;
	verbs_address_of_id(conn->id, &conn->spi.local);
	if (rdma_connect(conn->id, &param) != 0)
		report_connected(conn, verbs_status_of(errno), errno, NULL);
	else
		conn->state = VERBS_CONN_CONNECTING;
}

static void on_answer(struct verbs_conn *conn, const struct verbs_event *event)
{
	struct ndx_spi_params params;

	verbs_cm_params(event, &params, &conn->peer);
	if (conn->peer.wrong == NULL && conn->peer.is_ofi != (conn->ofi != NULL))
		conn->peer.wrong = "has answered in another protocol";
	if (conn->peer.wrong != NULL) {
		verbs_conn_report(conn, 0, 0, conn->peer.wrong);
		report_connected(conn, NDX_E_CONNECTION_ABORTED, 0, NULL);
		return;
	}
	conn->state = VERBS_CONN_ANSWERED;
	report_connected(conn, NDX_OK, 0, &params);
}

/*
 * A listener on ofi:verbs cannot read the request of verbs, and refuses it without asking its
 * consumer: ask a second time, in the protocol of ofi:verbs.
 */
static void connect_again(struct verbs_conn *conn)
{
	struct sockaddr_storage to = conn->spi.peer;
	enum ndx_status st = verbs_ofi_open(conn);
	int err = 0;

	if (st == NDX_OK) {
		(void)rdma_destroy_id(conn->id);
		conn->id = NULL;
		st = verbs_address_make_id(conn, &to);
	}
	if (st == NDX_OK &&
	    rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)&to, RESOLVE_MS) != 0) {
		err = errno;
		st = verbs_status_of(err);
	}
	if (st == NDX_OK) {
		conn->state = VERBS_CONN_RESOLVING;
		return;
	}
	verbs_conn_report(conn, 0, err,
	                  conn->ofi == NULL && conn->qp->srq != NULL
	                          ? VERBS_OFI_NO_SRQ
	                          : "the peer is on ofi:verbs, and asking in its protocol failed");
	report_connected(conn, st, err, NULL);
}

static void on_rejected(struct verbs_conn *conn, const struct verbs_event *event)
{
	const bool by_consumer = event->status == REJ_CONSUMER;
	struct ndx_spi_params params;
	struct verbs_cm_peer peer;

	verbs_cm_params(event, &params, &peer);
	if (peer.wrong != NULL)
		verbs_conn_report(conn, 0, event->status, peer.wrong);
	if (conn->state == VERBS_CONN_CONNECTING && conn->ofi == NULL && peer.is_ofi)
		connect_again(conn);
	else if (conn->state == VERBS_CONN_CONNECTING)
		report_connected(conn, NDX_E_CONNECTION_REFUSED, event->status,
		                 by_consumer ? &params : NULL);
	else if (conn->state == VERBS_CONN_UP) /* the rejection has crossed this side's message that
	                                          the connection is up */
		verbs_conn_report(conn, NDX_REPORT_ABORT, event->status,
		                  "the peer has accepted the connection, and then given it up");
	else if (conn->state == VERBS_CONN_ACCEPTED && by_consumer)
		report_established(conn, NDX_E_CONNECTION_REFUSED, event->status, &params);
	else /* the peer has accepted, and then given up */
		report_established(conn, NDX_E_CONNECTION_ABORTED, event->status, NULL);
}

/* A failure before there was a connection. */
static void on_failure(struct verbs_conn *conn, enum ndx_status status, int native)
{
	if (conn->state == VERBS_CONN_RESOLVING || conn->state == VERBS_CONN_CONNECTING)
		report_connected(conn, status, native, NULL);
	else if (conn->state == VERBS_CONN_ANSWERED || conn->state == VERBS_CONN_REQUESTED ||
	         conn->state == VERBS_CONN_ACCEPTED)
		report_established(conn, status, native, NULL);
}

/* The peer does not answer the request, or the accept, which the kernel has repeated for a
 * minute. */
static void on_unreachable(struct verbs_conn *conn, int native)
{
	const bool asking =
		conn->state == VERBS_CONN_RESOLVING || conn->state == VERBS_CONN_CONNECTING;

	if (conn->state == VERBS_CONN_ACCEPTED)
		verbs_conn_report(conn, 0, native,
		                  "the peer has not confirmed the accept: it has given up, or is "
		                  "gone");
	on_failure(conn, asking ? NDX_E_IO_TIMEOUT : NDX_E_CONNECTION_ABORTED, native);
}

/* The kernel does not remove the device while a program holds an id. */
void verbs_conn_on_removal(struct verbs_conn *conn, int native)
{
	verbs_conn_report(conn, conn->state == VERBS_CONN_UP ? NDX_REPORT_ABORT : 0, native,
	                  "the device has failed or was removed");
	if (conn->state == VERBS_CONN_UP) {
		conn->disc_sent = true; /* nothing is left to disconnect */
		close_id(conn);
	} else {
		on_failure(conn, NDX_E_DEVICE_REMOVED, native);
	}
}

void verbs_conn_on_event(struct verbs_conn *conn, const struct verbs_event *event)
{
	/* a REJECT of a peer on ofi:verbs came before the end of its link */
	if (is_introducing(conn)) {
		verbs_qp_poll(conn->qp);
		on_work(conn);
	}
	if (conn->state == VERBS_CONN_IDLE || conn->state == VERBS_CONN_OVER)
		return;
	switch ((int)event->what) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		on_address(conn);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		on_route(conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		on_failure(conn, NDX_E_HOST_UNREACHABLE, -event->status);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		on_failure(conn, NDX_E_NETWORK_UNREACHABLE, -event->status);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_answer(conn, event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		on_rejected(conn, event);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		on_failure(conn, NDX_E_CONNECTION_ABORTED, -event->status);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		/* also reported for a neighbour while a connection is up, and harmless then */
		on_unreachable(conn, -event->status);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* the active side on ofi:verbs sends READY when its consumer has decided; READY may
		 * be first, but before this event rdma_cm sends no disconnect */
		if (conn->ofi != NULL)
			conn->ofi->established = true;
		if (conn->state == VERBS_CONN_ACCEPTED && (conn->ofi == NULL || conn->ofi->ready))
			go_up(conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (conn->state == VERBS_CONN_UP)
			verbs_end_on_disconnected(conn, event->status);
		else
			on_failure(conn, NDX_E_CONNECTION_ABORTED, -event->status);
		break;
	default:
		break;
	}
}
