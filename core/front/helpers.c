/* SPDX-License-Identifier: BSD-2-Clause */
/* The common case in one call each, made of the public calls. */
#include <ndx/helpers.h>

#include <stdio.h>

#include <ndx/spi/sockaddr.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_log.h"
#include "base_loop.h"
#include "connection.h"

/* The step failed on another thread: give this thread the text of the connector. No log record,
 * because the failure has one. */
static enum ndx_status explain(struct ndx_connector *c, enum ndx_status st, const char *what)
{
	char text[BASE_FAILURE_TEXT];

	adapter_lock(c->adapter);
	conn_explain(c, text, sizeof(text));
	adapter_unlock(c->adapter);
	if (text[0] != '\0')
		ndxp_set_last_error("%s: %s", what, text);
	return st;
}

/** What a call waits for, and how long; a call may have several steps. */
struct wait {
	const char *call;
	const char *missing; /* what has not happened, if the time ends before the step does */
	const char *hint;    /* where to look then */
	char where[NDXP_SOCKADDR_TEXT]; /* the listener's address, as long as there is no peer */
	uint32_t ms;
	uint64_t deadline;
};

static struct wait wait_of(const char *call, uint32_t timeout_ms)
{
	return (struct wait){.call = call, .ms = timeout_ms, .deadline = ndxp_deadline(timeout_ms)};
}

/* The time is over, and the step has been cancelled. */
static enum ndx_status fail_timeout(const struct ndx_connector *c, const struct wait *wait)
{
	char text[CONN_TEXT];
	bool known;

	adapter_lock(c->adapter);
	known = c->native->peer.ss_family != AF_UNSPEC || c->destination.ss_family != AF_UNSPEC;
	if (known)
		(void)conn_text(c, text);
	adapter_unlock(c->adapter);
	if (!known)
		(void)snprintf(text, sizeof(text), "%s", wait->where);
	return fail(NDX_E_IO_TIMEOUT, 0, "%s: %s%s%s in %u ms; %s", wait->call, text,
	            text[0] != '\0' ? ": " : "", wait->missing, wait->ms, wait->hint);
}

/* Wait for one step; after the deadline cancel the step, so that `ov` can be freed. */
static enum ndx_status wait_step(struct ndx_connector *c, struct ndx_overlapped *ov,
                                 enum ndx_status started, const struct wait *wait)
{
	enum ndx_status st;

	if (started != NDX_PENDING)
		return started;
	st = ndx_overlapped_wait(ov, ndxp_ms_until(wait->deadline));
	if (st != NDX_PENDING)
		return st < 0 ? explain(c, st, wait->call) : st;
	(void)ndx_connector_cancel(c);
	st = ndx_overlapped_status(ov);
	if (st == NDX_E_CANCELED)
		return fail_timeout(c, wait);
	return st < 0 ? explain(c, st, wait->call) : st;
}

static enum ndx_status refuse_in_callback(const struct ndx_adapter *adapter, const char *call)
{
	if (base_loop_may_wait(adapter->loop))
		return NDX_OK;
	return fail(NDX_E_WOULD_BLOCK, 0, "%s: blocks, and this is a callback", call);
}

enum ndx_status ndx_connect_to(struct ndx_adapter *adapter, struct ndx_qp *qp,
                               const struct sockaddr *destination, socklen_t destination_len,
                               const void *private_data, size_t private_data_len,
                               uint32_t timeout_ms, struct ndx_connector **out)
{
	struct ndx_connect_attr attr;
	struct wait wait = wait_of("ndx_connect_to", timeout_ms);
	struct ndx_overlapped ov = {0};
	struct ndx_connector *c;
	enum ndx_status st;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_connect_to: NULL argument");
	st = refuse_in_callback(adapter, "ndx_connect_to");
	if (st != NDX_OK)
		return st;
	st = ndx_connector_create(adapter, NULL, &c);
	if (st != NDX_OK)
		return st;
	ndx_connect_attr_init(&attr);
	attr.private_data = private_data;
	attr.private_data_len = private_data_len;
	st = ndx_connector_connect(c, qp, destination, destination_len, &attr, &ov);
	wait.missing = "no answer";
	wait.hint = CONN_NO_ANSWER_HINT;
	st = wait_step(c, &ov, st, &wait);
	if (st != NDX_OK)
		goto close_connector;
	st = ndx_connector_complete_connect(c, &ov);
	wait.missing = "the server accepted, but the connection was not complete";
	wait.hint = "the server's process is stopped, or the network lost packets";
	st = wait_step(c, &ov, st, &wait);
	if (st != NDX_OK)
		goto close_connector;
	*out = c;
	return NDX_OK;

close_connector:
	ndx_connector_close(c);
	return st;
}

static enum ndx_status take_request(struct ndx_listener *listener, struct ndx_connector *c,
                                    struct wait *wait)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_listener_get_connection_request(listener, c, &ov);
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);

	if (st == NDX_PENDING &&
	    ndx_listener_get_local_address(listener, (struct sockaddr *)&local, &length) == NDX_OK)
		(void)ndxp_sockaddr_text(&local, wait->where);
	wait->missing = "no client has come";
	wait->hint = "see that clients connect to this address, and that no firewall is between";
	return wait_step(c, &ov, st, wait);
}

