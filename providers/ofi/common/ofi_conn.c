/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting, both sides, until the connection is established or the attempt has failed. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"

#define REJ_CONSUMER 28 /* IBA: a consumer has refused, so there is one */

static void copy_params(struct ofi_cm *cm, enum ofi_cm_kind kind,
                        const struct ndx_spi_params *params)
{
	cm->kind = kind;
	cm->inbound_read_limit = params->inbound_read_limit;
	cm->outbound_read_limit = params->outbound_read_limit;
	cm->private_len = params->private_data_len;
	memcpy(cm->private_data, params->private_data, params->private_data_len);
}

static void drop_request(struct ofi_conn *conn, const void *data, size_t len)
{
	struct ofi_request *request = conn->request;

	conn->request = NULL;
	ofi_refuse(conn->adapter, request->info, data, len);
	free(request);
}

/* ---- create and destroy ---- */

enum ndx_status ofi_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                struct ndx_spi_conn **out)
{
	struct ofi_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a connector");
	conn->adapter = ofi_adapter_of(adapter);
	conn->spi.front = front;
	conn->spi.native = adapter;
	conn->reserved = -1;
	ndxp_list_add(&conn->adapter->conns, &conn->node);
	*out = &conn->spi;
	return NDX_OK;
}

void ofi_conn_destroy(struct ndx_spi_conn *spi)
{
	struct ofi_conn *conn = ofi_conn_of(spi);

	if (conn->request != NULL)
		drop_request(conn, NULL, 0);
	if (conn->link != NULL)
		ofi_link_close(conn->link, false);
	ndxp_list_remove(&conn->node);
	ndxp_fd_close(conn->reserved);
	free(conn);
}

/* An endpoint is made late, so a socket reserves the port for it. */
static int reserve_port(struct sockaddr_storage *address, int *out)
{
	const int on = 1;
	socklen_t len = ndxp_sockaddr_len(address);
	const int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (const struct sockaddr *)address, len) != 0 ||
	    getsockname(fd, (struct sockaddr *)address, &len) != 0) {
		err = errno;
		ndxp_fd_close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

static bool is_bound(struct ofi_adapter *adapter, const struct sockaddr_storage *address)
{
	for (struct ndxp_list *n = adapter->conns.next; n != &adapter->conns; n = n->next) {
		const struct ofi_conn *conn = container_of(n, struct ofi_conn, node);

		if (conn->reserved >= 0 &&
		    ndxp_sockaddr_port(&conn->bound) == ndxp_sockaddr_port(address) &&
		    ndxp_sockaddr_same_host(&conn->bound, address))
			return true;
	}
	return false;
}

enum ndx_status ofi_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                              socklen_t len)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	struct sockaddr_storage local;
	char text[NDXP_SOCKADDR_TEXT];
	int err;

	ndxp_sockaddr_copy(&local, address, len);
	if (ofi_check_own(conn->adapter, &local) != NDX_OK)
		return NDX_E_INVALID_ADDRESS;
	if (ndxp_sockaddr_port(&local) != 0 && is_bound(conn->adapter, &local))
		return fail(NDX_E_SHARING_VIOLATION, EADDRINUSE, "%s is bound by another connector",
		            ndxp_sockaddr_text(&local, text));
	err = reserve_port(&local, &conn->reserved);
	if (err != 0 && ndxp_sockaddr_port(&local) == 0 &&
	    (err == EADDRINUSE || err == EADDRNOTAVAIL))
		return fail(NDX_E_TOO_MANY_ADDRESSES, err, "no free port at %s",
		            ndxp_sockaddr_text(&local, text));
	if (err != 0)
		return fail(ofi_status_of(err), err, "bind to %s: %s%s",
		            ndxp_sockaddr_text(&local, text), strerror(err), ofi_address_hint(err));
	conn->bound = local;
	spi->local = local;
	return NDX_OK;
}

/* A peer on verbs gives its device messages without a credit, and asks for none. */
static const char no_srq_text[] = "the peer is on verbs, which cannot talk to a queue pair of "
				  "ofi:verbs with a shared receive "
				  "queue; use one of both at both ends";

