/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for an out-of-band stream if the peer has none: a device that received the description
 * and communicates only by its queue pair. The own goodbye counts as delivered, and as answered,
 * because the peer can do neither. */
#include "oob_null.h"

#include <stdlib.h>

#include <ndx/spi/log.h>
#include "connection.h"

struct oob_null {
	struct ndx_adapter *adapter;
	struct oob_link *link;
	struct ndxp_job job;
	uint32_t answer; /* atomic: the job has to answer */
	uint32_t ended;  /* atomic: the job has to free */
};

/* The link's lock is held, so the control thread answers. */
static void on_message(void *arg, enum oob_event message)
{
	struct oob_null *m = arg;

	if (message != OOB_GOODBYE)
		return;
	__atomic_store_n(&m->answer, 1, __ATOMIC_RELEASE);
	ndxp_loop_post(m->adapter->loop, &m->job);
}

static void on_connection_end(void *arg)
{
	struct oob_null *m = arg;

	__atomic_store_n(&m->ended, 1, __ATOMIC_RELEASE);
	ndxp_loop_post(m->adapter->loop, &m->job);
}

static const struct oob_end_ops carrier = {.event = on_message, .lost = on_connection_end};

static void on_job(void *arg)
{
	struct oob_null *m = arg;
	struct ndx_adapter *adapter = m->adapter;

	if (__atomic_exchange_n(&m->answer, 0, __ATOMIC_ACQUIRE) != 0) {
		oob_link_tell(m->link, OOB_CARRIER, OOB_SENT);
		oob_link_tell(m->link, OOB_CARRIER, OOB_GOODBYE);
	}
	if (__atomic_load_n(&m->ended, __ATOMIC_ACQUIRE) == 0)
		return;
	oob_link_leave(m->link, OOB_CARRIER);
	free(m);
	adapter_put(adapter, false);
}

enum ndx_status oob_null_create(struct ndx_adapter *adapter, struct oob_link **out)
{
	struct oob_null *m = calloc(1, sizeof(*m));

	if (m != NULL)
		m->link = oob_link_create(&carrier, m);
	if (m == NULL || m->link == NULL) {
		free(m);
		return fail(NDX_E_NO_MEMORY, 0,
		            "no memory for a connector without an out-of-band stream");
	}
	m->adapter = adapter;
	m->job = (struct ndxp_job){.fn = on_job, .arg = m};
	adapter_get(adapter, false);
	*out = m->link;
	return NDX_OK;
}

void oob_null_drop(struct oob_link *link)
{
	/* No connection was attached to the link, so the carrier frees both. */
	oob_link_leave(link, OOB_CONNECTION);
}
