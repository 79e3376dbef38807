/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners. Each has an event queue of its own, and both are closed together. When the passive
 * endpoint alone is closed, a socket that was accepted and has not sent its request stays in the
 * event queue, and the next read follows a pointer into freed memory (libfabric to 2.6). libfabric
 * would neither close that socket nor answer, so the connecting peer would wait without end. So a
 * destroyed listener takes no new connection, and remains for a while to refuse the requests that
 * are on their way.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"

#define WARN_EVERY_NS UINT64_C(1000000000)

enum {
	LINGER_MS = 1000, /* from the accepted socket to its request: one way over the network */
	HURRY_MS = 50,    /* the same while the adapter is closed, which waits for this time */
};

struct ofi_listener {
	struct ndx_spi_listener spi;
	struct ofi_adapter *adapter;
	struct sockaddr_storage bound;
	struct fid_pep *pep;
	struct ofi_eq eq;
	struct ofi_hello hello;
	int socket; /* the listening socket, libfabric's; -1: it was not found */
	bool closing;
	struct ndxp_list node; /* in adapter->lingering; control thread */
	struct ndxp_timer linger;
	uint64_t closed_ns;
	uint64_t warned_ns; /* time of the latest record about a peer */
	uint32_t unsaid;    /* records that were left out since then */
};

static struct ofi_listener *listener_of(struct ndx_spi_listener *listener)
{
	return (struct ofi_listener *)(void *)listener;
}

/* ---- requests ---- */

/* Any peer that reaches the port can cause a record: log one per second at most. A peer that
 * `retries` in the right protocol is no reason to warn. */
static void log_refused(struct ofi_listener *listener, const struct sockaddr_storage *peer,
                        const char *wrong, bool retries)
{
	const uint64_t now = ndxp_now_ns();
	char here[NDXP_SOCKADDR_TEXT];
	char there[NDXP_SOCKADDR_TEXT];

	if (listener->warned_ns != 0 && now - listener->warned_ns < WARN_EVERY_NS) {
		listener->unsaid++;
		return;
	}
	ndxp_log(retries ? NDX_LOG_INFO : NDX_LOG_WARN, __func__, 0,
	         "%s: refused %s, which %s%s (%u more since the last line)",
	         ndxp_sockaddr_text(&listener->spi.local, here), ndxp_sockaddr_text(peer, there),
	         wrong, retries ? "; verbs tries again" : "", listener->unsaid);
	listener->warned_ns = now;
	listener->unsaid = 0;
}

static void peer_of(const struct fi_info *info, struct sockaddr_storage *peer)
{
	memset(peer, 0, sizeof(*peer));
	if (ndxp_sockaddr_valid(info->dest_addr, (socklen_t)info->dest_addrlen))
		ndxp_sockaddr_copy(peer, info->dest_addr, (socklen_t)info->dest_addrlen);
}

static void on_request(struct ofi_listener *listener, const struct ofi_cm_event *event)
{
	struct ofi_adapter *adapter = listener->adapter;
	struct ofi_request *request = calloc(1, sizeof(*request));
	struct sockaddr_storage peer;
	char text[OFI_PEER_TEXT];
	bool retries = false;
	const char *wrong;

	peer_of(event->info, &peer);
	if (request == NULL || listener->closing) {
		free(request);
		ofi_refuse(adapter, event->info, NULL, 0);
		return;
	}
	wrong = ofi_peer_check(adapter, &listener->spi.local, &peer, text);
	if (wrong == NULL) {
		wrong = adapter->backend->cm_decode(event->data, event->len, OFI_CM_CONNECT,
		                                    &request->peer);
		retries = wrong != NULL && adapter->backend->verbs_retries;
	}
	if (wrong == NULL && adapter->backend->needs_trust && !adapter->options.lan &&
	    !ndxp_sockaddr_is_loopback(&peer))
		wrong = "is on another host; trust=lan in the adapter's URI would allow it";
	if (wrong != NULL) {
		log_refused(listener, &peer, wrong, retries);
		free(request);
		ofi_refuse(adapter, event->info, NULL, 0);
		return;
	}
	event->info->domain_attr->mr_mode = adapter->info->domain_attr->mr_mode;
	request->adapter = adapter;
	request->info = event->info;
	request->spi.listener = &listener->spi;
	request->spi.local = listener->spi.local;
	request->spi.peer = peer;
	ofi_params_of(&request->peer, &request->spi.params);
	ofi_host(adapter)->request(&request->spi);
}

void ofi_listener_event(void *owner, const struct ofi_cm_event *event)
{
	/* A failure on a passive endpoint happens before there is a request. */
	if (event->what == FI_CONNREQ && event->info != NULL)
		on_request(owner, event);
}

void ofi_request_refuse(struct ndx_spi_request *spi)
{
	struct ofi_request *request = (struct ofi_request *)(void *)spi;

	ofi_refuse(request->adapter, request->info, NULL, 0);
	free(request);
}

