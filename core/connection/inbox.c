/* SPDX-License-Identifier: BSD-2-Clause */
/* The upcalls of providers for connectors. They come on any thread, with any lock of the provider
 * held, and wait in the connector's inbox until the control thread handles them. */
#include <errno.h>
#include <stdlib.h>

#include "base_log.h"
#include "connection.h"

/* Allocate when an attempt begins, because an upcall cannot report that memory is exhausted. */
enum ndx_status conn_inbox_ready(struct ndx_connector *c)
{
	bool ready;

	base_lock_acquire(&c->inbox_lock);
	if (c->inbox_params == NULL)
		c->inbox_params = malloc(sizeof(*c->inbox_params));
	ready = c->inbox_params != NULL;
	base_lock_release(&c->inbox_lock);
	return ready ? NDX_OK : fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for the peer's answer");
}

void conn_inbox_clear(struct ndx_connector *c)
{
	base_lock_acquire(&c->inbox_lock);
	c->connected = (struct conn_upcall){.full = false};
	c->established = (struct conn_upcall){.full = false};
	free(c->inbox_params);
	c->inbox_params = NULL;
	c->reports = 0;
	c->oob_events = 0;
	c->report_native = 0;
	c->cause = NULL;
	base_lock_release(&c->inbox_lock);
}

uint32_t conn_inbox_reports(struct ndx_connector *c)
{
	uint32_t reports;

	base_lock_acquire(&c->inbox_lock);
	reports = c->reports;
	base_lock_release(&c->inbox_lock);
	return reports;
}

bool conn_inbox_take(struct ndx_connector *c, struct conn_inbox *inbox)
{
	base_lock_acquire(&c->inbox_lock);
	inbox->connected = c->connected;
	inbox->established = c->established;
	inbox->params = NULL;
	if (c->connected.full || c->established.full) {
		inbox->params = c->inbox_params;
		c->inbox_params = NULL;
	}
	inbox->reports = c->reports;
	c->connected = (struct conn_upcall){.full = false};
	c->established = (struct conn_upcall){.full = false};
	c->reports = 0;
	base_lock_release(&c->inbox_lock);
	return inbox->connected.full || inbox->established.full || inbox->reports != 0;
}

/* Lock held. */
static void store_upcall(struct ndx_connector *c, struct conn_upcall *upcall,
                         enum ndx_status status, int32_t native,
                         const struct ndx_spi_params *params)
{
	upcall->full = true;
	upcall->status = status;
	upcall->native = native;
	upcall->has_params = params != NULL && c->inbox_params != NULL;
	if (upcall->has_params)
		*c->inbox_params = *params;
}

void host_connected(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                    const struct ndx_spi_params *params)
{
	struct ndx_connector *c = conn->front;

	base_lock_acquire(&c->inbox_lock);
	store_upcall(c, &c->connected, status, native, params);
	base_lock_release(&c->inbox_lock);
	base_loop_post(c->adapter->loop, &c->work);
}

void host_established(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                      const struct ndx_spi_params *params)
{
	struct ndx_connector *c = conn->front;

	base_lock_acquire(&c->inbox_lock);
	store_upcall(c, &c->established, status, native, params);
	base_lock_release(&c->inbox_lock);
	base_loop_post(c->adapter->loop, &c->work);
}

void host_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	struct ndx_connector *c = conn->front;

	base_lock_acquire(&c->inbox_lock);
	c->reports |= bits;
	if (((bits & NDX_REPORT_ABORT) || bits == 0) && c->cause == NULL) {
		c->cause = cause;
		c->report_native = native;
	}
	base_lock_release(&c->inbox_lock);
	if (bits != 0)
		base_loop_post(c->adapter->loop, &c->work);
}

void conn_oob_received(struct ndx_connector *c, enum oob_event event)
{
	base_lock_acquire(&c->inbox_lock);
	c->oob_events |= event;
	base_lock_release(&c->inbox_lock);
	base_loop_post(c->adapter->loop, &c->work);
}