static enum ndx_status accept_request(struct ndx_connector *c, struct ndx_qp *qp,
                                      const void *private_data, size_t private_data_len,
                                      struct wait *wait)
{
	struct ndx_connect_attr attr;
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	ndx_connect_attr_init(&attr);
	attr.private_data = private_data;
	attr.private_data_len = private_data_len;
	st = ndx_connector_accept(c, qp, &attr, &ov);
	wait->missing = "the client has not completed its connect";
	wait->hint = "its program is slow, or its process is stopped";
	return wait_step(c, &ov, st, wait);
}

/* Take and accept one request. *again: the peer gave up before the end. */
static enum ndx_status accept_one(struct ndx_listener *listener, struct ndx_connector *c,
                                  struct ndx_qp *qp, const void *private_data,
                                  size_t private_data_len, struct wait *wait, bool *again)
{
	enum ndx_status st = take_request(listener, c, wait);

	*again = false;
	if (st != NDX_OK)
		return st;
	st = accept_request(c, qp, private_data, private_data_len, wait);
	*again = st == NDX_E_CONNECTION_ABORTED || st == NDX_E_CONNECTION_REFUSED;
	return st;
}

enum ndx_status ndx_accept_from(struct ndx_adapter *adapter, struct ndx_listener *listener,
                                struct ndx_qp *qp, const void *private_data,
                                size_t private_data_len, uint32_t timeout_ms,
                                struct ndx_connector **out)
{
	struct wait wait = wait_of("ndx_accept_from", timeout_ms);
	struct ndx_connector *c = NULL;
	enum ndx_status st;
	bool again = true;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_accept_from: NULL argument");
	st = refuse_in_callback(adapter, "ndx_accept_from");
	if (st != NDX_OK)
		return st;
	while (again) {
		st = ndx_connector_create(adapter, NULL, &c);
		if (st != NDX_OK)
			return st;
		st = accept_one(listener, c, qp, private_data, private_data_len, &wait, &again);
		if (st != NDX_OK)
			ndx_connector_close(c);
	}
	if (st == NDX_OK)
		*out = c;
	return st;
}

enum ndx_status ndx_get_request(struct ndx_adapter *adapter, struct ndx_listener *listener,
                                uint32_t timeout_ms, struct ndx_connector **out)
{
	struct wait wait = wait_of("ndx_get_request", timeout_ms);
	struct ndx_connector *c;
	enum ndx_status st;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_get_request: NULL argument");
	st = refuse_in_callback(adapter, "ndx_get_request");
	if (st != NDX_OK)
		return st;
	st = ndx_connector_create(adapter, NULL, &c);
	if (st != NDX_OK)
		return st;
	st = take_request(listener, c, &wait);
	if (st == NDX_OK)
		*out = c;
	else
		ndx_connector_close(c);
	return st;
}

enum ndx_status ndx_accept(struct ndx_connector *connector, struct ndx_qp *qp,
                           const void *private_data, size_t private_data_len, uint32_t timeout_ms)
{
	struct wait wait = wait_of("ndx_accept", timeout_ms);
	enum ndx_status st;

	if (connector == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_accept: connector is NULL");
	st = refuse_in_callback(connector->adapter, "ndx_accept");
	if (st != NDX_OK)
		return st;
	return accept_request(connector, qp, private_data, private_data_len, &wait);
}

enum ndx_status ndx_disconnect(struct ndx_connector *connector, uint32_t timeout_ms)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	if (connector == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_disconnect: connector is NULL");
	st = refuse_in_callback(connector->adapter, "ndx_disconnect");
	if (st != NDX_OK)
		return st;
	st = ndx_connector_disconnect(connector, &ov);
	if (st != NDX_PENDING)
		return st;
	st = ndx_overlapped_wait(&ov, timeout_ms);
	if (st != NDX_PENDING)
		return st < 0 ? explain(connector, st, "ndx_disconnect") : st;
	/* Not ndx_connector_cancel(), which would also cancel the consumer's notify_disconnect. */
	conn_withdraw_disconnect(connector, &ov);
	st = ndx_overlapped_status(&ov);
	if (st == NDX_E_CANCELED)
		return fail(NDX_E_IO_TIMEOUT, 0,
		            "ndx_disconnect: the peer's goodbye has not come in %u ms; the "
		            "teardown goes on",
		            timeout_ms);
	return st < 0 ? explain(connector, st, "ndx_disconnect") : st;
}

enum ndx_status ndx_mr_register_new(struct ndx_adapter *adapter, const void *buffer, size_t length,
                                    uint32_t flags, struct ndx_mr **out)
{
	struct ndx_overlapped ov = {0};
	struct ndx_mr *mr;
	enum ndx_status st;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_register_new: out is NULL");
	st = ndx_mr_create(adapter, &mr);
	if (st != NDX_OK)
		return st;
	st = ndx_mr_register(mr, buffer, length, flags, &ov);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, NDX_INFINITE);
	if (st != NDX_OK) {
		ndx_mr_close(mr);
		return st;
	}
	*out = mr;
	return NDX_OK;
}

enum ndx_status ndx_listen_on(struct ndx_adapter *adapter, const struct sockaddr *address,
                              socklen_t address_len, uint32_t backlog, struct ndx_listener **out)
{
	struct ndx_listener *l;
	enum ndx_status st;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_listen_on: out is NULL");
	st = ndx_listener_create(adapter, &l);
	if (st != NDX_OK)
		return st;
	st = ndx_listener_bind(l, address, address_len);
	if (st == NDX_OK)
		st = ndx_listener_listen(l, backlog);
	if (st != NDX_OK) {
		ndx_listener_close(l);
		return st;
	}
	*out = l;
	return NDX_OK;
}
