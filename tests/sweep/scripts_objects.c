/* SPDX-License-Identifier: BSD-2-Clause */
/* Scripts of what needs no connection. */
#include <string.h>

#include "sweep.h"

/* A third adapter, beside those of the run. */
SWEEP_SCRIPT(open)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *const untouched = (void *)r;
	struct ndx_adapter_entry *entries = (void *)r;
	struct ndx_adapter *adapter = untouched;
	size_t count = 4711;
	struct sockaddr_storage addresses[4];
	enum ndx_status st = ndx_adapter_list(&entries, &count);

	if (st == NDX_OK)
		ndx_adapter_list_free(entries);
	else
		(void)sweep_check(r, entries == (void *)r && count == 4711,
		                  "adapter_list failed and wrote to its out parameters");
	(void)sweep_again(r, "adapter_list", st, NDX_OK);
	st = ndx_adapter_open(r->uri, &adapter);
	if (sweep_again(r, "adapter_open", st, NDX_OK))
		st = ndx_adapter_open(r->uri, &adapter);
	if (st != NDX_OK) {
		(void)sweep_check(r, adapter == untouched,
		                  "adapter_open failed and wrote to its out parameter");
		return;
	}
	st = ndx_adapter_query(adapter, &info);
	(void)sweep_check(r, st == NDX_OK && info.size == sizeof(info), "adapter_query: %s",
	                  ndx_last_error());
	count = 4;
	st = ndx_adapter_query_addresses(adapter, addresses, &count);
	(void)sweep_check(r, (st == NDX_OK || st == NDX_E_BUFFER_OVERFLOW) && count > 0,
	                  "adapter_query_addresses: %s", ndx_last_error());
	ndx_adapter_close(adapter);
}

SWEEP_SCRIPT(objects)
{
	struct side *s = r->active;
	struct op *waits;
	int fd = -1;

	if (!step_cq(s, 4) || !step_resize(s, 16) || !step_get_fd(s, &fd))
		return;
	(void)sweep_check(r, fd >= 0, "descriptor %d", fd);
	if (s->info.capabilities & NDX_CAP_SRQ) {
		if (!step_srq(s, 4, 2) || !step_modify(s, 8, 3))
			return;
		waits = step_srq_notify(s);
		/* it has fewer receives than its threshold */
		if (!step_wait(r, waits, NDX_OK))
			return;
	}
	if (!step_affinity(s))
		return;
	if ((s->info.capabilities & NDX_CAP_MEMORY_WINDOW) && !step_mw(s))
		return;
	if (!step_qp(s) || !step_connector(s) || !step_bind(s) || !step_listen(s))
		return;
	if (s->srq == NULL && (!step_mr(s, NDX_MR_ALLOW_LOCAL_WRITE) || !step_receive(s, 0, 8)))
		return;
	/* cancelled by its cancel call */
	waits = step_cq_notify(s, NDX_CQ_NOTIFY_ERRORS);
	if (waits == NULL)
		return;
	(void)ndx_cq_cancel(s->cq);
	(void)sweep_check(r, sweep_await(r, waits, NULL) == NDX_E_CANCELED,
	                  "a cancelled cq_notify is not CANCELED");
	(void)step_flush(s);
}

SWEEP_SCRIPT(memory)
{
	struct side *s = r->active;

	if (!step_mr_object(s))
		return;
	for (unsigned i = 0; i < 3; i++) {
		uint32_t flags = i == 0 ? NDX_MR_ALLOW_LOCAL_WRITE : NDX_MR_ALLOW_REMOTE_READ;

		if (!step_wait(r, step_register(s, s->memory, sizeof(s->memory), flags), NDX_OK))
			return;
		(void)sweep_check(r, ndx_mr_get_local_token(s->mr) != 0, "a region without token");
		/* the third is closed as it is */
		if (i < 2 && !step_wait(r, step_deregister(s), NDX_OK))
			return;
	}
}
