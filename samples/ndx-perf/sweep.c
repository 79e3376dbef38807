/* SPDX-License-Identifier: BSD-2-Clause */
/* Which tests the options ask for. */
#include "sweep.h"

#include <stddef.h>

/* The sizes, depths, queue pairs, and threads of one operation. */
static void sweep_operation(const struct sweep *sweep, struct perf_test test)
{
	const struct perf_options *o = sweep->options;
	const bool window = test.kind == PERF_BANDWIDTH || o->rate > 0;
	static const struct perf_list usual = {.values = {64}, .count = 1};
	static const struct perf_list single = {.values = {1}, .count = 1};
	const struct perf_list *depths = o->depths.count > 0 ? &o->depths
	                                 : window            ? &usual
	                                                     : &single;

	for (unsigned t = 0; t < o->threads.count; t++) {
		for (unsigned q = 0; q < o->qps.count; q++) {
			for (unsigned i = 0; i < depths->count * o->sizes.count; i++) {
				test.threads = o->threads.values[t];
				test.qps = o->qps.values[q];
				test.depth = depths->values[i / o->sizes.count];
				test.size = o->sizes.values[i % o->sizes.count];
				if (test.qps < test.threads ||
				    test.size > sweep->info->max_transfer_length)
					continue;
				if (!sweep->each(sweep->arg, &test))
					return;
			}
		}
	}
}

bool sweep_lacks(const struct sweep *sweep, enum perf_op op)
{
	return op == PERF_WRITE_IMM && (sweep->info->capabilities & NDX_CAP_WRITE_IMMEDIATE) == 0;
}

void sweep_run(const struct sweep *sweep)
{
	const struct perf_options *o = sweep->options;
	struct perf_test test = {.wait = o->wait, .both = o->both};

	test.seconds = (uint32_t)(o->seconds + o->warm_up) + 1;
	for (unsigned kind = 0; kind < PERF_KINDS; kind++) {
		for (unsigned op = 0; op < PERF_OPS; op++) {
			test.kind = (enum perf_kind)kind;
			test.op = (enum perf_op)op;
			if (o->kind[kind] && o->op[op] && !sweep_lacks(sweep, test.op))
				sweep_operation(sweep, test);
		}
	}
}
