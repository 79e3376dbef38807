/* SPDX-License-Identifier: BSD-2-Clause */
#include "endpoint.h"

#include <ndx/helpers.h>

#include <ndx/spi/log.h>
#include "base_loop.h"

enum ndx_status endpoint_open(struct endpoint *e, struct ndx_adapter *adapter, const char *uri,
                              struct ndx_adapter_info *info)
{
	enum ndx_status st = NDX_OK;

	e->adapter = adapter;
	e->own_adapter = adapter == NULL;
	if (e->own_adapter)
		st = ndx_adapter_open(uri, &e->adapter);
	if (st != NDX_OK)
		return st;
	info->size = sizeof(*info);
	st = ndx_adapter_query(e->adapter, info);
	if (st != NDX_OK)
		endpoint_close(e);
	return st;
}

enum ndx_status endpoint_may_block(const char *call)
{
	if (!base_loop_in_callback())
		return NDX_OK;
	return fail(NDX_E_WOULD_BLOCK, 0, "%s: blocks, and this is a callback", call);
}

enum ndx_status endpoint_connect(struct endpoint *e, const struct sockaddr *destination,
                                 socklen_t destination_len, const void *data, size_t data_len,
                                 uint32_t timeout_ms)
{
	return ndx_connect_to(e->adapter, e->qp, destination, destination_len, data, data_len,
	                      timeout_ms, &e->connector);
}

enum ndx_status endpoint_accept(struct endpoint *e, struct ndx_listener *listener, const void *data,
                                size_t data_len, uint32_t timeout_ms)
{
	return ndx_accept_from(e->adapter, listener, e->qp, data, data_len, timeout_ms,
	                       &e->connector);
}

void endpoint_forget(struct endpoint *e)
{
	ndx_connector_close(e->connector);
	e->connector = NULL;
	e->described = false;
}

enum ndx_status endpoint_describe(struct endpoint *e, enum ndx_role role)
{
	enum ndx_status st = ndx_connector_create(e->adapter, NULL, &e->connector);

	if (st != NDX_OK)
		return st;
	st = ndx_connector_describe(e->connector, e->qp, role, UINT32_MAX, UINT32_MAX, &e->own);
	if (st != NDX_OK)
		endpoint_forget(e);
	else
		e->described = true;
	return st;
}

enum ndx_status endpoint_connect_peer(struct endpoint *e, const struct ndx_peer_description *peer,
                                      uint32_t timeout_ms)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_connector_connect_peer(e->connector, peer, &ov);

	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, timeout_ms);
	if (st == NDX_PENDING) {
		(void)ndx_connector_cancel(e->connector);
		st = ndx_overlapped_status(&ov);
		if (st == NDX_E_CANCELED)
			st = fail(NDX_E_IO_TIMEOUT, 0, "the peer did not connect in %u ms",
			          timeout_ms);
	}
	if (st != NDX_OK)
		endpoint_forget(e);
	return st;
}

void endpoint_dismantle(struct endpoint *e)
{
	endpoint_forget(e);
	ndx_qp_close(e->qp);
	e->qp = NULL;
}

void endpoint_close(struct endpoint *e)
{
	endpoint_dismantle(e);
	if (e->own_adapter)
		ndx_adapter_close(e->adapter);
	e->adapter = NULL;
	e->own_adapter = false;
}
