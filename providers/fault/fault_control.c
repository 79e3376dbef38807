/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures that a test arms at run time; see fault_control.h. */
#include "fault_control.h"

#include "builtin.h"
#include "fault.h"

static struct fault_adapter *find_adapter(struct fault_process *process,
                                          const struct ndx_adapter *front)
{
	for (struct ndxp_list *n = process->adapters.next; n != &process->adapters; n = n->next) {
		struct fault_adapter *fa = container_of(n, struct fault_adapter, node);

		if (fa->front == front)
			return fa;
	}
	return NULL;
}

void fault_arm(const struct ndx_adapter *adapter, uint64_t nth, uint64_t times)
{
	struct fault_process *process = ndx_provider_fault.state;
	struct fault_adapter *fa;

	ndxp_lock_acquire(&process->lock);
	fa = find_adapter(process, adapter);
	if (fa != NULL) {
		ndxp_lock_acquire(&fa->plan.lock);
		fa->plan.nth = nth;
		fa->plan.times = times;
		fa->plan.calls = 0;
		fa->plan.failed = 0;
		fa->plan.latest = FAULT_CALLS;
		ndxp_lock_release(&fa->plan.lock);
	}
	ndxp_lock_release(&process->lock);
}

struct fault_tally fault_get_tally(const struct ndx_adapter *adapter)
{
	struct fault_process *process = ndx_provider_fault.state;
	struct fault_tally tally = {.latest = ""};
	struct fault_adapter *fa;

	ndxp_lock_acquire(&process->lock);
	fa = find_adapter(process, adapter);
	if (fa != NULL) {
		ndxp_lock_acquire(&fa->plan.lock);
		tally.calls = fa->plan.calls;
		tally.failed = fa->plan.failed;
		tally.latest = fault_call_name(fa->plan.latest);
		tally.status = fa->plan.status;
		ndxp_lock_release(&fa->plan.lock);
	}
	ndxp_lock_release(&process->lock);
	return tally;
}

void fault_report_event(struct ndx_adapter *adapter, enum ndx_adapter_event_type type,
                        uint32_t port, int32_t native, const char *text)
{
	struct fault_process *process = ndx_provider_fault.state;
	struct fault_adapter *fa;

	ndxp_lock_acquire(&process->lock);
	fa = find_adapter(process, adapter);
	if (fa != NULL)
		fa->core->adapter_event(adapter, type, port, native, text);
	ndxp_lock_release(&process->lock);
}
