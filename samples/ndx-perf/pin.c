/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the threads of a test run. */
#include "pin.h"

#include <sched.h>

/* The processor of this number among those that the process may use. */
static int processor_at(const cpu_set_t *allowed, unsigned number)
{
	unsigned seen = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, allowed) && seen++ == number)
			return cpu;
	}
	return -1;
}

int pin_default(const cpu_set_t *allowed, bool client, uint32_t threads, uint32_t index)
{
	const unsigned count = (unsigned)CPU_COUNT(allowed);

	if (count < 2 || threads > count / 2)
		return -1;
	return processor_at(allowed, 2 * index + (client ? 0 : 1));
}

bool pin_allowed(uint32_t cpu)
{
	cpu_set_t allowed;

	return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
	       CPU_ISSET(cpu, &allowed);
}

void pin_thread(pthread_t thread, const struct perf_cpus *cpus, bool client, uint32_t threads,
                uint32_t index)
{
	cpu_set_t set;
	int cpu = -1;

	if (cpus->free)
		return;
	if (cpus->list.count > 0)
		cpu = (int)cpus->list.values[index % cpus->list.count];
	else if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpu = pin_default(&set, client, threads, index);
	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	/* One that went offline in the meantime: the thread runs elsewhere. */
	(void)pthread_setaffinity_np(thread, sizeof(set), &set);
}
