/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and listeners: each call is counted, and fails or is passed on. */
#include <ndx/spi/log.h>
#include "fault.h"

enum ndx_status fault_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                  struct ndx_spi_conn **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	struct fault_conn *fc;
	enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_create);

	if (st != NDX_OK) {
		*out = fault_bad_pointer();
		return st;
	}
	fc = fault_events_new(fa);
	if (fc == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "connector: out of memory");
	st = fa->ops->conn_create(adapter, front, out);
	if (st == NDX_OK)
		fault_events_name(fa, fc, *out);
	else
		fault_events_free(fa, fc);
	return st;
}

void fault_conn_destroy(struct ndx_spi_conn *conn)
{
	struct fault_adapter *fa = fault_of(conn->native);

	/* the inner conn_destroy() may still report; behind it `conn` is only a key */
	fa->ops->conn_destroy(conn);
	fault_events_drop(fa, conn);
}

enum ndx_status fault_conn_bind(struct ndx_spi_conn *conn, const struct sockaddr *address,
                                socklen_t len)
{
	struct fault_adapter *fa = fault_of(conn->native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_bind);

	return st == NDX_OK ? fa->ops->conn_bind(conn, address, len) : st;
}

enum ndx_status fault_conn_connect(struct ndx_spi_conn *conn, const struct sockaddr *destination,
                                   socklen_t len, const struct ndx_spi_params *params)
{
	struct fault_adapter *fa = fault_of(conn->native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_connect);

	return st == NDX_OK ? fa->ops->conn_connect(conn, destination, len, params) : st;
}

enum ndx_status fault_conn_complete(struct ndx_spi_conn *conn)
{
	struct fault_adapter *fa = fault_of(conn->native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_complete);

	return st == NDX_OK ? fa->ops->conn_complete(conn) : st;
}

void fault_conn_take(struct ndx_spi_conn *conn, struct ndx_spi_request *request)
{
	fault_of(conn->native)->ops->conn_take(conn, request);
}

enum ndx_status fault_conn_accept(struct ndx_spi_conn *conn, const struct ndx_spi_params *params)
{
	struct fault_adapter *fa = fault_of(conn->native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_accept);

	return st == NDX_OK ? fa->ops->conn_accept(conn, params) : st;
}

/* A refusal that fails ends the attempt all the same, so that the peer does not wait for it. */
enum ndx_status fault_conn_reject(struct ndx_spi_conn *conn, const void *private_data, size_t len)
{
	struct fault_adapter *fa = fault_of(conn->native);
	enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_reject);

	if (st == NDX_OK)
		st = fa->ops->conn_reject(conn, private_data, len);
	else
		fa->ops->conn_abandon(conn);
	fault_events_forget(fa, conn);
	return st;
}

void fault_conn_abandon(struct ndx_spi_conn *conn)
{
	struct fault_adapter *fa = fault_of(conn->native);

	fa->ops->conn_abandon(conn);
	fault_events_forget(fa, conn);
}

/*
 * In a callback the core expects DRAINED and QUIET from within these two calls, because no other
 * thread could report them while the callback runs.
 */
void fault_conn_drain(struct ndx_spi_conn *conn)
{
	struct fault_adapter *fa = fault_of(conn->native);

	fault_qp_ending(conn->qp);
	fault_events_hurry(fa, conn, true);
	fa->ops->conn_drain(conn);
	fault_events_hurry(fa, conn, false);
}

void fault_conn_abort(struct ndx_spi_conn *conn)
{
	struct fault_adapter *fa = fault_of(conn->native);

	fault_qp_ending(conn->qp);
	fault_events_hurry(fa, conn, true);
	fa->ops->conn_abort(conn);
}

void fault_conn_cancel_initiator(struct ndx_spi_conn *conn)
{
	fault_of(conn->native)->ops->conn_cancel_initiator(conn);
}

void fault_conn_send_disc(struct ndx_spi_conn *conn)
{
	fault_of(conn->native)->ops->conn_send_disc(conn);
}

void fault_conn_finish(struct ndx_spi_conn *conn)
{
	fault_qp_ending(conn->qp);
	fault_of(conn->native)->ops->conn_finish(conn);
}

enum ndx_status fault_conn_detach(struct ndx_spi_conn *conn)
{
	struct fault_adapter *fa = fault_of(conn->native);
	enum ndx_status st = fault_inject(fa, FAULT_CALL_conn_detach);

	fault_qp_ending(conn->qp);
	if (st == NDX_OK)
		st = fa->ops->conn_detach(conn);
	fault_cqs_end_delay(fa);
	return st;
}

enum ndx_status fault_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                      struct ndx_spi_listener **out)
{
	struct fault_adapter *fa = fault_of(adapter);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_listener_create);

	if (st == NDX_OK)
		return fa->ops->listener_create(adapter, front, out);
	*out = fault_bad_pointer();
	return st;
}

void fault_listener_destroy(struct ndx_spi_listener *listener)
{
	struct fault_adapter *fa = fault_of(listener->native);

	/* the requests have to reach the core before listener_destroy() returns: then it refuses
	 * them */
	fault_events_flush_requests(fa, listener);
	fa->ops->listener_destroy(listener);
	fault_events_listener_gone(fa);
}

enum ndx_status fault_listener_bind(struct ndx_spi_listener *listener,
                                    const struct sockaddr *address, socklen_t len)
{
	struct fault_adapter *fa = fault_of(listener->native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_listener_bind);

	return st == NDX_OK ? fa->ops->listener_bind(listener, address, len) : st;
}

enum ndx_status fault_listener_listen(struct ndx_spi_listener *listener, uint32_t backlog)
{
	struct fault_adapter *fa = fault_of(listener->native);
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_listener_listen);

	return st == NDX_OK ? fa->ops->listener_listen(listener, backlog) : st;
}

void fault_request_refuse(struct ndx_spi_request *request)
{
	fault_of(request->native)->ops->request_refuse(request);
}
