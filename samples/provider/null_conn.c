/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners, connecting, and the steps of the disconnect, by direct call.
 *
 * The two ends of a connection belong to different control threads, so one end may leave before its
 * core has handled what the other end did. Hence every step checks the state.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "null.h"

#define BUCKETS 1024u
#define FIRST_EPHEMERAL 49152u
#define EPHEMERAL_PORTS (65536u - FIRST_EPHEMERAL)

struct null_listener {
	struct ndx_spi_listener spi;
	struct null_port port;
};

struct null_request {
	struct ndx_spi_request spi;
	struct null_conn *active; /* NULL: the active side gave up */
};

static struct ndxp_table_node *buckets[BUCKETS];
static struct ndxp_table ports = {.buckets = buckets, .mask = BUCKETS - 1};
static uint32_t next_port;

/* ---- ports and listeners ---- */

struct sockaddr_storage null_address(uint16_t port)
{
	const struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	struct sockaddr_storage address = {0};

	memcpy(&address, &in, sizeof(in));
	return address;
}

static bool is_taken(uint32_t number)
{
	return ndxp_table_first(&ports, number) != NULL;
}

/* Lock held. 0: any free number. */
static enum ndx_status bind_port(struct null_port *port, uint32_t number)
{
	if (number != 0 && is_taken(number))
		return NDX_E_SHARING_VIOLATION;
	for (uint32_t i = 0; number == 0 && i < EPHEMERAL_PORTS; i++) {
		number = FIRST_EPHEMERAL + next_port++ % EPHEMERAL_PORTS;
		if (is_taken(number))
			number = 0;
	}
	if (number == 0)
		return NDX_E_TOO_MANY_ADDRESSES;
	ndxp_table_add(&ports, &port->node, number);
	return NDX_OK;
}

/* For conn_bind and listener_bind. */
static enum ndx_status claim(struct null_port *port, const struct sockaddr *address, socklen_t len)
{
	const struct sockaddr_storage own = null_address(0);
	struct sockaddr_storage wanted;
	char text[NDXP_SOCKADDR_TEXT];
	enum ndx_status st;

	ndxp_sockaddr_copy(&wanted, address, len);
	if (wanted.ss_family != AF_INET ||
	    !(ndxp_sockaddr_is_any(&wanted) || ndxp_sockaddr_same_host(&wanted, &own)))
		return ndxp_fail_here(NDX_E_INVALID_ADDRESS, 0,
		                      "bind to %s: null has the address 127.0.0.1 only",
		                      ndxp_sockaddr_text(&wanted, text));
	null_lock();
	st = bind_port(port, ndxp_sockaddr_port(&wanted));
	null_unlock();
	if (st != NDX_OK)
		return ndxp_fail_here(st, 0, "bind to %s: %s", ndxp_sockaddr_text(&wanted, text),
		                      st == NDX_E_SHARING_VIOLATION
		                              ? "the port is in use; choose another, or 0 for any"
		                              : "no port is free");
	return NDX_OK;
}

enum ndx_status null_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                     struct ndx_spi_listener **out)
{
	struct null_listener *listener = calloc(1, sizeof(*listener));

	(void)adapter;
	(void)front;
	if (listener == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "listener: out of memory");
	*out = &listener->spi;
	return NDX_OK;
}

static struct null_listener *listener_of(struct ndx_spi_listener *spi)
{
	return ndxp_container_of(spi, struct null_listener, spi);
}

void null_listener_destroy(struct ndx_spi_listener *spi)
{
	struct null_listener *listener = listener_of(spi);

	null_lock();
	ndxp_table_remove(&listener->port.node);
	null_unlock();
	free(listener);
}

enum ndx_status null_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                   socklen_t len)
{
	return claim(&listener_of(spi)->port, address, len);
}

/* A request goes to the core as soon as it is made, and the core limits the backlog. */
enum ndx_status null_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog)
{
	struct null_listener *listener = listener_of(spi);

	(void)backlog;
	spi->local = null_address((uint16_t)listener->port.node.hash);
	null_lock();
	listener->port.listener = listener;
	null_unlock();
	return NDX_OK;
}

/* ---- connecting: request, answer, completion ---- */

static struct null_conn *conn_of(struct ndx_spi_conn *spi)
{
	return ndxp_container_of(spi, struct null_conn, spi);
}

static void tell_connected(struct null_conn *conn, enum ndx_status status,
                           const struct ndx_spi_params *params)
{
	conn->spi.native->host->connected(&conn->spi, status, 0, params);
}

static void tell_established(struct null_conn *conn, enum ndx_status status,
                             const struct ndx_spi_params *params)
{
	conn->spi.native->host->established(&conn->spi, status, 0, params);
}

enum ndx_status null_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                 struct ndx_spi_conn **out)
{
	struct null_conn *conn = calloc(1, sizeof(*conn));

	(void)adapter;
	(void)front;
	if (conn == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "connector: out of memory");
	conn->timer.fn = null_no_receive;
	conn->timer.arg = conn;
	*out = &conn->spi;
	return NDX_OK;
}

