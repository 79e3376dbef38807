/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting by direct call: request, answer, completion.
 *
 * The two ends of an attempt belong to different control threads, so one end may leave before its
 * core has handled what the other end did. Hence every step checks the state.
 */
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "loop.h"

static void tell_connected(struct loop_conn *conn, enum ndx_status status,
                           const struct ndx_spi_params *params)
{
	conn->adapter->spi.host->connected(&conn->spi, status, 0, params);
}

static void tell_established(struct loop_conn *conn, enum ndx_status status,
                             const struct ndx_spi_params *params)
{
	conn->adapter->spi.host->established(&conn->spi, status, 0, params);
}

enum ndx_status loop_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                 struct ndx_spi_conn **out)
{
	struct loop_conn *conn = calloc(1, sizeof(*conn));

	(void)front;
	if (conn == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "connector: out of memory");
	conn->adapter = loop_adapter_of(adapter);
	conn->timer.fn = loop_data_timeout;
	conn->timer.arg = conn;
	ndxp_list_init(&conn->wait_node);
	*out = &conn->spi;
	return NDX_OK;
}

/* ---- leaving an attempt or a connection ---- */

/* `conn` leaves the attempt; report `status` to its peer. */
static void end_attempt(struct loop_conn *conn, enum ndx_status status,
                        const struct ndx_spi_params *params)
{
	struct loop_conn *peer = conn->peer;
	bool asking = peer->state == LOOP_CONN_ASKING;

	conn->peer = NULL;
	peer->peer = NULL;
	peer->state = LOOP_CONN_IDLE;
	if (asking)
		tell_connected(peer, status, params);
	else
		tell_established(peer, status, params);
}

static void leave_attempt(struct loop_conn *conn)
{
	if (conn->request != NULL) {
		conn->request->active = NULL;
		conn->request = NULL;
	}
	if (conn->peer == NULL)
		return;
	/* the active side refuses an answer; in any other state it gives up */
	end_attempt(conn,
	            conn->state == LOOP_CONN_ANSWERED ? NDX_E_CONNECTION_REFUSED
	                                              : NDX_E_CONNECTION_ABORTED,
	            NULL);
}

/*
 * The core may give up an attempt that has succeeded, because the report of the success has not
 * reached it yet. Then the peer loses a connection.
 */
static void leave_connection(struct loop_conn *conn)
{
	if (conn->state == LOOP_CONN_UP)
		loop_end_break(conn, NULL, "the peer gave up the connection");
	if (conn->qp != NULL) {
		loop_qp_cancel_initiator(conn->qp);
		conn->qp->base.state = NDXP_QP_IDLE;
	}
}

static void give_up_conn(struct loop_conn *conn)
{
	if (conn->state == LOOP_CONN_UP || conn->state == LOOP_CONN_BROKEN)
		leave_connection(conn);
	else if (conn->state != LOOP_CONN_OVER)
		leave_attempt(conn);
	if (conn->state != LOOP_CONN_OVER)
		conn->state = LOOP_CONN_IDLE;
	loop_end_decouple(conn);
	if (conn->port_is_ephemeral) {
		loop_switch_unbind(&conn->port);
		conn->port_is_ephemeral = false;
		conn->spi.local.ss_family = AF_UNSPEC;
	}
}

void loop_conn_abandon(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	give_up_conn(conn);
	loop_switch_unlock(conn->adapter->sw);
}

void loop_conn_destroy(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);

	loop_switch_lock(conn->adapter->sw);
	give_up_conn(conn);
	loop_switch_unbind(&conn->port);
	loop_switch_unlock(conn->adapter->sw);
	/* the core calls on the timer's own thread, so the timer's function is not running */
	ndxp_timer_cancel(conn->adapter->spi.loop, &conn->timer);
	free(conn);
}

enum ndx_status loop_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                               socklen_t len)
{
	struct loop_conn *conn = loop_conn_of(spi);
	enum ndx_status st = loop_switch_claim(conn->adapter->sw, &conn->port, address, len);

	if (st == NDX_OK)
		spi->local = conn->port.address;
	return st;
}

/* ---- the active side ---- */

static enum ndx_status bind_ephemeral(struct loop_conn *conn, const struct sockaddr_storage *to)
{
	struct sockaddr_storage any;
	enum ndx_status st;

	if (conn->port.address.ss_family != AF_UNSPEC)
		return conn->port.address.ss_family == to->ss_family ? NDX_OK
		                                                     : NDX_E_INVALID_ADDRESS;
	loop_address(to->ss_family, &any);
	st = loop_switch_bind(conn->adapter->sw, &conn->port, &any);
	conn->port_is_ephemeral = st == NDX_OK;
	return st;
}

static void set_addresses(struct loop_conn *conn, const struct sockaddr_storage *to)
{
	loop_address(to->ss_family, &conn->spi.local);
	ndxp_sockaddr_set_port(&conn->spi.local, ndxp_sockaddr_port(&conn->port.address));
	conn->spi.peer = *to;
}

static void deliver_request(struct loop_conn *conn, struct loop_listener *listener,
                            struct loop_request *request)
{
	request->sw = conn->adapter->sw;
	request->active = conn;
	request->spi.listener = &listener->spi;
	request->spi.local = conn->spi.peer;
	request->spi.peer = conn->spi.local;
	conn->request = request;
	conn->state = LOOP_CONN_ASKING;
	conn->qp = loop_qp_of(conn->spi.qp);
	conn->qp->conn = conn;
	listener->adapter->spi.host->request(&request->spi);
}