static bool shares_with_verbs(const struct ndx_spi_conn *spi, const struct ofi_cm *peer)
{
	return peer->is_verbs && ofi_qp_of(spi->qp)->taker.srq != NULL;
}

/* ---- active side ---- */

/* The source address; NULL: the kernel chooses. */
static const struct sockaddr_storage *choose_source(const struct ofi_conn *conn,
                                                    const struct sockaddr_storage *to)
{
	const struct ofi_adapter *adapter = conn->adapter;
	const bool named = adapter->options.iface[0] != '\0' ||
	                   adapter->options.address.ss_family != AF_UNSPEC ||
	                   adapter->backend->one_device;

	if (conn->bound.ss_family != AF_UNSPEC)
		return &conn->bound;
	/* An adapter of one interface or device connects from its own address, whatever the routes
	 * are. */
	if (!named || ndxp_sockaddr_is_loopback(to))
		return NULL;
	for (size_t i = 0; i < adapter->address_count; i++) {
		if (adapter->addresses[i].ss_family == to->ss_family)
			return &adapter->addresses[i];
	}
	return NULL;
}

static void read_local_address(struct ofi_conn *conn)
{
	size_t len = sizeof(conn->spi.local);
	struct sockaddr_storage local = {0};

	if (fi_getname(&conn->link->ep->fid, &local, &len) == 0)
		conn->spi.local = local;
}

/* What the kernel means by EINVAL; NULL: nothing that is known. */
static const char *why_unreachable(const struct sockaddr_storage *to,
                                   const struct sockaddr_storage *source)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)to;

	if (to->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
	    v6->sin6_scope_id == 0)
		return "; a link-local address needs %INTERFACE, as fe80::1%eth0";
	if (source != NULL && ndxp_sockaddr_is_loopback(source) && !ndxp_sockaddr_is_loopback(to))
		return "; an adapter of the loopback, as with iface=lo, reaches this host only; "
		       "use ofi:tcp?trust=lan, or iface=NAME&trust=lan with the interface that "
		       "leads there";
	return NULL;
}

static enum ndx_status fail_connect(const struct ofi_conn *conn,
                                    const struct sockaddr_storage *source, int err)
{
	char text[NDXP_SOCKADDR_TEXT];
	const char *hint;
	enum ndx_status st = ofi_status_of(err);

	if (err == EADDRNOTAVAIL || err == EADDRINUSE)
		st = conn->bound.ss_family != AF_UNSPEC ? NDX_E_ADDRESS_ALREADY_EXISTS
		                                        : NDX_E_TOO_MANY_ADDRESSES;
	hint = err == EINVAL ? why_unreachable(&conn->spi.peer, source) : NULL;
	if (hint != NULL)
		st = NDX_E_INVALID_ADDRESS;
	else if (st == NDX_E_UNSUCCESSFUL)
		st = NDX_E_CONNECTION_ABORTED;
	return fail(st, err, "fi_connect to %s: %s%s", ndxp_sockaddr_text(&conn->spi.peer, text),
	            fi_strerror(err), hint != NULL ? hint : "");
}

enum ndx_status ofi_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                 socklen_t len, const struct ndx_spi_params *params)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	const struct sockaddr_storage *source;
	struct sockaddr_storage to;
	struct ofi_cm own = {0};
	uint8_t bytes[OFI_CM_SIZE];
	struct fi_info *info;
	enum ndx_status st;
	int err;

	ofi_prove_begin(conn);
	ndxp_sockaddr_copy(&to, destination, len);
	st = ofi_check_trust(conn->adapter, &to, "connect to");
	if (st != NDX_OK)
		return st;
	spi->peer = to;
	source = choose_source(conn, &to);
	info = ofi_dup_info(conn->adapter->info, source, &to);
	if (info == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to connect");
	copy_params(&own, OFI_CM_CONNECT, params);
	st = ofi_link_create(conn, ofi_qp_of(spi->qp), info, NULL, &conn->link, &own);
	fi_freeinfo(info);
	if (st != NDX_OK)
		return st;
	err = -fi_connect(conn->link->ep, &to, bytes,
	                  conn->adapter->backend->cm_encode(&own, bytes));
	if (err != 0) {
		ofi_link_close(conn->link, true);
		conn->link = NULL;
		return fail_connect(conn, source, err);
	}
	return NDX_OK;
}

