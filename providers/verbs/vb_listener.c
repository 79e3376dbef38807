/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base_log.h"
#include "base_sockaddr.h"
#include "vb.h"

#define BACKLOG 1024 /* the core counts requests itself */

struct vb_listener {
	enum vb_owner owner;
	struct ndx_spi_listener spi;
	struct vb_adapter *adapter;
	struct rdma_cm_id *id;
	struct base_list node; /* in vb_adapter.listeners, while it listens */
};

static struct vb_listener *listener_of(struct ndx_spi_listener *listener)
{
	return container_of(listener, struct vb_listener, spi);
}

/* ---- requests ---- */

static void refuse(struct rdma_cm_id *id)
{
	uint8_t data[VB_REJECT_ROOM];

	vb_cm_encode(data, sizeof(data), NULL, 0, 0);
	(void)rdma_reject(id, data, sizeof(data));
	(void)rdma_destroy_id(id);
}

void vb_listener_on_event(struct vb_listener *listener, const struct vb_event *event)
{
	struct vb_adapter *adapter = listener->adapter;
	char text[BASE_SOCKADDR_TEXT];
	struct vb_request *request;
	const struct sockaddr *peer;

	if (event->what != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	event->id->context = NULL; /* it has the listener's, which may go before it */
	request = calloc(1, sizeof(*request));
	/* Who listens on all addresses hears of other adapters' requests, too. */
	if (request == NULL || !vb_serves(adapter, event->id)) {
		free(request);
		refuse(event->id);
		return;
	}
	request->adapter = adapter;
	request->id = event->id;
	request->spi.listener = &listener->spi;
	vb_local_of(event->id, &request->spi.local);
	peer = rdma_get_peer_addr(event->id);
	if (base_sockaddr_valid(peer, sizeof(struct sockaddr_in6)))
		base_sockaddr_copy(&request->spi.peer, peer, sizeof(struct sockaddr_in6));
	vb_event_params(event, &request->spi.params, &request->peer);
	if (request->peer.is_ofi) {
		log_warn(0, "%s: refused, which is ofi:verbs: verbs does not talk to that",
		         base_sockaddr_text(&request->spi.peer, text));
		free(request);
		refuse(event->id);
		return;
	}
	vb_host(adapter)->request(&request->spi);
}

void vb_request_refuse(struct ndx_spi_request *spi)
{
	struct vb_request *request = container_of(spi, struct vb_request, spi);

	refuse(request->id);
	free(request);
}

/* ---- life ---- */

enum ndx_status vb_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                   struct ndx_spi_listener **out)
{
	struct vb_listener *listener = calloc(1, sizeof(*listener));

	(void)front;
	if (listener == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a listener");
	listener->owner = VB_LISTENER;
	listener->adapter = vb_adapter_of(adapter);
	base_list_init(&listener->node);
	*out = &listener->spi;
	return NDX_OK;
}

/* Requests that rdma_cm has not told yet are refused with it. */
static void close_id(struct vb_listener *listener)
{
	base_list_remove(&listener->node);
	if (listener->id != NULL)
		(void)rdma_destroy_id(listener->id);
	listener->id = NULL;
}

void vb_listener_destroy(struct ndx_spi_listener *spi)
{
	struct vb_listener *listener = listener_of(spi);

	close_id(listener);
	free(listener);
}

/* The kernel does not let go of the device while somebody holds an id. */
void vb_listeners_on_removal(struct vb_adapter *adapter, int native)
{
	while (!base_list_empty(&adapter->listeners)) {
		struct vb_listener *listener =
			container_of(adapter->listeners.next, struct vb_listener, node);

		close_id(listener);
		vb_host(adapter)->listener_failed(&listener->spi, NDX_E_DEVICE_REMOVED, native);
	}
}

static size_t count_family(const struct vb_adapter *adapter, sa_family_t family)
{
	size_t count = 0;

	for (size_t i = 0; i < adapter->address_count; i++)
		count += adapter->addresses[i].ss_family == family;
	return count;
}

enum ndx_status vb_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                 socklen_t len)
{
	struct vb_listener *listener = listener_of(spi);
	struct sockaddr_storage local;
	struct sockaddr_storage wanted;
	enum ndx_status st = vb_own_address(listener->adapter, address, len, &local);

	if (st != NDX_OK)
		return st;
	base_sockaddr_copy(&wanted, address, len);
	/* The unspecified address means those of the adapter. */
	if (base_sockaddr_is_any(&wanted) && count_family(listener->adapter, wanted.ss_family) > 1)
		local = wanted;
	return vb_bind(listener->adapter, &listener->owner, &local, &listener->id);
}

enum ndx_status vb_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog)
{
	struct vb_listener *listener = listener_of(spi);
	const enum ndx_status st = vb_is_there(listener->adapter, "listen");
	char text[BASE_SOCKADDR_TEXT];

	(void)backlog;
	if (st != NDX_OK)
		return st;
	vb_local_of(listener->id, &spi->local);
	if (rdma_listen(listener->id, BACKLOG) != 0)
		return fail(vb_status_of(errno), errno, "rdma_listen at %s: %s",
		            base_sockaddr_text(&spi->local, text), strerror(errno));
	vb_local_of(listener->id, &spi->local);
	base_list_add(&listener->adapter->listeners, &listener->node);
	return NDX_OK;
}
