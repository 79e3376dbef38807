/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "verbs_conn.h"

#define BACKLOG 1024 /* the core limits the requests */

struct verbs_listener {
	enum verbs_owner owner;
	struct ndx_spi_listener spi;
	struct verbs_adapter *adapter;
	struct rdma_cm_id *id;
	struct ndxp_list node; /* in verbs_adapter.listeners, while it listens */
};

static struct verbs_listener *listener_of(struct ndx_spi_listener *listener)
{
	return container_of(listener, struct verbs_listener, spi);
}

/* ---- requests ---- */

static void refuse_id(struct rdma_cm_id *id, const struct verbs_cm_peer *peer)
{
	(void)verbs_cm_reject(id, peer, NULL, 0);
	(void)rdma_destroy_id(id);
}

void verbs_listener_on_event(struct verbs_listener *listener, const struct verbs_event *event)
{
	struct verbs_adapter *adapter = listener->adapter;
	char here[NDXP_SOCKADDR_TEXT];
	char text[NDXP_SOCKADDR_TEXT];
	struct verbs_request *request;
	struct ndx_spi_params params;
	const struct sockaddr *peer;
	struct verbs_cm_peer from;

	if (event->what != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	event->id->context = NULL; /* the id has the listener's context, and the listener may be
	                              destroyed first */
	verbs_cm_params(event, &params, &from);
	request = calloc(1, sizeof(*request));
	/* a listener on all addresses gets the requests of other adapters, too */
	if (request == NULL || !verbs_serves(adapter, event->id)) {
		free(request);
		refuse_id(event->id, &from);
		return;
	}
	request->adapter = adapter;
	request->id = event->id;
	request->spi.listener = &listener->spi;
	verbs_address_of_id(event->id, &request->spi.local);
	peer = rdma_get_peer_addr(event->id);
	if (ndxp_sockaddr_valid(peer, sizeof(struct sockaddr_in6)))
		ndxp_sockaddr_copy(&request->spi.peer, peer, sizeof(struct sockaddr_in6));
	request->spi.params = params;
	request->peer = from;
	if (from.wrong != NULL) {
		log_warn(0, "%s: refused %s, which is on ofi:verbs, and %s",
		         ndxp_sockaddr_text(&request->spi.local, here),
		         ndxp_sockaddr_text(&request->spi.peer, text), from.wrong);
		free(request);
		refuse_id(event->id, &from);
		return;
	}
	verbs_host(adapter)->request(&request->spi);
}

void verbs_request_refuse(struct ndx_spi_request *spi)
{
	struct verbs_request *request = container_of(spi, struct verbs_request, spi);

	refuse_id(request->id, &request->peer);
	free(request);
}

/* ---- create and destroy ---- */

enum ndx_status verbs_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                      struct ndx_spi_listener **out)
{
	struct verbs_listener *listener = calloc(1, sizeof(*listener));

	(void)front;
	if (listener == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a listener");
	listener->owner = VERBS_LISTENER;
	listener->adapter = verbs_adapter_of(adapter);
	ndxp_list_init(&listener->node);
	*out = &listener->spi;
	return NDX_OK;
}

/* Requests that rdma_cm has not reported yet are refused by this. */
static void close_id(struct verbs_listener *listener)
{
	ndxp_list_remove(&listener->node);
	if (listener->id != NULL)
		(void)rdma_destroy_id(listener->id);
	listener->id = NULL;
}

void verbs_listener_destroy(struct ndx_spi_listener *spi)
{
	struct verbs_listener *listener = listener_of(spi);

	close_id(listener);
	free(listener);
}

/* The kernel does not remove the device while a program holds an id. */
void verbs_listeners_on_removal(struct verbs_adapter *adapter, int native)
{
	while (!ndxp_list_empty(&adapter->listeners)) {
		struct verbs_listener *listener =
			container_of(adapter->listeners.next, struct verbs_listener, node);

		close_id(listener);
		verbs_host(adapter)->listener_failed(&listener->spi, NDX_E_DEVICE_REMOVED, native);
	}
}

static size_t count_family(const struct verbs_adapter *adapter, sa_family_t family)
{
	size_t count = 0;

	for (size_t i = 0; i < adapter->address_count; i++)
		count += adapter->addresses[i].ss_family == family;
	return count;
}

enum ndx_status verbs_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                    socklen_t len)
{
	struct verbs_listener *listener = listener_of(spi);
	struct sockaddr_storage local;
	struct sockaddr_storage wanted;
	enum ndx_status st = verbs_address_own(listener->adapter, address, len, &local);

	if (st != NDX_OK)
		return st;
	ndxp_sockaddr_copy(&wanted, address, len);
	/* the unspecified address stands for the addresses of the adapter */
	if (ndxp_sockaddr_is_any(&wanted) && count_family(listener->adapter, wanted.ss_family) > 1)
		local = wanted;
	return verbs_address_bind(listener->adapter, &listener->owner, &local, &listener->id);
}

enum ndx_status verbs_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog)
{
	struct verbs_listener *listener = listener_of(spi);
	const enum ndx_status st = verbs_is_there(listener->adapter, "listen");
	char text[NDXP_SOCKADDR_TEXT];

	(void)backlog;
	if (st != NDX_OK)
		return st;
	verbs_address_of_id(listener->id, &spi->local);
	if (rdma_listen(listener->id, BACKLOG) != 0)
		return fail(verbs_status_of(errno), errno, "rdma_listen at %s: %s",
		            ndxp_sockaddr_text(&spi->local, text), strerror(errno));
	verbs_address_of_id(listener->id, &spi->local);
	ndxp_list_add(&listener->adapter->listeners, &listener->node);
	return NDX_OK;
}
