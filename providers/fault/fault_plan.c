/* SPDX-License-Identifier: BSD-2-Clause */
/* Count the calls that can fail, and choose those that do. */
#include <string.h>

#include <ndx/spi/log.h>
#include "fault.h"

#define STATUSES 2

struct call {
	const char *name;
	enum ndx_status fits[STATUSES]; /* NDX_OK: there is no further one */
};

#define FAULT_IS(status) NDX_E_##status
#define FAULT_CALL(name, ...) {#name, {__VA_ARGS__}},
static const struct call calls[FAULT_CALLS] = {
#include "fault_calls.def"
};
#undef FAULT_CALL
#undef FAULT_IS

const char *fault_call_name(enum fault_call call)
{
	return call < FAULT_CALLS ? calls[call].name : "";
}

enum fault_call fault_call_find(const char *name)
{
	unsigned i = 0;

	while (i < FAULT_CALLS && strcmp(calls[i].name, name) != 0)
		i++;
	return (enum fault_call)i;
}

/* splitmix64: every seed is good, 0 included */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t fault_random(struct fault_adapter *fa, uint64_t below)
{
	uint64_t random;

	ndxp_lock_acquire(&fa->plan.lock);
	random = next_random(&fa->plan.random);
	ndxp_lock_release(&fa->plan.lock);
	return random % below;
}

static enum ndx_status status_for(const struct fault_adapter *fa, enum fault_call call)
{
	const struct call *c = &calls[call];

	if (fa->options.status != NDX_OK)
		return fa->options.status;
	return c->fits[1] != NDX_OK ? c->fits[fa->plan.calls % STATUSES] : c->fits[0];
}

enum ndx_status fault_inject(struct fault_adapter *fa, enum fault_call call)
{
	struct fault_plan *plan = &fa->plan;
	enum ndx_status st = NDX_OK;
	uint64_t n;

	if (fa->options.only != FAULT_CALLS && fa->options.only != call)
		return NDX_OK;
	ndxp_lock_acquire(&plan->lock);
	n = ++plan->calls;
	if (plan->nth != 0 && n >= plan->nth && n - plan->nth < plan->times) {
		st = status_for(fa, call);
		plan->failed++;
		plan->latest = call;
		plan->status = st;
	}
	ndxp_lock_release(&plan->lock);
	if (st == NDX_OK)
		return NDX_OK;
	log_info("call %llu, %s, is made to fail: %s", (unsigned long long)n, calls[call].name,
	         ndx_status_name(st));
	ndxp_set_last_error("%s is made to fail: %s", calls[call].name, ndx_status_name(st));
	return st;
}

/* ---- all adapters ---- */

void fault_process_add(struct fault_adapter *fa)
{
	ndxp_lock_acquire(&fa->process->lock);
	ndxp_list_add(&fa->process->adapters, &fa->node);
	ndxp_lock_release(&fa->process->lock);
}

void fault_process_remove(struct fault_adapter *fa)
{
	ndxp_lock_acquire(&fa->process->lock);
	ndxp_list_remove(&fa->node);
	ndxp_lock_release(&fa->process->lock);
}