static enum ndx_status send_request(struct loop_conn *conn, const struct sockaddr_storage *to,
                                    struct loop_request *request)
{
	struct loop_listener *listener = loop_switch_find(conn->adapter->sw, to);
	enum ndx_status st;

	if (listener == NULL)
		return NDX_E_CONNECTION_REFUSED;
	st = bind_ephemeral(conn, to);
	if (st != NDX_OK)
		return st;
	set_addresses(conn, to);
	deliver_request(conn, listener, request);
	return NDX_OK;
}

static enum ndx_status cannot_connect(enum ndx_status st, const struct sockaddr_storage *to)
{
	char text[NDXP_SOCKADDR_TEXT];

	ndxp_sockaddr_text(to, text);
	if (st == NDX_E_CONNECTION_REFUSED)
		return fail(st, 0,
		            "connect to %s: no loop adapter of this process listens there; "
		            "loop reaches its own process only",
		            text);
	if (st == NDX_E_INVALID_ADDRESS)
		return fail(st, 0, "connect to %s: the connector is bound to another family", text);
	if (st == NDX_E_NETWORK_UNREACHABLE)
		return fail(st, 0, "connect to %s: loop reaches 127.0.0.1 and ::1 only", text);
	return fail(st, 0, "connect to %s: no free local port", text);
}

enum ndx_status loop_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                  socklen_t len, const struct ndx_spi_params *params)
{
	struct loop_conn *conn = loop_conn_of(spi);
	struct loop_request *request;
	struct sockaddr_storage to;
	enum ndx_status st;

	ndxp_sockaddr_copy(&to, destination, len);
	if (!loop_address_is_ours(&to))
		return cannot_connect(NDX_E_NETWORK_UNREACHABLE, &to);
	request = calloc(1, sizeof(*request));
	if (request == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "connect: out of memory");
	request->spi.params = *params;
	loop_switch_lock(conn->adapter->sw);
	st = send_request(conn, &to, request);
	loop_switch_unlock(conn->adapter->sw);
	if (st == NDX_OK)
		return NDX_OK;
	free(request);
	return cannot_connect(st, &to);
}

/* `established` reports the failure to the core; this is for a call that the core made before. */
static enum ndx_status peer_is_gone(const char *call)
{
	return fail(NDX_E_CONNECTION_ABORTED, 0, "%s: the peer gave up the attempt", call);
}

static void bring_up(struct loop_conn *conn)
{
	conn->state = LOOP_CONN_UP;
	conn->qp->outbound_reads = conn->spi.outbound_read_limit;
	conn->qp->base.state = NDXP_QP_UP;
}

enum ndx_status loop_conn_complete(struct ndx_spi_conn *spi)
{
	struct loop_conn *conn = loop_conn_of(spi);
	bool there;

	loop_switch_lock(conn->adapter->sw);
	there = conn->state == LOOP_CONN_ANSWERED;
	if (there) {
		/* both sides before either report: the peer must be able to receive the first
		 * send */
		bring_up(conn->peer);
		bring_up(conn);
		tell_established(conn->peer, NDX_OK, NULL);
		tell_established(conn, NDX_OK, NULL);
	}
	loop_switch_unlock(conn->adapter->sw);
	return there ? NDX_OK : peer_is_gone("complete connect");
}

/* ---- the passive side ---- */

void loop_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *spi_request)
{
	struct loop_request *request = container_of(spi_request, struct loop_request, spi);
	struct loop_conn *conn = loop_conn_of(spi);
	struct loop_conn *active;

	loop_switch_lock(conn->adapter->sw);
	spi->local = request->spi.local;
	spi->peer = request->spi.peer;
	active = request->active;
	if (active != NULL) {
		active->request = NULL;
		active->peer = conn;
		conn->peer = active;
		conn->state = LOOP_CONN_REQUESTED;
	} else {
		tell_established(conn, NDX_E_CONNECTION_ABORTED, NULL);
	}
	loop_switch_unlock(conn->adapter->sw);
	free(request);
}

enum ndx_status loop_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params)
{
	struct loop_conn *conn = loop_conn_of(spi);
	bool there;

	loop_switch_lock(conn->adapter->sw);
	there = conn->state == LOOP_CONN_REQUESTED;
	if (there) {
		conn->qp = loop_qp_of(conn->spi.qp);
		conn->qp->conn = conn;
		conn->state = LOOP_CONN_ACCEPTED;
		conn->peer->state = LOOP_CONN_ANSWERED;
		tell_connected(conn->peer, NDX_OK, params);
	}
	loop_switch_unlock(conn->adapter->sw);
	return there ? NDX_OK : peer_is_gone("accept");
}

/* ---- both ---- */

enum ndx_status loop_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len)
{
	struct loop_conn *conn = loop_conn_of(spi);
	struct ndx_spi_params params = {.private_data_len = len};
	bool there;

	if (len > 0)
		memcpy(params.private_data, private_data, len);
	loop_switch_lock(conn->adapter->sw);
	there = conn->peer != NULL;
	if (there)
		end_attempt(conn, NDX_E_CONNECTION_REFUSED, &params);
	give_up_conn(conn);
	loop_switch_unlock(conn->adapter->sw);
	return there ? NDX_OK : peer_is_gone("reject");
}
