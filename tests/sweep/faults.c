/* SPDX-License-Identifier: BSD-2-Clause */
/* What fails: calls of the provider (providers/fault), or allocations of the library. */
#include "fault_control.h"
#include "allocation.h"
#include "sweep.h"

void faults_arm(struct run *r, uint64_t nth)
{
	if (r->faulty != NULL)
		fault_arm(r->faulty->adapter, nth, 1);
	else
		allocation_arm(nth);
}

bool faults_struck(const struct run *r)
{
	if (r->faulty != NULL)
		return fault_get_tally(r->faulty->adapter).failed > 0;
	return allocation_failed();
}

uint64_t faults_counted(const struct run *r)
{
	if (r->faulty != NULL)
		return fault_get_tally(r->faulty->adapter).calls;
	return allocation_counted();
}

enum ndx_status faults_status(const struct run *r)
{
	return r->faulty != NULL ? fault_get_tally(r->faulty->adapter).status : NDX_E_NO_MEMORY;
}

const char *faults_latest(const struct run *r)
{
	return r->faulty != NULL ? fault_get_tally(r->faulty->adapter).latest : "allocation";
}