bool ofi_request_is_stale(const struct ndx_spi_request *spi)
{
	const struct ofi_request *request = (const struct ofi_request *)(const void *)spi;
	struct ndxp_diag_end end;

	/* the active side sends nothing and closes nothing before it has an answer */
	switch (ofi_peer_own_end(request->adapter, &spi->local, &spi->peer, &end)) {
	case OFI_PEER_FOUND:
		return !end.established;
	case OFI_PEER_NONE:
		return true;
	case OFI_PEER_UNKNOWN:
		break;
	}
	return false;
}

static bool looked(void *owner)
{
	struct ofi_listener *listener = owner;

	return ofi_hello_looked(&listener->hello);
}

static void on_refused(void *owner, const struct sockaddr_storage *peer, const char *why)
{
	log_refused(owner, peer, why, false);
}

/* ---- create and destroy ---- */

enum ndx_status ofi_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                    struct ndx_spi_listener **out)
{
	struct ofi_listener *listener = calloc(1, sizeof(*listener));

	if (listener == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a listener");
	listener->adapter = ofi_adapter_of(adapter);
	listener->spi.front = front;
	listener->spi.native = adapter;
	listener->eq.event = ofi_listener_event;
	listener->eq.looked = looked;
	listener->eq.owner = listener;
	listener->hello.eq = &listener->eq;
	listener->hello.refused = on_refused;
	listener->hello.owner = listener;
	listener->hello.look = -1;
	listener->socket = -1;
	*out = &listener->spi;
	return NDX_OK;
}

static void free_listener(struct ofi_listener *listener)
{
	/* refuse the requests that were not read yet */
	if (listener->eq.eq != NULL)
		ofi_eq_read_all(&listener->eq);
	else if (listener->pep != NULL)
		ofi_eq_read_all(&listener->adapter->eq);
	ofi_hello_end(&listener->hello);
	if (listener->pep != NULL)
		(void)fi_close(&listener->pep->fid);
	ofi_eq_close(&listener->eq);
	free(listener);
}

static void on_linger(void *arg)
{
	struct ofi_listener *listener = arg;

	ndxp_list_remove(&listener->node);
	free_listener(listener);
}

/* Is this the socket that listens at `local`? */
static bool listens_at(int fd, const void *local)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	socklen_t flag_len = sizeof(int);
	int listening = 0;

	memset(&address, 0, sizeof(address));
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &flag_len) == 0 &&
	       listening != 0 && getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	       ndxp_sockaddr_port(&address) == ndxp_sockaddr_port(local) &&
	       ndxp_sockaddr_same_host(&address, local);
}

/*
 * From now on the kernel accepts no connection, and resets those that were not accepted. The
 * descriptor's number remains libfabric's, for an epoll set without events. The socket was found
 * when listening began, because the search needs a free descriptor.
 */
static bool stop_listening(const struct ofi_listener *listener)
{
	return listener->socket >= 0 &&
	       dup3(listener->eq.watch.fd, listener->socket, O_CLOEXEC) == listener->socket;
}

void ofi_listener_destroy(struct ndx_spi_listener *spi)
{
	struct ofi_listener *listener = listener_of(spi);

	listener->closing = true;
	if (listener->eq.eq != NULL)
		ofi_eq_read_all(&listener->eq); /* refuse these: the kernel would only reset them */
	if (listener->pep == NULL || !listener->adapter->backend->answers_late ||
	    !stop_listening(listener)) {
		free_listener(listener);
		return;
	}
	listener->closed_ns = ndxp_now_ns();
	listener->linger = (struct ndxp_timer){.fn = on_linger, .arg = listener};
	ndxp_list_add(&listener->adapter->lingering, &listener->node);
	ndxp_timer_set(listener->adapter->spi.loop, &listener->linger, LINGER_MS);
}

void ofi_listener_end_all(struct ofi_adapter *adapter)
{
	struct ndxp_list *next;

	for (struct ndxp_list *n = adapter->lingering.next; n != &adapter->lingering; n = next) {
		struct ofi_listener *listener = container_of(n, struct ofi_listener, node);
		const uint64_t until = listener->closed_ns + HURRY_MS * UINT64_C(1000000);
		struct pollfd in = {.fd = listener->eq.watch.fd, .events = POLLIN};

		next = n->next;
		while (ndxp_now_ns() < until) {
			(void)poll(&in, 1, 1);
			ofi_eq_read_all(&listener->eq);
		}
		ndxp_timer_cancel(adapter->spi.loop, &listener->linger);
		free_listener(listener);
	}
	ndxp_list_init(&adapter->lingering);
}

/* The unspecified address stands for the addresses of the adapter, not for all of the host. */
static enum ndx_status resolve_any(const struct ofi_adapter *adapter,
                                   struct sockaddr_storage *address)
{
	const uint16_t port = ndxp_sockaddr_port(address);
	const struct sockaddr_storage *first = NULL;
	size_t count = 0;
	char text[NDXP_SOCKADDR_TEXT];