static void set_read_limit(struct ofi_conn *conn, struct ofi_qp *qp)
{
	ndxp_lock_acquire(&qp->base.lock);
	qp->read_limit = conn->spi.outbound_read_limit;
	ndxp_lock_release(&qp->base.lock);
}

enum ndx_status ofi_conn_complete(struct ndx_spi_conn *spi)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	struct ofi_link *link = conn->link;
	char text[NDXP_SOCKADDR_TEXT];
	int err = ENOTCONN;

	if (link != NULL) {
		set_read_limit(conn, link->qp);
		ndxp_lock_acquire(&link->ncq->lock);
		if (link->stage == OFI_LINK_ANSWERED) {
			link->stage = OFI_LINK_COMPLETING;
			ndxp_timer_set(conn->adapter->spi.loop, &link->timer,
			               conn->adapter->answer_ms);
			err = conn->adapter->backend->send_ready(link);
		}
		ndxp_lock_release(&link->ncq->lock);
	}
	if (err != 0)
		return fail(NDX_E_CONNECTION_ABORTED, err, "%s went away",
		            ndxp_sockaddr_text(&spi->peer, text));
	return NDX_OK;
}

/* ---- passive side ---- */

void ofi_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *request)
{
	struct ofi_conn *conn = ofi_conn_of(spi);

	conn->request = (struct ofi_request *)(void *)request;
	ofi_prove_begin(conn);
	ofi_prove_seen(conn, NDX_PROVED_SMALL);
}

enum ndx_status ofi_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	struct ofi_request *request = conn->request;
	struct ofi_qp *qp = ofi_qp_of(spi->qp);
	struct ofi_cm own = {0};
	uint8_t bytes[OFI_CM_SIZE];
	char text[NDXP_SOCKADDR_TEXT];
	enum ndx_status st;
	int err;

	copy_params(&own, OFI_CM_ACCEPT, params);
	if (shares_with_verbs(spi, &request->peer)) {
		st = fail(NDX_E_NOT_SUPPORTED, 0, "%s", no_srq_text);
		goto drop;
	}
	st = ofi_link_create(conn, qp, request->info, &request->peer, &conn->link, &own);
	if (st != NDX_OK)
		goto drop;
	ndxp_lock_acquire(&conn->link->ncq->lock);
	conn->link->peer = request->peer;
	conn->link->known = true;
	ndxp_lock_release(&conn->link->ncq->lock);
	set_read_limit(conn, qp);
	read_local_address(conn);
	ndxp_timer_set(conn->adapter->spi.loop, &conn->link->timer, conn->adapter->answer_ms);
	err = -fi_accept(conn->link->ep, bytes, conn->adapter->backend->cm_encode(&own, bytes));
	if (err != 0) {
		st = fail(NDX_E_CONNECTION_ABORTED, err, "fi_accept of %s: %s",
		          ndxp_sockaddr_text(&spi->peer, text), fi_strerror(err));
		ofi_link_close(conn->link, true);
		conn->link = NULL;
		goto drop;
	}
	conn->request = NULL;
	fi_freeinfo(request->info);
	free(request);
	return NDX_OK;

drop:
	drop_request(conn, NULL, 0);
	return st;
}

/* ---- giving up ---- */

/* Send REJECT to a peer that has accepted; the link lives on by itself until REJECT is
 * delivered. */
static enum ndx_status send_reject(struct ofi_conn *conn, const void *data, size_t len)
{
	struct ofi_link *link = conn->link;
	int err = ENOTCONN;

