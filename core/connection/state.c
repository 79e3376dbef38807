/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors: the basic steps that all other files of this floor use. */
#include <string.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include "base_loop.h"
#include "base_ov.h"
#include <ndx/spi/stats.h>
#include "connection.h"

static uint32_t at_most(uint32_t value, uint32_t most)
{
	return value < most ? value : most;
}

void conn_set_wishes(struct ndx_connector *c, uint32_t inbound, uint32_t outbound,
                     const void *private_data, size_t private_data_len)
{
	const struct ndx_adapter_info *info = &c->adapter->info;

	c->own.inbound_read_limit = at_most(inbound, info->max_inbound_read_limit);
	c->own.outbound_read_limit = at_most(outbound, info->max_outbound_read_limit);
	c->own.private_data_len = private_data_len;
	if (private_data_len > 0)
		memcpy(c->own.private_data, private_data, private_data_len);
}

void conn_agree(struct ndx_connector *c)
{
	c->native->inbound_read_limit =
		at_most(c->own.inbound_read_limit, c->peer.outbound_read_limit);
	c->native->outbound_read_limit =
		at_most(c->own.outbound_read_limit, c->peer.inbound_read_limit);
}

void conn_note_local(struct ndx_connector *c)
{
	c->local = c->native->local;
}

enum ndx_status conn_check_private_data(const char *call, const void *data, size_t len,
                                        uint32_t most)
{
	if (most > NDX_SPI_PRIVATE_DATA_MAX)
		most = NDX_SPI_PRIVATE_DATA_MAX;
	if (len > most)
		return fail(NDX_E_INVALID_BUFFER_SIZE, 0,
		            "%s: %zu bytes of private data, this adapter carries %u", call, len,
		            most);
	if (data == NULL && len > 0)
		return fail(NDX_E_ACCESS_VIOLATION, 0, "%s: private data is NULL", call);
	return NDX_OK;
}

enum ndx_status conn_check_qp(const char *call, const struct ndx_connector *c,
                              const struct ndx_spi_qp *qp)
{
	if (qp->object.adapter != c->adapter)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: the queue pair belongs to another adapter", call);
	/* Its connector may still exist, but the connection is over. */
	if (qp->spent && (qp->connector == NULL || conn_is_over(qp->connector)))
		return fail(NDX_E_CONNECTION_ACTIVE, 0,
		            "%s: the queue pair was connected before; create a new one", call);
	if (qp->connector != NULL)
		return fail(NDX_E_CONNECTION_ACTIVE, 0,
		            "%s: the queue pair is connecting or connected", call);
	return NDX_OK;
}

void conn_command(struct ndx_connector *c, unsigned what)
{
	c->commands |= what;
	adapter_post(c->adapter, &c->work);
}

void conn_attach(struct ndx_connector *c, struct ndx_spi_qp *qp)
{
	c->qp = qp;
	c->native->qp = qp;
	c->qp_id = qp->object.id;
	qp->connector = c;
	qp->connector_id = c->id;
}

void conn_release_qp(struct ndx_connector *c)
{
	if (c->qp == NULL)
		return;
	c->qp->connector = NULL;
	c->qp = NULL;
	c->native->qp = NULL;
	(void)pthread_cond_broadcast(&c->adapter->changed);
}

/* A thread that waits for the disconnect must not see its completion before the callback of
 * notify_disconnect has run: operations of one object complete in the order in which they ended, by
 * callback, port or wait. */
void conn_complete_ov(struct ndx_connector *c, struct ndx_overlapped **ov, enum ndx_status status,
                      uint32_t information, int32_t native)
{
	struct ndx_overlapped *done = *ov;

	*ov = NULL;
	if (done == NULL)
		return;
	base_ov_complete_behind(done, core_whose(c->id, c->asked_id), status, information, native);
	c->asked_id = 0;
}

void conn_hurry(struct ndx_connector *c)
{
	base_loop_hurry(c->adapter->loop, core_whose(UINT32_MAX, 0), core_whose(c->id, 0));
}

/* Count the outcome of an attempt. */
void conn_count_attempt(struct ndx_connector *c, enum ndx_status status)
{
	struct ndx_adapter_stats *stats = &c->adapter->stats;

	ndxp_count_status(c->passive ? stats->accepts : stats->connects, status);
}

enum ndx_disconnect_reason conn_goodbye(const struct ndx_connector *c)
{
	/* A stack that cannot distinguish a goodbye from a failure reports UNKNOWN instead of
	 * guessing. */
	return (c->adapter->info.capabilities & NDX_CAP_DISCONNECT_REASON) ? NDX_DISCONNECT_GRACEFUL
	                                                                   : NDX_DISCONNECT_UNKNOWN;
}

uint32_t conn_count_up(const struct ndx_adapter *adapter)
{
	uint32_t up = 0;

	for (struct ndxp_list *n = adapter->connectors.next; n != &adapter->connectors;
	     n = n->next) {
		if (!conn_is_over(container_of(n, struct ndx_connector, node)))
			up++;
	}
	return up;
}
