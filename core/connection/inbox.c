/* SPDX-License-Identifier: BSD-2-Clause */
/* The upcalls of providers for connectors. They come on any thread, with any lock of the provider
 * held, and wait in the connector's inbox until the control thread handles them. */
#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/log.h>
#include "connection.h"

#define OOB_EVENTS (UINT32_MAX << CONN_EVENT_OOB)
#define REPORTS (UINT32_MAX << CONN_EVENT_REPORTS & ~OOB_EVENTS)

_Static_assert((uint64_t)NDX_REPORT_PROOF << CONN_EVENT_REPORTS < UINT64_C(1) << CONN_EVENT_OOB,
               "reports are in front of the events out of band");

/* Allocate when an attempt begins, because an upcall cannot report that memory is exhausted. */
enum ndx_status conn_inbox_ready(struct ndx_connector *c)
{
	bool ready;

	ndxp_lock_acquire(&c->inbox_lock);
	if (c->inbox.params == NULL)
		c->inbox.params = malloc(sizeof(*c->inbox.params));
	ready = c->inbox.params != NULL;
	ndxp_lock_release(&c->inbox_lock);
	return ready ? NDX_OK : fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for the peer's answer");
}

void conn_inbox_clear(struct ndx_connector *c)
{
	ndxp_lock_acquire(&c->inbox_lock);
	free(c->inbox.params);
	c->inbox = (struct conn_inbox){.events = 0};
	c->report_native = 0;
	c->cause = NULL;
	ndxp_lock_release(&c->inbox_lock);
}

uint32_t conn_inbox_reports(struct ndx_connector *c)
{
	uint32_t reports;

	ndxp_lock_acquire(&c->inbox_lock);
	reports = (c->inbox.events & REPORTS) >> CONN_EVENT_REPORTS;
	ndxp_lock_release(&c->inbox_lock);
	return reports;
}

bool conn_inbox_take(struct ndx_connector *c, bool oob, struct conn_inbox *inbox)
{
	const uint32_t later = oob ? 0 : OOB_EVENTS;

	ndxp_lock_acquire(&c->inbox_lock);
	*inbox = c->inbox;
	inbox->events &= ~later;
	c->inbox.events &= later;
	/* they stay for an answer that has not come */
	if ((inbox->events & (CONN_EVENT_CONNECTED | CONN_EVENT_ESTABLISHED)) != 0)
		c->inbox.params = NULL;
	else
		inbox->params = NULL;
	ndxp_lock_release(&c->inbox_lock);
	return inbox->events != 0;
}

void conn_inbox_put_back(struct ndx_connector *c, uint32_t events)
{
	ndxp_lock_acquire(&c->inbox_lock);
	c->inbox.events |= events;
	ndxp_lock_release(&c->inbox_lock);
}

static void put_answer(struct ndx_connector *c, enum conn_event event, struct conn_upcall *upcall,
                       enum ndx_status status, int32_t native, const struct ndx_spi_params *params)
{
	ndxp_lock_acquire(&c->inbox_lock);
	c->inbox.events |= event;
	upcall->status = status;
	upcall->native = native;
	upcall->has_params = params != NULL && c->inbox.params != NULL;
	if (upcall->has_params)
		*c->inbox.params = *params;
	ndxp_lock_release(&c->inbox_lock);
	ndxp_loop_post(c->adapter->loop, &c->work);
}

void host_connected(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                    const struct ndx_spi_params *params)
{
	struct ndx_connector *c = conn->front;

	put_answer(c, CONN_EVENT_CONNECTED, &c->inbox.connected, status, native, params);
}

void host_established(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                      const struct ndx_spi_params *params)
{
	struct ndx_connector *c = conn->front;

	put_answer(c, CONN_EVENT_ESTABLISHED, &c->inbox.established, status, native, params);
}

void host_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	struct ndx_connector *c = conn->front;

	ndxp_lock_acquire(&c->inbox_lock);
	c->inbox.events |= bits << CONN_EVENT_REPORTS;
	if (((bits & NDX_REPORT_ABORT) || bits == 0) && c->cause == NULL) {
		c->cause = cause;
		c->report_native = native;
	}
	ndxp_lock_release(&c->inbox_lock);
	if (bits != 0)
		ndxp_loop_post(c->adapter->loop, &c->work);
}

void conn_oob_received(struct ndx_connector *c, enum oob_event event)
{
	conn_inbox_put_back(c, (uint32_t)event << CONN_EVENT_OOB);
	ndxp_loop_post(c->adapter->loop, &c->work);
}
