/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners. */
#include <stdlib.h>

#include <ndx/spi/log.h>
#include "loop.h"

static struct loop_listener *loop_listener_of(struct ndx_spi_listener *listener)
{
	return container_of(listener, struct loop_listener, spi);
}

enum ndx_status loop_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                     struct ndx_spi_listener **out)
{
	struct loop_listener *l = calloc(1, sizeof(*l));

	(void)front;
	if (l == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "listener: out of memory");
	l->adapter = loop_adapter_of(adapter);
	l->port.listener = l;
	*out = &l->spi;
	return NDX_OK;
}

void loop_listener_destroy(struct ndx_spi_listener *spi)
{
	struct loop_listener *l = loop_listener_of(spi);

	loop_switch_lock(l->adapter->sw);
	loop_switch_unbind(&l->port);
	loop_switch_unlock(l->adapter->sw);
	free(l);
}

enum ndx_status loop_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                   socklen_t len)
{
	struct loop_listener *l = loop_listener_of(spi);

	return loop_switch_claim(l->adapter->sw, &l->port, address, len);
}

/* A request goes to the core as soon as it is made, and the core limits the backlog. */
enum ndx_status loop_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog)
{
	struct loop_listener *l = loop_listener_of(spi);

	(void)backlog;
	loop_switch_lock(l->adapter->sw);
	spi->local = l->port.address;
	l->listening = true;
	loop_switch_unlock(l->adapter->sw);
	return NDX_OK;
}

void loop_request_refuse(struct ndx_spi_request *spi)
{
	struct loop_request *request = container_of(spi, struct loop_request, spi);
	struct loop_conn *active;

	loop_switch_lock(request->sw);
	active = request->active;
	if (active != NULL) {
		active->request = NULL;
		active->state = LOOP_CONN_IDLE;
		active->adapter->spi.host->connected(&active->spi, NDX_E_CONNECTION_REFUSED, 0,
		                                     NULL);
	}
	loop_switch_unlock(request->sw);
	free(request);
}

bool loop_request_is_stale(const struct ndx_spi_request *spi)
{
	const struct loop_request *request = (const struct loop_request *)(const void *)spi;
	bool stale;

	loop_switch_lock(request->sw);
	stale = request->active == NULL;
	loop_switch_unlock(request->sw);
	return stale;
}