	for (size_t i = 0; i < adapter->address_count; i++) {
		if (adapter->addresses[i].ss_family != address->ss_family)
			continue;
		if (first == NULL)
			first = &adapter->addresses[i];
		count++;
	}
	if (first == NULL)
		return fail(NDX_E_INVALID_ADDRESS, 0,
		            "listening on %s: the adapter has no address of that family",
		            ndxp_sockaddr_text(address, text));
	/* without trust=lan no socket is opened that accepts from every host */
	if (count == 1 || !adapter->options.lan) {
		*address = *first;
		ndxp_sockaddr_set_port(address, port);
	}
	return NDX_OK;
}

enum ndx_status ofi_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                  socklen_t len)
{
	struct ofi_listener *listener = listener_of(spi);
	struct sockaddr_storage local;
	enum ndx_status st = NDX_OK;

	ndxp_sockaddr_copy(&local, address, len);
	if (ndxp_sockaddr_is_any(&local))
		st = resolve_any(listener->adapter, &local);
	else
		st = ofi_check_own(listener->adapter, &local);
	if (st == NDX_OK && !ndxp_sockaddr_is_any(&local))
		st = ofi_check_trust(listener->adapter, &local, "listen on");
	if (st == NDX_OK)
		listener->bound = local;
	return st;
}

/* libfabric's tcp provider reports each failure of socket() as EIO; the usual cause is that this
 * process has no descriptor left. */
static int better_errno(int err)
{
	const int none = err == EIO ? ofi_no_descriptor() : 0;

	return none != 0 ? none : err;
}

const char *ofi_address_hint(int err)
{
	switch (err) {
	case EACCES:
		return "; a port below 1024 needs CAP_NET_BIND_SERVICE";
	case EMFILE:
	case ENFILE:
		return "; see ulimit -n";
	default:
		return "";
	}
}

static enum ndx_status fail_listen(const struct ofi_listener *listener, const char *call,
                                   int reported)
{
	const int err = better_errno(reported);
	enum ndx_status st = ofi_status_of(err);
	char text[NDXP_SOCKADDR_TEXT];

	if (ndxp_sockaddr_port(&listener->bound) == 0 &&
	    (err == EADDRINUSE || err == EADDRNOTAVAIL))
		st = NDX_E_TOO_MANY_ADDRESSES;
	return fail(st, err, "%s at %s: %s%s", call, ndxp_sockaddr_text(&listener->bound, text),
	            fi_strerror(err), ofi_address_hint(err));
}

static enum ndx_status open_pep(struct ofi_listener *listener, struct fi_info *info)
{
	const struct ofi_backend *backend = listener->adapter->backend;
	struct ofi_eq *eq = backend->one_event_queue ? &listener->adapter->eq : &listener->eq;
	size_t len = sizeof(listener->spi.local);
	int backlog = backend->backlog;
	int err = -fi_passive_ep(listener->adapter->fabric, info, &listener->pep, listener);

	if (err != 0)
		return fail_listen(listener, "fi_passive_ep", err);
	err = -fi_pep_bind(listener->pep, &eq->eq->fid, 0);
	if (err != 0)
		return fail_listen(listener, "fi_pep_bind", err);
	if (backlog > 0)
		(void)fi_control(&listener->pep->fid, FI_BACKLOG, &backlog);
	err = -fi_listen(listener->pep);
	if (err == 0)
		err = -fi_getname(&listener->pep->fid, &listener->spi.local, &len);
	if (err != 0)
		return fail_listen(listener, "fi_listen", err);
	return NDX_OK;
}

static enum ndx_status watch_pending(struct ofi_listener *listener)
{
	const enum ndx_status st = ofi_peer_check_listener(listener->adapter, &listener->spi.local);
	int err;

	if (st != NDX_OK)
		return st;
	/* libfabric does not give away the descriptor of a passive endpoint */
	listener->socket = ndxp_fd_find(listens_at, &listener->spi.local);
	err = errno;
	if (listener->socket < 0 && (err == EMFILE || err == ENFILE || err == ENOMEM))
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err,
		            "the listening socket cannot be found: %s; see ulimit -n",
		            strerror(err));
	if (listener->socket < 0) {
		log_warn(err, "ofi:tcp: the listening socket cannot be found; is /proc mounted? "
		              "There is no limit for peers that connect and send no request");
		return NDX_OK;
	}
	return ofi_hello_begin(&listener->hello, listener->socket);
}

enum ndx_status ofi_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog)
{
	struct ofi_listener *listener = listener_of(spi);
	struct fi_info *info = ofi_dup_info(listener->adapter->info, &listener->bound, NULL);
	enum ndx_status st;

	(void)backlog; /* the core limits the requests; libfabric's own limit is large */
	if (info == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory to listen");
	st = listener->adapter->backend->one_event_queue
	             ? NDX_OK
	             : ofi_eq_open(&listener->eq, listener->adapter);
	if (st == NDX_OK)
		st = open_pep(listener, info);
	if (st == NDX_OK && listener->adapter->backend->over_tcp)
		st = watch_pending(listener);
	fi_freeinfo(info);
	if (st == NDX_OK)
		return NDX_OK;
	if (listener->pep != NULL)
		(void)fi_close(&listener->pep->fid);
	listener->pep = NULL;
	listener->socket = -1;
	ofi_eq_close(&listener->eq);
	return st;
}