	ndxp_lock_acquire(&link->ncq->lock);
	if (link->stage == OFI_LINK_ANSWERED)
		err = conn->adapter->backend->send_reject(link, data, len);
	ndxp_lock_release(&link->ncq->lock);
	return err == 0 ? NDX_OK : NDX_E_CONNECTION_ABORTED;
}

static enum ndx_status abandon_link(struct ofi_conn *conn, const void *data, size_t len)
{
	struct ofi_link *link = conn->link;
	const enum ndx_status st = send_reject(conn, data, len);

	conn->link = NULL;
	if (st == NDX_OK && ofi_link_release(link)) {
		ofi_link_detach(link);
		ofi_link_orphan(link);
	} else {
		ofi_link_close(link, true);
	}
	return st;
}

enum ndx_status ofi_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len)
{
	struct ofi_conn *conn = ofi_conn_of(spi);
	enum ndx_status st = NDX_OK;

	if (conn->request != NULL)
		drop_request(conn, private_data, len);
	else if (conn->link != NULL)
		st = abandon_link(conn, private_data, len);
	if (st != NDX_OK)
		return fail(st, 0, "ndx_connector_reject: the peer has given up");
	return NDX_OK;
}

void ofi_conn_abandon(struct ndx_spi_conn *spi)
{
	struct ofi_conn *conn = ofi_conn_of(spi);

	if (conn->request != NULL)
		drop_request(conn, NULL, 0);
	if (conn->link != NULL)
		(void)abandon_link(conn, NULL, 0);
}

/* ---- events ---- */

/* The passive side has accepted. */
static void on_answer(struct ofi_link *link, const struct ofi_cm_event *event)
{
	struct ndx_spi_params params;
	struct ofi_conn *conn = link->conn;
	const char *wrong = link->adapter->backend->cm_decode(event->data, event->len,
	                                                      OFI_CM_ACCEPT, &link->peer);

	if (wrong != NULL) {
		ofi_link_break(link, 0, wrong);
		return;
	}
	if (shares_with_verbs(&conn->spi, &link->peer)) {
		link->stage = OFI_LINK_OVER;
		link->lost = true;
		ofi_host(link->adapter)->report(&conn->spi, 0, 0, no_srq_text);
		ofi_host(link->adapter)->connected(&conn->spi, NDX_E_NOT_SUPPORTED, 0, NULL);
		return;
	}
	ofi_prove_seen(conn, NDX_PROVED_SMALL);
	read_local_address(conn);
	link->known = true;
	link->stage = OFI_LINK_ANSWERED;
	link->adapter->backend->opened(link);
	ofi_params_of(&link->peer, &params);
	ofi_host(link->adapter)->connected(&conn->spi, NDX_OK, 0, &params);
}

/* An answer has come, but the peer refused before the device knew that the connection is complete.
 * librdmacm reports a CONNECT_ERROR with the status -1, and libfabric makes a time-out of it. */
static bool is_taken_back(const struct ofi_link *link, const struct ofi_cm_event *event)
{
	return event->err == ETIMEDOUT && event->native != 0 &&
	       event->native == link->adapter->backend->taken_back;
}

/* Every NDX sends data with a refusal, so a refusal without data is not NDX's; NULL: `refusal` is
 * such. NDX's own refusals of another user have no words of a program, and never meet root. */
static const char *why_refused(const struct ofi_link *link, const struct ofi_cm_event *event,
                               const struct ofi_cm *refusal)
{
	if (refusal != NULL && refusal->private_len > 0)
		return "the peer's program refused";
	if (refusal != NULL && geteuid() != 0 &&
	    ofi_peer_is_another_users(link->adapter, &link->conn->spi.peer))
		return "the peer refused; it runs as another user, and allows only its own user "
		       "and root unless its URI has peers=any";
	if (refusal != NULL)
		return "the peer refused";
	if (is_taken_back(link, event))
		return "the peer took its answer back";
	if (link->adapter->backend->native_keys && abs(event->native) == REJ_CONSUMER)
		return "the peer is neither ofi:verbs nor verbs";
	return "no listener there, or a refusal without data";
}

