/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for an out-of-band stream if the peer has none: a device that received the description
 * and communicates only by its queue pair. The own goodbye counts as delivered, and as answered,
 * because the peer can do neither. */
#include "mute.h"

#include <stdlib.h>

#include "base_log.h"
#include "connection.h"

struct mute {
	struct ndx_adapter *adapter;
	struct wire *wire;
	struct base_job job;
	uint32_t said; /* atomic: the job has to answer */
	uint32_t over; /* atomic: the job has to free */
};

/* The wire's lock is held, so the control thread answers. */
static void say(void *arg, enum ndx_spi_oob_message message)
{
	struct mute *m = arg;

	if (message != NDX_OOB_GOODBYE)
		return;
	__atomic_store_n(&m->said, 1, __ATOMIC_RELEASE);
	base_loop_post(m->adapter->loop, &m->job);
}

static void over(void *arg)
{
	struct mute *m = arg;

	__atomic_store_n(&m->over, 1, __ATOMIC_RELEASE);
	base_loop_post(m->adapter->loop, &m->job);
}

static const struct wire_carrier carrier = {.say = say, .over = over};

static void on_job(void *arg)
{
	struct mute *m = arg;
	struct ndx_adapter *adapter = m->adapter;

	if (__atomic_exchange_n(&m->said, 0, __ATOMIC_ACQUIRE) != 0) {
		wire_said(m->wire);
		wire_heard(m->wire, WIRE_GOODBYE);
	}
	if (__atomic_load_n(&m->over, __ATOMIC_ACQUIRE) == 0)
		return;
	wire_leave(m->wire);
	free(m);
	adapter_put(adapter, false);
}

enum ndx_status mute_create(struct ndx_adapter *adapter, struct wire **out)
{
	struct mute *m = calloc(1, sizeof(*m));

	if (m != NULL)
		m->wire = wire_create(&carrier, m);
	if (m == NULL || m->wire == NULL) {
		free(m);
		return fail(NDX_E_NO_MEMORY, 0, "no memory for a connector without a channel");
	}
	m->adapter = adapter;
	m->job = (struct base_job){.fn = on_job, .arg = m};
	adapter_get(adapter, false);
	*out = m->wire;
	return NDX_OK;
}

void mute_drop(struct wire *wire)
{
	/* No connector was tied to the wire, so this frees it. */
	wire_part(wire);
}