enum ndx_status null_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                               socklen_t len)
{
	struct null_conn *conn = conn_of(spi);
	const enum ndx_status st = claim(&conn->port, address, len);

	if (st == NDX_OK)
		spi->local = null_address((uint16_t)conn->port.node.hash);
	return st;
}

/* Lock held, here and below. Give the connector its queue pair for an attempt. */
static void couple(struct null_conn *conn)
{
	conn->qp = null_qp_of(conn->spi.qp);
	conn->qp->conn = conn;
}

/* Separate the two. The peer's send that waits for a receive now waits for the disconnect. */
static void decouple(struct null_conn *conn)
{
	if (conn->qp == NULL)
		return;
	conn->qp->conn = NULL;
	conn->qp = NULL;
	if (conn->peer != NULL)
		null_pump(conn->peer);
}

/* `conn` leaves the attempt; its peer gets `status`. */
static void end_attempt(struct null_conn *conn, enum ndx_status status,
                        const struct ndx_spi_params *params)
{
	struct null_conn *peer = conn->peer;
	const bool asking = peer->state == NULL_ASKING;

	conn->peer = NULL;
	peer->peer = NULL;
	peer->state = NULL_IDLE;
	if (asking)
		tell_connected(peer, status, params);
	else
		tell_established(peer, status, params);
}

/* Leave an attempt in any state. The core may also give up an attempt that has just succeeded. */
static void leave(struct null_conn *conn)
{
	if (conn->request != NULL) {
		conn->request->active = NULL;
		conn->request = NULL;
	}
	if (conn->state == NULL_UP)
		null_disrupt(conn, NULL, "the peer gave up the connection");
	else if (conn->peer != NULL)
		end_attempt(conn,
		            conn->state == NULL_ANSWERED ? NDX_E_CONNECTION_REFUSED
		                                         : NDX_E_CONNECTION_ABORTED,
		            NULL);
	conn->state = NULL_IDLE;
	if (conn->qp != NULL) {
		null_cancel_initiator(conn->qp);
		conn->qp->base.state = NDXP_QP_IDLE;
	}
	decouple(conn);
}

void null_conn_abandon(struct ndx_spi_conn *spi)
{
	null_lock();
	leave(conn_of(spi));
	null_unlock();
}

void null_conn_destroy(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);

	null_lock();
	leave(conn);
	ndxp_table_remove(&conn->port.node);
	null_unlock();
	/* This is the timer's own thread, so the timer's function is not running. */
	ndxp_timer_cancel(spi->native->loop, &conn->timer);
	free(conn);
}

static enum ndx_status ask(struct null_conn *conn, const struct sockaddr_storage *to,
                           struct null_request *request)
{
	const struct sockaddr_storage own = null_address(0);
	struct ndxp_table_node *node = ndxp_table_first(&ports, ndxp_sockaddr_port(to));
	struct null_listener *listener =
		node != NULL ? ndxp_container_of(node, struct null_port, node)->listener : NULL;
	enum ndx_status st = NDX_OK;

	if (to->ss_family != AF_INET || !ndxp_sockaddr_same_host(to, &own))
		return NDX_E_NETWORK_UNREACHABLE;
	if (listener == NULL)
		return NDX_E_CONNECTION_REFUSED;
	if (conn->port.node.link == NULL) /* the port stays the connector's for later attempts */
		st = bind_port(&conn->port, 0);
	if (st != NDX_OK)
		return st;
	conn->spi.local = null_address((uint16_t)conn->port.node.hash);
	conn->spi.peer = *to;
	request->active = conn;
	request->spi.listener = &listener->spi;
	request->spi.local = conn->spi.peer;
	request->spi.peer = conn->spi.local;
	conn->request = request;
	conn->state = NULL_ASKING;
	couple(conn);
	listener->spi.native->host->request(&request->spi);
	return NDX_OK;
}

enum ndx_status null_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                  socklen_t len, const struct ndx_spi_params *params)
{
	struct null_request *request = calloc(1, sizeof(*request));
	char text[NDXP_SOCKADDR_TEXT];
	struct sockaddr_storage to;
	enum ndx_status st;

	if (request == NULL)
		return ndxp_fail_here(NDX_E_NO_MEMORY, 0, "connect: out of memory");
	ndxp_sockaddr_copy(&to, destination, len);
	request->spi.params = *params;
	null_lock();
	st = ask(conn_of(spi), &to, request);
	null_unlock();
	if (st == NDX_OK)
		return NDX_OK;
	free(request);
	return ndxp_fail_here(st, 0, "connect to %s: %s", ndxp_sockaddr_text(&to, text),
	                      st == NDX_E_CONNECTION_REFUSED
	                              ? "no null adapter of this process listens there"
	                              : "null reaches 127.0.0.1 only, and needs a free port");
}