/* No listener, or a refusal with or without data. */
static void on_refused(struct ofi_link *link, const struct ofi_cm_event *event)
{
	struct ofi_cm refusal;
	struct ndx_spi_params params;
	const bool said = link->adapter->backend->cm_decode(event->data, event->len, OFI_CM_REJECT,
	                                                    &refusal) == NULL;

	if (said)
		ofi_params_of(&refusal, &params);
	link->stage = OFI_LINK_OVER;
	link->lost = true;
	ofi_host(link->adapter)
		->report(&link->conn->spi, 0, event->err,
	                 why_refused(link, event, said ? &refusal : NULL));
	ofi_host(link->adapter)
		->connected(&link->conn->spi, NDX_E_CONNECTION_REFUSED, event->err,
	                    said ? &params : NULL);
}

static void on_failure(struct ofi_link *link, const struct ofi_cm_event *event)
{
	const enum ndx_status st = ofi_status_of(event->err);

	if (st == NDX_E_CONNECTION_REFUSED || is_taken_back(link, event)) {
		on_refused(link, event);
	} else if (st == NDX_E_UNSUCCESSFUL || st == NDX_E_INVALID_ADDRESS ||
	           st == NDX_E_ACCESS_DENIED) {
		ofi_link_break(link, event->err, "the peer went away, or speaks another protocol");
	} else {
		link->stage = OFI_LINK_OVER;
		link->lost = true;
		ofi_host(link->adapter)->connected(&link->conn->spi, st, event->err, NULL);
	}
}

/* The active side, which is verbs, has refused the answer. */
static bool is_refusal(struct ofi_link *link, const struct ofi_cm_event *event)
{
	struct ofi_cm refusal;
	struct ndx_spi_params params;

	if (link->stage != OFI_LINK_ACCEPTING || link->conn == NULL || link->lost ||
	    ofi_status_of(event->err) != NDX_E_CONNECTION_REFUSED ||
	    link->adapter->backend->cm_decode(event->data, event->len, OFI_CM_REJECT, &refusal) !=
	            NULL)
		return false;
	ofi_params_of(&refusal, &params);
	link->stage = OFI_LINK_OVER;
	link->lost = true;
	ofi_host(link->adapter)->report(&link->conn->spi, 0, event->err, "the peer refused");
	ofi_host(link->adapter)
		->established(&link->conn->spi, NDX_E_CONNECTION_REFUSED, event->err, &params);
	return true;
}

static void on_shutdown(struct ofi_link *link)
{
	/* event queue and completion queue have no order: read what arrived before the shutdown
	 * first */
	ofi_ncq_catch_up_locked(link->ncq);
	link->adapter->backend->peer_shutdown(link);
}

void ofi_conn_event(void *owner, const struct ofi_cm_event *event)
{
	struct ofi_link *link = ofi_link_find(owner, event->fid);

	if (event->what == FI_CONNREQ && event->info != NULL) {
		ofi_listener_event(event->fid->context, event);
		return;
	}
	if (link == NULL) /* the event of an endpoint that this end has closed */
		return;
	ndxp_lock_acquire(&link->ncq->lock);
	switch (event->what) {
	case FI_CONNECTED:
		if (link->stage == OFI_LINK_CONNECTING)
			on_answer(link, event);
		else
			link->adapter->backend->opened(link);
		break;
	case FI_SHUTDOWN:
		on_shutdown(link);
		break;
	case 0:
		/* Linux 6.0 and later report a change of a neighbour's address like this. The
		 * connection is unharmed; if the peer is out of reach, requests fail. */
		if (link->adapter->backend->neighbours && link->stage == OFI_LINK_UP &&
		    event->err == ETIMEDOUT)
			break;
		/* A peer that closes before its device knows that the connection is complete
		 * refuses the connection. */
		if (is_refusal(link, event))
			break;
		if (link->conn == NULL || link->stage != OFI_LINK_CONNECTING)
			on_shutdown(link);
		else
			on_failure(link, event);
		break;
	default:
		break;
	}
	ndxp_lock_release(&link->ncq->lock);
}
