/* SPDX-License-Identifier: BSD-2-Clause */
/* Which tests the options ask for. */
#ifndef PERF_SWEEP_H
#define PERF_SWEEP_H

#include <stdbool.h>

#include <ndx/ndx.h>

#include "perf.h"

struct sweep {
	const struct perf_options *options;
	const struct ndx_adapter_info *info;
	/** Called for each test in turn. False: the rest of this operation is left out. */
	bool (*each)(void *arg, const struct perf_test *test);
	void *arg;
};

void sweep_run(const struct sweep *sweep);

/** Whether the adapter has no such operation. */
bool sweep_lacks(const struct sweep *sweep, enum perf_op op);

#endif