void null_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *spi_request)
{
	struct null_request *request = ndxp_container_of(spi_request, struct null_request, spi);
	struct null_conn *conn = conn_of(spi);

	null_lock();
	spi->local = request->spi.local;
	spi->peer = request->spi.peer;
	conn->peer = request->active;
	if (conn->peer != NULL) {
		conn->peer->request = NULL;
		conn->peer->peer = conn;
		conn->state = NULL_TAKEN;
	} else {
		tell_established(conn, NDX_E_CONNECTION_ABORTED, NULL);
	}
	null_unlock();
	free(request);
}

void null_request_refuse(struct ndx_spi_request *spi)
{
	struct null_request *request = ndxp_container_of(spi, struct null_request, spi);
	struct null_conn *active;

	null_lock();
	active = request->active;
	if (active != NULL) {
		active->request = NULL;
		active->state = NULL_IDLE;
		tell_connected(active, NDX_E_CONNECTION_REFUSED, NULL);
	}
	null_unlock();
	free(request);
}

/* `established` reports this to the core, too; here it is for the call that came in between. */
static enum ndx_status result_of(bool there, const char *call)
{
	return there ? NDX_OK
	             : ndxp_fail_here(NDX_E_CONNECTION_ABORTED, 0,
	                              "%s: the peer gave up the attempt", call);
}

enum ndx_status null_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params)
{
	struct null_conn *conn = conn_of(spi);
	bool there;

	null_lock();
	there = conn->state == NULL_TAKEN;
	if (there) {
		couple(conn);
		conn->peer->state = NULL_ANSWERED;
		tell_connected(conn->peer, NDX_OK, params);
	}
	null_unlock();
	return result_of(there, "accept");
}

static void bring_up(struct null_conn *conn)
{
	conn->state = NULL_UP;
	conn->qp->reads = conn->spi.outbound_read_limit;
	conn->qp->base.state = NDXP_QP_UP;
}

enum ndx_status null_conn_complete(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);
	bool there;

	null_lock();
	there = conn->state == NULL_ANSWERED;
	if (there) {
		/* both before either report: the peer must be able to take the first send */
		bring_up(conn->peer);
		bring_up(conn);
		tell_established(conn->peer, NDX_OK, NULL);
		tell_established(conn, NDX_OK, NULL);
	}
	null_unlock();
	return result_of(there, "complete connect");
}

enum ndx_status null_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len)
{
	struct null_conn *conn = conn_of(spi);
	struct ndx_spi_params params = {.private_data_len = len};
	bool there;

	if (len > 0)
		memcpy(params.private_data, private_data, len);
	null_lock();
	there = conn->peer != NULL;
	if (there)
		end_attempt(conn, NDX_E_CONNECTION_REFUSED, &params);
	leave(conn);
	null_unlock();
	return result_of(there, "reject");
}

/* ---- the steps of the disconnect; the rules are the core's ---- */

static void drain(struct null_conn *conn)
{
	if (conn->qp != NULL)
		conn->qp->base.state = NDXP_QP_CLOSING;
	conn->draining = true;
	null_check_drained(conn);
}

void null_conn_drain(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);

	null_lock();
	if (conn->state == NULL_UP)
		drain(conn);
	null_unlock();
}

void null_conn_cancel_initiator(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);

	null_lock();
	if (conn->state == NULL_UP) {
		if (conn->qp != NULL)
			null_cancel_initiator(conn->qp);
		drain(conn);
	}
	null_unlock();
}

/* A goodbye is delivered as soon as it is sent. */
void null_conn_send_disc(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);

	null_lock();
	if (conn->state == NULL_UP && conn->peer != NULL) {
		null_report(conn->peer, NDX_REPORT_PEER_DISC, NULL);
		null_report(conn, NDX_REPORT_DISC_ACKED, NULL);
	}
	null_unlock();
}

/* Cancel what the queue pair has, receives last, and separate it from the connection. */
static void flush(struct null_conn *conn)
{
	if (conn->qp == NULL)
		return;
	null_cancel_initiator(conn->qp);
	ndxp_queue_cancel(&conn->qp->base.receive, NDX_E_CANCELED);
	conn->qp->base.state = NDXP_QP_DEAD;
	decouple(conn);
}

static void end(struct null_conn *conn)
{
	flush(conn);
	conn->draining = false;
	conn->state = NULL_ENDED;
	null_report(conn, NDX_REPORT_QUIET, NULL);
}

void null_conn_finish(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);

	null_lock();
	if (conn->peer != NULL) { /* it has both goodbyes, too, and needs this side no more */
		conn->peer->peer = NULL;
		conn->peer = NULL;
	}
	end(conn);
	null_unlock();
}

void null_conn_abort(struct ndx_spi_conn *spi)
{
	struct null_conn *conn = conn_of(spi);

	null_lock();
	null_disrupt(conn, NULL, "the peer aborted the connection");
	end(conn);
	null_unlock();
}

enum ndx_status null_conn_detach(struct ndx_spi_conn *spi)
{
	null_lock();
	flush(conn_of(spi));
	null_unlock();
	return NDX_OK;
}
